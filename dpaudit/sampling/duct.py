"""Outputs from the process that makes them to the host that counts them, through memory that both of them see.

The process fills the memory and says how much; the host copies that out, says so, and then reads its copy: whatever
changes the memory afterwards changes nothing. What crosses is JSON and arrays of numbers, never a pickle.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.arrays import Bools, Places
from dpaudit.outputs import Column, Columns, Outputs
from dpaudit.sampling.codec import KINDS, UnreadableShard, outputs_again, outputs_apart, step_of
from dpaudit.sampling.matrix import Wanted

SIZE = 1 << 22  # bytes of the memory; only what is used is ever there
CROSSES = 1 << 20  # bytes of batched outputs that cross at a time; those of a per-run mechanism cross cell by cell
WORD = 8  # bytes of a length, and what everything is aligned to
LARGEST = 1 << 32  # bytes of one part

Array = npt.NDArray[Any]
HERE: list[Mouth] = []  # of a process whose outputs are counted elsewhere


class Garbled(ValueError):
    """What came out of the memory was not put there by code of ours."""


class Over(Exception):
    """The process has answered, and no outputs are to come."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer


class Mouth:
    """The end of the process: `crossing` says how many bytes are there, and returns once they have been copied."""

    def __init__(self, memory: mmap.mmap, crossing: Callable[[int], None]) -> None:
        self._space = np.frombuffer(memory, np.uint8)
        self._crossing = crossing
        self._used = 0

    def put(self, head: Any, arrays: list[Array]) -> None:
        """One part: a head, and arrays behind it."""
        held = [np.ascontiguousarray(array).reshape(array.shape) for array in arrays]
        text = json.dumps([head, [[array.dtype.str, array.shape] for array in held]]).encode("ascii")
        text += b" " * (-len(text) % WORD)
        size = sum(array.nbytes + -array.nbytes % WORD for array in held)
        lengths = b"".join(each.to_bytes(WORD, "little") for each in (len(text), size))
        self._add(np.frombuffer(lengths + text, np.uint8))
        for array in held:
            self._add(array.reshape(-1).view(np.uint8))
            if array.nbytes % WORD:
                self._add(np.zeros(-array.nbytes % WORD, np.uint8))

    def flush(self, least: int = 1) -> None:
        """Lets cross what is there, if it is so much."""
        if self._used >= least:
            self._crossing(self._used)
            self._used = 0

    def _add(self, content: npt.NDArray[np.uint8]) -> None:
        while len(content):
            part = content[: SIZE - self._used]
            self._space[self._used : self._used + len(part)] = part
            self._used += len(part)
            content = content[len(part) :]
            self.flush(SIZE)


class Ear:
    """The end of the host: `crossed` waits for what the process says, a number of bytes or its answer."""

    def __init__(self, memory: mmap.mmap, crossed: Callable[[], bytes], copied: Callable[[], None]) -> None:
        self._memory, self._crossed, self._copied = memory, crossed, copied
        self._held = memoryview(b"")

    def part(self) -> tuple[Any, list[Array]]:
        """The next part. Raises `Over` where the process has answered, `Garbled` where it sent something else."""
        length, size = (int(number) for number in np.frombuffer(self._take(2 * WORD), np.uint64))
        head, shapes = json.loads(str(self._take(length), "ascii"))
        body, arrays, at = self._take(size), [], 0
        for name, shape in shapes:
            dtype = np.dtype(str(name))
            count = math.prod(shape)
            plain = dtype.kind in KINDS and dtype.itemsize <= WORD and dtype.isnative
            if not plain or min(shape, default=0) < 0 or count > size:
                raise Garbled
            arrays.append(np.frombuffer(body, dtype, count, at).reshape(shape))
            at += arrays[-1].nbytes + -arrays[-1].nbytes % WORD
        if at != size:
            raise Garbled
        return head, arrays

    def answer(self) -> bytes:
        """What the process says once all its outputs have crossed."""
        try:
            while not self._held:
                self._more()
        except Over as over:
            return over.answer
        raise Garbled

    def _take(self, size: int) -> memoryview:
        if size > LARGEST:
            raise Garbled
        parts, missing = [self._held], size - len(self._held)
        while missing > 0:
            parts.append(self._more())
            missing -= len(parts[-1])
        whole = memoryview(b"".join(parts)) if len(parts) > 1 else parts[0]
        self._held = whole[size:]
        return whole[:size]

    def _more(self) -> memoryview:
        said = self._crossed()
        if len(said) != WORD:
            raise Over(said)
        size = int.from_bytes(said, "little")
        if not 0 < size <= SIZE:
            raise Garbled
        self._held = memoryview(b"")
        content = memoryview(self._memory[:size])
        self._copied()
        return content


class Sending:
    """A sink of the process's end: outputs go as they come."""

    def __init__(self, runs: int, wanted: Wanted, *, tallies: bool, mouth: Mouth) -> None:
        self.sides: Bools = np.empty(runs, np.bool_)
        self.wanted, self.tallies, self._mouth = wanted, tallies, mouth

    def fill(self, start: int, outputs: Outputs, numbers: Places | None = None) -> None:
        """Outputs of a per-run mechanism."""
        self._send(outputs, [] if numbers is None else [numbers])
        self._mouth.flush()

    def call(self, start: int, outputs: Outputs, side: int) -> None:
        """Outputs of one call of a batched mechanism."""
        self._send(outputs, [])
        self._mouth.flush(CROSSES)

    def _send(self, outputs: Outputs, arrays: list[Array]) -> None:
        tallied, held, matrix = len(arrays), outputs.columns, None
        plain = held.get(()) if len(held) == 1 and type(held) is dict and outputs.complete else None
        if plain is not None and plain.codes is None and not (outputs.labels or outputs.notes or outputs.unseen):
            self._mouth.put([tallied, None, None], [*arrays, plain.values])  # numbers alone: the quick way
            return
        if isinstance(held, Columns):
            matrix = [[list(path), place] for path, place in held.places.items()]
            outputs = replace(outputs, columns=held.loose)
            arrays.append(held.matrix)
        self._mouth.put([tallied, matrix, outputs_apart(outputs, arrays)], arrays)


def received(head: Any, arrays: list[Array]) -> tuple[Outputs, Places | None]:
    """What `Sending` sent, checked: raises `Garbled`, or any error of values, where it is something else."""
    tallied, matrix, value = head
    left = iter(arrays)
    numbers = next(left) if tallied else None
    wide = None if matrix is None else next(left)
    try:
        plain = next(left) if value is None else None
        outputs = outputs_again(value, left) if plain is None else Outputs(len(plain), {(): Column(plain)})
    except UnreadableShard:
        raise Garbled from None
    if next(left, None) is not None or outputs.runs < 0:
        raise Garbled
    if any(
        each.values.ndim != 1 or (each.codes is not None and each.codes.dtype != np.uint64)
        for each in outputs.columns.values()
    ):
        raise Garbled
    if numbers is not None and (
        numbers.ndim != 1
        or numbers.dtype != np.intp
        or not outputs.runs
        or not 0 <= numbers.min() <= numbers.max() < outputs.runs
    ):
        raise Garbled
    if wide is not None:
        places = {tuple(map(step_of, path)): int(place) for path, place in matrix}
        if wide.shape != (len(places), outputs.runs) or sorted(places.values()) != list(range(len(places))):
            raise Garbled
        outputs = replace(outputs, columns=Columns(places, wide, outputs.columns))
    return outputs, numbers
