"""What a mechanism returns: expressions, the list of outputs, the largest of them."""

import ast
from collections.abc import Callable
from dataclasses import replace

from dpaudit.verify.language import nodes
from dpaudit.verify.language.facts import statements
from dpaudit.verify.language.names import Names
from dpaudit.verify.language.statements import Lowered, emitted, symbol_of
from dpaudit.verify.language.values import ONE, ZERO, Draws, is_condition, number


def returned(names: Names, node: ast.Return) -> tuple[Lowered, tuple[nodes.Expression, ...]]:
    """The statements that a return still makes (draws, say), and the expressions of the output."""
    given = node.value
    assert given is not None
    lowered: Lowered = []
    match given:
        case ast.Tuple(elts=[_, *_] as elements):
            found = [_part(names, element, lowered) for element in elements]
        case ast.Dict(keys=[ast.expr() as key], values=[element]):
            found = [_number(names, key, lowered), _part(names, element, lowered)]
        case ast.IfExp():
            found = _emitted(names, given, lowered)
        case _ if is_condition(names, given):
            found = _emitted(names, given, lowered)
        case _:
            found = [_part(names, given, lowered)]
    if found.count(nodes.Emitted()) > 1:
        raise names.error(node, "the list of outputs twice", "return it once")
    return lowered, tuple(found)


def finished(names: Names, program: nodes.Program) -> nodes.Program:
    """The plain form after the last rules: the largest output, the number of outputs, outputs that nobody returns."""
    if names.largest is not None:
        program = _largest(names, program)
    if names.counted:
        program = _counted(names, program)
    if nodes.Emitted() in program.result:
        return program
    return _emitting(program, lambda emit: ())


def emits(block: nodes.Block) -> list[nodes.Emit]:
    """All statements of a block, at any depth, that add an output."""
    return [statement for statement in statements(block) if isinstance(statement, nodes.Emit)]


def _part(names: Names, node: ast.expr, lowered: Lowered) -> nodes.Expression:
    match node:
        case ast.Name(id=name) if name == names.container:
            return nodes.Emitted()
        case ast.Call(func=ast.Name(id="tuple" | "list"), args=[ast.Name(id=name)], keywords=[]) if (
            name == names.container and not names.keyed
        ):
            return nodes.Emitted()
    symbol = symbol_of(names, node)
    return symbol if symbol is not None else _number(names, node, lowered)


def _number(names: Names, node: ast.expr, lowered: Lowered) -> nodes.Expression:
    draws: Draws = []
    found = number(names, node, draws)
    lowered += draws
    return found


def _emitted(names: Names, node: ast.expr, lowered: Lowered) -> list[nodes.Expression]:
    """A result that depends on a condition: one output, emitted in one branch or the other."""
    if names.container is not None:
        raise names.error(node, f"`return {ast.unparse(node)}`", "return the list of outputs, or use if before")
    lowered += emitted(names, node, None, node.lineno)
    return [nodes.Emitted()]


def _largest(names: Names, program: nodes.Program) -> nodes.Program:
    """The loop that keeps the largest output so far, in the place of the list."""
    assert names.container is not None
    loop = program.loop or ()
    places = [place for place, statement in enumerate(loop) if isinstance(statement, nodes.Emit)]
    stops = [
        place for place, one in enumerate(loop) if any(isinstance(part, nodes.Stop) for part in statements((one,)))
    ]
    alone = len(places) == 1 == len(emits(loop)) and not emits(program.before) and not emits(program.after)
    if not alone or any(place < places[0] for place in stops):
        line = emits(loop)[0].line if emits(loop) else 1
        cure = "add one number for every answer, on every path"
        raise names.error(line, f"the {names.largest} of {names.container} as it is filled", cure)
    if names.counted or nodes.Emitted() in program.result:
        cure = "return one of them"
        raise names.error(1, f"{names.container} beside its {names.largest}", cure)
    statement = loop[places[0]]
    assert isinstance(statement, nodes.Emit)
    line, candidate = statement.line, names.named("y")
    if isinstance(statement.value, nodes.Symbol):
        raise names.error(line, f"the {names.largest} of symbols", "add numbers")
    order: nodes.Order = ">" if names.largest == "max" else "<"
    is_first = nodes.Compared("==", nodes.Index(), ZERO)
    is_larger = nodes.Compared(order, nodes.Variable(candidate), nodes.Variable(names.value))
    takes = (
        nodes.Assign(names.winner, nodes.Index(), line),
        nodes.Assign(names.value, nodes.Variable(candidate), line),
    )
    chosen: nodes.Block = (
        nodes.Assign(candidate, statement.value, line),
        nodes.Branch(nodes.Any((is_first, is_larger)), takes, (), line),
    )
    start: nodes.Block = (nodes.Assign(names.winner, ZERO, line), nodes.Assign(names.value, ZERO, line))
    turn = (*loop[: places[0]], *chosen, *loop[places[0] + 1 :])
    return replace(program, before=(*program.before, *start), loop=turn)


def _counted(names: Names, program: nodes.Program) -> nodes.Program:
    """The program with one more assignment after each output."""
    counter = f"len({names.container})"
    one_more = nodes.Arithmetical("+", nodes.Variable(counter), ONE)

    def counting(emit: nodes.Emit) -> nodes.Block:
        return emit, nodes.Assign(counter, one_more, emit.line)

    found = _emitting(program, counting)
    return replace(found, before=(nodes.Assign(counter, ZERO, 1), *found.before))


def _emitting(program: nodes.Program, change: Callable[[nodes.Emit], nodes.Block]) -> nodes.Program:
    """The program with other statements in the place of each that adds an output."""

    def changed(block: nodes.Block) -> nodes.Block:
        lowered: Lowered = []
        for each in block:
            if isinstance(each, nodes.Branch):
                lowered.append(replace(each, then=changed(each.then), otherwise=changed(each.otherwise)))
            else:
                lowered += change(each) if isinstance(each, nodes.Emit) else (each,)
        return tuple(lowered)

    loop = None if program.loop is None else changed(program.loop)
    return replace(program, before=changed(program.before), loop=loop, after=changed(program.after))
