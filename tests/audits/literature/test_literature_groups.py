"""StatDP's set, CheckDP's wrong programs and the repetitions, on a few thousand runs and on stored attempts."""

from __future__ import annotations

import dataclasses
import inspect
import math
from typing import Any

import pytest

import dpaudit
from audits.literature import checkdp, groups, soundness, statdp
from audits.literature.measure import Truth
from audits.literature.refuting import CLEARLY, Attempt, counted, taken
from audits.literature.rows import row
from audits.literature.soundness import CONFIDENCES, Tally, limit, repeated, tallies
from tests.cases import for_each

RUNS = 10_000
TRIED = Attempt("noisy", 5, 8, 1.0, 2.0, True, 1.02, 101_234, 0.31)


# --- one attempt ----------------------------------------------------------------------------------------------


def test_an_attempt_stops_where_its_claim_is_refuted() -> None:
    theirs = {each.name: each for each in statdp.MECHANISMS}
    value = statdp.audited(theirs["noisy_max_v1b"], 1.5, 10, runs=RUNS, n_jobs=1)
    assert value.exact == pytest.approx(7.5)  # each of 10 answers costs half the claim
    assert (value.refuted, value.expected, value.met) == (True, True, True)
    assert 0 < value.runs < RUNS
    assert (value.queries, value.pairs, value.claimed) == (10, 8, 1.5)
    assert 1.5 <= value.bound < value.exact
    # one that keeps its claim spends them all; wrong with probability 0.001 over seeds, and the seed is fixed
    index = statdp.audited(theirs["noisy_max_v1a"], 1.5, 10, runs=RUNS, n_jobs=1)
    assert (index.refuted, index.expected, index.met) == (False, False, True)
    assert RUNS - 500 <= index.runs <= RUNS
    assert index.bound <= index.exact <= 1.5


@for_each(
    ("exact", "refuted", "expected", "met"),
    [
        (CLEARLY, True, True, True),
        (CLEARLY, False, True, False),
        (math.inf, False, True, False),
        (1.04, True, None, True),
        (1.04, False, None, True),
        (1.0, True, False, False),
        (1.0 + 1e-12, True, False, False),  # the claim itself, rounded
        (0.3, False, False, True),
    ],
)
def test_the_verdict_expected_is_the_one_of_the_exact_loss(
    exact: float, refuted: bool, expected: bool | None, met: bool
) -> None:
    made = dataclasses.replace(TRIED, exact=exact, refuted=refuted)
    assert (made.expected, made.met) == (expected, met)


def test_what_came_of_the_attempts_is_counted() -> None:
    wrongly = dataclasses.replace(TRIED, exact=1.0)
    tried = [TRIED, dataclasses.replace(TRIED, runs=200_000), wrongly]
    assert "Of 2 claims" in counted(tried)
    assert "2 were refuted; of 1 that it keeps within, 1 were" in counted(tried)
    (told,) = taken(tried)
    assert "between 101,234 and 200,000" in told
    assert "took 1 CPU seconds" in told  # 0.93, rounded up
    assert taken([dataclasses.replace(TRIED, refuted=False), wrongly]) == ()


# --- StatDP's set ---------------------------------------------------------------------------------------------


def test_the_mechanisms_are_statdp_s_own() -> None:
    """Eleven of them; those that it lists as wrong are broken twins here, and the exact loss agrees."""
    assert len(statdp.MECHANISMS) == 11
    right = {each.name for each in statdp.MECHANISMS if not each.at(0.7).broken}
    assert right == {"noisy_max_v1a", "noisy_max_v2a", "histogram", "SVT"}
    for each in statdp.MECHANISMS:
        entry = each.at(0.7)
        assert entry.claim() == dpaudit.PureDP(0.7)
        exact = max(entry.true_loss(pair.first, pair.second) or 0.0 for pair in each.pairs(5))
        assert (exact > CLEARLY * 0.7) == (each.name not in right), each.name


def test_the_table_of_the_set_marks_what_is_missed() -> None:
    missed = dataclasses.replace(TRIED, name="iSVT4", refuted=False)
    made = statdp.table([TRIED, missed])
    assert [each[-1] for each in made.rows] == ["yes", "MISSED"]
    assert made.rows[0][:5] == ("noisy", "1", "5", "2", "refuted")
    assert made.rows[0][5:8] == ("1.020", "101,234", "0.4")
    assert made.verdict.endswith("MISSED: iSVT4 at 1 with 5 answers.")
    assert "MISSED" not in statdp.table([TRIED]).verdict


# --- CheckDP's wrong programs ---------------------------------------------------------------------------------


def test_the_wrong_programs_have_all_their_parameters_and_a_claim() -> None:
    made = checkdp.programs()
    assert len(made) == 8
    for each in made:
        asked = list(inspect.signature(each.function).parameters)
        assert asked == ["q", "rng", *each.parameters]
    assert [each.claim for each in made] == [1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert [len(each.pairs) for each in made] == [8, 2, 2, 8, 8, 8, 8, 8]


def test_a_wrong_program_is_run_and_read() -> None:
    found = checkdp.audited(checkdp.programs()[1], runs=RUNS, n_jobs=1)  # half the noise
    assert (found.audit.refuted, found.refuted) == (True, True)
    assert found.loss == pytest.approx(2.0, rel=1e-12)
    assert found.audit.exact == found.loss
    missed = dataclasses.replace(found, audit=dataclasses.replace(found.audit, name="other", refuted=False))
    made = checkdp.table([found, missed])
    assert [len(each) for each in made.rows] == [len(made.header)] * 2
    assert "As black boxes 1 of 2 are refuted, all but other. From their source 2 of 2 are" in made.verdict
    assert "1 of 1 are refuted. From" in checkdp.table([found]).verdict


# --- soundness ------------------------------------------------------------------------------------------------


def test_repetitions_are_a_function_of_their_seeds() -> None:
    one, two = tallies([row("Laplace"), row("SVT5")], repetitions=2, runs=2_000, n_jobs=1)
    assert (one.name, one.repetitions, one.finite) == ("Laplace", 2, 2)
    assert (two.name, two.repetitions) == ("SVT5", 2)
    assert one.sound
    assert two.sound
    parts = [repeated(row("Laplace"), part, runs=2_000) for part in (range(1), range(1, 2))]
    assert dataclasses.replace(parts[0] + parts[1], cpu_s=0.0) == dataclasses.replace(one, cpu_s=0.0)


def test_a_bound_is_held_against_the_loss_of_the_certified_direction_and_counted_above_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A loss of 10: of the two directions of its pair one is given a small loss, the other a large one."""
    asked = row("NoisyHist2")
    made = dpaudit.audit(
        asked.entry, pair=asked.pairs[0], claim=asked.entry.claim(), certifier="coin-flip", runs=4_000, n_jobs=1
    )
    for side, losses, above, finite in (
        ("first", (0.001, 99.0), 2, 2),
        ("first", (99.0, 0.001), 0, 2),
        ("first", (math.inf, 0.001), 0, 0),
        ("second", (99.0, 0.001), 2, 2),
    ):
        turned = dataclasses.replace(made, witness=dataclasses.replace(made.witness, p_side=side))
        monkeypatch.setattr(dpaudit, "audit", lambda *_, turned=turned, **__: turned)
        monkeypatch.setattr(soundness, "truth", lambda _, losses=losses: Truth((), (losses,) * 2, "", 0.0))
        found = repeated(asked, range(2))
        assert found.above == (above,) * len(CONFIDENCES)
        assert (found.finite, found.positive) == (finite, 2)
    assert not dataclasses.replace(found, above=(2, 2, 2)).sound
    assert soundness.table([found]).verdict == "ABOVE THE LIMIT: NoisyHist2, all."
    for known, why in (
        (Truth((), (None, None), "", 0.0), r"the exact loss of .* is not known"),
        (Truth((), ((9.0, 9.0),) * 2, "no quadrature", 0.0), "exact law is not known: no quadrature"),
    ):
        monkeypatch.setattr(soundness, "truth", lambda _, known=known: known)
        with pytest.raises(ValueError, match=why):
            repeated(asked, range(1))


def test_audits_without_a_verdict_are_counted_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def unsound(*_: object, **__: object) -> None:
        raise dpaudit.UnsoundAudit("runs depend on each other")

    monkeypatch.setattr(dpaudit, "audit", unsound)
    found = repeated(row("Laplace"), range(3), runs=4_000)
    assert (found.unsound, found.finite, found.sound) == (3, 0, True)
    assert soundness.table([found]).notes[-1] == "Laplace: 3 audits gave no verdict, for their runs looked dependent."


def test_limits_are_exceeded_rarely_enough_and_not_too_rarely() -> None:
    from scipy.stats import binom

    for repetitions in (0, 8, 200, 4_400):
        for confidence in CONFIDENCES:
            most = limit(repetitions, confidence)
            assert binom.sf(most, repetitions, 1.0 - confidence) <= 1e-4
            assert most == 0 or binom.sf(most - 1, repetitions, 1.0 - confidence) > 1e-4


# --- all of it ------------------------------------------------------------------------------------------------


def test_the_groups_are_three_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = checkdp.Found(TRIED, 2.0, True, 0.1)
    monkeypatch.setattr(statdp, "attempts", lambda **_: (TRIED,))
    monkeypatch.setattr(checkdp, "audited", lambda *_, **__: tried)
    monkeypatch.setattr(soundness, "tallies", lambda **_: (Tally("Laplace", 200, 200, (0, 9, 22), 200, 0, 3.0),))
    made = [section(1) for section in groups.SECTIONS.values()]
    assert [each.title for each in made] == ["StatDP's mechanisms", "CheckDP's wrong programs", "Soundness"]
    assert [len(each.rows) for each in made] == [1, 8, 2]
    assert made[2].rows[0] == ("Laplace", "200", "200", "0 (2)", "9 (23)", "22 (37)")


@for_each(
    ("module", "name", "more"),
    [
        (statdp, "noisy_max_v2a", []),
        (checkdp, "partial sum half noise", []),
        (soundness, "TruncGeo", ["--repetitions", "1"]),
    ],
)
def test_each_group_runs_alone(
    module: Any, name: str, more: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(statdp, "CLAIMS", (0.7,))
    assert module.main(["--only", name, "--runs", "2000", "--jobs", "1", *more]) == 0
    assert capsys.readouterr().out.startswith("## ")
