"""Counting: the fresh runs of a frozen witness, many in a process or one in each of many, and what they came to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpaudit.auditing.health.pilot import constants
from dpaudit.auditing.health.processes import FreshRuns, NoProcesses, processes_needed, run_processes
from dpaudit.auditing.searching.search import frozen_tangent
from dpaudit.auditing.spec import ResolvedSpec
from dpaudit.errors import UnsoundAudit
from dpaudit.events import Event
from dpaudit.events.features import Whole
from dpaudit.outputs import Pilot, Token
from dpaudit.results.certification import Evidence, certificate_of, evidence_of
from dpaudit.results.witness import Witness
from dpaudit.sampling import Progress, Session, Stage, Watch, shards
from dpaudit.sampling.order import Looked


@dataclass(frozen=True, slots=True)
class Counted:
    """A witness with the counts of its fresh runs, those of the event on bits, and what health checks look at.

    `trail` holds the counts after growing parts of the runs, the last of them all. `crossed`: an output that search saw
    on one dataset alone came up on both.
    """

    witness: Witness
    evidence: Evidence
    bits: tuple[Witness, Evidence] | None = None
    looked: Looked | None = None
    processes: FreshRuns | None = None
    trail: tuple[Evidence, ...] = ()
    crossed: bool = False


@dataclass(frozen=True, slots=True)
class Counting:
    """How the fresh runs of a witness are made: many in a process, or one in each of many fresh ones."""

    spec: ResolvedSpec
    session: Session
    progress: Progress
    level: float

    def count(self, witness: Witness, bits: Witness | None, pilot: Pilot, runs: int) -> Counted:
        """The counts of `runs` fresh runs at the most.

        Where every output so far gave its dataset away, a process may keep its answer; then each run has its own.
        Where there cannot be processes, the answer of one dataset that comes up on the other tells that none was kept.
        """
        self.session.certifying = True
        if not constants(pilot).give_away:
            return self._in_shards(witness, bits, runs)
        try:
            return self._in_processes(witness, pilot, runs)
        except NoProcesses:
            codes = {int(Whole().column(side).tokens[0]) for side in (pilot.first, pilot.second)}
            answers = tuple(Event(Whole(), tokens=(Token("", code),)) for code in codes if len(codes) > 1)
            found = self._in_shards(witness, bits, runs, answers)
            claim, certifier = self.spec.claim_at(witness.pair), self.spec.certifier
            for event, evidence in ((witness, found.evidence), *(() if found.bits is None else (found.bits,))):
                if not found.crossed and certificate_of(event, evidence, claim, self.level, certifier).refuted:
                    raise
            return found

    def _in_shards(self, witness: Witness, bits: Witness | None, runs: int, answers: tuple[Event, ...] = ()) -> Counted:
        self.progress.begin("certify", runs)
        watch = Watch(witness.event, (*(() if bits is None else (bits.event,)), *answers))
        work = shards(Stage.CERTIFY, witness.pair, runs, self.spec.shard_runs)
        table = self.session.shard_counts(work, watch)
        self.progress.end()
        total = np.sum(list(table.values()), axis=0)
        sides = total[:2]
        if int(sides.sum()) != runs:
            raise UnsoundAudit(f"{runs} certifying runs were asked for and {int(sides.sum())} came back; no verdict")
        also = None if bits is None else (bits, evidence_of(bits, watch.hits(total, 1), sides))
        parts = range(len(watch.sizes) - len(answers), len(watch.sizes))
        crossed = any(bool(watch.hits(total, part).all()) for part in parts)
        grown = np.cumsum(list(table.values()), axis=0)[_milestones(len(table))]
        trail = tuple(evidence_of(witness, watch.hits(so_far), so_far[:2]) for so_far in grown)
        return Counted(witness, trail[-1], also, watch.read(table), trail=trail, crossed=crossed)

    def _in_processes(self, witness: Witness, pilot: Pilot, runs: int) -> Counted:
        claim, certifier = self.spec.claim_at(witness.pair), self.spec.certifier
        needed = processes_needed(lambda n: certifier.at(claim).refutable(n, n, claim, self.level))
        if witness.tangent is not None:  # its delta was frozen for far more runs than there will be processes
            delta = certifier.single.best_delta(claim, 2 * min(needed, runs) // 5, self.level)
            witness = replace(witness, tangent=frozen_tangent(claim, delta))
        self.progress.begin("fresh processes", min(needed, runs))
        found = run_processes(self.session, witness.pair, pilot, min(needed, runs))
        self.progress.end()
        watch = Watch(witness.event)
        counts = watch.mixed(found.outputs, found.sides)
        return Counted(witness, evidence_of(witness, watch.hits(counts), counts[:2]), processes=found)


def _milestones(shards: int) -> list[int]:
    """Which shards end a part of the trail: about twice as many each time, and the last.

    >>> _milestones(60)
    [0, 1, 2, 3, 5, 7, 10, 15, 22, 31, 44, 59]
    """
    ends = {round(2 ** (step / 2)) - 1 for step in range(2 * shards.bit_length())}
    return sorted({end for end in ends if end < shards} | {shards - 1})
