"""A loop of the user's own is audited with at most ten added lines: the two files differ by no more."""

from __future__ import annotations

import difflib
from pathlib import Path

from tests.cases import for_each

PLAIN = Path(__file__).resolve().parents[2] / "audits" / "training" / "plain"
LOOPS = [path.stem for path in PLAIN.glob("*_loop.py")]


def lines(name: str) -> list[str]:
    return [line for line in (PLAIN / f"{name}.py").read_text(encoding="utf-8").splitlines() if line.strip()]


@for_each("name", LOOPS)
def test_a_loop_is_audited_with_at_most_ten_added_lines(name: str) -> None:
    changes = list(difflib.ndiff(lines(name), lines(f"{name}_audited")))
    added = [line for line in changes if line.startswith("+ ")]
    assert 0 < len(added) <= 10, "\n".join(added)
    assert sum(line.startswith("- ") for line in changes) <= 3  # the head, what it returns, and the call
