"""A report stands part by part: what cannot be told says so in a line; the verdict, the counts and the rest stand."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from dpaudit.results.wording.quoting import LONGEST_DATA, clean

P = ParamSpec("P")
Told = TypeVar("Told")


def standing(instead: Callable[[str], Any]) -> Callable[[Callable[P, Told]], Callable[P, Told]]:
    """A teller whose failure costs its own part alone: `instead`, of the line that says so, takes its place."""

    def guarded(tell: Callable[P, Told]) -> Callable[P, Told]:
        @wraps(tell)
        def told(*given: P.args, **named: P.kwargs) -> Told:
            try:
                return tell(*given, **named)
            except Exception as error:
                put: Told = instead(untold(error))
                return put

        return told

    return guarded


def untold(error: Exception) -> str:
    """The line in the place of a part, with the error, so that it can be reported.

    >>> untold(OverflowError("too large"))
    'this part cannot be told (OverflowError: too large); verdict and counts stand; please report the error'
    """
    what = f"{type(error).__name__}: {clean(error, LONGEST_DATA)}"
    return f"this part cannot be told ({what}); verdict and counts stand; please report the error"


def line(told: str) -> tuple[str, ...]:
    """A part that is one line."""
    return (told,)
