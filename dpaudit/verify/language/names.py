"""What a name of a mechanism stands for while its source is read from top to bottom."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, count, islice

from dpaudit.verify.language import nodes
from dpaudit.verify.language.facts import parts, reads
from dpaudit.verify.language.outline import Loop, assigned
from dpaudit.verify.language.outside import OutsideLanguage
from dpaudit.verify.language.signature import RESERVED, Signature
from dpaudit.verify.language.source import WORDS_OF_THE_LANGUAGE

MOST_COPIED = 5_000  # parts of a program of proofs; ten programs of the literature together have fewer
NAME = re.compile(r"[^\W\d]\w*")  # as the texts of a proof can say it


@dataclass(slots=True)
class Names:
    """The state of the reader: it changes as the statements go by."""

    function: str
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
    copied: int = 0  # parts of expressions that were put in the place of names

    def error(self, node: ast.AST | int, construct: str, cure: str) -> OutsideLanguage:
        """The error for a place in the source."""
        line = node if isinstance(node, int) else int(getattr(node, "lineno", 1))
        return OutsideLanguage(self.function, line, construct, cure)

    def computed(
        self, node: ast.AST, operation: nodes.Operation, left: nodes.Expression, right: nodes.Expression
    ) -> nodes.Arithmetical:
        """An operation of the source, which is remembered though its value be dropped."""
        found = nodes.Arithmetical(operation, left, right)
        self.operations.append((found, int(getattr(node, "lineno", 1))))
        return found

    def meant(self, node: ast.AST, found: nodes.Expression) -> nodes.Expression:
        """What a name stands for, in its place: k lines that each use the line before twice make 2^k parts."""
        self.copied += sum(1 for _ in islice(parts(found), MOST_COPIED))
        if self.copied >= MOST_COPIED:
            raise self.error(node, "names for expressions that grow so long", "write the numbers out")
        return found

    def without_length(self, node: ast.AST, found: nodes.Expression) -> nodes.Expression:
        """An expression of a source's place, which holds no `len` of the data."""
        if any(isinstance(part, nodes.Length) for part in parts(found)):
            cure = "it may stand in range() and in conditions only"
            raise self.error(node, "the number of answers in a value", cure)
        return found

    def named(self, stem: str) -> str:
        """A name for a variable of the reader's own, which no name of the source is."""
        taken = {*self.times, *self.signature.parameters, *RESERVED, self.signature.data, self.signature.rng}
        return next(name for name in chain([stem], map(f"{stem}_{{}}".format, count(1))) if name not in taken)

    @property
    def value(self) -> str:
        """The variable for the largest output."""
        return self.named("best")

    @property
    def winner(self) -> str:
        """The variable for the index of the largest output."""
        return self.named("winner")

    def forget(self, variable: str) -> None:
        """A variable gets another value: names of comparisons with it mean nothing any more."""
        self.holding = {name: test for name, test in self.holding.items() if variable not in reads(test)}


def names_of(
    function: ast.FunctionDef,
    signature: Signature,
    constants: Mapping[str, nodes.Number | nodes.Symbol],
    loop: Loop | None,
) -> Names:
    """The names of a function before its first statement. Raises `OutsideLanguage` for names of two kinds."""
    times = dict(assigned(function))
    flags, conditions = _truths(function)
    names = Names(function.name, signature, constants, loop, times, flags, conditions, wholes=set(signature.wholes))
    public = {signature.data, signature.rng, *signature.parameters}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            if node.id in public:
                raise names.error(node, f"a new value for the parameter {node.id}", "give the new value another name")
            _plainly_named(names, node, f"a variable named {node.id}", node.id)
        elif isinstance(node, ast.arg):
            _plainly_named(names, node, f"a parameter named {node.arg}", node.arg)
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


def _truths(function: ast.FunctionDef) -> tuple[frozenset[str], frozenset[str]]:
    """The names that are only ever set to True or False, and those only ever set to a comparison."""
    kinds: dict[str, set[str]] = {}
    for node in ast.walk(function):
        for name, value in _settings(node):
            kinds.setdefault(name, set()).add(_kind(value))
    constants, comparisons = (
        frozenset(name for name, found in kinds.items() if found == {kind}) for kind in ("constant", "comparison")
    )
    return constants, comparisons


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


def _kind(value: ast.expr | None) -> str:
    match value:
        case ast.Constant(value=bool()):
            return "constant"
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return "comparison"
    return "other"
