"""What a mechanism is made of: its code and the values that this reads, each part by its name, with a digest.

Resumed calls and runs, stored trainings, results of sweeps, and workers of others are compared with it. No
code of a user runs here: attributes are read where they are stored, and only objects of libraries are asked for their
contents. What cannot be shown to be the same gets no digest, but says what it is.
"""

import ast
import dis
import os
import re
import shutil
import sys
import types
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from dpaudit.errors import DpAuditError
from dpaudit.mechanisms.command import Command
from dpaudit.mechanisms.importing import import_reference
from dpaudit.mechanisms.protocol import Mechanism
from dpaudit.results.provenance import versions
from dpaudit.running import contents
from dpaudit.running.contents import digest_of_file, located, own_digest, parsed, release

UNKNOWN = "? "  # before what a part is that cannot be shown to be the same
DIGEST = "#"  # before a digest; a version stands as it is
VARIABLE = "environment variable "
BY_NAME = {"globals", "vars", "eval", "exec", "getattr"}  # of Python, where code loads them and no attribute
WIDE = {"globals", "vars", "eval", "exec", "__dict__", "__globals__", "f_globals"}  # what reads globals unseen,
COMPUTED = {"getattr", "attrgetter", *WIDE}  # and what reads attributes of modules so
IMPORTING = {"import_module", "__import__", "modules"}
OF_PYTHON = {
    *("__dict__", "__weakref__", "_abc_impl", "__slotnames__", "__firstlineno__", "__static_attributes__"),
    *("__annotations_cache__", "__annotate_func__"),
}  # of a class, entries without information, or different in each process
CHANGING = re.compile(  # variables that shells, terminals, desktops, schedulers, test runners and libraries set again
    r"KMP_INIT_AT_FORK|KMP_DUPLICATE_LIB_OK|CUDA_MODULE_LOADING|TF2_BEHAVIOR|"  # when joblib and others are loaded
    r"_|PYTHONBREAKPOINT|PWD|OLDPWD|SHLVL|COLUMNS|LINES|WINDOWID|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|STY|INVOCATION_ID|JOURNAL_STREAM|"
    r"(SSH|XDG|DBUS|GPG|GNOME|GTK|KDE|KONSOLE|DESKTOP|TERM|TMUX|VSCODE|ITERM|WT|WSL|SYSTEMD|MANAGER|JPY|PYDEVD|SLURM|"
    r"PBS|LSB|SPARK|PYSPARK|RAY|DASK|GITHUB|RUNNER|ACTIONS|CI|BUILDKITE|GITLAB|PYTEST|COV|COVERAGE|DPAUDIT|LC_TERMINAL)(_.*|PID)?"
)


def made_of(mechanism: Mechanism, *, strict: bool = True) -> dict[str, str]:
    """The parts of a mechanism by name: a digest, a version, or what it is that cannot be shown to be the same.

    Unless `strict`, only values count, with the same code: an object that cannot be rebuilt counts by the objects it
    refers to, where these are known. Raises `InvalidSpec` for a name that cannot be imported.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = _Parts()
        parts.strict = strict
        return parts.of(mechanism)


def code_digest(function: types.FunctionType) -> str:
    """The part that the code of a function is."""
    return f"{DIGEST}{contents.hashed('function', _Parts().code(function.__code__, {})).hex()[:16]}"


def made_with() -> dict[str, str]:
    """What every mechanism here is run by: Python, ours, and the libraries that decide the numbers."""
    libraries = {name: value for name, value in versions().items() if name not in ("version", "platform", "python")}
    return {**libraries, "Python": versions()["python"], "dpaudit": own_digest()}


def portable(parts: Mapping[str, str]) -> dict[str, str]:
    """The parts that are the same on every machine where the mechanism is: all but the environment's.

    >>> portable({"module far": "#1", "environment variable HOME": "#2", "the environment": "#3"})
    {'module far': '#1'}
    """
    return {name: value for name, value in parts.items() if not name.startswith((VARIABLE, "the environment"))}


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """In words, which parts have changed.

    >>> changed({"numpy": "2.0.1", "module far": "#1", "far.A": "#2"}, {"numpy": "2.1.0", "module far": "#3"})
    ['far.A is gone', 'module far is not what it was', 'numpy was 2.0.1 and is 2.1.0']
    """
    lines = []
    for name in sorted({*before, *now}):
        old, new = before.get(name, ""), now.get(name, "")
        if old != new and not (old and new):
            lines.append(f"{name} is {'new' if new else 'gone'}")
        elif old != new:
            digest = (old + new).startswith((DIGEST, UNKNOWN))
            lines.append(f"{name} is not what it was" if digest else f"{name} was {old} and is {new}")
    known = any(each.startswith(VARIABLE) for each in lines)
    return [each for each in lines if not (known and each.startswith("the environment "))]


def unknown(parts: Mapping[str, str]) -> list[str]:
    """In words, which parts cannot be shown to be unchanged.

    >>> unknown({"far.A": "#2", "far.FILE": "? a _io.TextIOWrapper"})
    ['far.FILE cannot be shown to be what it was (a _io.TextIOWrapper)']
    """
    lost = ((name, value) for name, value in parts.items() if value.startswith(UNKNOWN))
    return [f"{name} cannot be shown to be what it was ({value.removeprefix(UNKNOWN)})" for name, value in lost]


class _Space:
    """The globals that code reads: of a module, whose file is named, or of a script, a notebook or a text."""

    def __init__(self, label: str, values: dict[str, Any], file: str | None) -> None:
        self.label, self.values, self.file = label, values, file
        self.names: set[str] = set()  # that its functions load
        self.as_module = file is not None  # others read its attributes
        self.seen: set[str] = set()  # of its names


class _Parts(contents.Contents):
    def __init__(self) -> None:
        super().__init__()
        self.parts: dict[str, str] = {}
        self.names: set[str] = set()  # in code
        self.spaces: dict[int, _Space] = {}
        self.refs: dict[int, tuple[bytes, Any]] = {}  # functions, classes and modules, which are parts of their own
        self.modules: set[tuple[str, bool]] = set()  # that code imports, by name, and whether they were run for it
        self.programs: set[str] = set()  # files of a command
        self.folders = [os.curdir]

    def of(self, mechanism: Mechanism) -> dict[str, str]:
        """All parts: values lead to code, and code to further values."""
        if isinstance(mechanism, Command):
            self._program(mechanism)
        target: Any = mechanism
        target = target.resolve() if hasattr(type(target), "resolve") else target  # a name, imported here
        function: Any = getattr(target, "make" if hasattr(type(target), "made") else "function", target)
        is_function = type(function) is types.FunctionType
        kind = function if contents.is_class(function) else type(function)
        home = str(function.__module__) if is_function else contents.home_of(kind)
        own, known = home.partition(".")[0], {"dpaudit", *sys.stdlib_module_names, *versions()}
        self.ours = "" if own in known else own  # a user's, wherever it is installed
        self.part("the mechanism", lambda: self.node(target, {}))
        size = 0
        while (now := len(self.parts) + len(self.names) + len(self.texts)) != size:
            size = now
            for space in list(self.spaces.values()):
                self._globals(space)
            for text in sorted(self.texts) if self.names & IMPORTING else ():
                if re.fullmatch(r"[^\W\d]\w*(\.\w+)*", text):
                    self._imported(text, run=False)
        for text in sorted(self.texts):
            self._file(text)
        if {"argv", "orig_argv"} & self.names:
            self.part("the command line", lambda: self.node(sys.argv, {}))
        if self.strict:
            self._environment()
        return self.parts

    def part(self, name: str, digest: Callable[[], bytes]) -> bytes:
        """Adds a part, and returns a reference to it; a second one of the same name is numbered."""
        number, free = 1, name
        while free in self.parts:
            number, free = number + 1, f"{name} ({number + 1})"
        self.parts[free] = ""
        try:
            self.parts[free] = f"{DIGEST}{digest().hex()[:16]}"
        except contents.Opaque as error:
            self.parts[free] = f"{UNKNOWN}{error}"
        except RecursionError:
            self.parts[free] = f"{UNKNOWN}it is nested too deeply"
        return contents.hashed("part", [free])

    # --- where code reads from ------------------------------------------------------------------------------

    def _globals(self, space: _Space) -> None:
        library = self.library(space.label, space.file)
        wide = not library and bool(self.names & (COMPUTED if space.as_module else WIDE))
        wanted = space.names | (self.names | self.texts if space.as_module else set())
        for name, value in sorted((key, value) for key, value in list(space.values.items()) if isinstance(key, str)):
            module = contents.is_module(value)
            read = wide or name in wanted or (module and space.file and not library)
            if name.startswith("__") or name in space.seen or not read:
                continue
            space.seen.add(name)
            if library and module:
                self.referred(value)
            elif not library or self.users(value):
                self.part(f"{space.label}.{name}", lambda value=value: self.node(value, {}))  # type: ignore[misc]

    def _space(self, values: dict[str, Any], *, as_module: bool = False) -> _Space:
        """The space of these globals, recorded at the first call."""
        if id(values) not in self.spaces:
            label, file = str(values.get("__name__")), values.get("__file__")
            of_module = isinstance(file, str) and label != "__main__"
            self.spaces[id(values)] = _Space(label, values, file if of_module else None)
            if of_module and not self.library(label, file):
                self._source(label, str(file))
        space = self.spaces[id(values)]
        space.as_module |= as_module
        return space

    def _source(self, name: str, file: str, *, apart: bool = False) -> None:
        """The file of a module, and of all that it imports at any place; `apart`: it is never loaded here."""
        if f"module {name}" in self.parts:
            return
        self.parts[f"module {name}"] = f"{DIGEST}{digest_of_file(file)}"
        self.folders.append(os.path.dirname(file))
        parents = name.split(".") if os.path.basename(file) == "__init__.py" else name.split(".")[:-1]
        named: list[str] = []
        for node in parsed(file) if self.strict else ():
            if isinstance(node, ast.Import):
                named += [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom):
                outer = parents[: len(parents) - node.level + 1] if node.level else []
                base = ".".join([*outer, *filter(None, [node.module])])
                named += [base, *(f"{base}.{each.name}" for each in node.names)]
            elif apart and isinstance(node, ast.Constant) and isinstance(node.value, str):
                self.texts.add(node.value)
        for each in named:
            for inner, path in located(each, self.folders):
                if self.library(inner, path):
                    self._library(inner)
                else:
                    self._source(inner, path, apart=apart)

    def _imported(self, name: str, *, run: bool = True) -> None:
        """A module that code imports when it runs: imported now, if it is a user's, so that its values are seen.

        A text may be the name of a module by chance: such a module is not `run`, its file counts.
        """
        if (name, True) in self.modules or (name, run) in self.modules:
            return
        self.modules.add((name, run))
        where = [] if name in sys.modules else list(located(name, ()))
        if run and where and where[-1][0] == name and not self.library(*where[-1]):
            with suppress(DpAuditError):
                import_reference(f"{name}:__name__")
        if contents.is_module(module := sys.modules.get(name)):
            self.referred(module)
        for inner, file in where:
            self._library(inner) if self.library(inner, file) else self._source(inner, file, apart=not run)
        if "." in name:
            self._imported(name.rpartition(".")[0], run=run)

    def _library(self, name: str) -> None:
        top = name.partition(".")[0]
        if self.strict and top not in sys.stdlib_module_names and top not in ("dpaudit", "builtins", "None"):
            self.parts.setdefault(f"library {top}", release(top))

    def _program(self, command: Command) -> None:
        """The program of a command, the files that its arguments name in any spelling, and what scripts import."""
        folder = command.folder or os.curdir
        words = [shutil.which(command.argv[0]) or command.argv[0], *command.argv]
        for part in words:  # those of a script for a shell too: it grows as it is read
            file = os.path.join(folder, part)
            self.texts.add(file)
            self.programs.add(os.path.join(os.curdir, file))
            script = os.path.join(file, "__main__.py") if os.path.isdir(file) else file
            if script.endswith(".py") and os.path.isfile(script):
                self._source(part, script, apart=True)
                continue
            for name, source in located(part, [folder]) if re.fullmatch(r"[^\W\d]\w*(\.\w+)*", part) else ():
                self._library(name) if self.library(name, source) else self._source(name, source, apart=True)
            inner = f"{part} {_shell(file)}" if part in command.argv else ""
            words += [each for each in re.split(r"[^\w./-]+", inner) if each not in words]

    def _file(self, text: str) -> None:
        """A string in code or values that names a file adds the contents of that file."""
        for folder in self.folders if 0 < len(text) < 4096 and text.isprintable() else ():
            with suppress(OSError, ValueError):
                if os.path.isfile(file := os.path.join(folder, text)):
                    kind = "program" if os.path.join(folder, text) in self.programs else "file"
                    self.parts[f"{kind} {os.path.normpath(file)}"] = f"{DIGEST}{digest_of_file(file)}"

    def _environment(self) -> None:
        """A digest of all variables, and three digits of each, since one may be secret."""
        env = {name: value for name, value in os.environ.items() if name in self.texts or not CHANGING.fullmatch(name)}
        whole = contents.hashed("environment", [repr(each) for each in sorted(env.items())])
        self.parts["the environment"] = f"{DIGEST}{whole.hex()[:32]}"
        for name, value in env.items():
            self.parts[f"{VARIABLE}{name}"] = f"{DIGEST}{contents.hashed(name, [value]).hex()[:3]}"

    # --- functions, classes and modules ---------------------------------------------------------------------

    def referred(self, value: Any) -> bytes:
        """A function, a class or a module by its name; a user's is a part of its own."""
        if id(value) not in self.refs:
            self.refs[id(value)] = (
                contents.hashed("around", [str(len(self.refs)).encode()]),
                value,
            )  # until its digest is known
            self.refs[id(value)] = self._named(value), value
        return self.refs[id(value)][0]

    def _named(self, value: Any) -> bytes:
        if contents.is_module(value):
            values = contents.globals_of(value)
            name = str(values.get("__name__"))
            if self.library(name, values.get("__file__")):
                self._library(name)
            self._space(values, as_module=True)
            return contents.hashed("module", [name])
        function = type(value) is types.FunctionType
        home = str(value.__globals__.get("__name__") if function else contents.home_of(value))
        name = f"{home}.{value.__qualname__ if function else contents.name_of(value)}"
        if not self.users(value):
            self._library(home)
            dynamic = function and (value.__closure__ or vars(value)) and not contents.stands_in(value, value)
            if not dynamic:
                return contents.hashed("library", [name])
        if function:
            self.part(f"values of {name}", lambda: contents.hashed("values", self._values(value)))
            return self.part(f"function {name}", lambda: contents.hashed("function", self._function(value)))
        return self.part(f"class {name}", lambda: contents.hashed("class", self._class(value)))

    def _function(self, value: types.FunctionType) -> list[Any]:
        if self.users(value):
            space = self._space(value.__globals__)
            space.names |= _names(value.__code__)
            for name in _imports(value.__code__, str(value.__globals__.get("__package__") or "")):
                self._imported(name)
        return self.code(value.__code__, {})

    def _values(self, value: types.FunctionType) -> list[Any]:
        named = sorted(vars(value).items())
        return self._each([value.__closure__, value.__defaults__, value.__kwdefaults__, named], {})

    def _class(self, value: type) -> list[Any]:
        if contents.is_module(module := sys.modules.get(contents.home_of(value))):
            self._space(contents.globals_of(module))
        fields = sorted(item for item in contents.fields_of(value).items() if item[0] not in OF_PYTHON)
        return self._each([type(value), *contents.bases_of(value)[1:], *fields], {})

    def code(self, code: types.CodeType, seen: dict[int, Any]) -> list[Any]:
        self.names |= _names(code)
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        return [
            code.co_code,
            code.co_exceptiontable,
            repr((counts, names)),
            *self._each(code.co_consts, seen),
        ]


def _shell(file: str) -> str:
    """The first thousands of characters of a script with another interpreter, which begins with #!."""
    if not os.path.isfile(file):  # a pipe would be waited for
        return ""
    with suppress(OSError), open(file, encoding="utf-8", errors="ignore") as opened:
        return opened.read(1 << 14) if opened.read(2) == "#!" else ""
    return ""


def _names(code: types.CodeType) -> set[str]:
    """The names in code: globals, attributes and modules; the `eval` of `model.eval` does not count."""
    names = set(code.co_names)
    if names & BY_NAME and not names & {"builtins", "__builtins__"}:
        loaded = {
            step.argval for step in dis.get_instructions(code) if step.opname.startswith(("LOAD_GLOBAL", "LOAD_NAME"))
        }
        names -= BY_NAME - loaded
    return names.union(*(_names(each) for each in code.co_consts if isinstance(each, types.CodeType)))


def _imports(code: types.CodeType, package: str) -> list[str]:
    """The modules that a code may import, by their names."""
    modules = [name for each in code.co_consts if isinstance(each, types.CodeType) for name in _imports(each, package)]
    steps = list(dis.get_instructions(code)) if dis.opmap["IMPORT_NAME"] in code.co_code[::2] else []
    for at, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            level, names = steps[at - 2].argval, steps[at - 1].argval
            outer = package.split(".")[: len(package.split(".")) - level + 1] if level else []
            base = ".".join([*outer, *filter(None, [str(step.argval)])])
            modules += [base, *(f"{base}.{each}" for each in names or ())]
    return modules
