"""What starting costs: heavy libraries load where they are used, never because dpaudit was imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dpaudit
from dpaudit.ledger.results import Ledger
from dpaudit.results.stored import load

HEAVY = ("scipy.stats", "pandas", "statsmodels", "matplotlib", "sklearn", "pytest")
PUBLIC = "import dpaudit\n[getattr(dpaudit, name) for name in dpaudit.__all__]"
FEWEST = 15  # modules of ours that a module of a few lines may bring with it
ENGINE = tuple(f"dpaudit.{room}" for room in ("running", "execution", "search", "auditing", "catalogue", "verify"))
GOLDEN = Path(__file__).parent / "golden" / "result.json"
HELP = "from dpaudit.cli.group import exit_code\nexit_code(['--help'])"


def loaded(code: str) -> set[str]:
    """The modules that a fresh interpreter holds after running the code."""
    script = f"{code}\nimport sys\nprint('loaded', *sys.modules)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(ended.stdout.rpartition("loaded")[2].split())


@pytest.mark.parametrize(
    ("code", "not_loaded"),
    [
        ("import dpaudit", (*HEAVY, "numpy", "joblib", "click", "msgspec")),
        (PUBLIC, (*HEAVY, "joblib", "click", "msgspec")),
        (HELP, (*HEAVY, "numpy", "joblib", "msgspec")),
        (HELP.replace("--help", "--version"), (*HEAVY, "numpy", "joblib", "msgspec")),
    ],
    ids=["import", "public-names", "help", "version"],
)
def test_what_is_heavy_is_not_loaded(code: str, not_loaded: tuple[str, ...]) -> None:
    found = loaded(code)
    assert "dpaudit" in found
    assert not found & set(not_loaded)


def test_a_verdict_is_a_few_modules() -> None:
    ours = {name for name in loaded("import dpaudit.results.display") if name.startswith("dpaudit")}
    assert len(ours) < FEWEST, sorted(ours)


@pytest.mark.parametrize(
    "command",
    [
        ["report", str(GOLDEN), "--format", "txt,html", "--output", "pages"],
        ["history", "noisy count", "--ledger", "audits.sqlite", "--figure", "noisy.svg"],
        ["compare", str(GOLDEN), "audits.sqlite"],
    ],
    ids=lambda command: command[0],
)
def test_what_reads_results_does_not_load_the_engine(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.dpaudit]\nledger = 'audits.sqlite'\n")
    with Ledger(tmp_path / "audits.sqlite") as ledger:
        ledger.record(load(GOLDEN))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(dpaudit.__file__).parents[1]))
    found = loaded(f"from dpaudit.cli.group import exit_code\nassert exit_code({command!r}) == 0")
    assert "dpaudit.results.result" in found
    engine = sorted(name for name in found if name.startswith(ENGINE))
    assert not engine, f"dpaudit {command[0]} reads what is stored, and loads {engine}"
