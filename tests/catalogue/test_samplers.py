"""Each sampler against its program, and both against the exact law where there is one. All seeds are fixed.

A comparison fails by chance with probability at most 1e-9 (its p-value must exceed that); there are fewer than
1,000 of them here, so all together with less than 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit import audit
from dpaudit.catalogue import Entry, entries, find
from dpaudit.losses.comparisons import halting
from tests.cases import NIGHTLY, for_each

LEVEL = 1e-9
SAMPLED, PROGRAMMED = 30_000, 700
FITTED = 400  # runs of a program that fits a model
CUTS = 4, 16  # quantiles that real numbers are cut at: the first few together, and each alone
RAREST = 25  # outcomes seen less often in both samples together are counted as one
MOST = 3  # real numbers of an output that are compared together

ALL = [each for entry in entries() for each in (entry, *entry.twins.values())]
SCALES = {"no_threshold_noise": (0, 4), "no_query_noise": (2, 0), "half_noise": (1, 2)}  # of threshold and answers
SAME_LAW = ("private_training.noise_first", "private_training.clip_factor")  # other lines, and the parent's outputs
TWINS = [(entry, twin) for entry in entries() for twin in entry.twins.values()]

Outputs = np.ma.MaskedArray[Any, Any]  # a row is a run, a masked place one that is not there


def sampled(entry: Entry, data: Any, seed: int, part: int = 1) -> Outputs:
    """The outputs of the sampler, as rows; fewer of real numbers and of words, which take longer to compare."""
    call, rng = entry.open().call, np.random.Generator(np.random.SFC64(seed))
    whole = np.ma.asarray(call(data, 1, rng)).dtype.kind in "biu"
    raw = np.ma.asarray(call(data, (SAMPLED if whole else SAMPLED // 3) // part, rng))
    return raw.reshape(len(raw), -1)


def programmed(entry: Entry, data: Any, seed: int) -> Outputs:
    """The outputs of the program, as rows of the width that the sampler gives."""
    rng = np.random.Generator(np.random.SFC64(seed))
    runs = FITTED if entry.module.endswith(".learning") else PROGRAMMED
    outputs = [entry.run(data, rng) for _ in range(runs)]
    shape = np.ma.asarray(entry.open().call(data, 1, rng)).reshape(1, -1)
    rows = [output.get if isinstance(output, dict) else listed(output) for output in outputs]
    table = [[row(place) for place in range(shape.shape[1])] for row in rows]
    gone = np.array([[value is None for value in row] for row in table])
    present = [value for row in table for value in row if value is not None]
    filler = present[0] if present else 0
    filled = np.array([[filler if value is None else value for value in row] for row in table])
    return np.ma.MaskedArray(filled if present else np.zeros(gone.shape, shape.dtype), mask=gone)


def listed(output: Any) -> Callable[[int], Any]:
    values = output if isinstance(output, tuple) else (output,)
    return lambda place: values[place] if place < len(values) else None


def cells(numbers: Any, gone: Any, cuts: int) -> Any:
    """Between which quantiles of its column each number lies, -1 where there is none."""
    grid = np.linspace(0, 1, cuts + 1)[1:-1]
    edges = [np.quantile(column[~gap], grid) for column, gap in zip(numbers.T, gone.T, strict=True)]
    found = [np.searchsorted(edge, column) for edge, column in zip(edges, numbers.T, strict=True)]
    return np.where(gone, -1, np.stack(found, axis=1))


def outcomes(values: Any, gone: Any) -> list[Any]:
    """Coarse names of each output, as numbers: all of it together, and real numbers each alone as well."""
    if values.dtype.kind != "f":
        codes = [numbered(column) for column in values.T]
        return [joined(np.where(gone, -1, np.stack(codes, axis=1)))]
    gone = gone | np.isnan(values)
    present = ~gone.all(axis=0)
    if not present.any():
        return [np.zeros(len(values))]
    numbers, gone = values.round(9)[:, present], gone[:, present]  # an atom is one, whatever its last bits
    together = np.hstack([cells(numbers[:, :MOST], gone[:, :MOST], CUTS[0]), gone])
    return [joined(together), *cells(numbers, gone, CUTS[1]).T]


def numbered(column: Any) -> Any:
    """Each value as a number; words are looked up, which is quicker than to sort them."""
    if column.dtype.kind in "biu":
        return np.unique(column, return_inverse=True)[1]
    known: dict[Any, int] = {}
    return np.array([known.setdefault(value, len(known)) for value in column.tolist()])


def joined(codes: Any) -> Any:
    """One number for each row of codes: another one, but for a chance of 1e-9, where the rows differ."""
    return codes.astype(np.uint64) @ np.random.default_rng(0).integers(1 << 63, size=codes.shape[1], dtype=np.uint64)


def same_law(one: Outputs, other: Outputs) -> float:
    """The p-value of chi-square tests that two samples have the same distribution of outcomes, by Bonferroni's rule."""
    if one.shape[1] != other.shape[1] or one.dtype.kind != other.dtype.kind:
        return 0.0
    gone = np.vstack([np.ma.getmaskarray(one), np.ma.getmaskarray(other)])
    named = outcomes(np.vstack([one.data, other.data]), gone)
    return min(1.0, len(named) * min(p_value(names, len(one)) for names in named))


def p_value(names: Any, first: int) -> float:
    _, codes = np.unique(names, return_inverse=True)
    table = np.array([np.bincount(each, minlength=codes.max() + 1) for each in (codes[:first], codes[first:])])
    rare = table.sum(axis=0) < RAREST
    table = np.hstack([table[:, ~rare], table[:, rare].sum(axis=1, keepdims=True)])
    return float(stats.chi2_contingency(table[:, table.sum(axis=0) > 0], correction=False).pvalue)


@for_each(
    ("entry", "side"),
    [(entry, side) for entry in ALL for side in ((0, 1) if NIGHTLY and not entry.reason else (0,))],
    ids=lambda value: value.name if isinstance(value, Entry) else ("first", "second")[value],
)
def test_the_sampler_has_the_law_of_the_program(entry: Entry, side: int) -> None:
    """By night on both datasets of the pair; a twin on one, for it shares its sampler with its parent or others."""
    data = entry.default_pair[side]
    beside_few = sampled(entry, data, 1, part=2)  # as good as twice as many, beside the runs of a program
    assert same_law(beside_few, programmed(entry, data, 2)) > LEVEL


@for_each(("entry", "twin"), TWINS, ids=[twin.name for _, twin in TWINS])
def test_a_twin_is_no_copy_of_its_parent(entry: Entry, twin: Entry) -> None:
    """The converse: the same comparison tells every twin from its parent, so it would tell a wrong sampler."""
    told = any(same_law(sampled(twin, data, 1), sampled(entry, data, 4)) < LEVEL for data in twin.default_pair)
    if twin.name in SAME_LAW:
        assert not told
    else:
        assert told or twin.claim() != entry.claim() or twin.neighbours != entry.neighbours


@for_each("parameters", [{"c": 1}, {"c": 3, "threshold": 1.5}, {"epsilon": 4.0, "c": 2}])
@for_each("name", ["sparse", "sparse.no_threshold_noise", "sparse.value_released"])
def test_sparse_at_other_parameters(name: str, parameters: dict[str, Any]) -> None:
    entry, data = find(name).with_parameters(parameters), [0, 2, -1, 1, 0]
    assert same_law(sampled(entry, data, seed=5), programmed(entry, data, seed=6)) > LEVEL


@pytest.mark.parametrize("bits", [np.random.SFC64, np.random.PCG64, np.random.Philox, np.random.MT19937])
def test_laplace_noise_is_laplace_from_every_source_of_bits(bits: Any) -> None:
    noise = find("laplace").open().call(3.0, 200_000, np.random.Generator(bits(7)))
    assert stats.kstest(noise, stats.laplace(loc=3.0).cdf).pvalue > LEVEL


@for_each("name", ["above_threshold", *(f"above_threshold.{twin}" for twin in SCALES)])
@for_each("side", [0, 1], ids=["first", "second"])
def test_above_threshold_halts_with_the_exact_probabilities(name: str, side: int) -> None:
    scales = SCALES.get(name.partition(".")[2], (2, 4))
    entry = find(name)
    data = entry.default_pair[side]
    raw = entry.open().call(data, 200_000, np.random.Generator(np.random.SFC64(11)))
    places = [*np.count_nonzero(raw.filled(0) == 1, axis=0), np.count_nonzero(raw.filled(0).sum(axis=1) == 0)]
    law = halting(np.asarray(data, float), 0.0, *scales)
    assert sum(places) == 200_000
    for seen, probability in zip(places, law, strict=True):
        assert stats.binomtest(seen, 200_000, min(1.0, probability)).pvalue > LEVEL / 10


def test_our_own_samplers_draw_each_run_alone() -> None:
    """So their refutations suppose nothing of calls, and no second bound is made of them."""
    made = audit(find("laplace"), pair=(0.0, 1.0), epsilon=0.5, runs=4_000, n_jobs=1)
    assert made.refuted
    assert made.units is None
