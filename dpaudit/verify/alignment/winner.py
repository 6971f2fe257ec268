"""The largest noisy answer: only the noise of the answer that is returned moves, and one generic loser stands for all.

Before the winner both runs may branch differently, on the same draws; a fact about both holds at the head of the loop.
At the winner both must take it. After it the first run takes no other, and then neither may the second.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from dpaudit.base.installed import z3
from dpaudit.verify.alignment import forms
from dpaudit.verify.alignment.forms import ANSWER, INDEX, MOVED, ONE, Atom, Form, Leaf, add, head, number, one
from dpaudit.verify.alignment.lock_step import Shown
from dpaudit.verify.alignment.outline import ProgramOutline
from dpaudit.verify.alignment.paths import PairedPath
from dpaudit.verify.alignment.shifts import Corners, largest
from dpaudit.verify.language import nodes
from dpaudit.verify.language.algebra import Both, Either, Formula, Truth, mapped
from dpaudit.verify.language.nodes import Order
from dpaudit.verify.proof import REACH, WINNER, Adjacency, Alignment, Case, Shift, Unproved

STEPS = range(-2, 3)


@dataclass(frozen=True, slots=True)
class Contest:
    """The parts of a loop that returns the index of an answer."""

    outline: ProgramOutline
    winner: str
    best: str
    draw: str
    adjacency: Adjacency
    taking: tuple[PairedPath, ...]
    leaving: tuple[PairedPath, ...]


def by_winner(outline: ProgramOutline, adjacency: Adjacency) -> Shown | Unproved | None:
    """The cheapest proof of this shape; None where the program is no race for an index."""
    race = _race(outline, adjacency)
    if race is None:
        return None
    orders: tuple[Order, ...] = ("<=", ">=")
    before = [fact for fact in product(map(Fraction, STEPS), orders) if _kept_before(race, fact)]
    after = [Fraction(step) for step in STEPS if _kept_after(race, Fraction(step))]
    weight = race.taking[0].draws[0].weight
    corners = Corners(_everywhere(adjacency), "loop", {}).corners()
    for shift in Corners(_everywhere(adjacency), "loop", {}).candidates(race.taking[0].draws[0].law == "exponential"):
        ahead = _lead(race, shift)
        if ahead not in after:
            continue
        for step, order in before:
            if _won(race, shift, (step, order)):
                cost = weight * number(largest(shift, corners))
                name = race.best
                phases = {
                    "before": f"index == 0 or {name}' - {name} {order} {step}",
                    "after": f"{name}' - {name} == {ahead} and {race.winner}' == {race.winner}",
                }
                moved = Shift(WINNER, race.draw, shift.get(ONE, Fraction(0)), shift.get(MOVED, Fraction(0)))
                alignment = Alignment((moved,), phases=phases)
                return Shown(cost, (alignment,), (Case(0, forms.cost_text(cost)),))
    return Unproved(
        "no shift of the winner's noise alone keeps the winner: draw one noise for each answer, and keep the largest",
        race.taking[0].line,
    )


def _everywhere(adjacency: Adjacency) -> Adjacency:
    return "all-differ" if adjacency == "one-differs" else adjacency  # the winner may be the one that differs


def _race(outline: ProgramOutline, adjacency: Adjacency) -> Contest | None:
    program = outline.program
    if program.loop is None or program.after or any(path.draws for path in outline.before):
        return None
    if len(program.result) != 1 or not isinstance(program.result[0], nodes.Variable) or len(outline.before) != 1:
        return None
    if any(path.outputs or path.ends for path in outline.loop):
        return None
    winner = program.result[0].name
    draws = [statement.target for statement in program.loop if isinstance(statement, nodes.Draw)]
    if len(draws) != 1 or any(len(path.draws) != 1 for path in outline.loop) or winner not in outline.start:
        return None
    carried = [name for name, value in outline.start.items() if name != winner and head(name) in value.form]
    if len(carried) != 1:
        return None
    forms_of = [(path, _form_after(path, winner)) for path in outline.loop]
    taking = tuple(path for path, form in forms_of if form == one(INDEX))
    previous = one(head(winner))
    leaving = tuple(path for path, form in forms_of if form == previous)
    if not taking or len(taking) + len(leaving) != len(outline.loop):
        return None
    race = Contest(outline, winner, carried[0], draws[0], adjacency, taking, leaving)
    first = [Leaf("==", one(INDEX), {})]  # the first answer is always taken, so that the index of one is returned
    return race if all(_shown(race, [*first, *path.taken], Truth(False)) for path in leaving) else None


def _other(race: Contest, shift: Form) -> dict[Atom, Form]:
    """The atoms of the second run in those of the first, and its own."""
    return {
        ANSWER: {ANSWER: Fraction(1), MOVED: Fraction(1)},
        forms.drawn(race.draw): add(one(forms.drawn(race.draw)), shift),
        head(race.best): one(head(race.best) + "'"),
        head(race.winner): one(head(race.winner) + "'"),
    }


def _put(formula: Formula, values: dict[Atom, Form]) -> Formula:
    return mapped(formula, Leaf, lambda leaf: Leaf(leaf.order, forms.substituted(leaf.value, values), {}))


def _form_after(path: PairedPath, name: str) -> Form | None:
    value = path.after.get(name)
    return None if value is None else value.form


def _best_after(race: Contest, path: PairedPath) -> Form:
    form = _form_after(path, race.best)
    assert form is not None
    return form


def _ahead(first: Form, second: Form, step: Fraction, order: Order) -> Formula:
    return Leaf(order, add(add(second, first, -1), forms.constant(step), -1), {})


def _at_head(race: Contest, fact: tuple[Fraction, Order]) -> Formula:
    first = Leaf("==", one(INDEX), {})
    heads = (one(head(race.best)), one(head(race.best) + "'"))
    return Either((first, _ahead(*heads, *fact)))


def _shown(race: Contest, known: list[Formula], goal: Formula) -> bool:
    terms, (least, most) = race.outline.terms, REACH[race.adjacency]
    assumed = [*race.outline.assumed("loop"), terms.within(MOVED, least, most), *map(terms.formula, known)]
    return not terms.possible([*assumed, z3().Not(terms.formula(goal))])


def _kept_before(race: Contest, fact: tuple[Fraction, Order]) -> bool:
    other = _other(race, {})
    for first, second in product(race.outline.loop, repeat=2):
        known = [_at_head(race, fact), *first.taken, *(_put(part, other) for part in second.taken)]
        bests = _best_after(race, first), forms.substituted(_best_after(race, second), other)
        if not _shown(race, known, _ahead(*bests, *fact)):
            return False
    return True


def _kept_after(race: Contest, step: Fraction) -> bool:
    other = _other(race, {})
    heads = (one(head(race.best)), one(head(race.best) + "'"))
    fact = _ahead(*heads, step, "==")
    later = Leaf(">=", {INDEX: Fraction(1), ONE: Fraction(-1)}, {})
    for first in race.leaving:
        known = [fact, later, *first.taken]
        ways = []
        for second in race.leaving:
            bests = _best_after(race, first), forms.substituted(_best_after(race, second), other)
            ways.append(Both((*(_put(part, other) for part in second.taken), _ahead(*bests, step, "=="))))
        if not _shown(race, known, Either(tuple(ways))):
            return False
    return True


def _lead(race: Contest, shift: Form) -> Fraction | None:
    """How far the second run's best is ahead once the winner is taken; None where that is not one number."""
    other, bests = _other(race, shift), [_best_after(race, path) for path in race.taking]
    if any(best != bests[0] for best in bests):
        return None
    lead = add(forms.substituted(bests[0], other), bests[0], -1)
    return forms.number_of(lead)


def _won(race: Contest, shift: Form, fact: tuple[Fraction, Order]) -> bool:
    """Whether the second run takes the winner too; what its best is then, `_lead` says."""
    other = _other(race, shift)
    ways = Either(tuple(Both(tuple(_put(part, other) for part in path.taken)) for path in race.taking))
    return all(_shown(race, [_at_head(race, fact), *first.taken], ways) for first in race.taking)
