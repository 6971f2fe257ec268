"""Where to look for large losses: few answer vectors, few moves, few events, in a fixed order.

A vector of answers has two values, x and y, laid out in two blocks (or in repeated ones, for programs that start
anew). A move takes it to a neighbour: everything up or down, the two blocks in opposite directions, one answer alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from dpaudit.verify.language.nodes import Symbol
from dpaudit.verify.proof import REACH, Adjacency
from dpaudit.verify.witnesses.outputs import OutputEvent, Pattern, has_noisy

Layout = tuple[int, ...]  # per answer: 0 for the first block's value, 1 for the second's
Move = tuple[int, ...]  # per answer: how far it moves

TOGETHER: dict[str, tuple[tuple[int, int], ...]] = {
    "all-differ": ((1, 1), (-1, -1), (1, -1), (-1, 1)),
    "one-differs": (),
    "up": ((1, 1), (1, 0), (0, 1)),
    "down": ((-1, -1), (-1, 0), (0, -1)),
}


def splits(answers: int) -> tuple[Layout, ...]:
    """Two blocks, the second of 1 to all answers."""
    return tuple((0,) * (answers - second) + (1,) * second for second in range(1, answers + 1))


def layouts(answers: int) -> tuple[Layout, ...]:
    """Two blocks of many sizes, and repeated ones."""
    found = splits(answers)
    if answers > 8:
        near = {1, 2, 3, 4, answers // 2, answers - 3, answers - 2, answers - 1, answers}
        found = tuple(layout for layout in found if sum(layout) in near)
    repeated = [
        ((0,) * (answers // times - 1) + (1,)) * times + (0,) * (answers % times)
        for times in range(2, 9)
        if answers // times > 1
    ]
    return tuple(dict.fromkeys((*found, *repeated)))


def together(adjacency: Adjacency, layout: Layout) -> Iterator[Move]:
    """The moves of whole blocks."""
    for move in dict.fromkeys(tuple(pair[block] for block in layout) for pair in TOGETHER[adjacency]):
        if any(move):
            yield move


def alone(adjacency: Adjacency, layout: Layout) -> Iterator[Move]:
    """The moves of one answer: the first or the last of a block."""
    size = len(layout)
    edges = [place for place in range(size) if place in (0, size - 1) or layout[place] != layout[place - 1]]
    for place in edges:
        for step in (step for step in (1, -1) if step in REACH[adjacency]):
            yield tuple(step if each == place else 0 for each in range(size))


def vector(layout: Layout, x: Fraction, y: Fraction) -> tuple[Fraction, ...]:
    """The answers of a layout."""
    return tuple(y if block else x for block in layout)


def moved(answers: Iterable[Fraction], move: Move) -> tuple[Fraction, ...]:
    """The neighbour."""
    return tuple(answer + step for answer, step in zip(answers, move, strict=True))


def within(answers: Sequence[Fraction], most: Fraction) -> bool:
    """Whether no answer is larger than the cap."""
    return all(-most <= answer <= most for answer in answers)


def aligned(shape: OutputEvent) -> bool:
    """Whether a shape changes its kind of output at most once."""
    kinds = [_kind(each) for each in shape]
    return sum(one != other for one, other in pairwise(kinds)) <= 1


def _kind(pattern: Pattern) -> object:
    if isinstance(pattern, tuple):
        return tuple(_kind(each) for each in pattern[1:])  # a place and its value
    return pattern if isinstance(pattern, Symbol) else ("noisy" if has_noisy(pattern) else "number")
