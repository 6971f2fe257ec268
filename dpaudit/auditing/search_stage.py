"""Search: screen the pairs, look closely at the best, and propose a witness for each. None of its runs certifies."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dpaudit.auditing.clock import Clock, cut
from dpaudit.auditing.question import Plan, frozen
from dpaudit.base.validate import error_probability
from dpaudit.errors import OutOfTime
from dpaudit.execution.engine import Session
from dpaudit.options import SELECTOR
from dpaudit.outputs.canonical import Pilot
from dpaudit.results.certification import Witness
from dpaudit.results.observations import Explored
from dpaudit.results.result import screening_share
from dpaudit.search.goal import FEWEST_HITS, Goal
from dpaudit.search.look import PILOT_RUNS, SEARCH_SHARE, SHOWN, Candidate, Look, excess, looked_at
from dpaudit.search.selection import Proposal

ROUND = 0.7  # of the runs of a round are those of the next
FEWEST_SEEN = 32  # runs of a pair that is dropped: of fewer not even outputs that are all apart make an event
HELD = 1 << 20  # outputs of all pairs held at a time while they are screened
FEWEST_HELD = 1 << 9  # of one pair, however many there are


@dataclass(frozen=True, slots=True)
class Budget:
    """The runs of the stages: to screen the pairs, to look closely at all that are kept, to certify each of these."""

    screening: int
    searching: int
    certifying: int


def budget(plan: Plan, *, spent: int = 0) -> Budget:
    """How an audit with fixed stopping divides its runs; `spent` of them are gone already, on the probe.

    `search_share` is a part of what screening leaves; where it is open, about as much as searches: how
    much is found on the way.
    """
    witnesses = plan.certify_pairs
    screening = int(screening_share(len(plan.pairs), witnesses) * plan.runs)
    searching = int((plan.search_share or SEARCH_SHARE) * (plan.runs - screening))
    return Budget(screening, searching, max(0, plan.runs - spent - screening - searching) // witnesses)


def goal(plan: Plan, pair: int, certifying: int) -> Goal:
    """What an event of this pair is for: `certifying` runs, at the confidence that one certificate has."""
    return goal_at(plan, plan.pairs[pair].distance, certifying)


def goal_at(plan: Plan, distance: int, certifying: int) -> Goal:
    """The same for a pair `distance` steps apart; where bins cannot certify what the claim says there, for an event."""
    claim = plan.claim.at_distance(distance)
    certifier = plan.certifier.at(claim)
    return Goal(claim, certifying, error_probability(plan.level), certifier.coins, certifier.bins)


@dataclass(frozen=True, slots=True)
class Screened:
    """The looks at the pairs that were kept, the best first, the runs it took, and what happened to every pair."""

    looks: tuple[Look, ...]
    runs: int
    explored: tuple[Explored, ...]


def screen(plan: Plan, session: Session, *, runs: int, certifying: int) -> Screened:
    """Keeps the best `certify_pairs` of the pairs, by successive halving on `runs` search runs.

    Each round shares its runs among the pairs left, and the better half stays (Karnin, Koren & Somekh 2013); runs of
    earlier rounds count again. The first rounds get more runs than the last ones, because that is where a pair is
    judged by few of them. A pair's score is the `excess` of its best event, at the `cautious` goal.
    """
    goals = [goal(plan, pair, certifying) for pair in range(len(plan.pairs))]
    sizes = {"shard_runs": plan.shard_runs, "least_shard": plan.least_shard}
    looks = [Look(session, pair, goals[pair], **sizes) for pair in range(len(plan.pairs))]
    witnesses = plan.certify_pairs
    if len(looks) <= witnesses:
        return Screened(tuple(looks), 0, ())
    explored: list[Explored] = []
    scores = dict.fromkeys(range(len(looks)), -math.inf)
    left, enough = runs, runs >= 2 * FEWEST_HITS * len(looks)  # else some pairs are seen, and the others not
    with session.stage("screen", runs):
        for turn, part in enumerate(_rounds(len(looks), witnesses)):
            share = int(left * part) // len(looks)
            room = PILOT_RUNS if len(looks) * PILOT_RUNS <= HELD else max(FEWEST_HELD, HELD // len(looks))
            for look in looks:
                before = look.now.runs
                with suppress(OutOfTime):  # each later call ends at once, and what was seen decides
                    runs_made = look.hold(share, room=room)
                    # once a pair's outputs are as many as are held of any, the rest is counted
                    if look.now.runs >= PILOT_RUNS:
                        look.count(share - runs_made)
                left -= look.now.runs - before
                look.aim(cautious(goals[look.pair], look.now.runs, len(plan.pairs)))
            unseen = [look for look in looks if not look.now.runs]  # nothing is known of them
            explored.extend(_entry(plan, look, "max_time_s left no time for it", -math.inf) for look in unseen)
            looks = [look for look in looks if look.now.runs]
            if not looks:
                raise OutOfTime
            for look in looks:
                with suppress(OutOfTime):  # the score of the round before stays
                    scores[look.pair] = excess(plan.claim, plan.pairs[look.pair].distance, look.proposal())
            # where nothing is beyond the claim yet, the pair that recorded noise suspects is looked at on
            looks.sort(key=lambda look: (-max(scores[look.pair], 0.0), look.pair != plan.leading, -scores[look.pair]))
            if part < 1.0 and enough and min(look.now.runs for look in looks) < FEWEST_SEEN:
                continue
            stay = witnesses if part == 1.0 else max(witnesses, -(-len(looks) // 2))
            explored.extend(
                _entry(plan, look, f"dropped in screening round {turn + 1}", scores[look.pair]) for look in looks[stay:]
            )
            looks = looks[:stay]
    explored.extend(_entry(plan, look, "kept", scores[look.pair]) for look in looks)
    for look in looks:
        look.aim(goals[look.pair])
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


def _rounds(pairs: int, witnesses: int) -> Sequence[float]:
    """For each round, its part of the runs that are still there.

    >>> [round(part, 3) for part in _rounds(8, 1)]
    [0.457, 0.588, 1.0]
    """
    rounds = max(1, math.ceil(math.log2(pairs / witnesses)))
    weights = [ROUND**turn for turn in range(rounds)]
    return [weight / sum(weights[turn:]) for turn, weight in enumerate(weights)]


def _entry(plan: Plan, look: Look, status: str, score: float) -> Explored:
    name = str(plan.pairs[look.pair].name)
    return Explored("pair", name, status, None if score == -math.inf else round(score, 6), look.now.runs)


FEW_TEXTS = 64  # outputs, for their being all different to tell anything


@dataclass(frozen=True, slots=True)
class FoundWitness:
    """What search hands on: a witness for each pair that is certified, the best first, and what it looked at.

    Beside a witness that nobody can read stands the best `plain` one, None beside others.
    `pilots` holds the outputs of the same pairs that search held, `runs` counts all search runs.
    """

    witnesses: tuple[Witness, ...]
    plain: tuple[Witness | None, ...]
    pilots: tuple[Pilot, ...]
    runs: int
    explored: tuple[Explored, ...]

    @property
    def witness(self) -> Witness:
        """The best witness, by the search's own uncertified score."""
        return self.witnesses[0]


def find_witness(plan: Plan, session: Session, *, spent: int, clock: Clock | None = None) -> FoundWitness:
    """The witnesses of the best `certify_pairs` pairs; `spent` runs are gone already, on the probe.

    Each has a close look of its own, on an equal part of the runs (`Look.close`; fewer where the clock says so), and is
    chosen for what that leaves to certify and an equal part of the error probability. Events are looked for with either
    dataset as the likelier one; the witness names it, and only that direction is certified.
    """
    shares, clock = budget(plan, spent=spent), clock or Clock()
    screened = screen(plan, session, runs=shares.screening, certifying=shares.certifying)
    explored, before = screened.explored, sum(look.now.runs for look in screened.looks)
    pool = shares.searching // len(screened.looks) + shares.certifying
    with session.stage("search", shares.searching):
        for place, look in enumerate(screened.looks):
            others = (len(screened.looks) - place - 1) * pool
            short: list[Explored] = []
            fitted = partial(_fitting, clock, session, others, short)
            share = SEARCH_SHARE if look.now.goal.bins else None  # what bins are worth is not told by one event
            try:
                look.close(pool, plan.search_share or share, fitted)
            except OutOfTime:  # what was seen is what there is
                early = f"search ended after {look.now.runs:,} runs of a pair"
                explored = (*explored, Explored("time", "max_time_s", early))
            explored = (*explored, *short)
    looks = [look for look in screened.looks if look.now.runs]
    if not looks:
        raise OutOfTime
    proposals = [(look, look.now.last(proposed(look, clock))) for look in looks]
    proposals.sort(key=lambda each: -excess(plan.claim, plan.pairs[each[0].pair].distance, each[1]))
    if any(look.now.hurried for look in looks):
        explored = (*explored, Explored("time", "max_time_s", "left no time to learn all scores"))
    for look, _ in proposals:
        explored = (*explored, *_features(look, f"{plan.pairs[look.pair].name}: " if len(proposals) > 1 else ""))
    witnesses = tuple(frozen(plan, look.pair, proposal, SELECTOR) for look, proposal in proposals)
    parts = [each.part if isinstance(each, Proposal) else None for _, each in proposals]
    return FoundWitness(
        witnesses,
        tuple(
            # at the delta of the witness, so that both bounds are of one number
            None if part is None else replace(frozen(plan, each.pair, part, SELECTOR), tangent=each.tangent)
            for each, part in zip(witnesses, parts, strict=True)
        ),
        tuple(look.now.shown for look, _ in proposals),
        screened.runs - before + sum(look.now.runs for look in looks),
        explored,
    )


def proposed(look: Look, clock: Clock) -> Candidate | None:
    """The best event of a look at the end of its search; where there is no time to find it, of what was counted."""
    try:
        look.choose()  # if it had not come to that
        return look.proposal()
    except OutOfTime:
        clock.limits(look.session.engine)
        return look.hasty()


def _fitting(clock: Clock, session: Session, others: int, short: list[Explored], wanted: int) -> int:
    """How many of the runs of a pair there is time for, where those of others come after; `short` hears of fewer."""
    both = wanted + others
    fits = wanted * clock.fitting(both, session) // both if both else wanted
    if fits < wanted:
        short.append(cut(f"{fits:,} runs to search and to certify with", wanted))
    return fits


def _features(look: Look, prefix: str) -> list[Explored]:
    """What was looked at closely; under the name of its pair where there are several."""
    entries = looked_at(look.now.plan, prefix)
    more = len(look.now.plan.looked_at) - SHOWN
    if more > 0:
        entries.append(Explored("feature", f"{prefix}{more} more features", "looked at, scored lower"))
    runs = look.now.pilot.runs
    if kind := all_different(look.now.pilot):
        why = f"no output came twice in {runs:,} search runs: events on whole {kind}s had nothing to count"
        entries.append(Explored("feature", f"{prefix}whole {kind}", why))
    return entries


def all_different(pilot: Pilot) -> str:
    """What outputs are that are no numbers, no two of them alike: "text" (or bytes) or "exception"; else nothing."""
    sides = (pilot.first, pilot.second)
    codes = np.concatenate([side.column(()).tokens for side in sides])
    if not codes.all() or not len(np.unique(codes)) == len(codes) >= FEW_TEXTS:
        return ""
    labels = {**pilot.first.labels, **pilot.second.labels}
    return "exception" if any(labels[code].startswith("raised ") for code in codes.tolist()) else "text"
