"""What an alignment costs, for any number of answers.

Why a potential is a bound. Say that at the head of the loop cost so far <= Phi, a function of the state there. That is
shown on entry, and for each path that returns to the head: Phi at its start + its own cost <= Phi at its end. By
induction it holds at every head, and where the loop ends, Phi + the cost of what follows <= the stated cost. Each
obligation is an inequality between rational functions of the parameters, counters and sizes |shift|, |v' - v| at one
state.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpaudit.verify.checker.formulas import ProofRejected, Unknown, compared
from dpaudit.verify.checker.lockstep import ZERO, Coupled
from dpaudit.verify.checker.paths import Exit, Path
from dpaudit.verify.checker.values import USED, USED_NEXT, is_public
from dpaudit.verify.language.algebra import Both, Either, Formula, Ratio
from dpaudit.verify.proof import Potential


@dataclass(slots=True)
class Sizes:
    """Absolute values as symbols of their own, with what they mean."""

    symbols: dict[Ratio, Unknown] = field(default_factory=dict)

    def of(self, value: Ratio) -> Ratio:
        """|value|."""
        number = value.constant
        if number is not None:
            return Ratio.number(abs(number))
        if value not in self.symbols:
            self.symbols[value] = Unknown("size", f"{value}")
            if len(set(self.symbols.values())) < len(self.symbols):
                self.symbols[value] = Unknown("size", f"{value} ({len(self.symbols)})")
        return Ratio.of(self.symbols[value])

    def facts(self) -> tuple[Formula, ...]:
        """size >= 0, and size = value or size = -value."""
        sizes = [(value, Ratio.of(symbol)) for value, symbol in self.symbols.items()]
        either = [Either((compared("==", size, value), compared("==", size, -value))) for value, size in sizes]
        return tuple(Both((compared(">=", size, ZERO), ends)) for (_, size), ends in zip(sizes, either, strict=True))


def path_cost(path: Path, second: Mapping[Unknown, Ratio], sizes: Sizes) -> Ratio:
    """The sum of |shift| / scale over the draws of a path."""
    shifts = [(drawn, second[drawn.symbol] - Ratio.of(drawn.symbol)) for drawn in path.draws]
    return sum((sizes.of(shift) / drawn.scale for drawn, shift in shifts if shift != ZERO), start=ZERO)


def check_costs(both: Coupled, cost: Ratio) -> None:
    """Raises `ProofRejected` unless every run of the start costs at most `cost`."""
    start, potential = both.start, both.alignment.potential
    if both.scope.program.loop is None:
        if potential is not None:
            raise ProofRejected("a potential is stated, but there is no loop")
        for path in start.exits[0].after:
            sizes = Sizes()
            second = both.leaving(start.exits[0], path)
            spent = path_cost(start.before, second, sizes) + path_cost(path, second, sizes)
            facts = both.at_exit(start.exits[0], path).assuming(*sizes.facts())
            facts.must(compared("<=", spent, cost), f"{path.name}: the cost is at most {cost}", both.done)
        return
    if potential is None:
        raise ProofRejected("the cost has no bound: a potential is missing")
    bound = Bound(both, potential)
    bound.check_entry()
    for path in start.loop:
        if not path.stops:
            bound.check_turn(path)
    for way_out in start.exits:
        bound.check_exit(way_out, cost)


@dataclass(slots=True)
class Bound:
    """A potential over one start."""

    both: Coupled
    potential: Potential
    start: Ratio = field(init=False)
    used: Ratio = field(init=False)
    counters: dict[str, Ratio] = field(init=False)
    weights: dict[str, Ratio] = field(init=False)

    def __post_init__(self) -> None:
        scope, potential = self.both.scope, self.potential
        self.start = scope.ratio(potential.start, "the start of the potential")
        self.used = scope.ratio(potential.used, "the potential of used")
        self.counters = {
            name: scope.ratio(text, f"the potential of {name}") for name, text in potential.counters.items()
        }
        self.weights = {
            name: scope.ratio(text, f"the potential held by {name}") for name, text in potential.held.items()
        }
        if self.used != ZERO and scope.proof.adjacency != "one-differs":
            raise ProofRejected("a potential of used needs one answer that differs")
        for value in (self.start, self.used, *self.counters.values(), *self.weights.values()):
            scope.facts.must(compared(">=", value, ZERO), f"the coefficient {value} of the potential is not negative")

    def at(self, state: Mapping[str, Ratio], second: Mapping[Unknown, Ratio], used: Ratio, sizes: Sizes) -> Ratio:
        """The potential at a state."""
        total = self.start + self.used * used
        for name, factor in self.counters.items():
            value = state.get(name)
            if value is None or not is_public(value):
                raise ProofRejected(f"the potential of {name}: not a counter that is the same in both runs")
            total = total + factor * value
        differences = self.both.differences(state, second)
        for name, factor in self.weights.items():
            if name not in differences:
                raise ProofRejected(f"the potential held by {name}: no number at the head of the loop")
            total = total - factor * sizes.of(differences[name])
        return total

    def head(self, sizes: Sizes) -> Ratio:
        """The potential at the head of the loop."""
        return self.at(self.both.start.head.variables, self.both.second, self._used(USED), sizes)

    def check_entry(self) -> None:
        """What the draws before the loop cost is within the potential on entry."""
        sizes = Sizes()
        spent = path_cost(self.both.start.before, self.both.second, sizes)
        allowed = self.at(self.both.start.before.end, self.both.second, ZERO, sizes)
        facts = self.both.before().assuming(*sizes.facts())
        facts.must(compared("<=", spent, allowed), "entry: the cost is within the potential", self.both.done)

    def check_turn(self, path: Path) -> None:
        """What a turn of the loop costs is within what the potential rises by."""
        sizes, second = Sizes(), self.both.turn(path)
        spent = path_cost(path, second, sizes)
        rise = self.at(path.end, second, self._used(USED_NEXT), sizes) - self.head(sizes)
        facts = self.both.in_turn(path).assuming(*sizes.facts())
        facts.must(compared("<=", spent, rise), f"{path.name}: the cost is within the potential", self.both.done)

    def check_exit(self, way_out: Exit, cost: Ratio) -> None:
        """Where the loop ends, the potential and the cost of what follows are at most the stated cost."""
        for path in way_out.after:
            sizes, second = Sizes(), self.both.leaving(way_out, path)
            spent = self.head(sizes) + path_cost(path, second, sizes)
            via = "the last answer"
            if way_out.stop is not None:
                via = way_out.stop.name
                spent = spent + path_cost(way_out.stop, second, sizes)
            facts = self.both.at_exit(way_out, path).assuming(*sizes.facts())
            what = f"{path.name} (from {via}): the cost is at most {cost}"
            facts.must(compared("<=", spent, cost), what, self.both.done)

    def _used(self, symbol: Unknown) -> Ratio:
        return Ratio.of(symbol) if self.both.scope.proof.adjacency == "one-differs" else ZERO
