"""One pair as search sees it: outputs held up to a bound, then counts of the features that were chosen on them."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dpaudit.base.arrays import Integers
from dpaudit.claims import Claim
from dpaudit.events.features import Coordinate
from dpaudit.execution.engine import Session
from dpaudit.outputs.canonical import FEWEST_HELD, MOST_HELD, Pilot, room_for
from dpaudit.results.observations import Explored
from dpaudit.running.streams import Shard, Stage
from dpaudit.search.binning import Tables
from dpaudit.search.crossfit import Coded, Folds, cross_fitted, learned_again, lines_judged, moved, relearned
from dpaudit.search.explore import (
    ENOUGH,
    KEPT,
    SCREENED,
    Plan,
    best,
    everything,
    narrowed,
    part_of,
    planned,
    with_scores,
)
from dpaudit.search.goal import Goal
from dpaudit.search.grouping import PartitionProposal, as_partition, best_partition
from dpaudit.search.plainer import finished, together
from dpaudit.search.selection import Proposal
from dpaudit.search.worth import worth

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
        self.plan: Plan | None = None
        self._pilot: Pilot | None = None
        self._counts: Integers = np.zeros(0, np.int64)
        self._terms: list[Integers] = []
        self._folds: list[Folds] = []
        self._before: Plan | None = None  # whose features stay
        self._every = False  # whether all features are to be counted
        self._fitted = 0  # outputs held that have taught and judged scores
        self._settled: Proposal | None = None
        self.hurried = False  # no more scores are learned
        self._found: tuple[Integers, Goal, Proposal | None] | None = None  # the best event of these counts
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
        """Up to `runs` more outputs, until so many are held as there is `room` for; returns the runs made.

        None once others were counted. The first time, at least a few whatever was asked for.
        """
        runs, made = max(runs, 0 if self._pilot is not None else FEWEST_RUNS), 0
        while made < runs and (some := min(runs - made, self._free(room))) > 0:
            fresh = self.session.pilot(self._work(some, min(PILOT_SHARD, self._free(room))))
            self.runs += held(fresh)
            already = 0 if self._pilot is None else held(self._pilot)
            few = already < PILOT_RUNS
            self._pilot = fresh if self._pilot is None else Pilot.joined([self._pilot, fresh])
            self._shown = self._pilot if few else self._shown
            made += held(fresh)
            if self.plan is not None:
                # more outputs choose cells better, and are counted again; features, where the glance at them grows
                known = already >= (PILOT_RUNS if self._every else SCREENED // 2)
                if known and self._every:
                    self._narrow(KEPT)
                self._before, self.plan = (self.plan if known else None), None
        return made

    def _free(self, room: int) -> int:
        """How many outputs more are held at once: a few to see how large they are, then those that others look at."""
        if self._pilot is None:
            return min(room, FEWEST_HELD)
        already = held(self._pilot)
        if already != self.runs:
            return 0
        room = min(room, room_for(self._pilot.first))
        return (PILOT_RUNS if already < PILOT_RUNS < room else room) - already

    def choose(self, *, every: bool = False) -> Plan:
        """The features, chosen for good on the outputs held; all of them to be counted where `every`."""
        if self.plan is None:
            self._every = self._every or every
            keep = EVERY if self._every else KEPT
            asked: Any = {"keep": keep, "before": self._before, "scores": False, "lines": False}
            self.plan, self._counts = self.session.thinking(planned, self.pilot, self.goal, **asked)
        return self.plan

    def count(self, runs: int) -> int:
        """Counts so many more runs, which teach scores, and judge those that the runs before taught; the runs made."""
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
        made = self.hold(int(FIRST_PART * parts[0] * pool), room=MOST_HELD)
        pool = made + fitting(pool - made)
        self._every = self._every or parts[-1] * pool - made >= LEARN_FROM
        for end, after in zip(parts, [*parts[1:], None], strict=True):
            made += self.hold(int(end * pool) - made, room=MOST_HELD)
            made += self.count(int(end * pool) - made)
            if share is None:
                self.goal = replace(self.goal, runs=max(1, pool - made))
                if after is not None and not self._worth(int(after * pool) - made):
                    break
        self._settle(int(share * pool) - made if share else int(SETTLE_PART * made))
        return self.runs - before

    def _worth(self, more: int) -> bool:
        found, chosen = self._best()
        counts = self._counts, self._folds
        return self.session.thinking(worth, found, chosen, *counts, self.goal, self.runs, more)

    def _best(self) -> tuple[Proposal | None, Plan]:
        """The best event, and the plan with the scores that there are now."""
        chosen = self._cross_fit(self.choose())
        if self._found is None or self._found[0] is not self._counts or self._found[1] != self.goal:
            now = self._counts, self.goal
            self._found = *now, self.session.thinking(best, chosen, *now)
        return self._found[2], chosen

    def _cross_fit(self, chosen: Plan) -> Plan:
        """Scores learned and judged on the outputs held, where these are all and some of them have not been."""
        if held(self.pilot) == self.runs != self._fitted and not self.hurried:
            self._terms, self._folds, (self.plan, self._counts) = self.session.thinking(self._scored, chosen)
            self._fitted = self.runs
        assert self.plan is not None
        return self.plan

    def _scored(self, chosen: Plan) -> tuple[list[Integers], list[Folds], tuple[Plan, Integers]]:
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
        found, chosen = self._best()
        if found is None or self.goal.bins:
            return
        if found.part is not None and not isinstance(found.event.feature, Coordinate):
            bins, table, _ = chosen.counted(found.event.feature, self._counts)
            asked = found, bins, table, chosen.plainly, part_of(self.pilot, ENOUGH), self.goal
            self._settled = self.session.thinking(together, *asked)
        if runs <= 0 or self._settled is not None:
            return
        again = self.session.thinking(learned_again, found, chosen, self._terms, self.pilot)
        if again is None:
            return
        table = self.session.counts(self._work(runs, self.shard_runs), again)
        self.runs += runs
        self._settled = self.session.thinking(moved, found, chosen, self._counts, again, table, self.goal)

    def _count(self, runs: int) -> None:
        """Counts the plan's features on so many more runs, and the terms of its scores."""
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

    def _proposal(self, chosen: Plan, counts: Integers) -> Candidate | None:
        if self.goal.bins and (found := best_partition(chosen, counts, self.goal)) is not None:
            return found
        single = self._settled or best(chosen, counts, self.goal)
        return as_partition(single) if self.goal.bins and single is not None else single

    def last(self, found: Candidate | None) -> Candidate:
        """What is certified: the best, with whole numbers as such, or an output where nothing was seen often enough."""
        found = found or everything(self.pilot)
        if isinstance(found, PartitionProposal) or self.goal.bins:
            return as_partition(found) if isinstance(found, Proposal) else found
        return finished(found, self.pilot, self.goal)

    def _work(self, runs: int, largest: int) -> list[Shard]:
        largest = min(self.shard_runs, largest)
        work = self.session.grid(Stage.SEARCH, self.pair, runs, largest, start=self._next, done=self.runs)
        self._next += len(work)
        return work


def ends(pool: int) -> Iterator[float]:
    """The parts of so many runs after which a search may end."""
    return (each for each in SHARES if each * pool >= PLENTY or each >= SEARCH_SHARE)


def held(pilot: Pilot) -> int:
    """The outputs in it."""
    return pilot.first.runs + pilot.second.runs


def looked_at(chosen: Plan, prefix: str = "") -> list[Explored]:
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
