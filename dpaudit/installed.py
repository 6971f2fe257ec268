"""Where this package was installed from: its name is on no index, where it could be anybody's."""

import json
import shlex
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from dpaudit.errors import MissingRequirement
from dpaudit.version import __version__


def requirement(extra: str = "") -> list[str]:
    """What pip takes for this package as it is here: the same checkout or address, or from an index the version."""
    name, told, checkout = f"[{extra}]" * bool(extra), {}, Path(__file__).parents[1]
    try:
        told = json.loads(metadata.distribution("dpaudit").read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        if (checkout / "pyproject.toml").exists():  # on the path, and not installed
            return [f"{checkout}{name}"]
    if not told:
        return [f"dpaudit{name}=={__version__}"]
    if "dir_info" in told:
        folder = url2pathname(urlsplit(told["url"]).path)
        return [*["--editable"] * bool(told["dir_info"].get("editable")), f"{folder}{name}"]
    address, vcs = told["url"], told.get("vcs_info")
    address = f"{vcs['vcs']}+{address}@{vcs['commit_id']}" if vcs else address
    part = f"#subdirectory={told['subdirectory']}" if "subdirectory" in told else ""
    return [f"dpaudit{name} @ {address}{part}"]


def lacking(what: str, extra: str) -> MissingRequirement:
    """The error that `what`, a sentence, is not there; it names the extra that brings it, and how that is installed."""
    words = shlex.join(requirement(extra))
    return MissingRequirement(f"{what}; the extra [{extra}] has it: python3 -m pip install {words}")
