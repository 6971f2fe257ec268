"""Files of a project: the specs under a path, the line of a key for messages, and its defaults in ./pyproject.toml."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import get_type_hints

from dpaudit.base import validate
from dpaudit.base.files import FOLDER, NoSuchFile, found_at, read_bytes
from dpaudit.base.strict import LARGEST_FILE, Keys, lines_of, read_toml
from dpaudit.errors import InvalidSpec, at

LARGEST = 2**22  # bytes of pyproject.toml


def find_specs(paths: Iterable[str | os.PathLike[str]]) -> tuple[Path, ...]:
    """The spec files under the given files and folders, each once, in the order of their names within a folder.

    In a folder, a TOML file with neither `schema` nor `audit` belongs to another tool and is left out; so are
    hidden folders, pyproject.toml and sweeps, which have a command of their own. One that is not valid TOML is
    included: reading it raises the error. Raises `InvalidSpec` naming every path that does not exist.
    """
    there = {given: found_at(given) for given in map(Path, paths)}
    if missing := [given for given, kind in there.items() if kind is None]:
        raise InvalidSpec(*(f"{given}: there is no such file or folder" for given in missing))
    seen: dict[Path, Path] = {}
    for given, kind in there.items():
        for file in filter(_of_audits, _toml_files(given)) if kind == FOLDER else (given,):
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
    """A table of a file: the keys that lead to it, and its name in messages."""

    file: str
    keys: Keys = ()
    called: str = ""

    def line(self, *keys: str | int) -> str:
        """The file, and the line of a key of this table, or of the table where it has no such key."""
        lines: dict[Keys, int] = {}
        with suppress(InvalidSpec, UnicodeDecodeError):  # it has changed since it was read
            lines = lines_of(read_bytes(self.file, LARGEST_FILE).decode("utf-8-sig"))
        path = (*self.keys, *keys)
        number = next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)
        return self.file if number is None else f"{self.file}: line {number}"

    def says(self, message: object, *keys: str | int) -> str:
        """A message with its place before it."""
        return ": ".join(filter(None, (self.line(*keys), self.called, str(message))))


@dataclass(frozen=True, slots=True)
class Settings:
    """The defaults in [tool.dpaudit]; the command line and the spec override them. None: not set."""

    runs: float | int | None = None
    confidence: float | None = None
    seed: int | None = None
    jobs: int | None = None
    report: str | None = None
    ledger: str | None = None
    accepted: str | None = None


def read_settings(folder: Path) -> Settings:
    """The settings in `folder`/pyproject.toml; none where there is no such file or table.

    Raises `InvalidSpec` for an unknown key or a bad value.
    """
    path = folder / "pyproject.toml"
    try:
        with at(str(path)):
            if b"dpaudit" not in read_bytes(path, LARGEST):  # most do not concern us, and need not even be valid
                return Settings()
    except NoSuchFile:
        return Settings()
    from msgspec import defstruct
    from msgspec.structs import asdict

    from dpaudit.spec.reading import convert

    tool = read_toml(path, largest=LARGEST, dates=True).get("tool", {})
    table = tool.get("dpaudit", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise InvalidSpec(f"{path}: tool.dpaudit must be a table, got {table!r}")
    place = f"{path}: tool.dpaudit"
    keys = [(key, kind, None) for key, kind in get_type_hints(Settings).items()]
    kind = defstruct("SettingsTable", keys, forbid_unknown_fields=True)
    settings = Settings(**asdict(convert(table, kind, SpecPlace(str(path), ("tool", "dpaudit"), "tool.dpaudit"))))
    if settings.runs is not None:
        validate.whole(f"{place}.runs", settings.runs, least=1)
    if settings.confidence is not None:
        validate.open_probability(f"{place}.confidence", settings.confidence)
    if settings.seed is not None:
        validate.whole(f"{place}.seed", settings.seed, least=0)
    return settings
