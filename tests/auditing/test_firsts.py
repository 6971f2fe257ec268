"""What only the first call of each process gives away, and texts of which no two are alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, AuditSpec, PureDP, batched, recheck
from dpaudit.account.statements import NO_FIRSTS, limits
from dpaudit.auditing.audit import run_audit
from dpaudit.auditing.other_witnesses import FEW, SELECTOR
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import wrap
from tests.auditing import unsound
from tests.cases import for_each

PAIR = AdjacentPair(0.0, 1.0)


def asked(mechanism: Any, *, runs: int = 25_000, isolated: bool = True) -> Any:
    spec = AuditSpec(claim=PureDP(1.0), mechanism=wrap(mechanism), pairs=(PAIR,), runs=runs, confidence=0.95)
    with Engine(1, supervised=isolated) as engine:
        return run_audit(spec, engine)


@pytest.mark.long
def test_a_leak_of_first_calls_is_found_and_certified_in_fresh_processes() -> None:
    """The sides are drawn from seed 0, so that nothing here is left to chance."""
    result = asked(batched(unsound.Leaky()))
    assert result.verdict.value == "REFUTED"
    assert result.witness.selector.startswith(SELECTOR)
    assert result.evidence.hits_q == 0 < result.evidence.hits_p == result.evidence.runs_p
    assert result.runs_used <= result.spec["runs"]
    assert any("first of a fresh process" in note for note in result.health.notes)
    assert NO_FIRSTS not in limits(result)
    again = recheck(result, batched(unsound.Leaky()), fresh=True)
    assert again.verdict.value == "REFUTED"
    assert again.evidence != result.evidence


def truthful(data: float, runs: int, rng: np.random.Generator) -> Any:
    """One run in 400 lies: 16 first calls tell the truth, but some processes could show less than all other runs."""
    return np.where(rng.random(runs) < 1 / 400, 1.0 - data, data)


@pytest.mark.long
@for_each("mechanism", [unsound.laplace_batch, truthful])
def test_first_calls_without_a_leak_change_no_count(mechanism: Any) -> None:
    """Nor are those a witness that are like all others."""
    apart, here = asked(batched(mechanism)), asked(batched(mechanism), isolated=False)
    assert apart.evidence == here.evidence
    firsts = [[entry for entry in each.explored if entry.name == "first calls"] for each in (apart, here)]
    assert [[entry.runs for entry in each] for each in firsts] == [[FEW], []]
    assert ("so do most other runs" in firsts[0][0].status) == (mechanism is truthful)
    assert [NO_FIRSTS in limits(each) for each in (apart, here)] == [False, True]


@pytest.mark.long
def test_texts_and_exceptions_that_are_all_different_are_named() -> None:
    def text(data: float, rng: np.random.Generator) -> str:
        return f"n={data + rng.laplace():.6f}"

    def word(data: float, rng: np.random.Generator) -> str:
        return "yes" if rng.random() < 0.5 else "no"

    def raises(data: float, rng: np.random.Generator) -> str:
        raise type(f"Error{rng.integers(1 << 60)}", (Exception,), {})

    for mechanism, said in ((text, True), (raises, True), (word, False)):
        result = asked(mechanism, runs=1_000, isolated=False)
        assert any("no output came twice" in entry.status for entry in result.explored) is said
