"""The worked notebooks: their cells are run when the site is built, and stand on a page with what they show."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reference.text import fenced

NOTEBOOKS = {f"{path.stem}.md": path for path in sorted(Path(__file__).parents[1].glob("*.ipynb"))}  # by their pages


def page(path: Path) -> str:
    """A notebook as Markdown: its own words, its code, and what each cell prints and shows, run here and now."""
    return "\n\n".join([*parts(path), f"The notebook itself: [{path.name}]({path.name})."]) + "\n"


def parts(path: Path) -> Iterator[str]:
    """Every cell in its order, run in one namespace and in a folder of its own. An error of a cell is raised."""
    held: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"], start=1):
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                yield source
                continue
            yield fenced("python", source)
            printed, value = run(source, f"{path.name}, cell {number}", held)
            if printed:
                yield fenced("text", printed.rstrip())
            if value is not None:
                yield shown(value)


def run(source: str, place: str, held: dict[str, Any]) -> tuple[str, Any]:
    """What a cell prints, and the value of its last line where that is an expression; as notebooks do it."""
    linecache.cache[place] = len(source), None, source.splitlines(keepends=True), place  # for whoever reads the source
    tree, last = ast.parse(source, place), None
    if isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, place, "exec"), held)
        value = None if last is None else eval(compile(last, place, "eval"), held)
    return printed.getvalue(), value


def shown(value: Any) -> str:
    """A value as a notebook shows it: by its HTML where it has one, otherwise by its `repr`."""
    if not hasattr(value, "_repr_html_"):
        return fenced("text", repr(value))
    told = "\n".join(line for line in value._repr_html_().splitlines() if line.strip())  # an empty line ends a block
    plain = re.sub(r'<style scoped>.*?</style>| border="1" class="dataframe"', "", told, flags=re.DOTALL)  # of pandas
    return f'<div style="overflow-x: auto">\n{plain}\n</div>'
