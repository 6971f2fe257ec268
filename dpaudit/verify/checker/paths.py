"""The control paths of a block, each run once on symbols; and of a program, part by part.

A path is named by the decisions of the branches it meets. On one path every variable is a ratio in the symbols of its
start; the second run, which the proof says takes the same path, has the same ratios in its own numbers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from dpaudit.verify.checker.formulas import ProofRejected, Unknown
from dpaudit.verify.checker.values import ANSWER, INDEX, Public, State, condition, given_out, is_public, number
from dpaudit.verify.language import nodes
from dpaudit.verify.language.algebra import Formula, Opposite, Ratio
from dpaudit.verify.language.facts import Walk, bindings, inside, is_whole, largest, targets, walks

MOST_PATHS = 2_000


@dataclass(frozen=True, slots=True)
class Drawn:
    """A draw that a path makes: its name, the symbol it is, its law, its scale, its line."""

    target: str
    symbol: Unknown
    law: nodes.Law
    scale: Ratio
    line: int


@dataclass(frozen=True, slots=True)
class Output:
    """An output that a path gives, at a place where it has one."""

    value: Ratio | nodes.Symbol
    key: Ratio | None
    line: int


@dataclass(frozen=True, slots=True)
class Path:
    """One way through a block: the facts that lead down it, what it draws and gives, the variables at its end."""

    name: str
    facts: tuple[tuple[Formula, int], ...]
    draws: tuple[Drawn, ...]
    outputs: tuple[Output, ...]
    end: Mapping[str, Ratio]
    stops: bool

    @property
    def taken(self) -> tuple[Formula, ...]:
        """The facts that lead down the path."""
        return tuple(fact for fact, _ in self.facts)


def paths_of(part: nodes.Part, block: nodes.Block, start: State, public: Public) -> tuple[Path, ...]:
    """Every path of a block from a state, in the order of the decisions."""
    paths: list[Path] = []
    for walk in walks(block):
        paths.append(_run(part, walk, start, public))
        if len(paths) > MOST_PATHS:
            raise ProofRejected(f"the program has more than {MOST_PATHS} paths")
    return tuple(paths)


def _run(part: nodes.Part, walk: Walk, start: State, public: Public) -> Path:
    variables = dict(start.variables)
    facts: list[tuple[Formula, int]] = []
    draws: list[Drawn] = []
    outputs: list[Output] = []
    decisions, stops = "", False
    for step in walk:
        state = State(variables, start.index, start.answer)
        match step:
            case nodes.Assign(target, value, _):
                variables[target] = number(value, state, public)
            case nodes.Draw(target, law, scale, line):
                wide = number(scale, state, public)
                if not is_public(wide):
                    raise ProofRejected(f"the scale of {target} (line {line}) depends on the data or on noise")
                draws.append(Drawn(target, Unknown("draw", f"{part}:{target}"), law, wide, line))
                variables[target] = Ratio.of(draws[-1].symbol)
            case nodes.Emit(value, key, line):
                place = None if key is None else number(key, state, public)
                outputs.append(Output(given_out(value, state, public), place, line))
            case nodes.Stop():
                stops = True
            case (branch, taken):
                fact = condition(branch.condition, state, public)
                facts.append((fact if taken else Opposite(fact), branch.line))
                decisions += "T" if taken else "F"
    name = nodes.path_name(part, decisions)
    twice = {drawn.target for drawn in draws if [each.target for each in draws].count(drawn.target) > 1}
    if twice:
        raise ProofRejected(f"{name} makes the draw {min(twice)} twice")
    if stops and part != "loop":
        raise ProofRejected(f"{name} stops a loop that it is not in")
    return Path(name, tuple(facts), tuple(draws), tuple(outputs), variables, stops)


def public_variables(program: nodes.Program) -> tuple[frozenset[str], frozenset[str]]:
    """The variables that are the same in both runs as long as both take the same path, and those of them whole.

    A variable is public where every value it is given is an expression of what is public; the largest such set.
    """
    values = list(bindings(program.body))
    public = largest(values, _is_public)
    return public, public & largest(values, partial(is_whole, parameters=program.integers))


def _is_public(value: nodes.Expression | None, names: frozenset[str]) -> bool:
    match value:
        case None | nodes.Answer() | nodes.Emitted():
            return False
        case nodes.Variable(name):
            return name in names
        case _:
            return all(_is_public(part, names) for part in inside(value))


# --- the parts of a program: before the loop, one turn of it from its head, and what follows -----------------------


@dataclass(frozen=True, slots=True)
class Exit:
    """How the loop ends: by a path that stops it, or (None) after the last answer; and the paths that follow."""

    stop: Path | None
    entered: Mapping[str, Ratio]
    after: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """One path before the loop, and everything that may follow it.

    At the head of the loop a variable that the loop gives a value is a symbol: of kind "counter" where it is the same
    in both runs, "variable" where it is not. All others keep the value that they have before the loop.
    """

    before: Path
    head: State
    carried: frozenset[Unknown]
    loop: tuple[Path, ...]
    exits: tuple[Exit, ...]


def starts_of(program: nodes.Program, public: Public) -> tuple[Start, ...]:
    """The program on symbols, once for each path before its loop."""
    answer = Ratio.of(ANSWER) if program.loop is None else None
    return tuple(
        _start(program, before, public, answer)
        for before in paths_of("before", program.before, State({}, None, answer), public)
    )


def all_paths(start: Start) -> Iterator[Path]:
    """The path before, the paths of the loop, the paths after it."""
    yield start.before
    yield from start.loop
    for way_out in start.exits:
        yield from way_out.after


def _start(program: nodes.Program, before: Path, public: Public, answer: Ratio | None) -> Start:
    if program.loop is None:
        after = paths_of("after", program.after, State(before.end, None, answer), public)
        return Start(before, State(before.end), frozenset(), (), (Exit(None, before.end, after),))
    shared, whole = public_variables(program)
    kinds = {name: "counter" if name in shared else "variable" for name in targets(program.loop)}
    carried = frozenset(Unknown(kind, name, whole=name in shared and name in whole) for name, kind in kinds.items())
    head = {**before.end, **{symbol.name: Ratio.of(symbol) for symbol in carried}}
    loop = paths_of("loop", program.loop, State(head, Ratio.of(INDEX), Ratio.of(ANSWER)), public)
    exits = [Exit(None, head, paths_of("after", program.after, State(head), public))]
    exits += [
        Exit(path, path.end, paths_of("after", program.after, State(path.end), public)) for path in loop if path.stops
    ]
    return Start(before, State(head, Ratio.of(INDEX)), carried, loop, tuple(exits))
