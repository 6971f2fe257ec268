"""Which ledger a command reads."""

from __future__ import annotations

from pathlib import Path


def chosen(option: str | None) -> Path:
    """The ledger of the option, of this project's settings, or the default one. It need not be there."""
    from dpaudit.ledger.database import default_ledger
    from dpaudit.spec_file.settings import read_settings

    if option is not None:
        return Path(option)
    set_here = read_settings(Path.cwd()).ledger
    return default_ledger() if set_here is None else Path(set_here)
