"""Whole audits of scores: labels, verdicts, what may not be combined, bad input, files in and out."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.claims import ApproximateDP, GaussianDP, PureDP
from dpaudit.errors import InvalidSpec
from dpaudit.scores import LABELS, METHODS, AttackCounts, audit_scores
from dpaudit.scores.files import read_scores
from dpaudit.scores.result import LINES
from tests.cases import for_each

RNG = np.random.default_rng(11)
INSIDE, OUTSIDE = RNG.normal(2.0, 1.0, 400), RNG.normal(0.0, 1.0, 300)
COUNTS = AttackCounts(tp=300, fp=30, tn=970, fn=700)
CP = "clopper-pearson"


@for_each("design", ["many-run", "one-run"])
@for_each("options", [{}, {"threshold": 1.0}, {"splits": 3}, {"threshold": "all"}, {"delta": 1e-5}], ids=str)
def test_all_methods_answer_and_say_what_they_are(design: str, options: dict[str, Any]) -> None:
    result = audit_scores(INSIDE, OUTSIDE, methods="all", design=design, interval="two-sided", **options)
    assert {each.label for each in result.estimates} <= set(LABELS)
    for each in result.estimates:
        assert each.assumption
        assert all(v is None or not math.isnan(v) for v in (each.value, each.lower, each.upper))
        assert each.lower is None or each.upper is None or each.lower <= each.upper
    assert result.deciding is not None
    assert result.deciding.label == "certified"
    assert result.refuted is None
    assert 0.5 < (result.epsilon_lower or 0.0) < 5.0


def test_the_certified_methods_are_the_default_and_the_first_decides() -> None:
    many = audit_scores(INSIDE, OUTSIDE, epsilon=1.0)
    assert [each.method for each in many.estimates] == ["exact", CP]
    assert many.deciding is many.estimates[0]
    assert many.refuted is True
    one = audit_scores(INSIDE, OUTSIDE, epsilon=1.0, design="one-run")
    assert [each.method for each in one.estimates][:2] == ["one-run", "one-run-gaussian"]
    assert tuple(dict.fromkeys(each.line for each in one.estimates)) == LINES  # in this order, never mixed
    assert one.refuted is True
    assert "fair coin" in one.assumption
    assert "trained independently" in many.assumption


def test_nothing_uncertified_decides() -> None:
    result = audit_scores(INSIDE, OUTSIDE, epsilon=0.1, methods=["raw-counts", "joint-beta", "katz-log", "jeffreys"])
    assert result.refuted is None
    assert result.epsilon_lower is None
    assert str(result).startswith("NO CERTIFICATE")


def test_a_verdict_follows_from_the_bound() -> None:
    bound = audit_scores(INSIDE, OUTSIDE, methods=CP).epsilon_lower
    assert bound is not None
    for epsilon, refuted in ((bound - 0.01, True), (bound + 0.01, False)):
        for claim in (PureDP(epsilon), ApproximateDP(epsilon, 0.0)):
            assert audit_scores(INSIDE, OUTSIDE, methods=CP, claim=claim).refuted is refuted


@pytest.mark.parametrize("options", [{}, {"splits": 3}, {"threshold": 1.0}, {"threshold": "all"}], ids=str)
def test_a_gaussian_claim_is_judged_by_its_own_region(options: dict[str, Any]) -> None:
    result = audit_scores(INSIDE, OUTSIDE, claim=GaussianDP(0.5), methods=CP, **options)
    assert result.refuted is True
    assert audit_scores(INSIDE, OUTSIDE, claim=GaussianDP(2.5), methods=CP, **options).refuted is False
    if options.get("threshold") != "all":
        mu = result.estimates[0].detail["mu_lower"]
        assert 0.5 < mu < 2.5
        if "threshold" in options:  # the same rule again: the bound and the verdict agree
            for claimed, refuted in ((mu - 1e-3, True), (mu + 1e-3, False)):
                again = audit_scores(INSIDE, OUTSIDE, claim=GaussianDP(claimed), methods=CP, threshold=1.0)
                assert again.refuted is refuted


def test_a_gaussian_claim_on_one_run_uses_the_recursion() -> None:
    result = audit_scores(INSIDE, OUTSIDE, claim=GaussianDP(0.5), design="one-run")
    assert result.estimates[0].method == "one-run-f"
    assert result.refuted is True
    assert 0.5 < result.estimates[0].detail["mu_lower"] < 2.5
    assert audit_scores(INSIDE, OUTSIDE, claim=GaussianDP(2.5), design="one-run").refuted is False


def test_null_the_same_scores_twice_refute_nothing() -> None:
    same = np.arange(200.0)
    for options in ({}, {"threshold": "all"}, {"threshold": 100.0}):
        result = audit_scores(same, same, epsilon=0.0, methods=CP, confidence=0.999, **options)
        assert result.refuted is False
    assert audit_scores(same, same, epsilon=0.0, methods=CP, threshold=100.0).epsilon_lower == 0.0


def test_mirror_low_scores_of_members_show_as_much() -> None:
    one = audit_scores(INSIDE, OUTSIDE, methods=CP, threshold="all").epsilon_lower
    assert audit_scores(-INSIDE, -OUTSIDE, methods=CP, threshold="all").epsilon_lower == one
    assert audit_scores(OUTSIDE, INSIDE, methods=CP).epsilon_lower > 0.5  # type: ignore[operator]


def test_the_same_seed_gives_the_same_answer_and_the_scores_keep_no_order() -> None:
    one = audit_scores(INSIDE, OUTSIDE, methods=[CP], seed=3)
    assert one.to_dict() == audit_scores(list(INSIDE), tuple(OUTSIDE), methods=CP, seed=3).to_dict()
    assert one.counts != audit_scores(INSIDE, OUTSIDE, methods=CP, seed=4).counts
    assert one.counts.members == 300


def test_counts_alone() -> None:
    result = audit_scores(counts=COUNTS, epsilon=1.0, methods="all", interval="two-sided")
    assert result.refuted is True
    assert result.roc == ()
    assert result.estimate("joint-beta").lower == pytest.approx(result.estimate("joint-dirichlet").lower)
    low, high = result.estimate(CP).lower, result.estimate(CP).upper
    assert low is not None
    assert high is not None
    assert 1.5 < low < 2.303 < high
    with pytest.raises(KeyError):
        result.estimate("auroc")


def test_json(tmp_path: Path) -> None:
    result = audit_scores(INSIDE, OUTSIDE, claim=GaussianDP(1.0), methods=("exact", "gaussian"))
    stored = json.loads(result.save(tmp_path / "r.json").read_text())
    assert stored["schema"] == "dpaudit.scores/1"
    assert stored["decided_by"] == "exact"
    assert next(each["label"] for each in stored["estimates"]) == "certified"


def test_a_curved_claim_tells_epsilon_at_the_delta_that_was_asked_for() -> None:
    asked: dict[str, Any] = {"claim": GaussianDP(1.0), "methods": ("exact", CP)}
    plain, told = audit_scores(INSIDE, OUTSIDE, **asked), audit_scores(INSIDE, OUTSIDE, **asked, delta=1e-3)
    for frozen, found in zip(plain.estimates, told.estimates, strict=True):
        assert found.delta == 1e-3 != frozen.delta
        assert (found.p_value, found.detail) == (frozen.p_value, frozen.detail)  # the test stays at the tangent
    assert told.counts is not None
    limits = audit_scores(counts=told.counts, epsilon=1.0, delta=1e-3, methods=CP).estimates[0].lower
    assert told.estimates[1].lower == limits
    assert limits == pytest.approx(told.estimates[0].lower, rel=0.1)


REFUSED = {
    "NaN": ({"in_scores": [1.0, math.nan]}, r"in_scores\[1\] must be finite, got nan \(1 such\); give"),
    "infinity": ({"out_scores": [math.inf, 1.0]}, r"out_scores\[0\] must be finite, got inf"),
    "empty": ({"in_scores": []}, "in_scores must hold at least one score, got none"),
    "a table": ({"in_scores": [[1.0]]}, r"in_scores must be one-dimensional, got shape \(1, 1\)"),
    "words": ({"in_scores": ["a"]}, "in_scores must be real numbers"),
    "complex": ({"in_scores": [1j]}, "in_scores must be real numbers"),
    "all the same": ({"in_scores": [2.0, 2.0], "out_scores": [2.0]}, "are all 2: there is nothing to tell apart"),
    "one side": ({"in_scores": None}, "give both in_scores and out_scores"),
    "scores and counts": ({"counts": COUNTS}, "give in_scores and out_scores, or counts=..., one of the two"),
    "too few to split": ({"in_scores": [2.0]}, "in_scores must hold at least 2 scores to be split, got 1"),
    "epsilon": ({"epsilon": -1.0}, "epsilon must be finite and at least 0, got -1"),
    "claim twice": ({"epsilon": 1.0, "claim": PureDP(1.0)}, "not both"),
    "claim": ({"claim": 3}, "claim must be a claim such as"),
    "delta": ({"delta": 1.5}, r"delta must be in \[0, 1\], got 1.5"),
    "delta 1": ({"delta": 1.0}, "delta must be below 1"),
    "another delta": ({"delta": 0.1, "claim": PureDP(1.0)}, "delta must be that of the claim, 0"),
    "confidence": ({"confidence": 1.0}, "confidence must lie strictly between 0 and 1, got 1.0"),
    "method": ({"methods": ["magic"]}, "methods must be one of exact, .* got 'magic'"),
    "no method": ({"methods": []}, "methods must name at least one"),
    "method of the other design": ({"methods": ["one-run"]}, "method 'one-run' is for design=\"one-run\""),
    "method without delta": ({"methods": ["bailey"], "delta": 0.1}, "method 'bailey' is for delta = 0, got 0.1"),
    "exact for all": ({"methods": ["exact"], "threshold": "all"}, "method 'exact' cannot be used here"),
    "design": ({"design": "two-run"}, "design must be one of many-run, one-run, got 'two-run'"),
    "interval": ({"interval": "both"}, "interval must be one of lower, upper, two-sided, got 'both'"),
    "upper with a claim": ({"interval": "upper", "epsilon": 1.0}, 'interval="upper" refutes no claim'),
    "event": ({"event": "x"}, "event must be one of in, out, both, got 'x'"),
    "threshold": ({"threshold": math.nan}, "threshold must be a number, got NaN"),
    "threshold and splits": ({"threshold": 1.0, "splits": 3}, "give threshold or splits, not both"),
    "split": ({"split": 1.0}, "split must lie strictly between 0 and 1"),
    "splits": ({"splits": 1.5}, "splits must be a whole number"),
    "guesses": ({"guesses": (1, 1)}, 'guesses are for design="one-run"'),
    "too many guesses": ({"guesses": (9, 9), "design": "one-run"}, "between 1 and the 4 scores together, got 18"),
    "one guess": ({"guesses": 3, "design": "one-run"}, "guesses must be two whole numbers"),
    "seed": ({"seed": -1}, "seed must be at least 0"),
    "bootstrap": ({"bootstrap": "x"}, "bootstrap must be one of"),
    "min_count": ({"min_count": 0}, "min_count must be at least 1"),
    "fpr": ({"fpr": [2.0]}, r"fpr must be in \[0, 1\]"),
    "prevalence": ({"prevalence": 2.0}, r"prevalence must be in \[0, 1\]"),
}


@for_each("name", REFUSED)
def test_bad_input_is_refused_in_one_line(name: str) -> None:
    options, message = REFUSED[name]
    asked: dict[str, Any] = {"in_scores": [1.0, 2.0], "out_scores": [0.0, 0.5], "methods": CP, **options}
    if asked.get("design") == "one-run":
        asked["methods"] = None
    with pytest.raises(InvalidSpec, match=message) as error:
        audit_scores(**asked)
    assert "\n" not in str(error.value)


def test_counts_do_not_go_with_a_split_or_with_methods_that_need_scores() -> None:
    with pytest.raises(InvalidSpec, match="leave out threshold, split, splits and guesses"):
        audit_scores(counts=COUNTS, threshold=1.0)
    with pytest.raises(InvalidSpec, match="method 'auroc' needs the scores, got counts alone"):
        audit_scores(counts=COUNTS, methods="auroc")


@pytest.mark.parametrize("size", [2, 3, 5])
def test_the_smallest_samples_say_nothing_and_break_nothing(size: int) -> None:
    a, b = np.arange(float(size)), np.arange(float(size)) + 0.5
    for design in ("many-run", "one-run"):
        for threshold in (None, "all", 1.0):
            result = audit_scores(a, b, methods="all", design=design, threshold=threshold)
            assert (result.epsilon_lower or 0.0) < 1.0


def test_counts_in_and_out(tmp_path: Path) -> None:
    path = COUNTS.save(tmp_path / "counts.json")
    assert read_scores(path).counts == COUNTS
    assert COUNTS.reversed().reversed() == COUNTS
    for wrong, message in (
        ({"tp": 1, "fp": 0, "tn": 1}, "counts must have the keys tp, fp, tn, fn, got tp, fp, tn"),
        ({"tp": -1, "fp": 0, "tn": 1, "fn": 1}, "tp must be at least 0, got -1"),
        ({"tp": 0, "fp": 0, "tn": 1, "fn": 0}, "at least one of the members"),
    ):
        with pytest.raises(InvalidSpec, match=message):
            AttackCounts.from_dict(wrong)


def test_every_method_of_the_list_is_reachable() -> None:
    seen = {
        each.method
        for design in ("many-run", "one-run")
        for each in audit_scores(INSIDE, OUTSIDE, methods="all", design=design).estimates
    }
    assert seen == set(METHODS)
