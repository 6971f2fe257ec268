"""`dpaudit bracket`: verdicts and exit codes, what is read and what is imported, certificates; `upper` in a spec."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from dpaudit.results.bounds import Arithmetic, Label
from dpaudit.spec.questions import read_spec
from tests.cases import for_each
from tests.doors.conftest import Run, Write, process, spec

SPARSE = """
import os
open(f"imported-{os.getpid()}", "w").close()
print("said while it is imported")

def sparse(q, rng, eps, N=1):
    t = rng.laplace(scale=2 / eps)
    out = []
    count = 0
    for x in q:
        if x + rng.laplace(scale=4 * N / eps) >= t:
            out.append(1)
            count += 1
            if count >= N:
                break
        else:
            out.append(0)
    return out
"""


def test_a_proof_and_an_audit_import_in_another_process_alone(dpaudit: Run, folder: Path) -> None:
    (folder / "svt.py").write_text(SPARSE)
    asked = ("bracket", "svt:sparse", "--param", "eps=1", "--adjacency", "all-differ", "--jobs", "1")
    ended = dpaudit(*asked, "--claim", "eps", "--runs", "0", "--save", "cert.json")
    assert (ended.code, ended.err) == (0, "proof: cert.json\n")
    assert ended.out.startswith("PROVED  sparse: epsilon in [0.899393, 1], claimed 1\n")
    assert len([*folder.glob("imported-*")]) == 1  # what is read is compared with what runs
    assert dpaudit("check-proof", "cert.json").code == 0
    changed = json.loads((folder / "cert.json").read_text())
    (folder / "cert.json").write_text(json.dumps({**changed, "cost": "eps/2"}))
    assert dpaudit("check-proof", "cert.json").code == 1
    ended = dpaudit(*asked, "--claim", "0.5", "--runs", "10000")
    assert (ended.code, ended.out.startswith("REFUTED  sparse")) == (1, True)
    assert "(wrong in at most 1 of 1,000 such audits); statistical, for one pair: " in ended.out
    assert "said while" not in ended.out + ended.err
    assert f"imported-{os.getpid()}" not in {mark.name for mark in folder.glob("imported-*")}


def test_where_the_extra_is_missing_it_is_not_said_that_there_is_no_proof(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("z3", "flint"):
        (folder / f"{name}.py").write_text("raise ImportError('not here')")
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    asked = ("bracket", "above_threshold.no_query_noise", "--runs", "0", "--save", "proof.json")
    said = process(*asked).communicate()[1]
    assert said.startswith("no proof was made: ")
    assert "; the extra [verify] has it: python3 -m pip install " in said
    assert not (folder / "proof.json").exists()


@for_each(("sent", "said"), [(signal.SIGTERM, "terminated")], nightly=[(signal.SIGHUP, "hung up")])
def test_what_is_terminated_leaves_no_process_behind(folder: Path, sent: signal.Signals, said: str) -> None:
    """A worker that goes on would hold its files and processors for hours."""
    (folder / "slow.py").write_text(
        "import time\n\ndef f(q, rng):\n    open('runs', 'w').close()\n    time.sleep(3600)\n    return q\n"
    )
    Path("runs").unlink(missing_ok=True)
    with process("bracket", "slow:f", "--pair", "[0, 1]", "--runs", "1000") as running:
        try:
            while not Path("runs").exists():
                assert running.poll() is None
                time.sleep(0.02)
            running.send_signal(sent)
            out, err = running.communicate(timeout=60.0)
        finally:
            running.kill()
    assert (running.returncode, out) == (130, "")
    assert err.strip() == f"interrupted: {said}"


def test_an_upper_bound_in_a_spec(dpaudit: Run, write: Write) -> None:
    upper = '{ epsilon = 2.5, scope = "all data", source = "a paper" }'
    entry = spec(name='"its own"', mechanism='"dpaudit.catalogue.additive:laplace"', claim=None, pair=None)
    path = write(spec(upper=upper), entry)
    question, _ = read_spec(path)
    assert question.upper is not None
    assert (question.upper.label, question.upper.arithmetic) == (Label.NUMERIC_UPPER, Arithmetic.FLOATS)
    ended = dpaudit("run", path, "--report", "out", "--format", "json,md")
    assert ended.code == 0
    told = Path("out/report-long.md").read_text()
    assert "numeric-upper, no proof, for all data; in floats, not enclosed; stated in the spec" in told
    assert "epsilon = 1; exact-pair, for one pair: " in told  # of the catalogue's entry
    (stored,) = Path("out").glob("it-*.json")
    assert json.loads(stored.read_text())["upper"]["epsilon_upper"] == 2.5
    assert dpaudit("recheck", str(stored)).code == 0


def test_what_is_no_mechanism_is_open_and_no_control_character_is_printed(dpaudit: Run, folder: Path) -> None:
    for text, name, message in (
        ("\x00", "f", "SyntaxError"),
        ("def f(q, rng):\n    return q\n", "\x1b[31m", "must define"),
    ):
        (folder / "odd.py").write_text(text)
        ended = dpaudit("bracket", f"odd:{name}", "--adjacency", "all-differ", "--runs", "0")
        assert (ended.code, ended.err) == (3, "")
        assert ended.out.startswith("OPEN  ")
        assert message in ended.out
        assert "\x1b" not in ended.out
