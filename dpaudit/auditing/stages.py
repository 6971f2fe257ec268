"""The stages of one audit in their order: probe, search, freeze, certify on fresh runs, check the health."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dpaudit.auditing import health
from dpaudit.auditing.anytime import run_blocks
from dpaudit.auditing.clock import Clock, cut
from dpaudit.auditing.counting import Counted, Counting
from dpaudit.auditing.endings import endings, notes
from dpaudit.auditing.health import Twins
from dpaudit.auditing.health.comparing import check_compared
from dpaudit.auditing.health.pilot import constants, nearly_constant
from dpaudit.auditing.health.processes import compare_twins
from dpaudit.auditing.histogram import histogram
from dpaudit.auditing.searching.representation import find_representation
from dpaudit.auditing.searching.screening import budget, goal, screen
from dpaudit.auditing.searching.search import find_witness
from dpaudit.auditing.spec import FEWEST_RUNS, AuditSpec, ResolvedSpec
from dpaudit.certify.sequential import Block
from dpaudit.errors import InvalidSpec, UnsoundAudit
from dpaudit.events.search import unpaired
from dpaudit.outputs import Pilot
from dpaudit.results.audited import Finding
from dpaudit.results.beside import Explored
from dpaudit.results.certification import (
    Evidence,
    anytime_certificate,
    ceiling_of,
    certificate_of,
    nothing,
)
from dpaudit.results.health import Health
from dpaudit.results.provenance import short_path, versions
from dpaudit.results.rechecking import ALONE_WORDS
from dpaudit.results.result import AuditResult
from dpaudit.results.witness import Witness
from dpaudit.sampling import SILENT, BatchFailed, Engine, Probe, Progress, Session, apart, rechecking
from dpaudit.sampling.order import Looked

PROBE_SHARE = 200  # the probe takes at most one run in so many
LARGEST_TWINS, FEW_TWINS, TWINS_SHARE = 512, 64, 50  # runs in fresh processes at the end, and their part of all
LARGEST_PROBE = {True: 64, False: 2048}  # runs, of per-run and of batched mechanisms


@dataclass(frozen=True, slots=True)
class Answer:
    """What the stages after the probe found: witnesses with their counts, the runs made, and what was looked at."""

    counted: tuple[Counted, ...]
    runs: int
    explored: tuple[Explored, ...]
    pilot: Pilot | None
    watched: tuple[Looked, ...] = ()
    blocks: tuple[Block, ...] = ()
    ends: int = 1


def run_stages(
    spec: ResolvedSpec, engine: Engine, *, progress: Progress = SILENT, clock: Clock | None = None
) -> AuditResult:
    """The answer to a spec, controls apart. Raises `UnsoundAudit` where the experiment broke: no verdict.

    A `clock` takes runs off search and certification where they would not fit.
    """
    started, wall, cpu = datetime.now(UTC), time.perf_counter(), time.process_time()
    engine.progress = progress
    with engine.session(spec.mechanism, spec.pairs, spec.seed, spec.run_timeout_s) as session:
        probe, kept, answer = _answered(spec, session, progress, clock)
        findings = tuple(_finding(spec, each, answer) for each in answer.counted)
        refuted = any(each.certificate.refuted for each in findings)
        probe, afresh = _looked_again(session, probe, refuted)
        twins = None
        if not probe.reproducible or (refuted and _may_be_kept(answer)):
            twins = compare_twins(session, findings[0].witness.pair, probe, kept - afresh)
        found = _checked(spec, answer, twins)
        spent = probe.runs + answer.runs + afresh + (0 if twins is None else twins.runs)
        pools, worked_s = list(session.pool_names), session.worked_s
    return _result(
        spec,
        answer,
        findings,
        found,
        probe,
        spent,
        provenance={
            **versions(),
            "started": started.isoformat(timespec="seconds"),
            "wall_s": round(time.perf_counter() - wall, 3),
            "cpu_s": round(time.process_time() - cpu + worked_s, 3),
            "n_jobs": engine.n_jobs,
            "backend": ", ".join(pools),
            "task_runs": engine.task_runs,
            "max_time_s": None,
            "file": short_path(spec.description.file),
            "line": spec.description.line,
            "command": None,
            "source": None,
        },
    )


def repeat_witness(
    witness: Witness, asked: AuditSpec, engine: Engine, *, seed: int, alone: bool = False, progress: Progress = SILENT
) -> tuple[Evidence, Health]:
    """Fresh runs of a frozen witness, all that are asked: counts for a certificate of their own, and their health.

    Their streams are those of `rechecking`: who audited with this seed, or any other, has not seen them. `alone` gives
    a batched mechanism a call for each run, as the audit that found the witness may have done. Raises `UnsoundAudit`
    where the runs are not independent, as an audit does.
    """
    spec = asked.resolved()
    engine.progress = progress
    with engine.session(spec.mechanism, spec.pairs, rechecking(seed), spec.run_timeout_s) as session:
        if alone:
            session.begin_alone(rechecking(seed))
        probe = _probe(spec, session, progress)
        kept = _kept_back(spec, probe)
        counting = Counting(spec, session, progress, spec.confidence)
        runs = spec.runs - probe.runs - kept
        counted = counting.count(witness, None, probe.pilots[witness.pair], runs)
        answer = Answer((counted,), counted.evidence.runs, (), None)
        probe, afresh = _looked_again(session, probe, True)
        twins = None if probe.reproducible else compare_twins(session, witness.pair, probe, kept - afresh)
        return counted.evidence, _checked(spec, answer, twins, probe.pilots[witness.pair])


def _answered(
    spec: ResolvedSpec, session: Session, progress: Progress, clock: Clock | None
) -> tuple[Probe, int, Answer]:
    """The probe, the runs kept back for fresh processes, and what the stages between found.

    Where a batched call first raises before an event is frozen, all begins anew, one run a call: those runs and the
    event are independent of the ones that raised. Bets that came before have used up their share of the error.
    """
    probe = _probe(spec, session, progress)
    kept = _kept_back(spec, probe)
    if clock is not None:
        clock.begin()
    try:
        take = _bet if spec.stopping == "anytime" else _search_and_certify
        return probe, kept, take(spec, session, progress, probe, probe.runs + kept, clock)
    except BatchFailed as error:
        if session.certifying:
            raise UnsoundAudit(
                f"{error}, the first time in this audit that one did: to leave the call out would choose runs by their "
                "outcome; give one run a call, as in lambda data, rng: f(data, 1, rng)[0], and another seed"
            ) from None
        gone = probe.runs + session.asked_for
        session.begin_alone(apart(spec.seed))
        try:
            smaller = replace(spec, runs=spec.runs - gone)
        except InvalidSpec:
            raise UnsoundAudit(f"{error}; too few runs are left to begin anew, one run a call: give more") from None
        probe = _probe(smaller, session, progress)
        kept = _kept_back(smaller, probe)
        if clock is not None:
            clock.begin(session.asked_for)
        answer = _search_and_certify(smaller, session, progress, probe, probe.runs + kept, clock)
        return probe, kept, replace(answer, runs=answer.runs + gone)


def _probe(spec: ResolvedSpec, session: Session, progress: Progress) -> Probe:
    session.per_run = spec.description.kind == "per-run" or spec.description.kind == "built in the worker"
    runs = min(LARGEST_PROBE[session.per_run], max(2, spec.runs // PROBE_SHARE))
    progress.begin("probe", runs)
    probe = session.probe(runs)
    progress.end()
    session.per_run = session.per_run or probe.alone
    return probe


# --- search, then certify -----------------------------------------------------------------------------------------


def _search_and_certify(
    spec: ResolvedSpec, session: Session, progress: Progress, probe: Probe, spent: int, clock: Clock | None
) -> Answer:
    found = find_witness(spec, session, progress, spent=spent, clock=clock)
    left = planned = spec.runs - spent - found.runs
    if clock is not None:  # for good: when a run ends may depend on what it gives
        left = min(left, max(FEWEST_RUNS, clock.fitting(left, session)))
    certifying = left // len(found.witnesses)
    pilots = [
        Pilot.joined([probe.pilots[witness.pair], pilot])
        for witness, pilot in zip(found.witnesses, found.pilots, strict=True)
    ]
    explored = found.explored
    if left < planned:
        explored = (*explored, cut(f"{left:,} certifying runs", planned))
    bits = None
    if spec.representation:
        bits = find_representation(spec, found.pilots[0], found.witness.pair, certifying)
        if bits is None:
            explored = (*explored, Explored("representation", "bits of floats", "nothing beyond the rounded values"))
    counting = Counting(spec, session, progress, spec.fixed_level)
    counted = tuple(
        counting.count(witness, bits if number == 0 else None, pilot, certifying)
        for number, (witness, pilot) in enumerate(zip(found.witnesses, pilots, strict=True))
    )
    return Answer(counted, found.runs + sum(each.evidence.runs for each in counted), explored, pilots[0])


# --- bet block by block ---------------------------------------------------------------------------------------------


def _bet(
    spec: ResolvedSpec, session: Session, progress: Progress, probe: Probe, spent: int, clock: Clock | None
) -> Answer:
    parts = budget(spec, spent=spent)
    screened = screen(spec, session, progress, runs=parts.screening, certifying=parts.certifying)
    pair = screened.looks[0].pair
    left = spec.runs - spent - screened.runs
    aim = goal(spec, pair, parts.certifying)
    found = run_blocks(spec, session, progress, pair=pair, runs=left, goal=aim, clock=clock)
    explored, runs = (*screened.explored, *found.explored), screened.runs + found.runs
    pilot = probe.pilots[pair] if found.pilot is None else Pilot.joined([probe.pilots[pair], found.pilot])
    unspent = left - found.runs
    alike = constants(pilot).give_away
    if alike and unspent > 0:  # the runs of the blocks may all be one
        counted = Counting(spec, session, progress, spec.fixed_level).count(found.witness, None, pilot, unspent)
        return Answer((counted,), runs + counted.evidence.runs, explored, pilot, ends=found.ends)
    if found.evidence is not None and found.runs < left:
        explored = (*explored, cut(f"{found.runs:,} runs", left))
    counted = Counted(found.witness, found.evidence or nothing(found.witness))
    answer = Answer((counted,), runs, explored, pilot, found.watched, found.blocks, found.ends)
    if alike and _finding(spec, counted, answer).certificate.refuted:
        raise UnsoundAudit(
            "constant outputs: each dataset always gave its own output in one process, and no run is left for "
            "fresh processes, which would tell a cache; give more runs"
        )
    return answer


# --- health, and the whole answer -----------------------------------------------------------------------------------


def _kept_back(spec: ResolvedSpec, probe: Probe) -> int:
    """Runs for fresh processes at the end: shards there, and before them the look of a probe that repeated itself."""
    if not probe.reproducible:
        return max(2, min(LARGEST_TWINS, spec.runs // TWINS_SHARE))
    return len(probe.pilots[0].sides) + max(2, min(FEW_TWINS, spec.runs // TWINS_SHARE))


def _looked_again(session: Session, probe: Probe, refuted: bool) -> tuple[Probe, int]:
    """The probe, `reproducible` only if a fresh process repeats it too, and the runs that took; before a refutation.

    What a process drew before its first run, and keeps, repeats itself there and nowhere else.
    """
    if not (probe.reproducible and refuted):
        return probe, 0
    pilot = probe.pilots[0]
    return replace(probe, reproducible=session.repeats_afresh(pilot, 0)), len(pilot.sides)


def _may_be_kept(answer: Answer) -> bool:
    """Whether outputs of one process look like answers kept from its first draws, which only another stream tells."""
    return answer.counted[0].processes is None and answer.pilot is not None and nearly_constant(answer.pilot)


def _checked(spec: ResolvedSpec, answer: Answer, twins: Twins | None, held: Pilot | None = None) -> Health:
    """The health of the experiment; raises `UnsoundAudit` where runs depend on each other, or none gave an answer."""
    for place, each in enumerate(answer.counted):
        pilot = None if place else answer.pilot or held
        check_compared(each.witness, each.evidence, spec.pairs[each.witness.pair].name, pilot)
    processes = [each.processes for each in answer.counted if each.processes is not None]
    watched = [each.looked for each in answer.counted if each.looked is not None]
    found = health.judge(
        None if answer.counted[0].processes is not None else answer.pilot,
        (*answer.watched, *watched),
        pairs=len(spec.pairs),
        twins=twins,
        processes=[each.seen for each in processes],
        ends=answer.ends,
    ).raise_if_unsound()
    if not processes:
        return found
    seen = answer.pilot
    far = ", as far as outputs were looked at" if seen is not None and seen.unseen else ""
    raised = ", exceptions told by type" if seen is not None and (seen.first.notes or seen.second.notes) else ""
    note = (
        f"every run on a dataset gave one and the same output{raised}{far}: each certifying run was made in a fresh "
        f"process, {sum(each.runs for each in processes):,} in all"
    )
    return replace(found, notes=(*found.notes, note))


def _result(
    spec: ResolvedSpec,
    answer: Answer,
    certified: tuple[Finding, ...],
    found: Health,
    probe: Probe,
    spent: int,
    provenance: dict[str, Any],
) -> AuditResult:
    findings = list(certified)
    first = min(range(len(findings)), key=lambda j: findings[j].certificate.p_value)
    main = findings.pop(first)
    explored = answer.explored
    if probe.alone:
        note = f"{ALONE_WORDS}: a batched call raised, and an exception belongs to one run"
        explored = (*explored, Explored("mechanism", spec.mechanism.name, note))
    shown = answer.pilot if main.witness.pair == answer.counted[0].witness.pair else None
    ends = endings(shown, main.witness)
    said = {label: note for label, note in notes(shown).items() if label in {each.what for each in ends}}
    bits = answer.counted[0].bits
    return AuditResult(
        spec=spec.to_dict(),
        claim=main.claim,
        witness=main.witness,
        evidence=main.evidence,
        certificate=main.certificate,
        runs_used=spent,
        explored=explored,
        ceiling=ceiling_of(main.witness, main.evidence, main.claim, spec.fixed_level, spec.certifier),
        reproducible=probe.reproducible,
        health=found,
        blocks=answer.blocks,
        others=tuple(findings),
        representation=None if bits is None else _of_bits(spec, *bits),
        histogram=histogram(shown, main.witness),
        trail=answer.counted[first].trail,
        endings=ends,
        adjacency=tuple(pair.adjacency()[spec.claim.relation] for pair in spec.pairs),
        unseen=0 if answer.pilot is None else answer.pilot.unseen,
        unpaired=0 if answer.pilot is None else max(map(unpaired, (answer.pilot.first, answer.pilot.second))),
        provenance={**provenance, **({"exceptions": said} if said else {})},
    )


def _finding(spec: ResolvedSpec, counted: Counted, answer: Answer) -> Finding:
    witness, evidence, certifier = counted.witness, counted.evidence, spec.certifier
    claim = spec.claim_at(witness.pair)  # a pair k steps apart is certified against what the claim implies there
    if spec.stopping == "anytime":
        share = spec.sequential_share
        certificate = anytime_certificate(
            answer.blocks, witness, evidence, claim, spec.confidence, certifier, share=share
        )
    else:
        certificate = certificate_of(witness, evidence, claim, spec.level, certifier)
    return Finding(claim, witness, evidence, certificate)


def _of_bits(spec: ResolvedSpec, witness: Witness, evidence: Evidence) -> Finding:
    claim = spec.claim_at(witness.pair)
    certificate = certificate_of(witness, evidence, claim, spec.confidence, spec.certifier)
    return Finding(claim, witness, evidence, certificate)
