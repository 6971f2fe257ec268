"""Certification: the fresh runs of a frozen witness, many in a process or one in each of many, and what they say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from dpaudit.auditing.clock import Clock
from dpaudit.auditing.health.pilot import constants
from dpaudit.auditing.health.processes import FreshRuns, NoProcesses, processes_needed, run_processes
from dpaudit.auditing.other_witnesses import SELECTOR
from dpaudit.auditing.question import Plan, tangent_at
from dpaudit.certify.sequential import Block, Milestones
from dpaudit.errors import OutOfTime, UnsoundAudit
from dpaudit.events import Event
from dpaudit.events.features import Whole
from dpaudit.execution.engine import Session
from dpaudit.outputs.canonical import Pilot, Token
from dpaudit.results.certification import AuditEvidence, Witness, anytime_certificate, certificate_of, evidence_of
from dpaudit.results.observations import Explored
from dpaudit.results.result import Finding
from dpaudit.running.order import Looked
from dpaudit.running.streams import Stage
from dpaudit.running.watch import Watch


@dataclass(frozen=True, slots=True)
class Counted:
    """A witness with the counts of its fresh runs, those of other events, and what health checks look at.

    `also` counted were the event on "bits" and a "plain" one, where there are such, on the same runs.
    `trail` holds the counts after growing parts of the runs, the last of them all. `crossed`: an output that search saw
    on one dataset alone came up on both. The runs are those of one of the `milestones`, None of fresh processes, and
    there were `beyond` more that are not counted.
    """

    witness: Witness
    evidence: AuditEvidence
    also: Mapping[str, tuple[Witness, AuditEvidence]] = field(default_factory=dict)
    looked: Looked | None = None
    processes: FreshRuns | None = None
    trail: tuple[AuditEvidence, ...] = ()
    crossed: bool = False
    milestones: Milestones | None = None
    beyond: int = 0

    @property
    def part(self) -> float:
        """The part of the error probability that these counts have."""
        return 1.0 if self.milestones is None else self.milestones.part(self.evidence.runs)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the stages after the probe came to: witnesses with their counts, the runs made, what was looked at.

    `pilot` holds the search outputs of the first witness's pair. Of bets: their `blocks`, what the runs since the
    freeze tell of their order (`watched`), and the number of `ends` at which they could have stopped. `firsts` counts
    the runs of search that were made in fresh processes, beside `runs`.
    """

    counted: tuple[Counted, ...]
    runs: int
    explored: tuple[Explored, ...]
    pilot: Pilot | None
    watched: tuple[Looked, ...] = ()
    blocks: tuple[Block, ...] = ()
    ends: int = 1
    firsts: int = 0

    @property
    def looked(self) -> tuple[Looked, ...]:
        """What all runs on frozen events tell of their order, in the order in which they ran."""
        return (*self.watched, *(each.looked for each in self.counted if each.looked is not None))

    @property
    def milestones(self) -> Milestones | None:
        """Those of the witnesses, which are the same; None where all runs had processes of their own."""
        return next((each.milestones for each in self.counted if each.milestones is not None), None)


def certify(
    plan: Plan,
    session: Session,
    witness: Witness,
    pilot: Pilot,
    runs: int,
    clock: Clock,
    also: Mapping[str, Witness] = MappingProxyType({}),
    *,
    wanted: bool = False,
) -> Counted:
    """The counts of `runs` fresh runs at the most, and of the events that are `also` asked for.

    Where every output so far gave its dataset away, a process may keep its answer; then each run has its own.
    Where there cannot be processes, the answer of one dataset that comes up on the other tells that none was kept.
    Where time runs out, those of a milestone. Raises `OutOfTime` where not even the first is reached; where a verdict
    is `wanted` of this witness, it has all the time that is left.
    """
    session.certifying = True
    in_shards = InShards(clock, also, wanted=wanted)
    if witness.selector.startswith(SELECTOR):
        return InProcesses(None).count(plan, session, witness, runs)
    if not constants(pilot).give_away:
        return in_shards.count(plan, session, witness, runs)
    try:
        return InProcesses(pilot).count(plan, session, witness, runs)
    except NoProcesses:
        codes = {int(Whole().column(side).tokens[0]) for side in (pilot.first, pilot.second)}
        answers = tuple(Event(Whole(), tokens=(Token("", code),)) for code in codes if len(codes) > 1)
        counted = replace(in_shards, answers=answers).count(plan, session, witness, runs)
        claim = plan.claim_at(witness.pair)
        for each, evidence in ((witness, counted.evidence), *counted.also.values()):
            certificate = certificate_of(each, evidence, claim, plan.fixed_level, plan.certifier, part=counted.part)
            if not counted.crossed and certificate.refuted:
                raise
        return counted


@dataclass(frozen=True, slots=True)
class InShards:
    """Many runs in a process: a fixed grid of shards, of which the clock may leave a milestone.

    Counted too are the events that are `also` asked for, and `answers`: each of one output that search saw on one
    dataset alone.
    """

    clock: Clock
    also: Mapping[str, Witness]
    answers: tuple[Event, ...] = ()
    wanted: bool = False

    def count(self, plan: Plan, session: Session, witness: Witness, runs: int) -> Counted:
        """The counts of the last milestone that is reached."""
        watch = Watch(witness.event, (*(each.event for each in self.also.values()), *self.answers))
        with session.stage("certify", runs):
            work = session.grid(Stage.CERTIFY, witness.pair, runs, plan.shard_runs)
            table = session.shard_counts(work, watch)
        ends = np.cumsum([shard.runs for shard in work]).tolist()
        milestones = self.clock.milestones(plan, ends)
        least = [each for each, end in zip(work, ends, strict=True) if end <= milestones.ends[0] and each not in table]
        if least and self.wanted:  # a verdict without all checks is better than none; a refutation wants them
            self.clock.limits(session.engine)
            table |= session.shard_counts(least, watch)
        # a fixed set of shards, all of them done, whatever else is
        first = next((place for place, shard in enumerate(work) if shard not in table), len(work))
        runs = milestones.reached(sum(shard.runs for shard in work[:first]))
        if runs == 0:
            raise OutOfTime
        beyond = sum(shard.runs for shard in table) - runs
        table = {shard: table[shard] for shard, end in zip(work, ends, strict=True) if end <= runs}
        total = np.sum(list(table.values()), axis=0)
        sides = total[:2]
        if int(sides.sum()) != runs:
            raise UnsoundAudit(f"{runs} certifying runs were asked for and {int(sides.sum())} came back; no verdict")
        others = {
            name: (each, evidence_of(each, watch.hits(total, place), sides))
            for place, (name, each) in enumerate(self.also.items(), start=1)
        }
        parts = range(len(watch.sizes) - len(self.answers), len(watch.sizes))
        crossed = any(bool(watch.hits(total, part).all()) for part in parts)
        grown = np.cumsum(list(table.values()), axis=0)[_trail_ends(len(table))]
        trail = tuple(evidence_of(witness, watch.hits(so_far), so_far[:2]) for so_far in grown)
        looked = watch.read(table)
        return Counted(witness, trail[-1], others, looked, None, trail, crossed, milestones, beyond)


@dataclass(frozen=True, slots=True)
class InProcesses:
    """One run in each of many fresh processes, as many as can refute, against the constants of a pilot, if any."""

    pilot: Pilot | None

    def count(self, plan: Plan, session: Session, witness: Witness, runs: int) -> Counted:
        """The counts; raises `NoProcesses` where there cannot be any."""
        claim, certifier, level = plan.claim_at(witness.pair), plan.certifier, plan.fixed_level
        needed = min(runs, processes_needed(lambda n: certifier.at(claim).refutable(n, n, claim, level)))
        if witness.tangent is not None:  # its delta was frozen for far more runs than there will be processes
            delta = certifier.single.best_delta(claim, 2 * needed // 5, level)
            witness = replace(witness, tangent=tangent_at(claim, delta))
        with session.stage("fresh processes", needed):
            fresh = run_processes(session, witness.pair, self.pilot, needed)
        watch = Watch(witness.event)
        counts = watch.mixed(fresh.outputs, fresh.sides)
        return Counted(witness, evidence_of(witness, watch.hits(counts), counts[:2]), processes=fresh)


def _trail_ends(shards: int) -> list[int]:
    """Which shards end a part of the trail: about twice as many each time, and the last.

    >>> _trail_ends(60)
    [0, 1, 2, 3, 5, 7, 10, 15, 22, 31, 44, 59]
    """
    ends = {round(2 ** (step / 2)) - 1 for step in range(2 * shards.bit_length())}
    return sorted({end for end in ends if end < shards} | {shards - 1})


def certified(plan: Plan, counted: Counted, blocks: Sequence[Block] = ()) -> Finding:
    """What the counts, and the bets before them, say of the claim at the distance of the pair."""
    part = counted.part
    witness, evidence, claim = counted.witness, counted.evidence, plan.claim_at(counted.witness.pair)
    if plan.stopping == "anytime":
        certificate = anytime_certificate(
            blocks, witness, evidence, claim, plan.confidence, plan.certifier, share=plan.sequential_share, part=part
        )
    else:
        certificate = certificate_of(witness, evidence, claim, plan.level, plan.certifier, part=part)
    return Finding(claim, witness, evidence, certificate)


def finding_of(plan: Plan, counted: Counted, name: str, level: float) -> Finding | None:
    """What the counts of an event that was also counted say, at a `level` of its own; None where there is none."""
    if name not in counted.also:
        return None
    (witness, evidence), claim = counted.also[name], plan.claim_at(counted.witness.pair)
    certificate = certificate_of(witness, evidence, claim, level, plan.certifier, part=counted.part)
    return Finding(claim, witness, evidence, certificate)
