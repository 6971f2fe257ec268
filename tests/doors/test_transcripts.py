"""Command lines as they are typed, with what they say: text files that are read and run again.

    # a comment
    == what the case shows
    file theirs.py            a file, by the lines with bars that follow
    | def f(data, rng):
    |     return data
    + claim = { mu = 1.0 }    a key of the usual [[audit]] of spec.toml; `- pair` leaves one out, `audit` begins another
    $ dpaudit run spec.toml
    REFUTED ...               standard output, where ... is any text; without such lines it must be empty
    ! note: ...               standard error
    [1]                       the exit code, where it is not 0

Above all cases stand the command of those that name none, `each: $ dpaudit ...`, and files that all have; a spec.toml
there takes the keys of a case in place of the usual audit. Every case has a folder of its own, with the module `mechs`.
The line of a spec is told where the transcript tells it.
"""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.doors.conftest import MECHANISMS, Outcome, Run, document, spec, unnumbered

FOLDER = Path(__file__).with_name("transcripts")


@dataclass
class Step:
    """A command, and how it has to end."""

    words: list[str]
    out: str = ""
    err: str = ""
    code: int = 0

    def differs(self, ended: Outcome) -> str:
        """What is not as it was written down; empty where all is."""
        said = [(name, getattr(self, name), getattr(ended, name)) for name in ("out", "err")]
        wrong = [f"{name} is\n{found}instead of\n{told}" for name, told, found in said if not agrees(told, found)]
        wrong += [f"exit code is {ended.code} instead of {self.code}"] if ended.code != self.code else []
        return f"$ {shlex.join(self.words)}\n" + "\n".join(wrong) if wrong else ""


@dataclass
class Case:
    """Files, and the commands that are run beside them in their order."""

    title: str
    audits: list[dict[str, str | None]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Makes the folder and its files."""
        files = {"mechs.py": MECHANISMS, **self.files}
        if self.audits and "spec.toml" not in files:
            files["spec.toml"] = document(*(spec(**keys) for keys in self.audits))
        elif self.audits:
            (keys,) = self.audits
            lines = [line for line in files["spec.toml"].splitlines() if line.partition(" = ")[0] not in keys]
            files["spec.toml"] = "\n".join([*lines, *(f"{key} = {value}" for key, value in keys.items() if value)])
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def agrees(told: str, found: str) -> bool:
    """Whether the text is the one written down, its numbers of lines aside unless they are told."""
    found = found if ": line " in told else unnumbered(found)
    return doctest.OutputChecker().check_output(told, found, doctest.ELLIPSIS)


def cases(text: str) -> Iterator[Case]:
    """The cases of a transcript.

    >>> (case,) = cases("== none\\n+ epsilon = 1\\n$ dpaudit validate spec.toml\\n! error: ...\\n[2]\\n")
    >>> case.audits, case.steps
    ([{'epsilon': '1'}], [Step(words=['dpaudit', 'validate', 'spec.toml'], out='', err='error: ...\\n', code=2)])
    """
    head, *parts = re.split(r"^== ", text, flags=re.MULTILINE)
    usual = re.search(r"^each: \$ (.*)$", head, flags=re.MULTILINE)
    shared = [line for line in head.splitlines() if line.startswith(("file ", "|"))]
    for part in parts:
        title, *lines = part.rstrip("\n").split("\n")
        case, file = Case(title), ""
        lines = shared + lines
        for line in lines:
            mark, _, rest = line.partition(" ")
            if usual and not case.steps and (mark in ("!", "") or re.fullmatch(r"\[\d+\]", line)):
                case.steps.append(Step(shlex.split(usual[1])))
            if mark == "$":
                case.steps.append(Step(shlex.split(rest)))
            elif case.steps and mark == "!":
                case.steps[-1].err += f"{rest}\n"
            elif case.steps and (code := re.fullmatch(r"\[(\d+)\]", line)):
                case.steps[-1].code = int(code[1])
            elif case.steps and mark != "#":
                case.steps[-1].out += f"{line}\n"
            elif mark == "file":
                file = rest
                case.files[file] = ""
            elif mark == "|":
                case.files[file] += f"{rest}\n"
            elif line == "audit" or (mark in ("+", "-") and not case.audits):
                case.audits.append({})
            if not case.steps and mark == "+":
                key, _, value = rest.partition(" = ")
                case.audits[-1][key] = value
            elif not case.steps and mark == "-":
                case.audits[-1][rest] = None
        for step in case.steps:
            step.out = step.out.rstrip("\n") + "\n" if step.out.strip() else ""
        yield case


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.txt")))
def test_a_transcript_is_what_is_said(dpaudit: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
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
