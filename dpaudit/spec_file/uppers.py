"""The upper bound of a spec: a proof in a file, checked here and now, or one that is only stated."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.mechanisms import Imported, Mechanism
from dpaudit.pairs import AdjacentPair
from dpaudit.results.upper import Arithmetic, Label, UpperBound
from dpaudit.spec_file.pairs import ImportedPair

if TYPE_CHECKING:
    from dpaudit.spec_file.tables import UpperTable

STATED = ("epsilon", "scope", "source")


def upper_bound(
    table: UpperTable, mechanism: Mechanism, folder: str, pairs: Sequence[AdjacentPair | ImportedPair]
) -> UpperBound:
    """The bound that a spec gives for its mechanism on its pairs; `folder` is the spec's.

    Raises `InvalidSpec` for a bad table, and for a proof that is rejected, of another program or of other pairs.
    """
    if table.proof is None:
        return _stated(table)
    given = [key for key in STATED if getattr(table, key) is not None]
    if given:
        raise InvalidSpec(f"upper: a proof says it all; leave out {', '.join(given)}")
    from dpaudit.verify.checker import ProofRejected

    paths = [table.proof] if isinstance(table.proof, str) else table.proof
    try:
        return _proved([Path(folder, path) for path in paths], mechanism, folder, pairs)
    except ProofRejected as error:
        raise InvalidSpec(f"upper.proof: the checker rejects it: {error}") from None
    except DpAuditError as error:
        raise type(error)(f"upper.proof: {error}") from None


def _stated(table: UpperTable) -> UpperBound:
    for key in STATED:
        if getattr(table, key) is None:
            raise InvalidSpec(f"upper: the key {key!r} is missing (or give proof, the file of a proof)")
    assert table.epsilon is not None
    source = f"stated in the spec, not checked here: {table.source}"
    label, arithmetic = Label(table.label), Arithmetic(table.arithmetic)
    try:
        return UpperBound(table.epsilon, table.delta, label, str(table.scope), arithmetic, source)
    except InvalidSpec as error:
        raise InvalidSpec(f"upper: {error}") from None


def _proved(
    paths: list[Path], mechanism: Mechanism, folder: str, pairs: Sequence[AdjacentPair | ImportedPair]
) -> UpperBound:
    from dpaudit.auditing.bracketing import bound_of_proofs, target_named, target_of
    from dpaudit.verify.stored import load

    if isinstance(mechanism, Imported) and mechanism.folder is not None:
        target = target_named(mechanism.reference, dict(mechanism.parameters), folder)
    else:
        target = target_of(mechanism)
    known = [pair for pair in pairs if isinstance(pair, AdjacentPair)]
    if len(known) < len(pairs):
        raise InvalidSpec("it is about query answers: write the datasets of the pair down, not a function's name")
    source = f"checked proof {', '.join(os.path.basename(path) for path in paths)}"
    return bound_of_proofs([load(path) for path in paths], target, known, source=source)
