"""Lock-step: both runs take the same paths; what they differ by at the head of the loop is kept.

For each way to keep the differences, the cheapest shifts of every path are found by complete enumeration; a potential
then bounds the cost for any number of answers, or the counts of a class of runs give it as a plain sum.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product

from dpaudit.verify.alignment import forms
from dpaudit.verify.alignment.forms import INDEX, LENGTH, ONE, Atom, Form, difference, head
from dpaudit.verify.alignment.outline import TakenApart
from dpaudit.verify.alignment.paths import PairedPath
from dpaudit.verify.alignment.potential import MOST_COMBINATIONS, Turns, cheaper, paid
from dpaudit.verify.alignment.rational import Rational, number, total, variable
from dpaudit.verify.alignment.scope import STEPS, Corners
from dpaudit.verify.alignment.shifts import Carried, Choice, PathSearch
from dpaudit.verify.language.nodes import Part
from dpaudit.verify.proof import Adjacency, Alignment, Case, Kept, NoProof, Potential, Shift, Unproved

PARTS: tuple[Part, ...] = ("before", "loop", "after")
MOST_KEPT = 4  # variables whose difference is carried round the loop

Keeping = Mapping[str, Carried]


@dataclass(frozen=True, slots=True)
class Shown:
    """What was found: alignments, cases, and the cost."""

    cost: Rational
    alignments: tuple[Alignment, ...]
    cases: tuple[Case, ...]


class LockStep:
    """The search for one program; shifts of a path are found once for what is kept around it."""

    def __init__(self, found: TakenApart, adjacency: Adjacency) -> None:
        self._found, self._adjacency = found, adjacency
        self._searched: dict[tuple[object, ...], list[Choice]] = {}
        self._failed: tuple[int, PairedPath] | None = None

    # --- any number of answers ----------------------------------------------------------------------------------

    def for_any_number(self) -> Shown | Unproved:
        """The cheapest proof that holds for any number of answers."""
        best: Shown | None = None
        growing: tuple[Rational, int | None] | None = None
        compared = True
        for keeping in self._keepings():
            if best is not None and self._no_cheaper(keeping, best.cost):
                continue
            for turns in self._turns(keeping):
                if self._found.program.loop is None:
                    cost = self._found.parameters.largest([part for choice in turns.before for part in choice.costs])
                    if cost is None:
                        what = "costs of different paths cannot be compared for all parameters: give them values"
                        raise NoProof(what)
                    shown: Shown | None = Shown(cost, (self._alignment(turns, {}, None),), (Case(0, str(cost)),))
                else:
                    found = paid(self._found, turns)
                    compared &= found is not None
                    rate = found and found.rate
                    if found and rate and (growing is None or cheaper(rate, growing[0], self._found.parameters)):
                        growing = (rate, found.line)
                    shown = None
                    if found is not None and found.cost is not None and found.potential is not None:
                        alignment = self._alignment(turns, keeping, found.potential)
                        shown = Shown(found.cost, (alignment,), (Case(0, str(found.cost)),))
                if shown is not None and (best is None or cheaper(shown.cost, best.cost, self._found.parameters)):
                    best = shown
        return best if best is not None else self._not_found(growing, compared)

    def _no_cheaper(self, keeping: Keeping, cost: Rational) -> bool:
        """Whether some path before the loop alone costs as much, whatever shifts are chosen on it."""
        at_most = self._found.parameters.at_most
        return any(
            all(any(at_most(cost, part) for part in choice.costs) for choice in self._choices(path, keeping))
            for path in self._found.before
        )

    def _not_found(self, growing: tuple[Rational, int | None] | None, compared: bool) -> Unproved:
        if growing is not None:
            rate, line = growing
            text = str(rate * variable("n"))
            return Unproved(f"the least cost found grows with the number of answers n: {text}", line, text)
        if not compared:
            return Unproved("costs of different parameters cannot be compared: give the parameters values")
        path = None if self._failed is None else self._failed[1]
        met = [] if path is None else [f"line {each.line} {str(each.truth).lower()}" for each in path.decisions]
        where = f", with the condition of {', of '.join(met)}" if met else ""
        return Unproved(
            f"no shift of the noise by at most {STEPS} in whole numbers keeps branches and outputs the same{where}",
            None if path is None else path.line,
        )

    # --- a stated number of answers -----------------------------------------------------------------------------

    def for_answers(self, answers: int) -> Shown | Unproved:
        """The cheapest proof by classes of runs: for each the alignment that costs it least."""
        counted = classes(self._found, answers)
        every = [(turns, keeping) for keeping in self._keepings() for turns in self._turns(keeping, every=False)]
        parameters, used, cases, costs = self._found.parameters, [], [], []
        prices = [self._prices(turns) for turns, _ in every]
        for counts in counted:
            best: tuple[int, Rational] | None = None
            for place, price in enumerate(prices):
                if price is None or any(path not in price[1] for path in counts):
                    continue
                cost = total([price[0], *(price[1][path] * number(count) for path, count in counts.items())])
                if best is None or cheaper(cost, best[1], parameters):
                    best = (place, cost)
            if best is None:
                return self._not_found(None, True)
            if best[0] not in used:
                used.append(best[0])
            cases.append(Case(used.index(best[0]), str(best[1]), counts))
            costs.append(best[1])
        worst = parameters.largest(costs)
        if worst is None:
            return Unproved("costs of different parameters cannot be compared: give the parameters values")
        alignments = tuple(self._alignment(*every[place], None) for place in used)
        return Shown(worst, alignments, tuple(cases))

    def _prices(self, turns: Turns) -> tuple[Rational, dict[str, Rational]] | None:
        """What the parts outside the loop cost, and each path of it; the largest over all corners."""
        largest = self._found.parameters.largest
        outside = [largest([cost for choice in part for cost in choice.costs]) for part in (turns.before, turns.after)]
        paths = {choice.path.name: largest(choice.costs) for choice in turns.loop}
        if None in outside or None in paths.values():
            return None
        return (
            total([cost for cost in outside if cost is not None]),
            {name: cost for name, cost in paths.items() if cost is not None},
        )

    # --- what is kept, and the shifts for it ----------------------------------------------------------------------

    def _keepings(self) -> Iterator[Keeping]:
        names = self._found.live
        if len(names) > MOST_KEPT:
            raise NoProof(f"more than {MOST_KEPT} noisy variables are carried round the loop: {', '.join(names)}")
        yield from (
            dict(zip(names, chosen, strict=True)) for chosen in product(*(self._ways_to_keep(name) for name in names))
        )

    def _ways_to_keep(self, name: str) -> list[Carried]:
        starts = [path.after.get(name) for path in self._found.before]
        if None in starts:
            raise NoProof(f"{name} is carried round the loop, but is not a number there from the start on every path")
        still = all(start is not None and not start.moved for start in starts)
        values = [0] if still else sorted(range(-STEPS, STEPS + 1), key=lambda value: (abs(value), -value))
        found = [Carried(Fraction(value)) for value in values]
        if self._adjacency == "one-differs" and still:
            found.append(Carried(Fraction(1), spread=True))
        return found

    def _turns(self, keeping: Keeping, every: bool = True) -> Iterator[Turns]:
        """All combinations of cheapest shifts; not `every`: some paths of the loop may have none."""
        found = [*self._chosen(keeping, every)]
        if all(options for path, options in found if every or path.part != "loop"):
            yield from self._combined(keeping, [(path, options) for path, options in found if options])

    def _chosen(self, keeping: Keeping, every: bool) -> Iterator[tuple[PairedPath, list[Choice]]]:
        for place, path in enumerate((*self._found.before, *self._found.after, *self._found.loop)):
            options = self._choices(path, keeping)
            yield path, options
            if not options:
                if self._failed is None or place > self._failed[0]:
                    self._failed = (place, path)
                if every or path.part != "loop":
                    return

    def _combined(self, keeping: Keeping, found: Sequence[tuple[PairedPath, list[Choice]]]) -> Iterator[Turns]:
        combinations = product(*(options for _, options in found))
        for _, chosen in zip(range(MOST_COMBINATIONS), combinations, strict=False):
            parts = {part: tuple(choice for choice in chosen if choice.path.part == part) for part in PARTS}
            scopes = {part: self._scope(part, keeping) for part in PARTS}
            spread = {name: kept.value for name, kept in keeping.items() if kept.spread}
            yield Turns(parts["before"], parts["loop"], parts["after"], scopes, spread)

    def _scope(self, part: Part, keeping: Keeping) -> Corners:
        if self._found.program.loop is None:
            return Corners(self._adjacency, "loop", {})
        return Corners(self._adjacency, part, {name: kept.value for name, kept in keeping.items() if kept.spread})

    def _choices(self, path: PairedPath, keeping: Keeping) -> list[Choice]:
        before = keeping if path.part != "before" else {}
        if path.part == "after" or self._found.program.loop is None:
            after: Keeping = {}
        elif path.ends:
            after = {name: kept for name, kept in keeping.items() if name in self._found.live_after}
        else:
            after = keeping
        key = (path.part, path.name, tuple(sorted((name, kept.value, kept.spread) for name, kept in keeping.items())))
        if key not in self._searched:
            scope = self._scope(path.part, keeping)
            assumed = partial(self._found.assumed, path.part)
            self._searched[key] = PathSearch(path, scope, before, after, self._found.terms, assumed).choices()
        return self._searched[key]

    def _alignment(self, turns: Turns, keeping: Keeping, potential: Potential | None) -> Alignment:
        shifts = tuple(
            _shift(choice, draw.path or choice.path.name, draw.name)
            for choice in (*turns.before, *turns.loop, *turns.after)
            for draw in choice.path.draws
            if draw.name in choice.shifts
        )
        agreed: dict[tuple[str, str], Shift] = {}
        for shift in shifts:
            if agreed.setdefault((shift.path, shift.draw), shift) != shift:
                raise NoProof(f"the shift of {shift.draw} would depend on what the run does after it")
        kept = tuple(Kept(name, kept.value, "used" if kept.spread else None) for name, kept in sorted(keeping.items()))
        return Alignment(tuple(agreed.values()), kept, self._found.facts, potential)


def _shift(choice: Choice, path: str, draw: str) -> Shift:
    form: Form = choice.shifts[draw]
    marker = difference("")
    differences = {
        atom.removeprefix(marker): value
        for atom, value in form.items()
        if isinstance(atom, str) and atom.startswith(marker)
    }
    return Shift(path, draw, form.get(ONE, Fraction(0)), form.get("@d", Fraction(0)), differences)


MOST_CLASSES = 20_000

Known = frozenset[tuple[str, Fraction]]  # public variables whose value at the head is known
Counts = frozenset[tuple[str, int]]


def classes(found: TakenApart, answers: int) -> list[dict[str, int]]:
    """All the ways, as counts by the name of the path, in which a run with so many answers can go.

    There may be some among them that no run takes. Raises `NoProof` where there are too many.
    """
    names = [name for name, value in found.start.items() if head(name) in value.form]
    numbers = [[(name, path.number(name)) for name in names] for path in found.before]
    starts = [frozenset((name, start) for name, start in each if start is not None) for each in numbers]
    states: set[tuple[Known, Counts]] = {(start, frozenset()) for start in starts}
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


def _steps(
    found: TakenApart, known: Mapping[str, Fraction], index: int, answers: int
) -> Iterator[tuple[PairedPath, Known]]:
    values: dict[Atom, Fraction] = {head(name): value for name, value in known.items()}
    values |= {INDEX: Fraction(index), LENGTH: Fraction(answers)}
    for path in found.loop:
        if all(forms.truth_at(met.condition, values) in (met.truth, None) for met in path.decisions):
            after = {}
            for name in known:
                value = path.after.get(name)
                if value is not None and not value.moved:
                    parts = {atom: forms.value_at(atom, values) for atom in value.form if atom != ONE}
                    if None not in parts.values():
                        after[name] = forms.at(value.form, {a: v for a, v in parts.items() if v is not None})
            yield path, frozenset(after.items())
