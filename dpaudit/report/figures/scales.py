"""From numbers to places: straight and logarithmic scales, and where their ticks stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]
Ticks = list[tuple[float, str]]

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
FAR = 20.0  # what lies further outside than this many lengths of the scale is drawn no further out


@dataclass(frozen=True, slots=True)
class Scale:
    """From `low` at 0 to `high` at 1; logarithmic where `log` is true, and then what is not positive lies far below.

    >>> Scale(1.0, 100.0, log=True)([1.0, 10.0]).tolist()
    [0.0, 0.5]
    """

    low: float
    high: float
    log: bool = False

    def __call__(self, values: Sequence[float] | Reals) -> Reals:
        given = np.asarray(values, np.float64)
        if not self.log:
            found = (given - self.low) / (self.high - self.low)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(np.maximum(given, 0.0))
            found = (logs - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return np.clip(found, -FAR, FAR)

    def at(self, value: float) -> float:
        """The place of one value."""
        return float(self([value])[0])

    def grid(self, points: int) -> Reals:
        """Values from end to end at equal distances on the scale."""
        if self.log:
            return np.geomspace(self.low, self.high, points)
        return np.linspace(self.low, self.high, points)

    def ticks(self, most: int = 6) -> Ticks:
        """At most so many values with what is written at them.

        >>> [text for _, text in Scale(0.0, 2.3).ticks()]
        ['0', '0.5', '1', '1.5', '2']
        >>> [text for _, text in Scale(1e-5, 1.0, log=True).ticks(4)]
        ['1e-4', '0.01', '1']
        >>> [text for _, text in Scale(900, 2_000_000, log=True).ticks(4)]
        ['1,000', '10,000', '100,000', '1,000,000']
        """
        return _decades(self.low, self.high, most) if self.log else _straight(self.low, self.high, most)


def _straight(low: float, high: float, most: int) -> Ticks:
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    for step in (power * each for each in STEPS):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            return [(k * step, number(k * step, step)) for k in range(first, last + 1)]
    return []


def _decades(low: float, high: float, most: int) -> Ticks:
    slack = 1.0 + 1e-9
    for digits in ((1, 2, 5), (1, 3), (1,)):
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        found = [
            d * 10.0**k for k in range(first, last + 1) for d in digits if low / slack <= d * 10.0**k <= high * slack
        ]
        if 2 <= len(found) <= most:
            return [(each, number(each)) for each in found]
        if len(found) < 2 and digits == (1, 2, 5):
            return [tick for tick in _straight(low, high, most) if tick[0] > 0.0]
    apart = math.ceil(len(found) / most)
    return [(each, number(each)) for each in found if round(math.log10(each)) % apart == 0]


def number(value: float, step: float | None = None) -> str:
    """A number beside a tick: as many decimals as its `step` has, or as short as it goes.

    >>> number(0.3, 0.1), number(20_000.0), number(1e-6), number(0.0)
    ('0.3', '20,000', '1e-6', '0')
    """
    if value == 0.0 or step is not None and abs(value) < 1e-9 * step:
        return "0"
    if not 1e-3 <= abs(value) < 1e9:
        mantissa, _, power = f"{value:.3g}".partition("e") if abs(value) >= 1e9 else f"{value:.2e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return f"{mantissa}e{int(power)}" if power else mantissa
    if step is None:
        places = max(0, 2 - math.floor(math.log10(abs(value))))
    else:
        places = max(0, 2 - math.floor(math.log10(step)))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def padded(values: Sequence[float], *, log: bool = False, share: float = 0.05) -> Scale:
    """A scale around the values, with some room at both ends; also where they are all one.

    >>> padded([1.0, 2.0], share=0.5)
    Scale(low=0.5, high=2.5, log=False)
    """
    finite = [each for each in values if math.isfinite(each) and (not log or each > 0.0)] or [1.0]
    low, high = min(finite), max(finite)
    if log:
        room = max((high / low) ** share, 1.05)
        return Scale(low / room, high * room, log=True)
    width = high - low or abs(high) or 1.0
    return Scale(low - share * width, high + share * width)
