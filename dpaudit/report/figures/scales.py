"""From numbers to places: straight and logarithmic scales, and where their ticks stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.arrays import Reals

Ticks = list[tuple[float, str]]

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
FAR = 20.0  # what lies further outside than this many lengths of the scale is drawn no further out


@dataclass(frozen=True, slots=True)
class Scale:
    """From `low` at 0 to `high` at 1; logarithmic where `log` is true, and then what is not positive lies far below.

    >>> Scale(1.0, 100.0, log=True)([1.0, 10.0]).round(9).tolist()
    [0.0, 0.5]
    """

    low: float
    high: float
    log: bool = False

    def __call__(self, values: Sequence[float] | Reals | float) -> Reals:
        at, low, high = np.asarray(values, np.float64), self.low, self.high
        if self.log:
            with np.errstate(divide="ignore"):
                at, low, high = np.log(np.maximum(at, 0.0)), math.log(low), math.log(high)
        return np.clip((at - low) / (high - low), -FAR, FAR)

    def grid(self, points: int) -> Reals:
        """Values from end to end at equal distances on the scale."""
        return (np.geomspace if self.log else np.linspace)(self.low, self.high, points)

    def ticks(self, most: int = 6) -> Ticks:
        """At most so many values with what is written at them.

        >>> [text for _, text in Scale(0.0, 2.3).ticks()]
        ['0', '0.5', '1', '1.5', '2']
        >>> [text for _, text in Scale(1e-5, 1.0, log=True).ticks(4)]
        ['1e-4', '0.01', '1']
        >>> [text for _, text in Scale(900, 2_000_000, log=True).ticks(4)]
        ['1,000', '10,000', '100,000', '1,000,000']
        """
        return self._decades(most) if self.log else self._straight(most)

    def _straight(self, most: int) -> Ticks:
        power = 10.0 ** math.floor(math.log10((self.high - self.low) / most))
        for step in (power * part for part in STEPS):
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            if last - first < most:
                return [(k * step, number(k * step, step)) for k in range(first, last + 1)]
        return []

    def _decades(self, most: int) -> Ticks:
        low, high = self.low * (1.0 - 1e-9), self.high * (1.0 + 1e-9)
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for digits in ((1, 2, 5), (1, 3), (1,)):
            values = [at for power in powers for digit in digits if low <= (at := digit * 10.0**power) <= high]
            if len(values) < 2 and digits == (1, 2, 5):
                return [tick for tick in self._straight(most) if tick[0] > 0.0]
            if 2 <= len(values) <= most:
                return [(at, number(at)) for at in values]
        apart = math.ceil(len(values) / most)
        return [(at, number(at)) for at in values if round(math.log10(at)) % apart == 0]


def number(value: float, step: float | None = None) -> str:
    """A number beside a tick: as many decimals as its `step` has, or as short as it goes.

    >>> number(0.3, 0.1), number(20_000.0), number(1e-6), number(0.0)
    ('0.3', '20,000', '1e-6', '0')
    """
    if value == 0.0 or step is not None and abs(value) < 1e-9 * step:
        return "0"
    if 1e-3 <= abs(value) < 1e9:
        places = max(0, 2 - math.floor(math.log10(abs(value) if step is None else step)))
        mantissa, power = f"{value:,.{places}f}", ""
    else:
        mantissa, _, power = f"{value:.2e}".partition("e")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + (power and f"e{int(power)}")


def padded(values: Sequence[float], *, log: bool = False, share: float = 0.05) -> Scale:
    """A scale around the values, with some room at both ends; also where they are all one.

    >>> padded([1.0, 2.0], share=0.5)
    Scale(low=0.5, high=2.5, log=False)
    """
    finite = [value for value in values if math.isfinite(value) and (not log or value > 0.0)] or [1.0]
    low, high = min(finite), max(finite)
    if log:
        room = max((high / low) ** share, 1.05)
        return Scale(low / room, high * room, log=True)
    width = high - low or abs(high) or 1.0
    return Scale(low - share * width, high + share * width)
