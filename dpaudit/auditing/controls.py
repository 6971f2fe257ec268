"""Spiked controls: the audited mechanism with a known leak, audited again and again, to see what would be caught.

A control says what search and certification together see of a leak of this one kind; the power statement beside
it is for an event that is known beforehand. Every control is a whole audit, with the runs of the spec.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from dpaudit import validate
from dpaudit.auditing.spec import ResolvedSpec
from dpaudit.claims import Claim
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms.spiked import Spiked, SpikedPair, far_outside
from dpaudit.results.beside import Control
from dpaudit.results.result import AuditResult
from dpaudit.results.verdict import Verdict
from dpaudit.sampling import SILENT, BatchFailed, Engine, Progress, Stage, apart, shards

REPEATS, CAUGHT = 20, 0.95  # 19 of 20
MASSES = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1)  # of the marked outputs; the smallest first
EXCESS = math.log(2.0)  # a marked output is this much more telling than the claim allows: twice
FEWEST_PROBED = 4  # runs of each pair in each look of a probe
GLANCE = 256  # outputs of each pair that say where a marked one stands out
CONTROL_KEY = 0xC0  # keeps the seeds of controls apart


def run_controls(
    spec: ResolvedSpec,
    engine: Engine,
    audit: Callable[..., AuditResult],
    *,
    repeats: int = REPEATS,
    sizes: Sequence[float] = MASSES,
    excess: float = EXCESS,
    progress: Progress = SILENT,
) -> tuple[Control, ...]:
    """Controls of growing mass, each put to `audit`, until one is caught in 19 of 20 repeats (in all of fewer than 20).

    A size is given up as soon as too many repeats have failed. Sizes that the claim's own delta allows are left
    out: no leak of theirs would break it. The cost is at most `most_runs`. Meaningful where the mechanism itself is
    not refuted. Raises `InvalidSpec` for sizes outside (0, 1/2].

    The same spec and seed give the same controls, as far as the mechanism draws from the rng it is given.
    """
    repeats = validate.whole("controls", repeats, least=1)
    needed = math.ceil(CAUGHT * repeats)
    points = control_points(spec, sizes, excess)
    offset = far_outside(_largest_output(spec, engine)) if points else 1.0
    done: list[Control] = []
    for size, (mass, rarer, loss) in enumerate(points):
        spiked = replace(
            spec,
            mechanism=Spiked(spec.mechanism, mass, rarer, offset),
            pairs=tuple(cast(Any, SpikedPair(pair)) for pair in spec.pairs),
            representation=False,
            detect=None,
            controls=0,
        )
        caught = made = 0
        while made < repeats and made - caught <= repeats - needed:
            seeded = replace(spiked, seed=_seed(spec.seed, size, made))
            caught += audit(seeded, engine, progress=progress).verdict is Verdict.REFUTED
            made += 1
        done.append(Control(mass, rarer, loss, caught, made, needed))
        if done[-1].seen:
            break
    return tuple(done)


def control_points(
    spec: ResolvedSpec, sizes: Sequence[float] = MASSES, excess: float = EXCESS
) -> tuple[tuple[float, float, float], ...]:
    """For each size, growing: the rates of the marked event on both datasets, and the loss that they are.

    The rarer rate is the least that the claim allows, divided by e^excess: below the region by that much.
    """
    for size in sizes:
        if not 0.0 < validate.probability("sizes", size) <= 0.5:
            raise InvalidSpec(f"sizes must lie above 0 and be at most 0.5, got {size!r}")
    excess = validate.not_negative("excess", excess)
    distance = min(pair.distance for pair in spec.pairs)
    claim = spec.claim.at_distance(distance)
    points = []
    for mass in sorted(set(sizes)):
        allowed = _least_allowed(claim, mass)
        if allowed > 0.0:
            rarer = allowed * math.exp(-excess)
            points.append((mass, rarer, float(claim.least_parameter(np.array([rarer]), np.array([mass]))[0])))
    return tuple(points)


def most_runs(spec: ResolvedSpec, repeats: int = REPEATS, sizes: Sequence[float] = MASSES) -> int:
    """The runs that controls take at the most, the glance at the outputs included."""
    return repeats * len(control_points(spec, sizes)) * spec.runs + (GLANCE + 2 * FEWEST_PROBED) * len(spec.pairs)


def _seed(seed: int, size: int, repeat: int) -> int:
    key = np.random.SeedSequence(seed, spawn_key=(CONTROL_KEY, size, repeat))
    return int(key.generate_state(1, np.uint32)[0])


def _least_allowed(claim: Claim, mass: float) -> float:
    """The least q with mass <= G(q), to the last digits; 0 where delta alone allows the mass."""
    if mass <= claim.max_probability(0.0):
        return 0.0
    low, high = math.log(1e-300), math.log(mass)  # no claim demands more of q than p itself
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (low, middle) if claim.max_probability(math.exp(middle)) >= mass else (middle, high)
    return math.exp(high)


def _largest_output(spec: ResolvedSpec, engine: Engine) -> float:
    """The largest finite number among some outputs of every pair, by absolute value; 0 where there is none."""
    largest = 0.0
    engine.progress = SILENT
    with engine.session(spec.mechanism, spec.pairs, spec.seed, spec.run_timeout_s) as session:
        session.probe(2 * FEWEST_PROBED * len(spec.pairs))  # finds out whether a batched mechanism has to run alone
        for pair in range(len(spec.pairs)):
            try:
                pilot = session.pilot(shards(Stage.PROBE, pair, GLANCE, GLANCE))
            except BatchFailed:
                session.begin_alone(apart(spec.seed))
                pilot = session.pilot(shards(Stage.PROBE, pair, GLANCE, GLANCE))
            for outputs in (pilot.first, pilot.second):
                for column in outputs.columns.values():
                    numbers = np.abs(column.values[np.isfinite(column.values)])
                    largest = max(largest, float(numbers.max(initial=0.0)))
    return largest
