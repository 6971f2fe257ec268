"""Where a parametrised pair is tried next: every combination, coordinate moves, or scipy's differential evolution."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.errors import DpAuditError, InvalidSpec

Parameters = dict[str, Any]
Score = Callable[[Parameters], float]  # larger is better; -inf for nothing seen
Bounds = Mapping[str, Sequence[Any]]
NOTHING = 1e9  # what a minimiser is told where nothing was seen
FIRST_PART = 0.4  # of the tries are spread evenly, the rest follows the best
ASTRAY = 1_000  # moves in a row to points tried before, after which the moves end


class Spent(Exception):
    """Raised by a score when there are no tries left; ends the moves."""


def check_bounds(bounds: object) -> Bounds:
    """The bounds, each (low, high) for any number between, a `range` of whole numbers or a list of choices.

    Raises `InvalidSpec` that names the parameter.
    """
    if not isinstance(bounds, Mapping) or not bounds:
        raise InvalidSpec(f"bounds must be a dictionary like {{'value': (0.0, 1.0), 'rows': [1, 10]}}, got {bounds!r}")
    for name, given in bounds.items():
        if isinstance(given, tuple) and len(given) == 2:
            low, high = (validate.real(f"bounds[{name!r}]", end) for end in given)
            if not (low < high and math.isfinite(high - low)):
                raise InvalidSpec(f"bounds[{name!r}] must be (low, high), finite and low below high, got {given!r}")
        elif not isinstance(given, list | range) or len(given) == 0:
            raise InvalidSpec(f"bounds[{name!r}] must be (low, high), a range or a list of choices, got {given!r}")
    return bounds


def move(bounds: Bounds, tries: int, score: Score, rng: np.random.Generator) -> None:
    """Calls `score` for different parameters, until it raises `Spent` or there is nothing left to try.

    Where the choices have no more combinations than there are tries, every one is tried. Lists of choices alone are
    searched by coordinate moves with restarts, anything else by `scipy.optimize.differential_evolution`, in which a
    list counts by its order.
    """
    finite = all(not isinstance(given, tuple) for given in bounds.values())
    known: dict[tuple[str, ...], float] = {}
    repeats = 0  # in a row

    def seen(parameters: Parameters) -> float:
        nonlocal repeats
        key = tuple(map(repr, parameters.values()))
        repeats = repeats + 1 if key in known else 0
        if repeats > ASTRAY:
            raise Spent
        if key not in known:
            known[key] = score(parameters)
        return known[key]

    try:
        if finite and math.prod(len(given) for given in bounds.values()) <= tries:
            for values in itertools.product(*bounds.values()):
                seen(dict(zip(bounds, values, strict=True)))
        elif all(isinstance(given, list) for given in bounds.values()):
            _coordinate_moves(bounds, tries, seen, rng)
        else:
            _evolution(bounds, tries, seen, rng)
    except Spent:
        return


def _coordinate_moves(bounds: Bounds, tries: int, score: Score, rng: np.random.Generator) -> None:
    """One parameter after the other to its best choice; from a new random point when nothing gets better."""
    most = max(2, tries // (2 * len(bounds)))  # choices of one parameter in a sweep

    def anywhere() -> Parameters:
        return {name: given[int(rng.integers(len(given)))] for name, given in bounds.items()}

    while True:
        here = anywhere()
        best, better = score(here), True
        while better:
            better = False
            for place in rng.permutation(len(bounds)):
                name = list(bounds)[place]
                for choice in rng.permutation(len(bounds[name]))[:most]:
                    there = {**here, name: bounds[name][int(choice)]}
                    worth = score(there)
                    if worth > best:
                        here, best, better = there, worth, True


def _evolution(bounds: Bounds, tries: int, score: Score, rng: np.random.Generator) -> None:
    """Differential evolution (Storn & Price 1997) from points that are spread evenly over every parameter."""
    from scipy.optimize import Bounds as Box
    from scipy.optimize import differential_evolution

    ends = [given if isinstance(given, tuple) else (0, len(given) - 1) for given in bounds.values()]
    whole = np.array([not isinstance(given, tuple) for given in bounds.values()])
    low, high = np.array(ends, float).T
    size = max(5, int(FIRST_PART * tries))
    spread = np.stack([rng.permutation(size) for _ in ends], axis=1) + rng.random((size, len(ends)))
    first = low - 0.5 * whole + spread / size * (high - low + whole)
    first = np.clip(np.where(whole, np.round(first), first), low, high)
    failed: list[DpAuditError | Spent] = []

    def worth(point: Any) -> float:
        values = (
            given[round(float(x))] if integral else float(x)
            for x, given, integral in zip(point, bounds.values(), whole, strict=True)
        )
        try:
            value = score(dict(zip(bounds, values, strict=True)))
        except (DpAuditError, Spent) as error:
            failed.append(error)
            raise
        return -value if value > -math.inf else NOTHING

    try:
        # a list of one choice is widened: scipy divides by the distance of the bounds
        box = Box(low, np.where(high > low, high, low + 0.25))
        differential_evolution(
            worth, box, maxiter=tries, tol=0.0, polish=False, init=first, integrality=whole, seed=rng
        )
    except Exception:
        if failed:  # scipy reports errors of some kinds as its own
            raise failed[0] from None
        raise
