"""The program as the search sees it: its public parameters and variables, its paths, its counters and their bounds."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import floor
from typing import Any

from dpaudit.base.installed import z3
from dpaudit.errors import InvalidSpec
from dpaudit.verify.alignment import forms
from dpaudit.verify.alignment.forms import ONE, ZERO, Form, Leaf, NoProof, SolverTerms, add, head, number, one
from dpaudit.verify.alignment.paths import Follower, PairedDraw, PairedPath, Quantity
from dpaudit.verify.language import nodes, text
from dpaudit.verify.language.algebra import Both, Formula, Opposite, Polynomial, Ratio, Truth, leaves
from dpaudit.verify.language.facts import ORDERS, Binding, bindings, inside, is_whole, largest, reads, targets, used

REFERENCE = (Fraction(1), Fraction(3), Fraction(5, 2), Fraction(7, 3), Fraction(11, 5))
MILLISECONDS = 1_000  # for one comparison of costs; undecided counts as not comparable


class Parameters:
    """The parameters of a program: those that are `fixed`, and what holds of the others (`preconditions`).

    A parameter in the scale of a noise is taken for positive, a whole one for at least 1: `granted` says so in words.
    """

    def __init__(self, program: nodes.Program, fixed: Mapping[str, Fraction], granted: tuple[str, ...] = ()) -> None:
        self.fixed = {name: Fraction(value) for name, value in fixed.items()}
        self.integers = frozenset(program.integers) - set(self.fixed)
        self.free = tuple(name for name in program.parameters if name not in self.fixed)
        follower = Follower(self.fixed)
        self._asserted = tuple(
            part for each in program.preconditions for part in _parts(follower.condition(each, {}, 1))
        )
        if any(isinstance(part, Truth) and not part.holds for part in self._asserted):
            given = ", ".join(f"{name} = {value}" for name, value in self.fixed.items())
            values = f"the values {given} break" if given else "no values keep"
            raise InvalidSpec(f"{values} what {program.name} asserts of its parameters")
        self._beyond = granted
        self._grant(granted)

    def learn(self, draws: Iterable[PairedDraw]) -> None:
        """Take in the draws: parameters in their scales are positive. Raises `NoProof` where a scale may not be."""
        scales = {draw: number(1) / draw.weight for draw in draws}
        in_scales = {name for scale in scales.values() for name in scale.symbols}
        self._grant(
            (*(f"{n} >= 1" if n in self.integers else f"{n} > 0" for n in self.free if n in in_scales), *self._beyond)
        )
        for draw, scale in scales.items():
            if not self._positive(scale):
                raise NoProof(
                    f"nothing says that the scale {forms.cost_text(scale)} of this noise is positive: assert it",
                    draw.line,
                )

    def check_divisors(self, program: nodes.Program) -> None:
        """Raises `NoProof` where a divisor of the source may be 0, used or not: an exception reveals something."""
        for divisor, line in program.divisors:
            exact = Follower(self.fixed).value(divisor, {}, line).exact
            if exact is None or exact == ZERO or not (self._positive(exact) or self._positive(-exact)):
                raise NoProof(f"nothing says that the divisor {text(divisor)} is not 0: assert it is above 0", line)

    def _grant(self, texts: tuple[str, ...]) -> None:
        self.granted = texts
        self.preconditions: tuple[Formula, ...] = (*self._asserted, *map(_fact, texts))
        self._least = self._lower_bounds()
        self._known: dict[tuple[Ratio, Ratio], bool] = {}

    def typical(self, cost: Ratio) -> Fraction:
        """A cost at a point where costs are ordered of which neither is always the smaller one."""
        places = ((name, REFERENCE[place % len(REFERENCE)]) for place, name in enumerate(self.free))
        value = cost.put({name: number(self._least.get(name, 0) + more) for name, more in places}).constant
        assert value is not None
        return value

    def at_most(self, smaller: Ratio, larger: Ratio) -> bool:
        """Whether `smaller` <= `larger` for all values that the parameters may have (False where that is not known)."""
        gap = larger - smaller
        size = gap.constant
        if size is not None:
            return size >= 0
        key = (smaller, larger)
        if key not in self._known:
            self._known[key] = self.typical(gap) >= 0 and self._never(gap, strict=True)
        return self._known[key]

    def largest(self, costs: Iterable[Ratio]) -> Ratio | None:
        """The one that is never below another (0 of none); None where there is no such one."""
        best: Ratio | None = None
        rest: list[Ratio] = []
        for cost in costs:
            if best is None or self.at_most(best, cost):
                best = cost
            elif not self.at_most(cost, best):
                rest.append(cost)
        if best is None:
            return number(0)
        return best if all(self.at_most(cost, best) for cost in rest) else None

    # --- signs --------------------------------------------------------------------------------------------------

    def _positive(self, scale: Ratio) -> bool:
        size = scale.constant
        if size is not None:
            return size > 0
        return self._never(scale, strict=False)

    def _lower_bounds(self) -> dict[str, Fraction]:
        bounds: dict[str, Fraction] = {}
        for formula in self.preconditions:
            if isinstance(formula, Leaf) and len(names := [atom for atom in formula.value if atom != ONE]) == 1:
                name, factor = str(names[0]), formula.value[names[0]]
                if name in self.free and formula.order in ((">", ">=") if factor > 0 else ("<", "<=")):
                    least = -formula.value.get(ONE, Fraction(0)) / factor
                    bounds[name] = max(least, bounds.get(name, least))
        return bounds

    def _never(self, function: Ratio, *, strict: bool) -> bool:
        """Whether no values make the function negative (or, not `strict`, 0), as z3 finds."""
        module = z3()
        names = {name: module.Real(name) for name in self.free}
        if not function.symbols <= set(names):
            return False
        solver = module.Solver()
        solver.set("timeout", MILLISECONDS)
        for formula in self.preconditions:
            if isinstance(formula, Leaf) and all(atom == ONE or atom in names for atom in formula.value):
                powers = (((() if atom == ONE else ((str(atom), 1),)), each) for atom, each in formula.value.items())
                value = Polynomial(tuple(powers))
                solver.add(ORDERS[formula.order](_term(module, value, names), 0))
        above, below = (_term(module, side, names) for side in (function.above, forms.expanded(function.below)))
        solver.add(above * below < 0 if strict else above * below <= 0)
        return bool(solver.check() == module.unsat)


def _parts(formula: Formula) -> Iterator[Formula]:
    """The conditions that are joined by `and`."""
    if isinstance(formula, Both):
        for part in formula.parts:
            yield from _parts(part)
    else:
        yield formula


def _fact(text: str) -> Formula:
    """What is granted of a parameter: "eps > 0" or "N >= 1"."""
    name, order, _ = text.split()
    if order == ">":
        return Leaf(">", {name: Fraction(1)}, {})
    return Leaf(">=", {name: Fraction(1), ONE: Fraction(-1)}, {})


def _term(module: Any, polynomial: Polynomial, names: Mapping[str, Any]) -> Any:
    result = module.RealVal(0)
    for monomial, value in polynomial.terms:
        part = module.RealVal(str(value))
        for name, power in monomial:
            for _ in range(power):
                part = part * names[name]
        result = result + part
    return result


FURTHEST = 4  # of a bound from the number that the program compares the counter with


@dataclass(frozen=True, slots=True)
class Counter:
    """A public whole number that only grows: what it starts with, what it adds on each path, its bounds at the head."""

    name: str
    start: Fraction
    added: Mapping[str, Fraction]
    bounds: tuple[Ratio, ...]


@dataclass(frozen=True, slots=True)
class ProgramOutline:
    """A program taken apart. `live` are the private variables whose value matters at the head of the loop.

    `invariants` is what is known at the head of the loop, as formulas and (`facts`) as texts.
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
    invariants: tuple[Formula, ...]

    def assumed(self, part: nodes.Part) -> list[Any]:
        """What holds in this part, for the solver."""
        return _assumed(self.terms, self.parameters, self.invariants if part != "before" else (), part == "loop")


def outline_of(program: nodes.Program, parameters: Parameters) -> ProgramOutline:
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
    loop = follower.paths("loop", program.loop, start)
    after = [_with_result(path, program, follower) for path in follower.paths("after", program.after, start)]
    parameters.learn(draw for path in (*before, *loop, *after) for draw in path.draws)
    terms = SolverTerms(frozenset(head(name) for name in whole) | parameters.integers)
    counters, texts, invariants = _counted(before, loop, sorted(publics & whole), parameters, terms)
    outline = ProgramOutline(
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
        invariants,
    )
    loop, after = (
        [p for p in ways if terms.possible([*outline.assumed(p.part), *map(terms.formula, p.taken)])]
        for ways in (loop, after)
    )
    return replace(outline, loop=tuple(loop), after=tuple(after))


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
    changed = targets(program.loop or ())
    known: dict[str, Quantity] = {}
    for name in wanted:
        known[name] = Quantity.of(head(name), None if name in publics else forms.difference(name))
        if name in publics and name not in changed:
            first, *others = (path.after[name] for path in before)
            known[name] = first if all(other.form == first.form for other in others) else known[name]
    return known


def _with_result(path: PairedPath, program: nodes.Program, follower: Follower) -> PairedPath:
    parts = (part for part in program.result if part != nodes.Emitted())
    outputs = (follower.given_out(part, path.after, path.line or 1) for part in parts)
    return replace(path, outputs=(*path.outputs, *outputs))


def _finished(program: nodes.Program, parameters: Parameters, follower: Follower) -> ProgramOutline:
    """A program without a loop: one block, and the answer is the data itself."""
    paths = [_with_result(path, program, follower) for path in follower.paths("before", program.before, {})]
    parameters.learn(draw for path in paths for draw in path.draws)
    terms = SolverTerms(parameters.integers)
    return ProgramOutline(program, parameters, terms, tuple(paths), (), (), (), frozenset(), (), (), ())


def _assumed(terms: SolverTerms, parameters: Parameters, invariants: tuple[Formula, ...], in_loop: bool) -> list[Any]:
    formulas = [terms.formula(part) for part in (*parameters.preconditions, *invariants)]
    formulas += [terms.atom(forms.LENGTH) >= 1, terms.atom(forms.INDEX) >= 0]
    if in_loop:
        formulas.append(terms.atom(forms.INDEX) < terms.atom(forms.LENGTH))
    return formulas


def _counted(
    before: list[PairedPath], loop: list[PairedPath], names: list[str], parameters: Parameters, terms: SolverTerms
) -> tuple[tuple[Counter, ...], tuple[str, ...], tuple[Formula, ...]]:
    """The counters, with every bound that holds at the head of the loop however often it has run."""
    texts: list[str] = []
    invariants: list[Formula] = []
    plain: dict[str, tuple[Fraction, dict[str, Fraction]]] = {}
    for name in names:
        steps = {path.name: path.number(name, one(head(name))) for path in loop}
        starts = {path.number(name) for path in before}
        if None not in steps.values() and len(starts) == 1 and (first := starts.pop()) is not None:
            plain[name] = (first, {path: value for path, value in steps.items() if value is not None})
    bounds: dict[str, list[Ratio]] = {name: [] for name in plain}
    for name, (start, added) in plain.items():
        if all(value >= 0 for value in added.values()):  # so it is never below where it starts
            invariants.append(Leaf(">=", add(one(head(name)), forms.constant(start), -1), {}))
            texts.append(f"{name} >= {start}")
        for end in _ends(loop, name):
            for step in range(-FURTHEST, FURTHEST + 1):
                fact = Leaf("<=", add(add(one(head(name)), end, -1), forms.constant(step), -1), {})
                if _inductive(fact, before, loop, invariants, parameters, terms):
                    limit = _rational(add(end, forms.constant(step)))
                    bounds[name].append(limit)
                    invariants.append(fact)
                    if (text := f"{name} <= {forms.cost_text(limit)}") not in texts:
                        texts.append(text)
                    break
    counters = tuple(
        Counter(name, start, added, tuple(bounds[name]))
        for name, (start, added) in plain.items()
        if bounds[name] and start >= 0 and all(value >= 0 for value in added.values())
    )
    return counters, tuple(texts), tuple(invariants)


def _ends(loop: list[PairedPath], name: str) -> list[Form]:
    """What the counter is compared with."""
    ends: list[Form] = []
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
                    and end not in ends
                ):
                    ends.append(end)
    return ends


def _inductive(
    fact: Leaf,
    before: list[PairedPath],
    loop: list[PairedPath],
    invariants: list[Formula],
    parameters: Parameters,
    terms: SolverTerms,
) -> bool:
    counter = next(atom for atom in fact.value if isinstance(atom, str) and atom.startswith("head:"))
    name = counter.removeprefix("head:")
    for path in (*before, *(path for path in loop if not path.ends)):
        goal = Leaf("<=", add(add(fact.value, one(counter), -1), path.after[name].form), {})
        looping = path.part == "loop"
        known = _assumed(terms, parameters, (*invariants, fact) if looping else (), looping)
        taken = [terms.formula(part) for part in path.taken]
        if terms.possible([*known, *taken, terms.formula(Opposite(goal))]):
            return False
    return True


def _rational(form: Form) -> Ratio:
    return sum(
        ((number(1) if atom == ONE else forms.variable(str(atom))) * number(value) for atom, value in form.items()),
        ZERO,
    )
