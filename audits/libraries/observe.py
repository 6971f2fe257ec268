"""Audits of other people's libraries: every spec that names an [environment] is run in that one, and a page is written.

`python -m audits.libraries.observe PATH...` makes the environments that are missing, asks each row by `dpaudit run`,
and counts a plain event beside it. `--versions A..B` finds the first release of a row's library with another outcome.
Exit codes are those of `dpaudit run`: 1 also where the cause or the plain count of a row is not as its author knows.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import dpaudit
from audits.libraries.environment import Environment, child, reason
from audits.libraries.plain import Plain, decisive
from dpaudit import DpAuditError, InvalidSpec, MissingRequirement
from dpaudit.account import Level, account
from dpaudit.account.first import cause
from dpaudit.account.statements import stamp
from dpaudit.account.suites import suite_headline, suite_line
from dpaudit.base.files import write_text
from dpaudit.base.numerals import counted
from dpaudit.base.quoting import LONGEST_DATA, clean
from dpaudit.report import html, record_names, slug
from dpaudit.report.exchange import json_suite
from dpaudit.results.stored import load_suite
from dpaudit.results.suite import SuiteEntry, SuiteResult, joint_confidence
from dpaudit.running.contents import digest_of
from dpaudit.spec.questions import SpecQuestion, read_spec, shared
from dpaudit.spec.reading import find_specs

PROGRAM, COUNT = "audits.libraries.observe", "audits.libraries.plain"
ROWS = "rows"  # of a report's folder: what is known of each row, by what it asked
INTERRUPTED = 130  # the exit code that a shell expects


@dataclass(frozen=True, slots=True)
class Row:
    """An audit of a library, at its share of its file's confidence; `asked` is a digest of what decides its answer."""

    question: SpecQuestion
    record: dict[str, Any]
    environment: Environment
    asked: str

    def at(self, version: str) -> Row:
        """The row with another version of its library, without its plain count."""
        table, place = self.environment.table, str(self.question.source)
        first, *others = table["requirements"]
        table = {**table, "requirements": [re.sub(r"==.*", f"=={version}", first), *others]}
        environment = Environment.of(table, self.environment.folder.parent, place)
        return replace(self, environment=environment, record={}, asked=digest_of(self.asked, version))


@cache
def own_code() -> str:
    """A digest of dpaudit's own code: in development, the version alone says too little."""
    return digest_of({str(file): file.read_bytes() for file in Path(dpaudit.__file__).parent.rglob("*.py")})


def read_rows(paths: Sequence[str], environments: Path) -> list[Row]:
    """The rows of the spec files under these paths that name an environment, each at its share among all of its file.

    Raises `InvalidSpec` for a file that is none, and for a name that stands twice.
    """
    rows: dict[str, Row] = {}
    for path in find_specs(paths):
        questions, raw = shared(read_spec(path))[0], tomllib.loads(path.read_text("utf-8"))
        if "environment" not in raw:
            print(f"note: {path} names no [environment] and is left out; `dpaudit run` runs it", file=sys.stderr)
            continue
        environment = Environment.of(raw["environment"], environments, str(path))
        files = [file for file in path.parent.iterdir() if file.is_file() and file.suffix != ".toml"]
        digests = {file.name: digest_of(file.read_bytes()) for file in files if not file.name.startswith(".")}
        for question, table in zip(questions, raw["audit"], strict=True):
            if question.name in rows:
                raise InvalidSpec(f"{question.place}: the name stands in {rows[question.name].question.source}, too")
            record = table.get("record", {})
            counted = {key: record.get(key) for key in ("plain", "plain_runs")}  # other words of it decide nothing
            where = environment.table.get("python"), environment.wanted(), own_code()
            own = {**table, "record": counted}, question.confidence, question.seed
            asked = digest_of(repr(own), digests, repr(where))
            rows[question.name] = Row(question, record, environment, asked)
    return list(rows.values())


@dataclass(frozen=True, slots=True)
class Seen:
    """A row, the entry of the suite that `dpaudit run` wrote, its plain count where it has one, and their folder."""

    row: Row
    entry: SuiteEntry
    plain: Plain | None
    folder: Path

    @property
    def judged(self) -> SuiteEntry:
        """The entry; what else is not as its author knows is its error, which a suite lists first, with exit code 1."""
        result = self.entry.result
        if result is None:
            return self.entry
        said, words = cause(result).casefold(), self.row.record.get("cause", ())
        odd = [f"the cause does not say {word!r}" for word in words if word.casefold() not in said]
        odd += self.plain.against(result) if self.plain else []
        return replace(self.entry, error="; ".join(odd), exit_code=1) if odd else self.entry

    @property
    def page(self) -> str | None:
        """The page of its result, relative to the folder of the report."""
        name = html.page_names(record_names(SuiteResult((self.entry,), 0.5)))[0]
        return name and f"{ROWS}/{self.folder.name}/{name}"


@dataclass(frozen=True, slots=True)
class Observer:
    """How rows are asked: the folder of what comes out, and whether what is there is taken from there."""

    folder: Path
    resume: bool

    def see(self, row: Row) -> Seen:
        """Asks a row, or takes it from the folder; one that cannot be asked has an entry that says why."""
        folder, question = self.folder / ROWS / row.asked, row.question
        if not self.resume:
            shutil.rmtree(folder, ignore_errors=True)
        try:
            entry = self._entry(row, folder)
            return Seen(row, entry, self._plain(row, entry, folder), folder)
        except DpAuditError as error:
            entry = SuiteEntry(question.name, question.expect, None, str(error), error.exit_code, bits=question.bits)
            return Seen(row, replace(entry, source=str(question.source)), None, folder)

    def _entry(self, row: Row, folder: Path) -> SuiteEntry:
        """The row's entry of the suite that its own process wrote. Raises `MissingRequirement` where it wrote none."""
        suite, ledger, question = folder / "suite.json", folder / "ledger.sqlite", row.question
        argv = ["-m", "dpaudit", "run", str(question.source), "--only", question.name, "--jobs", "1", "--no-progress"]
        argv += ["--confidence", repr(question.confidence), "--seed", str(question.seed), "--ledger", str(ledger)]
        argv += ["--report", str(folder), "--format", "json,html"]
        if suite.exists() and load_suite(suite).entries[0].result is None:
            suite.unlink()
        for more in [["--resume"], []] if ledger.exists() else [[]]:  # anew where there is nothing to go on with
            if not suite.exists():
                row.environment.make()
                row.environment.run([*argv, *more], folder / "log.txt")
        if not suite.exists():
            why = reason(folder / "log.txt")
            raise MissingRequirement(f"dpaudit wrote no result in the environment of {row.environment.name}: {why}")
        return load_suite(suite).entries[0]

    def _plain(self, row: Row, entry: SuiteEntry, folder: Path) -> Plain | None:
        """The row's plain count, made once."""
        if row.record.get("plain") is None or entry.result is None:
            return None
        file, log, pair = folder / "plain.json", folder / "plain.txt", decisive(entry.result).witness.pair
        argv = ["-m", COUNT, str(row.question.source), row.question.name, str(pair), str(file)]
        if file.exists() or row.environment.run(argv, log) == 0:
            return Plain(**json.loads(file.read_text()))
        return Plain(error=clean(reason(log), LONGEST_DATA))


def write_page(seen: Sequence[Seen], not_run: dict[str, list[str]], folder: Path) -> SuiteResult:
    """Writes `suite.json` and `index.html`, the page of a suite with what is known of each row; returns the suite."""
    entries = tuple(each.judged for each in seen)
    together = joint_confidence([each.result for each in entries if each.result is not None])
    suite = SuiteResult(entries, together, name="Audits of libraries")
    libraries: dict[str, list[Seen]] = {}
    for each in seen:
        libraries.setdefault(each.row.environment.package, []).append(each)
    template = html.environment().from_string(Path(__file__).with_suffix(".html").read_text("utf-8"))
    words = {
        "cause": cause,
        "decisive": decisive,
        "stamp": stamp,
        "tone": lambda entry: account(entry, Level.HEADLINE).tone,
        "slug": slug,
    }
    words |= {"quoted": shlex.join, "program": PROGRAM, "libraries": libraries, "not_run": not_run}
    page = html.render_suite(suite, [each.page for each in seen], template=template, **words)
    write_text(folder / "suite.json", json_suite(suite))
    write_text(folder / "index.html", page)
    return suite


def observe(rows: Sequence[Row], left_out: list[str], observer: Observer, jobs: int) -> int:
    """Asks the rows, side by side, and writes the page; after an interrupt, that of those which are finished."""
    found: dict[str, Seen] = {}
    with ThreadPoolExecutor(jobs) as pool, suppress(KeyboardInterrupt):
        try:
            for done in as_completed([pool.submit(observer.see, row) for row in rows]):
                seen = done.result()
                found[seen.entry.name] = seen
                print(f"[{len(found)}/{len(rows)}] {suite_line(seen.judged)}", file=sys.stderr)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    names = [row.question.name for row in rows]
    unfinished = [name for name in names if name not in found]
    not_run = {"An interrupt came before these rows": unfinished, "The command left these rows out": left_out}
    suite = write_page([found[name] for name in names if name in found], not_run, observer.folder)
    code = INTERRUPTED if unfinished else suite.exit_code
    print(f"{suite_headline(suite)}; exit code {code}\nreport: {observer.folder / 'index.html'}")
    print(f"{counted(len(unfinished), 'row')} not finished; go on with --resume\n" * bool(unfinished), end="")
    return code


def releases(row: Row, span: str, log: Path) -> list[str]:
    """The releases of a row's library from a to b, "a..b", as its index has them for its interpreter, oldest first.

    Raises `InvalidSpec` for another span, `MissingRequirement` where pip cannot say.
    """
    row.environment.make()
    asked = child([row.environment.own, "-m", "pip", "index", "versions", row.environment.package], log)
    if (listed := re.search(r"Available versions: (.*)", log.read_text())) is None or asked:
        raise MissingRequirement(f"pip does not say which versions there are: {reason(log)}")
    known, (start, _, end) = listed[1].split(", ")[::-1], span.partition("..")
    if start not in known or end not in known[known.index(start) + 1 :]:
        raise InvalidSpec(f'--versions must read "a..b", two of {", ".join(known)}, got {span!r}')
    return known[known.index(start) : known.index(end) + 1]


def outcome(entry: SuiteEntry) -> tuple[str, str]:
    """The verdict of a version, or why there is none: every search run raised, as calls of another API do."""
    if entry.result is None:
        return "", entry.error or "no verdict"
    endings = [each.what for each in entry.result.illustration.endings if any(each.runs)]
    if endings and all(each.startswith("raised") for each in endings):
        return "", f"every run {endings[0]}"
    return stamp(entry.result), ""


def bisect(known: Sequence[str], ask: Callable[[str], str]) -> tuple[str, str, list[str]]:
    """The last version with the outcome of the first one, the first without it, and those of no outcome in between.

    The outcome may change once. `ask` says nothing of a version that has none. Raises `InvalidSpec` where both ends
    have the same or there is none.

    >>> bisect("1 2 3 4 5".split(), lambda version: "" if version == "3" else "old" if version < "4" else "new")
    ('2', '4', ['3'])
    """
    said = cache(ask)
    able = list(known)  # but for those that were asked and have no outcome
    while able and not (said(able[0]) and said(able[-1])):
        able = able[1:] if not said(able[0]) else able[:-1]
    if not able or said(able[0]) == said(able[-1]):
        raise InvalidSpec(f"--versions: from {known[0]} to {known[-1]} both ends have the same outcome; choose others")
    low, high = able[0], able[-1]
    while within := able[able.index(low) + 1 : able.index(high)]:
        middle = within[len(within) // 2]
        if not said(middle):
            able.remove(middle)
        elif said(middle) == said(low):
            low = middle
        else:
            high = middle
    return low, high, list(known[known.index(low) + 1 : known.index(high)])


def since(row: Row, span: str, observer: Observer) -> int:
    """Prints the first version of the row's library with another outcome."""
    library = row.environment.package

    def ask(version: str) -> str:
        said, error = outcome(observer.see(row.at(version)).entry)
        print(f"{library} {version}: {said or f'skipped, {error}'}")
        return said

    known = releases(row, span, observer.folder / "versions.txt")
    before, after, between = bisect(known, ask)
    one_of = f"one of {', '.join([*between, after])}" if between else after
    print(f"{library} {one_of} is the first version with another outcome than {before}, if it changed only once")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Asks the rows that are chosen."""
    parser = argparse.ArgumentParser(prog=f"python -m {PROGRAM}", description=__doc__)
    option = parser.add_argument
    option("paths", nargs="+", metavar="PATH", help="spec files, or folders of them")
    option("--report", type=Path, default=Path("reports/libraries"), metavar="DIR", help="where the page goes")
    option("--environments", type=Path, default=Path(".environments"), metavar="DIR", help="where they are, or go")
    option("--jobs", type=int, default=os.cpu_count(), metavar="N", help="rows at a time")
    option("--only", action="append", default=[], metavar="NAME", help="this row alone; may be repeated")
    option("--tag", action="append", default=[], metavar="WORD", help="rows with this tag; may be repeated")
    option("--fast", action="store_true", help="no row that does less than a thousand runs a second: with the tag slow")
    option("--resume", action="store_true", help="take what is finished as it is, and go on with the rest")
    option("--versions", metavar="A..B", help="of one row: find the first of these releases with another outcome")
    asked = parser.parse_args(arguments)
    try:
        rows = read_rows(asked.paths, asked.environments)
        tags = {row.question.name: set(row.question.tags) for row in rows}
        if unknown := set(asked.only) - set(tags):
            raise InvalidSpec(f"--only: no audit has the name {min(unknown)!r}; there are {', '.join(map(repr, tags))}")
        left_out = [name for name in tags if asked.only and name not in asked.only]
        left_out += [name for name in tags if asked.tag and not tags[name] & set(asked.tag)]
        left_out += [name for name in tags if asked.fast and "slow" in tags[name]]
        chosen = [row for row in rows if row.question.name not in left_out]
        if asked.versions and len(chosen) != 1:
            raise InvalidSpec(f"--versions asks one row, and there are {len(chosen)}; choose it by --only")
        if asked.versions:
            return since(chosen[0], asked.versions, Observer(asked.report, True))
        return observe(chosen, left_out, Observer(asked.report, asked.resume), asked.jobs)
    except DpAuditError as error:
        print(*(f"error: {each}" for each in error.args), sep="\n", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
