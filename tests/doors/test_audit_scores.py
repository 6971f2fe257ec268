"""`dpaudit audit-scores` and `audit-training`: every kind of file, the exit codes, what is written and gone on with."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpaudit import audit_training
from dpaudit.account import Level, account
from dpaudit.training import load
from tests.doors.conftest import Run

RNG = np.random.default_rng(12)
INSIDE, OUTSIDE = RNG.normal(2.0, 1.0, 200), RNG.normal(0.0, 1.0, 150)
CP = ("--method", "clopper-pearson")


@pytest.fixture
def files(folder: Path) -> Path:
    """The same scores as CSV of two kinds, JSON, NPY and NPZ."""
    rows = [f"{s},{m}" for s, m in [(s, 1) for s in INSIDE] + [(s, 0) for s in OUTSIDE]]
    Path("long.csv").write_text("\n".join(["score,member", *rows]) + "\n")
    wide = [f"{a},{b}" for a, b in zip(INSIDE, [*OUTSIDE, *[""] * 50], strict=True)]
    Path("wide.csv").write_text("\n".join(["in,out", *wide]) + "\n")
    Path("named.csv").write_text("\n".join(["loss,seen", *rows]) + "\n")
    Path("s.json").write_text(json.dumps({"in": list(INSIDE), "out": list(OUTSIDE)}))
    np.savez("s.npz", **{"in": INSIDE, "out": OUTSIDE})
    np.save("s.npy", np.column_stack([np.append(INSIDE, OUTSIDE), np.arange(350) < 200]))
    Path("counts.json").write_text('{"tp": 300, "fp": 30, "tn": 970, "fn": 700}')
    return folder


def test_every_kind_of_file_gives_the_same_answer(dpaudit: Run, files: Path) -> None:
    answers = {dpaudit("audit-scores", name, *CP) for name in ("long.csv", "wide.csv", "s.json", "s.npz", "s.npy")}
    assert len(answers) == 1
    (only,) = answers
    assert (only.code, only.err) == (0, "")
    assert only.out.startswith("CERTIFIED  epsilon >= ")
    assert dpaudit("audit-scores", "named.csv", "--score", "loss", "--member", "seen", *CP).out == only.out


def test_exit_codes_and_what_is_written(dpaudit: Run, files: Path) -> None:
    written = ("--json", "r.json", "--plot", "r.svg", "--report", "r")
    ended = dpaudit("audit-scores", "s.json", "--epsilon", "0.5", *written, *CP)
    assert ended.code == 1
    assert ended.out.endswith(f"report: {Path('r', 'scores.html')}\n")
    assert "REFUTED" in Path("r", "scores.md").read_text()
    assert ", claimed 0.5-DP (wrong in at most 1 of " in ended.out.splitlines()[0]
    stored = json.loads(Path("r.json").read_text())
    assert (stored["schema"], stored["refuted"], stored["decided_by"]) == ("dpaudit.scores/1", True, "clopper-pearson")
    assert Path("r.svg").read_text().startswith("<?xml")
    gaussian = ("--claim", '{"form": "GaussianDP", "mu": 0.1}')
    epsilons = (("s.json", "--epsilon", "9"), ("counts.json", "--epsilon", "1"))
    codes = [dpaudit("audit-scores", *words, *CP).code for words in (*epsilons, ("s.json", *gaussian))]
    assert codes == [0, 1, 1]


def test_the_options_reach_the_audit(dpaudit: Run, files: Path) -> None:
    def choice(*options: str) -> str:
        ended = dpaudit("audit-scores", "s.json", "--json", "r.json", *options)
        assert (ended.code, ended.err) == (0, "")
        return str(json.loads(Path("r.json").read_text())["choice"])

    one = choice("--design", "one-run", "--guesses", "50", "30", "--delta", "1e-5")
    assert one == '50 guesses "in" and 30 "out", fixed before'
    assert choice("--method", "all", "--threshold", "1.0", "--event", "in") == "threshold 1, given beforehand"
    assert choice("--threshold", "all").startswith("every threshold")
    assert choice("--splits", "3", "--split", "0.5").startswith("median of 3 splits, threshold chosen on 50%")
    wrong = dpaudit("audit-scores", "s.json", "--design", "one-run", "--splits", "3")
    assert (wrong.code, wrong.err) == (2, "error: splits is for ManyRun(splits=...), got design one-run\n")


def test_a_table_of_another_shape_is_refused(dpaudit: Run, folder: Path) -> None:
    np.save("x.npy", np.arange(4.0))
    np.savez("x.npz", first=np.arange(4.0))
    for file, said in (("x.npy", "be a table of two columns, score and member"), ("x.npz", "hold an array 'in', got")):
        assert dpaudit("audit-scores", file).err.startswith(f"error: {file}: must {said}")


MODULE = "def null(included, rng):\n    return rng.normal(size=included.shape)\n"


@pytest.mark.long
def test_the_shell_and_python_give_one_result(dpaudit: Run, folder: Path) -> None:
    (folder / "their_training.py").write_text(MODULE)
    asked = ["audit-training", "their_training:null", "--canaries", "60", "--trainings", "2", "--epsilon", "0.5"]
    assert dpaudit(*asked, "--report", "told", "--no-progress").code == 0
    stored = load("told/training.json")
    assert stored.repeat == (f"dpaudit {' '.join(asked)} --no-progress",)
    null = runpy.run_path("their_training.py")["null"]  # the same source: it goes into the coins
    assert replace(stored, repeat=()) == audit_training(null, canaries=60, epsilon=0.5, trainings=2)
    for options, code in ((["--resume"], 0), (["--seed", "3", "--resume"], 2)):
        assert dpaudit(*asked, "--report", "told", *options).code == code
    (folder / "their_training.py").write_text(f"{MODULE}\n# another text\n")
    assert dpaudit(*asked, "--report", "told", "--resume").code == 2
    assert dpaudit("report", "told/training.json").out == f"{account(load('told/training.json'), Level.DETAIL)}\n"
    assert dpaudit("report", "told/training.json", "--output", "told").code == 2  # it would be written over
    assert dpaudit("report", "told/training.json", "--output", "page").code == 0
    assert Path("page/training.html").exists()
