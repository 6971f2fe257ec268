"""The one place that knows all stages: probe, search, freeze the witness, certify on fresh runs, answer."""

from __future__ import annotations

import os
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpaudit.auditing.result import AuditResult, Explored
from dpaudit.auditing.search import Found, find_witness
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.witness import Witness
from dpaudit.certify import CoinFlip, ceiling, certify
from dpaudit.errors import UnsoundAudit
from dpaudit.events import HitCounter
from dpaudit.sampling import SILENT, Engine, Probe, Progress, Session, Stage, shards

PROBE_SHARE = 200  # the probe takes at most one run in so many
LARGEST_PROBE = {True: 64, False: 2048}  # runs, of per-run and of batched mechanisms


def run_audit(spec: AuditSpec, engine: Engine, *, progress: Progress = SILENT) -> AuditResult:
    """The answer to a spec. Raises `UnsoundAudit` where the experiment broke and there is no verdict."""
    started, wall, cpu = datetime.now(UTC), time.perf_counter(), time.process_time()
    engine.progress = progress
    with engine.session(spec.mechanism, spec.pairs, spec.seed, spec.run_timeout_s) as session:
        probe = _probe(spec, session, progress)
        found = find_witness(spec, session, progress, spent=probe.runs)
        certifying = spec.runs - probe.runs - found.runs
        evidence = _certify(spec, session, found.witness, certifying, progress)
        pools, worked_s = list(session.pool_names), session.worked_s
    return _result(
        spec,
        found,
        evidence,
        probe,
        provenance={
            **versions(),
            "started": started.isoformat(timespec="seconds"),
            "wall_s": round(time.perf_counter() - wall, 3),
            "cpu_s": round(time.process_time() - cpu + worked_s, 3),
            "n_jobs": engine.n_jobs,
            "backend": ", ".join(pools),
            "task_runs": engine.task_runs,
            "max_time_s": None,
            "file": None if spec.description is None else short_path(spec.description.file),
            "line": None if spec.description is None else spec.description.line,
            "command": None,
            "source": None,
        },
    )


def repeat_witness(
    witness: Witness, spec: AuditSpec, engine: Engine, *, seed: int, progress: Progress = SILENT
) -> CoinFlip:
    """Fresh runs of a frozen witness, all of the spec's; the counts alone, for a certificate of their own."""
    engine.progress = progress
    with engine.session(spec.mechanism, spec.pairs, seed, spec.run_timeout_s) as session:
        probe = _probe(spec, session, progress)
        return _certify(spec, session, witness, spec.runs - probe.runs, progress)


def _probe(spec: AuditSpec, session: Session, progress: Progress) -> Probe:
    assert spec.description is not None
    session.per_run = spec.description.kind == "per-run" or spec.description.kind == "built in the worker"
    runs = min(LARGEST_PROBE[session.per_run], max(2, spec.runs // PROBE_SHARE))
    progress.begin("probe", runs)
    probe = session.probe(runs)
    progress.end()
    session.per_run = session.per_run or probe.alone
    return probe


def _certify(spec: AuditSpec, session: Session, witness: Witness, runs: int, progress: Progress) -> CoinFlip:
    assert spec.shard_runs is not None
    progress.begin("certify", runs)
    work = shards(Stage.CERTIFY, witness.pair, runs, spec.shard_runs)
    hits_first, runs_first, hits_second, runs_second = session.counts(work, HitCounter(witness.event)).tolist()
    progress.end()
    if runs_first + runs_second != runs:
        raise UnsoundAudit(
            f"{runs} certifying runs were asked for and {runs_first + runs_second} came back; there is no verdict"
        )
    if witness.p_side == "first":
        return CoinFlip(hits_first, hits_second, runs_first, runs_second)
    return CoinFlip(hits_second, hits_first, runs_second, runs_first)


def _result(spec: AuditSpec, found: Found, evidence: CoinFlip, probe: Probe, provenance: dict[str, Any]) -> AuditResult:
    # a pair k steps apart is certified against what the claim implies at distance k
    claim = spec.claim.at_distance(spec.pairs[found.witness.pair].distance)
    explored = found.explored
    if probe.alone:
        note = "called for one run at a time: a batched call raised, and an exception belongs to one run"
        explored = (*explored, Explored("mechanism", spec.mechanism.name, note))
    return AuditResult(
        spec=spec.to_dict(),
        claim=claim,
        witness=found.witness,
        evidence=evidence,
        certificate=certify(evidence, claim, spec.confidence),
        runs_used=probe.runs + found.runs + evidence.runs,
        explored=explored,
        ceiling=ceiling(evidence.runs_p, evidence.runs_q, claim.delta, spec.confidence),
        reproducible=probe.reproducible,
        provenance=provenance,
    )


def short_path(file: str | None) -> str | None:
    """A source file as seen from here, or from the folder that modules are imported from; never a home folder."""
    if file is None:
        return None
    for folder in [os.getcwd(), *sorted(filter(None, sys.path), key=len, reverse=True)]:
        if Path(file).is_relative_to(folder):
            return str(Path(file).relative_to(folder))
    return Path(file).name


def versions() -> dict[str, str]:
    """What ran: versions of this project, of Python and of the libraries that decide the numbers."""
    from importlib.metadata import PackageNotFoundError, version

    def installed(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "not installed"

    from dpaudit.version import __version__

    names = {name: installed(name) for name in ("numpy", "scipy", "joblib", "statsmodels", "scikit-learn")}
    return {
        "version": __version__,
        "python": platform.python_version(),
        **names,
        "platform": platform.platform(terse=True),
    }
