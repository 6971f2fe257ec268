"""Python that the executor does not follow, refused by the look of it: iterators that are kept, generators."""

import ast
from collections.abc import Iterator

from dpaudit.verify.coupled.expressions import TOTAL
from dpaudit.verify.coupled.values import words
from dpaudit.verify.coupled.ways import NotShown

ITERATORS = frozenset({"zip", "enumerate", "reversed"})
FOLLOWED = (
    *(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.If, ast.For, ast.While, ast.Return, ast.Break),
    *(ast.Continue, ast.Raise, ast.Assert, ast.Pass),
)
VIEWS = frozenset({"items", "keys", "values"})
AT_ONCE = words("sum min max any all list tuple sorted dict len zip enumerate reversed fsum")


def check_followed(function: ast.AST) -> None:
    """Raises `NotShown` for what a function holds that is executed otherwise than Python does it."""
    above = {id(part): node for node in ast.walk(function) for part in ast.iter_child_nodes(node)}
    for node, what, cure in _found(function, above):
        raise NotShown(getattr(node, "lineno", 1), what, cure)


def _found(function: ast.AST, above: dict[int, ast.AST]) -> Iterator[tuple[ast.AST, str, str]]:
    own = {part.arg for part in ast.walk(function) if isinstance(part, ast.arg)}
    own |= {part.id for part in ast.walk(function) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    for node in ast.walk(function):
        match node:
            case ast.Yield() | ast.YieldFrom() | ast.Await():
                yield node, "a generator function", "return a list"
            case ast.FunctionDef() if node is not function and not isinstance(above[id(node)], ast.ClassDef):
                yield node, "a function inside a function", "write it outside, with parameters for what it uses"
            case ast.stmt() if not isinstance(node, (*FOLLOWED, ast.FunctionDef)) and node is not function:
                yield node, f"`{ast.unparse(node).splitlines()[0]}`", "write the mechanism without it"
            case ast.Lambda() if not isinstance(above[id(node)], ast.keyword):
                yield node, "a lambda that is kept", "write it where it is the key= of a call, or a function outside"
            case ast.For(orelse=[_, *_]) | ast.While(orelse=[_, *_]):
                yield node, "else of a loop", "write it after the loop"
            case ast.Starred():
                yield node, "a starred expression", "name each part"
            case ast.Set() | ast.SetComp() | ast.Name(id="set" | "frozenset"):
                yield node, "a set", "use a list"
            case ast.arguments(defaults=defaults, kw_defaults=more):
                for default in (*defaults, *more):
                    if default is not None and not _is_fixed(default):
                        yield default, "a default that is no number or text", "pass it at every call"
            case ast.Call(func=ast.Name(id=name)) if name in TOTAL and name in own:
                yield node, f"a `{name}` of its own", f"`{name}` must be Python's"
            case ast.Attribute(attr=name) | ast.Name(id=name) if name.startswith("__"):
                yield node, f"`{name}`", "use names that do not begin with two underscores"
            case ast.Compare(ops=[ast.Is() | ast.IsNot()], left=left, comparators=[right]):
                if not any(isinstance(each, ast.Constant) and each.value is None for each in (left, right)):
                    yield node, "`is`", "compare by =="
        kept = isinstance(node, ast.GeneratorExp) or _is_iterator(node)
        if kept and not _is_consumed(node, above[id(node)]) and not _is_last(node, function, above):
            yield node, "an iterator that is kept", "make a list of it, or loop over it where it stands"


def _is_fixed(node: ast.expr) -> bool:
    match node:
        case ast.Constant() | ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant()):
            return True
        case ast.Tuple(elts=parts):
            return all(map(_is_fixed, parts))
    return False


def _is_iterator(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in ITERATORS
        case ast.Call(func=ast.Attribute(attr=name), args=[], keywords=[]):
            return name in VIEWS
    return False


def _is_consumed(node: ast.AST, around: ast.AST) -> bool:
    match around:
        case ast.For(iter=value):
            return value is node and not isinstance(node, ast.GeneratorExp)
        case ast.comprehension(iter=value):
            return value is node
        case ast.Call(func=ast.Name(id=name)):
            return name in AT_ONCE and not (isinstance(node, ast.GeneratorExp) and name in ITERATORS)
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[value]):
            return value is node and not isinstance(node, ast.GeneratorExp)
    return False


def _is_last(node: ast.AST, function: ast.AST, above: dict[int, ast.AST]) -> bool:
    """Whether a view is returned of a dictionary that nothing else can change then."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) if isinstance(above[id(node)], ast.Return):
            uses = [part for part in ast.walk(function) if isinstance(part, ast.Name) and part.id == name]
        case _:
            return False
    around = [above[id(use)] for use in uses]
    made = [each for each in around if isinstance(each, ast.Assign) and isinstance(each.value, ast.Dict)]
    inside = [each for each in around if isinstance(each, ast.Attribute | ast.Subscript) and each.value in uses]
    return len(made) == 1 and len(made) + len(inside) == len(uses)
