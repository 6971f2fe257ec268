"""Blocks of docs/how/training.md that need a library: run as they stand there, in the environment of that library."""

from __future__ import annotations

import re
import runpy
import tempfile
from collections.abc import Iterator
from pathlib import Path

from audits.training.table import Row, timed

PAGE = Path(__file__).parents[2] / "docs" / "how" / "training.md"
BLOCK = re.compile(r"^```python title=\"not run by the tests[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def rows_of(library: str) -> Iterator[Row]:
    """A row for the block that imports the library: its claim holds, and it is not refuted."""
    (text,) = (each[1] for each in BLOCK.finditer(PAGE.read_text(encoding="utf-8")) if f"from {library}" in each[1])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "block.py")
        file.write_text(text, encoding="utf-8")
        names, cpu_s = timed(lambda: runpy.run_path(str(file)))
    lower = names["result"].lines[0].lower
    fine = lower > 0.0 and not names["result"].refuted
    yield Row("the page's own block", "above 0, not refuted as 0.2", f"mu >= {lower:.4f}", fine, cpu_s)
