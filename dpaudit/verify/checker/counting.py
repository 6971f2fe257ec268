"""Which numbers of turns along each path a run may have, and what such a class of runs costs.

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
from fractions import Fraction

from dpaudit.verify.checker.formulas import ProofRejected, Ratio, Sign, Unknown, compared, decided, put
from dpaudit.verify.checker.lockstep import ZERO, Coupled
from dpaudit.verify.checker.paths import Exit, Path, Start
from dpaudit.verify.checker.scope import MOVED, Scope, division_facts
from dpaudit.verify.checker.solver import Facts
from dpaudit.verify.checker.values import INDEX, LENGTH, Public, divided, is_public
from dpaudit.verify.language.algebra import Opposite, Truth
from dpaudit.verify.proof import REACH

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
    found: set[Counts] = set()
    looked_at = 0
    for index in range(answers):
        following = set()
        for counts, state in states:
            for path, after in turns.from_state(index, answers, state):
                more = tuple(sorted((Counter(dict(counts)) + Counter([path.name])).items()))
                if path.stops:
                    found.add(more)
                else:
                    following.add((more, after))
        states = following
        looked_at += len(states)
        if looked_at + len(found) > MOST_STATES:
            raise ProofRejected(f"more than {MOST_STATES} classes of runs; give a proof by a potential")
    return frozenset(found | {counts for counts, _ in states})


class _Turns:
    """What one turn may do at a public state; states that look the same are looked at once."""

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
        found = []
        for symbol in self.watched:
            value = path.end[symbol.name]
            assert isinstance(value, Ratio)
            found.append((symbol, value.put(values)))
        return tuple(found)


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
    """Every extreme position of the current answer and of the differences that are kept by `used`."""
    adjacency = both.scope.proof.adjacency
    low, high = REACH[adjacency]
    symbols = {symbol for _, shift in moved for symbol in shift.symbols}
    kept = []
    for symbol in sorted(symbols):
        if symbol.kind == "difference":
            each = both.kept(symbol.name)
            if each is None or each.by != "used":
                raise ProofRejected(f"the difference of {symbol.name} has no bound; say what is kept of it")
            kept.append((symbol, each.value))
    if len(kept) > 5:
        raise ProofRejected("a path whose shifts use more than five differences; give a potential")
    differences = [[(symbol, value), (symbol, -value)] for symbol, value in kept]
    still: list[list[tuple[Unknown, Fraction]]] = [[(symbol, Fraction(0))] for symbol, _ in kept]
    for move, choices in (((low, high), still), ((0, 0), differences)):
        for d in move:
            for choice in itertools.product(*choices):
                yield {MOVED: Ratio.number(d), **{symbol: Ratio.number(value) for symbol, value in choice}}
