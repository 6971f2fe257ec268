"""Where an audit stands: its spec file, seen from the folder that dpaudit was called in, and from nowhere above it."""

import os
import posixpath
import re
from pathlib import Path

from dpaudit.results.suite import SuiteEntry


def spec_of(entry: SuiteEntry | None) -> str | None:
    """The spec file of an audit, whether it came to a result or not; None where there is none."""
    if entry is None:
        return None
    made = {} if entry.result is None else entry.result.provenance
    return entry.source or made.get("source")


def inside(path: str) -> tuple[str, ...]:
    r"""The parts of a path below this folder; of a path that leads out of it only the last name is left.

    No report tells where somebody's home is.

    >>> inside("src/a.py"), inside("C:\\x\\y.py"), inside("../../etc/passwd")
    (('src', 'a.py'), ('y.py',), ('passwd',))
    """
    if os.path.isabs(path) and Path(path).is_relative_to(Path.cwd()):
        path = os.path.relpath(path)
    flat = posixpath.normpath(path.replace("\\", "/"))
    outside = flat.startswith(("/", "../")) or re.match("[A-Za-z]:/", flat)
    parts = flat.split("/")[-1:] if outside else flat.split("/")
    return tuple(part for part in parts if part not in ("", ".", ".."))
