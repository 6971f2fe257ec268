"""What was seen of all rows together: a headline, an exit code, a page for people and a file for programs."""

import itertools
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpaudit import report
from dpaudit.account.statements import bound_lines, certified_bound, limits, not_private, promised, stamp
from dpaudit.account.suites import suite_line
from dpaudit.account.tables import Table
from dpaudit.base.files import write_text
from dpaudit.base.numerals import confidence_text, counted
from dpaudit.base.quoting import LONGEST_DATA, clean, data_text, visible
from dpaudit.base.strict import text_of
from dpaudit.observatory.rows import CONFIDENCE, LibraryAudit, Observed, decisive
from dpaudit.report import exchange, html
from dpaudit.report.html import OVERVIEW, tone
from dpaudit.results.suite import SuiteResult, joint_confidence
from dpaudit.version import __version__

SCHEMA = "dpaudit.observatory/1"
RECORD = "observatory.json"
INTERRUPTED = 130  # the exit code that a shell expects
HEAD = ("audit", "verdict", "claimed", "certified", "plain count", "CPU s")


def look(seen: Observed) -> str:
    """Why a row is to be looked at, beside its name; an error whole."""
    if seen.entry.result is None:
        return f"no verdict: {visible(seen.entry.error or '')}"
    return line(seen).replace(f"  {clean(seen.entry.name)}:", ":", 1)


def line(seen: Observed) -> str:
    """A row on one line: as a suite tells it, then what is odd about its cause and its plain count."""
    text = suite_line(seen.entry)
    if seen.missing:
        text = f"UNEXPECTED   {text.partition('  ')[2].strip()}" if seen.entry.as_expected else text
        text += f"; the cause does not say {', '.join(map(repr, seen.missing))}"
    return f"{text}; the plain count {seen.disagreement}: {seen.counts}" if seen.disagreement else text


@dataclass(frozen=True, slots=True)
class Observation:
    """Rows that were asked, those that were left out by the command, and those that an interrupt came before."""

    seen: tuple[Observed, ...]
    left_out: tuple[LibraryAudit, ...] = ()
    unfinished: tuple[LibraryAudit, ...] = ()
    given: tuple[str, ...] = ()  # options of the command that decide its answers

    @property
    def suite(self) -> SuiteResult:
        """The rows as a suite; one with another cause or plain count than known has exit code 1."""
        wrong = (each.missing or each.disagreement for each in self.seen)
        entries = (replace(o.entry, exit_code=1) if bad else o.entry for o, bad in zip(self.seen, wrong, strict=True))
        return SuiteResult(tuple(entries), joint_confidence([r.entry.result for r in self.seen if r.entry.result]))

    @property
    def exit_code(self) -> int:
        """The worst of the rows; that of an interrupt, where one left any of them."""
        return INTERRUPTED if self.unfinished else self.suite.exit_code

    @property
    def headline(self) -> str:
        """The one line: how many rows of how many libraries, and whether all is as expected."""
        libraries = len({each.row.environment.package for each in self.seen})
        done = [each.entry.result for each in self.seen if each.entry.result is not None]
        refuted = sum(result.certificate.refuted for result in done)
        bits = sum(decisive(result) is not result for result in done)
        odd = sum(not each.as_expected for each in self.seen if each.entry.result is not None)
        silent = len(self.seen) - len(done)
        parts = [f"{refuted} refuted", f"{bits} by bits alone", f"{silent} without verdict"]
        known = f"; every {'other ' if silent else ''}verdict as expected" if done else ""
        remark = f"; {counted(odd, 'row')} not as expected" if odd else known
        unlike = Counter(each.disagreement for each in self.seen if each.disagreement)
        remark += "".join(f"; {counted(number, 'plain count')} {words}" for words, number in unlike.items())
        rows = f"{counted(len(self.seen), 'audit')} of {counted(libraries, 'library', 'libraries')}"
        remark += f"; interrupted before {counted(len(self.unfinished), 'row')}" if self.unfinished else ""
        return f"{rows}: {', '.join(parts)}{remark}"

    @property
    def pairs(self) -> dict[str, list[Observed]]:
        """Rows that are to be compared, by the word they share; a row alone is no comparison."""
        groups: dict[str, list[Observed]] = {}
        for each in self.seen:
            if each.row.record.compare is not None:
                groups.setdefault(each.row.record.compare, []).append(each)
        return {word: rows for word, rows in groups.items() if len(rows) > 1}

    def write(self, folder: Path) -> Path:
        """Writes a page and a record for each result, `observatory.json`, and `index.html`; returns its path."""
        suite = self.suite
        names = report.record_names(suite)
        files = itertools.chain(exchange.json_files(suite, names, names), html.render_files(suite, names, names))
        for name, text in files:
            if name != OVERVIEW:
                write_text(folder / name, text())
        rows = [view(each, name, self.given) for each, name in zip(self.seen, names, strict=True)]
        record = {"schema": SCHEMA, "version": __version__, "headline": self.headline, "exit_code": self.exit_code}
        write_text(folder / RECORD, text_of({**record, "rows": rows, **self._left}))
        return write_text(folder / OVERVIEW, self._html(rows))

    @property
    def _left(self) -> dict[str, list[str]]:
        missing = {"not_run": self.left_out, "unfinished": self.unfinished}
        return {why: [row.question.name for row in rows] for why, rows in missing.items()}

    def _html(self, rows: Sequence[dict[str, Any]]) -> str:
        by_name = {each["name"]: each for each in rows}
        libraries: dict[str, list[dict[str, Any]]] = {}
        for each in rows:
            libraries.setdefault(each["library"], []).append(each)
        results = [each.entry.result for each in self.seen if each.entry.result is not None]
        together = confidence_text(self.suite.confidence) if results else ""
        return html.render(
            "observatory.html",
            title=self.headline,
            odd=[(by_name[each.entry.name], look(each)) for each in self.seen if each.odd],
            left_out=self._left,
            table=Table("All rows", HEAD, tuple(cells(each) for each in rows), frozenset({2, 5})),
            marks=[(each["tone"], f"#{each['anchor']}", False) for each in rows],
            pairs={word: [by_name[each.entry.name] for each in group] for word, group in self.pairs.items()},
            libraries=libraries,
            together=together,
            plain_confidence=confidence_text(CONFIDENCE),
            not_shown=(*not_private(*results), *limits(*results)),
            version=__version__,
        )


def view(seen: Observed, record: str | None, given: Sequence[str]) -> dict[str, Any]:
    """A row as plain values: what the page shows and `observatory.json` holds; `record` is the file of its result."""
    row, result, known = seen.row, seen.entry.result, seen.row.record
    name, finding = seen.entry.name, None if result is None else decisive(result)
    again = [str(row.question.source), *given, "--only", name, "--report", "reports/repeat"]
    return {
        "name": name,
        "anchor": report.slug(name),
        "library": row.environment.package,
        "version": row.environment.version,
        "mechanism": row.mechanism,
        "tone": tone(result, seen.entry),
        "verdict": "no verdict" if result is None else stamp(result),
        "as_expected": seen.as_expected,
        "expected": seen.expected,
        "error": seen.entry.error or "",
        "claim": row.question.claim.short,
        "source": known.source or "",
        "claimed": "" if finding is None else promised(finding.claim, finding.certificate),
        "certified": "" if finding is None else certified_bound(finding.claim, finding.certificate),
        "statement": "" if result is None else "; ".join(bound_lines(result)),
        "bits": result is not None and result.representation_refuted,
        "cause": seen.cause,
        "pair": [] if result is None or finding is None else pair(result.spec["pairs"][finding.witness.pair]),
        "plain": None if seen.plain is None else {"event": seen.plain.event, "counts": seen.counts},
        "plain_agrees": not seen.disagreement,
        "disagreement": seen.disagreement,
        "finding": known.finding or "",
        "reported": known.reported or "",
        "compare": known.compare or "",
        "runs": 0 if result is None else result.runs_used,
        "cpu_s": None if result is None else result.provenance.get("cpu_s"),
        "requirements": list(row.environment.table.requirements),
        "python": "" if result is None else result.provenance.get("python", ""),
        "repeat": shlex.join(["dpaudit", "observe", *again]),
        "record": record,
        "page": None if record is None else f"{record.removesuffix('.json')}.html",
    }


def pair(stored: dict[str, Any]) -> list[str]:
    """What a pair is called, and its two datasets."""
    sides = [f"{side}: {data_text(stored[side], 2 * LONGEST_DATA)}" for side in ("first", "second")]
    return [clean(stored["name"], LONGEST_DATA), *sides]


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of the table."""
    plain = "" if row["plain"] is None else row["plain"]["counts"]
    cpu = "" if row["cpu_s"] is None else f"{row['cpu_s']:.1f}"
    verdict = row["verdict"] + (f", expected {row['expected']}" if row["expected"] else "")
    return row["name"], verdict, row["claimed"], row["certified"], plain, cpu
