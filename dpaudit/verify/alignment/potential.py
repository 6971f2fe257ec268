"""What the shifts cost for any number of answers: a potential that every step of the loop pays from.

The cost so far is at most  start + sum of counters[c] * c + used * (1 once the one answer was read) - sum of
held[v] * |v' - v|. With linear costs, each condition is one at corners, and the least coefficients are largest ratios.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import product

from dpaudit.verify.alignment.forms import Atom, at, difference
from dpaudit.verify.alignment.outline import Counter, TakenApart
from dpaudit.verify.alignment.parameters import Parameters
from dpaudit.verify.alignment.rational import Rational, number, total
from dpaudit.verify.alignment.scope import Corner, Corners
from dpaudit.verify.alignment.shifts import Choice
from dpaudit.verify.language.nodes import Part
from dpaudit.verify.proof import Potential

ZERO = number(0)
MOST_COMBINATIONS = 64


@dataclass(frozen=True, slots=True)
class Paid:
    """A potential and the cost it shows, or the rate at which the cost grows with the number of answers."""

    cost: Rational | None
    potential: Potential | None
    rate: Rational | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Turns:
    """One alignment: the choices for the paths before, in and after the loop, with their scopes."""

    before: tuple[Choice, ...]
    loop: tuple[Choice, ...]
    after: tuple[Choice, ...]
    scopes: Mapping[Part, Corners]
    spread: Mapping[str, Fraction]


def paid(found: TakenApart, turns: Turns) -> Paid | None:
    """The cheapest potential for an alignment; None where costs cannot be compared for all parameters."""
    parameters = found.parameters
    return _best((_with_held(found, turns, held) for held in _held(turns)), parameters)


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


def cheaper(new: Rational, old: Rational, parameters: Parameters) -> bool:
    """Whether the new cost is the smaller one: for all parameters, or at the reference point where that differs."""
    if parameters.at_most(old, new):
        return False
    return parameters.at_most(new, old) or new.at(parameters.reference) < old.at(parameters.reference)


def _held(turns: Turns) -> Iterator[dict[str, Rational]]:
    """The weights that |v' - v| may have: nothing, or what a draw that is shifted by it costs."""
    options: list[list[Rational]] = []
    for name in turns.spread:
        weights = [ZERO]
        for choice in (*turns.loop, *turns.after):
            for draw in choice.path.draws:
                factor = choice.shifts.get(draw.name, {}).get(difference(name))
                weight = draw.weight * number(abs(factor)) if factor else ZERO
                if not any(weight.same(known) for known in weights):
                    weights.append(weight)
        options.append(weights)
    for chosen in list(product(*options))[:MOST_COMBINATIONS]:
        yield dict(zip(turns.spread, chosen, strict=True))


def _with_held(found: TakenApart, turns: Turns, held: Mapping[str, Rational]) -> Paid | None:
    parameters = found.parameters
    counters = {counter.name: counter for counter in found.counters}
    turning = [choice for choice in turns.loop if not choice.path.ends]
    needs: dict[str, Rational] = {}
    for choice in turning:
        need = parameters.largest([ZERO, *_step(choice, turns.scopes["loop"], held, now=False)])
        if need is None:
            return None
        needs[choice.path.name] = need
    priced = _prices(turning, needs, list(counters.values()), parameters)
    if priced is None:
        payable = {path for counter in counters.values() for path, added in counter.added.items() if added > 0}
        rates = [need for name, need in needs.items() if name not in payable and not need.zero]
        rate = parameters.largest(rates or list(needs.values()))
        if rate is None:
            return None
        lines = (choice.path.line for choice in turning if needs[choice.path.name].same(rate))
        return Paid(None, None, rate, next(lines, None))
    return _best((_shown(found, turns, held, prices, counters) for prices in priced), parameters)


def _step(choice: Choice, scope: Corners, held: Mapping[str, Rational], *, now: bool) -> list[Rational]:
    """What a step adds to cost + held, at the corners where the one answer is read now, or at the others."""
    found = []
    for corner, cost in _corners(choice, scope):
        if corner.now == now:
            gained = [held[name] * number(abs(at(form, corner.moves))) for name, form in choice.becomes.items()]
            found.append(total([cost, *gained, *_had(corner, held)]))
    return found


def _corners(choice: Choice, scope: Corners) -> list[tuple[Corner, Rational]]:
    return list(zip(scope.corners(), choice.costs, strict=True))


def _prices(
    turning: Sequence[Choice], needs: Mapping[str, Rational], counters: list[Counter], parameters: Parameters
) -> list[dict[str, Rational]] | None:
    """Prices of counters that pay for every path; None where a path that costs something raises no counter."""
    costly = [choice.path for choice in turning if not needs[choice.path.name].zero]
    options: list[list[Counter]] = [
        [counter for counter in counters if counter.added[path.name] > 0] for path in costly
    ]
    if any(not chosen for chosen in options):
        return None
    found = []
    for payers in list(product(*options))[:MOST_COMBINATIONS]:
        prices: dict[str, Rational] = {}
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
            found.append(prices)
    return found


def _shown(
    found: TakenApart,
    turns: Turns,
    held: Mapping[str, Rational],
    prices: Mapping[str, Rational],
    counters: Mapping[str, Counter],
) -> Paid | None:
    parameters = found.parameters
    start = parameters.largest([cost for choice in turns.before for cost in choice.costs])
    used_needs = [ZERO]
    for choice in turns.loop:
        if not choice.path.ends:
            paid_for = total([price * number(counters[name].added[choice.path.name]) for name, price in prices.items()])
            used_needs += [need - paid_for for need in _step(choice, turns.scopes["loop"], held, now=True)]
    used = parameters.largest(used_needs)
    if start is None or used is None:
        return None

    def smaller(one: Rational, other: Rational) -> Rational:
        return other if parameters.at_most(other, one) else one

    at_head = start + total(price * reduce(smaller, counters[name].bounds) for name, price in prices.items())
    ends = [at_head + cost for cost in _ends(turns, used, held)]
    cost = parameters.largest(ends)
    if cost is None:
        return None
    potential = Potential(
        str(start),
        {name: str(price) for name, price in prices.items() if not price.zero},
        str(used),
        {name: str(weight) for name, weight in held.items() if not weight.zero},
    )
    return Paid(cost, potential)


def _ends(turns: Turns, used: Rational, held: Mapping[str, Rational]) -> Iterator[Rational]:
    """What is added to the potential's constant part where a run ends: after the last answer, or at a stop."""
    after = turns.scopes["after"]
    for end in turns.after:
        for corner, cost in _corners(end, after):
            yield total([cost, *_credit(corner, used, held)])
    for choice in turns.loop:
        if choice.path.ends:
            for corner, cost in _corners(choice, turns.scopes["loop"]):
                moved: dict[Atom, Fraction] = {
                    difference(name): at(form, corner.moves) for name, form in choice.becomes.items()
                }
                for end in turns.after:
                    later = total(
                        [draw.weight * number(abs(at(end.shifts.get(draw.name, {}), moved))) for draw in end.path.draws]
                    )
                    yield total([cost, later, *_credit(corner, used, held)])


def _credit(corner: Corner, used: Rational, held: Mapping[str, Rational]) -> list[Rational]:
    return [used, *_had(corner, held)] if corner.used else []


def _had(corner: Corner, held: Mapping[str, Rational]) -> list[Rational]:
    return [weight * number(-abs(corner.moves.get(difference(name), Fraction(0)))) for name, weight in held.items()]
