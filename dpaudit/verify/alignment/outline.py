"""The program as the search sees it: its public variables, its paths, its counters and their bounds."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import chain
from math import floor
from typing import Any

from dpaudit.verify.alignment import forms
from dpaudit.verify.alignment.forms import INDEX, LENGTH, ONE, Form, Leaf, add, head, one
from dpaudit.verify.alignment.parameters import Parameters
from dpaudit.verify.alignment.paths import Environment, Follower, PairedOutput, PairedPath, Quantity
from dpaudit.verify.alignment.rational import Rational, number, total, variable
from dpaudit.verify.alignment.solver import SolverTerms
from dpaudit.verify.language import nodes
from dpaudit.verify.language.algebra import Formula, Opposite, leaves
from dpaudit.verify.language.facts import Binding, bindings, inside, is_whole, largest, reads, used
from dpaudit.verify.proof import NoProof

FURTHEST = 4  # of a bound from the number that the program compares the counter with


@dataclass(frozen=True, slots=True)
class Counter:
    """A public whole number that only grows: what it starts with, what it adds on each path, its bounds at the head."""

    name: str
    start: Fraction
    added: Mapping[str, Fraction]
    bounds: tuple[Rational, ...]


@dataclass(frozen=True, slots=True)
class TakenApart:
    """A program taken apart. `live` are the private variables whose value matters at the head of the loop.

    `held` is what is known at the head of the loop, as formulas and (`facts`) as texts.
    """

    program: nodes.Program
    parameters: Parameters
    terms: SolverTerms
    before: tuple[PairedPath, ...]
    loop: tuple[PairedPath, ...]
    after: tuple[PairedPath, ...]
    live: tuple[str, ...]
    live_after: frozenset[str]
    counters: tuple[Counter, ...]
    facts: tuple[str, ...]
    held: tuple[Formula, ...]
    start: Environment

    def assumed(self, part: nodes.Part) -> list[Any]:
        """What holds in this part, for the solver."""
        return _assumed(self.terms, self.parameters, self.held if part != "before" else (), part == "loop")


def outline(program: nodes.Program, parameters: Parameters) -> TakenApart:
    """Takes a program apart. Raises `NoProof` for what the search cannot read."""
    follower = Follower(parameters.fixed)
    if program.loop is None:
        return _finished(program, parameters, follower)
    before = follower.paths("before", program.before, {})
    live_after = live(program.after, reads(*program.result), frozenset())
    live_head = live_after
    while (more := live_after | live(program.loop, live_head, live_after)) != live_head:
        live_head = more
    publics, whole = public_variables(program)
    start = _head_environment(program, before, live_head | live_after, publics)
    loop = [_seen(path, program) for path in follower.paths("loop", program.loop, start)]
    after = [_with_result(path, program, follower) for path in follower.paths("after", program.after, start)]
    parameters.learn(draw for path in (*before, *loop, *after) for draw in path.draws)
    terms = SolverTerms(frozenset(head(name) for name in whole) | parameters.integers)
    counters, texts, held = _counted(before, loop, sorted(publics & whole), parameters, terms)
    found = TakenApart(
        program,
        parameters,
        terms,
        tuple(before),
        tuple(loop),
        tuple(after),
        tuple(sorted((live_head | live_after) - publics)),
        live_after - publics,
        counters,
        texts,
        held,
        start,
    )
    loop, after = (
        [p for p in ways if terms.possible([*found.assumed(p.part), *map(terms.formula, p.taken)])]
        for ways in (loop, after)
    )
    return replace(found, loop=tuple(loop), after=tuple(after))


def live(block: nodes.Block, out: frozenset[str], stopped: frozenset[str]) -> frozenset[str]:
    """The variables whose value before the block matters, given those that matter after it and after a stop."""
    for statement in reversed(block):
        match statement:
            case nodes.Assign(target=target) | nodes.Draw(target=target):
                out -= {target}
            case nodes.Branch(_, then, otherwise, _):
                out = live(then, out, stopped) | live(otherwise, out, stopped)
            case nodes.Stop():
                out = stopped
        out |= reads(*used(statement))
    return out


def public_variables(program: nodes.Program) -> tuple[frozenset[str], frozenset[str]]:
    """The variables that depend on no answer and no noise where the branches do not, and those that are whole."""
    values: list[Binding] = list(bindings(program.body))
    publics = largest(values, _is_public)
    return publics, publics & largest(values, partial(is_whole, parameters=program.integers))


def _is_public(value: nodes.Expression | None, publics: frozenset[str]) -> bool:
    match value:
        case None | nodes.Answer() | nodes.Emitted():
            return False
        case nodes.Variable(name):
            return name in publics
    return all(_is_public(part, publics) for part in inside(value))


def _head_environment(
    program: nodes.Program, before: list[PairedPath], wanted: frozenset[str], publics: frozenset[str]
) -> dict[str, Quantity]:
    changed = {name for name, _ in bindings(program.loop or ())}
    known: dict[str, Quantity] = {}
    for name in wanted:
        starts = [path.after.get(name) for path in before]
        if None in starts and name not in changed:
            raise NoProof(f"{name} has no value before the loop on some path")
        if name in publics and name not in changed and _all_alike(starts):
            known[name] = starts[0]  # type: ignore[assignment]
        else:
            known[name] = Quantity.of(head(name), None if name in publics else forms.difference(name))
    return known


def _all_alike(values: list[Quantity | None]) -> bool:
    first = values[0]
    if first is None or first.exact is None:
        return False
    exact = [None if value is None or value.form != first.form else value.exact for value in values]
    return all(each is not None and each.same(first.exact) for each in exact)


def _seen(path: PairedPath, program: nodes.Program) -> PairedPath:
    """The path with those outputs that are given away in the end."""
    return path if nodes.Emitted() in program.result else replace(path, outputs=())


def _with_result(path: PairedPath, program: nodes.Program, follower: Follower) -> PairedPath:
    outputs = [
        PairedOutput(follower.value(part, path.after, path.line or 1), None, path.line or 1)
        for part in program.result
        if not isinstance(part, nodes.Emitted)
    ]
    return replace(_seen(path, program), outputs=(*_seen(path, program).outputs, *outputs))


def _finished(program: nodes.Program, parameters: Parameters, follower: Follower) -> TakenApart:
    """A program without a loop: two blocks, and the answer is the data itself."""
    paths = follower.paths("before", program.before, {})
    ends = {path.name: follower.paths("after", program.after, path.after) for path in paths}
    parameters.learn(draw for path in (*paths, *chain(*ends.values())) for draw in path.draws)
    whole = tuple(_with_result(_one_path(path, end), program, follower) for path in paths for end in ends[path.name])
    return TakenApart(
        program, parameters, SolverTerms(parameters.integers), whole, (), (), (), frozenset(), (), (), (), {}
    )


def _one_path(path: PairedPath, end: PairedPath) -> PairedPath:
    draws = (*path.draws, *(replace(draw, path=end.name) for draw in end.draws))
    return replace(
        path,
        decisions=(*path.decisions, *end.decisions),
        draws=tuple(replace(draw, path=draw.path or path.name) for draw in draws),
        outputs=(*path.outputs, *end.outputs),
        after=end.after,
    )


def _assumed(terms: SolverTerms, parameters: Parameters, held: tuple[Formula, ...], in_loop: bool) -> list[Any]:
    found = [terms.formula(part) for part in (*parameters.preconditions, *held)]
    found += [terms.atom(LENGTH) >= 1, terms.atom(INDEX) >= 0]
    if in_loop:
        found.append(terms.atom(INDEX) < terms.atom(LENGTH))
    return found


def _counted(
    before: list[PairedPath], loop: list[PairedPath], names: list[str], parameters: Parameters, terms: SolverTerms
) -> tuple[tuple[Counter, ...], tuple[str, ...], tuple[Formula, ...]]:
    """The counters, with every bound that holds at the head of the loop however often it has run."""
    texts: list[str] = []
    held: list[Formula] = []
    plain: dict[str, tuple[Fraction, dict[str, Fraction]]] = {}
    for name in names:
        steps = {path.name: path.number(name, one(head(name))) for path in loop}
        starts = {path.number(name) for path in before}
        if None not in steps.values() and len(starts) == 1 and (first := starts.pop()) is not None:
            plain[name] = (first, {path: value for path, value in steps.items() if value is not None})
    bounds: dict[str, list[Rational]] = {name: [] for name in plain}
    for name, (start, added) in plain.items():
        if all(value >= 0 for value in added.values()):  # so it is never below where it starts
            held.append(Leaf(">=", add(one(head(name)), forms.constant(start), -1), {}))
            texts.append(f"{name} >= {start}")
        for end in _ends(loop, name):
            for step in range(-FURTHEST, FURTHEST + 1):
                fact = Leaf("<=", add(add(one(head(name)), end, -1), forms.constant(step), -1), {})
                if _inductive(fact, before, loop, held, parameters, terms):
                    limit = _rational(add(end, forms.constant(step)))
                    bounds[name].append(limit)
                    held.append(fact)
                    if (text := f"{name} <= {limit}") not in texts:
                        texts.append(text)
                    break
    counters = tuple(
        Counter(name, start, added, tuple(bounds[name]))
        for name, (start, added) in plain.items()
        if bounds[name] and start >= 0 and all(value >= 0 for value in added.values())
    )
    return counters, tuple(texts), tuple(held)


def _ends(loop: list[PairedPath], name: str) -> list[Form]:
    """What the counter is compared with."""
    found: list[Form] = []
    for path in loop:
        for met in path.decisions:
            for leaf in leaves(met.condition, Leaf):
                factor = leaf.value.get(head(name))
                if factor is None or leaf.moved:
                    continue
                rest = {atom: -value / factor for atom, value in leaf.value.items() if atom not in (head(name), ONE)}
                offset = -leaf.value.get(ONE, Fraction(0)) / factor
                end = add(rest, forms.constant(floor(offset)))
                if (
                    all(isinstance(atom, str) and (atom == ONE or atom.isidentifier()) for atom in end)
                    and end not in found
                ):
                    found.append(end)
    return found


def _inductive(
    fact: Leaf,
    before: list[PairedPath],
    loop: list[PairedPath],
    held: list[Formula],
    parameters: Parameters,
    terms: SolverTerms,
) -> bool:
    counter = next(atom for atom in fact.value if isinstance(atom, str) and atom.startswith("head:"))
    name = counter.removeprefix("head:")
    for path in (*before, *(path for path in loop if not path.ends)):
        goal = Leaf("<=", add(add(fact.value, one(counter), -1), path.after[name].form), {})
        looping = path.part == "loop"
        known = _assumed(terms, parameters, (*held, fact) if looping else (), looping)
        taken = [terms.formula(part) for part in path.taken]
        if terms.possible([*known, *taken, terms.formula(Opposite(goal))]):
            return False
    return True


def _rational(form: Form) -> Rational:
    return total((number(1) if atom == ONE else variable(str(atom))) * number(value) for atom, value in form.items())
