"""The first stage: a few runs that tell how fast a mechanism is, whether it repeats itself, and how it is called;
and how many runs fit into a time."""

import math
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpaudit.auditing.clock import Clock
from dpaudit.auditing.spec import FEWEST_RUNS, AuditSpec, ResolvedSpec
from dpaudit.base import validate
from dpaudit.errors import InvalidSpec, OutOfTime
from dpaudit.execution.engine import Engine, Session
from dpaudit.mechanisms import PerRun
from dpaudit.mechanisms.protocol import ADAPTED
from dpaudit.outputs.canonical import Pilot
from dpaudit.processes.tasks import FreshTask
from dpaudit.running.order import words
from dpaudit.running.streams import Shard, Stage
from dpaudit.running.worker import Probe

PROBE_SHARE = 200  # the probe takes at most one run in so many
LARGEST_PROBE = {True: 64, False: 2048}  # runs, of per-run and of batched mechanisms
LARGEST_TWINS, FEW_TWINS, TWINS_SHARE = 512, 64, 50  # runs in fresh processes at the end, and their part of all
PLANNING_S = 0.05  # seconds of work that a planning probe looks for
START_S = 0.02  # of the calls of a shard: a shorter start is none
STEEP = 16  # times the runs of a call that hardly takes longer than one of few
PLANNED_PART = 0.9  # of the time asked for: starting and searching take the rest
CHOICES = (10_000, 30_000, 100_000, 300_000, 1_000_000)  # runs of a call in Python that says neither runs nor time
CHOSEN_S = 60.0  # seconds on the workers that they should take, controls apart
PER_RUN = ("per-run", "built in the worker")  # mechanisms that are called run by run


def probe(spec: ResolvedSpec, session: Session, runs: int | None = None) -> Probe:
    """Runs every pair for a moment (`runs` in all, or a part of the spec's), and how runs are made from here on."""
    session.per_run = spec.description.kind in PER_RUN or spec.description.kind.startswith(ADAPTED)
    if runs is None:
        runs = min(LARGEST_PROBE[session.per_run], max(2, spec.runs // PROBE_SHARE))
    few = None if session.per_run or session.engine.limit is None else session.probe(0)
    with session.stage("probe", runs):
        result = session.probe(runs)
    if few is not None and few.runs < result.runs:
        session.least = session.decided("runs worth a start", partial(_worth_a_start, few, result))
        result = replace(result, runs=few.runs + result.runs)
    session.per_run = session.per_run or result.alone
    return result


def _worth_a_start(few: Probe, many: Probe) -> int:
    """The runs of a shard that take as long as the start of its calls, where that is long, as of a program."""
    seconds, runs = (few.run_s * few.runs, many.run_s * many.runs), (few.runs, many.runs)
    run_s = max(seconds[1] - seconds[0], 0.0) / (runs[1] - runs[0])
    start_s = (seconds[0] - run_s * runs[0]) / (2.0 * len(few.pilots))
    return 0 if start_s < START_S else int(start_s / max(run_s, 1e-9))


def kept_back(spec: ResolvedSpec, first: Probe) -> int:
    """Runs for fresh processes at the end: shards there, and before them the look of a probe that repeated itself."""
    if not first.reproducible:
        return max(2, min(LARGEST_TWINS, spec.runs // TWINS_SHARE))
    return len(first.pilots[0].sides) + max(2, min(FEW_TWINS, spec.runs // TWINS_SHARE))


def looked_again(session: Session, first: Probe, refuted: bool) -> tuple[Probe, int]:
    """The probe, `reproducible` only if a fresh process repeats it too, and the runs that took; before a refutation.

    What a process drew before its first run, and keeps, repeats itself there and nowhere else.
    """
    if not (first.reproducible and refuted):
        return first, 0
    pilot = first.pilots[0]
    return replace(first, reproducible=_repeats_afresh(session, pilot)), len(pilot.sides)


def _repeats_afresh(session: Session, pilot: Pilot) -> bool:
    """Whether the first look of a probe comes out the same in a fresh process; True where it cannot be opened."""
    work = FreshTask(Shard(Stage.PROBE, 0, 0, len(pilot.sides)), tuple(pilot.sides.tolist()))
    try:
        (outputs,) = session.fresh([work])
    except InvalidSpec:
        return True
    return all(
        np.array_equal(words(outputs.take(pilot.sides == side), before.runs), words(before, before.runs))
        for side, before in ((False, pilot.first), (True, pilot.second))
    )


def planned_runs(
    engine: Engine,
    mechanism: Any,
    pairs: tuple[Any, ...],
    clock: Clock,
    seed: int,
    run_timeout_s: float | None = None,
    *,
    most: int | float | None = None,
) -> int:
    """How many runs, `most` of them at the most, fit into the time of a clock: from `PLANNING_S` seconds' work."""
    probe = time_of_a_run(engine, mechanism, pairs, seed, run_timeout_s, clock)
    clock.limits(engine)
    affordable = PLANNED_PART * clock.limit_s * engine.n_jobs / max(probe.run_s, 1e-10)
    if affordable < FEWEST_RUNS:
        raise InvalidSpec(
            f"max_time_s = {clock.limit_s:g} allows {int(affordable)} runs of {probe.run_s:.2g} s each; "
            f"an audit needs at least {FEWEST_RUNS}"
        )
    return int(affordable) if most is None else min(validate.whole("runs", most, least=1), int(affordable))


def chosen_runs(spec: AuditSpec, engine: Engine) -> AuditSpec:
    """A spec of a million runs with as many of `CHOICES` as about `CHOSEN_S` seconds allow.

    They are at least as many as can refute the claim. A power that is demanded leaves them as they are.
    """
    if spec.detect is not None:
        return spec
    probe = time_of_a_run(engine, spec.mechanism, spec.pairs, spec.seed, spec.run_timeout_s)
    affordable = CHOSEN_S * engine.n_jobs / max(probe.run_s, 1e-10)
    for runs in CHOICES[max(0, sum(each <= affordable for each in CHOICES) - 1) : -1]:
        with suppress(InvalidSpec):
            return replace(spec, runs=runs)
    return spec


def time_of_a_run(
    engine: Engine,
    mechanism: Any,
    pairs: tuple[Any, ...],
    seed: int,
    run_timeout_s: float | None = None,
    clock: Clock | None = None,
) -> Probe:
    """A probe of at least `PLANNING_S` seconds' work: its `run_s` are the seconds of a run.

    A call of many runs may take as long as one of few, to start a program: it grows while that halves the time of a
    run.
    """
    with engine.session(mechanism, pairs, seed, run_timeout_s) as session:
        runs, before = 8, 0.0 if isinstance(mechanism, PerRun) else math.inf
        probe = session.probe(runs)
        (clock or Clock()).planning(engine)
        with suppress(OutOfTime):  # what was seen until then has to do
            while runs < 1 << 20 and (probe.run_s * probe.runs < PLANNING_S or probe.run_s < before / 2.0):
                runs, before = (4 if before in (0.0, math.inf) else STEEP) * runs, before and probe.run_s
                probe = session.probe(runs)
        return probe
