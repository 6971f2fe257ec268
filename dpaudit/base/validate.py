"""Single values: checks that return the value or raise `InvalidSpec` naming argument, value and range; exact forms."""

import math
import numbers
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Annotated, Any

from dpaudit.errors import InvalidSpec

MOST_S = 100_000_000
NOT_FINITE = ("nan", "inf", "-inf")  # floats that JSON lacks
# numbers with their limits, which files are held to; `words` stand for floats that JSON lacks
Count = Annotated[int, ("ge", 0), ("le", 2**63 - 1)]
AtLeastOne = Annotated[int, ("ge", 1), ("le", 2**63 - 1)]
NotNegative = Annotated[float, ("ge", 0.0)]
Probability = Annotated[float, ("ge", 0.0), ("le", 1.0)]
OpenProbability = Annotated[float, ("gt", 0.0), ("lt", 1.0)]
Bound = Annotated[float, ("ge", 0.0), ("words", ("inf",))]
Edge = Annotated[float, ("words", ("inf", "-inf"))]


def real(name: str, value: object) -> float:
    """A real number that is not NaN; booleans are not numbers here."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidSpec(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond every double
        number = math.inf if f"{value}"[0] != "-" else -math.inf
    if math.isnan(number):
        raise InvalidSpec(f"{name} must be a number, got NaN")
    return number


def not_negative(name: str, value: object) -> float:
    """A finite number of at least 0."""
    number = real(name, value)
    if not 0.0 <= number < math.inf:
        raise InvalidSpec(f"{name} must be finite and at least 0, got {value!r}")
    return number


def positive(name: str, value: object) -> float:
    """A finite number above 0."""
    number = real(name, value)
    if not 0.0 < number < math.inf:
        raise InvalidSpec(f"{name} must be finite and above 0, got {value!r}")
    return number


def probability(name: str, value: object) -> float:
    """A number in [0, 1]."""
    number = real(name, value)
    if not 0.0 <= number <= 1.0:
        raise InvalidSpec(f"{name} must be in [0, 1], got {value!r}")
    return number


def open_probability(name: str, value: object) -> float:
    """A number strictly between 0 and 1."""
    number = real(name, value)
    if not 0.0 < number < 1.0:
        raise InvalidSpec(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return number


def whole(name: str, value: object, *, least: int) -> int:
    """A whole number of at least `least`; floats such as 1e6 count when they are whole."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidSpec(f"{name} must be a whole number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond every limit
        number = math.inf
    if not math.isfinite(number) or not number.is_integer():
        raise InvalidSpec(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise InvalidSpec(f"{name} must be at least {least:,}, got {value!r}")
    return int(value) if isinstance(value, numbers.Integral) else int(number)


def one_of(name: str, value: object, known: tuple[str, ...]) -> str:
    """One of the known words."""
    if not isinstance(value, str) or value not in known:
        raise InvalidSpec(f"{name} must be one of {', '.join(known)}, got {value!r}")
    return value


def seconds(name: str, value: object) -> float:
    """A time above 0, of at most three years."""
    if (number := positive(name, value)) > MOST_S:
        raise InvalidSpec(f"{name} must be at most {MOST_S:,} (seconds, three years), got {value!r}")
    return number


def column(name: str, value: object) -> str | int:
    """The name of a column or key, or a position."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidSpec(
            f"{name} must be the name of a column or key ({name} = 'id'), or a position, got {value!r:.100}"
        )
    return value


def exact(value: float) -> str:
    """A number as the user gave it: the shortest decimal that names the float.

    >>> exact(1.0), exact(1e-06)
    ('1', '1e-06')
    """
    return "inf" if value == math.inf else repr(float(value)).removesuffix(".0")


def error_probability(confidence: float) -> float:
    """alpha = 1 - confidence in decimals, as it is written, without the binary noise of the subtraction.

    >>> error_probability(0.999)
    0.001
    """
    return float(1 - Decimal(repr(float(confidence))))


def unspelled(value: Any, kind: Callable[[str], Any] = float) -> Any:
    """A recorded value whose floats that JSON lacks are numbers again, each made by `kind`.

    >>> unspelled([1.5, {"float": "nan"}])
    [1.5, nan]
    """
    if isinstance(value, list | tuple):
        return type(value)(unspelled(each, kind) for each in value)
    if not isinstance(value, dict):
        return value
    if value.keys() == {"float"} and value["float"] in NOT_FINITE:
        return kind(value["float"])
    return {key: unspelled(each, kind) for key, each in value.items()}


def meant(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """The known word that is nearest to this one, as the end of a message; `otherwise` where none is near.

    >>> meant("eps", ["epsilon", "delta"]), meant("mu", ["epsilon"], "; give epsilon")
    ("; did you mean 'epsilon'?", '; give epsilon')
    """
    from difflib import get_close_matches

    near = get_close_matches(word[:100], [*known], n=1, cutoff=0.55)
    return f"; did you mean {near[0]!r}?" if near else otherwise
