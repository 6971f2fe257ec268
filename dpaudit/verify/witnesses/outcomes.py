"""What a program can give out at concrete answers: its paths followed once, for many questions about its outputs."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from dpaudit.verify.language.nodes import Program
from dpaudit.verify.witnesses.events import event_of
from dpaudit.verify.witnesses.outputs import OutputEvent, required
from dpaudit.verify.witnesses.paths import MOST_PATHS, Numbers, Parameters, Path, answers_of, paths
from dpaudit.verify.witnesses.probabilities import Balls
from dpaudit.verify.witnesses.rationals import rationals
from dpaudit.verify.witnesses.shapes import has_noisy, shape


class Outcomes:
    """A program at concrete answers. Paths are followed when first needed; events asked for twice are known."""

    def __init__(
        self,
        program: Program,
        answers: Numbers,
        parameters: Parameters,
        balls: Balls | None = None,
        most: int = MOST_PATHS,
    ) -> None:
        self.program = program
        self.answers = answers_of(answers)
        self.parameters = {**program.defaults, **rationals(parameters)}
        self.balls = balls if balls is not None else Balls()
        self.most = most  # paths
        self._known: dict[OutputEvent, Any] = {}

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """All paths. Raises `OutsideIntegrals` where they are too many."""
        return tuple(paths(self.program, self.answers, self.parameters, most=self.most))

    @cached_property
    def shapes(self) -> tuple[OutputEvent, ...]:
        """The different outputs, with noisy numbers as "any number", in the order of the paths."""
        return tuple(dict.fromkeys(shape(path.outputs) for path in self.paths))

    @property
    def is_discrete(self) -> bool:
        """Whether every output is a symbol or an exact number."""
        return not any(map(has_noisy, self.shapes))

    def probability(self, event: OutputEvent) -> Any:
        """The probability of an event of outputs, as a ball."""
        if event not in self._known:
            if "paths" in self.__dict__:  # they were followed
                found = [_within(path, event) for path in self.paths]
                self._known[event] = self.balls(event_of(path for path in found if path is not None))
            else:
                self._known[event] = self.balls(event_of(paths(self.program, self.answers, self.parameters, event)))
        return self._known[event]


def _within(path: Path, event: OutputEvent) -> Path | None:
    wanted = required(path.outputs, event)
    return None if wanted is None else Path(path.draws, path.constraints + tuple(wanted), path.outputs)
