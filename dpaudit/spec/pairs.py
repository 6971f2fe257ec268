"""The pairs of a spec: values in the file, or a function that makes them where mechanisms may run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from dpaudit.claims import Relation
from dpaudit.data import AdjacentPair, pairs_of_data
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.mechanisms.importing import import_reference

if TYPE_CHECKING:
    from dpaudit.spec.tables import AuditTable, PairEntry


@dataclass(frozen=True, slots=True)
class ImportedPair:
    """A pair named as `module:function`; the function, of no arguments, returns an `AdjacentPair` or two datasets.

    `resolve` calls it, in a worker; `folder` is first in the import path there.
    """

    reference: str
    name: str
    folder: str | None = None
    relation: Relation | None = None
    user: str | int | None = None
    distance: ClassVar[int] = 1  # until it is made
    reason: ClassVar[str] = ""
    what: ClassVar[str] = "pair"

    def value(self) -> Any:
        """What the function returns. Raises `InvalidSpec` where it cannot."""
        value = import_reference(self.reference, self.folder)
        try:
            return value() if callable(value) else value
        except DpAuditError:
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise InvalidSpec(f"{self.reference!r}: making the {self.what} failed with {what}") from None

    def resolve(self) -> tuple[AdjacentPair, ...]:
        """The pair, checked against the relation. Raises `InvalidSpec` for any other value."""
        pair = AdjacentPair.of(self.value(), self.name).of_user(self.user)
        pair.check(self.relation)
        return (pair,)


@dataclass(frozen=True, slots=True)
class ImportedData(ImportedPair):
    """One example dataset named as `module:function`; `resolve` makes its pairs, of all patterns or of `patterns`."""

    patterns: tuple[str, ...] | None = None
    what: ClassVar[str] = "data"

    def resolve(self) -> tuple[AdjacentPair, ...]:
        """The pairs, checked against the relation. Raises `InvalidSpec` where none can be made."""
        assert self.relation is not None
        return pairs_of_data(self.value(), self.relation, self.patterns, self.user)


def made_of(
    table: "AuditTable", folder: str, relation: Relation | None, user: str | int | None = None
) -> tuple[AdjacentPair | ImportedPair, ...]:
    """The pairs of a dataset that a spec contains or names. Raises `InvalidSpec` without a relation."""
    names = None if table.pairs is None else tuple(each for each in table.pairs if isinstance(each, str))
    if table.pair is not None or len(names or ()) < len(table.pairs or ()):
        raise InvalidSpec("of data pairs are made: leave out pair, and let pairs name patterns or leave them out")
    if relation is None:
        raise InvalidSpec('pairs are made of data under a relation: give relation = "add_or_remove_one" or another')
    if isinstance(table.data, str) and relation is not Relation.LOCAL:
        return (ImportedData(table.data, "data", folder, relation, user, names),)
    return pairs_of_data(table.data, relation, names, user)


def pairs_of(
    entries: "Sequence[PairEntry]", folder: str, relation: Relation | None, user: str | int | None = None
) -> tuple[AdjacentPair | ImportedPair, ...]:
    """The pairs that a spec in this folder names. Raises `InvalidSpec` for an empty list or a bad entry."""
    if not entries:
        raise InvalidSpec("pairs must name at least one pair, got an empty list")
    names = ["pair"] if len(entries) == 1 else [f"pair {number}" for number, _ in enumerate(entries, start=1)]
    return tuple(_pair(entry, name, folder, relation, user) for entry, name in zip(entries, names, strict=True))


def _pair(
    entry: "PairEntry", name: str, folder: str, relation: Relation | None, user: str | int | None
) -> AdjacentPair | ImportedPair:
    if isinstance(entry, str):
        module, colon, function = entry.partition(":")
        if not (module and colon and function):
            raise InvalidSpec(f"{name} must be a table or read module:function, got {entry!r}")
        return ImportedPair(entry, function if name == "pair" else f"{name}, {function}", folder, relation, user)
    pair = AdjacentPair(entry.first, entry.second, entry.name or name, entry.distance, user=user)
    pair.check(relation)
    return pair
