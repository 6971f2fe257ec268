"""The size of the house: `python -m benchmarks.house [PACKAGE]` prints what one audit enters and what the code holds.

Calls are those that Python's profiling hook sees in the second `dpaudit.audit` of a process: imports do not count.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

WORDS = frozenset(["found", "told", "beside", "held", "kept", "made", "said", "looked"])
DOORS = ("api", "spec", "sweeps", "cli", "pytest_plugin")
OPTIONS = (
    *("representation", "stopping", "run_timeout_s", "controls", "max_time_s", "isolation", "certify_pairs", "detect"),
    "sequential_share",
)
ENTER = "--enter"  # says only what one audit enters, of the package on the path


def entered() -> tuple[int, int, int, int]:
    """Named functions and files of dpaudit that one audit enters, calls from folder to folder, frames to the mechanism.

    A call is a pair of functions, however often one calls the other.
    """
    import numpy as np

    import dpaudit

    package = Path(dpaudit.__file__).parent
    functions: set[tuple[str, str, int]] = set()
    calls: set[tuple[str, str, str, str]] = set()
    frames = 0

    def mechanism(data: float, rng: np.random.Generator) -> float:
        nonlocal frames
        frame, own = sys._getframe(1), 0
        while frame is not None:
            own += inside(frame.f_code.co_filename) and not frame.f_code.co_name.startswith("<")
            frame = frame.f_back  # type: ignore[assignment]
        frames = max(frames, own)
        return data + rng.laplace(scale=0.5)

    def inside(file: str) -> bool:
        return file.startswith(f"{package}/")

    def called(frame: Any, event: str, given: Any) -> None:
        code = frame.f_code
        if event == "call" and inside(code.co_filename):
            if not code.co_name.startswith("<"):
                functions.add((code.co_filename, code.co_qualname, code.co_firstlineno))
            before = frame.f_back.f_code
            if inside(before.co_filename):
                calls.add((before.co_filename, before.co_qualname, code.co_filename, code.co_qualname))

    def once() -> None:
        dpaudit.audit(mechanism, pair=(0, 1), epsilon=1, runs=20_000, n_jobs=1, progress=False)

    once()
    sys.setprofile(called)
    try:
        once()
    finally:
        sys.setprofile(None)
    changes = sum(Path(one).parent != Path(other).parent for one, _, other, _ in calls)
    return len(functions), len({file for file, _, _ in functions}), changes, frames


def sources(package: Path) -> dict[Path, ast.Module]:
    """Every module of the package, parsed."""
    return {path: ast.parse(path.read_text()) for path in sorted(package.rglob("*.py"))}


def names(tree: ast.AST) -> Iterator[str]:
    """What is bound: variables, parameters, functions, classes and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg


def parameters(tree: ast.AST) -> Iterator[int]:
    """How many parameters each function has."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            given = node.args
            every = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            yield len(every) - (every[:1] in (["self"], ["cls"]))


def main() -> None:
    """Prints the table."""
    root = Path(__file__).resolve().parents[1]
    package = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else root / "dpaudit"
    trees = sources(package)
    lines = {path: len(path.read_text().splitlines()) for path in trees}
    rooms = Counter[str]()
    for path, number in lines.items():
        rooms[path.relative_to(package).parts[0].removesuffix(".py")] += number
    text = {path: path.read_text() for path in trees}
    bound = [name for tree in trees.values() for name in names(tree)]
    count: Callable[[str], int] = lambda word: sum(whole.count(word) for whole in text.values())  # noqa: E731
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    one = subprocess.run(
        [sys.executable, __file__, ENTER],
        capture_output=True,
        text=True,
        check=True,
        cwd=package.parent,
        env=environment,
    )
    print(f"lines {sum(lines.values()):,}, modules {len(lines)}, doors {sum(rooms[door] for door in DOORS):,}")
    print("functions, files, calls into another folder, frames of one audit:", one.stdout.strip())
    print("functions of seven parameters or more:", sum(n >= 7 for tree in trees.values() for n in parameters(tree)))
    print("Any:", count("Any"), " **kwargs:", count("**"), " clock is None:", count("clock is "))
    print("participles as names:", sum(name in WORDS for name in bound))
    for option in OPTIONS:
        print(f"files that name {option}:", sum(option in whole for whole in text.values()))
    for room, number in sorted(rooms.items()):
        print(f"  {room:<14}{number:>7,}")


if __name__ == "__main__":
    if sys.argv[1:] == [ENTER]:
        print(*entered(), sep=", ")
    else:
        main()
