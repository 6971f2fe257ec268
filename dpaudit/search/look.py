"""One pair as search sees it: outputs held up to a bound, then counts of the features that were chosen on them.

Whether more search runs are worth the certifying runs that they cost is decided by search outputs alone (`worth`).
What a choice by `n` runs lacks of the best bound falls about as 1 / n. So it is estimated by halves: a choice by a
quarter of the runs and one by a half are judged on the other half, and what the larger one is better by is twice what
all runs still lack (the learning curve, Cortes et al. 1994).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpaudit.base.arrays import Integers
from dpaudit.claims import Claim
from dpaudit.events.features import Coordinate, Feature
from dpaudit.events.scores import Binning, LogRatio
from dpaudit.execution.engine import Session
from dpaudit.outputs.canonical import FEWEST_HELD, MOST_HELD, Pilot, room_for
from dpaudit.results.observations import Explored
from dpaudit.running.streams import Shard, Stage
from dpaudit.search.binning import Tables
from dpaudit.search.crossfit import (
    Coded,
    Folds,
    cross_fitted,
    kind_of,
    learned_again,
    lines_judged,
    moved,
    relearned,
)
from dpaudit.search.explore import (
    ENOUGH,
    KEPT,
    SCREENED,
    SPLITS,
    SearchPlan,
    best,
    everything,
    narrowed,
    part_of,
    planned,
    with_scores,
)
from dpaudit.search.goal import Goal
from dpaudit.search.grouping import PartitionProposal, as_partition, best_partition
from dpaudit.search.learning import log_ratio
from dpaudit.search.plainer import finished, together
from dpaudit.search.selection import Proposal, cells_inside, hoped, propose

LEAST_HOPE = 1e-6  # of a bound: where there is nothing to lose, hardly any is enough
SHARED = 0.5  # of the luck in a bound is not that of another event on the same outputs


def worth(
    proposal: Proposal | None,
    chosen: SearchPlan,
    counts: Integers,
    scores: Sequence[Folds],
    goal: Goal,
    runs: int,
    more: int,
) -> bool:
    """Whether a search of `runs` runs should have `more`, which `goal` has to certify with now.

    `found` is what it would end with; `scores` are those of the outputs held, the best of which may come to be better.
    """
    if proposal is None or goal.bins:
        return proposal is None
    later = replace(goal, runs=goal.runs - more)
    feature = proposal.event.feature
    bins, table, learned = chosen.counted(feature, counts)
    now = _value(proposal, bins, table, later)
    cost = _value(proposal, bins, table, goal) - now
    # a single value that was hardly seen yet may be worth more than all that is known
    sure = max(0.0, min(now, goal.rank(proposal.score, proposal.delta)))
    if _hope(proposal, chosen, counts, later, sure) * (1.0 - runs / (runs + more)) > cost + LEAST_HOPE:
        return True
    gains = [_of_choice(feature, bins, table, later, learned=learned)]
    own_kind = kind_of(feature) if isinstance(feature, LogRatio) else None
    kinds = [each for each in scores if kind_of(each.halves[0]) == own_kind] or scores
    judged = [(each, propose(each.halves[0], each.bins, each.counts, later, thresholds_only=True)) for each in kinds]
    values = [(_value(event, each.bins, each.counts, later), j) for j, (each, event) in enumerate(judged) if event]
    if values:
        value, j = max(values)
        folds, event = judged[j]
        assert event is not None
        behind = max(0.0, now - value) if len(kinds) > 1 else 0.0
        lacking = _of_learning(event, folds, later) * folds.coded.runs / runs
        own = gains[0] if len(kinds) == 1 else 0.0
        gains.append(own + lacking - 2.0 * behind / (1.0 - runs / (runs + more)))
    return max(gains) / 2.0 * (1.0 - runs / (runs + more)) > cost


def _hope(proposal: Proposal, chosen: SearchPlan, counts: Integers, goal: Goal, value: float) -> float:
    """What values outside the event may be worth beyond it; those of learned scores are in order already."""
    most = 0.0
    tables = zip(chosen.tables.features, chosen.tables.split(counts), chosen.learned, strict=True)
    for (feature, bins), table in ((each, table) for each, table, learned in tables if not learned):
        known = cells_inside(bins, proposal.event) if feature == proposal.event.feature else np.zeros(0, np.intp)
        most = max(most, hoped(bins, table, goal, value, known))
    return most


def _value(proposal: Proposal, bins: Binning, table: Integers, goal: Goal) -> float:
    """The bound that an event is worth by these counts, luck left in."""
    inside = table[cells_inside(bins, proposal.event)].sum(axis=0)
    return _bound(inside, table.sum(axis=0), proposal.p_side, goal)


def _bound(inside: Integers, runs: Integers, p_side: str, goal: Goal) -> float:
    p = 0 if p_side == "first" else 1
    x, y = (np.array([float(inside[side])]) for side in (p, 1 - p))
    return max(0.0, float(goal.scores(x, y, int(runs[p]), int(runs[1 - p]), 0.0)[0]))


def _of_choice(feature: Feature, bins: Binning, table: Integers, goal: Goal, *, learned: bool) -> float:
    """What the choice of cells by half of the counts is better by than that by a quarter."""
    rng, gains = np.random.default_rng(int(table.sum())), []
    for _ in range(SPLITS):
        half = rng.binomial(table, 0.5)
        for one, other in ((half, table - half), (table - half, half)):
            events = [
                propose(feature, bins, part, goal, thresholds_only=learned, closely=False)
                for part in (one, rng.binomial(one, 0.5))
            ]
            better, worse = (0.0 if event is None else _value(event, bins, other, goal) for event in events)
            gains.append(better - worse)
    return _not_negative(float(np.mean(gains)), float(np.std(gains, ddof=1)) / np.sqrt(len(gains)))


def _of_learning(proposal: Proposal, folds: Folds, goal: Goal) -> float:
    """What the score learned from half of the outputs is better by than that from a quarter, at the event's mass."""
    coded, total, luck = folds.coded, 0.0, 0.0
    low, high = proposal.event.intervals[0]
    for number, half in enumerate(folds.halves):
        quarter = log_ratio(coded.terms, coded.counts(coded.part(number, 4)), pooled=half.pooled)
        rest = coded.part(1 - number, 2)
        sides = [coded.scored(each, rest) for each in (half, quarter)]
        inside = np.array([np.count_nonzero((side > low) & (side <= high)) for side in sides[0]])
        mass = int(inside.sum())
        if not mass:
            continue
        luck += float((1.0 / (inside + 0.5)).sum())
        for pair, sign in zip(sides, (1.0, -1.0), strict=True):
            both = np.sort(np.concatenate(pair))
            edge = both[-mass] if high == np.inf else both[mass - 1]
            hits = [int(np.count_nonzero(side >= edge if high == np.inf else side <= edge)) for side in pair]
            runs = np.array([len(side) for side in pair])
            total += sign * _bound(np.array(hits), runs, proposal.p_side, goal)
    return _not_negative(total / 2.0, SHARED * np.sqrt(luck) / 2.0)


def _not_negative(seen: float, deviation: float) -> float:
    """What is expected of a gain, seen with a normal error, that cannot be negative."""
    from scipy.special import log_ndtr

    if deviation <= 0.0:
        return max(0.0, seen)
    z = seen / deviation
    return seen + deviation * float(np.exp(-(z**2) / 2.0 - log_ndtr(z)) / np.sqrt(2.0 * np.pi))


SEARCH_SHARE = 0.25  # where it is open: about what is expected to search
PILOT_RUNS = 1 << 15  # outputs of a pair that screening holds, and that others than search look at
PILOT_SHARD = 1 << 12
EVERY = 1 << 10  # more features than there are
LEARN_FROM = 1 << 17  # runs to come, from which all features are counted first
GROWTH = 3  # times as many runs as there were: the next that are counted, which judge what those before taught
WIDE = 16  # features that are left after the first of these
SHARES = (0.05, 0.1, 0.25, 0.5)  # of the runs of a pair, after which a search may end
PLENTY = 1 << 17  # runs of which the first of these may be enough; else it takes a quarter
FIRST_PART = 0.5  # of a search whose share is given: chooses the features
SETTLE_PART = 0.06  # of a search: judges the score learned last
SHOWN = 12  # features of a pair that the result lists
FEWEST_RUNS = 2  # of one look: each side is likely to have an output at all


Candidate = Proposal | PartitionProposal  # what could witness a pair: an event, or a partition where bins certify


class Look:
    """What the search runs of one pair have shown so far.

    `pair` is the index of the pair in the session, whose runs come in shards of `shard_runs` at the most; `goal` says
    what the event is for, and may change. Shards are numbered from `start`, so that two looks at pairs of the same
    index need not share a stream.

    Outputs are held, as far as there is room; the first of them choose the features. Learned scores are judged on runs
    that did not teach them, whether these are held or counted as they come (`crossfit`).
    """

    def __init__(self, session: Session, pair: int, goal: Goal, *, shard_runs: int, start: int = 0) -> None:
        self.session, self.pair, self.goal, self.shard_runs = session, pair, goal, shard_runs
        self.runs = 0
        self.plan: SearchPlan | None = None
        self._pilot: Pilot | None = None
        self._counts: Integers = np.zeros(0, np.int64)
        self._terms: list[Integers] = []
        self._folds: list[Folds] = []
        self._before: SearchPlan | None = None  # whose features stay
        self._every = False  # whether all features are to be counted
        self._fitted = 0  # outputs held that have taught and judged scores
        self._settled: Proposal | None = None
        self.hurried = False  # no more scores are learned
        self._latest: tuple[Integers, Goal, Proposal | None] | None = None  # the best event of these counts
        self._next = start
        self._shown: Pilot | None = None

    @property
    def shown(self) -> Pilot:
        """The first of the outputs held, for others than search."""
        assert self._shown is not None, "a look begins with outputs"
        return self._shown

    @property
    def pilot(self) -> Pilot:
        """The outputs held."""
        assert self._pilot is not None, "a look begins with outputs"
        return self._pilot

    def hold(self, runs: int, *, room: int = PILOT_RUNS) -> int:
        """Holds up to `runs` more outputs, at most `room` in all; returns the number of runs made.

        None is made once runs were counted. The first call makes a few at least.
        """
        runs, total = max(runs, 0 if self._pilot is not None else FEWEST_RUNS), 0
        while total < runs and (some := min(runs - total, self._free(room))) > 0:
            fresh = self.session.pilot(self._work(some, min(PILOT_SHARD, self._free(room))))
            self.runs += fresh.runs
            already = 0 if self._pilot is None else self._pilot.runs
            few = already < PILOT_RUNS
            self._pilot = fresh if self._pilot is None else Pilot.joined([self._pilot, fresh])
            self._shown = self._pilot if few else self._shown
            total += fresh.runs
            if self.plan is not None:
                # more outputs choose cells better, and are counted again; features, where the glance at them grows
                known = already >= (PILOT_RUNS if self._every else SCREENED // 2)
                if known and self._every:
                    self._narrow(KEPT)
                self._before, self.plan = (self.plan if known else None), None
        return total

    def _free(self, room: int) -> int:
        """How many outputs more are held at once: a few to see how large they are, then those that others look at."""
        if self._pilot is None:
            return min(room, FEWEST_HELD)
        already = self._pilot.runs
        if already != self.runs:
            return 0
        room = min(room, room_for(self._pilot.first))
        return (PILOT_RUNS if already < PILOT_RUNS < room else room) - already

    def choose(self, *, every: bool = False) -> SearchPlan:
        """The features, chosen for good on the outputs held; all of them to be counted where `every`."""
        if self.plan is None:
            self._every = self._every or every
            keep = EVERY if self._every else KEPT
            asked: Any = {"keep": keep, "before": self._before, "scores": False, "lines": False}
            self.plan, self._counts = self.session.thinking(planned, self.pilot, self.goal, **asked)
        return self.plan

    def count(self, runs: int) -> int:
        """Counts `runs` more runs, which teach scores and judge those taught by earlier runs; returns the runs made."""
        left = runs = max(runs, 0)
        self.choose(every=runs >= LEARN_FROM)
        if runs >= LEARN_FROM:
            self._narrow(WIDE)
        if left:
            self._cross_fit(self.choose())
        while left > 0:
            some = left if left <= 2 * GROWTH * self.runs else GROWTH * self.runs
            now = self.choose(), self._counts, self._terms, self.goal, self.pilot
            self.plan, self._counts = self.session.thinking(relearned, *now)
            self._count(some)
            left -= some
            if left >= LEARN_FROM:
                self._narrow(KEPT)
        return runs

    def close(self, pool: int, share: float | None, fitting: Callable[[int], int]) -> int:
        """The close look, with `pool` runs to search and then to certify with; returns the runs made.

        A part `share` of them searches; where it is None, as much as is worth the certifying runs (`worth`). `fitting`
        says how many of the runs that are left there is time for.
        """
        before = self.runs
        parts = [share * (1.0 - SETTLE_PART)] if share else [*ends(pool)]
        total = self.hold(int(FIRST_PART * parts[0] * pool), room=MOST_HELD)
        pool = total + fitting(pool - total)
        self._every = self._every or parts[-1] * pool - total >= LEARN_FROM
        for end, after in zip(parts, [*parts[1:], None], strict=True):
            total += self.hold(int(end * pool) - total, room=MOST_HELD)
            total += self.count(int(end * pool) - total)
            if share is None:
                self.goal = replace(self.goal, runs=max(1, pool - total))
                if after is not None and not self._worth(int(after * pool) - total):
                    break
        self._settle(int(share * pool) - total if share else int(SETTLE_PART * total))
        return self.runs - before

    def _worth(self, more: int) -> bool:
        proposal, chosen = self._best()
        counts = self._counts, self._folds
        return self.session.thinking(worth, proposal, chosen, *counts, self.goal, self.runs, more)

    def _best(self) -> tuple[Proposal | None, SearchPlan]:
        """The best event, and the plan with the scores that there are now."""
        chosen = self._cross_fit(self.choose())
        if self._latest is None or self._latest[0] is not self._counts or self._latest[1] != self.goal:
            now = self._counts, self.goal
            self._latest = *now, self.session.thinking(best, chosen, *now)
        return self._latest[2], chosen

    def _cross_fit(self, chosen: SearchPlan) -> SearchPlan:
        """Scores learned and judged on the outputs held, where these are all and some of them have not been."""
        if self.pilot.runs == self.runs != self._fitted and not self.hurried:
            self._terms, self._folds, (self.plan, self._counts) = self.session.thinking(self._scored, chosen)
            self._fitted = self.runs
        assert self.plan is not None
        return self.plan

    def _scored(self, chosen: SearchPlan) -> tuple[list[Integers], list[Folds], tuple[SearchPlan, Integers]]:
        coded = [Coded.of(each, self.pilot) for each in chosen.terms]
        terms = [each.counts(np.ones(each.runs, np.bool_)) for each in coded]
        folds = [folds for each in coded for folds in cross_fitted(each)]
        judged = [(each.halves[0], each.bins, each.counts) for each in folds]
        lines = lines_judged(self.pilot) if chosen.terms else []
        return terms, folds, with_scores(chosen, self._counts, [*judged, *lines])

    def _narrow(self, keep: int) -> None:
        now = self.choose(), self._counts, self.goal
        self.plan, self._counts = self.session.thinking(narrowed, *now, keep=keep)

    def _settle(self, runs: int) -> None:
        """Where the best event is on a log-ratio score: if these runs agree, the same on the score learned from all.

        Two conditions that people can read take its place where they are about as good.
        """
        proposal, chosen = self._best()
        if proposal is None or self.goal.bins:
            return
        if proposal.part is not None and not isinstance(proposal.event.feature, Coordinate):
            bins, table, _ = chosen.counted(proposal.event.feature, self._counts)
            asked = proposal, bins, table, chosen.plainly, part_of(self.pilot, ENOUGH), self.goal
            self._settled = self.session.thinking(together, *asked)
        if runs <= 0 or self._settled is not None:
            return
        again = self.session.thinking(learned_again, proposal, chosen, self._terms, self.pilot)
        if again is None:
            return
        table = self.session.counts(self._work(runs, self.shard_runs), again)
        self.runs += runs
        self._settled = self.session.thinking(moved, proposal, chosen, self._counts, again, table, self.goal)

    def _count(self, runs: int) -> None:
        """Counts the plan's features, and the terms of its scores, on `runs` more runs."""
        assert self.plan is not None
        own = self.plan.tables
        more = [feature for each in self.plan.terms for feature in each.features]
        counts = self.session.counts(self._work(runs, self.shard_runs), Tables((*own.features, *more)))
        self.runs += runs
        cells = own.cells
        self._counts = self._counts + counts[:cells]
        for number, each in enumerate(self.plan.terms):
            self._terms[number] = self._terms[number] + counts[cells : cells + each.cells]
            cells += each.cells

    def proposal(self) -> Candidate | None:
        """The best event or partition so far; None where too little was seen of any."""
        if self.plan is None:
            early = self.session.thinking(planned, self.pilot, self.goal, scores=False, lines=False)
            return self.session.thinking(self._proposal, *early)
        if not self.goal.bins:
            return self._settled or self._best()[0]
        return self.session.thinking(self._proposal, self._cross_fit(self.choose()), self._counts)

    def hasty(self) -> Candidate | None:
        """The same where there was no time for it: without scores that are not learned yet."""
        self.hurried, self._every = True, False
        self.choose()
        return self.proposal()

    def _proposal(self, chosen: SearchPlan, counts: Integers) -> Candidate | None:
        if self.goal.bins and (partition := best_partition(chosen, counts, self.goal)) is not None:
            return partition
        single = self._settled or best(chosen, counts, self.goal)
        return as_partition(single) if self.goal.bins and single is not None else single

    def last(self, candidate: Candidate | None) -> Candidate:
        """What is certified: the best, with whole numbers as such, or an output where nothing was seen often enough."""
        candidate = candidate or everything(self.pilot)
        if isinstance(candidate, PartitionProposal) or self.goal.bins:
            return as_partition(candidate) if isinstance(candidate, Proposal) else candidate
        return finished(candidate, self.pilot, self.goal)

    def _work(self, runs: int, largest: int) -> list[Shard]:
        largest = min(self.shard_runs, largest)
        work = self.session.grid(Stage.SEARCH, self.pair, runs, largest, start=self._next, done=self.runs)
        self._next += len(work)
        return work


def ends(pool: int) -> Iterator[float]:
    """The parts of `pool` runs after which a search may end."""
    return (each for each in SHARES if each * pool >= PLENTY or each >= SEARCH_SHARE)


def looked_at(chosen: SearchPlan, prefix: str = "") -> list[Explored]:
    """The features of a plan that a result lists."""
    return [
        Explored("feature", prefix + name, "looked at", None if score is None else round(score, 6))
        for name, score in chosen.looked_at[:SHOWN]
    ]


def excess(claim: Claim, distance: int, proposal: Candidate | None) -> float:
    """How far a predicted bound exceeds what the claim allows `distance` steps apart: in its parameter, per step.

    A promise that grows with the distance (k epsilon, k mu, k^2 rho) is divided by that growth, so that the same
    fraction of the promise counts alike at every distance, and what is left over are the errors of sampling, which
    are taken off the predicted bound and differ. -inf where there is no proposal, or no promise to exceed.

    >>> from dpaudit.claims import PureDP
    >>> from dpaudit.events import Event
    >>> from dpaudit.events.features import Whole
    >>> near, far = (Proposal(Event(Whole()), "first", "any", score) for score in (1.1, 2.1))
    >>> round(excess(PureDP(1.0), 1, near), 6), round(excess(PureDP(1.0), 2, far), 6)
    (0.1, 0.05)
    """
    if proposal is None:
        return -math.inf
    allowed = claim.at_distance(distance).promised(proposal.delta)
    if not math.isfinite(allowed):
        return -math.inf
    step = claim.promised(proposal.delta)
    growth = allowed / step if 0.0 < step < math.inf and allowed > 0.0 else float(distance)
    return float(proposal.score - allowed) / growth
