"""Where and with what a result was made: all that may differ between two equal audits."""

import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from dpaudit.errors import InvalidSpec

GIT_S = 10.0  # seconds that git may take; a result without a commit is better than none
COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
RECORD = {  # what only people know of an audit: the keys that they fill, and what reports call them
    "owner": "owner",
    "source": "source of the claim",
    "unit": "unit of privacy",
    "releases": "number of releases",
    "data": "origin of the data",
    "reviewer": "reviewer",
}


def recorded(given: Mapping[str, Any] | None) -> dict[str, str]:
    """What people fill in of the record of an audit, as text, in the order of `RECORD`; it decides nothing.

    Raises `InvalidSpec` for another key, and for a value that is neither text nor a whole number.

    >>> recorded({"releases": 12, "owner": "statistics team"})
    {'owner': 'statistics team', 'releases': '12'}
    """
    if not isinstance(given, Mapping | None):
        raise InvalidSpec(f"record must be a mapping such as {{'owner': ...}}, got {given!r:.100}")
    for key, value in (given or {}).items():
        if key not in RECORD:
            raise InvalidSpec(f"record has no {key!r}; it has: {', '.join(RECORD)}")
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
            raise InvalidSpec(f"record: {key} must be text, got {value!r}")
    return {key: str(given[key]) for key in RECORD if given and key in given}


def short_path(file: str | None) -> str | None:
    """A source file as seen from here, or from the folder that modules are imported from; never a home folder."""
    if file is None:
        return None
    for folder in [os.getcwd(), *sorted(filter(None, sys.path), key=len, reverse=True)]:
        if Path(file).is_relative_to(folder):
            return str(Path(file).relative_to(folder))
    return Path(file).name


@cache
def versions(also: tuple[str, ...] = ()) -> Mapping[str, str]:
    """What ran: versions of this project, of Python and of the libraries that decide the numbers; `also` if there."""
    from importlib.metadata import PackageNotFoundError, version

    def installed(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "not installed"

    from dpaudit.version import __version__

    names = {name: installed(name) for name in ("numpy", "scipy", "joblib", "statsmodels")}
    more = {name: number for name in also if (number := installed(name)) != "not installed"}
    ours = {"version": __version__, "python": platform.python_version()}
    return {**ours, **names, **more, "platform": platform.platform(terse=True)}


def commit_of(folder: str | os.PathLike[str]) -> str | None:
    """The commit that a folder's files are at, with "-dirty" where they were changed since; None where git knows none.

    Untracked files are no change. Asks the program `git`, which writes nothing and runs no hook for it.
    """
    return _commit_of(os.path.abspath(folder))


@cache
def _commit_of(folder: str) -> str | None:
    commit = git(folder, "rev-parse", "--verify", "HEAD")
    if commit is None or not COMMIT.fullmatch(commit):
        return None
    changed = git(folder, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty")
    return f"{commit}-dirty" if changed else commit


def git(folder: str, *arguments: str) -> str | None:
    """What git says in a folder; None where it fails, or is not there."""
    quiet = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        asked = ["git", "-c", "core.fsmonitor=false", "-C", folder, *arguments]
        process = subprocess.run(
            asked, capture_output=True, text=True, timeout=GIT_S, env=quiet, stdin=subprocess.DEVNULL
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return process.stdout.strip() if process.returncode == 0 else None
