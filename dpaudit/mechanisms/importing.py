"""What a reference names: `module:attribute`, imported here; and whether it is our own code."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dpaudit.base.validate import meant
from dpaudit.errors import DpAuditError, InvalidSpec, MissingRequirement

_OWN = ("dpaudit.catalogue.", "dpaudit.catalogue:")


def not_there(reference: str, module: str) -> InvalidSpec:
    """The error of a reference to a module that is not there, with its cure."""
    cure = "install your package (python -m pip install -e .), or put the module beside the spec"
    cure = "`dpaudit catalogue` lists what there is" if is_own(reference) else cure
    return InvalidSpec(f"{reference!r}: there is no module {module!r}; {cure}")


def import_reference(reference: str, folder: str | None = None) -> Any:
    """The object named `module:attribute` (dots allowed after the colon), with `folder` first on the import path."""
    module_name, colon, path = reference.partition(":")
    if not (colon and module_name and path):
        raise InvalidSpec(f"write module:function, such as my_module:noisy_count, got {reference!r}")
    if folder is not None and folder not in sys.path:
        sys.path.insert(0, folder)
    importlib.invalidate_caches()  # a module may be newer than the listing of its folder
    try:
        with _nothing_compiled(unless=is_own(reference)):
            value: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and not (module_name + ".").startswith(error.name + "."):
            raise MissingRequirement(
                f"{reference!r} needs the module {error.name!r}, which is not installed here; install it and run again"
            ) from None
        raise not_there(reference, error.name or module_name) from None
    except DpAuditError:
        raise
    except BaseException as error:  # a module may do anything while it is imported, exit included
        raise InvalidSpec(f"{reference!r}: importing failed with {in_a_line(error)}") from None
    for part in path.split("."):
        if not hasattr(value, part):
            near = meant(part, getattr(value, "__dict__", ()))
            raise InvalidSpec(f"{reference!r}: {module_name!r} has no {part!r}{near}")
        value = getattr(value, part)
    return value


@contextmanager
def _nothing_compiled(*, unless: bool) -> Iterator[None]:
    """No bytecode is left beside a user's module: it goes by second and size, so a quick edit would run as before."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, sys.dont_write_bytecode or not unless
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def is_own(reference: str) -> bool:
    """Whether a reference names a mechanism that comes with dpaudit: our own code, it may be imported anywhere."""
    return reference.startswith(_OWN)


def in_a_line(error: BaseException) -> str:
    """The type of an exception and the first line of its text, for messages of one line."""
    try:
        text = str(error).strip()
    except Exception:  # an exception that cannot even be printed
        text = ""
    return f"{type(error).__name__}: {text.splitlines()[0] if text else 'no message'}"
