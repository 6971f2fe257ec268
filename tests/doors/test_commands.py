"""`plan`, `recheck`, `catalogue`, `validate --schema`, and how the command line itself behaves."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from dpaudit.catalogue import Entry, entries, rooms
from dpaudit.catalogue.attacks import ATTACKS
from tests.doors.conftest import Outcome, document, process, spec

Run = Callable[..., Outcome]
CATALOGUE = [each for entry in entries() for each in (entry, *entry.twins.values())]
Write = Callable[..., str]


def test_plan_shows_what_would_be_spent_and_seen(dpaudit: Run, write: Write) -> None:
    pairs = "[{ first = 1, second = 2 }, { first = 1, second = 3, distance = 2 }]"
    ended = dpaudit("plan", write(spec(runs="1_000_000"), spec(name='"two"', pair=None, pairs=pairs, runs="1e6")))
    assert ended.code == 0
    assert "  claim       1-DP, no relation stated; expected not-refuted\n" in ended.out
    assert "  runs        1,000,000: 250,000 to search, 750,000 to certify\n" in ended.out
    assert "  runs        1,000,000: 150,000 to choose a pair, 212,500 to search, 637,500 to certify\n" in ended.out
    assert "  pairs       pair 1, pair 2\n" in ended.out
    assert "    0.5       epsilon from 1.0" in ended.out
    assert dpaudit("plan", "spec.toml", "--tag", "none").code == 5


def test_a_plan_may_look_where_the_claim_is_out_of_reach(dpaudit: Run, write: Write) -> None:
    path = write(spec(mechanism='"mechs:leak"', claim="{ epsilon = 50.0 }"))
    refused = dpaudit("plan", path)
    assert (refused.code, refused.out) == (2, "")
    assert "dpaudit plan --look" in refused.err
    seen = dpaudit("plan", path, "--look", "--jobs", "1")
    assert seen.code == 0
    assert seen.out.startswith("a look, which certifies nothing: it\n    what told the datasets")


def test_plan_of_a_time_limit_says_that_a_probe_decides(dpaudit: Run, write: Write) -> None:
    ended = dpaudit("plan", write(spec(runs=None, max_time_s="60")))
    assert "as many as fit into 60 s, chosen by a probe when it runs" in ended.out
    ended = dpaudit("plan", write(spec(runs="1_000", max_time_s="60")))
    assert "as many as fit into 60 s, at most 1,000, chosen by a probe when it runs" in ended.out
    ended = dpaudit("plan", write(spec(runs=None, max_time_s="60", claim="{ epsilon = 13.0 }")), "--probe")
    assert (
        "  time        60 s, as the spec asks\n" in ended.out
    )  # a million runs are not asked for, and could not refute


RECORDS: dict[str, str] = {}  # the record of one run, by its name: it is made once for all tests


@pytest.fixture
def stored(dpaudit: Run, write: Write) -> Path:
    """A result of `run` beside its spec: a mechanism that tells its dataset, refuted as expected."""
    path = write(spec(mechanism='"mechs:leak"', expect='"refuted"'))
    if not RECORDS:
        assert dpaudit("run", path, "--report", "out", "--format", "json,md").code == 0
        RECORDS.update({made.name: made.read_text() for made in Path("out").glob("it-*.json")})
    ((name, text),) = RECORDS.items()
    Path("out").mkdir(exist_ok=True)
    Path("out", name).write_text(text)
    return Path("out", name)


def test_recheck_repeats_the_arithmetic(dpaudit: Run, stored: Path) -> None:
    ended = dpaudit("recheck", str(stored))
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("REFUTED  it: epsilon >= ")
    assert ended.out.endswith("the stored counts give this verdict, bound and p-value\n")
    assert dpaudit("recheck", str(stored), "--seed", "3").code == 2


def test_recheck_refuses_a_result_that_its_counts_do_not_give(dpaudit: Run, stored: Path) -> None:
    changed = json.loads(stored.read_text())
    changed["evidence"]["hits_p"] -= 1
    stored.write_text(json.dumps(changed))
    ended = dpaudit("recheck", str(stored))
    assert ended.code == 2
    assert ended.err.startswith(f"error: {stored}: certificate.")
    assert ended.err.count("\n") == 1


def test_recheck_fresh_runs_the_witness_again(dpaudit: Run, stored: Path) -> None:
    ended = dpaudit("recheck", str(stored), "--fresh", "--no-progress")
    assert ended.code == 0, ended.err
    first, second, *_, last = ended.out.splitlines()
    assert first.startswith("stored  REFUTED  it: epsilon >= ")
    assert second.startswith("fresh   REFUTED  it: epsilon >= ")
    assert last.endswith("seed 1")
    assert dpaudit("recheck", str(stored), "--fresh", "--seed", "8").out.splitlines()[-1].endswith("seed 8")


def test_recheck_fresh_tells_when_the_mechanism_has_been_mended(dpaudit: Run, stored: Path, folder: Path) -> None:
    mended = (folder / "mechs.py").read_text().replace("return data * times", "return 0")
    (folder / "mechs.py").write_text(mended)
    ended = dpaudit("recheck", str(stored), "--fresh")
    assert ended.code == 1
    assert "note: the mechanism is not what it was; the fresh runs are of the mechanism of today\n" in ended.err
    assert "fresh   not refuted  it: epsilon >= 0 " in ended.out


NOISY = "\n\ndef noisy(data, rng):\n    return data + rng.laplace(scale=2.0)\n"


@pytest.mark.long
def test_compare_runs_old_events_again(dpaudit: Run, write: Write, folder: Path) -> None:
    """Nothing is refuted: that the event loses more than it did is told by its own fresh runs."""
    text = spec(mechanism='"mechs:noisy"', claim="{ epsilon = 3.0 }", runs="20_000")
    (folder / "mechs.py").write_text((folder / "mechs.py").read_text() + NOISY)
    path = write(text)
    for name, seed in (("old", "1"), ("new", "2")):
        assert dpaudit("run", path, "--report", name, "--seed", seed, "--no-ledger", "--quiet").code == 0
    same = dpaudit("compare", "old", "new", "--rerun", "--jobs", "1")
    assert (same.code, same.out.splitlines()[0]) == (0, "1 audit compared: 0 regressions; 1 within noise; exit code 0")
    louder = NOISY.replace("scale=2.0", "scale=1.2")
    module = folder / "mechs.py"
    then = module.stat()
    module.write_text(module.read_text().replace(NOISY, louder))
    os.utime(module, ns=(then.st_atime_ns, then.st_mtime_ns))  # as after an edit within the second: no stale bytecode
    rose = dpaudit("compare", "old", "new", "--rerun", "--jobs", "1")
    assert rose.code == 1
    assert "rose beyond noise: on fresh runs of the code here the old event loses at least 0.7" in rose.out
    Path(path).unlink()
    gone = dpaudit("compare", "old", "new", "--rerun")
    assert gone.code == 0
    assert "the old event was not run again (it: its spec spec.toml is not here; run this where" in gone.out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"claim": "{ epsilon = 2.0 }"}, "the claim of its spec is not what it was; audit again instead"),
        ({"pair": "{ first = 3, second = 4 }"}, "the pairs of its spec are not what they were; audit again instead"),
        ({"name": '"that"'}, "spec.toml has no audit 'it' any more; restore it, or audit again"),
        (None, "its spec spec.toml is not here; run this where the audit was run"),
    ],
    ids=["claim", "pair", "name", "gone"],
)
def test_recheck_fresh_needs_the_question_as_it_was(
    dpaudit: Run, write: Write, stored: Path, change: dict[str, str] | None, message: str
) -> None:
    if change is None:
        Path("spec.toml").unlink()
    else:
        write(spec(**{"mechanism": '"mechs:leak"', **change}))
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


def test_the_catalogue_describes_an_attack(dpaudit: Run) -> None:
    page = dpaudit("catalogue", "differencing")
    assert page.code == 0
    assert page.out.startswith("differencing: ")
    assert "advantage 1.000 over" in page.out
    assert "allows at most 0." in page.out


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


def test_the_result_schema_accepts_a_result(dpaudit: Run, stored: Path) -> None:
    schema = json.loads(dpaudit("validate", "--schema", "result").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(stored.read_text()))


def test_help_and_version(dpaudit: Run) -> None:
    helped = dpaudit("--help")
    assert helped.code == 0
    for name in ("run", "plan", "validate", "recheck", "catalogue"):
        assert f"\n  {name} " in helped.out
        assert dpaudit(name, "--help").code == 0
    assert dpaudit("--version").out == "dpaudit 0.1.0\n"
    nothing = dpaudit()
    assert (nothing.code, nothing.out) == (2, "")
    assert nothing.err.startswith("Usage: dpaudit")


def test_the_installed_command_is_the_module(folder: Path) -> None:
    running = process("validate", "nothing.toml")
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out, err) == (2, "", "error: nothing.toml: there is no such file or folder\n")


def test_a_reader_that_leaves_early_is_no_traceback(folder: Path) -> None:
    (folder / "spec.toml").write_text(document(*(spec(name=f'"{n}"') for n in range(200))))
    with process("plan", "spec.toml") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert "Traceback" not in running.stderr.read()
    assert running.returncode == 0  # as where somebody reads
