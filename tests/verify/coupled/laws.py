"""Laws of small programs: exact ones, by a run for every outcome of their draws; losses by integrals; counts of runs.

For an exact law Laplace, exponential and Gaussian noise falls on whole numbers, with the same ratios: that is its law
once the fractions of all draws are given. Where data and what is computed of them are whole, a coupling moves noise by
whole numbers, so what it proves holds of this law too; only the curve of a Gaussian mechanism does not, its zCDP does.
Noise above a threshold, by >, is no more likely than among all numbers.
"""

from __future__ import annotations

import copy
import functools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.certify.binomial import lower_limit, upper_limit
from dpaudit.claims import ZeroConcentratedDP
from dpaudit.errors import DpAuditError
from dpaudit.verify.coupled import derive
from dpaudit.verify.deadline import within
from dpaudit.verify.language.source import source_of
from dpaudit.verify.witnesses.followed import followed
from dpaudit.verify.witnesses.losses import PairLoss, loss_between
from tests.verify.coupled.random_programs import Mechanism

NEAR = 1e-9  # of sums in doubles
DELTAS = (1e-3, 0.02, 0.2)  # where nothing is proved at 0
SECONDS, INTEGRALS_S = 20.0, 2.0  # of one proof; of one pair
RUNS, AGAIN, ALPHA = 500, 5_000, 1e-12  # runs that choose a set; that count it; chance of one false alarm
SUSPECT = 2.5  # deviations from which on a set is counted again
LEAST, MOST_PATHS = 1e-6, 4_000  # chance of a path that is followed; paths of a law
ORDERS = (1.25, 2.0, 4.0, 16.0)
Outcomes = tuple[tuple[Any, float], ...]
Function = Callable[..., Any]


class NoLaw(Exception):
    """Too many outcomes, or a draw whose outcomes are not listed."""


class _Unlikely(BaseException):
    """A path that is not followed further."""


@dataclass(frozen=True)
class Law:
    """The chance of each output, and of all that were left out together."""

    chances: dict[Any, float]
    missing: float


class EveryDraw:
    """A generator that makes every sequence of draws, another at each start, unless its chance is below `LEAST`."""

    def __init__(self) -> None:
        self.path: list[tuple[float, int, Outcomes]] = []  # chance before, which outcome, all of them
        self.at, self.chance = 0, 1.0

    def starts(self) -> Iterator[None]:
        """Once for every sequence."""
        yield
        while self.path:
            before, place, outcomes = self.path.pop()
            if place + 1 < len(outcomes) and before * outcomes[place + 1][1] >= LEAST:
                self.path.append((before, place + 1, outcomes))
                self.at, self.chance = 0, 1.0
                yield

    def one(self, outcomes: Outcomes, size: Any = None) -> Any:
        """The next draw, or an array of them."""
        if size is not None:
            return np.array([self.one(outcomes) for _ in range(math.prod(np.atleast_1d(size)))])
        if self.at == len(self.path):
            self.path.append((self.chance, 0, outcomes))
        _, place, _ = self.path[self.at]
        value, chance = outcomes[place]
        self.at, self.chance = self.at + 1, self.chance * chance
        if self.chance < LEAST:
            raise _Unlikely
        return value

    def laplace(self, loc: Any = 0.0, scale: float = 1.0, size: Any = None) -> Any:
        return loc + self.one(falling(math.exp(-1 / scale)), size)

    def exponential(self, scale: float = 1.0, size: Any = None) -> Any:
        return self.one(falling(math.exp(-1 / scale), start=0), size)

    def geometric(self, p: float, size: Any = None) -> Any:
        return self.one(falling(1 - p, start=1), size)

    def normal(self, loc: Any = 0.0, scale: float = 1.0, size: Any = None) -> Any:
        return loc + self.one(bell(scale), size)

    def random(self, size: Any = None) -> Any:
        return self.one(tuple((each / 8, 0.25) for each in (1, 3, 5, 7)), size)

    def integers(self, number: int) -> Any:
        return self.one(tuple((each, 1 / number) for each in range(number)))

    def choice(self, among: Any, p: Any = None) -> Any:
        some = range(among) if isinstance(among, int) else among
        return self.one(tuple(zip(some, [1 / len(some)] * len(some) if p is None else p, strict=True)))

    def __getattr__(self, name: str) -> Any:
        raise NoLaw(name)


@functools.cache
def falling(ratio: float, start: int | None = None) -> Outcomes:
    """Whole numbers from `start` on whose chances fall by a ratio; None: to both sides of 0."""
    many = math.ceil(math.log(LEAST) / math.log(ratio)) + 2
    if start is not None:
        return tuple((start + k, (1 - ratio) * ratio**k) for k in range(many))
    both = ((float(way * k), (1 - ratio) / (1 + ratio) * ratio**k) for k in range(many) for way in (1, -1))
    return tuple(dict(both).items())


@functools.cache
def bell(scale: float) -> Outcomes:
    """Whole numbers with the weights of a normal law."""
    weights = {float(way * k): math.exp(-((k / scale) ** 2) / 2) for k in range(int(6 * scale) + 2) for way in (1, -1)}
    return tuple((value, each / sum(weights.values())) for value, each in weights.items())


def as_output(value: Any) -> Any:
    """An output as numbers, texts and tuples."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        value = value.items()
    return tuple(map(as_output, value)) if isinstance(value, list | tuple | type({}.items())) else value


def run(function: Function, data: Any, rng: Any) -> Any:
    """What a run returns, or which exception it raises."""
    try:
        return as_output(function(copy.copy(data), rng))
    except NoLaw:
        raise
    except Exception as error:
        return "raised", type(error).__name__, str(error)


def law_of(function: Function, data: Any) -> Law:
    """The exact law of the output. Raises `NoLaw`."""
    rng, chances = EveryDraw(), Counter[Any]()
    for number, _ in enumerate(rng.starts()):
        if number == MOST_PATHS:
            raise NoLaw("paths")
        try:
            output = run(function, data, rng)
        except _Unlikely:
            continue
        chances[output] += rng.chance  # type: ignore[assignment]
    return Law(dict(chances), max(0.0, 1.0 - sum(chances.values())))


def excess(first: Law, second: Law, epsilon: float) -> float:
    """The delta that some set of outputs surely needs at epsilon: P(S) - e^epsilon Q(S)."""
    factor = math.exp(epsilon)
    gains = (chance - factor * second.chances.get(output, 0.0) for output, chance in first.chances.items())
    return sum(gain for gain in gains if gain > 0) - factor * second.missing


def renyi(first: Law, second: Law, order: float) -> float:
    """What the Renyi divergence of an order surely is at least."""
    terms = (
        chance**order * (second.chances.get(output, 0.0) + second.missing + 1e-300) ** (1 - order)
        for output, chance in first.chances.items()
    )
    return math.log(sum(terms)) / (order - 1)


def cells(output: Any) -> set[Any]:
    """Some sets that an output lies in: all of it rounded, and each part."""
    rounded = _rounded(output)
    each = rounded if isinstance(rounded, tuple) else ()
    return {rounded, len(each), *((place, part) for place, part in enumerate(each))}


def _rounded(output: Any) -> Any:
    if isinstance(output, tuple):
        return tuple(map(_rounded, output))
    return math.floor(output) if isinstance(output, float) and abs(output) < 1e9 else output


class Counted:
    """Runs of both datasets, to say which delta some set needs at an epsilon; sets are chosen by runs of their own."""

    def __init__(self, function: Function, pair: tuple[Any, Any], seed: int) -> None:
        self.function, self.pair, self.rng = function, pair, np.random.default_rng(seed)
        self.first = [Counter(cell for _ in range(RUNS) for cell in self.cells(data)) for data in pair]

    def cells(self, data: Any) -> set[Any]:
        """Some sets that the output of a run lies in."""
        return cells(run(self.function, data, self.rng))

    def needs(self, epsilon: float, back: bool) -> float:
        """At least this delta, but for a chance of `ALPHA`; -infinity where nothing is suspect."""
        factor, way = math.exp(epsilon), -1 if back else 1
        ours, theirs = self.first[::way]
        gains = {
            cell: (hits - factor * theirs[cell]) / math.sqrt(hits + factor**2 * theirs[cell] + 9)
            for cell, hits in ours.items()
        }
        best = max(gains, key=gains.__getitem__)
        if gains[best] < SUSPECT:
            return -math.inf
        hits = [sum(best in self.cells(data) for _ in range(AGAIN)) for data in self.pair[::way]]
        return lower_limit(hits[0], AGAIN, ALPHA / 2) - factor * upper_limit(hits[1], AGAIN, ALPHA / 2)


@dataclass
class Confronted:
    """What became of a mechanism: refused, failed or proved, and how; what a law says against that, if anything."""

    word: str
    epsilon: float = math.inf  # proved at delta 0
    reason: str = ""
    exact: int = 0  # pairs of which the law is known
    counted: int = 0  # pairs whose runs were counted
    against: str = ""


def confronted(given: Mechanism, seed: int, pairs: int = 3, factor: float = 1.0) -> Confronted:
    """What is proved of a mechanism against laws of some pairs; `factor`: on all that is proved, to see it fail."""
    try:
        with within(SECONDS):
            found = derive(source_of(given.source, "f"), given.adjacency, {}, answers=given.answers)
    except DpAuditError as error:
        return Confronted("refused", reason=str(error))
    except Exception as error:
        return Confronted("failed", reason=f"{type(error).__name__}: {error}")
    result, numbers = Confronted("proved", found.epsilon_at(0.0)), random.Random(seed)
    deltas = (0.0,) if math.isfinite(result.epsilon) else DELTAS
    claims = [(found.epsilon_at(delta) * factor, delta * factor) for delta in deltas]
    shown = None if math.isfinite(result.epsilon) else found.shown(ZeroConcentratedDP(1.0))
    rho = shown.rho * factor if isinstance(shown, ZeroConcentratedDP) else None
    for number in range(pairs):
        pair = given.pair(numbers)
        for back, words in against(given.function, pair, claims, rho, seed + number, result, given.whole):
            if words and not (back and given.adjacency in ("up", "down")):
                result.against = f"{pair[::-1] if back else pair}: {words}"
                return result
    return result


def enclosed(function: Function, pair: tuple[Any, Any]) -> PairLoss | None:
    """The loss of a pair by integrals; None where the code is not followed."""
    try:
        with within(INTEGRALS_S):
            return loss_between(*followed(function, *pair, {}))
    except DpAuditError:
        return None


def against(
    function: Function,
    pair: tuple[Any, Any],
    claims: list[tuple[float, float]],
    rho: float | None,
    seed: int,
    result: Confronted,
    exact: bool,
) -> Iterator[tuple[bool, str]]:
    """What is against claims of a pair, in either order: whether it is the other one, and words, if any."""
    counted, between = None, None
    try:
        if not exact:
            raise NoLaw("parts of 1")
        one, two = (law_of(function, data) for data in pair)
        result.exact += 1
    except NoLaw:
        between = enclosed(function, pair) if claims and not claims[0][1] else None
        result.exact += between is not None
        counted = Counted(function, pair, seed) if between is None else None
        result.counted += between is None
    for back in (False, True):
        if between is not None:
            loses = (between.backward if back else between.forward).loss.lower
            yield back, f"epsilon {claims[0][0]:.6g}, loses {loses:.6g}" if loses > claims[0][0] + NEAR else ""
            continue
        laws = None if counted else (two, one) if back else (one, two)
        if laws and rho is not None:
            for order in ORDERS:
                least = renyi(*laws, order)
                yield back, f"order {order} loses {least:.4g}, rho {rho:.4g}" if least > order * rho + NEAR else ""
            continue
        for epsilon, delta in claims:
            if math.isfinite(epsilon):
                needs = excess(*laws, epsilon) if laws else counted.needs(epsilon, back)  # type: ignore[union-attr]
                yield back, f"epsilon {epsilon:.6g} needs delta {needs:.4g}" if needs > delta + NEAR else ""
