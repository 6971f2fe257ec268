"""Facts of a tree that the reader, the search and the checker share: what stands in it, what it binds, what signs mean.

None is a judgement: what is private, which paths agree and what a shift costs, search and checker each decide by their
own lines. A fact that is wrong here is wrong for both, so this module is among those that must be right for PROVED.
"""

import ast
import operator
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from dpaudit.verify.language import nodes

Function = Callable[[Any, Any], Any]  # of numbers; orders are of terms of z3 too
ARITHMETIC: tuple[tuple[type[ast.operator], nodes.Operation, Function], ...] = (  # every sign of the language
    (ast.Add, "+", operator.add),
    (ast.Sub, "-", operator.sub),
    (ast.Mult, "*", operator.mul),
    (ast.Div, "/", operator.truediv),
    (ast.FloorDiv, "//", operator.floordiv),
    (ast.Mod, "%", operator.mod),
)
COMPARISONS: tuple[tuple[type[ast.cmpop], nodes.Order, Function], ...] = (
    (ast.Lt, "<", operator.lt),
    (ast.LtE, "<=", operator.le),
    (ast.Gt, ">", operator.gt),
    (ast.GtE, ">=", operator.ge),
    (ast.Eq, "==", operator.eq),
    (ast.NotEq, "!=", operator.ne),
)
OPERATIONS = {sign: function for _, sign, function in ARITHMETIC}
ORDERS = {sign: function for _, sign, function in COMPARISONS}
OPERATION_SIGNS = {kind: sign for kind, sign, _ in ARITHMETIC}
ORDER_SIGNS = {kind: sign for kind, sign, _ in COMPARISONS}
Binding = tuple[str, nodes.Expression | None]  # a name and the value that it is given; None for a draw


def inside(expression: nodes.Expression) -> tuple[nodes.Expression, ...]:
    """What an expression is made of."""
    match expression:
        case nodes.Arithmetical(_, left, right) | nodes.Compared(_, left, right):
            return left, right
        case nodes.All(several) | nodes.Any(several):
            return several
        case nodes.Not(part):
            return (part,)
    return ()


def parts(expression: nodes.Expression) -> Iterator[nodes.Expression]:
    """An expression and everything in it."""
    yield expression
    for part in inside(expression):
        yield from parts(part)


def reads(*expressions: nodes.Expression) -> frozenset[str]:
    """The variables in some expressions.

    >>> sorted(reads(nodes.Arithmetical("+", nodes.Variable("a"), nodes.Variable("b"))))
    ['a', 'b']
    """
    every = (part for expression in expressions for part in parts(expression))
    return frozenset(part.name for part in every if isinstance(part, nodes.Variable))


def statements(block: nodes.Block) -> Iterator[nodes.Statement]:
    """The statements of a block, those in its branches included."""
    for statement in block:
        yield statement
        if isinstance(statement, nodes.Branch):
            yield from statements(statement.then)
            yield from statements(statement.otherwise)


def bindings(block: nodes.Block) -> Iterator[Binding]:
    """Every name that a block gives a value, with the value."""
    for statement in statements(block):
        if isinstance(statement, nodes.Assign):
            yield statement.target, statement.value
        elif isinstance(statement, nodes.Draw):
            yield statement.target, None


def targets(block: nodes.Block) -> frozenset[str]:
    """Every name that a block gives a value, by assignment or by a draw."""
    return frozenset(name for name, _ in bindings(block))


Walk = tuple[nodes.Statement | tuple[nodes.Branch, bool], ...]  # the statements on a path, branches with the decision


def walks(block: nodes.Block) -> Iterator[Walk]:
    """The control paths of a block, in the order of their decisions; nothing follows a stop."""
    if not block:
        yield ()
        return
    first, rest = block[0], block[1:]
    if isinstance(first, nodes.Stop):
        yield (first,)
    elif isinstance(first, nodes.Branch):
        for taken, inner in ((True, first.then), (False, first.otherwise)):
            for walk in walks((*inner, *rest)):
                yield ((first, taken), *walk)
    else:
        for walk in walks(rest):
            yield (first, *walk)


def used(statement: nodes.Statement) -> tuple[nodes.Expression, ...]:
    """The expressions of a statement, without those of the statements in it."""
    match statement:
        case nodes.Assign(value=expression) | nodes.Draw(scale=expression) | nodes.Branch(condition=expression):
            return (expression,)
        case nodes.Emit(value, key):
            return (value,) if key is None else (value, key)
    return ()


def largest(
    values: Iterable[Binding], holds: Callable[[nodes.Expression | None, frozenset[str]], bool]
) -> frozenset[str]:
    """The largest set of names such that all their values pass a test, which may assume the set."""
    values = tuple(values)
    names = frozenset(name for name, _ in values)
    while fallen := {name for name, value in values if name in names and not holds(value, names)}:
        names -= fallen
    return names


def is_whole(value: nodes.Expression | None, variables: Collection[str], parameters: Collection[str]) -> bool:
    """Whether a value is a whole number, where these variables and parameters are."""
    match value:
        case nodes.Number(amount):
            return amount.denominator == 1
        case nodes.ProgramParameter(name):
            return name in parameters
        case nodes.Variable(name):
            return name in variables
        case nodes.Index() | nodes.Length():
            return True
        case nodes.Arithmetical(operation, left, right):
            return operation != "/" and all(is_whole(side, variables, parameters) for side in (left, right))
    return False
