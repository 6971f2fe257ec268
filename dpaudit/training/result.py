"""The result of `audit_training`: printed, stored, read back, and raised where it refutes."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Self, get_type_hints

from dpaudit.base.files import write_text
from dpaudit.base.strict import by_fields, read, text_of
from dpaudit.claims import claim_from_dict
from dpaudit.errors import ClaimRefuted, InvalidSpec
from dpaudit.mechanisms.importing import in_a_line
from dpaudit.report.display import Display, account_parts, parts
from dpaudit.results.display import Displayed
from dpaudit.training.wording import Trained, headline, text

SCHEMA = "dpaudit.training/1"
CURE = "restore the file, or audit again"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TrainingResult(Displayed, Trained):
    """The answer of `audit_training`: every estimate on its line, the verdict, and what was not tested."""

    def raise_if_refuted(self) -> Self:
        """Raises `ClaimRefuted` (an AssertionError) with the whole finding; otherwise returns the result."""
        if self.refuted:
            raise ClaimRefuted(str(self))
        return self

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values, as JSON holds it; the verdict is derived, and read back never."""
        return {"schema": SCHEMA, "verdict": self.verdict.value, **by_fields(self)}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the result as JSON, whole or not at all."""
        return write_text(path, text_of(self.to_dict()))

    def write_report(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Writes a page about this result in HTML and Markdown, its figures and its JSON; returns their paths."""
        from dpaudit.report.account import write
        from dpaudit.training.page import account_of

        return write(account_of(self, self.to_dict()), folder)

    def __str__(self) -> str:
        return text(self)


@parts.register
def _parts(result: TrainingResult) -> Display:
    from dpaudit.training.page import account_of

    return account_parts(headline(result), partial(account_of, result, {}), result.lines)


def _numbers(detail: Mapping[str, Any]) -> dict[str, Any]:
    """What a method stored beside its bound, infinity as a number again."""
    return {name: float(value) if value in ("inf", "-inf") else value for name, value in detail.items()}


def load(path: str | os.PathLike[str]) -> TrainingResult:
    """The result in a file that `TrainingResult.save` wrote; raises `InvalidSpec` where it is none."""
    import msgspec

    stored = read(path, cure=CURE, not_json="give the path of a result that audit_training saved")
    if not isinstance(stored, dict) or stored.get("schema") != SCHEMA:
        raise InvalidSpec(f"{path}: no result of an audit of training ({SCHEMA}); {CURE}")
    hints = get_type_hints(TrainingResult)
    try:
        values = {each.name: stored[each.name] for each in fields(TrainingResult)}
        claim = claim_from_dict(dict(values.pop("claim")))
        given = {name: msgspec.convert(value, hints[name], strict=False) for name, value in values.items()}
        given["lines"] = tuple(replace(each, detail=_numbers(each.detail)) for each in given["lines"])
        result = TrainingResult(claim=claim, **given)
        str(result)  # it can be told
    except (KeyError, TypeError, ValueError, OverflowError) as error:  # those of msgspec and of claims are ValueErrors
        raise InvalidSpec(f"{path}: not a result that was saved ({in_a_line(error)}); {CURE}") from None
    if stored.get("verdict") != result.verdict.value:
        raise InvalidSpec(f"{path}: the stored verdict is not that of its estimates; {CURE}")
    return result
