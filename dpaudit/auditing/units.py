"""A second bound for a refutation whose runs may share noise: one run in each of many calls, or fresh processes.

Runs of one call of a batched mechanism, or of one process that keeps something, may share a part of their noise though
each alone keeps the claim. Runs of which each has a call, or a process, of its own do not; what they certify by the
same certifier needs nothing but that calls, or processes, are independent: docs/statistics/separation.md.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import numpy as np

from dpaudit.auditing.certifying import Outcome, beside
from dpaudit.auditing.health.processes import run_processes
from dpaudit.auditing.spec import ResolvedSpec
from dpaudit.certify.certificate import error_probability
from dpaudit.errors import DpAuditError, OutOfTime
from dpaudit.mechanisms.importing import is_own
from dpaudit.results.audited import Finding, Units
from dpaudit.results.certification import AuditEvidence, certificate_of, evidence_of, frozen_delta_of
from dpaudit.results.witness import Witness
from dpaudit.sampling import Session, Stage, Watch, apart, shards

FEWEST, MOST_CALLS, MOST_OF_A_SIZE, MOST_PROCESSES = 64, 1 << 15, 1 << 10, 1 << 9
TRIED = 8  # calls or processes that tell how long the others would take
LONGEST_S = 10.0
POWER = 4  # ln of the error probability at which expected counts refute, in that of the audit: found in 999 of 1,000

Run = Callable[[int, int], tuple[AuditEvidence, float]]  # counts of runs from one place to another, and their seconds


def second_bound(
    spec: ResolvedSpec, session: Session, outcome: Outcome, findings: Sequence[Finding], *, reproducible: bool
) -> Units | None:
    """The second bound where one is needed: its runs come beyond those of the spec, and change nothing else.

    None where nothing is refuted, where each run had a process of its own, and where the unit is the run: run by run,
    of a mechanism that is no factory or that a fresh process repeats; and of our own samplers.
    """
    decisive = min(findings, key=lambda each: each.certificate.p_value), beside(spec, outcome.counted[0], "bits", spec.confidence)
    refuting = [each for each in decisive if each is not None and each.certificate.refuted]
    apart_already = any(each.processes is not None for each in outcome.counted)
    if not refuting or apart_already or is_own(spec.description.reference or ""):
        return None
    looks = [*outcome.watched, *(each.looked for each in outcome.counted if each.looked is not None)]
    if spec.description.kind == "built in the worker" and not reproducible:
        used = 1 if session.one_process else session.engine.n_jobs
        ways = [partial(_processes, session, each.witness) for each in refuting]
        most = MOST_PROCESSES
    elif not session.per_run or any(look.calls.any() for look in looks):
        used, size = 0, 0 if spec.description.kind in ("batched", "command") else 1
        size = 1 if "size" in spec.description.parameters else size
        session.begin_alone(apart(spec.seed))
        ways = [partial(_calls, session, size or spec.shard_runs, each.witness) for each in refuting]
        most = MOST_OF_A_SIZE if size else MOST_CALLS
    else:
        return None
    bets = sum(block.evidence.runs for block in outcome.blocks)
    again = [
        _again(spec, session, each, way, _needed(spec, each, most, bets)) for each, way in zip(refuting, ways, strict=True)
    ]
    there = tuple(each for each in again if each is not None)
    return Units(used, there if len(there) == len(again) else ())


def _again(spec: ResolvedSpec, session: Session, finding: Finding, run: Run, runs: int) -> Finding | None:
    """The finding on runs of units of their own; None where too many would be needed, or they cannot be had."""
    if not runs:
        return None
    with suppress(DpAuditError), session.stage("units apart", runs):
        tried, seconds = run(0, TRIED)
        if session.decided(lambda: int(seconds / TRIED * runs <= LONGEST_S)):
            evidence = tried + run(TRIED, runs)[0]
            certificate = certificate_of(finding.witness, evidence, finding.claim, spec.confidence, spec.certifier)
            return Finding(finding.claim, finding.witness, evidence, certificate)
    return None


def _needed(spec: ResolvedSpec, finding: Finding, most: int, bets: int) -> int:
    """How many runs of their own refute nearly surely where rates are as counted, `most` if they may do; else 0."""
    evidence, alpha = finding.evidence, error_probability(spec.confidence)
    if evidence.runs == 0:
        return min(most, max(FEWEST, POWER * bets))  # the bets refuted before any run was counted for a fixed bound
    delta, certifier = frozen_delta_of(finding.witness, finding.claim), spec.certifier.of(evidence)

    def refutes(runs: int, level: float) -> bool:
        return certifier.guess(evidence.about(runs), finding.claim, delta, level)

    runs = FEWEST
    while runs < most and not refutes(runs, alpha**POWER):
        runs *= 2
    return runs if refutes(runs, alpha) else 0


def _calls(session: Session, size: int, witness: Witness, start: int, stop: int) -> tuple[AuditEvidence, float]:
    watch = Watch(witness.event)
    work = shards(Stage.CERTIFY, witness.pair, stop - start, size, start=start)
    found = session.shard_counts(work, watch)
    if len(found) < len(work):
        raise OutOfTime
    total = np.sum([*found.values()], axis=0)
    return evidence_of(witness, watch.hits(total), total[:2]), session.run_s * (stop - start)


def _processes(session: Session, witness: Witness, start: int, stop: int) -> tuple[AuditEvidence, float]:
    began = time.monotonic()
    watch, found = Watch(witness.event), run_processes(session, witness.pair, None, stop - start, start)
    counts = watch.mixed(found.outputs, found.sides)
    return evidence_of(witness, watch.hits(counts), counts[:2]), time.monotonic() - began
