"""A library that stands in for a real one, an environment that is ready, and an entry with a refutation."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import dpaudit
from dpaudit.observatory.environments import Environment
from dpaudit.results.display import Verdict
from dpaudit.results.suite import SuiteEntry
from dpaudit.spec.tables import EnvironmentTable

MECHANISMS = '''
"""Two versions of a count."""

def leaks(data, rng):
    return len(data)

def noisy(data, rng):
    return len(data) ^ int(rng.random() < 0.4)  # its loss is 0.41

def one_is_there(output):
    """The count is one."""
    return output == 1

def never(output):
    """Nothing."""
    return False
'''
AUDIT = """
[[audit]]
name = "{name}"
mechanism = "mechanisms:{mechanism}"
claim = {{ epsilon = 1.0 }}
pair = {{ first = [7], second = [] }}
runs = {runs}
{more}
"""


class Shelf:
    """A folder of spec files, and a folder of environments whose interpreter is that of the tests."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.environments = folder / "lib räry", folder / "environments"
        self.folder.mkdir()
        (self.folder / "mechanisms.py").write_text(MECHANISMS)

    def spec(self, version: str, *audits: str, requirements: str = "", file: str = "") -> Path:
        """A spec file of one version; its environment is ready."""
        wanted = [f"fake=={version}", *filter(None, [requirements])]
        path = self.folder / f"{file or version}.toml"
        head = f'schema = "dpaudit.audit/1"\n[environment]\nrequirements = {json.dumps(wanted)}\n'
        path.write_text(head + "".join(audits))
        environment = Environment.of(EnvironmentTable(wanted), self.environments, "")
        (environment.folder / "bin").mkdir(parents=True, exist_ok=True)
        python = environment.folder / "bin" / "python"
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        (environment.folder / ".ready").write_text(json.dumps(environment.asked()))
        return path


def audit(name: str, mechanism: str = "leaks", runs: int = 1_000, more: str = "") -> str:
    """The table of an audit."""
    return AUDIT.format(name=name, mechanism=mechanism, runs=runs, more=more)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


@pytest.fixture(scope="session")
def refuted_entry() -> SuiteEntry:
    """An entry of what tells all it knows: no chance of another verdict."""
    result = dpaudit.audit(len, pair=([7], []), epsilon=1.0, runs=400, n_jobs=1, confidence=0.9)
    return SuiteEntry("fake 1.0, <script>leaks", Verdict.REFUTED, result)
