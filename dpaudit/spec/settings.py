"""The table [tool.dpaudit] of ./pyproject.toml: this project's own defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpaudit.base.files import NoSuchFile, read_bytes
from dpaudit.errors import InvalidSpec, at
from dpaudit.options import IN_PROJECTS

LARGEST = 2**22  # bytes
OWN: dict[str, Any] = {"jobs": int, "report": str, "ledger": str, "accepted": str}  # keys that answer nothing


@dataclass(frozen=True, slots=True)
class Settings:
    """The defaults in [tool.dpaudit]; the command line and the spec override them. None: not set.

    `options` are those of audits, where set.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
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
    kinds = {name: each.kind for name, each in IN_PROJECTS.items()} | {name: kind | None for name, kind in OWN.items()}
    kind = defstruct("SettingsTable", [(*each, None) for each in kinds.items()], forbid_unknown_fields=True)
    stated = asdict(convert(table, kind, SpecPlace(str(path), ("tool", "dpaudit"), "tool.dpaudit")))
    options = {
        name: each.check(f"{path}: tool.dpaudit.{name}", stated[name])
        for name, each in IN_PROJECTS.items()
        if stated[name] is not None
    }
    return Settings(options, **{name: stated[name] for name in OWN})
