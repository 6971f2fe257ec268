"""The virtual environment of a library at one version, and programs that run in it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from dpaudit import InvalidSpec, MissingRequirement
from dpaudit.base.files import write_text
from dpaudit.base.installed import requirement

LIBRARY = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?\s*==\s*([A-Za-z0-9.+!_-]+)")
LOCKS: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)  # of environments


def child(argv: Sequence[str], log: Path, variables: dict[str, str] | None = None) -> int:
    """The exit code of a program; what it writes is in `log`, so that what it leaves running holds no pipe of ours."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=variables).returncode


def reason(log: Path) -> str:
    """The last line of a log; of pip the end of a package's own build, or its own error, and not the advice below."""
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    builds = [line for line, after in pairwise(lines) if after == "[end of output]"]
    errors = [line for line in lines if line.startswith("ERROR: ") and not re.search("Ignored|Impossible", line)]
    return (builds[:1] or errors[-1:] or lines[-1:] or ["it said nothing"])[0].split("ERROR: ")[-1]


@dataclass(frozen=True, slots=True)
class Environment:
    """The virtual environment of a library at a version: `own`, its interpreter, is there once it is made."""

    table: dict[str, Any]
    package: str
    folder: Path

    @classmethod
    def of(cls, table: dict[str, Any], environments: Path, place: str) -> Environment:
        """The environment that a spec asks for. Raises `InvalidSpec` where the library has no one version."""
        if (match := LIBRARY.fullmatch(table["requirements"][0].strip())) is None:
            problem = f"must be the library at one version, name==version, got {table['requirements'][0]!r}"
            raise InvalidSpec(f"{place}: environment.requirements: the first {problem}")
        return cls(table, match[1], environments.absolute() / "-".join(match.groups()))

    @property
    def own(self) -> str:
        """Its interpreter."""
        return str(self.folder / "bin" / "python")

    def wanted(self) -> list[str]:
        """What pip installs; an entry of the spec that begins with a dash is an option of pip."""
        parts = [shlex.split(each) if each.startswith("-") else [each] for each in self.table["requirements"]]
        return [*chain.from_iterable(parts), *(requirement() if self.table.get("dpaudit", True) else [])]

    def make(self) -> None:
        """Makes what is missing. Raises `MissingRequirement` with pip's error, `InvalidSpec` for others' folders."""
        mark, log = (self.folder.with_name(f".{self.folder.name}.{kind}") for kind in ("json", "log"))
        version = self.table.get("python")
        wanted, python = json.dumps([version, *self.wanted()]), f"python{version}" if version else sys.executable
        with LOCKS[self.folder]:
            if self.folder.exists() and not mark.exists():
                raise InvalidSpec(f"{self.folder} was not made here: remove it, or name other --environments")
            if mark.exists() and mark.read_text() == wanted:
                return
            if shutil.which(python) is None:
                raise MissingRequirement(f"there is no Python {version} here: install it as {python}")
            print(f"{self.folder.name}: its environment is being made", file=sys.stderr)
            write_text(mark, "")  # what is left half made is ours too
            venv = [python, "-m", "venv", "--clear", str(self.folder)]
            for argv in venv, [self.own, "-m", "pip", "install", "--prefer-binary", *self.wanted()]:
                if child(argv, log, {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}):
                    raise MissingRequirement(f"{self.folder.name}: no environment could be made: {reason(log)}")
            write_text(mark, wanted)

    def run(self, arguments: Sequence[str], log: Path) -> int:
        """The exit code of its Python, or of this one where dpaudit stays outside; its programs are found first."""
        path = os.pathsep.join([str(self.folder / "bin"), os.environ.get("PATH", "")])
        python = self.own if self.table.get("dpaudit", True) else sys.executable
        return child([python, *arguments], log, {**os.environ, "PYTHONNOUSERSITE": "1", "PATH": path})
