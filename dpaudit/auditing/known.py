"""The upper bound that a mechanism offers: its exact loss on the pair that was audited, where that is known."""

import math
from typing import Any

from dpaudit.data import AdjacentPair, SealedPair
from dpaudit.data.data import restored
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms import Imported, Mechanism
from dpaudit.mechanisms.importing import import_reference, is_own
from dpaudit.mechanisms.protocol import Known, is_known
from dpaudit.results.bounds import Arithmetic, Label, UpperBound

OWN, OTHER = "catalogue", "formula of the mechanism"  # where a loss comes from


def known_of(mechanism: Mechanism) -> Known | None:
    """The mechanism as one of which something is known, its parameters bound; None where nothing is."""
    if is_known(mechanism):
        return mechanism
    if not isinstance(mechanism, Imported) or not is_own(mechanism.reference):
        return None
    entry = import_reference(mechanism.reference)
    return entry.with_parameters(mechanism.parameters) if is_known(entry) else None


def comes_with_us(mechanism: Mechanism) -> bool:
    """Whether it is one of our own mechanisms: its code changes with our version alone."""
    known = known_of(mechanism)
    return known is not None and is_own(known.reference)


def _values(pair: AdjacentPair | SealedPair) -> list[Any]:
    """The two datasets; of a sealed pair, which only workers open, as its record has them. Raises `InvalidSpec`."""
    if isinstance(pair, AdjacentPair):
        return list(pair.open())
    record = pair.record()
    return [restored(record[side]["value"], record[side]["digest"]) for side in ("first", "second")]


def known_upper(mechanism: Mechanism, pair: AdjacentPair | SealedPair, delta: float) -> UpperBound | None:
    """The loss of the pair at `delta`, that of the certificate; None where it is not known.

    A loss in a parameter of its own, such as mu, bounds epsilon at that delta. It was computed in floats.
    """
    known = known_of(mechanism)
    if known is None:
        return None
    try:
        loss = known.true_loss(*_values(pair))
    except (InvalidSpec, ArithmeticError, ValueError, TypeError, LookupError):
        return None  # data that the program takes and the formula of its loss does not
    if loss is None or math.isnan(loss):
        return None
    claim = known.claim()
    scope = f'the pair "{pair.name}"'
    source = OWN if is_own(known.reference) else OTHER
    if claim.parameter == "epsilon":
        loss = max(0.0, loss)
        return UpperBound(loss, claim.delta, Label.EXACT_PAIR, scope, Arithmetic.FLOATS, source, loss)
    epsilon = math.inf if loss == math.inf else claim.with_value(max(0.0, loss)).epsilon_at(delta)
    return UpperBound(epsilon, delta, Label.EXACT_PAIR, scope, Arithmetic.FLOATS, source)
