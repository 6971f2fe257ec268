"""What the search says when it finds no proof: why, where, and what grows."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unproved:
    """No alignment was found; that is never a refutation.

    `growing` is the text of the least cost found, where it has no bound for any number of answers n: "eps*n/2".

    >>> Unproved("normal noise has no alignment of finite cost", line=3).growing is None
    True
    """

    reason: str
    line: int | None = None
    growing: str | None = None


class NoProof(Exception):
    """Raised inside the search where it cannot go on."""

    def __init__(self, reason: str, line: int | None = None, growing: str | None = None) -> None:
        super().__init__(reason)
        self.found = Unproved(reason, line, growing)
