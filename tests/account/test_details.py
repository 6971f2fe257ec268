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

import dpaudit
from dpaudit.account import account, findings, first, officer, review, statements
from dpaudit.account.diagnosis import ADVICE
from dpaudit.account.first import cause
from dpaudit.account.repeat import python_form
from dpaudit.account.statements import NO_FIRSTS, limits
from dpaudit.account.suites import EXIT_CODES, MISSED, reported, suite_headline, suite_line, suite_question
from dpaudit.auditing.probing import _worth_a_start
from dpaudit.base.quoting import cell
from dpaudit.certify import Certificate, CoinFlip, certify
from dpaudit.claims import GaussianDP, PrivacyProfile, PureDP, Relation, RenyiDP, claim_from_dict
from dpaudit.report import exchange, summary
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
from dpaudit.sweeps import sentences
from tests.account.results import CALL, by_bits, made, of_spec
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
    made, path, real = example.result(), "statsmodels.stats.proportion", builtins.__import__

    def broken(name: str, *rest: Any) -> Any:
        if name == path:
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


@for_each(
    ("changes", "mechanism"),
    [
        ({}, "counts.noisy_count"),
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
    made = example.result()
    made = replace(made, spec={**made.spec, "mechanism": {**made.spec["mechanism"], **changes}})
    form = python_form(made)
    call = ast.parse("\n".join(form)).body[-1].value  # type: ignore[attr-defined]
    assert ast.unparse(call.func) == "dpaudit.audit"
    assert ast.unparse(call.args[0]) == mechanism
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    assert given == {
        "pair": "(['a'] * 9, ['a'] * 8)",
        "claim": "dpaudit.PureDP(epsilon=1.0, relation='add_or_remove_one')",
        "runs": "1000000",
        "confidence": "0.999",
        "seed": "0",
    }


def test_the_python_form_names_datasets_that_are_too_large_to_write() -> None:
    made = example.result()
    large = {**made.spec["pairs"][0], "first": {"digest": "d", "value": None}}
    form = python_form(replace(made, spec={**made.spec, "pairs": [large, large]}))
    assert "    pairs=[(first_1, second_1), (first_2, second_2)]," in form
    digests = f"d and {large['second']['digest']}"
    assert f"# first_1, second_1: your datasets with the digests {digests}, which the result does not hold" in form
    apart = {**large, "distance": 2, "sensitivity": 0.5}
    form = python_form(replace(made, spec={**made.spec, "pairs": [apart]}))
    assert "    pair=dpaudit.AdjacentPair(first, second, distance=2, sensitivity=0.5)," in form
    form = python_form(replace(made, spec={**made.spec, "pairs": [{**large, "user": "id"}]}))
    assert "    pair=dpaudit.AdjacentPair(first, second, user='id')," in form
    form = python_form(replace(made, spec={**made.spec, "pairs": [large] * 2_000}))
    assert "# pairs: your 2,000 pairs of datasets, too long to write here" in form
    assert len(form) < 12


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ((7_448, 7_392, 7_448, 7_392), "came no more often on the first dataset"),
        ((0, 0, 500, 500), "came no more often on the first dataset"),
        ((5_010, 4_990, 10_000, 10_000), "came more often on the first dataset"),
        ((4_990, 5_010, 10_000, 10_000), "came no more often on the first dataset"),
        ((900, 100, 1_000, 1_000), "is likelier on the first dataset"),
        ((1_000, 0, 1_000, 1_000), "is likelier on the first dataset"),
    ],
)
def test_a_side_is_called_likelier_only_where_the_counts_certify_it(counts: tuple[int, ...], says: str) -> None:
    made, evidence = example.result(), CoinFlip(*counts)
    result = example.changed(made, evidence=evidence, certificate=certify(evidence, made.claim, 0.999), trail=())
    text = str(result.explain())
    assert says in text
    assert ("is likelier" in text) == ("is likelier" in says)


def test_no_chance_is_stated_for_more_bounds_than_one_can_speak_of() -> None:
    def rows(number: int) -> list[dict[str, object]]:
        return [
            {"verdict": "REFUTED", "confidence": 0.95, "p_value": 0.05 / (number + place)} for place in range(number)
        ]

    assert sentences.chance(rows(1)) == "The bound is wrong with probability at most 0.05."
    assert sentences.chance(rows(3)) == (
        "Of 3 points each bound is wrong with probability at most 0.05; "
        "all hold together with confidence at least 0.85 (Bonferroni)."
    )
    for number, wrong, each in ((20, "1.0", "0.9975"), (24, "1.2", "0.997916667"), (400, "20.0", "0.999875")):
        assert sentences.chance(rows(number)) == (
            f"Of {number} points each bound is wrong with probability at most 0.05, so {wrong} wrong ones or fewer are "
            f"to be expected. That all hold together has no confidence; it would have 0.95 with {each} for each. "
            f"{number} of the {number} refutations hold together, with 0.95 (Holm)."
        )


def test_bets_that_refute_without_a_larger_number_say_that_the_truth_is_above_the_claim() -> None:
    certificate = Certificate(1.0, 0.4, 0.0004, 0.1, 0.999, "bets")
    assert statements.certified_bound(GaussianDP(1.0), certificate) == "mu > 1"
    assert statements.certified_bound(RenyiDP(2.0, 1.0), certificate) == "epsilon > 1 at order 2"
    # refuted somewhere on its curve: that says nothing of the curve at this delta
    profile = PrivacyProfile([(0.0, 0.2), (2.0, 0.0)])
    assert statements.certified_bound(profile, certificate) == "epsilon >= 1.00 at delta 0.1"


def test_a_bound_of_nothing_is_not_told_as_one() -> None:
    certificate = Certificate(1.2, 0.0, 0.0004, 0.1, 0.999, "bets")
    assert statements.implied(GaussianDP(1.0), certificate) == ()
    told = statements.implied(RenyiDP(2.0, 1.0), replace(certificate, epsilon_lower=0.5))
    assert told == ("whatever the mechanism is: epsilon >= 0.500000 at delta 0.1",)
    assert statements.implied(RenyiDP(2.0, 1.0), replace(certificate, epsilon_lower=None)) == ()


def test_first_calls_that_nothing_looked_at_are_among_what_is_not_shown() -> None:
    made = example.result()
    assert NO_FIRSTS in limits(made)
    for runs in (0, 16):  # without runs it is said why they were not looked at
        looked = replace(made, explored=(Explored("processes", "first calls", "in fresh processes", runs=runs),))
        assert (NO_FIRSTS in limits(looked)) is (runs == 0)
        assert NO_FIRSTS in limits(looked, made)


def test_a_known_finding_on_bits_is_expected_and_missed_where_there_is_none() -> None:
    kept, refuted = example.kept(), example.result()
    for result, expected in ((by_bits(kept), True), (kept, False), (refuted, False), (by_bits(refuted), False)):
        entry = SuiteEntry(result.name, Verdict.NOT_REFUTED, result, bits=True)
        suite = SuiteResult((entry,), 0.999)
        assert (entry.as_expected, suite.exit_code) == (expected, int(not expected))
        assert suite_line(entry).count(", expected REFUTED by bits") == int(not expected)
        rules = [each.rule for each in reported(suite)]
        assert (rules == []) is expected
        assert (MISSED in rules) is (result is kept)
        text = summary.summary_suite(suite)
        assert ("known finding on bits missed" in text) is (result is kept)
        assert either_of(json.loads(exchange.json_suite(suite))) == suite


def test_choices_are_listed_as_people_do() -> None:
    assert [findings._either(words) for words in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a or b", "a, b or c"]


# promises, units and odds: every form and every relation has its words, no number is told better than it is


def claiming(stated: dict[str, Any]) -> AuditResult:
    return of_spec(example.result(), claim={"relation": None, **stated})


@for_each(("stated", "told"), FORMS, ids=lambda given: given["form"] if isinstance(given, dict) else "")
def test_every_form_has_its_promise_and_what_it_implies_for_a_group(stated: dict[str, Any], told: str) -> None:
    assert officer.promise(claiming(stated)).startswith(f"The claim is {told}")
    if stated.get("epsilon") != 1e4:
        apart = [{**example.result().spec["pairs"][0], "distance": 2}]
        claim = claim_from_dict({"relation": None, **stated})
        far = of_spec(replace(claiming(stated), claim=claim.at_distance(2)), pairs=apart)
        (implied,) = officer.implied_promise(far)
        assert implied.startswith("For datasets 2 steps apart that comes to ")
        assert "neighbour" not in implied


def test_no_form_and_no_relation_is_without_words() -> None:
    told = {stated["form"] for stated, _ in FORMS}
    silent = [form.form for form in dpaudit.claims.FORMS if form.form not in told]
    assert not silent, f"give the sentence of {', '.join(silent)} a row in FORMS of this file"
    assert set(officer.UNITS) == {relation.value for relation in Relation}


@pytest.mark.parametrize("relation", [None, *Relation])
def test_the_unit_follows_from_the_relation_and_what_is_unknown_is_said(relation: Relation | None) -> None:
    result = claiming({"form": "PureDP", "epsilon": 1.0, "relation": None if relation is None else relation.value})
    told = officer.unit(result)
    assert ("states no relation" in told[0]) == (relation is None)
    whose = {Relation.LOCAL: officer.WHOSE_RECORD, Relation.ADD_OR_REMOVE_USER: officer.WHOSE_USER}
    assert told[-1] == whose.get(relation, officer.WHOSE)  # type: ignore[arg-type]
    model = {None: "not recorded", Relation.LOCAL: "local model"}.get(relation, "central model")
    assert model in lines(result, "releases and trust")[1]


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


def losing(lower: float | None, delta: float = 0.0) -> str:
    """What the ratio of probabilities says of a certified loss."""
    certificate = replace(example.result().certificate, epsilon_lower=lower, delta=delta)
    return " ".join(officer._ratio(replace(example.result(), certificate=certificate)))


def test_the_ratio_of_probabilities_is_rounded_down_and_told_where_one_was_certified() -> None:
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


def test_the_record_has_the_digest_of_the_file_that_save_writes(tmp_path: Path) -> None:
    path = example.result().save(tmp_path / "record.json")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert digest == officer.record_digest(example.result())
    assert any(digest in line for line in lines(example.result(), "record"))


@pytest.mark.parametrize(
    ("commit", "told"),
    [
        ("4f0c2d9b1e7a", "The commit is 4f0c2d9b1e7a, with nothing uncommitted beside it."),
        ("4f0c2d9b1e7a-dirty", "The commit is 4f0c2d9b1e7a, with changes that were not committed."),
        (None, f"Not recorded: {', '.join(RECORD.values())}, commit."),
    ],
)
def test_the_commit_is_told_with_what_was_not_committed(commit: str | None, told: str) -> None:
    result = example.result(provenance={**example.PROVENANCE, "commit": commit})
    assert told in lines(result, "record")


@pytest.mark.parametrize(
    ("count", "told"),
    [(None, "is not recorded"), (0, "was not interrupted"), (1, "interrupted once"), (1_234, "1,234 times")],
)
def test_interruptions(count: int | None, told: str) -> None:
    result = example.result(provenance={**example.PROVENANCE, "interruptions": count})
    assert any(told in line for line in lines(result, "how the runs were made"))


def test_what_people_fill_in_is_told_and_what_they_leave_out_once() -> None:
    filled = recorded({"owner": "statistics team", "unit": "a household", "releases": 12, "data": "made up"})
    result = example.result(provenance={**example.PROVENANCE, "record": filled})
    told = lines(result, "record")
    assert told[:2] == ("Owner: statistics team.", "Unit of privacy: a household.")
    assert told[4] == "Not recorded: source of the claim, reviewer."
    assert "One entry stands for: a household." in lines(result, "claim")
    of_users = of_spec(result, claim={**result.spec["claim"], "relation": "add_or_remove_user"})
    assert "One user stands for: a household." in lines(of_users, "claim")
    assert "Number of releases: 12." in lines(result, "releases and trust")
    assert "Origin of the data: made up." in lines(result, "datasets")
    assert loads(result.to_json(), "").provenance["record"] == filled
    for wrong in ({"owners": "x"}, {"owner": ""}, {"releases": True}):
        with pytest.raises(dpaudit.InvalidSpec, match="record"):
            recorded(wrong)


def test_the_level_is_that_of_one_witness_and_the_confidence_that_of_all() -> None:
    one = example.result()
    certificate = replace(one.certificate, confidence=0.9995)
    both = replace(of_spec(one, certify_pairs=2), certificate=certificate)
    told = " ".join(lines(both, "rule of decision"))
    assert "the p-value is at most 0.0005, and" in told
    assert "at confidence 0.999," in told
    assert "divided equally among up to 2" in told
    assert lines(both, "how sure it is")[0].endswith("and 0.0005 or less refutes")
    assert lines(both, "how sure it is")[1].endswith("with probability at most 0.001")
    third = replace(both, certificate=replace(certificate, confidence=1.0 - 0.001 / 3))
    assert "at most 0.000333333, and" in " ".join(lines(third, "rule of decision"))  # never more than it is


def test_what_two_limits_certify_beside_the_bound_holds_for_the_limits() -> None:
    """Against limits of statsmodels: each number told is at most what they say."""
    from scipy.special import ndtri
    from statsmodels.stats.proportion import proportion_confint

    rng, seen = random.Random(3), 0
    for _ in range(40):
        runs = rng.randrange(200, 100_000)
        p, q = sorted((rng.random(), rng.random()), reverse=True)
        counts = CoinFlip(round(p * runs), round(q * runs), runs, runs)
        certificate = certify(counts, example.result().claim, 0.999)
        told = " ".join(review._beside(replace(example.result(), evidence=counts, certificate=certificate)))
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
    counts = CoinFlip(100, 100, 1000, 1000)
    apart = replace(example.result(), evidence=counts, certificate=certify(counts, example.result().claim, 0.999))
    assert review._beside(apart) == ("Nothing: the limits of the counts on either side do not part.",)


def test_tables_hold_the_counts_and_are_as_wide_as_their_heads() -> None:
    bins = account(made("bins"))["counts bin by bin"].table
    assert bins is not None
    counts = [tuple(int(cell.replace(",", "")) for cell in row[1:]) for row in bins.rows[:-1]]
    evidence = made("bins").evidence
    assert counts == list(zip(evidence.counts_p, evidence.counts_q, strict=True))
    bets = account(made("anytime"))["bets of the blocks"].table
    assert bets is not None
    assert len(bets.rows) + bets.left_out == len(made("anytime").blocks)
    for kind in ("refuted", "not-refuted", "bins", "anytime", "two-pairs", "controls"):
        for section in account(made(kind)).sections:
            if section.table is not None:
                assert {len(row) for row in section.table.rows} == {len(section.table.head)}, section.key
                assert max(section.table.numbers, default=0) < len(section.table.head)


# few runs, no random run, the last bet


def mostly(rows: Any, rng: Any) -> bool:
    return bool(rng.random() < (0.96 if len(rows) == 3 else 0.03))


def test_an_audit_that_bets_tells_the_counts_that_stand_beside_it_and_not_those_of_its_last_block() -> None:
    asked = {"pair": ([1, 2, 3], [1, 2]), "epsilon": 1.0, "stopping": "anytime", "runs": 20_000, "seed": 0, **CALL}
    result = dpaudit.audit(mostly, **asked)
    assert result.stopped_early
    assert result.illustration.typical is not None
    way = 1 if result.witness.p_side == "first" else -1
    (p, q), (runs_p, runs_q) = result.illustration.typical.hits[::way], result.illustration.typical.runs[::way]
    side = result.witness.p_side
    assert f" in {p} of {runs_p} search runs on the {side} dataset against {q} of {runs_q}" in cause(result)
    assert "%" not in cause(result)
    whole = example.changed(result, typical=None)  # of before: its last block, as counts
    last = result.blocks[-1].evidence
    assert f" in {last.hits_p} of {last.runs_p} runs on the" in cause(whole)


def test_a_share_in_percent_stands_for_a_hundred_runs_at_least() -> None:
    few = replace(example.result().evidence, hits_p=4, runs_p=4, hits_q=0, runs_q=5)
    assert "in 4 of 4 runs on the first dataset against 0 of 5 on the second" in cause(example.result(evidence=few))
    many = replace(few, hits_p=400, runs_p=400, hits_q=0, runs_q=500)
    assert "in 100 % of the runs on the first dataset against 0 % on the second" in cause(example.result(evidence=many))
    told = " ".join(lines(example.kept(evidence=few), "what was found"))
    assert "in 4 of 4 runs on the first and 0 of 5 runs on the second" in told


def test_the_evidence_of_steps_is_that_of_the_step_that_decides() -> None:
    rng = np.random.default_rng(3)
    steps, canaries = 6, 40
    coins = rng.random((steps, canaries)) < 0.5
    scores = np.where(np.arange(steps)[:, None] < 2, coins + 0.0, rng.random((steps, canaries)))
    seen = Evidence(PureDP(0.5), canaries, 0.05, 0.0, steps=steps).after(scores, coins)
    path = seen.log_path(seen.claim)
    assert path[-1] < path.max()  # the last step is not the one that decides
    assert seen.e_value == pytest.approx(1.0 / seen.p_value)
    assert seen.refuted == (seen.e_value >= 20.0)


@pytest.mark.parametrize("kind", ["location", "keys", "length", "tail", "infinity"])
def test_advice_says_what_is_too_small_where_it_may_be_there_already(kind: str) -> None:
    words = {
        "location": "more noise, or tighter",
        "keys": "is too low",
        "length": "too small",
        "tail": "larger than now",
    }
    assert words.get(kind, "NaN too (it passes min, max and most clips)") in ADVICE[kind][1]


def test_the_start_of_a_program_is_not_taken_for_the_time_of_its_runs() -> None:
    def seen(runs: int, start_s: float, run_s: float) -> Probe:
        return Probe((2.0 * start_s + run_s * runs) / runs, runs, True, False, (None,))  # type: ignore[arg-type]

    for start_s, run_s in ((0.15, 1e-5), (0.15, 1e-3), (1.0, 1e-4)):
        assert _worth_a_start(seen(8, start_s, run_s), seen(2_048, start_s, run_s)) == pytest.approx(
            start_s / run_s, rel=0.01
        )
    assert _worth_a_start(seen(8, 1e-4, 1e-6), seen(2_048, 1e-4, 1e-6)) == 0  # a call, and no start
    assert _worth_a_start(seen(8, 0.0, 0.1), seen(2_048, 0.0, 0.1)) == 0  # slow runs are slow
    sizes = [shard.runs for shard in graded(Stage.CERTIFY, 0, 1_000, 8_192, least=300)]
    assert sizes == [300, 300, 300, 100]


OLD = {
    "feature": "output",
    "edges": (0.0, 1.0),
    "values": (),
    "labels": ("infinite",),
    "runs_first": 100,
    "runs_second": 80,
}


def test_a_file_in_which_infinities_were_counted_twice_is_read_and_holds_them_once(tmp_path: Path) -> None:
    def read(**changes: Any) -> Histogram:
        cells = {"first": (10, 50, 40), "second": (70, 5, 5), "tokens_first": (0,), "tokens_second": (60,)}
        result = example.result(histogram=Histogram(**{**OLD, **cells, **changes}))
        found = dpaudit.load(result.save(tmp_path / "old.json")).illustration.histogram
        assert found is not None
        return found

    found = read()
    assert (found.second, found.labels, found.tokens_first, found.tokens_second) == ((70, 5, 5), (), (), ())
    found = read(
        labels=("'w'", "others"), tokens_first=(0, 0), tokens_second=(5, 57), second=(70, 5, 5), runs_second=90
    )
    assert (found.labels, found.tokens_second) == (("'w'", "others"), (5, 5))  # of 57, 52 stood in the bins too
    kept = read(second=(10, 5, 5))  # each once, as now
    assert (kept.labels, kept.tokens_second) == (("infinite",), (60,))
    for wrong in ({"second": (70, 50, 25)}, {"labels": ("'w'",)}, {"edges": (), "values": (0.0, 1.0, 2.0)}):
        with pytest.raises(dpaudit.InvalidSpec, match="do not fit its bins"):
            read(**wrong)


# suites


HELD = example.accepted()
ACCEPTED = SuiteEntry("noisy count", Verdict.NOT_REFUTED, example.result(), accepted=HELD)


def test_an_accepted_finding_says_until_when_and_stays_refuted() -> None:
    line = suite_line(ACCEPTED)
    assert line.startswith("accepted     REFUTED      noisy count: epsilon >= 1.96 ")
    assert ", expected not refuted; output above 9.5" in line
    assert line.endswith(", accepted until 2025-05-01: the old release, gone in May")
    assert "UNEXPECTED" in suite_line(replace(ACCEPTED, accepted=None))
    assert "accepted" not in suite_line(replace(ACCEPTED, accepted=None))


def test_an_acceptance_covers_no_missed_violation_and_is_not_needed_for_a_known_one() -> None:
    missed = SuiteEntry("x", Verdict.REFUTED, example.kept(), accepted=HELD)
    assert suite_line(missed).startswith("UNEXPECTED   not refuted")
    known = SuiteEntry("x", Verdict.REFUTED, example.result(), accepted=HELD)
    assert suite_line(known).startswith("as expected  REFUTED")
    assert "accepted" not in suite_line(known)


def test_the_headline_counts_what_is_accepted_and_what_has_expired() -> None:
    over = Reviewed(replace(HELD, until=HELD.accepted), expired=True, matched=True)
    kept = SuiteEntry("kept", Verdict.NOT_REFUTED, example.kept())
    assert suite_headline(SuiteResult((ACCEPTED, kept), 0.99)) == (
        "2 audits: 1 refuted, 1 not refuted, 0 without verdict; every verdict as expected or accepted, 1 accepted "
        "finding"
    )
    assert suite_headline(SuiteResult((replace(ACCEPTED, accepted=None), kept), 0.99, (over,))) == (
        "2 audits: 1 refuted, 1 not refuted, 0 without verdict; 1 verdict not as expected; 1 acceptance expired"
    )
    assert suite_headline(SuiteResult((kept,), 0.99, (over,))).endswith("as expected; 1 acceptance expired")


def test_the_question_says_equal_only_of_equal_parts() -> None:
    stricter = replace(example.kept(), spec={**example.kept().spec, "confidence": 0.9999})
    entries = (ACCEPTED, SuiteEntry("stricter", Verdict.NOT_REFUTED, stricter))
    assert "each gets an equal part of" in suite_question(example.suite())[0]
    assert "each gets a part of its own of" in suite_question(SuiteResult(entries, 0.9989))[0]


@pytest.mark.parametrize(
    ("confidences", "together"),
    [
        ((0.999,), 0.999),
        ((0.999, 0.999, 0.999), 0.997),
        ((0.99, 0.9999), 0.9899),
        ((1 - 1e-6,) * 7, 1 - 7e-6),
        ((), 1.0),
    ],
)
def test_error_probabilities_add_up_without_binary_noise(confidences: tuple[float, ...], together: float) -> None:
    made = [replace(example.kept(), spec={**example.kept().spec, "confidence": each}) for each in confidences]
    assert joint_confidence(made) == together


def test_nothing_is_left_of_a_confidence_that_was_spent() -> None:
    made = [replace(example.kept(), spec={**example.kept().spec, "confidence": 0.5})] * 3
    assert joint_confidence(made) == 0.0
    assert "at suite confidence 0:" in suite_question(SuiteResult((ACCEPTED,) * 3, joint_confidence(made)))[0]


@for_each("text", ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "  =1", "\uff1d1", "\n=1"])
def test_no_cell_is_a_formula(text: str) -> None:
    assert str(cell(text)).startswith("'")
    assert cell(f"x{text}") == str(cell(f"x{text}"))
    assert not str(cell(f"x{text}")).startswith("'")


def test_every_exit_code_of_the_command_line_has_a_meaning() -> None:
    assert set(EXIT_CODES) == {0, 1, 2, 3, 4, 5, 70, 130}


def test_sentences_of_findings_are_one_line_without_columns() -> None:
    for found in reported(example.reviewed_suite()):
        assert found.sentence.isprintable()
        assert "  " not in found.sentence
