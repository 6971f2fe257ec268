"""What starting costs: heavy libraries load where they are used, never because dpaudit was imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("scipy.stats", "pandas", "statsmodels", "matplotlib", "sklearn", "pytest")
PUBLIC = "import dpaudit\n[getattr(dpaudit, name) for name in dpaudit.__all__]"
HELP = "from dpaudit.cli.group import exit_code\nexit_code(['--help'])"


def loaded(code: str) -> set[str]:
    """The modules that a fresh interpreter holds after running the code."""
    script = f"{code}\nimport sys\nprint('loaded', *sys.modules)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(ended.stdout.rpartition("loaded")[2].split())


@pytest.mark.parametrize(
    ("code", "not_loaded"),
    [
        ("import dpaudit", (*HEAVY, "numpy", "joblib", "click", "rich", "msgspec")),
        (PUBLIC, (*HEAVY, "joblib", "click", "rich", "msgspec")),
        (HELP, (*HEAVY, "numpy", "joblib", "rich", "msgspec")),
        (HELP.replace("--help", "--version"), (*HEAVY, "numpy", "joblib", "rich", "msgspec")),
    ],
    ids=["import", "public-names", "help", "version"],
)
def test_what_is_heavy_is_not_loaded(code: str, not_loaded: tuple[str, ...]) -> None:
    found = loaded(code)
    assert "dpaudit" in found
    assert not found & set(not_loaded)
