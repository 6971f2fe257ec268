"""What a result shows of outputs that search held, never evidence: where they fell, how runs ended, some of them."""

import numpy as np

from dpaudit.base.arrays import Bools, Places, Reals
from dpaudit.events import Event, Partition
from dpaudit.events.features import spell
from dpaudit.outputs.canonical import (
    ABSENT,
    MESSAGE,
    NONE,
    NOT_A_NUMBER,
    TIMED_OUT,
    Column,
    Outputs,
    Path,
    Pilot,
    derived,
)
from dpaudit.results.certification import Witness
from dpaudit.results.observations import BINS, LEVELS, VALUE, Ending, Histogram, PlaceValues, Typical, counts_on, grid
from dpaudit.results.result import BITS
from dpaudit.search.binning import labels_of, written
from dpaudit.search.entries import coordinates_of, varies

MOST_TOKENS = 12
OTHERS = "others"
KNOWN = (ABSENT, NONE, NOT_A_NUMBER, TIMED_OUT)  # tokens that outputs may hold without naming them
MOST_ENDINGS = 8  # kinds of endings that are told
EXAMPLES, LONGEST = 8, 120  # typical outputs of a side, and their characters
FEWEST_ALIKE = 10  # runs of a side, for one output of all of them to be told
LOOKED_AT, PLACES = 64, 4  # places of outputs, and those of them that are told
PLAIN = {each.code: each.label for each in (NONE, NOT_A_NUMBER, TIMED_OUT)}


def endings(pilot: Pilot | None, witness: Witness) -> tuple[Ending, ...]:
    """The endings of held runs, those with a value first, then the most frequent; none where all gave a value."""
    event = witness.event
    if pilot is None or not isinstance(event, Event):
        return ()
    counts: dict[str, tuple[list[int], list[int]]] = {VALUE: ([0, 0], [0, 0])}
    for side, outputs in enumerate((pilot.first, pilot.second)):
        inside = event.contains(outputs)
        for label, there in kinds(outputs):
            runs, hits = counts.setdefault(label, ([0, 0], [0, 0]))
            runs[side], hits[side] = int(there.sum()), int((there & inside).sum())
    failed = sorted((each for each in counts if each != VALUE), key=lambda each: (-sum(counts[each][0]), each))
    labels = [VALUE, *failed[:MOST_ENDINGS]] if failed else []
    return tuple(Ending(each, (*counts[each][0],), (*counts[each][1],)) for each in labels)  # type: ignore[arg-type]


def kinds(outputs: Outputs) -> list[tuple[str, Bools]]:
    """How runs ended, and which of them did so."""
    codes = outputs.column(()).tokens
    value, others = np.ones(outputs.runs, np.bool_), []
    for code in np.unique(codes).tolist():
        label = PLAIN.get(code) or outputs.labels.get(code, "")
        if code in PLAIN or label.startswith("raised "):
            there = codes == np.uint64(code)
            value &= ~there
            others.append((label, there))
    return [(VALUE, value), *others]


def notes(pilot: Pilot | None) -> dict[str, str]:
    """The message and line of the first exception of each label in held runs."""
    return {} if pilot is None else {**pilot.second.notes, **pilot.first.notes}


def histogram(pilot: Pilot | None, witness: Witness) -> Histogram | None:
    """The histogram of held outputs on the feature of a witness; None where none are held."""
    if pilot is None or not (pilot.first.runs and pilot.second.runs):
        return None
    feature = witness.event.feature
    sides = [feature.column(pilot.first), feature.column(pilot.second)]
    numbers = [column.values[column.tokens == 0].astype(np.float64) for column in sides]
    finite = [each[np.isfinite(each)] for each in numbers]  # those that are not have a label
    edges, values = _grid(np.concatenate(finite), witness)
    known = {each.code: each.label for each in KNOWN} | labels_of(feature, pilot.both)
    names, tokens_first, tokens_second = _tokens(sides, known)
    return Histogram(
        feature=str(feature),
        edges=edges,
        values=values,
        first=counts_on(finite[0], edges, values),
        second=counts_on(finite[1], edges, values),
        labels=names,
        tokens_first=tokens_first,
        tokens_second=tokens_second,
        runs_first=pilot.first.runs,
        runs_second=pilot.second.runs,
    )


def typical(pilot: Pilot | None, witness: Witness) -> Typical | None:
    """Typical outputs inside the event of a witness, and what the places hold that it reads; None of no outputs."""
    if pilot is None or not (pilot.first.runs and pilot.second.runs and pilot.first.complete and pilot.second.complete):
        return None
    event = witness.event.bins[0] if isinstance(witness.event, Partition) else witness.event
    sides, both = (pilot.first, pilot.second), pilot.both
    inside = [np.flatnonzero(event.contains(each)) for each in sides]
    paths = coordinates_of(both) or [()]
    examples = [
        tuple(
            _output(each, row, paths, event)
            for row in _spread(event, each, rows if len(rows) else np.arange(each.runs))
        )
        for each, rows in zip(sides, inside, strict=True)
    ]
    alike = [each.runs >= FEWEST_ALIKE and not any(map(varies, each.columns.values())) for each in sides]
    constant = [_output(each, 0, paths, event) if same else None for each, same in zip(sides, alike, strict=True)]
    named = [path for path in paths if path in event.wanted] if event.wanted is not None else []
    rest = [path for path in paths[:LOOKED_AT] if path not in named]
    places = [_place(path, path in named, sides) for path in [*named[:LOOKED_AT], *rest]]
    places.sort(key=lambda each: -_apart(each))
    return Typical(
        (examples[0], examples[1]),
        (len(inside[0]), len(inside[1])),
        (pilot.first.runs, pilot.second.runs),
        (constant[0], constant[1]),
        tuple(places[:PLACES]),
    )


def _output(outputs: Outputs, row: int, paths: list[Path], event: Event) -> str:
    """One output as people write it, to the last digit for an event on bits; of an exception, its message too."""
    exact = getattr(event.feature, "kind", "") in BITS
    text = written(outputs, row, [path for path in paths if not derived(path)][:LOOKED_AT], digits="" if exact else "g")
    message = outputs.labels.get(int(outputs.column((MESSAGE,)).tokens[row]))
    return (f"{text}: {message.removeprefix('text ')}" if message and text.startswith("raised ") else text)[:LONGEST]


def _spread(event: Event, outputs: Outputs, rows: Places) -> list[int]:
    """Some of these runs, evenly spread over what the event looks at."""
    column, many = event.feature.column(outputs), min(EXAMPLES, len(rows))
    order = rows[np.lexsort((column.values[rows], column.tokens[rows]))]
    return [int(order[(2 * k + 1) * len(rows) // (2 * many)]) for k in range(many)]


def _place(path: Path, named: bool, sides: tuple[Outputs, Outputs]) -> PlaceValues:
    columns = [each.column(path) for each in sides]
    numbers = [each.values[each.tokens == 0].astype(np.float64) for each in columns]
    numbers = [each[np.isfinite(each)] for each in numbers]
    levels = [tuple(np.quantile(each, LEVELS).tolist()) if len(each) else () for each in numbers]
    different = [len(np.unique(each)) for each in numbers]
    return PlaceValues(
        spell(path), named, (len(numbers[0]), len(numbers[1])), (different[0], different[1]), (levels[0], levels[1])
    )


def _apart(place: PlaceValues) -> float:
    """How far the datasets differ there: places that the event reads first, then by the shift of the middle."""
    first, second = place.levels
    if not (first and second):
        return 2e9 * place.named
    width = max(first[4] - first[2], second[4] - second[2])
    moved = abs(first[3] - second[3])
    return 1e9 * place.named + min(1e8, moved / width if width > 0.0 else 1e8 * (moved > 0.0))


def _grid(numbers: Reals, witness: Witness) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(edges, values): one of them empty. The thresholds of an event are edges where they are finite."""
    edges, values = grid(numbers)
    if not edges or not isinstance(witness.event, Event):
        return edges, values
    low, high = edges[0], edges[-1]
    thresholds = {each for both in witness.event.intervals for each in both if low < each < high}
    apart = {edge for edge in edges if all(abs(edge - each) > 0.3 * (high - low) / BINS for each in thresholds)}
    return tuple(sorted(apart | thresholds)), ()


def _tokens(sides: list[Column], labels: dict[int, str]) -> tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]:
    by_label: dict[str, list[int]] = {}
    for side, column in enumerate(sides):
        codes, counts = np.unique(column.tokens[column.tokens != 0], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            by_label.setdefault(labels.get(code, f"token {code:x}"), [0, 0])[side] += count
    infinite = [int(np.isinf(column.values[column.tokens == 0]).sum()) for column in sides]
    if any(infinite):
        by_label["infinite"] = infinite
    ranked = sorted(by_label.items(), key=lambda item: (-sum(item[1]), item[0]))
    if len(ranked) > MOST_TOKENS:
        rest = [sum(counts[side] for _, counts in ranked[MOST_TOKENS - 1 :]) for side in (0, 1)]
        ranked = [*ranked[: MOST_TOKENS - 1], (OTHERS, rest)]
    return (
        tuple(label for label, _ in ranked),
        tuple(counts[0] for _, counts in ranked),
        tuple(counts[1] for _, counts in ranked),
    )
