"""Anytime audits: bet block by block, stop when the claim is refuted, and keep the last event for a fixed bound.

The bet on a block is frozen before its first run; up to a part `search_share` of the runs the event is learned anew for
every block, then it is frozen: docs/statistics/anytime.md.
"""

import math
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.auditing.certifying import Counted, Outcome, certified, certify
from dpaudit.auditing.clock import Clock, cut
from dpaudit.auditing.health.pilot import constants
from dpaudit.auditing.question import Plan, frozen
from dpaudit.auditing.search_stage import budget, goal, screen
from dpaudit.base.arrays import Integers
from dpaudit.base.validate import error_probability
from dpaudit.certify.evidence import CoinFlip
from dpaudit.certify.sequential import Block, Milestones, log_wealth, offsets, p_value
from dpaudit.claims.claim import Claim
from dpaudit.errors import OutOfTime, UnsoundAudit
from dpaudit.events import HitCounter
from dpaudit.execution.engine import Session
from dpaudit.options import FEWEST_RUNS
from dpaudit.outputs.canonical import Pilot, Sample, Wanted
from dpaudit.results.certification import nothing
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
class Wealth:
    """What the bets on blocks have made of one unit, in nats: after the last block, and at the best end of one."""

    blocks: tuple[Block, ...] = ()
    last: float = 0.0
    highest: float = 0.0

    def after(self, block: Block, claim: Claim) -> "Wealth":
        """The wealth with one more block."""
        last = self.last + float(log_wealth([block], claim)[0])
        return Wealth((*self.blocks, block), last, max(self.highest, last))

    def refutes(self, claim: Claim, alpha: float) -> bool:
        """Whether the blocks refute the claim at `alpha`; their sum is taken anew only where it may."""
        return self.highest >= -math.log(alpha) - 1e-6 and p_value(self.blocks, claim) <= alpha


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
    pilot = probe.pilots[pair] if bets.pilot is None else Pilot.joined([probe.pilots[pair], bets.pilot])
    outcome = replace(bets, runs=screened.runs + bets.runs, explored=(*screened.explored, *bets.explored), pilot=pilot)
    (counted,), unspent, alike = outcome.counted, left - bets.runs, constants(pilot).give_away
    if alike and unspent > 0:  # the runs of the blocks may all be one
        fresh = certify(plan, session, counted.witness, pilot, unspent, clock)
        return replace(outcome, counted=(fresh,), runs=outcome.runs + fresh.evidence.runs, blocks=(), watched=())
    if alike and certified(plan, counted, bets.blocks).certificate.refuted:
        raise UnsoundAudit(
            "constant outputs: each dataset always gave one output of its own, as a cache does, and no run is left to "
            "try fresh processes; give more runs"
        )
    if counted.evidence.runs and unspent > 0:
        return replace(outcome, explored=(*outcome.explored, cut(f"{bets.runs:,} runs", left)))
    return outcome


def run_blocks(
    plan: Plan, session: Session, *, pair: int, runs: int, goal: Goal, clock: Clock | None = None
) -> Outcome:
    """Bets on the pair with this index, `runs` runs at the most; after the freeze, as many as fit the time.

    `goal` is that of the fixed certificate on the runs after the freeze. The one witness of the outcome is the frozen
    event with its counts since the freeze. It has no counts where the bets refuted the claim, at the sequential
    share of the error probability: then it is the last event that was bet on; nor where each output gave its dataset
    away, and the runs that are left belong into fresh processes. Raises `UnsoundAudit` where runs are missing.
    """
    clock = clock or Clock()
    alpha = plan.sequential_share * error_probability(plan.confidence)
    blocks = _Blocks(plan, session, pair, goal)
    with session.stage("bet", runs):
        clock.searching(session.engine)
        learning, betting = block_sizes(runs, int((plan.search_share or SEARCH_SHARE) * runs))
        room, ends = min(PILOT_RUNS, int(FIRST_PART * sum(learning))), len(learning) + len(betting)
        for size in learning:
            room -= size
            clock.begin(session.asked_for, session.opening_s)  # the last is about a tenth of all
            try:
                blocks.make(size, hold=room >= 0 or not blocks.wealth.blocks)
            except OutOfTime:
                if not blocks.wealth.blocks:
                    raise
                break
            if blocks.wealth.refutes(blocks.claim, alpha):
                return blocks.outcome(ends)
        blocks.freeze()
        session.certifying = True
        if blocks.pilot is not None and constants(blocks.pilot).give_away:
            return blocks.outcome(ends)  # what is left is for fresh processes
        made = blocks.runs
        fits = clock.fitting(sum(betting), session)  # here: no later run decides how many a fixed bound has
        betting = betting if fits >= sum(betting) else growing(made, made + max(FEWEST_RUNS, fits))
        milestones = clock.milestones(plan, np.cumsum(betting).tolist())
        clock.certifying(session.engine, 1)
        reached = blocks.after
        for size in betting:
            try:
                blocks.make(size)
            except OutOfTime:
                break
            if blocks.wealth.refutes(blocks.claim, alpha):
                return blocks.outcome(ends)
            if blocks.after.runs in milestones.ends:
                reached = blocks.after
        if reached.runs == 0:
            raise OutOfTime
        return blocks.outcome(ends, reached, milestones)


class _Blocks:
    """The blocks of one pair, and what is known between two of them: the learner, the frozen event, counts since."""

    def __init__(self, plan: Plan, session: Session, pair: int, goal: Goal) -> None:
        self.plan, self.session, self.pair, self.goal = plan, session, pair, goal
        self.claim, self.wealth = plan.claim_at(pair), Wealth()
        self.learner = Learner(offsets(self.claim))
        self.choice: SearchPlan | None = None
        self.pilot: Pilot | None = None
        self.proposal: Proposal | None = None
        self.watched: dict[Wanted, tuple[Watch, dict[Shard, Integers]]] = {}
        self.bet: Bet | None = None  # the last one
        self.frozen: Bet | None = None
        self.late: Bet | None = None  # on one event, when it is no more learned anew
        self.seen = self.after = CoinFlip(0, 0, 0, 0)  # of the late event at any time, of the frozen one since
        self.shards_used = 0

    @property
    def runs(self) -> int:
        """Those of all blocks."""
        return sum(block.evidence.runs for block in self.wealth.blocks)

    def make(self, size: int, *, hold: bool = False) -> None:
        """One more block of so many runs, whose outputs are kept for the learner where it may `hold` them."""
        bet = self.session.thinking(self._next)
        (self._hold if hold else self._count)(bet, size)
        self.bet = bet

    def freeze(self) -> None:
        """Freezes the event of the fixed certificate: the search's choice on all that was seen, or the learner's."""
        self._settle()
        last = self.learner.bet()
        chosen = self.proposal = None if self.choice is None else best(self.choice, self.learner.counts, self.goal)
        if chosen is not None:
            last = replace(last, event=chosen.event, p_side=chosen.p_side, family=chosen.family)
        self.bet = self.frozen = last

    def outcome(self, ends: int, reached: CoinFlip | None = None, milestones: Milestones | None = None) -> Outcome:
        """What the blocks came to: the frozen event with the counts that were `reached`, or the last one without."""
        bet = self.bet if reached is None else self.frozen
        assert bet is not None
        last = None if reached is None else self.proposal
        last = last or Proposal(bet.event, bet.p_side, bet.family, bet.growth, bet.delta)
        witness = frozen(self.plan, self.pair, last, "bets")
        return Outcome(
            counted=(Counted(witness, reached or nothing(witness), milestones=milestones),),
            runs=self.runs,
            explored=() if self.choice is None else tuple(looked_at(self.choice)),
            pilot=self.learner.pilot or self.pilot,
            watched=tuple(watch.read(table) for watch, table in self.watched.values()),
            blocks=self.wealth.blocks,
            ends=ends,
        )

    # --- one block ---------------------------------------------------------------------------------------------

    def _next(self) -> Bet:
        """The bet on the next block: learned anew, or, late in a long audit, on one event with what is known now."""
        if self.frozen is None or self.runs <= LEARNED_RUNS:
            return self.learner.bet()
        if self.late is None:
            newest = self.learner.bet()
            self.late = newest if newest.growth > 0.0 else self.frozen
            self.seen = _evidence(self.late, self.learner.seen(self.late.event))  # as the tables of features say it
        hits, runs = (self.seen.hits_p, self.seen.hits_q), (self.seen.runs_p, self.seen.runs_q)
        return self.learner.again(self.late, hits, runs)

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
        tables = self.learner.tables if self.late is None and self.learner.tables.features else None
        watch = Watch(main.event, () if self.frozen is None else (bet.event,), also=tables)
        work = self._work(size, size)
        counts = self.session.shard_counts(work, watch)
        if len(counts) < len(work):
            raise OutOfTime
        total: Integers = np.sum(list(counts.values()), axis=0)
        evidence = self._add(bet, watch.plain(total, 0 if self.frozen is None else 1), size)
        if self.late is not None:
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
        block = Block(bet.event, bet.p_side, bet.p, bet.q, bet.delta, evidence)
        self.wealth = self.wealth.after(block, self.claim)
        return evidence


def _evidence(bet: Bet, counts: Integers) -> CoinFlip:
    hits_first, runs_first, hits_second, runs_second = counts.tolist()
    if bet.p_side == "first":
        return CoinFlip(hits_first, hits_second, runs_first, runs_second)
    return CoinFlip(hits_second, hits_first, runs_second, runs_first)
