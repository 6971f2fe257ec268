"""The first stage: a few runs that tell how fast a mechanism is, whether it repeats itself, and how it is called;
and how many runs fit into a time."""

import math
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from dpaudit.auditing.clock import Clock
from dpaudit.auditing.question import Pair, Plan, Question, plan
from dpaudit.errors import InvalidSpec, OutOfTime
from dpaudit.execution.engine import Engine, Session
from dpaudit.mechanisms import PerRun
from dpaudit.mechanisms.protocol import ADAPTED
from dpaudit.options import FEWEST_RUNS
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


class TooLittleTime(InvalidSpec):
    """Not even the fewest runs of an audit fit into the time that it has."""


def probe(plan: Plan, session: Session, runs: int | None = None) -> Probe:
    """Runs every pair for a moment (`runs` in all, or a part of the plan's), and how runs are made from here on."""
    session.per_run = plan.description.kind in PER_RUN or plan.description.kind.startswith(ADAPTED)
    if runs is None:
        runs = min(LARGEST_PROBE[session.per_run], max(2, plan.runs // PROBE_SHARE))
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


def kept_back(plan: Plan, first: Probe) -> int:
    """Runs for fresh processes at the end: shards there, and before them the look of a probe that repeated itself."""
    if not first.reproducible:
        return max(2, min(LARGEST_TWINS, plan.runs // TWINS_SHARE))
    return len(first.pilots[0].sides) + max(2, min(FEW_TWINS, plan.runs // TWINS_SHARE))


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


def planned_runs(question: Question, pairs: tuple[Pair, ...], engine: Engine, clock: Clock) -> int:
    """How many runs, those of the question at the most, fit into the time of a clock: from `PLANNING_S` seconds' work.

    Raises `TooLittleTime` where too few do.
    """
    probe = time_of_a_run(question, pairs, engine, clock)
    clock.limits(engine)
    affordable = PLANNED_PART * clock.limit_s * engine.n_jobs / max(probe.run_s, 1e-10)
    if affordable < FEWEST_RUNS:
        raise TooLittleTime(
            f"max_time_s = {clock.limit_s:g} allows {int(affordable)} runs of {probe.run_s:.2g} s each; "
            f"an audit needs at least {FEWEST_RUNS}"
        )
    return int(affordable) if question.runs is None else min(question.runs, int(affordable))


def chosen_runs(question: Question, planned: Plan, engine: Engine) -> int:
    """As many of `CHOICES` as about `CHOSEN_S` seconds allow, for a question that was planned with a million runs.

    They are at least as many as can refute the claim. A power that is demanded has them all.
    """
    if planned.detect is not None:
        return CHOICES[-1]
    probe = time_of_a_run(planned, planned.pairs, engine)
    affordable = CHOSEN_S * engine.n_jobs / max(probe.run_s, 1e-10)
    for runs in CHOICES[max(0, sum(each <= affordable for each in CHOICES) - 1) : -1]:
        with suppress(InvalidSpec):
            return plan(question, planned.description, planned.pairs, runs).runs
    return CHOICES[-1]


def time_of_a_run(question: Question, pairs: tuple[Pair, ...], engine: Engine, clock: Clock | None = None) -> Probe:
    """A probe of at least `PLANNING_S` seconds' work: its `run_s` are the seconds of a run.

    A call of many runs may take as long as one of few, to start a program: it grows while that halves the time of a
    run.
    """
    with engine.session(question.mechanism, pairs, question.seed, question.run_timeout_s) as session:
        runs, before = 8, 0.0 if isinstance(question.mechanism, PerRun) else math.inf
        probe = session.probe(runs)
        (clock or Clock()).planning(engine)
        with suppress(OutOfTime):  # what was seen until then has to do
            while runs < 1 << 20 and (probe.run_s * probe.runs < PLANNING_S or probe.run_s < before / 2.0):
                runs, before = (4 if before in (0.0, math.inf) else STEEP) * runs, before and probe.run_s
                probe = session.probe(runs)
        return probe
