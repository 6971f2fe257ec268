"""A proof by randomness alignment, as it is stored: everything that a checker needs, and nothing it must believe.

The second run draws each noise of the first, shifted. A proof says by how much on every path, what stays true of the
two runs from one answer to the next, and why the shifts cost no more than the claim. It is data alone: the search that
finds it is in `alignment`, the checker that doubts it in `checker`.

Expressions are text in the language's own words: parameters, counters and variables of the program by name,
`index` (the loop's, from 0) and `n` (the number of answers).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Literal

from dpaudit.errors import DpAuditError, InvalidSpec

Adjacency = Literal["all-differ", "one-differs", "up", "down"]

ADJACENCIES: dict[str, str] = {
    "all-differ": "every answer may differ by at most 1",
    "one-differs": "one answer may differ, by at most 1",
    "up": "every answer rises by at most 1 from the first dataset to the second (one way)",
    "down": "every answer falls by at most 1 from the first dataset to the second (one way)",
}
REACH: dict[Adjacency, tuple[int, int]] = {  # the least and the most by which an answer may move
    "all-differ": (-1, 1),
    "one-differs": (-1, 1),
    "up": (0, 1),
    "down": (-1, 0),
}
SYMMETRIC = ("all-differ", "one-differs")  # the others need both ways for a statement about neighbours


class ProofRejected(DpAuditError):
    """A stored proof does not show what it says: the message names the obligation, and a state that breaks it.

    That the program breaks its claim does not follow; another proof may exist.
    """

    exit_code = 1


def known_adjacency(adjacency: str) -> Adjacency:
    """The adjacency, if it is one. Raises `InvalidSpec`."""
    if adjacency not in ADJACENCIES:
        raise InvalidSpec(f"adjacency must be one of {', '.join(ADJACENCIES)}, got {adjacency!r}")
    return adjacency  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Shift:
    """What the second run adds to one draw on one path.

    The shift is `constant` + `answer` * d + the sum over v of `differences[v]` * (v' - v), where d is how far the
    current answer moves from the first dataset to the second, and v' - v is taken at the head of the loop. Draws that
    are not named are not shifted.
    """

    path: str
    draw: str
    constant: Fraction = Fraction(0)
    answer: Fraction = Fraction(0)
    differences: Mapping[str, Fraction] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kept:
    """What stays true, at the head of the loop, of the difference v' - v of a variable that the loop carries.

    `by` is None: v' - v equals `value`. `by` is "used": |v' - v| <= `value` * used, where `used` is 1 once the one
    answer that differs has been read, and 0 before (one-differs only).
    """

    variable: str
    value: Fraction
    by: Literal["used"] | None = None


@dataclass(frozen=True, slots=True)
class Potential:
    """A bound on the cost so far, at the head of the loop, for proofs that hold for any number of answers.

    cost so far <= `start` + the sum over counters c of `counters[c]` * c + `used` * used
                   - the sum over variables v of `held[v]` * |v' - v|

    All coefficients are texts, rational in the parameters, and not negative.
    """

    start: str
    counters: Mapping[str, str] = field(default_factory=dict)
    used: str = "0"
    held: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alignment:
    """How to shift the draws, so that both runs take the same paths, and what stays true.

    `shifts` are by path; `kept` are the differences carried round the loop; `bounds` are facts about counters at the
    head of the loop, such as "count <= N - 1"; `potential` bounds the cost, where there is a loop.
    """

    shifts: tuple[Shift, ...]
    kept: tuple[Kept, ...] = ()
    bounds: tuple[str, ...] = ()
    potential: Potential | None = None


@dataclass(frozen=True, slots=True)
class Basis:
    """What decides an obligation: steps of Alethe that refute it, each a lemma of arithmetic that holds by itself; or
    values, by name, that meet it, as preconditions are shown to be met, and a claim to be below the cost."""

    steps: tuple[str, ...] = ()
    state: Mapping[str, Fraction] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Proof:
    """A program, what is shown of it, and how: the cost of every run is at most `cost`, for any number of answers.

    `fixed` are the public parameters that were given a value (the proof is for these; all others are arbitrary);
    `claim` is the claim, None where only the cost was asked for. `assumptions` says in words what is taken for granted
    of the parameters. The `certificate` has a basis for each obligation that needs one, by the digest of its text in
    SMT-LIB.
    """

    _LATER: ClassVar = ("certificate",)

    source: str
    function: str
    adjacency: Adjacency
    fixed: Mapping[str, Fraction]
    claim: str | None
    cost: str
    alignment: Alignment
    assumptions: tuple[str, ...] = ()
    certificate: Mapping[str, Basis] | None = None


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
