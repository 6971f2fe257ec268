"""The upper bound that the catalogue knows: the exact loss of one of its mechanisms on the pair that was audited."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from dpaudit.catalogue import Entry
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms import Imported, Mechanism
from dpaudit.mechanisms.resolve import import_reference
from dpaudit.pairs import AdjacentPair, SealedPair
from dpaudit.pairs.data import restored
from dpaudit.results.upper import Arithmetic, Label, UpperBound

SOURCE = "catalogue"
CATALOGUE = ("dpaudit.catalogue.", "dpaudit.catalogue:")  # our own code: it may be imported anywhere


def entry_of(mechanism: Mechanism) -> Entry | None:
    """The entry of the catalogue that a mechanism is, its parameters bound; None where it is none."""
    if isinstance(mechanism, Entry):
        return mechanism
    if not isinstance(mechanism, Imported) or not mechanism.reference.startswith(CATALOGUE):
        return None
    found = import_reference(mechanism.reference)
    return found.with_parameters(mechanism.parameters) if isinstance(found, Entry) else None


def _values(pair: AdjacentPair | SealedPair) -> list[Any]:
    """The two datasets; of a sealed pair, which only workers open, as its record has them. Raises `InvalidSpec`."""
    if isinstance(pair, AdjacentPair):
        return list(pair.open())
    record = pair.record()
    return [restored(record[side]["value"], record[side]["digest"]) for side in ("first", "second")]


def known_upper(mechanism: Mechanism, pair: AdjacentPair | SealedPair, delta: float) -> UpperBound | None:
    """The loss of the pair at `delta`, that of the certificate; None where the catalogue does not know it.

    A loss in a parameter of its own, such as mu, bounds epsilon at that delta. It was computed in floats.
    """
    entry = entry_of(mechanism)
    if entry is None:
        return None
    try:
        loss = entry.true_loss(*_values(pair))
    except (InvalidSpec, ArithmeticError, ValueError, TypeError, LookupError):
        return None  # data that the program takes and the formula of its loss does not
    if loss is None or math.isnan(loss):
        return None
    claim: Any = entry.claim()
    scope = f'the pair "{pair.name}"'
    if claim.parameter == "epsilon":
        loss = max(0.0, loss)
        return UpperBound(loss, claim.delta, Label.EXACT_PAIR, scope, Arithmetic.FLOATS, SOURCE, loss)
    if loss == math.inf:
        return UpperBound(math.inf, delta, Label.EXACT_PAIR, scope, Arithmetic.FLOATS, SOURCE)
    member = replace(claim, **{claim.parameter: max(0.0, loss)})
    return UpperBound(member.epsilon_at(delta), delta, Label.EXACT_PAIR, scope, Arithmetic.FLOATS, SOURCE)
