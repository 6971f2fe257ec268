"""How an extra is installed: the way this package was, as pip wrote it down; never by the bare name alone."""

from __future__ import annotations

import ast
import json
import shlex
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from dpaudit.base import installed
from dpaudit.version import __version__
from tests.cases import for_each

ROOT = Path(installed.__file__).parents[2]
GIT = {"url": "https://host/o/dpaudit", "vcs_info": {"vcs": "git", "commit_id": "0a1b2c", "requested_revision": "main"}}
WHEEL = {"url": "https://host/dpaudit-1.whl", "archive_info": {}}


@for_each(
    ("told", "words"),
    [
        ({"url": "file:///a%20b/c", "dir_info": {"editable": True}}, ["--editable", "/a b/c[verify]"]),
        ({"url": "file:///a/c", "dir_info": {}}, ["/a/c[verify]"]),
        (GIT, ["dpaudit[verify] @ git+https://host/o/dpaudit@0a1b2c"]),
        ({**GIT, "subdirectory": "part"}, ["dpaudit[verify] @ git+https://host/o/dpaudit@0a1b2c#subdirectory=part"]),
        (WHEEL, ["dpaudit[verify] @ https://host/dpaudit-1.whl"]),
        (None, [f"dpaudit[verify]=={__version__}"]),  # from an index
        ("nothing", [f"{ROOT}[verify]"]),  # a checkout on the path alone
    ],
)
def test_an_extra_is_installed_as_the_package_was(told: object, words: list[str]) -> None:
    def distribution(name: str) -> object:
        if told == "nothing":
            raise metadata.PackageNotFoundError(name)
        return SimpleNamespace(read_text=lambda file: None if told is None else json.dumps(told))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata, "distribution", distribution)
        assert installed.requirement("verify") == words
        assert "[verify]" not in " ".join(installed.requirement())
        message = str(installed.lacking("proofs need z3-solver", "verify"))
    assert message.endswith(shlex.join(words))
    assert message.startswith("proofs need z3-solver; the extra [verify] has it: python3 -m pip install ")
    if " @ " in words[-1] or "==" in words[-1]:
        assert Requirement(words[-1]).extras == {"verify"}


def test_no_message_and_no_page_installs_by_the_bare_name() -> None:
    """Anybody can take a name that is on no index: what is shown has an address, or is a checkout."""
    shown = [path for path in (ROOT / "dpaudit").rglob("*.py") if path.name != "installed.py"]
    texts = {
        str(path): str(node.value)
        for path in shown
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and "pip install" in str(node.value)
    }
    pages = [ROOT / "README.md", ROOT / "action.yml", *(ROOT / "docs").rglob("*.md"), *(ROOT / "templates").iterdir()]
    texts |= {
        f"{path}:{number}": line
        for path in [*pages, ROOT / "Dockerfile"]
        for number, line in enumerate(path.read_text("utf-8").splitlines())
        if "pip install" in line
    }
    assert len(texts) > 8
    for place, text in texts.items():
        words = text.partition("pip install")[2].replace("`", " ").replace('"', " ").replace("'", " ").split()
        bare = [
            word for at, word in enumerate(words) if word.split("[")[0] == "dpaudit" and words[at + 1 : at + 2] != ["@"]
        ]
        assert not bare, place
