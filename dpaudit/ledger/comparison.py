"""Two records of audits held against each other: what is new, gone, otherwise asked, and what rose beyond noise.

`dpaudit.ledger.noise` says when a bound rose beyond noise, why, and what that can miss.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from dpaudit.ledger.noise import noise
from dpaudit.ledger.results import subject_text
from dpaudit.results.change import ORDER, Change, Comparison, Half, Kind, Noise
from dpaudit.results.fingerprint import subject
from dpaudit.results.question import spec_hash
from dpaudit.results.result import AuditResult
from dpaudit.results.verdict import Verdict

MECHANISM = ("reference", "parameters", "kind", "takes_rng")  # of the question; its digest is its source
BOTH = (True, False)  # audits with a verdict, and those without
NOT_ASKED = frozenset({"name", "mechanism", "pairs", "seed"})


def compare(old: Sequence[Half], new: Sequence[Half], *, old_label: str = "old", new_label: str = "new") -> Comparison:
    """What became of every audit, the gravest changes first."""
    changes = [change_of(before, after) for before, after in matched(old, new)]
    changes.sort(key=lambda change: ORDER.index(change.kind))
    return Comparison(old_label, new_label, tuple(changes))


def matched(old: Sequence[Half], new: Sequence[Half]) -> list[tuple[Half | None, Half | None]]:
    """The audits of both sides by name, mechanism, claim and datasets; by fewer of these where one has changed.

    Audits that agree in everything are taken in their order. A part alone decides only where it names one audit on
    either side: a result is never held against one that it may not be.
    """
    left, right = dict(enumerate(old)), dict(enumerate(new))
    found: list[tuple[Half | None, Half | None]] = []
    rounds: tuple[tuple[Callable[[Half], Hashable], bool, tuple[bool, ...], tuple[bool, ...]], ...] = (
        (lambda half: (half.name, _subject(half), _datasets(half), _settings(half)), False, BOTH, BOTH),
        (lambda half: (half.name, _subject(half), _datasets(half)), False, BOTH, BOTH),
        (lambda half: (half.name, _subject(half)), True, BOTH, BOTH),
        (lambda half: (half.name, _reference(half)), True, BOTH, BOTH),
        (_name, True, BOTH, BOTH),
        (lambda half: (_subject(half), _datasets(half)), True, BOTH, BOTH),
        # which of several audits of one name lost its verdict may not be known: that one of them did is
        (_name, False, (True,), (False,)),
        (_name, False, (False,), (True,)),
        (_name, False, (False,), (False,)),
    )
    for key, alone, with_verdict, against in rounds:
        before_by, after_by = _grouped(left, key, with_verdict), _grouped(right, key, against)
        for value, theirs in after_by.items():
            ours = before_by.get(value, [])
            if not ours or (alone and len(ours) + len(theirs) > 2) or _unknown(value):
                continue
            found += [(left.pop(before), right.pop(after)) for before, after in zip(ours, theirs, strict=False)]
    return [*found, *((half, None) for half in left.values()), *((None, half) for half in right.values())]


def change_of(old: Half | None, new: Half | None) -> Change:
    """What became of one audit."""
    if old is None or new is None:
        return Change(old, new, (Kind.NEW if old is None else Kind.GONE,))
    if old.result is None or new.result is None:
        if old.result is not None:
            return Change(old, new, (Kind.LOST,))
        if new.result is None:
            return Change(old, new, (Kind.NEITHER,))
        became = new.result.verdict is Verdict.REFUTED
        return Change(old, new, (Kind.REFUTED, Kind.FOUND) if became else (Kind.FOUND,))
    return _judged(old, new, old.result, new.result)


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


def _judged(before: Half, after: Half, old: AuditResult, new: AuditResult) -> Change:
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
    found: Noise | None = None
    if not asked and not same:
        found = noise(old, new)
        if found.threshold is not None and new.certificate.lower > found.threshold:
            kinds.append(Kind.ROSE)
        upper = None if found.elsewhere or found.why_not else found.new_upper
        if upper is not None and upper + found.margin < old.certificate.lower:
            kinds.append(Kind.FELL)
    if not kinds:
        kinds.append(Kind.SAME if same else Kind.NOISE)
    # equal questions and seeds of a mechanism that draws from its rng alone give equal counts, if no clock cuts them
    repeats = all(each.reproducible and not each.cut_short for each in (old, new))
    hidden = not same and repeats and spec_hash(old.spec) == spec_hash(new.spec)
    return Change(before, after, tuple(sorted(kinds, key=ORDER.index)), asked, found, hidden)


def _counts(result: AuditResult) -> Any:
    blocks = [block.to_dict() for block in result.blocks]
    others = [finding.to_dict() for finding in result.others]
    return result.witness.to_dict(), result.evidence.to_dict(), blocks, others


def _of(result: AuditResult, key: str) -> Any:
    mechanism = result.spec["mechanism"]
    return mechanism[key] or mechanism["name"] if key == "reference" else mechanism[key]


def _data(result: AuditResult) -> list[Any]:
    return [(pair["distance"], pair["first"]["digest"], pair["second"]["digest"]) for pair in result.spec["pairs"]]


def _subject(half: Half) -> str | None:
    return None if half.result is None else subject_text(subject(half.result.spec))


def _reference(half: Half) -> str | None:
    return None if half.result is None else str(_of(half.result, "reference"))


def _datasets(half: Half) -> str | None:
    return None if half.result is None else repr(_data(half.result))


def _settings(half: Half) -> str | None:
    if half.result is None:
        return None
    return repr(sorted((key, repr(value)) for key, value in half.result.spec.items() if key not in NOT_ASKED))


def _name(half: Half) -> str:
    return half.name


def _grouped(
    side: dict[int, Half], key: Callable[[Half], Hashable], with_verdict: tuple[bool, ...]
) -> dict[Hashable, list[int]]:
    found: dict[Hashable, list[int]] = {}
    for at, half in side.items():
        if (half.result is not None) in with_verdict:
            found.setdefault(key(half), []).append(at)
    return found


def _unknown(value: Hashable) -> bool:
    """Whether a key names nothing: a part of it is that of an audit without a result."""
    return isinstance(value, tuple) and None in value
