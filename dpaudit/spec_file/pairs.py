"""The pairs of a spec: values written down, or a function that makes them where mechanisms may run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpaudit.claims import Relation
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.mechanisms.resolve import import_reference
from dpaudit.pairs import AdjacentPair


@dataclass(frozen=True, slots=True)
class ImportedPair:
    """A pair named as `module:function`; the function, of no arguments, returns an `AdjacentPair` or two datasets.

    `resolve` calls it, so it belongs into a worker; `folder` heads the import path there.
    """

    reference: str
    name: str
    folder: str | None = None
    relation: Relation | None = None

    def resolve(self) -> AdjacentPair:
        """The pair, checked against the relation. Raises `InvalidSpec` for anything that is no pair."""
        made = import_reference(self.reference, self.folder)
        if callable(made):
            made = self._call(made)
        pair = AdjacentPair.of(made, self.name)
        pair.check(self.relation)
        return pair

    def _call(self, make: Any) -> Any:
        try:
            return make()
        except DpAuditError:
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise InvalidSpec(f"{self.reference!r}: making the pair failed with {what}") from None
