"""Lock-step: both runs take the same paths; the differences of their variables at the head of the loop stay the same.

For each way to keep the differences, the cheapest shifts of every path are found by complete enumeration; a potential
then bounds the cost for any number of answers.

The potential pays for every step of the loop: the cost so far is at most  start + sum of counters[c] * c
+ used * (1 once the one answer was read) - sum of weights[v] * |v' - v|. With linear costs, each condition is one at
corners, and the least coefficients are largest ratios.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from itertools import islice, product

from dpaudit.verify.alignment import forms
from dpaudit.verify.alignment.forms import ZERO, Atom, NoProof, at, cost_text, difference, number, variable
from dpaudit.verify.alignment.outline import Counter, Parameters, ProgramOutline
from dpaudit.verify.alignment.paths import PairedPath
from dpaudit.verify.alignment.shifts import STEPS, Carried, Choice, Corner, Corners, PathSearch
from dpaudit.verify.language.algebra import Ratio
from dpaudit.verify.language.nodes import Part
from dpaudit.verify.proof import Adjacency, Alignment, Kept, Potential, Shift, Unproved

MOST_COMBINATIONS = 64


@dataclass(frozen=True, slots=True)
class Paid:
    """A potential and the cost it shows, or the rate at which the cost grows with the number of answers."""

    cost: Ratio | None
    potential: Potential | None
    rate: Ratio | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Turns:
    """One alignment: the choices for the paths before, in and after the loop, with their scopes."""

    before: tuple[Choice, ...]
    loop: tuple[Choice, ...]
    after: tuple[Choice, ...]
    scopes: Mapping[Part, Corners]
    spread: Mapping[str, Fraction]


def paid(outline: ProgramOutline, turns: Turns) -> Paid | None:
    """The cheapest potential for an alignment; None where costs cannot be compared for all parameters."""
    parameters = outline.parameters
    return _best((_with_weights(outline, turns, weights) for weights in _weights(turns)), parameters)


def _best(ways: Iterable[Paid | None], parameters: Parameters) -> Paid | None:
    best: Paid | None = None
    for here in ways:
        if here is not None and (best is None or _better(here, best, parameters)):
            best = here
    return best


def _better(new: Paid, old: Paid, parameters: Parameters) -> bool:
    if (new.cost is None) != (old.cost is None):
        return old.cost is None
    ours, theirs = (new.cost or new.rate, old.cost or old.rate)
    return ours is not None and theirs is not None and cheaper(ours, theirs, parameters)


def cheaper(new: Ratio, old: Ratio, parameters: Parameters) -> bool:
    """Whether the new cost is the smaller one: for all parameters, or at the reference point where that differs."""
    if parameters.at_most(old, new):
        return False
    return parameters.at_most(new, old) or parameters.typical(new) < parameters.typical(old)


def _weights(turns: Turns) -> Iterator[dict[str, Ratio]]:
    """The weights that |v' - v| may have: nothing, or what a draw that is shifted by it costs."""
    options: list[list[Ratio]] = []
    for name in turns.spread:
        weights = [ZERO]
        for choice in (*turns.loop, *turns.after):
            for draw in choice.path.draws:
                factor = choice.shifts.get(draw.name, {}).get(difference(name))
                weight = draw.weight * number(abs(factor)) if factor else ZERO
                if not any(weight - known == ZERO for known in weights):
                    weights.append(weight)
        options.append(weights)
    for chosen in list(product(*options))[:MOST_COMBINATIONS]:
        yield dict(zip(turns.spread, chosen, strict=True))


def _with_weights(outline: ProgramOutline, turns: Turns, weights: Mapping[str, Ratio]) -> Paid | None:
    parameters = outline.parameters
    counters = {counter.name: counter for counter in outline.counters}
    turning = [choice for choice in turns.loop if not choice.path.ends]
    needs: dict[str, Ratio] = {}
    for choice in turning:
        need = parameters.largest([ZERO, *_step(choice, turns.scopes["loop"], weights, now=False)])
        if need is None:
            return None
        needs[choice.path.name] = need
    priced = _prices(turning, needs, list(counters.values()), parameters)
    if priced is None:
        payable = {path for counter in counters.values() for path, added in counter.added.items() if added > 0}
        rates = [need for name, need in needs.items() if name not in payable and need != ZERO]
        rate = parameters.largest(rates or list(needs.values()))
        if rate is None:
            return None
        lines = (choice.path.line for choice in turning if needs[choice.path.name] - rate == ZERO)
        return Paid(None, None, rate, next(lines, None))
    return _best((_shown(outline, turns, weights, prices, counters) for prices in priced), parameters)


def _step(choice: Choice, scope: Corners, weights: Mapping[str, Ratio], *, now: bool) -> list[Ratio]:
    """What a step adds to cost and weighted differences, where the one answer is read now, or at the other corners."""
    sums = []
    for corner, cost in _corners(choice, scope):
        if corner.now == now:
            gained = [weights[name] * number(abs(at(form, corner.moves))) for name, form in choice.becomes.items()]
            sums.append(sum([cost, *gained, *_had(corner, weights)], ZERO))
    return sums


def _corners(choice: Choice, scope: Corners) -> list[tuple[Corner, Ratio]]:
    return list(zip(scope.corners(), choice.costs, strict=True))


def _prices(
    turning: Sequence[Choice], needs: Mapping[str, Ratio], counters: list[Counter], parameters: Parameters
) -> list[dict[str, Ratio]] | None:
    """Prices of counters that pay for every path; None where a path that costs something raises no counter."""
    costly = [choice.path for choice in turning if needs[choice.path.name] != ZERO]
    options: list[list[Counter]] = [
        [counter for counter in counters if counter.added[path.name] > 0] for path in costly
    ]
    if any(not chosen for chosen in options):
        return None
    choices = []
    for payers in list(product(*options))[:MOST_COMBINATIONS]:
        prices: dict[str, Ratio] = {}
        for counter in {payer.name: payer for payer in payers}.values():
            shares = [
                needs[path.name] * number(1 / payer.added[path.name])
                for path, payer in zip(costly, payers, strict=True)
                if payer.name == counter.name
            ]
            price = parameters.largest(shares)
            if price is None:
                break
            prices[counter.name] = price
        else:
            choices.append(prices)
    return choices


def _shown(
    outline: ProgramOutline,
    turns: Turns,
    weights: Mapping[str, Ratio],
    prices: Mapping[str, Ratio],
    counters: Mapping[str, Counter],
) -> Paid | None:
    parameters = outline.parameters
    start = parameters.largest([cost for choice in turns.before for cost in choice.costs])
    used_needs = [ZERO]
    for choice in turns.loop:
        if not choice.path.ends:
            added = ((price, counters[name].added[choice.path.name]) for name, price in prices.items())
            paid_for = sum((price * number(more) for price, more in added), ZERO)
            used_needs += [need - paid_for for need in _step(choice, turns.scopes["loop"], weights, now=True)]
    used = parameters.largest(used_needs)
    if start is None or used is None:
        return None

    def smaller(one: Ratio, other: Ratio) -> Ratio:
        return other if parameters.at_most(other, one) else one

    at_head = start + sum((price * reduce(smaller, counters[name].bounds) for name, price in prices.items()), ZERO)
    ends = [at_head + cost for cost in _ends(turns, used, weights)]
    cost = parameters.largest(ends)
    if cost is None:
        return None
    potential = Potential(
        cost_text(start),
        {name: cost_text(price) for name, price in prices.items() if price != ZERO},
        cost_text(used),
        {name: cost_text(weight) for name, weight in weights.items() if weight != ZERO},
    )
    return Paid(cost, potential)


def _ends(turns: Turns, used: Ratio, weights: Mapping[str, Ratio]) -> Iterator[Ratio]:
    """What is added to the potential's constant part where a run ends: after the last answer, or at a stop."""
    after = turns.scopes["after"]
    for end in turns.after:
        for corner, cost in _corners(end, after):
            yield sum([cost, *_credit(corner, used, weights)], ZERO)
    for choice in turns.loop:
        if choice.path.ends:
            for corner, cost in _corners(choice, turns.scopes["loop"]):
                moved: dict[Atom, Fraction] = {
                    difference(name): at(form, corner.moves) for name, form in choice.becomes.items()
                }
                for end in turns.after:
                    later = end.path.cost(end.shifts, moved)
                    yield sum([cost, later, *_credit(corner, used, weights)], ZERO)


def _credit(corner: Corner, used: Ratio, weights: Mapping[str, Ratio]) -> list[Ratio]:
    return [used, *_had(corner, weights)] if corner.used else []


def _had(corner: Corner, weights: Mapping[str, Ratio]) -> list[Ratio]:
    return [weight * number(-abs(corner.moves.get(difference(name), Fraction(0)))) for name, weight in weights.items()]


PARTS: tuple[Part, ...] = ("before", "loop", "after")
MOST_KEPT = 4  # variables whose difference is carried round the loop

Keeping = Mapping[str, Carried]


@dataclass(frozen=True, slots=True)
class Shown:
    """A proof so far: an alignment, and its cost."""

    cost: Ratio
    alignment: Alignment


class LockStep:
    """The search for one program; the shifts of a path are computed once for each set of differences around it."""

    def __init__(self, outline: ProgramOutline, adjacency: Adjacency) -> None:
        self._outline, self._adjacency = outline, adjacency
        self._searched: dict[tuple[object, ...], list[Choice]] = {}
        self._failed: tuple[int, PairedPath] | None = None

    def shown(self) -> Shown | Unproved:
        """The cheapest proof."""
        best: Shown | None = None
        growing: tuple[Ratio, int | None] | None = None
        compared = True
        for keeping in self._keepings():
            if best is not None and self._no_cheaper(keeping, best.cost):
                continue
            for turns in self._turns(keeping):
                if self._outline.program.loop is None:
                    cost = self._outline.parameters.largest([part for choice in turns.before for part in choice.costs])
                    if cost is None:
                        what = "costs of different paths cannot be compared for all parameters: give them values"
                        raise NoProof(what)
                    shown: Shown | None = Shown(cost, self._alignment(turns, {}, None))
                else:
                    payment = paid(self._outline, turns)
                    compared &= payment is not None
                    rate = payment and payment.rate
                    if payment and rate and (growing is None or cheaper(rate, growing[0], self._outline.parameters)):
                        growing = (rate, payment.line)
                    shown = None
                    if payment is not None and payment.cost is not None and payment.potential is not None:
                        shown = Shown(payment.cost, self._alignment(turns, keeping, payment.potential))
                if shown is not None and (best is None or cheaper(shown.cost, best.cost, self._outline.parameters)):
                    best = shown
        return best if best is not None else self._not_found(growing, compared)

    def _no_cheaper(self, keeping: Keeping, cost: Ratio) -> bool:
        """Whether some path before the loop alone costs as much, whatever shifts are chosen on it."""
        at_most = self._outline.parameters.at_most
        return any(
            all(any(at_most(cost, part) for part in choice.costs) for choice in self._choices(path, keeping))
            for path in self._outline.before
        )

    def _not_found(self, growing: tuple[Ratio, int | None] | None, compared: bool) -> Unproved:
        if growing is not None:
            rate, line = growing
            text = cost_text(rate * variable("n"))
            return Unproved("each answer costs more", line, text)
        if not compared:
            return Unproved("costs of different parameters cannot be compared: give the parameters values")
        path = None if self._failed is None else self._failed[1]
        met = [] if path is None else [f"line {each.line} is {str(each.truth).lower()}" for each in path.decisions]
        where = f" where {' and '.join(met)}" if met else ""
        return Unproved(
            f"no shift of the noise keeps branches and outputs the same{where}: add noise to all that shows",
            None if path is None else path.line,
        )

    # --- the differences that stay, and the shifts for them -------------------------------------------------------

    def _keepings(self) -> Iterator[Keeping]:
        names = self._outline.live
        if len(names) > MOST_KEPT:
            raise NoProof(f"more than {MOST_KEPT} noisy variables in the loop ({', '.join(names)}): keep fewer")
        yield from (
            dict(zip(names, chosen, strict=True)) for chosen in product(*(self._ways_to_keep(name) for name in names))
        )

    def _ways_to_keep(self, name: str) -> list[Carried]:
        still = not any(path.after[name].moved for path in self._outline.before)
        values = [0] if still else sorted(range(-STEPS, STEPS + 1), key=lambda value: (abs(value), -value))
        ways = [Carried(Fraction(value)) for value in values]
        if self._adjacency == "one-differs" and still:
            ways.append(Carried(Fraction(1), spread=True))
        return ways

    def _turns(self, keeping: Keeping) -> Iterator[Turns]:
        """All combinations of cheapest shifts."""
        per_path: list[list[Choice]] = []
        for place, path in enumerate((*self._outline.before, *self._outline.after, *self._outline.loop)):
            per_path.append(self._choices(path, keeping))
            if not per_path[-1]:
                if self._failed is None or place > self._failed[0]:
                    self._failed = (place, path)
                return
        for chosen in islice(product(*per_path), MOST_COMBINATIONS):
            parts = {part: tuple(choice for choice in chosen if choice.path.part == part) for part in PARTS}
            scopes = {part: self._scope(part, keeping) for part in PARTS}
            spread = {name: carried.value for name, carried in keeping.items() if carried.spread}
            yield Turns(parts["before"], parts["loop"], parts["after"], scopes, spread)

    def _scope(self, part: Part, keeping: Keeping) -> Corners:
        if self._outline.program.loop is None:
            return Corners(self._adjacency, "loop", {})
        return Corners(
            self._adjacency, part, {name: carried.value for name, carried in keeping.items() if carried.spread}
        )

    def _choices(self, path: PairedPath, keeping: Keeping) -> list[Choice]:
        before = keeping if path.part != "before" else {}
        if path.part == "after" or self._outline.program.loop is None:
            after: Keeping = {}
        elif path.ends:
            after = {name: carried for name, carried in keeping.items() if name in self._outline.live_after}
        else:
            after = keeping
        key = (
            path.part,
            path.name,
            tuple(sorted((name, carried.value, carried.spread) for name, carried in keeping.items())),
        )
        if key not in self._searched:
            scope = self._scope(path.part, keeping)
            assumed = partial(self._outline.assumed, path.part)
            self._searched[key] = PathSearch(path, scope, before, after, self._outline.terms, assumed).choices()
        return self._searched[key]

    def _alignment(self, turns: Turns, keeping: Keeping, potential: Potential | None) -> Alignment:
        shifts = tuple(
            _shift(choice, draw.name)
            for choice in (*turns.before, *turns.loop, *turns.after)
            for draw in choice.path.draws
            if draw.name in choice.shifts
        )
        differences = tuple(
            Kept(name, carried.value, "used" if carried.spread else None) for name, carried in sorted(keeping.items())
        )
        return Alignment(shifts, differences, self._outline.facts, potential)


def _shift(choice: Choice, draw: str) -> Shift:
    form: forms.Form = choice.shifts[draw]
    marker = difference("")
    differences = {
        atom.removeprefix(marker): value
        for atom, value in form.items()
        if isinstance(atom, str) and atom.startswith(marker)
    }
    return Shift(choice.path.name, draw, form.get(forms.ONE, Fraction(0)), form.get("@d", Fraction(0)), differences)
