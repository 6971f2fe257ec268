"""Loops summed up: their laws are those of the code, and what is not sure to be right is not summed."""

from __future__ import annotations

import importlib.util
import itertools
import math
from collections.abc import Hashable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.errors import InvalidSpec, OutOfTime
from dpaudit.verify.deadline import within
from dpaudit.verify.enclosure import Enclosure
from dpaudit.verify.replay import FiniteLosses, Raised, Shaped, replay
from dpaudit.verify.replay.losses import adjacent, atoms_of, by_leaf, cut, in_pairs
from dpaudit.verify.replay.tails import Tail
from dpaudit.verify.replay.walk import Lost
from tests.cases import NIGHTLY, for_each
from tests.verify.replay import sampled
from tests.verify.replay.random_samplers import Author

pytestmark = pytest.mark.usefixtures("unwatched")

COUNTS = (3, 4, 6)
RATE = Fraction(math.ceil(Fraction(sampled.E) * 2**53), 2**53)  # of random() < exp(-1)


def rests(found: Any) -> list[Any]:
    return [sum((p for o, p in law.items() if type(o) is Lost), Fraction(0)) for law in found.laws]


def near(a: int, b: int) -> bool:
    return abs(a - b) == 1


def flat(form: Any) -> Iterator[Any]:
    if isinstance(form, Shaped):
        yield form.kind
        yield from flat(form.content)
    elif isinstance(form, tuple):
        yield len(form)
        for part in form:
            yield from flat(part)
    else:
        yield form


def probability(law: Mapping[Hashable, Fraction], output: Any) -> Fraction:
    """Of one output, which may be one of those that a tail stands for."""
    wanted, total = [*flat(output)], Fraction(0)
    for known, p in law.items():
        if type(known) is Lost: continue
        parts = [*flat(known)]
        for part, value in zip(parts, wanted, strict=False):
            if isinstance(part, Tail):
                steps = Fraction(value - part.start, part.step)
                p *= (1 - part.rate) * part.rate ** int(steps) if steps >= 0 and steps.denominator == 1 else 0
            elif part != value:
                p = Fraction(0)
        total += p if len(parts) == len(wanted) else 0
    return total


@for_each("mechanism", sampled.LAPLACE)
def test_two_geometric_numbers_make_a_discrete_laplace_in_whatever_way_they_are_written(mechanism: Any) -> None:
    found = replay(mechanism, COUNTS, near)
    for count, law in zip(COUNTS, found.laws, strict=True):
        for output in range(-9, 20):
            assert probability(law, output) == (1 - RATE) / (1 + RATE) * RATE ** abs(output - count)
    assert found.worst.p / found.worst.q == 1 / RATE
    assert found.epsilon.upper <= 1.0
    assert not any(rests(found))
    assert found.scope.endswith("as their source reads")


@for_each(
    ("mechanism", "ratio"),
    [
        (sampled.zero_counted_twice, 2 / RATE),
        (sampled.zero_never, None),
        (sampled.cut_off, None),
        (sampled.told_far_out, None),
    ],
)
def test_a_broken_twin_loses_more(mechanism: Any, ratio: Fraction | None) -> None:
    found = replay(mechanism, COUNTS, near)
    assert not any(rests(found))
    assert found.infinite is (ratio is None)
    if ratio is not None:
        assert found.worst.p / found.worst.q == ratio
        assert found.epsilon.lower > 1.6


def test_what_is_told_far_out_is_not_summed_away() -> None:
    """A loop that looks at its counter is followed until what is left is rare, and that counts as delta."""
    found = replay(sampled.told_at_a_thousand, (3, 4), near)
    assert 0 < rests(found)[0] < 2.0**-75
    assert found.epsilon.upper == math.inf
    assert found.upper_bound().epsilon_upper == math.inf
    assert 1.0 <= found.epsilon_at(2.0**-70).upper < 1.0 + 1e-12
    assert math.isinf(found.epsilon_at(2.0**-90).upper)
    assert found.delta(1.0).upper < 2.0**-70


@for_each(
    "mechanism",
    [
        *(sampled.clamped, sampled.laplace, sampled.laplace_exact, sampled.gaussian, sampled.one_more_below),
        *(sampled.changed_between, sampled.halves, sampled.told_at_a_thousand, sampled.two_with_a_flag),
        *(sampled.caught, sampled.caught_alone, sampled.two_from_the_second_on),
        *(sampled.of_changed_functions, sampled.by_ones_and_twos, sampled.is_copied),
        *(sampled.goes_on_where_it_was, sampled.goes_over_where_it_was),
    ],
)
def test_laws_are_those_of_all_paths_of_the_code(mechanism: Any) -> None:
    """Of the paths that a generator of its own enumerates, the likely ones: no output is likelier, or much rarer."""
    found = replay(mechanism, (3, 4), "all")
    for count, law, rest in zip((3, 4), found.laws, rests(found), strict=True):
        paths, left = sampled.enumerated(mechanism, count)
        assert left < 0.7
        for output, p in paths.items():
            assert p <= probability(law, output) + rest
            assert probability(law, output) <= p + left


NOT_SUMMED = {
    sampled.remembers: "line 3 of remembers .*: `LOG` in it, which may do more than compute",
    sampled.remembers_elsewhere: "line 3 of remembers_elsewhere .*: `LOG` in it",
    sampled.in_an_attribute: "line 3 of in_an_attribute .*: `Box.value` in it",
    sampled.in_a_default: "`in_an_argument` in it",
    sampled.of_a_global: "writes a name of another function",
    sampled.in_a_list: "line 3 of in_a_list .*: it uses a list: use whole numbers",
    sampled.for_ever: "it may never end",
    sampled.not_a_number: "line 3 of not_a_number .*: it uses a float",
    sampled.of_fractions: "`share.__init__` in it",
    sampled.imports: "`from tests.verify.replay import sampled` in it",
    sampled.tries: "`try:` in it",
    sampled.counts_on: "it uses a count",
    sampled.walks: "too many likely ways to go on",
    sampled.both_and_one: "is used twice",
    sampled.told_by_identity: "told_by_identity is not read: it tells objects apart by `is`",
}


@for_each(("mechanism", "why"), NOT_SUMMED.items())
def test_a_loop_that_may_do_more_than_compute_and_draw_is_not_summed_and_says_why(mechanism: Any, why: str) -> None:
    with pytest.raises(InvalidSpec, match=f"a loop that can go on for ever has no finite law; .*{why}"):
        replay(mechanism, (3, 4), "all")


def test_tails_that_fall_at_two_rates_are_not_compared() -> None:
    with pytest.raises(InvalidSpec, match="falls at two rates or in two steps"):
        replay(sampled.of_two_rates, (3, 4), "all")


def test_what_a_loop_needs_is_learned_from_each_dataset() -> None:
    regular, other = replay(sampled.learns, (0, 1), "all").laws
    assert regular[0] == Fraction(3, 4) == other[0]
    assert (other[1], other[2]) == (Fraction(3, 32), Fraction(3, 32) * (1 + Fraction(1, 8)))


def test_a_name_without_a_value_is_not_taken_from_the_module() -> None:
    law = replay(sampled.has_no_value_yet, (3, 4), "all").laws[0]
    assert {type(output): p for output, p in law.items()} == {int: Fraction(1, 2), Raised: Fraction(1, 2)}


def test_a_loop_that_stays_in_its_states_for_a_while_is_summed_exactly() -> None:
    found = replay(sampled.in_phases, (3, 5), "all")
    assert found.laws == tuple({count: Fraction(1, 2), count + 1: Fraction(1, 2)} for count in (3, 5))


def test_a_number_in_a_record_is_found_there_and_of_two_in_one_output_each_is() -> None:
    assert replay(sampled.in_a_record, COUNTS, near).worst.p / replay(sampled.two, COUNTS, near).worst.q > 0
    found = replay(sampled.in_a_record, COUNTS, near)
    assert (found.worst.p / found.worst.q, found.infinite, found.paths) == (1 / RATE, False, 6)
    assert replay(sampled.pair, (3, 4), near).worst.p / replay(sampled.pair, (3, 4), near).worst.q == 1 / RATE**2
    clamped = replay(sampled.clamped, (3, 4), near)
    assert all(isinstance(output, int) for law in clamped.laws for output in law)


EXPRESSIONS = """
    k + 2; 2 - k; k - 2; -k; 3 * k; k * -2; 1 + 2 * k - k; k - k; k * 0; abs(k - 1); min(k, 2); max(k, 2); k % 3
    k // 2; 7 // (k + 1); k ** 2; 2 ** k; k / 2; k + 0.5; k < 2; k <= 2; k > 2; k >= 2; k == 2; k != 2; 2 < k; 2 == k
    k < 1.5; k > 0.0; -k < -1; -k >= -2; not k; bool(k); int(k); float(k); str(k); f"{k:03d}"; "%d" % k; k if k else -1
    (k > 0) + (k > 1); round(k); round(k, -1); [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, *range(90)][k]; {0: "none"}.get(k, "some")
    k in (0, 2); isinstance(k, int); type(k) == int; divmod(k, 2); k & 1; k | 1; k ^ 1; ~k; k << 1; k >> 1; k + True
    k * True; math.floor(k / 2); math.exp(-k); len(range(k)); np.int64(2) + k; k + np.int64(2); np.float64(0.5) * k
    np.array([1, 2]) + k; np.array([k, 1]); np.minimum(k, 1); k.bit_length(); sum([k, 1]); sorted([k, 1]); (k, 1)
    [k, 1]; {"k": k}; math.inf > k; k < -math.inf; k == math.nan; k == "a"; k is None; copy.deepcopy(k)
"""


def module_of(text: str, folder: Path) -> Any:
    """The module that a text is."""
    path = folder / "sampled_here.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("sampled_here", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_number_without_a_largest_value_computes_as_an_int_does(tmp_path: Path) -> None:
    expressions = [each.strip() for each in EXPRESSIONS.replace("\n", ";").split(";") if each.strip()]
    head = "import copy, math\nimport numpy as np\n\n\n"
    loop = "    k = 0\n    while rng.random() < 0.25:\n        k += 1\n"
    texts = [f"def at_{at}(x, rng):\n{loop}    return {text}\n" for at, text in enumerate(expressions)]
    module = module_of(head + "\n\n".join(texts), tmp_path)
    refused = []
    for at, text in enumerate(expressions):
        function = getattr(module, f"at_{at}")
        try:
            found = replay(function, (0, 1), "all")
        except InvalidSpec:
            refused.append(text)
            continue
        law, rest = found.laws[0], rests(found)[0]
        paths, left = sampled.enumerated(function, 0)
        assert rest < 2.0**-70, text
        for output, p in paths.items():
            assert p <= probability(law, output) + rest, text
            assert probability(law, output) <= p + left, text
    assert refused == ["np.minimum(k, 1)", "k.bit_length()"]


@for_each("seed", range(300 if NIGHTLY else 15))
def test_random_samplers_have_the_law_of_all_their_paths(seed: int, tmp_path: Path) -> None:
    program = module_of(Author(seed).module(), tmp_path).program
    try:
        with within(10.0):
            found = replay(program, (0, 1), "all")
    except (InvalidSpec, OutOfTime):
        return  # some never end, and some count in more than one way
    for data, law, rest in zip((0, 1), found.laws, rests(found), strict=True):
        assert sum(law.values()) == 1
        paths, left = sampled.enumerated(program, data)
        for output, p in paths.items():
            assert p <= probability(law, output) + rest
            assert probability(law, output) <= p + left


def test_a_for_loop_of_plain_numbers_has_a_run_for_each_state_and_not_for_each_path() -> None:
    people = [[1] * 25 + [0] * 25, [1] * 26 + [0] * 24]
    found = replay(sampled.majority, people, "all")
    assert found.paths == 2 * 51
    ones = {0: Fraction(1)}
    for person in people[0]:
        yes = Fraction(3 if person else 1, 4)
        ones = {k: ones.get(k, 0) * (1 - yes) + ones.get(k - 1, 0) * yes for k in range(len(ones) + 1)}  # type: ignore
    assert found.laws[0] == ones
    assert found.worst.p / found.worst.q == 3
    places = replay(sampled.until_one_says_so, [[5], [6]], "all").laws[0]
    assert places == {
        (5, 1): Fraction(1, 4),
        (6, 2): Fraction(3, 16),
        (8, 3): Fraction(9, 64),
        (4, 3): Fraction(27, 64),
    }


# --- outputs with tails, side by side ---------------------------------------------------------------------------------


def half_tails(seed: int) -> list[dict[Hashable, Fraction]]:
    """Two laws over whole numbers with tails that fall alike, and single numbers beside them."""
    rng = np.random.default_rng(seed)
    step, rates = int(rng.integers(1, 4)), [Fraction(int(rng.integers(1, 5)), 5) for _ in range(2)]
    laws = []
    for _ in range(2):
        weights: dict[Hashable, int] = {}
        for _ in range(int(rng.integers(1, 5))):
            weights[int(rng.integers(-6, 7))] = int(rng.integers(1, 9))
        for sign, rate in zip((1, -1), rates, strict=True):
            for _ in range(int(rng.integers(1, 3))):
                weights[Tail(int(rng.integers(-6, 7)), sign * step, rate)] = int(rng.integers(1, 9))
        laws.append({output: Fraction(weight, sum(weights.values())) for output, weight in weights.items()})
    return laws


@for_each("seed", range(40))
def test_tails_are_compared_as_their_outputs_are(seed: int) -> None:
    laws = half_tails(seed)
    found = FiniteLosses.of([0, 1], [(0, 1)], laws)
    outputs = range(-400, 401)
    p, q = ({each: probability(law, each) for each in outputs} for law in laws)
    least, most = (
        min(p[each] / q[each] for each in outputs if q[each]),
        max(p[each] / q[each] for each in outputs if q[each]),
    )
    if all(p[each] and q[each] or not p[each] and not q[each] for each in outputs):
        assert found.worst.p / found.worst.q == max(most, 1 / least)
    else:
        assert found.infinite
    for epsilon in (0.0, 0.5):
        excess = (
            sum(max(0.0, float(a[o]) - math.exp(epsilon) * float(b[o])) for o in outputs) for a, b in ((p, q), (q, p))
        )
        assert found.delta(epsilon).middle == pytest.approx(max(excess), abs=1e-6)
    


def test_far_tails_are_not_cut_into_too_many_outputs() -> None:
    laws: list[dict[Hashable, Fraction]] = [{Tail(start, 1, Fraction(1, 2)): Fraction(1)} for start in (0, 10**6)]
    with pytest.raises(InvalidSpec, match="compared with more than 100,000 others"):
        FiniteLosses.of([0, 1], [(0, 1)], laws)


# --- what was not followed --------------------------------------------------------------------------------------------


@for_each("seed", range(60))
def test_bounds_hold_whatever_was_not_followed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole: list[dict[Hashable, Fraction]] = []
    for _ in range(2):
        weights = rng.integers(1, 9, 5).tolist()
        whole.append({output: Fraction(weight, sum(weights)) for output, weight in enumerate(weights)})
    known = [{output: p * Fraction(int(rng.integers(60, 65)), 64) for output, p in law.items()} for law in whole]
    found, true = FiniteLosses.of([0, 1], [(0, 1)], known), FiniteLosses.of([0, 1], [(0, 1)], whole)
    assert found.epsilon.lower <= true.epsilon.upper
    assert found.epsilon.upper == math.inf or not any(rests(found))
    assert found.upper_bound().epsilon_upper == found.epsilon.upper
    for epsilon in (0.0, 0.3, 1.0):
        assert found.delta(epsilon).lower <= true.delta(epsilon).upper
        assert found.delta(epsilon).upper >= true.delta(epsilon).lower
    for delta in (0.0, 0.05, 0.2, 0.6):
        assert found.epsilon_at(delta).lower <= true.epsilon_at(delta).upper
        assert found.epsilon_at(delta).upper >= true.epsilon_at(delta).lower


def test_what_was_not_followed_may_be_what_no_other_law_has() -> None:
    law: dict[Hashable, Fraction] = {0: Fraction(3, 4)}
    found = FiniteLosses.of([0, 1], [(0, 1)], [law, law])
    assert found.epsilon == Enclosure(0.0, math.inf)
    assert found.delta(1.0) == Enclosure(0.0, 0.25)
    assert (found.epsilon_at(0.2).upper, found.epsilon_at(0.25).upper) == (math.inf, 0.0)
    with pytest.raises(InvalidSpec, match="must have probabilities that sum to 1"):
        FiniteLosses.of([0, 1], [(0, 1)], [law, law])


# --- entries that are independent -------------------------------------------------------------------------------------


def vectors(seed: int, *, independent: bool) -> dict[Hashable, Fraction]:
    rng = np.random.default_rng(seed)
    marginals = [rng.integers(1, 4, 2).tolist() for _ in range(3)]
    law: dict[Hashable, int] = {
        entries: math.prod(marginal[entry] for marginal, entry in zip(marginals, entries, strict=True))
        for entries in itertools.product((0, 1), repeat=3)
    }
    if not independent:
        law[0, 0, 0], law[1, 1, 1] = law[0, 0, 0] + 1, law[1, 1, 1] + 1
    total = sum(law.values())
    return {entries: Fraction(weight, total) for entries, weight in law.items()}


@for_each("seed", range(20))
@for_each("independent", [(True, True), (True, False), (False, False)])
def test_laws_of_vectors_are_compared_entry_by_entry_where_entries_are_independent(
    seed: int, independent: tuple[bool, bool]
) -> None:
    laws = [vectors(2 * seed + place, independent=each) for place, each in enumerate(independent)]
    ((_, _, found),) = in_pairs(laws, [(0, 1)])
    assert found == atoms_of(side_by_side(*laws))
    assert [bool(by_leaf(law)[1]) for law in laws] == [*independent]


def test_entries_are_those_of_lists_and_arrays_too_and_other_outputs_have_none() -> None:
    def of(make: Any) -> Any:
        return replay(lambda data, rng: make([data ^ (rng.random() < 0.25) for _ in range(3)]), [0, 1], "all")

    for make in (tuple, list, np.array, lambda bits: np.array(bits, float), lambda bits: (list(bits), 0)):
        found = of(make)
        assert found.worst.p / found.worst.q == 27
    assert len(by_leaf(of(np.array).laws[0])[1]) == 3
    assert [by_leaf(law)[1] for law in ({0: Fraction(1)}, {(0,): Fraction(1, 2), (0, 1): Fraction(1, 2)})] == [[], []]


def test_randomised_response_of_eight_bits_is_compared_over_all_neighbours() -> None:
    bits = [*itertools.product((0, 1), repeat=8)]
    laws = [
        {each: Fraction(3 ** sum(a == b for a, b in zip(data, each, strict=True)), 4**8) for each in bits}
        for data in bits
    ]
    found = FiniteLosses.of(bits, adjacent(bits, "all"), laws)
    assert found.worst.p / found.worst.q == 3**8
    assert len([*in_pairs(laws, found.pairs)]) <= math.comb(8 + 3, 3)  # how many bits are 0 and 1 in either dataset
