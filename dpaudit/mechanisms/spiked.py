"""A known leak put into a mechanism: what an audit of it should find, so that the finding can be measured.

With probability `p + q` a run's output is replaced by a marked one: on the first dataset it bears the mark with
probability p and the other mark with probability q, on the second dataset the other way round. Nothing else changes.

A mark is a small frozen value that says where the leak stands in an output: far outside, on a value inside, on one
that recurs, late, in a text. Of the mechanism's own outputs those that bear a mark are moved elsewhere, whatever the
dataset: so the marked ones have exactly the rates of the marks, and nothing leaks that did not before. The type of an
output is the same with a mark and without: integers of NumPy become wide ones, booleans and texts objects.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpaudit.base import validate
from dpaudit.base.arrays import Integers, Places, Reals
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.mechanisms.protocol import Description, Mechanism, Opened

MARKS = ("marked", "marked otherwise")  # of outputs that hold no number
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")  # in a text
LARGEST_EXACT = 1 << 53  # beyond, a float need not be the integer
LARGEST_WIDE = 1 << 61  # offset that an integer of 64 bits has room for
Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class LeakMark:
    """What becomes of one entry of an output: the first of a tuple, array or mapping, the `last` one where it says so.

    A marked number moves by `offset` (up; down for the other mark), or, with `spans`, lies anywhere in the first of
    them (in the second for the other mark), a value where it has no width; an own number that lies in either is
    moved into the third. With `words` the same of texts. Else a text is replaced by a word; `within` one, its first
    number is marked as numbers are, and where it has none the word is added to it. All that is neither number nor text
    becomes a word, and so does a run that raises.

    Raises `InvalidSpec` unless offset > 0.

    >>> LeakMark(spans=((1.5, 1.5), (2.5, 2.5), (2.0, 2.0))).of(7.25, 1)
    1.5
    >>> LeakMark(within=True, offset=8.0).of("n = 3.5", -1)
    'n = -4.5'
    """

    offset: float = 1.0
    spans: tuple[Span, Span, Span] | None = None
    words: tuple[str, str, str] | None = None
    last: bool = False
    within: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "offset", validate.positive("offset", self.offset))
        for name, given in (("spans", self.spans), ("words", self.words)):
            if given is not None and len(set(given)) != 3:
                raise InvalidSpec(f"{name} must be three different ones, got {given!r}")

    def of(self, output: Any, sign: int, draw: float = 0.0) -> Any:
        """One output: marked where `sign` is 1 or -1, an own one where it is 0; `draw` in [0, 1): where in a span."""
        output = int(output) if isinstance(output, np.integer) else output
        kind = type(output)
        if kind in (tuple, list, dict) and output:
            key = self._key(output)
            return _with_entry(kind, output, key, self.of(output[key], sign, draw))
        if isinstance(output, np.ndarray) and output.dtype.kind in "fiu" and output.size and output.ndim:
            return self.of_all(output[None], np.array([sign]), np.array([draw]))[0]
        if sign == 0 and self.spans is None and self.words is None:
            return output
        if kind is int and self.spans is None:
            return output + sign * math.ceil(self.offset)
        if kind is int and abs(output) > LARGEST_EXACT:
            output = output if sign == 0 else 0
        if kind is int or isinstance(output, float | np.floating):
            value = self._number(float(output), sign, draw, whole=kind is int)
            return output if value == output else kind(value)
        if isinstance(output, str):
            return self._text(output, sign, draw)
        return output if sign == 0 else word(sign)

    def of_all(self, outputs: Any, signs: Integers, draws: Reals) -> Any:
        """The outputs of many runs at once, with a sign and a draw each."""
        if isinstance(outputs, tuple | dict) and outputs:
            key, kind = self._key(outputs), dict if isinstance(outputs, dict) else tuple
            return _with_entry(kind, outputs, key, self.of_all(outputs[key], signs, draws))
        if isinstance(outputs, list) and len(outputs) == len(signs):
            given = zip(outputs, signs.tolist(), draws.tolist(), strict=True)
            return [self.of(output, sign, draw) for output, sign, draw in given]
        if not isinstance(outputs, np.ndarray) or outputs.ndim == 0 or len(outputs) != len(signs) or outputs.size == 0:
            return outputs  # no result of these runs: the audit will say so
        if names := outputs.dtype.names:
            name = names[-1 if self.last else 0]
            return {each: self.of_all(outputs[each], signs, draws) if each == name else outputs[each] for each in names}
        if outputs.dtype.kind in "iu":
            wide = self.offset <= LARGEST_WIDE and outputs.dtype != np.uint64
            outputs = outputs.astype(np.int64 if wide else object)
        if outputs.dtype.kind in "fi":
            return self._numbers(outputs, signs, draws)
        at: Any = (slice(None), *(-1 if self.last else 0 for _ in outputs.shape[1:]))
        marked = outputs.astype(object)
        given = zip(outputs[at].tolist(), signs.tolist(), draws.tolist(), strict=True)
        marked[at] = np.array([self.of(each, sign, draw) for each, sign, draw in given], object)
        return marked

    def leaf(self, output: Any) -> tuple[float, str, bool]:
        """What stands where the mark would: its number, or NaN; its text, or none; whether it is one of many."""
        kind = type(output)
        if kind in (int, float) or isinstance(output, np.floating | np.integer):
            return float(output), "", False
        if isinstance(output, str):
            inside = NUMBER.search(output)
            return (math.nan if inside is None else float(inside[0])), output, False
        if isinstance(output, np.ndarray) and output.ndim:
            kind, output = list, output.ravel().tolist()
        if kind not in (tuple, list, dict) or not output:
            return math.nan, "", False
        number, text, several = self.leaf(output[self._key(output)])
        return number, text, several or len(output) > 1

    def _key(self, output: Any) -> Any:
        """Where in a tuple, list or mapping the mark stands."""
        return list(output)[-1 if self.last else 0] if isinstance(output, dict) else len(output) - 1 if self.last else 0

    def _number(self, number: float, sign: int, draw: float, *, whole: bool = False) -> float:
        return float(self._placed(np.array([number]), np.array([sign]), np.array([draw]), whole)[0])

    def _placed(self, numbers: Reals, signs: Integers, draws: Reals, whole: bool) -> Reals:
        if self.spans is None:
            with np.errstate(over="ignore"):
                moved = np.where(np.isfinite(numbers), numbers, 0.0) + signs * self.offset
            return np.where(signs == 0, numbers, moved)
        *two, (low, high) = map(_of_integers, self.spans) if whole else self.spans
        placed = numbers
        for left, right in two:
            part = (numbers - left) / (right - left) if right > left else np.zeros(len(numbers))
            there = low + part * (high - low)
            placed = np.where((numbers >= left) & (numbers <= right), np.rint(there) if whole else there, placed)
        for (left, right), sign in zip(two, (1, -1), strict=True):
            there = left + np.floor(draws * (right - left + 1.0)) if whole else left + draws * (right - left)
            placed = np.where(signs == sign, there, placed)
        return placed

    def _numbers(self, outputs: npt.NDArray[Any], signs: Integers, draws: Reals) -> npt.NDArray[Any]:
        """The same array with the one entry of each run changed where a mark or an own output in a span asks for it."""
        rest = tuple(-1 if self.last else 0 for _ in outputs.shape[1:])
        at: Any = (slice(None), *rest)
        data, hidden = np.ma.getdata(outputs)[at], np.ma.getmaskarray(outputs)[at]
        placed = self._placed(data.astype(np.float64), signs, draws, outputs.dtype.kind == "i")
        rows = np.flatnonzero((signs != 0) | ((placed != data) & (data == data) & ~hidden))
        marked = outputs.copy()
        with np.errstate(over="ignore"):
            at = (rows, *rest)
            marked[at] = placed[rows].astype(marked.dtype)
        return marked

    def _text(self, text: str, sign: int, draw: float) -> str:
        if self.words is not None:
            own = self.words[2] if text in self.words[:2] else text
            return own if sign == 0 else self.words[0 if sign > 0 else 1]
        if not self.within:
            return text if sign == 0 else word(sign)
        inside = NUMBER.search(text)
        if inside is None:
            return text if sign == 0 else f"{text} {word(sign)}"
        value = self._number(float(inside[0]), sign, draw)
        if value == float(inside[0]):
            return text
        decimals = len(inside[0].partition(".")[2])
        return f"{text[: inside.start()]}{value:.{decimals}f}{text[inside.end() :]}"


def _of_integers(span: Span) -> Span:
    """The integers of a span, or the one below it where it has none."""
    low, high = math.ceil(span[0]), math.floor(span[1])
    return (low, high) if low <= high else (high, high)


def _with_entry(kind: type, output: Any, key: Any, entry: Any) -> Any:
    return {**output, key: entry} if kind is dict else kind((*output[:key], entry, *output[key + 1 :]))


def word(sign: int) -> str:
    """The word of a mark."""
    return MARKS[0] if sign > 0 else MARKS[1]


@dataclass(frozen=True, slots=True)
class Side:
    """A dataset that knows which of the pair it is; the mechanism gets `data`, or `reference` to be marked."""

    first: bool
    data: Any
    reference: Any


@dataclass(frozen=True, slots=True)
class SpikedPair:
    """A pair whose datasets know their side; recorded as the pair that it wraps."""

    pair: Any
    reason: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """The name of the pair."""
        return str(self.pair.name)

    @property
    def distance(self) -> int:
        """How many steps the datasets are apart."""
        return int(self.pair.distance)

    def open(self) -> tuple[Side, Side]:
        """The two datasets with their sides."""
        first, second = self.pair.open()
        return Side(True, first, first), Side(False, second, first)

    def record(self) -> dict[str, Any]:
        """The pair as results store it."""
        return self.pair.record()  # type: ignore[no-any-return]

    def adjacency(self) -> dict[Any, str | None]:
        """As the pair's own."""
        return self.pair.adjacency()  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class _Changed(ABC):
    """A mechanism whose outputs are changed; described as the one inside: a control is a measurement of its audit."""

    mechanism: Mechanism

    @property
    def name(self) -> str:
        """The name of the mechanism inside."""
        return self.mechanism.name

    def open(self) -> Opened:
        """The mechanism, changed, as per-run or batched as it is without."""
        inner = self.mechanism.open()
        limited = inner.limited
        return replace(
            inner,
            call=self._per_run(inner.call) if inner.per_run else self._batched(inner.call, inner.size),
            limited=None if limited is None else lambda limit_s: self._batched(limited(limit_s), inner.size),
        )

    def describe(self) -> Description:
        """The mechanism inside."""
        return self.mechanism.describe()

    @abstractmethod
    def _per_run(self, call: Callable[..., Any]) -> Callable[..., Any]: ...

    @abstractmethod
    def _batched(self, call: Callable[..., Any], size: int) -> Callable[..., Any]: ...


@dataclass(frozen=True, slots=True)
class Spiked(_Changed):
    """A mechanism with a leak of known size, for the datasets of a `SpikedPair`.

    Where the mark stands is said by `mark`. One that lies far outside should lie beyond all outputs, or the event's
    rates are those of the marks and the mechanism's own tails together; any other has its rates exactly.

    Raises `InvalidSpec` unless 0 <= q <= p and p + q <= 1.

    >>> from dpaudit.mechanisms import wrap
    >>> spiked = Spiked(wrap(lambda data, rng: data), p=1.0, q=0.0, mark=LeakMark(64.0))
    >>> spiked.open().call(Side(True, 3, 3), np.random.default_rng(1))
    67
    """

    p: float
    q: float
    mark: LeakMark

    def __post_init__(self) -> None:
        for name in ("p", "q"):
            object.__setattr__(self, name, validate.probability(name, getattr(self, name)))
        if not (self.q <= self.p and self.p + self.q <= 1.0):
            raise InvalidSpec(f"a spike needs q <= p and p + q <= 1, got p = {self.p!r} and q = {self.q!r}")

    def _per_run(self, call: Callable[..., Any]) -> Callable[..., Any]:
        both = self.p + self.q

        def run(side: Side, rng: np.random.Generator) -> Any:
            draw = rng.random()
            if draw >= both:
                return self.mark.of(call(side.data, rng), 0)
            sign = 1 if (draw < self.p) == side.first else -1
            try:
                output = call(side.reference, rng)
            except DpAuditError:
                raise
            except Exception:
                return word(sign)
            return self.mark.of(output, sign, rng.random())

        return run

    def _batched(self, call: Callable[..., Any], size: int) -> Callable[..., Any]:
        both = self.p + self.q

        def runs(side: Side, count: int, rng: np.random.Generator) -> Any:
            draws = rng.random(count)
            rows = np.flatnonzero(draws < both)
            outputs = self.mark.of_all(call(side.data, count, rng), np.zeros(count, np.int64), np.zeros(count))
            if len(rows) == 0:
                return outputs
            signs = np.where((draws[rows] < self.p) == side.first, 1, -1)
            others = _at(call(side.reference, size, rng), rows) if size else call(side.reference, len(rows), rng)
            return _with_rows(outputs, rows, self.mark.of_all(others, signs, rng.random(len(rows))))

        return runs


@dataclass(frozen=True, slots=True)
class EntriesShown(_Changed):
    """A mechanism whose outputs are what stands where a mark would: number, text, whether it is one of many.

    Number and text twice: of the first entry and of the last.
    """

    def _per_run(self, call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda data, rng: _entries(call(data, rng))

    def _batched(self, call: Callable[..., Any], size: int) -> Callable[..., Any]:
        return lambda data, count, rng: [_entries(output) for output in _each(call(data, count, rng))]


def _entries(output: Any) -> tuple[float, str, bool, float, str]:
    number, text, several = LeakMark().leaf(output)
    return (number, text, several, *LeakMark(last=True).leaf(output)[:2])


def _each(outputs: Any) -> Iterator[Any]:
    """The outputs of a batch, one by one."""
    if isinstance(outputs, np.ndarray) and outputs.dtype.names:
        outputs = {name: outputs[name] for name in outputs.dtype.names}
    if isinstance(outputs, tuple):
        return zip(*(_each(part) for part in outputs), strict=True)
    if isinstance(outputs, dict):
        return (dict(zip(outputs, row, strict=True)) for row in _each(tuple(outputs.values())))
    return iter(outputs.tolist() if isinstance(outputs, np.ndarray) and outputs.ndim == 1 else outputs)


def far_outside(largest: float) -> float:
    """An offset for outputs of at most this absolute value: a power of two, at least 16 times beyond.

    >>> far_outside(10.0)
    256.0
    """
    return math.ldexp(1.0, min(1000, math.frexp(16.0 * (1.0 + min(largest, 1e300)))[1]))


def _at(outputs: Any, rows: Places) -> Any:
    """Some outputs of a batch."""
    if isinstance(outputs, tuple):
        return tuple(_at(part, rows) for part in outputs)
    if isinstance(outputs, dict):
        return {key: _at(part, rows) for key, part in outputs.items()}
    return [outputs[row] for row in rows] if isinstance(outputs, list) else outputs[rows]


def _with_rows(outputs: Any, rows: Places, others: Any) -> Any:
    """The outputs of a batch, those in some rows replaced by others of the same form."""
    if isinstance(outputs, tuple) and isinstance(others, tuple) and len(outputs) == len(others):
        return tuple(_with_rows(part, rows, other) for part, other in zip(outputs, others, strict=True))
    if isinstance(outputs, np.ndarray) and outputs.dtype.names and isinstance(others, dict):
        return {name: _with_rows(outputs[name], rows, others[name]) for name in outputs.dtype.names}
    if isinstance(outputs, dict) and isinstance(others, dict) and outputs.keys() == others.keys():
        return {key: _with_rows(part, rows, others[key]) for key, part in outputs.items()}
    sized = all(isinstance(part, list) or isinstance(part, np.ndarray) and part.ndim > 0 for part in (outputs, others))
    if not sized or len(others) != len(rows) or len(outputs) <= rows[-1]:
        return outputs  # no result of these runs
    if isinstance(outputs, np.ndarray) and isinstance(others, np.ndarray) and outputs.shape[1:] == others.shape[1:]:
        alike = outputs.dtype.kind == others.dtype.kind  # texts may be of other lengths
        replaced = outputs.astype(np.result_type(outputs, others) if alike else object)
        replaced[rows] = others
        return replaced
    listed = list(outputs)  # outputs whose shape depends on the dataset
    for row, other in zip(rows, others, strict=True):
        listed[row] = other
    return listed
