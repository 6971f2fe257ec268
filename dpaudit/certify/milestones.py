"""Where a deadline may cut certification: numbers of runs that are fixed before the first of them.

Each milestone is a prefix of the certifying runs and has a part of the error probability, and the parts add up to one.
Which milestone is certified in the end may depend on the outputs in any way, for the probability that *any* of the
tests refutes a true claim is at most the sum of the parts (a union bound; `docs/statistics/deadline.md`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpaudit.errors import InvalidSpec

STEP = 2**0.5  # from one milestone to the next: what is cut off is less than three tenths
LAST_SHARE = 0.9  # of the error probability is for all the runs; the rest is divided equally
MOST = 24  # milestones: the first of them has a 4,000th of the runs


@dataclass(frozen=True, slots=True)
class Milestones:
    """The numbers of runs (`ends`, growing) at which a certificate may be made, and the part of the last of them.

    The earlier ones share what it leaves; one alone has all. Raises `InvalidSpec` where they do not grow.
    """

    ends: tuple[int, ...]
    last: float = LAST_SHARE

    def __post_init__(self) -> None:
        object.__setattr__(self, "ends", tuple(self.ends))
        if not self.ends or self.ends[0] < 1 or any(a >= b for a, b in zip(self.ends, self.ends[1:], strict=False)):
            raise InvalidSpec(f"milestones must be at least one number above 0, growing, got {self.ends!r}")
        if not 0.0 < self.last < 1.0:
            raise InvalidSpec(f"the part of the last milestone must lie between 0 and 1, got {self.last!r}")

    @classmethod
    def among(cls, ends: Sequence[int], refutable: Callable[[int, float], bool]) -> "Milestones":
        """Some of these growing numbers of runs: the last, and before it one for each `STEP`, at the most.

        The first is one at which outputs that tell their dataset refute: `refutable(n, share)` says whether they would
        with n runs, at that part of the error probability.

        >>> Milestones.among(range(10, 1001, 10), lambda runs, share: runs >= 100).ends
        (110, 160, 240, 340, 490, 700, 1000)
        """
        chosen = [ends[-1]]
        for end in reversed(ends):
            if end * STEP <= chosen[0] and len(chosen) < MOST:
                chosen.insert(0, end)
        for first in range(len(chosen)):
            found = cls(tuple(chosen[first:]))
            if refutable(found.ends[0], found.share(found.ends[0])):
                return found
        return cls((ends[-1],))

    @property
    def planned_runs(self) -> int:
        """All the certifying runs that there would be."""
        return self.ends[-1]

    def reached(self, done: int) -> int:
        """The largest milestone within the first `done` runs; 0 where there is none.

        >>> Milestones((100, 200, 400)).reached(399)
        200
        """
        return max((end for end in self.ends if end <= done), default=0)

    def share(self, runs: int) -> float:
        """The part of the error probability of the milestone of so many runs. Raises `InvalidSpec` where it is none.

        >>> [round(Milestones((100, 200, 400)).share(runs), 3) for runs in (100, 200, 400)]
        [0.05, 0.05, 0.9]
        """
        if runs not in self.ends:
            raise InvalidSpec(f"{runs} certifying runs are no milestone of {', '.join(map(str, self.ends))}")
        if len(self.ends) == 1:
            return 1.0
        return self.last if runs == self.planned_runs else (1.0 - self.last) / (len(self.ends) - 1)

    def part(self, runs: int) -> float:
        """The same, and all of it where so many runs are no milestone: those in fresh processes are never cut.

        >>> Milestones((100, 200, 400)).part(47)
        1.0
        """
        return self.share(runs) if runs in self.ends else 1.0
