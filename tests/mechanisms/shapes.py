"""Functions of every shape that may be a mechanism, importable by name."""

from __future__ import annotations

from typing import Any

from dpaudit import batched


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
