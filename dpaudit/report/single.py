"""Results that come without a suite, as one: what their files do not hold is that nobody expected anything of them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dpaudit.results.result import AuditResult
from dpaudit.results.suite import Acceptance, Reviewed, SuiteResult, joint_confidence


def together(parts: Sequence[AuditResult | SuiteResult]) -> SuiteResult:
    """Results and suites as one suite; its confidence is what the error probabilities of all audits leave.

    What stands in several of them counts once: a result alone beside its suite, the audits of a suite that is given
    twice. A suite to which the others add nothing stays as it is.
    """
    known = {_run_of(result) for part in parts if isinstance(part, SuiteResult) for result in part.results}
    gathered: list[SuiteResult] = []
    seen: set[object] = set()
    for part in parts:
        if isinstance(part, SuiteResult):
            keys = [(replace(entry, result=None), entry.result and _run_of(entry.result)) for entry in part.entries]
            fresh = tuple(entry for entry, key in zip(part.entries, keys, strict=True) if key not in seen)
            seen.update(keys)  # only now: two equal audits of one suite are two
            whole = len(fresh) == len(part.entries)
            gathered.append(part if whole else SuiteResult(fresh, part.confidence, part.reviewed))
        elif _run_of(part) not in known:  # neither the same file again, nor the record of an audit of a suite
            known.add(_run_of(part))
            gathered.append(SuiteResult.of([part]))
    entries = tuple(entry for suite in gathered for entry in suite.entries)
    reviewed = _reviewed(each for suite in gathered for each in suite.reviewed)
    for suite in gathered:
        if len(suite.entries) == len(entries) and suite.reviewed == reviewed:
            return suite
    results = [entry.result for entry in entries if entry.result is not None]
    confidence = joint_confidence(results) if results else min(suite.confidence for suite in gathered)
    return SuiteResult(entries, confidence, reviewed)


def _run_of(result: AuditResult) -> str:
    """What makes two results the same: the question, what came out, and when and where it was run."""
    told = [result.spec, result.witness.to_dict(), result.evidence.to_dict(), result.provenance]
    return json.dumps(told, sort_keys=True)


def _reviewed(listed: Iterable[Reviewed]) -> tuple[Reviewed, ...]:
    """What became of each acceptance in all suites: found where one of them found it.

    One that had expired for one of them, and not for another, is listed both ways, and fails.
    """
    matched: dict[tuple[Acceptance, bool], bool] = {}
    for each in listed:
        key = each.acceptance, each.expired
        matched[key] = matched.get(key, False) or each.matched
    return tuple(Reviewed(acceptance, expired, found) for (acceptance, expired), found in matched.items())
