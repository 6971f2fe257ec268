"""The ledger file: whole transactions with several writers, kills and full disks, and one line for everything wrong."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sqlite3
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.ledger import database as module
from dpaudit.ledger.baseline import read_baseline
from dpaudit.ledger.database import APPLICATION, DEFAULT, VERSION, Database, LedgerError, LedgerWriteFailed
from dpaudit.scores.files import read_scores
from dpaudit.spec.settings import read_settings

# writers of one ledger: at once, killed, or on a disk that is full


WRITERS, EACH = 8, 6
PAGE = 4096


def write(database: Database, writer: int, number: int, size: int = 100) -> None:
    """Two rows in one transaction: whoever reads must see both or neither."""
    with database.transaction() as connection:
        for half in range(2):
            connection.execute(
                "INSERT INTO shards VALUES (?, ?, 0, 0, 0, 0, ?, 1, '', '', ?, '')",
                (f"run {writer}", number, half, os.urandom(size)),
            )


def forked(work: Callable[[], None]) -> int:
    """A child that does the work and ends without cleaning up after its parent."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def whole(path: Path) -> dict[int, int]:
    """The transactions of each writer; fails where the file is not whole, or half of one is there."""
    with Database(path) as database:
        assert database.rows("PRAGMA integrity_check")[0][0] == "ok"
        counts = "SELECT run, audit, count(*) AS halves FROM shards GROUP BY run, audit ORDER BY run, audit"
        rows = database.rows(counts)
    assert all(row["halves"] == 2 for row in rows)
    found: dict[int, int] = {}
    for row in rows:
        writer = int(row["run"].split()[1])
        assert row["audit"] == found.get(writer, 0)  # none is missing before a later one
        found[writer] = row["audit"] + 1
    return found


def at_once(path: Path) -> dict[int, int]:
    """Eight writers, which also race to make the file."""

    def work(writer: int) -> None:
        with Database(path) as database:
            for number in range(EACH):
                write(database, writer, number)

    children = [forked(lambda writer=writer: work(writer)) for writer in range(WRITERS)]  # type: ignore[misc]
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    return whole(path)


def killed(path: Path, kills: int) -> list[tuple[int, int]]:
    """For each killed writer: how many transactions it knew to be on the disk, and how many are there."""
    moments = random.Random(0)
    known = []

    def work(writer: int, told: int) -> None:
        database = Database(path)
        for number in range(10**6):
            write(database, writer, number, 3000)
            os.write(told, b".")

    for writer in range(kills):
        heard, told = os.pipe()
        child = forked(lambda writer=writer, told=told: work(writer, told))  # type: ignore[misc]
        os.close(told)
        told_of, enough = 0, moments.randrange(4)
        while told_of < enough:
            told_of += len(os.read(heard, 1 << 16))
        time.sleep(moments.uniform(0.0, 0.02))  # so that it may die anywhere in the next one
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while dots := os.read(heard, 1 << 16):
            told_of += len(dots)
        os.close(heard)
        known.append(told_of)
    there = whole(path)
    return [(told_of, there.get(writer, 0)) for writer, told_of in enumerate(known)]


def full(path: Path, pages: int) -> tuple[int, int, str]:
    """A disk that takes files of so many pages: transactions acknowledged, those that are there, and what was said."""
    heard, told = os.pipe()

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (pages * PAGE + 100, resource.RLIM_INFINITY))
        try:
            database = Database(path)
            for number in range(200):
                write(database, 0, number, 3000)
                os.write(told, b".")
        except LedgerError as error:
            os.write(told, f"|{error.exit_code} {error}".encode())

    child = forked(work)
    os.close(told)
    said = b""
    while part := os.read(heard, 1 << 16):
        said += part
    os.close(heard)
    assert os.waitpid(child, 0)[1] == 0
    dots, _, message = said.partition(b"|")
    return len(dots), whole(path).get(0, 0), message.decode()


def test_eight_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    assert at_once(tmp_path / "deep" / "ledger.sqlite") == dict.fromkeys(range(WRITERS), EACH)


def test_what_a_killed_writer_knew_to_be_recorded_is_there(tmp_path: Path) -> None:
    ends = killed(tmp_path / "ledger.sqlite", 8)
    assert len(ends) == 8
    assert sum(known for known, _ in ends) > 0
    for known, there in ends:  # the last one may be on the disk before the writer could say so
        assert known <= there <= known + 1


def test_a_disk_that_is_full_at_any_write_is_told_and_leaves_the_ledger_whole(tmp_path: Path) -> None:
    recorded = []
    for pages in range(2, 40, 4):
        known, there, said = full(tmp_path / f"{pages}.sqlite", pages)
        assert known == there
        assert said.startswith("3 ledger ")
        assert "what was recorded before is whole" in said
        assert "\n" not in said
        recorded.append(there)
    assert recorded == sorted(recorded)
    assert recorded[0] == 0 < recorded[-1]


# one writer


def put(database: Database, key: str) -> None:
    with database.transaction() as connection:
        connection.execute("INSERT INTO runs VALUES (?, '', '', '', NULL)", (key,))


def ids(path: Path) -> list[str]:
    with Database(path, read_only=True) as database:
        return [row["id"] for row in database.rows("SELECT id FROM runs ORDER BY rowid")]


def refusal(path: Path, *, read_only: bool = False) -> str:
    with pytest.raises(LedgerError) as caught:
        Database(path, read_only=read_only)
    message = str(caught.value)
    assert message.isprintable()
    assert message.startswith(f"ledger {path}: ")
    assert caught.value.exit_code == 2
    return message


def test_a_full_database_takes_more_once_there_is_room(tmp_path: Path) -> None:
    with Database(tmp_path / "a.sqlite") as database:
        put(database, "before")
        pages = database.rows("PRAGMA page_count")[0][0]
        database.rows(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(LedgerWriteFailed, match="the disk is full; what was recorded before is whole") as caught:
            put(database, "x" * 10**6)
        assert caught.value.exit_code == 3
        database.rows(f"PRAGMA max_page_count = {pages + 1000}")
        put(database, "after")
    assert ids(tmp_path / "a.sqlite") == ["before", "after"]


def test_a_transaction_is_whole_or_was_not(tmp_path: Path) -> None:
    def interrupted(database: Database) -> None:
        with database.transaction():
            put(database, "inner")  # a part of the outer one
            raise KeyError

    def twice(database: Database) -> None:
        with database.transaction():
            put(database, "twice")
            put(database, "twice")

    with Database(tmp_path / "a.sqlite") as database:
        with pytest.raises(KeyError):
            interrupted(database)
        with pytest.raises(LedgerError, match="UNIQUE"):
            twice(database)
        put(database, "kept")
        assert [row["id"] for row in database.rows("SELECT id FROM runs")] == ["kept"]


def test_every_commit_is_synced_into_a_log(tmp_path: Path) -> None:
    with Database(tmp_path / "a.sqlite") as database:
        assert database.rows("PRAGMA synchronous")[0][0] == 2  # FULL
        assert database.rows("PRAGMA journal_mode")[0][0] == "wal"
        assert database.rows("PRAGMA busy_timeout")[0][0] == 30_000
        assert database.rows("PRAGMA user_version")[0][0] == VERSION
    assert [path.name for path in tmp_path.iterdir()] == ["a.sqlite"]  # and it is one file again


def test_threads_share_one_without_mixing_their_transactions(tmp_path: Path) -> None:
    with Database(tmp_path / "a.sqlite") as database:

        def write(name: str) -> None:
            for number in range(10):
                with database.transaction():
                    put(database, f"{name} {number} a")
                    put(database, f"{name} {number} b")

        threads = [threading.Thread(target=write, args=(name,)) for name in "xyz"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = ids(tmp_path / "a.sqlite")
    assert len(found) == 60
    assert all(a[:-1] == b[:-1] for a, b in zip(found[::2], found[1::2], strict=True))


def test_a_writer_that_never_ends_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.02)
    path = tmp_path / "a.sqlite"
    with Database(path) as one, Database(path) as other, one.transaction():
        with pytest.raises(LedgerWriteFailed, match="another process has kept it locked"):
            put(other, "b")
        assert other.rows("SELECT count(*) FROM runs")[0][0] == 0  # readers never wait


def test_reading_changes_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with Database(path) as database:
        put(database, "a")
    before = path.read_bytes()
    with Database(path, read_only=True) as database:
        assert len(database.rows("SELECT * FROM runs")) == 1
        with pytest.raises(LedgerError, match="read-only"):
            put(database, "b")
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["a.sqlite"]


def test_what_a_killed_process_left_in_the_log_is_read(tmp_path: Path) -> None:
    live, copy = tmp_path / "live.sqlite", tmp_path / "copy.sqlite"
    with Database(live) as database:
        put(database, "a")
        for tail in ("", "-wal"):  # as a kill leaves them: nothing of it is in the file itself
            shutil.copy(f"{live}{tail}", f"{copy}{tail}")
    assert ids(copy) == ["a"]


def test_only_ledgers_are_opened_and_nothing_else_is_touched(tmp_path: Path) -> None:
    text, other, empty = tmp_path / "text", tmp_path / "other", tmp_path / "empty"
    text.write_text("hello " * 400)
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE mine (a)")
    connection.close()
    empty.touch()
    before = other.read_bytes()
    for read_only in (True, False):
        assert "not a ledger (no SQLite database)" in refusal(text, read_only=read_only)
        assert "a database of something else" in refusal(other, read_only=read_only)
        assert "it is not a file" in refusal(tmp_path, read_only=read_only)
    assert other.read_bytes() == before
    assert text.read_text() == "hello " * 400
    assert "it is empty" in refusal(empty, read_only=True)
    assert "there is no such file" in refusal(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()
    assert "its folder cannot be made" in refusal(text / "below")
    with Database(empty) as database:
        put(database, "a")


def test_a_file_that_another_process_makes_meanwhile_is_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks twice sees nothing, and then something: that is no reason to refuse it."""
    path, looked = tmp_path / "deep" / "a.sqlite", os.stat

    def look(name: Any, *arguments: Any, **keywords: Any) -> os.stat_result:
        try:
            return looked(name, *arguments, **keywords)
        except FileNotFoundError:
            if os.fspath(name) == os.fspath(path):
                monkeypatch.undo()
                with Database(path) as other:
                    put(other, "other")
            raise

    monkeypatch.setattr(os, "stat", look)
    with Database(path) as database:
        put(database, "ours")
    assert os.stat is looked  # somebody looked
    assert ids(path) == ["other", "ours"]


def test_a_newer_ledger_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    Database(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    assert connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
    connection.close()
    before = path.read_bytes()
    assert f"its tables are of version {VERSION + 1}, and this dpaudit knows {VERSION}" in refusal(path)
    assert path.read_bytes() == before


def test_a_damaged_ledger_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with Database(path) as database:
        put(database, "a")
    damaged = bytearray(path.read_bytes())
    damaged[4096 : 4096 + 64] = b"\xff" * 64
    path.write_bytes(damaged)
    assert "it is damaged; restore a copy" in refusal(path)
    path.write_bytes(path.read_bytes()[:5000])
    assert "it is damaged" in refusal(path, read_only=True)
    nameless = UnicodeDecodeError(
        "utf-8", b"\xa2", 0, 1, "invalid start byte"
    )  # of a table, as SQLite's message has it
    assert "it is damaged; restore a copy" in str(module.ledger_error(nameless, path))


def test_the_default_folder_is_kept_out_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert not DEFAULT.parent.exists()
    Database(DEFAULT).close()
    assert Path(".dpaudit", ".gitignore").read_text() == "*\n"
    assert Path(".dpaudit", "ledger.sqlite").is_file()


def test_a_file_that_goes_between_two_looks_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The readers of other files too: what they open is not there, whatever a look has said before."""
    looked = os.stat

    def look(name: Any, *arguments: Any, **keywords: Any) -> os.stat_result:
        found = looked(name, *arguments, **keywords)
        if stat.S_ISREG(found.st_mode) and Path(name).parent == tmp_path:
            os.unlink(name)
        return found

    def outcome(read: Callable[[Path], Any], name: str) -> Any:
        path = tmp_path / name
        path.write_text("[tool.dpaudit]\nruns = 0\n")
        monkeypatch.setattr(os, "stat", look)
        try:
            return read(path if name != "pyproject.toml" else tmp_path)
        except InvalidSpec as error:
            return str(error).replace(f"{path}: ", "")
        finally:
            monkeypatch.undo()
            path.unlink(missing_ok=True)

    # these look at what they have opened
    assert outcome(read_baseline, "accepted.toml").startswith("schema must be")
    assert outcome(read_settings, "pyproject.toml").startswith("tool.dpaudit.runs")
    assert outcome(read_scores, "scores.csv").startswith("the header must name")


def test_a_ledger_gives_space_back_and_keeps_nothing_of_what_was_deleted(tmp_path: Path) -> None:
    secret = b"a record of somebody" * 10_000
    for old in (False, True):
        path = tmp_path / f"{old}.sqlite"
        Database(path).close()
        if old:
            connection = sqlite3.connect(path)
            connection.executescript("PRAGMA auto_vacuum = NONE; VACUUM")
            connection.close()
        with Database(path) as database:
            for number in range(8):
                with database.transaction() as connection:
                    row = ("r", number, secret)
                    connection.execute("INSERT INTO shards VALUES (?, ?, 0, 0, 0, 0, 0, 1, '', '', ?, '')", row)
            with database.transaction() as connection:
                connection.execute("DELETE FROM shards")
            database.give_back()
            left = path.read_bytes() + path.with_name(f"{path.name}-wal").read_bytes()
            assert secret[:20] not in left
            assert len(left) < 200_000
            put(database, "goes on")
        with Database(path) as database:
            assert database.rows("PRAGMA auto_vacuum")[0][0] == 2
            assert database.rows("PRAGMA integrity_check")[0][0] == "ok"
