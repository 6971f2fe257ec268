"""The source of a mechanism: one plain function, and the constants of its module that it uses.

And whether a module's function runs as it reads: it is imported in a process of its own and compared with its source.
"""

import __future__

import ast
import builtins
import functools
import importlib
import inspect
import json
import math
import operator
import os
import subprocess
import sys
import textwrap
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.verify.language.outline import OutsideLanguage

HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made while Python runs
FUTURE = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
PARTS = (
    *("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_posonlyargcount"),
    *("co_kwonlyargcount", "co_exceptiontable"),
)
WORDS_OF_THE_LANGUAGE = frozenset({"len", "range", "enumerate", "tuple", "list", "max", "min", "float", "int"})


@dataclass(frozen=True, slots=True)
class ReadSource:
    """A function as text that stands by itself: the definition (from line 1 on), then the constants it uses.

    A constant is never named like a parameter or a local variable: inside the function that name means the other.
    """

    text: str
    definition: ast.FunctionDef
    constants: Mapping[str, ast.Constant | ast.UnaryOp]


def source_of(function: Callable[..., Any] | str, name: str | None = None) -> ReadSource:
    """The source of a function object, or of one function in a text.

    Raises `InvalidSpec` where there is no source to read, or no such function, `OutsideLanguage` for a decorator.

    >>> source_of("def f(q, rng):\\n    return TOP\\n\\nTOP = 1").text.splitlines()[-1]
    'TOP = 1'
    """
    return _of_text(function, name) if isinstance(function, str) else _of_object(function, name)


def _of_text(text: str, name: str | None) -> ReadSource:
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
                given = {name for part in at_the_top([node]) if (name := bound(part)) is not None}
                if chosen[0].name in given:
                    raise InvalidSpec(f"{chosen[0].name} must be set once in the source, it is set again")
                others |= given
    if chosen[0].name in (*constants, *_globals(tree)):
        raise InvalidSpec(f"{chosen[0].name} must be set once in the source, it is set again")
    if "*" in others:
        raise InvalidSpec("the source must not import everything of a module (import *): it may mean other things then")
    if chosen[0].decorator_list:
        raise OutsideLanguage(chosen[0].name, 1, "a decorator", "what it does to the function is not read")
    _no_other_words(chosen[0], (others | set(constants)) & read_names(chosen[0]))
    return _source(_lines(text, chosen[0]), {name: constants[name] for name in constants if name not in others})


def _of_object(function: Callable[..., Any], name: str | None) -> ReadSource:
    function = passed_through(function)
    if not isinstance(function, types.FunctionType):
        raise InvalidSpec(f"only a plain function, or its text, can be read; got {type(function).__name__}")
    if name not in (None, function.__name__):
        raise InvalidSpec(f"the function is named {function.__name__}, not {name!r}")
    try:
        text = textwrap.dedent(inspect.getsource(function.__code__)).strip("\n")
        tree = _parsed(text)
    except (OSError, TypeError, InvalidSpec) as error:
        raise InvalidSpec(f"the source of {function.__name__} cannot be read: pass its text") from error
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
        raise InvalidSpec(f"{function.__name__} must be written as one def statement")
    definition = tree.body[0]
    if function.__code__.co_freevars:
        outer = ", ".join(function.__code__.co_freevars)
        raise OutsideLanguage(definition.name, 1, f"{outer} of an enclosing function", "make it a parameter")
    text = _lines(text, definition)  # without decorators: they gave back what was compiled from this text
    _check_runs(function, definition, text)
    known = function.__globals__
    constants = {word: _constant(known[word]) for word in sorted(read_names(definition) & set(known))}
    return _source(text, {word: node for word, node in constants.items() if node is not None})


def _passing(function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def passed_through(function: Any) -> Any:
    """The function that a decorator's wrapper hands its arguments to, where it does nothing else; else itself.

    >>> passed_through(_passing(source_of)) is source_of
    True
    """
    own, seen = _passing(source_of).__code__, list[Any]()  # one that hands them to itself is left as it is
    while type(function) is types.FunctionType and function.__code__.co_code == own.co_code and function not in seen:
        seen.append(function)
        code = function.__code__
        if (code.co_flags ^ own.co_flags) & ~FUTURE or code.co_argcount or code.co_kwonlyargcount:
            break
        (cell,) = function.__closure__ or ()
        try:
            function = cell.cell_contents
        except ValueError:  # it is empty
            break
    return function


def check_runs(function: object, source: ReadSource) -> None:
    """Raises `InvalidSpec` where a function does not do what a source says: in its code, defaults, names or constants.

    >>> check_runs(max, source_of("def max(q, rng):\\n    return q"))
    Traceback (most recent call last):
    dpaudit.errors.InvalidSpec: max is no plain function once its module is imported, but builtin_function_or_method
    """
    name = source.definition.name
    if type(function) is not types.FunctionType:
        raise InvalidSpec(f"{name} is no plain function once its module is imported, but {type(function).__name__}")
    if hasattr(function, "__wrapped__"):
        raise InvalidSpec(f"{name} says that it is another function: it has __wrapped__")
    _check_runs(function, source.definition, source.text)
    for word, node in source.constants.items():
        running = _constant(function.__globals__.get(word, ...))
        if running is None or ast.dump(running) != ast.dump(node):
            raise InvalidSpec(f"the constant {word} of {name} is not that of its source once its module is imported")


def _check_runs(function: types.FunctionType, definition: ast.FunctionDef, text: str) -> None:
    known, builtin = function.__globals__, getattr(function, "__builtins__")
    if type(known) is not dict or type(builtin) is not dict:
        raise InvalidSpec(f"the names of {definition.name} are looked up in no plain dict: it may mean anything")
    if hasattr(function, "__signature__"):
        raise InvalidSpec(f"{definition.name} says that it is another function: it has __signature__")
    used = read_names(definition)
    modules = sorted(word for word in used & set(known) if isinstance(known[word], types.ModuleType))
    imports = "".join(f"import {word}\n" for word in modules)  # calls of their functions are compiled otherwise
    if not _is_compiled_from(function.__code__, imports + text, ast.get_docstring(definition) is not None):
        raise InvalidSpec(f"the source of {definition.name} is not what is running: load it again")
    _no_other_words(
        definition, {word for word in WORDS_OF_THE_LANGUAGE & used if not _is_pythons(word, known, builtin)}
    )
    _no_other_defaults(function, definition)


def _is_pythons(word: str, known: Mapping[str, object], builtin: Mapping[str, object]) -> bool:
    """Whether a word means Python's own function or type, whatever a module has put in the place of it."""
    value = known.get(word, builtin.get(word))
    if isinstance(value, type):
        own = type(value) is type and (value.__module__, value.__name__) == ("builtins", word)
        return own and not value.__flags__ & HEAP_TYPE
    return type(value) is types.BuiltinFunctionType and value.__self__ is builtins and value.__name__ == word


def _source(definition: str, constants: Mapping[str, ast.expr]) -> ReadSource:
    """The function and its constants, read again as the text that is stored."""
    alone = _parsed(definition).body[0]
    stored = {part.id for part in ast.walk(alone) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}
    used = read_names(alone) - stored - {part.arg for part in ast.walk(alone) if isinstance(part, ast.arg)}
    lines = [f"{name} = {ast.unparse(constants[name])}" for name in sorted(constants) if name in used]
    text = definition.rstrip() + "\n" + ("\n\n" + "\n".join(lines) + "\n" if lines else "")
    tree = _parsed(text)
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    values: dict[str, ast.Constant | ast.UnaryOp] = {}
    for node in tree.body[1:]:
        assert isinstance(node, ast.Assign)
        assert isinstance(node.targets[0], ast.Name)
        assert isinstance(node.value, ast.Constant | ast.UnaryOp)
        values[node.targets[0].id] = node.value
    return ReadSource(text, function, values)


def _lines(text: str, node: ast.FunctionDef) -> str:
    return "\n".join(text.split("\n")[node.lineno - 1 : node.end_lineno])


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


def read_names(node: ast.AST) -> set[str]:
    """Every name that stands in a piece of Python."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def at_the_top(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """What a module evaluates of some statements: not what stands inside their functions and classes."""
    waiting = list(statements)
    while waiting:
        node = waiting.pop()
        yield node
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                waiting += [*node.decorator_list, node.args]
            case ast.ClassDef():
                waiting += [*node.decorator_list, *node.bases, *node.keywords]
            case _:
                waiting += ast.iter_child_nodes(node)


def bound(node: ast.AST) -> str | None:
    """The name that a node gives a value; "*" for all names of a module."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return name
        case ast.alias(name=name, asname=other):
            return other or name.partition(".")[0]
        case ast.ExceptHandler(name=bare) | ast.MatchAs(name=bare) | ast.MatchStar(name=bare):
            return bare
        case ast.MatchMapping(rest=bare):
            return bare
    return None


def _globals(tree: ast.Module) -> set[str]:
    """The names of the module that a function of it may give a value."""
    return {name for part in ast.walk(tree) if isinstance(part, ast.Global) for name in part.names}


def _constant(value: object) -> ast.expr | None:
    """A number or a symbol of a module as it is written down; None for anything else."""
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return ast.parse(repr(value), mode="eval").body
    return None


def _no_other_words(definition: ast.FunctionDef, words: set[str]) -> None:
    for word in sorted(words & WORDS_OF_THE_LANGUAGE):
        raise OutsideLanguage(definition.name, 1, f"a `{word}` of its own", f"`{word}` must be Python's")


def _no_other_defaults(function: types.FunctionType, definition: ast.FunctionDef) -> None:
    arguments = definition.args
    if not all(
        isinstance(each, ast.Constant | ast.UnaryOp | None) for each in (*arguments.defaults, *arguments.kw_defaults)
    ):
        return  # refused where it is read
    named = zip((each.arg for each in arguments.kwonlyargs), arguments.kw_defaults, strict=True)
    stated = (
        [ast.dump(node) for node in arguments.defaults],
        {name: ast.dump(node) for name, node in named if node is not None},
    )
    own, by_name = function.__defaults__ or (), function.__kwdefaults__ or {}
    running = [_dumped(value) for value in own], {name: _dumped(value) for name, value in by_name.items()}
    if stated != running:
        raise InvalidSpec(f"the defaults of {function.__name__} are not those of its source: load it again")


def _dumped(value: object) -> str:
    node = _constant(value)
    return f"a {type(value).__name__}" if node is None else ast.dump(node)


def _is_compiled_from(code: types.CodeType, text: str, documented: bool) -> bool:
    """Whether running code is what the text says: files change after they were loaded."""
    flags = code.co_flags & FUTURE  # such as that of annotations: those of inner functions are code without it
    tree = ast.parse(text)
    rewriter: Any = sys.modules.get("_pytest.assertion.rewrite")
    if rewriter is not None and any(word.startswith("@py") for word in (*code.co_names, *code.co_varnames)):
        rewriter.rewrite_asserts(tree, text.encode())  # as the test runner has done
    module = compile(tree, "<source>", "exec", flags=flags, dont_inherit=True)
    codes = [part for part in module.co_consts if isinstance(part, types.CodeType) and part.co_name == code.co_name]
    return len(codes) == 1 and _same(code, codes[0], documented)


def _same(one: types.CodeType, other: types.CodeType, documented: bool = False) -> bool:
    if any(getattr(one, part) != getattr(other, part) for part in PARTS):
        return False
    if (one.co_flags ^ other.co_flags) & ~inspect.CO_NESTED or len(one.co_consts) != len(other.co_consts):
        return False
    for place, (left, right) in enumerate(zip(one.co_consts, other.co_consts, strict=True)):
        if isinstance(left, types.CodeType) and isinstance(right, types.CodeType):
            if not _same(left, right):
                return False
        elif documented and place == 0 and isinstance(left, str):
            continue  # what the function says of itself, indented otherwise
        elif type(left) is not type(right) or repr(left) != repr(right):
            return False
    return True


START = "import sys; sys.path[:] = {path!r}; from dpaudit.verify.language.source import answer; answer()"
KEPT = ("builtins", "ast", "inspect", "types", "math", "random", "numpy", "numpy.random", "dpaudit")  # stay as they are


@functools.cache
def check_running(reference: str, folder: str, text: str, name: str) -> None:
    """Raises `InvalidSpec` where a module's function, once imported, is not that of the text that was read of it.

    Contract: nothing is imported here. A module that ends its process, or never ends, cannot be compared.
    """
    command = [sys.executable, "-c", START.format(path=sys.path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps((reference, folder, text, name)) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()  # not to its end: the module may have left a process that holds it open
        finally:
            process.kill()
    try:
        (error,) = json.loads(line)
    except ValueError:
        raise InvalidSpec(
            f"{reference} cannot be compared with its source: its process ended as it was imported"
        ) from None
    if error is not None:
        raise InvalidSpec(str(error))


def answer() -> None:
    """What that process does: one line on standard output, where nothing that the module says can come."""
    given = json.loads(sys.stdin.readline())
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        _compare(*given)
        error = None
    except DpAuditError as refused:
        error = str(refused)
    out.write(json.dumps([error]))
    out.close()
    os._exit(0)  # whatever threads the module has left


def _compare(reference: str, folder: str, text: str, name: str) -> None:
    from dpaudit.mechanisms.importing import import_reference

    source = source_of(text, name)
    module_name = reference.partition(":")[0]
    for key in KEPT:
        importlib.import_module(key)
    ours = [key for key in sys.modules if key in KEPT or key.startswith("dpaudit.")]
    before = [(key, sys.modules[key], dict(vars(sys.modules[key]))) for key in ours]
    function = import_reference(reference, folder)
    for key, ours_then, names in before:
        now = ours_then.__dict__
        for word in names:  # no word of Python is used here that the module may have replaced
            if word not in now or now[word] is not names[word]:
                raise InvalidSpec(f"{module_name} replaces {key}.{word} as it is imported: nothing is sure then")
    module: Any = sys.modules.get(module_name)
    if type(module) is not ModuleType or vars(module).get(name) is not function:
        raise InvalidSpec(f"{module_name} is no plain module once it is imported: what it gives may change")
    check_runs(passed_through(function), source)
