"""A grammar of features: expressions over the numbers of an output, made of one word at a time.

A word takes a matrix of numbers, a row for each entry and a column for each run, and gives another: a word of entries
one as high (a bit, the square), a word of places a lower one (the steps, the products at a lag), and one that combines
a single row (the sum, the position of the greatest). An expression is a word said of paths, or of other expressions
beside one another; NaN stands for what is no number. Every word is exact, or a few operations in doubles, so that a
run's number is the same whatever runs stand beside it. None sees the last bits of a double (`steady`), which are those
of representation; residues and decimals see more than others, never finer than a millionth of a modulus or `DECIMALS`
decimals, and only where that is far more than the spacing of doubles.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpaudit.base.arrays import Reals, Singles
from dpaudit.errors import InvalidSpec
from dpaudit.events.features import OfFields, rounded, single, spell, taken_over
from dpaudit.outputs.canonical import Column, Outputs, Path

PIECE = 1 << 20  # numbers that are looked at together
LARGEST = 2.0**53  # below, integers are exact
FINE = 1e6  # parts of a modulus that are distinguished
OFF = 0.02886751  # of a part: no number that people write with decimals lies where two parts meet
LAST = 20  # bits of a double that say how it was computed
WHOLE_BESIDE = 2.0**-45  # of a number: so far beside a whole one it is that
FARTHEST = 1e8  # moduli from 0: there a part is ninety times the spacing of doubles
UNKNOWN = -1.0  # the residue of what lies farther out, or is infinite
DECIMALS = 8
MOST_DIGITS = 1e12  # of a number written with some decimals: beyond, the spacing of doubles is as wide as they are
SPACINGS = 4.0  # of doubles: what a few sums may be off
TENS = 10.0 ** np.arange(-15, 16)
By = tuple[float, ...]


class Word(NamedTuple):
    """What a word makes of a matrix of numbers and its own parameters, and how it is printed."""

    of: Callable[[Any, By], Any]
    text: str


def steady(numbers: Reals) -> Reals:
    """Numbers without their last bits, whole ones as they are: sums that differ by their rounding alone are one.

    >>> steady(np.array([0.1 + 0.2, 2.0**40 + 1.0])) == steady(np.array([0.3, 2.0**40 + 1.0]))
    array([ True,  True])
    """
    bits = np.ascontiguousarray(numbers).view(np.int64) + int(OFF * 2**LAST)
    bits &= -(2**LAST)
    made: Reals = bits.view(np.float64)
    if not (np.abs(made) >= 2.0 ** (52 - LAST)).any():  # smaller whole numbers have no last bits
        return made
    whole = np.rint(numbers)
    return np.where(np.abs(numbers - whole) <= WHOLE_BESIDE * np.abs(numbers), whole, made)


def _modulo(matrix: Reals, by: By) -> Reals:
    """In [0, modulus), to a millionth of it; -1 where a number is too far from 0."""
    modulus, inverse = by[0], round(1.0 / by[0])  # so that moduli below 1 are the decimals that they are written as
    turns = matrix * inverse if modulus < 1.0 else matrix / modulus
    part = np.rint((turns - np.floor(turns)) * FINE + OFF)
    part[part == FINE] = 0.0
    # whole numbers need no rounding, however far out
    whole = (np.abs(matrix - np.rint(matrix)) < OFF / FINE * modulus) & (np.abs(matrix) < LARGEST)
    whole &= modulus == round(modulus)
    exact = np.mod(np.where(whole, np.rint(matrix), 0.0), modulus)
    near = np.abs(turns) <= FARTHEST
    return _flag(np.where(whole, exact, np.where(near, part / FINE * modulus, UNKNOWN)), matrix)


def _decimals(matrix: Reals, by: By) -> Reals:
    """How many a number is written with, to within a few spacings of doubles; 9 where more than eight."""
    decimals, near = np.full(matrix.shape, DECIMALS + 1.0), SPACINGS * np.spacing(np.abs(matrix))
    for places in range(DECIMALS, -1, -1):
        digits = np.rint(matrix * 10.0**places)
        decimals[(np.abs(digits) < MOST_DIGITS) & (np.abs(digits / 10.0**places - matrix) <= near)] = places
    return _flag(decimals, matrix)


def _bits_set(matrix: Reals, by: By) -> Reals:
    whole = np.where(np.abs(matrix) < LARGEST, np.abs(matrix), 0.0).astype(np.uint64)
    bits = np.unpackbits(np.ascontiguousarray(whole).view(np.uint8).reshape(*matrix.shape, 8), axis=2)
    return np.asarray(np.where(np.abs(matrix) < LARGEST, bits.sum(axis=2), np.nan))


def _digits(matrix: Reals, by: By) -> Reals:
    rest, total = np.abs(matrix), np.where(np.abs(matrix) < LARGEST, 0.0, np.nan)
    while np.any(rest >= 1.0) and not np.all(np.isnan(total)):
        total += np.mod(np.floor(rest), 10.0)
        rest = np.floor(np.where(np.isnan(total), 0.0, rest) / 10.0)
    return total


def _leading(matrix: Reals, by: By) -> Reals:
    size = np.abs(matrix) * (1.0 + 2.0 ** (LAST - 51))  # .3 without its last bits begins with 2
    place = np.clip(np.searchsorted(TENS, size, side="right") - 1, 0, len(TENS) - 1)
    return np.where((size >= TENS[0]) & (size < 10.0 * TENS[-1]), np.floor(size / TENS[place]), np.nan)


def _position(matrix: Reals) -> Reals:
    entries = np.arange(len(matrix), dtype=np.float64)[:, None]
    place = np.where(matrix == np.fmax.reduce(matrix, axis=0), entries, np.inf).min(axis=0)
    return np.asarray(np.where(place < np.inf, place, np.nan))


def _rising(matrix: Reals) -> Singles:
    """A row for each run, its numbers in order and NaN last; as float32 they have the same order, and sort quicker."""
    return np.sort(np.ascontiguousarray(single(matrix).T), axis=1)


def _ranked(rising: Singles, by: By) -> Singles:
    """Of the rank: 0 the least, -1 the greatest, of the numbers only."""
    rank = int(by[0])
    some = rank < 0 and bool(np.isnan(rising[:, -1]).any())
    return np.asarray(-np.sort(-rising, axis=1)[:, -rank - 1] if some else rising[:, rank])


def _lead(matrix: Reals, by: By) -> Reals:
    top: Reals = np.sort(np.where(np.isnan(matrix), -np.inf, matrix), axis=0)[-2:]
    return np.asarray(top[-1] - top[0])


def _longest(matrix: Reals, by: By) -> Reals:
    longest = now = np.ones(matrix.shape[1])
    for same in matrix[1:] == matrix[:-1]:
        now = now * same + 1.0
        longest = np.maximum(longest, now)
    return longest


def _flag(inside: Any, matrix: Reals) -> Reals:
    return np.where(np.isnan(matrix), np.nan, inside)


def _combined(of: np.ufunc, matrix: Reals) -> Reals:
    """Of all entries, in their order: numpy takes another one where the runs do not lie side by side, or are one."""
    runs = matrix.shape[1]
    return np.asarray(of.reduce(np.ascontiguousarray(matrix if runs > 1 else matrix.repeat(2, axis=1)), axis=0)[:runs])


def _total(matrix: Reals) -> Reals:
    return _combined(np.add, np.where(np.isnan(matrix), 0.0, matrix))


WORDS: Mapping[str, Word] = {
    # of entries
    "less": Word(lambda matrix, by: matrix - np.array(by)[:, None], "({of} - {by})"),
    "abs": Word(lambda matrix, by: np.abs(matrix), "abs({of})"),
    "square": Word(lambda matrix, by: matrix * matrix, "{of}**2"),
    "sign": Word(lambda matrix, by: np.sign(matrix), "sign({of})"),
    "above": Word(lambda matrix, by: _flag(single(matrix) > np.float32(by[0]), matrix), "{of} > {by}"),
    "equal": Word(lambda matrix, by: _flag(matrix == steady(np.array(by)), matrix), "{of} == {by}"),
    "modulo": Word(_modulo, "{of} modulo {by}"),
    "decimals": Word(_decimals, "number of decimals of {of}"),
    "bit": Word(
        lambda matrix, by: np.floor(matrix / 2.0 ** by[0]) - 2.0 * np.floor(matrix / 2.0 ** (by[0] + 1.0)),
        "bit {by} of {of}",
    ),
    "digit": Word(lambda matrix, by: np.mod(np.floor(np.abs(matrix) / 10.0 ** by[0]), 10.0), "digit {by} of {of}"),
    "bits": Word(_bits_set, "number of bits set in {of}"),
    "digits": Word(_digits, "sum of digits of {of}"),
    "leading": Word(_leading, "leading digit of {of}"),
    "significand": Word(lambda matrix, by: 2.0 * np.abs(np.frexp(matrix)[0]), "significand of {of}"),
    # of places
    "steps": Word(lambda matrix, by: np.diff(matrix, axis=0, prepend=0.0), "steps of {of}"),  # the first as it is
    "changes": Word(lambda matrix, by: np.diff(matrix, axis=0), "changes of {of}"),
    "lag": Word(lambda matrix, by: matrix[: -int(by[0])] * matrix[int(by[0]) :], "{of}[i] * {of}[i + {by}]"),
    # that combine
    "sum": Word(lambda matrix, by: _total(matrix), "sum({of})"),
    "max": Word(lambda matrix, by: np.fmax.reduce(matrix, axis=0), "max({of})"),
    "min": Word(lambda matrix, by: np.fmin.reduce(matrix, axis=0), "min({of})"),
    "ordered": Word(_ranked, "sorted({of})[{by}]"),
    "argmax": Word(lambda matrix, by: _position(matrix), "argmax({of})"),
    "argmin": Word(lambda matrix, by: _position(-matrix), "argmin({of})"),
    "lead": Word(_lead, "gap of the two largest of {of}"),
    "longest": Word(_longest, "longest run in {of}"),
    "rank": Word(lambda matrix, by: (matrix[1:] < matrix[:1]).sum(axis=0), "rank of {first} among the others"),
    "times": Word(lambda matrix, by: _combined(np.multiply, matrix), " * "),
    "over": Word(lambda matrix, by: matrix[0] / matrix[1], " / "),
    "minus": Word(lambda matrix, by: matrix[0] - matrix[1], " - "),
    "xor": Word(lambda matrix, by: np.mod(_total(matrix), 2.0), " ^ "),
}


# words whose numbers are whole, and words that say whole numbers of whole ones
WHOLE = {"sign", "above", "equal", "bit", "digit", "bits", "digits", "leading", "decimals", "argmax", "argmin"}
WHOLE |= {"longest", "rank"}
FINER = {"modulo", "decimals"}  # words that look at more of a number than others
KEPT_WHOLE = {"sum", "max", "min", "ordered", "modulo", "xor"}


@dataclass(frozen=True, slots=True)
class Expression(OfFields, kind="expression"):
    """A word, with its parameters, said of what stands at some paths and of other expressions.

    >>> bit = Expression("bit", ((0,),), (3.0,))
    >>> print(bit, "|", Expression("sum", (Expression("square", ((0,), (1,))),)))
    bit 3 of output[0] | sum(output**2)
    """

    word: str
    parts: "tuple[Path | Expression, ...]"
    by: By = ()

    @property
    def wanted(self) -> frozenset[Path]:
        paths: set[Path] = set()
        for part in self.parts:
            paths |= part.wanted if isinstance(part, Expression) else {part}
        return frozenset(paths)

    @property
    def whole(self) -> bool:
        """Whether its numbers are whole, whatever those of the output are."""
        inner = self.word in KEPT_WHOLE and all(isinstance(part, Expression) and part.whole for part in self.parts)
        return inner or self.word in WHOLE

    def matrix(self, outputs: Outputs, runs: slice) -> Reals:
        """The numbers of a stretch of runs: float64[entries, runs]."""
        if self.word == "ordered":  # of several ranks, the order once
            numbers = outputs.kept((self.parts, runs.start, runs.stop), lambda: _rising(self._of(outputs, runs)))
        else:
            numbers = self._of(outputs, runs)
        made = np.asarray(WORDS[self.word].of(numbers, self.by), np.float64)
        return made if made.ndim == 2 else made[None]

    def _of(self, outputs: Outputs, runs: slice) -> Reals:
        """What the word is said of."""
        seen = steady if self.word not in FINER else lambda numbers: numbers
        if not any(isinstance(part, Expression) for part in self.parts):
            return seen(outputs.numbers(self.parts, runs))  # type: ignore[arg-type]
        return np.concatenate(
            [
                part.matrix(outputs, runs) if isinstance(part, Expression) else seen(outputs.numbers((part,), runs))
                for part in self.parts
            ]
        )

    def column(self, outputs: Outputs) -> Column:
        size = max(1, PIECE // max(1, len(self.wanted)))
        with np.errstate(all="ignore"):
            starts = range(0, max(1, outputs.runs), size)
            parts = [self.matrix(outputs, slice(start, start + size))[0] for start in starts]
        values = np.concatenate(parts)
        codes = outputs.column(next(iter(self.wanted))).codes if len(self.wanted) == 1 else None
        return rounded(Column(values if codes is None else np.where(codes == 0, values, np.nan), codes))

    @classmethod
    def from_dict(cls, written: dict[str, Any]) -> "Expression":
        """The expression of a stored result."""
        if written["word"] not in WORDS:
            raise InvalidSpec(f"an expression has the unknown word {written['word']!r}; a newer dpaudit may know it")
        parts = tuple(cls.from_dict(part) if isinstance(part, dict) else tuple(part) for part in written["parts"])
        made = cls(written["word"], parts, tuple(map(float, written["by"])))
        if not _takes(made):
            raise InvalidSpec(f"an expression of {len(parts)} with the word {made.word!r} has no by = {list(made.by)}")
        return made

    def __str__(self) -> str:
        text, by = WORDS[self.word].text, f"{self.by[0]:.6g}" if len(self.by) == 1 else "their middles"
        names = [str(part) if isinstance(part, Expression) else spell(part) for part in self.parts]
        if "{" not in text:
            return text.join(names)
        paths = tuple(part for part in self.parts if not isinstance(part, Expression))
        several = len(paths) == len(self.parts) != 1
        return text.format(of=taken_over(paths) if several else ", ".join(names), by=by, first="".join(names[:1]))


def _takes(each: Expression) -> bool:
    """Whether a word takes these parameters: one where it prints one, or one for each entry."""
    entries, nested = len(each.parts), any(isinstance(part, Expression) for part in each.parts)
    inside = {"lag": (0.0,) < each.by < (entries,), "ordered": (-entries - 1.0,) < each.by < (entries,)}
    right = each.by > (0.0,) if each.word == "modulo" else nested or inside.get(each.word, True)
    return right and len(each.by) == (entries if each.word == "less" else int("{by}" in WORDS[each.word].text))
