"""Workers that dpaudit did not start run the same program as this process: each checks it, a difference is an error."""

import os
import socket
import sys
import types
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.running.contents import digest_of_file, fields_of, globals_of, is_class, is_module, located, release
from dpaudit.running.program import code_digest, made_with

Shown = tuple[tuple[str, str], ...]  # parts by name that a worker must have too
KINDS = ("module", "library", "program")
CURE = "give every worker the same files and versions, or leave the backend out"


def shown(parts: Mapping[str, str]) -> Shown:
    """The parts of a mechanism that are not sent to workers: versions, files of modules, and code in memory."""
    import cloudpickle

    sent = {"__main__", *cloudpickle.list_registry_pickle_by_value()}
    result = {name: value for name, value in parts.items() if name in made_with()}
    for name, value in parts.items():
        kind, _, what = name.partition(" ")
        home = next((each for each in _around(what) if each in sys.modules), "")
        plain = type(getattr(sys.modules.get(home), "__loader__", None)) is SourceFileLoader  # others may change code
        if home not in sent and (kind in KINDS or (kind == "function" and plain and f"{name} (2)" not in parts)):
            result[name] = value
    return tuple(result.items())


def check(wanted: Shown, *, opened: bool) -> None:
    """Raises `InvalidSpec` where a part differs in this worker; parts of the mechanism are compared once it is open."""
    versions = made_with() if wanted else {}  # for our own processes nothing: versions read all our files
    for name, value in wanted:
        actual = _part(name) if opened and name not in versions else versions.get(name)
        if actual is not None and actual != value:
            theirs = f"{name} {actual.lstrip('#')}" if actual.lstrip("#") else f"no {name}"
            raise InvalidSpec(f"it has {theirs}, and here it is {value.lstrip('#')}")


def whereabouts() -> str:
    """The name of this worker: its address in dask where it is dask's, else its machine and process."""
    distributed = sys.modules.get("distributed")
    try:
        return str(distributed.get_worker().address)  # type: ignore[union-attr]
    except (AttributeError, ValueError):
        return f"{socket.gethostname()}, process {os.getpid()}"


def _part(name: str) -> str | None:
    """A part as this process has it, empty where it has none; None where that is not known."""
    kind, _, what = name.partition(" ")
    if kind == "library":
        return release(what)
    if kind == "program" or what.endswith(".py"):
        return f"#{digest_of_file(what)}" if os.path.isfile(what) else ""
    if kind == "module":
        file = getattr(sys.modules.get(what), "__file__", None) or dict(located(what, ())).get(what)
        return f"#{digest_of_file(file)}" if file else ""
    home = next(each for each in _around(what) if each in sys.modules or "." not in each)
    value: Any = sys.modules.get(home)
    for step in what.removeprefix(f"{home}.").split("."):
        fields = globals_of(value) if is_module(value) else fields_of(value) if is_class(value) else {}
        value = fields.get(step)
    return code_digest(value) if type(value) is types.FunctionType else None


def _around(name: str) -> list[str]:
    """The name, and those of the packages around it, the nearest first."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
