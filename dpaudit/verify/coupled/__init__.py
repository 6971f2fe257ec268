"""Proofs by following two runs at once: what is equal in both is free, what is not is covered by noise that costs."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpaudit.verify.coupled.cases import MOVES, Case, Loops, cases
from dpaudit.verify.coupled.executor import MOST_WAYS, Executor, NotShown, OtherKind, Raised, Script
from dpaudit.verify.coupled.noise import Rng, Whole
from dpaudit.verify.coupled.rules import Listed, Split
from dpaudit.verify.coupled.spent import Spent
from dpaudit.verify.coupled.values import is_same
from dpaudit.verify.language.source import ReadSource

MOST_SPLITS = 64
RNG = ("rng", "random_state", "generator", "gen", "rs", "prng")
DRAWS = frozenset("laplace normal gumbel exponential geometric random choice integers standard_normal standard_exponential permutation uniform".split())


@dataclass(frozen=True, slots=True)
class Way:
    """One way through the program, of one case: its steps by line, words and cost."""

    case: str
    steps: tuple[tuple[int, str, Spent], ...]
    chance: Fraction | None = None  # with which the one record takes part, and whether it does on this way
    takes_part: bool = True
    raised: str = ""

    @property
    def total(self) -> Spent:
        """What the way spends."""
        total = Spent()
        for _, _, one in self.steps:
            total = Spent(total.pure + one.pure, total.gaussian + one.gaussian, total.squares + one.squares, total.delta + one.delta)
        return total


def derive(source: ReadSource, adjacency: str, parameters: Mapping[str, Any], *, kind: str | None = None, answers: int | None = None) -> tuple[Way, ...]:
    """The ways of all cases. Raises `NotShown` where a rule is missing."""
    errors: list[NotShown] = []
    kinds = (kind,) if kind else kinds_of(source.definition, adjacency in MOVES)
    for each, whole in itertools.product(kinds, (False, True)):
        if whole and not isinstance(errors[-1], Whole):
            continue  # nothing asked for it
        try:
            return _every_way(source, adjacency, parameters, each, answers, whole)
        except NotShown as error:
            errors.append(error)
    raise next((error for error in errors if not isinstance(error, OtherKind)), errors[0])


def _every_way(
    source: ReadSource, adjacency: str, parameters: Mapping[str, Any], kind: str, answers: int | None, whole: bool
) -> tuple[Way, ...]:
    points: dict[tuple[Any, ...], set[Any]] = {}
    for _ in range(MOST_SPLITS):
        found: list[Way] = []
        try:
            for case in cases(adjacency, kind, answers, whole, points):
                found += _ways(source, parameters, case)
                if len(found) > 10 * MOST_WAYS:
                    raise NotShown(1, "too many ways and kinds of records", "decide less")
            return tuple(found)
        except Split as split:
            points.setdefault(split.path, set()).add(split.value)
    raise NotShown(1, f"records compared with more than {MOST_SPLITS} values", "compare them with fewer")


def _ways(source: ReadSource, parameters: Mapping[str, Any], case: Case) -> list[Way]:
    ways: list[Way] = []
    script: Script | None = Script()
    while script is not None:
        raised = ""
        run = Executor(source)
        rules = Loops(run)
        rules.changed_axes.update(case.axes)
        run.rules, run.script = rules, script
        arguments = arguments_of(source.definition, parameters, case.data)
        try:
            output = rules.look(run.call_definition(source.definition, [], arguments, None))
            if not is_same(output):
                raise run.refusal("an output that is not the same on both datasets", "add noise to each part")
        except Raised as error:
            raised = str(error)
        except Listed:
            raise run.refusal("an answer by its place", "give `answers`, how many there are") from None
        ways.append(Way(case.words, tuple(rules.steps), rules.coin, rules.included, raised))
        if len(ways) > MOST_WAYS:
            raise run.refusal(f"more than {MOST_WAYS} ways through the code", "decide less by noise, or audit it")
        script = run.script.next()
    if all(way.raised for way in ways):
        raise NotShown(run.line, f"it always raises {ways[0].raised}", "give parameters for which it returns")
    return ways


def kinds_of(definition: ast.FunctionDef, of_answers: bool) -> tuple[str, ...]:
    """What the dataset may be, as the function uses it: a mapping where it asks for its items, or by its own keys."""
    names = {arg.arg for arg in (*definition.args.posonlyargs, *definition.args.args)}
    iterated = set()
    for node in ast.walk(definition):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr="items" | "keys" | "values") if name in names:
                return ("a mapping",)
            case ast.For(target=ast.Name(id=key), iter=ast.Name(id=name)) | ast.comprehension(target=ast.Name(id=key), iter=ast.Name(id=name)):
                iterated.add((name, key))
    for node in ast.walk(definition):
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Name(id=key)) if name in names and (name, key) in iterated:
                return ("a mapping",)
    return ("one number", "an array") if of_answers else ("records",)


def arguments_of(definition: ast.FunctionDef, parameters: Mapping[str, Any], data: Any) -> dict[str, Any]:
    """The arguments of the call: the dataset, the generator, the parameters."""
    plain = [each.arg for each in (*definition.args.posonlyargs, *definition.args.args, *definition.args.kwonlyargs)]
    drawing = {
        node.func.value.id
        for node in ast.walk(definition)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in DRAWS and isinstance(node.func.value, ast.Name)
    }
    rng = next((name for name in plain if name in RNG or name in drawing), None)
    names = [name for name in plain if name != rng and name not in parameters]
    if not names:
        raise NotShown(1, "a function without data", "write f(data, rng, parameters)")
    found = {name: value for name, value in parameters.items() if name in plain}
    found[names[0]] = data
    if rng is not None:
        found[rng] = Rng()
    return found
