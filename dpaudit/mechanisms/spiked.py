"""A known leak put into a mechanism: what an audit of it should find, so that the finding can be measured.

With probability `p + q` a run's output is replaced by a marked one: on the first dataset it bears the mark with
probability p and the other mark with probability q, on the second dataset the other way round. Nothing else changes.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Places
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.mechanisms.marks import LeakMark, word
from dpaudit.mechanisms.protocol import Description, Mechanism, Opened


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
            found = self.mark.of_all(call(side.data, count, rng), np.zeros(count, np.int64), np.zeros(count))
            if len(rows) == 0:
                return found
            signs = np.where((draws[rows] < self.p) == side.first, 1, -1)
            others = _at(call(side.reference, size, rng), rows) if size else call(side.reference, len(rows), rng)
            return _with_rows(found, rows, self.mark.of_all(others, signs, rng.random(len(rows))))

        return runs


@dataclass(frozen=True, slots=True)
class EntriesShown(_Changed):
    """A mechanism whose outputs are what stands where a mark would: number, text, whether it is one of many.

    Number and text twice: of the first entry and of the last.
    """

    def _per_run(self, call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda data, rng: _looked_at(call(data, rng))

    def _batched(self, call: Callable[..., Any], size: int) -> Callable[..., Any]:
        return lambda data, count, rng: [_looked_at(output) for output in _each(call(data, count, rng))]


def _looked_at(output: Any) -> tuple[float, str, bool, float, str]:
    number, text, several = LeakMark().leaf(output)
    return (number, text, several, *LeakMark(last=True).leaf(output)[:2])


def _each(found: Any) -> Iterator[Any]:
    """The outputs of a batch, one by one."""
    if isinstance(found, np.ndarray) and found.dtype.names:
        found = {name: found[name] for name in found.dtype.names}
    if isinstance(found, tuple):
        return zip(*(_each(part) for part in found), strict=True)
    if isinstance(found, dict):
        return (dict(zip(found, row, strict=True)) for row in _each(tuple(found.values())))
    return iter(found.tolist() if isinstance(found, np.ndarray) and found.ndim == 1 else found)


def far_outside(largest: float) -> float:
    """An offset for outputs of at most this absolute value: a power of two, at least 16 times beyond.

    >>> far_outside(10.0)
    256.0
    """
    return math.ldexp(1.0, min(1000, math.frexp(16.0 * (1.0 + min(largest, 1e300)))[1]))


def _at(found: Any, rows: Places) -> Any:
    """Some outputs of a batch."""
    if isinstance(found, tuple):
        return tuple(_at(part, rows) for part in found)
    if isinstance(found, dict):
        return {key: _at(part, rows) for key, part in found.items()}
    return [found[row] for row in rows] if isinstance(found, list) else found[rows]


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
        alike = found.dtype.kind == others.dtype.kind  # texts may be of other lengths
        replaced = found.astype(np.result_type(found, others) if alike else object)
        replaced[rows] = others
        return replaced
    listed = list(found)  # outputs whose shape depends on the dataset
    for row, other in zip(rows, others, strict=True):
        listed[row] = other
    return listed
