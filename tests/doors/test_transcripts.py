"""Every transcript of `transcripts/`: the commands say what is written down, and end with its code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.doors.conftest import Outcome
from tests.doors.transcript import FOLDER, agrees, cases


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.txt")))
def test_a_transcript_is_what_is_said(
    dpaudit: Callable[..., Outcome], folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    wrong = []
    every = list(cases((FOLDER / f"{name}.txt").read_text(encoding="utf-8")))
    assert every, f"{name}.txt has no case"
    for number, case in enumerate(every):
        assert case.steps, f"{case.title}: no command"
        case.write(folder / str(number))
        monkeypatch.chdir(folder / str(number))
        for step in case.steps:
            program, *words = step.words
            assert program == "dpaudit", case.title
            if differs := step.differs(dpaudit(*words)):
                wrong.append(f"{case.title}: {differs}")
    assert not wrong, "\n\n".join(wrong)


def test_what_differs_is_seen() -> None:
    assert agrees("error: ...\n", "error: spec.toml: line 3: no\n")
    assert not agrees("error: a\n", "error: b\n")
    assert not agrees("", "a line\n")
    assert agrees("error: x: no\n", "error: x: line 3: no\n")
    assert not agrees("error: x: line 4: no\n", "error: x: line 3: no\n")
