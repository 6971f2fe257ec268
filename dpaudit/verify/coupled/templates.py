"""Pieces of code that are known by the look of them: templates in Python, with names for what may stand there."""

import ast
import functools
from collections.abc import Iterable
from typing import Any

Seen = dict[str, Any]


def seen_in(node: ast.AST, *templates: str) -> Seen | None:
    """What the names of the first template that fits stand for; None where none does.

    A name in capitals stands for an expression, one that ends with _ for a name; the same one for the same at each
    place. Everything else stands for itself.

    >>> seen_in(ast.parse("low.index(max(low))").body[0].value, "v_.index(max(v_))", "v_.index(min(v_))")
    {'v_': 'low'}
    """
    for template in templates:
        seen: Seen = {}
        if _fits(_parsed(template), node, seen):
            return seen
    return None


def names_in(*nodes: ast.AST) -> set[str]:
    """The names in pieces of code."""
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


@functools.cache
def _parsed(template: str) -> ast.AST:
    (statement,) = ast.parse(template).body
    return statement.value if isinstance(statement, ast.Expr) else statement


def _fits(template: Any, node: Any, seen: Seen) -> bool:
    match template:
        case ast.Name(id=name) if name.isupper() and isinstance(node, ast.expr):
            return ast.unparse(seen.setdefault(name, node)) == ast.unparse(node)
        case ast.Name(id=name) if name.endswith("_") and isinstance(node, ast.Name):
            return bool(seen.setdefault(name, node.id) == node.id)
        case ast.AST() if type(template) is type(node):
            pairs: Iterable[Any] = ((getattr(template, field), getattr(node, field)) for field in template._fields)
        case list() if isinstance(node, list) and len(template) == len(node):
            pairs = zip(template, node, strict=True)
        case _:
            return type(template) is type(node) and not isinstance(node, ast.AST | list) and bool(template == node)
    return all(_fits(one, two, seen) for one, two in pairs)
