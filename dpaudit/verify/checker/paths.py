"""The control paths of a block, each run once on symbols.

A path is named by the decisions of the branches it meets. On one path every variable is a ratio in the symbols of its
start; the second run, which the proof says takes the same path, has the same ratios in its own numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from dpaudit.verify.checker.ratios import Ratio, Unknown
from dpaudit.verify.checker.rejection import ProofRejected
from dpaudit.verify.checker.values import Public, State, Value, condition, is_public, number, value_of
from dpaudit.verify.language import nodes
from dpaudit.verify.language.facts import Walk, bindings, inside, is_whole, largest, walks
from dpaudit.verify.language.logic import Formula, Opposite

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

    value: Value
    key: Value | None
    line: int


@dataclass(frozen=True, slots=True)
class Path:
    """One way through a block: the facts that lead down it, what it draws and gives, the variables at its end."""

    name: str
    facts: tuple[tuple[Formula, int], ...]
    draws: tuple[Drawn, ...]
    outputs: tuple[Output, ...]
    end: Mapping[str, Value]
    stops: bool

    @property
    def taken(self) -> tuple[Formula, ...]:
        """The facts that lead down the path."""
        return tuple(fact for fact, _ in self.facts)


def paths_of(part: nodes.Part, block: nodes.Block, start: State, public: Public) -> tuple[Path, ...]:
    """Every path of a block from a state, in the order of the decisions."""
    found: list[Path] = []
    for walk in walks(block):
        found.append(_run(part, walk, start, public))
        if len(found) > MOST_PATHS:
            raise ProofRejected(f"the program has more than {MOST_PATHS} paths")
    return tuple(found)


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
                variables[target] = value_of(value, state, public)
            case nodes.Draw(target, law, scale, line):
                draws.append(_drawn(part, target, law, number(scale, state, public), line))
                variables[target] = Ratio.of(draws[-1].symbol)
            case nodes.Emit(value, key, line):
                place = None if key is None else value_of(key, state, public)
                outputs.append(Output(value_of(value, state, public), place, line))
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


def _drawn(part: nodes.Part, target: str, law: nodes.Law, scale: Ratio, line: int) -> Drawn:
    if not is_public(scale):
        raise ProofRejected(f"the scale of {target} (line {line}) depends on the data or on noise")
    return Drawn(target, Unknown("draw", f"{part}:{target}"), law, scale, line)


# --- which variables are public, whole, numbers -----------------------------------------------------------------


def assigned(block: nodes.Block) -> frozenset[str]:
    """Every name that a block gives a value, by assignment or by a draw."""
    return frozenset(name for name, _ in bindings(block))


def public_variables(program: nodes.Program) -> tuple[frozenset[str], frozenset[str]]:
    """The variables that are the same in both runs as long as both take the same path, and those of them whole.

    A variable is public where every value it is given is an expression of what is public; the largest such set.
    """
    values = list(bindings(program.body))
    public = largest(values, _is_public)
    return public, public & largest(values, partial(is_whole, parameters=program.integers))


def numbers(program: nodes.Program) -> frozenset[str]:
    """The variables that hold numbers and nothing else."""
    return largest(bindings(program.body), _is_number)


def _is_public(value: nodes.Expression | None, names: frozenset[str]) -> bool:
    match value:
        case None | nodes.Answer() | nodes.Emitted():
            return False
        case nodes.Variable(name):
            return name in names
        case _:
            return all(_is_public(part, names) for part in inside(value))


def _is_number(value: nodes.Expression | None, names: frozenset[str]) -> bool:
    match value:
        case nodes.Variable(name):
            return name in names
        case None | nodes.Number() | nodes.Parameter() | nodes.Answer() | nodes.Index() | nodes.Length():
            return True
        case nodes.Arithmetical(_, left, right):
            return _is_number(left, names) and _is_number(right, names)
        case _:
            return False
