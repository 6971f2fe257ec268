"""`python -m benchmarks [valid|tight|verify|exact|speed ...] [--quick]` prints Markdown tables; by default all."""

from __future__ import annotations

import argparse
from importlib import import_module

TABLES = (
    "valid",
    "tight",
    "search",
    "heldout",
    "bracket",
    "prove",
    "verify",
    "forms",
    "claims",
    "laws",
    "exact",
    "certifiers",
    "sequential",
    "few",
    "nulls",
    "one_run",
    "pairs",
    "worst_pairs",
    "samplers",
    "mechanisms",
    "speed",
    "scale",
    "memory",
    "light",
    "pages",
    "compare",
    "plugin",
    "tasks",
    "kills",
    "tampered",
    "fuzz",
    "hostile",
    "deadline",
    "fixed_batches",
    "library_alarms",
    "faults",
    "channels",
    "violations",
)


def main() -> None:
    """Runs the tables that were asked for, in the order of `TABLES`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="prints Markdown tables")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"some of: {', '.join(TABLES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work: shows that it runs, not the numbers")
    given = parser.parse_args()
    unknown = sorted(set(given.tables) - set(TABLES))
    if unknown:
        parser.error(f"there is no table {unknown[0]!r}; there are: {', '.join(TABLES)}")
    for name in TABLES:
        if not given.tables or name in given.tables:
            import_module(f"benchmarks.{name}").run(given.quick)


if __name__ == "__main__":
    main()
