"""Functions of every shape that may be a mechanism, importable by name."""

from __future__ import annotations

from collections import abc
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from dpaudit import batched

if TYPE_CHECKING:
    import numpy


def plain(data: Any) -> Any:
    return data


def with_rng(data: Any, rng: Any) -> Any:
    return data + rng.random()


def with_keyword_rng(data: Any, *, rng: Any) -> Any:
    return data + rng.random()


def with_parameters(data: Any, epsilon: float, rng: Any, scale: float = 1.0) -> Any:
    return data + epsilon + scale


def with_anything(data: Any, *rest: Any, **more: Any) -> Any:
    return data


def without_data() -> int:
    return 1


def rng_first(rng: Any, data: Any) -> Any:
    return data


def named_gen(data: Any, gen) -> Any:  # type: ignore[no-untyped-def]
    return data, gen


def named_generator(data: Any, scale: float = 1.0, generator=None) -> Any:  # type: ignore[no-untyped-def]
    return data, generator


def annotated(data: Any, *, source: np.random.Generator) -> Any:
    return data, source


def annotated_or_none(data: Any, source: Generator | None = None) -> Any:
    return data, source


def annotated_for_checkers(data: Any, source: numpy.random.Generator) -> Any:
    return data, source


def many_gen(data: Any, runs: int, gen) -> Any:  # type: ignore[no-untyped-def]
    return data, gen


def of_another_kind(data: Any, generator: str = "sobol") -> Any:
    return data, generator


def known_otherwise(data: Any, gen: int | None = None) -> Any:
    return data, gen


def that_yields(data: Any, more: abc.Generator[int] | None = None) -> Any:
    return data, more


def generator_is_data(generator: Any) -> Any:
    return generator


def generator_first(source: Generator, data: Any) -> Any:
    return data


WITH_GENERATOR = (named_gen, named_generator, annotated, annotated_or_none, annotated_for_checkers)
WITHOUT_GENERATOR = (of_another_kind, known_otherwise, that_yields, generator_is_data)


def needs_more(data: Any, epsilon: float, rng: Any) -> Any:
    return data + epsilon


def many(data: Any, runs: int, rng: Any, scale: float = 1.0) -> Any:
    return data + scale * rng.laplace(size=runs)


BATCHED = batched(many, scale=2.0)


class Mechanism:
    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def release(self, data: Any, rng: Any) -> Any:
        return data + self.scale

    def __call__(self, data: Any, rng: Any) -> Any:
        return data + self.scale

    @staticmethod
    def fixed(data: Any) -> Any:
        return data


ready = Mechanism(3.0)
NUMBER = 3
