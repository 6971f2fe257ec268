"""The choice of an event from counts: it takes the planted one, knows luck from a leak, and names only what it saw.

Also sets of values against thresholds, on halves of the counts, and in order of their ratio; and plainer events in
place of better ones.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.base.arrays import Integers, Reals
from dpaudit.certify import CoinFlip
from dpaudit.certify.coin_flip import epsilon_lower
from dpaudit.claims import ApproximateDP, PureDP
from dpaudit.events import Event
from dpaudit.events.features import Coordinate
from dpaudit.events.grammar import Expression
from dpaudit.events.scores import Binning
from dpaudit.outputs.canonical import Outputs, Pilot, token
from dpaudit.outputs.encode import encode_batch, encode_objects
from dpaudit.search import look
from dpaudit.search.binning import Tables
from dpaudit.search.explore import SearchPlan
from dpaudit.search.goal import FEWEST_HITS, Goal, Spread
from dpaudit.search.look import Snapshot, worth
from dpaudit.search.plainer import OF_TEN_Z, pointed, together
from dpaudit.search.selection import Proposal, Standing, cells_inside, groups_of, hoped, luckiest, propose
from tests.cases import for_each

GOAL = Goal(PureDP(1.0), runs=100_000, alpha=0.05)
FEATURE = Coordinate(())
WORDS = tuple(token("text", word) for word in "abcdef")


def bins_of(numbers: int, tokens: int = 0) -> Binning:
    """Cells up to 0, 1, 2, ... and beyond, and some words."""
    return Binning(np.arange(numbers - 1, dtype=np.float32), WORDS[:tokens])


def table(first: list[int] | Integers, second: list[int] | Integers) -> Integers:
    return np.stack([np.asarray(first, np.int64), np.asarray(second, np.int64)], axis=1)


def proposed(bins: Binning, counts: Integers, goal: Goal = GOAL) -> Proposal:
    found = propose(FEATURE, bins, counts, goal)
    assert found is not None
    return found


@for_each("mirrored", [False, True])
@for_each(
    ("first", "second", "least"),
    [
        ([500, 500, 500, 1500, 0], [500, 500, 1500, 500, 0], 1.0),  # a single value
        ([100, 900, 1000, 1000, 0], [1000, 1000, 900, 100, 0], 0.9),  # a threshold
    ],
)
def test_the_planted_event_is_found_on_either_side(
    first: list[int], second: list[int], least: float, mirrored: bool
) -> None:
    found = proposed(bins_of(4), table(second, first) if mirrored else table(first, second))
    x, y = (first, second) if (found.p_side == "first") != mirrored else (second, first)
    low, high = found.event.intervals[0]
    inside = [place for place, value in enumerate((0.0, 0.5, 1.5, 2.5)) if low < value <= high]
    shown = math.log(sum(x[place] for place in inside) / sum(y[place] for place in inside))
    assert shown > least
    assert 0.6 < found.score < shown


@pytest.mark.long
@for_each(("cells", "most"), [(10, 0.75), (500, 0.2)], nightly=[(2, 0.25), (60, 0.25), (4000, 0.2)])
def test_luck_is_not_taken_for_a_leak(cells: int, most: float) -> None:
    """Two samples of one law: the largest of 40 scores stays small, for two cells and for a fine grid.

    Seeded. Over 200 other tables the median is 0.04 for ten cells, of which some are rare, and below 0 for the others;
    the 99 % quantiles are 0.05, 0.34, 0.09, 0.13 and 0.11.
    """
    rng = np.random.default_rng(10)
    bins = bins_of(cells)
    for _ in range(40):
        law = rng.dirichlet(np.full(cells, 1.0))
        sides = [np.append(rng.multinomial(10_000, law), 0) for _ in range(2)]
        found = propose(FEATURE, bins, table(*sides), GOAL)
        assert found is None or found.score < most


@for_each("cells", [40, 4000])
def test_a_common_event_beats_a_lucky_rare_one(cells: int) -> None:
    """The middle parts the sides by e; a rare cell shows 12 against 1 by luck."""
    first, second = (np.full(cells + 1, 5), np.full(cells + 1, 5))
    first[-1] = second[-1] = 0
    first[0], second[0] = 12, 1
    first[cells // 2], second[cells // 2] = 7311, 2689
    first[cells // 2 + 1], second[cells // 2 + 1] = 2689, 7311
    found = proposed(bins_of(cells), table(first, second))
    value = cells // 2 - 0.5 if found.p_side == "first" else cells // 2 + 0.5  # a number of the cell
    assert any(low < value <= high for low, high in found.event.intervals)


def test_size_decides_between_rare_and_common() -> None:
    """A rare event with a large ratio is worth it only when enough runs will certify it."""
    counts = table([3_000, 400_000, 597_000, 0], [300, 500_000, 499_700, 0])
    few, many = (proposed(bins_of(3), counts, Goal(PureDP(1.0), runs, 0.05)) for runs in (1_000, 10_000_000))
    assert (many.event.intervals, many.p_side) == (((-math.inf, 0.0),), "first")
    assert few.event.intervals != many.event.intervals
    assert many.score > few.score


def test_delta_gives_away_the_events_it_explains() -> None:
    """An output of probability 0.001 gives the data away; with delta 0.01 only the threshold is left to find."""
    counts = table([1_000, 600_000, 399_000, 0], [0, 400_000, 600_000, 0])
    pure, approximate = (
        proposed(bins_of(3), counts, Goal(claim, 1_000_000, 0.05)) for claim in (PureDP(1.0), ApproximateDP(1.0, 0.01))
    )
    assert pure.event.intervals == ((-math.inf, 0.0),)
    assert pure.score > 3.0
    assert approximate.event.intervals != pure.event.intervals
    assert 0.3 < approximate.score < 0.4


@for_each("delta", [0.0, 1e-6, 0.01])
def test_the_score_is_a_little_below_what_the_certificate_will_say(delta: float) -> None:
    """With counts at their means: not above the bound at the means, and within a few deviations of it."""
    first, second = [731_100, 268_900, 0], [268_900, 731_100, 0]
    found = proposed(bins_of(2), table(first, second), Goal(ApproximateDP(1.0, delta), 100_000, 0.05))
    bound = epsilon_lower(CoinFlip(36_555, 13_445, 50_000, 50_000), delta, 0.05)
    assert bound - 0.02 < found.score <= bound + 0.003


def test_an_event_that_the_other_side_never_showed_stays_clear_of_its_edge() -> None:
    """All of P beyond 50 is new; the event is the part of it that lies well inside."""
    first, second = np.zeros(201, np.int64), np.zeros(201, np.int64)
    first[:200], second[:150] = 50, 67
    found = proposed(bins_of(200), table(first, second))
    assert found.p_side == "first"
    (low, high) = found.event.intervals[0]
    assert high == math.inf
    assert 150 <= low < 155  # beyond 149 nothing was seen of the other side: clear of it by one cell, and hardly more


def test_a_planted_token_is_named() -> None:
    found = proposed(bins_of(1, tokens=3), table([0, 4000, 5000, 1000, 0], [0, 5000, 4900, 100, 0]))
    assert [each.label for each in found.event.tokens] == ["'c'"]
    assert (found.p_side, found.event.intervals) == ("first", ())


@settings(derandomize=True, deadline=None, max_examples=80)
@given(numbers=st.integers(1, 6), tokens=st.integers(0, 4), data=st.data(), delta=st.sampled_from([0.0, 1e-3, 0.2]))
def test_an_event_never_names_what_was_not_seen(numbers: int, tokens: int, data: st.DataObject, delta: float) -> None:
    """The cell of tokens that no pilot showed has no name: however much it gives away, no event holds it.

    And every event has a score, a side, cells that are there, and hits.
    """
    cells = numbers + tokens + 1
    counts = np.array(
        data.draw(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 5000)), min_size=cells, max_size=cells)),
        np.int64,
    )
    counts[-1] = data.draw(st.sampled_from([(0, 0), (9000, 0), (0, 9000)]))
    bins = bins_of(numbers, tokens)
    found = propose(FEATURE, bins, counts, Goal(ApproximateDP(1.0, delta), 100_000, 0.05))
    if found is None:
        return
    assert math.isfinite(found.score)
    assert {each.code for each in found.event.tokens} <= {each.code for each in bins.tokens}
    edges = {-math.inf, math.inf, *map(float, bins.edges)}
    assert all(low in edges and high in edges and low < high for low, high in found.event.intervals)
    named = [j for j, each in enumerate(bins.tokens) if each in found.event.tokens]
    middles = [edge - 0.5 for edge in range(numbers - 1)] + [numbers + 9.0]
    held = [j for j, value in enumerate(middles) if any(low < value <= high for low, high in found.event.intervals)]
    inside = counts[[*held, *(bins.bins + j for j in named)]].sum(axis=0)
    assert inside.sum() >= FEWEST_HITS / 2


@for_each("cell", [0, 1])
def test_too_few_hits_are_no_event(cell: int) -> None:
    counts = table([0, 0, 0], [0, 0, 0])
    counts[cell] = (FEWEST_HITS - 1, 0)
    assert propose(FEATURE, bins_of(2), counts, GOAL) is None


CELLS, RUNS = 400, 50_000
BINS = Binning(np.arange(1, CELLS, dtype=np.float32))
CERTIFIED = Goal(PureDP(1.0), 200_000, 0.001)
EVEN = np.full(CELLS, 1.0 / CELLS)
STEP = np.where(np.arange(CELLS) < CELLS // 2, 0.9, 1.1)  # the ratio is the same on either side of the middle


def drawn(p: Reals, q: Reals, seed: int) -> Integers:
    rng = np.random.default_rng(seed)
    sides = [rng.multinomial(RUNS, law / law.sum()) for law in (p, q)]
    return np.vstack([np.stack(sides, axis=1), np.zeros((1, 2), np.int64)])


def true_bound(found: Proposal, p: Reals, q: Reals) -> float:
    """What the certificate is expected to show."""
    inside = cells_inside(BINS, found.event)
    x, y = (np.array([RUNS * law[inside].sum() / law.sum()]) for law in (p, q))
    x, y = (x, y) if found.p_side == "first" else (y, x)
    return float(CERTIFIED.scores(x, y, RUNS, RUNS, 0.0)[0])


@pytest.mark.long
def test_a_lucky_set_is_not_taken_for_a_step() -> None:
    """Half of the values have the ratio 1.1, the others 0.9: ten tables, of which the set of all lucky ones is no leak.

    The best event, one half, shows 0.076. Seeded; over 40 other tables the mean is 0.073 and the least -0.02.
    """
    for p, q in ((EVEN * STEP, EVEN), (EVEN, EVEN * STEP)):
        found = [proposed(BINS, drawn(p, q, seed), CERTIFIED) for seed in range(10)]
        assert np.mean([true_bound(each, p, q) for each in found]) > 0.06


def test_values_that_tell_are_found_wherever_they_are() -> None:
    law = EVEN * np.where(np.arange(CELLS) % 40 == 7, 4.0, 1.0)  # ten of them, far apart
    for seed in range(3):
        found = proposed(BINS, drawn(law, EVEN, seed), CERTIFIED)
        assert np.all(cells_inside(BINS, found.event) % 40 == 7)
        assert true_bound(found, law, EVEN) > 1.0  # of ln 4 less the certificate's errors


def test_null_equal_laws_give_next_to_nothing() -> None:
    for seed in range(5):
        found = propose(FEATURE, BINS, drawn(EVEN, EVEN, seed), CERTIFIED)
        assert found is None or found.score < 0.05


def test_empty_bins_belong_to_the_run_of_numbers_around_them() -> None:
    both = np.zeros(1_001)
    both[100:900:4] = 20.0
    both[500] = 5_000.0  # a bin of its own
    group, _ = groups_of(Binning(np.arange(1, 1_000, dtype=np.float32)), both)
    assert np.all(group[:499] >= 0)
    assert np.all(group[501:1_000] >= 0)
    assert np.count_nonzero(group == group[500]) == 1
    assert np.all(np.diff(group[:1_000]) >= 0)


def test_equal_ratios_do_not_exchange_a_common_set_for_a_rare_one() -> None:
    """Forty values with one ratio e^0.69 on either side, their masses from 0.2 to 1e-5.

    The order of equal ratios is luck, and a rare set that was lucky must not be taken for more. At 450,000 runs a side
    every set chosen shows at its true rates 0.6 of 0.69 or more (as a set of mass 0.02 does), and 0.67 on average.
    """
    values = np.arange(-20, 20)
    mass = 0.6 ** np.abs(values + 0.5)
    p, q = (mass * np.where(values >= 0, up, 3 - up) for up in (2, 1))
    p, q = p / p.sum(), q / q.sum()
    cells, goal, shown = Binning((values[:-1] + 0.5).astype(np.float32)), Goal(PureDP(0.5), 900_000, 1e-5), []
    for seed in range(80):
        proposal = proposed(cells, drawn(p, q, seed), goal)
        inside = np.array([any(low < value <= high for low, high in proposal.event.intervals) for value in values])
        likelier, rarer = (p, q) if proposal.p_side == "first" else (q, p)
        both, none = (np.array([law[inside].sum()]) for law in (likelier, rarer)), np.zeros(1)
        shown.append(float(goal.predicted(*both, Spread(none, none))[0]))
        assert shown[-1] > 0.6, (seed, str(proposal.event))
    assert np.mean(shown) > 0.66


HELD, ALL = 8_192, 500_000


def side(common: int, beyond: int, seed: int) -> Outputs:
    """Two numbers: the first is 1 in so many of the runs, the second beyond 10 in so many of those that judge."""
    rng = np.random.default_rng(seed)
    first, second = rng.permutation(np.arange(HELD) < common).astype(float), rng.random(HELD)
    second[np.arange(beyond) * (HELD // beyond) // 2 * 2 + 1] += 10.0
    return encode_objects(list(zip(first.tolist(), second.tolist(), strict=True)))


@for_each(("hits", "rarer"), [((1_500, 100), True), ((1_500, 450), False)])
def test_low_luck_of_a_rare_event_is_not_taken_for_what_it_is_worth(hits: tuple[int, int], rarer: bool) -> None:
    """By the outputs held it shows 1.0, as 12 runs against 4; another one shows 1.6, as 800 against 160."""
    pilot = Pilot(side(800, 12, 1), side(160, 4, 2))
    counts = np.array([[ALL - each for each in hits], hits, (0, 0)], np.int64)
    rare = Proposal(Event(Coordinate((1,)), ((10.0, np.inf),)), "first", "any", 2.4)
    goal = Goal(PureDP(2.0), 1_400_000, 0.001)
    found = together(rare, Binning(np.array([10.0], np.float32)), counts, (), pilot, goal)
    assert (found is None) == rarer
    assert found is None or found.event.feature == Coordinate((0,))


@for_each("seed", [44, 70, 76, 97, 147, 196])
def test_the_luckiest_of_many_conditions_does_not_replace_an_event(seed: int) -> None:
    """Eight numbers tell nothing, and a ninth that no condition is tried of has the ratio .03 : .024.

    Of 400 seeds these are six of the 24 whose event was exchanged where one deviation of luck was taken off; now none.
    """
    sides = []
    for number, rate in enumerate((0.03, 0.024)):
        rng = np.random.default_rng((seed, number))
        rows = rng.laplace(size=(HELD, 9))
        rows[:, 8] = rng.random(HELD) < rate
        sides.append(encode_batch(rows, HELD))
    counts = np.array([(194_000, 195_200), (6_000, 4_800), (0, 0)], np.int64)
    known = Proposal(Event(Coordinate((8,)), ((0.5, np.inf),)), "first", "any", 0.2)
    goal = Goal(PureDP(0.2), 2_000_000, 0.001)
    assert together(known, Binning(np.array([0.5], np.float32)), counts, (), Pilot(*sides), goal) is None


EDGES = np.linspace(-8.0, 9.0, 1_000)


def of_laplace(shift: float) -> Reals:
    """The mass of each cell between the edges: of Laplace noise of scale 1 around `shift`, and no token."""
    below = np.where(shift > EDGES, 0.5 * np.exp(EDGES - shift), 1.0 - 0.5 * np.exp(shift - EDGES))
    return np.diff(np.concatenate([[0.0], below, [1.0]]))


@for_each(("runs", "least"), [(10**6, 0.98), (10**8, 0.995)], nightly=[(10**5, 0.93), (10**7, 0.995), (10**9, 0.995)])
def test_more_runs_choose_no_worse_event(runs: int, least: float) -> None:
    """Hundreds of cells have the ratio e, and the luckiest of them must not be believed however well all are known.

    By the bound at the true rates, over that of a half line. The least of 40 other tables each, from 1e5 runs to 1e9:
    .979, .995, .999, .999 and .999; with a grid of fixed distances, as it was, .948, .915, .943, .977 and .990.
    """
    laws, bins = [of_laplace(shift) for shift in (1.0, 0.0)], Binning(EDGES.astype(np.float32))
    goal, half = Goal(PureDP(1.0), 3 * runs, 0.001), np.arange(1_001) > 529  # edges from 1 on
    best = [float(runs * law[half].sum()) for law in laws]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        counts = np.stack([np.append(rng.multinomial(runs // 2, law), 0) for law in laws], axis=1)
        found = propose(FEATURE, bins, counts, goal)
        inside = cells_inside(bins, found.event)
        hits = [float(runs * law[inside].sum()) for law in (laws if found.p_side == "first" else laws[::-1])]
        shown, known = (goal.scores(*np.array(each)[:, None], runs, runs, 0.0)[0] for each in (hits, best))
        assert shown >= least * known, (seed, str(found.event))


def lucky(runs: int, groups: list[Integers], deviations: float) -> Integers:
    """The expected counts of Laplace noise, but groups of cells that show more for the side that is likelier there."""
    counts = np.stack([np.append(np.rint(runs / 2 * law), 0) for law in map(of_laplace, (1.0, 0.0))], axis=1)
    for cells in groups:
        x, y = counts[cells].sum(axis=0)
        moved = math.exp(deviations * math.sqrt(1.0 / x + 1.0 / y))
        counts[cells, int(x > y)] = np.rint(counts[cells, int(x > y)] / moved)
    return counts.astype(np.int64)


def test_three_lucky_runs_of_numbers_among_hundreds_are_not_taken_for_a_better_event() -> None:
    """Two of them in other folds vouch for the third: a cell of .02 was chosen before the half line."""
    bins = Binning(EDGES.astype(np.float32))
    group, _ = groups_of(bins, lucky(2_500_000, [], 0.0).sum(axis=1).astype(float))
    cells = [np.flatnonzero(group == group[440] + more) for more in (0, 1, 6)]
    found = proposed(bins, lucky(2_500_000, cells, 3.5), Goal(PureDP(1.0), 7_500_000, 0.001))
    assert math.inf in map(abs, found.event.intervals[0])


@for_each(("deviations", "more"), [(0.0, False), (2.7, True)])
def test_a_search_does_not_end_early_where_luck_decides(deviations: float, more: bool) -> None:
    """A tail from 3 on has the ratio of the half line, or by luck more; its mirror is a search that is over."""
    bins = Binning(EDGES.astype(np.float32))
    counts = lucky(1_000_000, [np.flatnonzero(np.arange(1_001) > np.searchsorted(EDGES, 3.0))], deviations)
    chosen = SearchPlan(Tables(((FEATURE, bins),)), (False,), ())
    now = Snapshot(Goal(PureDP(1.0), 9_000_000, 0.001), runs=1_000_000, plan=chosen, counts=counts)
    assert worth(now, 1_500_000) == more


@for_each(("scale", "part", "more"), [(1, 1.0, True), (10_000, 1.0, False), (10_000, 0.0, True)])
def test_a_search_of_many_runs_goes_on_for_no_slight_hope(
    scale: int, part: float, more: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Luck of 2.7 deviations moves the event at a million runs; at 10,000 million it is below a two-thousandth of it,
    and without that rule search would go on.
    """
    monkeypatch.setattr(look, "SLIGHT", part * look.SLIGHT)
    bins = Binning(EDGES.astype(np.float32))
    counts = lucky(1_000_000 * scale, [np.flatnonzero(np.arange(1_001) > np.searchsorted(EDGES, 3.0))], 2.7)
    chosen = SearchPlan(Tables(((FEATURE, bins),)), (False,), ())
    goal = Goal(PureDP(1.0), 9_000_000 * scale, 0.001)
    now = Snapshot(goal, runs=1_000_000 * scale, plan=chosen, counts=counts)
    assert worth(now, 1_500_000 * scale) == more


def test_the_luck_of_ten_events_is_that_of_the_luckiest_of_them() -> None:
    """It is told as a number, as nothing is computed where a module is imported."""
    assert float(luckiest(np.array(10.0))) == pytest.approx(OF_TEN_Z, abs=0.005)


def test_a_common_value_takes_no_rare_event_s_place() -> None:
    """Of 62 outputs of the event among those held, luck is as large as what is seen of nine outputs in ten."""
    sides = []
    for others, late in ((0.1, 40), (0.65, 22)):
        rows = np.zeros((1 << 14, 2))
        rows[: int(others * len(rows)), 0] = 1.0
        rows[-late:, 1] = 5.5 + np.arange(late) / 100.0
        sides.append(encode_batch(rows, len(rows)))
    rare = Proposal(Event(Expression("minus", ((1,), (0,))), ((5.0, np.inf),)), "first", "any", 2.2)
    assert pointed(rare, Pilot(*sides), Goal(PureDP(1.0), 9_000_000, 0.001)) == rare


def test_more_is_hoped_of_more_runs_and_none_of_what_is_known() -> None:
    """Of rare values that part the sides: no belief moves that is sure, nor any that is far behind the best event."""
    counts = table([4_000, 300, 250, 5_450, 0], [4_000, 120, 90, 5_790, 0])
    bins = bins_of(4)
    gain, best = hoped(bins, counts, GOAL, 0.5)
    sure, other = hoped(bins, 1_000 * counts, GOAL, 0.5)
    assert 0.0 <= sure < gain < best.deviation, "what is known a thousand times better moves less"
    assert other.deviation < best.deviation
    more = [hoped(bins, counts, GOAL, part)[0] for part in (0.1, 0.5, 0.9)]
    assert more == sorted(more)
    lone = hoped(bins, counts, GOAL, 0.5, best=replace(best, bound=best.bound + 20.0 * best.deviation))
    assert lone[0] < 1e-6, "nothing comes near an event that is so much better"
    assert hoped(bins, 0 * counts, GOAL, 0.5) == (0.0, Standing())
