"""The source of a function that is named module:function, found and read without importing anything here."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from importlib.machinery import SOURCE_SUFFIXES, PathFinder
from importlib.util import decode_source
from pathlib import Path

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language.running import check_running
from dpaudit.verify.language.source import at_the_top, bound


def source_of(reference: str, folder: str) -> tuple[str, str]:
    """The text of the module and the name of the function in it; `folder` heads the import path.

    Raises `InvalidSpec` where the name reads in another way, there is no such file, or what the module calls by this
    name is not one plain `def`.
    """
    module, colon, name = reference.partition(":")
    if not (colon and module and name):
        raise InvalidSpec(f"a reference reads module:function, got {reference!r}")
    path = _file(module, folder)
    try:
        text = decode_source(path.read_bytes())
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidSpec(f"{path} cannot be read: {type(error).__name__}: {error}") from None
    if _times_bound(tree, name) != 1 or not any(isinstance(n, ast.FunctionDef) and n.name == name for n in tree.body):
        raise InvalidSpec(f"{path} must define {name!r} once, by a plain def: what is read must be what runs")
    return text, name


def check_as_read(reference: str, folder: str, text: str) -> None:
    """Raises `InvalidSpec` where what runs under this name, in a process of its own, is not what was read of it."""
    check_running(reference, folder, text, reference.partition(":")[2])
    if source_of(reference, folder)[0] != text:
        raise InvalidSpec(f"{reference} changes its own file as it is imported: what is read must be what runs")


def _file(module: str, folder: str) -> Path:
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        raise InvalidSpec(f"a reference reads module:function, got the module {module!r}")
    if parts[0] in sys.stdlib_module_names:
        raise InvalidSpec(f"{module} is a module of Python itself, whatever files there are")
    PathFinder.invalidate_caches()
    where: Iterable[str] | None = [folder, *sys.path]
    origin: str | None = None
    for count in range(1, len(parts) + 1):  # as Python finds it, but for what a package does while it is imported
        found = None if where is None else PathFinder.find_spec(".".join(parts[:count]), list(where))
        where, origin = (None, None) if found is None else (found.submodule_search_locations, found.origin)
    if origin is None:
        raise InvalidSpec(f"there is no file of a module {module!r} here or on the import path; check the name")
    loaded = getattr(sys.modules.get(module), "__file__", origin)
    if (
        not origin.endswith(tuple(SOURCE_SUFFIXES))
        or loaded is None
        or Path(loaded).resolve() != Path(origin).resolve()
    ):
        raise InvalidSpec(f"{origin} is not what runs under the name {module!r}: it is compiled, or the name is taken")
    return Path(origin)


def _times_bound(tree: ast.Module, name: str) -> int:
    """How often the module gives something this name, in a star import, a function's `global` or a default perhaps.

    An attribute of what has the name counts: `f.__kwdefaults__["eps"] = 2` makes it another function.
    """
    times = sum(name in node.names for node in ast.walk(tree) if isinstance(node, ast.Global))
    for node in at_the_top(tree.body):
        match node:
            case ast.Attribute(value=ast.Name(id=whose)):
                times += whose == name
            case _:
                times += bound(node) in (name, "*")
    return times
