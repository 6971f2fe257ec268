"""Small programs that break their claims, each by something that a proof could overlook; and sound ones beside them.

`attacks.txt` and `twins.txt` hold a program under each heading: its name, the adjacency, the parameters, the claim (1.0
where none is given) and how many answers there are.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import dpaudit
from dpaudit import ApproximateDP, GaussianDP, RenyiDP, ZeroConcentratedDP

CLAIMS = {each.__name__: each for each in (ApproximateDP, GaussianDP, RenyiDP, ZeroConcentratedDP)}
MODULES = "import math\nimport numpy as np\n\n\n"


@dataclass(frozen=True)
class Attack:
    """A program, and what is asked of it."""

    name: str
    adjacency: str
    parameters: dict[str, Any]
    claim: Any
    answers: int | None
    source: str

    @property
    def function(self) -> Callable[..., Any]:
        """The function f of the program, whose source can be found again."""
        text, file = MODULES + self.source, f"<attack {self.name}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        scope: dict[str, Any] = {}
        exec(compile(text, file, "exec", dont_inherit=True), scope)
        return scope["f"]  # type: ignore[no-any-return]

    @property
    def verdict(self) -> str:
        """What a bracket says without an audit."""
        return dpaudit.bracket(
            self.function,
            self.claim,
            adjacency=self.adjacency,
            parameters=self.parameters,
            answers=self.answers,
            runs=0,
            max_time_s=30.0,
        ).verdict.value


def attacks(file: str) -> Iterator[Attack]:
    """The programs of a file."""
    text = (Path(__file__).parent / file).read_text()
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        head, _, source = part.partition("\n")
        name, adjacency, *more = [each.strip() for each in head.split("|")]
        parameters, claim, answers = (*more, *[""] * 3)[:3]
        asked = eval(claim, CLAIMS) if claim else 1.0
        yield Attack(
            name,
            adjacency,
            ast.literal_eval(parameters or "{}"),
            asked,
            int(answers) if answers else None,
            source.strip("\n") + "\n",
        )


@pytest.mark.parametrize("attack", [*attacks("attacks.txt")], ids=lambda each: each.name)
def test_what_breaks_its_claim_is_not_proved(attack: Attack) -> None:
    try:
        assert attack.verdict != "PROVED"
    except dpaudit.UnsoundAudit as error:  # two methods contradict one another: one of them is wrong
        pytest.fail(str(error))


@pytest.mark.parametrize("twin", [*attacks("twins.txt")], ids=lambda each: each.name)
def test_its_sound_twin_is_proved(twin: Attack) -> None:
    assert twin.verdict == "PROVED"
