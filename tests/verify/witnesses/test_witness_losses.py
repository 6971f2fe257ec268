"""Losses and deltas of pairs: the tables of the sparse vector family, noisy max, programs that only add noise."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from scipy import stats

from benchmarks.programs import FAMILY, PROGRAMS
from dpaudit.catalogue import find
from dpaudit.errors import InvalidSpec
from dpaudit.results.bounds import Arithmetic, Label
from dpaudit.verify.language import read
from dpaudit.verify.witnesses import OutsideIntegrals, pair_delta, pair_loss
from dpaudit.verify.witnesses.losses import ALIKE
from dpaudit.verify.witnesses.outputs import Values, at_least, at_most, in_words
from tests.cases import for_each

ONE = {"eps": 1, "T": 0, "c": 1}


def blocks(bottoms: int, tops: int, times: int = 1) -> tuple[list[int], list[int], list[Any]]:
    """Answers that rise and give bottoms, then answers that fall and give tops, and what they give; so many times."""
    outputs: list[Any] = [None] * bottoms + [True] * tops
    return ([1] * bottoms + [-1] * tops) * times, ([2] * bottoms + [-2] * tops) * times, outputs * times


def risen(answers: int, last: object = None) -> tuple[list[int], list[int], list[Any]]:
    """Answers that all rise by 1, and give bottoms up to the last."""
    return [0] * answers, [1] * answers, [None] * (answers - 1) + [last]


def gap(answers: int, x: int, y: int, end: int) -> tuple[list[int], list[int], list[Any]]:
    """Answers that rise below the threshold, and one that falls from above it by nearly a density of its gap."""
    short = Values(Fraction(end), end + Fraction(1, 10**6))
    return [x] * (answers - 1) + [y], [x + 1] * (answers - 1) + [y - 1], [None] * (answers - 1) + [short]


@for_each(
    ("name", "changes", "pair", "loss"),
    [
        ("lyu_1", {}, blocks(1, 1), 0.4567),
        ("lyu_1", {}, blocks(3, 1), 0.8072),
        ("lyu_1", {}, blocks(7, 1), 0.9900),
        ("lyu_1", {}, blocks(15, 1), 1.0000),
        ("lyu_4", {}, blocks(1, 1), 1.2997),
        ("lyu_4", {}, blocks(3, 1), 1.7374),
        ("lyu_4", {}, blocks(7, 1), 1.7500),
        ("lyu_6", {}, blocks(1, 1), 0.9050),
        ("lyu_6", {}, blocks(2, 2), 1.8556),
        ("lyu_6", {}, blocks(4, 4), 3.8000),
        ("lyu_6", {}, blocks(8, 8), 7.7449),
        ("no_cut_off", {}, blocks(4, 4), 1.8859),
        ("half_noise", {}, blocks(3, 1), 1.7023),
        ("half_noise", {}, blocks(7, 1), 1.9950),
        ("lyu_1", {"c": 2}, blocks(6, 2), 0.8344),
        ("lyu_1", {"c": 2}, blocks(14, 2), 0.9968),
        ("lyu_4", {"c": 2}, blocks(2, 2), 2.7282),
        ("lyu_4", {"c": 2}, blocks(6, 2), 3.2493),
        ("not_scaled", {"c": 2}, blocks(2, 2), 0.9268),
        ("not_scaled", {"c": 2}, blocks(6, 2), 1.4399),
        ("half_noise", {"c": 2}, blocks(6, 2), 1.7353),
        ("lyu_1", {"eps": Fraction(1, 2)}, blocks(7, 1), 0.4895),
        ("lyu_4", {"eps": 2}, blocks(1, 1), 2.7757),
        ("lyu_6", {"eps": Fraction(1, 2)}, blocks(8, 8), 3.7645),
        ("lyu_2", {"c": 2}, blocks(1, 1, 2), 0.4351),  # a redrawn threshold pays once for every epoch
        ("lyu_2", {"c": 2}, blocks(3, 1, 2), 0.7713),
        ("lyu_2", {"c": 2}, blocks(7, 1, 2), 0.9789),
        *(("lyu_3", {}, risen(answers, at_most(0)), answers / 2) for answers in (1, 2, 4, 8, 16, 32)),
        *(("no_threshold_noise", {}, risen(answers), answers / 4) for answers in (1, 2, 4, 8, 16, 32)),
        ("gap", {}, gap(1, 0, -20, 30), 0.25),
        ("gap", {}, gap(2, 20, -20, 30), 0.5),
        ("gap", {}, gap(4, 20, -5, 30), 0.9588),
        ("gap", {}, gap(8, 20, 0, 10), 1.0),
    ],
)
def test_the_sparse_vector_family(name: str, changes: dict, pair: tuple[list, list, list], loss: float):
    program = read(FAMILY[name].function)
    given = {key: value for key, value in (ONE | changes).items() if key in program.parameters}
    found = pair_loss(program, pair[0], pair[1], given, [pair[2]]).loss.lower
    assert found == pytest.approx(loss, abs=5.1e-5)
    if name in ("lyu_3", "no_threshold_noise"):
        assert found == pytest.approx(loss, abs=1e-9)
    if name == "gap":  # the tail beyond has no more
        tail = [*pair[2][:-1], at_least(pair[2][-1].lower)]
        assert pair_loss(program, pair[0], pair[1], given, [tail]).loss.lower <= found + 1e-6


def test_of_too_many_outputs_those_are_looked_at_that_are_alike_where_answers_are():
    program, given = read(FAMILY["no_cut_off"].function), {"eps": 1, "T": 0}
    found = pair_loss(program, [1] * 8 + [-1] * 8, [2] * 8 + [-2] * 8, given)
    assert found.loss.lower == pytest.approx(3.8368, abs=5.1e-5)
    assert found.loss.upper == math.inf
    assert (found.exact, found.over) == (False, ALIKE)


def test_no_query_noise_loses_everything_from_two_answers_on():
    program = read(FAMILY["lyu_5"].function)
    parameters = {"eps": 1, "T": 0}
    assert pair_loss(program, [-1], [0], parameters).loss.lower == pytest.approx(0.5, abs=1e-12)
    found = pair_loss(program, [0, 1], [1, 0], parameters)
    assert found.loss.lower == found.loss.upper == math.inf
    assert found.worst.likelier.middle == pytest.approx(0.196735, abs=5e-7)
    assert (found.worst.rarer.lower, found.worst.rarer.upper) == (0.0, 0.0)


@for_each(
    ("scale", "moves", "answers", "loss"),
    [
        (1, ((1, 0), (0, 1)), 2, 0.9765),
        (1, ((1, 0), (0, 1)), 3, 1.0000),
        (1, ((1, -1),), 2, 1.9535),
        (1, ((1, -1),), 5, 2.0000),
        (2, ((1, -1),), 2, 0.9555),
        (2, ((1, -1),), 3, 1.0000),
        (2, ((1, 0), (0, 1)), 2, 0.4775),
        (2, ((1, 0), (0, 1)), 10, 0.5000),
    ],
)
def test_noisy_max_with_gaps_up_to_40(scale: int, moves: tuple, answers: int, loss: float):
    program = read(PROGRAMS["c1_noisy_max"].function)
    found = [
        pair_loss(
            program, [0] + [gap] * (answers - 1), [own] + [gap + other] * (answers - 1), {"eps": Fraction(2, scale)}
        )
        for gap in (-40, 40)
        for own, other in moves
    ]
    assert all(each.exact for each in found)
    assert max(each.loss.upper for each in found) == pytest.approx(loss, abs=5.1e-5)


@pytest.mark.parametrize(("answers", "loss"), [(2, 1.3069), (10, 1.6072)])
def test_noisy_max_from_a_harmless_start(answers: int, loss: float):
    program = read(PROGRAMS["c1_noisy_max"].function)
    found = pair_loss(program, [0] * answers, [1] + [-1] * (answers - 1), {"eps": 2})
    assert found.loss.lower == pytest.approx(loss, abs=5.1e-5)


def test_the_loss_of_a_pair_has_two_orders():
    program = read(PROGRAMS["c1_noisy_max"].function)
    there = pair_loss(program, [0, 0, 1], [1, 0, 1], {"eps": 1})
    back = pair_loss(program, [1, 0, 1], [0, 0, 1], {"eps": 1})
    assert (there.forward.loss, there.backward.loss) == (back.backward.loss, back.forward.loss)
    assert there.loss == back.loss
    assert there.loss.upper == max(there.forward.loss.upper, there.backward.loss.upper)
    assert there.forward.loss != there.backward.loss


def test_equal_answers_lose_nothing():
    found = pair_loss(read(FAMILY["lyu_1"].function), [0, 1], [0, 1], ONE)
    assert found.loss.upper < 1e-15


@for_each(
    ("name", "first", "second", "parameters", "loss"),
    [
        ("c8_partial_sum", [0, 0], [0, 1], {"eps": 1}, 1.0),
        ("w2_partial_sum_half_noise", [0, 0], [0, 1], {"eps": 1}, 2.0),
        ("c9_smart_sum", [0] * 4, [1, 0, 0, 0], {"eps": 1, "M": 2, "T": 5}, 2.0),
        ("c9_smart_sum", [0] * 7, [0, 0, 1, 0, 0, 0, 0], {"eps": 1, "M": 3, "T": 6}, 1.0),
        ("c9_smart_sum", [0] * 7, [1, 0, 0, 0, 0, 0, 0], {"eps": "1/3", "M": 3, "T": 6}, 2 / 3),
        ("c9_smart_sum", [0] * 3, ["1/2", 0, 0], {"eps": 1, "M": 2, "T": 0}, 0.5),
        ("w3_smart_sum_missing_draw", [0] * 3, [1, 0, 0], {"eps": 1, "M": 2, "T": 1}, math.inf),
    ],
)
def test_programs_that_only_add_noise_have_an_exact_loss(
    name: str, first: list, second: list, parameters: dict, loss: float
):
    answers = [[Fraction(each) for each in side] for side in (first, second)]
    values = {key: Fraction(value) for key, value in parameters.items()}
    found = pair_loss(read(PROGRAMS[name].function), *answers, values)
    assert found.exact
    assert found.loss.upper == pytest.approx(loss, abs=1e-12)
    assert found.worst.at_event.lower <= found.loss.upper


@pytest.mark.parametrize(
    ("draw", "there", "back"),
    [
        ("laplace(scale=2)", 0.5, 0.5),
        ("exponential(scale=2)", math.inf, 0.5),
        ("gumbel(scale=2)", math.inf, 0.5),
        ("normal(scale=2)", math.inf, math.inf),
    ],
)
def test_one_draw_of_every_law(draw: str, there: float, back: float):
    program = read(f"def released(q, rng):\n    return q + rng.{draw}\n")
    found = pair_loss(program, 0, 1, {})
    assert (found.forward.loss.upper, found.backward.loss.upper) == (there, back)
    for way in (found.forward, found.backward):
        assert way.at_event.lower <= way.loss.upper


def test_several_noisy_numbers_in_different_tails():
    """One noisy answer far below holds the threshold down, the others are far above."""
    entry = find("sparse.value_released")
    parameters = {key: value for key, value in entry.values().items() if key in read(entry.program).parameters}
    pair = [0] * 5 + [1], [1] * 5 + [0]
    found = pair_loss(read(entry.program), *pair, parameters)
    assert found.loss.lower == pytest.approx(entry.loss(*pair, **entry.values()), abs=1e-9)
    assert in_words(found.worst.event) == "((4, <= -16), (5, >= 257))"


def test_outputs_that_do_not_determine_the_draws_are_bounded_from_below_alone():
    program = read("def released(q, rng):\n    a = rng.laplace(scale=1)\n    return q + a + rng.laplace(scale=1)\n")
    found = pair_loss(program, 0, 1, {})
    assert not found.exact
    assert found.loss.upper == math.inf
    assert 0.5 < found.loss.lower < 1.0


def test_deltas_of_the_sparse_vector():
    assert pair_delta(
        read(FAMILY["lyu_1"].function), [0] * 7 + [1], [1] * 7 + [0], ONE, Fraction(1, 2)
    ).middle == pytest.approx(0.005225556522, abs=5e-13)
    found = pair_delta(read(FAMILY["lyu_6"].function), [0] * 4 + [1] * 4, [1] * 4 + [0] * 4, {"eps": 1, "T": 0}, 1)
    assert found.middle == pytest.approx(0.08871765646, abs=5e-12)
    assert found.upper - found.lower < 1e-13


def test_deltas_of_added_noise():
    normal = read("def released(q, rng):\n    return tuple(x + rng.normal(scale=2) for x in q)\n")
    found = pair_delta(normal, [0, 0], [1, 1], {}, 1)
    mu = math.sqrt(2) / 2
    expected = stats.norm.cdf(mu / 2 - 1 / mu) - math.e * stats.norm.cdf(-mu / 2 - 1 / mu)
    assert found.lower <= expected + 1e-15
    assert found.middle == pytest.approx(expected, rel=1e-9)
    single = read(PROGRAMS["c8_partial_sum"].function)
    assert pair_delta(single, [0], [1], {"eps": 1}, 0).middle == pytest.approx(-math.expm1(-0.5))
    smart = read(PROGRAMS["w3_smart_sum_missing_draw"].function)
    assert pair_delta(smart, [0, 0], [1, 0], {"eps": 1, "M": 2, "T": 1}, 9).lower == 1.0
    with pytest.raises(OutsideIntegrals, match="its delta is no sum over outputs"):
        pair_delta(read(FAMILY["gap"].function), [0], [1], ONE, 1)
    with pytest.raises(InvalidSpec, match="epsilon must be at least 0"):
        pair_delta(single, [0], [1], {"eps": 1}, -1)


def test_upper_bounds_of_pairs():
    exact = pair_loss(read(FAMILY["lyu_1"].function), [1, -1], [2, -2], ONE).upper_bound()
    assert (exact.label, exact.arithmetic, exact.delta) == (Label.EXACT_PAIR, Arithmetic.BALLS, 0.0)
    assert (
        exact.scope == "the answers (1, -1) and (2, -2), eps = 1, T = 0, c = 1; all events of outputs, as real numbers"
    )
    assert exact.epsilon_lower is not None
    assert exact.epsilon_lower == pytest.approx(0.45670281558, abs=1e-10)
    assert exact.epsilon_upper - exact.epsilon_lower < 1e-12
    awkward = pair_loss(read(FAMILY["no_threshold_noise"].function), [0.1], [1.1], {"eps": 3.731, "T": 0, "c": 1})
    assert awkward.upper_bound().scope.startswith("the answers (0.1) and (1.1), eps = 3.731, T = 0, c = 1;")
    below = pair_loss(read(FAMILY["gap"].function), [1, -1], [2, -2], ONE).upper_bound()
    assert below.epsilon_upper == math.inf
    assert "outputs with noisy numbers" in below.scope


def test_wrong_pairs_are_named():
    program = read(FAMILY["lyu_1"].function)
    with pytest.raises(InvalidSpec, match="as many answers on both sides: 1, 2"):
        pair_loss(program, [0], [0, 1], ONE)
    with pytest.raises(InvalidSpec, match="no event given has a probability above 0"):
        pair_loss(program, [0], [1], ONE, [[None, None]])
    with pytest.raises(InvalidSpec, match="a tuple with one item for every output, got True"):
        pair_loss(program, [0], [1], ONE, [True])  # type: ignore[list-item]


def test_a_long_product_of_parameters_is_computed():
    """Words for what Python holds were written into one another, and grew twice as long with every factor."""
    product = " * ".join(["(eps + 1)"] * 60)
    program = read(f"def f(q, rng, eps):\n    return q + rng.laplace(scale=1 / ({product}))\n")
    assert pair_loss(program, 0, 1, {"eps": 0}).loss.upper == 1.0


def test_the_scope_names_default_parameters_too():
    program = read("def f(q, rng, b=2):\n    return q + rng.laplace(scale=b)\n")
    assert "b = 2; all events" in pair_loss(program, 0, 1, {}).upper_bound().scope
