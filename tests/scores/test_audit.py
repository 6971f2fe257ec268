"""Whole audits of scores: every method at a null and in mirror, lines and verdicts, and what may not be combined."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import nulls
from dpaudit import FewRuns, ManyRun, OneRun, Steps
from dpaudit.claims import ApproximateDP, GaussianDP, PrivacyProfile, PureDP
from dpaudit.errors import InvalidSpec
from dpaudit.scores import LABELS, METHODS, AttackCounts, audit_scores, counts, few, one_run
from dpaudit.scores.designs import DESIGNS, Design, design_of, options_of
from dpaudit.scores.files import read_scores
from dpaudit.scores.question import ScoresQuestion
from dpaudit.scores.result import LINES, Estimate
from tests.cases import for_each

RNG = np.random.default_rng(11)
INSIDE, OUTSIDE = RNG.normal(2.0, 1.0, 400), RNG.normal(0.0, 1.0, 300)
COUNTS = AttackCounts(tp=300, fp=30, tn=970, fn=700)
CP = "clopper-pearson"
ROWS = (FewRuns(), Steps(), Steps(steps=2))
OF_DESIGNS: dict[type[Design], tuple[Design, ...]] = {
    ManyRun: (ManyRun(), ManyRun(splits=3), ManyRun(threshold=1.0), ManyRun(threshold="all")),
    OneRun: (OneRun(), OneRun(event="in"), OneRun(guesses=(60, 60)), OneRun(threshold=1.0)),
}
CURVED = {"one-run-f": (GaussianDP(0.2),), "e-values": (GaussianDP(0.2), PureDP(0.1), ApproximateDP(0.1, 1e-6))}
OF_METHODS = [
    (name, design, claim)
    for name, each in METHODS.items()
    for kind in each.designs
    for design in (OF_DESIGNS.get(kind, ROWS) if name != "exact" else (ManyRun(), ManyRun(threshold=1.0)))
    for claim in CURVED.get(name, (ApproximateDP(0.1, 1e-5),))
    if isinstance(design, kind)
]
BY_DAY = list({(name, type(design), type(claim)): (name, design, claim) for name, design, claim in OF_METHODS}.values())


def drawn(design: Design, mu: float) -> tuple[Any, Any]:
    """Scores in and out, of N(mu, 1) and N(0, 1), as a design takes them."""
    rng = np.random.default_rng(8)
    if isinstance(design, ManyRun | OneRun):
        return mu + rng.normal(size=300), rng.normal(size=300)
    coins = rng.random((6, 200)) < 0.5
    scores = mu * coins + rng.normal(size=coins.shape)
    rows = [(row[coin], row[~coin]) for row, coin in zip(scores, coins, strict=True)]
    return tuple(zip(*rows, strict=True))


def mirrored(design: Design) -> Design:
    """The same about scores of the other sign, sides swapped."""
    if isinstance(design, OneRun):
        event = {"in": "out"}.get(design.event or ("in" if design.threshold else "both"))
        return OneRun(guesses=design.guesses, threshold=design.threshold and -design.threshold, event=event)
    known = isinstance(design, ManyRun) and isinstance(design.threshold, float)
    return ManyRun(threshold=-1.0) if known else design


@pytest.mark.long
@for_each("name, design, claim", BY_DAY, nightly=[each for each in OF_METHODS if each not in BY_DAY])
def test_every_method_is_silent_at_the_null_valid_and_the_same_in_mirror(
    name: str, design: Design, claim: PureDP
) -> None:
    """At confidence 0.99 and these seeds: no bound at a null, none above the truth of N(2, 1), 9.997 at this delta."""
    delta = claim.delta if claim.linear else 1e-5
    asked: dict[str, Any] = {"claim": claim, "delta": delta, "confidence": 0.99, "methods": name}

    def bounds(inside: Any, outside: Any, design: Design = design) -> dict[tuple[str, str], float]:
        result = audit_scores(inside, outside, design=design, **asked)
        assert name in {each.method for each in result.estimates}
        return {(each.method, each.quantity): each.lower for each in result.estimates if each.lower is not None}

    null = bounds(*drawn(design, 0.0))
    assert null
    assert set(null.values()) == {0.0}
    inside, outside = drawn(design, 2.0)
    shown = bounds(inside, outside)
    for key, value in shown.items():
        steps = design.steps or 6 if isinstance(design, Steps) and "composed" in key[0] else 1
        truth = 2.0 if key[1] == "mu" else GaussianDP(2.0 * math.sqrt(steps)).epsilon_at(delta)
        assert 0.0 < value <= truth
    opposite = [[-np.asarray(each) for each in side] for side in (outside, inside)]
    near = 0.7 if name == "gaussian" else 0.2  # its epsilon grows fast with mu, and another part chooses the threshold
    assert bounds(*opposite, mirrored(design)) == pytest.approx(shown, rel=near)
    # a part that chooses a threshold chooses a direction; two limits at every rank are of both
    chosen = isinstance(design, ManyRun) and name not in ("gaussian-fit", "gaussian")
    chosen |= name in ("gaussian", "independent") and getattr(design, "threshold", None) is None
    swapped = bounds(outside, inside)  # members have the low scores
    assert all(value == 0.0 for value in swapped.values()) is not (chosen and design != ManyRun(threshold=1.0))


@for_each(
    "kind, options",
    [(ManyRun, {"delta": 1e-5}), (ManyRun, {"threshold": 1.0}), (OneRun, {}), (OneRun, {"threshold": 1.0})],
)
def test_all_methods_answer_and_say_what_they_are(kind: type[Design], options: dict[str, Any]) -> None:
    own = {name: value for name, value in options.items() if name in options_of(kind)}
    asked = {name: value for name, value in options.items() if name not in own}
    result = audit_scores(INSIDE, OUTSIDE, methods="all", design=kind(**own), interval="two-sided", **asked)
    known = {name for name, each in METHODS.items() if kind in each.designs}
    assert {each.method for each in result.estimates} == known
    for each in result.estimates:
        assert each.label in LABELS
        assert each.assumption
        assert all(v is None or not math.isnan(v) for v in (each.value, each.lower, each.upper))
        assert each.lower is None or each.upper is None or each.lower <= each.upper
    assert result.deciding is not None
    assert (result.deciding.label, result.refuted) == ("certified", None)
    assert 0.5 < (result.epsilon_lower or 0.0) < 5.0


def test_the_certified_methods_are_the_default_and_the_first_decides() -> None:
    many = audit_scores(INSIDE, OUTSIDE, epsilon=1.0)
    assert [each.method for each in many.estimates] == ["exact", CP]
    assert many.deciding is many.estimates[0]
    one = audit_scores(INSIDE, OUTSIDE, epsilon=1.0, design=OneRun())
    assert [each.method for each in one.estimates][:2] == ["one-run", "one-run-gaussian"]
    assert many.refuted is one.refuted is True
    assert "fair coin" in one.assumption
    assert "trained independently" in many.assumption
    nothing = audit_scores(INSIDE, OUTSIDE, epsilon=0.1, methods=["gaussian-fit", "gaussian"])
    assert (nothing.refuted, nothing.epsilon_lower) == (None, None)


def test_a_verdict_follows_from_the_bound() -> None:
    bound = audit_scores(INSIDE, OUTSIDE, methods=CP).epsilon_lower
    assert bound is not None
    for epsilon, refuted in ((bound - 0.01, True), (bound + 0.01, False)):
        for claim in (PureDP(epsilon), ApproximateDP(epsilon, 0.0)):
            assert audit_scores(INSIDE, OUTSIDE, methods=CP, claim=claim).refuted is refuted


@for_each("design", [ManyRun(), ManyRun(splits=3), ManyRun(threshold=1.0), ManyRun(threshold="all"), OneRun()])
def test_a_gaussian_claim_is_judged_by_its_own_region(design: Design) -> None:
    asked: dict[str, Any] = {"design": design, "methods": "one-run-f" if isinstance(design, OneRun) else CP}
    result = audit_scores(INSIDE, OUTSIDE, claim=GaussianDP(0.5), **asked)
    assert result.refuted is True
    assert audit_scores(INSIDE, OUTSIDE, claim=GaussianDP(2.5), **asked).refuted is False
    if design != ManyRun(threshold="all"):
        mu = result.estimates[0].detail["mu_lower"]
        assert 0.5 < mu < 2.5
        if design == ManyRun(threshold=1.0):  # the same rule again: the bound and the verdict agree
            for claimed, refuted in ((mu - 1e-3, True), (mu + 1e-3, False)):
                assert audit_scores(INSIDE, OUTSIDE, claim=GaussianDP(claimed), **asked).refuted is refuted


def test_the_same_seed_gives_the_same_answer_and_the_scores_keep_no_order() -> None:
    one = audit_scores(INSIDE, OUTSIDE, methods=[CP], seed=3)
    assert one.to_dict() == audit_scores(list(INSIDE), tuple(OUTSIDE), methods=CP, seed=3).to_dict()
    assert one.counts != audit_scores(INSIDE, OUTSIDE, methods=CP, seed=4).counts
    assert one.counts.members == 300


def test_counts_alone() -> None:
    result = audit_scores(counts=COUNTS, epsilon=1.0, methods="all", interval="two-sided")
    assert (result.refuted, result.roc) == (True, ())
    limits = result.estimate(CP)
    assert 1.5 < (limits.lower or 0.0) < 2.303 < (limits.upper or 0.0)
    with pytest.raises(KeyError):
        result.estimate("gaussian-fit")


def test_a_curved_claim_tells_epsilon_at_the_delta_that_was_asked_for() -> None:
    asked: dict[str, Any] = {"claim": GaussianDP(1.0), "methods": ("exact", CP)}
    plain, told = audit_scores(INSIDE, OUTSIDE, **asked), audit_scores(INSIDE, OUTSIDE, **asked, delta=1e-3)
    for frozen, found in zip(plain.estimates, told.estimates, strict=True):
        assert found.delta == 1e-3 != frozen.delta
        assert (found.p_value, found.detail) == (frozen.p_value, frozen.detail)  # the test stays at the tangent
    limits = audit_scores(counts=told.counts, epsilon=1.0, delta=1e-3, methods=CP).estimates[0].lower
    assert told.estimates[1].lower == limits
    assert limits == pytest.approx(told.estimates[0].lower, rel=0.1)


@pytest.mark.long
def test_no_line_of_any_estimator_is_false_at_a_null() -> None:
    """All 7 at a level of 5 %: a probability of 8e-10 for each of 88 lines. `benchmarks nulls` counts to 300."""
    found = nulls.counted("normal", 20, 7)
    assert len(found) > 80
    assert {name: times for name, times in found.items() if times > 6} == {}


def one_training(scores: np.ndarray, coins: np.ndarray, **asked: Any) -> tuple[Estimate, ...]:
    return audit_scores(scores[coins], scores[~coins], design=OneRun(), **asked).estimates


@for_each("claim", [GaussianDP(0.5), ApproximateDP(0.5, 1e-4), PrivacyProfile(((0.5, 1e-3), (1.0, 1e-4)))])
def test_three_lines_in_their_order_and_only_the_first_decides(claim: PureDP) -> None:
    rng = np.random.default_rng(1)
    coins = rng.random(600) < 0.5
    asked = {"claim": claim, "confidence": 0.9} | ({} if claim.linear else {"delta": 1e-4})
    found = one_training(rng.normal(size=600) + 2.5 * coins, coins, **asked)
    assert tuple(dict.fromkeys(each.line for each in found)) == LINES
    assert [each.p_value is not None for each in found] == [True] + [False] * (len(found) - 1)
    assert (found[0].p_value or 0.0) < 0.02
    told = {each.line: (each.lower or 0.0) for each in found if each.quantity == "mu"}
    assert 0.5 < told["certified"] < told["given independent canaries"] < 2.6
    assert all("independent" in each.assumption for each in found if each.line == LINES[1])


def test_one_coin_for_all_canaries_deceives_the_product_form_alone() -> None:
    """Within 1-GDP: with probability .393 randomised response of 1.5 to every canary, or else nothing; here it told."""
    rng = np.random.default_rng(0)
    coins = rng.random(1000) < 0.5
    scores = np.where(rng.random(1000) < 1.0 / (1.0 + math.exp(-1.5)), coins, ~coins) + 0.0
    found = one_training(scores, coins, claim=GaussianDP(1.0), delta=1e-5, confidence=0.95)
    told = {each.line: (each.lower or 0.0) for each in found if each.quantity == "mu"}
    assert told["certified"] < 1.0 < told["given independent canaries"]
    assert (found[0].p_value or 0.0) > 0.05


@for_each("event, cells", [(None, ("tp", "fp")), ("out", ("tn", "fn")), ("both", ("tp", "fp", "tn", "fn"))])
def test_guesses_of_a_rule_on_one_run_are_those_that_are_in_unless_another_event_is_named(
    event: str | None, cells: tuple[str, ...]
) -> None:
    by_rule = audit_scores(INSIDE, OUTSIDE, design=OneRun(threshold=1.0, event=event), methods="one-run")
    by_counts = audit_scores(counts=by_rule.counts, design=OneRun(event=event), methods="one-run")
    for each in (by_rule, by_counts):
        assert each.estimates[0].detail["guesses"] == sum(getattr(each.counts, cell) for cell in cells)


def test_ties_are_not_broken_alike_in_all_audits_of_one_seed() -> None:
    """Two-valued answers within the claim: of 200 at level .05 at most 28 refuted (false: 3e-7; once a fourth was)."""
    rng, refuted, used = np.random.default_rng(31), 0, one_run.design(50, 1.0, 0.0, 0.05)
    least = next(v for v in range(used.total + 2) if one_run.tail(used, v, 1.0 / (1.0 + math.exp(-1.0))) <= 0.05)
    asked: dict[str, Any] = {"claim": PureDP(1.0), "delta": 0.0, "confidence": 0.95, "design": OneRun(), "seed": 0}
    for _ in range(200):
        coins = rng.random(50) < 0.5
        said = (coins == (rng.random(50) < 1.0 / (1.0 + math.exp(-1.0)))).astype(float)
        refuted += used.won(ScoresQuestion(inside=said[coins], outside=said[~coins], **asked).order) >= least
    assert refuted <= 28


@for_each("design", [FewRuns(), Steps(steps=3, compose=40), Steps(steps=2, sample_rate=0.5)], nightly=[Steps()])
def test_lists_of_scores_are_evidence_of_trainings_or_steps(design: Design) -> None:
    inside, outside = drawn(FewRuns(), 1.0)
    found = audit_scores(inside, outside, claim=GaussianDP(0.3), delta=1e-5, design=design)
    asked: dict[str, Any] = (
        {} if isinstance(design, FewRuns) else {"steps": design.steps or 6, "rate": design.sample_rate}
    )
    evidence = few.begin(GaussianDP(0.3), 200, 0.05, delta=1e-5, **asked)
    for a, b in zip(inside, outside, strict=True):
        evidence = evidence.after(np.concatenate([a, b]), np.arange(200) < len(a))
    for own in evidence.estimates():
        assert (found.estimate(own.method).lower, found.estimate(own.method).p_value) == (own.lower, own.p_value)
    runs = [each.detail["steps"] for each in found.estimates if each.label == "composed from certified steps"]
    assert runs == ([] if isinstance(design, FewRuns) else [design.compose or design.steps or 6])
    assert (found.design, found.refuted, sum(found.sizes)) == (design.name, True, 1_200)
    assert "e-value" in str(found)
    assert ("claimed 0.3-GDP of one step" in found.headline) == isinstance(design, Steps)


LISTS = dict(zip(("in_scores", "out_scores"), drawn(FewRuns(), 0.0), strict=True))
COUNTED = {"in_scores": None, "out_scores": None, "counts": COUNTS}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "NaN": ({"in_scores": [1.0, math.nan]}, r"in_scores\[1\] must be finite, got nan \(1 such\); give"),
    "infinity": ({"out_scores": [math.inf, 1.0]}, r"out_scores\[0\] must be finite, got inf"),
    "empty": ({"in_scores": []}, "in_scores must hold at least one score, got none"),
    "a table": ({"in_scores": [[1.0]]}, r"in_scores must be one-dimensional, got shape \(1, 1\)"),
    "words": ({"in_scores": ["a"]}, "in_scores must be real numbers"),
    "confidence": ({"confidence": 1.0}, "confidence must lie strictly between 0 and 1, got 1.0"),
    "all the same": ({"in_scores": [2.0, 2.0], "out_scores": [2.0]}, "are all 2: there is nothing to tell apart"),
    "one side": ({"in_scores": None}, "give both in_scores and out_scores"),
    "scores and counts": ({"counts": COUNTS}, "give in_scores and out_scores, or counts=..., one of the two"),
    "too few to split": ({"in_scores": [2.0]}, "in_scores must hold at least 2 scores to be split, got 1"),
    "claim twice": ({"epsilon": 1.0, "claim": PureDP(1.0)}, "not both"),
    "claim": ({"claim": 3}, "claim must be a claim such as"),
    "delta": ({"delta": 1.5}, r"delta must be in \[0, 1\], got 1.5"),
    "delta 1": ({"delta": 1.0}, "delta must be below 1"),
    "another delta": ({"delta": 0.1, "claim": PureDP(1.0)}, "delta must be that of the claim, 0"),
    "method": ({"methods": ["magic"]}, "methods must be one of exact, .* got 'magic'"),
    "no method": ({"methods": []}, "methods must name at least one"),
    "method of another design": ({"methods": ["one-run"]}, "method 'one-run' is for design one-run, got 'many-run'"),
    "exact for all": ({"methods": ["exact"], "design": ManyRun(threshold="all")}, "method 'exact' cannot be used here"),
    "design": ({"design": "one-run"}, r"design must be one of ManyRun\(\), .* got 'one-run': say design=OneRun\(\)"),
    "no design": ({"design": 3}, r"design must be one of ManyRun\(\), OneRun\(\), FewRuns\(\), Steps\(\), got 3"),
    "interval": ({"interval": "both"}, "interval must be one of lower, upper, two-sided, got 'both'"),
    "upper with a claim": ({"interval": "upper", "epsilon": 1.0}, 'interval="upper" refutes no claim'),
    "too many guesses": ({"design": OneRun(guesses=(9, 9))}, "between 1 and the 4 scores together, got 18"),
    "seed": ({"seed": -1}, "seed must be at least 0"),
    "no lists": ({"design": FewRuns(), "epsilon": 1.0}, r"in_scores\[0\] must be one-dimensional"),
    "other lists": ({"design": Steps(), "in_scores": [[1.0]]}, "must hold a list of scores for each training or step"),
    "lists without a claim": (LISTS | {"design": FewRuns()}, "need a claim to bet against"),
    "lists from above": (LISTS | {"design": FewRuns(), "epsilon": 1.0, "interval": "two-sided"}, "e-values bound from"),
    "uneven steps": (
        LISTS | {"design": Steps(steps=4), "epsilon": 1.0},
        "steps must divide the number of lists.*6, got 4",
    ),
    "unlike lists": ({"design": FewRuns(), "in_scores": [[1.0], []], "out_scores": [[], []]}, r"rows of \[0, 1\]"),
    "counts of steps": (COUNTED | {"design": Steps()}, "counts are for ManyRun.* got design 'steps'; give the scores"),
    "counts and threshold": (COUNTED | {"design": ManyRun(threshold=1.0)}, "leave out threshold of the design"),
    "counts without scores": (
        COUNTED | {"methods": "gaussian-fit"},
        "method 'gaussian-fit' needs the scores, got counts",
    ),
}


@for_each("name", REFUSED)
def test_bad_input_is_refused_in_one_line(name: str) -> None:
    options, message = REFUSED[name]
    asked: dict[str, Any] = {"in_scores": [1.0, 2.0], "out_scores": [0.0, 0.5], "methods": CP, **options}
    if isinstance(asked.get("design"), OneRun | FewRuns | Steps):
        asked["methods"] = None
    with pytest.raises(InvalidSpec, match=message) as error:
        audit_scores(**asked)
    assert "\n" not in str(error.value)


@for_each(
    "kind, options, message",
    [
        (ManyRun, {"threshold": math.nan}, "threshold must be a number, got NaN"),
        (ManyRun, {"threshold": "x"}, "threshold must be a number, got 'x'"),
        (ManyRun, {"threshold": 1.0, "splits": 3}, "give threshold or splits, not both"),
        (ManyRun, {"split": 1.0}, "split must lie strictly between 0 and 1"),
        (ManyRun, {"splits": 1.5}, "splits must be a whole number"),
        (ManyRun, {"event": "x"}, "event must be one of in, out, both, got 'x'"),
        (OneRun, {"guesses": 3}, "guesses must be two whole numbers"),
        (OneRun, {"guesses": (1, -1)}, r"guesses\[1\] must be at least 0"),
        (OneRun, {"guesses": (1, 1), "threshold": 1.0}, "give guesses or threshold, not both"),
        (Steps, {"steps": 0}, "steps must be at least 1"),
        (Steps, {"sample_rate": 0.0}, "sample_rate must be finite and above 0"),
    ],
)
def test_a_design_checks_its_own_options(kind: type[Design], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        kind(**options)


def test_an_option_outside_of_its_design_is_refused_with_its_place() -> None:
    for kind in DESIGNS.values():
        for option in options_of(kind):
            with pytest.raises(InvalidSpec, match=rf"{option} is an option of a design: .*{kind.__name__}\({option}="):
                audit_scores(INSIDE, OUTSIDE, **{option: 1})
    with pytest.raises(TypeError, match="unexpected keyword argument 'magic'"):
        audit_scores(INSIDE, OUTSIDE, magic=1)
    with pytest.raises(InvalidSpec, match=r"splits is for ManyRun\(splits=...\), got design one-run"):
        design_of("one-run", splits=3)


@for_each("size", [2, 3, 5])
def test_the_smallest_samples_say_nothing_and_break_nothing(size: int) -> None:
    a, b = np.arange(float(size)), np.arange(float(size)) + 0.5
    for design in (ManyRun(), ManyRun(threshold="all"), ManyRun(threshold=1.0), OneRun(), OneRun(threshold=1.0)):
        assert (audit_scores(a, b, methods="all", design=design).epsilon_lower or 0.0) < 1.0
    for rows in (FewRuns(), Steps()):
        assert audit_scores([a, b], [b, a], epsilon=0.0, design=rows).epsilon_lower == 0.0


def test_counts_in_and_out(tmp_path: Path) -> None:
    assert read_scores(COUNTS.save(tmp_path / "counts.json")).counts == COUNTS
    assert COUNTS.reversed().reversed() == COUNTS
    for wrong, message in (
        ({"tp": 1, "fp": 0, "tn": 1}, "counts must have the keys tp, fp, tn, fn, got tp, fp, tn"),
        ({"tp": -1, "fp": 0, "tn": 1, "fn": 1}, "tp must be at least 0, got -1"),
        ({"tp": 0, "fp": 0, "tn": 1, "fn": 0}, "at least one of the members"),
    ):
        with pytest.raises(InvalidSpec, match=message):
            AttackCounts.from_dict(wrong)


def test_a_model_of_two_normal_laws_by_its_definition() -> None:
    """Student's test of two samples with one variance, by scipy."""
    from scipy.stats import binomtest, norm, ttest_ind

    fit = audit_scores(INSIDE, OUTSIDE, methods="gaussian-fit").estimates[0]
    unit = math.sqrt(1.0 / INSIDE.size + 1.0 / OUTSIDE.size)
    assert fit.detail["mu"] == pytest.approx(ttest_ind(INSIDE, OUTSIDE).statistic * unit)
    limits = audit_scores(counts=COUNTS, methods="gaussian").estimates[0]
    ends = [binomtest(hits, 1_000, alternative="less").proportion_ci(0.975).high for hits in (30, 700)]
    assert limits.lower == pytest.approx(-norm.ppf(ends[0]) - norm.ppf(ends[1]), rel=1e-6)
    assert limits.value == pytest.approx(counts.mu_of(0.03, 0.7))
