"""Loops summed up: the verdicts of programs that break their claims by something that a sum could overlook, and twins.

`samplers.txt` holds a program under each heading: its name, what a bracket says of it on the counts 3 and 4, and the
claim where it is not (1.0, 0). The law of each is compared with an enumeration of its paths that shares no code with
replay.
"""

from __future__ import annotations

import inspect
import linecache
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpaudit
from benchmarks.forms import noise
from dpaudit.verify.replay import Shaped, canonical, replay
from dpaudit.verify.replay.canonical import raised
from dpaudit.verify.replay.tails import Tail
from dpaudit.verify.replay.walk import Unfollowed

pytestmark = pytest.mark.usefixtures("unwatched")

HEAD = """
import itertools, math
import numpy as np

E = 0.36787944117144233


def coins(p, rng):
    k = 0
    while rng.random() < p:
        k += 1
    return k


"""
SHARED = map(inspect.getsource, (noise._bernoulli_exp, noise._discrete_laplace, noise._discrete_gaussian))
HEAD += "\n\n".join(SHARED).replace("_bernoulli_exp", "bernoulli").replace("_discrete_", "discrete_") + "\n\n"
STOP = Fraction(1, 2**12)  # a path of less probability is not followed by the enumeration


def function_of(name: str, source: str) -> Callable[..., Any]:
    """The function f of a source, which can be found again."""
    text, file = HEAD + source, f"<sampler {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {}
    exec(compile(text, file, "exec", dont_inherit=True), scope)
    return scope["f"]  # type: ignore[no-any-return]


def programs() -> Iterator[tuple[str, str, Any, str]]:
    text = (Path(__file__).parent / "samplers.txt").read_text()
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        head, _, source = part.partition("\n")
        name, verdict, claim = (*map(str.strip, head.split("|")), "1.0")[:3]
        given = eval(claim)
        yield name, verdict, dpaudit.ApproximateDP(*given) if isinstance(given, tuple) else given, source


# --- an enumeration of paths, on its own ------------------------------------------------------------------------------


class TooRare(BaseException):
    """The path is not followed."""


class Tape:
    """A generator whose draws are read from a list of places, and at its end the first is taken."""

    def __init__(self, places: list[int]) -> None:
        self.places, self.shares, self.at, self.p = places, list[list[Fraction]](), 0, Fraction(1)

    def draw(self, shares: list[Fraction]) -> int:
        if self.at == len(self.places):
            self.places.append(0)
        place = self.places[self.at]
        self.shares.append(shares)
        self.at += 1
        self.p *= shares[place]
        if self.p < STOP or self.at > 200:
            raise TooRare
        return place

    def integers(self, low: int, high: int | None = None) -> int:
        first, last = (0, low) if high is None else (low, high)
        return first + self.draw([Fraction(1, last - first)] * (last - first))

    def random(self) -> Coin:
        return Coin(self)


class Coin:
    def __init__(self, tape: Tape) -> None:
        self.tape = tape

    def __lt__(self, p: float) -> bool:
        share = Fraction(min(2**53, max(0, math.ceil(Fraction(p) * 2**53))), 2**53)
        return share == 1 or share > 0 and self.tape.draw([share, 1 - share]) == 0

    def __ge__(self, p: float) -> bool:
        return not self < p


def enumerated(function: Callable[..., Any], data: Any) -> tuple[dict[Any, Fraction], Fraction]:
    """The outputs of all likely paths, and what is left."""
    law: dict[Any, Fraction] = defaultdict(Fraction)
    places: list[int] = []
    left = Fraction(0)
    while True:
        tape = Tape(places)
        try:
            output = function(data, tape)
            law[canonical(output)] += tape.p
        except TooRare:
            left += tape.p
        except Exception as error:
            law[raised(error)] += tape.p
        del places[tape.at :]
        while places and places[-1] + 1 == len(tape.shares[len(places) - 1]):
            places.pop()
        if not places:
            return law, left
        places[-1] += 1


def flat(form: Any) -> Iterator[Any]:
    """All that an output is made of."""
    if isinstance(form, Shaped):
        form = (form.kind, form.content)
    for part in form if isinstance(form, tuple) else ():
        yield from flat(part)
    yield len(form) if isinstance(form, tuple) else form


def probability(law: Any, output: Any) -> Fraction:
    """Of one output, which may be one of those that a tail stands for."""
    wanted, total = [*flat(output)], Fraction(0)
    for known, p in law.items():
        parts = [*flat(known)]
        for part, value in zip(parts, wanted, strict=False):
            if isinstance(part, Tail):
                steps = Fraction(value - part.start, part.step) if type(value) is int else -1
                p *= (1 - part.rate) * part.rate ** int(steps) if steps >= 0 and steps == int(steps) else 0
            elif part != value:
                p = Fraction(0)
        total += p if len(parts) == len(wanted) else 0
    return total


def check_laws(function: Callable[..., Any], datasets: tuple[Any, ...]) -> None:
    """The laws must be those of all paths of the code: no output is likelier, or much rarer."""
    found = replay(function, datasets, "all")
    for data, law in zip(datasets, found.laws, strict=True):
        lost = sum((p for output, p in law.items() if isinstance(output, Unfollowed)), Fraction(0))
        assert sum(law.values()) == 1
        paths, left = enumerated(function, data)
        for output, p in paths.items():
            assert p <= probability(law, output) + lost
            assert probability(law, output) <= p + left


# --- the programs -----------------------------------------------------------------------------------------------------


PROGRAMS = [
    pytest.param(*each, id=each[0], marks=[pytest.mark.long] if re.search(" an end|Gaussian", each[0]) else [])
    for each in programs()
]


@pytest.mark.parametrize(("name", "verdict", "claim", "source"), PROGRAMS)
def test_a_program_is_decided_as_it_should_be_and_has_the_law_of_all_its_paths(
    name: str, verdict: str, claim: Any, source: str
) -> None:
    function = function_of(name, source)
    found = dpaudit.bracket(function, claim, domain=(3, 4), neighbours="all", runs=0, max_time_s=600.0)
    assert found.verdict.value.lower() == verdict, found.reasons
    if verdict != "open" and "Gaussian" not in name:  # it has many paths
        check_laws(function, (3, 4))
