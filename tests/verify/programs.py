"""The programs that the verifier is measured with, as plain functions: right ones, wrong ones, a family in between.

C1 to C9 and W1 to W8 are the example set of CheckDP (Wang, Ding, Kifer & Zhang 2020), restated; `FAMILY` holds the
variants of the sparse vector technique that Lyu, Su & Li (2017) compare, and close relatives. All noise is real.
"""

# ruff: noqa: N803

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from benchmarks.programs import (
    c1_noisy_max,
    c2_sparse_vector,
    c3_sparse_increasing,
    c4_sparse_decreasing,
    c5_gap_sparse_vector,
    c6_numeric_sparse_vector,
    c7_adaptive_sparse_vector,
    c8_partial_sum,
    c9_smart_sum,
    w1_noisy_max_value,
    w2_partial_sum_half_noise,
    w3_smart_sum_missing_draw,
    w4_sparse_no_query_noise,
    w5_sparse_unscaled,
    w6_sparse_lee_clifton,
    w7_gap_value,
    w8_adaptive_value,
)

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

    name: str
    function: Callable[..., Any]
    adjacency: str
    claim: str
    true: str
    right: bool
    counterexample: Counterexample | None = None


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


def lyu_2(q, rng, eps, T, c):
    """The book's: a new threshold after each top."""
    assert eps > 0
    assert c >= 1
    t = T + rng.laplace(scale=2 * c / eps)
    count, out = 0, []
    for x in q:
        if x + rng.laplace(scale=4 * c / eps) >= t:
            out.append(True)
            count += 1
            t = T + rng.laplace(scale=2 * c / eps)
            if count >= c:
                break
        else:
            out.append(None)
    return tuple(out)


def lyu_3(q, rng, eps, T, c):
    """Gives away the noisy answers that were compared."""
    assert eps > 0
    assert c >= 1
    t = T + rng.laplace(scale=2 / eps)
    count, out = 0, []
    for x in q:
        v = x + rng.laplace(scale=2 * c / eps)
        if v >= t:
            out.append(v)
            count += 1
            if count >= c:
                break
        else:
            out.append(None)
    return tuple(out)


def lyu_4(q, rng, eps, T, c):
    """Lee & Clifton."""
    assert eps > 0
    assert c >= 1
    t = T + rng.laplace(scale=4 / eps)
    count, out = 0, []
    for x in q:
        if x + rng.laplace(scale=4 / (3 * eps)) >= t:
            out.append(True)
            count += 1
            if count >= c:
                break
        else:
            out.append(None)
    return tuple(out)


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


def no_threshold_noise(q, rng, eps, T, c):
    assert eps > 0
    assert c >= 1
    count, out = 0, []
    for x in q:
        if x + rng.laplace(scale=4 * c / eps) >= T:
            out.append(True)
            count += 1
            if count >= c:
                break
        else:
            out.append(None)
    return tuple(out)


def half_noise(q, rng, eps, T, c):
    assert eps > 0
    assert c >= 1
    t = T + rng.laplace(scale=1 / eps)
    count, out = 0, []
    for x in q:
        if x + rng.laplace(scale=2 * c / eps) >= t:
            out.append(True)
            count += 1
            if count >= c:
                break
        else:
            out.append(None)
    return tuple(out)


def not_scaled(q, rng, eps, T, c):
    """The noise on the answers forgets c."""
    assert eps > 0
    assert c >= 1
    t = T + rng.laplace(scale=2 / eps)
    count, out = 0, []
    for x in q:
        if x + rng.laplace(scale=4 / eps) >= t:
            out.append(True)
            count += 1
            if count >= c:
                break
        else:
            out.append(None)
    return tuple(out)


def gap(q, rng, eps, T, c):
    assert eps > 0
    assert c >= 1
    t = T + rng.laplace(scale=2 / eps)
    count, out = 0, []
    for x in q:
        v = x + rng.laplace(scale=4 * c / eps)
        if v >= t:
            out.append(v - t)
            count += 1
            if count >= c:
                break
        else:
            out.append(None)
    return tuple(out)


# --- the tables -----------------------------------------------------------------------------------------------

_RIGHT = (
    Case("c1_noisy_max", c1_noisy_max, "all-differ", "eps", "eps", True),
    Case("c2_sparse_vector", c2_sparse_vector, "all-differ", "eps", "eps", True),
    Case("c3_sparse_increasing", c3_sparse_increasing, "up", "eps", "eps", True),
    Case("c4_sparse_decreasing", c4_sparse_decreasing, "down", "eps", "eps/2", True),
    Case("c5_gap_sparse_vector", c5_gap_sparse_vector, "all-differ", "eps", "eps", True),
    Case("c6_numeric_sparse_vector", c6_numeric_sparse_vector, "all-differ", "eps", "eps", True),
    Case("c7_adaptive_sparse_vector", c7_adaptive_sparse_vector, "all-differ", "eps", "eps", True),
    Case("c8_partial_sum", c8_partial_sum, "one-differs", "eps", "eps", True),
    Case("c9_smart_sum", c9_smart_sum, "one-differs", "2*eps", "2*eps", True),
)
_E32, _E2, _E54 = 0.22313016014842982, 0.1353352832366127, 0.28650479686019009  # e^(-3/2), e^-2, e^(-5/4)
_SMART = {"M": Fraction(2), "T": Fraction(1)}
_WRONG = (
    Case(
        "w1_noisy_max_value",
        w1_noisy_max_value,
        "all-differ",
        "eps",
        "infinite",
        False,
        Counterexample((0, 0, 0), (1, 1, 1), (("<=", 0),), 1 / 8, _E32 / 8, 1.5),
    ),
    Case(
        "w2_partial_sum_half_noise",
        w2_partial_sum_half_noise,
        "one-differs",
        "eps",
        "2*eps",
        False,
        Counterexample((0,), (1,), (("<=", 0),), 1 / 2, _E2 / 2, 2.0),
    ),
    Case(
        "w3_smart_sum_missing_draw",
        w3_smart_sum_missing_draw,
        "one-differs",
        "2*eps",
        "infinite",
        False,
        Counterexample((0, 0, 0), (1, 0, 0), (ANY, 0), 1.0, 0.0, float("inf"), _SMART),
    ),
    Case(
        "w4_sparse_no_query_noise",
        w4_sparse_no_query_noise,
        "all-differ",
        "eps",
        "infinite",
        False,
        Counterexample((0, 1), (1, 0), (None, True), 0.19673467014368329, 0.0, float("inf")),
    ),
    Case(
        "w5_sparse_unscaled",
        w5_sparse_unscaled,
        "all-differ",
        "eps",
        "infinite",
        False,
        Counterexample((0, 0, 0), (1, 1, -1), (None, None, True), 1 / 12, 0.026301608, 1.153218561),
    ),
    Case(
        "w6_sparse_lee_clifton",
        w6_sparse_lee_clifton,
        "all-differ",
        "eps",
        "(1 + 6*N)/4*eps",
        False,
        Counterexample((0, 0), (1, -1), (None, True), 5 / 56, 0.027854585, 1.164843922),
    ),
    Case(
        "w7_gap_value",
        w7_gap_value,
        "all-differ",
        "eps",
        "infinite",
        False,
        Counterexample((0,) * 5, (1,) * 5, (None,) * 4 + (("<=", 0),), 1 / 1344, _E54 / 1344, 1.25),
    ),
    Case(
        "w8_adaptive_value",
        w8_adaptive_value,
        "all-differ",
        "eps",
        "infinite",
        False,
        # the density at -1 is 5.381232e-14, and the half-line below it has its ratio
        Counterexample((0,) * 4, (1,) * 4, (None,) * 3 + (("<=", -1),), 3.07499e-14, 8.81e-15, 1.25),
    ),
)

PROGRAMS: dict[str, Case] = {case.name: case for case in _RIGHT + _WRONG}
RIGHT: dict[str, Case] = {case.name: case for case in _RIGHT}
WRONG: dict[str, Case] = {case.name: case for case in _WRONG}


@dataclass(frozen=True)
class Variant:
    """A variant of the sparse vector technique: its noise at eps and c, and whether it halts and redraws.

    `true` is the least bound for all n: a text of eps and c, or "infinite".
    """

    name: str
    function: Callable[..., Any]
    threshold: Callable[[Fraction, int], Fraction]  # the scale b1
    answers: Callable[[Fraction, int], Fraction]  # the scale b2
    true: str
    halts: bool = True
    redraws: bool = False
    output: str = "bit"


FAMILY: dict[str, Variant] = {
    variant.name: variant
    for variant in (
        Variant("lyu_1", lyu_1, lambda eps, c: 2 / eps, lambda eps, c: 4 * c / eps, "eps"),
        Variant("lyu_2", lyu_2, lambda eps, c: 2 * c / eps, lambda eps, c: 4 * c / eps, "eps", redraws=True),
        Variant("lyu_3", lyu_3, lambda eps, c: 2 / eps, lambda eps, c: 2 * c / eps, "infinite", output="noisy"),
        Variant("lyu_4", lyu_4, lambda eps, c: 4 / eps, lambda eps, c: 4 / (3 * eps), "(1 + 6*c)/4*eps"),
        Variant("lyu_5", lyu_5, lambda eps, c: 2 / eps, lambda eps, c: Fraction(0), "infinite", halts=False),
        Variant("lyu_6", lyu_6, lambda eps, c: 2 / eps, lambda eps, c: 2 / eps, "infinite", halts=False),
        Variant("no_cut_off", no_cut_off, lambda eps, c: 2 / eps, lambda eps, c: 4 / eps, "infinite", halts=False),
        Variant(
            "no_threshold_noise", no_threshold_noise, lambda eps, c: Fraction(0), lambda eps, c: 4 * c / eps, "infinite"
        ),
        Variant("half_noise", half_noise, lambda eps, c: 1 / eps, lambda eps, c: 2 * c / eps, "2*eps"),
        Variant("not_scaled", not_scaled, lambda eps, c: 2 / eps, lambda eps, c: 4 / eps, "(1 + c)/2*eps"),
        Variant("gap", gap, lambda eps, c: 2 / eps, lambda eps, c: 4 * c / eps, "eps", output="gap"),
    )
}


def least_cost(threshold: Fraction, answers: Fraction, bottoms: int, tops: int) -> Fraction:
    """The loss of an output with so many bottoms and tops, over all pairs of answers: the least of three alignments.

    The threshold's noise is moved by 0, +1 or -1 (not at all where it has none). `answers` is above 0.
    """
    costs = [(bottoms + tops) / answers]
    if threshold > 0:
        costs += [1 / threshold + 2 * tops / answers, 1 / threshold + 2 * bottoms / answers]
    return Fraction(min(costs))
