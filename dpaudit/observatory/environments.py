"""A virtual environment for each library and version: made when it is missing, kept as long as it is what was asked.

Child processes end with their parent, each in a group of its own: an interrupt reaches them once, from here.
"""

import itertools
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np

from dpaudit.base.files import lock
from dpaudit.base.installed import requirement
from dpaudit.base.strict import read_toml
from dpaudit.data import AdjacentPair
from dpaudit.errors import InvalidSpec, MissingRequirement
from dpaudit.mechanisms.command import end_group
from dpaudit.mechanisms.importing import import_reference
from dpaudit.mechanisms.protocol import Opened
from dpaudit.spec.questions import read_spec
from dpaudit.spec.reading import read_audits
from dpaudit.spec.tables import EnvironmentTable

PATIENCE_S = 20.0  # for a child to say what it has, once it is told to end


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: its exit code, and what it wrote to both streams."""

    code: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        """The last line that it said, errors first."""
        lines = [line.strip() for text in (self.out, self.err) for line in text.splitlines() if line.strip()]
        return lines[-1].removeprefix("error: ").removeprefix("ERROR: ") if lines else "it said nothing"


class Children:
    """The child processes of one command; threads may share it. Leaving it, by an interrupt too, ends them all."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._over = False

    def run(self, argv: Sequence[str], environment: Mapping[str, str] | None = None) -> Ended:
        """Runs a program to its end. What it leaves behind is killed: it would hold no more than an open file."""
        with TemporaryFile() as out, TemporaryFile() as err:
            with self._lock:
                if self._over:
                    raise KeyboardInterrupt
                process = subprocess.Popen(
                    list(argv),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    env=environment,
                    start_new_session=True,
                )
                self._running.add(process)
            try:
                code = process.wait()
            finally:
                end_group(process)
                self._running.discard(process)
            return Ended(code, _text(out), _text(err))

    def end(self) -> None:
        """No child begins any more, and those that run are told to end: by force if they do not."""
        with self._lock:
            self._over = True
            running = list(self._running)
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


FOLDER = Path(".environments")
READY = ".ready"
MARK = '{"requirements": '  # which the mark of an environment of ours begins with
LIBRARY = re.compile(r"(?P<package>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?\s*==\s*(?P<version>[A-Za-z0-9.+!_-]+)")


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of one library at one version: `folder`/bin/python, once `make` has returned."""

    package: str
    version: str
    folder: Path
    table: EnvironmentTable

    @classmethod
    def of(cls, table: EnvironmentTable, environments: Path, place: str) -> "Environment":
        """The environment that a spec asks for. Raises `InvalidSpec` where the library has no one version."""
        match = LIBRARY.fullmatch(table.requirements[0].strip())
        if match is None:
            problem = f"must be the library at one version, name==version, got {table.requirements[0]!r}"
            raise InvalidSpec(f"{place}: environment.requirements: the first {problem}")
        if table.python is not None and not re.fullmatch(r"3\.\d+", table.python):
            raise InvalidSpec(f'{place}: environment.python must read like "3.8", got {table.python!r}')
        name = "-".join(match.groups())
        return cls(match["package"], match["version"], environments / name, table)

    @property
    def name(self) -> str:
        """The package and its version."""
        return f"{self.package} {self.version}"

    @property
    def python(self) -> str:
        """The interpreter that dpaudit runs by: the environment's, or where it stays outside this one."""
        return self.own if self.table.dpaudit else sys.executable

    @property
    def own(self) -> str:
        """Its interpreter."""
        return os.path.abspath(self.folder / "bin" / "python")

    def variables(self) -> dict[str, str]:
        """What a process in it finds: its programs first, and nothing of the user's own packages."""
        variables = {key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "PYENV_VERSION")}
        path = os.pathsep.join(filter(None, (os.path.dirname(self.own), variables.get("PATH"))))
        quiet = {"PYTHONNOUSERSITE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "NO_COLOR": "1"}
        return {**variables, **quiet, "PATH": path, "VIRTUAL_ENV": os.path.abspath(self.folder)}

    def asked(self) -> dict[str, object]:
        """What it is made of; another answer makes it again."""
        python = self.table.python or platform.python_version().rpartition(".")[0]
        own = requirement() if self.table.dpaudit else []
        return {"requirements": list(self.table.requirements), "python": python, "dpaudit": own}

    def make(self, children: Children, say: Callable[[str], None]) -> None:
        """Makes it unless it is there, which `say` is told; processes that want the same one wait for each other.

        A folder with an empty `.ready` was made by hand: what is missing there is installed. Nothing is removed from a
        folder without our mark. Raises `InvalidSpec` for such a one, and `MissingRequirement`, with the error of pip,
        where it cannot be made.
        """
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        ready, asked = self.folder / READY, json.dumps(self.asked())
        with open(self.folder.with_name(f".{self.folder.name}.lock"), "w") as lock_file:
            lock(lock_file.fileno(), wait=True)
            before = ready.read_text() if ready.exists() else None
            if before == asked:
                return
            if before != "":
                self._clear(before)
            say(f"{self.name}: its environment is being made")
            if before != "":
                python = _interpreter(self.table.python, children)
                self._run(children, [python, "-m", "venv", str(self.folder)], os.environ)
            wanted = [part for each in self.table.requirements for part in _arguments(each)]
            wanted += requirement() if self.table.dpaudit else []
            install = [self.own, "-m", "pip", "install", "--quiet", "--prefer-binary", *wanted]
            self._run(children, install, self.variables())
            ready.write_text(asked)

    def _clear(self, mark: str | None) -> None:
        """Removes what was made in the folder before, and marks it: what is left half made is ours too."""
        inside = [each for each in self.folder.iterdir() if each.name != READY] if self.folder.is_dir() else []
        if not (mark or "").startswith(MARK) and (inside or self.folder.exists() != self.folder.is_dir()):
            problem = "has files and is no environment that dpaudit made"
            raise InvalidSpec(f"{self.folder} {problem}: remove it, or name another folder with --environments")
        self.folder.mkdir(exist_ok=True)
        (self.folder / READY).write_text(f"{MARK}null}}")
        for each in inside:
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()

    def _run(self, children: Children, argv: list[str], variables: Mapping[str, str]) -> None:
        ended = children.run(argv, variables)
        if ended.code:
            raise MissingRequirement(f"the environment of {self.name} could not be made: {_reason(ended)}")


def _reason(ended: Ended) -> str:
    """What pip says went wrong: the last line of a package's own build, or its own error, and not the advice below."""
    lines = [line.strip() for line in (ended.out + "\n" + ended.err).splitlines() if line.strip()]
    builds = [line for line, after in itertools.pairwise(lines) if after == "[end of output]"]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    reasons = [each for each in errors if not each.startswith(("Ignored the following", "ResolutionImpossible"))]
    return (builds[:1] or reasons[-1:] or [ended.last_line])[0]


def _arguments(requirement: str) -> list[str]:
    """A requirement as pip takes it; an entry that begins with a dash is an option of pip.

    >>> _arguments("numpy<2"), _arguments("--extra-index-url https://host/simple")
    (['numpy<2'], ['--extra-index-url', 'https://host/simple'])
    """
    return shlex.split(requirement) if requirement.startswith("-") else [requirement]


def _interpreter(version: str | None, children: Children) -> str:
    """A Python of this version, found as python3.8 on the path or among those of pyenv, and tried."""
    for candidate in _candidates(version):
        if children.run([candidate, "-c", "import venv, ensurepip"]).code == 0:
            return candidate
    raise MissingRequirement(f"there is no Python {version} here: install it so that python{version} is found")


def _candidates(version: str | None) -> Iterator[str]:
    if version is None:
        yield sys.executable
        return
    path = shutil.which(f"python{version}")
    if path is not None:
        yield path
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for folder in sorted(root.glob(f"versions/{version}.*"), reverse=True):
        yield str(folder / "bin" / "python")


OWN_SEED = 0x706C61696E  # "plain": no run of an audit has it
BATCH = 10_000


def outputs(opened: Opened, data: Any, runs: int, rng: np.random.Generator) -> Iterator[Any]:
    """The outputs of so many runs, one after the other; an exception of a run is its output.

    >>> from dpaudit.mechanisms import wrap
    >>> list(outputs(wrap(lambda data: 1 / data).open(), 0, 1, np.random.default_rng(0)))
    [ZeroDivisionError('division by zero')]
    """
    while runs > 0:
        if opened.per_run:
            runs -= 1
            try:
                output = opened.call(data, rng)
            except Exception as error:
                output = error
            yield output
        else:
            part = min(runs, BATCH)
            runs -= part
            yield from one_by_one(opened.call(data, part, rng))


def one_by_one(batch: Any) -> Iterator[Any]:
    """The outputs of a batch one by one: of a tuple or dict of arrays, tuples or dicts.

    >>> list(one_by_one({"a": np.array([1, 2]), "b": np.array([3, 4])}))[1] == {"a": 2, "b": 4}
    True
    """
    if isinstance(batch, dict):
        return (dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True))
    return zip(*batch, strict=True) if isinstance(batch, tuple) else iter(batch)


def count(source: str, name: str, number: int) -> dict[str, Any]:
    """Hits and runs of the row's plain event on either dataset of its pair of this number; `event` says it in words."""
    table = next(table for table in read_audits(read_toml(source), source) if table.name == name)
    question = next(question for question in read_spec(source) if question.name == name)
    assert table.record is not None
    assert table.record.plain is not None
    opened = question.mechanism.open()  # the mechanism first: it may lead the import path
    hit = import_reference(table.record.plain, str(question.source.resolve().parent))
    every = [(each,) if isinstance(each, AdjacentPair) else each.resolve() for each in question.pairs]
    pair_of_number = [pair for pairs in every for pair in pairs][number]
    rng = np.random.default_rng([OWN_SEED, question.seed])
    runs = table.record.plain_runs
    sides = {"first": pair_of_number.first, "second": pair_of_number.second}
    hits = {side: sum(bool(hit(each)) for each in outputs(opened, data, runs, rng)) for side, data in sides.items()}
    words = " ".join((hit.__doc__ or "").split()).rstrip(".")
    return {"event": words, **{side: [number_of_hits, runs] for side, number_of_hits in hits.items()}}


if __name__ == "__main__":
    print("\n" + json.dumps(count(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
