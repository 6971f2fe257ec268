"""What every stand-in for a random generator shares: one finite draw, and the refusal of all others."""

from abc import ABC, abstractmethod
from typing import Any, Literal, NamedTuple, NoReturn, TypeVar

from dpaudit.errors import DpAuditError, InvalidSpec, UnsoundAudit
from dpaudit.verify.replay.weights import Weights

_CONTINUOUS = """
    beta chisquare dirichlet exponential f gamma gumbel laplace logistic lognormal multivariate_normal
    noncentral_chisquare noncentral_f normal pareto power rayleigh standard_cauchy standard_exponential
    standard_gamma standard_normal standard_t triangular vonmises wald weibull betavariate expovariate gammavariate
    gauss lognormvariate normalvariate paretovariate vonmisesvariate weibullvariate
"""
CONTINUOUS = frozenset(_CONTINUOUS.split())
ENDLESS = frozenset(("geometric", "logseries", "negative_binomial", "poisson", "zipf"))
Refusal = TypeVar("Refusal", InvalidSpec, UnsoundAudit)
OTHER_ENGINES = "dpaudit.verify.witnesses encloses the loss of a pair, dpaudit.verify.alignment proves a bound"


Kind = Literal["numpy", "random", "replay"]  # of generators


class Cut(NamedTuple):
    """Weights of the answer to "is u below this?": of yes and of no."""

    below: int
    above: int


Key = int | Weights | Cut  # so many outcomes, each as likely as the next; or their weights


class StandIn(ABC):
    """A generator whose draws all come from `pick`; `error` remembers what it refused, though a run swallow it.

    `idealised` says whether a draw was made that numpy makes with rounding; `kind` says of which generator.
    """

    def __init__(self, kind: Kind = "replay") -> None:
        self.error: DpAuditError | None = None
        self.idealised = False
        self.kind: Kind = kind

    @abstractmethod
    def pick(self, key: Key) -> int:
        """One outcome, by its place."""

    def place(self, count: int) -> int:
        """One of so many places, each as likely as the next; where there is one alone, nothing is drawn."""
        return self.pick(count) if count > 1 else 0

    def in_order(self, count: int, taken: int) -> list[int]:
        """So many different places of 0..count-1, every order as likely as the next."""
        left = list(range(count))
        return [left.pop(self.place(len(left))) for _ in range(taken)]

    def refuse(self, message: str) -> InvalidSpec:
        """The error to raise for a draw that cannot be replayed."""
        return self.remembered(InvalidSpec(message))

    def broken(self, message: str) -> UnsoundAudit:
        """The error to raise where a run did not do again what it did."""
        return self.remembered(UnsoundAudit(message))

    def remembered(self, error: Refusal) -> Refusal:
        self.error = self.error or error
        return error

    @property  # type: ignore[misc]
    def __class__(self) -> NoReturn:  # type: ignore[override]
        raise self.refuse(refusal("__class__"))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise self.refuse(refusal(name))

    def __reduce_ex__(self, protocol: object) -> Any:
        raise self.refuse(refusal("__reduce_ex__"))


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
