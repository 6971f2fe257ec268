"""Each sampler against its program, and both against the exact law where there is one. All seeds are fixed.

A comparison fails by chance with probability at most 1e-9 (its p-value must exceed that); there are fewer than
1,000 of them here, so all together with less than 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from dpaudit import audit
from dpaudit.catalogue import Entry, entries, find
from dpaudit.catalogue.learning.objective_noise import corrected
from dpaudit.catalogue.promises import HUBER_HINGE, LOGISTIC, classifier, in_unit_ball
from dpaudit.catalogue.releases.counts import CELLS
from tests.cases import for_each

LEVEL = 1e-9
SAMPLED, PROGRAMMED = 30_000, 700
FITTED = 400  # runs of a program that fits a model
CUTS = 4, 16  # quantiles that real numbers are cut at: the first few together, and each alone
RAREST = 25  # outcomes seen less often in both samples together are counted as one
MOST = 3  # real numbers of an output that are compared together

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
    [*((entry, 0) for entry in entries()), *((twin, 0) for _, twin in TWINS[::4])],
    ids=lambda value: value.name if isinstance(value, Entry) else ("first", "second")[value],
    nightly=[*((entry, 1) for entry in entries()), *((twin, 0) for place, (_, twin) in enumerate(TWINS) if place % 4)],
)
def test_the_sampler_has_the_law_of_the_program(entry: Entry, side: int) -> None:
    """By night every twin, on one dataset of its pair, for it shares its sampler with its parent or others."""
    data = entry.default_pair[side]
    beside_few = sampled(entry, data, 1, part=2)  # as good as twice as many, beside the runs of a program
    assert same_law(beside_few, programmed(entry, data, 2)) > LEVEL


@for_each(("entry", "twin"), TWINS, ids=[twin.name for _, twin in TWINS])
def test_a_twin_is_no_copy_of_its_parent(entry: Entry, twin: Entry) -> None:
    """The converse: the same comparison tells every twin from its parent, so it would tell a wrong sampler."""
    told = any(
        same_law(sampled(twin, data, 1, part), sampled(entry, data, 4, part)) < LEVEL
        for part in (10, 1)  # most are told apart by few runs
        for data in twin.default_pair
    )
    if twin.name in SAME_LAW:
        assert not told
    else:
        assert told or twin.claim() != entry.claim() or twin.neighbours != entry.neighbours


@for_each("parameters", [{"c": 1}, {"c": 3, "threshold": 1.5}], nightly=[{"epsilon": 4.0, "c": 2}])
@for_each("name", ["sparse.value_released"], nightly=["sparse", "sparse.no_threshold_noise"])
def test_sparse_at_other_parameters(name: str, parameters: dict[str, Any]) -> None:
    entry, data = find(name).with_parameters(parameters), [0, 2, -1, 1, 0]
    assert same_law(sampled(entry, data, seed=5), programmed(entry, data, seed=6)) > LEVEL


@pytest.mark.parametrize("bits", [np.random.SFC64, np.random.PCG64, np.random.Philox, np.random.MT19937])
def test_laplace_noise_is_laplace_from_every_source_of_bits(bits: Any) -> None:
    noise = find("laplace").open().call(3.0, 200_000, np.random.Generator(bits(7)))
    assert stats.kstest(noise, stats.laplace(loc=3.0).cdf).pvalue > LEVEL


GRADES = [70.0, 80.0, 55.0, 95.0, 0.0]  # their average is 60
CLASS = find("output_perturbation").default_pair[0]
PEOPLE = [cell for cell, size in zip(CELLS, (3, 6, 5, 4, 1, 4), strict=True) for _ in range(size)]
OPTIMUM = classifier([in_unit_ball(record) for record in CLASS], 0.4, HUBER_HINGE)
BEST_OF_CLASS = classifier([in_unit_ball(record) for record in CLASS], 1.0, LOGISTIC)
CENTRE = 2.0 * np.logaddexp.reduce(np.array([0.0, 0.5, 1.0]))
XY = np.array(find("regression_from_sums").bounds_from_data.default_pair[1])
LINE = np.array([len(XY), *XY.sum(axis=0), XY[:, 0] @ XY[:, 1], XY[:, 0] @ XY[:, 0]])
RIDGE = np.array(find("ridge_output_perturbation").default_pair[0])
TIED = find("select_subsets.exact_maximum").default_pair[0]
SILENT = [[0.0, 0.0, 0.0, 1], [0.0, 0.0, 0.0, -1]]  # records without features
LEFT, ADDED = corrected(1.0, 2, 0.01)


def length(order: float) -> Callable[[Any], Any]:
    return lambda y: np.linalg.norm(y, order, axis=1)


def ridge(records: int) -> float:
    """The least of sum (y - w x)^2 / records + w^2."""
    x, y = RIDGE.T
    return float(optimize.minimize_scalar(lambda w: ((y - w * x) ** 2).sum() / records + w * w, tol=1e-12).x)


def always(number: int) -> Any:
    """The law of one number."""
    return stats.randint(number, number + 1)


def column(place: int) -> Callable[[Any], Any]:
    return lambda y: np.ma.compressed(np.ma.asarray(y).reshape(len(y), -1)[:, place])


# what outputs show, and the law of it: of a density, or of whole numbers
MARGINS: list[tuple[str, Any, dict[str, Any], Callable[[Any], Any], Any]] = [
    ("laplace.relative_noise", 4, {}, column(0), stats.laplace(4, 4)),
    ("laplace.clipped_noise", 10, {}, lambda y: y == 11.0, stats.bernoulli(stats.laplace.sf(1))),
    # the density e^(-|z| / scale) in three dimensions gives |z| the density r^2 e^(-r / scale)
    *(
        (name, [0.0] * 3, {}, length(order), stats.gamma(3, scale=scale))
        for name, order, scale in (
            ("norm_l1", 1, 2),
            ("norm_l2", 2, 2),
            ("norm_linf", math.inf, 2),
            ("k_norm_l2", 2, 1),
            ("k_norm_linf", math.inf, 1),
        )
    ),
    ("k_norm_l2", [0.0] * 3, {}, lambda y: y[:, 0] / length(2)(y), stats.uniform(-1, 2)),
    ("k_norm_l2", [0.0] * 3, {}, lambda y: (y[:, 0] / length(2)(y))[length(2)(y) > 3.0], stats.uniform(-1, 2)),
    ("k_norm_linf", [0.0] * 3, {}, lambda y: y[:, 0] > 0, stats.bernoulli(0.5)),
    ("k_norm_l2.exponential_radius", [0.0, 0.0], {}, length(2), stats.expon()),
    ("k_norm_l2.constant_length", [0.0, 0.0], {}, lambda y: np.rint(1e6 * length(2)(y)), always(2_000_000)),
    ("laplace_average.uniform_noise", GRADES, {"reach": 5}, lambda y: np.rint(5 * (y - 60)), stats.randint(-5, 6)),
    # one candidate: the value is its answer plus the noise
    ("report_noisy_max.value_released", [3.0], {}, column(0), stats.laplace(3)),
    ("report_noisy_max_general.value_only", [3.0], {}, column(0), stats.laplace(3, 2)),
    ("report_noisy_max_general.unpaid_value", [3.0], {}, column(0), stats.laplace(3, 1)),
    ("report_noisy_max_exponential.value_released", [3.0], {}, column(0), stats.expon(3, 2)),
    *(  # about the sum of weights, whoever wins
        ("report_noisy_max_gumbel.value_released", [0.0, 1.0, 2.0], {}, column(place), stats.gumbel_r(CENTRE, 2))
        for place in range(3)
    ),
    ("private_median.unmixed_chain", [1, 1, 7, 7], {"steps": 3}, lambda y: np.abs(y - 1) > 3, always(0)),
    ("nonnegative_count.draws_counted", 3, {}, lambda y: y[:, 1], stats.geom(stats.laplace.sf(-3))),
    ("sampled_counts.size_published", 2, {"rate": 0.3}, lambda y: y[:, 0], stats.binom(2, 0.3)),
    # at rate 1 the ill of the north are drawn without replacement
    ("noisy_counts.swapped", PEOPLE, {"rate": 1.0}, lambda y: y[:, 0], stats.hypergeom(23, 9, 9)),
    (
        "noisy_column",
        [("b", "x", 3.0), ("a", "y", 40.0), ("c", "x", -2.0)],
        {},
        column(0),
        stats.laplace(13 / 3, 10 / 3),
    ),
    # always above the threshold
    ("thresholdout", [[1.0]] * 10, {"budget": 1, "threshold": -50.0}, column(0), stats.laplace(1, 0.2)),
    # the second group has two equal means
    ("select_subsets.exact_maximum", TIED, {}, lambda y: y[:, 0], always(0)),
    ("select_subsets.exact_maximum", TIED, {}, lambda y: y[:, 1], stats.bernoulli(0.5)),
    ("output_perturbation", CLASS, {}, lambda y: length(2)(y - OPTIMUM), stats.gamma(2, scale=0.5)),
    ("output_perturbation", CLASS, {}, lambda y: np.arctan2(*(y - OPTIMUM).T), stats.uniform(-np.pi, 2 * np.pi)),
    ("output_perturbation.exponential_radius", CLASS, {}, lambda y: length(2)(y - OPTIMUM), stats.expon(scale=0.5)),
    *(
        (f"gaussian_output_perturbation{twin}", CLASS, {}, column(place), stats.norm(BEST_OF_CLASS[place], sigma))
        for twin, sigma in (("", 0.2), (".variance_for_deviation", 0.04), (".one_draw", 0.2))
        for place in (0, 1)
    ),
    (
        "gaussian_output_perturbation.one_draw",
        CLASS,
        {},
        lambda y: np.ptp(y - BEST_OF_CLASS, axis=1) > 1e-12,
        always(0),
    ),
    # the minimum of sum (y - w x)^2 / n + w^2, and of the sum without n
    *(
        (f"ridge_output_perturbation{twin}", RIDGE.tolist(), {}, column(0), stats.laplace(ridge(records), 0.3))
        for twin, records in (("", len(RIDGE)), (".sum_for_average", 1))
    ),
    *(
        ("regression_from_sums.bounds_from_data", XY.tolist(), {}, column(place), stats.laplace(LINE[place], scale))
        for place, scale in enumerate((5.0, 4.5, 4.5, 4.05, 4.05))
    ),
    # with nobody but records without features, w = -b / steepness
    ("objective_perturbation", SILENT, {}, length(2), stats.gamma(3, scale=2.0 / (2 * (0.01 + ADDED) * LEFT))),
    ("objective_perturbation", SILENT, {}, lambda y: y[:, 0] / length(2)(y), stats.uniform(-1, 2)),
]


@for_each(("name", "data", "given", "of", "law"), MARGINS)
def test_what_outputs_show_has_its_law(
    name: str, data: Any, given: dict[str, Any], of: Callable[[Any], Any], law: Any
) -> None:
    outputs = find(name).with_parameters(given).open().call(data, 60_000, np.random.Generator(np.random.SFC64(3)))
    values = np.asarray(of(outputs))
    if hasattr(law.dist, "pdf"):
        assert stats.kstest(values, law.cdf).pvalue > LEVEL
        return
    places, counts = np.unique(values, return_counts=True)
    expected = len(values) * law.pmf(places)
    assert (expected > 0.0).all()
    counts, expected = np.append(counts, 0.0), np.append(expected, max(0.0, len(values) - expected.sum()))
    rare = expected < 10.0
    seen, told = (np.append(each[~rare], each[rare].sum()) for each in (counts, expected))
    assert stats.binomtest(int(seen[-1]), len(values), min(1.0, told[-1] / len(values))).pvalue > LEVEL / 2
    if len(seen) > 2:
        assert stats.chisquare(seen[:-1], told[:-1] * seen[:-1].sum() / told[:-1].sum()).pvalue > LEVEL / 2


# where the loss is infinite: an event that one side of the default pair shows and the other never
UNHEARD_OF: dict[str, Callable[[Any], Any]] = {
    "laplace.relative_noise": lambda y: y == 0.0,
    "laplace.few_seeds": lambda y: np.isin(y, [10 + np.random.default_rng(seed).laplace() for seed in range(64)]),
    "laplace_average.uniform_noise": lambda y: y < 59.99,
    "geometric.one_sided": lambda y: y == 9,
    "histogram.shared_noise": lambda y: np.abs(y[:, 0] - y[:, 1] - 2.0) < 1e-9,
    "k_norm_l2.constant_length": lambda y: np.abs(length(2)(y) - 2.0) < 1e-9,
    "composed_counts.noise_reused": lambda y: np.abs(y[:, 0] - y[:, 1]) < 1e-9,
    "noisy_bisection.stop_by_truth": lambda y: np.ma.count(y, axis=1) == 1,
    "parallel_counts.exact_total": lambda y: y[:, 0] == len(find("parallel_counts").default_pair[0]),
    "dp_gradient_descent_iterates.noise_in_the_first_step": lambda y: np.abs(np.diff(y[:, :4]) - 0.375).max(1) < 1e-9,
    "dp_gradient_descent_iterates.one_noise": lambda y: np.abs(np.diff(y[:, :4], 2, prepend=0.0)).max(1) > 1e-9,
    "dp_gradient_descent_iterates.stopping": lambda y: np.ma.count(y[:, :4], axis=1) < 4,
}


@for_each("name", UNHEARD_OF)
def test_where_the_loss_is_infinite_there_is_an_event_of_one_side_only(name: str) -> None:
    entry = find(name)
    assert entry.true_loss(*entry.default_pair) == math.inf
    sides = [entry.open().call(data, 5_000, np.random.default_rng(1)) for data in entry.default_pair]
    shares = sorted(float(np.mean(UNHEARD_OF[name](side))) for side in sides)
    assert shares[0] == 0.0
    assert shares[1] > 0.05


def test_no_output_of_a_seeded_generator_belongs_to_both() -> None:
    entry = find("dp_gradient_descent_iterates.seeded_by_the_data")
    sides = [entry.open().call(data, 500, np.random.default_rng(43)) for data in entry.default_pair]
    first, second = ({tuple(row) for row in rows.tolist()} for rows in sides)
    assert len(first) == len(second) == 8
    assert not first & second


def test_our_own_samplers_draw_each_run_alone() -> None:
    """So their refutations suppose nothing of calls, and no second bound is made of them."""
    made = audit(find("laplace"), pair=(0.0, 1.0), epsilon=0.5, runs=4_000, n_jobs=1)
    assert made.refuted
    assert made.units is None
