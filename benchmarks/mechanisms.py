"""Every audit of the lecture notes with a finite exact loss, at many runs: the certified bound over that loss."""

from __future__ import annotations

import math
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.tables import print_table
from dpaudit.catalogue import Entry
from dpaudit.data import AdjacentPair

LECTURES = Path(__file__).parents[1] / "audits" / "lectures"
RUNS = 10_000_000
CONFIDENCE = 0.99
GOAL = 0.8


def audits() -> Iterator[tuple[str, Entry, AdjacentPair]]:
    """The name, the mechanism and the pair of each audit that takes its claim from the catalogue."""
    from dpaudit.mechanisms.importing import import_reference

    for path in sorted(LECTURES.glob("*.toml")):
        for table in tomllib.loads(path.read_text(encoding="utf-8"))["audit"]:
            if "claim" in table or table.get("stopping") == "anytime" or table.get("representation"):
                continue
            entry: Entry = import_reference(table["mechanism"]).with_parameters(table.get("parameters", {}))
            given: dict[str, Any] | None = table.get("pair")
            pair = entry.pair if given is None else AdjacentPair(**given)
            yield table["name"], entry, pair


def run(quick: bool) -> None:
    """Prints one line for each audit; a hundredth of the runs if `quick`."""
    from dpaudit.api.audits import audit

    rows = []
    for name, entry, pair in audits():
        loss = entry.true_loss(pair.first, pair.second)
        if loss is None or math.isinf(loss):
            continue
        start = time.perf_counter()
        found = audit(
            entry,
            pair=pair,
            claim=entry.claim(),
            runs=RUNS // 100 if quick else RUNS,
            confidence=CONFIDENCE,
            seed=0,
        )
        part = found.certificate.lower / loss
        taken = time.perf_counter() - start
        event = f"`{str(found.witness.event)[:60]}`"
        rows.append((part, (name, entry.name, f"{loss:.4f}", f"{part:.3f}", f"{taken:.1f}", event)))
    least = min(part for part, _ in rows)
    header = ("audit", "mechanism", "exact loss", "bound / loss", "seconds", "event")
    title = f"Mechanisms at {RUNS:,} runs, confidence {CONFIDENCE}: least share {least:.3f}, goal {GOAL:g}"
    print_table(title, header, [row for _, row in sorted(rows)])
