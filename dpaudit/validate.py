"""Checks of single values: each returns the value, or raises `InvalidSpec` naming argument, value and range."""

import math
import numbers

from dpaudit.errors import InvalidSpec


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
