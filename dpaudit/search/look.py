"""One pair as search sees it: outputs held up to a bound, then counts of the features that were chosen on them.

Whether more search runs are worth the certifying runs that they cost is decided by search outputs alone (`worth`): by
what an event that is not the best one now is expected to be better by, and what a score learned anew would lack less.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpaudit.base.arrays import Integers
from dpaudit.claims import Claim
from dpaudit.events.features import Coordinate
from dpaudit.events.scores import Binning, LogRatio
from dpaudit.execution.engine import Session, Thought
from dpaudit.outputs.canonical import FEWEST_HELD, MOST_HELD, Outputs, Pilot, room_for
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
    SearchPlan,
    asked,
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
SLIGHT = 5e-4  # part of a bound for which no search goes on, however little it would cost to certify with fewer runs
SHARED = 0.5  # of the luck in a bound is not that of another event on the same outputs

SEARCH_SHARE = 0.25  # where it is open: about what is expected to search
PILOT_RUNS = 1 << 15  # outputs of a pair that screening holds, and that others than search look at
PILOT_SHARD = 1 << 12
COUNT_SHARD, MANY_SHARDS = 1 << 13, 64  # runs of a shard that is counted, at least, and how many shards there may be
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
NO_OUTPUTS = Pilot(Outputs(0, {}), Outputs(0, {}))
NO_PLAN = SearchPlan(Tables(()), (), ())

Candidate = Proposal | PartitionProposal  # what could witness a pair: an event, or a partition where bins certify


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What search knows of one pair: a value, of which each step makes the next one, or none where time ends it.

    Outputs are held, as far as there is room; the first of them choose the features. Learned scores are judged on runs
    that did not teach them, whether these are held or counted as they come (`crossfit`).
    """

    goal: Goal  # what the event is for
    pilot: Pilot = NO_OUTPUTS  # the outputs held
    shown: Pilot = NO_OUTPUTS  # the first of them, for others than search
    runs: int = 0
    plan: SearchPlan = NO_PLAN
    counts: Integers = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    terms: tuple[Integers, ...] = ()
    folds: tuple[Folds, ...] = ()
    before: SearchPlan | None = None  # whose features stay
    every: bool = False  # whether all features are to be counted
    fitted: int = 0  # outputs held that have taught and judged scores
    hurried: bool = False  # no more scores are learned
    settled: Proposal | None = None

    @property
    def chosen(self) -> bool:
        """Whether features are chosen."""
        return bool(self.plan.tables.features)

    @cached_property
    def best(self) -> Proposal | None:
        """The best event of what is counted."""
        return best(self.plan, self.counts, self.goal)

    def free(self, room: int) -> int:
        """How many outputs more are held at once: a few to see how large they are, then those that others look at."""
        already = self.pilot.runs
        if already != self.runs:
            return 0
        if not already:
            return min(room, FEWEST_HELD)
        room = min(room, room_for(self.pilot.first))
        return (PILOT_RUNS if already < PILOT_RUNS < room else room) - already

    def open(self) -> "Snapshot":
        """Before more outputs: they choose cells better, and are counted again; features, where the glance grows."""
        known = self.pilot.runs >= (PILOT_RUNS if self.every else SCREENED // 2)
        now = self.narrow(KEPT) if known and self.every else self
        return replace(now, before=now.plan if known else None, plan=NO_PLAN)

    def hold(self, fresh: Pilot) -> "Snapshot":
        """With more outputs."""
        pilot = Pilot.joined([self.pilot, fresh]) if self.pilot.runs else fresh
        shown = pilot if self.pilot.runs < PILOT_RUNS else self.shown
        return replace(self, pilot=pilot, shown=shown, runs=self.runs + fresh.runs)

    def choose(self, every: bool) -> "Snapshot":
        """With features, chosen for good on the outputs held; from now on all of them to be counted where `every`."""
        every = self.every or every
        keep = EVERY if every else KEPT
        plan, counts = planned(self.pilot, self.goal, keep=keep, before=self.before, scores=False, lines=False)
        return replace(self, every=every, plan=plan, counts=counts)

    def prepare(self, runs: int, keep: int) -> "Snapshot":
        """Ready to count so many runs: many of them the best few features, and scores learned from all there is."""
        now = (self.narrow(keep) if runs >= LEARN_FROM else self).cross_fit()
        if not runs:
            return now
        plan, counts, terms = relearned(now.plan, now.counts, now.terms, now.goal, [each.coded for each in now.folds])
        return replace(now, plan=plan, counts=counts, terms=terms)

    def narrow(self, keep: int) -> "Snapshot":
        """With the best few of the features."""
        plan, counts = narrowed(self.plan, self.counts, self.goal, keep=keep)
        return replace(self, plan=plan, counts=counts)

    def cross_fit(self) -> "Snapshot":
        """With scores learned and judged on the outputs held, where these are all and some of them have not been."""
        if self.hurried or not self.pilot.runs == self.runs != self.fitted:
            return self
        coded = [Coded.of(each, self.pilot) for each in self.plan.terms]
        terms = tuple(each.counts(np.ones(each.runs, np.bool_)) for each in coded)
        folds = tuple(folds for each in coded for folds in cross_fitted(each))
        judged = [(each.halves[0], each.bins, each.counts) for each in folds]
        lines = lines_judged(self.pilot) if self.plan.terms else []
        plan, counts = with_scores(self.plan, self.counts, [*judged, *lines])
        return replace(self, plan=plan, counts=counts, terms=terms, folds=folds, fitted=self.runs)

    @property
    def tables(self) -> Tables:
        """What is counted of more runs: the plan's features, and the terms of its scores."""
        return Tables(tuple(feature for each in (self.plan.tables, *self.plan.terms) for feature in each.features))

    def count(self, counts: Integers) -> "Snapshot":
        """With what `tables` count of more runs."""
        cells = [each.cells for each in (self.plan.tables, *self.plan.terms)]
        own, *more = np.split(counts, np.cumsum(cells)[:-1])
        terms = tuple(table + fresh for table, fresh in zip(self.terms, more, strict=True))
        return replace(self, counts=self.counts + own, terms=terms)

    def simplify(self) -> "Snapshot":
        """With two conditions that people can read in place of the best event, where they are about as good."""
        found = self.best
        if self.goal.bins or found is None or found.part is None or isinstance(found.event.feature, Coordinate):
            return self
        bins, table, _ = self.plan.counted(found.event.feature, self.counts)
        some = part_of(self.pilot, ENOUGH)
        simple = together(found, bins, table, self.plan.plainly, some, self.goal)
        return self if simple is None else replace(self, settled=simple)

    def again(self) -> Tables | None:
        """The score of the best event learned from all runs, and its own; None where none is to be settled."""
        if self.goal.bins or self.best is None or self.settled is not None:
            return None
        return learned_again(self.best, self.plan, self.terms, self.pilot)

    def settle(self, found: Proposal, again: Tables, table: Integers) -> "Snapshot":
        """With the best event on the score learned `again` where more runs, counted in `table`, agree."""
        return replace(self, settled=moved(found, self.plan, self.counts, again, table, self.goal))

    def candidate(self) -> Candidate | None:
        """The best event or partition; None where too little was seen of any."""
        now = self.cross_fit() if self.chosen else replace(self, before=None, every=False).choose(False)
        if now.goal.bins and (partition := best_partition(now.plan, now.counts, now.goal)) is not None:
            return partition
        single = now.settled or now.best
        return as_partition(single) if now.goal.bins and single is not None else single

    def last(self, candidate: Candidate | None) -> Candidate:
        """What is certified: the best, with whole numbers as such, or an output where nothing was seen often enough."""
        candidate = candidate or everything(self.pilot)
        if isinstance(candidate, PartitionProposal) or self.goal.bins:
            return as_partition(candidate) if isinstance(candidate, Proposal) else candidate
        return finished(candidate, self.pilot, self.goal)


def worth(now: Snapshot, more: int) -> bool:
    """Whether a search should have `more` runs, which its goal has to certify with now.

    The best event is what it would end with; the best score of the outputs held may come to be better. Before a quarter
    of the runs it does not end where with all luck taken off another event would be chosen.
    """
    proposal, runs = now.best, now.runs
    if proposal is None or now.goal.bins:
        return proposal is None
    later = replace(now.goal, runs=now.goal.runs - more)
    feature = proposal.event.feature
    bins, table, learned = now.plan.counted(feature, now.counts)
    bound = _value(proposal, bins, table, later)
    cost = max(_value(proposal, bins, table, now.goal) - bound, SLIGHT * bound)
    part = 1.0 - runs / (runs + more)
    if runs + more <= SEARCH_SHARE * (runs + now.goal.runs):  # it costs little to see whether it was luck
        sure = propose(feature, bins, table, later, thresholds_only=learned, luck=1.0)
        if sure is None or _value(sure, bins, table, later) < bound - cost:
            return True
    hope = _hope(now, proposal, later, part, cost + LEAST_HOPE)
    if hope > cost + LEAST_HOPE:
        return True
    own_kind = kind_of(feature) if isinstance(feature, LogRatio) else None
    kinds = [each for each in now.folds if kind_of(each.halves[0]) == own_kind] or now.folds
    judged = [(each, propose(each.halves[0], each.bins, each.counts, later, thresholds_only=True)) for each in kinds]
    values = [(_value(event, each.bins, each.counts, later), j) for j, (each, event) in enumerate(judged) if event]
    if values:
        value, j = max(values)
        folds, event = judged[j]
        assert event is not None
        behind = max(0.0, bound - value) if len(kinds) > 1 else 0.0
        lacking = _of_learning(event, folds, later) * folds.coded.runs / runs
        own = hope if len(kinds) == 1 else 0.0
        return own + lacking / 2.0 * part - behind > cost
    return False


def _hope(now: Snapshot, proposal: Proposal, goal: Goal, part: float, enough: float) -> float:
    """What another event may come to be worth beyond the best one, or a part of that which is more than `enough`.

    Any event of its feature is asked, and single values of others that promise most.
    """
    tables = now.plan.tables.split(now.counts)
    bins, table, learned = now.plan.counted(proposal.event.feature, now.counts)
    most, best = hoped(bins, table, goal, part, thresholds_only=learned)
    for place in asked(now.plan, tables, goal):
        feature, bins = now.plan.tables.features[place]
        if most <= enough and feature != proposal.event.feature:
            most = max(most, hoped(bins, tables[place], goal, part, best=best)[0])
    return most


def _value(proposal: Proposal, bins: Binning, table: Integers, goal: Goal) -> float:
    """The bound that an event is worth by these counts, luck left in."""
    inside = table[cells_inside(bins, proposal.event)].sum(axis=0)
    return _bound(inside, table.sum(axis=0), proposal.p_side, goal)


def _bound(inside: Integers, runs: Integers, p_side: str, goal: Goal) -> float:
    p = 0 if p_side == "first" else 1
    x, y = (np.array([float(inside[side])]) for side in (p, 1 - p))
    return max(0.0, float(goal.scores(x, y, int(runs[p]), int(runs[1 - p]), 0.0)[0]))


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


class Look:
    """Makes the search runs of one pair; `now` is what they have shown so far.

    `pair` is the index of the pair in the session, whose runs come in shards of `shard_runs` at the most. Shards are
    numbered from `start`, so that two looks at pairs of the same index need not share a stream.
    """

    def __init__(
        self, session: Session, pair: int, goal: Goal, *, shard_runs: int, least_shard: int = 0, start: int = 0
    ) -> None:
        self.session, self.pair, self.shard_runs = session, pair, shard_runs
        self.least_shard = max(COUNT_SHARD, least_shard)
        self.now = Snapshot(goal)
        self._next = start

    def hold(self, runs: int, *, room: int = PILOT_RUNS) -> int:
        """Holds up to `runs` more outputs, at most `room` in all; returns the number of runs made.

        None is made once runs were counted. The first call makes a few at least.
        """
        runs, total = max(runs, 0 if self.now.runs else FEWEST_RUNS), 0
        while total < runs and (free := self.now.free(room)) > 0:
            ready = self._think(Snapshot.open) if self.now.chosen else self.now
            fresh = self.session.pilot(self._work(min(runs - total, free), min(PILOT_SHARD, free)))
            self.now = ready.hold(fresh)
            total += fresh.runs
        return total

    def choose(self, *, every: bool = False) -> None:
        """Chooses the features where they are not chosen yet; all of them to be counted where `every`."""
        if not self.now.chosen:
            self.now = self._think(Snapshot.choose, every)

    def count(self, runs: int) -> int:
        """Counts `runs` more runs, which teach scores and judge those taught by earlier runs; returns the runs made."""
        left = runs = max(runs, 0)
        self.choose(every=runs >= LEARN_FROM)
        self.now = self._think(Snapshot.prepare, left, WIDE)
        while left > 0:
            some = left if left <= 2 * GROWTH * self.now.runs else GROWTH * self.now.runs
            counts = self._count(some, self.now.tables)
            self.now, left = self.now.count(counts), left - some
            if left > 0:
                self.now = self._think(Snapshot.prepare, left, KEPT)
        return runs

    def close(self, pool: int, share: float | None, fitting: Callable[[int], int]) -> int:
        """The close look, with `pool` runs to search and then to certify with; returns the runs made.

        A part `share` of them searches; where it is None, as much as is worth the certifying runs (`worth`). `fitting`
        says how many of the runs that are left there is time for.
        """
        before = self.now.runs
        parts = [share * (1.0 - SETTLE_PART)] if share else [*ends(pool)]
        total = self.hold(int(FIRST_PART * parts[0] * pool), room=MOST_HELD)
        pool = total + fitting(pool - total)
        self.now = replace(self.now, every=self.now.every or parts[-1] * pool - total >= LEARN_FROM)
        for end, after in zip(parts, [*parts[1:], None], strict=True):
            total += self.hold(int(end * pool) - total, room=MOST_HELD)
            total += self.count(int(end * pool) - total)
            if share is None:
                self.aim(replace(self.now.goal, runs=max(1, pool - total)))
                if after is not None and not self._think(worth, int(after * pool) - total):
                    break
        self._settle(int(share * pool) - total if share else int(SETTLE_PART * total))
        return self.now.runs - before

    def aim(self, goal: Goal) -> None:
        """From here on the event is for this goal."""
        self.now = replace(self.now, goal=goal)

    def proposal(self) -> Candidate | None:
        """The best event or partition so far; None where too little was seen of any."""
        return self._think(Snapshot.candidate)

    def hasty(self) -> Candidate | None:
        """The same where there was no time for it: without scores that are not learned yet."""
        self.now = replace(self.now, hurried=True, every=False)
        self.choose()
        return self.proposal()

    def _settle(self, runs: int) -> None:
        """Puts an event that people can read in place of the best one, or one on a score learned from all runs."""
        self.now = self._think(Snapshot.simplify)
        again = self._think(Snapshot.again) if runs > 0 else None
        if again is not None:
            found, table = self.now.best, self._count(runs, again)
            self.now = self._think(Snapshot.settle, found, again, table)

    def _think(self, step: Callable[..., Thought], *given: Any) -> Thought:
        """What a step makes of what is known now; where time ends it, that stays."""
        return self.session.thinking(step, self.now, *given)

    def _count(self, runs: int, tables: Tables) -> Integers:
        """What tables count of so many more runs."""
        counts = self.session.counts(self._work(runs, max(self.least_shard, runs // MANY_SHARDS)), tables)
        self.now = replace(self.now, runs=self.now.runs + runs)
        return counts

    def _work(self, runs: int, largest: int) -> list[Shard]:
        largest = min(self.shard_runs, largest)
        work = self.session.grid(Stage.SEARCH, self.pair, runs, largest, start=self._next, done=self.now.runs)
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
