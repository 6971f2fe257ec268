"""A known leak put into a mechanism: what an audit of it should find, so that the finding can be measured.

With probability `p + q` a run's output is replaced by a marked one: on the first dataset it bears the mark with
probability p and the other mark with probability q, on the second dataset the other way round. What is marked is an
output of the mechanism on the first dataset, whatever the side, so it tells nothing but its mark. Of the rest
nothing changes: the event "marked" has the rates p and q, and no event leaks more than mechanism or marks do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Places, Reals
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.mechanisms.protocol import Description, Mechanism, Opened

MARKS = ("marked", "marked otherwise")  # of outputs that hold no number


@dataclass(frozen=True, slots=True)
class Side:
    """A dataset that knows which of the pair it is; the mechanism is handed `data`, or `reference` to be marked."""

    first: bool
    data: Any
    reference: Any


@dataclass(frozen=True, slots=True)
class SpikedPair:
    """A pair whose datasets know their side; recorded as the pair that it wraps."""

    pair: Any

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
class Spiked:
    """A mechanism with a leak of known size, for the datasets of a `SpikedPair`.

    A mark moves a number `offset` up (down for the other mark): the first of a tuple, array or mapping. An output
    that begins with none has a word in its place, and so has a run that raises. `offset` should lie well outside
    the outputs, or the event's rates are those of the marks and the mechanism's own tails together.

    Raises `InvalidSpec` unless 0 <= q <= p, p + q <= 1 and offset > 0.

    >>> from dpaudit.mechanisms import wrap
    >>> spiked = Spiked(wrap(lambda data, rng: data), p=1.0, q=0.0, offset=64.0)
    >>> spiked.open().call(Side(True, 3, 3), np.random.default_rng(1))
    67
    """

    mechanism: Mechanism
    p: float
    q: float
    offset: float

    def __post_init__(self) -> None:
        for name in ("p", "q"):
            object.__setattr__(self, name, validate.probability(name, getattr(self, name)))
        object.__setattr__(self, "offset", validate.positive("offset", self.offset))
        if not (self.q <= self.p and self.p + self.q <= 1.0):
            raise InvalidSpec(f"a spike needs q <= p and p + q <= 1, got p = {self.p!r} and q = {self.q!r}")

    @property
    def name(self) -> str:
        """The name of the mechanism inside."""
        return self.mechanism.name

    def open(self) -> Opened:
        """The mechanism, spiked, as per-run or batched as it is without."""
        inner = self.mechanism.open()
        limited = inner.limited
        return Opened(
            self._per_run(inner.call) if inner.per_run else self._batched(inner.call),
            per_run=inner.per_run,
            takes_rng=inner.takes_rng,
            smallest_batch=inner.smallest_batch,
            limited=None if limited is None else lambda limit_s: self._batched(limited(limit_s)),
        )

    def describe(self) -> Description:
        """The mechanism inside: a control is a measurement of its audit."""
        return self.mechanism.describe()

    def _per_run(self, call: Callable[..., Any]) -> Callable[..., Any]:
        both = self.p + self.q

        def run(side: Side, rng: np.random.Generator) -> Any:
            draw = rng.random()
            if draw >= both:
                return call(side.data, rng)
            sign = 1 if (draw < self.p) == side.first else -1
            try:
                output = call(side.reference, rng)
            except DpAuditError:
                raise
            except Exception:
                return _word(sign)
            return _marked(output, sign * self.offset)

        return run

    def _batched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        both = self.p + self.q

        def runs(side: Side, count: int, rng: np.random.Generator) -> Any:
            draws = rng.random(count)
            rows = np.flatnonzero(draws < both)
            found = call(side.data, count, rng)
            if len(rows) == 0:
                return found
            signs = np.where((draws[rows] < self.p) == side.first, 1.0, -1.0)
            return _with_rows(found, rows, _all_marked(call(side.reference, len(rows), rng), signs * self.offset))

        return runs


def far_outside(largest: float) -> float:
    """An offset for outputs of at most this absolute value: a power of two, at least 16 times beyond.

    >>> far_outside(10.0)
    256.0
    """
    return math.ldexp(1.0, min(1000, math.frexp(16.0 * (1.0 + min(largest, 1e300)))[1]))


def _word(shift: float) -> str:
    return MARKS[0] if shift > 0 else MARKS[1]


def _marked(output: Any, shift: float) -> Any:
    """One output with its first number moved; a word where there is none."""
    kind = type(output)
    if kind is int:
        return output + int(shift) if shift.is_integer() else output + shift
    if kind is float or isinstance(output, np.floating):
        return kind(output + shift) if math.isfinite(output) else kind(shift)
    if isinstance(output, np.integer):
        return float(output) + shift
    if kind in (tuple, list) and output:
        return kind((_marked(output[0], shift), *output[1:]))
    if kind is dict and output:
        key = next(iter(output))
        return {**output, key: _marked(output[key], shift)}
    if isinstance(output, np.ndarray) and output.dtype.kind in "fiu" and output.size and output.ndim:
        return _all_marked(output[None], np.array([shift]))[0]
    return _word(shift)


def _all_marked(found: Any, shifts: Reals) -> Any:
    """Many outputs at once, each with its own shift."""
    if isinstance(found, tuple) and found:
        return (_all_marked(found[0], shifts), *found[1:])
    if isinstance(found, dict) and found:
        key = next(iter(found))
        return {**found, key: _all_marked(found[key], shifts)}
    if isinstance(found, list) and len(found) == len(shifts):
        return [_marked(output, float(shift)) for output, shift in zip(found, shifts, strict=True)]
    if not isinstance(found, np.ndarray) or found.ndim == 0 or len(found) != len(shifts) or found.size == 0:
        return found  # no result of so many runs: the audit will say so
    place: Any = (slice(None), *(0 for _ in found.shape[1:]))
    if found.dtype.names:
        first = found.dtype.names[0]
        return {name: _all_marked(found[name], shifts) if name == first else found[name] for name in found.dtype.names}
    if found.dtype.kind in "fiu":
        marked = found.copy() if found.dtype.kind == "f" else found.astype(np.float64)
        here = np.ma.getdata(marked)[place]
        with np.errstate(over="ignore"):
            marked[place] = np.where(np.isfinite(here), here, 0.0) + shifts.astype(marked.dtype)
        return marked
    marked = found.astype(object)
    marked[place] = np.array([_word(shift) for shift in shifts], object)
    return marked


def _with_rows(found: Any, rows: Places, others: Any) -> Any:
    """The outputs of a batch, those in some rows replaced by others of the same form."""
    if isinstance(found, tuple) and isinstance(others, tuple) and len(found) == len(others):
        return tuple(_with_rows(part, rows, other) for part, other in zip(found, others, strict=True))
    if isinstance(found, np.ndarray) and found.dtype.names and isinstance(others, dict):
        return {name: _with_rows(found[name], rows, others[name]) for name in found.dtype.names}
    if isinstance(found, dict) and isinstance(others, dict) and found.keys() == others.keys():
        return {key: _with_rows(part, rows, others[key]) for key, part in found.items()}
    sized = all(isinstance(part, list) or isinstance(part, np.ndarray) and part.ndim > 0 for part in (found, others))
    if not sized or len(others) != len(rows) or len(found) <= rows[-1]:
        return found  # no result of so many runs
    if isinstance(found, np.ndarray) and isinstance(others, np.ndarray) and found.shape[1:] == others.shape[1:]:
        numbers = found.dtype.kind in "fiu" and others.dtype.kind in "fiu"
        replaced = found.copy() if found.dtype == others.dtype else found.astype(np.float64 if numbers else object)
        replaced[rows] = others
        return replaced
    listed = list(found)  # outputs whose shape depends on the dataset
    for row, other in zip(rows, others, strict=True):
        listed[row] = other
    return listed
