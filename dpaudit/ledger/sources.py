"""What a person names as OLD or NEW: a result, a suite, a folder of a report, a ledger, or a commit in a ledger."""

import os
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dpaudit.account.change import Half
from dpaudit.base.files import FILE, FOLDER, found_at
from dpaudit.base.quoting import clean
from dpaudit.errors import InvalidSpec
from dpaudit.ledger.results import DIRTY, Ledger, LedgerRecord
from dpaudit.results.provenance import git
from dpaudit.results.result import AuditResult
from dpaudit.results.stored import load_either, stored_files
from dpaudit.results.stored.suites import SUITE_FILE
from dpaudit.results.suite import SuiteResult

MAGIC = b"SQLite format 3\x00"
FEW = 5  # commits that a message names
Suites = Mapping[str, Any]  # rows of runs: which spec files each was of, and when it started


def read_side(named: str, ledger: Path) -> tuple[str, tuple[Half, ...]]:
    """What was read, in words, and the audits it holds. A path goes before a commit of the same name.

    Raises `InvalidSpec` where it is neither, or a file is none of ours; `LedgerError` for a broken ledger.
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
            told = ", ".join(clean(each) for each in several[:FEW])
            raise InvalidSpec(
                f"{clean(commit)}: the first digits of {len(several)} commits ({told}); give more of them"
            )
        suites = {row["id"]: row for row in ledger.rows("SELECT id, suite_hash, started FROM runs")}
        results = {record: Half(record.name, ledger.load(record)) for record in newest(records, suites)}
        among = None if commit is None else {record.run for record in records}
        halves = _with_failures(ledger, results, suites, among)
        where = f"ledger {clean(path, 200)}"
        said = where if whole is None else f"commit {clean(whole)} in {where}"
        return f"{said}: the newest of {len(records)} results", tuple(halves)


def newest(records: Sequence[LedgerRecord], suites: Suites) -> list[LedgerRecord]:
    """Of every audit (spec files, name and mechanism) what its newest run recorded; outside runs, of every question.

    Audits of other spec files that share a name and a mechanism are others: none of them hides one of them.
    """
    last: dict[Hashable, LedgerRecord] = {}
    alone: dict[Hashable, int] = {}
    for record in records:
        last[_audit(record, suites)] = record
        alone[record.name, record.reference, record.subject, record.pairs] = record.id
    newest_alone = set(alone.values())
    kept = [record for record in records if record.run == last[_audit(record, suites)].run]
    return [record for record in kept if record.run is not None or record.id in newest_alone]


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
    told = ", ".join(clean(each) for each in known[-FEW:]) or "none"
    where = clean(ledger.path, 200)
    if not whole.endswith(DIRTY) and ledger.results(commit=f"{whole}{DIRTY}"):
        return f'{clean(commit)}: {where} has results of it only with changes in the tree; name "{clean(whole)}{DIRTY}"'
    return f"{clean(commit)}: neither a file nor a commit with results in {where}; the last commits there: {told}"
