"""The shape of an output: what is the same in all runs of a path, with its noisy numbers left open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpaudit.verify.witnesses.linear import Linear, Value
from dpaudit.verify.witnesses.outputs import OutputEvent, Pattern, Released, Values

NOISY = Values(None, None)  # stands for a noisy number in a shape


def is_atom(value: Value) -> bool:
    """Whether a value that was given out is one symbol or one exact number."""
    return not isinstance(value, Linear) or value.is_number


def shape(outputs: Sequence[Released]) -> OutputEvent:
    """The outputs of a path with every noisy number as "any number"."""
    return tuple(_shaped(each) for each in outputs)


def _shaped(released: Released) -> Pattern:
    if isinstance(released, tuple):
        return shape(released)
    if not is_atom(released):
        return NOISY
    return released.constant if isinstance(released, Linear) else released


def noisy_numbers(pattern: Pattern) -> int:
    """How many noisy numbers a shape holds."""
    return sum(map(noisy_numbers, pattern)) if isinstance(pattern, tuple) else int(pattern is NOISY)


def has_noisy(pattern: Pattern) -> bool:
    """Whether a shape holds a noisy number."""
    return noisy_numbers(pattern) > 0


def filled(shape: OutputEvent, by: Iterator[Pattern]) -> OutputEvent:
    """A shape with its noisy numbers replaced, in order."""
    return tuple(_filled(each, by) for each in shape)


def _filled(pattern: Pattern, by: Iterator[Pattern]) -> Pattern:
    if isinstance(pattern, tuple):
        return filled(pattern, by)
    return next(by) if pattern is NOISY else pattern
