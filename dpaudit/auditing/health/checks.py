"""Whether the experiment was sound: named checks that runs are independent, together at a fixed false-alarm level.

A check can only end an audit without a verdict; it never changes a number. All the p-values come from
`certify.independence`, where none is approximated; the level is divided equally among the checks, and within a
check among its tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.auditing.health.pilot import constants, ordered, pilot_looks, pilot_prints
from dpaudit.certify import independence
from dpaudit.errors import UnsoundAudit
from dpaudit.sampling import Outputs, Pilot
from dpaudit.sampling.watch import Looked

LEAST = 1e-300
LEVEL = 1e-6  # the chance that a sound audit of any mechanism is stopped by any check
BETWEEN = "over-dispersion between shards"
CURES = {
    "repeated streams": "draw from the rng argument or from the system's entropy, never from a generator that is "
    "seeded on import, copied to each worker or shared through a fork; or use n_jobs=1",
    "constant outputs": "draw fresh noise in every call: take the cache off, or make its key new for every run",
    "serial dependence": "draw fresh noise in every call, and keep nothing of one call for the next",
    "state between calls": "keep nothing of one dataset for the next call: make the mechanism's object anew each time",
    "drift inside a shard": "let no counter, budget or growing state change what a call does; make it anew in each run",
    "drift over shards": "let no counter, budget or growing state change what a call does; make it anew in each run",
    BETWEEN: "draw from the rng argument; let no worker keep a seed or a draw of its own",
}
CHECKS = tuple(CURES)


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its p-value under independent runs (as log10, rounded up), the level it alarms at, what it saw.

    `finding` and `cure` are empty where there is no alarm.
    """

    name: str
    log10_p: float
    level: float
    finding: str = ""
    cure: str = ""

    @property
    def p_value(self) -> float:
        """The p-value, at least 1e-300."""
        return max(LEAST, 10.0**self.log10_p) if self.log10_p > -300.0 else LEAST

    @property
    def alarm(self) -> bool:
        """Whether the runs are not independent."""
        return self.p_value <= self.level

    def to_dict(self) -> dict[str, Any]:
        """The check as results store it."""
        return {
            "name": self.name,
            "log10_p": self.log10_p,
            "level": self.level,
            "finding": self.finding,
            "cure": self.cure,
        }


@dataclass(frozen=True, slots=True)
class Health:
    """All checks of an audit, and notes that are no failures."""

    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def alarms(self) -> tuple[Check, ...]:
        """The checks that alarm, the strongest first."""
        return tuple(sorted((check for check in self.checks if check.alarm), key=lambda check: check.log10_p))

    @property
    def sound(self) -> bool:
        """Whether no check alarms."""
        return not self.alarms

    def raise_if_unsound(self) -> Health:
        """Itself; raises `UnsoundAudit` naming the checks that alarm, the worst with numbers and cure, in one line."""
        if self.sound:
            return self
        worst, *more = self.alarms
        also = f"; also {', '.join(check.name for check in more)}" if more else ""
        cures = dict.fromkeys(check.cure for check in (worst, *more[:1]))
        raise UnsoundAudit(
            f"{worst.name}: {worst.finding} (p-value {worst.p_value:.1e}, level {worst.level:.1e}){also}; "
            f"runs that depend on each other give no verdict; {'; or '.join(cures)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The checks as results store them."""
        return {"checks": [check.to_dict() for check in self.checks], "notes": list(self.notes)}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Health:
        """The checks of a stored result."""
        return cls(tuple(Check(**check) for check in stored["checks"]), tuple(stored["notes"]))


@dataclass(frozen=True, slots=True)
class Seen:
    """What a test saw: ln of its p-value, and the words for it."""

    log_p: float
    finding: str


NOTHING = Seen(0.0, "")


@dataclass(frozen=True, slots=True)
class Twins:
    """Shards made in fresh processes; `spread` where the runs of the audit were spread over processes too."""

    pilot: Pilot
    spread: bool

    @property
    def runs(self) -> int:
        """All runs of the shards."""
        return len(self.pilot.sides)


def judge(
    pilot: Pilot | None,
    watched: Sequence[Looked] = (),
    *,
    pairs: int = 1,
    twins: Twins | None = None,
    processes: Sequence[Seen] = (),
    ends: int = 1,
    level: float = LEVEL,
) -> Health:
    """The checks of an audit, each at an equal part of the level.

    `pilot` holds the search outputs of the chosen one of `pairs` pairs, `watched` what `Watch.read` gives for each
    certified witness or block, in the order in which they ran. `twins` come from `compare_twins`,
    `processes` is what `run_processes` saw for each certified witness. `ends` counts the points at which the audit
    could have ended: which of them it was may depend on the very order that is judged, so they share the level.

    Half of a check's level is the pilot's, over all pairs, for the best of them is chosen by its outputs; half is
    that of the certifying runs, 1 / (g (g + 1)) of it for group g, whose number may depend on those before it.
    """
    searched = _joined(pilot)
    looks = [] if searched is None else pilot_looks(searched)
    seen = {
        name: [_of_pilot([test(look) for look in looks], pairs), _of_groups([test(look) for look in watched])]
        for name, test in TESTS.items()
    }
    names = [f"shard {k}" for k in range(len(searched.sizes) if searched is not None else 0)]
    names += ["fresh process 1", "fresh process 2"]
    if twins is not None:
        apart = pilot_looks(_joined(pilot, twins.pilot) or twins.pilot)
        seen[BETWEEN][0] = _of_pilot([_between(look, names) for look in apart], pairs)
    held = _joined(pilot, twins.pilot if twins is not None and twins.spread else None)
    seen["repeated streams"] = [
        _of_pilot([] if held is None else [_repeated(pilot_prints(held), names)], pairs),
        _of_groups([_again(held, look, names) for look in watched]),
    ]
    seen["constant outputs"] = list(processes) or [NOTHING]
    notes = () if pilot is None else _notes(pilot)
    return Health(tuple(_check(name, seen[name], level / len(CHECKS), ends) for name in CHECKS), notes)


def _joined(*parts: Pilot | None) -> Pilot | None:
    """Pilots that know the order of their runs, one after the other."""
    known = [part for part in parts if part is not None and ordered(part)]
    return Pilot.joined(known) if known else None


def _check(name: str, parts: list[Seen], level: float, ends: int) -> Check:
    worst = min(parts, key=lambda part: part.log_p)
    log10_p = min(0.0, math.ceil(1e3 * (worst.log_p + math.log(len(parts) * ends)) / math.log(10.0)) / 1e3)
    found = Check(name, log10_p, level)
    return replace(found, finding=worst.finding, cure=CURES[name]) if found.alarm else found


def _of_pilot(found: list[Seen], pairs: int) -> Seen:
    worst = min(found, key=lambda each: each.log_p, default=NOTHING)
    log_p = worst.log_p + math.log(max(1, len(found)) * pairs)
    return Seen(min(0.0, log_p), f"{worst.finding}, in the search runs")


def _of_groups(found: list[Seen]) -> Seen:
    """The parts of all groups sum to at most 1, so that theirs is one p-value."""
    parts = [(each.log_p + math.log(place * (place + 1)), each.finding) for place, each in enumerate(found, start=1)]
    log_p, finding = min(parts, default=(0.0, ""))
    return Seen(min(0.0, log_p), f"{finding}, in the certifying runs")


def _notes(pilot: Pilot) -> tuple[str, ...]:
    if pilot.unseen:
        return ()  # entries that were not looked at may differ
    found = constants(pilot)
    if found.equal:
        return ("every search run on both datasets gave one and the same output; a constant tells nothing of the data",)
    sides = [("first", pilot.first)] * found.first + [("second", pilot.second)] * found.second
    return tuple(f"every search run on the {name} dataset {_alike(side)}" for name, side in sides)


def _alike(side: Outputs) -> str:
    """What the equal outputs of a side have in common; of exceptions only the type was compared."""
    label = side.labels.get(int(side.column(()).tokens[0]), "")
    return label if label.startswith("raised ") else "gave one and the same output"


# --- the tests ----------------------------------------------------------------------------------------------------


def _again(held: Pilot | None, look: Looked, names: list[str]) -> Seen:
    """Shards of the certifying runs against each other and against those of the search."""
    here = look.prints[look.prints.any(axis=1)]
    before = here[:0] if held is None else pilot_prints(held, look.wanted)
    known = [name.replace("shard", "search shard") for name in names[: len(before)]]
    return _repeated(np.concatenate([before, here]), [*known, *(f"shard {k}" for k in range(len(here)))], len(known))


def _repeated(prints: npt.NDArray[np.uint64], names: list[str], known: int = 0) -> Seen:
    log_p, (one, other) = independence.repeats(prints, known)
    where = f"{names[one]} and {names[other]}" if log_p < 0.0 else "two shards"
    return Seen(log_p, f"{where} gave the same outputs in the same order")


def _serial(look: Looked) -> Seen:
    tables = _tables(look)
    total = np.sum(tables, axis=0)
    after = [
        _rate(total[[1, 3]][:, [1, 3]].sum(), total[[1, 3]].sum()),
        _rate(total[[0, 2]][:, [1, 3]].sum(), total[[0, 2]].sum()),
    ]
    return Seen(
        independence.after_hits(tables),
        f"a run is a hit in {after[0]} of cases after a hit and in {after[1]} after none",
    )


def _state(look: Looked) -> Seen:
    tables = _tables(look)
    total = np.sum(tables, axis=0)
    rates = [_rate(total[rows][:, [1, 3]].sum(), total[rows].sum()) for rows in ([0, 1], [2, 3])]
    return Seen(
        independence.after_sides(tables),
        f"a run is a hit in {rates[0]} after one on the first dataset and in {rates[1]} after one on the second",
    )


def _inside(look: Looked) -> Seen:
    hits, runs = look.hits.sum(axis=0), look.runs.sum(axis=0)
    rates = ", ".join(_rate(h, n) for h, n in zip(hits.sum(axis=1), runs.sum(axis=1), strict=True))
    return Seen(independence.drift(hits, runs), f"the rate of hits moves inside a shard, by quarters {rates}")


def _over(look: Looked) -> Seen:
    hits, runs = look.hits.sum(axis=1), look.runs.sum(axis=1)
    eighths = [part for part in np.array_split(np.arange(len(runs)), 8) if len(part)]
    rates = ", ".join(_rate(hits[part].sum(), runs[part].sum()) for part in eighths)
    return Seen(independence.drift(hits, runs), f"the rate of hits moves over the shards, from part to part {rates}")


def _between(look: Looked, names: Sequence[str] = ()) -> Seen:
    hits, runs = look.hits.sum(axis=1), look.runs.sum(axis=1)
    log_p, shard = independence.outlier(hits, runs)
    mine, all_ = (int(hits[shard].sum()), int(runs[shard].sum())), (int(hits.sum()), int(runs.sum()))
    return Seen(
        log_p,
        f"{names[shard] if names else f'shard {shard}'} has {mine[0]:,} hits in {mine[1]:,} runs, "
        f"all others {all_[0] - mine[0]:,} in {all_[1] - mine[1]:,}",
    )


def _tables(look: Looked) -> list[Any]:
    return [*independence.pairings(look.quads), *(calls.reshape(4, 4).T for calls in look.calls)]


def _rate(hits: Any, runs: Any) -> str:
    return f"{100.0 * float(hits) / max(1, int(runs)):.3g} %"


TESTS: dict[str, Callable[[Looked], Seen]] = {
    "serial dependence": _serial,
    "state between calls": _state,
    "drift inside a shard": _inside,
    "drift over shards": _over,
    BETWEEN: _between,
}
