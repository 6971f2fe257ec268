"""A session without workers: outputs drawn straight into columns, and what was asked of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.claims import PureDP
from dpaudit.outputs.canonical import Column, Outputs, Pilot, Sample
from dpaudit.running.streams import Shard, Stage, shards
from dpaudit.search.binning import Tables
from dpaudit.search.goal import Goal
from dpaudit.search.look import Look

Draw = Callable[[bool, int, np.random.Generator], Outputs]  # outputs of the first side or the second, so many runs


def vectors(matrix: npt.NDArray[np.float64]) -> Outputs:
    """Outputs of as many numbers as there are columns."""
    return Outputs(len(matrix), {(j,): Column(matrix[:, j].copy()) for j in range(matrix.shape[1])})


@dataclass
class Drawn:
    """What a look needs of a session. Each run drawn stands for `times` runs, where outputs are costly to make."""

    draw: Draw
    times: int = 1
    seed: int = 0
    work: list[Shard] = field(default_factory=list)
    tables: list[Tables] = field(default_factory=list)

    def grid(
        self, stage: Stage, pair: int, runs: int, shard_runs: int, *, start: int = 0, done: int = 0
    ) -> list[Shard]:
        """The grid of an audit without a deadline."""
        return shards(stage, pair, runs, shard_runs, start=start)

    def thinking(self, think: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """All the time there is."""
        return think(*given, **options)

    def pilot(self, work: list[Shard]) -> Pilot:
        """The outputs of all shards."""
        return Pilot.joined([Pilot(*self._sides(shard, shard.runs)) for shard in work])

    def counts(self, work: list[Shard], tables: Tables) -> npt.NDArray[np.int64]:
        """The counts of all shards, added up."""
        self.tables.append(tables)
        total = np.zeros((tables.cells, 2), np.int64)
        for shard in work:
            fewer = -(-shard.runs // self.times)
            times = np.full(fewer, self.times)
            times[-1] = shard.runs - self.times * (fewer - 1)  # so that the runs are as many as were asked for
            samples, start = [], 0
            for side in self._sides(shard, fewer):
                samples.append(Sample(side, times[start : start + side.runs]))
                start += side.runs
            total += tables(*samples)
        return total

    def _sides(self, shard: Shard, runs: int) -> tuple[Outputs, Outputs]:
        self.work.append(shard)
        rng = np.random.default_rng([self.seed, int(shard.stage), shard.pair, shard.index])
        first = int(rng.binomial(runs, 0.5))
        return self.draw(True, first, rng), self.draw(False, runs - first, rng)


def look_at(session: Drawn, *, claim: Any = None, certifying: int = 400_000, shard_runs: int = 50_000) -> Look:
    """A look at the pair of such a session."""
    goal = Goal(claim or PureDP(1.0), certifying, 0.05)
    return Look(session, 0, goal, shard_runs=shard_runs)  # type: ignore[arg-type]
