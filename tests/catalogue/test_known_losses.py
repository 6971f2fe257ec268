"""The losses of `losses.txt`: what is published or known in closed form, and what an exact loss is refused for."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from typing import Any

import pytest

from dpaudit.catalogue import Entry, find
from dpaudit.catalogue.releases.counts import CELLS
from dpaudit.catalogue.releases.tables import CONDITIONS, HOSPITAL_A, changed, subsets
from dpaudit.claims import PureDP, compose_optimal
from dpaudit.errors import InvalidSpec
from tests.cases import for_each

Pair = tuple[Any, Any]
LINES = [
    line
    for line in Path(__file__).with_name("losses.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
FOUR_DIGITS = 5.1e-5
NIGHT = "by night "


def moved(bottoms: int, tops: int) -> Pair:
    """So many answers go up from 1 to 2, and then so many down from -1 to -2."""
    return [1.0] * bottoms + [-1.0] * tops, [2.0] * bottoms + [-2.0] * tops


def worst(answers: int, most: int) -> list[Pair]:
    """All pairs with up to so many answers that go down."""
    return [moved(answers - tops, tops) for tops in range(most + 1)]


def risen(answers: int) -> Pair:
    """All answers from 0 to 1."""
    return [0] * answers, [1] * answers


def twice(pair: Pair) -> Pair:
    """Every dataset after itself."""
    return pair[0] * 2, pair[1] * 2


def records(*queries: tuple[int, int]) -> Pair:
    """Ten records: a query holds on so many of nine, and comes to hold on the tenth (1) or ceases to (0)."""
    rest = [[float(place < count) for count, _ in queries] for place in range(9)]
    return [*rest, [1.0 - up for _, up in queries]], [*rest, [float(up) for _, up in queries]]


def people(*sizes: int) -> list[tuple[str, str]]:
    """So many in each cell of the noisy counts."""
    return [cell for cell, size in zip(CELLS, sizes, strict=False) for _ in range(size)]


def graded(grade: int) -> Pair:
    """The grades of a class, and with another first one."""
    grades = find("noisy_average").default_pair[0]
    return grades, [grade, *grades[1:]]


def flipped(place: int) -> Pair:
    """Eight bits, and with one of them turned."""
    bits = [0, 1, 1, 0, 1, 0, 0, 1]
    return bits, [1 - bit if each == place else bit for each, bit in enumerate(bits)]


def in_one_table() -> Pair:
    """Two hospitals, of whose records one changes that is in one table."""
    first, _ = find("two_noisy_tables").default_pair
    return first, [*first[:1], ("A", *changed(HOSPITAL_A, 1, "Flu")[1]), *first[2:]]


def called(text: str) -> Entry:
    """The entry of `name(parameters)`."""
    name, _, given = text.partition("(")
    return find(name).with_parameters(eval(f"dict({given}") if given else {})


def like(text: str, first: Any, second: Any) -> float:
    """The loss of another entry."""
    return float(called(text).true_loss(first, second) or 0.0)


KNOWN = {
    **{name: getattr(math, name) for name in ("inf", "log", "log1p", "exp", "sqrt")},
    "find": find,
    "itertools": itertools,
    "changed": changed,
    "CONDITIONS": CONDITIONS,
    "A": HOSPITAL_A,
    "subsets": subsets,
    "PureDP": PureDP,
    "compose_optimal": compose_optimal,
    **{each.__name__: each for each in (moved, worst, risen, twice, records, people, graded, flipped, in_one_table)},
    "like": like,
    "FEW": find("dp_gradient_descent").default_pair[1],
    "SILENT": [[0.0, 0.0], 100.0],
    "CANARY": [[1.0, 0.0], 100.0],
    "OTHERS": find("dp_sgd").default_pair[1],
    "JOINS": find("dp_sgd").default_pair[0][-1],
    "SIX": find("dp_sgd_fixed_batches").default_pair,
    "NAUGHT": [[0.0, 0.0], 1.0],
    "STRONG": [[20.0, 0.0], 1.0],
    "FIVE": (
        [[1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0]],
        [[1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1]],
    ),
}


def pairs_of(text: str, entry: Entry) -> list[list[Pair]]:
    """The groups of pairs that a line names; of a group the largest loss counts."""
    first, between, second = text.partition(" | ")
    names = {**KNOWN, "default": entry.default_pair}
    given = (eval(first, names), eval(second, names)) if between else eval(first, names)
    return [each if isinstance(each, list) else [each] for each in (given if isinstance(given, list) else [given])]


def largest(entry: Entry, groups: list[list[Pair]]) -> list[float | None]:
    losses = [[entry.true_loss(*pair) for pair in group] for group in groups]
    return [None if None in each else max(loss for loss in each if loss is not None) for each in losses]


@for_each(
    "line",
    [line for line in LINES if not line.startswith(NIGHT)],
    nightly=[line.removeprefix(NIGHT) for line in LINES if line.startswith(NIGHT)],
)
def test_the_losses_are_those_that_are_known(line: str) -> None:
    names, given, rest = re.fullmatch(r"([\w. &]+)(\(.*?\))?: (.*)", line).groups()  # type: ignore[union-attr]
    pairs, sign, told = re.split(r" (=|~|within|!) ", rest, maxsplit=1)
    for name in names.split(" & "):
        groups = pairs_of(pairs, find(name))
        if sign == "!":
            for ((first, second),) in groups:
                with pytest.raises(InvalidSpec, match=told):
                    _ = called(name + (given or "")).claim(), called(name + (given or "")).true_loss(first, second)
            continue
        entry, expected = called(name + (given or "")), eval(told, {**KNOWN, "default": find(name).default_pair})
        found = largest(entry, groups)
        if len(groups[0]) == 1:
            assert largest(entry, [[pair[::-1] for pair in each] for each in groups]) == pytest.approx(found)
        if sign == "within":
            assert expected[0] < found[0] <= expected[1]  # type: ignore[operator]
        elif expected is None:
            assert found == [None]
        else:
            values = list(expected) if isinstance(expected, tuple | list) else [expected]
            assert found == pytest.approx(values, **{"~": {"rel": 0.0, "abs": FOUR_DIGITS}}.get(sign, {"abs": 1e-9}))
