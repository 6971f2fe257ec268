"""Code that is made to be followed wrongly: what is said of it is true, or nothing is said.

Of each attack the loss is known. Many hide what they do in a branch that runs at random never take.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import functools
import itertools
import math
import numbers
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpaudit.errors import InvalidSpec, UnsoundAudit
from dpaudit.verify.witnesses import OutsideIntegrals
from dpaudit.verify.witnesses.followed import followed
from dpaudit.verify.witnesses.losses import loss_between
from tests.cases import for_each

Function = Callable[..., Any]
INF = math.inf
FAR = 1e3  # a Laplace draw of scale 1 is that large once in e^1000 runs


def lost(function: Function, first: Any, second: Any) -> tuple[float, float]:
    loss = loss_between(*followed(function, first, second, {})).loss
    return loss.lower, loss.upper


def holds(function: Function, first: Any, second: Any, truth: float) -> None:
    with contextlib.suppress(OutsideIntegrals, UnsoundAudit):
        low, high = lost(function, first, second)
        assert low <= truth * (1.0 + 1e-9) + 1e-9
        assert high >= truth * (1.0 - 1e-9)


def rare(leak: Callable[[float, Any, Any], Any]) -> Function:
    """What is given away in a branch that is hardly ever taken; of a leak that gives nothing the loss is 0."""

    def run(q: float, rng: Any) -> Any:
        noisy = rng.laplace(size=2)
        return leak(q, noisy[0], noisy) if noisy[0] > FAR else None

    return run


def attempted(step: Callable[[Any], Any]) -> Function:
    """Gives away whether a step of numbers fails."""

    def leak(q: float, one: Any, _: Any) -> Any:
        try:
            step(one)
        except Exception:
            return q
        return None

    return rare(leak)


IN_A_BRANCH: list[Function] = [
    attempted(lambda noise: noise < INF),
    attempted(lambda noise: noise + INF),
    attempted(lambda noise: math.nan >= noise),
    attempted(np.exp),
    attempted(np.isnan),
    attempted(round),
    attempted(int),
    attempted(str),
    attempted(hash),
    attempted(pickle.dumps),
    attempted(lambda noise: noise.is_integer()),
    attempted(lambda noise: noise % 1.0),
    attempted(lambda noise: np.array([noise], float)),
    rare(lambda q, one, _: q if len({one + 1.0, 1.0 + one}) > 1 else None),
    rare(lambda q, one, _: q if {one: 1}.get(one + 0.0) is None else None),
    rare(lambda q, one, _: q if copy.deepcopy(one) < FAR / 2 else None),
    rare(lambda q, one, _: q if not isinstance(one, numbers.Real) else None),
    rare(lambda q, one, _: q if not isinstance(one, np.floating) else None),
    rare(lambda q, one, _: q if type(one) is not np.float64 else None),
    rare(lambda q, _, both: q if both.dtype == object else None),
    rare(lambda q, _, both: q if (both[1] > 0.0) is True else None),
    rare(lambda q, one, _: q if hasattr(one, "run") or hasattr(one, "noisy") else None),
    rare(lambda q, _, both: q if "object" in repr(type(both[1])) else None),
    rare(lambda q, one, _: q if np.float32(one) == one else None),
    rare(lambda q, one, _: q if one != one else None),
    rare(lambda q, one, _: q if one in (math.nan, INF, -INF) else None),
    rare(lambda q, one, _: q if max(one, INF) < INF or max(-INF, one) < 0.0 else None),
    rare(lambda q, one, _: q if type(q) is not float else None),
    rare(lambda q, one, _: q if float.__name__ != "float" else None),
]


@for_each("function", IN_A_BRANCH)
def test_a_leak_that_only_stand_ins_show_is_not_told(function: Function) -> None:
    holds(function, 0.0, 1.0, 0.0)


@for_each(
    "function",
    [
        rare(lambda q, one, _: q if isinstance(one, numbers.Real) else None),
        rare(lambda q, one, _: q if type(one) is np.float64 else None),
        rare(lambda q, _, both: q if both.dtype == float else None),
        rare(lambda q, one, _: q if hash(one) == hash(one + 0.0) else None),
        rare(lambda q, one, _: q if math.isfinite(one) else None),
        rare(lambda q, one, _: q if len({one + 1.0, 1.0 + one}) == 1 else None),
        rare(lambda q, one, _: q if one < INF else None),
        rare(lambda q, one, _: q),
    ],
)
def test_a_leak_that_numbers_show_is_not_overlooked(function: Function) -> None:
    holds(function, 0.0, 1.0, INF)


# --- the generator ------------------------------------------------------------------------------------------------


def into_a_buffer(q: list[float], rng: Any) -> Any:
    noise = np.zeros(2)
    rng.standard_normal(out=noise)
    return q[0] + noise


def in_single_precision(q: list[float], rng: Any) -> Any:
    return np.float32(q[0] * 1e6) + rng.laplace()


def half_precision(q: list[float], rng: Any) -> Any:
    return np.asarray(q, np.float16) * np.float16(1e3) + rng.laplace()


def through_another_s_hands(q: list[float], rng: Any) -> Any:
    return np.asarray(q) + np.random.default_rng(rng).laplace(size=2)


class Holder:
    def __init__(self, rng: Any) -> None:
        self.draw = rng.laplace

    def noisy(self, q: list[float]) -> list[Any]:
        return [x + self.draw() for x in q]


DRAWN: list[tuple[Function, float]] = [
    (lambda q, rng: rng.laplace(np.asarray(q, float), 1.0), 2.0),  # a draw for each
    (lambda q, rng: rng.laplace(q, [1.0, 0.5]), 3.0),
    (lambda q, rng: np.asarray(q) + rng.laplace(0.0, [1.0, 0.5]), 3.0),
    (lambda q, rng: np.asarray(q) + rng.laplace(0.0, [[1.0], [0.5]], (2, 2)), 6.0),
    (lambda q, rng: np.asarray(q) + rng.laplace(), 1.0),  # one for both
    (lambda q, rng: rng.exponential([1.0, 2.0]) + q, INF),
    (lambda q, rng: q[0] + rng.exponential(size=100), INF),
    (lambda q, rng: [x + rng.laplace(0.0, 1.0, ()) for x in q], 2.0),
    (lambda q, rng: Holder(rng).noisy(q), 2.0),
    (through_another_s_hands, 2.0),
    (lambda q, rng: q[0] if rng.random() < 0.75 else 1.0 - q[0], math.log(3.0)),
    (lambda q, rng: q[0] + rng.integers(3) * rng.laplace(), INF),  # in a third of all runs without noise
    (lambda q, rng: (rng.integers(3), q[0] + rng.laplace()), 1.0),
    (lambda q, rng: rng.permutation([x + rng.laplace() for x in q])[0] > 9.0, 1.0),
    (lambda q, rng: rng.choice(2, p=[0.25, 0.75]) * 1e-3 + (q[0] + rng.laplace() > 5.0), 1.0),
]
REFUSED: list[tuple[Function, str]] = [
    (lambda q, rng: np.asarray(q) + rng.standard_normal(2, np.float32), "followed with size alone"),
    (lambda q, rng: q[0] + rng.normal(0.0, 1.0, 2, 3), "followed with loc, scale, size alone"),
    (into_a_buffer, "followed with size alone"),
    (in_single_precision, "does not do what was followed"),
    (half_precision, "does not do what was followed"),
    (lambda q, rng: np.random.Generator(rng.bit_generator).laplace() + q[0], "bit_generator"),
    (lambda q, rng: rng.spawn(1)[0].laplace() + q[0], "spawn"),
    (lambda q, rng: copy.copy(rng).laplace() + q[0], "copy"),
    (lambda q, rng: q[0] + rng.laplace(scale=-1.0), "scale"),
    (lambda q, rng: rng.random() < rng.laplace() + q[0], "rounding"),
    (lambda q, rng: rng.laplace() + q[0] < rng.random(), "noisy number beside"),
    (lambda q, rng: rng.laplace() * rng.random() + q[0], "noisy number beside"),
    (lambda q, rng: rng.laplace(scale=rng.random()) + q[0], "was used otherwise"),
    (lambda q, rng: q[rng.integers(2)] if rng.laplace() > 0 else rng.random(), "an output that is a"),
    (lambda q, rng: q[0] + rng.laplace(scale=math.nan), "scale"),
    (lambda q, rng: (x + rng.laplace() for x in q), "generator"),
    (lambda q, rng: map(rng.laplace, q), "map"),
    (lambda q, rng: q[0] + rng.exponential(size=3000), "too many draws"),
]


@for_each("function, loss", DRAWN)
def test_what_is_drawn_is_what_numpy_draws(function: Function, loss: float) -> None:
    assert lost(function, [0.0, 0.0], [1.0, 1.0])[0] == pytest.approx(loss)


@for_each("function, reason", REFUSED)
def test_what_numpy_draws_otherwise_is_refused(function: Function, reason: str) -> None:
    with pytest.raises(OutsideIntegrals, match=reason):
        followed(function, [0.0, 0.0], [1.0, 1.0], {})


# --- what is kept -------------------------------------------------------------------------------------------------


def in_place(q: list[float], rng: Any) -> Any:
    q.append(5.0)
    return len(q) + rng.laplace()


def keeps_its_answer() -> Function:
    known: dict[float, Any] = {}

    def run(q: float, rng: Any) -> Any:
        if q not in known:
            known[q] = q + rng.laplace()
        return known[q]

    return run


def keeps_a_draw() -> Function:
    drawn: list[Any] = []

    def run(q: float, rng: Any) -> Any:
        drawn.append(rng.laplace())
        return q + drawn[0] + drawn[-1]

    return run


def remembers_the_generator() -> Function:
    known: dict[int, Any] = {}

    def run(q: float, rng: Any) -> Any:
        return known.setdefault(id(rng), q + rng.laplace())

    return run


def keeps_a_threshold() -> Function:
    drawn: list[Any] = []

    def run(q: float, rng: Any) -> Any:
        drawn.append(rng.laplace())
        return q + rng.laplace() > drawn[0] + 0.0 * drawn[-1]

    return run


def changes(after: int) -> Function:
    """Tells its data, or asks another question, after some runs."""
    count = itertools.count()

    def run(q: float, rng: Any) -> Any:
        noise = rng.laplace()
        return (noise > 0.0) if next(count) < after else (noise > 1.0)

    return run


def takes_turns() -> Function:
    turns = itertools.cycle((0.0, 1.0))
    return lambda q, rng: next(turns) + q + rng.laplace()


def test_data_that_a_run_changes_are_whole_in_the_next() -> None:
    assert lost(in_place, [1.0], [1.0, 1.0])[0] == pytest.approx(1.0)
    data = [1.0]
    lost(in_place, data, [1.0, 1.0])
    assert data == [1.0]


@for_each(
    "function",
    [
        keeps_its_answer(),
        keeps_a_draw(),
        remembers_the_generator(),
        keeps_a_threshold(),
        takes_turns(),
        *map(changes, (1, 2, 3)),
    ],
)
def test_what_keeps_something_is_refused(function: Function) -> None:
    with pytest.raises((OutsideIntegrals, UnsoundAudit)):
        followed(function, 0.0, 1.0, {})


# --- outputs ------------------------------------------------------------------------------------------------------

Pair = collections.namedtuple("Pair", "value")
List, Record = type("List", (list,), {}), type("Record", (dict,), {})
Matrix = functools.partial(np.ndarray.__new__, type("Matrix", (np.ndarray,), {}), 0)


class Silent(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "x"


def carrying(value: Any, secret: float) -> Any:
    value.secret = secret
    return value


TOLD: list[Function] = [
    lambda q, rng: 0 if q else 0.0,
    lambda q, rng: 0.0 if q else -0.0,
    lambda q, rng: True if q else 1,
    lambda q, rng: np.float32(0.5) if q else np.float64(0.5),
    lambda q, rng: -np.array([0.0 * q, rng.laplace()]) if q else np.array([0.0 * q, rng.laplace()]),
    lambda q, rng: (1.0,) if q else [1.0],
    lambda q, rng: Pair(1.0) if q else (1.0,),
    lambda q, rng: {1: 2} if q else collections.Counter({1: 2}),
    lambda q, rng: {"a": 1, "b": 2} if q else {"b": 2, "a": 1},
    lambda q, rng: np.zeros((0, 3)) if q else np.zeros((0, 5)),
    lambda q, rng: np.zeros(2, np.float32) if q else np.zeros(2),
    lambda q, rng: np.zeros(1) if q else [0.0],
    lambda q, rng: math.nan if q else INF,
    lambda q, rng: "None" if q else None,
    lambda q, rng: [rng.laplace(), 1.0] if q else [rng.laplace(), 1],
    lambda q, rng: np.float64(rng.laplace()) if q else rng.laplace(),
    lambda q, rng: np.ma.array([q], mask=[True]),
    lambda q, rng: np.array([(1, 2.0)], [("a" if q else "b", int), ("c", float)])[0],
    lambda q, rng: collections.defaultdict(list if q else int, a=1.0),
    lambda q, rng: Silent("a" if q else "b"),
    *(lambda q, rng, of=of: carrying(of(), q) for of in (List, Record, Matrix)),
]


@for_each("function", TOLD)
def test_what_tells_two_outputs_apart_is_not_overlooked(function: Function) -> None:
    holds(function, 0, 1, INF)


@for_each(
    "function",
    [
        lambda q, rng: [math.nan, INF, -0.0, True, None, "a", 1.5, rng.laplace()],
        lambda q, rng: {"b": rng.laplace(), "a": (1, np.zeros((0, 3)), np.int8(3))},
        lambda q, rng: max(rng.laplace(), -INF),
        lambda q, rng: bool(rng.laplace()) and rng.laplace() > 0.5,
    ],
)
def test_what_is_alike_is_not_told_apart(function: Function) -> None:
    assert lost(function, 0, 1) == pytest.approx((0.0, 0.0))


def test_of_a_zero_whose_sign_is_that_of_noise_not_all_is_said() -> None:
    assert lost(lambda q, rng: 0.0 * rng.laplace(), 0, 1) == (0.0, INF)


# --- numbers ------------------------------------------------------------------------------------------------------


def doubled(q: float, rng: Any) -> Any:
    noise = rng.laplace()
    return [q + noise, 2.0 * (q + noise)]


def mirrored(q: float, rng: Any) -> Any:
    noise = rng.laplace()
    return [q + noise, q - noise]


def least_of_sorted(q: float, rng: Any) -> Any:
    noisy = [q + rng.laplace(), 2.0 * q + rng.laplace()]
    return sorted(range(2), key=noisy.__getitem__)[0]


def least(q: float, rng: Any) -> Any:
    noisy = np.array([q + rng.laplace(), 2.0 * q + rng.laplace()])
    return int(np.argmin(noisy))


@for_each(
    "function, loss",
    [
        (doubled, 1.0),
        (mirrored, INF),
        (lambda q, rng: np.int8(127) + np.int8(q) + 0.0 + rng.laplace(), 255.0),  # what wraps loses what it wraps to
        (lambda q, rng: np.uint8(q) - rng.laplace(), 1.0),
        (lambda q, rng: float(q) + float(rng.laplace()), 1.0),
        (lambda q, rng: sum([q, rng.laplace(), 1]), 1.0),
        (lambda q, rng: np.sum(rng.laplace(size=1)) + q, 1.0),
        (lambda q, rng: (rng.laplace() or 5.0) + q, 1.0),
        (lambda q, rng: rng.laplace(q, 0.0), INF),
    ],
)
def test_numbers_lose_what_they_lose(function: Function, loss: float) -> None:
    with np.errstate(over="ignore"):
        assert lost(function, 0, 1)[0] == pytest.approx(loss)


def test_two_ways_to_the_least_lose_the_same() -> None:
    assert lost(least_of_sorted, 0.0, 1.0) == pytest.approx(lost(least, 0.0, 1.0))


@for_each(
    "function",
    [
        lambda q, rng: 2**60 + q + rng.laplace(),
        lambda q, rng: (1e15 + q + rng.laplace(scale=1e-3)) - 1e15,
        lambda q, rng: (q + 0.5 + (noise := rng.laplace())) - noise,
        lambda q, rng: max((0.1 + 0.2) * q + (noise := rng.laplace()), 0.3 * q + noise),
    ],
)
def test_where_rounding_may_decide_nothing_is_said(function: Function) -> None:
    with pytest.raises(OutsideIntegrals, match="rounding"):
        followed(function, 0.0, 1.0, {})


def test_numbers_beyond_doubles_are_refused() -> None:
    for function in (
        lambda q, rng: 10**400 + q + rng.laplace(),
        lambda q, rng: rng.laplace() < 10**400,
        lambda q, rng: rng.laplace(scale=1e300) * 2**450 < q,
    ):
        with pytest.raises(OutsideIntegrals):
            followed(function, 0.0, 1.0, {})


def endless(q: float, rng: Any) -> Any:
    while (noise := rng.laplace()) <= 0.0:
        pass
    return q + noise


def test_a_loop_that_may_never_end_is_refused() -> None:
    with pytest.raises(OutsideIntegrals, match="more than 60,000 times"):
        followed(endless, 0.0, 1.0, {})


MISSING = object()


def told_by_type(q: float, rng: Any) -> Any:
    noisy = rng.laplace(np.float64(q), 1.0)
    return noisy if type(noisy) is float else q


def told_by_the_type_of_the_generator(q: float, rng: Any) -> Any:
    return q if type(rng) is not np.random.Generator else rng.laplace()


def told_by_the_code_of_a_draw(q: float, rng: Any) -> Any:
    return q if "faces" in rng.laplace.__func__.__code__.co_filename else rng.laplace()


def of_no_scale(q: float, rng: Any) -> Any:
    try:
        return rng.laplace(q, -0.0)
    except ValueError:
        return 0


@dataclasses.dataclass
class Optional:
    value: object


def without_those_of_no_value(data: list[Any], rng: Any) -> Any:
    return len([each for each in data if each.value is not MISSING]) + rng.laplace()


def without_those_missing(data: list[Any], rng: Any) -> Any:
    return len([each for each in data if each is not MISSING]) + rng.laplace()


def shuffles_what_numpy_shuffles(q: float, rng: Any) -> Any:
    try:
        rng.shuffle(collections.deque([1, 2]))
    except TypeError:
        return q
    return 0.0


def draws_beside_nothing(q: float, rng: Any) -> Any:
    try:
        rng.laplace([None])  # nan
    except TypeError:
        return q
    return 0.0


def draws_less_than_none(q: float, rng: Any) -> Any:
    try:
        rng.choice(2, size=-1)
    except ValueError:
        return 0.0
    return q


def draws_none_of_no_scale(q: float, rng: Any) -> Any:
    try:
        rng.laplace(0.0, -1.0, 0)
    except ValueError:
        return 0.0
    return q


def permutes_a_text(q: float, rng: Any) -> Any:
    try:
        rng.permutation("abc")
    except TypeError:
        return q
    except np.exceptions.AxisError:
        return 0.0
    return q


def used_up(after: int) -> Function:
    used = itertools.count()
    return lambda q, rng: None if next(used) >= after else q + rng.laplace()


@for_each(
    ("function", "first", "second", "truth"),
    [
        (shuffles_what_numpy_shuffles, 0.0, 1.0, 0.0),
        (draws_beside_nothing, 0.0, 1.0, 0.0),
        (draws_less_than_none, 0.0, 1.0, 0.0),
        (draws_none_of_no_scale, 0.0, 1.0, 0.0),
        (permutes_a_text, 0.0, 1.0, 0.0),
        *((used_up(after), 0.0, 1.0, 1.0) for after in (1, 24, 25, 26, 49, 50, 51)),
        (told_by_type, 0.0, 1.0, 1.0),
        (told_by_the_type_of_the_generator, 0.0, 1.0, 0.0),
        (told_by_the_code_of_a_draw, 0.0, 1.0, 0.0),
        (of_no_scale, 0.0, 1.0, 0.0),
        (without_those_of_no_value, [Optional(MISSING)] * 5, [], 0.0),
        (without_those_missing, [MISSING] * 5, [], 0.0),
    ],
)
def test_what_numpy_and_python_tell_apart_accuses_nobody(
    function: Function, first: Any, second: Any, truth: float
) -> None:
    with contextlib.suppress(InvalidSpec):
        holds(function, first, second, truth)
