"""Files written whole or not at all, and what stands at a path, in one look."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

FILE, FOLDER, OTHER = "file", "folder", "other"  # of what stands at a path; a pipe or a device may never end


def found_at(path: str | os.PathLike[str]) -> str | None:
    """What a path leads to, None for nothing that can be seen. One look: two may see different things.

    >>> found_at(os.curdir), found_at(os.devnull), found_at("no/such/file")
    ('folder', 'other', None)
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # what is wrong with it is told where it is opened
        return None
    return FILE if stat.S_ISREG(mode) else FOLDER if stat.S_ISDIR(mode) else OTHER


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Writes a file through a temporary one beside it, so that a reader never sees half of it."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return target
