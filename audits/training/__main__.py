"""Audits of real training code, each beside the figure that it is held against: `python -m audits.training NAME...`.

A table is a module of this folder with a docstring whose first line is its heading, a line `ENVIRONMENT = "opacus"`
(a file of requirements/ names the versions), and `rows() -> Iterable[Row]`, which yields each row when it is done.
Libraries are imported inside its functions. Without names every table of `--environment` runs, or every one.
Exit 1 where a row is not as expected; a row that a dot stands before is held against nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import traceback
from importlib import import_module
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small products take twenty times the CPU with two
ENVIRONMENT = re.compile(r'^ENVIRONMENT = "(\w+)"$', re.MULTILINE)


def tables() -> dict[str, str]:
    """The environment of each table, by name."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    found = {file.stem: ENVIRONMENT.search(file.read_text(encoding="utf-8")) for file in files}
    return {name: said[1] for name, said in found.items() if said}


def main() -> int:
    known = tables()
    parser = argparse.ArgumentParser(prog="python -m audits.training", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known) or 'no table yet'}")
    parser.add_argument("--environment", help="only tables of this environment", choices=sorted(set(known.values())))
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - set(known)):
        parser.error(f"no table {', '.join(unknown)}: there are {', '.join(known)}")
    chosen = [
        name
        for name, environment in known.items()
        if given.environment in (None, environment) and (not given.names or name in given.names)
    ]
    odd = 0
    for name in chosen:
        table = import_module(f"audits.training.{name}")
        print(f"\n{name}: {(table.__doc__ or name).splitlines()[0]}", flush=True)
        try:
            for row in table.rows():
                print(row, flush=True)
                odd += row.as_expected is False
        except Exception:  # the other tables go on
            traceback.print_exc()
            odd += 1
    print(f"\n{len(chosen)} tables, {odd} rows that are not as expected")
    return 1 if odd else 0


if __name__ == "__main__":
    sys.exit(main())
