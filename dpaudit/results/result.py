"""The result of an audit as a user holds it: the answer, which prints itself and can end a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from dpaudit.errors import ClaimRefuted
from dpaudit.results.audited import Audited
from dpaudit.results.display import Displayed
from dpaudit.results.wording.sections import full_text


@dataclass(frozen=True, slots=True, repr=False)
class AuditResult(Displayed, Audited):
    """What an audit was asked and what it found; its fields and all that follows from them are those of `Audited`."""

    def raise_if_refuted(self) -> Self:
        """Raises `ClaimRefuted` (an AssertionError) with the whole finding; otherwise returns the result."""
        if self.refuted:
            raise ClaimRefuted(str(self))
        return self

    def __str__(self) -> str:
        return full_text(self)
