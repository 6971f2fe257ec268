"""How search runs ended: with a value, an exception, None, NaN or out of time; to look at, never evidence."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpaudit.events import Event
from dpaudit.outputs import NONE, NOT_A_NUMBER, TIMED_OUT, Outputs, Pilot
from dpaudit.results.beside import VALUE, Ending
from dpaudit.results.witness import Witness

MOST = 8  # kinds of endings that are told
PLAIN = {each.code: each.label for each in (NONE, NOT_A_NUMBER, TIMED_OUT)}


def endings(pilot: Pilot | None, witness: Witness) -> tuple[Ending, ...]:
    """The endings of held runs, those with a value first, then the most frequent; none where all gave a value."""
    event = witness.event
    if pilot is None or not isinstance(event, Event):
        return ()
    found: dict[str, tuple[list[int], list[int]]] = {VALUE: ([0, 0], [0, 0])}
    for side, outputs in enumerate((pilot.first, pilot.second)):
        inside = event.contains(outputs)
        for label, there in kinds(outputs):
            runs, hits = found.setdefault(label, ([0, 0], [0, 0]))
            runs[side], hits[side] = int(there.sum()), int((there & inside).sum())
    failed = sorted((each for each in found if each != VALUE), key=lambda each: (-sum(found[each][0]), each))
    kept = [VALUE, *failed[:MOST]] if failed else []
    return tuple(Ending(each, (*found[each][0],), (*found[each][1],)) for each in kept)  # type: ignore[arg-type]


def kinds(outputs: Outputs) -> list[tuple[str, npt.NDArray[np.bool_]]]:
    """How runs ended, and which of them did so."""
    codes = outputs.column(()).tokens
    value, found = np.ones(outputs.runs, np.bool_), []
    for code in np.unique(codes).tolist():
        label = PLAIN.get(code) or outputs.labels.get(code, "")
        if code in PLAIN or label.startswith("raised "):
            there = codes == np.uint64(code)
            value &= ~there
            found.append((label, there))
    return [(VALUE, value), *found]


def notes(pilot: Pilot | None) -> dict[str, str]:
    """The message and line of the first exception of each label in held runs."""
    return {} if pilot is None else {**pilot.second.notes, **pilot.first.notes}
