"""Files read within a limit of size, and written whole or not at all; what is at a path."""

import glob
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpaudit.errors import InvalidSpec, MissingRequirement

FILE, FOLDER, OTHER = "file", "folder", "other"  # what is at a path; a pipe or a device may never end


def found_at(path: str | os.PathLike[str]) -> str | None:
    """What a path leads to, None for nothing that can be seen. One look: two may see different things.

    >>> found_at(os.curdir), found_at(os.devnull), found_at("no/such/file")
    ('folder', 'other', None)
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # opening it says what is wrong
        return None
    return FILE if stat.S_ISREG(mode) else FOLDER if stat.S_ISDIR(mode) else OTHER


@contextmanager
def writing(option: str, path: str | os.PathLike[str], another: str = "file") -> Iterator[None]:
    """Turns what cannot be written into `InvalidSpec` that names the option, if there is one, the path and a cure."""
    try:
        yield
    except OSError as error:
        place = f"{option}: {path}" if option else str(path)
        why = error.strerror or type(error).__name__
        raise InvalidSpec(f"{place} cannot be written ({why}); name another {another}") from None


def report_folder(option: str, path: str | os.PathLike[str] | None) -> Path | None:
    """The folder of an option, made now: what cannot be written is better known before the runs than after.

    None where none is given. Raises `InvalidSpec` where it cannot be made or written to.
    """
    if path is None:
        return None
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidSpec(f"{option}: {folder} cannot be made ({error.strerror}); name another folder") from None
    if not os.access(folder, os.W_OK):
        raise InvalidSpec(f"{option}: {folder} cannot be written to; name another folder")
    return folder


class NoSuchFile(InvalidSpec):
    """Nothing stands at the path of a file."""


def read_bytes(path: str | os.PathLike[str], largest: int) -> bytes:
    """The whole of a file of at most `largest` bytes; every file that somebody gives us is read here.

    Raises `NoSuchFile` where there is nothing, `InvalidSpec` where it cannot be read, is larger, or is no file: a pipe
    is not waited for, a device is not read. Neither names the path.
    """
    try:
        quick = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)  # not on Windows
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | quick)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InvalidSpec("not a file")
            content = file.read(largest + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise NoSuchFile("there is no such file") from None
    except InvalidSpec:
        raise
    except (OSError, ValueError) as error:  # the second: a zero character in the name
        raise InvalidSpec(f"cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if len(content) > largest:
        raise InvalidSpec(f"larger than {largest // 1024:,} KB, the most for such a file")
    return content


def lock(file: int, *, wait: bool) -> bool:
    """Whether an open file is ours alone from here on, until it is closed; without `wait`, not where it is another's.

    Raises `MissingRequirement` where the system has no such locks.
    """
    try:
        import fcntl
    except ImportError:
        raise MissingRequirement("this needs the file locks of Linux and macOS, not of Windows; use WSL") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Writes a file of text in UTF-8 as `write_bytes` does."""
    return write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> Path:
    """Writes a file through a temporary one beside it, so that a reader never sees half of it.

    Temporary ones that killed writers of this file have left are removed.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.dpaudit-{os.getpid()}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    there = target.parent.glob(f".{glob.escape(target.name)}.dpaudit-*-*")
    for left in there if os.name == "posix" else ():  # elsewhere signal 0 does not ask whether it lives
        with suppress(ValueError, PermissionError):  # of another user
            try:
                os.kill(int(left.name.split("-")[-2]), 0)
            except ProcessLookupError:
                left.unlink(missing_ok=True)
    return target
