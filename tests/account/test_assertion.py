"""What a failing test says: short, in the order in which one acts, and true to the counts."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from dpaudit.account.review import review
from dpaudit.account.sections import LONGEST, full_text, missed_lines, refuted_lines, weak_lines
from dpaudit.auditing.clock import cut
from dpaudit.events import event_from_dict
from dpaudit.results.result import AuditResult
from tests.golden.example import kept, result
from tests.report.hostile import ALL

COMMAND = "pytest tests/test_counts.py::test_count --dpaudit-seed 0 --dpaudit-runs 1000000"
DIAGNOSIS = (
    "output moves by 1 between the datasets, and half of the outputs lie within 0.35 of their middle: the noise is too "
    "small for that",
    "look at: the sensitivity on this pair: limits that are not enforced (clipping), the unit of the noise, scale and "
    "variance mixed up, epsilon spent several times",
    "what usually mends it: more noise, or tighter limits on what a record adds: the noise must be scaled to the most "
    "that one record can change, and nothing may change more; or state the claim that this noise keeps",
)


def told(made: AuditResult, **provenance: Any) -> AuditResult:
    return replace(made, provenance={**made.provenance, "command": COMMAND, **provenance})


def test_a_refutation() -> None:
    assert refuted_lines(told(result()), "reports/noisy-count.json") == (
        "REFUTED  noisy_count: epsilon >= 1.96 with confidence 0.999, claimed 1",
        'event: output > 9.5 is likelier on the first dataset of the pair "one leaves"',
        "  first   ['a'] * 9",
        "  second  ['a'] * 8",
        "counts, of fresh runs after the event was chosen:",
        "  first   82,289 of 449,701 runs in the event (0.183)",
        "  second  11,206 of 450,267 runs in the event (0.02489)",
        "a mechanism that keeps its claim is refuted with probability at most 0.001",
        "what to do:",
        *(f"  {line}" for line in DIAGNOSIS),
        "  or say that the violation is known: audit(..., expect='refuted'), "
        "or dpaudit accept reports/noisy-count.json --reason ... --until ...",
        "repeat, with the same counts:",
        f"  {COMMAND}",
    )


def test_a_failure_as_event_has_a_cure_of_its_own() -> None:
    made = result()
    stored = made.witness.event.to_dict()
    event = event_from_dict({**stored, "intervals": [], "tokens": [{"label": "raised ValueError", "code": 7}]})
    witness = replace(made.witness, event=event)
    assert any("let both datasets end alike" in line for line in refuted_lines(told(replace(made, witness=witness))))


def test_without_a_diagnosis_the_advice_is_a_claim_that_can_be_proved() -> None:
    lines = refuted_lines(told(replace(result(), typical=None)))
    assert "  state a claim that you can prove: the true loss is no smaller than the bound above" in lines


def test_a_mechanism_that_cannot_be_repeated_exactly() -> None:
    lines = refuted_lines(told(replace(result(), reproducible=False)))
    assert lines[-2] == "repeat, with other counts, for the mechanism draws randomness of its own:"


def test_a_mechanism_whose_runs_the_clock_cut() -> None:
    """The repetition makes all runs, so nothing says that it gives the same counts."""
    made = result()
    timed = told(replace(made, explored=(*made.explored, cut("302 certifying runs", 82_139))))
    text = "\n".join(
        (*refuted_lines(timed), full_text(timed), *(line for part in review(timed) for line in part.lines))
    )
    assert "give other counts" in text
    assert not re.search(r"(with|gives?) the same counts", text)
    assert "left out nothing that it came upon" in text


def test_a_violation_that_was_not_found() -> None:
    lines = missed_lines(told(kept()))
    assert lines[0] == (
        "NOT FOUND  noisy_count: a violation that this test expects; epsilon >= 0.982 with confidence 0.999, claimed 1"
    )
    assert lines[-1] == f"  {COMMAND}"


def test_power_that_was_demanded_and_not_reached() -> None:
    made = kept()
    lines = weak_lines(told(replace(made, spec={**made.spec, "detect": {"epsilon": 1.01, "mass": 0.001}})))
    assert lines[0].startswith("TOO LITTLE POWER  noisy_count: detect demands epsilon 1.01, mass 0.001; epsilon >= ")
    demanded = "the power that the spec demands (epsilon 1.01, mass 0.001), search counted in,"
    assert f"{demanded} was NOT reached: give more runs" in lines


def test_the_test_of_a_closure_stands_above_the_message_already() -> None:
    made = result()
    mechanism = {**made.spec["mechanism"], "name": "noisy count: <lambda>"}
    assert refuted_lines(told(replace(made, spec={**made.spec, "mechanism": mechanism})))[0].startswith(
        "REFUTED  <lambda>: "
    )


def test_no_name_breaks_out_of_its_line() -> None:
    made = result()
    for name in ALL:
        mechanism, pair = {**made.spec["mechanism"], "name": name}, {**made.spec["pairs"][0], "name": name}
        spec = {**made.spec, "name": name, "mechanism": mechanism, "pairs": [pair]}
        hostile = told(replace(made, spec=spec), command=f"pytest {name}")
        lines = refuted_lines(hostile, name)
        assert len(lines) <= LONGEST
        assert all(line.isprintable() for line in lines), repr(name)
