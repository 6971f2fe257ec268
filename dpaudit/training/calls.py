"""Where calls of `train` run: here, on joblib's workers, or each in a process of ours; all give the same scores."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dpaudit.arrays import Reals
from dpaudit.errors import InvalidSpec, OutOfTime, UnsoundAudit
from dpaudit.mechanisms import Mechanism
from dpaudit.outputs import Column, Outputs
from dpaudit.sampling import alike, intact
from dpaudit.sampling.made import made_with
from dpaudit.sampling.pools import LostWorker, Processes
from dpaudit.sampling.tasks import parts_of
from dpaudit.training.coins import trained
from dpaudit.training.plan import TrainingPlan

Calls = Callable[[Sequence[int]], Iterator[Reals]]  # the scores of the calls of these numbers, in their order


def here(mechanism: Mechanism, plan: TrainingPlan, n_jobs: int = 1) -> Calls:
    """Calls in this process, or on so many of joblib's workers."""
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise InvalidSpec(f"n_jobs must be a whole number other than 0 (-1 for all processors), got {n_jobs!r}")

    def calls(numbers: Sequence[int]) -> Iterator[Reals]:
        if n_jobs == 1 or len(numbers) == 1:
            opened = mechanism.open()
            yield from (trained(opened, plan, number) for number in numbers)
            return
        from joblib import Parallel, delayed

        shown = alike.shown(parts_of(mechanism) | made_with())
        work = (delayed(_elsewhere)(mechanism, plan, number, shown) for number in numbers)
        yield from Parallel(n_jobs, return_as="generator", pre_dispatch="n_jobs", max_nbytes=None)(work)

    return calls


def _elsewhere(mechanism: Mechanism, plan: TrainingPlan, number: int, shown: alike.Shown) -> Reals:
    opened = mechanism.open()
    alike.check(shown, opened=True)
    return trained(opened, plan, number)


def supervised(mechanism: Mechanism, plan: TrainingPlan, n_jobs: int = 1, limit_s: float = math.inf) -> Calls:
    """Calls in processes of ours, one each, at most `limit_s` seconds long; numbers come back, and nothing that runs.

    Raises `UnsoundAudit` where a process ended or hung.
    """

    def calls(numbers: Sequence[int]) -> Iterator[Reals]:
        for start in range(0, len(numbers), n_jobs):
            wave = numbers[start : start + n_jobs]
            pool = Processes(len(wave), anew=True)
            found: dict[int, Reals] = {}
            try:
                tasks: list[Any] = [(mechanism, plan, number) for number in wave]
                for place, (outputs,) in pool.numbered(_in_a_process, tasks, time.monotonic() + limit_s):
                    found[wave[place]] = _read(outputs, plan, wave[place])
            except LostWorker:
                raise UnsoundAudit(
                    f"training {wave[0] + 1:,} ended its process, or ran out of memory; no verdict"
                ) from None
            except OutOfTime:
                raise UnsoundAudit(
                    f"training {wave[0] + 1:,} took longer than the {limit_s:g} s it was given; no verdict"
                ) from None
            finally:
                pool.close()
            yield from (found[number] for number in wave)

    return calls


def _in_a_process(mechanism: Mechanism, plan: TrainingPlan, number: int) -> Outputs:
    """A call in the process it has for itself: its scores as the one column of outputs."""
    scores = trained(mechanism.open(), plan, number).ravel()
    intact.check()
    return Outputs(scores.size, {(): Column(scores)})


def _read(outputs: Any, plan: TrainingPlan, number: int) -> Reals:
    """The scores again; a process that was taken over may send anything that is numbers."""
    column = outputs.columns.get(()) if isinstance(outputs, Outputs) else None
    values = None if column is None else np.asarray(column.values, np.float64)
    if values is None or not np.isfinite(values).all() or values.size % plan.canaries:
        raise UnsoundAudit(f"training {number + 1:,} did not send its scores; no verdict")
    return values.reshape(-1, plan.canaries)
