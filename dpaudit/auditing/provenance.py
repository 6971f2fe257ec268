"""Where and with what a result was made: all that may differ between two equal audits."""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from pathlib import Path


def short_path(file: str | None) -> str | None:
    """A source file as seen from here, or from the folder that modules are imported from; never a home folder."""
    if file is None:
        return None
    for folder in [os.getcwd(), *sorted(filter(None, sys.path), key=len, reverse=True)]:
        if Path(file).is_relative_to(folder):
            return str(Path(file).relative_to(folder))
    return Path(file).name


def versions() -> dict[str, str]:
    """What ran: versions of this project, of Python and of the libraries that decide the numbers."""
    return dict(_versions())


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    from importlib.metadata import PackageNotFoundError, version

    def installed(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "not installed"

    from dpaudit.version import __version__

    names = {name: installed(name) for name in ("numpy", "scipy", "joblib", "statsmodels", "scikit-learn")}
    found = {
        "version": __version__,
        "python": platform.python_version(),
        **names,
        "platform": platform.platform(terse=True),
    }
    return tuple(found.items())
