"""Adaptive data analysis: holdouts and chosen statistics.

Here: queries that an analyst chooses one by one, by the answers so far: noisy averages, Sparse on counts, and
Thresholdout, a holdout set that is used again and again and answers for itself only where it must.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Masked, Places, Reals
from dpaudit.catalogue.adaptive.subsets import (
    ANALYST,
    ANALYSTS,
    Analyst,
    Query,
    Readings,
    Records,
    average,
    in_room,
    named,
    select_and_average,
    select_subsets,
)
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, laplace
from dpaudit.catalogue.promises import BASSI, EPSILON, doubled
from dpaudit.catalogue.sparse.restarted import NO_CUT_OFF, NO_THRESHOLD_NOISE, RIGHT
from dpaudit.catalogue.sparse.runs import BOTTOM, THRESHOLD, TOP, TOPS, Rule, Scales
from dpaudit.losses.comparisons import halting_ratios, one_threshold_loss
from dpaudit.losses.released import no_top_ratio, released_value_ratio

# --- many runs of a whole interaction at once, and its exact loss: runs with the same readings are asked the same


class Posed(NamedTuple):
    """A query to one dataset: the number that meets the threshold, that of a top, and the answer where it is none."""

    compared: float
    value: float
    otherwise: float = 0.0


Both = tuple[Posed, Posed]
Chain = tuple[Both, ...]
Ratios = Callable[[Chain], Sequence[float]]
Costs = Callable[[Both, Chain], Iterable[tuple[int, float]]]
Show = Callable[[int, Posed, Reals, Places], Reals]  # the first is the place of the query


@dataclass(frozen=True, slots=True)
class Rules:
    """An interaction: who asks, `tell(query, data)`, the noises, how many queries, and the most tops (None: no halt).

    A threshold of minus infinity is one that every answer is above.
    """

    analyst: Analyst
    tell: Callable[[Query, Records], Posed]
    threshold: float
    scales: Scales
    queries: int
    most: int | None
    redrawn: bool = True

    def ended(self, readings: Readings) -> bool:
        """Whether nothing more is asked."""
        return len(readings) == self.queries or sum(top for top, _ in readings) == self.most


def interact(rules: Rules, data: Records, runs: int, rng: Rng, show: Show, *, bits: bool = False) -> Masked:
    """The answers of the tops by run and query, `show(place, asked, noisy, tops)`; or tops and bottoms to the halt."""
    for_threshold, for_answers = rules.scales
    outputs = np.zeros((rules.queries, runs), np.int8 if bits else np.float64)
    hidden = np.ones(outputs.shape, np.bool_)
    level = rules.threshold + laplace(rng, for_threshold, runs)
    groups: list[tuple[Readings, Places, Reals]] = [((), np.arange(runs), level)]
    while groups:
        readings, going, level = groups.pop()
        asked = rules.tell(rules.analyst.asks(readings), data)
        noisy = asked.compared + laplace(rng, for_answers, len(going))
        is_top = noisy > level
        tops, bottoms = going[is_top], going[~is_top]
        shown = show(len(readings), asked, noisy[is_top], tops)
        outputs[len(readings), tops] = shown
        hidden[len(readings), going if bits else tops] = False
        raised = rules.threshold + laplace(rng, for_threshold, len(tops)) if rules.redrawn else level[is_top]
        cells = np.searchsorted(rules.analyst.cuts, shown)
        each = [((1, int(cell)), tops[cells == cell], raised[cells == cell]) for cell in np.unique(cells)]
        for reading, *group in (*each, (rules.analyst.read(False, asked.otherwise), bottoms, level[~is_top])):
            if len(group[0]) and not rules.ended((*readings, reading)):
                groups.append(((*readings, reading), *group))
    return np.ma.MaskedArray(outputs.T, mask=hidden.T)


def compared_with(chain: Chain) -> tuple[Reals, Reals]:
    """What meets the threshold, in both datasets."""
    p, q = (np.array([both[side].compared for both in chain]) for side in (0, 1))
    return p, q


def worst(rules: Rules, first: Records, second: Records, costs: Costs, ratios: Ratios | None = None) -> float:
    """The largest |log ratio| of a transcript.

    `costs(query, tops so far)` are what the answer of a top shows, by how it is read; all tops so far are written as
    the first of them. `ratios` are those of an epoch,
    by the place of its top, and, last, of none; left out, they are those of the comparisons.
    """

    @cache  # most epochs hold the same queries as another
    def epoch(chain: Chain) -> list[float]:
        if rules.threshold == -math.inf:
            return [0.0] + [-math.inf] * len(chain)
        return list(map(float, halting_ratios(*compared_with(chain), rules.threshold, *rules.scales)))

    def one_way(*sides: Records) -> float:
        @cache
        def best(readings: Readings, tops: Chain) -> float:
            prefixes, chain = [readings], list[Both]()
            while not rules.ended(prefixes[-1]):
                query = rules.analyst.asks(prefixes[-1])
                chain.append((rules.tell(query, sides[0]), rules.tell(query, sides[1])))
                prefixes.append((*prefixes[-1], rules.analyst.read(False, chain[-1][0].otherwise)))
            *ratio, none = (ratios or epoch)(tuple(chain)) if chain else (0.0,)
            after = [
                shown + cost + best(rules.analyst.state((*before, (1, cell))), (*tops, (*tops, both)[0]))
                for shown, before, both in zip(ratio, prefixes, chain, strict=False)
                if shown > -math.inf
                for cell, cost in costs(both, tops)
            ]
            return max([none, *after])

        return best((), ())

    return max(one_way(first, second), one_way(second, first))


def shown(rules: Rules, both: Both, scale: float) -> Iterable[tuple[int, float]]:
    """What a value with Lap(scale) shows, by how it is read: its ratio rises or falls, so it is largest at an end."""
    p, q = (asked.value for asked in both)
    if scale == 0.0:
        return [(rules.analyst.read(True, p)[1], math.inf if p != q else 0.0)]
    ends = np.clip([-np.inf, *rules.analyst.cuts, np.inf], min(p, q), max(p, q))
    ratios = (np.abs(ends - q) - np.abs(ends - p)) / scale
    return enumerate(np.maximum(ratios[1:], ratios[:-1]).tolist())


# --- noisy averages, and Sparse on counts -------------------------------------------------------------------------

Share = Callable[[int, int], float]  # of a query, by its place and the number of all: its noise, over 1 / (n epsilon)
RECORDS = [[0, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 1, 0]]


def _adaptive_laplace(data: Records, rng: Rng, epsilon: float, analyst: str, *, share: Share) -> tuple[float, ...]:
    asking, readings = named(analyst), Readings()
    queries, answers = asking.many(data), list[float]()
    for place in range(queries):
        noise = rng.laplace(scale=share(place, queries) / (len(data) * epsilon))
        answers.append(average(asking.asks(readings), data) + noise)
        readings = (*readings, asking.read(True, answers[-1]))
    return tuple(answers)


def _average_rules(data: Records, analyst: str) -> Rules:
    asking = named(analyst)
    return Rules(
        asking, lambda query, data: Posed(0.0, average(query, data)), -math.inf, (0.0, 0.0), asking.many(data), None
    )


def _average_runs(data: Records, runs: int, rng: Rng, epsilon: float, analyst: str, *, share: Share) -> Masked:
    rules = _average_rules(data, analyst)

    def show(place: int, asked: Posed, noisy: Reals, tops: Places) -> Reals:
        return asked.value + laplace(rng, share(place, rules.queries) / (len(data) * epsilon), len(tops))

    return interact(rules, data, runs, rng, show)


def _average_loss(first: Records, second: Records, epsilon: float, analyst: str, *, share: Share) -> float:
    rules = _average_rules(first, analyst)

    def costs(both: Both, tops: Chain) -> Iterable[tuple[int, float]]:
        return shown(rules, both, share(len(tops), rules.queries) / (len(first) * epsilon))

    return worst(rules, first, second, costs)


_CODE = Code(_adaptive_laplace, _average_runs, _average_loss)

adaptive_laplace = in_room(
    name="adaptive_laplace",
    title="Noisy averages of queries chosen by the answers so far",
    source=Source(
        "Bassi 2019, notes 001, 'Model description' (each step sees the data and the results before it)",
        "Dwork, Feldman, Hardt, Pitassi, Reingold & Roth 2015, Preserving statistical validity in adaptive data "
        "analysis",
    ),
    formula="with k queries into [0, 1] and n records: each answer is the query's average + Lap(k / (n epsilon))",
    neighbours="datasets of the same size that differ in one record",
    code=_CODE.given(share=lambda place, queries: queries),
    parameters=(replace(EPSILON, default=2.0), replace(ANALYST, default="follows")),
    default_pair=([*RECORDS, [1, 1, 1, 1]], [*RECORDS, [0, 0, 0, 1]]),
).with_twins(
    """columns_as_disjoint: Each answer at the noise of a single query
        the features are columns, not disjoint records: one record is in all answers, and the losses add up
        each answer is the query's average + Lap(1 / (n epsilon))
    choice_exact: All answers but the last without noise
        an average over n records, as it is, tells two neighbours apart, and so does what is chosen by it
        the last answer is the query's average + Lap(1 / (n epsilon)), the others are the averages themselves
    last_exact: The last answer without noise
        the vote's accuracy is a count of records over n: an exact count tells two neighbours apart
        with k queries: each answer + Lap((k - 1) / (n epsilon)), the last without noise""",
    columns_as_disjoint=Twin(code=_CODE.given(share=lambda place, queries: 1.0)),
    choice_exact=Twin(code=_CODE.given(share=lambda place, queries: float(place == queries - 1))),
    last_exact=Twin(code=_CODE.given(share=lambda place, queries: queries - 1.0 if place < queries - 1 else 0.0)),
)


def _adaptive_sparse(
    data: Records, rng: Rng, epsilon: float, threshold: float, c: int, analyst: str, *, rule: Rule
) -> tuple[int, ...]:
    (for_threshold, for_answers), asking = rule.noises(epsilon, c), named(analyst)
    readings, output = Readings(), list[int]()
    noisy_threshold = threshold + rng.laplace(scale=for_threshold)
    for _ in range(asking.many(data)):
        phi = asking.asks(readings)
        is_top = sum(map(phi, data)) + rng.laplace(scale=for_answers) >= noisy_threshold
        output.append(TOP if is_top else BOTTOM)
        readings = (*readings, asking.read(is_top, output[-1]))
        if is_top:
            noisy_threshold = threshold + rng.laplace(scale=for_threshold)
        if rule.halts and output.count(TOP) >= c:
            break
    return tuple(output)


def _counted(query: Query, data: Records) -> Posed:
    return Posed(sum(map(query, data)), TOP, BOTTOM)


def _sparse_rules(data: Records, epsilon: float, threshold: float, c: int, analyst: str, rule: Rule) -> Rules:
    asking = named(analyst)
    return Rules(asking, _counted, threshold, rule.noises(epsilon, c), asking.many(data), c if rule.halts else None)


def _sparse_runs(data: Records, runs: int, rng: Rng, rule: Rule, **given: Any) -> Masked:
    rules = _sparse_rules(data, **given, rule=rule)
    return interact(rules, data, runs, rng, lambda place, asked, noisy, tops: np.full(len(tops), TOP), bits=True)


def _sparse_loss(first: Records, second: Records, rule: Rule, **given: Any) -> float:
    """What is asked follows from the tops and bottoms, so it shows no more than they do."""
    rules = _sparse_rules(first, **given, rule=rule)
    return worst(rules, first, second, lambda both, tops: [(rules.analyst.read(True, TOP)[1], 0.0)])


_SPARSE = Code(_adaptive_sparse, _sparse_runs, _sparse_loss)
AGREES = [1] * 7  # six features and a label, which all of them are

adaptive_sparse = in_room(
    name="adaptive_sparse",
    title="Sparse on queries chosen by the tops and bottoms so far",
    source=Source(
        f"{BASSI}, 'Sparse vector mechanism' (queries which may be chosen adaptively)", "Dwork & Roth 2014, algorithm 2"
    ),
    formula=(
        "with sigma = 2 c / epsilon: the threshold gets a draw of Lap(sigma), anew after each top; the analyst chooses "
        "a query, and its sum over the records gets Lap(2 sigma); halt at the c-th top"
    ),
    neighbours="datasets of n records, one of which is replaced",
    code=_SPARSE.given(rule=RIGHT),
    parameters=(
        EPSILON,
        replace(THRESHOLD, default=2.0),
        replace(TOPS, default=1),
        replace(ANALYST, default="follows"),
    ),
    default_pair=([*[AGREES] * 3, [0] * 6 + [1]], [AGREES] * 4),
).with_twins(
    """no_threshold_noise: Sparse on chosen queries, with an exact threshold
        nothing that the comparisons share is random: an analyst who repeats a query pays for each bottom
        as Sparse on chosen queries, but the threshold gets no noise
    no_cut_off: Sparse on chosen queries that never halts
        only c tops are paid for: an analyst who is told of more of them learns up to epsilon / c from each
        as Sparse on chosen queries, but every query is compared: there is no halt""",
    no_threshold_noise=Twin(code=_SPARSE.given(rule=NO_THRESHOLD_NOISE)),
    no_cut_off=Twin(
        code=_SPARSE.given(rule=NO_CUT_OFF),
        default_pair=([*[AGREES] * 3, [0, 0, 1, 0, 0, 1, 1]], [*[AGREES] * 3, [1, 1, 0, 1, 1, 0, 1]]),
    ),
)


ROUNDING = 1e-12  # of averages of numbers in [0, 1]


@dataclass(frozen=True, slots=True)
class Design:
    """A form of Thresholdout: the noise of what it gives away, of its threshold, and what it counts.

    `compared` multiplies sigma for the comparisons. `redrawn` says whether the threshold gets new noise after each
    answer of the holdout set, `counted` whether those use up the budget.
    """

    value: Literal["fresh", "that of the comparison", "one draw", "none"] = "fresh"
    compared: float = 4.0
    threshold_noise: bool = True
    redrawn: bool = True
    counted: bool = True

    def scales(self, data: Records, epsilon: float, budget: int) -> tuple[float, float, float]:
        """Of the noise on the threshold, on the comparisons and on the values: 2 sigma, 4 sigma, sigma."""
        sigma = noise_level(epsilon, budget, len(data))
        compared = sigma if self.value == "that of the comparison" else self.compared * sigma
        return 2.0 * sigma * self.threshold_noise, compared, 0.0 if self.value == "none" else sigma


def noise_level(epsilon: float, budget: int, records: int) -> float:
    """The sigma that makes Thresholdout epsilon-DP: epsilon = 2 B / (sigma n).

    >>> noise_level(1.0, 2, 10)
    0.4
    """
    return 2.0 * budget / (epsilon * records)


def training_set(name: str, value: object) -> float | list[list[float]]:
    """Checks the training set: records, lists of numbers, or one average."""
    if isinstance(value, list) and value and all(isinstance(record, list) for record in value):
        return [[validate.real(name, number) for number in record] for record in value]
    return validate.probability(name, value)


def _holdout_rules(
    data: Records, epsilon: float, threshold: float, trained: float | Records, budget: int, analyst: str, design: Design
) -> tuple[Rules, float]:
    """With the noise of the values."""

    def tell(query: Query, data: Records) -> Posed:
        holdout = average(query, data)
        training = trained if isinstance(trained, float) else average(query, trained)
        return Posed(abs(holdout - training), holdout, training)

    asking, (drift, compared, sigma) = named(analyst), design.scales(data, epsilon, budget)
    most = budget if design.counted else None
    return Rules(asking, tell, threshold, (drift, compared), asking.many(data), most, design.redrawn), sigma


def runs_of(data: Records, runs: int, rng: Rng, *, design: Design, **given: Any) -> Masked:
    """The answers of the holdout set by query; those of the training set are masked, as is what follows the halt."""
    rules, sigma = _holdout_rules(data, design=design, **given)
    shared = laplace(rng, sigma, runs) if design.value == "one draw" else np.zeros(0)

    def show(place: int, asked: Posed, noisy: Reals, tops: Places) -> Reals:
        if design.value == "that of the comparison":
            return asked.value + (noisy - asked.compared)
        return asked.value + (shared[tops] if design.value == "one draw" else laplace(rng, sigma, len(tops)))

    return interact(rules, data, runs, rng, show)


def loss_of(first: Records, second: Records, *, design: Design, **given: Any) -> float | None:
    """The largest |log ratio| of a transcript.

    None where an analyst chooses under a kept threshold, or reads numbers that do not have noise of their own.
    """
    rules, sigma = _holdout_rules(first, design=design, **given)
    scales = (rules.threshold, *rules.scales)
    if not design.redrawn:
        if rules.analyst is not ANALYSTS["in order"]:
            return None
        asks = [rules.analyst.asks(((0, 0),) * place) for place in range(rules.queries)]
        p, q = (np.array([rules.tell(query, data)[:2] for query in asks]) for data in (first, second))
        moved = np.abs(p[:, 1] - q[:, 1]) / sigma
        return one_threshold_loss(p[:, 0], q[:, 0], rules.most, *scales, moved)
    if design.value in ("fresh", "none"):
        return worst(rules, first, second, lambda both, tops: shown(rules, both, sigma))
    if rules.analyst.cuts:
        return None

    def one_draw(both: Both, tops: Chain) -> list[tuple[int, float]]:
        move, *earlier = (asked[1].value - asked[0].value for asked in (both, *tops[:1]))
        if not earlier:
            return [(0, abs(move) / sigma)]  # the first answer shows the draw: it is all that hides the others
        return [(0, math.inf if abs(move - earlier[0]) > ROUNDING else 0.0)]

    if design.value == "one draw":
        return worst(rules, first, second, one_draw)

    @cache  # most epochs hold the same queries as another
    def compared(chain: Chain) -> float:
        return released_value_ratio(*compared_with(chain), (chain[-1][0].value, chain[-1][1].value), *scales)

    def ratios(chain: Chain) -> list[float]:
        return [*(compared(chain[: j + 1]) for j in range(len(chain))), no_top_ratio(*compared_with(chain), *scales)]

    return worst(rules, first, second, lambda both, tops: [(0, 0.0)], ratios)


DISTANCE = Parameter("threshold", 0.3, "of the average", "how far holdout and training may differ", validate.real)
TRAINED = Parameter("trained", 0.2, "records, or an average", "the training set, or each query on it", training_set)
BUDGET = Parameter("budget", 2, "answers", "the answers of the holdout set")


def _thresholdout(
    data: Records,
    rng: Rng,
    epsilon: float,
    threshold: float,
    trained: float | Records,
    budget: int,
    analyst: str,
    *,
    design: Design,
) -> dict[int, float]:
    asking, readings, output = named(analyst), Readings(), dict[int, float]()
    drift, compared, sigma = design.scales(data, epsilon, budget)
    shared = rng.laplace(scale=sigma)
    noisy_threshold = threshold + rng.laplace(scale=drift)
    for query in range(asking.many(data)):
        phi = asking.asks(readings)
        holdout, training = average(phi, data), trained if isinstance(trained, float) else average(phi, trained)
        answer, noise = training, rng.laplace(scale=compared)
        is_top = abs(holdout - training) + noise > noisy_threshold
        if is_top:
            fresh = rng.laplace(scale=sigma)
            shown = {"that of the comparison": noise, "one draw": shared}.get(design.value, fresh)
            answer = output[query] = holdout + shown
            if design.redrawn:
                noisy_threshold = threshold + rng.laplace(scale=drift)
        readings = (*readings, asking.read(is_top, answer))
        if design.counted and len(output) >= budget:
            break
    return output


def _ones(*sums: int) -> list[list[float]]:
    """Nine records: query j holds for the first sums[j] of them."""
    return [[float(place < count) for count in sums] for place in range(9)]


def _pair(sums: tuple[int, ...], moved: tuple[int, ...]) -> tuple[Records, Records]:
    """The nine records and a tenth, on which query j holds in the second dataset where moved[j] is 1, else first."""
    rest = _ones(*sums)
    return [*rest, [1.0 - move for move in moved]], [*rest, [float(move) for move in moved]]


def _form(design: Design) -> Code:
    return Code(_thresholdout, runs_of, loss_of).given(design=design)


UP, DOWN = 1, 0  # what the tenth record does to a query, from the first dataset to the second

thresholdout = in_room(
    name="thresholdout",
    title="Thresholdout, the reusable holdout",
    source=Source(
        "Bassi 2019, notes 001, 'Thresholdout'",
        "Dwork, Feldman, Hardt, Pitassi, Reingold & Roth 2015, Generalization in adaptive data analysis and holdout "
        "reuse",
    ),
    formula=(
        "with sigma = 2 B / (epsilon n): where |holdout - training| + Lap(4 sigma) is above the threshold with its "
        "draw of Lap(2 sigma), the answer is that of the holdout set + Lap(sigma), and the threshold gets a new draw; "
        "else it is that of the training set; halt after B answers of the holdout set"
    ),
    neighbours="holdout sets of n records, one of which is replaced",
    code=_form(Design()),
    parameters=(EPSILON, DISTANCE, TRAINED, BUDGET, ANALYST),
    default_pair=_pair((6, 6, 6, 3) * 2, (UP, UP, UP, DOWN) * 2),
).with_twins(
    """comparison_noise_released: Thresholdout that gives away the noise of its comparison
        a low value betrays a low threshold, and then every query before it costs epsilon / (2 B) of its own
        as Thresholdout, but with one draw of Lap(sigma) for the comparison and for the value released
    budget_not_counted: Thresholdout that never halts
        only B answers of the holdout set are paid for: each further one costs up to epsilon / B
        as Thresholdout, but every query is answered: there is no halt
    exact_value: Thresholdout without noise on the values
        that a query is above the threshold is hidden by noise, but its average is given away as it is
        as Thresholdout, but the value is released without noise
    exact_comparisons: Thresholdout with exact comparisons
        where one record moves a query over the threshold, who answers it tells what the record says
        as Thresholdout, but threshold and comparisons get no noise: the values alone do
    one_noise: Thresholdout with one draw for all values
        the difference of two values is exact, and tells a record on which only one of the queries holds
        as Thresholdout, but one draw of Lap(sigma) is added to all values
    training_set_counted: Thresholdout with n taken as the size of both sets
        only the holdout set is protected: with 2 n in the place of n all noise is halved
        as Thresholdout with sigma = 2 B / (epsilon 2 n)
    no_threshold_noise: Thresholdout with an exact threshold
        nothing that the comparisons share is random, so every query below costs epsilon / (8 B) of its own
        as Thresholdout, but the threshold gets no noise
    threshold_kept: Thresholdout with one noisy threshold for all queries
        kept, the threshold is paid for once, 1 / (2 sigma n), and not with every answer
        as Thresholdout, but the threshold keeps its one draw of Lap(2 sigma)""",
    comparison_noise_released=Twin(
        code=_form(Design("that of the comparison")), default_pair=_pair((4,) * 8, (UP,) * 8)
    ),
    budget_not_counted=Twin(code=_form(Design(counted=False)), default_pair=_pair((9,) * 6, (UP,) * 6)),
    exact_value=Twin(code=_form(Design("none")), default_pair=_pair((5, 5), (UP, UP))),
    exact_comparisons=Twin(
        code=_form(Design(compared=0.0, threshold_noise=False)), default_pair=_pair((5, 5), (UP, UP))
    ),
    one_noise=Twin(
        code=_form(Design("one draw")), default_pair=([*_ones(6, 6), [0.0, 0.0]], [*_ones(6, 6), [1.0, 0.0]])
    ),
    training_set_counted=Twin(at=doubled),
    no_threshold_noise=Twin(
        code=_form(Design(threshold_noise=False)), default_pair=_pair((5,) * 12 + (4,) * 2, (UP,) * 12 + (DOWN,) * 2)
    ),
    threshold_kept=Harmless(
        code=_form(Design(redrawn=False)),
        default_pair=_pair((6, 6, 6, 6, 6, 6, 3, 3), (UP, UP, UP, UP, UP, UP, DOWN, DOWN)),
    ),
)


ENTRIES = (adaptive_laplace, adaptive_sparse, select_subsets, select_and_average, thresholdout)
