"""The core does not know the catalogue: its tests pass in a copy of the package that has none."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = (  # a few seconds of tests; those that audit entries of the catalogue are not among them
    "tests/claims/test_values.py",
    "tests/data/test_pair.py",
    "tests/mechanisms/test_wrap.py",
    "tests/events/test_partition.py",
    "tests/certify/test_evidence.py",
    "tests/running/test_streams.py",
    "tests/auditing/test_known.py",
)
OF_THE_COPY = """
import importlib.util
from pathlib import Path
import dpaudit

def test_this_is_the_copy():
    assert Path(dpaudit.__file__).is_relative_to(Path(__file__).parent)
    assert importlib.util.find_spec("dpaudit.catalogue") is None
"""


def test_the_core_passes_its_tests_without_the_catalogue(tmp_path: Path) -> None:
    cache = shutil.ignore_patterns(".*")  # bytecode comes along: it is valid where times and sizes are the same
    shutil.copytree(ROOT / "dpaudit", tmp_path / "dpaudit", ignore=cache)
    shutil.rmtree(tmp_path / "dpaudit" / "catalogue")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for folder in {Path(name).parent for name in CORE}:  # with the helpers beside them
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=cache)
    for helper in set((ROOT / "tests").glob("*.py")) - set((ROOT / "tests").glob("test_*.py")):
        shutil.copy(helper, tmp_path / "tests")
    (tmp_path / "test_copy.py").write_text(OF_THE_COPY)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_copy.py", *CORE]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-4_000:] + ended.stderr[-4_000:]
    passed = re.search(r"(\d+) passed", ended.stdout)
    assert passed is not None
    assert int(passed[1]) > 50
