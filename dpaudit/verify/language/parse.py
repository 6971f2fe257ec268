"""The reader: from the source of a mechanism to the tree that provers work on, or a refusal.

The language is a small part of Python. One function f(data, rng, parameters); preconditions by `assert`, first;
numbers by + - * / of which all factors but one are public; draws of rng.laplace, exponential, gumbel and normal with
a public scale; one loop over the answers (for, while with an index, or a comprehension); if, break; counters and
variables; one list or dictionary of outputs; one return, last. Whatever else stands in a mechanism is refused by
name, and so is everything whose meaning would have to be guessed.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language import nodes
from dpaudit.verify.language.checks import check, check_read, whole_parameters
from dpaudit.verify.language.facts import parts
from dpaudit.verify.language.names import Names, names_of
from dpaudit.verify.language.outline import Loop, assigned, outline_of
from dpaudit.verify.language.results import finished, returned
from dpaudit.verify.language.signature import is_real, number_in, signature_of
from dpaudit.verify.language.source import ReadSource, source_of
from dpaudit.verify.language.statements import Lowered, block
from dpaudit.verify.language.values import condition


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
    preconditions = tuple(_precondition(names, node) for node in outline.asserts)
    before = block(names, outline.before, outermost=True)
    loop = None
    if outline.loop is not None:
        loop = _loop(names, outline.loop)
        names.part = "after"
    after = block(names, outline.after, outermost=True)
    lowered, result = returned(names, outline.result)
    before, after = (before, (*after, *lowered)) if loop is not None else ((*before, *lowered), ())
    found = nodes.Program(
        definition.name,
        text,
        signature.data,
        signature.parameters,
        frozenset(),
        preconditions,
        before,
        loop,
        after,
        result,
        signature.defaults,
        tuple(names.divisors),
    )
    check_read(names, outline, found)
    found = finished(names, found)
    check(names, found)
    return replace(found, integers=whole_parameters(names, found))


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


def _precondition(names: Names, node: ast.Assert) -> nodes.Expression:
    found = condition(names, node.test, None)
    for part in parts(found):
        if isinstance(part, nodes.Variable | nodes.Answer | nodes.Index):
            raise names.error(node, f"`{ast.unparse(node)}`", "assert what holds of the public parameters")
    return found


def _constants(source: ReadSource) -> Mapping[str, nodes.Number | nodes.Symbol]:
    found: dict[str, nodes.Number | nodes.Symbol] = {}
    for name, node in source.constants.items():
        number = number_in(node)
        if number is not None:
            found[name] = nodes.Number(number, is_real(node))
        elif isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool | str)):
            found[name] = nodes.Symbol(repr(node.value))
    return found
