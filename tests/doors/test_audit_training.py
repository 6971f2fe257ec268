"""`dpaudit audit-training`: exit codes of trainings that keep, break or spoil their audit."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpaudit import audit_training
from dpaudit.cli.group import exit_code
from dpaudit.training import load
from tests.cases import for_each

MODULE = """
import os
import time

print("printed while it is imported")


def train(included, rng):
    print("printed while it trains")
    return 4.0 * included + rng.normal(size=included.shape)


def null(included, rng):
    return rng.normal(size=included.shape)


def dies(included, rng):
    os._exit(0)


def hangs(included, rng):
    time.sleep(60)


def equal(included, rng):
    return 0.0 * included
"""
CASES = {
    "train": (1, "REFUTED"),
    "dies": (3, "ended its process"),
    "hangs": (3, "took longer than the 1 s"),
    "equal": (3, "the canaries are not in what is scored"),
    "nothing": (2, "has no 'nothing'"),
}


@pytest.mark.long
@for_each("name", list(CASES))
def test_every_training_has_its_exit_code_and_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "their_training.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    code, words = CASES[name]
    asked = ["audit-training", f"their_training:{name}", "--canaries", "400", "--mu", "0.5", "--timeout", "1"]
    assert exit_code(asked if name == "hangs" else asked[:-2]) == code
    said = capfd.readouterr()
    assert words in (said.out if code < 2 else said.err)
    assert "printed" not in said.out + said.err
    assert code < 2 or said.err.count("\n") == 1


def test_a_stored_training_is_printed_or_becomes_its_page(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def null(included: Any, rng: Any) -> Any:
        return rng.normal(size=included.shape)

    found = audit_training(null, canaries=200, epsilon=0.5)
    path = str(found.save(tmp_path / "training.json"))
    assert exit_code(["report", path]) == 0
    assert capfd.readouterr().out == f"{found}\n"
    assert exit_code(["report", path, "--output", str(tmp_path)]) == 2  # it would be written over
    assert exit_code(["report", path, "--output", str(tmp_path / "page")]) == 0
    assert (tmp_path / "page" / "training.html").exists()


@pytest.mark.long
def test_the_shell_and_python_give_one_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_training.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    asked = ["audit-training", "their_training:null", "--canaries", "60", "--trainings", "2", "--epsilon", "0.5"]
    assert exit_code([*asked, "--report", "told", "--no-progress"]) == 0
    stored = load(tmp_path / "told" / "training.json")
    assert stored.repeat == (f"dpaudit {' '.join(asked)} --no-progress",)

    null = runpy.run_path(str(tmp_path / "their_training.py"))["null"]  # the same source: it goes into the coins
    assert replace(stored, repeat=()) == audit_training(null, canaries=60, epsilon=0.5, trainings=2)
    for spoilt in ("--resume", "--seed 3 --resume"):
        assert exit_code([*asked, "--report", "told", *spoilt.split()]) == (0 if spoilt == "--resume" else 2)
    (tmp_path / "their_training.py").write_text(f"{MODULE}\n# another text\n")
    assert exit_code([*asked, "--report", "told", "--resume"]) == 2
