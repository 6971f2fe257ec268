"""First calls: whether what a process gives first tells its dataset, though nothing later does.

A cache that is not filled yet, or noise that is set up late, leaks once in each process. So a small part of the search
runs is made in fresh processes, one each; where all of them tell their dataset, that is the witness.
"""

import os
import time
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.auditing.freezing import frozen
from dpaudit.auditing.health.pilot import constants
from dpaudit.auditing.health.processes import NoProcesses, processes_needed
from dpaudit.auditing.spec import ResolvedSpec
from dpaudit.errors import InvalidSpec, OutOfTime, UnsoundAudit
from dpaudit.events import Event
from dpaudit.events.features.plain import Whole
from dpaudit.events.search.grouping import as_partition
from dpaudit.events.search.selection import Proposal
from dpaudit.outputs import Outputs, Pilot, Token, concatenate
from dpaudit.results.beside import FIRST_CALLS, PROCESSES, Explored
from dpaudit.results.witness import Witness
from dpaudit.sampling import BatchFailed, FreshTask, Session, Shard, Stage

SELECTOR = FIRST_CALLS  # of a witness that only fresh processes can show
FROM, MANY_FROM = 25_000, 1_000_000  # runs of an audit in which some are fresh, and many, whatever runs it
FEWEST, FEW, MANY = 8, 16, 32  # processes
BUDGET_S, TIMED = 2.0, 6  # seconds that they may take; after so many it is known how long one does
LOADED = 2.0  # times as long, and as the load has it, before there are fewer: load alone changes nothing
BY_CHANCE = 1e-4  # above it first calls that are all alike are no others than later ones
START = 1 << 20  # numbers of their shards: no others in fresh processes have these


@dataclass(frozen=True, slots=True)
class Firsts:
    """What first calls came to: a witness where they give their dataset away, the runs, and what is said of them."""

    witness: Witness | None = None
    runs: int = 0
    explored: tuple[Explored, ...] = ()


def first_calls(spec: ResolvedSpec, session: Session, pair: int, others: Pilot, most: int) -> Firsts:
    """The first calls of some fresh processes, `most` at the most, on sides that coins draw.

    They are a witness only where they are not like the `others`, the pair's runs that search has seen: of these there
    can be far more than processes.
    """
    engine = session.engine
    many = spec.runs >= MANY_FROM
    wanted = min(most, MANY if many else FEW)
    if wanted < FEWEST or spec.runs < FROM or not (many or engine.isolated or engine.supervised):
        return Firsts()
    claim = spec.claim_at(pair)
    try:
        processes_needed(lambda runs: spec.certifier.at(claim).refutable(runs, runs, claim, spec.fixed_level))
    except NoProcesses:
        return _told("in fresh processes not looked at: to refute the claim by them would take too many")
    coins, _ = Shard(Stage.FRESH, pair, START, wanted).streams(session.job.seed)
    sides = coins.integers(2, size=wanted).astype(np.bool_)
    work = [FreshTask(Shard(Stage.FRESH, pair, START + k, 1), (side,)) for k, side in enumerate(sides.tolist())]
    made: list[Outputs] = []
    try:
        made += session.fresh(work[:2])  # starts interpreters
        times = [time.monotonic()]
        for task in work[2:TIMED]:
            made += session.fresh([task])
            times.append(time.monotonic())
        each = max(1e-6, float(np.diff(times).min()))
        load = max(1.0, 2.0 * os.getloadavg()[0] / (os.cpu_count() or 1))  # processes that want each processor
        fits = wanted if each * wanted <= LOADED * load * BUDGET_S else int(BUDGET_S / each)
        made += session.fresh(work[TIMED : max(TIMED, session.decided(lambda: fits))])
    except BatchFailed:
        raise
    except (InvalidSpec, OutOfTime, UnsoundAudit) as error:
        return _told(f"in fresh processes not looked at ({type(error).__name__})", len(made))
    if len(made) < FEWEST:
        why = f"in fresh processes not looked at: one takes more than {BUDGET_S / FEWEST:g} s to begin"
        return _told(why, len(made))
    outputs, sides = concatenate(made), sides[: len(made)]
    pilot = Pilot(outputs.take(~sides), outputs.take(sides), sides, (len(made),))
    told = [Whole().column(side).tokens for side in (pilot.first, pilot.second)]
    if not (outputs.complete and constants(pilot).give_away and told[0][0] != told[1][0]):
        return _told(f"{len(made)} in fresh processes did not all give their dataset away", len(made), looked=True)
    chance = 1.0  # that others would be all alike so
    for held, side in zip(told, (others.first, others.second), strict=True):
        chance *= float(np.mean(Whole().column(side).tokens == held[0])) ** len(held)
    if chance > BY_CHANCE:
        why = f"all of {len(made)} in fresh processes gave their dataset away, and so do most other runs"
        return _told(why, len(made), looked=True)
    code = int(told[0][0])
    event = Event(Whole(), tokens=(Token(pilot.first.labels.get(code, "its first output"), code),))
    found = Proposal(event, "first", "all alike", 0.0, claim.delta)
    why = f"all of {len(made)} in fresh processes gave their dataset away, and other runs did not: these are certified"
    witness = frozen(spec, pair, as_partition(found) if spec.certifier.at(claim).bins else found, SELECTOR)
    return replace(_told(why, len(made), looked=True), witness=witness)


def _told(why: str, runs: int = 0, *, looked: bool = False) -> Firsts:
    return Firsts(None, runs, (Explored(PROCESSES, FIRST_CALLS, why, runs=runs if looked else 0),))
