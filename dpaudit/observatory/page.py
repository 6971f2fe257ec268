"""What was seen of all rows together: a headline, an exit code, a page for people and a file for programs."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpaudit import report
from dpaudit.observatory.observed import CONFIDENCE, Observed, Plain
from dpaudit.observatory.rows import LibraryAudit
from dpaudit.report import html, json_
from dpaudit.report.html.pages import OVERVIEW, tone
from dpaudit.results.files import write_text
from dpaudit.results.result import AuditResult
from dpaudit.results.strict_json import text_of
from dpaudit.results.suite import SuiteResult
from dpaudit.results.wording.numerals import bound, confidence_text, counted
from dpaudit.results.wording.quoting import LONGEST_DATA, clean, data_text
from dpaudit.results.wording.statements import (
    NOT_PRIVATE,
    certified,
    certified_bound,
    claimed,
    limits,
    statement,
    verdict_text,
)
from dpaudit.results.wording.suites import joint_confidence, suite_line
from dpaudit.results.wording.tables import Table
from dpaudit.version import __version__

SCHEMA = "dpaudit.observatory/1"
RECORD = "observatory.json"
HEAD = ("library", "version", "mechanism", "verdict", "claimed", "certified", "bits", "plain count", "CPU s")


def line(seen: Observed) -> str:
    """A row on one line: as a suite tells it, then what is odd about its cause and its plain count."""
    said = suite_line(seen.entry)
    if seen.missing:
        said = f"UNEXPECTED   {said.partition('  ')[2].strip()}" if seen.entry.as_expected else said
        said += f"; the cause does not say {', '.join(map(repr, seen.missing))}: {seen.cause or 'nothing'}"
    return f"{said}; {plain_text(seen.plain)}" if seen.disagrees and seen.plain is not None else said


def plain_text(plain: Plain, delta: float = 0.0) -> str:
    """A plain count in words: the event, its hits on either side, and what its own bounds show."""
    if plain.error:
        return plain.error
    (first, runs), (second, others) = plain.first, plain.second
    said = f"{first:,} of {runs:,} against {second:,} of {others:,}"
    shown = plain.epsilon(delta)
    return f"{said}, which shows epsilon >= {bound(shown)}" if shown else f"{said}, which shows nothing"


@dataclass(frozen=True, slots=True)
class Observation:
    """Rows that were asked, and those that were left out by the command."""

    seen: tuple[Observed, ...]
    left_out: tuple[LibraryAudit, ...] = ()

    @property
    def suite(self) -> SuiteResult:
        """The rows as a suite; one whose cause is not the known one has exit code 1."""
        entries = (replace(each.entry, exit_code=1) if each.missing else each.entry for each in self.seen)
        return SuiteResult(tuple(entries), joint_confidence([r.entry.result for r in self.seen if r.entry.result]))

    @property
    def exit_code(self) -> int:
        """The worst of the rows."""
        return self.suite.exit_code

    @property
    def headline(self) -> str:
        """The one line: how many rows of how many libraries, and whether all is as expected."""
        libraries = len({each.row.environment.package for each in self.seen})
        done = [each.entry.result for each in self.seen if each.entry.result is not None]
        refuted = sum(result.verdict.value == "REFUTED" for result in done)
        bits = sum(result.representation_refuted for result in done)
        odd = sum(not each.as_expected for each in self.seen if each.entry.result is not None)
        silent = len(self.seen) - len(done)
        parts = [f"{refuted} refuted", f"{bits} with a finding on bits", f"{silent} without verdict"]
        told = f"{counted(odd, 'row')} not as expected" if odd else "every verdict as expected"
        unlike = sum(each.disagrees for each in self.seen)
        told += f"; {counted(unlike, 'plain count does', 'plain counts do')} not show what was found" if unlike else ""
        rows = f"{counted(len(self.seen), 'audit')} of {counted(libraries, 'library', 'libraries')}"
        return f"{rows}: {', '.join(parts)}; {told}; exit code {self.exit_code}"

    @property
    def pairs(self) -> dict[str, list[Observed]]:
        """Rows that are to be compared, by the word they share; a row alone is no comparison."""
        found: dict[str, list[Observed]] = {}
        for each in self.seen:
            if each.row.record.compare is not None:
                found.setdefault(each.row.record.compare, []).append(each)
        return {word: rows for word, rows in found.items() if len(rows) > 1}

    def write(self, folder: Path) -> Path:
        """Writes a page and a record for each result, `observatory.json`, and `index.html`; returns its path."""
        suite = self.suite
        names = report.record_names(suite)
        made = itertools.chain(json_.files(suite, names, names), html.files(suite, names, names))
        for name, text in made:
            if name != OVERVIEW:
                write_text(folder / name, text())
        rows = [view(each, name) for each, name in zip(self.seen, names, strict=True)]
        record = {"schema": SCHEMA, "version": __version__, "headline": self.headline, "exit_code": self.exit_code}
        left = [row.question.name for row in self.left_out]
        write_text(folder / RECORD, text_of({**record, "rows": rows, "not_run": left}))
        return write_text(folder / OVERVIEW, self._html(rows))

    def _html(self, rows: Sequence[dict[str, Any]]) -> str:
        from dpaudit.report.html.templating import render

        by_name = {each["name"]: each for each in rows}
        libraries: dict[str, list[dict[str, Any]]] = {}
        for each in rows:
            libraries.setdefault(each["library"], []).append(each)
        results = [each.entry.result for each in self.seen if each.entry.result is not None]
        together = confidence_text(self.suite.confidence) if results else ""
        return render(
            "observatory.html",
            title=self.headline,
            odd=[(by_name[each.entry.name], line(each)) for each in self.seen if each.odd],
            left_out=[row.question.name for row in self.left_out],
            table=Table("All rows", HEAD, tuple(cells(each) for each in rows), frozenset({4, 8})),
            marks=[(each["tone"], f"#{each['anchor']}") for each in rows],
            pairs={word: [by_name[each.entry.name] for each in found] for word, found in self.pairs.items()},
            libraries=libraries,
            together=together,
            plain_confidence=confidence_text(CONFIDENCE),
            not_shown=(NOT_PRIVATE, *limits(*results)),
            version=__version__,
        )


def view(seen: Observed, record: str | None) -> dict[str, Any]:
    """A row as plain values: what the page shows and `observatory.json` holds; `record` is the file of its result."""
    row, result, known = seen.row, seen.entry.result, seen.row.record
    name = seen.entry.name
    return {
        "name": name,
        "anchor": report.slug(name),
        "library": row.environment.package,
        "version": row.environment.version,
        "mechanism": row.mechanism,
        "tone": tone(result, seen.entry),
        "verdict": "no verdict" if result is None else verdict_text(result.verdict),
        "as_expected": seen.as_expected,
        "error": seen.entry.error or "",
        "claim": row.question.claim.short,
        "source": known.source or "",
        "claimed": "" if result is None else claimed(result),
        "certified": "" if result is None else certified(result),
        "statement": "" if result is None else statement(result),
        "bits": "" if result is None else bits(result),
        "cause": seen.cause,
        "pair": [] if result is None else pair(result),
        "plain": None if seen.plain is None else {"event": seen.plain.event, "counts": plain_text(seen.plain)},
        "plain_agrees": not seen.disagrees,
        "finding": known.finding or "",
        "reported": known.reported or "",
        "compare": known.compare or "",
        "runs": 0 if result is None else result.runs_used,
        "cpu_s": None if result is None else result.provenance.get("cpu_s"),
        "requirements": list(row.environment.table.requirements),
        "python": "" if result is None else result.provenance.get("python", ""),
        "repeat": shlex.join(["dpaudit", "observe", str(row.question.source), "--only", name]),
        "record": record,
        "page": None if record is None else f"{record.removesuffix('.json')}.html",
    }


def bits(result: AuditResult) -> str:
    """What the bits of outputs show, apart from the verdict on their values; empty where nothing was found."""
    found = result.representation
    if found is None or not result.representation_refuted:
        return ""
    return f"{certified_bound(found.claim, found.certificate)} with confidence {found.certificate.confidence:g}"


def pair(result: AuditResult) -> list[str]:
    """The two datasets, and what their pair is called."""
    found = result.pair
    sides = [f"{side}: {data_text(found[side], 2 * LONGEST_DATA)}" for side in ("first", "second")]
    return [clean(found["name"], LONGEST_DATA), *sides]


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of the table."""
    plain = "" if row["plain"] is None else row["plain"]["counts"].partition(",  ")[0]
    cpu = "" if row["cpu_s"] is None else f"{row['cpu_s']:.1f}"
    texts = ("library", "version", "mechanism", "verdict", "claimed", "certified")
    return (*(row[key] for key in texts), "found" if row["bits"] else "", plain, cpu)
