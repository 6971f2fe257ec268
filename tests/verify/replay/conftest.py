"""A fixture for tests of many replays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpaudit.verify.replay import no_other_randomness


@pytest.fixture
def one_look() -> Iterator[None]:
    """Other randomness is looked for once, and not by each of many replays: all that is alive is gone through."""
    with no_other_randomness():
        yield
