"""What a mechanism's result depends on in source files: its module's, and those of all that it imports.

Contract: two equal digests mean equal sources. Where that cannot be known there is no digest, and the mechanism is run.
Data that a mechanism reads from files is not looked at.
"""

import ast
import hashlib
import json
import math
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

HIDDEN = {"__import__", "import_module", "exec", "eval", "runpy", "load_module", "exec_module"}  # what imports unseen
STANDARD = Path(sysconfig.get_paths()["stdlib"]).resolve()
INSTALLED = ("site-packages", "dist-packages")


def sources_digest(module: str, file: Path, folder: str | None = None) -> str | None:
    """The digest of a module's file, of the files beside it, and of all that they import; None where nothing can tell.

    `folder` heads the import path. Installed packages count by the versions that are installed beside them.
    """
    where = [each for each in (folder, *sys.path) if each is not None]
    files: set[Path] = set()
    installed: set[Path] = set()
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    waiting = [(package, file), *((package, beside) for beside in sorted(file.parent.glob("*.py")))]
    try:
        while waiting:
            package, path = waiting.pop()
            path = path.resolve()
            if path in files:
                continue
            files.add(path)
            for name in _imported(path, package):
                for inner, found in _modules(name, where):
                    site = next((each for each in found.parents if each.name in INSTALLED), None)
                    if site is not None and site not in file.resolve().parents:
                        installed.add(site)
                    elif found.suffix == ".py":
                        waiting.append((inner, found))
                    else:
                        files.add(found)
        if _may_be_old(files):
            return None
        parts = [f"{path.name}:{hashlib.sha256(path.read_bytes()).hexdigest()}" for path in sorted(files)]
        parts += [each.name for site in sorted(installed) for each in sorted(site.glob("*.dist-info"))]
    except (OSError, SyntaxError, ValueError, _Unseen):
        return None
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def memory_digest(function: FunctionType) -> str | None:
    """The digest of what a loaded function names: code, and values of modules that were read or set; None if unknown.

    A module's value may have been set after the module was loaded, and a function put in the place of another.
    """
    parts: list[str] = []
    try:
        _walk(function, {}, parts.append)
    except _Unseen:
        return None
    return hashlib.sha256("\n".join(parts).encode("utf-8", "backslashreplace")).hexdigest()


class _Unseen(Exception):
    """Something that only running the code would show."""


def _imported(path: Path, package: str) -> Iterator[str]:
    """The modules that a file may import, wherever in it; raises `_Unseen` where it may import others."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".") if package else []
            kept = parents[: len(parents) - node.level + 1] if node.level else []
            base = ".".join([*kept, *filter(None, [node.module])])
            yield base
            yield from (f"{base}.{each.name}" if base else each.name for each in node.names)
        elif {getattr(node, "id", None), getattr(node, "attr", None)} & HIDDEN:
            raise _Unseen


def _modules(name: str, where: list[str]) -> Iterator[tuple[str, Path]]:
    """The package and file of a module and of the packages around it; nothing for Python's own and ours."""
    parts = name.split(".")
    if parts[0] in sys.stdlib_module_names or parts[0] == "dpaudit" or not parts[0]:
        return
    path: Any = where
    for count in range(1, len(parts) + 1):
        full = ".".join(parts[:count])
        found = PathFinder.find_spec(full, path)
        if found is None:
            return
        if found.origin is not None and os.path.isfile(found.origin):
            inside = full if found.submodule_search_locations is not None else full.rpartition(".")[0]
            yield inside, Path(found.origin).resolve()
        if found.submodule_search_locations is None:
            return
        path = list(found.submodule_search_locations)


def _may_be_old(files: set[Path]) -> bool:
    """Whether a file was changed since this process began and is loaded: what runs may be what stood in it before."""
    started = _started()
    changed = {path for path in files if path.stat().st_mtime >= started}
    if not changed:
        return False
    loaded = (getattr(each, "__file__", None) for each in list(sys.modules.values()))
    return any(each is not None and Path(each).resolve() in changed for each in loaded)


def _started() -> float:
    """When this process began, less the second that clocks may differ in; long ago where the system does not say."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        booted = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime"))
        return int(booted.split()[1]) + ticks / os.sysconf("SC_CLK_TCK") - 1.0
    except (OSError, ValueError, StopIteration, IndexError):
        return -math.inf


def _walk(value: Any, seen: dict[int, int], tell: Callable[[str], None]) -> None:
    if not isinstance(value, FunctionType | type):
        if not _named_by_others(value):
            _walk_plain(value, tell)
        return
    if id(value) in seen:
        tell(f"once more {seen[id(value)]}")
        return
    seen[id(value)] = len(seen)
    if _of_others(getattr(sys.modules.get(value.__module__ or ""), "__file__", None)):
        tell(f"{value.__module__}.{value.__qualname__}")
    elif isinstance(value, FunctionType):
        if value.__closure__:
            raise _Unseen
        names = _told(value.__code__, tell)
        _walk_plain([value.__defaults__, value.__kwdefaults__], tell)
        _walk_names(names, value.__globals__, seen, tell)
    else:
        for base in value.__mro__[1:]:
            _walk(base, seen, tell)
        for name, inner in vars(value).items():
            if isinstance(inner, FunctionType | staticmethod | classmethod):
                _walk(getattr(inner, "__func__", inner), seen, tell)
            elif not name.startswith("__"):
                _walk(inner, seen, tell)


def _walk_names(
    names: set[str],
    around: dict[str, Any],
    seen: dict[int, int],
    tell: Callable[[str], None],
    way: tuple[ModuleType, ...] = (),
) -> None:
    """What the names of a code stand for: `helper.SCALE` is two names, the second one of the module `helper`."""
    for name in sorted(names & around.keys()):
        found = around[name]
        tell(name)
        if not isinstance(found, ModuleType):
            _walk(found, seen, tell)
        elif found not in way and not _of_others(getattr(found, "__file__", None)):
            _walk_names(names, vars(found), seen, tell, (*way, found))


def _named_by_others(value: Any) -> bool:
    """Whether it is what a foreign module has under that name, such as `math.exp`."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return False
    home = sys.modules.get(module)
    return getattr(home, name, None) is value and _of_others(getattr(home, "__file__", None))


def _told(code: CodeType, tell: Callable[[str], None]) -> set[str]:
    """Tells what a code does, and returns the names in it."""
    names = set(code.co_names)
    tell(f"{code.co_name} {code.co_code.hex()} {code.co_names} {code.co_varnames}")
    for each in code.co_consts:
        if isinstance(each, CodeType):
            names |= _told(each, tell)
        else:
            tell(repr(sorted(map(repr, each)) if isinstance(each, frozenset) else each))
    return names


def _walk_plain(value: Any, tell: Callable[[str], None]) -> None:
    try:
        tell(json.dumps(value, sort_keys=True))
    except (TypeError, ValueError, RecursionError):
        raise _Unseen from None


def _of_others(file: str | None) -> bool:
    """Whether a module is Python's own or an installed one; also one without a file, such as those written in C."""
    if file is None:
        return True
    path = Path(file).resolve()
    return any(each.name in INSTALLED for each in path.parents) or STANDARD in path.parents
