"""Page one and the review: every form and relation has its words, and no number is told better than it is."""

from __future__ import annotations

import hashlib
import math
import random
import re
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpaudit
from dpaudit.account import first, officer, review, tables
from dpaudit.certify import CoinFlip, certify
from dpaudit.claims import Claim, Relation, claim_from_dict
from dpaudit.results.display import Verdict
from dpaudit.results.provenance import RECORD, recorded
from dpaudit.results.result import AuditResult, Finding
from dpaudit.results.stored import loads
from dpaudit.results.suite import Acceptance, SuiteEntry
from tests.cases import for_each
from tests.golden import example

FORMS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"form": "PureDP", "epsilon": 1.0}, "epsilon 1. It promises: whatever comes out is at most about 2.72 times"),
    ({"form": "PureDP", "epsilon": 0.0}, "epsilon 0. It promises: whatever comes out is exactly as probable"),
    ({"form": "PureDP", "epsilon": 8.0}, "epsilon 8. It promises: whatever comes out is at most about 2,980 times"),
    ({"form": "PureDP", "epsilon": 1e4}, "epsilon 10000. It promises: whatever comes out is at most about e to the"),
    ({"form": "ApproximateDP", "epsilon": 1.0, "delta": 1e-6}, "epsilon 1 and delta 1e-06. It promises: the prob"),
    ({"form": "GaussianDP", "mu": 0.5}, "mu 0.5. It promises: from an output"),
    ({"form": "RenyiDP", "order": 2.0, "epsilon": 1.0}, "epsilon 1 at order 2. It promises: the Rényi"),
    ({"form": "ZeroConcentratedDP", "rho": 0.5, "xi": 0.0}, "rho 0.5. It promises: the Rényi divergence"),
    ({"form": "ZeroConcentratedDP", "rho": 0.5, "xi": 0.1}, "rho 0.5 and xi 0.1. It promises"),
    ({"form": "TradeOffDP", "f": [[0.0, 1.0], [0.2, 0.4], [1.0, 0.0]]}, "a trade-off curve. It promises"),
    ({"form": "PrivacyProfile", "curve": [[0.0, 0.4], [1.0, 0.1]]}, "a privacy profile, delta as a function"),
)


def claiming(stated: dict[str, Any], result: AuditResult | None = None) -> AuditResult:
    result = result or example.result()
    return replace(result, spec={**result.spec, "claim": {"relation": None, **stated}})


def lines(result: AuditResult, title: str) -> tuple[str, ...]:
    return next(part.lines for part in (*officer.page_one(result), *review.review(result)) if part.title == title)


@for_each(("stated", "told"), FORMS, ids=lambda given: given["form"] if isinstance(given, dict) else "")
def test_every_form_has_its_promise(stated: dict[str, Any], told: str) -> None:
    assert officer.promise(claiming(stated)).startswith(f"The claim is {told}")


def test_no_form_and_no_relation_is_without_words() -> None:
    told = {stated["form"] for stated, _ in FORMS}
    silent = [form.form for form in dpaudit.claims.FORMS if form.form not in told]
    assert not silent, f"give the sentence of {', '.join(silent)} a row in FORMS of this file"
    assert set(officer.UNITS) == {relation.value for relation in Relation}


@pytest.mark.parametrize("relation", [None, *Relation])
def test_the_unit_follows_from_the_relation_and_what_is_unknown_is_said(relation: Relation | None) -> None:
    word = None if relation is None else relation.value
    told = officer.unit(claiming({"form": "PureDP", "epsilon": 1.0, "relation": word}))
    assert ("states no relation" in told[0]) == (relation is None)
    whose = {Relation.LOCAL: officer.WHOSE_RECORD, Relation.ADD_OR_REMOVE_USER: officer.WHOSE_USER}
    assert told[-1] == whose.get(relation, officer.WHOSE)  # type: ignore[arg-type]
    trust = review.review(claiming({"form": "PureDP", "epsilon": 1.0, "relation": word}))
    release = next(part.lines for part in trust if part.title == review.RELEASE)
    model = {None: "not recorded", Relation.LOCAL: "local model"}.get(relation, "central model")
    assert model in release[1]


def test_odds_are_never_told_better_than_they_are() -> None:
    rng = random.Random(1)
    for _ in range(2_000):
        error = 10.0 ** rng.uniform(-12.0, 0.0)
        one, _, many = first.odds(error).partition(" in ")
        assert one == "1"
        told = Fraction(1, int(many.replace(",", "")))
        assert told >= Fraction(repr(error)), error
        assert told <= Fraction(repr(error)) * 2
        assert error > 0.01 or told <= Fraction(repr(error)) * Fraction(102, 100)


def test_the_ratio_of_probabilities_is_rounded_down() -> None:
    rng = random.Random(2)
    result = example.result()
    for _ in range(80):
        lower = rng.uniform(0.001, 20.0)
        made = replace(result.certificate, lower=lower, epsilon_lower=lower)
        (_, found) = lines(replace(result, certificate=made), officer.MEANING)
        told = re.search(r"at least ([0-9.,]+) times", found)
        assert told is not None
        times = float(told.group(1).replace(",", ""))
        assert times <= math.exp(lower) < times * 1.02 + 0.01
    assert officer.ratio_text(math.exp(600.0)) == "10^260"


def test_a_delta_is_taken_off_rounded_down() -> None:
    made = replace(example.result().certificate, delta=0.3285798020102504)
    (_, found) = lines(replace(example.result(), certificate=made), officer.MEANING)
    assert "after 0.32857 is taken off" in found


@pytest.mark.parametrize("loss", [None, 0.0, math.inf, 1e4])
def test_no_ratio_is_told_where_none_was_certified(loss: float | None) -> None:
    made = replace(example.result().certificate, epsilon_lower=loss)
    assert len(lines(replace(example.result(), certificate=made), officer.MEANING)) == 1


def test_the_verdict_is_the_results_own_and_a_refutation_is_never_softened() -> None:
    assert lines(example.result(), officer.VERDICT)[0].startswith("The claim is refuted")
    assert lines(example.kept(), officer.VERDICT)[0].startswith("The claim is not refuted")
    entry = SuiteEntry("noisy count", Verdict.NOT_REFUTED, example.result(), accepted=acceptance())
    told = officer.page_one(example.result(), entry)[0].lines
    assert told[0].startswith("The claim is refuted")
    assert told[1] == "The author of the spec expected another verdict: not refuted."
    assert "accepted until 2025-09-01" in told[2]
    assert "stays refuted" in told[3]
    expected = officer.page_one(example.result(), SuiteEntry("n", Verdict.REFUTED, example.result()))[0].lines
    assert expected[1] == "This is the verdict that the author of the spec expects: REFUTED."


def acceptance() -> Acceptance:
    return Acceptance("a1", "noisy count", "until 2.0", date(2025, 1, 1), date(2025, 9, 1))


def test_a_representation_finding_is_told_beside_the_verdict_and_changes_nothing_of_it() -> None:
    kept = example.kept()
    bits = Finding(kept.claim, kept.witness, example.result().evidence, example.result().certificate)
    found = replace(kept, representation=bits, spec={**kept.spec, "representation": True})
    told = lines(found, officer.VERDICT)
    assert told[0].startswith("The claim is refuted by bits: the low bits of the floating-point outputs tell")
    assert told[1].startswith("By the values of the outputs the claim is not refuted")
    assert "no violation was found" not in " ".join(told)
    assert lines(found, first.SURE)[0] == lines(kept, first.SURE)[0]
    assert "with a confidence of its own, 0.999." in told[0]
    loud = replace(found, evidence=bits.evidence, certificate=bits.certificate)
    assert lines(loud, officer.VERDICT)[0] == lines(example.result(), officer.VERDICT)[0]
    assert not any(
        "bits of floating-point outputs (representation) were not" in each for each in officer.not_shown(found)
    )
    by_part = {each.part: each.covered for each in review.layers(found)}
    assert by_part["floating-point arithmetic"] is review.Covered.PARTLY
    assert [row[0] for row in tables.tables(found)[0].rows] == ["1", "1", "on bits", "on bits"]


def test_pairs_several_steps_apart_are_not_told_as_neighbours() -> None:
    result = example.result()
    apart = [{**result.spec["pairs"][0], "distance": 3}]
    far = replace(result, spec={**result.spec, "pairs": apart}, claim=result.claim.at_distance(3))
    assert "several steps apart" in lines(far, officer.VERDICT)[0]
    assert "claimed is 3 for datasets 3 steps apart" in lines(far, first.SURE)[0]
    assert any("a group of so many" in line for line in lines(far, officer.UNIT))
    assert "that comes to epsilon 3: whatever comes out is at most about 20.1 times" in lines(far, officer.MEANING)[1]


@for_each("stated", [form for form, _ in FORMS if form.get("epsilon") != 1e4])
def test_what_a_claim_implies_for_a_group_has_its_words(stated: dict[str, Any]) -> None:
    result = example.result()
    apart = [{**result.spec["pairs"][0], "distance": 2}]
    claim = claim_from_dict({"relation": None, **stated})
    far = replace(claiming(stated), claim=claim.at_distance(2))
    (told,) = officer.implied_promise(replace(far, spec={**far.spec, "pairs": apart}))
    assert told.startswith("For datasets 2 steps apart that comes to ")
    assert "neighbour" not in told


def test_too_few_runs_for_the_table_of_power_are_not_said_to_see_nothing() -> None:
    counts = CoinFlip(38, 0, 38, 39)
    made = replace(example.result(), evidence=counts, certificate=certify(counts, example.result().claim, 0.999))
    assert made.verdict is Verdict.REFUTED
    (told,) = lines(made, officer.SEEN)
    assert "Nothing" not in told
    assert "nearly always on one dataset" in told


def test_the_record_has_the_digest_of_the_file_that_save_writes(tmp_path: Path) -> None:
    path = example.result().save(tmp_path / "record.json")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert digest == officer.record_digest(example.result())
    assert any(digest in line for line in lines(example.result(), officer.RECORD))


@pytest.mark.parametrize(
    ("commit", "told"),
    [
        ("4f0c2d9b1e7a", "The commit is 4f0c2d9b1e7a, with nothing uncommitted beside it."),
        ("4f0c2d9b1e7a-dirty", "The commit is 4f0c2d9b1e7a, with changes that were not committed."),
        (None, f"Not recorded: {', '.join(RECORD.values())}, commit."),
    ],
)
def test_the_commit_is_told_with_what_was_not_committed(commit: str | None, told: str) -> None:
    made = replace(example.result(), provenance={**example.PROVENANCE, "commit": commit})
    assert told in lines(made, officer.RECORD)


@pytest.mark.parametrize(
    ("count", "told"),
    [(None, "is not recorded"), (0, "was not interrupted"), (1, "interrupted once"), (1_234, "1,234 times")],
)
def test_interruptions(count: int | None, told: str) -> None:
    made = replace(example.result(), provenance={**example.PROVENANCE, "interruptions": count})
    assert told in lines(made, review.REPEATED)[0]


def test_what_was_not_recorded_is_said_of_a_result_that_knows_nothing() -> None:
    told = "\n".join(line for part in (*officer.page_one(bare()), *review.review(bare())) for line in part.lines)
    for words in (
        "reviewer, commit.",
        "its source file not recorded",
        "interrupted is not recorded",
        "Not recorded: processor",
    ):
        assert words in told


def test_what_people_fill_in_is_told_everywhere_and_what_they_leave_out_once() -> None:
    filled = recorded({"owner": "statistics team", "unit": "a household", "releases": 12, "data": "made up"})
    made = replace(example.result(), provenance={**example.PROVENANCE, "record": filled})
    told = lines(made, officer.RECORD)
    assert told[:2] == ("Owner: statistics team.", "Unit of privacy: a household.")
    assert told[4] == "Not recorded: source of the claim, reviewer."
    assert all(each in str(made) for each in told[:5])
    assert "One entry stands for: a household." in lines(made, officer.UNIT)
    of_users = {**made.spec, "claim": {**made.spec["claim"], "relation": "add_or_remove_user"}}
    assert "One user stands for: a household." in lines(replace(made, spec=of_users), officer.UNIT)
    assert "Number of releases: 12." in lines(made, review.RELEASE)
    assert "Origin of the data: made up." in lines(made, review.DATASETS)
    assert loads(made.to_json(), "").provenance["record"] == filled
    for wrong in ({"owners": "x"}, {"owner": ""}, {"releases": True}):
        with pytest.raises(dpaudit.InvalidSpec, match="record"):
            recorded(wrong)


def bare() -> AuditResult:
    return replace(example.result(), provenance={})


def test_the_rule_of_decision_has_the_level_of_one_witness() -> None:
    result = example.result()
    spec = {**result.spec, "certify_pairs": 2}
    made = replace(result, spec=spec, certificate=replace(result.certificate, confidence=0.9995))
    told = " ".join(lines(made, review.RULE))
    assert "the p-value is at most 0.0005, and" in told
    assert "at confidence 0.999," in told
    assert "divided equally among up to 2" in told
    third = replace(made, certificate=replace(result.certificate, confidence=1.0 - 0.001 / 3))
    assert "the p-value is at most 0.000333333, and" in " ".join(lines(third, review.RULE))  # never more than it is


def test_what_two_limits_certify_beside_the_bound_holds_for_the_limits() -> None:
    """Against limits of statsmodels: each number told is at most what they say."""
    from scipy.special import ndtri
    from statsmodels.stats.proportion import proportion_confint

    rng, seen = random.Random(3), 0
    for _ in range(40):
        runs = rng.randrange(200, 100_000)
        p, q = sorted((rng.random(), rng.random()), reverse=True)
        counts = CoinFlip(round(p * runs), round(q * runs), runs, runs)
        made = certify(counts, example.result().claim, 0.999)
        told = " ".join(lines(replace(example.result(), evidence=counts, certificate=made), review.BESIDE))
        low = proportion_confint(counts.hits_p, runs, alpha=0.001, method="beta")[0]
        high = proportion_confint(counts.hits_q, runs, alpha=0.001, method="beta")[1]
        mu = re.search(r"mu >= ([0-9.]+)\.", told)
        if mu is not None:
            seen += 1
            assert float(mu.group(1)) <= ndtri(low) - ndtri(high) <= float(mu.group(1)) * 1.02 + 0.002
        for delta, epsilon in re.findall(r"delta >= ([0-9.e-]+) at epsilon ([0-9.]+)[;.]", told):
            ratio = math.exp(float(epsilon.rstrip(".")))
            assert float(delta) <= max(low - ratio * high, (1.0 - high) - ratio * (1.0 - low)) + 1e-9
    assert seen > 20


def test_limits_that_do_not_part_certify_nothing_beside_it() -> None:
    counts = CoinFlip(100, 100, 1000, 1000)
    made = replace(example.result(), evidence=counts, certificate=certify(counts, example.result().claim, 0.999))
    assert lines(made, review.BESIDE) == ("Nothing: the limits of the counts on either side do not part.",)


@pytest.fixture(scope="module")
def unusual() -> dict[str, AuditResult]:
    """Audits whose evidence has another form: bins, bets, several witnesses."""

    @dpaudit.batched
    def mechanism(data: float, runs: int, rng: Any) -> Any:
        return data + rng.laplace(0.0, 0.5, runs)

    pair = (1.0, 0.0)
    claim: Claim = claim_from_dict({"form": "RenyiDP", "order": 2.0, "epsilon": 1.0, "relation": None})
    apart = dpaudit.AdjacentPair(3.0, 1.0, distance=2)
    return {
        "bins": dpaudit.audit(mechanism, pair=pair, claim=claim, runs=20_000, n_jobs=1),
        "bets": dpaudit.audit(mechanism, pair=pair, epsilon=0.5, runs=100_000, stopping="anytime", n_jobs=1),
        "two": dpaudit.audit(mechanism, pairs=[pair, apart], epsilon=1.0, runs=20_000, certify_pairs=2, n_jobs=1),
    }


def test_bins_are_told_bin_by_bin(unusual: dict[str, AuditResult]) -> None:
    result = unusual["bins"]
    made = {table.title: table for table in tables.tables(result)}
    assert tables.COUNTS not in made
    *bins, whole = made[tables.BINS].rows
    counts = [tuple(int(cell.replace(",", "")) for cell in row[1:]) for row in bins]
    assert counts == list(zip(result.evidence.counts_p, result.evidence.counts_q, strict=True))  # type: ignore[union-attr]
    assert whole == ("all runs", f"{result.evidence.runs_p:,}", f"{result.evidence.runs_q:,}")
    assert "at order 2" in lines(result, first.SURE)[0]


def test_bets_speak_of_some_set_and_of_no_runs_that_were_not_made(unusual: dict[str, AuditResult]) -> None:
    result = unusual["bets"]
    assert result.stopped_early
    assert "some set of outputs" in lines(result, officer.MEANING)[1]
    assert lines(result, review.TRIED)[0].startswith(f"{len(result.blocks)} bets were made")
    assert not any("went into the search" in line for line in lines(result, review.TRIED))
    assert lines(result, review.BESIDE)[0].startswith("Nothing: the bets")
    assert "may stop" in " ".join(lines(result, review.RULE))
    made = {table.title: table for table in tables.tables(result)}
    assert tables.COUNTS not in made
    assert len(made[tables.BETS].rows) + made[tables.BETS].left_out == len(result.blocks)


def test_every_certified_witness_has_its_rows(unusual: dict[str, AuditResult]) -> None:
    result = unusual["two"]
    made = {table.title: table for table in tables.tables(result)}
    assert [row[0] for row in made[tables.CERTIFICATES].rows] == ["1", "2"]
    assert [row[0] for row in made[tables.COUNTS].rows] == ["1", "1", "2", "2"]
    assert {row[5] for row in made[tables.CERTIFICATES].rows} == {"0.9995"}
    assert "hold together at 0.999." in made[tables.CERTIFICATES].note
    assert len(made[tables.TRIED].rows) == len(result.explored)


def test_tables_are_as_wide_as_their_heads(unusual: dict[str, AuditResult]) -> None:
    for result in (example.result(), example.kept(), *unusual.values()):
        for table in tables.tables(result):
            assert {len(row) for row in table.rows} == {len(table.head)}, table.title
            assert max(table.numbers, default=0) < len(table.head)


FORBIDDEN = re.compile(r"\b(pass(es|ed)?|safe|TODO|trials?|iterations?)\b", re.IGNORECASE)


def test_the_words_keep_to_the_glossary(unusual: dict[str, AuditResult]) -> None:
    for result in (example.result(), example.kept(), bare(), *unusual.values()):
        for part in (*officer.page_one(result), *review.review(result)):
            assert part.lines, part.title
            for line in part.lines:
                assert not FORBIDDEN.search(line), line
                assert "None" not in line.replace("infinity, None and", ""), line
