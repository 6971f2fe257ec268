"""Each sampler against its program, and both against the exact law where there is one. All seeds are fixed.

A comparison fails by chance with probability at most 1e-9 (its p-value must exceed that); there are fewer than
1,000 of them here, so all together with less than 1e-6.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit.catalogue import Entry, entries, find
from dpaudit.catalogue.exact.comparisons import halting, winning

LEVEL = 1e-9
SAMPLED, PROGRAMMED = 30_000, 4_000
FITTED = 1_000  # runs of a program that fits a model
CUTS = 8  # quantiles that a real number is cut at; fewer where an output has several
RAREST = 25  # outcomes seen less often in both samples together are counted as one
MOST = 3  # coordinates of a vector of real numbers that are compared together

ALL = [each for entry in entries() for each in (entry, *entry.twins.values())]
TWINS = [(entry, twin) for entry in entries() for twin in entry.twins.values()]


def sampled(entry: Entry, data: Any, seed: int, runs: int = SAMPLED) -> list[Any]:
    """The outputs of the sampler in the form of its program, one object a run."""
    raw = entry.open().call(data, runs, np.random.Generator(np.random.SFC64(seed)))
    if not isinstance(raw, np.ma.MaskedArray):
        return [tuple(row) if raw.ndim > 1 else row for row in raw.tolist()]
    rows = zip(raw.data.tolist(), np.ma.getmaskarray(raw).tolist(), strict=True)
    if raw.dtype.kind == "f":
        return [{j: value for j, (value, gone) in enumerate(zip(*row, strict=True)) if not gone} for row in rows]
    return [tuple(value for value, gone in zip(*row, strict=True) if not gone) for row in rows]


def programmed(entry: Entry, data: Any, seed: int) -> list[Any]:
    """The outputs of the program."""
    rng = np.random.Generator(np.random.SFC64(seed))
    runs = FITTED if entry.module.endswith(".learning") else PROGRAMMED
    return [entry.run(data, rng) for _ in range(runs)]


@functools.cache
def default_outputs(name: str, side: int, seed: int, *, by_program: bool = False) -> list[Any]:
    """The outputs of an entry on a dataset of its default pair: several comparisons share them."""
    entry = find(name)
    return (programmed if by_program else sampled)(entry, entry.default_pair[side], seed)


def numbers(output: Any) -> list[float]:
    """The real numbers of an output, in order."""
    values = output.values() if isinstance(output, dict) else output if isinstance(output, tuple) else (output,)
    return [value for value in values if isinstance(value, float)][:MOST]


def outcome(output: Any, cuts: Any) -> Hashable:
    """A coarse name of an output: all of it where it is discrete, between which cuts its first real numbers lie."""
    cells = tuple(np.searchsorted(cuts, numbers(output)).tolist())
    if isinstance(output, dict):
        return tuple(output), cells
    if isinstance(output, tuple):
        return tuple(value for value in output if not isinstance(value, float)), cells
    return cells if cells else output


def same_law(one: list[Any], other: list[Any]) -> float:
    """The p-value of the chi-square test that two samples have the same distribution of outcomes."""
    reals = [numbers(output) for output in one]
    most = max(map(len, reals))
    pooled = np.concatenate([np.asarray(each) for each in reals]) if most else np.zeros(1)
    cuts = np.quantile(pooled, np.linspace(0, 1, (CUTS if most < 2 else 4) + 1)[1:-1])
    first, second = (Counter(outcome(each, cuts) for each in sample) for sample in (one, other))
    common = [key for key in first | second if first[key] + second[key] >= RAREST]
    table = np.array([[counts[key] for key in common] for counts in (first, second)])
    rest = np.array([[counts.total()] for counts in (first, second)]) - table.sum(axis=1, keepdims=True)
    table = np.hstack([table, rest[:, :1]])
    return float(stats.chi2_contingency(table[:, table.sum(axis=0) > 0], correction=False).pvalue)


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.name)
@pytest.mark.parametrize("side", [0, 1], ids=["first", "second"])
def test_the_sampler_has_the_law_of_the_program(entry: Entry, side: int) -> None:
    name = entry.name
    assert same_law(default_outputs(name, side, 1), default_outputs(name, side, 2, by_program=True)) > LEVEL


@pytest.mark.parametrize(("entry", "twin"), TWINS, ids=[twin.name for _, twin in TWINS])
def test_a_twin_is_no_copy_of_its_parent(entry: Entry, twin: Entry) -> None:
    """The converse: the same comparison tells every twin from its parent, so it would tell a wrong sampler."""
    outputs = [default_outputs(twin.name, 0, 1), sampled(entry, twin.default_pair[0], seed=4)]
    assert same_law(*outputs) < LEVEL or twin.claim() != entry.claim() or twin.neighbours != entry.neighbours


@pytest.mark.parametrize("parameters", [{"c": 1}, {"c": 3, "threshold": 1.5}, {"epsilon": 4.0, "c": 2}])
@pytest.mark.parametrize("name", ["sparse", "sparse.no_threshold_noise", "sparse.value_released"])
def test_sparse_at_other_parameters(name: str, parameters: dict[str, Any]) -> None:
    entry, data = find(name).with_parameters(parameters), [0, 2, -1, 1, 0]
    assert same_law(sampled(entry, data, seed=5), programmed(entry, data, seed=6)) > LEVEL


@pytest.mark.parametrize("bits", [np.random.SFC64, np.random.PCG64, np.random.Philox, np.random.MT19937])
def test_laplace_noise_is_laplace_from_every_source_of_bits(bits: Any) -> None:
    noise = find("laplace").open().call(3.0, 200_000, np.random.Generator(bits(7)))
    assert stats.kstest(noise, stats.laplace(loc=3.0).cdf).pvalue > LEVEL


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("laplace.half_noise", stats.laplace(loc=10, scale=0.5)),
        ("laplace.uniform_noise", stats.uniform(10, 5)),
        ("gaussian", stats.norm(10, np.sqrt(2 * np.log(125)) / 0.5)),
    ],
    ids=["half_noise", "uniform_noise", "gaussian"],
)
def test_numbers_follow_the_formula(name: str, law: Any) -> None:
    assert (
        stats.kstest(find(name).open().call(10, 200_000, np.random.Generator(np.random.SFC64(8))), law.cdf).pvalue
        > LEVEL
    )


def test_geometric_noise_follows_the_formula() -> None:
    noise = find("geometric").open().call(0, 200_000, np.random.Generator(np.random.SFC64(9)))
    law = stats.dlaplace(1.0)
    inner = np.arange(-8, 9)
    seen = np.array([*(np.count_nonzero(noise == z) for z in inner), np.count_nonzero(np.abs(noise) > 8)])
    expected = np.append(law.pmf(inner), 2 * law.sf(8)) * len(noise)
    assert stats.chisquare(seen, expected).pvalue > LEVEL


def test_vector_coordinates_are_independent_laplace() -> None:
    noisy = find("laplace_vector").open().call([0.0, 5.0], 100_000, np.random.Generator(np.random.SFC64(10)))
    assert all(stats.kstest(noisy[:, j], stats.laplace(loc=5 * j, scale=10).cdf).pvalue > LEVEL for j in (0, 1))
    quadrants = np.histogram2d(noisy[:, 0], noisy[:, 1], bins=([-1e9, 0, 1e9], [-1e9, 5, 1e9]))[0]
    assert stats.chisquare(quadrants.ravel()).pvalue > LEVEL


@pytest.mark.parametrize(
    "name", ["above_threshold", *(f"above_threshold.{twin}" for twin in find("above_threshold").twins)]
)
@pytest.mark.parametrize("side", [0, 1], ids=["first", "second"])
def test_above_threshold_halts_with_the_exact_probabilities(name: str, side: int) -> None:
    noises = {"no_threshold_noise": (0, 4), "no_query_noise": (2, 0), "half_noise": (1, 2)}
    scales = noises.get(name.partition(".")[2], (2, 4))
    entry = find(name)
    data = entry.default_pair[side]
    raw = entry.open().call(data, 200_000, np.random.Generator(np.random.SFC64(11)))
    places = [*np.count_nonzero(raw.filled(0) == 1, axis=0), np.count_nonzero(raw.filled(0).sum(axis=1) == 0)]
    law = halting(np.asarray(data, float), 0.0, *scales)
    assert sum(places) == 200_000
    for seen, probability in zip(places, law, strict=True):
        assert stats.binomtest(seen, 200_000, min(1.0, probability)).pvalue > LEVEL / 10


@pytest.mark.parametrize("side", [0, 1], ids=["first", "second"])
def test_noisy_max_wins_with_the_exact_probabilities(side: int) -> None:
    entry = find("report_noisy_max")
    data = entry.default_pair[side]
    winners = entry.open().call(data, 200_000, np.random.Generator(np.random.SFC64(12)))
    for index, probability in enumerate(winning(np.asarray(data, float), 1.0)):
        assert stats.binomtest(int(np.count_nonzero(winners == index)), 200_000, probability).pvalue > LEVEL / 10
