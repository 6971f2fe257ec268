"""The reader: from the source of a mechanism to the tree that provers work on, or a refusal.

The language is a small part of Python. One function f(data, rng, parameters), or a method; preconditions by `assert`,
first, or by `raise`; numbers by + - * /, where at most one factor is not public; draws of rng.laplace, exponential,
gumbel and normal with a public scale; functions of the module, without loops; one loop over the answers (for, while
with an index, or a comprehension); if, break, continue; counters and variables; one list or dictionary of outputs, or
several returns of numbers and symbols. Anything else in a mechanism is refused by name, and so is everything whose
meaning would have to be guessed.
"""

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language import nodes
from dpaudit.verify.language.facts import bindings, is_whole, largest, parts, reads, statements, used
from dpaudit.verify.language.outline import (
    RESERVED,
    UNNAMED,
    Loop,
    Outline,
    assigned,
    is_real,
    number_in,
    outline_of,
    signature_of,
)
from dpaudit.verify.language.source import ReadSource, read_names, source_of
from dpaudit.verify.language.values import (
    ONE,
    ZERO,
    Lowered,
    Names,
    called,
    condition,
    is_condition,
    names_of,
    number,
    of_parameters,
    restricts,
    value,
)

JUMPS = (ast.Return, ast.Break, ast.Continue, ast.Raise)
STOP = "break"  # what a return in the loop is, where the same is returned after it


def block(names: Names, statements: Sequence[ast.stmt], *, outermost: bool = False) -> nodes.Block:
    """The plain form of some statements; `outermost` where they stand in no branch and no loop."""
    lowered: Lowered = []
    for place, node in enumerate(statements):
        rest = statements[place + 1 :]
        if rest and isinstance(node, JUMPS):
            what = f"a statement after {type(node).__name__.lower()}"
            raise names.error(rest[0], what, "it is never run: take it out")
        match node:
            case ast.Break() if names.part == "loop":
                lowered.append(nodes.Stop(node.lineno))
            case ast.Continue() if names.loop is not None and names.part == "loop":
                if names.loop.counter is not None:
                    raise names.error(node, f"continue, which leaves {names.loop.counter} as it is,", "use if and else")
            case ast.Return(value=given) if names.returned is not None or names.loop is not None:
                lowered += _left(names, node, given or ast.copy_location(ast.Constant(None), node))
            case ast.If() if restricts(names, node, always=outermost and names.part == "before"):
                return (*lowered, *block(names, [*node.orelse, *rest], outermost=outermost))
            case ast.If() if rest and _leaves(node, ast.Continue if names.part == "loop" else ast.Return):
                arms = [
                    arm if arm and isinstance(arm[-1], JUMPS) else [*arm, *rest] for arm in (node.body, node.orelse)
                ]
                names.copy(node, len(rest))
                whole = ast.If(test=node.test, body=arms[0], orelse=arms[1])
                return (*lowered, *_branch(names, ast.copy_location(whole, node)))
            case _:
                lowered += _statement(names, node, outermost)
    return tuple(lowered)


def _leaves(node: ast.stmt, kind: type[ast.stmt]) -> bool:
    return any(isinstance(part, kind) for part in ast.walk(node))


def _left(names: Names, node: ast.Return, given: ast.expr) -> Lowered:
    """One of several returns: each part of its value is an output; in the loop, a break."""
    if names.part == "before" and names.loop is not None:
        raise names.error(node, "a return before the loop", "return after it")
    stop: Lowered = [nodes.Stop(node.lineno)] if names.part == "loop" else []
    if names.returned == STOP:
        return stop
    outputs = given.elts if isinstance(given, ast.Tuple) else [given]
    if isinstance(given, ast.List) or outputs != [given] and len(outputs) == 1:
        raise names.error(node, f"`{ast.unparse(node)}` beside another return", "return its parts")
    lowered = [part for each in outputs for part in emitted(names, each, None, node.lineno)]
    return [*lowered, nodes.Assign(str(names.returned), ONE, node.lineno), *stop] if stop else lowered


def emitted(names: Names, node: ast.expr, key: nodes.Expression | None, line: int) -> Lowered:
    """The statements that add an output."""
    names.forget(f"len({names.container})")
    lowered: Lowered = []
    symbol = symbol_of(names, node)
    if symbol is not None:
        lowered.append(nodes.Emit(symbol, key, line))
    elif isinstance(node, ast.IfExp):
        test = condition(names, node.test, lowered)
        then, otherwise = emitted(names, node.body, key, line), emitted(names, node.orelse, key, line)
        lowered.append(nodes.Branch(test, tuple(then), tuple(otherwise), line))
    elif is_condition(names, node):
        test = condition(names, node, lowered)
        yes, no = (nodes.Emit(nodes.Symbol(word), key, line) for word in ("True", "False"))
        lowered.append(nodes.Branch(test, (yes,), (no,), line))
    else:
        output = number(names, node, lowered)
        lowered.append(nodes.Emit(output, key, line))
    return lowered


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
        case ast.AugAssign(op=ast.Add(), value=ast.List(elts=parts)) if not names.keyed:
            return [part for each in parts for part in emitted(names, each, None, node.lineno)]
        case ast.If():
            return _branch(names, node)
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[given], keywords=[])
        ) if name == names.container and not names.keyed:
            return emitted(names, given, None, node.lineno)
        case ast.Expr(value=ast.Call(func=ast.Name(id=name)) as call) if name in names.source.functions:
            called(names, call, lowered := Lowered())
            return lowered
    raise names.unreadable(node)


def _branch(names: Names, node: ast.If) -> Lowered:
    lowered: Lowered = []
    test = condition(names, node.test, lowered)
    before = dict(names.holding)
    then = block(names, node.body)
    after_then, names.holding = names.holding, dict(before)
    otherwise = block(names, node.orelse)
    arms = (after_then, names.holding)
    names.holding = {name: part for name, part in before.items() if all(arm.get(name) == part for arm in arms)}
    return [*lowered, nodes.Branch(test, then, otherwise, node.lineno)]


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
    raise names.unreadable(node)


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
    lowered: Lowered = []
    start = names.start_of(given)
    if start is not None and outermost and names.part == "before":
        return [nodes.Assign(name, start, node.lineno)]
    if name in names.conditions:
        names.holding[name] = condition(names, given, lowered)
        return lowered
    if isinstance(given, ast.IfExp):
        test = condition(names, given.test, lowered)
        then, otherwise = (tuple(_assigned(names, name, arm, node, False)) for arm in (given.body, given.orelse))
        return [*lowered, nodes.Branch(test, then, otherwise, node.lineno)]
    expression = value(names, given, lowered)
    counted = names.times[name] == 1 + names.steps[name] > 1 and expression != ZERO
    if counted and outermost and names.part == "before" and of_parameters(expression):
        names.down[name] = expression, names.made(f"{name}_used")
        return [nodes.Assign(names.down[name][1].name, ZERO, node.lineno)]
    if outermost and names.times[name] == 1 and (of_parameters(expression) or expression == nodes.Length()):
        names.public[name] = expression
        return []
    names.forget(name)
    return [*lowered, nodes.Assign(name, names.without_length(given, expression), node.lineno)]


def _chained(names: Names, node: ast.Assign) -> Lowered:
    """a = b = given: numbers, computed once."""
    lowered: Lowered = []
    expression = number(names, node.value, lowered)
    for target in node.targets:
        taken = {*read_names(node.value), *names.flags, names.container, names.loop and names.loop.counter}
        if not isinstance(target, ast.Name) or target.id in taken:
            raise names.error(node, f"`{ast.unparse(node)}`", "write one assignment for each name")
        names.forget(target.id)
        lowered.append(nodes.Assign(target.id, expression, node.lineno))
    return lowered


def _raised(names: Names, name: str, node: ast.AugAssign) -> Lowered:
    """name += given, and the like."""
    if name in names.flags or name in names.conditions or names.loop and name == names.loop.counter:
        raise names.unreadable(node)
    match node.value, node.op:
        case ((ast.Call(ast.Name("int"), [inner], []) | inner), ast.Add() | ast.Sub()) if is_condition(names, inner):
            one = ast.copy_location(ast.AugAssign(node.target, node.op, ast.Constant(1)), node)
            return _branch(names, ast.copy_location(ast.If(inner, [one], []), node))
    if name in names.down:
        steps = names.down[name][1]
        names.forget(steps.name)
        more = names.computed(node, "+", steps, value(names, node.value, None))
        return [nodes.Assign(steps.name, more, node.lineno)]
    old = ast.copy_location(ast.Name(id=name, ctx=ast.Load()), node)
    whole = ast.copy_location(ast.BinOp(left=old, op=node.op, right=node.value), node)
    return _assigned(names, name, whole, node, False)


def _opened(names: Names, name: str, given: ast.expr, node: ast.stmt, outermost: bool) -> Lowered:
    """name = [] or name = {}: from here on it holds the outputs."""
    if names.container is not None or not outermost or names.part != "before" or names.times.get(name, 1) != 1:
        cure = "keep the outputs in one list or dictionary, empty before the loop and never set again"
        raise names.error(node, f"`{ast.unparse(node)}`", cure)
    names.container, names.keyed = name, isinstance(given, ast.Dict)
    return []


def returned(names: Names, node: ast.Return) -> tuple[Lowered, tuple[nodes.Expression, ...]]:
    """The statements that a return still makes (draws, say), and the expressions of the output."""
    given = node.value
    assert given is not None
    lowered: Lowered = []
    match given:
        case ast.Tuple(elts=[_, *_] as elements):
            result = [_part(names, element, lowered) for element in elements]
        case ast.Dict(keys=[ast.expr() as key], values=[element]):
            result = [number(names, key, lowered), _part(names, element, lowered)]
        case _:
            result = [_part(names, given, lowered)]
    if result.count(nodes.Emitted()) > 1:
        raise names.error(node, "the list of outputs twice", "return it once")
    return lowered, tuple(result)


def finished(names: Names, program: nodes.Program) -> nodes.Program:
    """The plain form after the last rules: the largest output, the number of outputs, outputs that are not returned."""
    if names.largest is not None:
        program = _largest(names, program)
    if names.counted:
        program = _counted(names, program)
    if nodes.Emitted() in program.result:
        return program
    return _emitting(program, lambda emit: ())


def started(program: nodes.Program) -> nodes.Program:
    """The program where names that hold None or an infinity at first are set at the first answer, without a test.

    Nothing is computed of them before, used or not.
    """
    starts = {name: value.name for name, value in bindings(program.before) if isinstance(value, nodes.Symbol)}
    known: nodes.Block = ()
    for place, branch in enumerate(program.loop or ()):
        if isinstance(branch, nodes.Branch) and (test := _first(branch.condition, starts)) is not None:
            set_at = {each.target: each.line for each in branch.then if isinstance(each, nodes.Assign)}
            early = [part for each in statements((*known, *branch.then)) for part in used(each)]
            last, tested = max(set_at.values(), default=0), list(parts(branch.condition))
            early += [each for each, line in program.operations if line <= last and each not in tested]
            stops = any(isinstance(each, nodes.Stop) for each in statements(known))
            if starts.keys() <= set_at.keys() and not starts.keys() & reads(*early) and not stops:
                loop = (*known, replace(branch, condition=test), *(program.loop or ())[place + 1 :])
                zeros = {name: nodes.Assign(name, ZERO, branch.line) for name in starts}
                before = (zeros.get(getattr(each, "target", ""), each) for each in program.before)
                return replace(program, before=tuple(before), loop=loop)
        known = (*known, branch)
    return program


def _first(test: nodes.Expression, starts: Mapping[str, str]) -> nodes.Expression | None:
    """A test that holds at the first answer, as one that says so; None where it may not hold then."""
    first, (head, *others) = nodes.Compared("==", nodes.Index(), ZERO), getattr(test, "parts", (test,))
    if isinstance(test, nodes.Any | nodes.Compared):
        match head:
            case nodes.Compared("==", nodes.Variable(name), nodes.Symbol("None")) if starts.get(name) == "None":
                return nodes.Any((first, *others)) if others else first
            case nodes.Compared(order, left, nodes.Variable(name)) if not others and not reads(left) & starts.keys():
                if (order[0], starts.get(name)) in ((">", "-inf"), ("<", "inf")):
                    return nodes.Any((first, test))
    return None


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
    return symbol if symbol is not None else number(names, node, lowered)


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
    line = statement.line
    candidate, winner, best = names.named("y"), names.named("winner"), names.named("best")
    if isinstance(statement.value, nodes.Symbol):
        raise names.error(line, f"the {names.largest} of symbols", "add numbers")
    order: nodes.Order = ">" if names.largest == "max" else "<"
    is_first = nodes.Compared("==", nodes.Index(), ZERO)
    is_larger = nodes.Compared(order, nodes.Variable(candidate), nodes.Variable(best))
    takes = (
        nodes.Assign(winner, nodes.Index(), line),
        nodes.Assign(best, nodes.Variable(candidate), line),
    )
    chosen: nodes.Block = (
        nodes.Assign(candidate, statement.value, line),
        nodes.Branch(nodes.Any((is_first, is_larger)), takes, (), line),
    )
    start: nodes.Block = (nodes.Assign(winner, ZERO, line), nodes.Assign(best, ZERO, line))
    turn = (*loop[: places[0]], *chosen, *loop[places[0] + 1 :])
    return replace(program, before=(*program.before, *start), loop=turn)


def _counted(names: Names, program: nodes.Program) -> nodes.Program:
    """The program with one more assignment after each output."""
    counter = f"len({names.container})"
    one_more = nodes.Arithmetical("+", nodes.Variable(counter), ONE)

    def counting(emit: nodes.Emit) -> nodes.Block:
        return emit, nodes.Assign(counter, one_more, emit.line)

    result = _emitting(program, counting)
    return replace(result, before=(nodes.Assign(counter, ZERO, 1), *result.before))


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


def read(function: Callable[..., Any] | str, *, name: str | None = None) -> nodes.Program:
    """The tree of a mechanism, given as a function or as text (`name` picks one of several functions in it).

    The tree's `source` stands by itself: to read it again gives the same tree. Lines count from that of `def`, 1.
    Raises `OutsideLanguage` (with the line) for anything that the language does not hold, `InvalidSpec` where there
    is no source to read.

    >>> program = read("def f(q, rng, eps):\\n    return q + rng.laplace(scale=1 / eps)")
    >>> program.parameters, program.before[0].target, len(program.result)
    (('eps',), 'draw_1', 1)
    """
    return read_source(function, name=name)[1]


def read_source(function: Callable[..., Any] | str, *, name: str | None = None) -> tuple[ReadSource, nodes.Program]:
    """The source of a mechanism and the tree that it is read as; the same errors."""
    try:
        source = source_of(function, name)
        return source, _program(source)
    except RecursionError as error:
        raise InvalidSpec("the source of a mechanism must not nest so deeply") from error


def _program(source: ReadSource) -> nodes.Program:
    definition, text = source.definition, source.text
    signature = signature_of(definition)
    outline = outline_of(definition, signature)
    names = names_of(source, signature, _constants(source), outline.loop)
    preconditions = []
    for node in outline.asserts:
        preconditions.append(test := condition(names, node.test, None))
        if any(isinstance(part, nodes.Variable | nodes.Answer | nodes.Index) for part in parts(test)):
            raise names.error(node, f"`{ast.unparse(node)}`", "assert what holds of the public parameters")
    names.returned = _ways_out(names, outline)
    several = names.returned not in (None, STOP)
    last = [outline.result] if several else []
    before = block(names, [*outline.before, *(last if outline.loop is None else [])], outermost=True)
    loop, after, result = None, nodes.Block(), tuple[nodes.Expression, ...]((nodes.Emitted(),))
    if outline.loop is not None:
        loop = _loop(names, outline.loop)
        names.part = "after"
        after = block(names, [*outline.after, *last], outermost=True)
        if several and names.returned:
            before = (nodes.Assign(names.returned, ZERO, outline.loop.line), *before)
            ended = nodes.Compared("==", nodes.Variable(names.returned), ZERO)
            after = (nodes.Branch(ended, after, (), outline.result.lineno),)
    if not several:
        lowered, result = returned(names, outline.result)
        before, after = (before, (*after, *lowered)) if loop is not None else ((*before, *lowered), ())
    program = nodes.Program(
        definition.name,
        text,
        signature.data,
        signature.parameters,
        frozenset(),
        (*preconditions, *names.preconditions),
        before,
        loop,
        after,
        result,
        signature.defaults,
        tuple(names.divisors),
        tuple(names.operations),
    )
    check_read(names, outline, program)
    program = finished(names, started(program))
    check(names, program)
    return replace(program, integers=whole_parameters(names, program))


def _ways_out(names: Names, outline: Outline) -> str | None:
    """What returns are where there are several: breaks, or outputs, and then a name for whether one is in the loop."""
    loop, last = outline.loop.body if outline.loop is not None else (), outline.result
    early = [part for node in loop for part in ast.walk(node) if isinstance(part, ast.Return)]
    if early and not outline.after and all(ast.dump(each) == ast.dump(last) for each in early):
        return STOP
    others = outline.after if loop else outline.before
    assert last.value is not None
    chosen = isinstance(last.value, ast.IfExp) or is_condition(names, last.value)
    if not (early or chosen or any(_leaves(each, ast.Return) for each in others)):
        return None
    names.container = UNNAMED
    return names.made("returned").name if early else ""


def _loop(names: Names, loop: Loop) -> nodes.Block:
    names.part = "loop"
    for name in assigned(*loop.body):  # at the head of the loop they may hold what the last answer left
        names.forget(names.down[name][1].name if name in names.down else name)
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
    if known is None:  # every path has returned
        return
    if outline.loop is not None:
        loop = outline.loop
        inside = known | {name for name in (loop.answer, loop.index) if name is not None}
        for guard in loop.guards:
            _reads(names, guard, inside)
        _bound(names, loop.body, inside)
    known = _bound(names, outline.after, known)  # the loop may end at once: what it sets may not be set
    if known is not None:
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
        inside = (part for expression in used(statement) for part in parts(expression))
        for symbol in (
            part for part in inside if isinstance(part, nodes.Symbol) and not isinstance(statement, nodes.Emit)
        ):
            cure = "set all names that start with it at the first answer, in one `if best is None or y > best:`"
            raise names.error(statement.line, f"{symbol.name} as a number", cure)
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
            case ast.Break() | ast.Continue() | ast.Raise():
                return None
            case ast.Return():
                _reads(names, statement, known)
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
