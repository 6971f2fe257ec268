"""Results that exist already: checked again, written as reports."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpaudit.auditing import Question, Runner
from dpaudit.claims import claim_from_dict
from dpaudit.data import AdjacentPair
from dpaudit.data.data import restored
from dpaudit.errors import InvalidSpec
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import wrap
from dpaudit.results.result import AuditResult, recompute


def recheck(result: AuditResult, mechanism: Any = None, fresh: bool = False) -> AuditResult:
    """The result with its certificate computed again from the stored counts.

    With `fresh`, the frozen witness is run again, on `mechanism`, with a stream that no run of the result
    used; the certificate is then that of the new runs. Needs the datasets by value in the result.
    """
    if not fresh:
        return replace(result, certificate=recompute(result))
    if mechanism is None:
        raise InvalidSpec("recheck with fresh=True needs the mechanism to run: recheck(result, mechanism, fresh=True)")
    with Engine() as engine:
        runner = Runner(engine)
        return runner.repeat(result, replace(result.witness, pair=0), runner.plan(respecified(result, mechanism)))


def respecified(result: AuditResult, mechanism: Any) -> Question:
    """The question that repeats a stored result's witness: its pair alone, and a seed of its own."""
    stored = result.spec["pairs"][result.witness.pair]
    first, second = (restored(stored[side]["value"], stored[side]["digest"]) for side in ("first", "second"))
    return Question(
        claim=claim_from_dict(result.spec["claim"]),
        mechanism=wrap(mechanism),
        pairs=(AdjacentPair(first, second, *(stored.get(key) for key in ("name", "distance", "sensitivity", "user"))),),
        runs=result.spec["runs"],
        confidence=result.spec["confidence"],
        seed=result.spec["seed"] + 1,
        certifier=result.spec["certifier"],
        name=result.spec["name"],
        run_timeout_s=result.spec["run_timeout_s"],
    )


def write_report(result: Any, path: str | os.PathLike[str]) -> Path:
    """Writes the report of any finding, whole or not at all; the suffix chooses the format.

    All have .html, .md and .txt, and .json where they can be stored; audits and suites also .xml (JUnit), .sarif and
    .csv. Of a suite .md is a comment of 30 lines. A folder, or a name without a dot, gets the page with what belongs to
    it. Returns the path, of a folder that of the page. Raises `InvalidSpec` for a suffix that makes no sense, and for
    what is no finding.
    """
    from dpaudit.report import write

    return write(result, path)
