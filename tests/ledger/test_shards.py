"""Runs and shards in the ledger: held by one driver, taken up by the next, refused where anything has changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.execution.journal import LOADED, StoredShard
from dpaudit.ledger import runs
from dpaudit.ledger.database import Database, LedgerError, LedgerLost
from dpaudit.ledger.runs import LedgerShards, RunLock, differences, resume, start, taken
from dpaudit.processes.tasks import digest_of_file
from dpaudit.running.streams import Shard, Stage

SPECS = ["/a/one.toml", "/a/two.toml"]
ASKED = {"dpaudit": "1", "options": {"tags": ["core"]}, "audits": {"one": {"runs": 100, "seed": 0}}}
PAIRS = [{"name": "pair", "distance": 1, "first": {"digest": "a", "value": 1}, "second": {"digest": "b", "value": 2}}]
SPEC: dict[str, Any] = {"name": "one", "runs": 100, "mechanism": {"digest": "f00"}, "pairs": PAIRS}
SHARD = StoredShard(3, 0, Shard(Stage.CERTIFY, 1, 7, 250), "question", "counts", b"\x00content\xff")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "ledger.sqlite") as made:
        yield made


def test_shards_come_back_to_the_next_driver_until_their_audit_is_recorded(database: Database) -> None:
    LedgerShards(database, "run", 1).keep([SHARD])
    LedgerShards(database, "run", 2).keep([SHARD])
    assert LedgerShards(database, "run", 1).fetch(3) == ()  # a first driver has nothing to take up
    later = LedgerShards(database, "run", 1, driver=1)
    assert later.fetch(3) == [SHARD]
    assert later.fetch(2) == []
    later.drop()
    assert later.fetch(3) == []
    assert LedgerShards(database, "run", 2, driver=1).fetch(3) == [SHARD]


def test_a_place_is_taken_once_and_shards_come_all_or_none(database: Database) -> None:
    store = LedgerShards(database, "run", 1, driver=1)
    store.keep([SHARD])
    other = StoredShard(3, 0, Shard(Stage.CERTIFY, 1, 8, 250), "question", "counts", b"")
    with pytest.raises(LedgerError):
        store.keep([other, SHARD])
    assert store.fetch(3) == [SHARD]


@pytest.mark.parametrize(
    "change",
    [
        f"stage = {int(Stage.SEARCH)}",
        "shard = 8",
        "pair = 0",
        "runs = 251",
        "look = 1",
        "question = 'other'",
        "kind = 'pilot'",
        "audit = 2",
        "content = x'00'",
    ],
)
def test_a_shard_that_was_touched_is_refused(database: Database, change: str) -> None:
    LedgerShards(database, "run", 1).keep([SHARD])
    with database.transaction() as connection:
        connection.execute(f"UPDATE shards SET {change}")
    with pytest.raises(LedgerError, match="not what was stored; begin the run anew"):
        LedgerShards(database, "run", 2 if "audit" in change else 1, driver=1).fetch(3)


def test_a_run_goes_on_where_it_was(database: Database) -> None:
    first = start(database, SPECS, ASKED)
    assert first.begun(1) is None
    assert first.begin(1, SPEC, {"module mechs": "#aa"}, 77).driver == 0
    assert taken(database, SPECS, ASKED) is None  # it is being driven
    with pytest.raises(LedgerError, match="is driven by another process now"):
        resume(database, SPECS, ASKED)
    first.close()
    second = taken(database, reversed(SPECS), ASKED)
    assert second is not None
    second.close()
    second = resume(database, SPECS, ASKED)
    assert second.id == first.id
    begun = second.begun(1)
    assert begun is not None
    assert (begun.drivers, begun.runs) == (1, 77)
    assert second.begin(1, SPEC, {"module mechs": "#aa"}, 77).driver == 1
    second.finish()
    second.close()
    assert list(database.path.parent.glob("*.lock")) == []
    with pytest.raises(InvalidSpec, match="there is no unfinished run of these specs"):
        resume(database, SPECS, ASKED)
    with pytest.raises(InvalidSpec, match="there is no unfinished run"):
        resume(database, SPECS[:1], ASKED)


def test_the_newest_run_of_the_same_question_goes_on(database: Database) -> None:
    other = {**ASKED, "dpaudit": "2"}
    keys = []
    for asked in (ASKED, ASKED, other):
        run = start(database, SPECS, asked)
        run.close()
        keys.append(run.id)
    with database.transaction() as connection:
        connection.execute("UPDATE runs SET started = '2999-01-01' WHERE id = ?", (keys[1],))
    again = resume(database, SPECS, ASKED)
    assert again.id == keys[1]
    again.close()


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({**ASKED, "dpaudit": "2"}, "--resume: dpaudit was 1 and is 2: this is another run"),
        ({**ASKED, "options": {"tags": []}}, r"options, tags was \['core'\] and is \[\]"),
        ({**ASKED, "audits": {"one": {"runs": 101, "seed": 0}}}, "audits, one, runs was 100 and is 101"),
        ({**ASKED, "audits": {"two": {}}}, "audits, one is gone; audits, two is new"),
    ],
)
def test_another_question_is_another_run(database: Database, now: dict[str, Any], said: str) -> None:
    start(database, SPECS, ASKED).close()
    with pytest.raises(InvalidSpec, match=said):
        resume(database, SPECS, now)


def test_a_mechanism_that_changed_is_named(database: Database) -> None:
    run = start(database, SPECS, ASKED)
    run.begin(1, SPEC, {"module mechs": "#aa"}, None)
    digests = {**PAIRS[0], "first": {"digest": "c", "value": None}}
    for spec, sources, said in (
        (SPEC, {"module mechs": "#bb"}, "audit 'one': module mechs is not what it was"),
        ({**SPEC, "mechanism": {"digest": "f01"}}, {"module mechs": "#aa"}, "the content of mechanism is not what"),
        ({**SPEC, "pairs": [digests]}, {"module mechs": "#aa"}, "the content of pairs, 1, first is not what it was"),
        ({**SPEC, "runs": 101}, {"module mechs": "#aa"}, "runs was 100 and is 101"),
    ):
        with pytest.raises(InvalidSpec, match=said):
            run.begin(1, spec, sources, None)
    assert differences(ASKED, ASKED) == []
    run.close()


def test_a_source_that_only_the_runs_load_is_held_on_to(database: Database, tmp_path: Path) -> None:
    late = tmp_path / "late.py"
    late.write_text("SCALE = 1.5\n")
    run = start(database, SPECS, ASKED)
    run.begin(1, SPEC, {}, None).note(LOADED, {str(late): digest_of_file(str(late))})
    run.begin(1, SPEC, {}, None).note(
        LOADED, {str(late): digest_of_file(str(late))}
    )  # killed before its shards were kept
    assert run.begin(1, SPEC, {}, None).fetch(0) == []
    late.write_text("SCALE = 1.6\n")
    with pytest.raises(InvalidSpec, match=r"audit 'one': the source .*late\.py is not what it was"):
        run.begin(1, SPEC, {}, None)
    late.unlink()
    with pytest.raises(InvalidSpec, match=r"late\.py is not what it was"):
        run.begin(1, SPEC, {}, None)
    run.drop(1)
    run.begin(1, SPEC, {}, None)
    run.close()


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_ledger_that_is_gone_is_told_at_once(database: Database, how: str) -> None:
    """SQLite would go on writing to a file that nobody can open again."""
    run = start(database, SPECS, ASKED)
    shards = run.begin(1, SPEC, {}, None)
    database.path.rename(database.path.with_name("elsewhere"))
    if how == "replaced":
        database.path.touch()
    for use in (lambda: shards.keep([SHARD]), lambda: run.drop(1), run.finish, lambda: run.begin(2, SPEC, {}, None)):
        with pytest.raises(LedgerLost, match="deleted, moved or replaced during the run"):
            use()
    run.close()


def test_a_run_has_one_lock_by_whatever_name_its_ledger_is_called(tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(tmp_path / "ledger")
    held = RunLock(tmp_path / "ledger", "run")
    assert held.take()
    assert not RunLock(tmp_path / "alias", "run").take()
    held.free()


def test_a_lock_that_was_let_go_while_it_was_opened_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one would hold a file without a name, and the next a new one: two drivers of one run."""
    first, second = (RunLock(tmp_path / "ledger", "run") for _ in range(2))
    assert first.take()
    lock = runs.lock

    def late(file: int, *, wait: bool) -> bool:
        first.free()
        return lock(file, wait=wait)

    with monkeypatch.context() as patch:
        patch.setattr(runs, "lock", late)
        assert second.take()
    assert not RunLock(tmp_path / "ledger", "run").take()
    second.free()


def test_runs_that_nobody_goes_on_with_are_dropped(database: Database) -> None:
    old, held, fresh = (start(database, SPECS, ASKED) for _ in range(3))
    for run in (old, held):
        run.begin(1, SPEC, {}, None).keep([SHARD])
        with database.transaction() as connection:
            connection.execute("UPDATE runs SET started = '2001-01-01' WHERE id = ?", (run.id,))
    old.close()
    fresh.close()
    for day in (2, 3):  # a ledger that is used
        with database.transaction() as connection:
            query = (
                "INSERT INTO runs (id, suite_hash, suite, started, finished) SELECT ?, '', suite, ?, started FROM runs"
            )
            connection.execute(f"{query} WHERE id = ?", (f"of day {day}", f"2026-01-0{day}", fresh.id))
    last = start(database, SPECS, ASKED)
    left = {row["id"] for row in database.rows("SELECT id FROM runs WHERE finished IS NULL")}
    assert left == {held.id, fresh.id, last.id}
    assert {row["run"] for row in database.rows("SELECT run FROM shards")} == {held.id}
    held.close()
    last.close()


def test_a_clock_that_jumps_drops_no_run(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = start(database, SPECS, ASKED)
    begun.close()
    for year in (2999, 1980, 2999):
        monkeypatch.setattr("dpaudit.ledger.runs._now", lambda year=year: datetime(year, 1, 1, tzinfo=UTC))
        start(database, SPECS, {**ASKED, "year": year}).close()
    assert resume(database, SPECS, ASKED).id == begun.id


def test_a_fork_of_the_driver_does_not_hold_its_run(tmp_path: Path) -> None:
    """Else workers that outlive a killed driver would keep the next one from going on."""
    lock = RunLock(tmp_path / "ledger", "run")
    assert lock.take()
    assert not RunLock(tmp_path / "ledger", "run").take()
    ready, alive = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(alive[1])
        os.write(ready[1], b".")
        os.read(alive[0], 1)  # until the test lets go of the other end
        os._exit(0)
    os.read(ready[0], 1)
    assert lock._file is not None
    runs._OPEN_LOCKS.discard(lock._file)
    os.close(lock._file)  # what a kill does
    other = RunLock(tmp_path / "ledger", "run")
    taken = other.take()
    other.free()
    for each in (*ready, *alive):
        os.close(each)
    os.waitpid(child, 0)
    assert taken
