"""A program run on symbols, part by part: before the loop, one turn of it from its head, and what follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dpaudit.verify.checker.paths import Path, assigned, numbers, paths_of, public_variables
from dpaudit.verify.checker.ratios import Ratio, Unknown
from dpaudit.verify.checker.values import ANSWER, INDEX, Public, State, Value
from dpaudit.verify.language import nodes


@dataclass(frozen=True, slots=True)
class Exit:
    """How the loop ends: by a path that stops it, or (None) after the last answer; and the paths that follow."""

    stop: Path | None
    entered: Mapping[str, Value]
    after: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """One path before the loop, and everything that may follow it.

    At the head of the loop a variable that the loop gives a value is a symbol: of kind "counter" where it is the same
    in both runs, "variable" where it is not. All others keep the value that they have before the loop.
    """

    before: Path
    head: State
    carried: frozenset[Unknown]
    loop: tuple[Path, ...]
    exits: tuple[Exit, ...]


def starts_of(program: nodes.Program, public: Public) -> tuple[Start, ...]:
    """The program on symbols, once for each path before its loop."""
    answer = Ratio.of(ANSWER) if program.loop is None else None
    return tuple(
        _start(program, before, public, answer)
        for before in paths_of("before", program.before, State({}, None, answer), public)
    )


def all_paths(start: Start) -> Iterator[Path]:
    """The path before, the paths of the loop, the paths after it."""
    yield start.before
    yield from start.loop
    for way_out in start.exits:
        yield from way_out.after


def _start(program: nodes.Program, before: Path, public: Public, answer: Ratio | None) -> Start:
    if program.loop is None:
        after = paths_of("after", program.after, State(before.end, None, answer), public)
        return Start(before, State(before.end), frozenset(), (), (Exit(None, before.end, after),))
    head = dict(before.end)
    carried = set()
    readable, (shared, whole) = numbers(program), public_variables(program)
    for name in assigned(program.loop):
        head.pop(name, None)
        if name in readable:
            symbol = Unknown("counter" if name in shared else "variable", name, whole=name in shared and name in whole)
            carried.add(symbol)
            head[name] = Ratio.of(symbol)
    loop = paths_of("loop", program.loop, State(head, Ratio.of(INDEX), Ratio.of(ANSWER)), public)
    exits = [Exit(None, head, paths_of("after", program.after, State(head), public))]
    exits += [
        Exit(path, path.end, paths_of("after", program.after, State(path.end), public)) for path in loop if path.stops
    ]
    return Start(before, State(head, Ratio.of(INDEX)), frozenset(carried), loop, tuple(exits))
