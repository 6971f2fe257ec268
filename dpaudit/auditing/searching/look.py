"""One pair as search sees it: outputs held up to a bound, then counts of the features that were chosen on them."""

from __future__ import annotations

import math

import numpy as np

from dpaudit.arrays import Integers
from dpaudit.claims import Claim
from dpaudit.events.search import (
    KEPT,
    Goal,
    PartitionProposal,
    Plan,
    Proposal,
    Tables,
    as_partition,
    best,
    best_partition,
    everything,
    learned_again,
    moved,
    narrowed,
    pilot_counts,
    plan,
    relearned,
    unlearned,
)
from dpaudit.outputs import Pilot, Sample
from dpaudit.results.beside import Explored
from dpaudit.sampling import Session, Stage, shards
from dpaudit.sampling.streams import Shard

PILOT_RUNS = 1 << 15  # outputs held at a time, whatever the number of runs
PILOT_SHARD = 1 << 12
EVERY = 1 << 10  # more features than there are
LEARN_FROM = 1 << 17  # runs to count from which a part chooses among all features, and learns the scores anew
WIDE_PART, LEARN_PART, SETTLE_PART = 0.1, 0.35, 0.06  # of them: to count every feature, to learn, to settle
PLAIN_PART = 0.4  # of the last runs are enough where every feature has few cells
WIDE = 16  # features that are left after the first of these
SHOWN = 12  # features of a pair that the result lists
FEWEST_RUNS = 2  # of one look: each side is likely to have an output at all


Candidate = Proposal | PartitionProposal  # what could witness a pair: an event, or a partition where bins certify


class Look:
    """What the search runs of one pair have shown so far.

    `pair` is the index of the pair in the session, whose runs come in shards of `shard_runs` at the most; `goal` says
    what the event is for, and may change. Shards are numbered from `start`, so that two looks at pairs of the same
    index need not share a stream.
    """

    def __init__(self, session: Session, pair: int, goal: Goal, *, shard_runs: int, start: int = 0) -> None:
        self.session, self.pair, self.goal, self.shard_runs = session, pair, goal, shard_runs
        self.runs = 0
        self.plan: Plan | None = None
        self._pilot: Pilot | None = None
        self._counts: Integers = np.zeros(0, np.int64)
        self._terms: list[Integers] = []
        self._settled: Proposal | None = None
        self._next = start

    @property
    def pilot(self) -> Pilot:
        """The outputs held."""
        assert self._pilot is not None, "a look begins with outputs"
        return self._pilot

    def hold(self, runs: int, *, room: int = PILOT_RUNS) -> int:
        """Up to `runs` more outputs, until so many are held as there is `room` for; returns the runs made.

        None once features are chosen. The first time, at least a few whatever was asked for.
        """
        runs = 0 if self.plan is not None else max(0, min(runs, room - self.runs))
        if self._pilot is None:
            runs = max(runs, FEWEST_RUNS)
        if runs:
            fresh = self.session.pilot(self._work(runs, PILOT_SHARD))
            self._pilot = fresh if self._pilot is None else Pilot.joined([self._pilot, fresh])
        return runs

    def count(self, runs: int, *, last: bool = False) -> int:
        """Chooses the features, for good, and counts them on so many more runs; returns the runs made.

        Of many runs, the first choose among all features, more of them learn the scores, and the rest judges these.
        The `last` ones are fewer where all features have few cells; else the end of them learns the best event's score
        once more, from all runs.
        """
        runs = max(runs, 0)
        many = runs >= LEARN_FROM
        fresh = self.plan is None
        chosen = self._choose(everything_counts=many)
        if last and many and chosen.plain:
            runs = max(int(PLAIN_PART * runs), LEARN_FROM)
        left = runs
        if many and fresh:
            left -= self._count(int(WIDE_PART * runs), learning=True)
            self._narrow(WIDE)
        if many and chosen.terms:
            left -= self._count(int(LEARN_PART * runs), learning=True)
            self.plan, self._counts = relearned(self._choose(), self._counts, self._terms, self.goal, self.pilot)
        if many:
            self._narrow(KEPT)
        settling = int(SETTLE_PART * runs) if many and last and chosen.terms else 0
        self._count(left - settling, learning=settling > 0)
        self._settle(settling)
        return runs

    def _choose(self, *, everything_counts: bool = False) -> Plan:
        """The plan, made the first time; with every feature, and no score yet, where many runs will come."""
        if self.plan is None:
            self.plan = plan(self.pilot, self.goal, keep=EVERY if everything_counts else KEPT)
            self._counts = pilot_counts(self.plan, self.pilot)
            if everything_counts:
                self.plan, self._counts = unlearned(self.plan, self._counts)
            self._terms = [each(Sample(self.pilot.first), Sample(self.pilot.second)) for each in self.plan.terms]
        return self.plan

    def _narrow(self, keep: int) -> None:
        self.plan, self._counts = narrowed(self._choose(), self._counts, self.goal, keep=keep)

    def _settle(self, runs: int) -> None:
        """Where the best event is on a log-ratio score: if these runs agree, the same on the score learned from all."""
        if runs <= 0:
            return
        assert self.plan is not None
        found = best(self.plan, self._counts, self.goal)
        again = None if found is None else learned_again(found, self.plan, self._terms, self.pilot)
        if found is None or again is None or self.goal.bins:
            self._count(runs)
            return
        table = self.session.counts(self._work(runs, self.shard_runs), again)
        self._settled = moved(found, self.plan, self._counts, again, table, self.goal)

    def _count(self, runs: int, *, learning: bool = False) -> int:
        """Counts the plan's features on so many more runs, when `learning` the terms of its scores too; the runs."""
        assert self.plan is not None
        if runs <= 0:
            return 0
        own = self.plan.tables
        more = [feature for each in self.plan.terms for feature in each.features] if learning else []
        counts = self.session.counts(self._work(runs, self.shard_runs), Tables((*own.features, *more)))
        cells = own.cells
        self._counts = self._counts + counts[:cells]
        for number, each in enumerate(self.plan.terms if learning else ()):
            self._terms[number] = self._terms[number] + counts[cells : cells + each.cells]
            cells += each.cells
        return runs

    def proposal(self) -> Candidate | None:
        """The best event or partition so far; None where too little was seen of any."""
        chosen = self.plan or plan(self.pilot, self.goal)
        counts = self._counts if self.plan is not None else pilot_counts(chosen, self.pilot)
        if self.goal.bins and (found := best_partition(chosen, counts, self.goal)) is not None:
            return found
        single = self._settled or best(chosen, counts, self.goal)
        return as_partition(single) if self.goal.bins and single is not None else single

    def last_resort(self) -> Candidate:
        """What is certified where nothing was seen often enough."""
        found = everything(self.pilot)
        return as_partition(found) if self.goal.bins else found

    def _work(self, runs: int, largest: int) -> list[Shard]:
        work = shards(Stage.SEARCH, self.pair, runs, min(self.shard_runs, largest), start=self._next)
        self._next += len(work)
        self.runs += runs
        return work


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
