"""Winner: the shift belongs to the answer whose index is returned; before and after it the runs may branch apart.

Why it is a proof. The program draws the same noise in every turn of a loop that nothing ends early, and returns W, to
which the loop gives no value but its index. The first answer always becomes W, so W is the index of an answer. Fix
both datasets and an index w, and let A be the draws with which the first run returns w. In A, W is given the value w
in turn w, since earlier turns give smaller values, later ones larger values, and W ends as w; and no later turn gives
W a value. The second run's draws are the same, except those of turn w, to which constants are added. The obligations
say, turn by turn and for every pair of paths of the two runs: the fact of phase "before" holds on entry and is kept by
turns before w; turn w leads from it to the fact of phase "after", and gives W the value w in the second run too; turns
after w keep the fact of phase "after", and the second run gives W no value. So the second run returns w, and as in
lock-step the shift of a draw costs |shift| / scale: P(w) <= e^cost P'(w), for each w, hence for every set of them.
Datasets where one answer differs are among those where every answer may.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dpaudit.verify.checker.costs import Sizes, path_cost
from dpaudit.verify.checker.formulas import Facts, ProofRejected, Unknown, compared, put
from dpaudit.verify.checker.lockstep import ONE, ZERO, check_draw
from dpaudit.verify.checker.paths import Path, numbers, paths_of
from dpaudit.verify.checker.values import ANSWER, INDEX, LENGTH, MOVED, Scope, State
from dpaudit.verify.language import nodes
from dpaudit.verify.language.algebra import Formula, Ratio, Truth
from dpaudit.verify.language.facts import targets
from dpaudit.verify.proof import REACH, WINNER, Alignment

PHASES = ("before", "after")


@dataclass(slots=True)
class Race:
    """A program of this shape on symbols, with one alignment of it.

    At the head of the loop a variable is a symbol of kind "variable" in the first run and of kind "second" in the
    second; variables that the loop gives no value are the same in both, since what stands before it sees no data.
    """

    scope: Scope
    alignment: Alignment
    winner: str
    before: Path
    head: Mapping[str, Ratio]
    paths: tuple[Path, ...]
    done: list[str]

    def second(self, path: Path, shifts: Mapping[str, Ratio]) -> dict[Unknown, Ratio]:
        """The second run's numbers in a turn, its draws shifted."""
        heads = {
            symbol: Ratio.of(Unknown("second", symbol.name))
            for value in self.head.values()
            for symbol in value.symbols
            if symbol.kind == "variable"
        }
        draws = {each.symbol: Ratio.of(each.symbol) + shifts.get(each.target, ZERO) for each in path.draws}
        return {**heads, ANSWER: Ratio.of(ANSWER) + Ratio.of(MOVED), **draws}

    def fact(self, phase: str, first: Mapping[str, Ratio], second: Mapping[str, Ratio], index: Ratio) -> Formula:
        """The fact of a phase, of the variables of both runs."""
        both = {**first, **{f"{name}'": value for name, value in second.items()}}
        return self.scope.formula(self.alignment.phases[phase], State(both, index), f"the fact {phase} the winner")


def race_of(scope: Scope, alignment: Alignment, done: list[str]) -> Race:
    """The program as a race. Raises `ProofRejected` where its form is not that of the argument above."""
    program = scope.program
    if program.loop is None or program.after or len(program.result) != 1:
        raise ProofRejected("a proof of shape 'winner' needs one loop, nothing after it, and one result")
    (result,) = program.result
    if not isinstance(result, nodes.Variable):
        raise ProofRejected("a proof of shape 'winner' needs a program that returns an index")
    if any(isinstance(statement, nodes.Branch | nodes.Emit | nodes.Stop) for statement in program.before):
        raise ProofRejected("a proof of shape 'winner' needs plain statements before the loop")
    _check_loop(program.loop, result.name)
    (before,) = paths_of("before", program.before, State({}), scope.public)
    head = _numbers(before)
    for name in targets(program.loop):
        head.pop(name, None)
        if name in numbers(program):
            head[name] = Ratio.of(Unknown("variable", name))
    head[result.name] = Ratio.of(Unknown("variable", result.name, whole=True))
    paths = paths_of("loop", program.loop, State(head, Ratio.of(INDEX), Ratio.of(ANSWER)), scope.public)
    return Race(scope, alignment, result.name, before, head, paths, done)


def check_race(race: Race, cost: Ratio) -> None:
    """Raises `ProofRejected` unless the alignment shows that every index returned costs at most `cost`."""
    _check_names(race)
    for drawn in race.before.draws:
        check_draw(drawn, ZERO, race.scope.facts, "before", race.done)
    _check_first(race)
    _check_entry(race)
    shifts = {
        shift.draw: Ratio.number(shift.constant) + Ratio.number(shift.answer) * Ratio.of(MOVED)
        for shift in race.alignment.shifts
    }
    for first in race.paths:
        for second in race.paths:
            _check_phase(race, first, second, "before", {})
            _check_winner(race, first, second, shifts)
            _check_phase(race, first, second, "after", {})
    _check_cost(race, shifts, cost)


def _check_first(race: Race) -> None:
    """Whatever the data: the first answer becomes the winner."""
    facts = _inside(race).assuming(compared("==", Ratio.of(INDEX), ZERO))
    for path in race.paths:
        if not _gives(path, race):
            what = f"{path.name}: the first answer always becomes the winner"
            facts.assuming(*path.taken).must(Truth(False), what, race.done)


def _check_entry(race: Race) -> None:
    """The fact before the winner holds on entry; variables without a value yet may be anything."""
    entry = _numbers(race.before)
    first = {**race.head, **entry}
    second = {**_second_head(race), **entry}
    race.scope.facts.must(race.fact("before", first, second, ZERO), "entry: the fact before the winner", race.done)


def _check_phase(race: Race, first: Path, second: Path, phase: str, shifts: Mapping[str, Ratio]) -> None:
    """A turn before or after that of the winner keeps the fact of its phase."""
    if phase == "after" and _gives(first, race):
        return  # the first run gives the winner no value any more
    facts, theirs, ours = _pair(race, first, second, shifts)
    facts = facts.assuming(race.fact(phase, race.head, _second_head(race), Ratio.of(INDEX)))
    name = f"{phase} the winner: {first.name} with {second.name}"
    after = Ratio.of(INDEX) + ONE
    if phase == "after":
        facts = facts.assuming(
            compared(">=", Ratio.of(INDEX), ONE),
            compared("==", race.head[race.winner], _second_head(race)[race.winner]),
        )
        if _gives(second, race):
            facts.must(Truth(False), f"{name}: the second run keeps its winner", race.done)
            return
    facts.must(race.fact(phase, ours, theirs, after), f"{name}: its fact is kept", race.done)


def _check_winner(race: Race, first: Path, second: Path, shifts: Mapping[str, Ratio]) -> None:
    """The turn of the winner leads from the one fact to the other, and gives the second run the same winner."""
    if not _gives(first, race):
        return  # W would end as an earlier or a later index
    facts, theirs, ours = _pair(race, first, second, shifts)
    facts = facts.assuming(race.fact("before", race.head, _second_head(race), Ratio.of(INDEX)))
    name = f"at the winner: {first.name} with {second.name}"
    facts.must(compared("==", theirs[race.winner], Ratio.of(INDEX)), f"{name}: the same winner", race.done)
    fact = race.fact("after", ours, theirs, Ratio.of(INDEX) + ONE)
    facts.must(fact, f"{name}: the fact after it", race.done)


def _check_cost(race: Race, shifts: Mapping[str, Ratio], cost: Ratio) -> None:
    """The shifts of the turn of the winner cost at most what is stated, and its draws allow them."""
    for path in race.paths:
        second, sizes = race.second(path, shifts), Sizes()
        spent = path_cost(path, second, sizes)
        facts = _inside(race).assuming(*path.taken)
        for drawn in path.draws:
            check_draw(drawn, second[drawn.symbol] - Ratio.of(drawn.symbol), facts, path.name, race.done)
        what = f"at the winner: {path.name}: the cost is at most {cost}"
        facts.assuming(*sizes.facts()).must(compared("<=", spent, cost), what, race.done)


def _pair(
    race: Race, first: Path, second: Path, shifts: Mapping[str, Ratio]
) -> tuple[Facts, dict[str, Ratio], dict[str, Ratio]]:
    """What is known of a turn in which the runs take these paths; the variables of the second run and of the first."""
    moved = race.second(second, shifts)
    facts = _inside(race).assuming(*first.taken, *(put(fact, moved) for fact in second.taken))
    theirs = {name: value.put(moved) for name, value in _numbers(second).items()}
    return facts, theirs, _numbers(first)


def _inside(race: Race) -> Facts:
    index = Ratio.of(INDEX)
    low, high = REACH[race.scope.proof.adjacency]
    return race.scope.facts.assuming(
        compared(">=", index, ZERO),
        compared("<=", index + ONE, Ratio.of(LENGTH)),
        compared(">=", Ratio.of(MOVED), Ratio.number(low)),
        compared("<=", Ratio.of(MOVED), Ratio.number(high)),
    )


def _second_head(race: Race) -> dict[str, Ratio]:
    renamed = race.second(race.before, {})
    return {name: value.put(renamed) for name, value in race.head.items()}


def _numbers(path: Path) -> dict[str, Ratio]:
    return {name: value for name, value in path.end.items() if isinstance(value, Ratio)}


def _gives(path: Path, race: Race) -> bool:
    """Whether a path gives the winner a value, which is then the index."""
    return path.end[race.winner] != race.head[race.winner]


def _check_loop(block: nodes.Block, winner: str, inside: bool = False) -> None:
    """Draws in no branch, nothing given away, nothing that ends the loop, and no winner but the index."""
    for statement in block:
        match statement:
            case nodes.Branch(_, then, otherwise, _):
                _check_loop(then, winner, True)
                _check_loop(otherwise, winner, True)
            case nodes.Draw(target, _, _, line):
                if inside or target == winner:
                    raise ProofRejected(f"line {line}: a draw that only one of the two runs may make")
            case nodes.Emit(_, _, line) | nodes.Stop(line):
                raise ProofRejected(f"line {line}: a proof of shape 'winner' needs a loop that only finds the winner")
            case nodes.Assign(target, value, line):
                if target == winner and value != nodes.Index():
                    raise ProofRejected(f"line {line}: the winner is given a value that is not the index")


def _check_names(race: Race) -> None:
    draws = {drawn.target for path in race.paths for drawn in path.draws}
    seen = set()
    for shift in race.alignment.shifts:
        if shift.path != WINNER or shift.draw not in draws:
            raise ProofRejected(f"a shift of {shift.draw} on {shift.path}: there is no such draw at the winner")
        if shift.draw in seen:
            raise ProofRejected(f"a shift of {shift.draw} is given twice")
        if shift.differences:
            raise ProofRejected(f"a shift of {shift.draw} uses differences, which are not constant before the winner")
        seen.add(shift.draw)
    if race.alignment.kept or race.alignment.bounds or race.alignment.potential is not None:
        raise ProofRejected("kept differences, bounds and potentials belong to a proof of shape 'lock-step'")
    if set(race.alignment.phases) != set(PHASES):
        raise ProofRejected(f"the phases must be {' and '.join(PHASES)}, got {sorted(race.alignment.phases)}")
    if race.winner.endswith("'") or any(name.endswith("'") for name in race.head):
        raise ProofRejected("a variable whose name ends with a prime")
