"""For a stated number of answers: how often each path of the loop can be taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from dpaudit.verify.alignment.forms import INDEX, LENGTH, ONE, Atom, at, head, number_of
from dpaudit.verify.alignment.formulas import truth_at, value_at
from dpaudit.verify.alignment.outline import TakenApart
from dpaudit.verify.alignment.paths import PairedPath, Quantity
from dpaudit.verify.alignment.unproved import NoProof

MOST_CLASSES = 20_000

Known = frozenset[tuple[str, Fraction]]  # public variables whose value at the head is known
Counts = frozenset[tuple[str, int]]


def classes(found: TakenApart, answers: int) -> list[dict[str, int]]:
    """All the ways, as counts by the name of the path, in which a run with so many answers can go.

    There may be some among them that no run takes. Raises `NoProof` where there are too many.
    """
    states: set[tuple[Known, Counts]] = {(start, frozenset()) for start in _starts(found)}
    ended: set[Counts] = set()
    for index in range(answers):
        following: set[tuple[Known, Counts]] = set()
        for known, counts in states:
            for path, after in _steps(found, dict(known), index, answers):
                more = dict(counts)
                more[path.name] = more.get(path.name, 0) + 1
                if path.ends:
                    ended.add(frozenset(more.items()))
                else:
                    following.add((after, frozenset(more.items())))
        states = following
        if len(states) + len(ended) > MOST_CLASSES:
            raise NoProof(f"more than {MOST_CLASSES} classes of runs with {answers} answers")
    ended |= {counts for _, counts in states}
    return [dict(sorted(counts)) for counts in sorted(ended, key=sorted)]


def _starts(found: TakenApart) -> Iterator[Known]:
    names = [name for name, value in found.start.items() if isinstance(value, Quantity) and head(name) in value.form]
    for path in found.before:
        known = {}
        for name in names:
            value = path.after.get(name)
            if isinstance(value, Quantity) and (start := number_of(value.form)) is not None:
                known[name] = start
        yield frozenset(known.items())


def _steps(
    found: TakenApart, known: Mapping[str, Fraction], index: int, answers: int
) -> Iterator[tuple[PairedPath, Known]]:
    values: dict[Atom, Fraction] = {head(name): value for name, value in known.items()}
    values |= {INDEX: Fraction(index), LENGTH: Fraction(answers)}
    for path in found.loop:
        if all(truth_at(met.condition, values) in (met.truth, None) for met in path.decisions):
            after = {}
            for name in known:
                value = path.after.get(name)
                if isinstance(value, Quantity) and not value.moved:
                    parts = {atom: value_at(atom, values) for atom in value.form if atom != ONE}
                    if None not in parts.values():
                        after[name] = at(value.form, {a: v for a, v in parts.items() if v is not None})
            yield path, frozenset(after.items())
