"""`dpaudit audit-scores`: every kind of file, the exit codes, what is written, and refusals in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.doors.conftest import Outcome

Run = Callable[..., Outcome]

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
    ended = dpaudit(
        "audit-scores", "s.json", "--epsilon", "0.5", "--json", "r.json", "--plot", "r.svg", "--report", "r", *CP
    )
    assert ended.code == 1
    assert ended.out.endswith(f"report: {Path('r', 'scores.html')}\n")
    assert "REFUTED" in Path("r", "scores.md").read_text()
    assert ended.out.startswith("REFUTED  claim 0.5-DP: p-value ")
    stored = json.loads(Path("r.json").read_text())
    assert (stored["schema"], stored["refuted"], stored["decided_by"]) == ("dpaudit.scores/1", True, "clopper-pearson")
    assert Path("r.svg").read_text().startswith("<?xml")
    assert dpaudit("audit-scores", "s.json", "--epsilon", "9", *CP).code == 0
    claim = '{"form": "GaussianDP", "mu": 0.1}'
    assert dpaudit("audit-scores", "s.json", "--claim", claim, *CP).code == 1
    assert dpaudit("audit-scores", "counts.json", "--epsilon", "1", *CP).code == 1


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
    assert dpaudit("audit-scores", "x.npy").err.startswith(
        "error: x.npy: must be a table of two columns, score and member"
    )
    np.savez("x.npz", first=np.arange(4.0))
    assert dpaudit("audit-scores", "x.npz").err.startswith("error: x.npz: must hold an array 'in', got first")
