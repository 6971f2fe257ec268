"""Outputs that recur are counted first and looked at once each."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit.arrays import Bools, Places
from dpaudit.outputs import Failure, Outputs, Sample
from dpaudit.sampling.encode import encode_objects
from dpaudit.sampling.guard import Interrupted
from dpaudit.sampling.matrix import Wanted

GLANCE = 256  # outputs on which a tally decides whether outputs recur at all
MOST_RECURRING = 1 << 11  # different outputs up to which they are counted first


class _Numbered(dict[Any, int]):
    """Numbers outputs in the order in which they are first seen."""

    def __missing__(self, output: Any) -> int:
        if not _is_simple(output):
            raise TypeError
        number = self[output] = len(self)
        return number


class Tally:
    """Counts outputs that recur, so that each is looked at once: Python's equality parts nothing that the
    canonical form joins, and joins nothing that it parts, for text, bytes and tuples of plain values.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.recurring = True
        self.known = _Numbered()
        self.encoded = Outputs(0, {})
        self.runs = 0  # counted since the last samples
        self._seen: list[tuple[Places, Bools]] = []

    def add(self, outputs: list[Any], sides: Bools) -> bool:
        """Counts the outputs, or says that they do not recur and counts nothing."""
        if not isinstance(outputs[0], tuple | str | bytes) or not (self.known or _recur(outputs[:GLANCE])):
            self.recurring = False
            return False
        try:
            numbers = np.fromiter(map(self.known.__getitem__, outputs), np.intp, len(outputs))
        except Interrupted:
            raise
        except BaseException:  # an entry that is unhashable, not plain, or whose hash does as it likes
            self.recurring = False
            return False
        self.recurring = len(self.known) <= MOST_RECURRING
        self.runs += len(outputs)
        self._seen.append((numbers, sides))
        return True

    def samples(self) -> tuple[Sample, Sample]:
        """Both sides of what was counted since the last call."""
        self._look_at_new()
        numbers, sides = (np.concatenate(parts) for parts in zip(*self._seen, strict=True))
        second = np.bincount(numbers[sides], minlength=len(self.known))
        first = np.bincount(numbers, minlength=len(self.known)) - second
        self.runs, self._seen = 0, []
        return Sample(self.encoded, first), Sample(self.encoded, second)

    def ordered(self) -> tuple[Outputs, list[Places]]:
        """Each different output once, and for what was counted since the last call the number of each run's output."""
        self._look_at_new()
        numbers = [found for found, _ in self._seen]
        self.runs, self._seen = 0, []
        return self.encoded, numbers

    def _look_at_new(self) -> None:
        if self.encoded.runs != len(self.known):
            self.encoded = encode_objects(list(self.known), self.wanted)


def _recur(outputs: list[Any]) -> bool:
    try:
        return 2 * len(set(outputs)) <= len(outputs)
    except Interrupted:
        raise
    except BaseException:  # unhashable
        return False


def _is_simple(output: Any) -> bool:
    if type(output) is tuple:
        return all(map(_is_simple, output))
    return output is None or type(output) in (int, float, bool, str, bytes, Failure)
