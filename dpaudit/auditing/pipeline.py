"""The whole of an audit: its stages, and the controls where the spec asks for them."""

from __future__ import annotations

from dataclasses import replace

from dpaudit.auditing.clock import Clock
from dpaudit.auditing.controls import run_controls
from dpaudit.auditing.known import known_upper
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.stages import repeat_witness, run_stages
from dpaudit.results.result import AuditResult
from dpaudit.results.verdict import Verdict
from dpaudit.sampling import SILENT, Engine, Progress


def run_audit(
    spec: AuditSpec, engine: Engine, *, progress: Progress = SILENT, clock: Clock | None = None
) -> AuditResult:
    """The answer to a spec. Raises `UnsoundAudit` where the experiment broke and there is no verdict.

    Where a `clock` says that time runs out, search and certification have fewer runs than the spec. Controls are
    audits of their own, with the spec's runs each, beyond the runs and the time that the result counts. They are made
    where the claim is not refuted: a leak that is there already would be caught in every one of them. An entry of the
    catalogue brings the exact loss of the pair, as the result's `upper`.
    """
    asked = spec.resolved()
    result = run_stages(asked, engine, progress=progress, clock=clock)
    pair = spec.pairs[result.witness.pair]
    result = replace(result, upper=known_upper(spec.mechanism, pair, result.certificate.delta))
    if not spec.controls or result.verdict is Verdict.REFUTED:
        return result
    return replace(result, controls=run_controls(asked, engine, repeats=spec.controls, progress=progress))


__all__ = ["repeat_witness", "run_audit"]
