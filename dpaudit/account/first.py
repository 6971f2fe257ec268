"""What a reader who has to act needs first, in plain words: what was found on which datasets, what to do, how sure.

The cause of a refutation is one sentence, as a maintainer would say it: what comes how often on either dataset.
"""

import itertools
import math
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpaudit.account.diagnosis import diagnosis
from dpaudit.account.section import Table
from dpaudit.account.statements import (
    NOT_PRIVATE,
    alone,
    answers,
    believed,
    certified,
    does,
    ending_lines,
    hits_in,
    hits_of,
    readable,
    seen,
    supposed,
    unseen,
    without,
)
from dpaudit.base.numerals import PERCENT_FROM, counted, portion
from dpaudit.base.quoting import LONGEST_DATA, TABLE, clean, data_text, literal, plain_text, standing
from dpaudit.base.validate import exact
from dpaudit.events import Event, Partition, TwoEvents
from dpaudit.events.bits import ZERO, LowestBit, TrailingZeros
from dpaudit.events.event import is_one, short
from dpaudit.events.features import Coordinate, spell, taken_over
from dpaudit.events.grammar import Expression
from dpaudit.events.joint import Distinct, Equal, FirstOf, Present
from dpaudit.outputs.canonical import ABSENT, CLASS, LENGTH, MESSAGE, TYPE, Path, derived
from dpaudit.results.bounds import BracketVerdict
from dpaudit.results.display import Verdict
from dpaudit.results.observations import ONE_OUTPUT, Diagnosis
from dpaudit.results.result import AuditResult, Finding
from dpaudit.results.suite import SuiteEntry

FIRST = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
MOST, MOST_RANGES = 8, 3  # values, and ranges of numbers, that are named
MANY = 1e6  # from here on numbers are told with all their digits
COUNTS = (Distinct, FirstOf, Present)  # features whose numbers are whole, beside some expressions


@standing(str)
def cause(result: AuditResult) -> str:
    """The cause, with the rates of certifying runs; where only bits refute, that of the bits; empty for no finding.

    >>> from tests.golden import example
    >>> cause(example.result())
    'outputs above 9.5 came in 18 % of runs on the first dataset and 2.5 % on the second'
    """
    if not result.certificate.refuted:
        return bits_cause(result)
    if words := answers(result):
        shown = result.illustration.typical
        return words + _of_data(result, *(shown.constant if shown else ()))
    what = "search runs" if result.stopped_early and result.illustration.typical is not None else "runs"
    hits, event = hits_of(result), result.witness.event
    words = f"{words_of(event, result)} {_rates(*hits, result.witness.p_side, what)}{_mostly(result)}"
    event = event.bins[0] if isinstance(event, Partition) else event
    if not isinstance(event.feature, Coordinate) or derived(event.feature.path):
        return words
    texts = [token.label for token in event.tokens if not hits[2]]
    return words + _of_data(result, *(short(high) for low, high in event.intervals if is_one(low, high)), *texts)


def bits_cause(result: AuditResult) -> str:
    """The cause of a finding on the bits of floats; empty where there is none."""
    bits = result.representation
    if bits is None or not bits.certificate.refuted:
        return ""
    return f"the low bits of floats: {_of(bits, result)}"


def _mostly(result: AuditResult) -> str:
    """Of an event that nobody can read, the part that people can: its rates, and the bound that it gives alone."""
    if (plain := readable(result)) is None:
        return ""
    much = "mostly" if 2.0 * plain.certificate.lower >= result.certificate.lower else "in part"
    return f"; {much}: {_of(plain, result)}, which alone shows {alone(result)}"


def _of(finding: Finding, result: AuditResult) -> str:
    """The event of a finding beside the witness, with its rates."""
    return f"{words_of(finding.witness.event, result)} {_rates(*hits_in(finding.evidence), finding.witness.p_side)}"


def _of_data(result: AuditResult, *values: str | None) -> str:
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
    """How often an event came on the two datasets, the first before the second."""
    first, second = ((p, runs_p), (q, runs_q))[:: 1 if p_side == "first" else -1]
    of, shares = " of" if first[1] >= PERCENT_FROM else "", [portion(*each) for each in (first, second)]
    if shares[0] == shares[1] and p * runs_q != q * runs_p:  # more digits tell these apart
        shares = [f"{min(100.0 * hits / runs, 99.99):.4g} %" for hits, runs in (first, second)]
    return f"in {shares[0]}{of} {what} on the first dataset and {shares[1]} on the second"


def words_of(event: Event | Partition, result: AuditResult) -> str:
    """The event as a clause, its numbers rounded; how often it came follows in the sentence."""
    event = event.bins[0] if isinstance(event, Partition) else event
    whole = event.feature == Coordinate() and len(event.intervals) == 1 and not event.tokens and not _odd(event)
    if whole and not is_one(*event.intervals[0]) and event.intervals[0] != (-math.inf, math.inf):
        return f"outputs {_span(*event.intervals[0], 'up to')} came"
    return _clause(event, result)


def _clause(event: Event, result: AuditResult) -> str:
    if isinstance(event.feature, TwoEvents) and event.intervals == ((0.5, math.inf),):
        return f"{_clause(event.feature.one, result)} and {_clause(event.feature.other, result)}"
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
    if len(event.intervals) > MOST_RANGES:
        return f"{place} is in one of {len(event.intervals):,} ranges{' or no number' if event.tokens else ''}"
    if event.tokens or not event.intervals or _odd(event):
        return clean(event, LONGEST_DATA)
    if len(event.intervals) > 1:
        return f"{place} is {' or '.join(_span(low, high) for low, high in event.intervals)}"
    low, high = event.intervals[0]
    if isinstance(feature, Equal) and (low >= 0.0 or high < 1.0):
        return place[1:-1] if low >= 0.0 else place[1:-1].replace(" == ", " != ")
    if isinstance(feature, FirstOf) and high >= len(feature.paths) - 1:
        return _of_first(feature, place, low, high)
    if low == -math.inf and high == math.inf:
        return f"{place} is a number"
    whole = length or isinstance(feature, COUNTS) or (isinstance(feature, Expression) and feature.whole)
    return f"{place} is {_whole(low, high) if whole else _span(low, high)}"


def _span(low: float, high: float, below: str = "at most") -> str:
    """An interval in words; its ends stand whole in the witness."""
    if is_one(low, high):
        return short(high)
    if low > -math.inf and high < math.inf:
        return f"between {_near(low)} and {_near(high)}"
    return f"above {_near(low)}" if low > -math.inf else f"{below} {_near(high)}"


def _near(number: float) -> str:
    """Three digits of a number, and of a larger one all before the point with one behind it: 0.746, 1,234.5."""
    return short(number) if abs(number) >= MANY else f"{number:,.{max(3, len(str(int(abs(number)))) + 1)}g}"


def _of_first(feature: FirstOf, place: str, low: float, high: float) -> str:
    """Positions up to the last, and beyond it, where there is none."""
    last = len(feature.paths) - 1
    if high < last + 1.0:
        there = f"{clean(feature.label)} is in {taken_over(feature.paths)}"
        return there if low == -math.inf else f"{place} is {_whole(low, high)}"
    if low >= last:
        return place.replace("position of the first ", "no ")
    return f"{place} is {'any' if low == -math.inf else f'at least {math.floor(low) + 1}'}, or nowhere"


def _odd(event: Event) -> bool:
    """Whether an interval holds one number, none, or a NaN bound: then the event is best printed as it is."""
    return not all(low < high for low, high in event.intervals)


def _whole(low: float, high: float) -> str:
    least, most = (None if math.isinf(each) else math.floor(each) for each in (low, high))
    if least is None or most is None:
        return f"at most {most}" if least is None else f"at least {least + 1}"
    return f"{most}" if least + 1 == most else f"{least + 1} to {most}"


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


def _of_token(path: Path, label: str, result: AuditResult) -> str:
    """How a run ended, a key that is missing, the type of an output, or a value that is no number."""
    if not path and (label.startswith("raised ") or label in ("None", "nan", "timed out")):
        note = result.provenance.get("exceptions", {}).get(label)
        return f"the mechanism {does(label)}{'' if note is None else f', {clean(note, LONGEST_DATA)},'}"
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


SIDES = ("first", "second")
WHOLE = tuple(f"{side} dataset" for side in SIDES)
ENTRIES = {
    **dict.fromkeys(("records", "users"), ("record", "records")),
    "rows": ("row", "rows"),
    "answers": ("answer", "answers"),
}
MOST_ENTRIES, LONGEST_ENTRY = 3, 40  # that are named where two datasets differ
LONGEST_SIDE = 22  # characters of the name of a dataset in a key

BEFORE = "before you rely on it"
CLEAREST = "The clearest difference, still within what claim and chance allow"
UNWRITTEN = "--dpaudit-report DIR keeps the result, which dpaudit accept takes (it stays refuted)"
SEEDED = "Where the data seed the noise, or none is drawn, other datasets may differ in every run: audit more pairs."


@dataclass(frozen=True)
class AuditFacts:
    """What the account of an audit is made of: its result, and what the author of a spec knows of it.

    `record` is the file of the result: empty where none was written, None where nothing is known of one.
    """

    result: AuditResult
    entry: SuiteEntry | None = None
    record: str | None = None

    @cached_property
    def kind(self) -> Diagnosis | None:
        """The kind of mistake, which is looked for once."""
        return diagnosis(self.result)

    @cached_property
    def seen(self) -> Table | None:
        """What an audit of this size would have caught, which is computed once."""
        return seen(self.result)

    @property
    def refuted(self) -> bool:
        """Whether values or bits refute the claim."""
        return self.result.refuted or self.result.representation_refuted

    @property
    def until(self) -> str:
        """The last day on which the finding is accepted; empty where nobody answers for it."""
        entry = self.entry
        return entry.accepted.until.isoformat() if entry and entry.covered and entry.accepted is not None else ""

    @property
    def wanted(self) -> bool:
        """Whether the author of the spec expects a violation."""
        return self.entry is not None and (self.entry.bits or self.entry.expect is Verdict.REFUTED)


def finding_lines(facts: AuditFacts) -> tuple[str, ...]:
    """The pair in words, and the event: of a refutation its cause, else what came nearest to one."""
    result, kind = facts.result, facts.kind
    if reason := cause(result):
        told = kind is None or kind.sentence in reason or not result.certificate.refuted  # of bits alone in the reason
        told = told or (kind is not None and kind.kind == "failure" and reason.startswith("the mechanism "))
        more = [] if kind is None or told else [sentence(kind.sentence)]
        bits = bits_cause(result) if result.refuted else ""
        return differ(result), sentence(reason), *more, *([f"And by {bits}."] if bits else [])
    p, runs_p, q, runs_q = hits_in(result.evidence)
    ended = [sentence("; ".join(lines))] if (lines := ending_lines(result)[:2]) else []
    best = "No difference showed" if p * runs_q == q * runs_p else CLEAREST
    rates = _rates(p, runs_p, q, runs_q, result.witness.p_side)
    return differ(result), f"{best}: {words_of(result.witness.event, result)} {rates}{_mostly(result)}.", *ended


def to_do(facts: AuditFacts) -> tuple[str, ...]:
    """What somebody has to do now, in three lines at most."""
    result, kind = facts.result, facts.kind
    mend = [] if kind is None else [sentence(each) for each in kind.lines[1:]]
    if facts.until:
        return (
            f"Nothing until {facts.until}: somebody answers for this finding until then. Fix the mechanism and audit "
            "it again before that day, or have the finding reviewed anew.",
            *mend,
        )
    if facts.wanted and facts.entry is not None and facts.entry.foreseen:
        found_again = "Nothing new: the violation is known, and this audit watches that it is found."
        return f"{found_again} Nobody should rely on the claim.", *mend
    if facts.refuted:
        trust = f"First make sure that {believed(result)}: otherwise the claim is not refuted. "
        fix = f"{trust if result.on_trust else ''}Fix the mechanism and audit it again."
        return " ".join([fix, *without(result)]), *(mend or ["Or state a weaker claim that can be proved."])
    one_output, proved = ONE_OUTPUT in result.health.notes, False
    if result.bracket is not None:
        proved = result.bracket.verdict is BracketVerdict.PROVED
    lines = [f"Look where the noise is drawn: {ONE_OUTPUT.partition(';')[0]}. {SEEDED}"] if one_output else []
    if facts.wanted:
        lines.append(
            "Find out why a violation that is known was not found: give more runs, or a pair on which it shows. If it "
            "was mended, expect not-refuted from now on."
        )
    elif result.power_reached is False:
        wanted = ", ".join(f"{key} {exact(value)}" for key, value in result.spec["detect"].items())
        few = f"Give it more runs: the power that was demanded ({wanted}) was not reached"
        lines.append(f"{few}; dpaudit plan says how many.")
    elif result.led:
        lines.append("Follow the lead of recorded noise, which is no verdict: look at the place that it names.")
    elif not one_output:
        lines.append("This audit found no reason to stop the release. It cannot give one to make it")
        lines[-1] += "; the proof beside it can." if proved else f": see '{BEFORE}'."
    if unseen(result):
        lines[-1] += " Audit what this one did not look at, as the first line names it."
    lines[-1] += "" if proved else f" {NOT_PRIVATE}"
    return tuple(lines)


def or_else(facts: AuditFacts) -> tuple[str, ...]:
    """What else can be done about a finding that nobody expected."""
    if not facts.refuted or facts.until or (facts.entry is not None and facts.entry.foreseen):
        return ()
    held = f"here {certified(facts.result)}, and the true value may be higher{supposed(facts.result)}"
    less = f"State a weaker claim: {held}."
    file = "RESULT.json" if facts.record is None else shlex.quote(clean(facts.record, len(facts.record)))
    accept = f"dpaudit accept {file} --reason ... --until ... (it stays refuted)"
    return (
        less if facts.result.refuted else "Claim nothing for the outputs as floats.",
        "Or say that the violation is known: expect = 'refuted', of bits alone expect = 'bits'.",
        f"Or accept the finding until a day, and answer for it: {UNWRITTEN if facts.record == '' else accept}.",
    )


def sentence(words: str) -> str:
    """A clause as a sentence.

    >>> sentence("look at: the noise")
    'Look at: the noise.'
    """
    return f"{words[:1].upper()}{words[1:]}."


def differ(result: AuditResult) -> str:
    """The two datasets of the witness in a sentence: how large they are, and in what they differ.

    >>> from tests.golden import example
    >>> differ(example.result())
    "Two datasets were compared: the first has 9 records, the second 8; only the first has 'a' once more."
    """
    pair, head = result.pair, "Two datasets were compared"
    if "users" in result.adjacency[result.witness.pair : result.witness.pair + 1] and pair["distance"] == 1:
        head += ", which differ by one user with all of their records"
    if len(result.spec["pairs"]) > 1:
        head = f'Of {len(result.spec["pairs"]):,} pairs tried, "{clean(pair["name"])}" told most. {head}'
    return datasets(pair, head, result.shown)


def datasets(pair: dict[str, Any], head: str, shown: str | None = None) -> str:
    """The datasets of a stored pair in a sentence that begins so; `shown` is what shows that they are neighbours."""
    texts, lists, _, entries = _read(pair, shown)
    both = f"{head}: {texts[0]} (the first) and {texts[1]} (the second)."
    if None in lists:
        return both
    counts = [Counter(each or ()) for each in lists]
    more = [_named(counts[0] - counts[1], counts[1]), _named(counts[1] - counts[0], counts[0])]
    sizes = [len(each or ()) for each in lists]
    if sizes[0] != sizes[1] and all(each is not None for each in more):
        differences = [f"only the {side} has {each}" for side, each in zip(SIDES, more, strict=True) if each]
        size = f"the first has {counted(sizes[0], *entries)}, the second {sizes[1]:,}"
        return f"{head}: {size}; {' and '.join(differences)}."
    if sizes[0] == sizes[1] > 2 and all(more) and counts[0] != counts[1]:
        return f"{head}, of {counted(sizes[0], *entries)}: where the first has {more[0]}, the second has {more[1]}."
    return both


def names(result: AuditResult) -> tuple[str, str]:
    """What tells the datasets of the witness apart, short enough for a key.

    >>> from tests.golden import example
    >>> names(example.result())
    ('9 records', '8 records')
    """
    texts, lists, values, entries = _read(result.pair, result.shown)
    if None not in lists and len(lists[0] or ()) != len(lists[1] or ()):
        return counted(len(lists[0] or ()), *entries), counted(len(lists[1] or ()), *entries)
    if None in values or texts[0] == texts[1] or max(map(len, texts)) > LONGEST_SIDE:
        return WHOLE[0], WHOLE[1]
    return f"data {texts[0]}", f"data {texts[1]}"


def _read(
    pair: dict[str, Any], shown: str | None
) -> tuple[list[str], list[list[str] | None], list[Any], tuple[str, str]]:
    """The datasets of a pair as text, as lists of entries and as values; and what an entry is called."""
    values = [plain_text(pair[side]["value"]) for side in SIDES]
    named = ENTRIES.get(shown or "", ("entry", "entries"))
    return [data_text(pair[side]) for side in SIDES], list(map(_entries, values)), values, named


def _entries(value: Any) -> list[str] | None:
    """The entries of a dataset as text, of a table of columns its rows; None of what is no collection."""
    if isinstance(value, dict) and value.keys() >= TABLE:
        return [literal(row[0] if len(row) == 1 else tuple(row)) for row in value["rows"]]
    if isinstance(value, dict) and value and all(isinstance(each, list) for each in value.values()):
        columns = [*value.values()]
        if len({len(each) for each in columns}) == 1:
            return [literal(dict(zip(value, row, strict=True))) for row in zip(*columns, strict=True)]
    if isinstance(value, dict):
        return [f"{key!r}: {literal(each)}" for key, each in value.items()]
    return [literal(each) for each in value] if isinstance(value, list) else None


def _named(more: Counter[str], other: Counter[str]) -> str | None:
    """The few entries that one dataset has and the other lacks; None where they are many or long."""
    if more.total() > MOST_ENTRIES or any(len(each) > LONGEST_ENTRY for each in more):
        return None
    times = ("", "once", "twice", "three times")
    return " and ".join(
        clean(each) + (f" {times[count]} more" if other[each] else "" if count == 1 else f" {times[count]}")
        for each, count in more.items()
    )
