"""Programs that add noise and do nothing else: the exact loss of a pair, noisy numbers included.

Where a program takes one path, and the noisy numbers it gives out determine the draws behind them, the same outputs
come from the second dataset by shifted draws, each by an exact number. So the loss is the sum of what each shift costs
at the worst place, exactly: |s| / b for a Laplace draw of scale b. Numbers without noise must be equal, or every
output tells the datasets apart.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpaudit.base.installed import flint
from dpaudit.verify import integrals
from dpaudit.verify.enclosure import BITS, Enclosure, ball, ratio
from dpaudit.verify.language.nodes import Law, Symbol
from dpaudit.verify.witnesses.outputs import Released
from dpaudit.verify.witnesses.paths import ConcretePath
from dpaudit.verify.witnesses.rationals import Value

Row = tuple[dict[int, Fraction], Fraction]  # the draws of an output, and how much it moves


@dataclass(frozen=True, slots=True)
class Translation:
    """How the draws move between two datasets, in units of their scales; `apart`: no output is possible under both."""

    moves: tuple[tuple[Law, Fraction], ...]
    apart: bool = False

    @property
    def losses(self) -> tuple[Fraction | float, Fraction | float]:
        """The exact losses of the first over the second and back; infinity is a float.

        >>> Translation((("laplace", Fraction(1, 2)), ("laplace", Fraction(-1)))).losses
        (Fraction(3, 2), Fraction(3, 2))
        """
        if self.apart:
            return math.inf, math.inf
        forth, back = (sum((_cost(law, sign * move) for law, move in self.moves), Fraction(0)) for sign in (1, -1))
        return forth, back

    def delta(self, epsilon: Fraction | float) -> Enclosure | None:
        """The least delta at an epsilon where it has a closed form: one Laplace draw moves, or normal ones alone."""
        if self.apart:
            return Enclosure(1.0, 1.0)
        if not self.moves:
            return Enclosure(0.0, 0.0)
        if len(self.moves) == 1 and self.moves[0][0] == "laplace":
            return integrals.laplace_delta(self.moves[0][1], 1, epsilon)
        if all(law == "normal" for law, _ in self.moves):
            with flint().ctx.workprec(BITS):
                mu = ball(sum((move * move for _, move in self.moves), Fraction(0))).sqrt()
            return integrals.gaussian_delta(mu, epsilon)
        return None


def translation(first: Sequence[ConcretePath], second: Sequence[ConcretePath]) -> Translation | None:
    """The translation that takes one dataset's outputs to the other's; None where the program does more than add noise.

    Raises nothing: what is not certain is None.
    """
    if len(first) != 1 or len(second) != 1 or first[0].constraints or second[0].constraints:
        return None
    if (draws := first[0].draws) != second[0].draws:
        return None
    ours, theirs = list(flat(first[0].outputs)), list(flat(second[0].outputs))
    if len(ours) != len(theirs):
        return Translation((), apart=True)
    rows: list[Row] = []
    apart = False
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, Symbol) or isinstance(other, Symbol):
            apart |= one != other
        elif one.terms != other.terms:
            return None
        elif one.is_number:
            apart |= one != other
        else:
            rows.append((dict(one.terms), one.constant - other.constant))
    shifts = _solved(rows)
    if apart or shifts is None:
        return Translation((), apart=True) if apart else None
    return Translation(tuple((draws[draw].law, move / draws[draw].scale) for draw, move in shifts.items() if move))


def flat(outputs: Sequence[Released]) -> Iterator[Value]:
    """The values of some outputs, one after the other."""
    for each in outputs:
        if isinstance(each, tuple):
            yield from flat(each)
        else:
            yield each


def _solved(rows: Sequence[Row]) -> dict[int, Fraction] | None:
    """How much each draw must move for all outputs to stay; None where the outputs do not determine the draws."""
    draws = sorted({draw for factors, _ in rows for draw in factors})
    if len(draws) != len(rows):
        return None
    square = [ratio(factors.get(draw, Fraction(0))) for factors, _ in rows for draw in draws]
    try:
        moves = flint().fmpq_mat(len(rows), 1, [ratio(move) for _, move in rows])
        found = flint().fmpq_mat(len(rows), len(rows), square).solve(moves)
    except ZeroDivisionError:
        return None
    return {draw: Fraction(int(move.p), int(move.q)) for draw, move in zip(draws, found.entries(), strict=True)}


def _cost(law: Law, shift: Fraction) -> Fraction | float:
    """The largest ln(f(x) / f(x + shift)) of the density f of a draw of scale 1."""
    if shift == 0:
        return Fraction(0)
    if law == "laplace":
        return abs(shift)
    if law == "normal" or shift < 0:  # exponential: x + shift may be below 0; gumbel: falls off doubly there
        return math.inf
    return shift
