"""What must hold of a plain form before anybody reasons about it: values before uses, whole numbers, plain outputs."""

import ast
from collections.abc import Iterator, Sequence
from functools import partial

from dpaudit.verify.language import nodes
from dpaudit.verify.language.facts import bindings, is_whole, largest, parts, statements, used
from dpaudit.verify.language.names import Names
from dpaudit.verify.language.outline import Outline
from dpaudit.verify.language.results import emits
from dpaudit.verify.language.signature import RESERVED


def check_read(names: Names, outline: Outline, found: nodes.Program) -> None:
    """Raises `OutsideLanguage` where the source may raise, or sets an output twice, even where nobody sees it.

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
        outside = [*emits(found.before), *emits(found.after)]
        if outside:
            raise names.error(outside[0].line, "an output by place outside the loop", "set it inside the loop")
        for line in _twice(found.loop or ()):
            raise names.error(line, "a place that may be set twice", "set it once on every path")


def check(names: Names, found: nodes.Program) -> None:
    """Raises `OutsideLanguage` for anything in a plain form whose meaning is not certain."""
    for statement in statements(found.body):
        if isinstance(statement, nodes.Assign) and statement.target in RESERVED:
            raise names.error(statement.line, f"a variable named {statement.target}", "give it another name")
    _outputs(names, found)
    wholes = whole_variables(names, found)
    for expression, line, text in names.must_be_whole:
        if not is_whole(expression, wholes, names.wholes):
            raise names.error(line, f"`{text}`", "int() of a number that is not whole would round it")


def whole_parameters(names: Names, found: nodes.Program) -> frozenset[str]:
    """The parameters that are whole numbers: annotated so, used by // or %, or compared with counters."""
    wholes = whole_variables(names, found)
    found_so_far = set(names.wholes)
    for statement in statements(found.body):
        for part in (part for expression in used(statement) for part in parts(expression)):
            if isinstance(part, nodes.Compared):
                found_so_far |= _counted_against(names, part, wholes)
    return frozenset(found_so_far)


def whole_variables(names: Names, found: nodes.Program) -> frozenset[str]:
    """The variables that only ever hold whole numbers, counters above all."""
    return largest(bindings(found.body), partial(is_whole, parameters=names.wholes))


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
    """Refuses local names without a value wherever they stand: what nobody uses is evaluated too, and may raise."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id in names.times.keys() - known:
            cure = "give it a value on every path before it is used, before the loop if it is used after the loop"
            raise names.error(part, f"{part.id}, which may have no value yet,", cure)


def _outputs(names: Names, found: nodes.Program) -> None:
    """True and 1 are equal outputs in Python."""
    everything = emits(found.body)
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
