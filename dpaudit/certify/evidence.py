"""What certifying runs leave behind: integers that add up.

Contract: counts only ever enter as integers and are added, never divided, before a certificate is made;
shards merge in any order. Stored results hold these four numbers, so they must stay checkable for ever.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpaudit.errors import InvalidSpec


@dataclass(frozen=True, slots=True)
class CoinFlip:
    """Hits of one event over runs whose side was drawn by a fair coin, run by run.

    `hits_p` of `runs_p` runs fell into the event on the likelier side, `hits_q` of `runs_q` on the other.
    Raises `InvalidSpec` where hits are negative or exceed runs.

    >>> CoinFlip(30, 10, 100, 100) + CoinFlip(1, 0, 2, 3)
    CoinFlip(hits_p=31, hits_q=10, runs_p=102, runs_q=103)
    """

    hits_p: int
    hits_q: int
    runs_p: int
    runs_q: int

    def __post_init__(self) -> None:
        for side, hits, runs in (("p", self.hits_p, self.runs_p), ("q", self.hits_q, self.runs_q)):
            if not 0 <= hits <= runs:
                raise InvalidSpec(f"hits_{side} must be in 0 .. runs_{side} = {runs}, got {hits}")

    def __add__(self, other: CoinFlip) -> CoinFlip:
        return CoinFlip(
            self.hits_p + other.hits_p,
            self.hits_q + other.hits_q,
            self.runs_p + other.runs_p,
            self.runs_q + other.runs_q,
        )

    @property
    def runs(self) -> int:
        """All certifying runs, both sides."""
        return self.runs_p + self.runs_q

    @property
    def estimate(self) -> float:
        """The plain log ratio of the two hit rates: an estimate, never a bound."""
        if self.hits_p == 0:
            return -math.inf if self.hits_q else 0.0
        if self.hits_q == 0:
            return math.inf
        return math.log(self.hits_p / self.runs_p) - math.log(self.hits_q / self.runs_q)

    def to_dict(self) -> dict[str, object]:
        """The counts as results store them."""
        return {
            "kind": "coin-flip",
            "hits_p": self.hits_p,
            "hits_q": self.hits_q,
            "runs_p": self.runs_p,
            "runs_q": self.runs_q,
        }
