"""Code that is followed loses what its reading loses, and what cannot be followed is refused."""

from __future__ import annotations

import contextlib
import functools
import math
import random
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import AdjacentPair, ApproximateDP, GaussianDP, PureDP, Relation
from dpaudit.errors import InvalidSpec, OutOfTime, UnsoundAudit
from dpaudit.verify.deadline import within
from dpaudit.verify.language import read
from dpaudit.verify.replay import no_other_randomness
from dpaudit.verify.witnesses import OutsideIntegrals, pair_loss
from dpaudit.verify.witnesses.followed import followed
from dpaudit.verify.witnesses.losses import loss_between
from dpaudit.verify.witnesses.outcomes import Outcomes
from tests.cases import for_each
from tests.verify.random_programs import mechanism

Function = Callable[..., Any]


def both(function: Function, first: Any, second: Any, **parameters: Any) -> tuple[Outcomes, Outcomes]:
    return followed(function, first, second, parameters)


def loss_of(function: Function, first: Any, second: Any, **parameters: Any) -> float:
    return loss_between(*both(function, first, second, **parameters)).loss.lower


# --- beside what is read ------------------------------------------------------------------------------------------


def compared_with_its_reading(seed: int) -> int:
    """How many pairs of the random mechanism of a seed both ways have a loss for."""
    drawn, scope, number = mechanism(seed), dict[str, Any](), 0
    exec(drawn.source, scope)
    program = read(drawn.source)
    parameters = {
        name: int(value) if name in program.integers else float(value) for name, value in drawn.parameters.items()
    }
    for first, second in drawn.pairs:
        with contextlib.suppress(OutsideIntegrals, InvalidSpec):
            theirs = pair_loss(program, first, second, drawn.parameters)
            ours = loss_between(*both(scope["f"], list(map(float, first)), list(map(float, second)), **parameters))
            number += 1
            for one, other in (
                (ours.loss.lower, theirs.loss.lower),
                (ours.forward.loss.lower, theirs.forward.loss.lower),
            ):
                if theirs.exact:
                    assert one == pytest.approx(other, rel=1e-8, abs=1e-8), drawn.source
    return number


def test_random_programs_lose_what_their_readings_lose() -> None:
    with no_other_randomness():  # once for all: it looks at everything that is alive
        assert sum(map(compared_with_its_reading, range(40))) > 100


@pytest.mark.slow
def test_many_random_programs_lose_what_their_readings_lose() -> None:
    with no_other_randomness():
        assert sum(map(compared_with_its_reading, range(1_000, 3_000))) > 3_000


# --- ordinary code ------------------------------------------------------------------------------------------------

HIGH = 10.0


def clipped_mean(rows: list[float], rng: Any, eps: float) -> float:
    values = np.clip(np.asarray(rows, float), 0.0, HIGH)
    return float(values.mean() + rng.laplace(scale=HIGH / (len(rows) * eps)))


def made(eps: float) -> Function:
    def run(rows: list[str], rng: Any, **_: Any) -> dict[str, float]:
        return {key: rows.count(key) + rng.laplace(scale=1.0 / eps) for key in ("a", "b")}

    return run


def vector(q: list[float], rng: Any, eps: float) -> Any:
    return np.asarray(q) + rng.laplace(scale=1.0 / eps, size=len(q))


def shared(q: list[float], rng: Any, eps: float) -> Any:
    noise = rng.laplace(scale=1.0 / eps)
    return [x + noise for x in q]


def redrawn_twice(q: float, rng: Any, eps: float) -> Any:
    noisy = q + rng.laplace(scale=1.0 / eps)
    return noisy if noisy > 0.0 else q + rng.laplace(scale=1.0 / eps)


def winner(q: list[float], rng: Any, eps: float) -> int:
    noisy = [x + rng.laplace(scale=2.0 / eps) for x in q]
    return noisy.index(max(noisy))


def positive(q: float, rng: Any) -> bool:
    return bool(abs(q + rng.laplace()) > 1.0)


def one_sided(q: float, rng: Any) -> Any:
    return q + rng.exponential()


def median(rows: list[float], rng: Any) -> tuple[float, str]:
    return float(np.median(rows)) + rng.laplace(), "median"


def half_exact(q: list[float], rng: Any) -> tuple[float, float]:
    return q[0], q[1] + rng.laplace()


@for_each(
    "function, first, second, parameters, loss",
    [
        (clipped_mean, [1.0, 5.0, 20.0, 3.0], [1.0, 5.0, -4.0, 3.0], {"eps": 0.5}, 0.5),
        (made(0.5), ["a", "b", "b"], ["a", "b"], {}, 0.5),
        (functools.partial(vector, eps=0.25), [0, 0, 0], [1, -1, 0], {}, 0.5),
        (shared, [0, 0], [1, 1], {"eps": 2.0}, 2.0),
        (shared, [0, 0], [1, 0], {"eps": 2.0}, math.inf),
        (positive, 0.0, 1.0, {}, math.log((1.0 + math.exp(-2.0)) / 2.0) + 1.0),
        (winner, [1, 0, 0, 0, 0], [0, 1, 1, 1, 1], {"eps": 1.0}, None),
        (one_sided, 0.0, 1.0, {}, math.inf),
        (lambda q, rng: q * (1.0 + rng.laplace()), 0, 1, {}, math.inf),
        (lambda q, rng: q + rng.laplace() + 0.0 * rng.laplace(), 0, 1, {}, 1.0),
        (median, [1.0, 2.0, 5.0], [1.0, 3.5, 5.0], {}, 1.5),
        (half_exact, [0.0, 0.0], [0.0, 1.0], {}, 1.0),
        (half_exact, [0.5, 0.0], [0.0, 0.0], {}, math.inf),
    ],
)
def test_ordinary_code_has_its_loss(function: Function, first: Any, second: Any, parameters: Any, loss: Any) -> None:
    found = loss_of(function, first, second, **parameters)
    if loss is None:
        program = read("def f(q, rng):\n    ys = [x + rng.laplace(scale=2) for x in q]\n    return ys.index(max(ys))\n")
        loss = pair_loss(program, first, second, {}).loss.lower
    assert found == pytest.approx(loss, rel=1e-9)


def test_a_threshold_of_the_noise_itself_is_followed() -> None:
    found = loss_between(*both(redrawn_twice, 0.0, 1.0, eps=1.0)).loss
    assert 1.0 < found.lower < 2.0
    assert found.upper == math.inf  # a family of events


# --- what is refused ----------------------------------------------------------------------------------------------

DREW: list[float] = []
OWN = np.random.default_rng(1)


def remembers(q: float, rng: Any) -> Any:
    DREW.append(1.0)
    return q + rng.laplace() + len(DREW)


def catches(q: float, rng: Any) -> float:
    with contextlib.suppress(Exception):
        return float(round(q + rng.laplace()))
    return 0.0


def asks_the_type(q: float, rng: Any) -> float:
    noisy = rng.laplace()
    return q + noisy if isinstance(noisy, float) and type(noisy) is float else 0.0


def far_branch(q: float, rng: Any) -> int:
    return int(np.array([rng.laplace()], dtype=object)[0] > 100.0 and q > 0)


def with_seeds(q: float, rng: Any) -> Any:
    OWN.random()
    return q + rng.laplace()


REFUSED: list[tuple[Function, str]] = [
    (lambda q, rng: round(q + rng.laplace()), "not used by `round`"),
    (lambda q, rng: math.exp(q + rng.laplace()), "not used by `float`"),
    (lambda q, rng: np.exp(q + rng.laplace()), "not used by `exp`"),
    (lambda q, rng: rng.laplace() * rng.laplace(), "a product of two draws"),
    (lambda q, rng: f"{q + rng.laplace():.2f}", "not used by `format`"),
    (lambda q, rng: q + rng.gamma(2.0), "rng.gamma draws from a continuous law"),
    (lambda q, rng: q + rng.binomial(3, 0.5), "rng.binomial"),
    (lambda q, rng: q + rng.uniform(), "was used otherwise"),
    (lambda q, rng: (q + (d := rng.laplace())) - d, "rounding"),
    (lambda q, rng: 1e17 + q + rng.laplace(), "rounding"),
    (lambda q, rng: {q + rng.laplace()}, "not used by `hash`"),
    (lambda q, rng: rng.laplace(scale=abs(q + rng.laplace())), "scale"),
    (catches, "not used by `round`"),
    (remembers, "does not do what was followed"),
    (asks_the_type, "does not do what was followed"),
]


@for_each("function, reason", REFUSED)
def test_what_cannot_be_followed_is_refused(function: Function, reason: str) -> None:
    with pytest.raises(OutsideIntegrals, match=reason):
        followed(function, 1.0, 0.0, {})


def test_a_generator_of_its_own_is_seen() -> None:
    with pytest.raises(UnsoundAudit, match="elsewhere than rng"):
        followed(with_seeds, 1.0, 0.0, {})


def test_a_branch_that_hardly_any_run_takes_is_followed() -> None:
    ours, theirs = both(far_branch, 1.0, 0.0)
    assert loss_between(ours, theirs).loss.lower == math.inf
    assert len(ours.paths) == 2


def test_numbers_that_only_rounding_parts_say_nothing() -> None:
    def total(rows: list[float], rng: Any) -> tuple[float, float]:
        return sum(rows), sum(rows) + rng.exponential()

    with pytest.raises(OutsideIntegrals, match="rounding"):
        both(total, [0.1, 0.2, 0.3], [0.3, 0.2, 0.1])

    def one_draw(rows: list[float], rng: Any) -> list[float]:
        noise = rng.laplace()
        return [rows[0] + noise, rows[1] + rows[2] + noise]

    with pytest.raises(OutsideIntegrals, match="rounding"):
        both(one_draw, [0.1, 0.5, 0.2], [0.2, 0.7, 0.1])  # both move by .1, but for rounding


# --- the door -----------------------------------------------------------------------------------------------------


def total_of(rows: list[float], rng: Any, eps: float) -> float:
    return float(np.sum(np.clip(rows, 0.0, 1.0)) + rng.laplace(scale=1.0 / eps))


def gaussian(rows: list[float], rng: Any, sigma: float) -> Any:
    return np.array([np.sum(rows), len(rows)]) + rng.normal(0.0, sigma, 2)


def test_a_pair_of_records_refutes_a_claim_without_runs() -> None:
    pair = AdjacentPair([0.5, 1.0], [0.5])
    given: dict[str, Any] = {"adjacency": "add_or_remove_one", "pair": pair, "runs": 0, "parameters": {"eps": 2.0}}
    found = dpaudit.bracket(total_of, PureDP(1.0), **given)
    assert found.verdict is dpaudit.BracketVerdict.REFUTED
    assert found.ends[0] == pytest.approx(2.0, rel=1e-6)
    assert dpaudit.bracket(total_of, PureDP(2.0), **given).verdict is not dpaudit.BracketVerdict.REFUTED
    found = dpaudit.bracket(total_of, PureDP(1.0), **{**given, "pair": AdjacentPair([1.0, 1.0, 1.0], [0.5])})
    assert not found.refuted
    assert "are not at distance 1 under add_or_remove_one" in str(found)


def test_the_scope_names_what_may_keep_or_tell_something() -> None:
    def total(rows: list[float], rng: Any) -> float:
        return math.floor(len(rows) + time.time() * 0.0) + rng.laplace()  # type: ignore[no-any-return]

    found = dpaudit.bracket(total, PureDP(0.5), pair=AdjacentPair([0.5, 1.0], [0.5]), runs=0)
    assert found.refuted
    assert found.refuting[0].scope.endswith(", if nothing is kept or told by time")


def test_of_records_a_pair_of_the_dearest_case_is_followed() -> None:
    def total(rows: list[float], rng: Any, eps: float) -> float:
        return float(sum(min(max(x, 0.0), 1.0) for x in rows) + rng.laplace(scale=1.0 / eps))

    for adjacency in ("add_or_remove_one", "replace_one"):
        found = dpaudit.bracket(total, PureDP(1.0), adjacency=adjacency, parameters={"eps": 2.0}, runs=0)
        assert found.refuted
        assert found.ends[0] == pytest.approx(2.0)  # lost by one pair
        assert found.ends[1] == pytest.approx(2.0)  # proved for all inputs


def test_a_pair_that_the_claim_says_nothing_of_refutes_nothing() -> None:
    pair = AdjacentPair([0.5, 1.0], [0.5])
    for relation, refuted in ((Relation.ADD_OR_REMOVE_ONE, True), (Relation.REPLACE_ONE, False)):
        found = dpaudit.bracket(total_of, PureDP(1.0, relation), pair=pair, runs=0, parameters={"eps": 2.0})
        assert found.refuted is refuted


def test_a_pair_is_compared_at_a_delta() -> None:
    pair, mu = AdjacentPair([0.0, 1.0], [0.0]), math.sqrt(2.0) / 2.0
    for claim, holds in ((GaussianDP(mu * 1.02), True), (GaussianDP(mu * 0.98), False)):
        found = dpaudit.bracket(gaussian, claim, pair=pair, runs=0, parameters={"sigma": 2.0})
        assert found.refuted is not holds
    at_delta = GaussianDP(mu).epsilon_at(0.01)
    for epsilon, holds in ((at_delta + 0.01, True), (at_delta - 0.01, False)):
        found = dpaudit.bracket(gaussian, ApproximateDP(epsilon, 0.01), pair=pair, runs=0, parameters={"sigma": 2.0})
        assert found.refuted is not holds


def test_python_has_its_own_words_afterwards() -> None:
    before = float, max, min
    with pytest.raises(OutsideIntegrals):
        followed(lambda q, rng: 1 / 0, 0.0, 1.0, {})
    assert (float, max, min) == before
    assert random.Random(0).random() > 0.0
    assert Fraction(float("0.5")) == Fraction(1, 2)


def test_code_that_never_ends_ends_with_the_time() -> None:
    def stuck(q: float, rng: Any) -> Any:
        while q > 0.0:
            pass
        return q + rng.laplace()

    with pytest.raises(OutOfTime, match="max_time_s"), within(0.5):
        followed(stuck, 0.0, 1.0, {})
