"""What every stand-in for a random generator shares: one finite draw, its weights, and the refusal of other draws.

Weights are exact: whole numbers without a common divisor.
"""

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from dpaudit.errors import DpAuditError, InvalidSpec, UnsoundAudit

Weights = tuple[int, ...]
Exact = int | float | Fraction

GRID = 1 << 53  # a generator's random() is one of this many multiples of 2^-53, all equally likely
MOST_TRIALS = 500  # of a binomial law; its weights grow with the square of their number


def exact(value: object) -> Fraction | None:
    """A number as the rational it is, a double included; None for anything else, or if not finite.

    >>> exact(0.5), exact(math.inf), exact("1")
    (Fraction(1, 2), None, None)
    """
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, float) and math.isfinite(value):  # numpy's doubles are floats
        return Fraction(*value.as_integer_ratio())
    return None


def reduced(weights: Sequence[int]) -> Weights:
    """Whole weights without their common divisor.

    >>> reduced([2, 0, 6])
    (1, 0, 3)
    """
    divisor = math.gcd(*weights)
    return tuple(weight // divisor for weight in weights)


@lru_cache(maxsize=1024)
def binomial(trials: int, p: Exact) -> Weights | None:
    """Weights of the number of successes, each of probability p; None where there is no such law.

    >>> binomial(2, 0.25)
    (9, 6, 1)
    """
    chance = exact(p)
    if chance is None or not 0 <= chance <= 1 or not 0 <= trials <= MOST_TRIALS:
        return None
    yes, no = chance.numerator, chance.denominator - chance.numerator
    return reduced([math.comb(trials, k) * yes**k * no ** (trials - k) for k in range(trials + 1)])


@lru_cache(maxsize=1024)
def by_levels(levels: tuple[float, ...]) -> Weights:
    """How many multiples u of 2^-53 have 0, 1, 2 ... levels at or below them: numpy's choice with `p`.

    The levels rise to 1. Times 2^53 they are exact, so the count is what numpy's own search finds.

    >>> by_levels((0.25, 0.25, 1.0))
    (1, 0, 3)
    """
    cuts = [min(GRID, max(0, math.ceil(math.ldexp(level, 53)))) for level in levels]
    return reduced([above - below for below, above in pairwise([0, *cuts])])


_CONTINUOUS = """
    beta chisquare dirichlet exponential f gamma gumbel laplace logistic lognormal multivariate_normal
    noncentral_chisquare noncentral_f normal pareto power rayleigh standard_cauchy standard_exponential
    standard_gamma standard_normal standard_t triangular vonmises wald weibull
"""
CONTINUOUS = frozenset(_CONTINUOUS.split())
ENDLESS = frozenset(("geometric", "logseries", "negative_binomial", "poisson", "zipf"))
Refusal = TypeVar("Refusal", bound=DpAuditError)
OTHER_ENGINES = "dpaudit.verify.witnesses encloses the loss of a pair, dpaudit.verify.alignment proves a bound"


class NotFollowed(BaseException):
    """Ends a run that is not followed any further."""


class Cut(NamedTuple):
    """Weights of the answer to "is u below this?": of yes and of no."""

    below: int
    above: int


Key = int | Weights | Cut  # a number of equally likely outcomes, or their weights


class StandIn(ABC):
    """A generator whose draws all come from `pick`; `error` is what it refused, even if a run catches the exception.

    `idealised` says whether a draw was made that numpy makes with rounding, `is_lost` whether this run is not followed.
    """

    def __init__(self) -> None:
        self.error: DpAuditError | None = None
        self.idealised = self.is_lost = False

    @abstractmethod
    def pick(self, key: Key) -> int:
        """One outcome, by its place."""

    def place(self, count: int) -> int:
        """One of `count` equally likely places; nothing is drawn if there is only one."""
        return self.pick(count) if count > 1 else 0

    def in_order(self, count: int, taken: int) -> list[int]:
        """`taken` different places of 0..count-1, every order equally likely."""
        left = list(range(count))
        return [left.pop(self.place(len(left))) for _ in range(taken)]

    def refuse(self, message: str) -> InvalidSpec:
        """The error to raise for a draw that cannot be replayed."""
        return self.remembered(InvalidSpec(message))

    def broken(self, message: str) -> UnsoundAudit:
        """The error to raise where a run did not do again what it did."""
        return self.remembered(UnsoundAudit(message))

    def lose(self) -> BaseException:
        """What to raise in a run that is not followed any further; its probability is left out of the law."""
        self.is_lost = True
        return NotFollowed()

    def remembered(self, error: Refusal) -> Refusal:
        self.error = self.error or error
        return error

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise self.refuse(refusal(name))


def refusal(name: str) -> str:
    """Why a method of a generator cannot be replayed, and what to do.

    >>> refusal("geometric")[:30]
    'rng.geometric has no last outc'
    """
    if name in CONTINUOUS:
        return f"rng.{name} draws from a continuous law, and replay runs every outcome; {OTHER_ENGINES}"
    if name in ENDLESS:
        return (
            f"rng.{name} has no last outcome, and replay runs every one; cut the law off and draw it with "
            "rng.choice(n, p=...)"
        )
    if "copy" in name or "reduce" in name or "state" in name:
        return "rng must not be copied or pickled: the copy would make the same choices again"
    return f"rng.{name} is no draw that replay knows; use integers, choice, permutation, shuffle or random() < p"
