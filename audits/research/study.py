"""What audits certify of the whole catalogue: claimed, certified, exact and proved, beside the best event and others.

`python -m audits.research.study` audits every mechanism of the catalogue, its broken and harmless twins too, at ten
seeds, at several numbers of runs, at claims from 0.1 to 8 and at its worst pair, and the published benchmark. It writes
a table (CSV, and Parquet where pyarrow or polars is installed), figures and a page.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from audits.literature.published import PUBLISHED
from audits.research import figures, page, table
from audits.research.questions import JOINT, Plan, every, kind_of
from audits.research.work import Row, Work, published
from dpaudit.certify.certificate import divided


def tasks(plan: Plan, most: int | None) -> tuple[list[tuple[str, bool | None]], float]:
    """What is asked, mechanism by mechanism and then the published benchmark; the confidence of each bound.

    A task is a name, and for a mechanism whether it is audited at every size; for the benchmark None.
    """
    found = every(most)
    sound = [each for each in found if kind_of(each) == "sound"]
    rows = PUBLISHED if most is None else PUBLISHED[:most]
    confidence = divided(1.0 - JOINT, plan.bounds(len(found), len(sound), len(rows)))
    made: list[Any] = [(each.name, place % plan.apart == 0) for place, each in enumerate(found)]
    return made + [(each.name, None) for each in rows], confidence


def answered(task: tuple[str, bool | None], plan: Plan, confidence: float) -> list[Row]:
    """The rows of one task; whatever breaks there is a row that says so."""
    name, sized = task
    try:
        if sized is None:
            return published(name, plan, confidence)
        return Work(name, plan, confidence, sized).done()
    except Exception as error:
        part = "published" if sized is None else "seeds"
        return [{"part": part, "mechanism": name, "error": f"{type(error).__name__}: {error}"}]


def run(work: Sequence[Any], plan: Plan, confidence: float, jobs: int) -> Iterator[list[Row]]:
    """The rows of each task as they come, in the order of the tasks."""
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor

    calls = (delayed(answered)(task, plan, confidence) for task in work)
    yield from Parallel(n_jobs=jobs, batch_size=1, return_as="generator")(calls)
    if jobs != 1:
        get_reusable_executor().shutdown(wait=True)  # the time of processes counts once they have ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the study and writes its files: 0 where every row has a bound, 3 where one has none."""
    parser = argparse.ArgumentParser(prog="python -m audits.research.study", description=__doc__)
    parser.add_argument("--report", default="reports/research", metavar="DIR", help="where the files go")
    parser.add_argument("--jobs", type=int, default=-1, metavar="N", help="workers; -1 for all processors")
    parser.add_argument(
        "--most", type=int, metavar="N", help="only the first entries of the catalogue, with their twins"
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="repetitions of each mechanism at its own claim")
    given = parser.parse_args(arguments)
    plan = Plan() if given.seeds is None else dataclasses.replace(Plan(), seeds=given.seeds)
    work, confidence = tasks(plan, given.most)
    started, rows = time.monotonic(), list[Row]()
    for number, found in enumerate(run(work, plan, confidence, given.jobs), start=1):
        rows += found
        if number % 20 == 0 or number == len(work):
            past = time.monotonic() - started
            left = past / number * (len(work) - number)
            done = f"{number} of {len(work)} mechanisms, {len(rows):,} rows"
            print(f"{done}, {past:.0f} s, about {left:.0f} s left", file=sys.stderr)
    rows = table.finished(rows)
    folder = Path(given.report)
    folder.mkdir(parents=True, exist_ok=True)
    paths = table.write(rows, folder)
    drawn = figures.drawings(rows)
    print(f"{sum(os.times()[:4]):.0f} CPU seconds, {time.monotonic() - started:.0f} s")
    for line in page.account(rows, plan):
        print(line)
    paths += page.write(rows, drawn, plan, folder)
    print(f"page: {paths[-1]}")
    return 3 if any(row["error"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
