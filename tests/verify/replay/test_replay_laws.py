"""Finite mechanisms whose exact losses are known, replayed; and what of laws is lost, against all events."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpaudit.catalogue import local
from dpaudit.errors import InvalidSpec
from dpaudit.results.bounds import Arithmetic, Label
from dpaudit.verify.enclosure import Enclosure
from dpaudit.verify.replay import FiniteLosses, replay
from tests.cases import for_each

pytestmark = pytest.mark.usefixtures("unwatched")

Law = dict[int, Fraction]
CANDIDATES = ((0, 1, 0.5), (1, 0, 0.5), (1, 1, 0), (0, 0, 1), (1, 0, 0))  # losses of three candidates by record type


def one_step(a: int, b: int) -> bool:
    return abs(a - b) == 1


def one_bit(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return sum(x != y for x, y in zip(a, b, strict=True)) == 1


def respond(data: tuple[int, ...], rng: Any) -> tuple[int, ...]:
    return tuple(bit if rng.random() < 0.75 else 1 - bit for bit in data)


def shuffled(ones: int, rng: Any) -> int:
    return sum(rng.random() < 0.75 for _ in range(ones)) + sum(rng.random() < 0.25 for _ in range(8 - ones))


def one_of_six(value: int, rng: Any) -> int:
    return value if rng.random() < 0.375 else int((value + rng.integers(1, 6)) % 6)


def uniform(count: int, rng: Any) -> int:
    return count + int(rng.integers(6))


def geometric(count: int, rng: Any, clamped: bool = True) -> int:
    u, sign = rng.integers(256), rng.integers(2)
    noise = next(k for k in range(41) if u / 256 < 1 - 2.0 ** -(k + 1))
    noisy = count + noise if sign else count - noise
    return min(5, max(0, noisy)) if clamped else noisy


def exponential(records: tuple[int, ...], rng: Any) -> int:
    weights = [math.exp(-sum(CANDIDATES[record][j] for record in records) / 2) for j in range(3)]
    return int(rng.choice(3, p=[weight / sum(weights) for weight in weights]))


def log(number: Fraction | int) -> Decimal:
    """The logarithm to 60 digits, by other means than balls."""
    with localcontext(prec=60):
        return Decimal(Fraction(number).numerator).ln() - Decimal(Fraction(number).denominator).ln()


def near(found: Enclosure, value: str) -> bool:
    """Whether all digits of a value are right."""
    digits = len(value.split(".")[1])
    return f"{found.lower:.{digits}f}" == f"{found.upper:.{digits}f}" == value


BITS = tuple(itertools.product((0, 1), repeat=3))
# the mechanism, the domain, its neighbours; how many paths there are, the largest ratio (None: infinite), and deltas
EXAMPLES: dict[str, tuple[Callable[..., Any], Any, Any, int, int | None, dict[float, str]]] = {
    "randomised response": (respond, BITS, one_bit, 64, 3, {0: "0.50000000000000", 0.5: "0.33781968"}),
    "shuffled": (shuffled, range(9), one_step, 2304, 3, {0.5: "0.0462911948", 0.25: "0.0957025750"}),
    "one of six": (one_of_six, range(6), "all", 36, 3, {0.5: "0.1689098"}),
    "uniform": (uniform, range(8), one_step, 48, None, dict.fromkeys((0, 0.5, 5, 1000, 10**9), "0.166666666667")),
    "eight bits that count zero twice": (geometric, range(6), one_step, 3072, 4, {0.7: "0.24828"}),
}


@for_each("name", EXAMPLES)
def test_a_finite_mechanism_has_its_known_losses(name: str) -> None:
    mechanism, domain, neighbours, paths, ratio, deltas = EXAMPLES[name]
    found = replay(mechanism, domain, neighbours)
    assert found.paths == paths
    assert all(near(found.delta(epsilon), delta) for epsilon, delta in deltas.items())
    if ratio is None:
        assert found.infinite
        assert found.epsilon == Enclosure(math.inf, math.inf)
    else:
        assert found.worst.p / found.worst.q == ratio
        assert found.epsilon.lower <= log(ratio) <= found.epsilon.upper < found.epsilon.lower + 1e-15


def test_uniform_noise_has_an_epsilon_at_a_delta_alone() -> None:
    found = replay(uniform, range(8), one_step)
    assert (found.worst.p, found.worst.q) == (Fraction(1, 6), 0)
    assert found.epsilon_at(Fraction(1, 6)) == Enclosure(0.0, 0.0)
    assert math.isinf(found.epsilon_at(Fraction(1, 7)).lower)
    assert near(found.delta(Fraction(1, 3)), "0.166666666667")


def test_the_tail_of_eight_bits_ends() -> None:
    found = replay(geometric, range(100, 103), one_step, parameters={"clamped": False})
    assert (found.paths, found.infinite) == (1536, True)
    assert near(found.delta(0.7), "0.2502")
    assert found.worst.p == found.laws[found.worst.first][92]  # 100 - 8, and 93 - 1 is not there
    assert found.scope == "the 2 adjacent pairs of the 3 datasets listed, all outputs, at clamped=False"


def test_the_exponential_mechanism() -> None:
    databases = list(itertools.combinations_with_replacement(range(5), 5))
    found = replay(exponential, databases, lambda a, b: (Counter(a) - Counter(b)).total() == 1)
    assert near(found.epsilon, "0.934453610")


def test_the_catalogue_s_own_programs_lose_what_they_claim() -> None:
    for epsilon in (0.5, 1.0, 2.0):
        entry = local.k_randomised_response.with_parameters({"epsilon": epsilon, "k": 5})
        assert math.isclose(replay(entry.run, range(5), "all").epsilon.upper, epsilon, rel_tol=1e-14)


def test_an_upper_bound_says_what_it_is_about() -> None:
    found = replay(respond, [(0,), (1,)], "all")
    for delta, ratio in ((0.0, 3), (0.25, 2)):  # (3/4 - 1/4) / (1/4)
        bound = found.upper_bound(delta)
        assert (bound.label, bound.arithmetic) == (Label.EXACT_FINITE, Arithmetic.RATIONAL)
        assert bound.scope == "the one adjacent pair of the 2 datasets listed, all outputs"
        assert bound.epsilon_lower is not None
        assert bound.epsilon_lower <= log(ratio) <= bound.epsilon_upper


def random_program(seed: int) -> Any:
    """A function that draws in many ways; its shape is fixed by the seed, its outputs by data and draws."""
    shape = np.random.default_rng(seed)
    steps = [(int(shape.integers(4)), int(shape.integers(2, 4))) for _ in range(3)]

    def program(data: int, rng: Any) -> int:
        value = data
        for kind, size in steps:
            if kind == 0:
                value = (3 * value + int(rng.integers(size))) % 7
            elif kind == 1 and rng.random() < (value + 1) / 8:
                value = (value + 2) % 7
            elif kind == 2:
                value = (value + max(0, int(rng.integers(1 + value + size)) - value)) % 7
            elif kind == 3 and rng.integers(2 + value) == 0:
                return -1
        return value

    def moves(kind: int, size: int, value: int) -> list[tuple[int, Fraction]]:
        if value == -1:
            return [(-1, Fraction(1))]
        if kind == 0:
            return [((3 * value + k) % 7, Fraction(1, size)) for k in range(size)]
        if kind == 1:
            return [((value + 2) % 7, Fraction(value + 1, 8)), (value, Fraction(7 - value, 8))]
        if kind == 2:
            total = 1 + value + size
            more = [((value + k) % 7, Fraction(1, total)) for k in range(1, size + 1)]
            return [(value, Fraction(1 + value, total)), *more]
        return [(-1, Fraction(1, 2 + value)), (value, 1 - Fraction(1, 2 + value))]

    def law(data: int) -> Law:
        """The same by following the probabilities of the states."""
        states = {data: Fraction(1)}
        for kind, size in steps:
            after: Counter[int] = Counter()
            for value, mass in states.items():
                for target, chance in moves(kind, size, value):
                    after[target] += mass * chance  # type: ignore[assignment]
            states = dict(after)  # type: ignore[arg-type]
        return {value: mass for value, mass in states.items() if mass}

    return program, law


@for_each("seed", range(12))
def test_random_programs_have_the_law_of_their_chain_of_states(seed: int) -> None:
    program, law = random_program(seed)
    found = replay(program, range(7), "all")
    assert [dict(each) for each in found.laws] == [law(data) for data in range(7)]


def test_one_dataset_after_another_starts_anew() -> None:
    found = replay(lambda data, rng: [rng.integers(2), 0, rng.integers(2)][data], [0, 1, 2], "all")
    assert [len(law) for law in found.laws] == [2, 1, 2]


# --- losses of laws, against a search over all events -----------------------------------------------------------------


def random_law(rng: np.random.Generator, outputs: int = 5) -> Law:
    weights = [int(weight) for weight in rng.integers(0, 6, outputs)]
    weights[int(rng.integers(outputs))] += 1
    return {output: Fraction(weight, sum(weights)) for output, weight in enumerate(weights) if weight}


def events(p: Law, q: Law) -> list[tuple[Fraction, Fraction]]:
    outputs = sorted({*p, *q})
    subsets = (event for size in range(len(outputs) + 1) for event in itertools.combinations(outputs, size))
    return [
        (
            sum((p.get(each, Fraction(0)) for each in event), Fraction(0)),
            sum((q.get(each, Fraction(0)) for each in event), Fraction(0)),
        )
        for event in subsets
    ]


def losses_of(p: Law, q: Law) -> FiniteLosses:
    return FiniteLosses.of([0, 1], [(0, 1)], [p, q])


@for_each("seed", range(40))
def test_losses_are_those_of_the_worst_of_all_events(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = random_law(rng), random_law(rng)
    found, one_way, both = losses_of(p, q), events(p, q), [*events(p, q), *events(q, p)]
    sure = [a for a, b in both if b == 0]
    largest = max(a / b for a, b in both if b)
    if max(sure) > 0:
        assert found.infinite
        assert found.worst.p == max(sure)
    else:
        assert found.worst.p / found.worst.q == largest
        assert found.epsilon.lower <= log(largest) <= found.epsilon.upper
        assert (found.worst.p, found.worst.q) in (one_way if found.worst.first == 0 else events(q, p))
    for epsilon in (0.0, 0.3, 1.0):
        excess, delta = max(float(a) - math.exp(epsilon) * float(b) for a, b in both), found.delta(epsilon)
        assert delta.lower - 1e-14 <= excess <= delta.upper + 1e-14
        assert delta.upper - delta.lower < 1e-15
    for least_delta in (Fraction(0), Fraction(1, 10), Fraction(1, 3)):
        at_delta = found.epsilon_at(least_delta)
        if max(sure) > least_delta:
            assert math.isinf(at_delta.lower)
            continue
        least = max(1, max((a - least_delta) / b for a, b in both if b))
        assert at_delta.lower <= log(least) <= at_delta.upper
        assert found.delta(max(at_delta.lower - 1e-9, 0.0)).upper >= least_delta or least == 1
        assert found.delta(at_delta.upper + 1e-15).lower <= least_delta
    steps = found.steps(0, 1)
    curve = [(Fraction(0), Fraction(0)), *zip(*map(itertools.accumulate, zip(*steps, strict=True)), strict=True)]
    assert curve[-1] == (1, 1)
    assert all(point in one_way for point in curve)
    for (p1, q1), (p2, q2) in itertools.pairwise(curve):
        assert all(a <= p1 + (p2 - p1) * (b - q1) / (q2 - q1) for a, b in one_way if q1 < b <= q2)
    ratios = [a / b if b else math.inf for a, b in steps]
    assert ratios == sorted(set(ratios), reverse=True)  # concave, and no vertex on a line


def test_of_equal_losses_the_likelier_event_is_the_worst() -> None:
    laws = [{0: Fraction(1, 2), 1: Fraction(1, 2)}, {0: Fraction(1, 4), 1: Fraction(3, 4)}]
    rare = [{0: Fraction(1, 50), 1: Fraction(49, 50)}, {0: Fraction(1, 100), 1: Fraction(99, 100)}]
    worst = FiniteLosses.of(range(4), [(0, 1), (2, 3)], [*laws, *rare]).worst
    assert (worst.first, worst.second, worst.p, worst.q) == (0, 1, Fraction(1, 2), Fraction(1, 4))


def test_losses_of_extreme_laws() -> None:
    """Infinite ones are worse than any other, equal laws lose nothing, and what is beyond doubles is still finite."""
    rare, tiny = Fraction(1, 10**9), Fraction(1, 2**5000)
    found = losses_of({0: rare, 1: 1 - rare}, {1: Fraction(1)})
    assert found.infinite
    assert found.delta(10**6).upper == pytest.approx(1e-9)
    assert found.epsilon_at(rare).upper == 0.0
    found = losses_of({0: Fraction(1)}, {0: Fraction(1)})
    assert (found.epsilon.lower, found.epsilon.upper, found.delta(0).upper, found.infinite) == (0.0, 0.0, 0.0, False)
    found = losses_of({0: tiny, 1: 1 - tiny}, {0: 1 - tiny, 1: tiny})
    assert found.epsilon.lower <= log(2**5000 - 1) <= found.epsilon.upper
    assert found.delta(3000).lower > 0.999  # e^3000 is no double either


def test_a_bound_is_for_the_delta_that_it_states() -> None:
    """One third as a double is less than one third, and the loss there is larger."""
    third = Fraction(1, 3)
    found = losses_of({0: Fraction(2, 3), 1: third}, {0: Fraction(1, 10**40), 1: 1 - Fraction(1, 10**40)})
    assert found.upper_bound(Fraction(2, 3)).epsilon_upper == found.epsilon_at(2 / 3).upper > 50.0
    assert found.epsilon_at(Fraction(2, 3)).upper < 0.41


SURE: Law = {0: Fraction(1)}


@for_each(
    ("call", "message"),
    [
        (lambda: losses_of({0: Fraction(1, 2)}, SURE), "law 0 must have probabilities that sum to 1"),
        (lambda: losses_of(SURE, {0: Fraction(2), 1: Fraction(-1)}), "law 1 must have probabilities that sum to 1"),
        (lambda: losses_of(SURE, SURE).delta(-1), "epsilon must be finite and at least 0, got -1"),
        (lambda: losses_of(SURE, SURE).epsilon_at(2), "delta must be a probability, got 2"),
        (lambda: FiniteLosses.of([0, 1], [(0, 2)], [SURE] * 2), "places of two datasets"),
    ],
)
def test_what_is_no_law_or_out_of_range_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        call()
