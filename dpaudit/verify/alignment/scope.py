"""Which inputs: how far answers move, and how far apart the two runs may be at the head of the loop."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from dpaudit.base.installed import z3
from dpaudit.verify.alignment.forms import MOVED, Atom, Form, at, difference
from dpaudit.verify.alignment.solver import SolverTerms
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
        found = [Corner({})]
        if self.part == "loop":
            found += [Corner({MOVED: Fraction(end)}, now=True) for end in REACH[self.adjacency]]
        if self.part == "loop" or self.part == "after":
            sides = [(-most, Fraction(0), most) for most in self.spread.values()]
            atoms = [difference(name) for name in self.spread]
            found += [Corner(dict(zip(atoms, chosen, strict=True)), used=True) for chosen in product(*sides)]
        return found

    def assumed(self, terms: SolverTerms) -> list[Any]:
        """The same as assumptions."""
        module = z3()
        moved = terms.atom(MOVED)
        if self.adjacency != "one-differs" or self.part != "loop":
            least, most = REACH[self.adjacency] if self.part == "loop" else (0, 0)
            found = [terms.within(MOVED, least, most)]
            return found + [terms.within(difference(name), -most, most) for name, most in self.spread.items()]
        here = [terms.atom(difference(name)) == 0 for name in self.spread]
        before = [terms.within(difference(name), -most, most) for name, most in self.spread.items()]
        return [module.Or(module.And([terms.within(MOVED, -1, 1), *here]), module.And([moved == 0, *before]))]

    def candidates(self, one_sided: bool) -> list[Form]:
        """The shifts that are tried for one draw, the cheapest first; `one_sided` ones are never negative."""
        atoms: list[Atom] = [MOVED] if self.part == "loop" else []
        if self.part != "before":
            atoms += [difference(name) for name in self.spread]
        corners = self.corners()
        found = []
        for values in product(range(-STEPS, STEPS + 1), repeat=1 + len(atoms)):
            if sum(abs(value) for value in values) > MOST:
                continue
            form: Form = {a: Fraction(v) for a, v in zip(("", *atoms), values, strict=True) if v}
            if one_sided and any(at(form, corner.moves) < 0 for corner in corners):
                continue
            found.append(form)
        return sorted(found, key=lambda form: (largest(form, corners), len(form), sorted(form.items(), key=repr)))


def largest(form: Form, corners: list[Corner]) -> Fraction:
    """The largest size of a form."""
    return max(abs(at(form, corner.moves)) for corner in corners)


def reach(form: Form, corners: list[Corner]) -> tuple[Fraction, Fraction]:
    """The least and the largest value of a form."""
    values = [at(form, corner.moves) for corner in corners]
    return min(values), max(values)
