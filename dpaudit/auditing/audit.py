"""The stages of one audit in their order: probe, search, freeze, certify on fresh runs, check the health."""

import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dpaudit.auditing import probing
from dpaudit.auditing.anytime import bet
from dpaudit.auditing.certifying import Counted, Outcome, certified, certify, finding_of
from dpaudit.auditing.clock import Clock, cut
from dpaudit.auditing.controls import most_runs, with_controls
from dpaudit.auditing.health.checks import check_compared, judge
from dpaudit.auditing.health.pilot import constants, nearly_constant
from dpaudit.auditing.health.processes import compare_twins
from dpaudit.auditing.known import known_upper
from dpaudit.auditing.other_witnesses import (
    SELECTOR,
    Firsts,
    begin_first_calls,
    find_representation,
    first_calls,
)
from dpaudit.auditing.probing import kept_back, looked_again
from dpaudit.auditing.question import Plan, Question
from dpaudit.auditing.search_stage import find_witness
from dpaudit.auditing.shown import endings, histogram, notes, typical
from dpaudit.auditing.units import second_bound
from dpaudit.certify.certificate import divided
from dpaudit.certify.sequential import Milestones
from dpaudit.errors import InvalidSpec, OutOfTime, UnsoundAudit, at
from dpaudit.execution.engine import Engine, Session
from dpaudit.execution.journal import Frozen
from dpaudit.outputs.canonical import Pilot
from dpaudit.results.certification import AuditEvidence, Witness, ceiling_of
from dpaudit.results.observations import FIRST_CALLS, PROCESSES, Explored, Health
from dpaudit.results.provenance import short_path, versions
from dpaudit.results.result import ALONE_WORDS, AuditResult, Finding, Illustration, Units
from dpaudit.running.progress import SILENT, Progress
from dpaudit.running.streams import apart, rechecking
from dpaudit.running.worker import BatchFailed, Probe
from dpaudit.search.entries import unpaired

STRANGERS = "the streams of the first runs gave {where} other outputs than here: other libraries, or hardware"


def run_audit(
    asked: Question, engine: Engine, *, progress: Progress = SILENT, clock: Clock | None = None
) -> AuditResult:
    """The answer to a plan. Raises `UnsoundAudit` where the experiment broke and there is no verdict.

    Where a `clock` says that time runs out, search and certification have fewer runs than the plan. Controls are
    audits of their own, with the plan's runs each, beyond the runs and the time that the result counts; of a clock they
    have half the time, and those that it cuts short count for nothing. They are made
    where the claim is not refuted: a leak that is there already would be caught in every one of them. A mechanism may
    bring the exact loss of the pair, as the result's `upper`.
    """
    plan, clock = asked.resolved(), clock or Clock()
    more = most_runs(plan, plan.controls) if plan.controls else 0
    progress.plan(plan.runs + more, engine.workers.width, clock.end - clock.now())
    before = clock.without_controls() if plan.controls else clock
    result = run_stages(plan, engine, progress=progress, clock=before)
    pair = plan.pairs[result.witness.pair]
    result = replace(result, upper=known_upper(plan.mechanism, pair, result.certificate.delta))
    if not plan.controls or result.refuted:
        return result
    return with_controls(result, plan, engine, run_stages, progress=progress, clock=clock)


def run_stages(plan: Plan, engine: Engine, *, progress: Progress = SILENT, clock: Clock | None = None) -> AuditResult:
    """The answer to a plan, controls apart. Raises `UnsoundAudit` where the experiment broke: no verdict.

    A `clock` takes runs off search and certification where they would not fit.
    """
    started, wall, cpu = datetime.now(UTC), time.perf_counter(), time.process_time()
    engine.progress, clock = progress, clock or Clock()
    with engine.session(plan.mechanism, plan.pairs, plan.seed, plan.run_timeout_s) as session:
        clock.limits(engine)
        probe, reserve, outcome = _answered(plan, session, clock)
        findings = [certified(plan, counted, outcome.blocks) for counted in outcome.counted]
        refuted = any(finding.certificate.refuted for finding in findings)
        clock.limits(engine)
        judged = _judged(plan, session, probe, reserve - outcome.firsts, outcome, refuted=refuted)
        probe, health = judged.probe, judged.health
        units = second_bound(plan, session, outcome, findings, health, reproducible=probe.reproducible)
    return _result(
        plan,
        replace(outcome, explored=(*outcome.explored, *judged.explored)),
        findings,
        judged,
        units,
        probe.runs + outcome.runs + outcome.firsts + judged.runs,
        outcome.milestones if clock.limited else None,
        provenance={
            **versions(),
            "started": started.isoformat(timespec="seconds"),
            "wall_s": round(time.perf_counter() - wall, 3),
            "cpu_s": round(time.process_time() - cpu + session.worked_s, 3),
            "n_jobs": engine.workers.width,
            "backend": ", ".join(session.pool_names),
            "isolation": "process" if engine.isolated else "none",
            "task_runs": engine.task_runs,
            **({"hosts": hosts} if (hosts := session.hosts) else {}),
            "max_time_s": None,
            "file": short_path(plan.description.file),
            "line": plan.description.line,
            **({"excerpt": list(plan.description.excerpt)} if plan.description.excerpt else {}),
            "command": None,
            "source": None,
        },
    )


def repeat_witness(
    witness: Witness, asked: Question, engine: Engine, *, seed: int, alone: bool = False, progress: Progress = SILENT
) -> tuple[AuditEvidence, Health]:
    """Fresh runs of a frozen witness, all that are asked: counts for a certificate of their own, and their health.

    Their streams are those of `rechecking`: who audited with this seed, or any other, has not seen them. `alone` gives
    a batched mechanism a call for each run, as the audit that found the witness may have done. Raises `UnsoundAudit`
    where the runs are not independent, as an audit does.
    """
    plan = replace(asked.resolved(), stopping="fixed", certify_pairs=1)
    engine.progress = progress
    progress.plan(plan.runs, engine.n_jobs)
    with engine.session(plan.mechanism, plan.pairs, rechecking(seed), plan.run_timeout_s) as session:
        if alone:
            session.begin_alone(rechecking(seed))
        probe = probing.probe(plan, session)
        reserve, pilot = kept_back(plan, probe), probe.pilots[witness.pair]
        counted = certify(plan, session, witness, pilot, plan.runs - probe.runs - reserve, Clock())
        outcome = Outcome((counted,), counted.evidence.runs, (), None)
        return counted.evidence, _judged(plan, session, probe, reserve, outcome, refuted=True, glance=pilot).health


def _answered(plan: Plan, session: Session, clock: Clock) -> tuple[Probe, int, Outcome]:
    """The probe, the runs kept back for fresh processes, and what the stages between found.

    Where a batched call first raises before an event is frozen, all begins anew, one run a call: those runs and the
    event are independent of the ones that raised. Bets that came before have used up their share of the error.
    """
    probe = probing.probe(plan, session)
    reserve = kept_back(plan, probe)
    clock.opened(session)
    clock.searching(session.engine)
    session.start_workers(plan.runs * probe.run_s)
    begin_first_calls(plan, session, probe, reserve // 2)
    try:
        take = bet if plan.stopping == "anytime" else _search_and_certify
        return probe, reserve, take(plan, session, probe, probe.runs + reserve, clock)
    except BatchFailed as error:
        if session.certifying:
            raise UnsoundAudit(
                f"{error}, for the first time while certifying, where no run may be left out by its outcome; give one "
                "run a call, as in lambda data, rng: f(data, 1, rng)[0], and another seed"
            ) from None
        gone = probe.runs + session.asked_for
        session.begin_alone(apart(plan.seed))
        try:
            smaller = replace(plan, runs=plan.runs - gone)
        except InvalidSpec:
            raise UnsoundAudit(
                f"{error}; too few runs are left to begin anew with one run a call; give more runs"
            ) from None
        probe = probing.probe(smaller, session)
        reserve = kept_back(smaller, probe)
        clock.begin(session.made, session.opening_s)
        outcome = _search_and_certify(smaller, session, probe, probe.runs + reserve, clock)
        return probe, reserve, replace(outcome, runs=outcome.runs + gone)


def _search_and_certify(plan: Plan, session: Session, probe: Probe, spent: int, clock: Clock) -> Outcome:
    search = find_witness(plan, session, spent=spent, clock=clock)
    planned = plan.runs - spent - search.runs
    left = clock.certifiable(plan, planned, session)
    certifying, explored, bits = left // len(search.witnesses), search.explored, None
    if left < planned:
        explored = (*explored, cut(f"{left:,} certifying runs", planned))
    if plan.representation:
        clock.planning(session.engine)
        status, asked = "max_time_s left no time for them", (plan, search.pilots[0], search.witness.pair, certifying)
        with suppress(OutOfTime):
            bits = session.thinking(find_representation, *asked)
            status = "nothing beyond the rounded values"
        if bits is None:
            explored = (*explored, Explored("representation", "bits of floats", status))
    pilots = [
        Pilot.joined([probe.pilots[witness.pair], pilot])
        for witness, pilot in zip(search.witnesses, search.pilots, strict=True)
    ]
    counted: list[Counted] = []
    witnesses, plain, firsts = search.witnesses, search.plain, Firsts()
    if not any(constants(pilot).give_away for pilot in pilots):
        firsts = first_calls(plan, session, search.witness.pair, pilots[0], (spent - probe.runs) // 2)
        explored = (*explored, *firsts.explored)
    if firsts.witness is not None:
        witnesses, plain, pilots, bits = (firsts.witness,), (None,), pilots[:1], None
    for number, (witness, pilot) in enumerate(zip(witnesses, pilots, strict=True)):
        last = number == len(witnesses) - 1
        clock.certifying(session.engine, len(witnesses) - number)
        try:
            asked_too = {"bits": None if number else bits, "plain": plain[number]}
            also = {name: each for name, each in asked_too.items() if each is not None}
            wanted = last and not counted
            counted.append(certify(plan, session, witness, pilot, certifying, clock, also, wanted=wanted))
        except Frozen:  # and so are those of the witnesses to come
            continue
        except OutOfTime:
            if last and not counted:
                raise
            name = str(plan.pairs[witness.pair].name)
            explored = (*explored, Explored("time", name, "max_time_s left no time to certify what search found"))
    if session.engine.recorder.put_off:
        raise Frozen
    for each in counted:
        if each.part < 1.0 and each.evidence.runs < certifying:
            part = f"{each.evidence.runs:,} certifying runs, a milestone that was fixed before them,"
            explored = (*explored, cut(part, certifying))
    runs = search.runs + sum(each.evidence.runs + each.beyond for each in counted)
    shown = next(
        pilot for witness, pilot in zip(witnesses, pilots, strict=True) if witness.pair == counted[0].witness.pair
    )
    outcome = Outcome(tuple(counted), runs, explored, shown, firsts=firsts.runs)
    # runs in fresh processes may be as many as a milestone has: then they have its part, as who reads the result finds
    return replace(outcome, counted=tuple(replace(each, milestones=outcome.milestones) for each in counted))


# --- health, and the whole answer -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Judged:
    """The health of the experiment, the probe, which a fresh process may contradict, and the runs in fresh processes.

    `explored` says that there was no time for these.
    """

    health: Health
    probe: Probe
    runs: int = 0
    explored: tuple[Explored, ...] = ()


def _judged(
    plan: Plan,
    session: Session,
    probe: Probe,
    reserve: int,
    outcome: Outcome,
    *,
    refuted: bool,
    glance: Pilot | None = None,
) -> Judged:
    """Judges the experiment. Raises `UnsoundAudit` where runs depend on each other, or none gave an outcome.

    `reserve` runs are there for fresh processes; a refutation wants them, whatever time is left.
    """
    first, pilot = outcome.counted[0], outcome.pilot
    strangers = session.strangers
    probe = replace(probe, reproducible=probe.reproducible and not strangers)
    twins, afresh, explored = None, 0, tuple[Explored, ...]()
    try:
        probe, afresh = looked_again(session, probe, refuted)
        # outputs of one process may be answers kept from its first draws, which only another stream tells
        may_be_kept = first.processes is None and pilot is not None and nearly_constant(pilot)
        if not probe.reproducible or (refuted and may_be_kept):
            twins = compare_twins(session, first.witness.pair, probe, reserve - afresh, refuted=refuted)
    except OutOfTime:
        if refuted:
            raise
        explored = (Explored("time", "fresh processes", "max_time_s left no time to compare them with the others"),)
    for place, each in enumerate(outcome.counted):
        seen = None if place else pilot or glance
        check_compared(each.witness, each.evidence, plan.pairs[each.witness.pair].name, seen, refuted=refuted)
    processes = [each.processes for each in outcome.counted if each.processes is not None]
    health = judge(
        None if first.processes is not None else pilot,
        outcome.looked,
        pairs=len(plan.pairs),
        twins=twins,
        processes=[each.seen for each in processes],
        ends=outcome.ends,
    )
    told = STRANGERS.format(where=" and ".join(strangers[:3]))
    with at(told) if strangers else nullcontext():
        health.raise_if_unsound()
    if processes:
        far = ", as far as outputs were looked at" if pilot is not None and pilot.unseen else ""
        alike = (
            f"every run on a dataset gave one and the same output{far}: each certifying run was made in a fresh process"
        )
        note = (
            "each certifying run is the first of a fresh process"
            if first.witness.selector.startswith(SELECTOR)
            else alike
        )
        health = replace(health, notes=(*health.notes, f"{note}, {sum(each.runs for each in processes):,} in all"))
    if strangers:
        health = replace(health, notes=(*health.notes, told))
    return Judged(health, probe, afresh + (0 if twins is None else min(twins.runs, reserve - afresh)), explored)


def _result(
    plan: Plan,
    outcome: Outcome,
    findings: list[Finding],
    judged: Judged,
    units: Units | None,
    spent: int,
    milestones: Milestones | None,
    provenance: dict[str, Any],
) -> AuditResult:
    first = min(range(len(findings)), key=lambda j: findings[j].certificate.p_value)
    main = findings.pop(first)
    explored = outcome.explored
    if judged.probe.alone:
        note = f"{ALONE_WORDS}: a batched call raised, and an exception belongs to one run"
        explored = (*explored, Explored("mechanism", plan.mechanism.name, note))
    apart = sum(0 if each.processes is None else each.processes.runs for each in outcome.counted)
    if apart and not outcome.firsts:
        explored = (*explored, Explored(PROCESSES, FIRST_CALLS, "each certifying run is one", runs=apart))
    shown = outcome.pilot if main.witness.pair == outcome.counted[0].witness.pair else None
    ends = endings(shown, main.witness)
    exceptions = {label: note for label, note in notes(shown).items() if label in {each.what for each in ends}}
    details = {"exceptions": exceptions, "reasons": {pair.name: pair.reason for pair in plan.pairs if pair.reason}}
    level = divided(plan.fixed_level, 1.0 / outcome.counted[first].part)
    bits = finding_of(plan, outcome.counted[0], "bits", plan.confidence)  # at the whole confidence
    plain = finding_of(plan, outcome.counted[first], "plain", plan.level)
    refuting = [each.witness for each in (main, bits) if each is not None and each.certificate.refuted]
    return AuditResult(
        spec=plan.to_dict(),
        claim=main.claim,
        witness=main.witness,
        evidence=main.evidence,
        certificate=main.certificate,
        runs_used=spent,
        explored=explored,
        ceiling=ceiling_of(main.witness, main.evidence, main.claim, level, plan.certifier),
        reproducible=judged.probe.reproducible,
        health=judged.health,
        blocks=outcome.blocks,
        others=tuple(findings),
        representation=bits,
        plain=plain,
        units=units,
        milestones=milestones,
        adjacency=tuple(pair.adjacency()[plan.claim.relation] for pair in plan.pairs),
        unseen=0 if outcome.pilot is None else outcome.pilot.unseen,
        unread="" if outcome.pilot is None else outcome.pilot.unread,
        unpaired=0 if outcome.pilot is None else max(map(unpaired, (outcome.pilot.first, outcome.pilot.second))),
        illustration=Illustration(
            histogram(shown, main.witness),
            outcome.counted[first].trail,
            ends,
            typical(shown, refuting[0]) if refuting else None,
        ),
        provenance={**provenance, **{key: words for key, words in details.items() if words}},
    )
