"""What all tests share: one repository root, and an environment that no developer's shell leaks into."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No colours, no CI, no settings of the caller's; child processes find the dpaudit that is being tested."""
    for name in ("CI", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("MPLBACKEND", "Agg")


@pytest.fixture
def root() -> Path:
    """The repository."""
    assert os.path.isdir(ROOT / "dpaudit")
    return ROOT
