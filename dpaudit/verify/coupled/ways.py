"""Ways through a program: the choices that both runs make alike, and what everything holds after each."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dpaudit.errors import DpAuditError
from dpaudit.verify.coupled.values import (
    Instance,
    KnownArray,
    Only,
    parts,
)
from dpaudit.verify.deadline import left_s
from dpaudit.verify.language.source import ReadSource

MOST_WAYS = 2_000  # through a function
MOST_STEPS = 200_000  # statements and expressions of one way


class NotShown(DpAuditError):
    """What no rule covers: the line, the construct, and what to change or to state."""

    def __init__(self, line: int, construct: str, cure: str) -> None:
        super().__init__(f"line {line}: {construct}: {cure}")
        self.line = line


class OtherKind(NotShown):
    """The dataset is used as another kind of value than it was taken for."""


class RaisedAlike(Exception):
    """The program raises, on both datasets alike."""


class Left(Exception):
    """A turn, a loop or a function is left."""

    def __init__(self, how: str, value: Any = None) -> None:
        self.how, self.value = how, value


Contents = dict[int, tuple[Any, Any]]  # of each list, dictionary and array that can be reached: itself, what it holds


@dataclass(frozen=True, slots=True)
class End:
    """How some code may end: "end", "break", "continue", "return" or "raise", its value, and what is held then."""

    how: str
    value: Any
    contents: Contents


@dataclass
class Script:
    """The choices of one way: those that are given, then always the first."""

    given: tuple[int, ...] = ()
    made: list[tuple[int, int]] = field(default_factory=list)

    def choose(self, ways: int) -> int:
        """A number below `ways`."""
        choice = self.given[len(self.made)] if len(self.made) < len(self.given) else 0
        self.made.append((choice, ways))
        return choice

    def next(self) -> Script | None:
        """The script of the next way; None after the last."""
        made = list(self.made)
        while made:
            choice, ways = made.pop()
            if choice + 1 < ways:
                return Script((*(each for each, _ in made), choice + 1))
        return None


class Ways:
    """Goes some ways through a program, and back. `rules` does what is unknown: see `cases.LoopRules`."""

    def __init__(self, source: ReadSource, rules: Any = None) -> None:
        self.source, self.rules = source, rules
        self.frames: list[dict[str, Any]] = []
        self.script = Script()
        self.line = 1
        self.steps = 0
        self.read_by: dict[int, tuple[Any, list[Callable[[], list[Any]]]]] = {}  # what iterators were made of
        self.constants = {name: ast.literal_eval(node) for name, node in source.constants.items()}

    def refusal(self, construct: str, cure: str) -> NotShown:
        """The error for what no rule covers, at the line that is executed."""
        return NotShown(self.line, construct, cure)

    @property
    def frame(self) -> dict[str, Any]:
        """The names of the function that is executed."""
        return self.frames[-1]

    def choose(self, ways: int = 2) -> int:
        """Which of some ways both runs go."""
        return self.script.choose(ways)

    @contextmanager
    def scripted(self, script: Script) -> Iterator[None]:
        """Choices of the block are those of the script."""
        before, self.script = self.script, script
        try:
            yield
        finally:
            self.script = before

    def every_way(self, *actions: Callable[[], Any]) -> tuple[list[End], bool]:
        """How each of some actions may end, and whether one spends privacy or looks at older noise.

        All is as before afterwards.
        """
        ends, spends = list[End](), False
        start, mark = self.contents(), self.rules.mark()
        for action in actions:
            script: Script | None = Script()
            while script is not None:
                left_s()
                how, value = "end", None
                with self.scripted(script):
                    try:
                        value = action()
                    except Left as left:
                        how, value = left.how, left.value
                    except RaisedAlike as error:
                        how, value = "raise", error
                ends.append(End(how, value, self.contents()))
                self.adopt(start)
                spends |= self.rules.undo(mark)
                if len(ends) > MOST_WAYS:
                    raise self.refusal(
                        f"more than {MOST_WAYS} ways through the code", "decide less by noise, or audit it"
                    )
                script = script.next()
        return ends, spends

    def contents(self) -> Contents:
        """What every list, dictionary and array holds that can be reached."""
        found: Contents = {}
        waiting: list[Any] = [*self.frames, self.constants, self.rules.facts]
        while waiting:
            value = waiting.pop()
            if id(value) in found or not isinstance(value, list | dict | tuple | KnownArray | Only | Instance):
                continue
            if not isinstance(value, tuple | Only | Instance):
                found[id(value)] = value, copy.copy(value.items if isinstance(value, KnownArray) else value)
            waiting += parts(value)
        return found

    def adopt(self, contents: Contents) -> None:
        """Everything holds what is given."""
        for container, held in contents.values():
            match container:
                case KnownArray():
                    container.items[:] = held
                case list():
                    container[:] = held
                case _:
                    container.clear()
                    container.update(held)

    def resume(self, ends: list[End]) -> Any:
        """Goes on from one of several ends: both runs have come to the same."""
        end = ends[self.choose(len(ends)) if len(ends) > 1 else 0]
        self.adopt(end.contents)
        if end.how == "raise":
            raise end.value
        if end.how != "end":
            raise Left(end.how, end.value)
        return end.value

    def step(self) -> None:
        """Counts what is done, and looks at the clock."""
        self.steps += 1
        if self.steps % 1_000 == 0:
            left_s()
        if self.steps > MOST_STEPS:
            raise self.refusal("more steps than are followed", "give smaller parameters")

    def joined(self, several: list[Contents]) -> Contents:
        """What everything holds where any of several may have come about."""
        first, *others = several
        result = dict(first)
        seen: dict[Any, Any] = {}
        for other in others:
            for key in [key for key in result if key in other]:  # what only one has reached is new in it
                container, held = result[key]
                result[key] = container, self.rules.join_contents(container, held, other[key][1], seen)
        return result
