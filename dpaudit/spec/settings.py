"""The table [tool.dpaudit] of ./pyproject.toml: this project's own defaults."""

from dataclasses import dataclass
from pathlib import Path
from typing import get_type_hints

from dpaudit.base import validate
from dpaudit.base.files import NoSuchFile, read_bytes
from dpaudit.errors import InvalidSpec, at

LARGEST = 2**22  # bytes


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

    from dpaudit.base.strict import read_toml
    from dpaudit.spec.reading import SpecPlace, convert

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
