"""Statements of a mechanism: assignments, outputs, branches."""

import ast
from collections.abc import Sequence

from dpaudit.verify.language import nodes
from dpaudit.verify.language.names import Names
from dpaudit.verify.language.outline import unreadable
from dpaudit.verify.language.source import read_names
from dpaudit.verify.language.values import ONE, ZERO, Draws, condition, is_condition, number, of_parameters, value

Lowered = list[nodes.Statement]


def block(names: Names, statements: Sequence[ast.stmt], *, outermost: bool = False) -> nodes.Block:
    """The plain form of some statements; `outermost` where they stand in no branch and no loop."""
    lowered: Lowered = []
    for place, node in enumerate(statements):
        if isinstance(node, ast.Break) and names.part == "loop":
            if place + 1 < len(statements):
                raise names.error(statements[place + 1], "a statement after break", "it is never run: take it out")
            lowered.append(nodes.Stop(node.lineno))
        else:
            lowered += _statement(names, node, outermost)
    return tuple(lowered)


def emitted(names: Names, node: ast.expr, key: nodes.Expression | None, line: int) -> Lowered:
    """The statements that add an output."""
    names.forget(f"len({names.container})")
    symbol = symbol_of(names, node)
    if symbol is not None:
        return [nodes.Emit(symbol, key, line)]
    draws: Draws = []
    if isinstance(node, ast.IfExp):
        test = condition(names, node.test, draws)
        then, otherwise = emitted(names, node.body, key, line), emitted(names, node.orelse, key, line)
        return [*draws, nodes.Branch(test, tuple(then), tuple(otherwise), line)]
    if is_condition(names, node):
        test = condition(names, node, draws)
        yes, no = (nodes.Emit(nodes.Symbol(word), key, line) for word in ("True", "False"))
        return [*draws, nodes.Branch(test, (yes,), (no,), line)]
    found = number(names, node, draws)
    return [*draws, nodes.Emit(found, key, line)]


def symbol_of(names: Names, node: ast.expr) -> nodes.Symbol | None:
    """The symbol that an expression is: None, True, False or a text, or a name of the module for one."""
    match node:
        case ast.Constant(value=None | bool() as word):
            return nodes.Symbol(str(word))
        case ast.Constant(value=str(word)):
            return nodes.Symbol(repr(word))
        case ast.Name(id=name):
            constant = names.constants.get(name)
            return constant if isinstance(constant, nodes.Symbol) else None
    return None


def _statement(names: Names, node: ast.stmt, outermost: bool) -> Lowered:
    match node:
        case ast.Pass():
            return []
        case ast.Assign(targets=[target], value=given):
            return _set(names, target, given, node, outermost)
        case ast.Assign():
            return _chained(names, node)
        case ast.AnnAssign(target=target, value=ast.expr() as given):
            return _set(names, target, given, node, outermost)
        case ast.AugAssign(target=ast.Name(id=name)) if name != names.container:
            return _raised(names, name, node)
        case ast.If():
            return _branch(names, node)
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[given], keywords=[])
        ) if name == names.container and not names.keyed:
            return emitted(names, given, None, node.lineno)
    raise unreadable(names.function, node)


def _branch(names: Names, node: ast.If) -> Lowered:
    draws: Draws = []
    test = condition(names, node.test, draws)
    before = dict(names.holding)
    then = block(names, node.body)
    after_then, names.holding = names.holding, dict(before)
    otherwise = block(names, node.orelse)
    kept = (after_then, names.holding)
    names.holding = {name: part for name, part in before.items() if all(arm.get(name) == part for arm in kept)}
    return [*draws, nodes.Branch(test, then, otherwise, node.lineno)]


def _set(names: Names, target: ast.expr, given: ast.expr, node: ast.stmt, outermost: bool) -> Lowered:
    """target = given, where target may be several names, or the place of an output."""
    match target, given:
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            written = {part.id for part in targets if isinstance(part, ast.Name)}
            if len(written) != len(targets) or written & read_names(given):
                raise names.error(node, f"`{ast.unparse(node)}`", "write one assignment for each name")
            pairs = zip(targets, values, strict=True)
            return [part for one, other in pairs for part in _set(names, one, other, node, outermost)]
        case ast.Name(id=name), _:
            return _assigned(names, name, given, node, outermost)
        case ast.Subscript(value=ast.Name(id=name), slice=key), _ if name == names.container and names.keyed:
            place = value(names, key, None)
            if place != nodes.Index():
                raise names.error(node, f"the key `{ast.unparse(key)}`", "outputs are kept by the loop's index")
            return emitted(names, given, place, node.lineno)
    raise unreadable(names.function, node)


def _assigned(names: Names, name: str, given: ast.expr, node: ast.stmt, outermost: bool) -> Lowered:
    """name = given."""
    if isinstance(given, ast.List) and not given.elts or isinstance(given, ast.Dict) and not given.keys:
        return _opened(names, name, given, node, outermost)
    if names.loop is not None and name == names.loop.counter:
        zero = isinstance(given, ast.Constant) and type(given.value) is int and given.value == 0
        if not (zero and outermost and names.part == "before"):
            raise names.error(node, f"`{ast.unparse(node)}`", f"set {name} to 0 once, before the loop")
        return []
    if name == names.container:
        raise names.error(node, f"a new value for {name}", "it holds the outputs: give other things another name")
    if name in names.flags:
        assert isinstance(given, ast.Constant)
        names.forget(name)
        return [nodes.Assign(name, ONE if given.value else ZERO, node.lineno)]
    draws: Draws = []
    if name in names.conditions:
        names.holding[name] = condition(names, given, draws)
        return [*draws]
    if isinstance(given, ast.IfExp):
        test = condition(names, given.test, draws)
        then, otherwise = (tuple(_assigned(names, name, arm, node, False)) for arm in (given.body, given.orelse))
        return [*draws, nodes.Branch(test, then, otherwise, node.lineno)]
    found = value(names, given, draws)
    if outermost and names.times[name] == 1 and (of_parameters(found) or found == nodes.Length()):
        names.public[name] = found
        return []
    names.forget(name)
    return [*draws, nodes.Assign(name, names.without_length(given, found), node.lineno)]


def _chained(names: Names, node: ast.Assign) -> Lowered:
    """a = b = given: numbers, found once."""
    draws: Draws = []
    found = number(names, node.value, draws)
    lowered: Lowered = list(draws)
    for target in node.targets:
        taken = {*read_names(node.value), *names.flags, names.container, names.loop and names.loop.counter}
        if not isinstance(target, ast.Name) or target.id in taken:
            raise names.error(node, f"`{ast.unparse(node)}`", "write one assignment for each name")
        names.forget(target.id)
        lowered.append(nodes.Assign(target.id, found, node.lineno))
    return lowered


def _raised(names: Names, name: str, node: ast.AugAssign) -> Lowered:
    """name += given, and the like."""
    if name in names.flags or name in names.conditions or names.loop and name == names.loop.counter:
        raise unreadable(names.function, node)
    old = ast.copy_location(ast.Name(id=name, ctx=ast.Load()), node)
    draws: Draws = []
    whole = ast.copy_location(ast.BinOp(left=old, op=node.op, right=node.value), node)
    found = number(names, whole, draws)
    names.forget(name)
    return [*draws, nodes.Assign(name, found, node.lineno)]


def _opened(names: Names, name: str, given: ast.expr, node: ast.stmt, outermost: bool) -> Lowered:
    """name = [] or name = {}: from here on it holds the outputs."""
    if names.container is not None or not outermost or names.part != "before" or names.times.get(name, 1) != 1:
        cure = "keep the outputs in one list or dictionary, empty before the loop and never set again"
        raise names.error(node, f"`{ast.unparse(node)}`", cure)
    names.container, names.keyed = name, isinstance(given, ast.Dict)
    return []
