"""Every entry of the catalogue and every twin, decided from source: proved, refuted, or open with the reason.

Nothing is audited. A verdict must agree with what the catalogue knows: whether the entry is broken, and its exact loss.
"""

from __future__ import annotations

import math
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.tables import print_table

SECONDS = 5.0  # for each
SAME = 1e-6  # relative: a loss in floats is as large as an enclosed one
TRIED = ("proved", "refuted", "open")


@dataclass(frozen=True, slots=True)
class Decided:
    """What became of an entry: one of `TRIED`, by what, why not, and how it disagrees with the truth (empty: not)."""

    name: str
    room: str
    verdict: str
    way: str
    seconds: float
    reason: str
    wrong: str


def run(quick: bool) -> None:
    """Prints one line for each entry and twin, and a summary by room; ends with status 1 at a verdict that is wrong.

    `quick` takes every tenth.
    """
    from dpaudit.catalogue import entries

    every = [each for top in entries() for each in (top, *top.twins.values())]
    rows = [decided(each) for each in every[:: 10 if quick else 1]]
    lines = ((f"`{each.name}`", each.verdict, each.way, f"{each.seconds:.2f}", each.reason) for each in rows)
    print_table(f"From source: {len(rows)} entries and twins", ("entry", "", "by", "CPU s", "why open"), lines)
    print_table("By room", ("room", *TRIED, "CPU s", "most frequent reasons"), by_room(rows))
    wrong = [f"{each.name}: {each.wrong}" for each in rows if each.wrong]
    print("\nwrong: " + ("; ".join(wrong) or "none"))
    if wrong:
        sys.exit(1)


def decided(entry: Any) -> Decided:
    """An entry decided: by its source, by replay of all its neighbours where they are few, or of its pair."""
    started, found, reasons, wrong = time.process_time(), None, list[str](), list[str]()
    for method, bracket in _brackets(entry, started):
        wrong += disagreements(entry, bracket, of_pair=method == "pair")
        if bracket.refuted or (bracket.proving is not None and method != "pair"):
            found = bracket
            break
        reasons += bracket.reasons
    seconds = time.process_time() - started
    room = entry.module.rpartition(".")[2]
    if found is None:
        return Decided(entry.name, room, "open", "", seconds, _reason(entry, reasons), "; ".join(wrong))
    by = found.refuting[0] if found.refuted else found.proving
    verdict = "refuted" if found.refuted else "proved"
    return Decided(entry.name, room, verdict, f"{by.source}, {by.label.value}", seconds, "", "; ".join(wrong))


def _brackets(entry: Any, started: float) -> Iterator[tuple[str, Any]]:
    from dpaudit import bracket
    from dpaudit.errors import DpAuditError

    def left() -> float:
        return max(0.1, SECONDS - (time.process_time() - started))

    if entry.every_pair is not None:
        pairs = list(entry.every_pair(**entry.values()))
        domain = list(dict.fromkeys(data for pair in pairs for data in pair))
        yield "domain", bracket(entry, domain=domain, neighbours=pairs, runs=0, max_time_s=left())
    yield "source", bracket(entry, runs=0, max_time_s=left())
    try:
        yield "pair", bracket(entry, domain=entry.default_pair, neighbours="all", runs=0, max_time_s=left())
    except DpAuditError:
        return


def disagreements(entry: Any, bracket: Any, *, of_pair: bool) -> Iterator[str]:
    """How a bracket contradicts what the catalogue knows; `of_pair`: a proof is about the default pair alone."""
    from dpaudit.results.bounds import Arithmetic, Label

    if bracket.refuted and not entry.broken:
        yield f"refuted, though it keeps its claim, by {bracket.refuting[0]}"
    if bracket.proving is not None and entry.broken and not of_pair:
        yield f"proved, though it breaks its claim, by {bracket.proving}"
    for bound in bracket.uppers:
        loss = epsilon_of(entry, bound.delta)
        if bound.arithmetic is Arithmetic.FLOATS or loss is None:
            continue
        if bound.epsilon_upper < loss * (1.0 - SAME) - SAME:
            yield f"a bound of {bound.epsilon_upper!r} at delta {bound.delta:g}, and the pair loses {loss!r}"
        mine = of_pair or (bound.label is Label.EXACT_PAIR and entry.pair.name in bound.scope)
        if mine and (bound.epsilon_lower or 0.0) > loss * (1.0 + SAME) + SAME:
            yield f"a loss of at least {bound.epsilon_lower!r} at delta {bound.delta:g}, and the pair loses {loss!r}"


def epsilon_of(entry: Any, delta: float) -> float | None:
    """The exact epsilon of the default pair at a delta, as the catalogue has it; None where it does not know that."""
    loss, claim = entry.true_loss(*entry.default_pair), entry.claim()
    if loss is None or math.isnan(loss):
        return None
    if claim.parameter == "epsilon":
        return max(0.0, loss) if claim.delta == delta else None
    if loss == math.inf or claim.delta > delta:
        return None
    return claim.with_value(max(0.0, loss)).epsilon_at(delta) if type(claim).__name__ == "GaussianDP" else None


def _reason(entry: Any, reasons: Sequence[str]) -> str:
    """The reason that says most: of what should be refuted that of the pair, else that of a coupling."""
    method = "the code followed" if entry.broken else "proof by coupling"
    return next((each for each in reasons if each.startswith(method)), reasons[0] if reasons else "")


def by_room(rows: Sequence[Decided]) -> Iterator[tuple[str, ...]]:
    """How many of each room were decided, and the reasons of the others."""
    rooms = dict.fromkeys(each.room for each in rows)
    for room in (*rooms, "all"):
        inside = [each for each in rows if room in (each.room, "all")]
        counts = Counter(each.verdict for each in inside)
        kinds = Counter(_kind(each.reason) for each in inside if each.reason)
        often = "; ".join(f"{count}: {kind}" for kind, count in kinds.most_common(3))
        yield room, *(str(counts[each]) for each in TRIED), f"{sum(each.seconds for each in inside):.0f}", often


def _kind(reason: str) -> str:
    """A reason without what is of one program alone."""
    return re.sub(r"`[^`]*`", "`...`", re.sub(r"line \d+( of \w+)?", "a line", reason))[:120]
