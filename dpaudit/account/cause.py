"""The cause of a refutation in one sentence, as a maintainer would say it: what comes how often on either dataset."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpaudit.account.findings import alone, answers, does, hits_in, hits_of
from dpaudit.base.numerals import PERCENT_FROM, portion
from dpaudit.base.quoting import LONGEST_DATA, TABLE, clean, plain_text, standing
from dpaudit.events import Event, Partition, TwoEvents
from dpaudit.events.bits import ZERO, LowestBit, TrailingZeros
from dpaudit.events.event import is_one, short
from dpaudit.events.features import Coordinate, spell, taken_over
from dpaudit.events.joint import Above, Distinct, Equal, Extreme, FirstOf, Present
from dpaudit.outputs.canonical import ABSENT, CLASS, LENGTH, MESSAGE, TYPE, Path, derived
from dpaudit.results.audited import Audited, Finding

FIRST = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
MOST = 8  # values that are named
COUNTS = (Above, Distinct, Extreme, FirstOf, Present)  # features whose numbers are whole


@standing(str)
def cause(result: Audited) -> str:
    """The cause, with the rates of certifying runs; where only bits refute, that of the bits; empty for no finding.

    >>> from tests.golden import example
    >>> cause(example.result())
    'output above 9.5 in 18 % of the runs on the first dataset against 2.5 % on the second'
    """
    if result.certificate.refuted and (words := answers(result)):
        return words + _of_data(result, *(result.typical.constant if result.typical else ()))
    if result.certificate.refuted:
        what = "search runs" if result.stopped_early and result.typical is not None else "runs"
        hits = hits_of(result)
        words = (
            f"{words_of(result.witness.event, result)} in {_rates(*hits, result.witness.p_side, what)}{_mostly(result)}"
        )
        event = result.witness.event
        event = event.bins[0] if isinstance(event, Partition) else event
        if not isinstance(event.feature, Coordinate) or derived(event.feature.path):
            return words
        texts = [token.label for token in event.tokens if not hits[2]]
        return words + _of_data(result, *(short(high) for low, high in event.intervals if is_one(low, high)), *texts)
    bits = result.representation
    if bits is None or not bits.certificate.refuted:
        return ""
    return f"the low bits of floats: {_of(bits, result)}"


def _mostly(result: Audited) -> str:
    """Of an event that nobody can read, the part that people can: its rates, and the bound that it gives alone."""
    if (plain := result.plain) is None or plain.certificate.lower <= 0.0:
        return ""
    much = "mostly" if 2.0 * plain.certificate.lower >= result.certificate.lower else "in part"
    return f"; {much}: {_of(plain, result)}, which alone shows {alone(result)}"


def _of(finding: Finding, result: Audited) -> str:
    """The event of a finding beside the witness, with its rates."""
    return f"{words_of(finding.witness.event, result)} in {_rates(*hits_in(finding.evidence), finding.witness.p_side)}"


def _of_data(result: Audited, *values: str | None) -> str:
    """That a released value is one of the data, `; 52 is a value of the data`; not of 0, 1 and numbers of records."""
    data = [plain_text(result.pair[side]["value"]) for side in ("first", "second")]
    known = {text for each in data if isinstance(each, list | dict) for text in _texts(each)}
    known -= {"0", "1", "-1", *(str(len(each)) for each in data if isinstance(each, list | dict))}
    texts = [clean(value) for value in dict.fromkeys(values) if value in known]
    if not texts or len(texts) > MOST:
        return ""
    return f"; {' and '.join(texts)} {'is a value' if len(texts) == 1 else 'are values'} of the data"


def _texts(data: Any) -> Iterator[str]:
    """The numbers and texts that a dataset holds, as outputs are printed."""
    if isinstance(data, list | dict):
        rows = data["rows"] if isinstance(data, dict) and data.keys() >= TABLE else data
        yield from itertools.chain.from_iterable(map(_texts, rows.values() if isinstance(rows, dict) else rows))
    elif isinstance(data, str | int | float) and not isinstance(data, bool):
        yield repr(data) if isinstance(data, str) else short(float(data))


def _rates(p: int, runs_p: int, q: int, runs_q: int, p_side: str, what: str = "runs") -> str:
    other, many = "second" if p_side == "first" else "first", "" if runs_p < PERCENT_FROM else " of the"
    likelier = f"{portion(p, runs_p)}{many} {what} on the {p_side} dataset"
    return f"{likelier} against {portion(q, runs_q)} on the {other}"


def words_of(event: Event | Partition, result: Audited) -> str:
    """The event in words; how often it came follows in the sentence."""
    event = event.bins[0] if isinstance(event, Partition) else event
    if isinstance(event.feature, TwoEvents) and event.intervals == ((0.5, math.inf),):
        return f"{words_of(event.feature.one, result)} and {words_of(event.feature.other, result)}"
    feature, place = event.feature, clean(event.feature, LONGEST_DATA)
    path = feature.path if isinstance(feature, Coordinate) else None
    length = path is not None and path[-1:] == (LENGTH,) and not getattr(feature, "centre", 0.0)
    if length and path is not None:
        place = f"length of {clean(spell(path[:-1]), LONGEST_DATA)}"
    if path is not None and len(event.tokens) == 1 and not event.intervals:
        return _of_token(path, event.tokens[0].label, result)
    if isinstance(feature, LowestBit) and not event.tokens and len(event.intervals) == 1 and not _odd(event):
        return _of_grid(feature, *event.intervals[0])
    if isinstance(feature, TrailingZeros) and not event.intervals and (grid := feature.off(event.tokens)) is not None:
        (power, known), kinds, number = grid, len(event.tokens), clean(spell(feature.path), LONGEST_DATA)
        if known == kinds:
            return f"{number} is not a multiple of 2^{power} ({kinds} kinds of size and last bits)"
        return f"{number} is of {kinds} kinds by its size and last bits, {known} of them not a multiple of 2^{power},"
    alone = [high for low, high in event.intervals if is_one(low, high)]
    if path is not None and alone and len(alone) == len(event.intervals) and not event.tokens:
        values = [str(np.float32(high + 0.0)).removesuffix(".0") for high in alone]
        more = f" and {len(values) - MOST} more" if len(values) > MOST else ""
        return f"{_placed(path, place)} is {'one of ' if len(values) > 1 else ''}{', '.join(values[:MOST])}{more}"
    if event.tokens or len(event.intervals) != 1 or _odd(event):
        return clean(event, LONGEST_DATA)
    low, high = event.intervals[0]
    if isinstance(feature, Equal) and (low >= 0.0 or high < 1.0):
        return place[1:-1] if low >= 0.0 else place[1:-1].replace(" == ", " != ")
    if isinstance(feature, FirstOf) and high >= len(feature.paths) - 1:
        return _of_first(feature, place, low, high)
    if isinstance(feature, COUNTS) or length:
        return f"{place} {_whole(low, high)}"
    if low > -math.inf:
        return clean(event, LONGEST_DATA) if high < math.inf else f"{place} above {short(low)}"
    return f"{place} is a number" if high == math.inf else f"{place} at most {short(high)}"


def _of_first(feature: FirstOf, place: str, low: float, high: float) -> str:
    """Positions up to the last, and beyond it, where there is none."""
    last = len(feature.paths) - 1
    if high < last + 1.0:
        there = f"{clean(feature.label)} is in {taken_over(feature.paths)}"
        return there if low == -math.inf else f"{place} {_whole(low, high)}"
    if low >= last:
        return place.replace("position of the first ", "no ")
    return f"{place} {'is any' if low == -math.inf else f'at least {math.floor(low) + 1}'}, or nowhere"


def _odd(event: Event) -> bool:
    """Whether an interval holds one number, none, or a NaN bound: then the event is best printed as it is."""
    return not all(low < high for low, high in event.intervals)


def _whole(low: float, high: float) -> str:
    if low == -math.inf and high == math.inf:
        return "is a number"
    least, most = (None if math.isinf(each) else math.floor(each) for each in (low, high))
    if least is None or most is None:
        return f"at most {most}" if least is None else f"at least {least + 1}"
    return f"is {most}" if least + 1 == most else f"is {least + 1} to {most}"


def _placed(path: Path, place: str) -> str:
    """A place, and where it is one of the first entries of a list, in words too."""
    number = path[0] if len(path) == 1 else None
    return f"the {FIRST[number]} entry, {place}," if isinstance(number, int) and 0 <= number < len(FIRST) else place


def _of_grid(feature: LowestBit, low: float, high: float) -> str:
    """Which multiples of powers of two the numbers are: those whose last set bit lies so; 0 is one of all."""
    number = clean(spell(feature.paths[0]), LONGEST_DATA)
    on, off = f"{number} is a multiple", f"{number} is not a multiple"
    if len(feature.paths) > 1:
        on = f"all {len(feature.paths)} numbers of output are multiples"
        off = f"not {on}"
    parts = [] if math.isinf(low) else [f"{on} of 2^{math.floor(low) + 1}"]
    parts += [f"{off} of 2^{math.floor(high) + 1}"] if high < ZERO else []
    return " and ".join(parts) or f"{on} of some power of 2"


def _of_token(path: Path, label: str, result: Audited) -> str:
    """How a run ended, a key that is missing, the type of an output, or a value that is no number."""
    if not path and (label.startswith("raised ") or label in ("None", "nan", "timed out")):
        note = result.provenance.get("exceptions", {}).get(label)
        return does(label) if note is None else f"{does(label)}, {clean(note, LONGEST_DATA)},"
    *before, last = path or ("",)
    name = clean(spell(path), LONGEST_DATA)
    if label == ABSENT.label:
        key = isinstance(last, str) and not last.startswith("@")
        where = f" of {clean(spell(tuple(before)))}" if before else ""
        return f"the key {clean(repr(last))}{where} is missing" if key else f"there is no {name}"
    if last in (TYPE, CLASS):
        return f"type of {clean(spell(tuple(before)))} is {clean(label.removeprefix('type '))}"
    if path == (MESSAGE,):
        return f"the message of the exception is {clean(label)}"
    return f"{_placed(path, name)} is {'NaN' if label == 'nan' else clean(label)}"
