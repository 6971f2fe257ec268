"""A file is written whole or not at all, whichever operation of the disk fails, and nothing is left beside it."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpaudit.base.files import write_text

OPERATIONS = ((tempfile, "mkstemp"), (os, "fdopen"), (os, "fsync"), (os, "chmod"), (os, "replace"))


class Faulty:
    """Operations of which the n-th fails; 0: none."""

    def __init__(self, nth: int) -> None:
        self.nth, self.seen = nth, 0

    def of(self, whole: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*arguments: Any, **named: Any) -> Any:
            self.seen += 1
            if self.seen == self.nth:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return whole(*arguments, **named)

        return operation


def test_a_fault_at_any_operation_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.json"
    write_text(target, "old")
    for nth in range(1, len(OPERATIONS) + 2):
        faulty = Faulty(nth)
        with monkeypatch.context() as patched:
            for module, name in OPERATIONS:
                patched.setattr(module, name, faulty.of(getattr(module, name)))
            if nth <= len(OPERATIONS):
                with pytest.raises(OSError, match="No space left"):
                    write_text(target, "new")
            else:
                write_text(target, "new")
                assert faulty.seen == len(OPERATIONS)
        assert target.read_text() == ("old" if nth <= len(OPERATIONS) else "new")
        assert [each.name for each in tmp_path.iterdir()] == ["a.json"]
