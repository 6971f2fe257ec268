"""Both runs take the same path, and the second run's draws are those of the first, shifted.

Why it is a proof. Fix both datasets, the parameters and the number of answers. A run takes one whole path (its
decisions before, in every turn of, and after the loop). On it, public values are functions of the path alone, and
everything else is affine in the draws and the answers with public coefficients, since a product has at most one
factor that is not public and no divisor is private. So the difference v' - v of a variable, and with it every shift,
is a constant of the path. Let A be the draws with which the first run takes the path. The obligations say: with the
shifted draws the second run takes the same path and gives the same output. Shifting by a constant keeps volumes, and
the density of a Laplace draw of scale b changes by at most e^(|shift| / b); that of an exponential draw by
e^(shift / b) where the shift is at least 0, and other laws are not shifted. Hence
P(path, output in S) <= e^cost P'(path, output in S), and the sum over the paths gives the claim. No injectivity is
needed, since each path is compared with itself alone.

The facts used at the head of the loop (differences, bounds of counters, `used`) are shown on entry and again at
the end of each path that returns there, from the facts at its start.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dpaudit.verify.checker.formulas import Facts, ProofRejected, Unknown, compared, put
from dpaudit.verify.checker.paths import Drawn, Exit, Path, Start, all_paths
from dpaudit.verify.checker.values import (
    ANSWER,
    INDEX,
    LENGTH,
    MOVED,
    USED,
    USED_NEXT,
    Scope,
    State,
    division_facts,
    given_out,
    moves,
    used_facts,
)
from dpaudit.verify.language import nodes
from dpaudit.verify.language.algebra import Formula, Ratio, Truth
from dpaudit.verify.proof import Alignment, Kept

ZERO, ONE = Ratio.number(0), Ratio.number(1)
MOST_BOUNDS = 100


@dataclass(slots=True)
class Coupled:
    """Both runs of a program from one start, under one alignment: facts, and the second run's numbers."""

    scope: Scope
    alignment: Alignment
    start: Start
    done: list[str]
    at_head: Facts = field(init=False)
    second: dict[Unknown, Ratio] = field(init=False)

    def __post_init__(self) -> None:
        self.second = {}
        if self.scope.program.loop is None:
            self.second[ANSWER] = Ratio.of(ANSWER) + Ratio.of(MOVED)
        self.second |= self.shifted(self.start.before, {})
        for symbol in self.start.carried:
            if symbol.kind == "variable":
                self.second[symbol] = Ratio.of(symbol) + self._carried(symbol.name)
        self.at_head = self._head_facts()

    # --- the numbers of the second run --------------------------------------------------------------------------

    def shift(self, path: Path, drawn: Drawn, differences: Mapping[str, Ratio]) -> Ratio:
        """What the second run adds to a draw of a path; `differences` are those where the path begins."""
        shift = next((s for s in self.alignment.shifts if (s.path, s.draw) == (path.name, drawn.target)), None)
        if shift is None:
            return ZERO
        total = Ratio.number(shift.constant) + Ratio.number(shift.answer) * Ratio.of(MOVED)
        for name, factor in shift.differences.items():
            if name not in differences:
                raise ProofRejected(f"the shift of {drawn.target} on {path.name}: {name} has no difference there")
            total = total + Ratio.number(factor) * differences[name]
        return total

    def shifted(self, path: Path, differences: Mapping[str, Ratio]) -> dict[Unknown, Ratio]:
        """The draws of a path in the second run."""
        return {drawn.symbol: Ratio.of(drawn.symbol) + self.shift(path, drawn, differences) for drawn in path.draws}

    def differences(self, state: Mapping[str, Ratio], second: Mapping[Unknown, Ratio]) -> dict[str, Ratio]:
        """How far each variable is, in the second run, from the first."""
        return {name: value.put(second) - value for name, value in state.items()}

    def turn(self, path: Path) -> dict[Unknown, Ratio]:
        """The second run's numbers in a turn of the loop along a path."""
        draws = self.shifted(path, self.differences(self.start.head.variables, self.second))
        return {**self.second, ANSWER: Ratio.of(ANSWER) + Ratio.of(MOVED), **draws}

    def leaving(self, way_out: Exit, path: Path) -> dict[Unknown, Ratio]:
        """The second run's numbers after the loop, along a path from a way out of it."""
        second = self.second if way_out.stop is None else self.turn(way_out.stop)
        return {**second, **self.shifted(path, self.differences(way_out.entered, second))}

    # --- facts --------------------------------------------------------------------------------------------------

    def in_turn(self, path: Path) -> Facts:
        """What is known in a turn of the loop along a path."""
        inside = compared("<=", Ratio.of(INDEX) + ONE, Ratio.of(LENGTH))
        return self.at_head.assuming(inside, *moves(self.scope.proof.adjacency), *path.taken)

    def at_exit(self, way_out: Exit, path: Path) -> Facts:
        """What is known after the loop, along a path from a way out of it."""
        if self.scope.program.loop is None:
            return self.before().assuming(*path.taken)
        if way_out.stop is not None:
            return self.in_turn(way_out.stop).assuming(*path.taken)
        return self.at_head.assuming(compared("==", Ratio.of(INDEX), Ratio.of(LENGTH)), *path.taken)

    def before(self) -> Facts:
        """What is known before the loop; without a loop that is where the data is read."""
        facts = self.scope.facts.assuming(*division_facts(self.scope.public))
        if self.scope.program.loop is None:
            facts = facts.assuming(*moves(self.scope.proof.adjacency))
        return facts.assuming(*self.start.before.taken)

    def _carried(self, name: str) -> Ratio:
        invariant = self.invariant(name)
        if invariant is not None and invariant.by is None:
            return Ratio.number(invariant.value)
        return Ratio.of(Unknown("difference", name))

    def invariant(self, name: str) -> Kept | None:
        """What the alignment says of a variable's difference."""
        return next((invariant for invariant in self.alignment.kept if invariant.variable == name), None)

    def bounds(self, state: State) -> list[tuple[str, Formula]]:
        """The bounds that the alignment states, at a state."""
        return [(text, self.scope.formula(text, state, "the bound")) for text in self.alignment.bounds]

    def _head_facts(self) -> Facts:
        facts = self.scope.facts
        if self.scope.program.loop is None:
            return facts
        bounds = [fact for _, fact in self.bounds(self.start.head)]
        ranges = [compared(">=", Ratio.of(INDEX), ZERO), compared("<=", Ratio.of(INDEX), Ratio.of(LENGTH))]
        invariants: list[Formula] = []
        for each in self.alignment.kept:
            difference = self.differences(self.start.head.variables, self.second).get(each.variable)
            if difference is not None:
                invariants += _within(each, difference, Ratio.of(USED))
        used = used_facts(self.scope.proof.adjacency)
        return facts.assuming(*ranges, *used, *division_facts(self.scope.public), *bounds, *invariants)

    # --- obligations --------------------------------------------------------------------------------------------

    def check_entry(self) -> None:
        """The path before the loop, and the facts at its head on entry."""
        path, facts = self.start.before, self.before()
        self.check_path(path, facts, self.second)
        if self.scope.program.loop is None:
            return
        for text, fact in self.bounds(State(path.end, ZERO)):
            facts.must(fact, f"entry: {text}", self.done)
        differences = self.differences(path.end, self.second)
        for invariant in self.alignment.kept:
            self._check_kept(invariant, differences, facts, ZERO, "entry")

    def check_turn(self, path: Path) -> None:
        """A path of the loop: the same branches and outputs, and the facts at the head again where it returns there."""
        facts, second = self.in_turn(path), self.turn(path)
        self.check_path(path, facts, second)
        if path.stops:
            return
        for text, fact in self.bounds(State(path.end, Ratio.of(INDEX) + ONE)):
            facts.must(fact, f"{path.name}: {text} at the next head", self.done)
        differences = self.differences(path.end, second)
        for invariant in self.alignment.kept:
            self._check_kept(invariant, differences, facts, Ratio.of(USED_NEXT), path.name)

    def check_exit(self, way_out: Exit) -> None:
        """The paths that follow a way out of the loop, and the result."""
        for path in way_out.after:
            facts, second = self.at_exit(way_out, path), self.leaving(way_out, path)
            via = "the last answer" if way_out.stop is None else way_out.stop.name
            name = f"{path.name} (from {via})" if self.scope.program.loop is not None else path.name
            self.check_path(path, facts, second, name)
            for place, part in enumerate(self.scope.program.result):
                if part != nodes.Emitted():
                    answer = None if self.scope.program.loop is not None else Ratio.of(ANSWER)
                    value = given_out(part, State(path.end, None, answer), self.scope.public)
                    self._check_equal(value, second, facts, f"{name}: result {place + 1} is the same in both runs")

    def check_path(self, path: Path, facts: Facts, second: Mapping[Unknown, Ratio], name: str | None = None) -> None:
        """The same branches, allowed shifts, positive scales, and the same outputs where outputs are given away."""
        name = name or path.name
        for fact, line in path.facts:
            theirs = put(fact, second)
            goal = Truth(True) if theirs == fact else theirs  # word for word a fact that is known
            facts.must(goal, f"{name}: both runs take the same branch at line {line}", self.done)
        for drawn in path.draws:
            check_draw(drawn, second[drawn.symbol] - Ratio.of(drawn.symbol), facts, name, self.done)
        if nodes.Emitted() in self.scope.program.result:
            for output in path.outputs:
                what = f"{name}: the output of line {output.line} is the same in both runs"
                self._check_equal(output.value, second, facts, what)
                if output.key is not None:
                    self._check_equal(output.key, second, facts, f"{what}, at the same place")

    def _check_equal(
        self, value: Ratio | nodes.Symbol, second: Mapping[Unknown, Ratio], facts: Facts, what: str
    ) -> None:
        goal = compared("==", value.put(second), value) if isinstance(value, Ratio) else Truth(True)
        facts.must(goal, what, self.done)

    def _check_kept(
        self, invariant: Kept, differences: Mapping[str, Ratio], facts: Facts, used: Ratio, where: str
    ) -> None:
        if invariant.variable not in differences:
            raise ProofRejected(f"{where}: what is kept of {invariant.variable}, which is no number there")
        bound = "" if invariant.by is None else " * used, in size"
        for goal in _within(invariant, differences[invariant.variable], used):
            what = f"{where}: {invariant.variable}' - {invariant.variable} is kept at {invariant.value}{bound}"
            facts.must(goal, what, self.done)


def check_draw(drawn: Drawn, shift: Ratio, facts: Facts, name: str, done: list[str]) -> None:
    """The scale is positive, and the law allows the shift."""
    what = f"{name}: the scale of {drawn.target} (line {drawn.line}) is positive"
    facts.must(compared(">", drawn.scale, ZERO), what, done)
    if drawn.law == "exponential":
        what = f"{name}: the exponential draw {drawn.target} is not shifted below 0"
        facts.must(compared(">=", shift, ZERO), what, done)
    elif drawn.law != "laplace" and shift != ZERO:
        raise ProofRejected(f"{name}: {drawn.target} is a draw of law {drawn.law}, which no shift is known for")


def check_names(alignment: Alignment, starts: Iterable[Start], program: nodes.Program, adjacency: str) -> None:
    """Raises `ProofRejected` where an alignment speaks of paths, draws or variables that are not there."""
    known = {(path.name, drawn.target) for start in starts for path in all_paths(start) for drawn in path.draws}
    seen: set[tuple[str, str]] = set()
    for shift in alignment.shifts:
        place = (shift.path, shift.draw)
        if place not in known:
            raise ProofRejected(f"a shift of {shift.draw} on {shift.path}: there is no such draw on such a path")
        if place in seen:
            raise ProofRejected(f"a shift of {shift.draw} on {shift.path} is given twice")
        seen.add(place)
        part = shift.path.partition(":")[0]
        where = f"a shift of {shift.draw} on {shift.path} uses"
        if program.loop is not None and part != "loop" and shift.answer:
            raise ProofRejected(f"{where} the answer, which is known in the loop only")
        if part == "before" and shift.differences:
            raise ProofRejected(f"{where} differences, and there are none before")
    names = [invariant.variable for invariant in alignment.kept]
    for invariant in alignment.kept:
        if names.count(invariant.variable) > 1:
            raise ProofRejected(f"what is kept of {invariant.variable} is said twice")
        if program.loop is None:
            raise ProofRejected(f"what is kept of {invariant.variable}: there is no loop")
        if invariant.by is not None and (invariant.by != "used" or adjacency != "one-differs"):
            raise ProofRejected(f"what is kept of {invariant.variable} by 'used' needs one answer that differs")
    if len(alignment.bounds) > MOST_BOUNDS:
        raise ProofRejected(f"more than {MOST_BOUNDS} bounds in one alignment")
    if alignment.bounds and program.loop is None:
        raise ProofRejected("bounds are stated, but there is no loop")


def _within(invariant: Kept, difference: Ratio, used: Ratio) -> list[Formula]:
    value = Ratio.number(invariant.value)
    if invariant.by is None:
        return [compared("==", difference, value)]
    return [compared("<=", difference, value * used), compared("<=", -difference, value * used)]
