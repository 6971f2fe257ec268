"""Replays that do not look for other randomness, in tests of many replays."""

from __future__ import annotations

import pytest


@pytest.fixture
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """No replay goes through all that is alive for other randomness: a fifth of a second each in a whole suite."""
    monkeypatch.setattr("dpaudit.verify.replay._LOOKING.now", True, raising=False)
