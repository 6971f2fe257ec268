"""Results that exist already, checked again."""

from dataclasses import replace
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
