"""Which files a path stands for, and where a key of one stands: its line, for messages alone."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dpaudit.base.files import FOLDER, found_at, read_bytes
from dpaudit.base.strict import LARGEST_FILE, Keys, lines_of, read_toml
from dpaudit.errors import InvalidSpec


def find_specs(paths: Iterable[str | os.PathLike[str]]) -> tuple[Path, ...]:
    """The spec files under the given files and folders, each once, in the order of their names within a folder.

    In a folder, a TOML file with neither `schema` nor `audit` is somebody else's and is left out; so are hidden
    folders, pyproject.toml and sweeps, which have a command of their own. One that is not valid TOML is left to who
    reads it. Raises `InvalidSpec` naming every path that does not exist.
    """
    there = {given: found_at(given) for given in map(Path, paths)}
    if missing := [given for given, found in there.items() if found is None]:
        raise InvalidSpec(*(f"{given}: there is no such file or folder" for given in missing))
    seen: dict[Path, Path] = {}
    for given, found in there.items():
        for file in filter(_of_audits, _toml_files(given)) if found == FOLDER else (given,):
            seen.setdefault(file.resolve(), file)
    return tuple(seen.values())


def _of_audits(file: Path) -> bool:
    try:
        keys = read_toml(file).keys()
    except InvalidSpec:
        return True
    return not keys.isdisjoint({"schema", "audit"}) and ("sweep" not in keys or "audit" in keys)


def _toml_files(folder: Path) -> Iterator[Path]:
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.endswith(".toml") and not name.startswith(".") and name != "pyproject.toml":
                yield Path(here, name)


@dataclass(frozen=True, slots=True)
class SpecPlace:
    """A table of a file: the keys that lead to it, and what messages call it."""

    file: str
    keys: Keys = ()
    called: str = ""

    def line(self, *keys: str | int) -> str:
        """The file, and the line of a key of this table, or of the table where it has no such key."""
        lines: dict[Keys, int] = {}
        with suppress(InvalidSpec, UnicodeDecodeError):  # it has changed since it was read
            lines = lines_of(read_bytes(self.file, LARGEST_FILE).decode("utf-8-sig"))
        path = (*self.keys, *keys)
        found = next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)
        return self.file if found is None else f"{self.file}: line {found}"

    def says(self, message: object, *keys: str | int) -> str:
        """A message with its place before it."""
        return ": ".join(filter(None, (self.line(*keys), self.called, str(message))))
