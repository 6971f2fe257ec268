"""The published benchmark audited: certified bounds beside exact losses and what other tools reported.

`python -m audits.literature.study` audits every row of the benchmark, compares each bound with the exact law, the best
event and the published bounds, and writes a page, a JSON record and two figures; `--full` does it with ten times the
executions. `--from` makes page and figures again from a record, without a run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from audits.literature import expected, figures
from audits.literature.groups import SECTIONS
from audits.literature.measure import measured
from audits.literature.page import EXACT, EXECUTIONS, markdown
from audits.literature.published import PUBLISHED, of
from audits.literature.record import Failed, Record
from audits.literature.rows import Row, rows
from audits.literature.sections import part
from audits.literature.table import Table
from dpaudit import DpAuditError

SCHEMA = "dpaudit.literature/1"
NAME = "literature"


@dataclass(frozen=True, slots=True)
class Study:
    """All that the page says: records of the rows, rows that failed, further tables, and what it was made with."""

    records: tuple[Record, ...]
    failed: tuple[Failed, ...] = ()
    groups: tuple[Table, ...] = ()
    machine: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""

    def to_json(self) -> str:
        """The study as JSON: counts, bounds, laws and witnesses, with the published numbers beside them."""
        whole = {
            "schema": SCHEMA,
            "command": self.command,
            "made_with": dict(self.machine),
            "rows": [record.to_dict() | _published(record) for record in self.records],
            "failed": [{"name": each.name, "reason": each.reason} for each in self.failed],
            "groups": [table.to_dict() for table in self.groups],
        }
        return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Study:
        """The study that `to_json` wrote. Raises ValueError for another text."""
        stored = json.loads(text)
        if not isinstance(stored, dict) or stored.get("schema") != SCHEMA:
            raise ValueError(f"no record of this study: the schema must be {SCHEMA!r}")
        try:
            return cls(
                tuple(Record.from_dict(each) for each in stored["rows"]),
                tuple(Failed(**each) for each in stored["failed"]),
                tuple(Table.from_dict(each) for each in stored["groups"]),
                stored["made_with"],
                stored["command"],
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"no whole record of this study: {type(error).__name__}: {error}") from error

    def files(self) -> dict[str, bytes]:
        """The files of the report by name; the figures only where there is something to draw."""
        page = markdown(self.records, self.failed, self.groups, self.machine, self.command)
        made = {f"{NAME}.json": self.to_json().encode(), f"{NAME}.md": page.encode()}
        if self.records:
            known = {each.name: each for each in PUBLISHED}
            for name, draw in ((EXACT, figures.against_exact), (EXECUTIONS, figures.against_executions)):
                made |= {f"{name}.{kind}": image for kind, image in draw(self.records, known).items()}
        return made


def audited(chosen: Iterable[Row], runs: int, *, told: Callable[[str], None] = print, **options: Any) -> Study:
    """The rows audited one after the other; one that fails is said and does not stop the others."""
    records: list[Record] = []
    failed: list[Failed] = []
    machine: dict[str, Any] = {}
    for row in chosen:
        started = time.monotonic()
        try:
            record, machine = measured(row, runs, **options)
        except Exception as error:  # whatever it is, the other rows are wanted
            failed.append(Failed(row.name, f"{type(error).__name__}: {error}"))
            told(f"{row.name:16} FAILED  {failed[-1].reason}")
            continue
        records.append(record)
        told(f"{line(record)}  {time.monotonic() - started:.0f} s")
    return Study(tuple(records), tuple(failed), (), machine)


def line(record: Record) -> str:
    """A row in a line: what was found, what is exact, how close it is, and what it took."""
    found, better = record.main, {True: "above", False: "not above", None: "no bound of"}[expected.compared(record)]
    levels = "  ".join(expected.down(found.bound(level)) for level in (0.9999, 0.9))
    exact = "?" if record.exact is None else f"{record.exact:.4g}"
    return (
        f"{record.name:16} {levels}  exact {exact}  part {part(record)}  {better} DP-Sniper  "
        f"{found.cpu_s:.1f} s CPU, {found.wall_s:.1f} s"
    )


def write(study: Study, folder: Path) -> list[Path]:
    """Writes every file of the report; all are made before the first is put in its place."""
    made = study.files()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".literature-") as beside:
        for name, content in made.items():
            (Path(beside) / name).write_bytes(content)
        for name in made:
            os.replace(Path(beside) / name, folder / name)
    return [folder / name for name in made]


def further(n_jobs: int, told: Callable[[str], None] = print) -> tuple[tuple[Table, ...], tuple[Failed, ...]]:
    """The sections of the other groups; one that fails is said and does not stop the others."""
    made: list[Table] = []
    failed: list[Failed] = []
    for name, section in SECTIONS.items():
        started = time.monotonic()
        try:
            made.append(section(n_jobs))
        except Exception as error:  # the rows are there, and wanted without it
            failed.append(Failed(name, f"{type(error).__name__}: {error}"))
            told(f"{name}  FAILED  {failed[-1].reason}")
            continue
        told(f"{name}  {made[-1].verdict}  {time.monotonic() - started:.0f} s")
    return tuple(made), tuple(failed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the study and writes its files; 1 where a row failed, 2 where the question is wrong."""
    parser = argparse.ArgumentParser(prog="python -m audits.literature.study", description=__doc__)
    parser.add_argument("--report", type=Path, default=Path("reports/literature"), metavar="DIR", help="where files go")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--runs", type=int, default=expected.BUDGET, metavar="N", help="executions to spend on a row")
    size.add_argument("--full", action="store_true", help=f"spend {expected.FULL:,} executions on a row")
    size.add_argument("--from", dest="stored", type=Path, metavar="FILE", help="take this record instead of running")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this row alone; may be repeated")
    parser.add_argument(
        "--no-groups", action="store_true", help="leave out the groups of other tools and the soundness"
    )
    parser.add_argument("--jobs", type=int, default=-1, metavar="N", help="workers; -1 for all processors")
    given = parser.parse_args(arguments)
    try:
        study = stored(given.stored) if given.stored else asked(given)
        for each in expected.expectations(study.records, study.groups, study.machine.get("study_s")):
            print(f"{'met   ' if each.met else 'MISSED'}  {each.words}: {each.found}")
        paths = write(study, given.report)
    except (DpAuditError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"page: {next(path for path in paths if path.suffix == '.md')}")
    return 1 if study.failed else 0


def asked(given: argparse.Namespace) -> Study:
    """The study that the command line asks for, once there is a folder for it.

    Raises ValueError for a row that is not there or for no runs, and OSError where the folder cannot be made.
    """
    known = {row.name: row for row in rows()}
    unknown = [name for name in given.only if name not in known]
    if unknown:
        raise ValueError(f"no row is called {', '.join(unknown)}; there are: {', '.join(known)}")
    runs = expected.FULL if given.full else given.runs
    if runs < 1:
        raise ValueError(f"--runs must be at least 1, got {runs}")
    given.report.mkdir(parents=True, exist_ok=True)
    chosen = [row for name, row in known.items() if not given.only or name in given.only]
    started = time.monotonic()
    found = audited(chosen, runs, told=_told, n_jobs=given.jobs)
    groups, failed = ((), ()) if given.only or given.no_groups else further(given.jobs, _told)
    only = "".join(f" --only {name}" for name in given.only) or (" --no-groups" if given.no_groups else "")
    size = " --full" if given.full else f" --runs {runs}"
    command = f"python -m audits.literature.study{size}{only}"
    machine = dict(found.machine) | ({} if only else {"study_s": round(time.monotonic() - started)})
    return Study(found.records, found.failed + failed, groups, machine, command)


def stored(file: Path) -> Study:
    """The study of a record. Raises ValueError where it is none, and OSError where it cannot be read."""
    return Study.from_json(file.read_text(encoding="utf-8"))


def _told(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _published(record: Record) -> dict[str, Any]:
    known = of(record.name)
    executions = known.executions if known.best else None
    plain = asdict(known) | {"dp_sniper_executions": executions, "statdp_executions_a_try": known.statdp_executions}
    return {"above_dp_sniper": expected.compared(record), "published": plain}


if __name__ == "__main__":
    sys.exit(main())
