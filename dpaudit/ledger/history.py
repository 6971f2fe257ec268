"""The certified bound of a mechanism over time: one point for each recorded result, as a table, CSV or JSON."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpaudit.account.statements import verdict_text
from dpaudit.base.numerals import bound, confidence_text, counted
from dpaudit.base.quoting import cell, clean
from dpaudit.base.strict import stored, text_of
from dpaudit.base.validate import exact
from dpaudit.errors import InvalidSpec
from dpaudit.ledger.results import DIRTY, Ledger, LedgerRecord, subject_text
from dpaudit.results.result import AuditResult, subject
from dpaudit.results.verdict import Verdict

SHORT = 12  # digits of a commit in a table
HEADER = ("date", "commit", "runs", "claimed", "certified", "confidence", "verdict", "source", "asked")
TOLD = (  # of a record, in the order in which a point has it
    *("reference", "fingerprint", "started", "recorded", "commit", "version", "seed", "runs", "confidence"),
    *("claimed", "lower", "epsilon_lower", "delta", "p_value", "verdict"),
)


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One recorded result of a history, and what changed since the one before it of the same audit.

    Both are None for the first. `source_changed` is about the text of the function, not what that refers to; None too
    where a text is not known, or equal ones gave other bounds at one spec and seed: something else changed.
    """

    record: LedgerRecord
    source_changed: bool | None
    question_changed: bool | None

    def to_dict(self) -> dict[str, Any]:
        """The point as `--format json` and the figure take it; infinity is the string "inf"."""
        record = self.record
        return {
            "audit": record.name,
            **{key: stored(getattr(record, key)) for key in TOLD},
            "started": record.started or record.recorded,
            "source_changed": self.source_changed,
            "question_changed": self.question_changed,
        }


def history(ledger: Ledger, mechanism: str) -> tuple[HistoryPoint, ...]:
    """The points of an audit's name, a mechanism's reference or a fingerprint, the oldest first.

    Raises `InvalidSpec` where the ledger has nothing of that name.
    """
    records = ledger.find(mechanism)
    if not records:
        known = ", ".join(clean(each) for each in ledger.near(mechanism))
        there = f"there is {known}" if known else "no result is recorded in it yet"
        raise InvalidSpec(
            f"{clean(mechanism)}: no audit, reference or fingerprint in {clean(ledger.path, 200)}: {there}"
        )
    before: dict[str, LedgerRecord] = {}
    points = []
    for record in records:
        last = before.get(record.name)
        otherwise = None if last is None else _asked(last) != _asked(record)
        changed = None
        if last is not None and None not in (last.mechanism, record.mechanism):
            elsewhere = last.spec_hash == record.spec_hash and last.lower != record.lower
            changed = None if elsewhere else last.mechanism != record.mechanism
        points.append(HistoryPoint(record, changed, otherwise))
        before[record.name] = record
    return tuple(points)


def trend(ledger: Ledger, result: AuditResult, most: int = 30) -> tuple[dict[str, Any], ...]:
    """The last points of the same audit with the same mechanism and claim, the oldest first; for a figure."""
    same = subject_text(subject(result.spec))
    records = [each for each in ledger.find(result.name) if (each.name, each.subject) == (result.name, same)]
    return tuple(HistoryPoint(record, None, None).to_dict() for record in records[-most:])


def names(points: Sequence[HistoryPoint]) -> tuple[str, ...]:
    """The audits that the points belong to."""
    return tuple(dict.fromkeys(point.record.name for point in points))


def as_table(points: Sequence[HistoryPoint]) -> str:
    """The points for people, audit by audit; bounds rounded down."""
    blocks = []
    for name in names(points):
        mine = [point for point in points if point.record.name == name]
        rows = [HEADER, *map(_row, mine)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        head = f"{clean(name)}: {counted(len(mine), 'result')}, {clean(mine[-1].record.reference)}"
        aligned = ([f"{text:<{width}}" for text, width in zip(row, widths, strict=True)] for row in rows)
        lines = ["  ".join(row).rstrip() for row in aligned]
        blocks.append("\n".join([head, *lines]))
    return "\n\n".join(blocks)


def as_csv(points: Sequence[HistoryPoint]) -> str:
    """The points as CSV, numbers whole, text that a spreadsheet could compute made harmless."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    dicts = [point.to_dict() for point in points]
    writer.writerow(dicts[0])
    for each in dicts:
        writer.writerow(cell(value) for value in each.values())
    return file.getvalue().rstrip("\n")


def as_json(points: Sequence[HistoryPoint]) -> str:
    """The points as a JSON array of objects, ASCII only."""
    return text_of([point.to_dict() for point in points]).rstrip("\n")


def _row(point: HistoryPoint) -> tuple[str, ...]:
    record, first = point.record, point.question_changed is None
    commit = record.commit or ""
    source = {None: "first" if first else "not known", True: "changed", False: "same text"}[point.source_changed]
    above = record.claimed if record.verdict == Verdict.REFUTED.value else None
    return (
        (record.started or record.recorded)[:16].replace("T", " "),
        clean(commit.removesuffix(DIRTY)[:SHORT] + (DIRTY if commit.endswith(DIRTY) else "")),
        f"{record.runs:,}",
        "" if record.claimed is None else exact(record.claimed),
        bound(record.lower, above=above if above is not None and record.lower > above else None),
        confidence_text(record.confidence),
        verdict_text(Verdict(record.verdict)),
        source,
        {None: "first", True: "otherwise", False: "the same"}[point.question_changed],
    )


def _asked(record: LedgerRecord) -> tuple[Any, ...]:
    """What a bound depends on beside the mechanism: a bound of more runs is a higher one."""
    return record.subject, record.pairs, record.runs, record.confidence
