"""Lists the sentences that a user can meet, read from the source, by room: to be read in one sitting.

    python scripts/sentences.py [ROOM or FILE ...] [--longest N]

They are what is raised, what `account/` and the commands say, and the help. A value stands as {name}. `--longest N`
leaves only those of more than N characters.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "dpaudit"
TELLING = ("account", "cli", "report", "scores/result.py", "sweeps/page.py", "training/result.py", "options.py")
TELLING += ("spec/reading.py", "base/validate.py", "claims/claim.py", "pytest_plugin")
FEWEST_WORDS = 3


def text_of(node: ast.AST) -> str:
    """A text or f-string as a template: `{count} runs`; empty for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (each.value if isinstance(each, ast.Constant) else f"{{{_short(each)}}}" for each in node.values)
        return "".join(map(str, parts))
    return ""


def _short(node: ast.AST) -> str:
    value = node.value if isinstance(node, ast.FormattedValue) else node
    said = ast.unparse(value)
    return said if len(said) <= 30 else said[:27] + "..."


def sentences(path: Path, *, all_texts: bool) -> Iterator[tuple[int, str]]:
    """Line and template of each sentence of a module: those of errors, and with `all_texts` all others too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    commands = [each for each in ast.walk(tree) if isinstance(each, ast.ClassDef) and each.name.endswith("Command")]
    for each in commands if path.parent.name == "cli" else ():
        yield each.lineno, " ".join((ast.get_docstring(each) or "").split())
    doc = {id(each.body[0].value) for each in ast.walk(tree) if _documented(each)}  # type: ignore[attr-defined]
    wholes = tree.body if all_texts else [each for each in ast.walk(tree) if _is_error(each)]
    for whole in wholes:
        yield from _texts(whole, doc)


def _texts(node: ast.AST, leave: set[int]) -> Iterator[tuple[int, str]]:
    text = "" if id(node) in leave else text_of(node)
    if len(text.split()) >= FEWEST_WORDS:
        yield node.lineno, text  # type: ignore[attr-defined]
    if isinstance(node, ast.JoinedStr):
        return
    for each in ast.iter_child_nodes(node):
        yield from _texts(each, leave)


def _is_error(node: ast.AST) -> bool:
    called = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
    return isinstance(node, ast.Raise) or called.endswith(("Error", "InvalidSpec", "UnsoundAudit", "Requirement"))


def _documented(node: ast.AST) -> bool:
    holds = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    return holds and ast.get_docstring(node) is not None  # type: ignore[arg-type]


def listed(named: list[str]) -> Iterator[tuple[str, int, str]]:
    """File, line and template of all sentences, in the order of the files."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not named or any(name == each or name.startswith(f"{each}/") for each in named):
            telling = any(name == each or name.startswith(f"{each}/") for each in TELLING)
            for line, text in sorted(set(sentences(path, all_texts=telling))):
                yield name, line, text


def main() -> None:
    """Prints them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("named", nargs="*", metavar="ROOM or FILE")
    parser.add_argument("--longest", type=int, default=0, metavar="N")
    asked = parser.parse_args()
    found = [each for each in listed(asked.named) if len(each[2]) > asked.longest]
    for room, rows in groupby(found, lambda each: each[0].partition("/")[0].removesuffix(".py")):
        print(f"\n== {room}\n")
        for name, line, text in rows:
            print(f"{name}:{line}: {' '.join(text.split())}")
    print(f"\n{len(found):,} sentences, {sum(len(each[2].split()) for each in found):,} words")


if __name__ == "__main__":
    main()
