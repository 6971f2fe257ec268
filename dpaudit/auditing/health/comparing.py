"""Whether an audit compared anything: that of a function which never answers could not refute it."""

from __future__ import annotations

from dpaudit.auditing.health.pilot import looked_alike
from dpaudit.auditing.shown import kinds, notes
from dpaudit.certify.evidence import Binned, CoinFlip
from dpaudit.errors import UnsoundAudit
from dpaudit.events import Event, Partition
from dpaudit.events.features import Whole
from dpaudit.outputs import Pilot
from dpaudit.results.beside import VALUE
from dpaudit.results.certification import AuditEvidence
from dpaudit.results.witness import Witness

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
            f"every run on the pair {pair!a} gave the same in all that was looked at, and outputs differ in what was "
            f"not ({ascii(places)[1:-1]}): nothing was compared, so there is no verdict; return plain values, or fewer"
        )
    if pilot is not None and pilot.unseen and not _told(evidence):
        for label in sorted(pilot.first.labels.values()):
            if label.startswith("object ") and (kind := label.removeprefix("object ")) in LATER:
                raise UnsoundAudit(
                    f"runs on the pair {pair!a} gave a {kind}, which holds no answer yet: nothing was compared, so "
                    f"there is no verdict; {LATER[kind]}"
                )
        raise UnsoundAudit(
            f"every run on the pair {pair!a} gave the same in the part of its output that was looked at (entries that "
            f"were not: {pilot.unseen:,}): nothing was compared, so there is no verdict; return fewer entries, or a "
            "summary of them"
        )
    label = failed if failed and not _told(evidence) else _only(witness.event, evidence)
    kind, _, what = label.partition(" ")
    if kind in BLIND:
        told = BLIND[kind].format(ascii(what)[1:-1]) + _said(pilot, label)
        raise UnsoundAudit(
            f"every run on the pair {pair!a} {told}: nothing was compared, so there is no verdict; "
            "call the mechanism once on these datasets, and mend what it gives"
        )


def _failed(pilot: Pilot | None) -> str:
    """The label of the failure that all held runs ended in."""
    sides = () if pilot is None else [side for side in (pilot.first, pilot.second) if side.runs]
    found = {label for side in sides for label, there in kinds(side) if there.any()}
    return found.pop() if len(found) == 1 and found != {VALUE} else ""


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


def _said(pilot: Pilot | None, label: str) -> str:
    """What the first exception of this label said, and where."""
    note = notes(pilot).get(label)
    return "" if note is None else f", the first time {note.encode('ascii', 'backslashreplace').decode()}"
