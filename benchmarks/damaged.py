"""141 damaged ledgers, read by three commands: a refusal in one line (2) or what was recorded; never 70, never else.

Bits flipped, files cut, pages zeroed, logs of rubbish, tables that are not ours, values changed by hand. Where a
command ends with 0 and prints something else than of the whole ledger, it must say that the chain does not hold.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.tables import print_table as show

PAGE = 4096
BY_HAND = (
    *("DROP TABLE results", "DROP TABLE chain", "CREATE TABLE another (a)", "DELETE FROM sqlite_sequence"),
    *("PRAGMA user_version = 0", "PRAGMA user_version = 1", "PRAGMA user_version = 9", "PRAGMA application_id = 5"),
    *("UPDATE results SET seed = 'x'", "UPDATE results SET content = '{'", "UPDATE results SET verdict = 'REFUTED'"),
    *("ALTER TABLE results RENAME COLUMN seed TO sown", "ALTER TABLE chain RENAME TO chained"),
    *("UPDATE chain SET link = NULL", "UPDATE chain SET link = x'00'"),
)

Files = dict[str, bytes]


def run(quick: bool) -> None:
    """Prints the table; `quick` takes every tenth ledger."""
    from dpaudit.ledger.results import Ledger
    from tests.ledger.made import counted

    codes: Counter[tuple[str, str, int]] = Counter()
    wrong: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with Ledger("whole.sqlite") as ledger:
            for number in range(6):
                ledger.record(counted(250_000 + number, 200_000), run="r", number=number)
            name = ledger.results()[0].name
        commands = {
            "recheck": ["--ledger", "damaged.sqlite"],
            "history": [name, "--ledger", "damaged.sqlite"],
            "compare": ["damaged.sqlite", "whole.sqlite"],
        }
        whole = Path("whole.sqlite").read_bytes()
        _put({"": whole})
        expected = {command: _said(command, more)[1] for command, more in commands.items()}
        for damage, files in list(_damaged(whole))[:: 10 if quick else 1]:
            for command, more in commands.items():
                _put(files)
                code, out, err = _said(command, more)
                codes[damage, command, code] += 1
                other = command == "history" and code == 0 and out != expected[command] and "does not hold" not in err
                wrong[damage] += code not in (0, 2) or err.count("\n") > 1 or other
    rows = []
    for damage in dict.fromkeys(key[0] for key in codes):
        told = ["; ".join(f"{code}: {codes[damage, each, code]}" for code in (0, 2, 70)) for each in commands]
        rows.append([damage, *told, str(wrong[damage])])
    show("Damaged ledgers: exit codes of three commands", ["damage", *commands, "wrong"], rows)


def _damaged(whole: bytes) -> Iterator[tuple[str, Files]]:
    """What was done, and the file with those beside it by the end of their names."""
    rng = random.Random(18)
    for turn in range(90):
        flipped = bytearray(whole)
        flipped[rng.randrange(100 + PAGE * min(turn, 8) if turn < 30 else len(whole))] ^= 1 << rng.randrange(8)
        yield "a bit", {"": bytes(flipped)}
    for _ in range(25):
        yield "cut", {"": whole[: rng.randrange(len(whole))]}
    for _ in range(6):
        start = PAGE * rng.randrange(len(whole) // PAGE)
        yield "a page of zeros", {"": whole[:start] + bytes(PAGE) + whole[start + PAGE :]}
    rubbish = rng.randbytes(9_000)
    for files in (
        {"": b""},
        {"": rubbish},
        {"-wal": whole},
        {"": whole, "-wal": rubbish},
        {"": whole, "-journal": rubbish},
    ):
        yield "another file", files
    for sql in BY_HAND:
        Path("edited.sqlite").write_bytes(whole)
        with contextlib.closing(sqlite3.connect("edited.sqlite")) as connection, contextlib.suppress(sqlite3.Error):
            connection.executescript(sql)
        yield "by hand", {"": Path("edited.sqlite").read_bytes()}


def _put(files: Files) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"damaged.sqlite{end}")
    for end, content in files.items():
        Path(f"damaged.sqlite{end}").write_bytes(content)


def _said(command: str, more: list[str]) -> tuple[int, str, str]:
    from dpaudit.cli.group import exit_code

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = exit_code([command, *more])
    return code, out.getvalue(), err.getvalue()
