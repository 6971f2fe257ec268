"""Outputs that recur are counted first and looked at once each."""

from itertools import chain
from typing import Any

import numpy as np

from dpaudit.arrays import Places
from dpaudit.outputs import Failure, Outputs
from dpaudit.sampling.encode import encode_objects
from dpaudit.sampling.guard import Interrupted
from dpaudit.sampling.matrix import Wanted

GLANCE = 256  # outputs on which a tally decides whether outputs recur at all
MOST_RECURRING = 1 << 11  # different outputs up to which they are counted first
SIMPLE = frozenset({tuple, int, float, bool, str, bytes, type(None), Failure})


class _Numbered(dict[Any, int]):
    def __missing__(self, output: Any) -> int:
        if not _is_simple(output):
            raise TypeError
        number = self[output] = len(self)
        return number


class Tally:
    """Numbers outputs that recur, so that each is looked at once: Python's equality parts nothing that the
    canonical form joins, and joins nothing that it parts but by what is beside values, for text, bytes and tuples of
    plain values.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.recurring = True
        self._known = _Numbered()
        self._numbers: set[Any] = set()  # types of the numbers among the entries
        self._encoded = Outputs(0, {})

    def numbers(self, outputs: list[Any]) -> Places | None:
        """For each output the number of the one it is equal to; None where they do not recur, from then on."""
        plain = SIMPLE.issuperset(map(type, outputs))  # any other may say of itself that it is equal
        fit = plain and isinstance(outputs[0], tuple | str | bytes) and (self._known or _recur(outputs))
        if not fit or (self.wanted is None and not self._alike(outputs)):
            self.recurring = False
            return None
        try:
            found = np.fromiter(map(self._known.__getitem__, outputs), np.intp, len(outputs))
        except Interrupted:
            raise
        except BaseException:  # an entry that is unhashable, not plain, or whose hash does as it likes
            self.recurring = False
            return None
        self.recurring = len(self._known) <= MOST_RECURRING
        return found

    def _alike(self, outputs: list[Any]) -> bool:
        """Whether equal ones of these outputs are alike beside their values too, which may be asked for."""
        kinds = set(map(type, outputs))
        if kinds != {tuple}:
            return kinds <= {str, bytes}
        entries = list(chain.from_iterable(outputs))
        self._numbers |= set(map(type, entries)) - {str, bytes, type(None)}
        return self._numbers <= {int} or self._numbers <= {bool} or (self._numbers <= {float} and 0.0 not in entries)

    def known(self) -> Outputs:
        """Each different output once, by its number."""
        if self._encoded.runs != len(self._known):
            self._encoded = encode_objects(list(self._known), self.wanted)
        return self._encoded


def _recur(outputs: list[Any]) -> bool:
    glance = outputs[:GLANCE]
    try:
        return 2 * len(set(glance)) <= len(glance)
    except Interrupted:
        raise
    except BaseException:  # unhashable
        return False


def _is_simple(output: Any) -> bool:
    if type(output) is tuple:
        return all(map(_is_simple, output))
    return type(output) in SIMPLE
