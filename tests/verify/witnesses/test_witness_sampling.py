"""Probabilities of every shape of output against runs of the function itself, and sums of all outputs against 1."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.verify.language import read
from dpaudit.verify.language.nodes import Symbol
from dpaudit.verify.witnesses.outcomes import Outcomes
from dpaudit.verify.witnesses.outputs import NOISY
from tests.cases import for_each

RUNS = 3000
SAMPLING = math.sqrt(math.log(2 / 1e-11) / (2 * RUNS))  # Hoeffding: each of < 200 comparisons fails with chance 1e-11


def texts(q, rng, start):
    t = start + rng.laplace(scale=2)
    out = []
    for x in q:
        if x + rng.laplace(scale=1) > t:
            out.append("top")
        elif x > 1:
            out.append("None")
        else:
            out.append(None)
    return tuple(out)


def ties(q, rng):
    """Answers without noise are compared as Python does; 0 is an atom beside noisy numbers."""
    t = rng.laplace(scale=2)
    out = []
    for x in q:
        if x >= 2:
            out.append(0)
        elif x > 1:
            out.append(None)
        elif x + rng.laplace(scale=1) >= t:
            out.append(x + rng.laplace(scale=3))
        else:
            out.append(None)
    return out


def keyed(q, rng, c):
    t = rng.laplace(scale=2)
    output = {}
    for place, x in enumerate(q):
        v = x + rng.laplace(scale=3)
        if v >= t:
            output[place] = v - t
            t = rng.laplace(scale=2)
            if len(output) >= c:
                break
    return output


def weighted(q, rng, budget):
    """Runs end at different lengths."""
    t = rng.laplace(scale=2)
    spent = 0
    out = []
    for x in q:
        if x + rng.laplace(scale=3) >= t + 2:
            out.append(True)
            spent += 3
        elif x + rng.laplace(scale=2) >= t:
            out.append(False)
            spent += 2
        else:
            out.append(None)
            spent += 1
        if spent > budget:
            break
    return tuple(out)


def listed_and_counted(q, rng):
    t = rng.laplace(scale=2)
    count = 0
    out = []
    for x in q:
        if x + rng.laplace(scale=2) >= t:
            out.append(True)
            count += 1
            break
        out.append(None)
    return out, count


def place_and_threshold(q, rng):
    t = rng.laplace(scale=2)
    place = -1
    for i, x in enumerate(q):
        if x + rng.laplace(scale=2) >= t:
            place = i
            break
    return t, place


def smallest(q, rng):
    best = 0
    winner = -1
    for i, x in enumerate(q):
        y = x + rng.laplace(scale=1)
        if y <= best:
            best = y
            winner = i
    return winner


def steep(q, rng):
    """Lines of other slopes than 1, on both sides of a draw."""
    t = rng.laplace(scale=2)
    out = []
    for x in q:
        y = rng.laplace(scale=1)
        if 2 * x + 3 * y >= t:
            out.append(True)
        elif x - y > t / 3:
            out.append(False)
        else:
            out.append(None)
    return out


def two_sided(q, rng):
    t = rng.laplace(scale=2)
    out = []
    for x in q:
        y = x + rng.laplace(scale=2)
        if y >= t or y <= -t:
            out.append(True)
        else:
            out.append(None)
    return out


def remembered(q, rng):
    t = rng.laplace(scale=2)
    seen = False
    out = []
    for x in q:
        above = x + rng.laplace(scale=2) >= t
        if above and not seen:
            out.append(1)
            seen = True
        elif above or x > 1:
            out.append(2)
        else:
            out.append(0)
    return out


def shape_of(output: Any, *, nested: bool = False) -> object:
    """The shape of what a function returned; numbers that are not whole are noisy."""
    if isinstance(output, dict):
        output = tuple(output.items())
    if isinstance(output, list | tuple):
        return tuple(shape_of(each, nested=True) for each in output)
    if output is None or isinstance(output, bool | str):
        found: object = Symbol(repr(output))
    else:
        found = Fraction(output) if output == int(output) else NOISY
    return found if nested else (found,)


@for_each(
    ("function", "answers", "parameters"),
    [
        (texts, [0, 1, 2], {"start": 1}),
        (ties, [0, 1, Fraction(3, 2), 2], {}),
        (keyed, [0, 1, 2], {"c": 2}),
        (keyed, [2, 0, 0, 1], {"c": 1}),
        (weighted, [0, 1, 2, 0], {"budget": 4}),
        (listed_and_counted, [0, 1, 2], {}),
        (place_and_threshold, [0, 1], {}),
        (smallest, [0, 1, -1], {}),
        (steep, [-1, 2], {}),
        (two_sided, [0, 1], {}),
        (remembered, [0, 1, 2], {}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_all_outputs_are_as_likely_as_they_are(function: Callable[..., Any], answers: list[Any], parameters: dict):
    outcomes = Outcomes(read(function), answers, parameters)
    chances = {shape: outcomes.probability(shape) for shape in outcomes.by_shape}
    total = sum(chances.values())
    assert total.contains(1)
    assert float(total.rad()) < 1e-12
    rng = np.random.default_rng(20_240_602)
    data = [float(each) for each in answers]
    seen = Counter(shape_of(function(data, rng, **parameters)) for _ in range(RUNS))
    assert set(seen) <= set(chances)
    for shape, chance in chances.items():
        assert abs(seen[shape] / RUNS - float(chance)) <= SAMPLING, shape
