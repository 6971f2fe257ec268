"""Local mechanisms: one value in, a noisy report out, and any two values are neighbours."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

from dpaudit.adapters.adapted import Adapted
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms.protocol import Description, Mechanism
from dpaudit.mechanisms.resolve import wrap
from dpaudit.pairs import AdjacentPair
from dpaudit.pairs.pair import VALUES


def local(f: Any, domain: Iterable[Any], epsilon: float | None = None, **parameters: Any) -> "Local":
    """A mechanism of one value, `f(value, rng)` or any other form, on all pairs of values of its domain.

    Search looks at both orders of a pair, so each two values stand once: `k` values make k (k - 1) / 2 pairs. `epsilon`
    is the claim. Raises `InvalidSpec` for fewer than two values, and for one that stands there twice.

    >>> flip = local(lambda bit, rng: bit ^ (rng.random() < 0.25), [0, 1, 2], epsilon=1.1)
    >>> [(pair.first, pair.second) for pair in flip.pairs]
    [(0, 1), (0, 2), (1, 2)]
    """
    values = tuple(domain)
    if len(values) < 2:
        raise InvalidSpec(f"a local mechanism needs a domain of at least two values, got {len(values)}")
    return Local(f, parameters, values, epsilon)


@dataclass(frozen=True, slots=True)
class Local(Adapted):
    """A mechanism of one value with its domain; made by `local`."""

    domain: tuple[Any, ...] = ()
    epsilon: float | None = None

    adapter: ClassVar[str] = "local"

    @property
    def name(self) -> str:
        """As of the mechanism alone."""
        return self.adapt().name

    def adapt(self) -> Mechanism:
        return wrap(self.make, self.parameters)

    def describe(self) -> Description:
        """As of the mechanism alone."""
        return self.adapt().describe()

    @property
    def claim(self) -> PureDP | None:
        """Local DP at `epsilon`, where that is given."""
        plain = {type(value) for value in self.domain} <= VALUES  # of others their records would be compared
        return None if self.epsilon is None else PureDP(self.epsilon, Relation.LOCAL if plain else None)

    @property
    def pairs(self) -> tuple[AdjacentPair, ...]:
        """All pairs of two values."""
        return tuple(AdjacentPair(one, other, f"{one!r} and {other!r}") for one, other in combinations(self.domain, 2))
