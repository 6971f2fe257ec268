"""Programs as authors spell them do what their reading does, exceptions included, or are refused."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language import read
from tests.cases import for_each
from tests.verify.interpreter import Noise, as_output, run
from tests.verify.language.test_reading import answers_for
from tests.verify.random_spellings import spelled

RUNS = 5  # of each program that is read
OUTSIDE = ("must be above 0", "must keep what", "must not be 0")  # parameters of which nothing is said


def outcome(call: Any) -> Any:
    """What a call returns, or the exception."""
    try:
        return as_output(call())
    except InvalidSpec as error:
        return "outside", str(error)
    except Exception as error:
        return "raises", type(error).__name__


def compared(seed: int) -> str:
    """Whether the program of a seed is read, and some run is not outside what is said; fails where Python differs."""
    source = spelled(seed)
    try:
        program = read(source, name="f")
    except InvalidSpec:
        return "refused"
    assert read(program.source) == program
    scope: dict[str, Any] = {}
    with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
        exec(source, scope)
    numbers, seen = random.Random(seed), set()
    for number in range(RUNS):
        given: dict[str, Any] = {"eps": Fraction(numbers.choice([1, 2, 4, 6]), 2), "N": numbers.choice([0, 1, 2, 3])}
        answers = answers_for(program, numbers, 4)
        plain, read_back = Noise(number), Noise(number)
        expected = outcome(lambda: scope["f"](answers, rng=plain, **given))  # noqa: B023
        found = outcome(lambda: run(program, answers, given, read_back))  # noqa: B023
        if isinstance(found, tuple) and found[:1] == ("outside",):
            assert any(words in found[1] for words in OUTSIDE), found
            seen.add("outside")
            continue
        where = f"seed {seed}, {answers}, {given}\n{source}"
        assert not (isinstance(expected, tuple) and expected[:1] == ("raises",)), f"{expected}, {found}: {where}"
        parts = expected if isinstance(expected, tuple) else (expected,)
        listed = tuple(as_output(part) for part in parts)
        assert found in (expected, listed) or (found,) == listed, f"{expected}, {found}: {where}"
        assert plain.asked == read_back.asked, where
        seen.add("run")
    return "read" if "run" in seen else "outside"


@for_each("first", range(0, 300, 100))
def test_programs_are_refused_or_read_as_python_runs_them(first: int) -> None:
    seen = Counter(map(compared, range(first, first + 100)))
    assert seen["read"] >= 15, seen


@pytest.mark.slow
def test_fifty_thousand_programs_are_refused_or_read_as_python_runs_them() -> None:
    seen = Counter(map(compared, range(50_000)))
    assert seen["read"] >= 5_000, seen
