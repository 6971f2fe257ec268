"""`dpaudit plan --freeze`, `shard` and `merge`: certifying runs that are counted in parts, by whoever and wherever."""

import glob
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_origin

from dpaudit.account import templates
from dpaudit.auditing.runner import Runner
from dpaudit.auditing.watching import watching
from dpaudit.base import validate
from dpaudit.base.files import FOLDER, found_at, report_folder, writing
from dpaudit.base.numerals import counted
from dpaudit.base.quoting import clean
from dpaudit.cli.commands import MergeCommand, PlanCommand, ReportOptions, RunCommand, ShardCommand
from dpaudit.cli.options import check_writable, chosen_ledger, chosen_questions, layers, show
from dpaudit.cli.recheck import password
from dpaudit.cli.suite import SuiteJournal, run_suite
from dpaudit.errors import InvalidSpec, NotAttested, at
from dpaudit.execution.engine import Engine
from dpaudit.ledger.database import LedgerError
from dpaudit.ledger.parts import BY_HAND, FrozenPlan, Place, begun, merge, moved, name_of, sign
from dpaudit.ledger.results import Ledger
from dpaudit.ledger.runs import RunLock
from dpaudit.processes.frames import decoded
from dpaudit.results.attesting import SUFFIX, signer
from dpaudit.running.streams import Shard
from dpaudit.spec.questions import Layers, SpecQuestion, shared
from dpaudit.spec.settings import read_settings


def freeze(call: PlanCommand, path: Path) -> int:
    """Probes and searches, and freezes what is left: the certifying runs, in so many parts."""
    given, raw = layers(call), path.with_name(f".{path.name}.freezing")
    parts = 1 if call.parts is None else validate.whole("--parts", call.parts, least=1)
    check_writable("--freeze", str(path))
    if found_at(path) is not None:
        raise InvalidSpec(f"--freeze: {path} is there already; name another file, or remove it")
    for question in chosen_questions(call.paths, given, call.tags, call.only):
        _check_freezable(question)
    known = {name: getattr(call, name) for name in ("paths", "tags", "only")}
    told = {name: list(value) for name, value in known.items()}
    asked = {"parts": parts, "options": dict(given.command), **told}
    for left in path.parent.glob(f"{glob.escape(raw.name)}*"):  # of one that was killed
        left.unlink()
    ended = run_suite(_run_command(ledger=str(raw), jobs=call.jobs, quiet=True, **known), given, {BY_HAND: asked})
    with Ledger(raw) as ledger:
        calls = [each for frozen in FrozenPlan.of(ledger).calls.values() for each in frozen]
        ledger.in_one_file()
    raw.replace(path)
    runs, many = sum(each.runs for each in calls), counted(sum(len(each.shards) for each in calls), "shard")
    show(templates.FROZEN.format(plan=path, parts=parts, runs=runs, many=many))
    return ended.exit_code if ended.entries else 0


def _check_freezable(question: SpecQuestion) -> None:
    with at(question.place):
        if question.stopping != "fixed":
            raise InvalidSpec("stopping 'anytime' looks at what came before: give stopping = \"fixed\" to freeze it")
        if question.max_time_s is not None:
            raise InvalidSpec("max_time_s chooses runs by a clock, of which parts have several: give runs to freeze it")
        if question.controls:
            raise InvalidSpec("controls are audits of their own, which no part counts: give --controls 0 to freeze it")


def _questions(frozen: FrozenPlan) -> tuple[SpecQuestion, ...]:
    """The questions of a plan, as their specs have them here."""
    asked = frozen.asked
    posed, _ = shared(chosen_questions(asked["paths"], _layers(frozen), asked["tags"], asked["only"]))
    return posed


def _layers(frozen: FrozenPlan) -> Layers:
    return Layers(frozen.asked["options"], read_settings(Path.cwd()).options)


def _count(frozen: FrozenPlan, chosen: Collection[Place], who: str, jobs: int, *, silent: bool) -> None:
    """Counts the chosen shards of a plan into its ledger, by processes of this machine."""
    posed = _questions(frozen)
    with watching(len(posed), shown=not silent) as watcher:
        for number, calls in frozen.calls.items():
            if number > len(posed):
                raise InvalidSpec(f"{', '.join(frozen.asked['paths'])}: {templates.NOT_FROZEN}")
            question, mine = posed[number - 1], dict[int, list[Shard]]()
            for call in calls:
                mine[call.number] = [shard for shard in call.shards if (number, call.number, shard) in chosen]
            if not any(mine.values()):
                continue
            watcher.audit(number, question.name)
            question.check_requirements()
            journal = SuiteJournal(frozen.ledger, frozen.run, number, question=question, by_hand=frozen.parts)
            with at(question.place), Engine(jobs, "", supervised=True, isolation=question.isolation) as engine:
                Runner(engine, journal, watcher).count(question, calls, mine, who)


def shard_command(call: ShardCommand) -> int:
    folder = report_folder("--out", call.out)
    by = None if call.key is None else signer(call.key, password)
    assert folder is not None
    with at(clean(call.plan, 200)), Ledger(call.plan, read_only=True) as ledger:
        plan = FrozenPlan.of(ledger)
    part = _part(call.part, plan.parts)
    path = folder / name_of(part, plan.parts)
    signature, lock = Path(f"{path}{SUFFIX}"), RunLock(path, plan.run)
    if not lock.take():
        raise LedgerError(f"{path}: another process counts it now; wait for it, or end it")
    try:
        with writing("--out", path, "folder"):
            if by is not None and not signature.exists():
                path.unlink(missing_ok=True)  # nobody signs what others may have counted
            if not path.exists():
                begun(Path(call.plan), path)
        with at(str(path)), Ledger(path, read_only=True) as ledger:
            frozen = FrozenPlan.of(ledger)
            if frozen.run != plan.run:
                raise InvalidSpec("it is a part of another plan; remove it, or name another folder")
            mine = {key for key in frozen.wanted if frozen.part_of(key[2]) == part}
            left = mine - frozen.counted().keys()
        if left:
            with Ledger(path) as ledger:
                _count(replace(frozen, ledger=ledger), mine, f"part {part}", call.jobs, silent=call.no_progress)
                ledger.in_one_file()
        if by is not None and not signature.exists():
            sign(path, by)
    finally:
        lock.free()
    told = templates.COUNTED if left or not mine else templates.COUNTED_ALREADY
    show(told.format(path=path, runs=sum(shard.runs for _, _, shard in mine)))
    return 0


def _part(text: str, parts: int) -> int:
    first, slash, of = text.partition("/")
    if not (slash and first.isascii() and first.isdigit() and of.isascii() and of.isdigit() and len(text) < 20):
        raise InvalidSpec(f"--part must read 1/{parts}, got {clean(text)!r}")
    if int(of) != parts or not 1 <= int(first) <= parts:
        raise InvalidSpec(f"--part {clean(text)}: the plan has parts 1/{parts} to {parts}/{parts}")
    return int(first)


@contextmanager
def _copy(plan: str) -> Iterator[FrozenPlan]:
    """A plan in a copy of its ledger."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "plan.sqlite"
        with at(clean(plan, 200)):
            with Ledger(plan, read_only=True):  # that it is one
                shutil.copyfile(plan, path)
            ledger = Ledger(path)
        with ledger:
            with at(clean(plan, 200)):
                frozen = FrozenPlan.of(ledger)
            yield frozen


def merge_command(call: MergeCommand) -> int:
    if call.no_ledger and call.ledger is not None:
        raise InvalidSpec("--no-ledger and --ledger: give one of the two")
    folders = [Path(each) for each in call.counts]
    files = [path for each in folders for path in (each.glob("*.sqlite") if found_at(each) == FOLDER else [each])]
    with _copy(call.plan) as frozen:
        merge(frozen, files, call.key)
        if call.recheck is not None:
            _recheck(call, frozen, validate.whole("--recheck", call.recheck, least=1))
        asked, place = frozen.asked, str(frozen.ledger.path)
        moved(frozen.ledger, {str(question.source.resolve()) for question in _questions(frozen)})
        told = {each.name: getattr(call, each.name) for each in fields(ReportOptions)}
        known = {name: tuple(asked[name]) for name in ("paths", "tags", "only")}
        again = _run_command(**{**told, **known, "ledger": place, "no_ledger": False, "resume": True})
        finished = run_suite(again, _layers(frozen), {BY_HAND: asked})
    if not call.no_ledger:
        with Ledger(chosen_ledger(call.ledger)) as ledger:
            for entry in finished.entries:
                if entry.result is not None:
                    ledger.record(entry.result)
    return finished.exit_code


def _recheck(call: MergeCommand, frozen: FrozenPlan, many: int) -> None:
    """Counts some shards again, which nobody could foresee. Raises `NotAttested` where the counts of one are others."""
    if not all(each.likeness for calls in frozen.calls.values() for each in calls):
        raise InvalidSpec("--recheck: the mechanism draws noise of its own, so no run can be made again; sign parts")
    before = frozen.counted()
    again = set(secrets.SystemRandom().sample([*before], min(len(before), many)))
    with _copy(call.plan) as other:
        _count(other, again, "recheck", call.jobs or -1, silent=call.no_progress)
        for key, stored in other.counted().items():
            one, two = (decoded("counts", each.content).result for each in (stored, before[key]))
            if one.tolist() != two.tolist():
                place = f"part {frozen.part_of(key[2])}, audit {key[0]}, shard {key[2].index}"
                raise NotAttested(f"{place}: {templates.OTHER_COUNTS}")
    show(templates.COUNTED_AGAIN.format(many=counted(len(again), "shard"), of=len(before)))


def _run_command(**given: Any) -> RunCommand:
    """The command with what is given, and nothing else."""
    nothing = {each.name: () if get_origin(each.type) is tuple else None for each in fields(RunCommand)}
    return RunCommand(**{**nothing, "no_ledger": False, "resume": False, **given})
