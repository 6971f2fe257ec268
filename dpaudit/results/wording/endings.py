"""Exceptions, None, NaN and time-outs in plain words: how often, what they said, whether the event is about them."""

from __future__ import annotations

from dpaudit.results.audited import Audited
from dpaudit.results.beside import VALUE, Ending
from dpaudit.results.wording.quoting import LONGEST_DATA, clean

DOES = {VALUE: "gives a value", "None": "gives None", "nan": "gives NaN", "timed out": "exceeds run_timeout_s"}
LONGEST_NOTE = 240


def meaning(result: Audited) -> str:
    """What the event comes to, ` (that is: the run raises ValueError)`; empty where the event says it itself."""
    held = [each for each in result.endings if sum(each.runs)]
    inside = [each for each in held if each.hits == each.runs]
    if held and inside and all(each.hits in (each.runs, (0, 0)) for each in held):
        return f" (in {_held(result)} that was: the run {' or '.join(map(_does, inside))})"
    return ""


def ending_lines(result: Audited) -> tuple[str, ...]:
    """How often search runs gave no value, with the first message and line of each exception; none where all did."""
    if not result.endings:
        return ()
    total = [sum(each.runs[side] for each in result.endings) for side in (0, 1)]
    said = result.provenance.get("exceptions", {})
    lines = []
    for each in result.endings[1:]:
        note = f": {clean(said[each.what], LONGEST_NOTE)}" if each.what in said else ""
        first, second = (f"{runs:,} of {of:,}" for runs, of in zip(each.runs, total, strict=True))
        where = f"{first} {_held(result)} on the first dataset, {second} on the second"
        lines.append(f"the mechanism {_does(each)} in {where}{note}")
    if not meaning(result) and _mostly(result.endings):
        lines.append("most of what tells the datasets apart by this event is whether a run gives a value at all")
    return tuple(lines)


def _held(result: Audited) -> str:
    return "held runs" if result.blocks else "search runs"


def of_endings(result: Audited) -> bool:
    """Whether the event is, or is mostly, about how runs end and not about the values that they give."""
    return bool(meaning(result)) or _mostly(result.endings)


def _mostly(endings: tuple[Ending, ...]) -> bool:
    """Whether the share of runs with a value differs by at least half as much as the share in the event."""
    total = [sum(each.runs[side] for each in endings) for side in (0, 1)]
    hits = [sum(each.hits[side] for each in endings) for side in (0, 1)]
    if not all(total):
        return False
    valued, rates = endings[0].runs, [hit / runs for hit, runs in zip(hits, total, strict=True)]
    return 2.0 * abs(valued[0] / total[0] - valued[1] / total[1]) >= abs(rates[0] - rates[1]) > 0.0


def _does(ending: Ending) -> str:
    kind, _, name = ending.what.partition(" ")
    return f"raises {clean(name, LONGEST_DATA)}" if kind == "raised" else DOES.get(ending.what, clean(ending.what))
