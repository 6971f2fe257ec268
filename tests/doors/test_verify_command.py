"""`dpaudit verify`: verdicts and exit codes, what is read and what is imported, certificates; `upper` in a spec."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dpaudit.results.bounds import Arithmetic, Label
from dpaudit.spec.questions import read_spec
from tests.doors.conftest import Outcome, process, spec

Run = Callable[..., Outcome]
Write = Callable[..., str]

SPARSE = """
import os
open(f"imported-{os.getpid()}", "w").close()
print("said while it is imported")
TOP = 1

def sparse(q, rng, eps, N=1):
    assert N >= 1
    t = rng.laplace(scale=2 / eps)
    out = []
    count = 0
    for x in q:
        if x + rng.laplace(scale=4 * N / eps) >= t:
            out.append(TOP)
            count += 1
            if count >= N:
                break
        else:
            out.append(0)
    return out

def twice(q, rng):
    return 0

twice = len
"""


@pytest.fixture
def module(folder: Path) -> Path:
    (folder / "svt.py").write_text(SPARSE)
    return folder


def sparse(dpaudit: Run, *more: str) -> Outcome:
    return dpaudit("verify", "svt:sparse", "--param", "eps=1", "--adjacency", "all-differ", "--jobs", "1", *more)


def test_a_proof_imports_in_another_process_alone(dpaudit: Run, module: Path) -> None:
    ended = sparse(dpaudit, "--claim", "eps", "--runs", "0", "--save", "cert.json")
    assert (ended.code, ended.err) == (0, "proof: cert.json\n")
    assert ended.out.startswith("PROVED  sparse: epsilon in [0.899393, 1], claimed 1\n")
    (mark,) = module.glob("imported-*")  # what is read is compared with what runs
    assert mark.name != f"imported-{os.getpid()}"
    assert dpaudit("check", "cert.json").code == 0
    changed = json.loads((module / "cert.json").read_text())
    changed["cost"] = "eps/2"
    (module / "cert.json").write_text(json.dumps(changed))
    assert dpaudit("check", "cert.json").code == 1


def test_where_the_extra_is_missing_it_is_not_said_that_there_is_no_proof(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("z3", "flint"):
        (folder / f"{name}.py").write_text("raise ImportError('not here')")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    said = process("verify", "above_threshold", "--runs", "0", "--save", "proof.json").communicate()[1]
    assert said.startswith("no proof was made: ")
    assert "; the extra [verify] has it: python3 -m pip install " in said
    assert not (folder / "proof.json").exists()


def test_a_refutation_and_an_audit_in_another_process(dpaudit: Run, module: Path) -> None:
    ended = sparse(dpaudit, "--claim", "0.5", "--runs", "20000")
    assert ended.code == 1
    assert ended.out.startswith("REFUTED  sparse")
    assert "with confidence 0.999; statistical, for one pair: " in ended.out
    assert "said while" not in ended.out + ended.err
    assert f"imported-{os.getpid()}" not in {mark.name for mark in module.glob("imported-*")}


def test_a_pair_alone_leaves_the_claim_open(dpaudit: Run, module: Path) -> None:
    given = ("verify", "svt:sparse", "--param", "eps=1", "--pair", "[[0, 0], [1, -1]]", "--runs", "0")
    for claim in ((), ("--claim", "1")):
        ended = dpaudit(*given, *claim)
        assert ended.code == 3
        assert ended.out.startswith("OPEN  sparse: epsilon of one pair")
        assert "agree within 1 % on this one pair; of other pairs they say nothing" in ended.out


def test_a_catalogue_entry_as_json(dpaudit: Run) -> None:
    ended = dpaudit("verify", "above_threshold", "--runs", "0", "--json")
    assert ended.code == 0
    found = json.loads(ended.out)
    assert found["verdict"] == "PROVED"
    assert found["epsilon"]["upper"] == 1.0


def test_what_runs_must_be_what_was_read(dpaudit: Run, module: Path) -> None:
    ended = dpaudit("verify", "svt:twice", "--claim", "1", "--runs", "0", "--adjacency", "all-differ")
    assert ended.code == 3
    assert "must define 'twice' once" in ended.out


def test_a_module_that_changes_its_function_is_not_proved(dpaudit: Run, folder: Path) -> None:
    text = "def f(q, rng, eps=1.0):\n    return q + rng.laplace(scale=1 / eps)\n\n"
    given = ("--claim", "1", "--adjacency", "all-differ", "--runs", "0")
    (folder / "plain.py").write_text(text)
    assert dpaudit("verify", "plain:f", *given).code == 0
    (folder / "fools.py").write_text(text + "import numpy\nsetattr(f, '__defaults__', (numpy.float64(100),))\n")
    ended = dpaudit("verify", "fools:f", *given)
    assert ended.code == 3
    assert "the defaults of f are not those of its source" in ended.out


def test_one_way_is_said_in_the_first_line(dpaudit: Run, module: Path) -> None:
    ended = dpaudit("verify", "dpaudit.catalogue.sparse:sparse_monotone", "--adjacency", "up", "--runs", "0")
    assert ended.code == 0
    assert ended.out.startswith("PROVED  sparse_monotone: epsilon <= 1, claimed 1 (one way: up)\n")


def test_a_module_that_ends_the_process_is_not_known_to_run_as_it_reads(dpaudit: Run, folder: Path) -> None:
    (folder / "ends.py").write_text("import os\nos._exit(0)\n\ndef f(q, rng):\n    return q + rng.laplace(scale=1.0)\n")
    ended = dpaudit("verify", "ends:f", "--pair", "[0, 1]", "--claim", "0.5", "--runs", "1000", "--jobs", "1")
    assert ended.code == 3
    assert "nothing from  reading the source: ends:f cannot be compared with its source: its process ended" in ended.out
    assert "nothing from  audit: f: the process ended twice while the module was imported" in ended.out


@pytest.mark.parametrize(
    ("pair", "said"),
    [("[[0, 0], [1, 1]]", "raised TypeError"), (f"[{10**400}, {10**400 + 1}]", "raised OverflowError")],
)
def test_beside_runs_that_all_raise_nothing_is_proved(dpaudit: Run, folder: Path, pair: str, said: str) -> None:
    """The first data are not of the form that was read; the second are, and Python's sums raise all the same."""
    (folder / "f.py").write_text("def f(q, rng):\n    return q + rng.laplace(scale=1.0)\n")
    given = ("--adjacency", "all-differ", "--claim", "1", "--runs", "1000", "--jobs", "1")
    ended = dpaudit("verify", "f:f", "--pair", pair, *given)
    assert ended.code == 3
    assert ended.out.startswith("OPEN  f: ")
    assert said in ended.out


@pytest.mark.parametrize(("sent", "said"), [(signal.SIGTERM, "terminated"), (signal.SIGHUP, "hung up")])
def test_what_is_terminated_leaves_no_process_behind(folder: Path, sent: signal.Signals, said: str) -> None:
    """A worker that goes on would hold its files and processors for hours."""
    (folder / "slow.py").write_text(
        "import time\n\ndef f(q, rng):\n    open('runs', 'w').close()\n    time.sleep(3600)\n    return q\n"
    )
    with process("verify", "slow:f", "--pair", "[0, 1]", "--runs", "1000") as running:
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
    entry = spec(
        name='"of the catalogue"', mechanism='"dpaudit.catalogue.additive:laplace"', claim=None, pair=None, runs="1_000"
    )
    path = write(spec(upper=upper), entry)
    question, _ = read_spec(path)
    assert question.upper is not None
    assert (question.upper.label, question.upper.arithmetic) == (Label.NUMERIC_UPPER, Arithmetic.FLOATS)
    ended = dpaudit("run", path, "--report", "out", "--format", "json,md")
    assert ended.code == 0
    told = Path("out/report.md").read_text()
    assert (
        "numeric-upper, no proof, for all data; in floats, not enclosed; stated in the spec, not checked here: a paper"
        in told
    )
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
        ended = dpaudit("verify", f"odd:{name}", "--adjacency", "all-differ", "--runs", "0")
        assert (ended.code, ended.err) == (3, "")
        assert ended.out.startswith("OPEN  ")
        assert message in ended.out
        assert "\x1b" not in ended.out
