"""Which datasets of a finite domain are neighbours, as pairs of their places."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.pairs.data import digest

Places = tuple[int, int]
Neighbours = Callable[[Any, Any], object] | Iterable[tuple[Any, Any]] | str


def adjacent(domain: Sequence[Any], neighbours: Neighbours) -> tuple[Places, ...]:
    """The pairs of places, the smaller first; order does not matter, for neighbours are so both ways.

    `neighbours` is a predicate of two datasets, a list of pairs of datasets, or "all". Raises `InvalidSpec` where
    there is no pair, or a pair names a dataset that the domain lacks.

    >>> adjacent([0, 1, 2], lambda a, b: abs(a - b) == 1)
    ((0, 1), (1, 2))
    >>> adjacent(["a", "b"], [("b", "a")])
    ((0, 1),)
    """
    if len(domain) < 2:
        raise InvalidSpec(f"the domain must hold two datasets at least, got {len(domain)}")
    everywhere = combinations(range(len(domain)), 2)
    if isinstance(neighbours, str):
        if neighbours != "all":
            raise InvalidSpec(f'neighbours must be a function, a list of pairs or "all", got {neighbours!r}')
        pairs = tuple(everywhere)
    elif callable(neighbours):
        pairs = tuple(
            (i, j) for i, j in everywhere if _holds(neighbours, domain, i, j) or _holds(neighbours, domain, j, i)
        )
    elif not isinstance(neighbours, Iterable):
        raise InvalidSpec(f'neighbours must be a function, a list of pairs or "all", got {neighbours!r}')
    else:
        pairs = _listed(domain, neighbours)
    if not pairs:
        raise InvalidSpec(f"no two of the {len(domain)} datasets are neighbours; list them, or change neighbours")
    return pairs


def _holds(neighbours: Callable[[Any, Any], object], domain: Sequence[Any], i: int, j: int) -> bool:
    """Whether the predicate says so; what it raises, or an array of truth values, is named with the datasets."""
    try:
        return bool(neighbours(domain[i], domain[j]))
    except Exception as error:
        text = " ".join(str(error).split())
        raise InvalidSpec(f"neighbours failed on datasets {i} and {j}: {type(error).__name__}: {text}") from error


def _listed(domain: Sequence[Any], neighbours: Iterable[tuple[Any, Any]]) -> tuple[Places, ...]:
    places = {digest(data): place for place, data in reversed(list(enumerate(domain)))}
    if len(places) < len(domain):
        raise InvalidSpec(
            "two datasets of the domain are the same by content, so a list cannot name one; leave one out"
        )
    found = set()
    for pair in neighbours:
        try:
            first, second = (places[digest(data)] for data in pair)
        except (TypeError, ValueError):
            raise InvalidSpec(f"a pair of neighbours must be two datasets, got {pair!r}") from None
        except KeyError:
            raise InvalidSpec(f"neighbours name a dataset that the domain lacks, in {pair!r}; add it") from None
        if first == second:
            raise InvalidSpec(f"the two datasets of a pair must differ, got {pair!r}")
        found.add((min(first, second), max(first, second)))
    return tuple(sorted(found))
