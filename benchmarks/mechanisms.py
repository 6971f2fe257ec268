"""Every mechanism of the catalogue whose loss is finite: the certified bound over the exact loss of its pair."""

from __future__ import annotations

import math
import time

from benchmarks.tables import print_table

RUNS, FITTED = 10_000_000, 1_000_000  # FITTED where a run fits a model
CONFIDENCE = 0.99
GOAL = 0.8


def run(quick: bool) -> None:
    """Prints one line for each entry and twin; a tenth of the runs if `quick`."""
    from dpaudit.api import audit
    from dpaudit.catalogue import rooms

    rows = []
    for room, entries in rooms().items():
        for entry in (each for parent in entries for each in (parent, *parent.twins.values())):
            pair, claim = entry.pair, entry.claim()
            loss = entry.true_loss(pair.first, pair.second)
            if loss is None or math.isinf(loss) or loss == 0.0:
                continue
            runs = (FITTED if entry.module.endswith(".learning") else RUNS) // (10 if quick else 1)
            start = time.perf_counter()
            found = audit(entry, pair=pair, claim=claim, runs=runs, confidence=CONFIDENCE, seed=0)
            part = found.certificate.lower / loss
            goal = "met" if part >= GOAL else "below"
            taken = f"{time.perf_counter() - start:.1f}"
            event = f"`{str(found.witness.event)[:60]}`"
            rows.append((entry.name, room, f"{runs:,}", f"{loss:.4f}", f"{part:.3f}", goal, taken, event))
            print(f"{entry.name}: {part:.3f} of {loss:.4f}, {taken} s", flush=True)
    header = ("mechanism", "room", "runs", "exact loss", "bound / loss", f"{GOAL:g}", "seconds", "event")
    print_table(f"Mechanisms of the catalogue, confidence {CONFIDENCE}", header, rows)
