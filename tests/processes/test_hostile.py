"""Hostile mechanisms: each ends in the right verdict, in no verdict, or in a refusal; never in a fake one or a hang."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, AuditSpec, InvalidSpec, PureDP, UnsoundAudit, Verdict, batched
from dpaudit.api.audits import audit
from dpaudit.api.existing import recheck
from dpaudit.auditing import run_audit
from dpaudit.execution.engine import Engine, Session
from dpaudit.mechanisms import Imported, wrap
from dpaudit.running import guard
from dpaudit.running.streams import Stage, apart
from dpaudit.running.worker import run_each
from tests.cases import some
from tests.processes import hostile

pytestmark = pytest.mark.long

RUNS = 2_000


def ask(mechanism: Any, *, pair: Any = (0, 1), **options: Any) -> Any:
    return audit(mechanism, pair=pair, epsilon=1.0, **{"runs": RUNS, "n_jobs": 1, "confidence": 0.99, **options})


def supervised(
    mechanism: Any,
    *,
    pair: Any = (0, 1),
    runs: int = RUNS,
    confidence: float = 0.99,
    run_timeout_s: float | None = None,
) -> Any:
    """The audit as the command line asks for it: no mechanism in this process."""
    with Engine(1, supervised=True) as engine:
        description, pairs = engine.describe(wrap(mechanism), (AdjacentPair.of(pair),))
        spec = AuditSpec(
            claim=PureDP(1.0),
            mechanism=wrap(mechanism),
            pairs=pairs,
            runs=runs,
            confidence=confidence,
            run_timeout_s=run_timeout_s,
            description=description,
        )
        return run_audit(spec, engine)


def in_a_subprocess(name: str, limit_s: float, **options: Any) -> str:
    """What an audit of a hostile mechanism says, from a process that is ended after `limit_s` seconds."""
    script = (
        "from tests.processes import hostile\nfrom dpaudit.api.audits import audit\nfrom dpaudit import DpAuditError\n"
        "if __name__ == '__main__':\n"
        "    try:\n"
        f"        result = audit(hostile.{name}, epsilon=1.0, confidence=0.99, **{options!r})\n"
        "        print(result.verdict.value)\n"
        "    except DpAuditError as error:\n"
        "        print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=limit_s, check=False)
    return done.stdout + done.stderr[-500:]


# --- outputs like any other ------------------------------------------------------------------------------------

LEAKS = [
    "raises",
    "raises_unprintable",
    "exits",
    "interrupts",
    "raises_generator_exit",
    "stops_iteration",
    "exhausts_the_stack",
    "returns_a_lambda",
    "returns_a_file",
    "returns_a_generator",
    "returns_itself",
    "returns_much",
    "returns_unhashable",
    "returns_evil",
]


@pytest.mark.parametrize("name", some(LEAKS, 5))
def test_what_happens_on_one_dataset_only_is_refuted(name: str) -> None:
    """Sure events: the witness parts the datasets in every certifying run, each in a process of its own."""
    result = ask(getattr(hostile, name), runs=200, confidence=0.9)
    assert result.verdict is Verdict.REFUTED
    assert (result.evidence.hits_p, result.evidence.hits_q) == (result.evidence.runs_p, 0)
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("name", "way"),
    some([(name, way) for name in ("returns_broken", "returns_exiting") for way in (ask, supervised)], 2),
)
def test_objects_that_fail_when_read_end_in_a_verdict_or_in_none(name: str, way: Any) -> None:
    try:
        assert way(getattr(hostile, name), runs=200, confidence=0.9).verdict is Verdict.REFUTED
    except UnsoundAudit:
        pass
    except BaseException as error:  # SystemExit would end the caller, with the mechanism's exit code
        pytest.fail(f"{error!r} escaped from the audit")


@pytest.mark.parametrize("name", ["exits", "interrupts", "raises", "prints"])
def test_supervised_audits_keep_their_streams_and_exit_to_themselves(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    result = supervised(getattr(hostile, name), confidence=0.99 if name == "prints" else 0.9)
    expected = Verdict.NOT_REFUTED if name == "prints" else Verdict.REFUTED
    assert result.verdict is expected  # chance of a false alarm below 1e-6: equal sides against epsilon 1
    assert capfd.readouterr() == ("", "")


def test_a_mechanism_that_reads_standard_input_gets_none_and_has_no_verdict() -> None:
    with pytest.raises(UnsoundAudit, match=r"raised EOFError, the first time .*: nothing was compared"):
        supervised(hostile.reads)


@pytest.mark.parametrize("name", ["reseeds", "spawns_threads"])
def test_harmless_oddities_change_nothing(name: str) -> None:
    """Both sides are alike: a false alarm against epsilon 1 has a chance far below 1e-6."""
    result = ask(getattr(hostile, name))
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.reproducible


@pytest.mark.parametrize("name", ["draws_elsewhere", "owns_its_randomness"])
def test_randomness_of_its_own_is_told(name: str) -> None:
    assert not ask(getattr(hostile, name)).reproducible


# --- time ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [ask, supervised], ids=["library", "supervised"])
def test_a_hang_on_one_dataset_is_refuted(way: Any) -> None:
    """A tenth of the runs of one side hang, about 37 of the certifying ones, and none of the other.

    Fifteen hits refute epsilon 1 at confidence 0.99: chance of fewer below 1e-5, and the seed is fixed.
    """
    result = way(hostile.hangs, runs=1_000, run_timeout_s=0.02)
    assert result.verdict is Verdict.REFUTED
    assert result.evidence.hits_q == 0
    assert result.reproducible


def test_a_hang_in_every_run_of_one_dataset_is_refuted() -> None:
    result = ask(hostile.hangs_always, runs=220, confidence=0.9, run_timeout_s=0.005)
    assert result.verdict is Verdict.REFUTED


def test_a_run_that_swallows_the_alarm_ends_without_a_verdict() -> None:
    """The watchdog waits 3 limits and half a second, twice: the audit is over long before 30 s, with no child left."""
    started = time.monotonic()
    with pytest.raises(UnsoundAudit, match="hung past run_timeout_s"):
        supervised(hostile.leaves_children, run_timeout_s=0.05)
    assert time.monotonic() - started < 30.0
    time.sleep(0.2)
    left = _running("sleep 987")
    for process in left:
        os.kill(int(process), signal.SIGKILL)
    assert not left


def _running(command: str) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if words == command:
            found.append(folder.name)
    return found


def test_a_late_alarm_is_not_an_output() -> None:
    """An alarm that arrives between two runs belongs to none: one output a run, in order."""

    def late() -> Any:
        yield from (0, 1)
        signal.raise_signal(signal.SIGALRM)
        yield from (2, 3)

    with guard.alarms(True):
        outputs = run_each(guard.time_limited(lambda data, rng: data, 5.0, hard=False), late(), None)
    assert outputs == [0, 1, 2, 3]


def test_the_callers_alarm_is_given_back() -> None:
    before = signal.getsignal(signal.SIGALRM)
    ask(hostile.reseeds, run_timeout_s=1.0)
    assert signal.getsignal(signal.SIGALRM) == before


@pytest.mark.parametrize("is_supervised", [False, True], ids=["library", "supervised"])
def test_batched_calls_may_be_limited_on_several_workers(is_supervised: bool) -> None:
    """What large audits do by themselves: batched work goes to threads, where no alarm can be set."""
    mechanism, pair = batched(hostile.many), AdjacentPair(0, 1)
    spec = AuditSpec(claim=PureDP(2.0), mechanism=mechanism, pairs=(pair,), runs=20_000, run_timeout_s=1.0)
    with Engine(2, "threading", task_runs=256, supervised=is_supervised) as engine:
        assert run_audit(spec, engine).verdict is Verdict.NOT_REFUTED


# --- lost workers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["leaves", "dies_rarely"])
def test_a_dead_worker_is_no_verdict(name: str) -> None:
    with pytest.raises(UnsoundAudit, match="died twice"):
        supervised(getattr(hostile, name))


@pytest.mark.parametrize("name", ["dies_rarely"])
def test_a_dead_loky_worker_is_no_verdict(name: str) -> None:
    said = in_a_subprocess(name, 60.0, pair=(0, 1), runs=20_000, n_jobs=2, backend="loky")
    assert said.startswith("UnsoundAudit a worker died twice") or said == ""  # "": the library's own process died


def test_leaving_from_a_loky_worker_does_not_decide_the_verdict() -> None:
    with Engine(2, "loky") as engine, engine.session(wrap(hostile.leaves), (AdjacentPair(0, 1),), 0, None) as session:
        from dpaudit.events import Event, HitCounter
        from dpaudit.events.features import Coordinate
        from dpaudit.running.streams import Stage, shards

        work = shards(Stage.CERTIFY, 0, 1_000, 100)
        with pytest.raises(UnsoundAudit, match="died twice"):
            session.counts(work, HitCounter(Event(Coordinate(()), intervals=((0.5, 1.5),))))


def test_a_forked_child_runs_nothing(tmp_path: Path) -> None:
    """A mechanism that forks and comes back twice: only the process that was asked goes on, or children multiply."""
    folder = str(tmp_path)
    result = supervised(hostile.forks, pair=((folder, 0), (folder, 1)), runs=300, confidence=0.9)
    assert result.verdict is Verdict.REFUTED
    pids = (tmp_path / "runs").read_text().split()
    # one for all runs of the search, one for each run that counts, one for the last look before a refutation
    assert len(set(pids)) == 2 + result.evidence.runs, f"{len(set(pids))} processes made runs"


# --- datasets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "pair"),
    [
        (hostile.appends, ([0], [0, 1])),
        (hostile.overwrites, (np.zeros(2), np.ones(2))),
        (hostile.overwrites, ([0.0], [1.0])),
        (hostile.adds_a_key, ({}, {"a": 1})),
        (batched(hostile.changes_in_a_batch), ([0], [1])),
    ],
    ids=["list", "array", "floats", "dict", "batched"],
)
@pytest.mark.parametrize("way", [ask, supervised], ids=["library", "supervised"])
def test_a_changed_dataset_is_no_verdict(mechanism: Any, pair: Any, way: Any) -> None:
    kept = json.dumps([np.asarray(side).tolist() if not isinstance(side, dict) else side for side in pair])
    with pytest.raises(UnsoundAudit, match=r"changed its dataset .*copy"):
        way(mechanism, pair=pair)
    assert json.dumps([np.asarray(side).tolist() if not isinstance(side, dict) else side for side in pair]) == kept


# --- batched ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["too_few", "one_number", "wrong_axis", "uneven_parts", "nothing"])
def test_nonsense_from_a_batch_is_no_verdict(name: str) -> None:
    with pytest.raises(UnsoundAudit, match="batched mechanism"):
        ask(batched(getattr(hostile, name)))


@pytest.mark.parametrize("name", ["raises_in_a_batch", "raises_unprintable_in_a_batch"])
def test_a_batch_that_fails_on_one_dataset_is_run_one_by_one(name: str) -> None:
    result = ask(batched(getattr(hostile, name)), runs=200, confidence=0.9)
    assert result.verdict is Verdict.REFUTED
    assert any("one run at a time" in entry.status for entry in result.explored)


@pytest.mark.parametrize("stopping", ["fixed", "anytime"])
def test_a_batch_that_fails_rarely_is_run_one_by_one(stopping: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe, of 64 runs, sees none of what 0.2 % of the runs raise (at this seed); the search does. What is
    certified has streams that nothing before had."""
    seen: list[tuple[Stage, bool, int]] = []
    before = Session._run

    def noted(session: Session, work: Any, reducer: Any) -> Any:
        seen.append((work[0].stage, session.job.alone, session.job.seed))
        return before(session, work, reducer)

    monkeypatch.setattr(Session, "_run", noted)
    result = ask(batched(hostile.raises_rarely_in_a_batch), runs=12_800, stopping=stopping, seed=5)
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.runs_used <= 12_800
    assert any("one run at a time" in entry.status for entry in result.explored)
    assert not seen[0][1]
    assert {seed for _, alone, seed in seen if not alone} == {5}
    assert {seed for _, alone, seed in seen if alone} == {apart(5)}
    assert [alone for stage, alone, _ in seen if stage is Stage.CERTIFY] == [True]
    assert not result.blocks
    again = recheck(result, batched(hostile.raises_rarely_in_a_batch), fresh=True)
    assert again.verdict is Verdict.NOT_REFUTED


@pytest.mark.parametrize("stopping", ["fixed", "anytime"])
def test_a_batch_that_first_fails_while_certifying_is_no_verdict(stopping: str) -> None:
    """Other runs in the place of those would be a second chance to refute; in the place of search runs they are not.
    The blocks of an anytime audit after the freeze are those of its fixed bound."""
    assert ask(batched(hostile.RaisesLate(2_000)), runs=20_000, stopping=stopping).verdict is Verdict.NOT_REFUTED
    with pytest.raises(UnsoundAudit, match=r"ValueError: late, the first time in this audit.* give one run a call"):
        ask(batched(hostile.RaisesLate(12_000)), runs=20_000, stopping=stopping)


def test_a_single_run_of_a_failing_batch_keeps_the_shape_rule() -> None:
    """Called one by one, a result without the run as first axis is still no output."""

    def wrong(data: int, runs: int, rng: Any) -> Any:
        if runs > 1:
            raise ValueError
        return np.zeros(2)

    with pytest.raises(UnsoundAudit, match=r"first axis|returned 2 outputs"):
        ask(batched(wrong))


# --- what cannot be sent to workers -----------------------------------------------------------------------------


def test_a_closure_over_a_lock_is_refused_with_a_cure() -> None:
    import threading

    lock = threading.Lock()

    def locked(data: int, rng: Any) -> float:
        with lock:
            return float(rng.random())

    with pytest.raises(InvalidSpec, match="built_by"):
        ask(locked, n_jobs=2, backend="loky")
    assert ask(locked).verdict is Verdict.NOT_REFUTED


def test_a_mechanism_that_cannot_be_opened_in_a_worker_is_refused_in_words() -> None:
    with (
        Engine(1, supervised=True) as engine,
        engine.session(_Unpicklable(), (AdjacentPair(0, 1),), 0, None) as session,
        pytest.raises((InvalidSpec, UnsoundAudit)),
    ):
        session.probe(4)


class _Unpicklable:
    """Pickled well, but not to be had back."""

    name = "unpicklable"

    def __reduce__(self) -> Any:
        return _not_here, ()

    def open(self) -> Any:
        raise AssertionError("never had back")

    def describe(self) -> Any:
        raise AssertionError("never had back")


def _not_here() -> Any:
    raise ImportError("not in this worker")


def test_no_child_outlives_the_supervised_engine() -> None:
    before = _children()
    supervised(hostile.reseeds)
    with pytest.raises(UnsoundAudit):
        supervised(hostile.leaves)
    deadline = time.monotonic() + 5.0
    while set(_children()) - set(before) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not {line for process, line in _children().items() if process not in before}


def _children() -> dict[str, bytes]:
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_text().rpartition(")")[2].split()
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if (
            words[1] == str(os.getpid())
            and words[0] != "Z"
            and not any(word in line for word in (b"resource_tracker", b"pgrep"))
        ):
            found[folder.name] = line
    return found


def test_a_module_whose_import_ends_one_process_is_tried_in_another(tmp_path: Path) -> None:
    text = "import os, pathlib\nmark = pathlib.Path(__file__).with_suffix('.mark')\n"
    text += "if not mark.exists():\n    mark.touch()\n    os._exit(0)\n\ndef f(data, rng):\n    return data\n"
    (tmp_path / "ends_once.py").write_text(text)
    with Engine(1, supervised=True) as engine:
        found, _ = engine.describe(Imported("ends_once:f", folder=str(tmp_path)), (AdjacentPair(0, 1),))
    assert found.name == "f"
