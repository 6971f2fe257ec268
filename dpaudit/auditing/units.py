"""A second bound for a refutation whose runs may share noise: one run in each of many calls, or fresh processes.

Runs of one call of a batched mechanism, or of one process that keeps something, may share a part of their noise though
each alone keeps the claim. Where each has a call, or a process, of its own, what the same certifier says of them needs
nothing but that calls, or processes, are independent: docs/statistics/separation.md.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from dpaudit.auditing.certifying import Outcome, finding_of
from dpaudit.auditing.health.processes import run_processes
from dpaudit.auditing.question import Plan
from dpaudit.base.arrays import Integers
from dpaudit.base.validate import error_probability
from dpaudit.errors import DpAuditError, InvalidSpec, OutOfTime
from dpaudit.execution.engine import Session
from dpaudit.mechanisms.importing import is_own
from dpaudit.mechanisms.spiked import Spiked
from dpaudit.processes.tasks import FreshTask
from dpaudit.results.certification import certificate_of, evidence_of, frozen_delta_of
from dpaudit.results.observations import BETWEEN, Health
from dpaudit.results.result import Finding, Units
from dpaudit.running.streams import Shard, Stage, apart, shards
from dpaudit.running.watch import Watch

FEWEST, MOST_CALLS, MOST_OF_A_SIZE, MOST_PROCESSES = 64, 1 << 15, 1 << 10, 1 << 9
TRIED = 8  # calls or processes that first tell how long the others would take; then eight times as many, and so on
START_S, LONGEST_S = 1.0, 10.0  # that are not counted of each part, and that the rest may take by its speed
LOOKS, FIRST_LOOKS, LOOKED_AT = 16, 4, 8  # fresh processes whose values are compared, and the runs of each
SUSPECT = 0.001  # a p-value of the check of shards and processes, which is no alarm yet
POWER = 3  # of the error probability at which expected counts refute: those of nearly every repetition do so at it

Way = Callable[[Watch, int, int, int], tuple[Integers, float]]  # counts of the runs from one place to another, and time


def second_bound(
    plan: Plan,
    session: Session,
    outcome: Outcome,
    findings: Sequence[Finding],
    health: Health,
    *,
    reproducible: bool,
) -> Units | None:
    """The second bound where one is needed: its runs come beyond those of the plan, and change nothing else.

    None where nothing is refuted, in a control, where each run had a process of its own, and where the unit is the run:
    of a mechanism that is called run by run and keeps nothing, as far as its values and its rates show; of our own
    samplers.
    """
    both = min(zip(findings, outcome.counted, strict=True), key=lambda each: each[0].certificate.p_value)
    bits = finding_of(plan, outcome.counted[0], "bits", plan.confidence)
    refuting = [each for each in (both[0], bits) if each is not None and each.certificate.refuted]
    no_unit = both[1].processes is not None or is_own(plan.description.reference or "")
    if not refuting or no_unit or isinstance(plan.mechanism, Spiked):
        return None
    kind, used = plan.description.kind, 0
    built = kind == "built in the worker"
    apart_by_rates = any(check.name == BETWEEN and check.p_value <= SUSPECT for check in health.checks)
    unlike = not reproducible and (built or apart_by_rates)
    if unlike or (kind != "command" and _keeps(session, both[0].witness.pair, LOOKS if built else FIRST_LOOKS)):
        used = 1 if session.one_process else session.engine.n_jobs
        most, way = MOST_PROCESSES, partial(_processes, session)
    elif not session.per_run or any(look.calls.any() for look in outcome.looked):
        sized = kind not in ("batched", "command") or "size" in plan.description.parameters  # or it may be
        session.begin_alone(apart(plan.seed))
        most, way = MOST_OF_A_SIZE if sized else MOST_CALLS, partial(_calls, session, 1 if sized else plan.shard_runs)
    else:
        return None
    bets = sum(block.evidence.runs for block in outcome.blocks)
    runs = [_needed(plan, each, most, bets) for each in refuting]
    again = [_again(plan, session, each, way, n) for each, n in zip(refuting, runs, strict=True)]
    there = tuple(each for each in again if each is not None)
    return Units(used, there if len(there) == len(again) else ())


def _keeps(session: Session, pair: int, first: int) -> bool:
    """Whether a process keeps what it draws, as far as the values show that its code reads."""
    sides = tuple(run >= LOOKED_AT // 2 for run in range(LOOKED_AT))
    work = [FreshTask(Shard(Stage.FRESH, pair, k, LOOKED_AT), sides) for k in range(LOOKS)]
    try:
        return session.keeps(work[:first], work[first:])
    except DpAuditError as error:  # where it cannot be opened, or there is no time, it is not asked
        return not isinstance(error, (InvalidSpec, OutOfTime))


def _needed(plan: Plan, finding: Finding, most: int, bets: int) -> int:
    """How many runs of their own refute nearly surely where rates are as counted, `most` if they may do; else 0."""
    evidence, alpha = finding.evidence, error_probability(plan.confidence)
    if evidence.runs == 0:  # bets refuted before any run was counted for a fixed bound
        return min(most, max(FEWEST, POWER * bets))
    delta, certifier = frozen_delta_of(finding.witness, finding.claim), plan.certifier.of(evidence)

    def refutes(runs: int, level: float) -> bool:
        half = runs // 2
        shares = (
            (x * half // max(1, evidence.runs_p), y * half // max(1, evidence.runs_q)) for x, y in evidence.events
        )
        return any(certifier.guess(certifier.counts(*both, runs), finding.claim, delta, level) for both in shares)

    runs = FEWEST
    while runs < most and not refutes(runs, alpha**POWER):
        runs += runs // 4
    return min(runs, most) if refutes(min(runs, most), alpha) else 0


def _again(plan: Plan, session: Session, finding: Finding, way: Way, runs: int) -> Finding | None:
    """The finding on runs of units of their own; None where too many would be needed, or they cannot be had."""
    witness, watch = finding.witness, Watch(finding.witness.event)
    parts: list[Integers] = []
    done, rest_s = 0, 0.0
    with suppress(DpAuditError), session.stage("one run in each", runs):
        while done < runs and session.decided("second bound goes on", partial(int, rest_s <= LONGEST_S)):
            stop = min(runs, max(TRIED, TRIED * done))
            counts, seconds = way(watch, witness.pair, done, stop)
            parts.append(counts)
            rest_s, done = (seconds - START_S) / (stop - done) * (runs - stop), stop
        if 0 < runs == done:
            total = np.sum(parts, axis=0)
            evidence = evidence_of(witness, watch.hits(total), total[:2])
            certificate = certificate_of(witness, evidence, finding.claim, plan.confidence, plan.certifier)
            return replace(finding, evidence=evidence, certificate=certificate)
    return None


def _calls(session: Session, size: int, watch: Watch, pair: int, start: int, stop: int) -> tuple[Integers, float]:
    """With a fixed number of runs in a call, a shard has one run, and the call one that counts."""
    work = shards(Stage.CERTIFY, pair, stop - start, size, start=start)
    counts = session.shard_counts(work, watch)
    if len(counts) < len(work):
        raise OutOfTime
    return np.sum([*counts.values()], axis=0), session.run_s * (stop - start)


def _processes(session: Session, watch: Watch, pair: int, start: int, stop: int) -> tuple[Integers, float]:
    began, fresh = time.monotonic(), run_processes(session, pair, None, stop - start, start)
    return watch.mixed(fresh.outputs, fresh.sides), time.monotonic() - began
