"""The law of mechanisms of the catalogue as their formulas write it: independent coordinates, or a table of outcomes.

A law is a list of distributions, one for each coordinate, or a dictionary of chances. `laws.txt` writes it for each
mechanism, with nothing of the catalogue but what its formula takes from there (sigmas, subsets, filters). Loss and
sampler are held against it, at other parameters too.
"""

from __future__ import annotations

import itertools
import math
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

    def cdf(self, x: Floats) -> Floats:
        """The chance of at most `x`."""
        return self._cdf((x - self.centre) / self.scale)

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


Law = list[Noise] | Table


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


def independent_bits(ones: Any) -> Table:
    """All patterns of independent bits, by the chance that each is 1."""
    return {
        report: math.prod(one if bit else 1.0 - one for bit, one in zip(report, ones, strict=True))
        for report in itertools.product((0, 1), repeat=len(ones))
    }


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
    law: Table = {}
    permanent = [1.0 - f / 2.0 if bit else f / 2.0 for bit in filter_of(value, bits, hashes)]
    for memo, chance in independent_bits(permanent).items():
        for report, seen_as in independent_bits([q if bit else p for bit in memo] * reports).items():
            law[report] = law.get(report, 0.0) + chance * seen_as
    return law


def geometric(epsilon: float, centre: int, end: Callable[[Any], Any] = lambda outputs: outputs) -> Law:
    """Two-sided geometric noise around an integer, each output changed by `end`."""
    reach = math.ceil(200.0 / epsilon)
    outputs = np.arange(-reach, reach + 1)
    law: Table = {}
    for output, chance in zip(
        end(outputs).tolist(), stats.dlaplace(epsilon).pmf(outputs - centre).tolist(), strict=True
    ):
        law[output] = law.get(output, 0.0) + chance
    return law


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

FORMULAS: dict[str, str] = dict(
    line.split(" = ", 1)  # type: ignore[misc]
    for line in Path(__file__).with_name("laws.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
)


def leaks(bit: int, k: int, epsilon: float, leak: float) -> Law:
    """How many of k responses say 1, and whether one of them was sure: the rest of a transcript tells nothing more."""
    one = stays(epsilon if bit else -epsilon)
    plain = (1.0 - leak) ** k * stats.binom(k, one).pmf(range(k + 1))
    return {**dict(enumerate(plain.tolist())), ("sure", bit): 1.0 - (1.0 - leak) ** k}


# what is seen of outputs, where that is not a coordinate or an outcome each
SEEN: dict[str, Callable[[Any], Any]] = {
    "prefix_sums": lambda y: np.diff(y, axis=1, prepend=0.0),
    "noisy_count_and_average": lambda y: np.column_stack([y[:, 0], y[:, 1] * np.maximum(1.0, y[:, 0])]),
    "repeated_response": lambda y: y.sum(axis=1),
    "leaky_responses": lambda y: [("sure", int(row.max()) - 2) if row.max() > 1 else int(row.sum()) for row in y],
}


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
    """The p-value of outputs under a law, by Bonferroni's rule: each coordinate, and whether neighbours agree."""
    if isinstance(law, dict):
        rows = outputs if isinstance(outputs, list) else outputs.tolist()
        outcomes = [tuple(row) if isinstance(row, list) else row for row in rows]
        places = {outcome: place for place, outcome in enumerate(law)}
        if not set(outcomes) <= set(places):
            return 0.0
        found = np.bincount([places[outcome] for outcome in outcomes], minlength=len(law))
        expected = np.array(list(law.values())) * len(outcomes)
        rare = expected < 10.0
        found, expected = (np.append(each[~rare], each[rare].sum()) for each in (found, expected))
        kept = expected > 0.0
        if kept.sum() == 1:
            return 1.0
        return float(stats.chisquare(found[kept], expected[kept] * found[kept].sum() / expected[kept].sum()).pvalue)
    columns = np.asarray(outputs).reshape(len(outputs), -1).T
    assert len(columns) == len(law)
    values = [float(stats.kstest(column, each.cdf).pvalue) for column, each in zip(columns, law, strict=True)]
    above = [each.cdf(column) > 0.5 for column, each in zip(columns, law, strict=True)]
    values += [
        float(stats.chisquare(np.bincount(2 * one + other, minlength=4)).pvalue)
        for one, other in itertools.pairwise(above)
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
    if isinstance(first, dict) and isinstance(second, dict):
        if first.keys() != second.keys():
            return math.inf
        return max(abs(math.log(first[outcome] / second[outcome])) for outcome in first)
    most, least = 0.0, 0.0
    for p, q in zip(first, second, strict=True):  # of independent coordinates the largest ratios add up
        at = np.concatenate([law.centre + law.scale * sign * STEPS for law in (p, q) for sign in (-1.0, 1.0)])
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
