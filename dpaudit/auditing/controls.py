"""Spiked controls: the audited mechanism with a known leak, audited again and again, to see what would be caught.

Every control is a whole audit, with the runs of the plan; the power statement is for an event known beforehand.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from dpaudit.auditing.clock import Clock
from dpaudit.auditing.question import Plan
from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.claims import Claim
from dpaudit.errors import InvalidSpec, OutOfTime, UnsoundAudit
from dpaudit.execution.engine import FEWEST_PROBED, Engine
from dpaudit.mechanisms.spiked import EntriesShown, LeakMark, Spiked, SpikedPair, far_outside
from dpaudit.outputs.canonical import Outputs, concatenate
from dpaudit.results.observations import FAR, INSIDE, LATE, NARROW, RECURRING, TEXT, Control, Explored
from dpaudit.results.result import AuditResult
from dpaudit.running.progress import SILENT, Progress
from dpaudit.running.streams import Stage, apart, shards
from dpaudit.running.worker import BatchFailed

REPEATS, CAUGHT = 20, 0.95  # 19 of 20
MASSES = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1)  # of the marked outputs; the smallest first
EXCESS = math.log(2.0)  # a marked output is this much more telling than the claim allows: twice
FEWEST_GLANCED, RECURS, THREE = 64, 0.02, 3  # numbers to choose a place by; share of the outputs; values of a mark
GLANCE = 256  # outputs of each pair that say where a mark can stand
CONTROL_KEY = 0xC0  # keeps the seeds of controls apart
MOST_PLACES = 5  # of one mechanism
BROKEN = "broke, which says nothing of the mechanism, and is left out"
Entries = tuple[Reals, list[str]]  # the numbers that stand at one place of some outputs, and the texts


def run_controls(
    plan: Plan,
    engine: Engine,
    audit: Callable[..., AuditResult],
    *,
    repeats: int = REPEATS,
    sizes: Sequence[float] = MASSES,
    excess: float = EXCESS,
    broken: list[Explored] | None = None,
) -> Iterator[Control]:
    """Controls of growing mass, each put to `audit`, until one is caught in 19 of 20 repeats (in all of fewer than 20).

    So for each place where the outputs can bear a leak; those after the first place, the easiest, begin with the size
    that was caught there. A size is given up as soon as too many repeats have failed. Sizes that the claim's own
    delta allows are left out: no leak of theirs would break it. The cost is at most `most_runs`. Meaningful where the
    mechanism itself is not refuted. A control of which an audit has no verdict is left out and told in `broken`. Raises
    `InvalidSpec` for sizes outside (0, 1/2], and `OutOfTime` where a clock cuts one of the repeats short.

    The same plan and seed give the same controls, as far as the mechanism draws from the rng it is given.
    """
    repeats, points = validate.whole("controls", repeats, least=1), control_points(plan, sizes, excess)
    needed, start = math.ceil(CAUGHT * repeats), 0
    for place, mark in marks_of(glanced(plan, engine)).items() if points else ():
        for size, (mass, rarer, loss) in enumerate(points[start:], start):
            spiked = spiked_with(plan, mass, rarer, mark)
            caught = done = 0
            while done < repeats and done - caught <= repeats - needed:
                key = np.random.SeedSequence(plan.seed, spawn_key=(CONTROL_KEY, size, done))
                seed = int(key.generate_state(1, np.uint32)[0])
                try:
                    result = audit(replace(spiked, seed=seed), engine)
                except UnsoundAudit as error:
                    if broken is None or isinstance(error, OutOfTime):
                        raise
                    broken.append(Explored("control", f"{place}, probability {mass:g}", f"{BROKEN}: {error}"))
                    break
                if any(entry.what == "time" for entry in result.explored):
                    raise OutOfTime
                caught += result.refuted
                done += 1
            else:
                control = Control(mass, rarer, loss, caught, done, needed, place)
                yield control
                if control.seen:
                    break
        start = size if place == FAR else start


def with_controls(
    result: AuditResult,
    plan: Plan,
    engine: Engine,
    audit: Callable[..., AuditResult],
    *,
    progress: Progress,
    clock: Clock,
) -> AuditResult:
    """The result with its controls; those that break, or have no time left, are left out, and the result says so."""
    done: list[Control] = []
    broken: list[Explored] = []
    clock.limits(engine)
    try:
        timed = partial(audit, progress=progress, clock=clock)
        done.extend(run_controls(plan, engine, timed, repeats=plan.controls, broken=broken))
    except OutOfTime:
        status = f"max_time_s was over after {len(done)} sizes; the others are left out"
        broken.append(Explored("time", "controls", status))
    except UnsoundAudit as error:  # of the glance at what a mark could stand on
        broken.append(Explored("control", "all of them", f"{BROKEN}: {error}"))
    return replace(result, controls=tuple(done), explored=(*result.explored, *broken))


def spiked_with(plan: Plan, mass: float, rarer: float, mark: LeakMark) -> Plan:
    """The same audit of the mechanism with a leak: a mark with these rates."""
    return replace(
        plan,
        mechanism=Spiked(plan.mechanism, mass, rarer, mark),
        pairs=tuple(cast(Any, SpikedPair(pair)) for pair in plan.pairs),
        representation=False,
        detect=None,
        controls=0,
    )


def control_points(
    plan: Plan, sizes: Sequence[float] = MASSES, excess: float = EXCESS
) -> tuple[tuple[float, float, float], ...]:
    """For each size, growing: the rates of the marked event on both datasets, and the loss that they are.

    The rarer rate is the least that the claim allows, divided by e^excess: below the region by that much.
    """
    for size in sizes:
        if not 0.0 < validate.probability("sizes", size) <= 0.5:
            raise InvalidSpec(f"sizes must lie above 0 and be at most 0.5, got {size!r}")
    excess = validate.not_negative("excess", excess)
    distance = min(pair.distance for pair in plan.pairs)
    claim = plan.claim.at_distance(distance)
    points = []
    for mass in sorted(set(sizes)):
        allowed = _least_allowed(claim, mass)
        if allowed > 0.0:
            rarer = allowed * math.exp(-excess)
            points.append((mass, rarer, float(claim.least_parameter(np.array([rarer]), np.array([mass]))[0])))
    return tuple(points)


def most_runs(plan: Plan, repeats: int = REPEATS, sizes: Sequence[float] = MASSES) -> int:
    """The runs that controls take at the most, the glance at the outputs included.

    That would be where the first place shows the smallest size, and every other place none of them.
    """
    points = len(control_points(plan, sizes))
    audits = repeats * (1 + (MOST_PLACES - 1) * points) if points else 0
    return audits * plan.runs + (GLANCE + 2 * FEWEST_PROBED) * len(plan.pairs)


def _least_allowed(claim: Claim, mass: float) -> float:
    """The least q with mass <= G(q), to the last digits; 0 where delta alone allows the mass."""
    if mass <= claim.max_probability(0.0):
        return 0.0
    low, high = math.log(1e-300), math.log(mass)  # no claim demands more of q than p itself
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (low, middle) if claim.max_probability(math.exp(middle)) >= mass else (middle, high)
    return math.exp(high)


def glanced(plan: Plan, engine: Engine) -> tuple[Entries, Entries, bool]:
    """What some outputs of every pair hold at their first entry and at their last one, and whether these are two."""
    engine.progress = SILENT
    sides: list[Outputs] = []
    with engine.session(EntriesShown(plan.mechanism), plan.pairs, plan.seed, plan.run_timeout_s) as session:
        session.probe(2 * FEWEST_PROBED * len(plan.pairs))  # finds out whether a batched mechanism has to run alone
        for pair in range(len(plan.pairs)):
            try:
                pilot = session.pilot(shards(Stage.PROBE, pair, GLANCE, GLANCE))
            except BatchFailed:
                session.begin_alone(apart(plan.seed))
                pilot = session.pilot(shards(Stage.PROBE, pair, GLANCE, GLANCE))
            sides += [pilot.first, pilot.second]
    outputs = concatenate(sides)
    words = {code: _text(label) for code, label in outputs.labels.items()}

    def entries(place: int) -> Entries:
        texts = [words.get(code, "") for code in outputs.column((place + 1,)).tokens.tolist()]
        return outputs.column((place,)).values.astype(np.float64), [text for text in texts if text]

    return entries(0), entries(3), bool(np.any(outputs.column((2,)).values == 1.0))


def marks_of(glance: tuple[Entries, Entries, bool]) -> dict[str, LeakMark]:
    """The places where outputs like these can bear a leak, and the mark of each; the easiest first."""
    first, late, several = glance
    places = {FAR: LeakMark(far_outside(float(np.abs(_finite(first[0])).max(initial=0.0)))), **_inside(*first)}
    if several:
        marks = _inside(*late)
        mark = next((marks[place] for place in (INSIDE, RECURRING, TEXT) if place in marks), LeakMark())
        places[LATE] = replace(mark, last=True)
    return places


def _inside(numbers: Reals, texts: list[str]) -> dict[str, LeakMark]:
    """The marks of one entry that do not stand far outside."""
    within = bool(texts)
    numbers, marks = _finite(numbers), {}
    values, counts = np.unique(numbers, return_counts=True)
    often = values[np.argsort(-counts, kind="stable")][: np.count_nonzero(counts >= RECURS * len(numbers))].tolist()
    if 2 * len(values) > len(numbers) >= FEWEST_GLANCED:
        ends = np.quantile(numbers, [0.40, 0.44, 0.56, 0.60, 0.48, 0.52]).tolist()
        up, down, elsewhere = zip(ends[::2], ends[1::2], strict=True)
        points = tuple((each, each) for each in (_short(*up), _short(*down), _short(*elsewhere)))
        if len({*ends}) == len(ends):
            marks[TEXT if within else INSIDE] = LeakMark(spans=cast(Any, points), within=within)
            if not within:
                marks[NARROW] = LeakMark(spans=(up, down, elsewhere))
    if len(often) >= THREE and not within:
        marks[RECURRING] = LeakMark(spans=((often[1],) * 2, (often[2],) * 2, (often[0],) * 2))
    common = [text for text, count in Counter(texts).most_common(THREE) if count >= RECURS * len(texts)]
    if len(common) == THREE:
        marks[RECURRING] = LeakMark(words=(common[1], common[2], common[0]))
    elif len(set(texts)) > THREE and TEXT not in marks:
        marks[TEXT] = LeakMark(within=True)
    return marks


def _finite(numbers: Reals) -> Reals:
    return numbers[np.isfinite(numbers)]


def _short(low: float, high: float) -> float:
    """The number between two that has the fewest binary digits, so that it is the same in every float."""
    step = math.ldexp(1.0, math.frexp(max(abs(low), abs(high)))[1])
    while math.ceil(low / step) * step > high:
        step /= 2.0
    return math.ceil(low / step) * step


def _text(label: str) -> str:
    """The text of a token, by its label; empty for what is no text, or not shown as it is."""
    return label[1:-1] if label[:1] in "'\"" and label[-1:] == label[:1] and "\\" not in label else ""
