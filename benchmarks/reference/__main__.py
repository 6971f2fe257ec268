"""`python -m benchmarks.reference --base COMMIT [--quick]` compares the cases by both trees; 1 where one differs.

`--write` keeps digests of the quick cases, which `make test` compares with those of today: tests/test_reference.py.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(__file__).with_name("cases.py")
DIGESTS = Path(__file__).with_name("quick.json")
LINES = 12  # of a difference that are shown
NAMED = {
    "data": "recorded noise finds worse pairs of a broken mechanism"
}  # patterns of cases that may differ from the base, and why: each is in the changelog


def started(tree: Path, out: Path, options: list[str]) -> subprocess.Popen[bytes]:
    """The cases of this file by the package of that tree, in a process of its own."""
    variables = {**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0"}
    out.mkdir()  # neither tree lies in it, so that paths of sources read the same
    return subprocess.Popen([sys.executable, str(CASES), str(out), *options], cwd=out, env=variables)


def made(base: str, folder: Path, options: list[str]) -> tuple[Path, Path]:
    """The folders of texts by the base commit and by this tree; both are made at once."""
    tree = folder / "tree"
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), base], cwd=ROOT, check=True)
    try:
        outs = folder / "base", folder / "here"
        runs = [started(home, out, options) for home, out in zip((tree, ROOT), outs, strict=True)]
        codes = [run.wait() for run in runs]
        if any(codes):
            raise SystemExit("the cases could not be made by both trees")
        return outs
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)


def compared(before: Path, after: Path) -> dict[str, list[str]]:
    """The cases that differ, with the first lines of the difference; a case that one side lacks is one of them."""
    found = {}
    for name in sorted({path.name for folder in (before, after) for path in folder.iterdir()}):
        texts = [(folder / name).read_text() if (folder / name).exists() else "" for folder in (before, after)]
        if texts[0] != texts[1]:
            lines = difflib.unified_diff(*(text.splitlines() for text in texts), lineterm="", n=0)
            found[name.removesuffix(".txt")] = [line[:200] for line in lines][2 : 2 + LINES]
    return found


def digests(folder: Path) -> dict[str, str]:
    """A digest of each quick case by this tree, without the last digits of numbers, which are those of a library."""
    if started(ROOT, folder, ["--quick"]).wait():
        raise SystemExit("the cases could not be made")

    def short(text: str) -> str:
        return re.sub(r"\d+\.\d+(e[+-]?\d+)?", lambda number: f"{float(number[0]):.9g}", text)

    texts = {path.stem: short(path.read_text()) for path in sorted(folder.iterdir())}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()}


def main() -> int:
    """Compares, prints, and says by its exit code whether all is as it was."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reference", description="compares with a base commit")
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--base", metavar="COMMIT")
    way.add_argument("--write", action="store_true", help="keep the digests of the quick cases")
    parser.add_argument("--quick", action="store_true", help="a few cases of each kind")
    given = parser.parse_args()
    if given.write:
        with tempfile.TemporaryDirectory() as folder:
            DIGESTS.write_text(json.dumps(digests(Path(folder, "here")), indent=1) + "\n")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        before, after = made(given.base, Path(folder), ["--quick"] if given.quick else [])
        differences, number = compared(before, after), len(list(after.iterdir()))
    unnamed = 0
    for name, lines in differences.items():
        reason = next((why for pattern, why in NAMED.items() if re.fullmatch(pattern, name)), None)
        unnamed += reason is None
        print(f"\n{name}: {'differs' if reason is None else f'differs, as it should: {reason}'}")
        print("\n".join(lines) if reason is None else "")
    print(f"\n{number} cases, {len(differences)} of them different, {unnamed} of these without a reason")
    return int(unnamed > 0)


if __name__ == "__main__":
    sys.exit(main())
