"""What Python raises, rounds, draws or tells apart otherwise than proofs: ten spellings of each, and sound twins."""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import math
import os
import random
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpaudit
from benchmarks.programs import PROGRAMS
from dpaudit.auditing.probing import TooLittleTime
from dpaudit.errors import DpAuditError, InvalidSpec, OutOfTime, UnsoundAudit
from dpaudit.verify.alignment import prove
from dpaudit.verify.checker import ProofRejected, check, epsilon
from dpaudit.verify.deadline import left_s, within
from dpaudit.verify.language import nodes, read
from dpaudit.verify.language.facts import walks
from dpaudit.verify.language.source import passed_through
from dpaudit.verify.proof import Alignment, Potential, Proof, Shift
from dpaudit.verify.replay import outside, replay
from dpaudit.verify.replay.losses import adjacent
from dpaudit.verify.replay.walk import confirm_with
from dpaudit.verify.witnesses import pair_delta, pair_loss, worst_pair
from tests.cases import NIGHTLY, for_each

LONG = "10" + "0" * 89


def noisy(*inside: str, before: tuple[str, ...] = (), more: str = "") -> str:
    """Every answer with noise, with these lines in the loop and before it."""
    lines = [f"def noisy(q, rng, eps{more}):", *before, "out = []", "for i, x in enumerate(q):"]
    lines += [f"    {line}" for line in ("y = x + rng.laplace(scale=1 / eps)", *inside, "out.append(y)")]
    return "\n    ".join([*lines, "return out"]) + "\n"


def proofs_of(source: str) -> list[Proof]:
    """The proof by hand, which undoes how far an answer moves on every path; by night the search's too."""
    paths, found = [""], None
    with contextlib.suppress(InvalidSpec):
        program = read(source)
        decisions = ([step[1] for step in walk if isinstance(step, tuple)] for walk in walks(program.loop or ()))
        paths = ["".join("T" if taken else "F" for taken in each) for each in decisions]
        found = prove(program, "one-differs", claim="eps") if NIGHTLY else None
    shifts = tuple(Shift(nodes.path_name("loop", each), "draw_1", answer=Fraction(-1)) for each in paths)
    by_hand = Alignment(shifts, potential=Potential("0", used="eps"))
    plain = Proof(source, "noisy", "one-differs", {}, "eps", "eps", by_hand)
    return [plain, *([found] if isinstance(found, Proof) else [])]


IF = "if y > 3:"
IN_ANNOTATIONS = ["(u := 5)", "(lambda: (u := 1))", "[(u := 1) for _ in ()]", "print(u := 1)", "(u := x > 1)"]
IN_ANNOTATIONS += ["(0 if (u := 1) else 2)", "list[(u := 1)]", "f'{(u := 1)}'", "(u := 1) or 2"]
OF_LONG_NUMBERS = ["N * 0.5", "N / 3", "float(N)", "N * N * N * N * 0.5 > 0", "x + N", "x - N"]
COMPARED = ["x > N", "x == N", "N != x", "0 < N < x", "x > 0 and N > x", "not y <= N"]
DIGITS = f"{LONG} * {LONG} * {LONG} * {LONG}"
RAISES: dict[str, tuple[str, dict[str, Any]]] = {
    "a walrus in the branch": (noisy(IF, "    k: (u := 5) = 0", "    flag = u > 0"), {}),
    **{f"a walrus: {each}": (noisy(IF, "    z = u + 1", before=(f"k: {each} = 0",)), {}) for each in IN_ANNOTATIONS},
    **{
        f"of 321 digits{kind}: {number}": (noisy(IF, f"    z = {number}", more=f", N{kind}"), {"N": 10**320})
        for number, kind in itertools.product((*OF_LONG_NUMBERS, *COMPARED), (": int", ""))
    },
    "below 0": (noisy(IF, "    flag = x > N", more=", N"), {"N": -(10**320)}),
    "in an if": (noisy(IF, "    if y > N:", "        z = 1", more=", N: int"), {"N": 10**320}),
    "by another name": (noisy(IF, "    k = N", "    flag = k > y", more=", N: int"), {"N": 10**320}),
    "a product of 360 digits, compared": (noisy(IF, "    flag = N * N * N * N * 0.5 > 0", more=", N"), {"N": 10**90}),
    "beside an integer of numpy's": (noisy(IF, "    z = x - N", more=", N: int"), {"N": 10**30}),
    "four literals": (noisy(IF, f"    z = {DIGITS} * 0.5"), {}),
    "four, as a double": (noisy(IF, f"    z = float({DIGITS})"), {}),
    "four, in an and": (noisy(IF, f"    flag = x > 4 and {DIGITS} / 3 > x"), {}),
    "a counter multiplied": (noisy(f"c = c * {LONG}", IF, "    z = c * 0.5", before=("c = 1",)), {}),
    "a counter doubled": (noisy("c = c + c", IF, "    z = c * 0.5", before=(f"c = {2**55}",)), {}),
    "Fibonacci": (noisy("t = c + d", "c = d", "d = t", IF, "    z = c / 2", before=(f"c = {2**55}", "d = 1")), {}),
    "twice what data left": (noisy("s = 2 * s + x", "z = s * 0.5", before=("s = 0",)), {}),
}
RAISES_LATE: dict[str, tuple[str, dict[str, Any]]] = {
    "a counter doubled from 1": (noisy("c = c + c", IF, "    z = c * 0.5", before=("c = 1",)), {}),
    "Fibonacci from 1": (noisy("t = c + d", "c = d", "d = t", IF, "    z = c / 2", before=("c = 1", "d = 1")), {}),
}
CLIPPED = ("v = y", "if v > 1:", "    v = 1", "s = s + v", "z = s / 2", "w = 1000 * x / 3 + 2 * i")
COUNTED = ("c = c + i", IF, "    d = d + 2", "    flag = k > m", f"    far = x > {'9' * 99}", "u = d * 0.5 + c")
NEVER_RAISES = (
    noisy(*CLIPPED, before=("s = 0",)),
    noisy(*COUNTED, before=("k: int = 0", "m: 'list[int]' = 1", "c = 0", "d = 0")),
)


@for_each(("source", "given"), RAISES.values(), [*RAISES, *RAISES_LATE], nightly=RAISES_LATE.values())
def test_nothing_is_proved_where_data_may_make_python_raise(source: str, given: dict[str, Any]) -> None:
    """Refused by the checker, or at the parameters that make the number long."""
    for proof in proofs_of(source):
        with pytest.raises((ProofRejected, InvalidSpec)):
            epsilon(proof, {"eps": 1, **given}) if given else check(proof)


@for_each("source", NEVER_RAISES)
def test_numbers_that_stay_common_lose_no_proof(source: str) -> None:
    """Plain annotations, counters, counters of counters, clipped totals, common numbers, and one of 99 digits."""
    for proof in proofs_of(source):
        assert check(proof).keeps_claim
        assert epsilon(proof, {"eps": 1}) == 1


def test_a_number_that_doubles_compare_with_is_no_danger() -> None:
    """And what a proof fixes, the checker refuses by itself."""
    for condition, size in (("x > N", 10**9), ("x > 0 and N > x", 10**307), ("i < N", 10**320), ("c <= N", 10**320)):
        for proof in proofs_of(noisy("c = c + 1", IF, f"    flag = {condition}", before=("c = 0",), more=", N: int")):
            assert epsilon(proof, {"eps": 1, "N": size}) == 1
    stored = proofs_of(noisy(IF, "    flag = x > N", more=", N: int"))[0]
    assert check(replace(stored, fixed={"N": Fraction(10**9)})).keeps_claim
    with pytest.raises(ProofRejected, match="a comparison with a whole number beyond the largest double"):
        check(replace(stored, fixed={"N": Fraction(10**320)}))


# --- generators that the code holds ------------------------------------------------------------------------------

OWN, PLAIN, OLD = np.random.default_rng(7), random.Random(3), np.random.RandomState(1)
BOX: dict[str, Any] = {}


class Holder:
    """A mechanism that keeps a generator in an attribute."""

    shared = np.random.default_rng(3)

    def __init__(self) -> None:
        self.own = np.random.default_rng(7)

    def __call__(self, data: int, rng: Any) -> Any:
        return rare(data, rng, self.own.random)

    def of_its_class(self, data: int, rng: Any) -> Any:
        return rare(data, rng, self.shared.random)


def rare(data: int, rng: Any, draw: Callable[[], float]) -> Any:
    """Tells all with probability 1e-4: in 7 of 8 replays no run of it did so."""
    return ("x", data) if draw() < 1e-4 else int(rng.random() < 0.5)


def lazily(data: int, rng: Any) -> Any:
    return rare(data, rng, BOX.setdefault("lazy", np.random.default_rng(11)).random)


def by_default(data: int, rng: Any, own: Any = np.random.default_rng(7)) -> Any:  # noqa: B008
    return rare(data, rng, own.random)


HOLDER = Holder()
DRAWS: dict[str, Callable[[int, Any], Any]] = {
    "a global": lambda data, rng: rare(data, rng, OWN.random),
    "one of Python's": lambda data, rng: rare(data, rng, PLAIN.random),
    "a partial's": functools.partial(by_default, own=np.random.Generator(np.random.MT19937(1))),
    "an attribute": HOLDER.__call__,
    "made when first asked": lazily,
    "its sequence of seeds": (
        lambda seeds: lambda data, rng: rare(data, rng, lambda: seeds.spawn(1)[0].generate_state(1)[0] / 2**32)
    )(np.random.SeedSequence(5)),
}
DRAWS_TOO: dict[str, Callable[[int, Any], Any]] = {
    "an old one of numpy's": lambda data, rng: rare(data, rng, OLD.rand),
    "a default": by_default,
    "one of the class": HOLDER.of_its_class,
    "a closure's": (lambda own: lambda data, rng: rare(data, rng, own.random))(np.random.default_rng(2)),
}


@for_each("mechanism", DRAWS.values(), [*DRAWS, *DRAWS_TOO], nightly=DRAWS_TOO.values())
def test_a_generator_that_the_code_holds_is_found_out(mechanism: Callable[[int, Any], Any]) -> None:
    with pytest.raises(UnsoundAudit):
        replay(mechanism, [0, 1], "all")


def test_what_cannot_be_seen_weakens_the_words() -> None:
    def clock(data: int, rng: Any) -> Any:
        return int(rng.random() < 0.5) if time.time_ns() and os.getpid() else data

    assert replay(clock, [0, 1], "all").scope.endswith(", if nothing is drawn, kept or told by os, time")
    assert "nothing is drawn" not in replay(lambda data, rng: int(rng.random() < abs(0.5)), [0, 1], "all").scope


class Telling:
    inherited = lambda self: time.time()  # noqa: E731


class Heir(Telling):
    static = staticmethod(lambda: time.time())
    told = property(lambda self: time.time())
    of_class = classmethod(lambda cls: time.time())


HEIR, CLOCK = Heir(), functools.partial(time.time)
QUEUE, SEEN_THROUGH = collections.deque([CLOCK]), types.MappingProxyType({"a": CLOCK})
OBJECTS, COUNTED = np.array([CLOCK], object), (time.time() for _ in itertools.count())


def imports(data: int, rng: Any) -> Any:
    import time as clock

    return clock.time()


def imports_from(data: int, rng: Any) -> Any:
    from time import time_ns

    return time_ns()


def imports_deep(data: int, rng: Any) -> Any:
    def within() -> Any:
        import os.path

        return os.path.getsize("x")

    return within()


REACHES: dict[str, tuple[Any, str]] = {
    "an import": (imports, "time"),
    "from": (imports_from, "time"),
    "in a function of its own": (imports_deep, "os.path"),
    "inherited": (lambda data, rng: HEIR.inherited(), "time"),
    "static": (lambda data, rng: Heir.static(), "time"),
    "a property": (lambda data, rng: HEIR.told, "time"),
    "of a class": (lambda data, rng: Heir.of_class(), "time"),
    "partial": (lambda data, rng: CLOCK(), "CLOCK"),
    "a deque": (lambda data, rng: QUEUE[0](), "QUEUE"),
    "a proxy": (lambda data, rng: SEEN_THROUGH["a"](), "SEEN_THROUGH"),
    "an array": (lambda data, rng: OBJECTS[0](), "OBJECTS"),
    "an iterator": (lambda data, rng: next(COUNTED), "time"),
    "a file": (lambda data, rng: np.fromfile("x"), "fromfile"),
    "the day": (lambda data, rng: np.datetime64("now"), "datetime64"),
    "a cache": (functools.lru_cache(imports), "time"),
}


@for_each("name", REACHES)
def test_what_a_function_reaches_is_named(name: str) -> None:
    function, reached = REACHES[name]
    assert reached in outside(function)


def imports_what_computes(data: int, rng: Any) -> Any:
    import math

    from numpy.linalg import norm

    return math.pi + norm(data)


def with_an_empty_cell() -> Any:
    def function(data: int, rng: Any) -> Any:
        return later if data > 9 else int(rng.random() < 0.5)

    return function
    later = 1  # type: ignore[unreachable]


def test_what_only_computes_is_not_named() -> None:
    held = collections.deque([1.5]), np.array([Fraction(1)], object), functools.partial(max, 0)
    for function in (imports_what_computes, with_an_empty_cell(), lambda data, rng: held[2](data), HOLDER.__call__):
        assert outside(function) == set()
    assert replay(with_an_empty_cell(), [0, 1], "all").epsilon.upper == 0.0


# --- numbers so large, or so narrow, that sums are rounded -----------------------------------------------------


HUGE: dict[str, tuple[str, dict[str, float]]] = {
    "beside the answer": ("q + T + rng.laplace(scale=1 / eps)", {"T": 1e17}),
    "less it": ("q - T + rng.laplace(scale=1 / eps)", {"T": 1e15}),
    "before it": ("T + q + rng.laplace(scale=1 / eps)", {"T": -1e16}),
    "as the centre": ("q + rng.laplace(T, 1 / eps)", {"T": 1e300}),
    "beside the noise": ("rng.laplace(scale=1 / eps) + T + q", {"T": 1e17}),
    "a product": ("q + T * T + rng.laplace(scale=1 / eps)", {"T": 1e9}),
    "a quotient": ("q + T / eps + rng.laplace(scale=1 / eps)", {"T": 1e16}),
    "a sum": ("q + (T + 1) + rng.laplace(scale=1 / eps)", {"T": 1e17}),
    "that is taken away again": ("q + T - T + rng.laplace(scale=1 / eps)", {"T": 1e17}),
    "a whole number": ("q + N + rng.laplace(scale=1 / eps)", {"N": 2**60}),
}


@for_each("name", HUGE)
def test_a_parameter_so_large_that_answers_are_rounded_away_proves_nothing(name: str) -> None:
    body, given = HUGE[name]
    source = f"def f(q, rng, eps, {next(iter(given))}):\n    return {body}\n"
    proof = prove(read(source), "all-differ", claim="eps")
    assert isinstance(proof, Proof)
    assert epsilon(proof, {"eps": 1, **dict.fromkeys(given, Fraction(1000))}) == 1
    with pytest.raises(InvalidSpec):
        epsilon(proof, {"eps": 1, **{key: Fraction(value) for key, value in given.items()}})


def shifted(q: Any, rng: Any, eps: float, T: float) -> Any:  # noqa: N803
    return q + T + rng.laplace(scale=1 / eps)


def total(q: Any, rng: Any, eps: float) -> Any:
    s = 0
    for x in q:
        s = s + x
    return s + rng.laplace(scale=1 / eps)


def test_where_rounding_may_decide_an_audit_is_made_all_the_same() -> None:
    """The loss is infinite: with 4,000 runs nothing is refuted with a probability below 1e-60."""
    given = {"eps": 1.0, "T": 1e17}
    found = dpaudit.bracket(shifted, "eps", adjacency="all-differ", parameters=given, runs=4_000, n_jobs=1)
    assert found.verdict is dpaudit.BracketVerdict.REFUTED


BIG, HALF = np.float32(2**24), np.float16(2048)
NARROW: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "doubles": (np.array([0.0, 1.0]), np.array([0.0, 2.0]), {"eps": 1.0}),
    "arrays of 32 bits": (np.float32([2**24, 1]), np.float32([2**24, 2]), {"eps": 1.0}),
    "arrays of 16 bits": (np.float16([2048, 1]), np.float16([2048, 2]), {"eps": 1.0}),
    "a list of 32 bits": ([BIG, np.float32(1)], [BIG, np.float32(2)], {"eps": 1.0}),
    "a list of 16 bits": ([HALF, np.float16(1)], [HALF, np.float16(2)], {"eps": 1.0}),
    "a tuple": ((BIG, np.float32(1)), (BIG, np.float32(2)), {"eps": 1.0}),
    "one of several": ([BIG, 1.0], [BIG, 2.0], {"eps": 1.0}),
    "arrays within a list": ([np.array(BIG), 1.0], [np.array(BIG), 2.0], {"eps": 1.0}),
    "an array of objects": (np.array([BIG, 1], object), np.array([BIG, 2], object), {"eps": 1.0}),
    "the other order of bytes": (np.array([1, 1], ">f4"), np.array([1, 2], ">f4"), {"eps": 1.0}),
    "a parameter of 32 bits": ([0.0, 1.0], [0.0, 2.0], {"eps": np.float32(1)}),
    "a parameter of 16 bits": ([0.0, 1.0], [0.0, 2.0], {"eps": np.float16(1)}),
}


@for_each("name", NARROW)
def test_narrow_floats_prove_nothing_and_have_no_exact_loss(name: str) -> None:
    first, second, given = NARROW[name]
    found = dpaudit.bracket(total, "eps", adjacency="one-differs", parameters=given, pair=(first, second), runs=0)
    if name == "doubles":
        assert found.verdict is dpaudit.BracketVerdict.PROVED
        return
    assert (found.verdict, found.uppers) == (dpaudit.BracketVerdict.OPEN, ())
    with pytest.raises(InvalidSpec):
        pair_loss(read(total), first, second, given)


WRAPPING = {  # what is given out at 8 and 7, and the scale of its noise: whether numpy wraps it around
    "a product": ("q * 1152921504606846976 + z", 2.0**60, True),
    "another sign": ("-1152921504606846976 * q + z", 2.0**60, True),
    "a sum": ("q + 9223372036854775807 + z", 2.0**60, True),
    "a difference": ("q - 9223372036854775800 - 9223372036854775800 + z", 2.0**60, True),
    "a parameter": ("q * N + z", 2.0**60, True),
    "a number that numpy has not": ("0 * q * 1180591620717411303424 + q + z", 1.0, True),
    "1024": ("q * 1024 + z", 1e19, False),
    "2**59": ("q * 576460752303423488 + z", 1e19, False),
    "a double": ("q * 1e19 + z", 1e19, False),
}


@for_each("name", WRAPPING)
def test_whole_numbers_that_numpy_wraps_have_no_exact_loss(name: str) -> None:
    body, scale, wraps = WRAPPING[name]
    program = read(f"def f(q, rng, eps, N: int):\n    z = rng.laplace(scale={scale} / eps)\n    return {body}\n")
    given = {"eps": 1.0, "N": 2**61}
    if not wraps:
        assert pair_loss(program, 8, 7, given).exact
        return
    with pytest.raises(InvalidSpec, match="wrap"):
        pair_loss(program, np.int64(8), np.int64(7), given)  # type: ignore[arg-type]


# --- outputs that are one number and two values of Python ---------------------------------------------------

TYPES: dict[str, tuple[str, dict[str, float]]] = {
    "0 and 0.0": ("return 0 if q > 3 else 0.0", {}),
    "0.0 and -0.0": ("return 0.0 if q > 3 else -0.0", {}),
    "1 and 1.0": ("return 1 if q > 3 else 1.0", {}),
    "float(0) and 0": ("return float(0) if q > 3 else 0", {}),
    "4 / 2 and 2": ("return 4 / 2 if q > 3 else 2", {}),
    "-z and z": ("z = 0.0\n    return -z if q > 3 else z", {}),
    "0.0 * -1": ("return 0.0 * -1 if q > 3 else 0.0", {}),
    "0 * q": ("return q * 0", {}),
    "a parameter": ("return T if q > 3 else 1", {"T": 1}),
    "with noise": ("return 0 if q + rng.laplace(scale=1) > 3 else 0.0", {}),
    "beside noise": ("s = 0 if q > 3 else 0.0\n    return (s, q + rng.laplace(scale=1))", {}),
}
ALIKE = {
    "whole numbers": "return 1 if q + rng.laplace(scale=1) > 3 else 0",
    "doubles": "return 1.0 if q + rng.laplace(scale=1) > 3 else 0.0",
    "beside noise": "return (q + rng.laplace(scale=1), 1.0, 0)",
}


@for_each("name", TYPES)
def test_outputs_of_two_types_have_no_exact_loss_as_one_number(name: str) -> None:
    body, given = TYPES[name]
    program = read(f"def f(q, rng{''.join(f', {name}' for name in given)}):\n    {body}\n")
    found = pair_loss(program, 4, -3, given)
    assert (found.exact, found.loss.upper) == (False, float("inf"))
    with pytest.raises(InvalidSpec, match="of different types, or zeros of either sign"):
        pair_delta(program, 4, -3, given, 1)


@for_each("outputs", ["True if q > 3 else 1", "int(2.0) if q > 3 else 2.0"])
def test_outputs_of_two_types_that_are_equal_are_not_read(outputs: str) -> None:
    with pytest.raises(InvalidSpec, match=r"line 2 of f: .* outside the language of proofs"):
        read(f"def f(q, rng):\n    return {outputs}\n")


@for_each("name", ALIKE)
def test_outputs_of_one_type_keep_their_exact_loss(name: str) -> None:
    found = pair_loss(read(f"def f(q, rng):\n    {ALIKE[name]}\n"), 4, 3, {})
    assert found.exact
    assert found.loss.upper <= 1.0 + 1e-12


# --- steps, time and decorators ------------------------------------------------------------------------------------


def harmless(function: Any) -> Any:
    return function


def wrapping(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def doubling(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return 2 * function(*args, **kwargs)

    return wrapper


@harmless
def unchanged(q: Any, rng: Any, eps: float) -> Any:
    return q + rng.laplace(scale=1 / eps)


@functools.wraps(total)
def named_otherwise(q: Any, rng: Any, eps: float) -> Any:
    return q + rng.laplace(scale=1 / eps)


@for_each(
    ("function", "verdict"),
    [
        *((function, "PROVED") for function in (unchanged, wrapping(unchanged), wrapping(wrapping(unchanged)))),
        *((function, "OPEN") for function in (doubling(unchanged), functools.lru_cache(unchanged))),
        (named_otherwise, "PROVED"),
    ],
)
def test_decorators_that_change_nothing_are_read_through(function: Any, verdict: str) -> None:
    found = dpaudit.bracket(function, "eps", adjacency="all-differ", parameters={"eps": 1.0}, runs=0)
    assert found.verdict.value == verdict, found


def to_itself(function: Any) -> Any:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return wrapper(*args, **kwargs)

    return wrapper


def to_nothing(function: Any) -> Any:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return later(*args, **kwargs)

    return wrapper
    later = function  # type: ignore[unreachable]


@pytest.mark.parametrize("decorator", [to_itself, to_nothing])
def test_a_wrapper_that_calls_no_function_is_left_as_it_is(decorator: Any) -> None:
    wrapper = decorator(unchanged)
    assert passed_through(wrapper) is wrapper
    with pytest.raises(InvalidSpec):
        read(wrapper)


def test_a_claim_as_text_needs_its_parameters_alone() -> None:
    found = dpaudit.bracket(doubling(unchanged), "2*eps", adjacency="all-differ", parameters={"eps": 0.5}, runs=0)
    assert (found.verdict.value, found.claim) == ("OPEN", dpaudit.PureDP(1.0))
    with pytest.raises(InvalidSpec, match=r"claim: .* has no tau"):
        dpaudit.bracket(doubling(unchanged), "2*tau", adjacency="all-differ", parameters={"eps": 0.5}, runs=0)


def test_every_engine_ends_when_its_time_is_over() -> None:
    coin = lambda data, rng: rng.integers(2)  # noqa: E731
    work: list[Callable[[], Any]] = [
        lambda: prove(read(PROGRAMS["c2_sparse_vector"].function), "all-differ"),
        lambda: pair_loss(read(total), [0, 0], [1, 0], {"eps": 1}),
        lambda: replay(coin, [0, 1], "all"),
        lambda: confirm_with(np.random.default_rng(0), lambda data, rng: data, 0, {0: Fraction(1)}, 10),
        lambda: adjacent(range(3), lambda first, second: True),
    ]
    for step in work:
        with within(0.0), pytest.raises(OutOfTime):
            step()
        step()
    found = dpaudit.bracket(total, "eps", adjacency="one-differs", parameters={"eps": 1.0}, runs=0, max_time_s=1e-6)
    assert found.verdict.value == "OPEN"
    assert any("max_time_s was over" in reason for reason in found.reasons)


def test_a_replay_with_nothing_after_it_gets_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[float] = []

    def replayed(*_: Any) -> Iterator[Any]:
        left.append(left_s())
        yield from ()

    monkeypatch.setattr("dpaudit.verify.bracketing.replayed", replayed)
    for runs in (0, 10):
        given: dict[str, Any] = {"domain": [0, 1], "neighbours": "all", "runs": runs, "max_time_s": 1000.0}
        dpaudit.bracket(lambda data, rng: int(rng.random() < 0.5), 0.0, **given)
    assert [each > 500 for each in left] == [True, False]


def test_a_proof_stands_where_no_time_is_left_for_an_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    def planned(*_: Any) -> int:
        raise TooLittleTime("two runs take longer")

    monkeypatch.setattr("dpaudit.verify.bracketing.planned_runs", planned)
    found = dpaudit.bracket(unchanged, "eps", adjacency="all-differ", parameters={"eps": 1.0}, runs=10**9)
    assert found.verdict.value in ("PINNED", "PROVED")
    assert "audit: two runs take longer" in found.reasons


def test_no_step_s_failure_ends_the_steps_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = PROGRAMS["w3_smart_sum_missing_draw"].function
    given: dict[str, Any] = {"adjacency": "one-differs", "parameters": {"eps": 1.0, "M": 2, "T": 1}, "runs": 0}
    failures: list[Exception] = []

    def breaks(*_: Any, **__: Any) -> Any:
        raise failures[-1]

    def breaks_where_no_refutation_is_sought(*given: Any, effort: float) -> Any:
        return breaks() if effort == math.inf else worst_pair(*given, effort=effort)

    monkeypatch.setattr("dpaudit.verify.bracketing.upper.prove", breaks)
    monkeypatch.setattr("dpaudit.verify.bracketing.upper.worst_pair", breaks_where_no_refutation_is_sought)
    for failure in (ValueError("z"), DpAuditError("z")):
        failures.append(failure)
        assert dpaudit.bracket(wrong, 2.0, **given).verdict.value == "REFUTED"
