"""Two records of audits held against each other: what is new, gone, otherwise asked, and what rose beyond noise."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dpaudit.errors import DpAuditError
from dpaudit.ledger.noise import noise
from dpaudit.ledger.results import subject_text
from dpaudit.results.change import ORDER, Change, Comparison, Half, Kind, RunNoise, subject
from dpaudit.results.result import AuditResult
from dpaudit.results.strict import spec_hash
from dpaudit.results.verdict import Verdict

MECHANISM = ("reference", "parameters", "kind", "takes_rng")  # of the question; its digest is its source
NAME, SUBJECT, REFERENCE, DATASETS, SETTINGS = range(5)  # what an audit is known by
Parts = tuple[str | None, ...]
Again = Callable[[AuditResult], AuditResult]  # what the witness of a result has on fresh runs of today's code
BOTH = (True, False)  # audits with a verdict, and those without
NOT_ASKED = frozenset({"name", "mechanism", "pairs", "seed"})


def compare(
    old: Sequence[Half],
    new: Sequence[Half],
    *,
    old_label: str = "old",
    new_label: str = "new",
    again: Again | None = None,
) -> Comparison:
    """What became of every audit, the gravest changes first; `again` gives an old event fresh runs of today's code."""
    changes = [change_of(before, after, again) for before, after in matched(old, new)]
    changes.sort(key=lambda change: ORDER.index(change.kind))
    return Comparison(old_label, new_label, tuple(changes))


def matched(old: Sequence[Half], new: Sequence[Half]) -> list[tuple[Half | None, Half | None]]:
    """The audits of both sides by name, mechanism, claim and datasets; by fewer of these where one has changed.

    Audits that agree in everything are taken in their order. A part alone decides only where it names one audit on
    either side: a result is never held against one that it may not be.
    """
    left, right = ({at: (half, _parts(half)) for at, half in enumerate(side)} for side in (old, new))
    found: list[tuple[Half | None, Half | None]] = []
    rounds: tuple[tuple[tuple[int, ...], bool, tuple[bool, ...], tuple[bool, ...]], ...] = (
        ((NAME, SUBJECT, DATASETS, SETTINGS), False, BOTH, BOTH),
        ((NAME, SUBJECT, DATASETS), False, BOTH, BOTH),
        ((NAME, SUBJECT), True, BOTH, BOTH),
        ((NAME, REFERENCE), True, BOTH, BOTH),
        ((NAME,), True, BOTH, BOTH),
        ((SUBJECT, DATASETS), True, BOTH, BOTH),
        # which of several audits of one name lost its verdict may not be known: that one of them did is
        ((NAME,), False, (True,), (False,)),
        ((NAME,), False, (False,), (True,)),
        ((NAME,), False, (False,), (False,)),
    )
    for key, alone, with_verdict, against in rounds:
        before_by, after_by = _grouped(left, key, with_verdict), _grouped(right, key, against)
        for value, theirs in after_by.items():
            ours = before_by.get(value, [])
            if ours and not (alone and len(ours) + len(theirs) > 2):
                found += [(left.pop(one)[0], right.pop(other)[0]) for one, other in zip(ours, theirs, strict=False)]
    return [*found, *((half, None) for half, _ in left.values()), *((None, half) for half, _ in right.values())]


def change_of(old: Half | None, new: Half | None, again: Again | None = None) -> Change:
    """What became of one audit."""
    if old is None or new is None:
        return Change(old, new, (Kind.NEW if old is None else Kind.GONE,))
    if old.result is None or new.result is None:
        if old.result is not None:
            return Change(old, new, (Kind.LOST,))
        if new.result is None:
            return Change(old, new, (Kind.NEITHER,))
        became = new.result.refuted
        return Change(old, new, (Kind.REFUTED, Kind.FOUND) if became else (Kind.FOUND,))
    return _judged(old, new, old.result, new.result, again)


def question(old: AuditResult, new: AuditResult) -> tuple[str, ...]:
    """The parts of the question that differ; neither name nor seed nor the source of the mechanism is one."""
    changed = [f"mechanism {key}" for key in MECHANISM if _of(old, key) != _of(new, key)]
    if _data(old) != _data(new):
        changed.append("pairs")
    keys = dict.fromkeys([*old.spec, *new.spec])
    return (*changed, *(key for key in keys if key not in NOT_ASKED and old.spec.get(key) != new.spec.get(key)))


def source_changed(old: AuditResult, new: AuditResult) -> bool | None:
    """Whether the source of the mechanism changed; None where one of the two is not known."""
    first, second = old.spec["mechanism"]["digest"], new.spec["mechanism"]["digest"]
    return None if first is None or second is None else bool(first != second)


def _judged(before: Half, after: Half, old: AuditResult, new: AuditResult, again: Again | None) -> Change:
    kinds: list[Kind] = []
    asked = question(old, new)
    if (old.verdict, new.verdict) == (Verdict.NOT_REFUTED, Verdict.REFUTED):
        kinds.append(Kind.REFUTED)
    if (old.verdict, new.verdict) == (Verdict.REFUTED, Verdict.NOT_REFUTED):
        kinds.append(Kind.CLEARED)
    if new.representation_refuted and not old.representation_refuted:
        kinds.append(Kind.BITS)
    if asked:
        kinds.append(Kind.QUESTION)
    if source_changed(old, new):
        kinds.append(Kind.SOURCE)
    same = _counts(old) == _counts(new)
    found: RunNoise | None = None
    if not asked and not same:
        found = noise(old, new)
        if again is not None:
            found = _run_again(old, found, again)
        if found.grew or (found.threshold is not None and new.certificate.lower > found.threshold):
            kinds.append(Kind.ROSE)
        back = noise(new, old).threshold
        if back is not None and old.certificate.lower > back:
            kinds.append(Kind.FELL)
    if not kinds:
        kinds.append(Kind.SAME if same else Kind.NOISE)
    # equal questions and seeds of a mechanism that draws from its rng alone give equal counts, if no clock cuts them
    repeats = all(each.reproducible and not each.cut_short for each in (old, new))
    hidden = not same and repeats and spec_hash(old.spec) == spec_hash(new.spec)
    return Change(before, after, tuple(sorted(kinds, key=ORDER.index)), asked, found, hidden)


def _run_again(old: AuditResult, found: RunNoise, again: Again) -> RunNoise:
    """The old event counted on fresh runs is the same event, frozen before them: its bound needs no margin."""
    try:
        fresh = again(old)
    except DpAuditError as error:
        return replace(found, not_again=str(error))
    held = noise(old, fresh)
    if held.threshold is None:
        return replace(found, not_again=held.why_not)
    return replace(found, again=fresh.certificate.lower, limit=held.threshold)


def _counts(result: AuditResult) -> Any:
    blocks = [block.to_dict() for block in result.blocks]
    others = [finding.to_dict() for finding in result.others]
    return result.witness.to_dict(), result.evidence.to_dict(), blocks, others


def _of(result: AuditResult, key: str) -> Any:
    mechanism = result.spec["mechanism"]
    return mechanism[key] or mechanism["name"] if key == "reference" else mechanism[key]


def _data(result: AuditResult) -> list[Any]:
    return [(pair["distance"], pair["first"]["digest"], pair["second"]["digest"]) for pair in result.spec["pairs"]]


def _parts(half: Half) -> Parts:
    """What an audit is known by, in the order of `NAME` to `SETTINGS`; without a result by its name alone."""
    if half.result is None:
        return half.name, None, None, None, None
    spec, reference = half.result.spec, str(_of(half.result, "reference"))
    settings = repr(sorted((key, repr(value)) for key, value in spec.items() if key not in NOT_ASKED))
    return half.name, subject_text(subject(spec)), reference, repr(_data(half.result)), settings


def _grouped(
    side: dict[int, tuple[Half, Parts]], key: tuple[int, ...], with_verdict: tuple[bool, ...]
) -> dict[Parts, list[int]]:
    found: dict[Parts, list[int]] = {}
    for at, (half, parts) in side.items():
        value = tuple(parts[part] for part in key)
        if (half.result is not None) in with_verdict and None not in value:
            found.setdefault(value, []).append(at)
    return found
