"""Modules by their files: whose they are, where they would be found, what they hold, and versions of libraries."""

import ast
import hashlib
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from dpaudit.version import __version__

PACKAGE = Path(__file__).parents[1]
STANDARD = tuple(os.path.join(sysconfig.get_path(each), "") for each in ("stdlib", "platstdlib"))
INSTALLED = {"site-packages", "dist-packages"}
LARGEST = 1 << 30  # bytes up to which a file is read


@cache
def is_library(name: str, file: str | None) -> bool:
    """Whether a module is Python's own, ours, or an installed one; a script, a notebook and a text are none."""
    if name == "__main__":
        return False
    if file is None:
        return name.partition(".")[0] in {*sys.stdlib_module_names, *sys.builtin_module_names, "dpaudit"}
    path = os.path.abspath(file)
    return path.startswith((*STANDARD, os.path.join(PACKAGE, ""))) or not INSTALLED.isdisjoint(Path(path).parts)


def located(name: str, folders: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Name and file of a module that is not loaded, the packages around it first; nothing where there is none."""
    parts = name.split(".")
    path: Any = [*sys.path, *folders]
    for count in range(1, len(parts) + 1):
        full = ".".join(parts[:count])
        try:
            found = PathFinder.find_spec(parts[count - 1], path) if all(parts[:count]) else None
        except (ImportError, OSError, ValueError):
            return
        if found is None:
            return
        if found.origin is not None and os.path.isfile(found.origin):
            yield full, found.origin
        if found.submodule_search_locations is None:
            return
        path = list(found.submodule_search_locations)


def parsed(file: str) -> Iterator[ast.AST]:
    """All that a source file says; nothing of a file that is no Python."""
    try:
        tree = ast.parse(Path(file).read_bytes()) if file.endswith(".py") else ast.Module([], [])
    except (OSError, SyntaxError, ValueError, RecursionError):
        return iter(())
    return ast.walk(tree)


@cache
def release(library: str) -> str:
    """The version of a library by the name that it is imported by; what its first file is where it has none."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        named = metadata.packages_distributions().get(library, [])
    told = ", ".join(f"{each} {metadata.version(each)}" for each in sorted(set(named)))
    module = sys.modules.get(library)
    return told or f"#{digest_of_file(getattr(module, '__file__', None) or '')}"


@cache
def own_digest() -> str:
    """Our version, with a digest of all our source files."""
    found = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*.py")):
        found.update(f"{file.relative_to(PACKAGE)}:{file.stat().st_size}:".encode())
        found.update(file.read_bytes())
    return f"{__version__} ({found.hexdigest()[:16]})"


def digest_of_file(file: str) -> str:
    """The digest of a file as it is now, of a very large one by size and time; empty where it cannot be read."""
    try:
        if (told := os.stat(file)).st_size > LARGEST:
            return hashlib.sha256(f"{told.st_size} {told.st_mtime_ns}".encode()).hexdigest()[:16]
        with open(file, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()[:16]
    except OSError:
        return ""
