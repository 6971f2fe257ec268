"""The law of mechanisms of the catalogue as their formulas write it: independent coordinates, or a table of outcomes.

A law is a list of distributions, one for each coordinate, or a dictionary of chances. `laws.txt` writes it for each
mechanism, with nothing of the catalogue but what its formula takes from there (sigmas, subsets, filters), and under it
pairs beside the default one. Loss and sampler are held against it, at other parameters too.
"""

from __future__ import annotations

import itertools
import math
from ast import literal_eval
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import integrate, optimize, stats
from scipy.special import ndtr

from dpaudit.catalogue import Entry
from dpaudit.catalogue.additive import normal as sigmas
from dpaudit.catalogue.local.filters import filter_of
from dpaudit.catalogue.releases import counts as cells
from dpaudit.catalogue.releases import tables
from dpaudit.catalogue.sparse.values import listed
from dpaudit.claims import ApproximateDP, Claim, GaussianDP, PureDP, ZeroConcentratedDP
from dpaudit.losses import comparisons, released

Floats = npt.NDArray[np.float64]
Table = dict[Any, float]
FAR = 1e6  # scales: where a ratio that grows without bound is beyond `ENDLESS`
ENDLESS = 1e4
STEPS = np.array([0.0, 1e-9, 0.1, 0.3, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 9.0, 20.0, 40.0, FAR])


# --- how a law is written -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Noise:
    """The distribution of one coordinate: around a number, or up from it. Those of scipy take most of a test's time."""

    centre: float
    scale: float

    ends: tuple[float, ...] = ()  # of what is cut there

    def cdf(self, x: Floats) -> Floats:
        """The chance of at most `x`."""
        return self._cdf((x - self.centre) / self.scale)

    def below(self, x: Floats) -> Floats:
        """The chance of less than `x`."""
        return self.cdf(x)

    def logpdf(self, x: Floats) -> Floats:
        """The logarithm of the density."""
        return self._logpdf((x - self.centre) / self.scale) - math.log(self.scale)


class Laplace(Noise):
    """Density e^-|z| / 2."""

    def _cdf(self, z: Floats) -> Floats:
        return np.where(z < 0.0, 0.5 * np.exp(-np.abs(z)), 1.0 - 0.5 * np.exp(-np.abs(z)))

    def _logpdf(self, z: Floats) -> Floats:
        return -np.abs(z) - math.log(2.0)


class Normal(Noise):
    """Density e^(-z^2 / 2) / sqrt(2 pi)."""

    def _cdf(self, z: Floats) -> Floats:
        return np.asarray(ndtr(z))

    def _logpdf(self, z: Floats) -> Floats:
        return -(z**2) / 2.0 - math.log(2.0 * math.pi) / 2.0


class Uniform(Noise):
    """From the number up to one scale above it."""

    def _cdf(self, z: Floats) -> Floats:
        return np.clip(z, 0.0, 1.0)

    def _logpdf(self, z: Floats) -> Floats:
        return np.where((z >= 0.0) & (z <= 1.0), 0.0, -np.inf)


class Exponential(Noise):
    """Density e^-z above the number."""

    def _cdf(self, z: Floats) -> Floats:
        return -np.expm1(-np.maximum(z, 0.0))

    def _logpdf(self, z: Floats) -> Floats:
        return np.where(z >= 0.0, -z, -np.inf)


class Within(Laplace):
    """Laplace noise that is drawn again until it lies between two ends."""

    def _beyond(self) -> tuple[float, float]:
        low, high = super().cdf(np.array(self.ends)).tolist()
        return low, high

    def cdf(self, x: Floats) -> Floats:
        low, high = self._beyond()
        return np.clip((super().cdf(x) - low) / (high - low), 0.0, 1.0)

    def logpdf(self, x: Floats) -> Floats:
        low, high = self._beyond()
        return np.where((x >= self.ends[0]) & (x <= self.ends[1]), super().logpdf(x) - math.log(high - low), -np.inf)


class Clamped(Within):
    """Laplace noise that is moved to the nearer of two ends where it lies beyond them."""

    def cdf(self, x: Floats) -> Floats:
        return np.where(x < self.ends[0], 0.0, np.where(x >= self.ends[1], 1.0, Laplace.cdf(self, x)))

    def below(self, x: Floats) -> Floats:
        return np.where(x <= self.ends[0], 0.0, Laplace.cdf(self, x))

    def logpdf(self, x: Floats) -> Floats:
        low, high = self._beyond()
        inside = np.where((x > self.ends[0]) & (x < self.ends[1]), Laplace.logpdf(self, x), -np.inf)
        with np.errstate(divide="ignore"):
            return np.where(x == self.ends[0], np.log(low), np.where(x == self.ends[1], np.log1p(-high), inside))


Law = list[Noise | Table] | Table


def masses(noise: Noise, edges: Any) -> list[float]:
    """The chances of the cells between the edges, each from the nearer tail, so that small ones keep their digits."""
    low, high = np.append(-np.inf, edges), np.append(edges, np.inf)
    upper = noise.cdf(2.0 * noise.centre - low) - noise.cdf(2.0 * noise.centre - high)
    return np.where(low > noise.centre, upper, noise.cdf(high) - noise.cdf(low)).tolist()


def whole(noise: Noise, low: int, high: int) -> Table:
    """The noise rounded to whole numbers; the last ones stand for all beyond."""
    return dict(zip(range(low, high + 1), masses(noise, np.arange(low + 0.5, high)), strict=True))


def towards(count: int, scale: float, low: int, high: int) -> Table:
    """Laplace noise cut to a whole number towards the count."""
    edges = [number + (number >= count) for number in range(low, high)]
    return dict(zip(range(low, high + 1), masses(Laplace(count, scale), edges), strict=True))


def merged(law: Table, end: Callable[[Any], Any]) -> Table:
    """The law of what an outcome is changed to."""
    found: Table = {}
    for outcome, chance in law.items():
        found[end(outcome)] = found.get(end(outcome), 0.0) + chance
    return found


def snapped(centre: float, scale: float, bound: float) -> Table:
    """Laplace noise rounded to multiples of the least power of two that is at least its scale, both clamped."""
    grid = 2.0 ** math.ceil(math.log2(scale))
    law = whole(Laplace(float(np.clip(centre, -bound, bound)) / grid, scale / grid), -100, 100)
    return merged(law, lambda place: float(np.clip(place * grid, -bound, bound)))


def rounding(count: int, base: int) -> Table:
    """One of the two neighbouring multiples, unbiased."""
    low = count - count % base
    return {value: 1.0 - abs(value - count) / base for value in (low, low + base) if abs(value - count) < base}


def transcripts(answers: Any, c: int, *scales: float) -> Table:
    """All outputs of Sparse with a threshold redrawn after each top, zeros after the halt, in the order of `listed`."""

    def rest(left: int, tops: int) -> list[tuple[int, ...]]:
        if left == 0 or tops == 0:
            return [(0,) * left]
        after = [[(*(0,) * j, 1, *tail) for tail in rest(left - j - 1, tops - 1)] for j in range(left)]
        return [*itertools.chain(*after), (0,) * left]

    chances = listed(numbers(answers), c, *scales).tolist()
    return {run: chance for run, chance in zip(rest(len(answers), c), chances, strict=True) if chance > 1e-15}


def slopes(data: Any, cells_of: int, factor: float, penalty: float) -> Table:
    """The fit drawn from a grid, proportional to e^(-factor (mean square + penalty slope^2)), at length."""
    grid = np.linspace(-1.0, 1.0, cells_of).tolist()
    risks = [sum((y - slope * x) ** 2 for x, y in data) / len(data) + penalty * slope**2 for slope in grid]
    weights = [math.exp(-factor * risk) for risk in risks]
    return {slope: weight / sum(weights) for slope, weight in zip(grid, weights, strict=True)}


def laplace(centres: Any, scale: Any) -> Law:
    """Independent Laplace noise around each number."""
    centres = np.atleast_1d(np.asarray(centres, float))
    return [
        Laplace(*each) for each in zip(centres.tolist(), np.broadcast_to(scale, centres.shape).tolist(), strict=True)
    ]


def normal(centres: Any, sigma: float) -> Law:
    """Independent normal noise around each number."""
    return [Normal(centre, sigma) for centre in np.atleast_1d(np.asarray(centres, float)).tolist()]


def table(chances: Any) -> Law:
    """The chances of 0, 1, ..., without what rounding left of an impossible one."""
    return {place: chance for place, chance in enumerate(np.asarray(chances).tolist()) if chance > 1e-15}


def chances_of(ones: Any) -> Floats:
    """The chances of all patterns of independent bits, by the chance that each is 1."""
    patterns = np.array(list(itertools.product((False, True), repeat=len(ones))))
    return np.where(patterns, ones, 1.0 - np.asarray(ones)).prod(axis=1)


def independent_bits(ones: Any) -> Table:
    """All patterns of independent bits, by the chance that each is 1."""
    law = zip(itertools.product((0, 1), repeat=len(ones)), chances_of(ones).tolist(), strict=True)
    return {report: chance for report, chance in law if chance > 0.0}


def given_that(law: Table, valid: Callable[[Any], Any]) -> Law:
    """The law of an outcome that is drawn again until it is valid."""
    left = {report: chance for report, chance in law.items() if valid(report)}
    return {report: chance / sum(left.values()) for report, chance in left.items()}


def unary(value: int, k: int, one: float, zero: float) -> Table:
    """The report of a value as one bit among k."""
    return independent_bits([one if place == value else zero for place in range(k)])


def corrected(law: Table, value: int) -> Law:
    """The same, where a report without a 1 is made the true one."""
    empty = next(report for report in law if not any(report))
    true = tuple(int(place == value) for place in range(len(empty)))
    return {report: chance + (law[empty] if report == true else 0.0) for report, chance in law.items() if any(report)}


def chosen(value: int, k: int, size: int, keep: float) -> Law:
    """A subset of `size` of k values, which has the true one with probability `keep`."""
    law = {}
    for members in itertools.combinations(range(k), size):
        chance = keep / math.comb(k - 1, size - 1) if value in members else (1.0 - keep) / math.comb(k - 1, size)
        law[tuple(int(place in members) for place in range(k))] = chance
    return law


def rappor(value: int, f: float, bits: int, hashes: int, q: float, p: float, reports: int) -> Table:
    """All patterns of the permanent response, then independent bits."""
    permanent = independent_bits([1.0 - f / 2.0 if bit else f / 2.0 for bit in filter_of(value, bits, hashes)])
    law = sum(chance * chances_of([q if bit else p for bit in memo] * reports) for memo, chance in permanent.items())
    return dict(zip(itertools.product((0, 1), repeat=bits * reports), np.asarray(law).tolist(), strict=True))


def geometric(epsilon: float, centre: int, end: Callable[[Any], Any] = lambda outputs: outputs) -> Law:
    """Two-sided geometric noise around an integer, each output changed by `end`."""
    reach = math.ceil(200.0 / epsilon)
    outputs = np.arange(-reach, reach + 1)
    chances = stats.dlaplace(epsilon).pmf(outputs - centre)
    return {int(each): float(chances[end(outputs) == each].sum()) for each in np.unique(end(outputs))}


def stays(epsilon: float) -> float:
    """How often a bit stays in a randomised response."""
    return 1.0 / (1.0 + math.exp(-epsilon))


def numbers(values: Any) -> Any:
    return np.asarray(values, float)


def clipped(values: Any, low: float, high: float) -> Any:
    return np.clip(numbers(values), low, high)


def sums(data: Any) -> list[float]:
    x, y = clipped(data, -1.0, 1.0).T
    return [float(len(x)), x.sum(), y.sum(), x @ y, x @ x]


def shares(data: Any, bits_of: int) -> list[float]:
    return [sum(x < t and y == 1 for x, y in data) / len(data) for t in range(1, 2**bits_of)]


def two_hospitals(data: Any) -> list[int]:
    groups = ("A", tables.decade, tables.DECADES), ("B", tables.half, ("<35", "≥35"))
    rows = {place: [each[1:] for each in data if place in each[0]] for place, _, _ in groups}
    return [count for place, group, ages in groups for count in tables.counts(rows[place], group, ages)]


# --- the laws -----------------------------------------------------------------------------------------------------

FORMULAS: dict[str, str] = {}
PAIRS: dict[str, list[tuple[Any, Any]]] = {}  # beside the default one, where the loss is another
for _line in Path(__file__).with_name("laws.txt").read_text(encoding="utf-8").splitlines():
    if _line.startswith(" "):
        first, second = map(literal_eval, map(str.strip, _line.split("|")))
        PAIRS.setdefault(next(reversed(FORMULAS)), []).append((first, second))
    elif _line and not _line.startswith("#"):
        name, formula = _line.split(" = ", 1)
        FORMULAS[name] = formula


def leaks(bit: int, k: int, epsilon: float, leak: float) -> Law:
    """How many of k responses say 1, and whether one of them was sure: the rest of a transcript tells nothing more."""
    one = stays(epsilon if bit else -epsilon)
    plain = (1.0 - leak) ** k * stats.binom(k, one).pmf(range(k + 1))
    return {**dict(enumerate(plain.tolist())), ("sure", bit): 1.0 - (1.0 - leak) ** k}


# what is seen of outputs, where that is not a coordinate or an outcome each
SEEN: dict[str, Callable[[Any], Any]] = {
    "above_threshold": lambda y: y.filled(0).any(axis=1) * (y.filled(0).argmax(axis=1) - y.shape[1]) + y.shape[1],
    "sparse": lambda y: y.filled(0),
    "prefix_sums": lambda y: np.diff(y, axis=1, prepend=0.0),
    "noisy_count_and_average": lambda y: np.column_stack([y[:, 0], y[:, 1] * np.maximum(1.0, y[:, 0])]),
    "repeated_response": lambda y: y.sum(axis=1),
    "leaky_responses": lambda y: [("sure", int(row.max()) - 2) if row.max() > 1 else int(row.sum()) for row in y],
}


def pairs_of(name: str) -> list[tuple[Any, Any]]:
    """The pairs of an entry beside the default one: its own, or its parent's."""
    return PAIRS.get(name) or PAIRS.get(name.partition(".")[0], [])


def law_of(entry: Entry, data: Any) -> Law:
    """The law of an entry at its parameters."""
    names: dict[str, Any] = {**vars(sigmas), **vars(cells), **vars(tables), **vars(comparisons), "released": released}
    names |= {**globals(), **entry.values(), "d": data}
    names["like"] = lambda name, other: eval(FORMULAS[name], {**names, "d": other})
    law: Law = eval(FORMULAS[entry.name], names)
    return law


def seen(entry: Entry, outputs: Any) -> Any:
    """Outputs as the law names them: a table (run, coordinate), or a list of outcomes."""
    look = SEEN.get(entry.name) or SEEN.get(entry.name.partition(".")[0])
    return look(outputs) if look else outputs


# --- what follows from a law --------------------------------------------------------------------------------------


def fits(law: Law, outputs: Any) -> float:
    """The p-value of outputs under a law, by Bonferroni's rule: each coordinate, and whether neighbours agree.

    A coordinate is looked at as its chance of less, plus a share of that of the output itself, drawn with a fixed seed.
    """
    if isinstance(law, dict):
        if isinstance(outputs, list):
            counts: Any = Counter(outputs)
        else:
            values, often = np.unique(outputs, axis=0, return_counts=True)
            counts = {tuple(v) if isinstance(v, list) else v: n for v, n in zip(values.tolist(), often, strict=True)}
        if not set(counts) <= set(law):
            return 0.0
        found = np.array([counts.get(outcome, 0) for outcome in law])
        expected = np.array(list(law.values())) * len(outputs)
        rare = expected < 10.0
        found, expected = (np.append(each[~rare], each[rare].sum()) for each in (found, expected))
        kept = expected > 0.0
        if kept.sum() == 1:
            return 1.0
        return float(stats.chisquare(found[kept], expected[kept] * found[kept].sum() / expected[kept].sum()).pvalue)
    columns = np.asarray(outputs).reshape(len(outputs), -1).T
    assert len(columns) == len(law)
    if isinstance(law[0], dict):
        return min(1.0, len(law) * min(fits(each, column) for column, each in zip(columns, law, strict=True)))
    share = np.random.default_rng(0).random(len(outputs))
    even = [each.below(x) + share * (each.cdf(x) - each.below(x)) for x, each in zip(columns, law, strict=True)]
    values = [float(stats.kstest(column, "uniform").pvalue) for column in even]
    values += [
        float(stats.chisquare(np.bincount(2 * (one > 0.5) + (other > 0.5), minlength=4)).pvalue)
        for one, other in itertools.pairwise(even)
    ]
    return min(1.0, len(values) * min(values))


def loss_of(first: Law, second: Law, claim: Claim) -> float:
    """The loss between two laws in the parameter of a claim, from the laws alone."""
    if isinstance(claim, PureDP):
        return _pure(first, second)
    if isinstance(first, dict) and isinstance(second, dict):
        assert isinstance(claim, ApproximateDP)
        return _inverted(lambda epsilon: _excess(first, second, epsilon), claim.delta)
    shift = math.sqrt(sum(((p.centre - q.centre) / p.scale) ** 2 for p, q in zip(first, second, strict=True)))
    if isinstance(claim, GaussianDP):
        return shift
    if isinstance(claim, ZeroConcentratedDP):
        return shift**2 / 2.0
    assert isinstance(claim, ApproximateDP)
    return _inverted(lambda epsilon: _normal_excess(shift, epsilon), claim.delta)


def _pure(first: Law, second: Law) -> float:
    if isinstance(first, dict) or isinstance(second, dict):
        first, second = [first], [second]
    most, least = 0.0, 0.0
    for p, q in zip(first, second, strict=True):  # of independent coordinates the largest ratios add up
        if isinstance(p, dict) and isinstance(q, dict):
            if p.keys() != q.keys():
                return math.inf
            logs = [math.log(p[outcome] / q[outcome]) for outcome in p]
            most, least = most + max(logs), least + min(logs)
            continue
        at = [law.centre + law.scale * sign * STEPS for law in (p, q) for sign in (-1.0, 1.0)]
        at = np.concatenate([*at, [end for law in (p, q) for end in law.ends if math.isfinite(end)]])
        with np.errstate(invalid="ignore"):
            ratios = p.logpdf(at) - q.logpdf(at)
        ratios = ratios[~np.isnan(ratios)]  # beyond both
        most, least = most + float(ratios.max()), least + float(ratios.min())
    found = max(most, -least)
    return found if found < ENDLESS else math.inf


def _excess(first: Table, second: Table, epsilon: float) -> float:
    outcomes = {*first, *second}
    sides = [[law.get(outcome, 0.0) for outcome in outcomes] for law in (first, second)]
    return max(
        sum(max(0.0, p - math.exp(epsilon) * q) for p, q in zip(one, other, strict=True))
        for one, other in (sides, sides[::-1])
    )


def _normal_excess(shift: float, epsilon: float) -> float:
    """By how much the density moved by `shift` exceeds e^epsilon times the other, by quadrature."""
    if shift == 0.0:
        return 0.0
    cross = epsilon / shift + shift / 2.0

    def excess(x: float) -> float:
        one, other = math.exp(-((x - shift) ** 2) / 2.0), math.exp(epsilon - x**2 / 2.0)
        return (one - other) / math.sqrt(2.0 * math.pi)

    return float(integrate.quad(excess, cross, cross + 14.0, epsabs=1e-14, epsrel=1e-8)[0])


def _inverted(delta_at: Callable[[float], float], delta: float) -> float:
    if delta_at(0.0) <= delta:
        return 0.0
    high = 1.0
    while delta_at(high) > delta:
        high *= 2.0
        if high > 600.0:
            return math.inf
    return float(optimize.brentq(lambda epsilon: delta_at(epsilon) - delta, 0.0, high, xtol=1e-10))
