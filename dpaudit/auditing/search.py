"""Search: screen the pairs, look closely at the best one, and propose a witness. None of its runs certifies."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpaudit.auditing.result import Explored
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.witness import Witness
from dpaudit.certify.certificate import error_probability
from dpaudit.claims import Claim
from dpaudit.events import Goal, Proposal, best, everything, pilot_counts, plan
from dpaudit.sampling import Pilot, Progress, Session, Stage, shards
from dpaudit.sampling.outputs import concatenate
from dpaudit.sampling.streams import Shard

PILOT_RUNS = 1 << 15  # outputs held at a time, whatever the number of runs
PILOT_SHARD = 1 << 12
PILOT_PART = 0.5  # of the search at the most, so that learned scores are judged on outputs they have not seen
SHOWN = 12  # features that the result lists


@dataclass(frozen=True, slots=True)
class Found:
    """What search hands on: the witness, what it cost, and what it looked at."""

    witness: Witness
    runs: int
    explored: tuple[Explored, ...]


def screening_share(pairs: int) -> float:
    """The part of all runs that compares pairs: none for one, a tenth for a few, more when many compete.

    >>> [screening_share(pairs) for pairs in (1, 4, 32, 1000)]
    [0.0, 0.1, 0.2, 0.4]
    """
    if pairs == 1:
        return 0.0
    return min(0.4, 0.1 * max(1.0, math.sqrt(pairs / 8.0)))


def find_witness(spec: AuditSpec, session: Session, progress: Progress, *, spent: int) -> Found:
    """The witness of the best pair; `spent` runs are gone already, on the probe."""
    screening = int(screening_share(len(spec.pairs)) * spec.runs)
    searching = int((spec.search_share or 0.0) * spec.runs)
    certifying = spec.runs - spent - screening - searching
    started: dict[int, int] = {}
    explored: list[Explored] = []
    pilots: dict[int, Pilot] = {}
    used = 0
    if screening:
        progress.begin("screen", screening)
        used += _screen(spec, session, certifying, screening, started, pilots, explored)
        progress.end()
    pair = next(iter(pilots), 0)
    progress.begin("search", searching)
    goal = _goal(spec, pair, certifying)
    found, runs = _look_closely(spec, session, goal, pair, searching, started, pilots.get(pair), explored)
    progress.end()
    witness = Witness(
        pair=pair,
        event=found.event,
        p_side=found.p_side,
        selector=f"{spec.selector}: {found.family}",
        score=round(found.score, 6),
        tangent=_claim(spec, pair).tangent(0.0),
    )
    return Found(witness, used + runs, tuple(explored))


def _claim(spec: AuditSpec, pair: int) -> Claim:
    """What the claim says of the datasets of a pair, which may be several steps apart."""
    return spec.claim.at_distance(spec.pairs[pair].distance)


def _goal(spec: AuditSpec, pair: int, certifying: int) -> Goal:
    return Goal(_claim(spec, pair).delta, certifying, error_probability(spec.confidence))


def _screen(
    spec: AuditSpec,
    session: Session,
    certifying: int,
    budget: int,
    started: dict[int, int],
    pilots: dict[int, Pilot],
    explored: list[Explored],
) -> int:
    """Successive halving: each round shares its runs among the pairs left, and the better half stays.

    A pair's score is how far its bound may exceed what the claim allows at its distance.
    """
    alive = list(range(len(spec.pairs)))
    rounds = max(1, math.ceil(math.log2(len(alive))))
    used = 0
    for turn in range(rounds):
        share = budget // rounds // len(alive)
        scores: dict[int, float] = {}
        for pair in alive:
            used += _extend(spec, session, pair, share, started, pilots)
            proposal = _propose(pilots[pair], _goal(spec, pair, certifying))
            allowed = float(getattr(_claim(spec, pair), spec.claim.parameter))
            scores[pair] = -math.inf if proposal is None else proposal.score - allowed
        alive.sort(key=lambda pair: -scores[pair])
        stay = 1 if turn == rounds - 1 else -(-len(alive) // 2)
        status = f"dropped in screening round {turn + 1}"
        explored.extend(_pair_entry(spec, pair, status, scores[pair], pilots.pop(pair)) for pair in alive[stay:])
        alive = alive[:stay]
    explored.append(_pair_entry(spec, alive[0], "kept", scores[alive[0]], pilots[alive[0]]))
    return used


def _pair_entry(spec: AuditSpec, pair: int, status: str, score: float, pilot: Pilot) -> Explored:
    name = str(spec.pairs[pair].name)
    runs = pilot.first.runs + pilot.second.runs
    return Explored("pair", name, status, None if score == -math.inf else round(score, 6), runs)


def _propose(pilot: Pilot, goal: Goal) -> Proposal | None:
    chosen = plan(pilot, goal)
    return best(chosen, pilot_counts(chosen, pilot), goal)


def _extend(
    spec: AuditSpec, session: Session, pair: int, runs: int, started: dict[int, int], pilots: dict[int, Pilot]
) -> int:
    """Adds up to `runs` outputs to a pair's pilot, which never outgrows its bound; returns the runs made."""
    held = pilots.get(pair)
    room = PILOT_RUNS - (0 if held is None else held.first.runs + held.second.runs)
    runs = min(max(runs, 2), room)
    if runs <= 0:
        return 0
    work = _next_shards(spec, pair, runs, started, PILOT_SHARD)
    fresh = session.pilot(work)
    pilots[pair] = (
        fresh
        if held is None
        else Pilot(concatenate([held.first, fresh.first]), concatenate([held.second, fresh.second]))
    )
    return runs


def _next_shards(spec: AuditSpec, pair: int, runs: int, started: dict[int, int], largest: int) -> list[Shard]:
    assert spec.shard_runs is not None
    start = started.get(pair, 0)
    work = shards(Stage.SEARCH, pair, runs, min(spec.shard_runs, largest), start=start)
    started[pair] = start + len(work)
    return work


def _look_closely(
    spec: AuditSpec,
    session: Session,
    goal: Goal,
    pair: int,
    budget: int,
    started: dict[int, int],
    held: Pilot | None,
    explored: list[Explored],
) -> tuple[Proposal, int]:
    """A pilot to choose features on, then counts of the best of them over the rest of the search."""
    assert spec.shard_runs is not None
    pilots = {} if held is None else {pair: held}
    used = _extend(spec, session, pair, int(PILOT_PART * budget), started, pilots)
    pilot = pilots[pair]
    chosen = plan(pilot, goal)
    counts = pilot_counts(chosen, pilot)
    if budget > used:
        counts = counts + session.counts(
            _next_shards(spec, pair, budget - used, started, spec.shard_runs), chosen.tables
        )
    found = best(chosen, counts, goal) or everything(pilot)
    for name, score in chosen.looked_at[:SHOWN]:
        explored.append(Explored("feature", name, "looked at", None if score is None else round(score, 6)))
    if len(chosen.looked_at) > SHOWN:
        explored.append(
            Explored("feature", f"{len(chosen.looked_at) - SHOWN} more features", "looked at, scored lower")
        )
    explored.extend(Explored("feature", name, f"left out: {why}") for name, why in chosen.left_out)
    return found, max(budget, used)
