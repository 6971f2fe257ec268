"""One test over many cases, where a test for each would only be slower to collect and to report; and fewer by day."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Test = Callable[..., None]
NIGHTLY = bool(os.environ.get("DPAUDIT_NIGHTLY"))  # `make nightly`: further cases of what is tried at every change


def some(cases: Iterable[Any], count: int) -> list[Any]:
    """So many of the cases, spread evenly from the first to the last; by night all of them.

    >>> some(range(10), 4) if not NIGHTLY else [0, 3, 6, 9]
    [0, 3, 6, 9]
    """
    every = list(cases)
    if NIGHTLY or count >= len(every):
        return every
    return [every[place * (len(every) - 1) // max(1, count - 1)] for place in range(count)]


def for_each(
    names: str | Sequence[str], cases: Iterable[Any], ids: Any = None, nightly: Iterable[Any] = ()
) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize`, in one test: every case is tried, and the failure names all that failed.

    `ids` as there: a function of a value, or a list of names, those of `nightly` last. No fixture of the test may
    remember a case. What is `nightly` are more cases of the same kind, which `make nightly` tries too. Where cases are
    skipped and none fails, the test is skipped by the first one's reason, after the others are tried.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    by_day, by_night = list(cases), list(nightly)
    rows = [tuple(case) if len(names) > 1 else (case,) for case in [*by_day, *(by_night if NIGHTLY else ())]]
    assert rows, "a test over no cases shows nothing"
    assert ids is None or callable(ids) or len(ids) == len(by_day) + len(by_night), "a case, a name"

    def name_of(number: int, row: tuple[Any, ...]) -> str:
        if ids is None or callable(ids):
            return ", ".join(str(ids(value)) if ids else repr(value) for value in row)[:300]
        return str(ids[number])

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def over_all(**given: Any) -> None:
            failures: list[tuple[str, BaseException]] = []
            skips: list[pytest.skip.Exception] = []
            for number, row in enumerate(rows):
                try:
                    test(**given, **dict(zip(names, row, strict=True)))
                except pytest.skip.Exception as skipped:
                    skips.append(skipped)
                except (Exception, pytest.fail.Exception) as error:
                    failures.append((name_of(number, row), error))
            if failures:
                failures[0][1].add_note(
                    f"failed for {len(failures)} of {len(rows)} cases: " + "; ".join(name for name, _ in failures)
                )
                raise failures[0][1]
            if skips:
                raise skips[0]

        signature = inspect.signature(test)
        others = [value for key, value in signature.parameters.items() if key not in names]
        over_all.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return over_all

    return decorate
