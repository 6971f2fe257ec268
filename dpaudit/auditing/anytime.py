"""Anytime audits: bet block by block, stop when the claim is refuted, and keep the last event for a fixed bound.

The bet on a block is frozen before its first run; up to a part `search_share` of the runs the event is learned anew for
every block, then it is frozen: docs/statistics/anytime.md.
"""

import math
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.auditing.certifying import Counted, Outcome, certified, count
from dpaudit.auditing.clock import Clock, cut
from dpaudit.auditing.health.pilot import constants
from dpaudit.auditing.question import Plan, frozen
from dpaudit.auditing.search_stage import budget, goal, screen
from dpaudit.base.arrays import Integers
from dpaudit.base.validate import error_probability
from dpaudit.certify.evidence import CoinFlip
from dpaudit.certify.sequential import Block, Milestones, log_wealth, offsets, p_value
from dpaudit.errors import OutOfTime, UnsoundAudit
from dpaudit.events import HitCounter
from dpaudit.execution.engine import Session
from dpaudit.options import FEWEST_RUNS
from dpaudit.outputs.canonical import Pilot, Sample, Wanted
from dpaudit.results.certification import Witness, nothing
from dpaudit.results.observations import Explored
from dpaudit.running.order import Looked
from dpaudit.running.streams import Shard, Stage, growing, shards
from dpaudit.running.watch import Watch
from dpaudit.running.worker import Probe
from dpaudit.search.betting import Bet, Learner
from dpaudit.search.explore import SearchPlan, best, planned
from dpaudit.search.goal import Goal
from dpaudit.search.look import FIRST_PART, PILOT_RUNS, PILOT_SHARD, SEARCH_SHARE, looked_at
from dpaudit.search.selection import Proposal

LEARNED_RUNS = 1 << 20  # up to which events are learned anew for each block, which costs more than counting one


@dataclass(frozen=True, slots=True)
class Sequential:
    """What the blocks came to.

    `blocks` hold each bet with its runs, in order. `stopped`: the bets refuted the claim, at the sequential share of
    the error probability; `witness` then is the last event that was bet on, and `evidence` is None. Otherwise `witness`
    is the frozen event, and `evidence` its counts since the freeze: None where each output gave its dataset away, and
    the runs that are left belong into fresh processes. `runs` counts all runs of the blocks. Health checks
    look at the outputs that were held (`pilot`) and at what the runs since the freeze told of their order (`watched`);
    `ends` counts the blocks, at whose ends the bets could have stopped.
    """

    blocks: tuple[Block, ...]
    stopped: bool
    witness: Witness
    evidence: CoinFlip | None
    runs: int
    explored: tuple[Explored, ...] = ()
    pilot: Pilot | None = None
    watched: tuple[Looked, ...] = ()
    ends: int = 1
    milestones: Milestones | None = None


def block_sizes(runs: int, freeze: int) -> tuple[list[int], list[int]]:
    """The sizes of the blocks before and after the freeze; both lists add up to `runs`.

    >>> block_sizes(60, 30)
    ([12, 4, 4, 4, 6], [4, 4, 4, 5, 5, 8])
    """
    return growing(0, freeze), growing(freeze, runs)


def bet(plan: Plan, session: Session, probe: Probe, spent: int, clock: Clock) -> Outcome:
    """Bets on the best pair until the runs are spent or the claim is refuted, and what follows from the last event."""
    parts = budget(plan, spent=spent)
    screened = screen(plan, session, runs=parts.screening, certifying=parts.certifying)
    pair = screened.looks[0].pair
    left = plan.runs - spent - screened.runs
    bets = run_blocks(plan, session, pair=pair, runs=left, goal=goal(plan, pair, parts.certifying), clock=clock)
    explored, runs, unspent = (
        (*screened.explored, *bets.explored),
        screened.runs + bets.runs,
        left - bets.runs,
    )
    pilot = probe.pilots[pair] if bets.pilot is None else Pilot.joined([probe.pilots[pair], bets.pilot])
    alike = constants(pilot).give_away
    if alike and unspent > 0:  # the runs of the blocks may all be one
        counted = count(plan, session, bets.witness, pilot, unspent, clock)
        return Outcome((counted,), runs + counted.evidence.runs, explored, pilot, ends=bets.ends)
    if bets.evidence is not None and unspent > 0:
        explored = (*explored, cut(f"{bets.runs:,} runs", left))
    counted = Counted(bets.witness, bets.evidence or nothing(bets.witness), milestones=bets.milestones)
    if alike and certified(plan, counted, bets.blocks).certificate.refuted:
        raise UnsoundAudit(
            "constant outputs: each dataset always gave its own output in one process, and no run is left for "
            "fresh processes, which would tell a cache; give more runs"
        )
    return Outcome((counted,), runs, explored, pilot, bets.watched, bets.blocks, bets.ends)


def run_blocks(
    plan: Plan, session: Session, *, pair: int, runs: int, goal: Goal, clock: Clock | None = None
) -> Sequential:
    """Bets on the pair with this index, `runs` runs at the most; after the freeze, as many as fit the time.

    `goal` is that of the fixed certificate on the runs after the freeze. Raises `UnsoundAudit` where runs are missing.
    """
    with session.stage("bet", runs):
        return _Bets(plan, session, pair, goal).run(runs, clock or Clock())


class _Bets:
    """The state between blocks: the learner, the blocks so far and the shards used."""

    def __init__(self, plan: Plan, session: Session, pair: int, goal: Goal) -> None:
        self.plan, self.session, self.pair, self.goal = plan, session, pair, goal
        self.claim = plan.claim_at(pair)
        self.lines = offsets(self.claim)
        self.log_wealth = self.highest = 0.0
        self.learner = Learner(self.lines)
        self.choice: SearchPlan | None = None
        self.pilot: Pilot | None = None
        self.proposal: Proposal | None = None
        self.watched: dict[Wanted, tuple[Watch, dict[Shard, Integers]]] = {}
        self.blocks: list[Block] = []
        self.frozen: Bet | None = None
        self.last: Bet | None = None
        self.seen = self.after = CoinFlip(0, 0, 0, 0)  # of the last bet's event at any time, of the frozen one since
        self.runs = self.shards_used = self.ends = 0
        self.milestones: Milestones | None = None  # of the runs after the freeze
        self.alpha = plan.sequential_share * error_probability(plan.confidence)

    def run(self, runs: int, clock: Clock) -> Sequential:
        clock.searching(self.session.engine)
        learning, betting = block_sizes(runs, int((self.plan.search_share or SEARCH_SHARE) * runs))
        room, self.ends = min(PILOT_RUNS, int(FIRST_PART * sum(learning))), len(learning) + len(betting)
        for size in learning:
            room -= size
            clock.begin(self.session.asked_for, self.session.opening_s)  # the last is about a tenth of all
            try:
                bet = self.session.thinking(self._next)
                self._hold(bet, size) if room >= 0 or not self.blocks else self._count(bet, size)
            except OutOfTime:
                if not self.blocks:
                    raise
                break
            if self._won():
                return self._answer(bet, None)
        self.frozen, self.session.certifying = self._freeze(), True
        if self.pilot is not None and constants(self.pilot).give_away:
            return self._answer(self.frozen, None, stopped=False)  # what is left is for fresh processes
        fits = clock.fitting(sum(betting), self.session)  # here: no later run decides how many a fixed bound has
        betting = betting if fits >= sum(betting) else growing(self.runs, self.runs + max(FEWEST_RUNS, fits))
        self.milestones = clock.milestones(self.plan, np.cumsum(betting).tolist())
        clock.certifying(self.session.engine, 1)
        reached = self.after
        for size in betting:
            try:
                bet = self.session.thinking(self._next)
                self._count(bet, size)
            except OutOfTime:
                break
            if self._won():
                return self._answer(bet, None)
            if self.after.runs in self.milestones.ends:
                reached = self.after
        if reached.runs == 0:
            raise OutOfTime
        return self._answer(self.frozen, reached)

    # --- one block ---------------------------------------------------------------------------------------------

    def _next(self) -> Bet:
        """The bet on the next block: learned anew, or, late in a long audit, on one event with what is known now."""
        if self.frozen is None or self.runs <= LEARNED_RUNS:
            return self.learner.bet()
        if self.last is None:
            newest = self.learner.bet()
            self.last = newest if newest.growth > 0.0 else self.frozen
            self.seen = _evidence(self.last, self.learner.seen(self.last.event))  # as the tables of features say it
        hits, runs = (self.seen.hits_p, self.seen.hits_q), (self.seen.runs_p, self.seen.runs_q)
        return self.learner.again(self.last, hits, runs)

    def _hold(self, bet: Bet, size: int) -> None:
        """A block whose outputs are kept, to look at features."""
        fresh = self.session.pilot(self._work(size, PILOT_SHARD))
        if len(fresh.sides) < size:  # a block counts whole, or not at all
            raise OutOfTime
        self._add(bet, HitCounter(bet.event)(Sample(fresh.first), Sample(fresh.second)), size)
        self.session.thinking(self.learner.see, fresh)

    def _count(self, bet: Bet, size: int) -> None:
        """A block that leaves counts: of the bet's event, the frozen one, and of features while they are learned."""
        self._settle()
        main = bet if self.frozen is None else self.frozen
        tables = self.learner.tables if self.last is None and self.learner.tables.features else None
        watch = Watch(main.event, () if self.frozen is None else (bet.event,), also=tables)
        work = self._work(size, size)
        counts = self.session.shard_counts(work, watch)
        if len(counts) < len(work):
            raise OutOfTime
        total: Integers = np.sum(list(counts.values()), axis=0)
        evidence = self._add(bet, watch.plain(total, 0 if self.frozen is None else 1), size)
        if self.last is not None:
            self.seen += evidence
        else:
            self.learner.count(watch.rest(total).reshape(-1, 2))
        if self.frozen is not None:
            self.after += _evidence(self.frozen, watch.plain(total))
            _, table = self.watched.setdefault(watch.wanted, (replace(watch, also=None), {}))
            table.update({shard: counts[: len(counts) - len(watch.rest(counts))] for shard, counts in counts.items()})

    def _settle(self) -> None:
        if self.choice is None and self.learner.pilot is not None:
            pilot, tables, counts = self.learner.pilot, self.learner.tables, self.learner.counts
            self.pilot, learned = pilot, (False,) * len(tables.features)
            with suppress(OutOfTime):  # what is counted already stays
                self.choice, counts = self.session.thinking(planned, pilot, self.goal)
                tables, learned = self.choice.tables, self.choice.learned
            self.learner.settle(tables, counts, learned)

    def _work(self, size: int, largest: int) -> list[Shard]:
        work = shards(Stage.SEQUENTIAL, self.pair, size, min(self.plan.shard_runs, largest), start=self.shards_used)
        self.shards_used += len(work)
        return work

    def _add(self, bet: Bet, counts: Integers, size: int) -> CoinFlip:
        evidence = _evidence(bet, counts)
        if evidence.runs != size:
            raise UnsoundAudit(f"{size} runs of a block were asked for and {evidence.runs} came back; no verdict")
        self.runs += size
        self.blocks.append(Block(bet.event, bet.p_side, bet.p, bet.q, bet.delta, evidence))
        return evidence

    def _won(self) -> bool:
        wealth = log_wealth(self.blocks[-1:], self.claim)  # of the last block alone: the sum spares the others
        self.log_wealth += float(wealth[0])
        self.highest = max(self.highest, self.log_wealth)
        if self.highest < -math.log(self.alpha) - 1e-6:
            return False
        return p_value(self.blocks, self.claim) <= self.alpha

    # --- the last event ----------------------------------------------------------------------------------------

    def _freeze(self) -> Bet:
        """The event of the fixed certificate: the search's choice on all that was seen, or else the learner's."""
        self._settle()
        last = self.learner.bet()
        self.proposal = None if self.choice is None else best(self.choice, self.learner.counts, self.goal)
        if self.proposal is None:
            return last
        return replace(last, event=self.proposal.event, p_side=self.proposal.p_side, family=self.proposal.family)

    def _answer(self, bet: Bet, evidence: CoinFlip | None, *, stopped: bool = True) -> Sequential:
        proposal = None if evidence is None else self.proposal
        last = proposal or Proposal(bet.event, bet.p_side, bet.family, bet.growth, bet.delta)
        return Sequential(
            blocks=tuple(self.blocks),
            stopped=stopped and evidence is None,
            witness=frozen(self.plan, self.pair, last, "bets"),
            evidence=evidence,
            runs=self.runs,
            explored=() if self.choice is None else tuple(looked_at(self.choice)),
            pilot=self.learner.pilot or self.pilot,
            watched=tuple(watch.read(table) for watch, table in self.watched.values()),
            ends=self.ends,
            milestones=None if evidence is None else self.milestones,
        )


def _evidence(bet: Bet, counts: Integers) -> CoinFlip:
    hits_first, runs_first, hits_second, runs_second = counts.tolist()
    if bet.p_side == "first":
        return CoinFlip(hits_first, hits_second, runs_first, runs_second)
    return CoinFlip(hits_second, hits_first, runs_second, runs_first)
