"""The source of a mechanism: a function, with the helper functions, modules and constants that it uses.

A method becomes a function: what it reads of its object are constants, other methods helper functions. And whether a
module's function runs as it reads: it is imported in a process of its own and compared with its source.
"""

import __future__

import ast
import builtins
import contextlib
import functools
import importlib
import inspect
import json
import math
import operator
import os
import re
import subprocess
import sys
import textwrap
import types
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from types import ModuleType
from typing import Any

from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.verify.language.outline import OutsideLanguage

HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made while Python runs
OF_EVERY_CLASS = frozenset(
    ("__module__", "__doc__", "__dict__", "__weakref__", "__qualname__", "__firstlineno__", "__static_attributes__")
)
FUTURE = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
PARTS = (
    *("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_posonlyargcount"),
    *("co_kwonlyargcount", "co_exceptiontable"),
)
WORDS_OF_THE_LANGUAGE = frozenset({"len", "range", "enumerate", "tuple", "list", "max", "min", "float", "int"})
WORDS_OF_PYTHON = frozenset(vars(builtins))
MODULES = ("math", "numpy")  # whose functions a source may use
HOMES = (*MODULES, "numpy.linalg", "numpy.random")  # where these are
LONGEST_INT = 4_000  # bits of a constant: Python writes longer ones out only when told so


@dataclass(frozen=True, slots=True)
class ReadSource:
    """A function as text that stands by itself: the definition (from line 1 on), then all that it uses of its module.

    `functions` are the helper functions that it calls, and those that these call; `modules` says what a name means:
    "numpy", "math", or one word of these, "math.exp". `classes` are those that it makes objects of: plain ones, of
    methods alone. Constants are numbers, texts, True, False, None, and tuples and
    lists of them. None of them is named like a parameter or a local variable of any of the functions.
    """

    text: str
    definition: ast.FunctionDef
    constants: Mapping[str, ast.expr]
    functions: Mapping[str, ast.FunctionDef]
    modules: Mapping[str, str]
    classes: Mapping[str, ast.ClassDef]


Written = tuple[str, ast.FunctionDef]  # the lines of a definition, and what they say
Meaning = Written | tuple[str, ast.ClassDef] | ast.expr | str | None  # of a name; None for what is not read


def source_of(function: Callable[..., Any] | str, name: str | None = None) -> ReadSource:
    """The source of a function, a method or an object that is called, or of one function in a text.

    Raises `InvalidSpec` where there is no source to read, or no such function, `OutsideLanguage` where it does not say
    what runs: for a decorator, say.

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
    helpers = {word for node in definitions for word in free_names(node) - {node.name}}
    heads = names if len(names) == 1 else [one for one in names if one not in helpers]
    if name is None and len(heads) != 1:
        raise InvalidSpec(f"the source must hold one function, or `name` must pick one of {', '.join(names) or 'none'}")
    name = name or heads[0]
    chosen = [node for node in definitions if node.name == name]
    if len(chosen) != 1:
        raise InvalidSpec(f"the source must hold one function named {name!r}, it holds {', '.join(names) or 'none'}")
    times = Counter([*filter(None, map(bound, at_the_top(tree.body))), *_globals(tree) * 2])
    if "*" in times:
        raise InvalidSpec("the source must not import everything of a module (import *): it may mean other things then")
    if times[name] > 1:
        raise InvalidSpec(f"{name} must be set once in the source, it is set again")
    if chosen[0].decorator_list:
        raise OutsideLanguage(name, 1, "a decorator", "what it does to the function is not read")
    known = {word: meant for word, meant in _meanings(tree).items() if times[word] == 1}

    def look(word: str) -> Meaning:
        if times[word] > 1 and word not in WORDS_OF_PYTHON:
            raise InvalidSpec(f"{word} must be set once in the source, it is set again")
        meant = known.get(word)
        return (_lines(text, meant), meant) if isinstance(meant, ast.FunctionDef | ast.ClassDef) else meant  # type: ignore[return-value]

    found = _source((_lines(text, chosen[0]), chosen[0]), look)
    made = [method for each in found.classes.values() for method in methods_of(each)]
    for function in (found.definition, *found.functions.values(), *made):
        _no_other_words(function, times.keys() & free_names(function))
    return found


def methods_of(node: ast.ClassDef) -> list[ast.FunctionDef]:
    """The methods of a class that has nothing else; none of another."""
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef) and not each.decorator_list]
    said = [each for each in node.body if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)]
    special = [each for each in methods if each.name.startswith("__") and each.name != "__init__"]
    plain = not (node.bases or node.keywords or node.decorator_list or special)
    return methods if plain and len(methods) + len(said) == len(node.body) else []


def _meanings(tree: ast.Module) -> dict[str, ast.FunctionDef | ast.ClassDef | ast.expr | str]:
    """What the names of a module mean that one plain statement gives a value."""
    known: dict[str, ast.FunctionDef | ast.ClassDef | ast.expr | str] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_constant(value):
                known[name] = value
            case ast.FunctionDef(name=name, decorator_list=[]):
                known[name] = node
            case ast.ClassDef(name=name) if methods_of(node):
                known[name] = node
            case ast.Import(names=names):
                for each in names:
                    if each.name.partition(".")[0] in MODULES:
                        whole = each.name if each.asname else each.name.partition(".")[0]
                        known[each.asname or whole] = whole
            case ast.ImportFrom(module=str(module), names=names, level=0) if module.partition(".")[0] in MODULES:
                known |= {each.asname or each.name: f"{module}.{each.name}" for each in names}
    return known


def _of_object(function: Callable[..., Any], name: str | None) -> ReadSource:
    function = passed_through(function)
    called = inspect.getattr_static(type(function), "__call__", None)
    if type(function) is not types.MethodType and type(called) is types.FunctionType:
        function = types.MethodType(called, function)
    plain = function.__func__ if type(function) is types.MethodType else function
    if not isinstance(plain, types.FunctionType):
        raise InvalidSpec(f"only a plain function, or its text, can be read; got {type(function).__name__}")
    if name not in (None, plain.__name__):
        raise InvalidSpec(f"the function is named {plain.__name__}, not {name!r}")
    known = plain.__globals__

    def look(word: str) -> Meaning:
        value = passed_through(known.get(word, ...))
        if type(value) is types.FunctionType and value.__globals__ is known and value.__code__.co_name == word:
            return _written(value)
        if type(value) is type and value.__name__ == word:
            with contextlib.suppress(InvalidSpec):  # it is refused where it is used
                return _written_class(value, known)
        return _module(value) or _constant(value)

    owner = getattr(function, "__self__", None)
    head, inside = (_written(plain), {}) if plain is function else _without_object(plain, owner)
    found = _source(head, lambda word: inside[word] if word in inside else look(word))
    words = {part.attr for part in ast.walk(_parsed(found.text)) if isinstance(part, ast.Attribute)}
    for word, home in product(words.union(*(each.split(".") for each in found.modules.values())), HOMES):
        value = vars(importlib.import_module(home)).get(word)
        made_in = getattr(value, "__globals__", {"__name__": getattr(value, "__module__", "")})["__name__"]
        if callable(value) and made_in.partition(".")[0] != home.partition(".")[0]:
            raise InvalidSpec(f"{home}.{word} is not the library's own: something else stands in its place")
    return found


def _written(function: types.FunctionType) -> Written:
    """The definition of a function that is running, without decorators: they gave back what it was compiled from."""
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
    text = _lines(text, definition)
    _check_runs(function, definition, text)
    return text, _definition(text)


def _written_class(kind: type, known: Mapping[str, object]) -> tuple[str, ast.ClassDef]:
    """A class of a module as it runs: its methods are those of its text, and it has nothing else."""
    methods = [value for value in vars(kind).values() if type(value) is types.FunctionType]
    try:
        whole = "".join(inspect.findsource(methods[0].__code__)[0])
        kinds = [each for each in _parsed(whole).body if isinstance(each, ast.ClassDef)]
        (text,) = [_lines(whole, each) for each in kinds if each.name == kind.__name__]
    except (OSError, IndexError, ValueError, InvalidSpec) as error:
        raise InvalidSpec(f"the source of {kind.__name__} cannot be read: pass its text") from error
    (node,) = _parsed(text).body
    assert isinstance(node, ast.ClassDef)
    _check_class(kind, node, text, known)
    return text, node


def _check_class(kind: object, node: ast.ClassDef, text: str, known: Mapping[str, object]) -> None:
    own = {name: value for name, value in vars(kind).items() if name not in OF_EVERY_CLASS}
    methods = {each.name: each for each in methods_of(node)}
    if type(kind) is not type or kind.__bases__ != (object,) or not methods or own.keys() != methods.keys():
        raise InvalidSpec(f"{node.name} is no plain class of methods alone, as it is written")
    for name, method in methods.items():
        value = own[name]
        if type(value) is not types.FunctionType or value.__globals__ is not known or value.__code__.co_freevars:
            raise InvalidSpec(f"{node.name}.{name} is no plain method of its module")
        _check_runs(value, method, textwrap.dedent(_lines(text, method)))


def _without_object(method: types.FunctionType, owner: object) -> tuple[Written, Mapping[str, Meaning]]:
    """A method as a function, and what it uses of its object: constants and functions, by names such as self_eps.

    Where a generator is used, every method takes it as a parameter in the place of the object.
    """
    if type(owner).__getattribute__ not in (object.__getattribute__, type.__getattribute__):
        raise InvalidSpec(f"the attributes of a {type(owner).__name__} are looked up by a method of its own")
    values, methods = dict[str, Any](), {"": _written(method)}
    waiting = [methods[""][1]]
    while waiting:
        definition = waiting.pop()
        for node in _attributes(definition):
            value = inspect.getattr_static(owner, node.attr, ...)
            own = isinstance(owner, type) or node.attr in getattr(owner, "__dict__", ())  # is no method
            if type(value) is types.FunctionType and value.__globals__ is method.__globals__ and not own:
                methods[node.attr] = methods.get(node.attr) or _written(value)
                waiting += [] if node.attr in values else [methods[node.attr][1]]
            elif type(value) is types.MemberDescriptorType:  # of __slots__
                value = getattr(owner, node.attr, ...)
            values[node.attr] = value
            plain = node.attr in methods or _constant(value) is not None or _is_generator(value)
            met: Any = plain and getattr(owner, node.attr, None)  # a metaclass or its own __dict__ may hide the value
            if not (plain and getattr(met, "__func__", met) is value and isinstance(node.ctx, ast.Load)):
                cure = "of its object a method may read numbers, texts and a generator, and call other methods"
                raise OutsideLanguage(definition.name, node.lineno, f"`{ast.unparse(node)}`", cure)
    drawn = [name for name, value in values.items() if _is_generator(value)]
    words = {name: "rng" if name in drawn else f"self_{name}" for name in values}
    names = {name for _, each in methods.values() for name in read_names(each) | local_names(each)}
    taken = Counter(words.values()) + Counter(names | method.__globals__.keys() - {"rng"})
    if twice := sorted(word for word in words.values() if taken[word] > 1):
        raise OutsideLanguage(method.__name__, 1, f"{twice[0]} in two meanings", "give one of them another name")
    found: dict[str, Meaning] = {words[name]: _constant(values[name]) for name in values.keys() - {*methods, *drawn}}
    found |= {
        words[name]: _as_function(written, words[name], words, methods) for name, written in methods.items() if name
    }
    return _as_function(methods[""], methods[""][1].name, words, methods), found


def _is_generator(value: object) -> bool:
    return type(value) is getattr(sys.modules.get("numpy.random"), "Generator", None)


def _attributes(method: ast.FunctionDef) -> list[ast.Attribute]:
    """What a method uses of its object."""
    first = [each.arg for each in (*method.args.posonlyargs, *method.args.args)][:1]
    inside = [part for part in ast.walk(method) if isinstance(part, ast.Attribute)]
    return [part for part in inside if isinstance(part.value, ast.Name) and part.value.id in first]


def _as_function(written: Written, name: str, words: Mapping[str, str], methods: Collection[str]) -> Written:
    """The text of a method as that of a function, on the same lines; rng is its first parameter if it is a word."""
    text, before = written
    own = next((each.arg for each in (*before.args.posonlyargs, *before.args.args)), "")
    rng = "rng" if "rng" in words.values() else ""

    def spelled(found: re.Match[str]) -> str:
        if found[1] not in words or found[1] in methods and not found[2]:
            return found[0]
        return f"{words[found[1]]}{found[2]}{rng and rng + ', ' if found[1] in methods else ''}"

    text = re.sub(r"(def\s+)\w+", rf"\g<1>{name}", text, count=1)
    text = re.sub(rf"(\(\s*){own}\b(\s*,|)", lambda found: f"{found[1]}{rng and rng + found[2]}", text, count=1)
    text = re.sub(rf"(?<![\w.]){own}\.(\w+)(\(|)", spelled, text)
    function = _definition(text)
    texts = [[part.value for part in ast.walk(each) if isinstance(part, ast.Constant)] for each in (before, function)]
    if own in read_names(function) | local_names(function) or repr(texts[0]) != repr(texts[1]):
        cure = "read its attributes where they are used, and name none in a text"
        raise OutsideLanguage(before.name, 1, f"{own} itself", cure)
    return text, function


def _definition(text: str) -> ast.FunctionDef:
    node = _parsed(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def _module(value: object) -> str | None:
    """The module that a value is, or the word of one: "numpy", "math.exp"; None for anything else."""
    name = str(getattr(value, "__name__", ""))
    words = [name, *(f"{home}.{name}" for home in MODULES)] if name else []
    return next((word for word in words if word.partition(".")[0] in MODULES and _meant(word) is value), None)


def _meant(word: str) -> object:
    """What such a word means now."""
    home, *names = word.split(".")
    return functools.reduce(lambda value, name: getattr(value, name, ...), names, sys.modules.get(home, ...))


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
    known = function.__globals__
    for word, node in source.constants.items():
        running = _constant(known.get(word, ...))
        if running is None or ast.dump(running) != ast.dump(node):
            raise InvalidSpec(f"the constant {word} of {name} is not that of its source once its module is imported")
    for word, helper in source.functions.items():
        value = known.get(word)
        if type(value) is not types.FunctionType or value.__globals__ is not known:
            raise InvalidSpec(f"{word}, which {name} calls, is no plain function of its module once that is imported")
        _check_runs(value, helper, source.text)
    for word, kind in source.classes.items():
        _check_class(known.get(word), kind, source.text, known)
    for word, whole in source.modules.items():
        if known.get(word) is not _meant(whole):
            raise InvalidSpec(f"{word} of {name} is not {whole} once its module is imported")


def _check_runs(function: types.FunctionType, definition: ast.FunctionDef, text: str) -> None:
    known, builtin = function.__globals__, getattr(function, "__builtins__")
    if type(known) is not dict or type(builtin) is not dict:
        raise InvalidSpec(f"the names of {definition.name} are looked up in no plain dict: it may mean anything")
    if hasattr(function, "__signature__"):
        raise InvalidSpec(f"{definition.name} says that it is another function: it has __signature__")
    used = read_names(definition) & set(known)
    modules = sorted(word for word in used if isinstance(known[word], types.ModuleType))
    imports = "".join(f"import {word}\n" for word in modules)  # calls of their functions are compiled otherwise
    if not _is_compiled_from(function.__code__, imports + text, ast.get_docstring(definition) is not None):
        raise InvalidSpec(f"the source of {definition.name} is not what is running: load it again")
    words = WORDS_OF_PYTHON & free_names(definition)
    _no_other_words(definition, {word for word in words if not _is_pythons(word, known, builtin)})
    _no_other_defaults(function, definition)


def _is_pythons(word: str, known: Mapping[str, object], builtin: Mapping[str, object]) -> bool:
    """Whether a word means Python's own function or type, whatever a module has put in the place of it."""
    value = known.get(word, builtin.get(word))
    if isinstance(value, type):
        own = type(value) is type and (value.__module__, value.__name__) == ("builtins", word)
        return own and not value.__flags__ & HEAP_TYPE
    return type(value) is types.BuiltinFunctionType and value.__self__ is builtins and value.__name__ == word


def _source(head: Written, look: Callable[[str], Meaning]) -> ReadSource:
    """The function and all that it uses, read again as the text that is stored."""
    text, definition = head
    functions, constants, modules = dict[str, Written](), dict[str, ast.expr](), dict[str, str]()
    classes = dict[str, tuple[str, ast.ClassDef]]()
    waiting = [definition]
    while waiting:
        for word in sorted(free_names(waiting.pop()) - functions.keys() - classes.keys() - {definition.name}):
            match look(word):
                case (_, ast.ClassDef() as kind) as written:
                    classes[word] = written
                    waiting += methods_of(kind)
                case (_, ast.FunctionDef() as helper) as written:
                    functions[word] = written
                    waiting.append(helper)
                case str(module):
                    modules[word] = module
                case ast.expr() as value:
                    constants[word] = value
    inside = [definition, *(each for _, each in functions.values())]
    inside += [method for _, kind in classes.values() for method in methods_of(kind)]
    local = {name for each in inside for name in local_names(each)}
    for word in sorted(local & {*functions, *constants, *modules, *classes}):
        cure = "give one of them another name"
        raise OutsideLanguage(definition.name, 1, f"{word} of the module beside a variable of this name", cure)
    parts = [text.rstrip() + "\n", *(f"{lines.rstrip()}\n" for lines, _ in (*functions.values(), *classes.values()))]
    homes = {name: module.rpartition(".")[::2] for name, module in sorted(modules.items())}
    lines = [f"{home and f'from {home} '}import {inner} as {name}" for name, (home, inner) in homes.items()]
    lines += [f"{name} = {ast.unparse(constants[name])}" for name in sorted(constants)]
    text = "\n\n".join([*parts, "\n".join(lines) + "\n"] if lines else parts)
    tree = _parsed(text)
    alone = tree.body[0]
    assert isinstance(alone, ast.FunctionDef)
    alone.args.args, alone.args.posonlyargs = [*alone.args.posonlyargs, *alone.args.args], []  # it is called by names
    known = _meanings(ast.Module(tree.body[1:], []))
    return ReadSource(
        text,
        alone,
        {name: node for name, node in known.items() if isinstance(node, ast.expr)},
        {name: node for name, node in known.items() if isinstance(node, ast.FunctionDef)},
        {name: module for name, module in known.items() if isinstance(module, str)},
        {name: node for name, node in known.items() if isinstance(node, ast.ClassDef)},
    )


def place_of(text: str, line: int) -> str:
    """A line of a text that stands by itself, in words: of its first function, or of a helper or a class.

    >>> place_of("def f(q, rng): return g(q)\\ndef g(x):\\n    return x", 3)
    'line 2 of g'
    """
    helpers = [node for node in ast.parse(text).body[1:] if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    found = [node for node in helpers if node.lineno <= line <= (node.end_lineno or 0)]
    return f"line {line - found[0].lineno + 1} of {found[0].name}" if found else f"line {line}"


def _lines(text: str, node: ast.FunctionDef | ast.ClassDef) -> str:
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


def local_names(function: ast.FunctionDef) -> set[str]:
    """Every name that a function gives a value, its parameters among them."""
    inside = [part for each in (function.args, *function.body) for part in ast.walk(each)]
    names = {bound(part) for part in inside} | {part.arg for part in inside if isinstance(part, ast.arg)}
    return {name for name in names if name is not None}


def free_names(function: ast.FunctionDef) -> set[str]:
    """The names that a function reads and gives no value: of its module, or of Python. Annotations read nothing."""
    waiting: list[ast.AST] = [function.args, *function.body]
    names = set()
    while waiting:
        node = waiting.pop()
        names |= {node.id} if isinstance(node, ast.Name) else set()
        waiting += (part for part in ast.iter_child_nodes(node) if part is not getattr(node, "annotation", None))
    return names - local_names(function)


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


def _globals(tree: ast.Module) -> list[str]:
    """The names of the module that a function of it may give a value."""
    return [name for part in ast.walk(tree) if isinstance(part, ast.Global) for name in part.names]


def _constant(value: object) -> ast.expr | None:
    """A constant of a module as it is written down; None for anything else."""
    if type(value) in (tuple, list):
        parts = [_constant(each) for each in value]  # type: ignore[attr-defined]
        kind = ast.Tuple if type(value) is tuple else ast.List
        return None if None in parts else kind(elts=parts, ctx=ast.Load())  # type: ignore[arg-type]
    if type(value) is float and not math.isnan(value):
        return ast.parse(repr(value).replace("inf", "1e999"), mode="eval").body
    if type(value) is int and value.bit_length() > LONGEST_INT:
        return None
    return ast.parse(repr(value), mode="eval").body if value is None or type(value) in (bool, int, str) else None


def _is_constant(node: ast.expr) -> bool:
    """Whether an expression is a number or a symbol as it is written down, or several."""
    match node:
        case ast.Constant() | ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return True
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(map(_is_constant, parts))
    return False


def _no_other_words(definition: ast.FunctionDef, words: set[str]) -> None:
    for word in sorted(words & WORDS_OF_PYTHON):
        raise OutsideLanguage(definition.name, 1, f"a `{word}` of its own", f"`{word}` must be Python's")


def _no_other_defaults(function: types.FunctionType, definition: ast.FunctionDef) -> None:
    arguments = definition.args
    for each in (*arguments.defaults, *arguments.kw_defaults):
        if each is not None and not _is_constant(each):
            raise OutsideLanguage(definition.name, 1, f"the default `{ast.unparse(each)}`", "write it out")
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
