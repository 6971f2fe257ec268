"""The pairs of a spec: values written down, or a function that makes them where mechanisms may run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dpaudit.claims import Relation
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.mechanisms.importing import import_reference
from dpaudit.pairs import AdjacentPair

if TYPE_CHECKING:
    from dpaudit.spec_file.tables import PairEntry


@dataclass(frozen=True, slots=True)
class ImportedPair:
    """A pair named as `module:function`; the function, of no arguments, returns an `AdjacentPair` or two datasets.

    `resolve` calls it, so it belongs into a worker; `folder` heads the import path there.
    """

    reference: str
    name: str
    folder: str | None = None
    relation: Relation | None = None
    distance: ClassVar[int] = 1  # until it is made
    reason: ClassVar[str] = ""

    def resolve(self) -> AdjacentPair:
        """The pair, checked against the relation. Raises `InvalidSpec` for anything that is no pair."""
        made = import_reference(self.reference, self.folder)
        try:
            made = made() if callable(made) else made
        except DpAuditError:
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise InvalidSpec(f"{self.reference!r}: making the pair failed with {what}") from None
        pair = AdjacentPair.of(made, self.name)
        pair.check(self.relation)
        return pair


def pairs_of(
    entries: Sequence[PairEntry], folder: str, relation: Relation | None
) -> tuple[AdjacentPair | ImportedPair, ...]:
    """The pairs that a spec in this folder names. Raises `InvalidSpec` for none, and for one that is none."""
    if not entries:
        raise InvalidSpec("pairs must name at least one pair, got an empty list")
    names = ["pair"] if len(entries) == 1 else [f"pair {number}" for number, _ in enumerate(entries, start=1)]
    return tuple(_pair(entry, name, folder, relation) for entry, name in zip(entries, names, strict=True))


def _pair(entry: PairEntry, name: str, folder: str, relation: Relation | None) -> AdjacentPair | ImportedPair:
    if isinstance(entry, str):
        module, colon, function = entry.partition(":")
        if not (module and colon and function):
            raise InvalidSpec(f"{name} must be a table or read module:function, got {entry!r}")
        return ImportedPair(entry, function if name == "pair" else f"{name}, {function}", folder, relation)
    pair = AdjacentPair(entry.first, entry.second, entry.name or name, entry.distance)
    pair.check(relation)
    return pair
