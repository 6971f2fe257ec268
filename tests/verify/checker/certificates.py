"""Certificates written by hand: the right programs of CheckDP's example set that alignments prove, and two more.

The shifts are those of the literature; nothing here was made by the search.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from fractions import Fraction
from textwrap import dedent
from typing import Any

from benchmarks.programs import (
    WRONG,
    c2_sparse_vector,
    c4_sparse_decreasing,
    c5_gap_sparse_vector,
    c6_numeric_sparse_vector,
    c7_adaptive_sparse_vector,
    c8_partial_sum,
    c9_smart_sum,
    sparse_redrawn,
    w5_sparse_unscaled,
)
from dpaudit.verify.proof import Alignment, Kept, Potential, Proof, Shift

ONE = Fraction(1)


def text(program: Callable[..., Any]) -> str:
    """The source of a program without its assertion that eps is positive: the checker sees that by the scales."""
    return inspect.getsource(program).replace("    assert eps > 0\n", "")


GUARDED, ONE_WAY = text(c2_sparse_vector), text(c4_sparse_decreasing)
SPARSE = ONE_WAY.replace("2 * N", "4 * N")
GAP, NUMERIC, ADAPTIVE = text(c5_gap_sparse_vector), text(c6_numeric_sparse_vector), text(c7_adaptive_sparse_vector)
PARTIAL_SUM, SMART_SUM, NO_CUT_OFF = text(c8_partial_sum), text(c9_smart_sum), text(w5_sparse_unscaled)
REDRAW = text(sparse_redrawn)
FALSE = {name[:2]: text(case.function) for name, case in WRONG.items()}
RELEASE = """
def release(data, rng, eps):
    return data + rng.laplace(scale=1 / eps)
"""


def shift(path: str, draw: str, constant: Any = 0, answer: Any = 0, **differences: Any) -> Shift:
    """A shift from plain numbers."""
    named = {name: Fraction(value) for name, value in differences.items()}
    return Shift(path, draw, Fraction(constant), Fraction(answer), named)


def proof(source: str, alignment: Alignment, **changes: Any) -> Proof:
    """A proof of the claim eps, whose cost is the claim."""
    text = dedent(source).strip() + "\n"
    given: dict[str, Any] = {
        "source": text,
        "function": text.split("(")[0].removeprefix("def "),
        "adjacency": "all-differ",
        "fixed": {},
        "claim": "eps",
        "cost": "eps",
        "alignment": alignment,
    }
    return Proof(**(given | changes))


def tops(draw: str, *, top: tuple[Any, Any], paths: tuple[str, ...]) -> tuple[Shift, ...]:
    """The same shift of a draw on several paths."""
    return tuple(shift(path, draw, *top) for path in paths)


IN_LOOP = ("loop:TT", "loop:TF")
STEPS = Potential("eps/2", {"count": "eps/(2*N)"})
C2 = Alignment(
    shifts=(shift("before:", "draw_1", 1), *tops("draw_2", top=(1, -1), paths=IN_LOOP)),
    kept=(Kept("t", ONE),),
    bounds=("count <= N - 1",),
    potential=STEPS,
)
C4 = Alignment(
    shifts=tops("draw_2", top=(0, -1), paths=IN_LOOP),
    bounds=("count <= N - 1",),
    potential=Potential("0", {"count": "eps/(2*N)"}),
)

RIGHT: dict[str, Proof] = {
    "c2": proof(SPARSE, C2),
    "c2 while": proof(
        GUARDED,
        Alignment(
            shifts=(shift("before:", "draw_1", 1), shift("loop:FT", "draw_2", 1, -1)),
            bounds=("count <= N",),
            potential=STEPS,
        ),
    ),
    "c3": proof(ONE_WAY, C2, adjacency="up"),
    "c4": proof(ONE_WAY, C4, adjacency="down", cost="eps/2"),
    "c5": proof(GAP, C2),
    "c6": proof(
        NUMERIC,
        Alignment(
            shifts=(*C2.shifts, *tops("draw_3", top=(0, -1), paths=IN_LOOP)),
            bounds=("count <= N - 1",),
            potential=Potential("eps/3", {"count": "2*eps/(3*N)"}),
        ),
    ),
    "c7": proof(
        ADAPTIVE,
        Alignment(
            shifts=(
                shift("before:", "draw_1", 1),
                *tops("draw_2", top=(1, -1), paths=("loop:TT", "loop:TF")),
                *tops("draw_3", top=(1, -1), paths=("loop:FTT", "loop:FTF")),
            ),
            kept=(Kept("t", ONE),),
            bounds=("spent <= 2*N - 2",),
            potential=Potential("eps/2", {"spent": "eps/(4*N)"}),
        ),
    ),
    "c8": proof(
        PARTIAL_SUM,
        Alignment(
            shifts=(shift("after:", "draw_1", s=-1),),
            kept=(Kept("s", ONE, "used"),),
            potential=Potential("0"),
        ),
        adjacency="one-differs",
    ),
    "c9": proof(
        SMART_SUM,
        Alignment(
            shifts=(shift("loop:FT", "draw_1", 0, -1, block=-1), shift("loop:FF", "draw_2", 0, -1)),
            kept=(Kept("released", Fraction(0)), Kept("block", ONE, "used")),
            potential=Potential("0", used="2*eps", held={"block": "eps"}),
        ),
        adjacency="one-differs",
        claim="2*eps",
        cost="2*eps",
    ),
    "redraw": proof(
        REDRAW,
        Alignment(
            shifts=(
                shift("before:", "draw_1", 1),
                *tops("draw_2", top=(1, -1), paths=IN_LOOP),
                shift("loop:TF", "draw_3", 1),
            ),
            kept=(Kept("t", ONE),),
            bounds=("count <= N - 1",),
            potential=Potential("eps/(2*N)", {"count": "eps/N"}),
        ),
    ),
    "release": proof(RELEASE, Alignment(shifts=(shift("before:", "draw_1", 0, -1),))),
}
