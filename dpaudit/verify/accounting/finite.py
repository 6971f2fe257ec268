"""Pairs of finite distributions: their composition, exact in fractions where it stays small.

An output counts by its ratio p / q alone, so the outputs of many releases are taken together by the product of their
ratios. The least epsilon at a delta is the logarithm of a rational number.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.arrays import Reals
from dpaudit.claims.rounding import above
from dpaudit.errors import InvalidSpec
from dpaudit.verify.enclosure import Enclosure, largest, of_log
from dpaudit.verify.replay.losses import Atoms, atoms_of, delta_at, in_order, ratio_at

MOST_PRODUCTS = 20_000  # of fractions that an exact composition may take; beyond it the grid is used
CLOSE = Fraction(1, 10**9)  # by which probabilities given as floats may miss a sum of 1


@dataclass(frozen=True, slots=True)
class FinitePair:
    """The laws of one output on two datasets: the probabilities of the same outputs, in the same order.

    Fractions are taken exactly, floats as the fractions they are, divided by their sum. `dominating` says that no pair
    of neighbours can be told apart better than this one; else what follows is about this pair of datasets alone.
    Raises `InvalidSpec` for probabilities that are negative or do not sum to 1.

    >>> coin = FinitePair((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))
    >>> round(coin.largest_loss(), 4)
    1.0986
    """

    first: tuple[Fraction, ...]
    second: tuple[Fraction, ...]
    dominating: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", _law("first", self.first))
        object.__setattr__(self, "second", _law("second", self.second))
        if len(self.first) != len(self.second):
            raise InvalidSpec(
                f"a pair needs the same outputs on both sides, got {len(self.first)} and {len(self.second)}"
            )

    @classmethod
    def of_laws(
        cls, first: Mapping[Hashable, Any], second: Mapping[Hashable, Any], *, dominating: bool = False
    ) -> "FinitePair":
        """The pair of two laws, each from outputs to probabilities; an output that is not named has probability 0.

        >>> FinitePair.of_laws({"a": 1}, {"b": 1}).first
        (Fraction(1, 1), Fraction(0, 1))
        """
        outputs = dict.fromkeys([*first, *second])
        p, q = (tuple(law.get(output, 0) for output in outputs) for law in (first, second))
        return cls(p, q, dominating)

    def __str__(self) -> str:
        return f"a pair of laws on {len(self.first)} outputs"

    def atoms(self) -> Atoms:
        """The outputs taken together by their ratio."""
        return atoms_of(zip(self.first, self.second, strict=True))

    def largest_loss(self) -> float:
        """The largest |ln(p / q)| where it is finite."""
        ratios = [ratio for ratio in self.atoms() if ratio]
        return max((abs(math.log(each.numerator) - math.log(each.denominator)) for each in ratios), default=0.0)

    def floats(self) -> tuple[Reals, Reals, tuple[float, float]]:
        """P and Q of the outputs that both can give, each [ratios]; how likely those are that the other cannot."""
        atoms = self.atoms()
        shared = sorted(ratio for ratio in atoms if ratio)
        p, q = (np.array([float(atoms[ratio][side]) for ratio in shared]) for side in (0, 1))
        none = (Fraction(0), Fraction(0))
        return p, q, (above(atoms.get(None, none)[0]), above(atoms.get(Fraction(0), none)[1]))


def exact_composition(pairs: Sequence[FinitePair]) -> Atoms | None:
    """The atoms of independent outputs of all the pairs, exactly; None where that takes too many fractions.

    >>> coin = FinitePair((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))
    >>> sorted(exact_composition([coin, coin]))
    [Fraction(1, 9), Fraction(1, 1), Fraction(9, 1)]
    """
    total: Atoms = {Fraction(1): (Fraction(1), Fraction(1))}
    left = MOST_PRODUCTS
    for pair in pairs:
        atoms = pair.atoms()
        left -= len(atoms) * len(total)
        if left < 0:
            return None
        both = ((p * more_p, q * more_q) for p, q in total.values() for more_p, more_q in atoms.values())
        total = atoms_of(both)
    return total


def exact_epsilon(atoms: Atoms, delta: Fraction) -> Enclosure:
    """The least epsilon at a delta, not below 0, the larger of the two orders.

    >>> coin = FinitePair((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))
    >>> round(exact_epsilon(coin.atoms(), Fraction(1, 20)).middle, 4)
    1.0296
    """
    ratios = [ratio_at(order, delta) for order in _orders(atoms)]
    if None in ratios:
        return Enclosure(math.inf, math.inf)
    return of_log(max(Fraction(1), *(ratio for ratio in ratios if ratio is not None)))


def exact_delta(atoms: Atoms, epsilon: float) -> Enclosure:
    """The least delta at an epsilon (the double as it is), the larger of the two orders.

    >>> coin = FinitePair((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))
    >>> exact_delta(coin.atoms(), 0.0)
    Enclosure(lower=0.5, upper=0.5)
    """
    return largest(delta_at(order, Fraction(epsilon)) for order in _orders(atoms))


def _orders(atoms: Atoms) -> Iterable[list[tuple[Fraction, Fraction]]]:
    """P and Q of the atoms, and Q and P, each from the largest ratio to the smallest."""
    forward = in_order(atoms)
    return forward, [(q, p) for p, q in reversed(forward)]


def _law(name: str, probabilities: Sequence[Any]) -> tuple[Fraction, ...]:
    try:
        law = tuple(Fraction(each) for each in probabilities)
    except (TypeError, ValueError, OverflowError):
        raise InvalidSpec(f"{name} must hold probabilities, got {probabilities!r}") from None
    total = sum(law, Fraction(0))
    if min(law, default=Fraction(-1)) < 0:
        raise InvalidSpec(f"{name} must hold probabilities of at least 0, got {probabilities!r}")
    whole = not any(isinstance(each, float) for each in probabilities)
    if total != 1 and (whole or abs(total - 1) > CLOSE):
        raise InvalidSpec(f"{name} must sum to 1, got {float(total):.12g}")
    return law if total == 1 else tuple(each / total for each in law)
