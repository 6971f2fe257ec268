"""Renders the page; exits with 1 where a statement is not as known, or an audit not as expected or missing."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from urllib.parse import quote

from audits.digest import made
from audits.lectures.claims import items, page
from audits.lectures.claims.collect import (
    ROOT,
    attacks,
    audited,
    checked,
    records_in,
    results_in,
    topics,
    unexpected,
)
from dpaudit import DpAuditError


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m audits.lectures.claims", description=__doc__)
    parser.add_argument("--results", type=Path, required=True, help="the folder that `dpaudit run --report` wrote")
    parser.add_argument("--page", type=Path, required=True, help="the HTML file to write; a JSON record goes beside it")
    parser.add_argument("--records", action="store_true", help="link each audit to its file in the folder of results")
    given = parser.parse_args()
    try:
        results = results_in(given.results)
    except DpAuditError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    found = {topic: [checked(each, results) for each in statements] for topic, statements in topics().items()}
    measured, marked = attacks(), unexpected(results)
    given.page.parent.mkdir(parents=True, exist_ok=True)
    html = page.render(
        found,
        audited(results),
        measured,
        marked,
        items=items.read(),
        records=records_in(given.results, given.page) if given.records else {},
        root=f"{quote(Path(os.path.relpath(ROOT, given.page.parent)).as_posix())}/",
        origin=made("lectures"),
    )
    given.page.write_text(html, encoding="utf-8")
    given.page.with_suffix(".json").write_text(page.record(found, measured, marked), encoding="utf-8")
    every = [each for statements in found.values() for each in statements]
    for each in every:
        if not each.as_known:
            reason = f"audits not run: {'; '.join(each.missing)}" if each.missing else f"found {each.truth.verdict!r}"
            print(f"UNEXPECTED  {each.statement.name}: known as {each.statement.verdict!r}; {reason}")
    for name, words in marked.items():
        print(f"UNEXPECTED  audit {name!r}: {words}")
    known = sum(each.as_known for each in every)
    print(
        f"{len(every)} statements, {known} as known; {len(results)} audits, {len(marked)} verdicts not as expected: "
        f"{given.page}"
    )
    return 0 if known == len(every) and not marked else 1


if __name__ == "__main__":
    sys.exit(main())
