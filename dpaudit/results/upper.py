"""Upper bounds on the privacy loss: what is known, for which inputs, and in which arithmetic."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from dpaudit import validate
from dpaudit.errors import InvalidSpec
from dpaudit.results.strict_json import by_fields


class Label(Enum):
    """What kind of statement an upper bound is."""

    EXACT_FINITE = "exact-finite"  # the code itself, run on every choice: all listed inputs, all outputs
    EXACT_PAIR = "exact-pair"  # one pair of datasets, all outputs
    PROVED = "proved"  # all inputs of the scope, all outputs
    NUMERIC_UPPER = "numeric-upper"  # the declared mechanism, computed with floats that err upwards


class Arithmetic(Enum):
    """What the numbers were computed with."""

    RATIONAL = "exact rational"
    BALLS = "balls"  # rigorous enclosures
    REALS = "reals"  # linear arithmetic over the real numbers, decided by a solver
    FLOATS = "floats"


@dataclass(frozen=True, slots=True)
class UpperBound:
    """The privacy loss is at most `epsilon_upper` at `delta`, for what `scope` says.

    `scope` says in words which inputs (and which number of them) the bound holds for; `source` what made it.
    `epsilon_lower` is given where the same computation also says that the loss is at least so large, as an exact one
    does: it is then no statistical bound. Labels `exact-finite` and `proved` hold for all inputs of the scope;
    `exact-pair` for one pair.

    >>> UpperBound(1.0, 0.0, Label.PROVED, "all query answers", Arithmetic.REALS, "alignment").holds_for_all_inputs
    True
    """

    epsilon_upper: float
    delta: float
    label: Label
    scope: str
    arithmetic: Arithmetic
    source: str
    epsilon_lower: float | None = None

    def __post_init__(self) -> None:
        for name, kind in (("label", Label), ("arithmetic", Arithmetic), ("scope", str), ("source", str)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise InvalidSpec(f"{name} must be a {kind.__name__}, got {value!r}")
        for name in ("epsilon_upper", "delta", "epsilon_lower"):
            value = getattr(self, name)
            if value is not None or name != "epsilon_lower":
                object.__setattr__(self, name, validate.real(name, value))
        if self.epsilon_upper < 0.0:
            raise InvalidSpec(f"epsilon_upper must be at least 0, got {self.epsilon_upper!r}")
        validate.probability("delta", self.delta)
        if self.epsilon_lower is not None and not 0.0 <= self.epsilon_lower <= self.epsilon_upper:
            raise InvalidSpec(f"epsilon_lower must lie in [0, {self.epsilon_upper!r}], got {self.epsilon_lower!r}")

    @property
    def holds_for_all_inputs(self) -> bool:
        """Whether the bound is one for every pair of the scope, not for one pair alone."""
        return self.label is not Label.EXACT_PAIR

    def to_dict(self) -> dict[str, Any]:
        """The bound as results store it; infinity is the string "inf"."""
        first = ("epsilon_upper", "epsilon_lower")  # the two ends stand side by side in a file
        return {**dict.fromkeys(first), **by_fields(self)}
