"""Diagnosis: what kind of mistake the evidence of a refutation fits, where to look, and what usually mends it.

A kind is named where the evidence shows it, by thresholds that luck passes about once in 10,000 times, and no other
fits better; where none fits there is no diagnosis. It is advice, never evidence. `ADVICE` says for each kind of mistake
what to look at and what usually mends it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from statistics import NormalDist

import numpy as np

from dpaudit.account.statements import answers, does, hits_of, of_endings
from dpaudit.base.numerals import PERCENT_FROM, percent, portion
from dpaudit.base.quoting import LONGEST_DATA, clean, literal, plain_text, standing
from dpaudit.claims import Claim, Relation
from dpaudit.events import Event, Partition, TwoEvents
from dpaudit.events.event import is_one
from dpaudit.events.features import Coordinate, Whole, spell
from dpaudit.events.grammar import Expression
from dpaudit.events.joint import Equal
from dpaudit.outputs.canonical import ABSENT, CLASS, DTYPE, KEY, LENGTH, MESSAGE, NONE, NOT_A_NUMBER, ORDER, TYPE, Path
from dpaudit.results.observations import FIRST_CALLS, Diagnosis, PlaceValues, Typical
from dpaudit.results.result import AuditResult

ADVICE = {  # by kind: what to look at, what usually mends it
    "constant output": (
        "where the noise is drawn: a fixed seed, noise that is computed and not added, or code that draws none",
        "draw fresh noise in every call, from the generator that the call is given or an unseeded one, and return it",
    ),
    "constant on one dataset": (
        "the branch that answers without noise: no or few rows, one value, an early return, a default",
        "add the same noise on every path, that of empty and degenerate data too",
    ),
    "answer without noise": (
        "when the noise is left out: a probability, a cache, a retry, a limit that is read off the data",
        "add noise in every run; where outputs are clipped, clip them to limits that are fixed beforehand",
    ),
    "number of records": (
        "where the number of records enters: len(rows), the mean, the scale of the noise, the length of the output",
        "release it with noise of its own; divide by a number that is public or noisy, in the scale of the noise too",
    ),
    "infinity": (
        "what a single value can do: nothing limits it before sums, means and scales are computed of it",
        "clip what a record adds to limits that are fixed beforehand, NaN too (it passes min, max and most clips), "
        "or leave out what is beyond",
    ),
    "failure": (
        "the code that fails, or returns None or NaN, and which data bring a run there",
        "let both datasets end alike: check what is public (types, columns, limits) and never values or their number, "
        "and give a noisy answer where data are few",
    ),
    "message": (
        "the text of the exception: what it is formatted with",
        "raise with a constant message, or answer with noise; whoever sees the message sees the data in it",
    ),
    "keys": (
        "where the keys come from: groups, categories or columns that occur in the data",
        "fix the keys beforehand, or release a key only where its noisy count passes a threshold, which costs a delta; "
        "a threshold that is there already is too low for the delta of the claim",
    ),
    "length": (
        "the loop that fills the output: over records, groups or categories of the data",
        "give the output a fixed length, or choose it with noise; noise that is there already is too small",
    ),
    "type": (
        "branches, rounding and library calls that give another type for some data",
        "convert what is returned to one type, in one place, whatever the data are",
    ),
    "order": (
        "what the output is filled from: the order of records, groups or a sort without noise",
        "sort what is returned in an order that does not depend on the data",
    ),
    "support": (
        "where the answers come from: a list, a range or limits that are read off the data, a step without noise, or "
        "noise that has few values, as from few seeds",
        "make every answer possible whatever the data are, by noise of full size or a choice that is fixed beforehand",
    ),
    "probabilities": (
        "how the probabilities follow from epsilon: the chance of a true answer, the weights of the candidates "
        "(epsilon times utility, over twice its sensitivity), the noise on what is compared, or codes and ranks that "
        "one record changes for all (by order of appearance)",
        "compute them from the claimed epsilon, or state the claim that they keep",
    ),
    "shared noise": (
        "whether each entry draws noise of its own",
        "draw a number for each entry, rng.laplace(size=n) and not rng.laplace()",
    ),
    "scale": (
        "what the scale of the noise is computed from: the range, the spread, the largest value or the sensitivity of "
        "the data at hand",
        "compute it from public limits; where it must follow the data, use smooth sensitivity or pay for the estimate",
    ),
    "location": (
        "the sensitivity on this pair: limits that are not enforced (clipping), the unit of the noise, scale and "
        "variance mixed up, epsilon spent several times",
        "more noise, or tighter limits on what a record adds: the noise must be scaled to the most that one record can "
        "change, and nothing may change more; or state the claim that this noise keeps",
    ),
    "bounded noise": (
        "the law of the noise: uniform, clipped or cut off, or limits that move with the answer",
        "use noise without ends (Laplace, Gaussian, geometric), or claim a delta that covers what lies beyond them",
    ),
    "tail": (
        "the law of the noise and the delta of the claim: Gaussian noise keeps no claim whose delta is 0",
        "Laplace noise of scale sensitivity / epsilon; or a claim with a delta (larger than now), and the Gaussian "
        "noise it asks for",
    ),
    "bits of floats": (
        "the last line that adds noise: a sum is rounded to the floats near the sum, so which last bits can occur "
        "depends on the answer (Mironov 2012)",
        "release integers from discrete noise, or snap the output to a fixed power-of-two grid not finer than the "
        "scale of the noise; this says nothing about the calibration of the noise",
    ),
}


def diagnosis_of_kind(kind: str, sentence: str, look_at: str = "") -> Diagnosis:
    """The diagnosis of a kind, with where to look in this case if that is known."""
    return Diagnosis(kind, sentence, look_at or ADVICE[kind][0], ADVICE[kind][1])


BY_USER = (
    ("what a record adds", "what a user adds with all of their records"),
    ("the most that one record can change", "the most that all records of one user can change"),
    ("one record changes for all", "one user changes for all"),
)
SURE = 4.0  # deviations beyond which a difference is no luck
ALIKE = 0.06  # of the width: differences of shape and spread up to it are none
MANY, FEW = 20, 8  # different numbers of a side that show noise, and that do not
RARE, OFTEN = 0.1, 0.02  # rates: an event of a tail comes less often, one that is shown by its rate more often
LIGHT = 2.85  # between the tails of normal and of Laplace noise
WIDER = 2.0  # times: outputs of sampled data vary by less, about another answer in each run
QUARTER, SPREAD = 0.25, 1.5  # of the runs is the middle; deviations of the log of a width, in those of a middle
SHARP = 0.35  # of the way from the middle to beyond 95 % of outputs is left to their end: flat noise that just ends
LUCK = 9.2  # of what is expected so often there is none about once in 10,000 times
FLAT = 2.1  # between the tails of uniform and of normal noise


@standing(lambda line: Diagnosis("not told", line, "the event and its counts", "nothing that can be told"))
def diagnosis(result: AuditResult) -> Diagnosis | None:
    """The kind of mistake that the evidence of a refuted result fits; None where none does, or nothing is refuted.

    >>> from tests.golden import example
    >>> print(diagnosis(example.result()).kind)
    location
    """
    if not result.certificate.refuted:
        return BITS if result.representation_refuted else None
    event, (p, runs_p, q, runs_q) = result.witness.event, hits_of(result)
    event, rates = event.bins[0] if isinstance(event, Partition) else event, (p / max(1, runs_p), q / max(1, runs_q))
    kinds = _Seen(result, event, result.witness.p_side, p, rates, result.illustration.typical).kinds()
    kind = next((diagnosis_of_kind(*each) for each in kinds), None)
    of_users = result.spec["claim"]["relation"] == Relation.ADD_OR_REMOVE_USER.value
    if kind is None or not of_users:
        return kind
    return replace(kind, look_at=by_user(kind.look_at), usual_mend=by_user(kind.usual_mend))


def by_user(advice: str) -> str:
    """The advice for a claim per user, who may have many records.

    >>> by_user("clip what a record adds to limits that are fixed beforehand")
    'clip what a user adds with all of their records to limits that are fixed beforehand'
    """
    return reduce(lambda text, words: text.replace(*words), BY_USER, advice)


WITHOUT = "means, divisions and logarithms of nothing, numbers that overflow, and branches without an answer"
BITS = diagnosis_of_kind("bits of floats", "the low bits of the floats tell the datasets apart")
Kinds = Iterator[tuple[str, ...]]  # each a kind, its sentence and perhaps where to look


@dataclass(frozen=True, slots=True)
class _Seen:
    """The evidence of one event: hits on the likelier dataset, rates on it and on the other, what search runs held."""

    result: AuditResult
    event: Event
    p_side: str
    hits: int
    rates: tuple[float, float]
    typical: Typical | None

    def kinds(self) -> Kinds:
        """The kinds that fit, the surest first."""
        infinite = [
            "float('" in literal(plain_text(self.result.pair[side].get("value"))) for side in ("first", "second")
        ]
        if infinite[0] != infinite[1] and (self._mostly("infinite") or self._mostly("nan")):
            side, what = "first" if infinite[0] else "second", clean(self.event.feature)
            yield "infinity", f"an infinity or NaN in the {side} dataset goes through: {what} is no finite number then"
        yield from self._failures()
        if self.result.witness.selector.startswith(FIRST_CALLS):
            return
        if self.typical is not None:
            yield from self._constants(self.typical)
        feature = self.event.feature
        for event in (feature.one, feature.other) if isinstance(feature, TwoEvents) else (self.event,):
            if isinstance(event.feature, Coordinate):
                yield from self._beside(event, event.feature.path)
        if self.typical is not None:
            yield from self._values(self.typical)
            yield from self._numbers(self.typical)

    @property
    def only(self) -> str:
        """On which dataset the event comes, and how alone it is with it."""
        other = "second" if self.p_side == "first" else "first"
        more = " alone" if self.rates[1] == 0.0 else f", far more often than on the {other}"
        return f"on the {self.p_side} dataset{more}"

    @property
    def share(self) -> str:
        """How often the event comes on the likelier dataset."""
        return percent(round(self.rates[0] * 1e6), 1_000_000)

    @property
    def sizes(self) -> tuple[int | None, int | None]:
        """The numbers of records of the two datasets, where these are kept."""
        datasets = (self.result.pair[side].get("value") for side in ("first", "second"))
        first, second = (len(each) if isinstance(each, list | tuple | str) else None for each in datasets)
        return first, second

    @property
    def alone(self) -> bool:
        """Whether the intervals of the event are single numbers."""
        return all(is_one(low, high) for low, high in self.event.intervals)

    def _mostly(self, label: str) -> bool:
        """Whether what is no number in search runs, called so, makes at least half of what the event tells apart."""
        shown = self.result.illustration.histogram
        if shown is None or label not in shown.labels:
            return False
        first, second = (each[shown.labels.index(label)] for each in (shown.tokens_first, shown.tokens_second))
        apart = abs(first / shown.runs_first - second / shown.runs_second)
        luck = SURE * math.sqrt((first + second) / (shown.runs_first * shown.runs_second))
        return apart > luck and 2.0 * apart >= self.rates[0] - self.rates[1]

    def _failures(self) -> Kinds:
        """Exceptions, None, NaN and time-outs; and the text of exceptions."""
        messages = {
            label: clean(note, LONGEST_DATA) for label, note in self.result.provenance.get("exceptions", {}).items()
        }
        if getattr(self.event.feature, "path", ())[-1:] == (MESSAGE,):
            where = f"where the exception is raised: {next(iter(messages.values()))}" if messages else ""
            yield "message", "runs raise on both datasets, and the message tells them apart", where
        if not of_endings(self.result):
            failed = [token.label for token in self.event.tokens if token.label.startswith("raised ")]
            if failed and not self.result.illustration.endings:
                yield "failure", f"a run {does(failed[0])} {self.only}"
            return
        endings = self.result.illustration.endings
        first, second = ([each.runs[side] for each in endings] for side in (0, 1))
        apart = [abs(a / max(1, sum(first)) - b / max(1, sum(second))) for a, b in zip(first, second, strict=True)]
        place = max(range(1, len(endings)), key=lambda j: apart[j])
        what, (one, other) = endings[place].what, (portion(each[place], sum(each)) for each in (first, second))
        text = f"a run {does(what)} in {one} of the search runs on the first dataset and in {other} on the second"
        where = f"where it is raised, and which data bring a run there: {messages[what]}" if what in messages else ""
        yield "failure", text, where

    def _constants(self, typical: Typical) -> Kinds:
        """One answer in all runs, of the whole output or at a place that the event reads."""
        if answers(self.result):
            yield "constant output", answers(self.result)
        whole = [None if each is None else clean(each, LONGEST_DATA) for each in typical.constant]
        answers_of = [("the output", *whole)]
        for place in typical.places:
            if place.named and place.numbers == typical.runs:
                both = zip(place.levels, place.different, strict=True)
                answers_of.append(
                    (clean(place.name), *(f"{levels[3]:g}" if many == 1 else None for levels, many in both))
                )
        for name, one, other in answers_of:
            if one is not None and other is not None and one != other and self.rates == (1.0, 0.0):
                if (one, other) == tuple(map(str, self.sizes)):
                    yield (
                        "number of records",
                        f"{name} is the number of records, {one} and {other}, in every search run",
                    )
                yield (
                    "constant output",
                    f"{name} is {one} in every search run on the first dataset, {other} on the second",
                )
            elif min(typical.runs) < PERCENT_FROM:  # of so few runs all may have been one answer by luck
                continue
            elif (one is None) != (other is None) and max(self.rates) >= 1.0 - RARE and min(self.rates) <= RARE:
                side = "first" if other is None else "second"  # and the event is that answer, or all others
                at = self.rates[side != self.p_side]
                if at not in (0.0, 1.0) or (at == 0.0 and self.alone):  # it is one answer: the other is as constant
                    continue
                text = f"{name} is {other if one is None else one} in every search run on the {side} dataset"
                yield "constant on one dataset", f"{text}, and varies on the other"

    def _beside(self, event: Event, path: Path) -> Kinds:
        """What an output shows beside its values: length, types, order, keys, elements, None and NaN at a place."""
        last = path[-1] if path else ""
        whole, key = "the output" if len(path) < 2 else "a part of the output", clean(repr(last))
        named = isinstance(last, str) and path and not last.startswith("@")
        gone = event is self.event and self._mostly(ABSENT.label)
        if last == LENGTH or (gone and isinstance(last, int)):
            yield "length", f"the length of {whole} depends on the data"
        elif last in (TYPE, CLASS, DTYPE, KEY):
            yield "type", f"the type of {'a key' if last == KEY else whole} depends on the data"
        elif last == ORDER:
            yield "order", f"the order of {whole} depends on the data"
        elif isinstance(last, str) and last.startswith("@has "):
            yield "support", f"the element {clean(last[5:])} comes {self.only}"
        elif named and (gone or (event.tokens == (ABSENT,) and not event.intervals)):
            yield "keys", f"which keys the output has depends on the data: {key} is there on one dataset more often"
        elif event.tokens in ((NONE,), (NOT_A_NUMBER,)) and not event.intervals:
            yield "failure", f"{clean(event.feature)} is {clean(event.tokens[0].label)} {self.only}", WITHOUT
        elif event is self.event and self._mostly("infinite"):
            yield "failure", f"{clean(event.feature)} is infinite {self.only}", WITHOUT

    def _values(self, typical: Typical) -> Kinds:
        """Single values: without noise among many others, on one dataset alone, or with other probabilities."""
        event, places = self.event, [place for place in typical.places if place.named]
        feature = event.feature
        if isinstance(feature, Equal) or (isinstance(feature, Expression) and feature.word == "minus"):
            shown = self.result.illustration.histogram
            few = shown is not None and 0 < len(shown.values) <= FEW
            if len(places) == 2 and few and all(min(place.different) >= MANY for place in places):
                one, other = sorted(clean(place.name) for place in places)
                yield "shared noise", f"{one} and {other} have the same noise: what parts them does not vary"
            return
        if not isinstance(event.feature, Coordinate | Whole):
            if places and all(1 < max(place.different) <= FEW for place in places):
                names = ", ".join(sorted(clean(place.name) for place in places))
                yield "probabilities", f"the same few values of {names} come with probabilities too far apart together"
            return
        place = next(iter(places), None)
        cut = None if place is None else place.cut_off
        if place is not None and cut and cut[0] > SURE * cut[1] and _Compared(place, *cut).breaks(self.result.claim):
            text = f"{clean(place.name)}, cut off at one end, moves by at least {_told(cut[0])} between the datasets"
            yield "location", f"{text}: the noise is too small for that"
        if place is not None and self.alone and not event.tokens and min(place.different) >= MANY:
            if self.rates[0] >= OFTEN and self.rates[1] == 0.0:
                yield "answer without noise", f"one number recurs: it comes in {self.share} of the runs {self.only}"
        elif place is None or max(place.different) <= FEW:
            if self.rates[1] == 0.0 and self.hits > LUCK:
                yield "support", f"an answer that comes on the {self.p_side} dataset never came on the other"
            elif place is not None and self._shifted(place):
                shift = _told(abs(place.levels[0][3] - place.levels[1][3]))
                text = f"{clean(place.name)}, a whole number, moves by {shift} between the datasets"
                yield "location", f"{text}: the noise is too small for that"
            elif self.alone or place is not None:
                same = "the same answers come" if place is None else f"the same few values of {clean(place.name)} come"
                yield "probabilities", f"{same} with probabilities too far apart for the claim"

    def _numbers(self, typical: Typical) -> Kinds:
        """Noisy numbers: noise that ends, another scale, an answer that moves further than the noise hides, a tail."""
        asked = [place for place in typical.places if place.named and all(place.levels) and min(place.different) >= 3]
        compared = [each for place in asked if (each := _Compared.of(place)) is not None]
        if not compared or len(compared) < len(asked):
            return
        for each in compared:
            name = clean(each.place.name)
            if self._ends(each):
                yield "bounded noise", f"{name} ends sharply, and not at the same number on both datasets"
            if each.rescaled:
                wider, times = ("first", each.ratio) if each.ratio > 1.0 else ("second", 1.0 / each.ratio)
                text = f"{name} varies {_told(times)} times as widely on the {wider} dataset as on the other"
                one, other = self.sizes
                powers = (1.0, -1.0) if one and other and one != other else ()
                if any(each.fits((one or 1) / (other or 1), power) for power in powers):
                    yield "number of records", f"{text}, as the numbers of records, {one} and {other}, would have it"
                if times >= WIDER:
                    yield "scale", text
        moved = [] if any(each.rescaled for each in compared) else [each for each in compared if each.moved]
        if len(moved) > 1:
            names = sorted(clean(each.place.name) for each in moved)
            text = (
                f"{', '.join(names[:-1])} and {names[-1]} move between the datasets, together by more than their noise"
            )
            yield "location", f"{text} hides"
        for each in moved:
            name, shift = clean(each.place.name), abs(each.shift)
            if self.rates[1] == 0.0 and self.hits > 10.0 * math.exp(min(4.0 * shift / each.width, 100.0)):
                yield "support", f"outputs that come on the {self.p_side} dataset never came on the other"
            pure = self.result.claim.linear and self.result.claim.delta == 0.0
            if self.rates[0] <= RARE and (self._middle_keeps() or (each.normal and pure)):
                yield "tail", f"a tail, {self.share} of the outputs, breaks the claim by more than their middle does"
            many = self.rates[0] > RARE and not self.alone and self._threshold(each.place) is not None
            if many or each.breaks(self.result.claim):
                text = f"{name} moves by {_told(shift)} between the datasets, and half of the outputs lie within"
                yield "location", f"{text} {_told(each.width / 2.0)} of their middle: the noise is too small for that"

    def _threshold(self, place: PlaceValues) -> tuple[float, tuple[float, ...], tuple[float, ...]] | None:
        """What all outputs of the event exceed, and the levels of the likelier dataset and of the other; or nothing.

        Of an event of low outputs all three are mirrored.
        """
        feature = self.event.feature
        one = len(self.event.intervals) == 1 and not self.event.tokens
        if not one or not isinstance(feature, Coordinate) or spell(feature.path) != place.name:
            return None
        low, high = (each + feature.centre for each in self.event.intervals[0])
        likelier, other = place.levels if self.p_side == "first" else place.levels[::-1]
        if high >= likelier[6] or low >= other[3]:
            return low, likelier, other
        mirrored = [tuple(-each for each in reversed(levels)) for levels in (likelier, other)]
        return (-high, mirrored[0], mirrored[1]) if low < likelier[0] or high <= other[3] else None

    def _ends(self, each: "_Compared") -> bool:
        """Whether a threshold lies beyond nearly all outputs of the other dataset, which end there as if cut off."""
        threshold = self._threshold(each.place)
        if threshold is None or self.rates[1] > RARE * self.rates[0] or min(each.place.different) <= FEW:
            return False
        low, likelier, levels = threshold
        beyond = likelier[6] > levels[6] <= low + RARE * (levels[6] - levels[3])
        return beyond and levels[6] - levels[5] < each.least_end * (levels[5] - levels[3])

    def _shifted(self, place: PlaceValues) -> bool:
        """Whether a few whole numbers are those of the other dataset, each moved by as much: an answer and noise."""
        shown = self.result.illustration.histogram
        if shown is None or not shown.values or min(place.different) < 3 or str(self.event.feature) != place.name:
            return False
        shift, sizes = place.levels[0][3] - place.levels[1][3], place.numbers
        first = dict(zip(shown.values, shown.first, strict=True))
        second = {value + shift: count for value, count in zip(shown.values, shown.second, strict=True)}
        both = [(first.get(value, 0), second.get(value, 0)) for value in first.keys() | second.keys()]
        whole = shift != 0.0 and all(value.is_integer() for value in shown.values)
        return whole and all(
            abs(a * sizes[1] - b * sizes[0]) <= SURE * math.sqrt((a + b) * sizes[0] * sizes[1]) for a, b in both
        )

    def _middle_keeps(self) -> bool:
        """Whether every half-line of at least a quarter of the search runs keeps the claim, as far as they show."""
        shown, claim = self.result.illustration.histogram, self.result.claim
        if shown is None or not shown.edges:
            return False
        sides = shown.first, shown.second
        tails = [np.cumsum(each[::way])[:-1] / sum(each) for way in (1, -1) for each in (*sides, *reversed(sides))]
        both = (
            pair
            for p, q in zip(tails[::2], tails[1::2], strict=True)
            for pair in zip(p.tolist(), q.tolist(), strict=True)
        )
        return all(p <= claim.max_probability(q) for p, q in both if p >= QUARTER)


@dataclass(frozen=True, slots=True)
class _Compared:
    """One place whose outputs have the same shape on both datasets: how far their middle moves, how widely they vary.

    `ratio` is the width on the first dataset over that on the second.
    """

    place: PlaceValues
    shift: float
    width: float
    ratio: float = 1.0

    @classmethod
    def of(cls, place: PlaceValues) -> "_Compared | None":
        """The comparison; None where the shapes differ, or the middle half of the outputs is one number."""
        widths = [max(each[4] - each[2], (each[5] - each[1]) / 4.0) for each in place.levels]
        if min(widths) <= 0.0:
            return None
        shapes = [
            [(level - each[3]) / width for level in each[1:6]] for each, width in zip(place.levels, widths, strict=True)
        ]
        # deviations of the quantiles of Laplace noise, in widths; those of normal noise are smaller
        compared = cls(place, place.levels[0][3] - place.levels[1][3], max(widths), widths[0] / widths[1])
        slack = [ALIKE + SURE * compared.error * wide for wide in (3.1, 1.5, 0.0, 1.5, 3.1)]
        return None if any(abs(a - b) > most for a, b, most in zip(*shapes, slack, strict=True)) else compared

    @property
    def error(self) -> float:
        """The deviation of a middle, in widths."""
        return math.sqrt(sum(1.0 / runs for runs in self.place.numbers))

    @property
    def wide(self) -> float:
        """How many times 90 % of the outputs are as wide as the middle half: uniform 1.8, normal 2.4, Laplace 3.3."""
        first, second = ((each[5] - each[1]) / max(each[4] - each[2], 1e-300) for each in self.place.levels)
        return (first + second) / 2.0

    @property
    def normal(self) -> bool:
        """Whether the outputs lie as those of normal or flatter noise."""
        return self.wide < LIGHT

    @property
    def least_end(self) -> float:
        """The way from beyond 95 % of outputs to their end, in ways from the middle there, that noise without ends has.

        Uniform noise has 0.11 of it, and what is normal or Laplace has less than this about once in 10,000 times.
        """
        runs = min(self.place.numbers)
        if not self.normal:
            return math.log10(max(1.0, runs / (20.0 * LUCK)))
        return SHARP if self.wide < FLAT else NormalDist().inv_cdf(max(0.95, 1.0 - LUCK / runs)) / 1.645 - 1.0

    def breaks(self, claim: Claim) -> bool:
        """Whether the halves of the outputs break the claim, be the noise normal or Laplace, luck set aside."""
        moved = max(0.0, abs(self.shift) / self.width - SURE * self.error)
        return claim.max_probability(max(0.5 * 0.25**moved, NormalDist().cdf(-1.349 * moved))) < 0.5

    @property
    def moved(self) -> bool:
        return abs(self.shift) > SURE * self.error * self.width

    @property
    def rescaled(self) -> bool:
        return abs(math.log(self.ratio)) > max(ALIKE, SPREAD * SURE * self.error)

    def fits(self, ratio: float, power: float) -> bool:
        """Whether the widths stand to each other as this power of a ratio."""
        return abs(math.log(self.ratio) - power * math.log(ratio)) <= SPREAD * SURE / 2.0 * self.error


def _told(number: float) -> str:
    """Three digits of a number: 0.968, 7,000."""
    return f"{float(f'{number:.3g}'):,g}"
