"""The result of an audit as a user holds it: the answer, which prints itself and can end a test."""

from dataclasses import dataclass
from typing import Any, Self

from dpaudit.arrays import Bools
from dpaudit.errors import ClaimRefuted
from dpaudit.results.audited import Audited
from dpaudit.results.display import Displayed
from dpaudit.results.wording.advice import Diagnosis
from dpaudit.results.wording.diagnosis import diagnosis
from dpaudit.results.wording.first import Explanation, explanation
from dpaudit.results.wording.sections import full_text
from dpaudit.results.wording.statements import beyond


@dataclass(frozen=True, slots=True, repr=False)
class AuditResult(Displayed, Audited):
    """What an audit was asked and what it found; its fields and all that follows from them are those of `Audited`."""

    @property
    def diagnosis(self) -> Diagnosis | None:
        """What kind of mistake a refutation fits, where to look, what usually mends it; None where no kind fits."""
        return diagnosis(self)

    def contains(self, outputs: Any) -> Bools:
        """Which outputs are in the event of the witness: `Witness.contains`."""
        return self.witness.contains(outputs)

    def explain(self) -> Explanation:
        """Up to eight typical outputs of either dataset inside the event of a refutation, with its cause and diagnosis.

        They are outputs of search runs that the result keeps: the same from run to run, and after `load`.
        """
        return explanation(self)

    def raise_if_refuted(self) -> Self:
        """Raises `ClaimRefuted` (an AssertionError) with the whole finding; otherwise returns the result."""
        if self.refuted:
            raise ClaimRefuted(str(self), beyond(self))
        return self

    def __str__(self) -> str:
        return full_text(self)
