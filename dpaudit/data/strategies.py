"""Hypothesis strategies as a source of pairs: the first few that a strategy draws from a seed, always the same."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from dpaudit.data.data import digest
from dpaudit.data.pair import AdjacentPair
from dpaudit.errors import InvalidSpec

PAIRS = 12  # pairs of one strategy: more of them would leave each too few search runs
TRIES = 10  # draws for each pair that is wanted; strategies repeat themselves, and draw equal datasets


def is_strategy(value: Any) -> bool:
    """Whether this is a Hypothesis strategy; Hypothesis is loaded by whoever made it, or it is none.

    >>> is_strategy([([1], [])])
    False
    """
    strategies = sys.modules.get("hypothesis.strategies")
    return strategies is not None and isinstance(value, strategies.SearchStrategy)


def drawn_pairs(strategy: Any, seed: int, count: int = PAIRS) -> tuple[AdjacentPair, ...]:
    """`count` different pairs that a strategy of (first, second) or of `AdjacentPair` draws from a seed.

    They are spread over its draws, from the simplest on; a strategy that has fewer gives fewer. The same seed draws
    the same pairs with one version of Hypothesis. Raises `InvalidSpec` where it draws something else, or no pair.
    """
    found: dict[tuple[str, str], Any] = {}
    for value in _draws(strategy, seed, TRIES * count):
        if not isinstance(value, AdjacentPair) and not (isinstance(value, list | tuple) and len(value) == 2):
            raise InvalidSpec(
                f"a strategy of pairs must draw (first, second) or dpaudit.AdjacentPair, it drew {value!r:.200}"
            )
        first, second = value.open() if isinstance(value, AdjacentPair) else value
        key = digest(first), digest(second)
        if key[0] != key[1]:
            found.setdefault(key, value)
    if not found:
        raise InvalidSpec("the strategy of pairs drew none of two different datasets; change the strategy")
    values = list(found.values())
    step = max(1.0, (len(values) - 1) / max(1, count - 1))
    chosen = [values[round(step * number)] for number in range(min(count, len(values)))]
    return tuple(AdjacentPair.of(value, f"drawn pair {number}") for number, value in enumerate(chosen, start=1))


def _draws(strategy: Any, seed: int, most: int) -> list[Any]:
    from hypothesis.errors import HypothesisException

    hypothesis: Any = import_module("hypothesis")
    drawn: list[Any] = []
    quiet = hypothesis.settings(
        max_examples=most,
        database=None,
        deadline=None,
        derandomize=False,
        backend="hypothesis",
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )

    def keep(value: Any) -> None:
        drawn.append(value)

    try:
        with _nothing_borrowed():
            hypothesis.seed(seed)(quiet(hypothesis.given(strategy)(keep)))()
    except HypothesisException as error:
        raise InvalidSpec(f"the strategy of pairs cannot be drawn from ({type(error).__name__}: {error})") from None
    except Exception as error:  # of a function that the strategy calls
        raise InvalidSpec(
            f"the strategy of pairs raised {type(error).__name__}: {error!s:.200}; "
            "its example() shows where, outside of an audit"
        ) from None
    return drawn


@contextmanager
def _nothing_borrowed() -> Iterator[None]:
    """Hypothesis mixes in constants that stand in the modules loaded so far: one test would draw other than all."""
    name = "hypothesis.internal.conjecture.providers"
    module: Any = import_module(name) if find_spec(name) else None
    if not hasattr(module, "CONSTANTS_CACHE") or not hasattr(module.HypothesisProvider, "_local_constants"):
        yield  # a version that does no such thing
        return
    home: Any = module.HypothesisProvider
    held, cache, none = home.__dict__["_local_constants"], module.CONSTANTS_CACHE, module.Constants()
    home._local_constants = property(lambda provider: none)
    module.CONSTANTS_CACHE = type(cache)(1024)
    try:
        yield
    finally:
        home._local_constants = held
        module.CONSTANTS_CACHE = cache
