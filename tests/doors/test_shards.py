"""Shards by hand: parts that anyone counts make the result of one machine, and no other parts make any."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.cli.group import exit_code
from dpaudit.execution.journal import ELSEWHERE, FROZEN
from dpaudit.ledger.parts import FrozenPlan
from dpaudit.ledger.results import Ledger
from dpaudit.ledger.runs import RunLock
from dpaudit.processes.frames import decoded, encoded
from tests.cases import for_each
from tests.doors.conftest import Outcome, Run, Write, document, spec

pytestmark = pytest.mark.long

PARTS = 3
ROOT = Path(__file__).resolve().parents[2]
MECHANISMS = '''
import dpaudit

def number(data, rng):
    return data + rng.laplace()

def half(data, rng):
    """Keeps half of what is claimed: refuted, so that fresh processes are looked at too."""
    return data + rng.laplace(scale=0.5)

def text(data, rng):
    return "low" if data + rng.laplace() < 9.5 else "high"

def several(data, rng):
    return {"a": data + rng.laplace(scale=2.0), "b": (data + rng.laplace(scale=2.0), "c")}

@dpaudit.batched
def vector(data, runs, rng):
    return data + rng.laplace(scale=3.0, size=(runs, 3))

@dpaudit.batched
def fragile(data, runs, rng):
    """Raises in a batch where one of its runs would."""
    if runs > 40:
        raise ValueError("too many")
    return data + rng.laplace(size=runs)

def coarse(data, rng):
    """Tells its dataset by the last bits."""
    return round(8.0 * rng.laplace()) / 8.0 + (0.0 if data == 10 else 2.0**-30)

def answer(data):
    """Gives its dataset away: each certifying run has a process of its own, and there is nothing to count by hand."""
    return data
'''
PAIRS = "[{ first = 10, second = 9 }, { first = 10, second = 8, name = 'far' }]"
AUDITS: dict[str, dict[str, str | None]] = {
    "number": {},
    "half": {"expect": '"refuted"'},
    "text": {},
    "several": {},
    "vector": {"claim": "{ rho = 0.4 }"},
    "fragile": {"runs": "4_000"},
    "coarse": {"representation": "true", "expect": '"refuted"'},
    "answer": {"expect": '"refuted"', "runs": "1_000"},
    "pairs": {"mechanism": '"kinds:number"', "pair": None, "pairs": PAIRS, "certify_pairs": "2", "expect": '"refuted"'},
}


def run(*arguments: str) -> int:
    """The exit code of a command."""
    return exit_code([*arguments])


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a plan, its three parts in `counts`, and the results of one machine in `alone`."""
    folder = tmp_path_factory.mktemp("shards")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("kinds.py").write_text(MECHANISMS)
        usual = {name: {"name": f'"{name}"', "mechanism": f'"kinds:{name}"', "runs": "20_000"} for name in AUDITS}
        Path("spec.toml").write_text(document(*(spec(**{**usual[name], **keys}) for name, keys in AUDITS.items())))
        assert run("plan", "spec.toml", "--freeze", "plan", "--parts", str(PARTS), "--jobs", "1") == 0
        for command in ("genpkey -algorithm ed25519 -out key.pem", "pkey -in key.pem -pubout -out key.pub"):
            subprocess.run(["openssl", *command.split()], check=True, capture_output=True)
        for part in range(1, PARTS + 1):
            how = ("--out", "counts", "--key", "key.pem", "--jobs", str(part))
            assert run("shard", "plan", "--part", f"{part}/{PARTS}", *how) == 0
        run("run", "spec.toml", "--report", "alone", "--format", "json", "--no-ledger", "--quiet", "--jobs", "1")
    return folder


@pytest.fixture
def here(counted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, to be spoilt."""
    monkeypatch.chdir(shutil.copytree(counted, tmp_path / "copy"))
    return tmp_path / "copy"


@pytest.fixture
def merge(here: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Merges the counts of this folder."""

    def merged(*more: str) -> Outcome:
        capfd.readouterr()
        code = run("merge", "plan", "counts", "--quiet", "--no-ledger", "--jobs", "1", *more)
        said = capfd.readouterr()
        assert "Traceback" not in said.out + said.err
        return Outcome(code, said.out, said.err)

    return merged


def stored(folder: str) -> dict[str, dict[str, Any]]:
    files = [each for each in Path(folder).glob("*.json") if each.name != "suite.json"]
    return {each.name.rpartition("-")[0]: json.loads(each.read_text()) for each in files}


def test_the_result_is_that_of_one_machine(here: Path, merge: Callable[..., Outcome]) -> None:
    outcome = merge("--report", "merged", "--format", "json", "--key", "key.pub", "--recheck", "5")
    assert outcome.code == 0, outcome.err
    assert "rechecked: 5 shards" in outcome.out
    together, alone = stored("merged"), stored("alone")
    assert together.keys() == alone.keys() == AUDITS.keys()
    for name, result in together.items():
        how = result.pop("provenance")
        alone[name].pop("provenance")
        assert result == alone[name], name
        if name != "answer":
            (host,) = how["hosts"]
            assert (how["parts"], host["workers"], how["interruptions"]) == (PARTS, PARTS, 0)
            assert host["runs"] >= result["evidence"]["runs_p"] + result["evidence"]["runs_q"]
    again = merge("--report", "again", "--format", "json")  # a merge uses nothing up
    assert again.code == 0
    assert {name: each["evidence"] for name, each in stored("again").items()} == {
        name: each["evidence"] for name, each in together.items()
    }


FIRST, SECOND = "counts/part-1-of-3.sqlite", "counts/part-2-of-3.sqlite"


def sql(query: str, file: str = SECOND) -> Callable[[], Any]:
    """A change that a program for databases makes."""

    def spoil() -> None:
        with closing(sqlite3.connect(file)) as connection:
            connection.execute(query)
            connection.commit()

    return spoil


def edited(change: Callable[[Any], Any], shards: int = 1) -> Callable[..., Any]:
    """Counts of the second part changed by somebody who knows how they are stored: it is no accident."""

    def spoil(close: Callable[[int], Any] = lambda code: None) -> None:
        with Ledger(SECOND) as ledger:
            plan = FrozenPlan.of(ledger)
            (call,) = plan.calls[1]
            journal = plan.journal(1)
            for each in list(journal.fetch(call.number))[:shards]:
                kept = decoded(each.kind, each.content)
                (shard, question, result) = change((each.shard, each.question, kept.result.copy()))
                sql(f'DELETE FROM shards WHERE audit = 1 AND "call" = {call.number} AND shard = {each.shard.index}')()
                kind, content = encoded(replace(kept, result=result))
                journal.keep([replace(each, shard=shard, question=question, kind=kind, content=content)])
            close(9)

    return spoil


def hits(more: int) -> Callable[[Any], Any]:
    def change(given: Any) -> Any:
        shard, question, counts = given
        counts[2] += more if more < 9 else counts[0]
        return shard, question, counts

    return change


def in_file(name: str, old: str, new: str) -> Callable[[], Any]:
    return lambda: Path(name).write_text(Path(name).read_text().replace(old, new, 1))


def cut(file: str) -> Callable[[], Any]:
    return lambda: Path(file).write_bytes(Path(file).read_bytes()[:9_000])


SHARD = "DELETE FROM shards WHERE audit = 1 AND shard = 4"
NUMPY = f'"numpy":"{np.__version__}"'
MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "missing": (lambda: os.remove(SECOND), "part 2 of 3 is not there, or not whole: no bound without all of them"),
    "two missing": (lambda: [os.remove(each) for each in (FIRST, SECOND)], "parts 1, 2 of 3 are not there"),
    "twice": (lambda: shutil.copy(SECOND, "counts/x.sqlite"), "counts/x.sqlite: part 2 is in counts/part-2-of-3.sql"),
    "a shard less": (sql(SHARD), "part 2 of 3 is not there, or not whole"),
    "cut": (cut(SECOND), "counts/part-2-of-3.sqlite"),
    "damaged": (sql("UPDATE shards SET runs = runs + 1 WHERE shard = 4"), "is not what was stored"),
    "no part at all": (lambda: Path("counts/x.sqlite").write_text("{}" * 600), "counts/x.sqlite"),
    "some other ledger": (sql("UPDATE runs SET finished = started"), "part-2-of-3.sqlite: no frozen plan"),
    "of another plan": (
        sql("UPDATE runs SET suite = replace(suite, '\"parts\":3', '\"parts\":4')"),
        "a part of another plan",
    ),
    "a shard of other runs": (edited(lambda of: (replace(of[0], runs=7), *of[1:])), "answers another question than"),
    "another question": (edited(lambda of: (of[0], "0" * 32, of[2])), "answers another question than the plan asks"),
    "counts of something else": (edited(lambda of: (*of[:2], of[2][:9])), "has no counts of these events in"),
    "counts of more runs": (edited(lambda of: (*of[:2], of[2] + 1)), "has no counts of these events in"),
    "more hits than runs": (edited(hits(9)), "has more hits than runs"),
    "other code": (
        in_file("kinds.py", "scale=0.5", "scale=0.6"),
        "audit 'number': module kinds is not what it was since",
    ),
    "another numpy": (
        sql(f"UPDATE begun SET content = replace(content, '{NUMPY}', '\"numpy\":\"1.0\"')", "plan"),
        "audit 'number': numpy was 1.0 and is",
    ),
    "another spec": (
        in_file("spec.toml", "runs = 20_000", "runs = 30_000"),
        "runs was 20000 and is 30000 since it",
    ),
    "another audit": (in_file("spec.toml", '"answer"', '"answers"'), "audits, spec.toml: audit 'answer' is gone"),
    "no spec": (lambda: os.remove("spec.toml"), "spec.toml"),
    "no plan": (lambda: os.remove("plan"), "plan: there is no such file"),
    "a plan that is none": (lambda: shutil.copy("spec.toml", "plan"), "plan"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_was_spoilt_is_named_and_gives_no_bound(mistake: str, merge: Callable[..., Outcome]) -> None:
    spoil, words = MISTAKES[mistake]
    spoil()
    outcome = merge()
    assert (outcome.code, outcome.err.count("\n")) == (2, 1), outcome
    assert words in outcome.err
    assert "refuted" not in outcome.out


def test_edited_counts_are_seen_by_a_recheck_and_by_a_signature(merge: Callable[..., Outcome]) -> None:
    edited(hits(-1), shards=99)()
    assert merge().code == 0  # they can be, so that nothing in them tells
    for options, words in (
        (("--recheck", "9999"), "part 2, audit 1, shard 1: counted again it has other counts"),
        (("--key", "key.pub"), "part-2-of-3.sqlite: what was signed is another part, or had other counts"),
    ):
        outcome = merge(*options)
        assert (outcome.code, outcome.err.count("\n")) == (1, 1), outcome.err
        assert words in outcome.err
    os.remove(f"{SECOND}.intoto.jsonl")
    assert "part-2-of-3.sqlite: it is not signed so" in merge("--key", "key.pub").err


def test_a_part_whose_first_runs_had_other_outputs_is_named(here: Path, merge: Callable[..., Outcome]) -> None:
    with Ledger(SECOND) as ledger:
        FrozenPlan.of(ledger).journal(1).note(ELSEWHERE, {"part 2": ("far", 5_000, False)})
    assert merge("--report", "merged", "--format", "json").code == 0
    result = stored("merged")["number"]
    assert not result["reproducible"]
    assert {"host": "far", "workers": 1, "runs": 5_000} in result["provenance"]["hosts"]
    assert any("gave part 2 other outputs" in note for note in result["health"]["notes"])
    assert stored("merged")["text"]["reproducible"]


def test_a_part_that_is_there_is_not_counted_again(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = Path(SECOND).read_bytes()
    assert run("shard", "plan", "--part", "2/3", "--out", "counts") == 0
    assert "there already, and whole" in capfd.readouterr().out
    assert Path(SECOND).read_bytes() == before


@for_each(
    "words, why",
    [
        (("--part", "4/3"), "the plan has parts 1/3 to 3/3"),
        (("--part", "1/4"), "the plan has parts 1/3 to 3/3"),
        (("--part", "second"), "--part must read 1/3, got 'second'"),
    ],
)
def test_a_part_that_is_none(words: tuple[str, ...], why: str, here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("shard", "plan", *words, "--out", "new") == 2
    assert why in capfd.readouterr().err


def test_a_part_of_another_plan_is_not_gone_on_with(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sql("UPDATE runs SET id = 'another'")()
    assert run("shard", "plan", "--part", "2/3", "--out", "counts") == 2
    assert f"{SECOND}: it is a part of another plan; remove it" in capfd.readouterr().err


def test_other_code_counts_no_part(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    in_file("kinds.py", "scale=0.5", "scale=0.6")()
    assert run("shard", "plan", "--part", "2/3", "--out", "new") == 2
    assert "audit 'number': module kinds is not what it was" in capfd.readouterr().err


def test_a_plan_whose_event_was_changed_counts_no_part(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Ledger("plan") as ledger:
        journal = FrozenPlan.of(ledger).journal(1)
        (call,) = journal.notes()[FROZEN]
        call["events"][0]["intervals"] = [[0.0, "inf"]]
        journal.note(FROZEN, [call])
    assert run("shard", "plan", "--part", "2/3", "--out", "new") == 2
    assert "the plan is not what was frozen" in capfd.readouterr().err


def test_a_part_that_was_killed_goes_on(here: Path, merge: Callable[..., Outcome]) -> None:
    sql(SHARD)()
    with Ledger(SECOND) as ledger:  # of its first process other outputs were seen, and are not forgotten
        FrozenPlan.of(ledger).journal(1).note(ELSEWHERE, {"part 2": ("far", 5_000, False)})
    assert run("shard", "plan", "--part", "2/3", "--out", "counts") == 0
    assert merge("--report", "merged", "--format", "json").code == 0
    assert not stored("merged")["number"]["reproducible"]


def test_nobody_signs_what_others_may_have_counted(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    edited(hits(-1))()
    before = Path(SECOND).read_bytes()
    assert run("shard", "plan", "--part", "2/3", "--out", "counts", "--key", "key.pem") == 0
    assert "there already" in capfd.readouterr().out  # and its old signature does not hold
    assert Path(SECOND).read_bytes() == before
    os.remove(f"{SECOND}.intoto.jsonl")
    assert run("shard", "plan", "--part", "2/3", "--out", "counts", "--key", "key.pem") == 0
    assert run("merge", "plan", "counts", "--quiet", "--no-ledger", "--key", "key.pub", "--recheck", "9999") == 0


def test_what_lies_beside_a_signed_part_is_not_read(merge: Callable[..., Outcome]) -> None:
    spoil = "import os, sys; from tests.doors.test_shards import edited, hits; edited(hits(-1), 99)(close=os._exit)"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
        assert subprocess.run([sys.executable, "-c", spoil]).returncode == 9
    assert Path(f"{SECOND}-wal").stat().st_size > 0
    assert "or had other counts" in merge("--key", "key.pub").err
    Path(f"{SECOND}-wal").rename("kept")
    sql("PRAGMA journal_mode = DELETE")()
    Path("kept").rename(f"{SECOND}-wal")
    assert merge("--recheck", "9999").code == 0


def test_one_process_counts_a_part(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Ledger("plan", read_only=True) as ledger:
        lock = RunLock(Path(SECOND), FrozenPlan.of(ledger).run)
    assert lock.take()
    code = subprocess.run(
        [sys.executable, "-m", "dpaudit", "shard", "plan", "--part", "2/3", "--out", "counts"], capture_output=True
    )
    lock.free()
    assert (code.returncode, b"another process counts it now" in code.stderr) == (2, True), code.stderr


def test_a_key_that_cannot_sign_is_refused_before_anything_is_counted(here: Path) -> None:
    assert run("shard", "plan", "--part", "2/3", "--out", "new", "--key", "key.pub") == 2
    assert not list(Path("new").iterdir())


def test_a_freeze_that_was_killed_is_no_plan_and_does_not_stand_in_the_way(dpaudit: Run, write: Write) -> None:
    spec_file, killed = write(spec(mechanism='"mechs:noisy"', runs="20_000", controls="2")), Path(".plan.freezing")
    killed.write_text("half of one")
    frozen = dpaudit("plan", spec_file, "--freeze", "plan", "--parts", "2", "--controls", "0")
    assert (frozen.code, killed.exists()) == (0, False), frozen.err
    for part in ("1/2", "2/2"):
        assert dpaudit("shard", "plan", "--part", part, "--out", "counts").code == 0  # the option is part of the plan
    assert dpaudit("merge", "plan", "counts", "--no-ledger").code == 0


def test_an_audit_that_has_no_verdict_before_its_certifying_runs_ends_freeze_so(dpaudit: Run, write: Write) -> None:
    outcome = dpaudit("plan", write(spec(mechanism='"mechs:dies"')), "--freeze", "plan", "--parts", "2")
    assert outcome.code == 3
    assert "no verdict   spec.toml: audit 'it'" in outcome.err


@for_each(
    "words, why",
    [
        (("--freeze", "p", "--probe"), "give one of the three"),
        (("--parts", "2"), "--parts is for --freeze"),
        (("--freeze", "p", "--parts", "0"), "--parts must be at least 1, got 0"),
        (("--core-hour", "1"), "--core-hour: give --probe and a price of at least 0"),
        (("--probe", "--gpu-hour", "-1"), "--gpu-hour: give --probe and a price of at least 0"),
        (("--probe", "--gpu-hour", "nan"), "--gpu-hour: give --probe and a price of at least 0"),
    ],
)
def test_options_of_plan_that_do_not_go_together(words: tuple[str, ...], why: str, dpaudit: Run, write: Write) -> None:
    outcome = dpaudit("plan", write(spec()), *words)
    assert outcome.code == 2
    assert why in outcome.err


@for_each(
    "keys, why",
    [
        ({"stopping": '"anytime"'}, 'give stopping = "fixed" to freeze it'),
        ({"runs": None, "max_time_s": "5"}, "give runs to freeze it"),
        ({"controls": "2"}, "give --controls 0 to freeze it"),
    ],
)
def test_what_cannot_be_frozen(keys: dict[str, str | None], why: str, dpaudit: Run, write: Write) -> None:
    outcome = dpaudit("plan", write(spec(**keys)), "--freeze", "plan", "--parts", "2")
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert why in outcome.err
    assert not Path("plan").exists()
