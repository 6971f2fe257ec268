"""Losses, deltas and probabilities: tables of known ones, runs of the functions themselves, the catalogue's losses."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.programs import FAMILY, PROGRAMS, function_of
from dpaudit.catalogue import find, rooms
from dpaudit.catalogue.entry import Entry
from dpaudit.errors import InvalidSpec
from dpaudit.results.bounds import Arithmetic, Label
from dpaudit.verify.integrals import exponentials
from dpaudit.verify.language import read
from dpaudit.verify.language.nodes import Program, Symbol
from dpaudit.verify.witnesses import OutsideIntegrals, pair_delta, pair_loss
from dpaudit.verify.witnesses.losses import ALIKE
from dpaudit.verify.witnesses.outcomes import Outcomes
from dpaudit.verify.witnesses.outputs import ANY, NOISY, Anything, Values, at_least, at_most, in_words, output_event
from tests.cases import for_each, some
from tests.verify.language.test_reading import SHAPES

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
        ("lyu_1", {}, blocks(7, 1), 0.9900),
        ("lyu_4", {}, blocks(7, 1), 1.7500),
        ("lyu_6", {}, blocks(4, 4), 3.8000),
        ("no_cut_off", {}, blocks(4, 4), 1.8859),
        ("half_noise", {}, blocks(7, 1), 1.9950),
        ("lyu_1", {"c": 2}, blocks(14, 2), 0.9968),
        ("not_scaled", {"c": 2}, blocks(6, 2), 1.4399),
        ("lyu_4", {"eps": 2}, blocks(1, 1), 2.7757),
        ("lyu_2", {"c": 2}, blocks(1, 1, 2), 0.4351),  # a redrawn threshold pays once for every epoch
        ("lyu_2", {"c": 2}, blocks(7, 1, 2), 0.9789),
        *(("lyu_3", {}, risen(answers, at_most(0)), answers / 2) for answers in (1, 2, 32)),
        *(("no_threshold_noise", {}, risen(answers), answers / 4) for answers in (1, 2, 32)),
        ("gap", {}, gap(1, 0, -20, 30), 0.25),
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


def test_of_too_many_outputs_those_are_looked_at_that_are_alike_where_answers_are(monkeypatch: pytest.MonkeyPatch):
    for place in ("paths", "losses"):
        monkeypatch.setattr(f"dpaudit.verify.witnesses.{place}.MOST_OUTPUTS", 128)
    program, given = read(FAMILY["no_cut_off"].function), {"eps": 1, "T": 0}
    found = pair_loss(program, [1] * 4 + [-1] * 4, [2] * 4 + [-2] * 4, given)
    assert found.loss.lower == pytest.approx(1.8859, abs=5.1e-5)
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
        (2, ((1, -1),), 3, 1.0000),
        (2, ((1, 0), (0, 1)), 2, 0.4775),
    ],
)
def test_noisy_max_with_gaps_up_to_40(scale: int, moves: tuple, answers: int, loss: float):
    program, given = read(PROGRAMS["c1_noisy_max"].function), {"eps": Fraction(2, scale)}
    others = answers - 1
    found = [
        pair_loss(program, [0, *[gap] * others], [own, *[gap + other] * others], given)
        for gap in (-40, 40)
        for own, other in moves
    ]
    assert all(each.exact for each in found)
    assert max(each.loss.upper for each in found) == pytest.approx(loss, abs=5.1e-5)
    if (scale, others) == (1, 1):  # from a harmless start
        for far, most in ((1, 1.3069), (9, 1.6072)):
            harmless = pair_loss(program, [0] * (far + 1), [1] + [-1] * far, {"eps": 2})
            assert harmless.loss.lower == pytest.approx(most, abs=5.1e-5)


def test_the_loss_of_a_pair_has_two_orders():
    program = read(PROGRAMS["c1_noisy_max"].function)
    there = pair_loss(program, [0, 0, 1], [1, 0, 1], {"eps": 1})
    back = pair_loss(program, [1, 0, 1], [0, 0, 1], {"eps": 1})
    assert (there.forward.loss, there.backward.loss) == (back.backward.loss, back.forward.loss)
    assert there.loss == back.loss
    assert there.loss.upper == max(there.forward.loss.upper, there.backward.loss.upper)
    assert there.forward.loss != there.backward.loss
    assert pair_loss(program, [0, 1], [0, 1], {"eps": 1}).loss.upper < 1e-15


@for_each(
    ("name", "first", "second", "parameters", "loss"),
    [
        ("c8_partial_sum", [0, 0], [0, 1], {"eps": 1}, 1.0),
        ("w2_partial_sum_half_noise", [0, 0], [0, 1], {"eps": 1}, 2.0),
        ("c9_smart_sum", [0] * 4, [1, 0, 0, 0], {"eps": 1, "M": 2, "T": 5}, 2.0),
        ("c9_smart_sum", [0] * 7, [0, 0, 1, 0, 0, 0, 0], {"eps": 1, "M": 3, "T": 6}, 1.0),
        ("c9_smart_sum", [0] * 7, [1, 0, 0, 0, 0, 0, 0], {"eps": Fraction(1, 3), "M": 3, "T": 6}, 2 / 3),
        ("c9_smart_sum", [0] * 3, [Fraction(1, 2), 0, 0], {"eps": 1, "M": 2, "T": 0}, 0.5),
        ("w3_smart_sum_missing_draw", [0] * 3, [1, 0, 0], {"eps": 1, "M": 2, "T": 1}, math.inf),
    ],
)
def test_programs_that_only_add_noise_have_an_exact_loss(
    name: str, first: list, second: list, parameters: dict, loss: float
):
    found = pair_loss(read(PROGRAMS[name].function), first, second, parameters)
    assert found.exact
    assert found.loss.upper == pytest.approx(loss, abs=1e-12)
    assert found.worst.at_event.lower <= found.loss.upper


@for_each(
    ("draw", "there", "back"),
    [
        ("laplace(scale=2)", 0.5, 0.5),
        ("exponential(scale=2)", math.inf, 0.5),
        ("gumbel(scale=2)", math.inf, 0.5),
        ("normal(scale=2)", math.inf, math.inf),
    ],
)
def test_one_draw_of_every_law(draw: str, there: float, back: float):
    found = pair_loss(read(f"def released(q, rng):\n    return q + rng.{draw}\n"), 0, 1, {})
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
    lyu_1, lyu_6 = (read(FAMILY[name].function) for name in ("lyu_1", "lyu_6"))
    found = pair_delta(lyu_1, [0] * 7 + [1], [1] * 7 + [0], ONE, Fraction(1, 2))
    assert found.middle == pytest.approx(0.005225556522, abs=5e-13)
    found = pair_delta(lyu_6, [0] * 4 + [1] * 4, [1] * 4 + [0] * 4, {"eps": 1, "T": 0}, 1)
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
    where = "the answers (1, -1) and (2, -2), eps = 1, T = 0, c = 1; all events of outputs, as real numbers"
    assert exact.scope == where
    assert exact.epsilon_lower == pytest.approx(0.45670281558, abs=1e-10)
    assert exact.epsilon_upper == pytest.approx(exact.epsilon_lower, abs=1e-12)
    awkward = pair_loss(read(FAMILY["no_threshold_noise"].function), [0.1], [1.1], {"eps": 3.731, "T": 0, "c": 1})
    assert awkward.upper_bound().scope.startswith("the answers (0.1) and (1.1), eps = 3.731, T = 0, c = 1;")
    below = pair_loss(read(FAMILY["gap"].function), [1, -1], [2, -2], ONE).upper_bound()
    assert below.epsilon_upper == math.inf
    assert "outputs with noisy numbers" in below.scope
    given = read("def f(q, rng, b=2):\n    return q + rng.laplace(scale=b)\n")
    assert "b = 2; all events" in pair_loss(given, 0, 1, {}).upper_bound().scope


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


# --- probabilities of outputs -------------------------------------------------------------------------------------


NUMBERS = {"eps": 1, "N": 1, "T": 0}
RUNS = 3000
SAMPLING = math.sqrt(math.log(2 / 1e-11) / (2 * RUNS))  # Hoeffding: each of < 400 comparisons fails with chance 1e-11


def probability(program: Program, answers: Any, parameters: dict, outputs: Iterable[object]) -> Any:
    return Outcomes(program, answers, parameters).probability(output_event(outputs))


def ties(q, rng):
    """Answers without noise are compared as Python does; 0 is an atom beside noisy numbers."""
    t = rng.laplace(scale=2)
    out = []
    for x in q:
        if x >= 2:
            out.append(0)
        elif x > 1:
            out.append(None)
        elif x + rng.laplace(scale=1) >= t:
            out.append(x + rng.laplace(scale=3))
        else:
            out.append(None)
    return out


def keyed(q, rng, c):
    t = rng.laplace(scale=2)
    output = {}
    for place, x in enumerate(q):
        v = x + rng.laplace(scale=3)
        if v >= t:
            output[place] = v - t
            t = rng.laplace(scale=2)
            if len(output) >= c:
                break
    return output


def weighted(q, rng, budget):
    """Runs end at different lengths."""
    t = rng.laplace(scale=2)
    spent = 0
    out = []
    for x in q:
        if x + rng.laplace(scale=3) >= t + 2:
            out.append(True)
            spent += 3
        elif x + rng.laplace(scale=2) >= t:
            out.append(False)
            spent += 2
        else:
            out.append(None)
            spent += 1
        if spent > budget:
            break
    return tuple(out)


def listed_and_counted(q, rng):
    t = rng.laplace(scale=2)
    count = 0
    out = []
    for x in q:
        if x + rng.laplace(scale=2) >= t:
            out.append(True)
            count += 1
            break
        out.append(None)
    return out, count


def smallest(q, rng):
    best = 0
    winner = -1
    for i, x in enumerate(q):
        y = x + rng.laplace(scale=1)
        if y <= best:
            best = y
            winner = i
    return winner


def steep(q, rng):
    """Lines of other slopes than 1, on both sides of a draw."""
    t = rng.laplace(scale=2)
    out = []
    for x in q:
        y = rng.laplace(scale=1)
        if 2 * x + 3 * y >= t:
            out.append(True)
        elif x - y > t / 3:
            out.append(False)
        else:
            out.append(None)
    return out


def two_sided(q, rng):
    t = rng.laplace(scale=2)
    out = []
    for x in q:
        y = x + rng.laplace(scale=2)
        if y >= t or y <= -t:
            out.append(True)
        else:
            out.append(None)
    return out


def inside(value: object, pattern: object) -> bool:
    if isinstance(pattern, Anything):
        return True
    if isinstance(pattern, Values):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        low = pattern.lower is None or (is_number and value >= pattern.lower)
        return is_number and low and (pattern.upper is None or value <= pattern.upper)
    return value is pattern if pattern is None or isinstance(pattern, bool) else value == pattern


def shape_of(output: Any, *, nested: bool = False) -> object:
    """The shape of what a function returned; numbers that are not whole are noisy."""
    if isinstance(output, dict):
        output = tuple(output.items())
    if isinstance(output, list | tuple):
        return tuple(shape_of(each, nested=True) for each in output)
    if output is None or isinstance(output, bool | str):
        found: object = Symbol(repr(output))
    else:
        found = Fraction(output) if output == int(output) else NOISY
    return found if nested else (found,)


@for_each(
    ("function", "answers", "parameters", "more"),
    [
        ("names for scales, and comparisons with names", [0, 1, 2], {"eps": 1, "T": 1}, None),
        ("a flag", [0, 1, 2], {"eps": 1}, None),
        ("a filter", [0, 1, -1], {"eps": 1}, 8),
        (ties, [0, 1, Fraction(3, 2), 2], {}, None),
        (keyed, [0, 1, 2], {"c": 2}, None),
        (keyed, [2, 0, 0, 1], {"c": 1}, None),
        (weighted, [0, 1, 2, 0], {"budget": 4}, None),
        (listed_and_counted, [0, 1, 2], {}, None),
        (smallest, [0, 1, -1], {}, None),
        (steep, [-1, 2], {}, None),
        (two_sided, [0, 1], {}, None),
        ("c1_noisy_max", [0, 1, 1, -1], {"eps": 1}, 4),
        ("c2_sparse_vector", [0, 1, -2, 1, 0], NUMBERS, 6),
        ("c5_gap_sparse_vector", [-2, 1], NUMBERS, [None, at_least(3)]),
        ("c6_numeric_sparse_vector", [0, 2], NUMBERS, [None, at_most(1)]),
        ("c7_adaptive_sparse_vector", [10, 14], NUMBERS, [ANY, at_least(4)]),
        ("c7_adaptive_sparse_vector", [20, 14], NUMBERS, [at_least(20)]),
        ("c9_smart_sum", [1, 0, 1], {"eps": 1, "M": 2, "T": 5}, [at_most(1), at_least(0), at_least(1)]),
        ("w1_noisy_max_value", [0, 1, -1], {"eps": 1}, [at_most(1)]),
        ("w7_gap_value", [0, 1], NUMBERS, [None, at_least(2)]),
        ("w8_adaptive_value", [4, 16], NUMBERS, [ANY, at_most(20)]),
        ("lyu_2", [0, 1, -2, 1, 0], {"eps": 1, "T": 0, "c": 2}, 16),
        ("lyu_5", [0, 1, 1], {"eps": 1, "T": 0}, 3),
        ("lyu_6", [0, 1, -1, 3, 1], {"eps": Fraction(1, 2), "T": 1}, 32),
        ("no_threshold_noise", [0, 1, -1], {"eps": 2, "T": 0, "c": 3}, 8),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_outputs_are_as_likely_as_they_are_among_runs(
    function: Callable[..., Any] | str, answers: list[Any], parameters: dict, more: list | int | None
):
    """Every shape of output, and all together; `more` is another event, or how many shapes are possible."""
    if isinstance(function, str):
        shape = SHAPES.get(function)
        function = function_of(shape, "f") if shape else (PROGRAMS | FAMILY)[function].function
    outcomes = Outcomes(read(function), answers, parameters)
    chances = {shape: outcomes.probability(shape) for shape in outcomes.by_shape}
    total = sum(chances.values())
    assert total.contains(1)
    assert float(total.rad()) < 1e-12
    assert not isinstance(more, int) or sum(not chance.is_zero() for chance in chances.values()) == more
    rng = np.random.default_rng(20_240_602)
    data, given = [float(each) for each in answers], {name: float(value) for name, value in parameters.items()}
    outputs = [function(data, rng, **given) for _ in range(RUNS)]
    seen = Counter(map(shape_of, outputs))
    assert set(seen) <= set(chances)
    for shape, chance in chances.items():
        assert abs(seen[shape] / RUNS - float(chance)) <= SAMPLING, shape
    if isinstance(more, list):
        lists = [output if isinstance(output, list | tuple) else (output,) for output in outputs]
        hits = sum(len(output) == len(more) and all(map(inside, output, more)) for output in lists)
        exact = float(outcomes.probability(output_event(more)))
        assert abs(hits / RUNS - exact) <= SAMPLING
        assert 0.02 < exact < 0.98  # or the comparison says nothing


def test_a_half_line_and_its_rest_add_up_to_one():
    value = read(PROGRAMS["w1_noisy_max_value"].function)
    for end in (-3, 0, Fraction(1, 3), 5):
        halves = [probability(value, [0, 1, 1], {"eps": 1}, [side(end)]) for side in (at_most, at_least)]
        assert sum(halves).contains(1)


def test_outputs_are_not_tagged_with_the_branch_that_made_them():
    adaptive = read(PROGRAMS["w8_adaptive_value"].function)
    outputs = [[None], [at_most(0)], [at_least(0)]]
    parts = [probability(adaptive, [12], NUMBERS, each) for each in outputs]
    assert sum(parts).contains(1)
    assert float(parts[2]) > 0.5  # from the coarse branch and from the fine one
    negative = probability(adaptive, [4], NUMBERS, [at_most(-1)])
    assert float(negative) > 0.0  # the coarse branch alone


def test_atoms_are_compared_exactly():
    smart = read(PROGRAMS["w3_smart_sum_missing_draw"].function)
    parameters = {"eps": 1, "M": 2, "T": 1}
    assert probability(smart, [0, 0, 0], parameters, [ANY, 0]) == 1
    assert probability(smart, [1, 0, 0], parameters, [ANY, 0]).is_zero()
    assert probability(smart, [1, 0, 0], parameters, [0, ANY]).is_zero()  # a noisy number is no atom


def test_an_event_has_one_probability_whether_all_paths_were_followed_or_its_own():
    """Of followed paths those of a plain event are looked up by their outputs, some of them from two branches."""
    plain = [(), (None,), (True,), (None, True), (None, ANY), (None, 0), (None, at_most(0)), (0, 1), ((1, 0),)]
    for name, given in (("lyu_1", {"c": 2}), ("w8_adaptive_value", {}), ("w3_smart_sum_missing_draw", {"M": 2})):
        program = read((FAMILY | PROGRAMS)[name].function)
        parameters = {each: (NUMBERS | given)[each] for each in program.parameters}
        followed = Outcomes(program, [0, 1], parameters)
        assert followed.paths
        for event in map(output_event, plain):
            own = Outcomes(program, [0, 1], parameters).probability(event)
            assert followed.probability(event).overlaps(own)
            assert followed.probability(event).is_zero() == own.is_zero()


def test_all_outputs_of_a_run_are_integrated_together(monkeypatch: pytest.MonkeyPatch):
    """Those of halting runs nearly all at once, those of all winners too; each is what it is by itself."""
    together: list[int] = []
    one = exponentials.integrals
    monkeypatch.setattr(exponentials, "integrals", lambda cut: together.append(len(cut.products)) or one(cut))
    for name, answers in (("lyu_1", [0, 3, -1, 2, 2, 5, 1, 0]), ("c1_noisy_max", [3, 0, -1, 2, 7, 5, 1, 4])):
        program = read((FAMILY | PROGRAMS)[name].function)
        parameters = {each: ONE[each] for each in program.parameters}
        many, alone = (Outcomes(program, answers, parameters) for _ in range(2))
        together.clear()
        many.together(many.by_shape)
        assert max(together) >= len(answers) - 2
        for event in alone.by_shape:
            assert many.probability(event).overlaps(alone.probability(event))
            assert many.probability(event).rel_accuracy_bits() > 150


def readable(room: str) -> Iterator[Entry]:
    """The entries of a room of the catalogue with a loss, and their twins, whose source the language reads."""
    module = next(held for held in rooms().values() if held[0].module.split(".")[2] == room)
    for entry in (each for held in module for each in (held, *held.twins.values())):
        with contextlib.suppress(InvalidSpec):  # outside the language, or no plain function
            read(entry.program)
            if entry.loss is not None and len(entry.default_pair[0]) <= 6:
                yield entry


@pytest.mark.parametrize("room", ["selection", "sparse"])
def test_the_losses_of_the_catalogue(room: str):
    compared = 0
    for entry in some(readable(room), 4):
        program, values = read(entry.program), entry.values()
        parameters = {name: Fraction(str(values[name])) for name in program.parameters if name in values}
        known = entry.loss(*entry.default_pair, **values)
        first, second = ([Fraction(str(answer)) for answer in answers] for answers in entry.default_pair)
        found = pair_loss(program, first, second, parameters)
        assert found.loss.lower <= known + 1e-9, entry.name
        assert found.loss.lower >= min(known, 9.0) - 1e-7, entry.name  # the least of events may stay below infinity
        if found.exact:
            assert found.loss.upper == pytest.approx(known, rel=1e-9), entry.name
            compared += 1
    assert compared >= 2
