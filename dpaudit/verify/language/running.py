"""Whether a module's function runs as it reads: it is imported in a process of its own and compared with its source."""

import functools
import importlib
import json
import os
import subprocess
import sys
from types import ModuleType
from typing import Any

from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.verify.language.source import check_runs, passed_through, source_of

START = "import sys; sys.path[:] = {path!r}; from dpaudit.verify.language.running import answer; answer()"
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
            told = process.stdout.readline()  # not to its end: the module may have left a process that holds it open
        finally:
            process.kill()
    try:
        (error,) = json.loads(told)
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
