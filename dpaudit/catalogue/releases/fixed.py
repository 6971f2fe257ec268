"""Releases that draw nothing: every run publishes the same, so two datasets either agree or are told apart."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.base.arrays import Masked
from dpaudit.catalogue.entry import Code, Entry
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import pure_if_replaced

Program = Callable[..., Any]

in_room = partial(Entry, module="dpaudit.catalogue.releases", promise=pure_if_replaced)


def every_run(
    data: Any, runs: int, rng: np.random.Generator, *, program: Program, **parameters: Any
) -> npt.NDArray[Any]:
    """What the program publishes, once for each run; it is stored once."""
    published = np.asarray(program(data, rng, **parameters))
    return np.broadcast_to(published, (runs, *published.shape))


def every_run_with_gaps(
    data: Any, runs: int, rng: np.random.Generator, *, program: Program, places: int, **parameters: Any
) -> Masked:
    """The same for a program that leaves out some of its `places`: they are masked."""
    published = program(data, rng, **parameters)
    values = np.array([published.get(place, 0.0) for place in range(places)])
    hidden = np.array([place not in published for place in range(places)])
    return np.ma.MaskedArray(np.broadcast_to(values, (runs, places)), mask=np.broadcast_to(hidden, (runs, places)))


def told_apart(first: Any, second: Any, *, program: Program, **parameters: Any) -> float:
    """The loss: 0 where both datasets publish the same, and infinite where they do not.

    >>> told_apart([1, 2], [1, 3], program=lambda data, rng: max(data))
    inf
    """
    rng = np.random.default_rng(0)  # the programs take one and draw nothing
    return 0.0 if program(first, rng, **parameters) == program(second, rng, **parameters) else math.inf


def exact(publishes: Callable[..., Any], places: int = 0) -> Code:
    """A release without noise, `publishes(data, **parameters)`; with `places`, one that may leave some of them out."""

    def program(data: Any, rng: Rng, **parameters: Any) -> Any:
        return publishes(data, **parameters)

    sampler = partial(every_run_with_gaps, places=places) if places else every_run
    return Code(program, partial(sampler, program=program), partial(told_apart, program=program))
