"""What is read of a ledger: a bound over time, as a table, CSV or JSON; and what OLD and NEW of a comparison name.

Either of these is a result, a suite, a folder of a report, a ledger, or a commit in a ledger.
"""

import csv
import os
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from dpaudit.account import Table
from dpaudit.account.change import Half
from dpaudit.account.statements import verdict_text
from dpaudit.base.files import FILE, FOLDER, found_at
from dpaudit.base.numerals import bound, confidence_text, counted
from dpaudit.base.quoting import clean
from dpaudit.base.strict import by_fields, text_of
from dpaudit.base.validate import exact
from dpaudit.errors import InvalidSpec
from dpaudit.ledger.results import DIRTY, Ledger, LedgerRecord, subject_text
from dpaudit.report.csv_ import table
from dpaudit.results.display import Verdict
from dpaudit.results.provenance import git
from dpaudit.results.result import AuditResult, subject
from dpaudit.results.stored import load_either, stored_files
from dpaudit.results.stored.reading import SUITE_FILE
from dpaudit.results.suite import SuiteResult

MAGIC = b"SQLite format 3\x00"
FEW = 5  # commits that a message names
SHORT = 12  # digits of a commit in a table
HEADER = ("date", "commit", "runs", "claimed", "certified", "confidence", "verdict", "source", "asked")

Suites = Mapping[str, Any]  # rows of runs: which spec files each was of, and when it started


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One recorded result of a history, and what changed since the one before it of the same audit.

    Both are None for the first. `source_changed` is about the text of the function, not what that refers to; None too
    where a text is not known, or equal ones gave other bounds at one spec and seed: something else changed.
    """

    record: LedgerRecord
    source_changed: bool | None
    question_changed: bool | None
    _PARTS: ClassVar = ("record",)
    _KEYS: ClassVar = (
        *("audit", "reference", "fingerprint", "started", "recorded", "commit", "version", "seed", "runs"),
        *("confidence", "claimed", "lower", "epsilon_lower", "delta", "p_value", "verdict"),
        *("source_changed", "question_changed"),
    )

    def to_dict(self) -> dict[str, Any]:
        """The point as `--format json` and the figure take it; infinity is the string "inf"."""
        return by_fields(self, audit=self.record.name, started=self.record.started or self.record.recorded)


def history(ledger: Ledger, mechanism: str) -> tuple[HistoryPoint, ...]:
    """The points of an audit's name, a mechanism's reference or a fingerprint, the oldest first.

    Raises `InvalidSpec` where the ledger has nothing of that name.
    """
    records = ledger.find(mechanism)
    if not records:
        known = ", ".join(clean(each) for each in ledger.near(mechanism))
        there = f"there is {known}" if known else "no result is recorded in it yet"
        where = f"the ledger {clean(ledger.path, 200)}"
        raise InvalidSpec(f"{clean(mechanism)}: {where} has no such audit, function or fingerprint; {there}")
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
        head = f"{clean(name)}: {counted(len(mine), 'result')}, {clean(mine[-1].record.reference)}"
        blocks.append("\n".join([head, *Table(name, HEADER, tuple(map(_row, mine))).lines]))
    return "\n\n".join(blocks)


def as_csv(points: Sequence[HistoryPoint]) -> str:
    """The points as CSV, numbers whole, text that a spreadsheet could compute made harmless."""
    dicts = [point.to_dict() for point in points]
    return table(dicts[0], *(each.values() for each in dicts), quoting=csv.QUOTE_MINIMAL).rstrip("\n")


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
    """What a bound depends on except the mechanism: more runs give a higher bound."""
    return record.subject, record.pairs, record.runs, record.confidence


def read_side(named: str, ledger: Path) -> tuple[str, tuple[Half, ...]]:
    """What was read, in words, and the audits it holds. A path goes before a commit of the same name.

    Raises `InvalidSpec` where it is neither, or a file is not one of dpaudit; `LedgerError` for a broken ledger.
    """
    if not named.strip():
        raise InvalidSpec("OLD and NEW must name a result, a suite, a report folder, a ledger or a commit, got nothing")
    path = Path(named)
    there = found_at(path)
    if there == FOLDER:
        files = stored_files(path)
        where = f"suite {clean(files[0], 200)}"
        halves = tuple(half for file in files for half in _halves(load_either(file)))
        return where if files[0].name == SUITE_FILE else f"{len(files)} results in {clean(path, 200)}", halves
    if there == FILE:
        return _ledger(path, None) if _is_ledger(path) else (f"file {clean(path, 200)}", _halves(load_either(path)))
    if found_at(ledger) != FILE:
        raise InvalidSpec(
            f"{clean(named, 200)}: there is no such file, and no ledger {clean(ledger, 200)} to look a commit up in; "
            "name a result, a suite, a report folder or a ledger, or give --ledger"
        )
    return _ledger(ledger, named)


def full_commit(named: str) -> str:
    """The commit that git means by a name here, in full; the name itself where git knows none or is not there."""
    asked, tail = named.removesuffix(DIRTY), DIRTY if named.endswith(DIRTY) else ""
    digits = git(os.curdir, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{asked}^{{commit}}")
    return f"{digits}{tail}" if digits else named


def _is_ledger(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
    return False  # the reader of results says why


def _halves(read: AuditResult | SuiteResult) -> tuple[Half, ...]:
    if isinstance(read, AuditResult):
        return (Half(read.name, read),)
    return tuple(Half(entry.name, entry.result, entry.error) for entry in read.entries)


def _ledger(path: Path, commit: str | None) -> tuple[str, tuple[Half, ...]]:
    """The newest state of every audit in a ledger, or of those recorded at a commit."""
    with Ledger(path, read_only=True) as ledger:
        whole = None if commit is None else full_commit(commit)
        records = ledger.results(commit=whole)
        if not records and commit is not None and whole is not None:
            raise InvalidSpec(_no_commit(ledger, commit, whole))
        several = sorted({str(record.commit) for record in records})
        if commit is not None and len(several) > 1:
            commits = ", ".join(clean(each) for each in several[:FEW])
            raise InvalidSpec(
                f"{clean(commit)}: the first digits of {len(several)} commits ({commits}); give more of them"
            )
        suites = {row["id"]: row for row in ledger.rows("SELECT id, suite_hash, started FROM runs")}
        results = {record: Half(record.name, ledger.load(record)) for record in newest(records, suites)}
        among = None if commit is None else {record.run for record in records}
        halves = _with_failures(ledger, results, suites, among)
        where = f"ledger {clean(path, 200)}"
        place = where if whole is None else f"commit {clean(whole)} in {where}"
        return f"{place}: the newest of {len(records)} results", tuple(halves)


def newest(records: Sequence[LedgerRecord], suites: Suites) -> list[LedgerRecord]:
    """Of every audit (spec files, name and mechanism) what its newest run recorded; outside runs, of every question.

    Audits of other spec files that share a name and a mechanism are other audits: none hides another.
    """
    last: dict[Hashable, LedgerRecord] = {}
    alone: dict[Hashable, int] = {}
    for record in records:
        last[_audit(record, suites)] = record
        alone[record.name, record.reference, record.subject, record.pairs] = record.id
    newest_alone = set(alone.values())
    latest = [record for record in records if record.run == last[_audit(record, suites)].run]
    return [record for record in latest if record.run is not None or record.id in newest_alone]


def _audit(record: LedgerRecord, suites: Suites) -> Hashable:
    suite = suites.get(record.run or "")
    return None if suite is None else suite["suite_hash"], record.name, record.reference


def _with_failures(
    ledger: Ledger, halves: dict[LedgerRecord, Half], suites: Suites, runs: set[str | None] | None
) -> list[Half]:
    """The audits of a ledger, those whose newest run ended without a verdict among them; `runs` None: of all runs."""
    by_name: dict[str, list[LedgerRecord]] = {}
    for record in halves:
        by_name.setdefault(record.name, []).append(record)
    rows = ledger.rows("SELECT run, number, name, recorded, error FROM failures ORDER BY recorded, run, number")
    failed: dict[Hashable, tuple[str, list[Half]]] = {}
    over: set[LedgerRecord] = set()
    for row in rows:
        if runs is not None and row["run"] not in runs:
            continue
        suite = suites.get(row["run"])
        files = None if suite is None else suite["suite_hash"]
        same = [
            each for each in by_name.get(row["name"], []) if _audit(each, suites) == (files, each.name, each.reference)
        ]
        when = row["recorded"] if suite is None else suite["started"]
        if any(each.run != row["run"] and _when(each, suites) > when for each in same):
            continue
        key = files, row["name"]
        if failed.get(key, ("", []))[0] != row["run"]:
            failed[key] = row["run"], []
        failed[key][1].append(Half(row["name"], None, row["error"]))
        if len(same) == 1 and same[0].run != row["run"]:  # of several with one name, none is known to be this one
            over.add(same[0])
    lost = [half for _, several in failed.values() for half in several]
    return [*(half for record, half in halves.items() if record not in over), *lost]


def _when(record: LedgerRecord, suites: Suites) -> str:
    suite = suites.get(record.run or "")
    return record.recorded if suite is None else str(suite["started"])


def _no_commit(ledger: Ledger, commit: str, whole: str) -> str:
    known = list(dict.fromkeys(record.commit for record in ledger.results() if record.commit))
    last = ", ".join(clean(each) for each in known[-FEW:]) or "none"
    where = clean(ledger.path, 200)
    if not whole.endswith(DIRTY) and ledger.results(commit=f"{whole}{DIRTY}"):
        return f'{clean(commit)}: {where} has results of it only with changes in the tree; name "{clean(whole)}{DIRTY}"'
    return f"{clean(commit)}: neither a file nor a commit with results in {where}; the last commits there: {last}"
