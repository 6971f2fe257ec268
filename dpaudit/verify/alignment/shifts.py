"""The shifts of the draws of one path that keep it: all cheapest ones, by complete enumeration.

They depend on how far answers move, and on how far apart the two runs may be at the head of the loop.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from dpaudit.verify.alignment import forms
from dpaudit.verify.alignment.forms import MOVED, Atom, Form, Leaf, at, constant, difference, shift_of
from dpaudit.verify.alignment.paths import PairedPath, Quantity
from dpaudit.verify.deadline import left_s
from dpaudit.verify.language.algebra import Formula, Ratio, leaves
from dpaudit.verify.language.nodes import Part
from dpaudit.verify.proof import REACH, Adjacency

MOST, STEPS = 3, 2  # of a shift's coefficients: the sum of their sizes, and the largest


@dataclass(frozen=True, slots=True)
class Corner:
    """An extreme way in which the runs differ: `used` says whether the one answer that differs has been read before."""

    moves: Mapping[Atom, Fraction]
    used: bool = False
    now: bool = False


@dataclass(frozen=True, slots=True)
class Corners:
    """The corners of one part of the program.

    A cost is convex between corners of the same signs, so it is largest at a corner. `spread` holds the variables
    with |v' - v| <= value * used.
    """

    adjacency: Adjacency
    part: Part
    spread: Mapping[str, Fraction]

    def corners(self) -> list[Corner]:
        """All of them."""
        if self.adjacency != "one-differs":
            ends = REACH[self.adjacency] if self.part == "loop" else (0,)
            return [Corner({MOVED: Fraction(end)}) for end in ends]
        corners = [Corner({})]
        if self.part == "loop":
            corners += [Corner({MOVED: Fraction(end)}, now=True) for end in REACH[self.adjacency]]
        if self.part == "loop" or self.part == "after":
            sides = [(-most, Fraction(0), most) for most in self.spread.values()]
            atoms = [difference(name) for name in self.spread]
            corners += [Corner(dict(zip(atoms, chosen, strict=True)), used=True) for chosen in product(*sides)]
        return corners

    def assumed(self, terms: forms.SolverTerms) -> list[Any]:
        """What holds at all of them, for the solver."""
        moved = terms.within(MOVED, *(REACH[self.adjacency] if self.part == "loop" else (0, 0)))
        return [moved, *(terms.within(difference(name), -most, most) for name, most in self.spread.items())]

    def candidates(self, one_sided: bool) -> list[Form]:
        """The shifts that are tried for one draw, the cheapest first; `one_sided` ones are never negative."""
        atoms: list[Atom] = [MOVED] if self.part == "loop" else []
        if self.part != "before":
            atoms += [difference(name) for name in self.spread]
        corners = self.corners()
        candidates = []
        for values in product(range(-STEPS, STEPS + 1), repeat=1 + len(atoms)):
            if sum(abs(value) for value in values) > MOST:
                continue
            form: Form = {a: Fraction(v) for a, v in zip(("", *atoms), values, strict=True) if v}
            if one_sided and any(at(form, corner.moves) < 0 for corner in corners):
                continue
            candidates.append(form)
        return sorted(candidates, key=lambda form: (largest(form, corners), len(form), sorted(form.items(), key=repr)))


def largest(form: Form, corners: list[Corner]) -> Fraction:
    """The largest size of a form."""
    return max(abs(at(form, corner.moves)) for corner in corners)


MOST_QUESTIONS = 4_000  # to the solver, for one path


@dataclass(frozen=True, slots=True)
class Carried:
    """v' - v: exactly `value`, or, where `spread`, at most `value` in size once the one answer has been read."""

    value: Fraction
    spread: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """Shifts for one path: the cost at each corner, and what v' - v becomes where it is spread."""

    path: PairedPath
    shifts: Mapping[str, Form]
    costs: tuple[Ratio, ...]
    becomes: Mapping[str, Form]


@dataclass(frozen=True, slots=True)
class _Goal:
    """What must hold in both runs: a form that is 0, or a condition of the same truth."""

    needs: frozenset[str]
    zero: Form | None = None
    bound: Fraction | None = None  # of the form, where it need not be 0
    same: Formula | None = None
    truth: bool = True


class PathSearch:
    """Finds the shifts of one path, given the differences at its ends."""

    def __init__(
        self,
        path: PairedPath,
        scope: Corners,
        before: Mapping[str, Carried],
        after: Mapping[str, Carried],
        terms: forms.SolverTerms,
        assumed: Callable[[], list[Any]],
    ) -> None:
        self._path, self._scope, self._terms, self._after = path, scope, terms, after
        self._corners = scope.corners()
        self._known: dict[Atom, Form] = {
            difference(name): constant(carried.value) for name, carried in before.items() if not carried.spread
        }
        self._goals = list(self._all_goals())
        self._assumed = assumed
        self._solver: Any = None
        self._states: list[forms.State] = []
        self._questions = 0
        self._tried: dict[bool, list[Form]] = {}
        self._sizes: dict[int, tuple[Fraction, ...]] = {}  # of the candidates, by their identity, at each corner
        self._weights = _proportional([draw.weight for draw in path.draws])

    def choices(self) -> list[Choice]:
        """All shifts that no other beats in every respect; empty if no shift works."""
        if not all(self._plausible(goal, {}) for goal in self._goals if not goal.needs):
            return []
        best: list[tuple[tuple[Fraction, ...], dict[str, Form]]] = []
        for shifts in self._filled({}, best):
            cost = self._vector(shifts)
            if any(_below(other, cost) for other, _ in best):
                continue
            if self._follows(shifts):
                best = [(other, chosen) for other, chosen in best if not _below(cost, other)]
                best.append((cost, dict(shifts)))
        return [self._choice(shifts) for _, shifts in best]

    def _all_goals(self) -> Iterator[_Goal]:
        path = self._path
        for met in path.decisions:
            if not forms.public(met.condition):
                yield self._same(met.condition, met.truth)
        for output in path.outputs:
            if output.key is not None and output.key.moved:
                raise forms.NoProof("the place of an output is not public: give outputs in public places", output.line)
            if isinstance(output.value, Quantity):
                yield self._zero(output.value.moved)
        for name, carried in self._after.items():
            value = path.after.get(name)
            if value is None:
                raise forms.NoProof(f"{name} is not a number in every run: give it a number from the start", path.line)
            if carried.spread:
                form = forms.substituted(value.moved, self._known)
                yield _Goal(_needs(form), zero=form, bound=carried.value)
            else:
                yield self._zero(forms.add(value.moved, constant(carried.value), -1))

    def _zero(self, moved: Form) -> _Goal:
        form = forms.substituted(moved, self._known)
        return _Goal(_needs(form), zero=form)

    def _same(self, condition: Formula, truth: bool) -> _Goal:
        formula = forms.with_moves(condition, self._known)
        needs = frozenset().union(*(_needs(leaf.moved) for leaf in leaves(formula, Leaf)))
        return _Goal(needs, same=formula, truth=truth)

    def _filled(self, shifts: dict[str, Form], best: list[Any]) -> Iterator[dict[str, Form]]:
        left_s()
        draws = self._path.draws
        if len(shifts) == len(draws):
            yield shifts
            return
        draw = draws[len(shifts)]
        done = {shift_of(name) for name in shifts}
        ready = [
            goal
            for goal in self._goals
            if shift_of(draw.name) in goal.needs and goal.needs <= done | {shift_of(draw.name)}
        ]
        for form in self._candidates(draw.law == "exponential"):
            shifts[draw.name] = form
            cost = () if self._scope.spread else self._vector(shifts)
            dearer = bool(cost) and any(_below(other, cost) for other, _ in best)
            if not dearer and all(self._plausible(goal, shifts) for goal in ready):
                yield from self._filled(shifts, best)
            del shifts[draw.name]

    def _candidates(self, one_sided: bool) -> list[Form]:
        if one_sided not in self._tried:
            self._tried[one_sided] = self._scope.candidates(one_sided)
            for form in self._tried[one_sided]:
                self._sizes[id(form)] = tuple(abs(at(form, corner.moves)) for corner in self._corners)
        return self._tried[one_sided]

    def _plausible(self, goal: _Goal, shifts: Mapping[str, Form]) -> bool:
        values: dict[Atom, Form] = {shift_of(name): form for name, form in shifts.items()}
        if goal.zero is not None:
            form = forms.substituted(goal.zero, values)
            return not form if goal.bound is None else self._bounded(form, goal.bound)
        assert goal.same is not None
        moved = forms.with_moves(goal.same, values)
        return all(forms.holds(forms.second(_seen(moved, each)), each) == goal.truth for each in self._states)

    def _bounded(self, form: Form, most: Fraction) -> bool:
        """Whether |form| <= most * used after this step, and 0 as long as nothing differs."""
        if form.get(forms.ONE):
            return False
        return all(
            abs(at(form, corner.moves)) <= (most if corner.used or corner.now else 0) for corner in self._corners
        )

    def _follows(self, shifts: Mapping[str, Form]) -> bool:
        values: dict[Atom, Form] = {shift_of(name): form for name, form in shifts.items()}
        for goal in self._goals:
            if goal.same is None:
                continue
            later = self._terms.formula(forms.second(forms.with_moves(goal.same, values)))
            if self._solver is None:
                taken = map(self._terms.formula, self._path.taken)
                self._solver = self._terms.solver([*self._assumed(), *self._scope.assumed(self._terms), *taken])
            self._questions += 1
            if self._questions > MOST_QUESTIONS:
                raise forms.NoProof(
                    f"more than {MOST_QUESTIONS} questions about one path: decide less in one turn", self._path.line
                )
            answer = self._terms.follows(self._solver, later == goal.truth)
            if answer is not True:
                if isinstance(answer, dict):
                    self._states.append(answer)
                return False
        return True

    def _vector(self, shifts: Mapping[str, Form]) -> tuple[Fraction, ...]:
        """The cost in each respect: per corner and group of comparable scales, as one number where that is enough."""
        units = max((unit for unit, _ in self._weights), default=-1) + 1
        sizes = []
        for place in range(len(self._corners)):
            amounts = [Fraction(0)] * units
            for draw, (unit, factor) in zip(self._path.draws, self._weights, strict=True):
                if draw.name in shifts:
                    amounts[unit] += factor * self._sizes[id(shifts[draw.name])][place]
            sizes += amounts
        if units == 1 and self._scope.adjacency != "one-differs":
            return (max(sizes),)
        if self._scope.spread and len(shifts) == len(self._path.draws):
            becomes = self._becomes(shifts)
            sizes += [abs(at(form, corner.moves)) for form in becomes.values() for corner in self._corners]
        return tuple(sizes)

    def _becomes(self, shifts: Mapping[str, Form]) -> dict[str, Form]:
        values: dict[Atom, Form] = {**self._known, **{shift_of(name): form for name, form in shifts.items()}}
        becomes = {}
        for name, carried in self._after.items():
            if carried.spread:
                becomes[name] = forms.substituted(forms.substituted(self._path.after[name].moved, self._known), values)
        return becomes

    def _choice(self, shifts: Mapping[str, Form]) -> Choice:
        costs = tuple(self._path.cost(shifts, corner.moves) for corner in self._corners)
        return Choice(self._path, {n: f for n, f in shifts.items() if f}, costs, self._becomes(shifts))


def _needs(form: Form) -> frozenset[str]:
    return frozenset(atom for atom in form if isinstance(atom, str) and atom.startswith("shift:"))


def _seen(formula: Formula, state: forms.State) -> Formula:
    """The moves at a state as numbers: all their atoms have values there."""
    moves = {atom for leaf in leaves(formula, Leaf) for atom in leaf.moved if atom != forms.ONE}
    return forms.with_moves(formula, {atom: constant(state.get(atom, Fraction(0))) for atom in moves})


def _below(left: tuple[Fraction, ...], right: tuple[Fraction, ...]) -> bool:
    return len(left) <= len(right) and all(a <= b for a, b in zip(left, right, strict=False))


def _proportional(weights: list[Ratio]) -> list[tuple[int, Fraction]]:
    """Each weight as a multiple of one of few units, so that multiples of one unit can be compared."""
    units: list[Ratio] = []
    multiples = []
    for weight in weights:
        for place, unit in enumerate(units):
            factor = (weight / unit).constant
            if factor is not None and factor > 0:
                multiples.append((place, factor))
                break
        else:
            units.append(weight)
            multiples.append((len(units) - 1, Fraction(1)))
    return multiples
