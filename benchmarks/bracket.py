"""Both sides of every catalogue entry: its certified lower bound against what is known from above."""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import Any

from benchmarks.tables import print_table

RUNS, QUICK_RUNS = 20_000_000, 100_000  # in all: 10^7 for each dataset
CONFIDENCE = 0.9999
LEAST_MASS, LEAST_LOSS, GOAL = 1e-2, 0.5, 0.95


def run(quick: bool) -> None:
    """Prints one line for each entry and twin where both halves exist, and the goals; `quick` takes few runs."""
    from dpaudit.catalogue import entries
    from dpaudit.execution.engine import Engine
    from dpaudit.verify.bracketing import Wanted, run_bracket, target_of

    runs = QUICK_RUNS if quick else RUNS
    rows: list[tuple[str, ...]] = []
    verdicts: Counter[str] = Counter()
    wrong: list[str] = []
    started = time.perf_counter()
    with Engine(-1) as engine:
        for entry in (each for top in entries() for each in (top, *top.twins.values())):
            joined = run_bracket(target_of(entry), Wanted(runs=runs, confidence=CONFIDENCE, seed=1), engine)
            found = joined.bracket
            verdicts[found.verdict.value] += 1
            if found.verdict.value == ("PROVED" if entry.broken else "REFUTED"):
                wrong.append(f"{entry.name} is {found.verdict.value}")
            if found.contradictory:
                wrong.append(f"{entry.name}: the lower bound is above the upper one")
            if found.lower is None or joined.audit is None or found.upper is None:
                continue
            rows.append(_row(entry.name, joined))
            if rows[-1][-1] == "ABOVE" or (rows[-1][-1] == "BELOW" and not quick):  # the goal is for all the runs
                wrong.append(f"{entry.name}: {rows[-1][-1]}")
    header = ("mechanism", "verdict", "audit", "loss of the pair", "least upper bound", "at its event", "goal")
    title = f"Bracket: {len(rows)} entries with both halves, {runs:,} runs, confidence {CONFIDENCE}"
    print_table(title, header, rows)
    print(f"\nverdicts: {dict(verdicts)}; {time.perf_counter() - started:.0f} s")
    print("wrong: " + ("; ".join(wrong) or "none"))


def _row(name: str, joined: Any) -> tuple[str, ...]:
    from dpaudit.results.bounds import Label

    found, audit = joined.bracket, joined.audit
    lower, claim = found.lower, audit.claim
    pair = [each for each in found.uppers if each.label is Label.EXACT_PAIR and each.delta <= lower.delta]
    loss = min((each.epsilon_upper for each in pair), default=float("inf"))
    above = lower.epsilon_lower > loss * (1.0 + 1e-9)
    at_event, goal = _at_event(audit)
    return (
        f"`{name}`",
        found.verdict.value,
        f"{lower.epsilon_lower:.4f}",
        f"{loss:.4f}",
        "" if found.upper is None else f"{found.upper.epsilon_upper:.4f}",
        at_event,
        "ABOVE" if above else goal if claim.parameter == "epsilon" else "",
    )


def _at_event(audit: Any) -> tuple[str, str]:
    """The bound over the log ratio of the rates at its own event, which at 10^7 runs is within 2 % of the exact one."""
    e = audit.evidence
    hits = getattr(e, "hits_p", 0), getattr(e, "hits_q", 0)
    if not all(hits) or audit.certificate.delta > 0.0:
        return "", ""
    ratio, rarer = math.log(hits[0] / e.runs_p * e.runs_q / hits[1]), min(hits[0] / e.runs_p, hits[1] / e.runs_q)
    if ratio <= 0.0:
        return "", ""
    part = audit.certificate.epsilon_lower / ratio
    counts = rarer >= LEAST_MASS and ratio >= LEAST_LOSS
    return f"{part:.3f}", ("met" if part >= GOAL else "BELOW") if counts else ""
