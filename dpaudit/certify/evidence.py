"""What certifying runs leave behind: integers that add up.

Contract: counts only ever enter as integers and are added, never divided, before a certificate is made;
shards merge in any order. Stored results hold these numbers, so they must stay checkable for ever.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from dpaudit.base import validate
from dpaudit.errors import InvalidSpec


class _Counts:
    """Counts of either side; only those of one design add up, for runs of two have no common law."""

    __slots__ = ()
    kind: ClassVar[str]
    runs_p: int
    runs_q: int

    def _values(self) -> Iterator[tuple[str, Any]]:
        return ((field.name, getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type]

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        pairs = zip(self._values(), other._values(), strict=True)
        return type(self)(**{name: _sum(mine, others) for (name, mine), (_, others) in pairs})

    @property
    def runs(self) -> int:
        """All certifying runs, both sides."""
        return self.runs_p + self.runs_q

    def to_dict(self) -> dict[str, object]:
        """The counts as results store them."""
        return {"kind": self.kind} | {k: list(v) if isinstance(v, tuple) else v for k, v in self._values()}


def _sum(mine: Any, others: Any) -> Any:
    if not isinstance(mine, tuple):
        return mine + others
    if len(mine) != len(others):
        raise InvalidSpec(f"only counts of the same bins add up, got {len(mine)} and {len(others)} bins")
    return tuple(a + b for a, b in zip(mine, others, strict=True))


@dataclass(frozen=True, slots=True)
class _TwoCounts(_Counts):
    """Hits of one event on either side, and the runs of either side."""

    hits_p: int
    hits_q: int
    runs_p: int
    runs_q: int

    def __post_init__(self) -> None:
        for side, hits, runs in (("p", self.hits_p, self.runs_p), ("q", self.hits_q, self.runs_q)):
            if not 0 <= hits <= runs:
                raise InvalidSpec(f"hits_{side} must be in 0 .. runs_{side} = {runs}, got {hits}")

    @property
    def events(self) -> tuple[tuple[int, int], ...]:
        """The hits (x, y) of each event: of the one there is."""
        return ((self.hits_p, self.hits_q),)

    @property
    def estimate(self) -> float:
        """The plain log ratio of the two hit rates: an estimate, never a bound."""
        if self.hits_p == 0:
            return -math.inf if self.hits_q else 0.0
        if self.hits_q == 0:
            return math.inf
        return math.log(self.hits_p / self.runs_p) - math.log(self.hits_q / self.runs_q)


@dataclass(frozen=True, slots=True)
class CoinFlip(_TwoCounts):
    """Hits of one event over runs whose side was drawn by a fair coin, run by run.

    `hits_p` of `runs_p` runs fell into the event on the likelier side, `hits_q` of `runs_q` on the other.
    Raises `InvalidSpec` where hits are negative or exceed runs.

    >>> CoinFlip(30, 10, 100, 100) + CoinFlip(1, 0, 2, 3)
    CoinFlip(hits_p=31, hits_q=10, runs_p=102, runs_q=103)
    """

    kind: ClassVar[str] = "coin-flip"


@dataclass(frozen=True, slots=True)
class FixedSides(_TwoCounts):
    """Hits of one event over runs whose numbers per side were fixed beforehand, not drawn by coins.

    The fields and the errors are those of `CoinFlip`; only the unconditional certifier takes this evidence.

    >>> FixedSides(30, 10, 100, 300).runs
    400
    """

    kind: ClassVar[str] = "fixed-sides"


@dataclass(frozen=True, slots=True)
class Binned(_Counts):
    """Runs per bin of a partition that was frozen beforehand, on either side.

    `counts_p[b]` of `runs_p` runs fell into bin b on the likelier side, `counts_q[b]` of `runs_q` on the other. The
    bins are disjoint and stand in order of falling ratio p/q; another order makes a bound smaller, never wrong. They
    need not hold every run: what no bin holds counts with the last. Raises `InvalidSpec` where counts are negative, do
    not match, or add up to more than the runs.

    >>> Binned((30, 50), (10, 80), 100, 100) + Binned((1, 0), (0, 1), 1, 2)
    Binned(counts_p=(31, 50), counts_q=(10, 81), runs_p=101, runs_q=102)
    """

    counts_p: tuple[int, ...]
    counts_q: tuple[int, ...]
    runs_p: int
    runs_q: int

    kind: ClassVar[str] = "binned"

    def __post_init__(self) -> None:
        if not len(self.counts_p) == len(self.counts_q) > 0:
            raise InvalidSpec(
                f"counts_p and counts_q must hold the same bins, at least one, got {len(self.counts_p)} "
                f"and {len(self.counts_q)}"
            )
        for side, counts, runs in (("p", self.counts_p, self.runs_p), ("q", self.counts_q, self.runs_q)):
            if min(counts) < 0 or sum(counts) > runs:
                raise InvalidSpec(
                    f"counts_{side} must be at least 0 and add up to at most runs_{side} = {runs}, "
                    f"got {min(counts)} and a sum of {sum(counts)}"
                )

    @property
    def events(self) -> tuple[tuple[int, int], ...]:
        """The hits (x, y) of each event: of the first bins together; the last one, and what none holds, is the rest.

        A single bin is an event on its own.
        """
        most = max(1, len(self.counts_p) - 1)
        hits_p, hits_q = (itertools.accumulate(counts[:most]) for counts in (self.counts_p, self.counts_q))
        return tuple(zip(hits_p, hits_q, strict=True))


Evidence = CoinFlip | FixedSides | Binned


def evidence_from_dict(stored: Mapping[str, object]) -> Evidence:
    """The evidence that `to_dict` wrote. Raises `InvalidSpec` for an unknown kind, a missing count or a wrong one.

    >>> evidence_from_dict(FixedSides(3, 1, 10, 20).to_dict())
    FixedSides(hits_p=3, hits_q=1, runs_p=10, runs_q=20)
    """
    forms: dict[object, type[Evidence]] = {form.kind: form for form in (CoinFlip, FixedSides, Binned)}
    kind = stored.get("kind")
    if kind not in forms:
        raise InvalidSpec(f"kind of the evidence must be one of {', '.join(map(str, forms))}, got {kind!r}")
    names = [field.name for field in fields(forms[kind])]
    return forms[kind](**{name: _read(name, stored.get(name)) for name in names})


def _read(name: str, given: Any) -> Any:
    if not name.startswith("counts"):
        return validate.whole(name, given, least=0)
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InvalidSpec(f"{name} must be a list of counts, got {given!r}")
    return tuple(validate.whole(f"{name}[{b}]", value, least=0) for b, value in enumerate(given))
