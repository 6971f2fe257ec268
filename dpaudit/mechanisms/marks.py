"""Where a known leak stands in an output: far outside, on a value inside, on one that recurs, late, in a text.

A mark is a small frozen value. Of the mechanism's own outputs those that bear a mark are moved elsewhere, whatever the
dataset: so the marked ones have the rates of the marks to the last digit, and nothing leaks that did not before. The
type of an output is the same with a mark and without: integers of NumPy become wide ones, booleans and texts objects.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.base import validate
from dpaudit.base.arrays import Integers, Reals
from dpaudit.errors import InvalidSpec

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

    def of_all(self, found: Any, signs: Integers, draws: Reals) -> Any:
        """The outputs of many runs at once, with a sign and a draw each."""
        if isinstance(found, tuple | dict) and found:
            key, kind = self._key(found), dict if isinstance(found, dict) else tuple
            return _with_entry(kind, found, key, self.of_all(found[key], signs, draws))
        if isinstance(found, list) and len(found) == len(signs):
            given = zip(found, signs.tolist(), draws.tolist(), strict=True)
            return [self.of(output, sign, draw) for output, sign, draw in given]
        if not isinstance(found, np.ndarray) or found.ndim == 0 or len(found) != len(signs) or found.size == 0:
            return found  # no result of so many runs: the audit will say so
        if names := found.dtype.names:
            name = names[-1 if self.last else 0]
            return {each: self.of_all(found[each], signs, draws) if each == name else found[each] for each in names}
        if found.dtype.kind in "iu":
            wide = self.offset <= LARGEST_WIDE and found.dtype != np.uint64
            found = found.astype(np.int64 if wide else object)
        if found.dtype.kind in "fi":
            return self._numbers(found, signs, draws)
        at: Any = (slice(None), *(-1 if self.last else 0 for _ in found.shape[1:]))
        marked = found.astype(object)
        given = zip(found[at].tolist(), signs.tolist(), draws.tolist(), strict=True)
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

    def _numbers(self, found: npt.NDArray[Any], signs: Integers, draws: Reals) -> npt.NDArray[Any]:
        """The same array with the one entry of each run changed where a mark or an own output in a span asks for it."""
        rest = tuple(-1 if self.last else 0 for _ in found.shape[1:])
        at: Any = (slice(None), *rest)
        data, hidden = np.ma.getdata(found)[at], np.ma.getmaskarray(found)[at]
        placed = self._placed(data.astype(np.float64), signs, draws, found.dtype.kind == "i")
        rows = np.flatnonzero((signs != 0) | ((placed != data) & (data == data) & ~hidden))
        marked = found.copy()
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
