"""What a result shows of outputs that search held, never evidence: where they fell, and how their runs ended."""

from __future__ import annotations

import numpy as np

from dpaudit.arrays import Bools, Reals
from dpaudit.events import Event
from dpaudit.events.search.labels import labels_of
from dpaudit.outputs import ABSENT, NONE, NOT_A_NUMBER, TIMED_OUT, Column, Outputs, Pilot, concatenate
from dpaudit.results.beside import BINS, VALUE, Ending, Histogram, counts_on, grid
from dpaudit.results.witness import Witness

MOST_TOKENS = 12
OTHERS = "others"
KNOWN = (ABSENT, NONE, NOT_A_NUMBER, TIMED_OUT)  # tokens that outputs may hold without naming them
MOST_ENDINGS = 8  # kinds of endings that are told
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
    kept = [VALUE, *failed[:MOST_ENDINGS]] if failed else []
    return tuple(Ending(each, (*found[each][0],), (*found[each][1],)) for each in kept)  # type: ignore[arg-type]


def kinds(outputs: Outputs) -> list[tuple[str, Bools]]:
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


def histogram(pilot: Pilot | None, witness: Witness) -> Histogram | None:
    """The histogram of held outputs on the feature of a witness; None where none are held."""
    if pilot is None or not (pilot.first.runs and pilot.second.runs):
        return None
    feature = witness.event.feature
    sides = [feature.column(pilot.first), feature.column(pilot.second)]
    numbers = [np.sort(column.values[column.tokens == 0].astype(np.float64)) for column in sides]
    finite = [each[np.isfinite(each)] for each in numbers]
    edges, values = _grid(np.concatenate(finite), witness)
    known = {each.code: each.label for each in KNOWN} | labels_of(feature, concatenate([pilot.first, pilot.second]))
    names, tokens_first, tokens_second = _tokens(sides, known)
    return Histogram(
        feature=str(feature),
        edges=edges,
        values=values,
        first=counts_on(numbers[0], edges, values),
        second=counts_on(numbers[1], edges, values),
        labels=names,
        tokens_first=tokens_first,
        tokens_second=tokens_second,
        runs_first=pilot.first.runs,
        runs_second=pilot.second.runs,
    )


def _grid(numbers: Reals, witness: Witness) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(edges, values): one of them empty. The thresholds of an event are edges where they are finite."""
    edges, values = grid(numbers)
    if not edges or not isinstance(witness.event, Event):
        return edges, values
    low, high = edges[0], edges[-1]
    thresholds = {each for both in witness.event.intervals for each in both if low < each < high}
    kept = {edge for edge in edges if all(abs(edge - each) > 0.3 * (high - low) / BINS for each in thresholds)}
    return tuple(sorted(kept | thresholds)), ()


def _tokens(sides: list[Column], labels: dict[int, str]) -> tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for side, column in enumerate(sides):
        codes, counts = np.unique(column.tokens[column.tokens != 0], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            found.setdefault(labels.get(code, f"token {code:x}"), [0, 0])[side] += count
    infinite = [int(np.isinf(column.values[column.tokens == 0]).sum()) for column in sides]
    if any(infinite):
        found["infinite"] = infinite
    ranked = sorted(found.items(), key=lambda item: (-sum(item[1]), item[0]))
    if len(ranked) > MOST_TOKENS:
        rest = [sum(counts[side] for _, counts in ranked[MOST_TOKENS - 1 :]) for side in (0, 1)]
        ranked = [*ranked[: MOST_TOKENS - 1], (OTHERS, rest)]
    return (
        tuple(label for label, _ in ranked),
        tuple(counts[0] for _, counts in ranked),
        tuple(counts[1] for _, counts in ranked),
    )
