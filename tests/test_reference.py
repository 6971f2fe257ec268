"""A few audits of every kind give what they gave: a change of one is meant, and said.

`python -m benchmarks.reference --base COMMIT` shows what differs from a commit, and has all cases; where a difference
is meant, `--write` keeps the new digests, with a reason in the commit.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.reference.__main__ import DIGESTS, digests


def test_results_are_what_they_were(tmp_path: Path) -> None:
    assert digests(tmp_path / "here") == json.loads(DIGESTS.read_text())
