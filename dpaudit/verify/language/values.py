"""Names and expressions of a mechanism while its source is read from top to bottom: numbers, draws, comparisons.

A call of a helper function is read in place: its names mean what its arguments are, and each way through it gives one
value. What an expression needs before itself, draws and choices, comes in the order in which Python does it.
"""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, count, islice
from typing import get_args

from dpaudit.verify.language import nodes
from dpaudit.verify.language.facts import OPERATION_SIGNS, ORDER_SIGNS, parts, reads
from dpaudit.verify.language.outline import (
    LONGEST,
    RESERVED,
    Loop,
    OutsideLanguage,
    Signature,
    assigned,
    literal,
    number_in,
    parameters_of,
    unreadable,
)
from dpaudit.verify.language.source import WORDS_OF_PYTHON, WORDS_OF_THE_LANGUAGE, ReadSource, local_names

DEEPEST = 20  # calls within calls
MOST_COPIED = 5_000  # parts of a program of proofs; ten programs of the literature together have fewer
NAME = re.compile(r"[^\W\d]\w*")  # as the texts of a proof can say it


@dataclass(slots=True)
class Names:
    """The state of the reader: it changes as the statements go by."""

    source: ReadSource
    signature: Signature
    constants: Mapping[str, nodes.Number | nodes.Symbol]
    loop: Loop | None
    times: Mapping[str, int]  # how often each local name is given a value
    flags: frozenset[str]  # names that are only ever True or False
    conditions: frozenset[str]  # names of comparisons
    wholes: set[str]  # parameters that must be whole numbers
    part: nodes.Part = "before"
    public: dict[str, nodes.Expression] = field(default_factory=dict)  # names for expressions of parameters
    holding: dict[str, nodes.Expression] = field(default_factory=dict)  # what the names of comparisons mean now
    must_be_whole: list[tuple[nodes.Expression, int, str]] = field(default_factory=list)
    divisors: dict[tuple[nodes.Expression, int], None] = field(default_factory=dict)  # all that is divided by
    operations: list[tuple[nodes.Arithmetical | nodes.Compared, int]] = field(default_factory=list)  # all of the source
    container: str | None = None  # the list or dictionary of outputs
    keyed: bool = False
    counted: bool = False  # `len` of it is used
    largest: str | None = None  # "max" or "min", where the result is of that output
    draws: int = 0
    inside: Mapping[str, nodes.Expression | None] | None = None  # names of the function that is called; None is rng
    calls: list[ast.Call] = field(default_factory=list)  # in which the reader is
    steps: Counter[str] = field(default_factory=Counter)  # how often a name is counted down, by whole numbers
    down: dict[str, tuple[nodes.Expression, nodes.Variable]] = field(default_factory=dict)  # their starts, less what
    returned: str | None = None  # what the returns before the last one are, see `_left`
    own: set[str] = field(default_factory=set)  # variables that the reader made
    preconditions: list[nodes.Expression] = field(default_factory=list)
    copied: int = 0  # parts of expressions that were put in the place of names

    def error(self, node: ast.AST | int, construct: str, cure: str) -> OutsideLanguage:
        """The error for a place in the source."""
        inside = "" if not self.calls else f" in `{ast.unparse(self.calls[-1])}`"
        return OutsideLanguage(self.source.definition.name, self.line(node), construct + inside, cure)

    def unreadable(self, node: ast.AST) -> OutsideLanguage:
        """The error for a piece of Python that no rule reads."""
        return self.error(node, *unreadable(node))

    def line(self, node: ast.AST | int) -> int:
        """The line of a place in the source; of one in a helper function, that of the call."""
        place = self.calls[0] if self.calls else node
        return place if isinstance(place, int) else int(getattr(place, "lineno", 1))

    def computed(
        self, node: ast.AST, operation: nodes.Operation, left: nodes.Expression, right: nodes.Expression
    ) -> nodes.Arithmetical:
        """An operation of the source; it is recorded even if its value is not used."""
        result = nodes.Arithmetical(operation, left, right)
        self.operations.append((result, self.line(node)))
        return result

    def meant(self, node: ast.AST, expression: nodes.Expression) -> nodes.Expression:
        """What a name stands for, in its place: k lines that each use the line before twice make 2^k parts."""
        self.copy(node, sum(1 for _ in islice(parts(expression), MOST_COPIED)))
        return expression

    def copy(self, node: ast.AST, amount: int) -> None:
        """Counts what stands in more than one place of the program."""
        self.copied += amount
        if self.copied >= MOST_COPIED:
            raise self.error(node, "names for expressions that grow so long", "write the numbers out")

    def without_length(self, node: ast.AST, expression: nodes.Expression) -> nodes.Expression:
        """An expression of a source's place, which holds no `len` of the data."""
        if any(isinstance(part, nodes.Length) for part in parts(expression)):
            cure = "it may stand in range() and in conditions only"
            raise self.error(node, "the number of answers in a value", cure)
        return expression

    def named(self, stem: str) -> str:
        """A name for a variable of the reader's own, which no name of the source is."""
        taken = {*self.times, *self.own, *self.signature.parameters, *RESERVED, self.signature.data, self.signature.rng}
        return next(name for name in chain([stem], map(f"{stem}_{{}}".format, count(1))) if name not in taken)

    def made(self, stem: str) -> nodes.Variable:
        """A new variable of the reader's own."""
        self.own.add(name := self.named(stem))
        return nodes.Variable(name)

    def is_rng(self, name: str) -> bool:
        """Whether a name means the source of randomness."""
        return name == self.signature.rng if self.inside is None else self.inside.get(name, ZERO) is None

    def start_of(self, node: ast.expr) -> nodes.Symbol | None:
        """What a name may hold until the first answer is seen: None, or an infinity."""
        words = {name: ast.unparse(each) for name, each in self.source.constants.items()} | {**self.source.modules}
        text = re.sub(r"\w+", lambda found: words.get(found[0], found[0]), ast.unparse(node))
        return STARTS.get(re.sub(r"float\('(-?)inf'\)|(math|numpy)\.inf|1e309", r"\1inf", text))

    def forget(self, variable: str) -> None:
        """A variable gets another value: names of comparisons with it mean nothing any more."""
        self.holding = {name: test for name, test in self.holding.items() if variable not in reads(test)}


def names_of(
    source: ReadSource,
    signature: Signature,
    constants: Mapping[str, nodes.Number | nodes.Symbol],
    loop: Loop | None,
) -> Names:
    """The names of a function before its first statement. Raises `OutsideLanguage` for names of two kinds."""
    function = source.definition
    times = dict(assigned(function))
    flags, conditions = _truths(source)
    names = Names(source, signature, constants, loop, times, flags, conditions, wholes=set(signature.wholes))
    for node in ast.walk(function):
        match node:
            case ast.AugAssign(ast.Name(word), ast.Add(), ast.List()):
                times[word] -= 1  # it adds outputs
            case ast.AugAssign(ast.Name(word), ast.Sub(), ast.Constant(int(step))) if step > 0:
                names.steps[word] += 1
    public = {signature.data, signature.rng, *signature.parameters}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            if node.id in public:
                raise names.error(node, f"a new value for the parameter {node.id}", "give the new value another name")
            _plainly_named(names, node, f"a variable named {node.id}", node.id)
        elif isinstance(node, ast.arg):
            _plainly_named(names, node, f"a parameter named {node.arg}", node.arg)
    for helper in source.functions.values():
        for word in sorted(WORDS_OF_THE_LANGUAGE & local_names(helper)):
            raise names.error(1, f"a variable named {word} in {helper.name}", "give it another name")
    for name in [] if loop is None else [loop.answer, loop.index]:
        if name is not None and times[name] != 1:
            raise names.error(loop.line if loop else 1, f"{name} in two meanings", "name the loop's answer otherwise")
    if loop is not None and loop.counter is not None and times[loop.counter] != 2:
        raise names.error(loop.line, f"{loop.counter} set elsewhere", "set it to 0 before the loop, and only there")
    return names


def _plainly_named(names: Names, node: ast.AST, construct: str, name: str) -> None:
    if name in WORDS_OF_THE_LANGUAGE:
        raise names.error(node, construct, "give it another name")
    if name.startswith("draw_"):
        raise names.error(node, construct, "that is a name of the reader: choose another")
    if NAME.fullmatch(name) is None:
        raise names.error(node, construct, "a proof writes names with letters, digits and _ alone")


def _truths(source: ReadSource) -> tuple[frozenset[str], frozenset[str]]:
    """The names that are only ever set to True or False, and those only ever set to a comparison."""
    kinds: dict[str, set[str]] = {}
    for node in ast.walk(source.definition):
        for name, value in _settings(node):
            constant = isinstance(value, ast.Constant) and isinstance(value.value, bool)
            compared = value is not None and _is_truth(source, value)
            kinds.setdefault(name, set()).add("constant" if constant else "comparison" if compared else "other")
    constants, comparisons = (
        frozenset(name for name, every in kinds.items() if every == {kind}) for kind in ("constant", "comparison")
    )
    return constants, comparisons


def _is_truth(source: ReadSource, node: ast.expr, truths: Collection[str] = (), depth: int = 0) -> bool:
    """Whether an expression is a comparison, a name of one, or the call of a function that gives back no other."""
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Name(id=name):
            return name in truths
        case ast.Call(func=ast.Name(id=name)) if name in source.functions and depth < DEEPEST:
            given = [part.value for part in ast.walk(source.functions[name]) if isinstance(part, ast.Return)]
            return bool(given) and all(each and _is_truth(source, each, (), depth + 1) for each in given)
    return False


def _settings(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, value
                elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                    for name, part in zip(target.elts, value.elts, strict=False):
                        if isinstance(name, ast.Name):
                            yield name.id, part
        case (
            ast.AnnAssign(target=ast.Name(id=name), value=value) | ast.AugAssign(target=ast.Name(id=name), value=value)
        ):
            yield name, value if isinstance(node, ast.AnnAssign) else None


STARTS = {word: nodes.Symbol(word) for word in ("None", "-inf", "inf")}  # of names, before the first answer
ZERO, ONE = nodes.Number(Fraction(0)), nodes.Number(Fraction(1))
TRUE_OR_FALSE = (nodes.Compared, nodes.All, nodes.Any, nodes.Not)
DOUBLE = nodes.Number(Fraction(1), True)  # times it, a whole number of Python's is a double
Lowered = list[nodes.Statement]  # a block as it grows; expressions put their draws there


def number(names: Names, node: ast.expr, draws: Lowered | None) -> nodes.Expression:
    """An expression that a variable may hold or an output may be: it holds no `len` of the data."""
    return names.without_length(node, value(names, node, draws))


def value(names: Names, node: ast.expr, draws: Lowered | None) -> nodes.Expression:
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
    raise names.unreadable(node)


def negative(inner: nodes.Expression) -> nodes.Expression:
    """Minus a number, or 0 less an expression."""
    if isinstance(inner, nodes.Number) and not (inner.real and inner.value == 0):  # -0.0 is another output than 0.0
        return nodes.Number(-inner.value, inner.real)
    return nodes.Arithmetical("-", ZERO, inner)


def condition(names: Names, node: ast.expr, draws: Lowered | None) -> nodes.Expression:
    """An expression that is true or false."""
    match node:
        case ast.Compare(ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            return nodes.Compared("==", value(names, node.left, None), STARTS["None"])
        case ast.Compare():
            return _comparison(names, node, draws)
        case ast.BoolOp(op=operator, values=values):
            inner = tuple(condition(names, part, None) for part in values)
            return nodes.All(inner) if isinstance(operator, ast.And) else nodes.Any(inner)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return nodes.Not(condition(names, operand, draws))
        case ast.Call() if is_condition(names, node):
            return _plain(names, node, called(names, node, draws), true=True)
        case ast.Name() if names.inside is not None:
            if is_condition(names, node):
                return _inside(names, node)
        case ast.Name(id=name) if name in names.flags:
            return nodes.Compared("==", nodes.Variable(name), ONE)
        case ast.Name(id=name) if name in names.holding:
            return names.meant(node, names.holding[name])
        case ast.Name(id=name) if name in names.conditions:
            raise names.error(node, f"{name}, whose comparison no longer holds the same numbers,", "compare here")
    raise names.error(node, f"`{ast.unparse(node)}` as a condition", "compare numbers")


def is_condition(names: Names, node: ast.expr) -> bool:
    """Whether an expression is true or false rather than a number."""
    if names.inside is None:
        return _is_truth(names.source, node, names.flags | names.conditions)
    true = {name for name, meaning in names.inside.items() if isinstance(meaning, TRUE_OR_FALSE)}
    return _is_truth(names.source, node, true)


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


def _inside(names: Names, node: ast.Name) -> nodes.Expression:
    """What a name means in a helper function."""
    constant = names.constants.get(node.id)
    meaning = (names.inside or {}).get(node.id, constant if isinstance(constant, nodes.Number) else None)
    if meaning is None:
        raise names.error(node, f"the name {node.id}", "it is no parameter and has no value on this path")
    return names.meant(node, meaning)


def _named(names: Names, node: ast.Name) -> nodes.Expression:
    name, loop = node.id, names.loop
    if names.inside is not None:
        return _plain(names, node, _inside(names, node))
    if loop is not None and name in (loop.answer, loop.index, loop.counter):
        if names.part != "loop":
            raise names.error(node, f"{name} outside the loop", "keep what is needed in a variable of its own")
        return nodes.Answer() if name == loop.answer else nodes.Index()
    if name in names.public:
        return names.meant(node, names.public[name])
    if name in names.down:
        start, steps = names.down[name]
        return names.computed(node, "-", start, steps)
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


def _operation(names: Names, node: ast.BinOp, draws: Lowered | None) -> nodes.Expression:
    operation = OPERATION_SIGNS.get(type(node.op))
    if operation is None:
        raise names.error(node, f"`{ast.unparse(node)}`", "only + - * / // % are read")
    left, right = value(names, node.left, draws), value(names, node.right, draws)
    if operation == "*" and not (of_parameters(left) or of_parameters(right)):
        raise names.error(node, f"the product `{ast.unparse(node)}`", "one factor must be of public parameters")
    if operation in ("/", "//", "%"):
        if right == ZERO or operation == "/" and not of_parameters(right):
            raise names.error(node, f"the quotient `{ast.unparse(node)}`", "divide by public parameters that are not 0")
        if not isinstance(right, nodes.Number):
            names.divisors[right, names.line(node)] = None
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
            if index in (loop.index, loop.counter) and names.inside is None:
                return nodes.Answer()
    raise names.error(node, f"`{ast.unparse(node)}`", "only the answer at the loop's index is read")


def _call(names: Names, node: ast.Call, draws: Lowered | None) -> nodes.Expression:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=law)) if names.is_rng(name):
            return _draw(names, node, law, draws)
        case ast.Call(func=ast.Name(id="float"), args=[inner], keywords=[]):
            number = value(names, inner, draws)
            if isinstance(number, nodes.Number) and abs(number.value) <= 2**53:
                return nodes.Number(number.value, True)
            return names.computed(node, "*", DOUBLE, number)  # it rounds
        case ast.Call(func=ast.Name(id="int"), args=[inner], keywords=[]):
            number = value(names, inner, draws)
            names.must_be_whole.append((number, names.line(node), ast.unparse(node)))
            return number
        case ast.Call(func=ast.Name(id=name)) if name in names.source.functions:
            return _plain(names, node, called(names, node, draws))
        case _ if names.inside is not None:
            pass
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]):
            if name == names.signature.data and names.loop is not None:
                return nodes.Length()
            if name == names.container:
                names.counted = True
                return nodes.Variable(f"len({name})")
        case ast.Call(func=ast.Name(id="max" | "min" as word), args=[ast.Name(id=name)], keywords=[]):
            if name == names.container:
                _largest(names, node, word)
                return nodes.Variable(names.named("best"))
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=name), attr="index"),
            args=[ast.Call(func=ast.Name(id="max" | "min" as word), args=[ast.Name(id=same)], keywords=[])],
            keywords=[],
        ):
            if name == same == names.container:
                _largest(names, node, word)
                return nodes.Variable(names.named("winner"))
    other = isinstance(node.func, ast.Name) and node.func.id not in WORDS_OF_PYTHON
    cure = "write what it does by one loop, comparisons and + - * /: of calls draws, float, int, and some len are read"
    cure = "define the function in this module, by a plain def that does not loop" if other else cure
    raise names.error(node, f"the call `{ast.unparse(node)}`", cure)


def _plain(names: Names, node: ast.AST, given: nodes.Expression, *, true: bool = False) -> nodes.Expression:
    if isinstance(given, TRUE_OR_FALSE) != true or isinstance(given, nodes.Symbol):
        word = "nothing" if isinstance(given, nodes.Symbol) else "a comparison"
        raise names.error(node, f"{word} as a {'truth' if true else 'number'}", "return one kind on every path")
    return given


def called(names: Names, node: ast.Call, before: Lowered | None) -> nodes.Expression:
    """What a helper function gives back: a number, what is true or false, or the symbol None."""
    assert isinstance(node.func, ast.Name)
    helper, lowered = names.source.functions[node.func.id], Lowered()
    every = {each.arg: default for each, default in parameters_of(helper)}
    given = [*zip(every, node.args, strict=False), *((each.arg or "**", each.value) for each in node.keywords)]
    words = [name for name, _ in given]
    given += [
        (name, each) for name, each in every.items() if name not in words and each and number_in(each) is not None
    ]
    many = len(node.args) > len(every) - len(helper.args.kwonlyargs) or len(names.calls) > DEEPEST
    if many or sorted(name for name, _ in given) != sorted(every):
        cure = "give each of its arguments once, and let no function call itself"
        raise names.error(node, f"the call `{ast.unparse(node)}`", cure)
    inside: dict[str, nodes.Expression | None] = {}
    for name, each in given:  # in the order of the call
        is_rng = isinstance(each, ast.Name) and names.is_rng(each.id)
        inside[name] = None if is_rng else _meaning(names, each, lowered)
    outer, names.inside = names.inside, inside
    names.calls.append(node)
    found = _given_back(names, helper.body, lowered)
    names.calls.pop()
    names.inside = outer
    if before is None and lowered:
        raise names.error(node, f"`{ast.unparse(node)}` where and, or, or a chain may skip it", "call it before")
    if before is not None:
        before += lowered
    return found


def _meaning(names: Names, node: ast.expr, before: Lowered) -> nodes.Expression:
    return condition(names, node, before) if is_condition(names, node) else value(names, node, before)


def _given_back(names: Names, statements: Sequence[ast.stmt], before: Lowered) -> nodes.Expression:
    """What the statements of a helper function give back; where a path parts, each arm goes on to its end."""
    for place, node in enumerate(statements):
        rest, known = statements[place + 1 :], names.inside or {}
        match node:
            case ast.Return(value=given):
                return STARTS["None"] if given is None else _meaning(names, given, before)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as given):
                names.inside = {**known, name: _meaning(names, given, before)}
            case ast.If(orelse=otherwise) if restricts(names, node):
                return _given_back(names, [*otherwise, *rest], before)
            case ast.If(test=test, body=then, orelse=otherwise):
                truth, result, line = condition(names, test, before), names.made("result"), names.line(node)
                blocks = Lowered(), Lowered()
                names.copy(node, len(rest))
                for arm, block in zip((then, otherwise), blocks, strict=True):
                    names.inside = known
                    number = _plain(names, node, _given_back(names, [*arm, *rest], block))
                    block.append(nodes.Assign(result.name, number, line))
                before.append(nodes.Branch(truth, tuple(blocks[0]), tuple(blocks[1]), line))
                return result
            case ast.Expr(value=ast.Call(func=ast.Name(id=name)) as call) if name in names.source.functions:
                called(names, call, before)
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                raise names.unreadable(node)
    return STARTS["None"]


def restricts(names: Names, node: ast.If, *, always: bool = False) -> bool:
    """Whether a branch ends by an exception, for parameters alone: a proof is about those that do not raise.

    `always`: every run comes there, so that rounding, too, decides alike for all data. Raises `OutsideLanguage`.
    """
    if not isinstance(node.body[-1], ast.Raise):
        return False
    test = condition(names, node.test, None)
    if any(isinstance(part, nodes.Variable | nodes.Answer | nodes.Index | nodes.Symbol) for part in parts(test)):
        raise names.error(node.body[-1], "an exception that answers or noise decide", "return None in its place")
    compared = [] if always else [part for part in parts(test) if isinstance(part, nodes.Compared)]
    for each in compared:
        signs = {part.operation for part in parts(each) if isinstance(part, nodes.Arithmetical)}
        if signs and (each.right != ZERO or not signs <= {"*", "/"}):
            cure = "compare parameters as they are given, or before the loop"
            raise names.error(node, "an exception that rounding may decide", cure)
        names.divisors |= {(each.left, names.line(node)): None} if signs else {}  # and is no smaller than doubles are
    names.preconditions.append(nodes.Not(test))
    return True


def _largest(names: Names, node: ast.expr, word: str) -> None:
    if names.part != "after" or names.keyed or names.largest not in (None, word):
        cure = "take one of them, of a list, after the loop"
        raise names.error(node, f"`{ast.unparse(node)}`", cure)
    names.largest = word


def _draw(names: Names, node: ast.Call, name: str, draws: Lowered | None) -> nodes.Expression:
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
    draws.append(nodes.Draw(target, law, scale, names.line(node)))
    centre = evaluated.get("loc", ZERO)
    drawn = nodes.Variable(target)
    return drawn if centre == ZERO else names.computed(node, "+", centre, drawn)


def _comparison(names: Names, node: ast.Compare, draws: Lowered | None) -> nodes.Expression:
    orders = [ORDER_SIGNS.get(type(operator)) for operator in node.ops]
    if None in orders:
        raise names.error(node, f"`{ast.unparse(node)}`", "numbers are compared by < <= > >= == !=")
    sides: Sequence[ast.expr] = (node.left, *node.comparators)
    inside = draws if len(node.ops) == 1 else None
    numbers = [value(names, side, inside) for side in sides]
    compared = [
        nodes.Compared(order, left, right)
        for order, left, right in zip(orders, numbers[:-1], numbers[1:], strict=True)
        if order is not None
    ]
    names.operations += [(each, names.line(node)) for each in compared]
    return compared[0] if len(compared) == 1 else nodes.All(tuple(compared))
