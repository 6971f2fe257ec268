"""The interpreter, with noise that is written down, and what Python returns in the form of its outputs."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dpaudit.verify.language.interpreter import DrawsOne, InterpreterState, Number, run

__all__ = ["DrawsOne", "InterpreterState", "Noise", "Number", "as_output", "run"]


class Noise:
    """Draws that are written down: halves between -4 and 4, and what law and scale they were asked with."""

    def __init__(self, seed: int) -> None:
        self.numbers = random.Random(seed)
        self.asked: list[tuple[str, Any]] = []

    def __call__(self, law: str, scale: Any) -> Fraction:
        self.asked.append((law, round(float(scale), 12)))
        low = 0 if law == "exponential" else -8
        return Fraction(self.numbers.randint(low, 8), 2)

    def __getattr__(self, law: str) -> Callable[..., Any]:
        if law == "exponential":
            return lambda scale=1: self(law, scale)
        return lambda loc=0, scale=1: loc + self(law, scale)


def as_output(value: Any) -> Any:
    """What Python returned, in the form of the interpreter's outputs."""
    if isinstance(value, tuple):
        return tuple(map(as_output, value))
    return tuple(value.items() if isinstance(value, dict) else value) if isinstance(value, dict | list) else value
