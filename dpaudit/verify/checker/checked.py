"""A stored proof, doubted from end to end: what it shows, or which obligation fails.

Everything is derived again from the source: paths, what is public, how far each value of the second run is from that
of the first, which classes of runs there are. Of the proof only its data is used, and every fact in it is shown first.
With the search it shares the reader of the language, exact arithmetic and logic (`language`), and no judgement.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

from dpaudit.errors import InvalidSpec
from dpaudit.verify.alethe.obligations import Bases
from dpaudit.verify.checker.costs import check_class_cost, check_costs, classes, exits_of
from dpaudit.verify.checker.formulas import ProofRejected as ProofRejected
from dpaudit.verify.checker.formulas import Unknown, compared, decided, put
from dpaudit.verify.checker.lockstep import Coupled, check_names
from dpaudit.verify.checker.paths import Start, all_paths, starts_of
from dpaudit.verify.checker.values import LENGTH, Public, Scope, State, condition, fixed_values, scope_of
from dpaudit.verify.checker.winner import check_race, race_of
from dpaudit.verify.language import nodes, read, rounded, text
from dpaudit.verify.language.algebra import Ratio, TooLarge
from dpaudit.verify.proof import ADJACENCIES, SYMMETRIC, Case, Proof


@dataclass(frozen=True, slots=True)
class Checked:
    """A proof that was accepted: what it shows, for which inputs, and the obligations that were discharged.

    `keeps_claim` says whether the cost is at most the claim for all parameters of the scope; None where none is made.
    A proof whose cost is above its claim is a proof all the same, of its cost.
    """

    function: str
    statement: str
    scope: str
    assumptions: tuple[str, ...]
    obligations: tuple[str, ...]
    cost: str
    claim: str | None
    keeps_claim: bool | None


def check(proof: Proof, bases: Bases) -> Checked:
    """What the proof shows, with lemmas from these bases; `check` of the package says when it raises.

    The method is that of CheckDP (Wang, Ding, Kifer & Zhang 2020); the obligations are derived in `lockstep`,
    `costs` and `winner`, each with the argument why they are enough.
    """
    with _doubting():
        scope, starts = _scope(proof, bases)
        done = [f"the preconditions can be met, for {_given(scope)}"]
        if proof.shape == "winner":
            _check_winner(scope, done)
        elif proof.shape == "lock-step":
            _check_lockstep(scope, starts, done)
        else:
            raise ProofRejected(f"the shape must be 'lock-step' or 'winner', got {proof.shape!r}")
        cost = scope.ratio(proof.cost, "the cost")
        for number, case in enumerate(proof.cases):
            what = f"the cost {proof.cost} is at least that of case {number + 1}, {case.cost}"
            scope.facts.must(compared("<=", scope.ratio(case.cost, "the cost of a case"), cost), what, done)
        keeps = None
        if proof.claim is not None:
            keeps = scope.facts.holds(compared("<=", cost, scope.ratio(proof.claim, "the claim")))
            if keeps is None:
                raise ProofRejected(f"not shown whether the cost {cost} is at most the claim {proof.claim}")
        way = "" if proof.adjacency in SYMMETRIC else " (one way: from the first dataset to the second)"
        return Checked(
            function=proof.function,
            statement=f"the privacy loss of {proof.function} is at most {proof.cost}{way}",
            scope=_given(scope),
            assumptions=_assumptions(scope),
            obligations=tuple(dict.fromkeys(done)),
            cost=proof.cost,
            claim=proof.claim,
            keeps_claim=keeps,
        )


def epsilon(proof: Proof, parameters: Mapping[str, Fraction | int], bases: Bases) -> Fraction:
    """The cost of a proof at parameter values, as `epsilon` of the package says."""
    try:
        with _doubting():
            scope, _ = _scope(proof, bases)
            cost = scope.ratio(proof.cost, "the cost")
            values = _values(scope, proof, parameters)
            total = cost.put(values)
            unsure = rounded(scope.program, {**proof.fixed, **{n: Fraction(v) for n, v in parameters.items()}})
    except ProofRejected as error:
        raise InvalidSpec(f"the proof for {proof.function}: {error}") from None
    missing = sorted(symbol.name for symbol in total.symbols)
    if missing:
        raise InvalidSpec(f"the cost {proof.cost} needs a value of {', '.join(missing)}")
    if unsure is not None:
        raise unsure
    assert total.constant is not None
    return total.constant


def _scope(proof: Proof, bases: Bases) -> tuple[Scope, tuple[Start, ...]]:
    try:
        program = read(proof.source, name=proof.function)
    except InvalidSpec as error:
        raise ProofRejected(f"the source cannot be read: {error}") from None
    if program.name != proof.function:
        raise ProofRejected(f"the source is that of {program.name}, not of {proof.function}")
    if program.source.strip() != proof.source.strip():
        raise ProofRejected("the source must hold the function, then the constants it uses, and nothing else")
    unsure = rounded(program, proof.fixed)
    if unsure is not None:
        raise ProofRejected(str(unsure))
    fixed_values(program, proof)
    public = Public(program.integers, proof.fixed)
    starts = starts_of(program, public)
    scales = [drawn.scale for start in starts for path in all_paths(start) for drawn in path.draws]
    return scope_of(program, proof, scales, public, bases), starts


def _check_winner(scope: Scope, done: list[str]) -> None:
    proof = scope.proof
    if len(proof.cases) != 1 or len(proof.alignments) != 1 or proof.cases[0].counts is not None:
        raise ProofRejected("a proof of shape 'winner' has one alignment and one case, of all runs")
    _check_places(proof)
    cost = scope.ratio(proof.cases[0].cost, "the cost of a case")
    check_race(race_of(scope, proof.alignments[0], done), cost)


def _check_lockstep(scope: Scope, starts: tuple[Start, ...], done: list[str]) -> None:
    proof, program = scope.proof, scope.program
    _check_places(proof)
    for alignment in proof.alignments:
        check_names(alignment, starts, program, proof.adjacency)
    counted = [case for case in proof.cases if case.counts is not None]
    if not counted:
        if len(proof.cases) != 1:
            raise ProofRejected("more than one case of all runs")
        for start in starts:
            _check_all_runs(scope, start, proof.cases[0], done)
        return
    if len(counted) != len(proof.cases):
        raise ProofRejected("a case of all runs beside cases by counts")
    _check_counts(proof, starts, program)
    for start in starts:
        _check_classes(scope, start, done)


def _check_all_runs(scope: Scope, start: Start, case: Case, done: list[str]) -> None:
    both = Coupled(scope, scope.proof.alignments[case.alignment], start, done)
    both.check_entry()
    for path in start.loop:
        both.check_turn(path)
    for way_out in start.exits:
        both.check_exit(way_out)
    check_costs(both, both.alignment.potential, scope.ratio(case.cost, "the cost of a case"))


def _check_classes(scope: Scope, start: Start, done: list[str]) -> None:
    """Every class of runs has a case, and each case's alignment is sound along the paths that its runs take."""
    proof = scope.proof
    assert proof.answers is not None
    stated = {_counts(case) for case in proof.cases}
    possible = classes(start, scope, proof.answers)
    for counts in sorted(possible - stated):
        named = ", ".join(f"{path} {times} times" for path, times in counts) or "no turn of the loop"
        raise ProofRejected(f"no case covers the runs that take {named}")
    done.append(f"the {len(stated)} cases cover all runs over {proof.answers} answers")
    for place, alignment in enumerate(proof.alignments):
        mine = [case for case in proof.cases if case.alignment == place]
        both = Coupled(scope, alignment, start, done)
        taken = {path for case in mine for path, _ in _counts(case)}
        both.check_entry()
        for path in start.loop:
            if path.name in taken:
                both.check_turn(path)
        stops = [[p.name for p in start.loop if p.stops and p.name in dict(_counts(case))] for case in mine]
        for way_out in {id(way): way for each in stops for way in exits_of(start, each)}.values():
            both.check_exit(way_out)
        for case in mine:
            check_class_cost(both, dict(_counts(case)), scope.ratio(case.cost, "the cost of a case"))


def _check_places(proof: Proof) -> None:
    used = {case.alignment for case in proof.cases}
    if used != set(range(len(proof.alignments))):
        raise ProofRejected("the cases must use every alignment of the proof, and no other")


def _check_counts(proof: Proof, starts: tuple[Start, ...], program: nodes.Program) -> None:
    if program.loop is None or proof.answers is None:
        raise ProofRejected("cases by counts need a loop and a stated number of answers")
    if any(alignment.potential is not None for alignment in proof.alignments):
        raise ProofRejected("cases by counts have plain sums for their costs; a potential has no use there")
    names = {path.name for start in starts for path in start.loop}
    for case in proof.cases:
        for path, times in (case.counts or {}).items():
            if path not in names:
                raise ProofRejected(f"a case counts {path}, and the loop has no such path")
            if times < 0:
                raise ProofRejected(f"a case takes {path} {times} times")


def _counts(case: Case) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((path, times) for path, times in (case.counts or {}).items() if times))


@contextmanager
def _doubting() -> Iterator[None]:
    """What the arithmetic refuses is a rejection too."""
    try:
        yield
    except TooLarge as error:
        what = f"the program or the proof makes {error}, more than the checker computes with; simplify it"
        raise ProofRejected(what) from None
    except ZeroDivisionError:
        raise ProofRejected("a division by 0") from None
    except RecursionError:
        raise ProofRejected("the program or an expression of the proof is nested too deeply") from None
    except (ValueError, OverflowError) as error:
        if isinstance(error, InvalidSpec):
            raise
        raise ProofRejected("the program or the proof has numbers that are too long") from None


def _given(scope: Scope) -> str:
    """For which inputs, in words."""
    proof = scope.proof
    many = "any number of answers" if proof.answers is None else f"{proof.answers} answers"
    if scope.program.loop is None:
        many = "one answer"
    words = [f"all real query answers, {many}", ADJACENCIES[proof.adjacency]]
    if proof.fixed:
        words.append(", ".join(f"{name} = {value}" for name, value in proof.fixed.items()))
    free = [name for name in scope.program.parameters if name not in proof.fixed]
    if free:
        words.append(f"any {', '.join(free)} as assumed")
    return "; ".join(words)


def _assumptions(scope: Scope) -> tuple[str, ...]:
    asserted = [text(precondition) for precondition in scope.program.preconditions]
    whole = sorted(scope.program.integers - set(scope.proof.fixed))
    kinds = [f"{name} is whole" for name in whole]
    return (*dict.fromkeys([*scope.granted, *asserted, *kinds]), "arithmetic of real numbers, not of floats")


def _values(scope: Scope, proof: Proof, parameters: Mapping[str, Fraction | int]) -> dict[Unknown, Ratio]:
    """The symbols' values, each checked against the scope."""
    values: dict[Unknown, Ratio] = {}
    given = dict(proof.fixed)
    for name, value in parameters.items():
        number = Fraction(value)
        if name == LENGTH.name and name not in scope.program.parameters:
            if number.denominator != 1 or number < 1 or (proof.answers is not None and number != proof.answers):
                raise InvalidSpec(f"n = {number}: the proof is for {_given(scope)}")
            values[LENGTH] = Ratio.number(number)
            continue
        if name not in scope.program.parameters:
            raise InvalidSpec(f"{proof.function} has no parameter {name!r}")
        if name in proof.fixed and proof.fixed[name] != number:
            raise InvalidSpec(f"{name} = {number}: the proof is for {name} = {proof.fixed[name]}")
        if name in scope.program.integers and number.denominator != 1:
            raise InvalidSpec(f"{name} must be whole, got {number}")
        given[name] = number
        values[Unknown("parameter", name, whole=name in scope.program.integers)] = Ratio.number(number)
    if proof.answers is not None:
        values[LENGTH] = Ratio.number(proof.answers)
    public = Public(scope.program.integers, given)
    conditions = [scope.formula(text, State({}), "an assumption") for text in scope.granted]
    conditions += [condition(each, State({}), public) for each in scope.program.preconditions]
    if any(decided(put(each, values)) is False for each in conditions):
        at = ", ".join(f"{name} = {value}" for name, value in given.items())
        raise InvalidSpec(f"the parameters {at} are outside the proof's scope: {', '.join(_assumptions(scope))}")
    return values
