"""Where this package was installed from, as no index has its name and anybody could take it there; and its extras."""

import json
import shlex
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit
from urllib.request import url2pathname

from dpaudit.errors import MissingRequirement
from dpaudit.version import __version__


def requirement(extra: str = "") -> list[str]:
    """What pip takes for this package as it is here: the same checkout or address, or from an index the version."""
    name, origin, checkout = f"[{extra}]" * bool(extra), {}, Path(__file__).parents[2]
    try:
        origin = json.loads(metadata.distribution("dpaudit").read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        if (checkout / "pyproject.toml").exists():  # on the path, and not installed
            return [f"{checkout}{name}"]
    if not origin:
        return [f"dpaudit{name}=={__version__}"]
    if "dir_info" in origin:
        folder = url2pathname(urlsplit(origin["url"]).path)
        return [*["--editable"] * bool(origin["dir_info"].get("editable")), f"{folder}{name}"]
    address, vcs = origin["url"], origin.get("vcs_info")
    address = f"{vcs['vcs']}+{address}@{vcs['commit_id']}" if vcs else address
    part = f"#subdirectory={origin['subdirectory']}" if "subdirectory" in origin else ""
    return [f"dpaudit{name} @ {address}{part}"]


def lacking(what: str, extra: str) -> MissingRequirement:
    """The error that `what`, a sentence, is not there; it names the extra that brings it, and how that is installed."""
    words = shlex.join(requirement(extra))
    return MissingRequirement(f"{what}; the extra [{extra}] has it: python3 -m pip install {words}")


def flint() -> ModuleType:
    """python-flint: ball arithmetic. Raises `MissingRequirement` where it is not installed.

    >>> flint().arb(2) > 1
    True
    """
    return _loaded("flint", "python-flint", "rigorous enclosures")


def z3() -> ModuleType:
    """z3: linear arithmetic over the reals. Raises `MissingRequirement` where it is not installed.

    >>> z3().IntVal(2).as_long()
    2
    """
    return _loaded("z3", "z3-solver", "searches for proofs")


def cvc5() -> ModuleType:
    """cvc5: proofs of arithmetic in a form that others check. Raises `MissingRequirement` where it is not installed.

    >>> cvc5().Kind.ADD.name
    'ADD'
    """
    return _loaded("cvc5", "cvc5", "certificates of proofs")


def _loaded(module: str, package: str, what: str) -> ModuleType:
    try:
        return import_module(module)
    except ImportError as error:
        raise lacking(f"{what} need {package}, which is not installed here", "verify") from error
