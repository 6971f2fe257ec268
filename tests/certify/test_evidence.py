"""Evidence adds up; a certificate is a function of it, of the claim and of the confidence."""

from __future__ import annotations

import dataclasses
import json
import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.base.strict import stored, value_of
from dpaudit.base.validate import error_probability
from dpaudit.certify import Binned, Certificate, CoinFlip, Evidence, FixedSides, certify
from dpaudit.claims import ApproximateDP
from dpaudit.errors import InvalidSpec
from tests.cases import for_each


@st.composite
def coin_flips(draw: st.DrawFn) -> CoinFlip:
    runs_p, runs_q = (draw(st.integers(0, 10**12)) for _ in range(2))
    return CoinFlip(draw(st.integers(0, runs_p)), draw(st.integers(0, runs_q)), runs_p, runs_q)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(
    parts=st.lists(coin_flips(), min_size=1, max_size=6),
    order=st.randoms(use_true_random=False),
    confidence=st.sampled_from([0.95, 0.999]),
)
def test_shards_merge_in_any_order_into_one_certificate(
    parts: list[CoinFlip], order: Random, confidence: float
) -> None:
    total = sum(parts[1:], start=parts[0])
    shuffled = order.sample(parts, len(parts))
    again = sum(shuffled[1:], start=shuffled[0])
    assert again == total
    assert total.runs == sum(part.runs for part in parts)
    assert total.hits_p == sum(part.hits_p for part in parts)
    claim = ApproximateDP(1.0, 1e-6)
    certificate = certify(total, claim, confidence)
    assert certificate == certify(again, claim, confidence) == Certificate(**dataclasses.asdict(certificate))
    assert (certificate.delta, certificate.confidence) == (1e-6, confidence)
    assert certificate.lower == certificate.epsilon_lower >= 0.0
    assert 0.0 < certificate.p_value <= 1.0


@for_each(
    ("kind", "counts", "words"),
    [
        (CoinFlip, (-1, 0, 5, 5), "hits_p must be in 0 .. runs_p = 5, got -1"),
        (CoinFlip, (6, 0, 5, 5), "hits_p must be in 0 .. runs_p = 5, got 6"),
        (CoinFlip, (0, 6, 5, 5), "hits_q must be in 0 .. runs_q = 5, got 6"),
        (CoinFlip, (0, 0, -1, 5), "hits_p must be in 0 .. runs_p = -1, got 0"),
        (Binned, ((), (), 5, 5), "counts_p and counts_q must hold the same bins, at least one, got 0 and 0"),
        (Binned, ((1,), (1, 2), 5, 5), "counts_p and counts_q must hold the same bins, at least one, got 1 and 2"),
        (
            Binned,
            ((3, 3), (1, 2), 5, 5),
            "counts_p must be at least 0 and add up to at most runs_p = 5, got 3 and a sum of 6",
        ),
        (
            Binned,
            ((3, 2), (-1, 2), 5, 5),
            "counts_q must be at least 0 and add up to at most runs_q = 5, got -1 and a sum of 1",
        ),
    ],
)
def test_impossible_counts_are_refused(kind: type[CoinFlip | Binned], counts: tuple[int, ...], words: str) -> None:
    with pytest.raises(InvalidSpec, match=rf"^{words.replace('.', '[.]')}$"):
        kind(*counts)  # type: ignore[arg-type]


def test_the_estimate_is_the_plain_log_ratio() -> None:
    assert CoinFlip(300, 100, 1000, 2000).estimate == pytest.approx(math.log(6.0))
    estimates = [CoinFlip(x, y, 10, 10).estimate for x, y in ((3, 0), (0, 3), (0, 0))]
    assert estimates == [math.inf, -math.inf, 0.0]


def test_a_verdict_is_the_p_value_against_alpha() -> None:
    """Which is free of the noise of a subtraction; a bound without end is stored as a word."""
    for p_value, confidence, refuted in (
        (0.05, 0.95, True),
        (0.0500001, 0.95, False),
        (0.001, 0.999, True),
        (math.nextafter(0.001, 1.0), 0.999, False),
    ):
        assert Certificate(1.0, 1.0, p_value, 0.0, confidence, "").refuted is refuted
    for confidence, alpha in ((0.95, 0.05), (0.999, 0.001), (0.9, 0.1)):
        assert error_probability(confidence) == alpha
    for confidence, alpha in ((0.999999, 1e-6), (1 - 0.01 / 7, 0.01 / 7)):
        assert error_probability(confidence) == pytest.approx(alpha, rel=1e-9)
    model = stored(Certificate(math.inf, None, 0.5, 0.0, 0.95, "m"))
    assert (model["lower"], model["epsilon_lower"]) == ("inf", None)


def test_designs_do_not_add_up() -> None:
    with pytest.raises(TypeError):
        CoinFlip(1, 0, 2, 2) + FixedSides(1, 0, 2, 2)  # type: ignore[operator]
    with pytest.raises(InvalidSpec, match=r"^only counts of the same bins add up, got 1 and 2 bins$"):
        Binned((1,), (0,), 2, 2) + Binned((1, 1), (0, 0), 2, 2)
    assert FixedSides(1, 0, 2, 3) + FixedSides(1, 1, 2, 3) == FixedSides(2, 1, 4, 6)
    assert FixedSides(1, 0, 2, 3) != CoinFlip(1, 0, 2, 3)
    assert Binned((1, 2), (0, 1), 5, 6).runs == 11


@for_each("evidence", [CoinFlip(3, 1, 10, 12), FixedSides(3, 1, 10, 12), Binned((3, 4), (1, 0), 10, 12)])
def test_stored_evidence_is_read_back(evidence: CoinFlip | FixedSides | Binned) -> None:
    written = json.loads(json.dumps(stored(evidence)))
    assert value_of(Evidence, written, {}) == evidence
    with pytest.raises(InvalidSpec, match=r"^(hits|counts)_q must be"):
        value_of(Evidence, {**written, "runs_q": 0}, {})
