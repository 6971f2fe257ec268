"""Whether the experiment was sound: named checks that runs are independent, together at a fixed false-alarm level.

A check can only end an audit without a verdict; it never changes a number. All p-values are exact, of
`certify.independence`; the level is divided equally among the checks, and within a check among its tests.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpaudit.auditing.health.pilot import constants, looked_alike, ordered, pilot_looks, pilot_prints, pilot_series
from dpaudit.auditing.shown import kinds, notes
from dpaudit.base.arrays import Words
from dpaudit.certify import independence
from dpaudit.certify.evidence import Binned, CoinFlip
from dpaudit.errors import UnsoundAudit
from dpaudit.events import Event, Partition
from dpaudit.events.features import Whole
from dpaudit.outputs.canonical import Outputs, Pilot
from dpaudit.results.certification import AuditEvidence, Witness
from dpaudit.results.observations import BETWEEN, CHECKS, CURES, LEVEL, ONE_OUTPUT, SERIAL, VALUE, Check, Health
from dpaudit.running.order import Looked


@dataclass(frozen=True, slots=True)
class SeenBy:
    """What a test saw: ln of its p-value, and the words for it."""

    log_p: float
    finding: str


NOTHING = SeenBy(0.0, "")


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
    processes: Sequence[SeenBy] = (),
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
    recur = [] if searched is None else [_recurring(each) for each in pilot_series(searched)]
    if any(series is not NOTHING for series in recur):
        seen[SERIAL][0] = _either(seen[SERIAL][0], _of_pilot(recur, pairs))
    names = [f"shard {k}" for k in range(len(searched.sizes) if searched is not None else 0)]
    names += [f"fresh process {k}" for k in range(1, 1 + (0 if twins is None else len(twins.pilot.sizes)))]
    if twins is not None:
        apart = pilot_looks(_joined(pilot, twins.pilot) or twins.pilot)
        fresh = len(twins.pilot.sizes) if ordered(pilot) else 0
        seen[BETWEEN][0] = _of_pilot([_between(look, names, fresh) for look in apart], pairs)
    joint = _joined(pilot, twins.pilot if twins is not None and twins.spread else None)
    seen["repeated streams"] = [
        _of_pilot([] if joint is None else [_repeated(pilot_prints(joint), names)], pairs),
        _of_groups([_again(joint, look, names) for look in watched]),
    ]
    seen["constant outputs"] = list(processes) or [NOTHING]
    notes = () if pilot is None else _notes(pilot)
    return Health(tuple(_check(name, seen[name], level / len(CHECKS), ends) for name in CHECKS), notes)


def _joined(*parts: Pilot | None) -> Pilot | None:
    """Pilots that know the order of their runs, one after the other."""
    known = [part for part in parts if part is not None and ordered(part)]
    return Pilot.joined(known) if known else None


def _check(name: str, parts: list[SeenBy], level: float, ends: int) -> Check:
    worst = min(parts, key=lambda part: part.log_p)
    log10_p = min(0.0, math.ceil(1e3 * (worst.log_p + math.log(len(parts) * ends)) / math.log(10.0)) / 1e3)
    check = Check(name, log10_p, level)
    return replace(check, finding=worst.finding, cure=CURES[name]) if check.alarm else check


def _of_pilot(series: list[SeenBy], pairs: int) -> SeenBy:
    worst = min(series, key=lambda each: each.log_p, default=NOTHING)
    log_p = worst.log_p + math.log(max(1, len(series)) * pairs)
    return SeenBy(min(0.0, log_p), f"{worst.finding}, in the search runs")


def _of_groups(series: list[SeenBy]) -> SeenBy:
    """The parts of all groups sum to at most 1, so that theirs is one p-value."""
    parts = [(each.log_p + math.log(place * (place + 1)), each.finding) for place, each in enumerate(series, start=1)]
    log_p, finding = min(parts, default=(0.0, ""))
    return SeenBy(min(0.0, log_p), f"{finding}, in the certifying runs")


def _notes(pilot: Pilot) -> tuple[str, ...]:
    if pilot.unseen:
        return ()  # entries that were not looked at may differ
    constant = constants(pilot)
    if constant.equal:
        return (ONE_OUTPUT,)
    sides = [("first", pilot.first)] * constant.first + [("second", pilot.second)] * constant.second
    return tuple(f"every search run on the {name} dataset {_alike(side)}" for name, side in sides)


def _alike(side: Outputs) -> str:
    """What the equal outputs of a side have in common."""
    label = side.labels.get(int(side.column(()).tokens[0]), "")
    return label if label.startswith("raised ") else "gave one and the same output"


def _again(pilot: Pilot | None, look: Looked, names: list[str]) -> SeenBy:
    """Shards of the certifying runs against each other and against those of the search."""
    here = look.prints[look.prints.any(axis=1)]
    before = here[:0] if pilot is None else pilot_prints(pilot, look.wanted)
    known = [name.replace("shard", "search shard") for name in names[: len(before)]]
    return _repeated(np.concatenate([before, here]), [*known, *(f"shard {k}" for k in range(len(here)))], len(known))


def _repeated(prints: Words, names: list[str], known: int = 0) -> SeenBy:
    log_p, (one, other) = independence.repeats(prints, known)
    where = f"{names[one]} and {names[other]}" if log_p < 0.0 else "two shards"
    return SeenBy(log_p, f"{where} gave the same outputs in the same order")


def _serial(look: Looked) -> SeenBy:
    known = look.prints[look.prints != 0]
    series = [known[known & np.uint64(1) == side] for side in (0, 1)]
    words = "a run is a hit in {} of cases after a hit and in {} after none"
    return _either(_after(look, independence.after_hits, ([1, 3], [0, 2]), words), _recurring(series))


def _either(*parts: SeenBy) -> SeenBy:
    """Tests at equal parts of the level; that there is nothing to test is known without a look at the order."""
    some = [part for part in parts if part is not NOTHING]
    worst = min(some, key=lambda each: each.log_p, default=NOTHING)
    return SeenBy(min(0.0, worst.log_p + math.log(max(1, len(some)))), worst.finding)


def _recurring(series: Sequence[Words]) -> SeenBy:
    """The values of each side in the order of its runs; the mean of e-values is one."""
    from scipy.special import logsumexp

    every = [table for table in map(independence.recurrences, series) if table.any()]
    if not every:
        return NOTHING
    most = max(every, key=np.max)
    row, column = np.unravel_index(int(most.argmax()), most.shape)
    log_e = float(logsumexp(np.concatenate([table.ravel() for table in every])) - math.log(sum(t.size for t in every)))
    often = "more" if independence.ODDS[column] > 1.0 else "less"
    within = 4 ** (int(row) + 1)
    finding = f"outputs come up again within {within:,} runs of their dataset {often} often than in a random order"
    return SeenBy(min(0.0, -log_e), finding)


def _state(look: Looked) -> SeenBy:
    words = "a run is a hit in {} after one on the first dataset and in {} after one on the second"
    return _after(look, independence.after_sides, ([0, 1], [2, 3]), words)


def _after(look: Looked, test: Callable[[list[Any]], float], groups: tuple[list[int], list[int]], words: str) -> SeenBy:
    """A test of what follows a run, with the rates of hits after runs of the one group of rows and of the other."""
    tables = [*independence.pairings(look.quads), *(calls.reshape(4, 4).T for calls in look.calls)]
    total = np.sum(tables, axis=0)
    rates = [_rate(total[rows][:, [1, 3]].sum(), total[rows].sum()) for rows in groups]
    return SeenBy(test(tables), words.format(*rates))


def _inside(look: Looked) -> SeenBy:
    hits, runs = look.hits.sum(axis=0), look.runs.sum(axis=0)
    rates = ", ".join(_rate(h, n) for h, n in zip(hits.sum(axis=1), runs.sum(axis=1), strict=True))
    return SeenBy(independence.drift(hits, runs), f"the rate of hits moves inside a shard, by quarters {rates}")


def _over(look: Looked) -> SeenBy:
    hits, runs = look.hits.sum(axis=1), look.runs.sum(axis=1)
    eighths = [part for part in np.array_split(np.arange(len(runs)), 8) if len(part)]
    rates = ", ".join(_rate(hits[part].sum(), runs[part].sum()) for part in eighths)
    return SeenBy(independence.drift(hits, runs), f"the rate of hits moves over the shards, from part to part {rates}")


def _between(look: Looked, names: Sequence[str] = (), fresh: int = 0) -> SeenBy:
    """One part with another rate, or rates that spread; of runs in `fresh` processes, the rest is one process."""
    hits, runs = look.hits.sum(axis=1), look.runs.sum(axis=1)
    log_p, shard = independence.outlier(hits, runs)
    mine, all_ = (int(hits[shard].sum()), int(runs[shard].sum())), (int(hits.sum()), int(runs.sum()))
    alone = (
        f"{names[shard] if names else f'shard {shard}'} has {mine[0]:,} hits in {mine[1]:,} runs, "
        f"all others {all_[0] - mine[0]:,} in {all_[1] - mine[1]:,}"
    )
    if fresh == 1:
        return SeenBy(log_p, alone)  # one other process shows no spread
    if fresh:
        starts = [0, *range(len(runs) - fresh, len(runs))]
        hits, runs = np.add.reduceat(hits, starts), np.add.reduceat(runs, starts)
    rates = [h[n > 0] / n[n > 0] for h, n in zip(hits.T, runs.T, strict=True)]
    ends = " and ".join(f"{_rate(each.min(), 1)} to {_rate(each.max(), 1)}" for each in rates if len(each))
    over = f"over {len(runs)} {'processes' if fresh else 'shards'}, by side {ends}"
    spread = independence.spread(hits, runs)
    return _either(SeenBy(log_p, alone), SeenBy(spread, f"rates of hits spread more than by chance {over}"))


def _rate(hits: Any, runs: Any) -> str:
    return f"{100.0 * float(hits) / max(1, int(runs)):.3g} %"


TESTS: dict[str, Callable[[Looked], SeenBy]] = {
    SERIAL: _serial,
    "state between calls": _state,
    "drift inside a shard": _inside,
    "drift over shards": _over,
    BETWEEN: _between,
}


# --- whether an audit compared anything: that of a function which never answers could not refute it -----------


# first word of the label of a token that is no answer: what its runs did
BLIND = {
    "raised": "raised {}",
    "object": "gave an object of the type {}, which no event looks into",
    "timed": "took longer than run_timeout_s",
    "None": "gave None",
    "nan": "gave no number (nan)",
}

LATER = {  # objects that hold no answer before somebody asks for it, and who may
    "coroutine": "give a function that runs it: lambda data, rng: asyncio.run(f(data, rng))",
    "generator": "give a function that reads it: lambda data, rng: list(f(data, rng))",
    "async_generator": "give a function that reads it with async for, and run that by asyncio.run",
}
PLAIN = "return the plain values that are released, such as model.coef_.tolist(), or a dict of them"


def check_compared(
    witness: Witness, evidence: AuditEvidence, pair: str, pilot: Pilot | None = None, *, refuted: bool = False
) -> None:
    """Raises `UnsoundAudit` where each run failed alike, or gave an object or entries that no event looks into.

    Such a mechanism is never refuted, whatever it would release if it worked. `pilot` holds search runs of the pair:
    where one of them gave another output, the rest is rare, and not broken; where all of them failed alike, so did
    certifying runs that the event tells nothing of.
    """
    failed = _failed(pilot)
    if pilot is not None and not failed and not looked_alike(pilot):
        return
    places = "" if pilot is None else pilot.unread
    if places and not refuted and not failed and looked_alike(pilot):
        raise UnsoundAudit(
            f"outputs on the pair {pair!a} differ only in what is not looked at ({ascii(places)[1:-1]}), so there is "
            "no verdict; return plain values, or fewer"
        )
    if pilot is not None and pilot.unseen and not _told(evidence):
        objects = [each for each in sorted(pilot.first.labels.values()) if each.startswith("object ")]
        for kind in sorted((each.removeprefix("object ") for each in objects), key=lambda kind: kind not in LATER)[:1]:
            why = "holds no answer yet" if kind in LATER else "no event looks into"
            raise UnsoundAudit(
                f"runs on the pair {pair!a} returned an object of the type {ascii(kind)[1:-1]}, which {why}, so there "
                f"is no verdict; {LATER.get(kind, PLAIN)}"
            )
        raise UnsoundAudit(
            f"every run on the pair {pair!a} gave the same in the entries that are looked at, and {pilot.unseen:,} are "
            "not, so there is no verdict; return fewer entries, or a summary of them"
        )
    label = failed if failed and not _told(evidence) else _only(witness.event, evidence)
    kind, _, what = label.partition(" ")
    if kind in BLIND:
        blind = BLIND[kind].format(ascii(what)[1:-1])
        if note := notes(pilot).get(label):  # what the first exception of this label said, and where
            blind += f", the first time {note.encode('ascii', 'backslashreplace').decode()}"
        raise UnsoundAudit(
            f"every run on the pair {pair!a} {blind}, so there is no verdict; "
            + (PLAIN if kind == "object" else "call the mechanism once on these datasets, and fix it")
        )


def _failed(pilot: Pilot | None) -> str:
    """The label of the failure that all held runs ended in."""
    sides = () if pilot is None else [side for side in (pilot.first, pilot.second) if side.runs]
    labels = {label for side in sides for label, there in kinds(side) if there.any()}
    return labels.pop() if len(labels) == 1 and labels != {VALUE} else ""


def _only(event: Event | Partition, evidence: AuditEvidence) -> str:
    """The label of the one output that all certifying runs gave, where the event is that output."""
    if isinstance(event, Partition) and isinstance(evidence, Binned):
        event, hits = event.bins[0], (evidence.counts_p[0], evidence.counts_q[0])
    elif isinstance(event, Event) and isinstance(evidence, CoinFlip):
        hits = evidence.hits_p, evidence.hits_q
    else:
        return ""
    if not isinstance(event.feature, Whole) or event.intervals or len(event.tokens) != 1:
        return ""
    return event.tokens[0].label if all(hits) and hits == (evidence.runs_p, evidence.runs_q) else ""


def _told(evidence: AuditEvidence) -> bool:
    """Whether the certifying runs were not all alike."""
    if isinstance(evidence, Binned):
        return any(0 < count < evidence.runs_p for count in evidence.counts_p)
    return (evidence.hits_p, evidence.hits_q) not in ((0, 0), (evidence.runs_p, evidence.runs_q))
