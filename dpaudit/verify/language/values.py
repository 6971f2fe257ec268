"""Expressions of a mechanism: numbers, draws, comparisons."""

import ast
from collections.abc import Sequence
from fractions import Fraction
from typing import get_args

from dpaudit.verify.language import nodes
from dpaudit.verify.language.facts import parts
from dpaudit.verify.language.names import Names
from dpaudit.verify.language.outline import unreadable
from dpaudit.verify.language.signature import LONGEST, literal

OPERATIONS: dict[type[ast.operator], nodes.Operation] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
ORDERS: dict[type[ast.cmpop], nodes.Order] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
ZERO, ONE = nodes.Number(Fraction(0)), nodes.Number(Fraction(1))
DOUBLE = nodes.Number(Fraction(1), True)  # times it, a whole number of Python's is a double
Draws = list[nodes.Draw]


def number(names: Names, node: ast.expr, draws: Draws | None) -> nodes.Expression:
    """An expression that a variable may hold or an output may be: it holds no `len` of the data."""
    return names.without_length(node, value(names, node, draws))


def value(names: Names, node: ast.expr, draws: Draws | None) -> nodes.Expression:
    """An expression that is a number; its draws are added to `draws`, None where there may be none."""
    match node:
        case ast.Constant():
            exact = literal(node)
            if exact is None:
                if type(node.value) in (int, float):
                    what = f"{node.value!r} as a number" if type(node.value) is float else "a number so long"
                    raise names.error(node, what, f"numbers have at most {LONGEST} digits, and doubles hold them")
                raise names.error(node, f"{node.value!r} as a number", "symbols are outputs, nothing else")
            return nodes.Number(exact, type(node.value) is float)
        case ast.Name():
            return _named(names, node)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return value(names, operand, draws)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return negative(value(names, operand, draws))
        case ast.BinOp():
            return _operation(names, node, draws)
        case ast.Subscript():
            return _answer(names, node)
        case ast.Call():
            return _call(names, node, draws)
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            raise names.error(node, "a comparison as a number", "use if and else")
    raise unreadable(names.function, node)


def negative(inner: nodes.Expression) -> nodes.Expression:
    """Minus a number, or 0 less an expression."""
    if isinstance(inner, nodes.Number) and not (inner.real and inner.value == 0):  # -0.0 is another output than 0.0
        return nodes.Number(-inner.value, inner.real)
    return nodes.Arithmetical("-", ZERO, inner)


def condition(names: Names, node: ast.expr, draws: Draws | None) -> nodes.Expression:
    """An expression that is true or false."""
    match node:
        case ast.Compare():
            return _comparison(names, node, draws)
        case ast.BoolOp(op=operator, values=values):
            inner = tuple(condition(names, part, None) for part in values)
            return nodes.All(inner) if isinstance(operator, ast.And) else nodes.Any(inner)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return nodes.Not(condition(names, operand, draws))
        case ast.Name(id=name) if name in names.flags:
            return nodes.Compared("==", nodes.Variable(name), ONE)
        case ast.Name(id=name) if name in names.holding:
            return names.meant(node, names.holding[name])
        case ast.Name(id=name) if name in names.conditions:
            raise names.error(node, f"{name}, whose comparison no longer holds the same numbers,", "compare here")
    raise names.error(node, f"`{ast.unparse(node)}` as a condition", "compare numbers")


def is_condition(names: Names, node: ast.expr) -> bool:
    """Whether an expression is true or false rather than a number."""
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Name(id=name):
            return name in names.flags or name in names.conditions
    return False


def of_parameters(expression: nodes.Expression) -> bool:
    """Whether an expression is of parameters and numbers alone, by + - * /.

    >>> of_parameters(nodes.Arithmetical("/", nodes.Number(Fraction(2)), nodes.ProgramParameter("eps")))
    True
    """
    match expression:
        case nodes.Number() | nodes.ProgramParameter():
            return True
        case nodes.Arithmetical(operation="+" | "-" | "*" | "/", left=left, right=right):
            return of_parameters(left) and of_parameters(right)
    return False


def _named(names: Names, node: ast.Name) -> nodes.Expression:
    name, loop = node.id, names.loop
    if loop is not None and name in (loop.answer, loop.index, loop.counter):
        if names.part != "loop":
            raise names.error(node, f"{name} outside the loop", "keep what is needed in a variable of its own")
        return nodes.Answer() if name == loop.answer else nodes.Index()
    if name in names.public:
        return names.meant(node, names.public[name])
    if name in names.signature.parameters:
        return nodes.ProgramParameter(name)
    if name == names.signature.data:
        if loop is not None:
            raise names.error(node, f"{name} as a number", "it is the list of answers: loop over it")
        return nodes.Answer()
    if name == names.signature.rng:
        raise names.error(node, f"{name} as a number", "it is the source of randomness")
    if name in names.conditions or name in names.flags:
        raise names.error(node, f"{name} as a number", "it is true or false: use if and else")
    if name == names.container:
        raise names.error(node, f"{name} as a number", "it holds the outputs")
    if name in names.times:
        return nodes.Variable(name)
    constant = names.constants.get(name)
    if isinstance(constant, nodes.Number):
        return constant
    if constant is not None:
        raise names.error(node, f"the symbol {name} as a number", "symbols are outputs, nothing else")
    raise names.error(node, f"the name {name}", "it is no parameter, no variable and no number of the module")


def _operation(names: Names, node: ast.BinOp, draws: Draws | None) -> nodes.Expression:
    operation = OPERATIONS.get(type(node.op))
    if operation is None:
        raise names.error(node, f"`{ast.unparse(node)}`", "only + - * / // % are read")
    left, right = value(names, node.left, draws), value(names, node.right, draws)
    if operation == "*" and not (of_parameters(left) or of_parameters(right)):
        raise names.error(node, f"the product `{ast.unparse(node)}`", "one factor must be of public parameters")
    if operation in ("/", "//", "%"):
        if right == ZERO or operation == "/" and not of_parameters(right):
            raise names.error(node, f"the quotient `{ast.unparse(node)}`", "divide by public parameters that are not 0")
        if not isinstance(right, nodes.Number):
            names.divisors[right, node.lineno] = None
    if operation in ("//", "%"):
        for side in (left, right):
            _whole_and_public(names, node, side)
    return names.computed(node, operation, left, right)


def _whole_and_public(names: Names, node: ast.expr, side: nodes.Expression) -> None:
    """Checks one side of // or %; its parameters must be whole numbers from now on."""
    for part in parts(side):
        fraction = isinstance(part, nodes.Number) and part.value.denominator != 1
        other = isinstance(part, nodes.Variable | nodes.Answer)
        other |= isinstance(part, nodes.Arithmetical) and part.operation == "/"
        if fraction or other or isinstance(part, nodes.ProgramParameter) and part.name in names.signature.reals:
            raise names.error(node, f"`{ast.unparse(node)}`", "// and % are of public whole numbers only")
        if isinstance(part, nodes.ProgramParameter):
            names.wholes.add(part.name)


def _answer(names: Names, node: ast.Subscript) -> nodes.Expression:
    loop = names.loop
    match node:
        case ast.Subscript(ast.Name(names.signature.data), ast.Name(index)) if loop and names.part == "loop":
            if index in (loop.index, loop.counter):
                return nodes.Answer()
    raise names.error(node, f"`{ast.unparse(node)}`", "only the answer at the loop's index is read")


def _call(names: Names, node: ast.Call, draws: Draws | None) -> nodes.Expression:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=law)) if name == names.signature.rng:
            return _draw(names, node, law, draws)
        case ast.Call(func=ast.Name(id="float"), args=[inner], keywords=[]):
            found = value(names, inner, draws)
            if isinstance(found, nodes.Number) and abs(found.value) <= 2**53:
                return nodes.Number(found.value, True)
            return names.computed(node, "*", DOUBLE, found)  # it rounds
        case ast.Call(func=ast.Name(id="int"), args=[inner], keywords=[]):
            found = value(names, inner, draws)
            names.must_be_whole.append((found, node.lineno, ast.unparse(node)))
            return found
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]):
            if name == names.signature.data and names.loop is not None:
                return nodes.Length()
            if name == names.container:
                names.counted = True
                return nodes.Variable(f"len({name})")
        case ast.Call(func=ast.Name(id="max" | "min" as word), args=[ast.Name(id=name)], keywords=[]):
            if name == names.container:
                _largest(names, node, word)
                return nodes.Variable(names.value)
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=name), attr="index"),
            args=[ast.Call(func=ast.Name(id="max" | "min" as word), args=[ast.Name(id=same)], keywords=[])],
            keywords=[],
        ):
            if name == same == names.container:
                _largest(names, node, word)
                return nodes.Variable(names.winner)
    cure = "only the draws of rng, float, int, and len in range() and guards are read"
    raise names.error(node, f"the call `{ast.unparse(node)}`", cure)


def _largest(names: Names, node: ast.expr, word: str) -> None:
    if names.part != "after" or names.keyed or names.largest not in (None, word):
        cure = "take one of them, of a list, after the loop"
        raise names.error(node, f"`{ast.unparse(node)}`", cure)
    names.largest = word


def _draw(names: Names, node: ast.Call, name: str, draws: Draws | None) -> nodes.Expression:
    law = next((law for law in get_args(nodes.Law) if law == name), None)
    if law is None:
        known = ", ".join(get_args(nodes.Law))
        raise names.error(node, f"the draw rng.{name}", f"the laws that are read: {known}")
    if draws is None:
        raise names.error(node, "a draw that and, or, or a chain may skip", "draw it before, into a variable")
    order: tuple[str, ...] = ("scale",) if law == "exponential" else ("loc", "scale")
    given: dict[str, ast.expr] = dict(zip(order, node.args, strict=False))
    for keyword in node.keywords:
        if keyword.arg not in order or keyword.arg in given:
            raise names.error(node, f"the call `{ast.unparse(node)}`", f"rng.{name} takes {' and '.join(order)}")
        given[keyword.arg] = keyword.value
    if len(node.args) > len(order) or any(isinstance(part, ast.Starred) for part in node.args):
        raise names.error(node, f"the call `{ast.unparse(node)}`", f"rng.{name} takes {' and '.join(order)}")
    evaluated = {word: value(names, part, draws) for word, part in given.items()}  # in the order of the source
    scale = evaluated.get("scale", ONE)
    if not of_parameters(scale):
        raise names.error(node, f"the scale of `{ast.unparse(node)}`", "it must be of public parameters, by + - * /")
    if isinstance(scale, nodes.Number) and scale.value <= 0:
        raise names.error(node, f"the scale of `{ast.unparse(node)}`", "it must be above 0")
    names.draws += 1
    target = f"draw_{names.draws}"
    names.forget(target)
    draws.append(nodes.Draw(target, law, scale, node.lineno))
    centre = evaluated.get("loc", ZERO)
    drawn = nodes.Variable(target)
    return drawn if centre == ZERO else names.computed(node, "+", centre, drawn)


def _comparison(names: Names, node: ast.Compare, draws: Draws | None) -> nodes.Expression:
    orders = [ORDERS.get(type(operator)) for operator in node.ops]
    if None in orders:
        raise names.error(node, f"`{ast.unparse(node)}`", "numbers are compared by < <= > >= == !=")
    sides: Sequence[ast.expr] = (node.left, *node.comparators)
    inside = draws if len(node.ops) == 1 else None
    found = [value(names, side, inside) for side in sides]
    compared = [
        nodes.Compared(order, left, right)
        for order, left, right in zip(orders, found[:-1], found[1:], strict=True)
        if order is not None
    ]
    names.operations += [(each, node.lineno) for each in compared]
    return compared[0] if len(compared) == 1 else nodes.All(tuple(compared))
