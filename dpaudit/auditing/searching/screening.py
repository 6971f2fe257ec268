"""Screening: successive halving of the pairs on search runs, and how the runs of an audit are divided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from dpaudit.auditing.searching.look import PILOT_RUNS, Look, excess
from dpaudit.auditing.spec import SEARCH_SHARE, ResolvedSpec
from dpaudit.certify.certificate import error_probability
from dpaudit.errors import OutOfTime
from dpaudit.events.search import Goal
from dpaudit.results.beside import Explored
from dpaudit.results.question import screening_share
from dpaudit.sampling import Session

ROUND = 0.7  # of the runs of a round are those of the next
HELD = 1 << 20  # outputs of all pairs held at a time while they are screened
FEWEST_HELD = 1 << 9  # of one pair, however many there are


@dataclass(frozen=True, slots=True)
class Budget:
    """The runs of the stages: to screen the pairs, to look closely at all that are kept, to certify each of these."""

    screening: int
    searching: int
    certifying: int


def budget(spec: ResolvedSpec, *, spent: int = 0) -> Budget:
    """How an audit with fixed stopping divides its runs; `spent` of them are gone already, on the probe.

    `search_share` is a part of what screening leaves; where it is open, about as much as searches: how
    much is found on the way.
    """
    kept = spec.certify_pairs
    screening = int(screening_share(len(spec.pairs), kept) * spec.runs)
    searching = int((spec.search_share or SEARCH_SHARE) * (spec.runs - screening))
    return Budget(screening, searching, max(0, spec.runs - spent - screening - searching) // kept)


def goal(spec: ResolvedSpec, pair: int, certifying: int) -> Goal:
    """What an event of this pair is for: `certifying` runs, at the confidence that one certificate has."""
    return goal_at(spec, spec.pairs[pair].distance, certifying)


def goal_at(spec: ResolvedSpec, distance: int, certifying: int) -> Goal:
    """The same for a pair `distance` steps apart; where bins cannot certify what the claim says there, for an event."""
    claim = spec.claim.at_distance(distance)
    certifier = spec.certifier.at(claim)
    return Goal(claim, certifying, error_probability(spec.level), certifier.coins, certifier.bins)


@dataclass(frozen=True, slots=True)
class Screened:
    """The looks at the pairs that were kept, the best first, the runs it took, and what happened to every pair."""

    looks: tuple[Look, ...]
    runs: int
    explored: tuple[Explored, ...]


def screen(spec: ResolvedSpec, session: Session, *, runs: int, certifying: int) -> Screened:
    """Keeps the best `certify_pairs` of the pairs, by successive halving on `runs` search runs.

    Each round shares its runs among the pairs left, and the better half stays (Karnin, Koren & Somekh 2013); runs of
    earlier rounds count again. The first rounds get more runs than the last ones, because that is where a pair is
    judged by few of them. A pair's score is the `excess` of its best event, at the `cautious` goal.
    """
    goals = [goal(spec, pair, certifying) for pair in range(len(spec.pairs))]
    looks = [Look(session, pair, goals[pair], shard_runs=spec.shard_runs) for pair in range(len(spec.pairs))]
    kept = spec.certify_pairs
    if len(looks) <= kept:
        return Screened(tuple(looks), 0, ())
    explored: list[Explored] = []
    left = runs
    with session.stage("screen", runs):
        for turn, part in enumerate(_rounds(len(looks), kept)):
            share = int(left * part) // len(looks)
            room = PILOT_RUNS if len(looks) * PILOT_RUNS <= HELD else max(FEWEST_HELD, HELD // len(looks))
            for look in looks:
                before = look.runs
                with suppress(OutOfTime):  # each later call ends at once, and what was seen decides
                    made = look.hold(share, room=room)
                    # once a pair's outputs are as many as are held of any, the rest is counted
                    if look.runs >= PILOT_RUNS:
                        look.count(share - made)
                left -= look.runs - before
                look.goal = cautious(goals[look.pair], look.runs, len(spec.pairs))
            if not all(look.runs for look in looks):  # of others nothing is known
                unseen = [look for look in looks if not look.runs]
                explored.extend(_entry(spec, look, "max_time_s left no time for it", -math.inf) for look in unseen)
                looks = [look for look in looks if look.runs]
                if not looks:
                    raise OutOfTime
            scores = {look.pair: excess(spec.claim, spec.pairs[look.pair].distance, look.proposal()) for look in looks}
            looks.sort(key=lambda look: -scores[look.pair])
            stay = max(kept, -(-len(looks) // 2))
            explored.extend(
                _entry(spec, look, f"dropped in screening round {turn + 1}", scores[look.pair]) for look in looks[stay:]
            )
            looks = looks[:stay]
    explored.extend(_entry(spec, look, "kept", scores[look.pair]) for look in looks)
    for look in looks:
        look.goal = goals[look.pair]
    return Screened(tuple(looks), runs - left, tuple(explored))


def cautious(end: Goal, seen: int, pairs: int) -> Goal:
    """The goal by which one of `pairs` pairs is judged after `seen` search runs: distrust of the luckiest of them.

    Beyond the luck that every search takes off for having many events to choose from, the bound is predicted as if
    it had to be certified by the runs seen, at an error probability of half a pair in all. So few runs make a pair
    look worse and never better, the more so the more pairs there are, and an event that was seen often is
    preferred. Where the certification itself takes more off (`end`), that is what counts.
    """
    from scipy.special import ndtri

    if seen <= 0:
        return end
    alpha = 0.5 / pairs
    luck, errors = (float(ndtri(level)) ** 2 / runs for level, runs in ((alpha, seen), (end.alpha, end.runs or 1)))
    return replace(end, runs=seen, alpha=alpha) if luck > errors else end


def _rounds(pairs: int, kept: int) -> Sequence[float]:
    """For each round, its part of the runs that are still there.

    >>> [round(part, 3) for part in _rounds(8, 1)]
    [0.457, 0.588, 1.0]
    """
    rounds = max(1, math.ceil(math.log2(pairs / kept)))
    weights = [ROUND**turn for turn in range(rounds)]
    return [weight / sum(weights[turn:]) for turn, weight in enumerate(weights)]


def _entry(spec: ResolvedSpec, look: Look, status: str, score: float) -> Explored:
    name = str(spec.pairs[look.pair].name)
    return Explored("pair", name, status, None if score == -math.inf else round(score, 6), look.runs)
