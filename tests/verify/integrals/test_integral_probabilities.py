"""Probabilities of events against naive quadrature, sums over all outputs, and exact values."""

import math
import random
import time
from fractions import Fraction
from itertools import product

import flint
import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.verify.enclosure import hockey_stick, of_ball
from dpaudit.verify.integrals import (
    Between,
    Density,
    Line,
    Slice,
    exponentials,
    log_ratio,
    probability,
    quadrature,
)
from dpaudit.verify.integrals.parts import parts
from tests.cases import for_each
from tests.verify.integrals.oracle import above, below, by_quadrature, loss_of, noisy_max, sparse

LAWS = ("laplace", "exponential", "gumbel", "normal")


def random_line(rng: random.Random) -> Line:
    return Line(rng.choice((-1, 0, 1)), Fraction(rng.randint(-6, 6), rng.choice((1, 2, 3))))


def random_term(rng: random.Random, laws: tuple[str | None, ...]) -> Between | Density:
    law = rng.choice(laws)
    scale = Fraction(rng.randint(1, 6), rng.choice((1, 2)))
    if law is not None and rng.random() < 0.15:
        return Density(law, scale, random_line(rng))
    lower, upper = (tuple(random_line(rng) for _ in range(rng.choice((0, 1, 1, 2)))) for _ in range(2))
    if law is None:  # a bare comparison: one that holds often
        return Between(None, scale, (), (Line(rng.choice((-1, 1)), Fraction(rng.randint(1, 6))),))
    return Between(law, scale, lower, upper)


def random_slice(rng: random.Random, outer: tuple[str | None, ...], inner: tuple[str | None, ...]) -> Slice:
    """Alternatives of one factor are split by a certain draw first, so that they exclude one another."""
    factors = []
    for _ in range(rng.randint(1, 4)):
        if rng.random() < 0.3:
            line = random_line(rng)
            split = Between("laplace", Fraction(2), (line,), ()), Between("laplace", Fraction(2), (), (line,))
            factors.append(tuple((side, random_term(rng, inner)) for side in split))
        else:
            factors.append(((random_term(rng, inner),),))
    lower = Fraction(rng.randint(-6, 0)) if rng.random() < 0.3 else None
    upper = Fraction(rng.randint(1, 6)) if rng.random() < 0.3 else None
    return Slice(rng.choice(outer), Fraction(rng.randint(1, 4)), lower, upper, tuple(factors))


@for_each("seed", range(30))
def test_closed_form_equals_naive_quadrature(seed: int) -> None:
    each = random_slice(random.Random(seed), ("laplace", "exponential", None), ("laplace", "exponential", None))
    assert float(probability(((each,),))) == pytest.approx(by_quadrature(each), rel=1e-6, abs=1e-9)


@for_each("seed", range(12))
def test_verified_quadrature_equals_naive_quadrature(seed: int) -> None:
    each = random_slice(random.Random(100 + seed), ("gumbel", "normal", None), LAWS)
    assert float(probability(((each,),))) == pytest.approx(by_quadrature(each), rel=1e-6, abs=1e-9)


@for_each("seed", range(12))
def test_closed_form_and_verified_quadrature_overlap(seed: int) -> None:
    each = random_slice(random.Random(200 + seed), ("laplace", "exponential"), ("laplace", "exponential"))
    cut = parts(each)
    assert exponentials.applies(cut)
    with flint.ctx.workprec(200):
        closed, verified = exponentials.integral(cut), quadrature.integral(cut)
        assert closed.overlaps(verified)
        assert closed.is_zero() or verified.rel_accuracy_bits() > 45


@pytest.mark.parametrize("law", LAWS)
def test_all_outputs_of_sparse_vector_sum_to_one(law: str) -> None:
    queries = (1, Fraction(-1, 2), 0)
    with flint.ctx.workprec(200):
        total = sum(probability(sparse(queries, tops, 2, 3, law)) for tops in product((False, True), repeat=3))
        assert total.contains(1)
        assert total.rad() < 1e-12


@pytest.mark.parametrize("law", LAWS)
def test_all_winners_of_noisy_max_sum_to_one(law: str) -> None:
    queries = (0, 1, Fraction(1, 3), 1)
    with flint.ctx.workprec(200):
        total = sum(probability(noisy_max(queries, winner, 2, law)) for winner in range(4))
        assert total.contains(1)
        assert total.rad() < 1e-12


@pytest.mark.parametrize("law", LAWS)
def test_equal_answers_are_equally_likely_to_win(law: str) -> None:
    assert float(probability(noisy_max((2, 2, 2, 2), 1, Fraction(5, 3), law))) == pytest.approx(0.25, rel=1e-13)


def test_exponential_noise_splits_as_gumbel_noise_should() -> None:
    """The largest of answers with Gumbel noise of scale b is chosen with probability ~ e^(answer / b)."""
    queries, scale = (0, 1, -2), 2
    weights = [math.exp(query / scale) for query in queries]
    for winner, weight in enumerate(weights):
        found = float(probability(noisy_max(queries, winner, scale, "gumbel")))
        assert found == pytest.approx(weight / sum(weights), rel=1e-13)


def test_known_values() -> None:
    """W6 and W5 of the literature at one pair each: 5/56 and 1/12 exactly."""
    with flint.ctx.workprec(200):
        assert probability(sparse((0, 0), (0, 1), 4, Fraction(4, 3))).overlaps(flint.arb(5) / 56)
        assert probability(sparse((0, 0, 0), (0, 0, 1), 2, 2)).overlaps(flint.arb(1) / 12)
    assert float(probability(sparse((1, 1, -1), (0, 0, 1), 2, 2))) == pytest.approx(0.026301608, abs=5e-10)


def test_a_band_between_two_noisy_lines() -> None:
    """P(t < X < t + 1) for two Laplace draws of scale 1: (1/2 - e^-1 (1/2 + 1/4))."""
    band = Between("laplace", Fraction(1), (Line(1, Fraction(0)),), (Line(1, Fraction(1)),))
    found = probability(((Slice("laplace", Fraction(1), None, None, (((band,),),)),),))
    assert float(found) == pytest.approx(0.5 - 0.75 * math.exp(-1), rel=1e-14)


def test_densities_give_the_density_of_a_sum() -> None:
    """The density of the sum of two Laplace draws of scale 1 at 1: (1 + 1) e^-1 / 4."""
    for law, expected in (("laplace", math.exp(-1) / 2), ("normal", math.exp(-0.25) / math.sqrt(4 * math.pi))):
        each = Slice(law, Fraction(1), None, None, (((Density(law, Fraction(1), Line(-1, Fraction(1))),),),))
        assert float(probability(((each,),))) == pytest.approx(expected, rel=1e-13)


def test_unit_of_numbers_does_not_matter_to_a_density() -> None:
    slices = [
        Slice(
            "laplace",
            Fraction(2),
            None,
            None,
            (((Density("laplace", Fraction(4), Line(-1, Fraction(1, 2))),),), ((above(4, at),),)),
        )
        for at in (Fraction(1, 3), Fraction(333_333_333_333, 10**12))
    ]
    assert float(probability(((slices[0],),))) == pytest.approx(float(probability(((slices[1],),))), rel=1e-10)


def test_what_cannot_happen_has_probability_zero_exactly() -> None:
    nothing = Between("normal", Fraction(1), (Line(1, Fraction(0)),), (Line(1, Fraction(0)),))
    assert probability(((Slice("normal", Fraction(1), None, None, (((nothing,),),)),),)).is_zero()
    assert probability(((Slice("laplace", Fraction(1), Fraction(2), Fraction(1), ()),),)).is_zero()
    assert probability(((Slice("exponential", Fraction(1), None, Fraction(0), ()),),)).is_zero()
    assert probability(()).is_zero()


def test_no_noise_on_the_queries() -> None:
    """(BOT, TOP) of answers (0, 1) needs a threshold between them; of (1, 0) it cannot be."""
    bare = [
        ((Slice("laplace", Fraction(2), None, None, (((below(1, a, None),),), ((above(1, b, None),),))),),)
        for a, b in ((0, 1), (1, 0))
    ]
    assert float(probability(bare[0])) == pytest.approx((1 - math.exp(-0.5)) / 2, rel=1e-15)
    assert probability(bare[1]).is_zero()
    assert loss_of(*bare).lower == math.inf
    assert loss_of(*reversed(bare)).upper == -math.inf


def test_without_an_outer_draw_the_limits_must_hold_of_zero() -> None:
    inside, outside = (
        ((Slice(None, Fraction(1), Fraction(low), Fraction(3), (((above(1, 0),),),)),),) for low in (-1, 1)
    )
    assert float(probability(inside)) == 0.5
    assert probability(outside).is_zero()


def test_products_and_sums_of_slices() -> None:
    half = Slice("laplace", Fraction(1), Fraction(0), None, ())
    assert float(probability(((half, half, half),))) == 0.125
    assert float(probability(((half,), (half, half)))) == 0.75
    assert probability(((),)) == 1


def test_powers_of_equal_factors_equal_the_factors_one_by_one() -> None:
    """Answers that differ by 1e-30 are different factors, and must give the same number."""
    equal = probability(sparse((0,) * 6, (0,) * 5 + (1,), 2, 4))
    apart = probability(sparse([Fraction(i, 10**30) for i in range(6)], (0,) * 5 + (1,), 2, 4))
    assert float(equal) == pytest.approx(float(apart), rel=1e-14)


@pytest.mark.parametrize("law", ["laplace", "gumbel", "normal"])
def test_tiny_probabilities_are_as_precise_as_large_ones(law: str) -> None:
    found = probability(noisy_max((0, 40, 40), 0, 1, law))
    assert 0 < found < 1e-16
    assert found.rel_accuracy_bits() >= 45


def test_a_far_normal_tail() -> None:
    """The difference of two standard normal draws beyond 60: erfc(30) / 2."""
    with flint.ctx.workprec(120):
        assert probability(sparse((-60,), (1,), 1, 1, "normal")).overlaps(flint.arb(30).erfc() / 2)


@pytest.mark.parametrize("law", ["laplace", "exponential", "gumbel", "normal"])
def test_what_is_cut_off_widens_the_ball(monkeypatch: pytest.MonkeyPatch, law: str) -> None:
    """Followed not far at all, the ball still holds the number, and is as wide as the tail that was cut off."""
    event = sparse((3,), (1,), 1, 1, law)
    exact = quadrature.integral(parts(event[0][0]))
    for reach in (1, 3, 5):
        monkeypatch.setattr(quadrature, "REACH", reach)
        monkeypatch.setattr(quadrature, "MOST", reach)
        cut_off = quadrature.integral(parts(event[0][0]))
        assert cut_off.contains(exact)
        assert cut_off.rad() > 1e-4


def test_the_tail_that_is_cut_off_counts_high_densities_and_every_alternative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all of the integral lies around 0.8, beyond the reach of 0.75, and it is more than the tail there."""
    sharp = Density("laplace", Fraction(1, 100), Line(-1, Fraction(4, 5)))
    low, high = (Between("laplace", Fraction(2), *limits) for limits in (((), (Line(0, Fraction(0)),)), ((), ())))
    for factor in (((sharp,),), ((low, sharp), (low, high))):
        each = Slice("laplace", Fraction(1, 4), None, None, (factor,))
        exact = exponentials.integral(parts(each))
        with monkeypatch.context() as patched:
            patched.setattr(quadrature, "REACH", 4)  # 3 scales
            patched.setattr(quadrature, "MOST", 4)
            cut_off = quadrature.integral(parts(each))
        assert cut_off.contains(exact)
        assert cut_off.upper() < 10


def test_factors_that_come_to_the_same_both_count() -> None:
    """One of them has a line that never matters."""
    one = above(4, 0)
    same = Between("laplace", Fraction(4), (Line(1, Fraction(0)), Line(1, Fraction(-1))), ())
    events = [((Slice("laplace", Fraction(2), None, None, (((one,),), ((other,),))),),) for other in (one, same)]
    assert float(probability(events[0])) == pytest.approx(float(probability(events[1])), rel=1e-15)
    assert float(probability(events[0])) < float(probability(sparse((0,), (1,), 2, 4))) - 0.1


def test_limits_of_an_exponential_outer_draw() -> None:
    for lower in (-1, 0, 1):
        each = Slice("exponential", Fraction(2), Fraction(lower), Fraction(3), ())
        expected = math.exp(-max(lower, 0) / 2) - math.exp(-1.5)
        assert float(probability(((each,),))) == pytest.approx(expected, rel=1e-14)


def test_thirty_two_distinct_answers_are_quick() -> None:
    event = sparse([Fraction(7 * i % 32, 3) for i in range(32)], [0] * 31 + [1], 2, 4)
    times = []
    for _ in range(3):
        start = time.process_time()
        found = probability(event)
        times.append(time.process_time() - start)
    assert min(times) < 0.25
    assert found.rel_accuracy_bits() >= 45


def test_narrow_bands_lose_no_precision() -> None:
    bands = tuple(
        ((Between("laplace", Fraction(4), (Line(1, Fraction(i)),), (Line(1, i + Fraction(1, 10**9)),)),),)
        for i in range(8)
    )
    assert probability(((Slice("laplace", Fraction(2), None, None, bands),),)).rel_accuracy_bits() >= 45


def test_many_different_scales() -> None:
    """No common unit to speak of: terms are kept one by one, or verified quadrature takes over."""
    for count in (5, 14):
        each = Slice(
            "laplace", Fraction(2), None, None, tuple(((above(Fraction(97 + i, 10), i % 3),),) for i in range(count))
        )
        found = probability(((each,),))
        assert found.rel_accuracy_bits() >= 45
        if count == 5:
            assert float(found) == pytest.approx(by_quadrature(each), rel=1e-9)


def test_too_many_terms_go_to_verified_quadrature(monkeypatch: pytest.MonkeyPatch) -> None:
    event = sparse([Fraction(i, 3) for i in range(5)], (0, 0, 0, 0, 1), 2, 4)
    closed = probability(event)
    monkeypatch.setattr(exponentials, "DENSE", 2)
    one_by_one = probability(event)
    monkeypatch.setattr(exponentials, "SPARSE", 2)
    verified = probability(event)
    assert closed.rel_accuracy_bits() > one_by_one.rel_accuracy_bits() - 40 > 100
    assert verified.rel_accuracy_bits() < 120
    assert closed.overlaps(one_by_one)
    assert closed.overlaps(verified)


def test_the_loss_of_an_event_on_both_sides() -> None:
    first, second = sparse((1,) * 7 + (-1,), (0,) * 7 + (1,), 2, 4), sparse((2,) * 7 + (-2,), (0,) * 7 + (1,), 2, 4)
    loss, back = loss_of(first, second), loss_of(second, first)
    assert loss.lower <= loss.upper < loss.lower + 1e-14
    assert round(loss.middle, 4) == 0.99
    assert (back.lower, back.upper) == (-loss.upper, -loss.lower)


@pytest.mark.parametrize(
    ("scale", "monotone", "losses"),
    [
        (1, True, {2: 0.9765, 3: 1.0}),
        (1, False, {2: 1.9535, 3: 2.0}),
        (2, False, {2: 0.9555, 3: 1.0}),
        (2, True, {2: 0.4775, 3: 0.5}),
    ],
)
def test_losses_of_noisy_max(scale: int, monotone: bool, losses: dict[int, float]) -> None:
    for n, loss in losses.items():
        found = 0.0
        for gap in range(-40, 41, 4 if n > 2 else 1):
            before = [0] + [gap] * (n - 1)
            moved = [[1] + [gap] * (n - 1), [0] + [gap + 1] * (n - 1)] if monotone else [[1] + [gap - 1] * (n - 1)]
            found = max(
                found,
                *(
                    abs(loss_of(noisy_max(before, w, scale), noisy_max(after, w, scale)).middle)
                    for after in moved
                    for w in (0, 1)
                ),
            )
        assert round(found, 4) == pytest.approx(loss, abs=1e-9)


def test_a_loss_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="impossible on both datasets"):
        loss_of((), ())


def test_balls_that_reach_zero_say_nothing() -> None:
    loss = log_ratio(flint.arb(0, 1), flint.arb(1))
    assert (loss.lower, loss.upper) == (-math.inf, math.inf)


def test_delta_of_all_outputs_of_sparse_vector() -> None:
    """8 queries, cut-off 1: seven answers 0 and one 1 against seven 1 and one 0, at epsilon 1/2."""

    def law(queries: tuple[int, ...]) -> list[flint.arb]:
        stopped = [sparse(queries[: i + 1], (0,) * i + (1,), 2, 4) for i in range(8)]
        return [probability(event) for event in (*stopped, sparse(queries, (0,) * 8, 2, 4))]

    first, second = law((0,) * 7 + (1,)), law((1,) * 7 + (0,))
    found = hockey_stick(zip(first, second, strict=True), Fraction(1, 2))
    assert round(found.middle, 12) == 0.005225556522
    assert found.upper - found.lower < 1e-15
    assert of_ball(sum(first)).upper - 1 < 1e-14
    assert hockey_stick(zip(second, first, strict=True), Fraction(1, 2)).upper == 0.0


def test_delta_is_enclosed_where_balls_straddle_zero() -> None:
    found = hockey_stick([(flint.arb(0.5, 0.25), Fraction(1, 2))], 0)
    assert found.lower == 0.0
    assert 0.25 <= found.upper < 0.2500001


def test_delta_is_at_a_finite_epsilon() -> None:
    with pytest.raises(InvalidSpec, match="must be finite"):
        hockey_stick([(1, 1)], math.inf)


def test_wrong_data_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="slope of a line must be -1, 0 or 1, got 2"):
        Line(2, Fraction(0))
    with pytest.raises(InvalidSpec, match="scale of a laplace draw must be positive, got 0"):
        Between("laplace", Fraction(0), (), ())
    with pytest.raises(InvalidSpec, match="law must be"):
        Slice("cauchy", Fraction(1), None, None, ())


def test_precision_of_flint_is_left_alone() -> None:
    before = flint.ctx.prec
    probability(noisy_max((0, 1), 0, 1, "normal"))
    probability(noisy_max((0, 1), 0, 1))
    assert flint.ctx.prec == before
