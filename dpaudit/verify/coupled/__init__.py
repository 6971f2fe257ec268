"""Proofs by following two runs at once: what is equal in both is free, what is not is covered by noise that costs."""

from __future__ import annotations

import ast
import copy
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.claims import ApproximateDP, Claim, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.claims.rounding import above
from dpaudit.errors import InvalidSpec
from dpaudit.verify.checker.formulas import ProofRejected
from dpaudit.verify.coupled.cases import MOVES, RECORDS, LoopRules, NeighbourCase, cases
from dpaudit.verify.coupled.executor import TreeExecutor
from dpaudit.verify.coupled.noise import Rng, WholeAnswers
from dpaudit.verify.coupled.operators import Split
from dpaudit.verify.coupled.refused import check_followed
from dpaudit.verify.coupled.spent import Spending, at_most, by_sample, root_above
from dpaudit.verify.coupled.values import UserRows, has_inside, is_same, words
from dpaudit.verify.coupled.ways import MOST_WAYS, NotShown, OtherKind, RaisedAlike, Script
from dpaudit.verify.language.outline import parameters_of
from dpaudit.verify.language.source import ReadSource, place_of, source_of

MOST_SPLITS = 64
MOST_ANSWERS = 1_000  # of a derivation
ROWS = "rows of numbers"  # records whose norms are taken: more than one number each
KINDS = {True: ("one number", "an array", "a mapping"), False: ("records", ROWS, "a mapping")}  # of data; True: answers
RNG = ("rng", "random_state", "generator", "gen", "rs", "prng")
DRAWS = words(
    "laplace normal gumbel exponential geometric random choice integers standard_normal standard_exponential uniform"
)


@dataclass(frozen=True, slots=True)
class Way:
    """One way through the program, of one case of neighbours: its steps, each with its line, words and cost.

    `chance`: with which the one record takes part in a sample, and `takes_part` whether it does here; `raised`: the
    exception with which the way ends.
    """

    case: str
    steps: tuple[tuple[int, str, Spending], ...]
    chance: Fraction | None = None
    takes_part: bool = True
    raised: str = ""

    @property
    def total(self) -> Spending:
        """What the way spends."""
        return sum((spent for _, _, spent in self.steps), Spending())


@dataclass(frozen=True, slots=True)
class Derivation:
    """What following two runs of a program at once shows: every way of every case, with what it spends.

    It is for the parameters that are given, all datasets that differ as `adjacency` says, and `data`, one of `KINDS`;
    `answers` of them, None for any number; `whole`: they are whole numbers. `claim`, as results store one, is what was
    asked about; nothing rests on it.
    """

    source: str
    function: str
    adjacency: str
    parameters: Mapping[str, Any]
    data: str
    answers: int | None
    whole: bool
    ways: tuple[Way, ...]
    claim: Mapping[str, Any] | None = None

    def epsilon_at(self, delta: float) -> float:
        """An epsilon, rounded up, at which all ways are (epsilon, delta)-DP; infinite where there is none."""
        return max(by_sample(total, chance, delta) for chance, total in self._totals().items())

    def _totals(self) -> dict[Fraction | None, Spending]:
        """What no way spends more than, by the chance with which the record takes part; None: it surely does.

        A chance counts only for a case all of whose ways have it, and spend nothing where the record takes no part.
        """
        sampled: dict[str, Fraction | None] = {}
        for way in self.ways:
            idle = way.chance is not None and (way.takes_part or way.total == Spending())
            chance = way.chance if idle and sampled.get(way.case, way.chance) == way.chance else None
            sampled[way.case] = chance
        by_chance: dict[Fraction | None, list[Spending]] = {}
        for way in self.ways:
            by_chance.setdefault(sampled[way.case], []).append(way.total)
        return {chance: at_most(totals) for chance, totals in by_chance.items()}

    def shown(self, claim: Claim) -> Claim | None:
        """A claim of another form than (epsilon, delta) that follows, of the family of one that is asked about."""
        total = at_most(self._totals().values())
        if total.delta or math.isinf(total.squares) or isinstance(claim, PureDP | ApproximateDP):
            return None
        if isinstance(claim, RenyiDP):
            return total.renyi(claim.order)
        if isinstance(claim, ZeroConcentratedDP):
            return ZeroConcentratedDP(total.rho)
        if total.pure:
            return None if total.gaussian else PureDP(above(total.pure))
        return GaussianDP(root_above(total.gaussian))


def derive(
    source: ReadSource,
    adjacency: str,
    parameters: Mapping[str, Any],
    *,
    data: str | None = None,
    answers: int | None = None,
    heard: list[NeighbourCase] | None = None,
) -> Derivation:
    """What following two runs at once shows of a function, at these parameters.

    `adjacency` is a word of `MOVES` or `RECORDS`; `heard` is given the cases, until one is refused. Raises `NotShown`
    where no rule covers something.

    >>> from dpaudit.verify.language.source import source_of
    >>> count = source_of("def count(rows, rng, eps):\\n    return len(rows) + rng.laplace(scale=1 / eps)")
    >>> derive(count, "add_or_remove_one", {"eps": 0.5}).epsilon_at(0.0)
    0.5
    """
    if any(has_inside(each, set | frozenset | np.ndarray) for each in parameters.values()):
        raise NotShown(1, "a parameter that is a set or an array", "give a list")
    for function in (source.definition, *source.functions.values(), *source.classes.values()):
        check_followed(function)
    if answers and answers > MOST_ANSWERS:
        raise NotShown(1, f"more than {MOST_ANSWERS} answers, each followed by itself", "give fewer")
    errors: list[NotShown] = []
    heard = [] if heard is None else heard
    definition, known = source.definition, data or ("an array" if answers else None)
    kinds = (known,) if known else kinds_of(definition, names_of(definition, parameters)[0], adjacency in MOVES)
    for kind, whole in itertools.product(kinds, (False, True)):
        if whole and not isinstance(errors[-1], WholeAnswers):
            continue  # nothing asked for it
        try:
            ways = _every_way(source, adjacency, parameters, kind, answers, whole, heard)
            if kind == "records" and any((".row",) in case.numbers for case in heard):
                kind = ROWS
            return Derivation(source.text, definition.name, adjacency, dict(parameters), kind, answers, whole, ways)
        except NotShown as error:
            errors.append(error)
    told = next((error for error in errors if not isinstance(error, OtherKind)), errors[0])
    told.args = (str(told).replace(f"line {told.line}:", f"{place_of(source.text, told.line)}:", 1),)
    raise told


def check_derivation(given: Derivation) -> None:
    """Follows both runs of the source in it again, and compares every way and cost. Raises `ProofRejected`."""
    kinds = KINDS[given.adjacency in MOVES]
    if given.adjacency not in (*MOVES, *RECORDS) or given.data not in kinds:
        raise ProofRejected(f"data must be {' or '.join(kinds)}, and differ as a word for them says")
    if given.answers is not None and (given.data != "an array" or not 1 <= given.answers <= MOST_ANSWERS):
        raise ProofRejected(f"answers must be those of an array, from 1 to {MOST_ANSWERS}, got {given.answers}")
    try:
        source = source_of(given.source, given.function)
        found = derive(source, given.adjacency, given.parameters, data=given.data, answers=given.answers)
    except (NotShown, InvalidSpec) as error:
        raise ProofRejected(f"it cannot be followed: {error}") from None
    if (found.source, found.function, found.whole) != (given.source, given.function, given.whole):
        raise ProofRejected(
            "the source holds more than the function and what it uses, or the answers are of other numbers"
        )
    wrong = _counted(given.ways) - _counted(found.ways) or _counted(found.ways) - _counted(given.ways)
    if wrong:
        way = next(iter(wrong))
        raise ProofRejected(
            f"its ways are not those that are found; one side alone has this one of {way.case}: {way.steps}"
        )


def _counted(ways: Iterable[Way]) -> Counter[Way]:
    """How often each way comes; texts in a set have no order of their own."""
    return Counter(replace(way, steps=tuple(sorted(way.steps, key=repr))) for way in ways)


def _every_way(
    source: ReadSource,
    adjacency: str,
    parameters: Mapping[str, Any],
    kind: str,
    answers: int | None,
    whole: bool,
    heard: list[NeighbourCase],
) -> tuple[Way, ...]:
    points: dict[tuple[Any, ...], set[Any]] = {}
    for _ in range(MOST_SPLITS):
        found: list[Way] = []
        heard.clear()
        try:
            for case in cases(adjacency, kind, answers, whole, points):
                heard.append(case)
                found += _ways(source, parameters, case)
                if len(found) > 10 * MOST_WAYS:
                    raise NotShown(1, "too many ways and kinds of records", "decide less")
            return tuple(found)
        except Split as split:
            points.setdefault(split.path, set()).add(split.value)
    raise NotShown(1, f"records compared with more than {MOST_SPLITS} values", "compare them with fewer")


def _ways(source: ReadSource, parameters: Mapping[str, Any], case: NeighbourCase) -> list[Way]:
    ways: list[Way] = []
    script: Script | None = Script()
    while script is not None:
        raised = ""
        run, given = TreeExecutor(source), copy.deepcopy(dict(parameters))
        run.rules = rules = LoopRules(run)
        run.script = script
        rules.numbers, rules.of_users = case.numbers, isinstance(case.data, UserRows)
        try:
            output = rules.look(
                run.call_definition(source.definition, [], arguments_of(source.definition, given, case.data), None)
            )
            if not is_same(output):
                raise run.refusal("an output that is not the same on both datasets", "add noise to each part")
        except RaisedAlike as error:
            raised = str(error)
        except OverflowError:
            raise run.refusal("a number this large", "use numbers that doubles hold") from None
        if rules.facts.get("failing"):
            rules.pay("an entry of one dataset alone that shows", delta=rules.facts["failing"])
        if not (rules.alike(given, dict(parameters)) and rules.alike(run.constants, TreeExecutor(source).constants)):
            raise run.refusal("a parameter or a constant that is changed", "change a copy of it")
        ways.append(
            Way(case.words, tuple(rules.steps), rules.facts.get("coin"), rules.facts.get("takes part", True), raised)
        )
        if len(ways) > MOST_WAYS:
            raise run.refusal(f"more than {MOST_WAYS} ways through the code", "decide less by noise, or audit it")
        script = run.script.next()
    if all(way.raised for way in ways):
        raise NotShown(run.line, f"it always raises {ways[0].raised}", "give parameters for which it returns")
    return ways


def kinds_of(definition: ast.FunctionDef, data: str, of_answers: bool) -> tuple[str, ...]:
    """What the dataset may be, as the function uses it: a mapping where it asks for its items, or by its own keys."""
    keys, read = set[str](), set[str]()
    for node in ast.walk(definition):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr="items" | "keys" | "values") if name == data:
                return ("a mapping",)
            case ast.For(ast.Name(key), ast.Name(name)) | ast.comprehension(ast.Name(key), ast.Name(name)):
                keys |= {key} if name == data else set()
            case ast.Subscript(ast.Name(name), ast.Name(key)) if name == data:
                read.add(key)
    if keys & read:
        return ("a mapping",)
    return ("one number", "an array") if of_answers else ("records",)


def arguments_of(definition: ast.FunctionDef, parameters: Mapping[str, Any], data: Any) -> dict[str, Any]:
    """The arguments of the call: the dataset, the generator, the parameters."""
    name, rng = names_of(definition, parameters)
    return {**parameters, name: data, **({} if rng is None else {rng: Rng()})}


def names_of(definition: ast.FunctionDef, parameters: Iterable[str]) -> tuple[str, str | None]:
    """What a function calls its dataset and its generator."""
    plain = {each.arg: default for each, default in parameters_of(definition)}
    called = [node.func for node in ast.walk(definition) if isinstance(node, ast.Call)]
    owners = [each.value for each in called if isinstance(each, ast.Attribute) and each.attr in DRAWS]
    drawing = {each.id for each in owners if isinstance(each, ast.Name)}
    rng = next((name for name in plain if name in RNG or name in drawing), None)
    data = next((name for name in plain if name != "rng"), None)  # the first, after that of a method's object
    strange = sorted(set(parameters) - (set(plain) - {rng}))  # of a generator that is given nothing is known
    if data is None or strange or data == rng or data in parameters:
        what = f"no parameter {strange[0]!r}" if strange else "no data"
        raise NotShown(1, f"it has {what}", f"it has {', '.join(plain)}; write f(data, rng, parameters)")
    for name, default in plain.items():
        if default is None and name not in (data, rng, *parameters):
            raise NotShown(1, f"no value for the parameter {name!r}", "give it in parameters")
    return data, rng
