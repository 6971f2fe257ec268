"""The source of a mechanism: one plain function, and the constants of its module that it uses."""

from __future__ import annotations
import __future__

import ast
import builtins
import inspect
import math
import textwrap
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language.outside import OutsideLanguage

WORDS_OF_THE_LANGUAGE = frozenset({"len", "range", "enumerate", "tuple", "list", "max", "min", "float", "int"})


@dataclass(frozen=True, slots=True)
class Source:
    """A function as text that stands by itself: the definition (from line 1 on), then the constants it uses.

    A constant is never named like a parameter or a local variable: inside the function that name means the other.
    """

    text: str
    definition: ast.FunctionDef
    constants: Mapping[str, ast.Constant | ast.UnaryOp]


def source_of(function: Callable[..., Any] | str, name: str | None = None) -> Source:
    """The source of a function object, or of one function in a text.

    Raises `InvalidSpec` where there is no source to read, or no such function, `OutsideLanguage` for a decorator.

    >>> source_of("def f(q, rng):\\n    return TOP\\n\\nTOP = 1").text.splitlines()[-1]
    'TOP = 1'
    """
    return _of_text(function, name) if isinstance(function, str) else _of_object(function, name)


def _of_text(text: str, name: str | None) -> Source:
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # the lines that Python counts
    try:
        tree = _parsed(text.strip("\n"))
    except InvalidSpec:
        text = textwrap.dedent(text)  # not where it is Python as it stands: that would change texts of many lines
        tree = _parsed(text.strip("\n"))
    text = text.strip("\n")
    definitions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    names = [node.name for node in definitions]
    if name is None and len(names) != 1:
        raise InvalidSpec(f"the source must hold one function, or `name` must pick one of {', '.join(names) or 'none'}")
    chosen = [node for node in definitions if name in (None, node.name)]
    if len(chosen) != 1:
        raise InvalidSpec(f"the source must hold one function named {name!r}, it holds {', '.join(names) or 'none'}")
    constants, others = {}, {*names, *_globals(tree)}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.Constant() | ast.UnaryOp() as value):
                if target in constants:
                    raise InvalidSpec(f"the constant {target} must be set once in the source, it is set again")
                constants[target] = value
            case ast.FunctionDef() | ast.ImportFrom(module="__future__"):
                pass
            case _:
                given = set(_bound(node))
                if chosen[0].name in given:
                    raise InvalidSpec(f"{chosen[0].name} must be set once in the source, it is set again")
                others |= given
    if chosen[0].name in (*constants, *_globals(tree)):
        raise InvalidSpec(f"{chosen[0].name} must be set once in the source, it is set again")
    if "*" in others:
        raise InvalidSpec("the source must not import everything of a module (import *): it may mean other things then")
    _no_other_words(chosen[0], (others | set(constants)) & _used(chosen[0]))
    return _source(_lines(text, chosen[0]), {name: constants[name] for name in constants if name not in others})


def _of_object(function: Callable[..., Any], name: str | None) -> Source:
    if not isinstance(function, types.FunctionType):
        raise InvalidSpec(f"only a plain function, or its text, can be read; got {type(function).__name__}")
    if hasattr(function, "__wrapped__"):
        raise InvalidSpec(f"{function.__name__} wraps another function: read that one")
    if name not in (None, function.__name__):
        raise InvalidSpec(f"the function is named {function.__name__}, not {name!r}")
    try:
        text = textwrap.dedent(inspect.getsource(function)).strip("\n")
        tree = _parsed(text)
    except (OSError, TypeError, InvalidSpec) as error:
        raise InvalidSpec(f"the source of {function.__name__} cannot be read: pass its text") from error
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
        raise InvalidSpec(f"{function.__name__} must be written as one def statement")
    definition = tree.body[0]
    if function.__code__.co_freevars:
        outer = ", ".join(function.__code__.co_freevars)
        raise OutsideLanguage(definition.name, 1, f"{outer} of an enclosing function", "make it a parameter")
    _no_decorators(definition)
    known = function.__globals__
    used = _used(definition)
    modules = sorted(word for word in used & set(known) if isinstance(known[word], types.ModuleType))
    imports = "".join(f"import {word}\n" for word in modules)  # calls of their functions are compiled otherwise
    if not _is_compiled_from(function.__code__, imports + text):
        raise InvalidSpec(f"the source of {function.__name__} is not what is running: load it again")
    for word in sorted(WORDS_OF_THE_LANGUAGE & used & set(known)):
        if known[word] is not getattr(builtins, word):
            _no_other_words(definition, {word})
    _no_other_defaults(function, definition)
    constants = {word: _constant(known[word]) for word in sorted(used & set(known))}
    return _source(text, {word: node for word, node in constants.items() if node is not None})


def _source(definition: str, constants: Mapping[str, ast.expr]) -> Source:
    """The function and its constants, read again as the text that is kept."""
    alone = _parsed(definition).body[0]
    used = _used(alone) - _local(alone)
    lines = [f"{name} = {ast.unparse(constants[name])}" for name in sorted(constants) if name in used]
    text = definition.rstrip() + "\n" + ("\n\n" + "\n".join(lines) + "\n" if lines else "")
    tree = _parsed(text)
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    _no_decorators(function)
    kept: dict[str, ast.Constant | ast.UnaryOp] = {}
    for node in tree.body[1:]:
        assert isinstance(node, ast.Assign)
        assert isinstance(node.targets[0], ast.Name)
        assert isinstance(node.value, ast.Constant | ast.UnaryOp)
        kept[node.targets[0].id] = node.value
    return Source(text, function, kept)


def _lines(text: str, node: ast.FunctionDef) -> str:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return "\n".join(text.split("\n")[first - 1 : node.end_lineno])


def _parsed(text: str) -> ast.Module:
    """The tree of a text that Python would compile; it is never run."""
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(text, "<source>", "exec", dont_inherit=True)  # finds more than the parser: a name given twice, say
            return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise InvalidSpec(f"the source of a mechanism must be Python: {error}") from error
    except MemoryError as error:
        raise InvalidSpec("the source of a mechanism must not nest so deeply") from error


def _used(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _local(function: ast.AST) -> set[str]:
    """The names that a function gives a value: its parameters and its variables."""
    names = (part for part in ast.walk(function) if isinstance(part, ast.Name))
    given = {part.id for part in names if not isinstance(part.ctx, ast.Load)}
    return given | {part.arg for part in ast.walk(function) if isinstance(part, ast.arg)}


def _bound(node: ast.AST) -> Iterator[str]:
    """The names of the module that a statement of it may give a value."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
            return  # what it sets inside is its own
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.alias(name=name, asname=other):
            yield other or name.partition(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
    for part in ast.iter_child_nodes(node):
        yield from _bound(part)


def _globals(tree: ast.Module) -> set[str]:
    """The names of the module that a function of it may give a value."""
    return {name for part in ast.walk(tree) if isinstance(part, ast.Global) for name in part.names}


def _constant(value: object) -> ast.expr | None:
    """A number or a symbol of a module as it is written down; None for anything else."""
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return ast.parse(repr(value), mode="eval").body
    return None


def _no_decorators(definition: ast.FunctionDef) -> None:
    if definition.decorator_list:
        raise OutsideLanguage(definition.name, 1, "a decorator", "what it does to the function is not read")


def _no_other_words(definition: ast.FunctionDef, words: set[str]) -> None:
    for word in sorted(words & WORDS_OF_THE_LANGUAGE):
        raise OutsideLanguage(definition.name, 1, f"a `{word}` of its own", f"`{word}` must be Python's")


def _no_other_defaults(function: types.FunctionType, definition: ast.FunctionDef) -> None:
    arguments = definition.args
    stated = [*arguments.defaults, *(value for value in arguments.kw_defaults if value is not None)]
    running = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    same = len(stated) == len(running)
    for node, value in zip(stated, running, strict=False):
        plain = type(value) in (int, float)
        same = same and (not plain or ast.dump(ast.parse(repr(value), mode="eval").body) == ast.dump(node))
    if not same:
        raise InvalidSpec(f"the defaults of {function.__name__} are not those of its source: load it again")


def _is_compiled_from(code: types.CodeType, text: str) -> bool:
    """Whether running code is what the text says: files change after they were loaded."""
    if any(word.startswith("@py") for word in (*code.co_names, *code.co_varnames)):
        return True  # a test runner has rewritten the asserts
    flags = code.co_flags & __future__.annotations.compiler_flag  # annotations of inner functions are code without it
    module = compile(text, "<source>", "exec", flags=flags, dont_inherit=True)
    found = [part for part in module.co_consts if isinstance(part, types.CodeType) and part.co_name == code.co_name]
    return len(found) == 1 and _same(code, found[0])


def _same(one: types.CodeType, other: types.CodeType) -> bool:
    if (one.co_code, one.co_names, one.co_varnames) != (other.co_code, other.co_names, other.co_varnames):
        return False
    if len(one.co_consts) != len(other.co_consts):
        return False
    for place, (left, right) in enumerate(zip(one.co_consts, other.co_consts, strict=True)):
        if isinstance(left, types.CodeType) and isinstance(right, types.CodeType):
            if not _same(left, right):
                return False
        elif isinstance(left, str) and isinstance(right, str) and (place == 0 or "<locals>" in left):
            continue  # what the function says of itself, indented otherwise, and names of inner functions
        elif type(left) is not type(right) or left != right:
            return False
    return True
