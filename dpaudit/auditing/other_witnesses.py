"""Witnesses beside those of search: what the first call of a process tells, and the bits of floating-point outputs.

A cache that is not filled yet, or noise that is set up late, leaks once in each process. So a small part of the search
runs is made in fresh processes, one each; where all of them tell their dataset, that is the witness. An event on bits
is a second witness, with a level of its own, proposed only where it promises more than every event on rounded values.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dpaudit.auditing.health.pilot import constants
from dpaudit.auditing.health.processes import NoProcesses, processes_needed
from dpaudit.auditing.question import Plan, frozen
from dpaudit.base.arrays import Integers
from dpaudit.base.validate import error_probability
from dpaudit.errors import InvalidSpec, OutOfTime, UnsoundAudit
from dpaudit.events import Event
from dpaudit.events.bits import KINDS, TrailingZeros
from dpaudit.events.features import Coordinate, Feature, Whole
from dpaudit.events.scores import Binning
from dpaudit.execution.engine import Session
from dpaudit.outputs.canonical import Outputs, Path, Pilot, Sample, Token, concatenate
from dpaudit.processes.tasks import FreshTask
from dpaudit.results.certification import Witness
from dpaudit.results.observations import FIRST_CALLS, PROCESSES, Explored
from dpaudit.running.streams import Shard, Stage
from dpaudit.running.worker import BatchFailed, Probe
from dpaudit.search.binning import Tables, binning
from dpaudit.search.candidates import bit_binning, bit_features, bit_score, without_bits
from dpaudit.search.goal import Goal
from dpaudit.search.grouping import as_partition
from dpaudit.search.plainer import EASIER, readable
from dpaudit.search.selection import Proposal
from dpaudit.search.selection import propose as propose_for

SELECTOR = FIRST_CALLS  # of a witness that only fresh processes can show
DECIDED = FIRST_CALLS  # how many there are, in a journal
FROM, MANY_FROM = 25_000, 1_000_000  # runs of an audit in which some are fresh, and many, whatever runs it
FEWEST, FEW, MANY = 8, 16, 32  # processes
PROBED = 2  # processes that tell what one takes
BUDGET_S, LONGEST_S = 4.0, 40.0  # CPU seconds of all of them, or of the fewest: where these take more, there are none
BY_CHANCE = 1e-4  # above it first calls that are all alike are no others than later ones
START = 1 << 20  # numbers of their shards: no others in fresh processes have these


@dataclass(frozen=True, slots=True)
class Firsts:
    """What first calls came to: a witness where they give their dataset away, the runs, and what is said of them."""

    witness: Witness | None = None
    runs: int = 0
    explored: tuple[Explored, ...] = ()


def begin_first_calls(plan: Plan, session: Session, probe: Probe, most: int) -> None:
    """Has the first calls made beside search, where it has one pair to search and they will be asked for."""
    wanted = len(plan.pairs) == 1 and plan.stopping == "fixed" and not constants(probe.pilots[0]).give_away
    wanted = wanted and session.engine.recorder.decided(DECIDED) is None  # else they are stored
    work = _first_work(plan, session, 0, most) if wanted and _may_refute(plan, 0) else []
    session.begin_fresh(work, PROBED, partial(_fitting, len(work)))


def _first_work(plan: Plan, session: Session, pair: int, most: int) -> list[FreshTask]:
    """First calls on sides that coins draw; none where there are too few runs."""
    engine, many = session.engine, plan.runs >= MANY_FROM
    wanted = min(most, MANY if many else FEW)
    if wanted < FEWEST or plan.runs < FROM or not (many or engine.isolated or engine.supervised):
        return []
    coins, _ = Shard(Stage.FRESH, pair, START, wanted).streams(session.job.seed)
    sides = coins.integers(2, size=wanted).astype(np.bool_)
    return [FreshTask(Shard(Stage.FRESH, pair, START + k, 1), (side,)) for k, side in enumerate(sides.tolist())]


def _may_refute(plan: Plan, pair: int) -> bool:
    """Whether so many processes as may be started can refute the claim."""
    claim = plan.claim_at(pair)
    with suppress(NoProcesses):
        processes_needed(lambda runs: plan.certifier.at(claim).refutable(runs, runs, claim, plan.fixed_level))
        return True
    return False


def _fitting(wanted: int, cpu_s: float) -> int:
    """How many first calls there are where one takes so many seconds of CPU, whatever else runs."""
    fits = max(FEWEST, int(BUDGET_S / max(cpu_s, 1e-6)))
    return 0 if FEWEST * cpu_s > LONGEST_S else min(wanted, fits)


def first_calls(plan: Plan, session: Session, pair: int, others: Pilot, most: int) -> Firsts:
    """The first calls of some fresh processes, `most` at the most, on sides that coins draw.

    They are a witness only where they are not like the `others`, the pair's runs that search has seen: of these there
    can be far more than processes.
    """
    if not (work := _first_work(plan, session, pair, most)):
        return Firsts()
    if not _may_refute(plan, pair):
        return _told("in fresh processes not looked at: to refute the claim by them would take too many")
    firsts: list[Outputs] = []
    try:
        firsts += session.fresh(work[:PROBED])
        fits = session.decided(DECIDED, lambda: _fitting(len(work), session.fresh_cpu_s))
        firsts += session.fresh(work[PROBED:fits])
    except BatchFailed:
        raise
    except (InvalidSpec, OutOfTime, UnsoundAudit) as error:
        return _told(f"in fresh processes not looked at ({type(error).__name__})", len(firsts))
    if len(firsts) < FEWEST:
        why = f"in fresh processes not looked at: one takes more than {LONGEST_S / FEWEST:g} s of CPU to begin"
        return _told(why, len(firsts))
    sides = np.array([task.sides[0] for task in work])
    outputs, sides = concatenate(firsts), sides[: len(firsts)]
    pilot = Pilot(outputs.take(~sides), outputs.take(sides), sides, (len(firsts),))
    tokens = [Whole().column(side).tokens for side in (pilot.first, pilot.second)]
    if not (outputs.complete and constants(pilot).give_away and tokens[0][0] != tokens[1][0]):
        return _told(
            f"{len(firsts)} in fresh processes did not all give their dataset away", len(firsts), complete=True
        )
    claim, chance = plan.claim_at(pair), 1.0  # that others would be all alike so
    for before, side in zip(tokens, (others.first, others.second), strict=True):
        chance *= float(np.mean(Whole().column(side).tokens == before[0])) ** len(before)
    if chance > BY_CHANCE:
        why = f"all of {len(firsts)} in fresh processes gave their dataset away, and so do most other runs"
        return _told(why, len(firsts), complete=True)
    code = int(tokens[0][0])
    event = Event(Whole(), tokens=(Token(pilot.first.labels.get(code, "its first output"), code),))
    proposal = Proposal(event, "first", "all alike", 0.0, claim.delta)
    why = (
        f"all of {len(firsts)} in fresh processes gave their dataset away, and other runs did not: these are certified"
    )
    witness = frozen(plan, pair, as_partition(proposal) if plan.certifier.at(claim).bins else proposal, SELECTOR)
    return replace(_told(why, len(firsts), complete=True), witness=witness)


def _told(why: str, runs: int = 0, *, complete: bool = False) -> Firsts:
    return Firsts(None, runs, (Explored(PROCESSES, FIRST_CALLS, why, runs=runs if complete else 0),))


MOST_SCORES = 4  # numbers of an output whose bits have a learned score
AHEAD = 0.05  # by this part of the bound on rounded values: more than the luck of a search


def tables(pilot: Pilot) -> Tables:
    """What a search for a bit event counts: features on bits, and the same without bits, which they have to beat.

    Empty where no output is a float with a fraction: text, integers and whole numbers have no bits to look at.
    """
    both = pilot.both
    bits = [(feature, bit_binning(feature, both)) for feature in bit_features(both)]
    shadows = [(each, bit_binning(each, both)) for feature, _ in bits if (each := without_bits(feature)) is not None]
    paths: set[Path] = set().union(*(feature.wanted or () for feature, _ in bits))
    rounded = [_rounded_values(path, both) for path in sorted(paths, key=repr)]
    return Tables((*bits, *shadows, *rounded))


def best(chosen: Tables, counts: Integers, goal: Goal) -> Proposal | None:
    """The best bit event of these counts (cells of `chosen.features` one after the other, a column for each side).

    None where no bit event promises more than the rounded values do.
    """
    rounded, found_bits = 0.0, list[Proposal]()
    for (feature, bins), table in zip(chosen.features, chosen.split(counts), strict=True):
        proposal = propose_for(feature, bins, table, goal)
        if proposal is None:
            continue
        if not isinstance(feature, KINDS) or without_bits(feature) == feature:
            rounded = max(rounded, proposal.score)
        else:
            found_bits.append(proposal)
    most = max((each.score for each in found_bits), default=0.0)
    # which multiples there are is easier to read than how bits end by the size of a number
    good = [each for each in found_bits if each.score >= (1.0 - EASIER) * most > (1.0 + AHEAD) * rounded]
    return max(good, key=lambda each: (readable(each.event), each.score), default=None)


def propose(pilot: Pilot, goal: Goal) -> Proposal | None:
    """The bit event that a pilot proposes, by search outputs alone."""
    chosen = tables(pilot)
    if not chosen.features:
        return None
    scores, judged = _scores(pilot, chosen)
    counts = np.concatenate([chosen(Sample(pilot.first), Sample(pilot.second)), judged])
    return best(Tables((*chosen.features, *scores.features)), counts, goal)


def _scores(pilot: Pilot, chosen: Tables) -> tuple[Tables, Integers]:
    """Linear scores of all 64 bits, learned on every other output, and without the last bits; counts of the others."""
    taught, rest = ([s.take(np.arange(k, s.runs, 2)) for s in (pilot.first, pilot.second)] for k in (0, 1))
    paths = [feature.path for feature, _ in chosen.features if isinstance(feature, TrailingZeros)][:MOST_SCORES]
    scores = [score for path in paths if (score := bit_score(taught[0], taught[1], path)) is not None]
    features = [each for score in scores for each in (score, without_bits(score)) if each is not None]
    cells = Tables(tuple((each, bit_binning(each, pilot.both)) for each in features))
    return cells, cells(*map(Sample, rest)) if features else np.zeros((0, 2), np.int64)


def find_representation(plan: Plan, pilot: Pilot, pair: int, certifying: int) -> Witness | None:
    """The frozen witness on bits for a pair, to be counted on `certifying` runs beside the main one; None for none.

    Its certificate has the confidence of the plan to itself, and is a statement of its own: neither finding
    lends error probability to the other.
    """
    claim = plan.claim_at(pair)
    goal = Goal(claim, certifying, error_probability(plan.confidence), plan.certifier.coins, plan.certifier.bins)
    proposal = propose(pilot, goal)
    return None if proposal is None else frozen(plan, pair, proposal, "representation")


def _rounded_values(path: Path, both: Outputs) -> tuple[Feature, Binning]:
    column = both.column(path)
    numbers = column.values[np.isfinite(column.values)].astype(np.float64)
    feature = Coordinate(path, float(np.median(numbers)) if len(numbers) else 0.0)
    return feature, binning(feature.column(both), dict(both.labels))
