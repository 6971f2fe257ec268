"""Sentences say no more than counts, odds and promises are; and the lines that repeat an audit are Python."""

from __future__ import annotations

import ast
import builtins
import hashlib
import json
import math
import random
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from statsmodels.stats.proportion import proportion_confint

import dpaudit
from dpaudit.account import account, audit, officer, statements
from dpaudit.account.first import BEFORE, cause
from dpaudit.account.repeat import python_form
from dpaudit.account.statements import FIRSTS, not_looked_at
from dpaudit.account.suites import EXIT_CODES, MISSED, reported, suite_headline, suite_line, suite_question
from dpaudit.auditing.probing import _worth_a_start
from dpaudit.base import numerals
from dpaudit.base.numerals import p_text, portion
from dpaudit.base.validate import error_probability
from dpaudit.certify import Certificate, CoinFlip, certify
from dpaudit.claims import GaussianDP, PrivacyProfile, PureDP, Relation, RenyiDP, claim_from_dict
from dpaudit.report import exchange, markdown
from dpaudit.results.display import Verdict
from dpaudit.results.observations import Explored, Histogram
from dpaudit.results.provenance import RECORD, recorded
from dpaudit.results.result import AuditResult
from dpaudit.results.stored import loads
from dpaudit.results.stored.reading import either_of, result_of
from dpaudit.results.suite import Reviewed, SuiteEntry, SuiteResult, joint_confidence
from dpaudit.running.streams import Stage, graded
from dpaudit.running.worker import Probe
from dpaudit.scores.few import Evidence
from dpaudit.sweeps import page
from tests.account.results import by_bits, made, of_spec
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


def lines(result: Any, key: str) -> tuple[str, ...]:
    return account(result)[key].lines


@for_each("error", [ImportError("numpy.dtype size changed"), AttributeError("no _ARRAY_API"), SystemExit(1)])
def test_a_broken_pandas_leaves_the_cross_check_out_and_nothing_else(error: BaseException) -> None:
    """statsmodels brings pandas, and the one line of it is all that it may cost: text, file and reading go on."""
    made, real = example.result(), builtins.__import__

    def broken(name: str, *rest: Any) -> Any:
        if name == "statsmodels.stats.proportion":
            raise error
        return real(name, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builtins, "__import__", broken)
        text, stored = str(made.explain()), made.to_json()
        assert made.cross_check is None
    assert f"not made: statsmodels cannot be loaded here ({type(error).__name__}: {error}); the verdict and" in text
    assert text.count("\n") == str(made.explain()).count("\n")
    assert json.loads(stored)["cross_check"] is None
    assert result_of(json.loads(stored)).verdict is made.verdict


# the lines that repeat an audit


@for_each(
    ("changes", "mechanism"),
    [
        ({"kind": "batched"}, "dpaudit.batched(counts.noisy_count)"),
        ({"kind": "batched", "parameters": {"scale": 0.5}}, "dpaudit.batched(counts.noisy_count, scale=0.5)"),
        ({"kind": "built in the worker"}, "dpaudit.built_by(counts.noisy_count)"),
        ({"parameters": {"scale": 0.5}}, "functools.partial(counts.noisy_count, scale=0.5)"),
        ({"reference": None}, "noisy_count"),
        ({"reference": None, "name": "<lambda>"}, "mechanism"),
        ({"kind": "command", "parameters": {"command": ["python3", "m.py"]}}, "dpaudit.command(['python3', 'm.py'])"),
    ],
)
def test_the_python_form_is_python(changes: dict[str, object], mechanism: str) -> None:
    result = of_spec(example.result(), mechanism={**example.result().spec["mechanism"], **changes})
    call = ast.parse("\n".join(python_form(result))).body[-1].value  # type: ignore[attr-defined]
    assert ast.unparse(call.func) == "dpaudit.audit"
    assert ast.unparse(call.args[0]) == mechanism
    assert {each.arg for each in call.keywords} == {"pair", "claim", "runs", "confidence", "seed"}


LARGE = {**example.result().spec["pairs"][0], "first": {"digest": "d", "value": None}}


@for_each(
    ("pairs", "line"),
    [
        ([LARGE, LARGE], "    pairs=[(first_1, second_1), (first_2, second_2)],"),
        (
            [LARGE, LARGE],
            f"# first_1, second_1: your datasets with the digests d and {LARGE['second']['digest']}, "
            "which the result does not hold",
        ),
        (
            [{**LARGE, "distance": 2, "sensitivity": 0.5}],
            "    pair=dpaudit.AdjacentPair(first, second, distance=2, sensitivity=0.5),",
        ),
        ([{**LARGE, "user": "id"}], "    pair=dpaudit.AdjacentPair(first, second, user='id'),"),
        ([LARGE] * 2_000, "# pairs: your 2,000 pairs of datasets, too long to write here"),
    ],
)
def test_the_python_form_names_datasets_that_are_too_large_to_write(pairs: list[Any], line: str) -> None:
    form = python_form(of_spec(example.result(), pairs=pairs))
    assert line in form
    assert len(form) < 12


# counts and bounds


def test_no_chance_is_stated_for_more_bounds_than_one_can_speak_of() -> None:
    def chance(number: int) -> str:
        p_values = (0.05 / (number + place) for place in range(number))
        return page.chance([{"verdict": "REFUTED", "confidence": 0.95, "p_value": each} for each in p_values])

    assert chance(1) == "The bound is wrong with probability at most 0.05."
    for number, wrong, each in ((20, "1", "0.9975"), (24, "1.2", "0.99792"), (400, "20", "0.999875")):
        assert chance(number) == (
            f"Each of the {number} bounds is wrong with probability at most 0.05: expect at most {wrong} wrong ones. "
            f"With confidence={each} a point, all would hold together with 0.95. {number} of the {number} "
            "refutations hold together, with confidence 0.95 (Holm)."
        )


def test_bounds_of_bets_say_no_more_than_they_hold() -> None:
    """Refuted without a larger number: the truth is above the claim. A bound of nothing is not told as one."""
    certificate = Certificate(1.0, 0.4, 0.0004, 0.1, 0.999, "bets")
    assert statements.certified_bound(GaussianDP(1.0), certificate) == "mu > 1"
    assert statements.certified_bound(RenyiDP(2.0, 1.0), certificate) == "epsilon > 1 at order 2"
    # refuted somewhere on its curve: that says nothing of the curve at this delta
    profile = PrivacyProfile([(0.0, 0.2), (2.0, 0.0)])
    assert statements.certified_bound(profile, certificate) == "epsilon >= 1.00 at delta 0.1"
    told = statements.implied(RenyiDP(2.0, 1.0), certificate)
    assert told == ("whatever the mechanism is: epsilon >= 0.400000 at delta 0.1",)
    for claim, implied in ((GaussianDP(1.0), 0.0), (RenyiDP(2.0, 1.0), None)):
        assert statements.implied(claim, replace(certificate, epsilon_lower=implied)) == ()


def test_first_calls_that_nothing_looked_at_are_among_what_is_not_shown() -> None:
    for runs in (0, 16):  # without runs it is said why they were not looked at
        looked = example.result(explored=(Explored("processes", "first calls", "in fresh processes", runs=runs),))
        assert (FIRSTS in not_looked_at(looked)) is (runs == 0)
        assert FIRSTS in not_looked_at(looked, example.result())


def test_a_known_finding_on_bits_is_expected_and_missed_where_there_is_none() -> None:
    kept, refuted = example.kept(), example.result()
    for result, expected in ((by_bits(kept), True), (kept, False), (refuted, False), (by_bits(refuted), False)):
        entry = SuiteEntry(result.name, Verdict.NOT_REFUTED, result, bits=True)
        suite = SuiteResult((entry,), 0.999)
        assert (entry.as_expected, suite.exit_code) == (expected, int(not expected))
        assert suite_line(entry).count(", expected REFUTED by bits") == int(not expected)
        rules = [each.rule for each in reported(suite)]
        assert (rules == []) is expected
        assert (MISSED in rules) is ("known finding on bits missed" in markdown.render_suite(suite))
        assert (MISSED in rules) is (result is kept)
        assert either_of(json.loads(exchange.json_suite(suite))) == suite


def test_a_share_in_percent_stands_for_a_hundred_runs_at_least() -> None:
    few = replace(example.result().evidence, hits_p=4, runs_p=4, hits_q=0, runs_q=5)
    assert "in 4 of 4 runs on the first dataset and 0 of 5 on the second" in cause(example.result(evidence=few))
    many = replace(few, hits_p=400, runs_p=400, hits_q=0, runs_q=500)
    assert "in 100 % of runs on the first dataset and 0 % on the second" in cause(example.result(evidence=many))
    near = replace(few, hits_p=3_012, runs_p=10_000, hits_q=2_987, runs_q=10_000)
    assert "in 30.12 % of runs on the first dataset and 29.87 %" in " ".join(
        lines(example.kept(evidence=near), "what was found")
    )
    told = " ".join(lines(example.kept(evidence=few), "what was found"))
    assert "in 4 of 4 runs on the first dataset and 0 of 5 on the second" in told


def test_an_audit_that_bets_tells_the_counts_of_search_and_those_of_its_last_block_where_it_has_no_others() -> None:
    result = made("anytime")
    seen = result.illustration.typical
    assert f"in {portion(seen.hits[0], seen.runs[0])} of search runs" in " ".join(lines(result, "what was found"))
    last = result.blocks[-1].evidence  # of before: its last block, as counts
    counts = f"in {last.hits_q} of {last.runs_q} runs on the first dataset and {last.hits_p} of {last.runs_p} on the"
    assert counts in cause(example.changed(result, typical=None))


def test_tables_hold_the_counts() -> None:
    bets = account(made("anytime"))["bets of the blocks"].table
    assert bets is not None
    assert len(bets.rows) + bets.left_out == len(made("anytime").blocks)


# promises, units and odds: every form and every relation has its words, no number is told better than it is


def claiming(stated: dict[str, Any]) -> AuditResult:
    return of_spec(example.result(), claim={"relation": None, **stated})


@for_each(("stated", "told"), FORMS, ids=lambda given: given["form"] if isinstance(given, dict) else "")
def test_every_form_has_its_promise_and_what_it_implies_for_a_group(stated: dict[str, Any], told: str) -> None:
    assert officer.promise(claiming(stated)).startswith(f"The claim is {told}")
    if stated.get("epsilon") != 1e4:
        apart = [{**example.result().spec["pairs"][0], "distance": 2}]
        claim = claim_from_dict({"relation": None, **stated})
        (implied,) = officer.implied_promise(
            of_spec(replace(claiming(stated), claim=claim.at_distance(2)), pairs=apart)
        )
        assert implied.startswith("For datasets 2 steps apart that comes to ")
        assert "neighbour" not in implied


def test_no_form_and_no_relation_is_without_words() -> None:
    told = {stated["form"] for stated, _ in FORMS}
    silent = [form.form for form in dpaudit.claims.FORMS if form.form not in told]
    assert not silent, f"give the sentence of {', '.join(silent)} a row in FORMS of this file"
    assert set(officer.UNITS) == {None, *(relation.value for relation in Relation)}
    whose = {Relation.LOCAL: officer.WHOSE_RECORD, Relation.ADD_OR_REMOVE_USER: officer.WHOSE_USER}
    models = {None: "PureDP(epsilon=1)", Relation.LOCAL: "local model"}
    for relation in (None, *Relation):
        result = claiming({"form": "PureDP", "epsilon": 1.0, "relation": relation and relation.value})
        unit = officer.unit(result)
        assert ("You did not say who counts as a neighbour" in unit[0]) == (relation is None)
        assert relation is None or unit[-1] == whose.get(relation, officer.WHOSE)
        assert models.get(relation, "central model") in lines(result, "claim")[0]


def test_odds_are_never_told_better_than_they_are() -> None:
    rng = random.Random(1)
    for _ in range(2_000):
        error = 10.0 ** rng.uniform(-12.0, 0.0)
        one, _, many = numerals.odds(error).partition(" in ")
        assert one == "1"
        told = Fraction(1, int(many.replace(",", "")))
        assert Fraction(repr(error)) <= told <= Fraction(repr(error)) * 2
        assert error > 0.01 or told <= Fraction(repr(error)) * Fraction(102, 100)


def test_the_ratio_of_probabilities_is_rounded_down_and_told_where_one_was_certified() -> None:
    def losing(lower: float | None, delta: float = 0.0) -> str:
        certificate = replace(example.result().certificate, epsilon_lower=lower, delta=delta)
        return " ".join(officer._ratio(replace(example.result(), certificate=certificate)))

    rng = random.Random(2)
    for _ in range(80):
        lower = rng.uniform(0.001, 20.0)
        told = re.search(r"at least ([0-9.,]+) times", losing(lower))
        assert told is not None
        times = float(told.group(1).replace(",", ""))
        assert times <= math.exp(lower) < times * 1.02 + 0.01
    assert officer.ratio_text(math.exp(600.0)) == "10^260"
    assert "after 0.32857 is taken off" in losing(1.0, 0.3285798020102504)
    assert [losing(loss) for loss in (None, 0.0, math.inf, 1e4)] == [""] * 4


def test_what_two_limits_certify_beside_the_bound_holds_for_the_limits() -> None:
    """Against limits of statsmodels: each number told is at most what they say."""
    rng, seen = random.Random(3), 0
    for _ in range(40):
        runs = rng.randrange(200, 100_000)
        p, q = sorted((rng.random(), rng.random()), reverse=True)
        counts = CoinFlip(round(p * runs), round(q * runs), runs, runs)
        certificate = certify(counts, example.result().claim, 0.999)
        told = " ".join(audit._beside(replace(example.result(), evidence=counts, certificate=certificate)))
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


# the record, and how the runs were made


@for_each(
    ("provenance", "key", "told"),
    [
        ({"commit": "4f0c2d9b1e7a-dirty"}, "record", "4f0c2d9b1e7a, with changes that were not committed."),
        ({"commit": None}, "record", f"Not recorded: {', '.join(RECORD.values())}, commit."),
        ({"interruptions": 1}, "how the runs were made", "interrupted once"),
        ({"interruptions": 1_234}, "how the runs were made", "1,234 times"),
    ],
)
def test_what_was_recorded_of_the_runs_is_told(provenance: dict[str, Any], key: str, told: str) -> None:
    result = example.result(provenance={**example.PROVENANCE, **provenance})
    assert any(told in line for line in lines(result, key))


def test_the_record_has_the_digest_of_the_file_that_save_writes(tmp_path: Path) -> None:
    digest = hashlib.sha256(example.result().save(tmp_path / "record.json").read_bytes()).hexdigest()
    assert any(digest in line for line in lines(example.result(), "record"))


def test_what_people_fill_in_is_told_and_what_they_leave_out_once() -> None:
    filled = recorded({"owner": "statistics team", "unit": "a household", "releases": 12, "data": "made up"})
    result = example.result(provenance={**example.PROVENANCE, "record": filled})
    told = lines(result, "record")
    assert told[:2] == ("Owner: statistics team.", "Unit of privacy: a household.")
    assert told[4] == "Not recorded: source of the claim, reviewer."
    assert " One record stands for: a household. " in lines(result, BEFORE)[0]
    of_users = of_spec(result, claim={**result.spec["claim"], "relation": "add_or_remove_user"})
    assert " One user stands for: a household. " in lines(of_users, BEFORE)[0]
    assert (
        "owner" not in account(replace(example.kept(), provenance=result.provenance))["missing for a decision"].lines[0]
    )
    assert {"Number of releases: 12.", "Origin of the data: made up."} <= set(told)
    assert loads(result.to_json(), "").provenance["record"] == filled
    for wrong in ({"owners": "x"}, {"owner": ""}, {"releases": True}):
        with pytest.raises(dpaudit.InvalidSpec, match="record"):
            recorded(wrong)


def test_a_level_that_is_no_round_number_is_never_told_as_more_than_it_is() -> None:
    one = of_spec(example.result(), certify_pairs=3)
    third = replace(one, certificate=replace(one.certificate, confidence=1.0 - 0.001 / 3))
    assert "at most 0.000333333, and" in " ".join(lines(third, "rule of decision"))


def test_the_evidence_of_steps_is_that_of_the_step_that_decides() -> None:
    rng, steps, canaries = np.random.default_rng(3), 6, 40
    coins = rng.random((steps, canaries)) < 0.5
    scores = np.where(np.arange(steps)[:, None] < 2, coins + 0.0, rng.random((steps, canaries)))
    seen = Evidence(PureDP(0.5), canaries, 0.05, 0.0, steps=steps).after(scores, coins)
    path = seen.log_path(seen.claim)
    assert path[-1] < path.max()  # the last step is not the one that decides
    assert seen.e_value == pytest.approx(1.0 / seen.p_value)
    assert seen.refuted == (seen.e_value >= 20.0)


def test_the_start_of_a_program_is_not_taken_for_the_time_of_its_runs() -> None:
    def worth(start_s: float, run_s: float) -> int:
        probes = (
            Probe((2.0 * start_s + run_s * runs) / runs, runs, True, False, (None,))  # type: ignore[arg-type]
            for runs in (8, 2_048)
        )
        return _worth_a_start(*probes)

    for start_s, run_s in ((0.15, 1e-5), (0.15, 1e-3), (1.0, 1e-4)):
        assert worth(start_s, run_s) == pytest.approx(start_s / run_s, rel=0.01)
    assert worth(1e-4, 1e-6) == 0  # a call, and no start
    assert worth(0.0, 0.1) == 0  # slow runs are slow
    sizes = [shard.runs for shard in graded(Stage.CERTIFY, 0, 1_000, 8_192, least=300)]
    assert sizes == [300, 300, 300, 100]


OLD = {"feature": "output", "edges": (0.0, 1.0), "values": (), "labels": ("infinite",), "runs_first": 100}
TWICE = {"first": (10, 50, 40), "second": (70, 5, 5), "tokens_first": (0,), "tokens_second": (60,), "runs_second": 80}
OTHERS = {"labels": ("'w'", "others"), "tokens_first": (0, 0), "tokens_second": (5, 57), "runs_second": 90}


def test_a_file_in_which_infinities_were_counted_twice_is_read_and_holds_them_once(tmp_path: Path) -> None:
    def read(**changes: Any) -> Histogram:
        result = example.result(histogram=Histogram(**{**OLD, **TWICE, **changes}))
        found = dpaudit.load(result.save(tmp_path / "old.json")).illustration.histogram
        assert found is not None
        return found

    for changes, second, labels, tokens in (
        ({}, (70, 5, 5), (), ()),
        (OTHERS, (70, 5, 5), ("'w'", "others"), (5, 5)),  # of 57, 52 stood in the bins too
        ({"second": (10, 5, 5)}, (10, 5, 5), ("infinite",), (60,)),  # each once, as now
    ):
        found = read(**changes)
        assert (found.second, found.labels, found.tokens_second) == (second, labels, tokens)
    for wrong in ({"second": (70, 50, 25)}, {"labels": ("'w'",)}, {"edges": (), "values": (0.0, 1.0, 2.0)}):
        with pytest.raises(dpaudit.InvalidSpec, match="do not fit its bins"):
            read(**wrong)


# suites


ACCEPTED = SuiteEntry("noisy count", Verdict.NOT_REFUTED, example.result(), accepted=example.accepted())
KEPT = SuiteEntry("kept", Verdict.NOT_REFUTED, example.kept())
OVER = Reviewed(example.accepted(until=example.accepted().accepted), expired=True, matched=True)
KNOWN = "every verdict as expected"
COUNTED = "1 refuted, 1 not refuted, 0 without verdict; "


@for_each(
    ("entries", "reviewed", "ends"),
    [
        (
            (ACCEPTED, KEPT),
            (),
            f"2 audits, none needs action: {COUNTED}{KNOWN} or accepted, 1 accepted finding",
        ),
        (
            (replace(ACCEPTED, accepted=None), KEPT),
            (OVER,),
            f"1 of 2 audits needs action, 1 acceptance expired: {COUNTED}1 verdict not as expected",
        ),
        ((KEPT,), (OVER,), "1 audit, 1 acceptance expired: 0 refuted, 1 not refuted, 0 without verdict; " + KNOWN),
    ],
)
def test_the_headline_counts_what_is_accepted_and_what_has_expired(entries: Any, reviewed: Any, ends: str) -> None:
    assert suite_headline(SuiteResult(entries, 0.99, reviewed)).endswith(ends)


def test_an_acceptance_covers_no_missed_violation_and_is_not_needed_for_a_known_one() -> None:
    for result, begins in ((example.kept(), "UNEXPECTED   not refuted"), (example.result(), "as expected  REFUTED")):
        line = suite_line(SuiteEntry("x", Verdict.REFUTED, result, accepted=example.accepted()))
        assert line.startswith(begins)
        assert "accepted until" not in line


@for_each(
    ("confidences", "together"),
    [
        ((0.999,), 0.999),
        ((0.999, 0.999, 0.999), 0.997),
        ((0.99, 0.9999), 0.9899),
        ((1 - 1e-6,) * 7, 1 - 7e-6),
        ((0.5, 0.5, 0.5), 0.0),
        ((), 1.0),
    ],
)
def test_error_probabilities_add_up_without_binary_noise(confidences: tuple[float, ...], together: float) -> None:
    held = [of_spec(example.kept(), confidence=each) for each in confidences]
    assert joint_confidence(held) == together
    if held:
        (question,) = suite_question(SuiteResult(tuple(replace(KEPT, result=each) for each in held), together))[:1]
        assert f"refutes one of them with probability at most {p_text(error_probability(together))}" in question
        assert together or "at suite confidence 0:" in question


def test_every_exit_code_has_a_meaning_and_findings_are_one_line_without_columns() -> None:
    assert set(EXIT_CODES) == {0, 1, 2, 3, 4, 5, 70, 130}
    for found in reported(example.reviewed_suite()):
        assert found.sentence.isprintable()
        assert "  " not in found.sentence
