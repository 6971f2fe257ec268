"""What a sweep knows from above about a question: proofs and exact losses, once for all its runs and seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpaudit.auditing.bracketing import Wanted, run_bracket, target_named, target_of
from dpaudit.errors import DpAuditError
from dpaudit.mechanisms import Command, Imported
from dpaudit.pairs import AdjacentPair
from dpaudit.results.upper import Arithmetic, Label, UpperBound
from dpaudit.sampling import Engine
from dpaudit.sweeps.grid import Point

PROOFS = (Label.PROVED, Label.EXACT_FINITE)
CLOSE = 1e-4  # relative: an enclosure that is wider is no value to show as the exact one
RIGOROUS = (Arithmetic.RATIONAL, Arithmetic.BALLS)


@dataclass(frozen=True, slots=True)
class UpperBounds:
    """Upper bounds on a question's loss, and why the methods that gave none did not."""

    uppers: tuple[UpperBound, ...] = ()
    why: str | None = None

    @staticmethod
    def proves(bound: UpperBound) -> bool:
        """Whether the bound is a checked proof, or a whole replay, for all inputs of its scope; never one in floats."""
        return bound.label in PROOFS and bound.arithmetic is not Arithmetic.FLOATS

    @staticmethod
    def encloses(bound: UpperBound) -> bool:
        """Whether the bound is the upper end of a rigorous enclosure of the pair's own loss, and a close one."""
        if bound.label is not Label.EXACT_PAIR or bound.arithmetic not in RIGOROUS or bound.epsilon_lower is None:
            return False
        low, high = bound.epsilon_lower, bound.epsilon_upper
        return low == high or (high < math.inf and high - low <= CLOSE * high)


def above_of(point: Point) -> UpperBounds:
    """The bounds that the mechanism's source, and the pair, give; runs nothing of the mechanism."""
    if point.mechanism is None:
        return UpperBounds(why=point.error)
    if isinstance(point.mechanism, Command):
        return UpperBounds(why="there is no source to read")
    pair = point.pair if isinstance(point.pair, AdjacentPair) else None
    if pair is not None and pair.distance != 1:
        return UpperBounds(why=f"the datasets are {pair.distance} steps apart; proofs are about neighbours")
    try:
        wanted = Wanted(claim=point.claim, pair=pair, runs=0, confidence=point.confidence, seed=point.seed)
        with Engine(1) as engine:
            found = run_bracket(_target(point.mechanism), wanted, engine).bracket
    except DpAuditError as error:
        return UpperBounds(why=str(error))
    return UpperBounds(found.uppers, "; ".join(found.reasons) or "no method applies")


def _target(mechanism: Any) -> Any:
    if isinstance(mechanism, Imported) and mechanism.folder is not None:  # read, not imported
        return target_named(mechanism.reference, mechanism.parameters, mechanism.folder)
    return target_of(mechanism)
