"""The lowest versions that pyproject.toml allows, printed as constraints for pip.

`make oldest` runs the tests on them, so that something keeps what the bounds promise. What has none is left to pip.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
LOWEST = re.compile(r"(?P<name>[\w.-]+)(?:\[[^]]*\])?\s*(?:.*,)?\s*(?:>=|~=|==)\s*(?P<version>[\w.]+)")


def requirements(pyproject: Path = PYPROJECT) -> list[str]:
    """What the package and all its extras require."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    return [*project["dependencies"], *(each for extra in project["optional-dependencies"].values() for each in extra)]


def constraints(required: Iterable[str]) -> list[str]:
    """The lowest version of each requirement that has one.

    >>> constraints(["numpy>=1.26", "mkdocs>=1.6,<2", "mypy~=2.4", "scipy-stubs"])
    ['numpy==1.26', 'mkdocs==1.6', 'mypy==2.4']
    """
    lowest = (LOWEST.match(each) for each in required)
    return [f"{each['name']}=={each['version']}" for each in lowest if each]


if __name__ == "__main__":
    print(*constraints(requirements()), sep="\n")
