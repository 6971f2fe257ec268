"""The reader: from the source of a mechanism to the tree that provers work on, or a refusal.

The language is a small part of Python. One function f(data, rng, parameters); preconditions by `assert`, first;
numbers by + - * /, where at most one factor is not public; draws of rng.laplace, exponential, gumbel and normal with a
public scale; one loop over the answers (for, while with an index, or a comprehension); if, break; counters and
variables; one list or dictionary of outputs; one return, last. Anything else in a mechanism is refused by name, and so
is everything whose meaning would have to be guessed.
"""

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language import nodes
from dpaudit.verify.language.facts import bindings, is_whole, largest, parts, statements, used
from dpaudit.verify.language.outline import (
    RESERVED,
    Loop,
    Outline,
    assigned,
    is_real,
    number_in,
    outline_of,
    signature_of,
)
from dpaudit.verify.language.source import ReadSource, source_of
from dpaudit.verify.language.statements import block, emits, finished, returned
from dpaudit.verify.language.values import Lowered, Names, condition, names_of


def read(function: Callable[..., Any] | str, *, name: str | None = None) -> nodes.Program:
    """The tree of a mechanism, given as a function or as text (`name` picks one of several functions in it).

    The tree's `source` stands by itself: to read it again gives the same tree. Lines count from that of `def`, 1.
    Raises `OutsideLanguage` (with the line) for anything that the language does not hold, `InvalidSpec` where there
    is no source to read.

    >>> program = read("def f(q, rng, eps):\\n    return q + rng.laplace(scale=1 / eps)")
    >>> program.parameters, program.before[0].target, len(program.result)
    (('eps',), 'draw_1', 1)
    """
    try:
        return _program(source_of(function, name))
    except RecursionError as error:
        raise InvalidSpec("the source of a mechanism must not nest so deeply") from error


def _program(source: ReadSource) -> nodes.Program:
    definition, text = source.definition, source.text
    signature = signature_of(definition)
    outline = outline_of(definition, signature)
    names = names_of(definition, signature, _constants(source), outline.loop)
    preconditions = []
    for node in outline.asserts:
        preconditions.append(test := condition(names, node.test, None))
        if any(isinstance(part, nodes.Variable | nodes.Answer | nodes.Index) for part in parts(test)):
            raise names.error(node, f"`{ast.unparse(node)}`", "assert what holds of the public parameters")
    before = block(names, outline.before, outermost=True)
    loop = None
    if outline.loop is not None:
        loop = _loop(names, outline.loop)
        names.part = "after"
    after = block(names, outline.after, outermost=True)
    lowered, result = returned(names, outline.result)
    before, after = (before, (*after, *lowered)) if loop is not None else ((*before, *lowered), ())
    program = nodes.Program(
        definition.name,
        text,
        signature.data,
        signature.parameters,
        frozenset(),
        tuple(preconditions),
        before,
        loop,
        after,
        result,
        signature.defaults,
        tuple(names.divisors),
        tuple(names.operations),
    )
    check_read(names, outline, program)
    program = finished(names, program)
    check(names, program)
    return replace(program, integers=whole_parameters(names, program))


def _loop(names: Names, loop: Loop) -> nodes.Block:
    names.part = "loop"
    for name in assigned(*loop.body):  # at the head of the loop they may hold what the last answer left
        names.forget(name)
        names.holding.pop(name, None)
    names.forget(f"len({names.container})")
    at_the_head = dict(names.holding)
    guards: Lowered = []
    if loop.guards:
        tests = tuple(condition(names, guard, None) for guard in loop.guards)
        if any(isinstance(part, nodes.Answer) for test in tests for part in parts(test)):
            raise names.error(loop.line, "an answer in the guard of a loop", "compare it inside the loop, and break")
        ended = nodes.Not(tests[0] if len(tests) == 1 else nodes.All(tests))
        guards.append(nodes.Branch(ended, (nodes.Stop(loop.line),), (), loop.line))
    body = block(names, loop.body)
    names.holding = {name: test for name, test in at_the_head.items() if names.holding.get(name) == test}
    return (*guards, *body)


def _constants(source: ReadSource) -> Mapping[str, nodes.Number | nodes.Symbol]:
    constants: dict[str, nodes.Number | nodes.Symbol] = {}
    for name, node in source.constants.items():
        number = number_in(node)
        if number is not None:
            constants[name] = nodes.Number(number, is_real(node))
        elif isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool | str)):
            constants[name] = nodes.Symbol(repr(node.value))
    return constants


def check_read(names: Names, outline: Outline, program: nodes.Program) -> None:
    """Raises `OutsideLanguage` where the source may raise, or sets an output twice, even in code without effect.

    `check` sees what is left in the end, and that is less: comparisons and lists that are not used are gone by then.
    """
    known = _bound(names, outline.before, frozenset())
    assert known is not None  # there is no break before the loop
    if outline.loop is not None:
        loop = outline.loop
        inside = known | {name for name in (loop.answer, loop.index) if name is not None}
        for guard in loop.guards:
            _reads(names, guard, inside)
        _bound(names, loop.body, inside)
    known = _bound(names, outline.after, known)  # the loop may end at once: what it sets may not be set
    assert known is not None
    _reads(names, outline.result, known)
    if names.keyed:
        outside = [*emits(program.before), *emits(program.after)]
        if outside:
            raise names.error(outside[0].line, "an output by place outside the loop", "set it inside the loop")
        for line in _twice(program.loop or ()):
            raise names.error(line, "a place that may be set twice", "set it once on every path")


def check(names: Names, program: nodes.Program) -> None:
    """Raises `OutsideLanguage` for anything in a plain form whose meaning is not certain."""
    for statement in statements(program.body):
        if isinstance(statement, nodes.Assign) and statement.target in RESERVED:
            raise names.error(statement.line, f"a variable named {statement.target}", "give it another name")
    _outputs(names, program)
    wholes = largest(bindings(program.body), partial(_is_int, parameters=names.wholes))
    for expression, line, text in names.must_be_whole:
        if not _is_int(expression, wholes, names.wholes):
            raise names.error(line, f"`{text}`", "int() of a number that is not whole would round it")


def _is_int(value: nodes.Expression | None, variables: frozenset[str], parameters: Collection[str]) -> bool:
    """Whether a value is a whole number of Python's, so that int() of it is itself: 2.0 is not."""
    double = value is not None and any(isinstance(part, nodes.Number) and part.real for part in parts(value))
    return not double and is_whole(value, variables, parameters)


def whole_parameters(names: Names, program: nodes.Program) -> frozenset[str]:
    """The parameters that are whole numbers: annotated so, used by // or %, or compared with counters."""
    wholes = largest(bindings(program.body), partial(is_whole, parameters=names.wholes))  # counters above all
    found_so_far = set(names.wholes)
    for statement in statements(program.body):
        for part in (part for expression in used(statement) for part in parts(expression)):
            if isinstance(part, nodes.Compared):
                found_so_far |= _counted_against(names, part, wholes)
    return frozenset(found_so_far)


def _counted_against(names: Names, compared: nodes.Compared, wholes: frozenset[str]) -> set[str]:
    """The parameters in a comparison of whole numbers with at least one counter or index."""
    inside = [part for side in (compared.left, compared.right) for part in parts(side)]
    counts = any(isinstance(part, nodes.Index | nodes.Length) for part in inside)
    counts = counts or any(isinstance(part, nodes.Variable) and part.name in wholes for part in inside)
    parameters = {part.name for part in inside if isinstance(part, nodes.ProgramParameter)}
    if not counts or parameters & names.signature.reals:
        return set()
    alike = all(is_whole(side, wholes, parameters | names.wholes) for side in (compared.left, compared.right))
    return parameters if alike else set()


def _bound(names: Names, statements: Sequence[ast.stmt], known: frozenset[str]) -> frozenset[str] | None:
    """The local names that have a value after some statements, on every path; None where all paths leave the loop."""
    for statement in statements:
        match statement:
            case ast.If(test=test, body=then, orelse=otherwise):
                _reads(names, test, known)
                arms = [_bound(names, arm, known) for arm in (then, otherwise)]
                going = [arm for arm in arms if arm is not None]
                if not going:
                    return None
                known = frozenset.intersection(*going)
            case ast.Break():
                return None
            case ast.AugAssign(target=ast.Name(id=name) as target):
                _reads(names, ast.copy_location(ast.Name(id=name, ctx=ast.Load()), target), known)
                _reads(names, statement.value, known)
            case _:
                _reads(names, statement, known)
                stored = (part for part in ast.walk(statement) if isinstance(part, ast.Name))
                known |= {part.id for part in stored if isinstance(part.ctx, ast.Store)}
    return known


def _reads(names: Names, node: ast.AST, known: frozenset[str]) -> None:
    """Refuses local names without a value in any place: an unused expression is evaluated too, and may raise."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id in names.times.keys() - known:
            cure = "give it a value on every path before it is used, before the loop if it is used after the loop"
            raise names.error(part, f"{part.id}, which may have no value yet,", cure)


def _outputs(names: Names, program: nodes.Program) -> None:
    """True and 1 are equal outputs in Python."""
    everything = emits(program.body)
    values = [(emit.value, emit.line) for emit in everything]
    truth = [line for value, line in values if isinstance(value, nodes.Symbol) and value.name in ("True", "False")]
    numbers = [line for value, line in values if not isinstance(value, nodes.Symbol)]
    if truth and numbers:
        cure = "True equals 1 and False equals 0: use None or a text as the symbol"
        raise names.error(max(truth[0], numbers[0]), "True or False beside numbers as outputs", cure)


def _twice(block: nodes.Block) -> Iterator[int]:
    """The lines where a path through a block adds a second output."""
    most = 0
    for statement in block:
        if isinstance(statement, nodes.Branch):
            yield from _twice(statement.then)
            yield from _twice(statement.otherwise)
        added = _most(statement)
        if added and most:
            yield emits((statement,))[0].line
        most += added


def _most(statement: nodes.Statement) -> int:
    """How many outputs a statement may add at most."""
    if isinstance(statement, nodes.Branch):
        return max(sum(map(_most, statement.then)), sum(map(_most, statement.otherwise)))
    return int(isinstance(statement, nodes.Emit))
