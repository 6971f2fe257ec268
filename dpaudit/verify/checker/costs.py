"""What a lock-step alignment costs: by a potential for any number of answers, or by classes of runs for a stated one.

Why a potential is a bound. Say that at the head of the loop cost so far <= Phi, a function of the state there. That is
shown on entry, and for each path that returns to the head: Phi at its start + its own cost <= Phi at its end. By
induction it holds at every head, and where the loop ends, Phi + the cost of what follows <= the stated cost. Each
obligation is an inequality between rational functions of the parameters, counters and sizes |shift|, |v' - v| at one
state.

Why the cases cover every run. The loop is followed turn by turn on what is public, for every path before it: a path
is left out only where its own facts contradict each other, or contradict the public values reached. Every other
combination is reached, so the classes found are all that a run can be in, and perhaps a few that it cannot. Each must
be a case of the proof.

Why the cost of a case is a bound: a run of the class takes each path as often as the class says, and a turn along a
path costs at most the largest sum of |shift| / scale over how far the answer and the kept differences may be. Sums of
absolute values are convex, so the largest is at a corner of that box.
"""

import itertools
import math
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dpaudit.verify.checker.formulas import Facts, ProofRejected, Sign, Unknown, compared, decided, put
from dpaudit.verify.checker.lockstep import ZERO, Coupled
from dpaudit.verify.checker.paths import Exit, Path, Start
from dpaudit.verify.checker.values import (
    INDEX,
    LENGTH,
    MOVED,
    USED,
    USED_NEXT,
    Public,
    Scope,
    Value,
    divided,
    division_facts,
    is_public,
)
from dpaudit.verify.language.algebra import Both, Either, Formula, Opposite, Ratio, Truth
from dpaudit.verify.proof import REACH, Potential


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


def check_costs(both: Coupled, potential: Potential | None, cost: Ratio) -> None:
    """Raises `ProofRejected` unless every run of the start costs at most `cost`."""
    start = both.start
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
        raise ProofRejected("the cost has no bound: neither a potential nor how often each path is taken")
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

    def at(self, state: Mapping[str, Value], second: Mapping[Unknown, Ratio], used: Ratio, sizes: Sizes) -> Ratio:
        """The potential at a state."""
        total = self.start + self.used * used
        for name, factor in self.counters.items():
            value = state.get(name)
            if not isinstance(value, Ratio) or not is_public(value):
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


Counts = tuple[tuple[str, int], ...]  # paths and how often each is taken, sorted, none of them 0
Reached = tuple[tuple[Unknown, Ratio], ...]  # the values of what is public
MOST_STATES = 100_000  # of all turns together
MOST_CHOICES = 1_000


def classes(start: Start, scope: Scope, answers: int) -> frozenset[Counts]:
    """Every class of runs from a start, for this number of answers."""
    facts = scope.facts.assuming(*division_facts(scope.public), *start.before.taken)
    if facts.follows(Truth(False)):
        return frozenset()
    possible = [path for path in start.loop if not scope.facts.assuming(*path.taken).follows(Truth(False))]
    turns = _Turns(possible, start, scope.public, facts)
    begin = tuple((symbol, _entry(start, symbol)) for symbol in turns.watched)
    states: set[tuple[Counts, Reached]] = {((), begin)}
    ends: set[Counts] = set()
    states_in_all = 0
    for index in range(answers):
        following = set()
        for counts, state in states:
            for path, after in turns.from_state(index, answers, state):
                more = tuple(sorted((Counter(dict(counts)) + Counter([path.name])).items()))
                if path.stops:
                    ends.add(more)
                else:
                    following.add((more, after))
        states = following
        states_in_all += len(states)
        if states_in_all + len(ends) > MOST_STATES:
            raise ProofRejected(f"more than {MOST_STATES} classes of runs; give a proof by a potential")
    return frozenset(ends | {counts for counts, _ in states})


class _Turns:
    """What one turn may do at a public state; equal states are computed once."""

    def __init__(self, paths: Iterable[Path], start: Start, public: Public, facts: Facts) -> None:
        self.paths = tuple(paths)
        self.public = public
        self.facts = facts
        self.watched = tuple(sorted(symbol for symbol in start.carried if symbol.kind == "counter"))
        self.seen: dict[object, list[tuple[Path, Reached]]] = {}

    def from_state(self, index: int, answers: int, state: Reached) -> list[tuple[Path, Reached]]:
        """The paths that may be taken, with the public state after each."""
        key = (index, state)
        if key not in self.seen:
            values = dict(state) | {INDEX: Ratio.number(index), LENGTH: Ratio.number(answers)}
            for symbol, division in tuple(self.public.divisions.items()):
                known = divided(division.operation, division.left.put(values), division.right.put(values))
                if known is not None:
                    values[symbol] = Ratio.number(known)
            self.seen[key] = [(path, self._after(path, values)) for path in self.paths if self._open(path, values)]
        return self.seen[key]

    def _open(self, path: Path, values: Mapping[Unknown, Ratio]) -> bool:
        return all(decided(put(fact, values), self._known) is not False for fact in path.taken)

    def _known(self, sign: Sign) -> bool | None:
        """Signs of public values that follow from the facts about the parameters."""
        if not is_public(sign.ratio):
            return None
        if self.facts.follows(sign):
            return True
        return False if self.facts.follows(Opposite(sign)) else None

    def _after(self, path: Path, values: Mapping[Unknown, Ratio]) -> Reached:
        state = []
        for symbol in self.watched:
            value = path.end[symbol.name]
            assert isinstance(value, Ratio)
            state.append((symbol, value.put(values)))
        return tuple(state)


def _entry(start: Start, symbol: Unknown) -> Ratio:
    value = start.before.end.get(symbol.name)
    return value if isinstance(value, Ratio) else Ratio.of(symbol)  # no value yet: whatever it is


def check_class_cost(both: Coupled, counts: Mapping[str, int], cost: Ratio) -> None:
    """Raises `ProofRejected` unless every run with these counts costs at most `cost`."""
    start = both.start
    stops = [path.name for path in start.loop if path.stops and counts.get(path.name)]
    turns = [(path, counts[path.name]) for path in start.loop if counts.get(path.name)]
    name = ", ".join(f"{path} {number} times" for path, number in sorted(counts.items())) or "no turn of the loop"
    for way_out in exits_of(start, stops):
        for after in way_out.after:
            parts = [_options(both, start.before, both.second)]
            parts += [
                [each * Ratio.number(number) for each in _options(both, path, both.turn(path))]
                for path, number in turns
            ]
            parts.append(_options(both, after, both.leaving(way_out, after)))
            if math.prod(map(len, parts)) > MOST_CHOICES:
                raise ProofRejected(f"{name}: more than {MOST_CHOICES} extreme positions; give a potential")
            for choice in itertools.product(*parts):
                spent = sum(choice, start=ZERO)
                if spent.symbols and any(symbol.kind not in ("parameter", "length") for symbol in spent.symbols):
                    raise ProofRejected(f"{name}: a scale depends on more than the parameters; give a potential")
                both.scope.facts.must(compared("<=", spent, cost), f"{name}: the cost is at most {cost}", both.done)


def exits_of(start: Start, stops: list[str]) -> list[Exit]:
    """The ways out of the loop that a run may take which takes these stopping paths."""
    if stops:
        return [way_out for way_out in start.exits if way_out.stop is not None and way_out.stop.name in stops]
    return [way_out for way_out in start.exits if way_out.stop is None]


def _options(both: Coupled, path: Path, second: Mapping[Unknown, Ratio]) -> list[Ratio]:
    """The costs of a path at the corners, without those that another one exceeds draw by draw."""
    drawn = [(each, second[each.symbol] - Ratio.of(each.symbol)) for each in path.draws]
    moved = [(each, shift) for each, shift in drawn if shift != ZERO]
    sizes = {tuple(abs(_number(shift.put(corner))) for _, shift in moved) for corner in _corners(both, moved)}
    largest = [
        size for size in sizes if not any(size != other and all(map(operator.le, size, other)) for other in sizes)
    ]
    return [
        sum((Ratio.number(size) / each.scale for size, (each, _) in zip(sizes_, moved, strict=True)), start=ZERO)
        for sizes_ in sorted(largest)
    ]


def _number(value: Ratio) -> Fraction:
    number = value.constant
    if number is None:
        raise ProofRejected(f"the shift {value} has no bound; say what is kept, or give a potential")
    return number


def _corners(both: Coupled, moved: Iterable[tuple[object, Ratio]]) -> Iterator[dict[Unknown, Ratio]]:
    """Every extreme position of the current answer and of the differences that `used` bounds."""
    adjacency = both.scope.proof.adjacency
    low, high = REACH[adjacency]
    symbols = {symbol for _, shift in moved for symbol in shift.symbols}
    limits = []
    for symbol in sorted(symbols):
        if symbol.kind == "difference":
            each = both.invariant(symbol.name)
            if each is None or each.by != "used":
                raise ProofRejected(f"the difference of {symbol.name} has no bound; say what is kept of it")
            limits.append((symbol, each.value))
    if len(limits) > 5:
        raise ProofRejected("a path whose shifts use more than five differences; give a potential")
    differences = [[(symbol, value), (symbol, -value)] for symbol, value in limits]
    still: list[list[tuple[Unknown, Fraction]]] = [[(symbol, Fraction(0))] for symbol, _ in limits]
    for move, choices in (((low, high), still), ((0, 0), differences)):
        for d in move:
            for choice in itertools.product(*choices):
                yield {MOVED: Ratio.number(d), **{symbol: Ratio.number(value) for symbol, value in choice}}
