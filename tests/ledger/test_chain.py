"""Results chained by hash: what is changed, taken out, put in, moved or cut off is noticed, and old ledgers join."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from dpaudit.cli.group import exit_code
from dpaudit.ledger.database import START, Chain
from dpaudit.ledger.results import Ledger
from tests.cases import for_each
from tests.ledger.made import counted

EDITS = {
    "a value": ("UPDATE results SET lower = lower + 1 WHERE id = 2", "result 2, or one"),
    "another type": ("UPDATE results SET content = CAST(content AS BLOB) WHERE id = 2", "result 2"),
    "content and digest": ("UPDATE results SET content = content || ' ', digest = 'new' WHERE id = 3", "result 3"),
    "the time": ("UPDATE results SET recorded = '2020' WHERE id = 1", "result 1"),
    "a middle row": ("DELETE FROM results WHERE id = 2", "result 2 is gone"),
    "a middle row and its link": ("DELETE FROM results WHERE id = 2; DELETE FROM chain WHERE id = 2", "result 3"),
    "the first": ("DELETE FROM results WHERE id = 1; DELETE FROM chain WHERE id = 1", "result 2"),
    "the last": ("DELETE FROM results WHERE id = 4; DELETE FROM chain WHERE id = 4", "after 3 are gone"),
    "the order": (
        "UPDATE results SET id = 9 WHERE id = 2; UPDATE results SET id = 2 WHERE id = 3;"
        "UPDATE results SET id = 3 WHERE id = 9",
        "result 2",
    ),
    "a row put in": (
        "INSERT INTO results SELECT 5, NULL, NULL, recorded, started, name, subject, reference, fingerprint, "
        'representation, spec_hash, pairs, mechanism, "commit", version, seed, runs, verdict, claimed, lower, '
        "epsilon_lower, delta, confidence, p_value, content, digest FROM results WHERE id = 1",
        "result 5 was never chained",
    ),
    "a link": ("UPDATE chain SET link = '00' WHERE id = 2", "result 2"),
    "a link taken out": ("DELETE FROM chain WHERE id = 4", "result 4 was never chained"),
}


APART = (  # what a chain does not see, and readers must
    *("DROP TABLE results", "DROP TABLE chain", "CREATE TABLE another (a)", "DELETE FROM sqlite_sequence"),
    *("PRAGMA user_version = 0", "PRAGMA user_version = 1", "PRAGMA user_version = 9", "PRAGMA application_id = 5"),
    *("UPDATE results SET seed = 'x'", "UPDATE results SET content = '{'", "UPDATE results SET verdict = 'REFUTED'"),
    *("ALTER TABLE results RENAME COLUMN seed TO sown", "ALTER TABLE chain RENAME TO chained"),
    "UPDATE chain SET link = x'00'",
)


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger of four results."""
    path = tmp_path_factory.mktemp("chain") / "a.sqlite"
    with Ledger(path) as ledger:
        for number in range(4):
            ledger.record(counted(250_000 + number, 200_000), run="r", number=number)
    return path


@contextmanager
def tampered(whole: Path, sql: str) -> Iterator[Path]:
    """A copy of the ledger after somebody had it open."""
    path = whole.with_name("copy.sqlite")
    shutil.copy(whole, path)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(sql)
    yield path
    os.unlink(path)


def chain_of(path: Path, head: tuple[int, str] | None = None) -> Chain:
    with Ledger(path, read_only=True) as ledger:
        return ledger.chain(head)


def test_a_ledger_as_it_was_written_holds(four: Path) -> None:
    with Ledger(four, read_only=True) as ledger:
        chain = ledger.chain()
        assert (chain.rows, chain.head, chain.wrong) == (*ledger.head(), None)
        assert ledger.chain(ledger.head()).wrong is None
    assert chain.rows == 4
    assert chain.text == f"the chain of its results holds (4); head 4:{chain.head}"


@for_each("name", list(EDITS))
def test_what_was_changed_is_named(four: Path, name: str) -> None:
    sql, told = EDITS[name]
    with tampered(four, sql) as path:
        wrong = chain_of(path).wrong
        assert wrong is not None
        assert told in wrong


def test_a_ledger_that_was_taken_apart_is_refused_or_tells_what_was_recorded(
    four: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By three commands, in a line: what else than was recorded is shown, if at all, beside a chain that is broken."""
    with Ledger(four, read_only=True) as ledger:
        name, right = ledger.results()[0].name, ""
    for sql in ("", *APART):
        with tampered(four, sql) as path:
            for command in (["recheck", "--ledger"], ["history", name, "--ledger"], ["compare", str(four)]):
                code, (out, err) = exit_code([*command, str(path)]), capsys.readouterr()
                assert code in (0, 2), sql
                assert err.count("\n") <= 1, sql
                if command[0] == "history":
                    right = right or out
                    assert code or out == right or "does not hold" in err, sql


def test_a_chain_made_anew_is_noticed_by_a_head_that_was_written_down(four: Path) -> None:
    head = chain_of(four).rows, chain_of(four).head
    forged = "DROP TABLE chain; DROP TABLE begun; UPDATE results SET lower = 9 WHERE id = 2; PRAGMA user_version = 1"
    cut = "DELETE FROM results WHERE id = 4; DELETE FROM chain WHERE id = 4; UPDATE sqlite_sequence SET seq = 3"
    for sql in (forged, cut):
        with tampered(four, sql) as path:
            assert chain_of(path, head).wrong is not None
            Ledger(path).close()  # whoever writes it next chains what is there
            assert chain_of(path).wrong is None
            assert chain_of(path, head).wrong == (
                "it does not lead to the given head; results are gone, or were chained anew"
            )


def test_results_of_an_older_ledger_are_chained_from_the_first_writing_on(four: Path) -> None:
    older = "DROP TABLE chain; DROP TABLE begun; PRAGMA user_version = 1"
    with tampered(four, older) as path:
        assert chain_of(path) == Chain(0, START)
        assert chain_of(path).text == "none of its results is chained yet"
        with Ledger(path) as ledger:
            ledger.record(counted(260_000, 200_000))
            chain = ledger.chain()
            assert len(ledger.results()) == 5
        assert (chain.rows, chain.adopted, chain.wrong) == (5, 4, None)
        assert "(5, 4 of them recorded before there was a chain)" in chain.text


def test_two_writers_make_one_chain(tmp_path: Path) -> None:
    with Ledger(tmp_path / "a.sqlite") as one, Ledger(tmp_path / "a.sqlite") as other:
        for writer in (one, other, other, one, other):
            writer.record(counted(250_000, 200_000))
            assert one.head() == other.head()
        assert one.chain() == other.chain(one.head())
        assert one.chain().rows == 5
