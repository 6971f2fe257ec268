"""Every exit code of `run`; `recheck`, `compare --rerun`, `catalogue`, and how the command line itself behaves."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

import dpaudit as package
from dpaudit.base import quoting
from dpaudit.catalogue import Entry, entries, rooms
from dpaudit.catalogue.attacks import ATTACKS
from dpaudit.ledger.results import Ledger
from dpaudit.results.stored import load_suite
from dpaudit.results.suite import together
from dpaudit.running.worker import Probe
from tests.cases import for_each
from tests.doors.conftest import Run, Write, process, spec

CATALOGUE = [each for entry in entries() for each in (entry, *entry.twins.values())]


RECORD: list[str] = []  # of one run: it is made once for all tests


@pytest.fixture
def stored(dpaudit: Run, write: Write, folder: Path) -> Path:
    """A result of `run` beside its spec: a mechanism that tells its dataset, refuted as expected."""
    path = write(spec(mechanism='"mechs:leak"', expect='"refuted"'))
    if not RECORD:
        assert dpaudit("run", path, "--report", "out", "--format", "json").code == 0
        RECORD.extend(file.read_text() for file in Path("out").glob("it-*.json"))
    (folder / "it.json").write_text(*RECORD)
    return Path("it.json")


def test_plan_tells_the_time_by_a_probe_and_of_controls_the_most(
    dpaudit: Run, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    probed = Probe(0.01, 64, reproducible=True, alone=False)
    monkeypatch.setattr("dpaudit.cli.plan.time_of_a_run", lambda *_: probed)
    told = dpaudit("plan", write(spec(mechanism='"mechs:noisy"')), "--probe", "--jobs", "2").out
    assert "  time        about 5.0 s with 2 workers, 0.01 s a run\n" in told  # of a thousand runs
    told = dpaudit("plan", write(spec(mechanism='"mechs:noisy"', controls="1")), "--probe", "--jobs", "2").out
    assert re.search(r"  time        at most \d+ min \d+ s with 2 workers", told)


def test_recheck_repeats_the_arithmetic_and_refuses_counts_that_do_not_give_it(dpaudit: Run, stored: Path) -> None:
    ended = dpaudit("recheck", str(stored))
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("REFUTED  it: epsilon >= ")
    assert ended.out.endswith("the stored counts give this verdict, bound and p-value\n")
    assert dpaudit("recheck", str(stored), "--seed", "3").code == 2
    changed = json.loads(stored.read_text())
    changed["evidence"]["hits_p"] -= 1
    stored.write_text(json.dumps(changed))
    ended = dpaudit("recheck", str(stored))
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert ended.err.startswith(f"error: {stored}: certificate.")


def test_recheck_fresh_runs_the_witness_again_and_tells_when_the_mechanism_was_mended(
    dpaudit: Run, stored: Path, folder: Path
) -> None:
    ended = dpaudit("recheck", str(stored), "--fresh", "--no-progress")
    assert ended.code == 0, ended.err
    first, second, *_, last = ended.out.splitlines()
    assert first.startswith("stored  REFUTED  it: epsilon >= ")
    assert second.startswith("fresh   REFUTED  it: epsilon >= ")
    assert last.endswith("seed 1")
    (folder / "mechs.py").write_text((folder / "mechs.py").read_text().replace("data * times", "0"))
    ended = dpaudit("recheck", str(stored), "--fresh", "--seed", "8")
    assert (ended.code, ended.out.splitlines()[-1].endswith("seed 8")) == (1, True)
    assert "note: the mechanism is not what it was; the fresh runs are of the mechanism of today\n" in ended.err
    assert "fresh   not refuted  it: epsilon >= 0, claimed " in ended.out


@pytest.mark.long
def test_compare_runs_old_events_again(dpaudit: Run, write: Write, folder: Path) -> None:
    """Nothing is refuted: that the event loses more than it did is told by its own fresh runs."""
    text = spec(mechanism='"mechs:noisy"', claim="{ epsilon = 3.0 }", runs="20_000")
    path = write(text)
    for name, seed in (("old", "1"), ("new", "2")):
        assert dpaudit("run", path, "--report", name, "--seed", seed, "--no-ledger", "--quiet").code == 0
    same = dpaudit("compare", "old", "new", "--rerun", "--jobs", "1")
    assert (same.code, same.out.splitlines()[0]) == (0, "1 audit compared: 0 regressions; 1 within noise; exit code 0")
    module = folder / "mechs.py"
    then = module.stat()
    module.write_text(module.read_text().replace("scale=2.0", "scale=1.2"))
    os.utime(module, ns=(then.st_atime_ns, then.st_mtime_ns))  # as after an edit within the second: no stale bytecode
    rose = dpaudit("compare", "old", "new", "--rerun", "--jobs", "1")
    assert rose.code == 1
    assert "rose beyond noise: on fresh runs of the code here the old event loses at least 0.7" in rose.out
    Path(path).unlink()
    gone = dpaudit("compare", "old", "new", "--rerun")
    assert gone.code == 0
    assert "the old event was not run again (it: its spec spec.toml is not here; run this where" in gone.out


@for_each(
    ("change", "message"),
    [
        ({"claim": "{ epsilon = 2.0 }"}, "the claim of its spec is not what it was; audit again instead"),
        ({"pair": "{ first = 3, second = 4 }"}, "the pairs of its spec are not what they were; audit again instead"),
        ({"name": '"that"'}, "spec.toml has no audit 'it' any more; restore it, or audit again"),
        (None, "its spec spec.toml is not here; run this where the audit was run"),
    ],
)
def test_recheck_fresh_needs_the_question_as_it_was(
    dpaudit: Run, write: Write, stored: Path, change: dict[str, str] | None, message: str
) -> None:
    write(spec(**{"mechanism": '"mechs:leak"', **(change or {})}))
    if change is None:
        Path("spec.toml").unlink()
    ended = dpaudit("recheck", str(stored), "--fresh")
    assert (ended.code, ended.err) == (2, f"error: {stored}: {message}\n")


def test_the_catalogue_lists_every_entry_and_every_twin_by_topic(dpaudit: Run) -> None:
    lines = dpaudit("catalogue").out.splitlines()
    topics = [line for line in lines[:-1] if line and not line.startswith(" ")]
    assert topics == [*rooms(), "Attacks on releases"]
    rows = [line for line in lines if line.startswith(" ")]
    assert [line.split()[0] for line in rows[len(CATALOGUE) :]] == [attack.name for attack in ATTACKS]
    rows = rows[: len(CATALOGUE)]
    assert [line.split()[0] for line in rows] == [each.name for each in CATALOGUE]
    said = {True: ("breaks its claim",), False: ("keeps its claim", "does no harm")}
    assert all(any(word in line for word in said[each.broken]) for line, each in zip(rows, CATALOGUE, strict=True))
    assert lines[-1].startswith(f"{sum(not each.broken for each in CATALOGUE)} keep their claim")


def test_the_specs_that_the_catalogue_prints_are_valid(
    dpaudit: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Entry, "true_loss", lambda *_: None)  # which no spec holds, and other tests compute
    printed = []
    for each in CATALOGUE:
        page = dpaudit("catalogue", each.name)
        assert page.code == 0
        printed.append(page.out.partition("[[audit]]")[2].replace('name = "', f'name = "{each.name}: ', 1))
    spec = "\n".join(['schema = "dpaudit.audit/1"', *(f"[[audit]]{block}" for block in printed)])
    (folder / "printed.toml").write_text(spec)
    ended = dpaudit("validate", "printed.toml")
    assert ended.code == 0, ended.err
    audits = tomllib.loads(spec)["audit"]
    assert [audit["expect"] for audit in audits] == [each.expect for each in CATALOGUE]


PYTHON = """
def one(data, rng):
    return data + rng.laplace(scale=0.1)

def many(data, runs, rng, scale):
    return data + rng.laplace(scale=scale, size=runs)

def make_one(scale):
    return lambda data, rng: data + rng.laplace(scale=scale)
"""


@pytest.mark.long
def test_functions_of_this_folder_are_run_again_and_nothing_else_is(
    dpaudit: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "theirs_here.py").write_text(PYTHON)
    monkeypatch.syspath_prepend(str(folder))
    import theirs_here as theirs  # type: ignore[import-not-found]

    monkeypatch.delitem(sys.modules, "theirs_here")
    mechanisms = (theirs.one, package.batched(theirs.many, scale=0.1), package.built_by(theirs.make_one, scale=0.1))
    for number, each in enumerate(mechanisms):  # each shows 10: missed with 1e-50
        result = package.audit(each, pair=(0, 1), epsilon=1.0, runs=1_000, n_jobs=1)
        result.save(folder / f"{number}.json")
    again = dpaudit("recheck", "0.json", "1.json", "2.json", "--fresh", "--jobs", "1", "--no-progress")
    assert (again.code, again.err, again.out.count("fresh   REFUTED")) == (0, "", 3)
    spec = {**result.spec, "mechanism": {**result.spec["mechanism"], "reference": "subprocess:getoutput"}}
    replace(result, spec=spec).save("other.json")
    ended = dpaudit("recheck", "other.json", "none.json", "0.json", "--fresh", "--jobs", "1", "--no-progress")
    assert (ended.code, "fresh   REFUTED" in ended.out) == (2, True)
    assert "'subprocess:getoutput' is no function of a module in this folder" in ended.err
    assert "none.json: there is no such file" in ended.err


UNTOLD = quoting.untold  # the tests put another in its place

LEAK = spec(name='"leak"', mechanism='"mechs:leak"', expect='"refuted"')
CONSTANT = spec(name='"constant"', tags='["quick"]')
FEWER = ("--confidence", "0.9")
DIES = spec(name='"dies"', mechanism='"mechs:dies"')


def test_all_as_expected_is_0_and_everything_is_written(dpaudit: Run, write: Write, folder: Path) -> None:
    path = write(LEAK, CONSTANT)
    with Path(path).open("a") as file:
        file.write('\n[suite]\nname = "by night"\nproduct = "stats"\nversion = "2.1"\n')
    ended = dpaudit("run", path, "--report", "out", "--format", "json,md", "--seed", "5")
    assert ended.code == 0, ended.err
    whole = load_suite("out/suite.json")
    assert (whole.name, whole.product, whole.version) == ("by night", "stats", "2.1")
    assert together([whole, replace(whole, name="", entries=whole.entries[:1])]).name == "by night"
    assert Path("out/report.md").read_text().startswith("## by night\n\n**2 audits, none needs action: ")
    lines = ended.out.splitlines()
    assert lines[0] == "dpaudit 0.1.0: 2 audits, suite confidence 0.999, seed 5"
    trust = "if the datasets count as neighbours"
    assert re.fullmatch(rf"as expected  REFUTED      leak: epsilon >= [0-9.]+, claimed 1, {trust}", lines[1])
    assert lines[2].startswith("as expected  not refuted")
    assert "exit code 0" in ended.out
    told = [line.split("]")[0] for line in ended.err.splitlines()]  # a line an audit, and more on a busy machine
    assert list(dict.fromkeys(told)) == ["[1/2", "[2/2"]
    files = sorted(os.listdir(folder / "out"))
    names = [name.rpartition("-")[0] or name for name in files]
    assert names == ["constant", "leak", "report", "report.md", "suite.json"]
    stored = json.loads((folder / "out" / files[1]).read_text())
    assert stored["verdict"] == "REFUTED"
    assert stored["spec"]["confidence"] == 0.9995  # 1 - (1 - 0.999) / 2
    assert stored["provenance"]["command"] == "dpaudit run spec.toml --seed 5 --confidence 0.999"
    assert stored["provenance"]["source"] == "spec.toml"


def test_a_verdict_not_as_expected_is_1(dpaudit: Run, write: Write) -> None:
    ended = dpaudit("run", write(spec(mechanism='"mechs:leak"'), spec(name='"missed"', expect='"refuted"')), *FEWER)
    assert ended.code == 1
    assert "2 verdicts not as expected" in ended.out
    assert ended.out.count("repeat") == 0  # a line of each, and again below with the reasons
    assert ended.out.count("UNEXPECTED") == 4
    assert ended.out.splitlines()[-1].startswith("2 of 2 audits need action: ")
    ended = dpaudit("run", "spec.toml", *FEWER, "--verbose")
    assert ended.out.count("repeat") == 2  # the whole first page


def test_no_verdict_is_3_and_the_others_keep_their_results(dpaudit: Run, write: Write, folder: Path) -> None:
    spoils = spec(name='"spoils"', mechanism='"mechs:spoils"', pair="{ first = [1], second = [2] }")
    ended = dpaudit("run", write(LEAK, DIES, spoils, CONSTANT), *FEWER, "--report", "out", "--format", "json")
    assert ended.code == 3
    assert "1 refuted, 1 not refuted, 2 without verdict; every verdict as expected; exit code 3" in ended.out
    assert "spec.toml: audit 'dies': " in ended.err
    assert "process died" in ended.err
    assert "changed its dataset" in ended.err
    assert sorted(name.rpartition("-")[0] for name in os.listdir(folder / "out")) == ["", "constant", "leak"]


def test_an_internal_error_is_70_in_one_line_and_loses_nothing(
    dpaudit: Run, write: Write, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpaudit.auditing import audit

    def breaks(spec: object, engine: object, **options: object) -> object:
        if getattr(spec, "name", "") == "leak":
            raise RuntimeError("the sky\nfell")
        return audit.run_audit(spec, engine, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("dpaudit.auditing.runner.run_audit", breaks)
    ended = dpaudit("run", write(LEAK, CONSTANT), "--report", "out", "--format", "json", "--no-progress")
    assert ended.code == 70
    assert "internal error: RuntimeError: the sky fell; `dpaudit --debug ...` shows where\n" in ended.err
    assert "not refuted  constant" in ended.out
    assert sorted(name.rpartition("-")[0] for name in os.listdir(folder / "out")) == ["", "constant"]


def test_a_part_of_a_report_that_cannot_be_told_changes_no_verdict_and_no_exit_code(
    dpaudit: Run, write: Write, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> str:
        raise OverflowError("cannot convert float infinity to integer")

    monkeypatch.setattr(quoting, "untold", UNTOLD)
    monkeypatch.setattr("dpaudit.account.first.answers", fail)
    formats = "json,md,html,junit,sarif,csv,txt,summary,badge"
    ended = dpaudit("run", write(spec(mechanism='"mechs:leak"')), *FEWER, "--report", "out", "--format", formats)
    assert (ended.code, ended.err.count("internal error")) == (1, 0)
    assert "1 refuted, 0 not refuted, 0 without verdict; 1 verdict not as expected; exit code 1" in ended.out
    assert "(OverflowError: cannot convert float infinity to integer); verdict and counts stand" in ended.out
    assert len(os.listdir(folder / "out")) == 11
    stored = json.loads((folder / "out" / "suite.json").read_text())
    assert (stored["exit_code"], stored["entries"][0]["result"]["verdict"]) == (1, "REFUTED")


def test_an_interrupt_is_130_at_once_and_finished_audits_stay(write: Write, folder: Path) -> None:
    text = "import time\n\ndef slow(data):\n    open('begun', 'w').close()\n    time.sleep(0.01)\n    return 0\n"
    (folder / "slow.py").write_text(text)
    slow = spec(name='"slow"', mechanism='"slow:slow"', runs="1_000_000")
    began = time.monotonic()
    running = process("run", write(CONSTANT, slow), "--report", "out", "--format", "json,md")
    while not (folder / "begun").exists():
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < began + 60
        time.sleep(0.02)
    started_s = time.monotonic() - began  # tells how busy the machine is
    running.send_signal(signal.SIGINT)
    sent = time.monotonic()
    _, err = running.communicate(timeout=120)  # the audit itself would take hours
    assert running.returncode == 130
    assert time.monotonic() - sent < max(10.0, 5.0 * started_s)
    said = "interrupted: 1 of 2 audits finished; their results are in out; go on with: dpaudit run spec.toml "
    assert err.splitlines()[-1] == said + "--report out --format json,md --resume"
    assert "Traceback" not in err
    assert [name for name in os.listdir(folder / "out") if name.startswith(".")] == []  # nothing half written


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_where_nobody_can_be_told_the_code_is_no_verdict() -> None:
    with open("/dev/full", "w") as full:
        assert subprocess.run([sys.executable, "-m", "dpaudit", "--version"], stdout=full, stderr=full).returncode == 2


@for_each(
    ("source", "said"),
    [
        ("import ctypes; ctypes.CDLL(None).exit(1)", ""),  # as OpenBLAS does where memory is short: it reads as refuted
        ("raise MemoryError", "error: MemoryError: "),
        ("raise ImportError('no segment')", "error: ImportError: no segment"),
        ("raise SystemExit(1)", ""),
    ],
)
def test_a_library_that_ends_or_fails_where_it_is_loaded_is_no_verdict(tmp_path: Path, source: str, said: str) -> None:
    (tmp_path / "numpy.py").write_text(source)
    command = [sys.executable, "-m", "dpaudit", "catalogue"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr.startswith(said)) == (3, "", True), ended.stderr
    assert ended.stderr.count("\n") == bool(said)


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@for_each("streams", ["0<&- 1>&- 2>&-", "2>&1 | true"], nightly=["2>&-"])
def test_the_code_is_the_verdicts_where_streams_are_closed_or_nobody_reads(
    write: Write, folder: Path, streams: str
) -> None:
    """And no file of ours gets the number of such a stream: the ledger is whole."""
    asked = " ".join(["run", write(spec(expect='"refuted"')), *FEWER])  # missed: as quick as a run can be
    (folder / "kept.sqlite").unlink(missing_ok=True)
    line = f'{sys.executable} -m dpaudit {asked} --ledger kept.sqlite {streams}; exit "${{PIPESTATUS[0]}}"'
    ended = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr + ended.stdout
    with Ledger(folder / "kept.sqlite", read_only=True) as ledger:
        assert ledger.chain().wrong is None
        assert ledger.chain().rows == 1
