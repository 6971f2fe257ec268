"""Clopper-Pearson limits, the bands of every threshold and the exact test: valid, tight, silent at the null, mirrored;
the counts and error rates that they start from."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from dpaudit.claims import ApproximateDP, GaussianDP, PureDP
from dpaudit.scores import audit_scores, counts, epsilon_of
from dpaudit.scores.counts import AttackCounts, Roc, roc
from dpaudit.scores.designs import ManyRun
from dpaudit.scores.intervals import bands, clopper_pearson_upper, exact, fixed_rule, least_alpha, lower_of, p_value_of
from tests.cases import for_each
from tests.certify.exact import chances_of_sides

ORACLE = json.loads(Path(__file__).with_name("oracle_values.json").read_text())
ALPHA = 0.05


def table(tp: int, fp: int, members: int, others: int) -> AttackCounts:
    return AttackCounts(tp=tp, fp=fp, tn=others - fp, fn=members - tp)


def mirrored(seen: AttackCounts) -> AttackCounts:
    """The opposite guess with the sides swapped."""
    return AttackCounts(tp=seen.tn, fp=seen.fn, tn=seen.tp, fn=seen.fp)


def lower(seen: AttackCounts, delta: float, alpha: float) -> float:
    return lower_of(fixed_rule(seen), delta, alpha)


@for_each(("epsilon", "delta", "q"), [(0.0, 0.0, 0.3), (1.0, 0.0, 0.1), (1.0, 0.0, 0.02), (0.5, 0.05, 0.2)])
def test_valid_exact_false_alarms_on_the_boundary(epsilon: float, delta: float, q: float) -> None:
    n, m = 40, 30
    p = ApproximateDP(epsilon, delta).max_probability(q)
    wrong = [[lower(table(i, j, n, m), delta, ALPHA) > epsilon for j in range(m + 1)] for i in range(n + 1)]
    assert chances_of_sides(n, m, p, q)[np.array(wrong)].sum() <= ALPHA


def test_tight_within_four_percent_at_a_hundred_thousand_scores_and_by_its_definition() -> None:
    n = 100_000
    assert lower(table(n // 2, round(n / 2 / math.e), n, n), 0.0, ALPHA) > 0.96
    seen, ends = table(30, 3, 50, 40), []
    for hits, size in ((seen.fp, seen.others), (seen.fn, seen.members)):
        ends.append(binomtest(hits, size, alternative="less").proportion_ci(1.0 - ALPHA / 2.0).high)
    plain = max(math.log((1.0 - ends[1]) / ends[0]), math.log((1.0 - ends[0]) / ends[1]))
    assert lower(seen, 0.0, ALPHA) == pytest.approx(plain, rel=1e-8)


def test_null_and_mirror() -> None:
    for share in (0, 10, 100):
        assert lower(table(share, share, 100, 100), 0.0, ALPHA) == 0.0
    assert p_value_of(fixed_rule(table(30, 30, 100, 100)), PureDP(0.0)) == 1.0
    assert exact(table(30, 30, 100, 100), 0.0, ALPHA, None, "in")[0] == 0.0
    one, claim = table(60, 20, 100, 80), PureDP(0.5)
    assert lower(one, 0.01, ALPHA) == lower(mirrored(one), 0.01, ALPHA)
    assert exact(one, 0.0, ALPHA, claim, "in") == exact(mirrored(one), 0.0, ALPHA, claim, "out")
    assert exact(one, 0.0, ALPHA, claim, "in")[0] > lower(one, 0.0, ALPHA)


def test_the_bound_and_the_p_value_agree() -> None:
    seen = table(300, 30, 1000, 1000)
    bound = lower(seen, 0.01, ALPHA)
    assert p_value_of(fixed_rule(seen), ApproximateDP(bound - 1e-6, 0.01)) <= ALPHA
    assert p_value_of(fixed_rule(seen), ApproximateDP(bound + 1e-4, 0.01)) > ALPHA
    assert least_alpha(lambda alpha: False) == 1.0


@for_each("row", ORACLE["estimates"], ids=lambda row: f"{row['counts']}, {row['delta']}")
def test_equals_the_values_of_other_tools(row: dict[str, list[float]]) -> None:
    tp, fp, tn, fn = row["counts"]
    seen, delta = AttackCounts(tp=tp, fp=fp, tn=tn, fn=fn), row["delta"]
    assert lower(seen, delta, ALPHA) == pytest.approx(row["beta_one"], abs=1e-6)  # type: ignore[arg-type]
    assert clopper_pearson_upper(seen, delta, ALPHA) == pytest.approx(float(row["beta"][1]), abs=1e-6)  # type: ignore[arg-type]


@for_each("levels", [0, 5])
def test_valid_the_bands_hold_together(levels: int) -> None:
    """At 0.5 and 200 repeats: more than 135 misses have a probability below 1e-6 even if the level were used up."""
    rng = np.random.default_rng(5)
    missed = 0
    for _ in range(200):
        inside, outside = rng.random(30), rng.random(20)
        if levels:  # ties
            inside, outside = np.ceil(inside * levels) / levels, np.ceil(outside * levels) / levels
        falling = np.union1d(inside, outside)[::-1]
        # the thresholds with the same counts lie above one score and up to the next: the worst of them for each rate
        above, below = np.append(1.0, falling), np.append(falling, 0.0)
        most, least = 1.0 - below, 1.0 - (above if not levels else below)  # of Pr(score >= threshold)
        least[0] = 0.0
        fpr, fnr = bands(inside, outside, 0.5)
        corner = _corners(roc(inside, outside))
        missed += bool(np.any(fpr < most[corner] - 1e-12) or np.any(fnr < 1.0 - least[corner] - 1e-12))
    assert missed <= 135
    assert levels or missed > 20  # and they are no wider than a union bound makes them


def _corners(curve: Roc) -> list[int]:
    fp, tp = curve.fp.tolist(), curve.tp.tolist()
    last = len(fp) - 1
    return [i for i in range(last + 1) if (i == last or fp[i + 1] > fp[i]) and (i == 0 or tp[i] > tp[i - 1])]


@for_each("design", [ManyRun(), ManyRun(splits=5), ManyRun(threshold="all")])
def test_valid_whole_audits_on_the_boundary(design: ManyRun) -> None:
    """Scores of a two-outcome mechanism of loss 1, 60 audits at confidence 0.8: more than 30 refutations have a
    probability below 1e-7 if the level 0.2 were used up."""
    rng = np.random.default_rng(7)
    p, q = math.e / (1.0 + math.e), 1.0 / (1.0 + math.e)
    refuted = 0
    for seed in range(60):
        sides = (rng.random(150) < p) + 0.0, (rng.random(150) < q) + 0.0
        asked = {"epsilon": 1.0, "confidence": 0.8, "methods": "clopper-pearson", "seed": seed}
        refuted += bool(audit_scores(*sides, design=design, **asked).refuted)
    assert refuted <= 30


@pytest.mark.long
@for_each(("delta", "event"), [(0.05, "in"), (0.0, "both")], nightly=[(0.0, "in")])
def test_exact_valid_and_tight_on_the_boundary(delta: float, event: str) -> None:
    """All outcomes of 5 and 5 scores, at confidence 0.9; `tests/certify` has more."""
    n, alpha, epsilon, q = 5, 0.1, 0.7, 0.2
    claim = ApproximateDP(epsilon, delta)
    p = claim.max_probability(q)
    x, y = binom.pmf(np.arange(n + 1), n, p), binom.pmf(np.arange(n + 1), n, q)
    wrong = [0.0, 0.0]
    for i in range(n + 1):
        for j in range(i):
            if x[i] * y[j] < 1e-6:
                continue
            seen = table(i, j, n, n)
            wrong[0] += x[i] * y[j] * (exact(seen, delta, alpha, claim, event)[1] <= alpha)
            wrong[1] += x[i] * y[j] * (lower(seen, delta, alpha) > epsilon)
    assert wrong[0] + n * n * 1e-6 <= alpha
    assert event == "both" or wrong[0] > wrong[1]


def test_equal_scores_are_never_told_apart() -> None:
    curve = roc(np.array([1.0, 1.0, np.nextafter(1.0, 2.0)]), np.array([1.0, 1.0]))
    assert curve.tp.tolist() == [0, 1, 3]
    assert curve.fp.tolist() == [0, 0, 2]
    huge = roc(np.array([1e308, -1e308]), np.array([1.5e308]))  # the middle does not overflow
    assert huge.tp.tolist() == [0, 0, 1, 2]


def test_the_least_epsilon_is_on_the_boundary_of_its_region_and_the_gaussian_model_its_own_inverse() -> None:
    for fpr, fnr, delta in ((0.1, 0.5, 0.0), (0.3, 0.2, 0.05), (0.9, 0.7, 0.01), (0.02, 0.4, 0.1)):
        q, p = (fpr, 1.0 - fnr) if fpr + fnr < 1.0 else (1.0 - fpr, fnr)
        claim = ApproximateDP(epsilon_of(fpr, fnr, delta), delta)
        assert p == pytest.approx(claim.max_probability(q), abs=1e-9)
    assert epsilon_of(0.5, 0.5) == 0.0
    for mu in (0.1, 1.0, 4.0):
        for delta in (1e-12, 1e-5, 0.01):
            epsilon = counts.epsilon_of_mu(mu, delta)
            assert GaussianDP(mu).delta_at(epsilon) == pytest.approx(delta, rel=1e-6) or epsilon == 0.0
    assert counts.mu_of(0.6, 0.5) == 0.0  # not the absolute value: an attack worse than guessing shows nothing
