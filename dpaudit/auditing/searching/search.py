"""Search: screen the pairs, look closely at the best, and propose a witness for each. None of its runs certifies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpaudit.auditing.clock import Clock, cut
from dpaudit.auditing.freezing import frozen
from dpaudit.auditing.searching.look import SHOWN, Look, excess, held, looked_at
from dpaudit.auditing.searching.screening import budget, screen
from dpaudit.auditing.spec import SEARCH_SHARE, SELECTOR, ResolvedSpec
from dpaudit.errors import OutOfTime
from dpaudit.outputs import Pilot
from dpaudit.results.beside import Explored
from dpaudit.results.witness import Witness
from dpaudit.sampling import Session

FEW_TEXTS = 64  # outputs, for their being all different to tell anything


@dataclass(frozen=True, slots=True)
class FoundWitness:
    """What search hands on: a witness for each pair that is certified, the best first, and what it looked at.

    `pilots` holds the outputs of the same pairs that search held, `runs` counts all search runs.
    """

    witnesses: tuple[Witness, ...]
    pilots: tuple[Pilot, ...]
    runs: int
    explored: tuple[Explored, ...]

    @property
    def witness(self) -> Witness:
        """The best witness, by the search's own uncertified score."""
        return self.witnesses[0]


def find_witness(spec: ResolvedSpec, session: Session, *, spent: int, clock: Clock | None = None) -> FoundWitness:
    """The witnesses of the best `certify_pairs` pairs; `spent` runs are gone already, on the probe.

    Each has a close look of its own, on an equal part of the runs (`Look.close`; fewer where the clock says so), and is
    chosen for what that leaves to certify and an equal part of the error probability. Events are looked for with either
    dataset as the likelier one; the witness names it, and only that direction is certified.
    """
    plan = budget(spec, spent=spent)
    screened = screen(spec, session, runs=plan.screening, certifying=plan.certifying)
    made, explored = 0, screened.explored
    pool = plan.searching // len(screened.looks) + plan.certifying
    with session.stage("search", plan.searching):
        for place, look in enumerate(screened.looks):
            others = (len(screened.looks) - place - 1) * pool
            fitted = _Fitted(clock, session, others)
            share = SEARCH_SHARE if look.goal.bins else None  # what bins are worth is not told by one event
            before = look.runs
            try:
                look.close(pool, spec.search_share or share, fitted)
            except OutOfTime:  # what was seen is what there is
                early = f"search ended after {look.runs:,} runs of a pair"
                explored = (*explored, Explored("time", "max_time_s", early))
            made += look.runs - before
            if fitted.short:
                explored = (*explored, cut(f"{fitted.fits:,} runs to search and to certify with", fitted.wanted))
    looks = [look for look in screened.looks if look.runs]
    if not looks:
        raise OutOfTime
    for look in looks:
        look.choose()  # if it had not come to that
    found = [(look, look.proposal() or look.last_resort()) for look in looks]
    found.sort(key=lambda each: -excess(spec.claim, spec.pairs[each[0].pair].distance, each[1]))
    for look, _ in found:
        explored = (*explored, *_features(look, f"{spec.pairs[look.pair].name}: " if len(found) > 1 else ""))
    return FoundWitness(
        tuple(frozen(spec, look.pair, proposal, SELECTOR) for look, proposal in found),
        tuple(look.shown for look, _ in found),
        screened.runs + made,
        explored,
    )


class _Fitted:
    """How many of the runs of a pair there is time for, where those of others come after."""

    def __init__(self, clock: Clock | None, session: Session, others: int) -> None:
        self.clock, self.session, self.others = clock, session, others
        self.wanted = self.fits = 0

    def __call__(self, wanted: int) -> int:
        self.wanted = self.fits = wanted
        if self.clock is not None:
            both = wanted + self.others
            self.fits = wanted * self.clock.fitting(both, self.session) // max(1, both)
        return self.fits

    @property
    def short(self) -> bool:
        """Whether not all of them fit."""
        return self.fits < self.wanted


def _features(look: Look, prefix: str) -> list[Explored]:
    """What was looked at closely; under the name of its pair where there are several."""
    assert look.plan is not None
    entries = looked_at(look.plan, prefix)
    more = len(look.plan.looked_at) - SHOWN
    if more > 0:
        entries.append(Explored("feature", f"{prefix}{more} more features", "looked at, scored lower"))
    runs = held(look.pilot)
    if kind := all_different(look.pilot):
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
