"""Proofs by coupling against laws: of random programs all that are proved, held against exact laws or counted runs.

A contradiction is a false proof, and ends it with status 1. So does a table that could not fail: of what is proved a
good part must be contradicted once all bounds are taken times `FACTOR`.
"""

from __future__ import annotations

import math
import sys
import time
from collections import Counter

from benchmarks.tables import print_table

PROVED, QUICK = 3_000, 300
FACTOR, PAIRS, BITES = 0.8, 8, 0.2  # with bounds times FACTOR so many programs are contradicted at least, by 8 pairs
KEPT = 5  # sources that are printed
COLUMNS = ("made", "refused", "failed", "proved", "above 0", "exact", "counted", "contradicted")


def run(quick: bool) -> None:
    """Prints what became of random programs, by what their data are, and of mutants of those that are proved."""
    from tests.verify.coupled.laws import Confronted, confronted
    from tests.verify.coupled.random_programs import MUTATIONS, mechanism, mutant

    tallies: dict[str, Counter[str]] = {}
    wrong: list[str] = []

    def tallied(kind: str, source: str, found: Confronted, seconds: float) -> None:
        for tally in (
            tallies.setdefault(each, Counter()) for each in (kind, "mutants" if kind in MUTATIONS else "all")
        ):
            tally.update(["made", found.word])
            tally.update({"exact": found.exact, "counted": found.counted, "ms": round(1000 * seconds)})
            tally["above 0"] += found.word == "proved" and found.epsilon > 0.0
            tally["contradicted"] += bool(found.against)
        if found.against:
            wrong.append(f"{kind}: {found.against}\n{source}")

    seed = bites = tried = 0
    while tallies.get("all", Counter())["proved"] < (QUICK if quick else PROVED):
        given = mechanism(seed)
        began = time.process_time()
        found = confronted(given, seed)
        tallied(given.mode, given.source, found, time.process_time() - began)
        if found.word == "proved" and found.epsilon > 0.0 and seed % 10 == 0:
            tried += 1
            bites += bool(confronted(given, seed, pairs=PAIRS, factor=FACTOR).against)
            for mutation in MUTATIONS:
                other = mutant(given, mutation)
                if other is not None:
                    began = time.process_time()
                    tallied(mutation, other.source, confronted(other, seed), time.process_time() - began)
        seed += 1
    rows = (
        (kind, *(f"{tally[each]:,}" for each in COLUMNS), f"{tally['ms'] / 1000:.0f}")
        for kind, tally in sorted(
            tallies.items(),
            key=lambda each: (each[0] in (*MUTATIONS, "mutants"), each[0] in ("all", "mutants"), each[0]),
        )
    )
    print_table("Proofs by coupling against laws", ("programs over", *COLUMNS, "CPU s"), rows)
    print(f"\nwith all bounds times {FACTOR}: {bites} of {tried} programs are contradicted")
    print("\n".join(["\nwrong:", *wrong[:KEPT]]) if wrong else "\nwrong: none")
    if wrong or bites < math.floor(BITES * tried):
        sys.exit(1)
