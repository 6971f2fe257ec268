"""The programs that the verifier is measured with, and the truth of each: right ones, wrong ones, a family in between.

C1 to C9 and W1 to W8 are the example set of CheckDP (Wang, Ding, Kifer & Zhang 2020), restated as plain functions;
`FAMILY` holds the variants of the sparse vector technique that Lyu, Su & Li (2017) compare, and close relatives. All
noise is real. Tests, benchmarks and the audit of CheckDP's programs take them from here.
"""

# ruff: noqa: N803

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any


def function_of(source: str, name: str) -> Callable[..., Any]:
    """The one function of a source, whose text can be found again; it belongs to this module.

    >>> function_of("def twice(x):\\n    return 2 * x\\n", "twice")(3)
    6
    """
    file, scope = f"<program {name}, {len(linecache.cache)}>", {"__name__": __name__}
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec", dont_inherit=True), scope)
    return scope[name]  # type: ignore[return-value]


def changed(program: Callable[..., Any], name: str, *changes: tuple[str, str]) -> Callable[..., Any]:
    """A program whose text differs from another's: each change is what stood there, and what stands in its place."""
    source = inspect.getsource(program).replace(f"def {program.__name__}(", f"def {name}(")
    for old, new in changes:
        assert old in source, f"{program.__name__} has no {old!r}"
        source = source.replace(old, new)
    return function_of(source, name)


# --- nine right programs --------------------------------------------------------------------------------------


def c1_noisy_max(q, rng, eps):
    assert eps > 0
    best = 0
    winner = 0
    for i in range(len(q)):
        y = q[i] + rng.laplace(scale=2 / eps)
        if i == 0 or y > best:
            winner = i
            best = y
    return winner


def c2_sparse_vector(q, rng, eps, N, T):
    assert eps > 0
    assert N >= 1
    t = T + rng.laplace(scale=2 / eps)
    count = 0
    i = 0
    out = []
    while count < N and i < len(q):
        if q[i] + rng.laplace(scale=4 * N / eps) >= t:
            out.append(True)
            count += 1
        else:
            out.append(None)
        i += 1
    return out


c3_sparse_increasing = changed(c2_sparse_vector, "c3_sparse_increasing", ("4 * N / eps", "2 * N / eps"))


def c4_sparse_decreasing(q, rng, eps, N, T):
    assert eps > 0
    assert N >= 1
    t = T + rng.laplace(scale=2 / eps)
    count = 0
    out = []
    for x in q:
        if x + rng.laplace(scale=2 * N / eps) >= t:
            out.append(True)
            count += 1
        else:
            out.append(None)
        if count >= N:
            break
    return out


def c5_gap_sparse_vector(q, rng, eps, N, T):
    assert eps > 0
    assert N >= 1
    t = T + rng.laplace(scale=2 / eps)
    count = 0
    out = []
    for x in q:
        v = x + rng.laplace(scale=4 * N / eps)
        if v >= t:
            out.append(v - t)
            count += 1
        else:
            out.append(None)
        if count >= N:
            break
    return out


def c6_numeric_sparse_vector(q, rng, eps, N, T):
    assert eps > 0
    assert N >= 1
    t = T + rng.laplace(scale=3 / eps)
    count = 0
    out = []
    for x in q:
        if x + rng.laplace(scale=6 * N / eps) >= t:
            out.append(x + rng.laplace(scale=3 * N / eps))
            count += 1
        else:
            out.append(None)
        if count >= N:
            break
    return out


def c7_adaptive_sparse_vector(q, rng, eps, N, T):
    assert eps > 0
    assert N >= 1
    t = T + rng.laplace(scale=2 / eps)
    spent = 0
    out = []
    for x in q:
        coarse = x + rng.laplace(scale=8 * N / eps)
        if coarse - t >= 16:
            out.append(coarse - t)
            spent += 1
        else:
            fine = x + rng.laplace(scale=4 * N / eps)
            if fine - t >= 0:
                out.append(fine - t)
                spent += 2
            else:
                out.append(None)
        if spent > 2 * N - 2:
            break
    return out


def c8_partial_sum(q, rng, eps):
    assert eps > 0
    s = 0
    for x in q:
        s += x
    return s + rng.laplace(scale=1 / eps)


def c9_smart_sum(q, rng, eps, M, T):
    assert eps > 0
    assert M > 1
    assert T >= 0
    released = 0
    block = 0
    out = []
    for i, x in enumerate(q):
        if i > T:
            break
        if (i + 1) % M == 0:
            released = block + x + rng.laplace(scale=1 / eps)
            block = 0
        else:
            released = released + x + rng.laplace(scale=1 / eps)
            block = block + x
        out.append(released)
    return out


# --- eight wrong programs: what is wrong with each ------------------------------------------------------------

w1_noisy_max_value = changed(c1_noisy_max, "w1_noisy_max_value", ("return winner", "return best"))
w2_partial_sum_half_noise = changed(c8_partial_sum, "w2_partial_sum_half_noise", ("1 / eps", "1 / (2 * eps)"))
w3_smart_sum_missing_draw = changed(
    c9_smart_sum, "w3_smart_sum_missing_draw", ("block + x + rng.laplace(scale=1 / eps)", "block + x")
)


def w5_sparse_unscaled(q, rng, eps, T):  # the noise on the answers is not scaled, and there is no cut-off
    assert eps > 0
    t = T + rng.laplace(scale=2 / eps)
    out = []
    for x in q:
        if x + rng.laplace(scale=2 / eps) >= t:
            out.append(True)
        else:
            out.append(None)
    return out


w4_sparse_no_query_noise = changed(
    w5_sparse_unscaled, "w4_sparse_no_query_noise", ("x + rng.laplace(scale=2 / eps)", "x")
)
w6_sparse_lee_clifton = changed(
    c4_sparse_decreasing, "w6_sparse_lee_clifton", ("scale=2 / eps", "scale=4 / eps"), ("2 * N / eps", "4 / (3 * eps)")
)
w7_gap_value = changed(c5_gap_sparse_vector, "w7_gap_value", ("out.append(v - t)", "out.append(v)"))
w8_adaptive_value = changed(c7_adaptive_sparse_vector, "w8_adaptive_value", ("append(coarse - t)", "append(coarse)"))


# --- the family of the sparse vector technique: c tops, claim eps ---------------------------------------------


def lyu_1(q, rng, eps, T, c):
    assert eps > 0
    assert c >= 1
    t = T + rng.laplace(scale=2 / eps)
    count, out = 0, []
    for x in q:
        if x + rng.laplace(scale=4 * c / eps) >= t:
            out.append(True)
            count += 1
            if count >= c:
                break
        else:
            out.append(None)
    return tuple(out)


_TOPS = ("x + rng.laplace(scale=4 * c / eps) >= t:", "v >= t:"), ("for x in q:", "for x in q:\n        v = x + NOISE")
_REDRAW = "            count += 1\n", "            count += 1\n            t = T + rng.laplace(scale=2 * c / eps)\n"


def _lyu(name: str, *changes: tuple[str, str]) -> Callable[..., Any]:
    return changed(lyu_1, name, *changes)


def _giving(name: str, output: str, scale: str) -> Callable[..., Any]:
    """The first of the family with an output in the place of True, and a name for the noisy answer."""
    return changed(lyu_1, name, *_TOPS, ("NOISE", f"rng.laplace(scale={scale})"), ("append(True)", f"append({output})"))


lyu_2 = _lyu("lyu_2", ("scale=2 / eps", "scale=2 * c / eps"), _REDRAW)  # the book's: a new threshold after each top
lyu_3 = _giving("lyu_3", "v", "2 * c / eps")  # gives away the noisy answers that were compared
lyu_4 = _lyu("lyu_4", ("scale=2 / eps", "scale=4 / eps"), ("4 * c / eps", "4 / (3 * eps)"))  # Lee & Clifton
no_threshold_noise = _lyu("no_threshold_noise", ("T + rng.laplace(scale=2 / eps)", "T"))
half_noise = _lyu("half_noise", ("scale=2 / eps", "scale=1 / eps"), ("4 * c / eps", "2 * c / eps"))
not_scaled = _lyu("not_scaled", ("4 * c / eps", "4 / eps"))  # the noise on the answers forgets c
gap = _giving("gap", "v - t", "4 * c / eps")


def lyu_5(q, rng, eps, T):
    """No noise on the answers."""
    assert eps > 0
    t = T + rng.laplace(scale=2 / eps)
    return tuple(True if x >= t else None for x in q)


def lyu_6(q, rng, eps, T):
    """Chen and others: no cut-off."""
    assert eps > 0
    t = T + rng.laplace(scale=2 / eps)
    out = []
    for x in q:
        is_top = x + rng.laplace(scale=2 / eps) >= t
        out.append(True if is_top else None)
    return tuple(out)


def no_cut_off(q, rng, eps, T):
    """Algorithm 1 for c = 1 that never halts."""
    assert eps > 0
    t = T + rng.laplace(scale=2 / eps)
    out = []
    for x in q:
        if x + rng.laplace(scale=4 / eps) >= t:
            out.append(True)
        else:
            out.append(None)
    return tuple(out)


def sparse_redrawn(q, rng, eps, N, T):
    assert eps > 0
    assert N >= 1
    t = T + rng.laplace(scale=2 * N / eps)
    count = 0
    out = []
    for x in q:
        if x + rng.laplace(scale=4 * N / eps) >= t:
            out.append(True)
            count += 1
            if count >= N:
                break
            t = T + rng.laplace(scale=2 * N / eps)
        else:
            out.append(None)
    return out


# --- the tables -----------------------------------------------------------------------------------------------

ALL, ONE = "all-differ", "one-differs"
ANY = "any"  # in an event: whatever this output is


@dataclass(frozen=True)
class Counterexample:
    """Where a wrong program gives itself away, at eps = 1, N = 1, T = 0 (and M = 2, T = 1 for the smart sum).

    `event` holds, per output, a value, ("<=", end) or ANY; `first` and `second` its two probabilities.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    event: tuple[Any, ...]
    first: float
    second: float
    loss: float
    parameters: dict[str, Fraction] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A program, what is claimed of it, and the truth.

    `true` is the least bound for all inputs, in the words of claims: "infinite", or a text of the parameters and n.
    """

    function: Callable[..., Any]
    adjacency: str
    claim: str
    true: str
    counterexample: Counterexample | None = None

    @property
    def name(self) -> str:
        """The name of its function."""
        return self.function.__name__

    @property
    def right(self) -> bool:
        """Whether it keeps its claim."""
        return self.counterexample is None


_E32, _E2, _E54 = 0.22313016014842982, 0.1353352832366127, 0.28650479686019009  # e^(-3/2), e^-2, e^(-5/4)
_SMART = {"M": Fraction(2), "T": Fraction(1)}
# the density at -1 is 5.381232e-14, and the half-line below it has its ratio
_DENSE = Counterexample((0,) * 4, (1,) * 4, (None,) * 3 + (("<=", -1),), 3.07499e-14, 8.81e-15, 1.25)
_PROGRAMS = (
    Case(c1_noisy_max, ALL, "eps", "eps"),
    Case(c2_sparse_vector, ALL, "eps", "eps"),
    Case(c3_sparse_increasing, "up", "eps", "eps"),
    Case(c4_sparse_decreasing, "down", "eps", "eps/2"),
    Case(c5_gap_sparse_vector, ALL, "eps", "eps"),
    Case(c6_numeric_sparse_vector, ALL, "eps", "eps"),
    Case(c7_adaptive_sparse_vector, ALL, "eps", "eps"),
    Case(c8_partial_sum, ONE, "eps", "eps"),
    Case(c9_smart_sum, ONE, "2*eps", "2*eps"),
    Case(
        w1_noisy_max_value,
        ALL,
        "eps",
        "infinite",
        Counterexample((0, 0, 0), (1, 1, 1), (("<=", 0),), 1 / 8, _E32 / 8, 1.5),
    ),
    Case(
        w2_partial_sum_half_noise,
        ONE,
        "eps",
        "2*eps",
        Counterexample((0,), (1,), (("<=", 0),), 1 / 2, _E2 / 2, 2.0),
    ),
    Case(
        w3_smart_sum_missing_draw,
        ONE,
        "2*eps",
        "infinite",
        Counterexample((0, 0, 0), (1, 0, 0), (ANY, 0), 1.0, 0.0, float("inf"), _SMART),
    ),
    Case(
        w4_sparse_no_query_noise,
        ALL,
        "eps",
        "infinite",
        Counterexample((0, 1), (1, 0), (None, True), 0.19673467014368329, 0.0, float("inf")),
    ),
    Case(
        w5_sparse_unscaled,
        ALL,
        "eps",
        "infinite",
        Counterexample((0, 0, 0), (1, 1, -1), (None, None, True), 1 / 12, 0.026301608, 1.153218561),
    ),
    Case(
        w6_sparse_lee_clifton,
        ALL,
        "eps",
        "(1 + 6*N)/4*eps",
        Counterexample((0, 0), (1, -1), (None, True), 5 / 56, 0.027854585, 1.164843922),
    ),
    Case(
        w7_gap_value,
        ALL,
        "eps",
        "infinite",
        Counterexample((0,) * 5, (1,) * 5, (None,) * 4 + (("<=", 0),), 1 / 1344, _E54 / 1344, 1.25),
    ),
    Case(w8_adaptive_value, ALL, "eps", "infinite", _DENSE),
)
PROGRAMS: dict[str, Case] = {case.name: case for case in _PROGRAMS}
RIGHT: dict[str, Case] = {name: case for name, case in PROGRAMS.items() if case.right}
WRONG: dict[str, Case] = {name: case for name, case in PROGRAMS.items() if not case.right}


@dataclass(frozen=True)
class Variant:
    """A variant of the sparse vector technique: its noise at eps and c, and whether it halts and redraws.

    `true` is the least bound for all n: a text of eps and c, or "infinite".
    """

    function: Callable[..., Any]
    threshold: Callable[[Fraction, int], Fraction]  # the scale b1
    answers: Callable[[Fraction, int], Fraction]  # the scale b2
    true: str
    halts: bool = True
    redraws: bool = False

    @property
    def name(self) -> str:
        """The name of its function."""
        return self.function.__name__


_FAMILY = (
    Variant(lyu_1, lambda eps, c: 2 / eps, lambda eps, c: 4 * c / eps, "eps"),
    Variant(lyu_2, lambda eps, c: 2 * c / eps, lambda eps, c: 4 * c / eps, "eps", redraws=True),
    Variant(lyu_3, lambda eps, c: 2 / eps, lambda eps, c: 2 * c / eps, "infinite"),
    Variant(lyu_4, lambda eps, c: 4 / eps, lambda eps, c: 4 / (3 * eps), "(1 + 6*c)/4*eps"),
    Variant(lyu_5, lambda eps, c: 2 / eps, lambda eps, c: Fraction(0), "infinite", halts=False),
    Variant(lyu_6, lambda eps, c: 2 / eps, lambda eps, c: 2 / eps, "infinite", halts=False),
    Variant(no_cut_off, lambda eps, c: 2 / eps, lambda eps, c: 4 / eps, "infinite", halts=False),
    Variant(no_threshold_noise, lambda eps, c: Fraction(0), lambda eps, c: 4 * c / eps, "infinite"),
    Variant(half_noise, lambda eps, c: 1 / eps, lambda eps, c: 2 * c / eps, "2*eps"),
    Variant(not_scaled, lambda eps, c: 2 / eps, lambda eps, c: 4 / eps, "(1 + c)/2*eps"),
    Variant(gap, lambda eps, c: 2 / eps, lambda eps, c: 4 * c / eps, "eps"),
)
FAMILY: dict[str, Variant] = {variant.name: variant for variant in _FAMILY}


def least_cost(threshold: Fraction, answers: Fraction, bottoms: int, tops: int) -> Fraction:
    """The loss of an output with so many bottoms and tops, over all pairs of answers: the least of three alignments.

    The threshold's noise is moved by 0, +1 or -1 (not at all where it has none). `answers` is above 0.
    """
    costs = [(bottoms + tops) / answers]
    if threshold > 0:
        costs += [1 / threshold + 2 * tops / answers, 1 / threshold + 2 * bottoms / answers]
    return Fraction(min(costs))
