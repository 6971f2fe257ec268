"""The one error of the reader: something in a mechanism that the language does not hold."""

import ast
from keyword import iskeyword

from dpaudit.errors import InvalidSpec

WORDS: dict[type[ast.AST], str] = {
    ast.Lambda: "a lambda",
    ast.ListComp: "a list comprehension",
    ast.SetComp: "a set comprehension",
    ast.DictComp: "a dictionary comprehension",
    ast.GeneratorExp: "a generator expression",
    ast.YieldFrom: "yield from",
    ast.NamedExpr: "an assignment inside an expression",
    ast.JoinedStr: "a formatted text",
    ast.Starred: "a starred expression",
    ast.List: "a list",
    ast.Tuple: "a tuple",
    ast.Dict: "a dictionary",
    ast.Set: "a set",
    ast.Slice: "a slice",
    ast.IfExp: "a conditional expression inside another expression",
    ast.Attribute: "an attribute",
    ast.FunctionDef: "a function in a function",
    ast.AsyncFunctionDef: "an asynchronous function",
    ast.ClassDef: "a class",
    ast.Return: "return before the end",
    ast.Delete: "del",
    ast.For: "a loop in this place",
    ast.AsyncFor: "an asynchronous loop",
    ast.While: "a loop in this place",
    ast.AsyncWith: "with",
    ast.TryStar: "try",
    ast.Assert: "assert after the first lines",
    ast.ImportFrom: "import",
    ast.Match: "match",
}
CURES: dict[type[ast.AST], str] = {
    ast.Return: "keep the value in a variable, leave the loop by break, and return it as the last statement",
    ast.Continue: "use if and else",
    ast.IfExp: "give the part a name first",
    ast.Assert: "put it first in the function",
    ast.Raise: "say what holds of the parameters by assert, first in the function",
    ast.For: "there may be one loop, over the answers, not inside another statement",
    ast.While: "there may be one loop, over the answers, not inside another statement",
}


class OutsideLanguage(InvalidSpec):
    """A mechanism holds something that the language of the proofs does not: nothing is proved or refuted then.

    `line` counts from the line of `def`, which is 1.

    >>> OutsideLanguage("f", 3, "import", "do without it").line
    3
    """

    def __init__(self, function: str, line: int, construct: str, cure: str) -> None:
        super().__init__(f"line {line} of {function}: {construct} is outside the language of proofs: {cure}")
        self.line = line


def words(node: ast.AST) -> tuple[str, str]:
    """What a piece of Python is called, and what to write instead.

    >>> words(ast.parse("import os").body[0])
    ('import', 'write the mechanism without it')
    """
    cure = CURES.get(type(node), "write the mechanism without it")
    name = type(node).__name__.lower()
    known = WORDS.get(type(node), name if iskeyword(name) else None)
    if known is not None:
        return known, cure
    return (f"`{ast.unparse(node).splitlines()[0]}`" if isinstance(node, ast.expr | ast.stmt) else "this"), cure
