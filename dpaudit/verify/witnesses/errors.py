"""The error of this room."""

from __future__ import annotations

from dpaudit.errors import InvalidSpec


class OutsideIntegrals(InvalidSpec):
    """The program's outputs are no events that the integrals can express: no number is given, and none is guessed."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.line = line


MOST_OUTPUTS = 4096  # that are all looked at


class TooMany(OutsideIntegrals):
    """The program has more outputs, or paths to them, than are looked at one by one."""


def too_many_outputs(program: str) -> TooMany:
    """The refusal of a program with more different outputs than that."""
    return TooMany(f"{program} has more than {MOST_OUTPUTS} outputs here; give those of interest")
