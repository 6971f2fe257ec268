"""Rows side by side, each asked by `dpaudit run` as a child process in its environment, and counted plainly after."""

import json
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from dpaudit.base.files import write_text
from dpaudit.base.quoting import LONGEST_DATA, clean
from dpaudit.errors import DpAuditError, MissingRequirement
from dpaudit.observatory.environments import Children, Ended
from dpaudit.observatory.rows import LibraryAudit, Observed, Plain, decisive
from dpaudit.results.stored import load_suite
from dpaudit.results.suite import SuiteEntry

KEPT = ".rows"  # of a report's folder: what is known of each row, by what it asked
PLAIN = "plain.json"


@dataclass(frozen=True, slots=True)
class Observer:
    """How rows are run: where to keep what comes out, and whether what is kept there is taken from there."""

    folder: Path
    ledger: str | None
    resume: bool
    children: Children
    say: Callable[[str], None] = lambda message: None

    def observe(self, rows: Sequence[LibraryAudit], jobs: int, tell: Callable[[Observed], None]) -> None:
        """Asks the rows; `tell` hears what was seen of each when it is finished."""
        with ThreadPoolExecutor(jobs) as pool:
            asked = {pool.submit(self.see, row): row for row in rows}
            try:
                for done in as_completed(asked):
                    tell(done.result())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.children.end()
                raise

    def see(self, row: LibraryAudit) -> Observed:
        """Asks a row, or takes it from what is kept; one that cannot be asked has an entry that says why."""
        folder = self.folder / KEPT / row.asked
        if not self.resume:
            shutil.rmtree(folder, ignore_errors=True)
        try:
            entry = self._entry(row, folder)
            return Observed(row, entry, self._plain(row, entry, folder))
        except DpAuditError as error:
            question = row.question
            entry = SuiteEntry(question.name, question.expect, source=str(question.source), bits=question.bits)
            return Observed(row, replace(entry, error=str(error), exit_code=error.exit_code))

    def _entry(self, row: LibraryAudit, folder: Path) -> SuiteEntry:
        """The row's entry of the suite that the child wrote. Raises `MissingRequirement` where it wrote none."""
        written = folder / "suite.json"
        if not written.exists() or load_suite(written).entries[0].result is None:
            row.environment.make(self.children, self.say)
            self.say(f"{row.question.name}: begins")
            argv = [*row.command("-m dpaudit run"), "--jobs", "1", "--no-progress", "--format", "json"]
            argv += ["--report", str(folder), *(("--ledger", self.ledger) if self.ledger else ())]
            ended = self._run(row, [*argv, "--resume"]) if self.resume else None
            if ended is None or (ended.code == 2 and "--resume" in ended.last_line):  # there is nothing to go on with
                ended = self._run(row, argv)
            if not written.exists():
                problem = f"dpaudit ended with {ended.code} in the environment of {row.environment.name}"
                raise MissingRequirement(f"{problem}: {ended.last_line}")
        return load_suite(written).entries[0]

    def _plain(self, row: LibraryAudit, entry: SuiteEntry, folder: Path) -> Plain | None:
        if row.record.plain is None or entry.result is None:
            return None
        file = folder / PLAIN
        if not file.exists():
            pair = str(decisive(entry.result).witness.pair)
            program = ["-m", "dpaudit.observatory.counting", str(row.question.source), row.question.name, pair]
            ended = self._run(row, program)
            try:
                counts = json.loads("" if ended.code else ended.out.splitlines()[-1])
                plain = Plain(counts["event"], tuple(counts["first"]), tuple(counts["second"]))
            except (IndexError, KeyError, TypeError, ValueError):  # what a library prints may stand there
                return Plain(error=clean(ended.last_line, LONGEST_DATA))
            write_text(file, json.dumps(counts))
            return plain
        counts = json.loads(file.read_text())
        return Plain(counts["event"], tuple(counts["first"]), tuple(counts["second"]))

    def _run(self, row: LibraryAudit, arguments: Sequence[str]) -> Ended:
        return self.children.run([row.environment.python, *arguments], row.environment.variables())
