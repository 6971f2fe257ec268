"""The likeliest events of one direction of a pair, as a curve of their two probabilities.

Neyman & Pearson 1933: no event with the same P(S) has a smaller Q(S) than the set of outputs whose likelihood ratio
dP/dQ is at least some t. The curve holds P(S) and Q(S) of these sets, from the largest ratio down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
ROUNDING = 1e-12  # relative: sums of at most some million positive terms, each good to a few units in the last place


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The likeliest events of one direction of a pair: nested sets {ratio >= t}, from the largest ratio down."""

    p: Floats  # P(S) of the nested sets, rising
    q: Floats  # Q(S) of the same sets
    loss: float  # sup of ln(dP/dQ), may be inf
    error: float  # bound on the relative error of p and q (quadrature, rounding)
    method: str  # one sentence: enumeration, closed form, quadrature ...


def nested(p: Floats, q: Floats, loss: float, method: str, error: float = 0.0) -> Curve:
    """The curve of a law in pieces: atoms, or cells of a fine grid, whose two probabilities are given in any order.

    Every set of it is a union of pieces, so its probabilities are those of an event that can be looked for. Where
    the pieces are cells of a density, the sets are the likeliest ones up to the width of a cell. `error` bounds the
    relative error of the given probabilities; that of adding them up is put on top.

    >>> curve = nested(np.array([0.25, 0.75]), np.array([0.75, 0.25]), math.log(3.0), "enumeration")
    >>> curve.p.tolist(), curve.q.tolist()
    ([0.75, 1.0], [0.25, 1.0])
    """
    kept = (p > 0.0) | (q > 0.0)
    p, q = p[kept], q[kept]
    order = np.argsort(-np.divide(p, q, out=np.full(len(p), math.inf), where=q > 0.0), kind="stable")
    return Curve(np.cumsum(p[order]), np.cumsum(q[order]), loss, error + ROUNDING, method)


def both(
    first: Floats, second: Floats, losses: tuple[float, float], method: str, error: float = 0.0
) -> tuple[Curve, Curve]:
    """The curves of the two directions of a law in pieces: the first dataset likelier, then the second.

    >>> law = np.array([0.25, 0.75])
    >>> [curve.loss for curve in both(law, law[::-1], (1.1, 1.1), "enumeration")]
    [1.1, 1.1]
    """
    return nested(first, second, losses[0], method, error), nested(second, first, losses[1], method, error)
