"""Probabilities of events against naive quadrature, sums over all outputs, and exact values; releases; enclosures.

The oracle computes the same events by floating-point quadrature, straight from the definitions.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise, product

import flint
import pytest
from scipy import integrate, stats

from dpaudit.claims import GaussianDP
from dpaudit.errors import InvalidSpec
from dpaudit.verify.enclosure import MOST, Enclosure, ball, hockey_stick, of_ball, of_log
from dpaudit.verify.integrals import (
    Between,
    Event,
    Line,
    Slice,
    exponentials,
    gaussian_delta,
    laplace_delta,
    log_ratio,
    probability,
    quadrature,
    together,
)
from dpaudit.verify.integrals.parts import cut, factors_of, parts, unit_of, waves
from tests.cases import for_each

REACH = {"laplace": 45.0, "exponential": 45.0, "gumbel": 45.0, "normal": 11.0}


def pdf(law: str, x: float) -> float:
    """The density of a draw of scale 1."""
    if law == "normal":
        return math.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi)
    if law == "gumbel":
        return math.exp(-x - math.exp(-x)) if x > -700.0 else 0.0
    if law == "exponential":
        return math.exp(-x) if x >= 0.0 else 0.0
    return math.exp(-abs(x)) / 2.0


def cdf(law: str, x: float) -> float:
    """P(X <= x) of a draw of scale 1."""
    if law == "normal":
        return math.erfc(-x / math.sqrt(2.0)) / 2.0
    if law == "gumbel":
        return math.exp(-math.exp(-x)) if x > -700.0 else 0.0
    if law == "exponential":
        return -math.expm1(-x) if x > 0.0 else 0.0
    return math.exp(x) / 2.0 if x < 0.0 else 1.0 - math.exp(-x) / 2.0


def by_quadrature(each: Slice) -> float:
    """The probability of a slice, to about 1e-9."""
    low = -math.inf if each.lower is None else float(each.lower)
    high = math.inf if each.upper is None else float(each.upper)
    if each.law is None:
        return _given(each, 0.0) if low < 0.0 < high else 0.0
    law, scale = each.law, float(each.scale)
    reach = REACH[law] * scale
    low, high = max(low, -reach, 0.0 if each.law == "exponential" else -reach), min(high, reach)
    cuts = sorted({low, high, *(cut for cut in _cuts(each) if low < cut < high)}) if low < high else []
    return sum(
        integrate.quad(
            lambda t: pdf(law, t / scale) / scale * _given(each, t), a, b, limit=200, epsabs=1e-13, epsrel=1e-11
        )[0]
        for a, b in pairwise(cuts)
    )


def one(*terms: Between, law: str | None = "laplace", scale: object = 1, low=None, high=None) -> Event:
    """The event of one draw within its limits, for which all these terms hold."""
    limits = (None if end is None else Fraction(end) for end in (low, high))
    return ((Slice(law, Fraction(scale), *limits, terms),),)


def above(scale: Fraction | int, query: Fraction | int, law: str | None = "laplace") -> Between:
    """A noisy answer above the noise t of a threshold 0."""
    return Between(law, Fraction(scale), (Line(1, -Fraction(query)),), ())


def below(scale: Fraction | int, query: Fraction | int, law: str | None = "laplace") -> Between:
    return Between(law, Fraction(scale), (), (Line(1, -Fraction(query)),))


def sparse(queries, tops, threshold, scale, law: str = "laplace") -> Event:
    """Sparse vector without redraw: which of the answers are above, all of them read."""
    noisy = [(above if top else below)(scale, query, law) for query, top in zip(queries, tops, strict=True)]
    return one(*noisy, law=law, scale=threshold)


def noisy_max(queries, winner, scale, law: str = "laplace") -> Event:
    """The noisy answer of the winner is the largest; its noise is the outer draw."""
    others = [query for place, query in enumerate(queries) if place != winner]
    lower = [below(scale, query - queries[winner], law) for query in others]
    return one(*lower, law=law, scale=scale)


def loss_of(first: Event, second: Event) -> Enclosure:
    """ln(P(first) / P(second)), enclosed."""
    return log_ratio(probability(first), probability(second))


def _given(each: Slice, t: float) -> float:
    return math.prod(_term(term, t) for term in each.factors)


def _term(term: Between, t: float) -> float:
    low = max((_at(line, t) for line in term.lower), default=-math.inf)
    high = min((_at(line, t) for line in term.upper), default=math.inf)
    if term.law is None:
        return float(low < 0.0 < high)
    scale = float(term.scale)
    return max(0.0, cdf(term.law, high / scale) - cdf(term.law, low / scale))


def _at(line: Line, t):
    return line.slope * t + float(line.at)


def _cuts(each: Slice) -> set[float]:
    cuts = {0.0}
    for term in each.factors:
        lines = term.lower + term.upper
        cuts |= {-float(line.at) / line.slope for line in lines if line.slope}
        cuts |= {float(b.at - a.at) / (a.slope - b.slope) for a, b in combinations(lines, 2) if a.slope != b.slope}
    return cuts


LAWS = ("laplace", "exponential", "gumbel", "normal")


def random_line(rng: random.Random) -> Line:
    return Line(rng.choice((-1, 0, 1)), Fraction(rng.randint(-6, 6), rng.choice((1, 2, 3))))


def random_term(rng: random.Random, laws: tuple[str | None, ...]) -> Between:
    law = rng.choice(laws)
    scale = Fraction(rng.randint(1, 6), rng.choice((1, 2)))
    lower, upper = (tuple(random_line(rng) for _ in range(rng.choice((0, 1, 1, 2)))) for _ in range(2))
    if law is None:  # a bare comparison: one that holds often
        return Between(None, scale, (), (Line(rng.choice((-1, 1)), Fraction(rng.randint(1, 6))),))
    return Between(law, scale, lower, upper)


def random_slice(rng: random.Random, outer: tuple[str | None, ...], inner: tuple[str | None, ...]) -> Slice:
    factors = [random_term(rng, inner) for _ in range(rng.randint(1, 4))]
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
    within = cut(each)
    with flint.ctx.workprec(200):
        (closed,), verified = exponentials.integrals(within), quadrature.integral(each, within)
        assert closed.overlaps(verified)
        assert closed.is_zero() or verified.rel_accuracy_bits() > 45


def term_by_term(each: Slice) -> flint.arb:
    """The integral of a slice from the definition of its factors: every term times every other, on every part."""
    within, total = cut(each), flint.arb(0)
    for part in within.parts:
        sums: dict[Fraction, flint.arb] = {Fraction(0): flint.arb(1)}
        for number, power in within.products[0].items():
            for _ in range(power):
                following: dict[Fraction, flint.arb] = {}
                for wave in waves(part.forms[number].gap, part.forms[number].inside, within.unit):
                    height = ball(wave.weight) * ball(Fraction(wave.at, wave.scale)).exp()
                    for rate, weight in sums.items():
                        rate += Fraction(wave.rate, wave.scale)
                        following[rate] = following.get(rate, flint.arb(0)) + weight * height
                sums = following
        for rate, weight in sums.items():
            low, high = (
                flint.arb(0) if end is None else ball(rate * end).exp() if rate else ball(Fraction(end))
                for end in (part.left, part.right)
            )
            total += weight * (high - low) / (ball(rate) if rate else 1)
    return total / within.unit


@for_each("seed", range(12), nightly=range(12, 300))
def test_slices_together_are_what_they_are_one_by_one(seed: int) -> None:
    """Factors come more than once, in most slices or in few, under outer draws of different laws and scales."""
    rng = random.Random(seed)
    closed = ("laplace", "exponential", None)
    pool = [factor for _ in range(2) for factor in random_slice(rng, ("laplace",), closed).factors]
    slices = {}
    for place in range(8):
        factors = tuple(rng.choices(pool, k=rng.randint(1, 5)))
        lower = Fraction(rng.randint(-6, 0)) if rng.random() < 0.2 else None
        law, scale = rng.choice(("laplace", "laplace", "exponential")), Fraction(rng.choice((2, 2, 3)))
        shift = Fraction(rng.randint(-3, 3), 2) if rng.random() < 0.3 else Fraction(0)
        slices[place] = Slice(law, scale, lower, None, factors, shift)
    unit = unit_of(slices.values())
    products = [factors_of(each, unit, int(each.shift * unit)) for each in slices.values()]
    grouped = together(slices)
    with flint.ctx.workprec(600):
        for (place, each), ball in zip(slices.items(), exponentials.integrals(parts(products, unit)), strict=True):
            exact = term_by_term(each)
            for value in (ball, probability(((each,),)), *([grouped[place]] if place in grouped else [])):
                assert value.is_zero() if exact.is_zero() else value.overlaps(exact)
                assert value.rel_accuracy_bits() >= 150


def test_many_are_computed_together_and_quicker() -> None:
    """All outputs of AboveThreshold, and all of noisy max in numbers of the first answer, each add up to 1."""
    answers = [Fraction(7 * place % 24, 3) for place in range(24)]
    halted = [sparse(answers[: top + 1], [0] * top + [1], 2, 4)[0][0] for top in range(24)]
    winners = [noisy_max(answers, winner, 2)[0][0] for winner in range(24)]
    shifted = [replace(each, shift=answers[winner] - answers[0]) for winner, each in enumerate(winners)]
    for outputs in ([*halted, sparse(answers, [0] * 24, 2, 4)[0][0]], shifted):
        times = [time.process_time()]
        found = together(dict(enumerate(outputs)))
        times.append(time.process_time())
        alone = [probability(((each,),)) for each in outputs]
        times.append(time.process_time())
        assert len(found) > 20
        assert 2 * (times[1] - times[0]) < times[2] - times[1]  # it is a fifth
        with flint.ctx.workprec(256):
            total = sum((found.get(place, ball) for place, ball in enumerate(alone)), start=flint.arb(0))
            assert all(ball.overlaps(alone[place]) for place, ball in found.items())
            assert total.contains(1)
            assert total.rad() < 1e-45


@for_each("law", LAWS)
def test_all_outputs_sum_to_one(law: str) -> None:
    every = [sparse((1, Fraction(-1, 2)), tops, 2, 3, law) for tops in product((False, True), repeat=2)]
    with flint.ctx.workprec(200):
        for events in (every, [noisy_max((0, 1, Fraction(1, 3)), winner, 2, law) for winner in range(3)]):
            total = sum(map(probability, events))
            assert total.contains(1)
            assert total.rad() < 1e-12
    assert float(probability(noisy_max((2, 2, 2, 2), 1, Fraction(5, 3), law))) == pytest.approx(0.25, rel=1e-13)


def test_unit_of_numbers_does_not_matter() -> None:
    exact, near = (
        probability(one(above(4, at), scale=2)) for at in (Fraction(1, 3), Fraction(333_333_333_333, 10**12))
    )
    assert float(exact) == pytest.approx(float(near), rel=1e-10)


def test_what_cannot_happen_has_probability_zero_exactly() -> None:
    nothing = Between("normal", Fraction(1), (Line(1, Fraction(0)),), (Line(1, Fraction(0)),))
    for event in (one(nothing, law="normal"), one(low=2, high=1), one(law="exponential", high=0), ()):
        assert probability(event).is_zero()


def test_no_noise_on_the_queries() -> None:
    """(BOT, TOP) of answers (0, 1) needs a threshold between them; of (1, 0) it cannot be."""
    bare = [one(below(1, a, None), above(1, b, None), scale=2) for a, b in ((0, 1), (1, 0))]
    assert float(probability(bare[0])) == pytest.approx((1 - math.exp(-0.5)) / 2, rel=1e-15)
    assert probability(bare[1]).is_zero()
    assert loss_of(*bare).lower == math.inf
    assert loss_of(*reversed(bare)).upper == -math.inf


def test_without_an_outer_draw_the_limits_must_hold_of_zero() -> None:
    inside, outside = (one(above(1, 0), law=None, low=low, high=3) for low in (-1, 1))
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


@for_each("law", ["laplace", "gumbel", "normal"])
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
    outer = event[0][0]
    exact = quadrature.integral(outer, cut(outer))
    for reach in (1, 3, 5):
        monkeypatch.setattr(quadrature, "REACH", reach)
        monkeypatch.setattr(quadrature, "MOST", reach)
        cut_off = quadrature.integral(outer, cut(outer))
        assert cut_off.contains(exact)
        assert cut_off.rad() > 1e-4


def test_factors_that_come_to_the_same_both_count() -> None:
    """One of them has a line that never matters."""
    plain = above(4, 0)
    same = Between("laplace", Fraction(4), (Line(1, Fraction(0)), Line(1, Fraction(-1))), ())
    alike, equal = (float(probability(one(plain, other, scale=2))) for other in (same, plain))
    assert alike == pytest.approx(equal, rel=1e-15)
    assert alike < float(probability(sparse((0,), (1,), 2, 4))) - 0.1


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
    lines = [(Line(1, Fraction(i)), Line(1, i + Fraction(1, 10**9))) for i in range(8)]
    bands = [Between("laplace", Fraction(4), (low,), (high,)) for low, high in lines]
    assert probability(one(*bands, scale=2)).rel_accuracy_bits() >= 45


def test_many_different_scales() -> None:
    """No common unit to speak of: terms are kept one by one, or verified quadrature takes over."""
    for count in (5, 14):
        event = one(*(above(Fraction(97 + i, 10), i % 3) for i in range(count)), scale=2)
        found = probability(event)
        assert found.rel_accuracy_bits() >= 45
        if count == 5:
            assert float(found) == pytest.approx(by_quadrature(event[0][0]), rel=1e-9)


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


def test_balls_that_reach_zero_say_nothing() -> None:
    loss = log_ratio(flint.arb(0, 1), flint.arb(1))
    assert (loss.lower, loss.upper) == (-math.inf, math.inf)


def test_delta_is_enclosed_where_balls_straddle_zero() -> None:
    found = hockey_stick([(flint.arb(0.5, 0.25), Fraction(1, 2))], 0)
    assert found.lower == 0.0
    assert 0.25 <= found.upper < 0.2500001


@for_each(
    ("call", "message"),
    [
        (lambda: hockey_stick([(1, 1)], math.inf), "must be finite"),
        (lambda: Line(2, Fraction(0)), "slope of a line must be -1, 0 or 1, got 2"),
        (lambda: Between("laplace", Fraction(0), (), ()), "scale of a laplace draw must be positive, got 0"),
        (lambda: Slice("cauchy", Fraction(1), None, None, ()), "law must be"),
        (lambda: gaussian_delta(-1, 0), "mu must be at least 0, got -1"),
        (lambda: gaussian_delta(math.nan, 0), "a number must be finite, got nan"),
    ],
)
def test_wrong_numbers_are_refused(call, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        call()


def test_precision_of_flint_is_left_alone() -> None:
    before = flint.ctx.prec
    probability(noisy_max((0, 1), 0, 1, "normal"))
    probability(noisy_max((0, 1), 0, 1))
    assert flint.ctx.prec == before


# --- single releases: closed forms against sums, quadrature, the claims of the project, and values that are known ---

EPSILONS = (-3.0, -0.5, 0.0, 0.25, 0.999, 1.0, 1.7, 4.0)


@for_each("epsilon", EPSILONS)
@for_each(("shift", "scale"), [(1, 1), (-2, 3), (1, Fraction(1, 4))])
def test_laplace_delta_is_the_integral_of_the_positive_part(shift: int, scale: Fraction, epsilon: float) -> None:
    first, second = stats.laplace(0, float(scale)), stats.laplace(shift, float(scale))
    loss = abs(shift) / float(scale)
    kink = math.copysign((loss - epsilon) * float(scale) / 2.0, shift) if -loss < epsilon < loss else 0.0
    edges = sorted({-40.0 * float(scale), 0.0, float(shift), kink, shift + 40.0 * float(scale), 40.0 * float(scale)})
    expected = sum(
        integrate.quad(lambda x: max(0.0, first.pdf(x) - math.exp(epsilon) * second.pdf(x)), a, b, limit=200)[0]
        for a, b in pairwise(edges)
    )
    found = laplace_delta(shift / Fraction(scale), epsilon)
    assert found.middle == pytest.approx(expected, abs=1e-8)
    assert found.upper - found.lower <= 1e-15


@for_each("mu", [0.01, 0.3, 1.0, 5.0])
@for_each("epsilon", [-2.0, 0.0, 0.1, 1.0, 6.0])
def test_gaussian_delta_is_what_the_claim_says(mu: float, epsilon: float) -> None:
    found = gaussian_delta(mu, epsilon)
    assert found.lower <= GaussianDP(mu).delta_at(epsilon)
    assert found.middle == pytest.approx(GaussianDP(mu).delta_at(epsilon), rel=1e-9, abs=1e-290)
    assert found.upper - found.lower <= max(5e-324, 1e-15 * found.upper)


def test_known_gaussian_values() -> None:
    with flint.ctx.workprec(200):
        sigma = (2 * (flint.arb(125) * 1000).log()).sqrt()
        found = gaussian_delta(1 / sigma, 1)
    assert round(float(sigma), 3) == 4.845
    assert f"{found.middle:.1e}" == "4.1e-08"


def test_ends_of_the_gaussian_range() -> None:
    assert gaussian_delta(0, 1).upper == 0.0
    assert gaussian_delta(0, -1).middle == pytest.approx(1 - math.exp(-1), rel=1e-15)
    assert gaussian_delta(1e-200, 1e-3).upper <= 5e-324
    assert gaussian_delta(1e6, 1).middle == 1.0


# --- balls become two doubles around them: never one double too many inwards, at any size ---------------------------


def test_a_double_is_its_own_enclosure() -> None:
    for value in (0.0, 1.0, -0.1, 5e-324, MOST, 2.0**1023, -(2.0**-1074)):
        assert of_ball(ball(value)) == Enclosure(value, value)


def test_numbers_between_doubles_lie_between_neighbouring_doubles() -> None:
    rng = random.Random(5)
    for _ in range(500):
        value = Fraction(rng.getrandbits(300) + 1, rng.getrandbits(300) + 1) * Fraction(2) ** rng.randint(-900, 900)
        value *= rng.choice((1, -1))
        with flint.ctx.workprec(700):
            found = of_ball(ball(value))
        assert Fraction(found.lower) <= value <= Fraction(found.upper)
        assert found.upper <= math.nextafter(math.nextafter(found.lower, math.inf), math.inf)


def test_what_no_double_can_hold_goes_outwards() -> None:
    for sign in (1, -1):
        huge, tiny = of_ball(sign * flint.arb(10**9).exp()), of_ball(sign * flint.arb(-(10**9)).exp())
        ends = [sorted(map(abs, (found.lower, found.upper))) for found in (huge, tiny)]
        assert ends == [[MOST, math.inf], [0.0, 5e-324]]
        assert huge.lower * sign > 0 or huge.upper * sign > 0
    assert of_ball(flint.arb(2) ** 1024) == Enclosure(MOST, math.inf)
    with flint.ctx.workprec(1100):
        assert of_ball(ball(Fraction(MOST) + 1)) == Enclosure(MOST, math.inf)
    for endless in ("inf", "nan"):
        assert of_ball(flint.arb(endless)) == Enclosure(-math.inf, math.inf)


def test_logarithms_of_rationals_against_the_mathematics_library() -> None:
    for ratio in (Fraction(2), Fraction(1, 3), Fraction(10**30, 7), Fraction(10**20 + 1, 10**20)):
        found = of_log(ratio)
        near = math.log(ratio.numerator) - math.log(ratio.denominator)
        assert found.lower - 1e-12 <= near <= found.upper + 1e-12
        assert found.upper - found.lower <= 1e-15 * max(1.0, abs(near))
    assert of_log(Fraction(10**20 + 1, 10**20)).lower > 0.0
