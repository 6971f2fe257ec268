"""What became of a spiked control: a leak of a known size, and how often it was caught."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Control:
    """A spiked control: a leak of known size, and how often it was caught.

    The marked event has probability `mass` on the first dataset and `rarer` on the second; `loss` is the least
    parameter of the claim's form that allows it. `repeats` audits were made, fewer than asked where two failures
    had settled it already.
    """

    mass: float
    rarer: float
    loss: float
    caught: int
    repeats: int
    needed: int

    @property
    def seen(self) -> bool:
        """Whether it was caught as often as it must be: 19 times of 20."""
        return self.caught >= self.needed


def smallest_seen(controls: Sequence[Control]) -> Control | None:
    """The smallest control that was caught as often as it must be; None where none was."""
    return next((control for control in controls if control.seen), None)
