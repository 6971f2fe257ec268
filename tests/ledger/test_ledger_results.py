"""Results in the ledger: whole, once, found again, and chained by hash; and the bound of a mechanism over time."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dpaudit.cli.group import exit_code
from dpaudit.errors import InvalidSpec
from dpaudit.ledger.database import START, Chain, LedgerError
from dpaudit.ledger.history import HEADER, as_csv, as_json, as_table, history, names
from dpaudit.ledger.results import Ledger, digest
from dpaudit.results.result import fingerprint
from tests.cases import for_each
from tests.golden import example
from tests.ledger import made
from tests.ledger.made import counted
from tests.report import hostile


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """An empty one."""
    with Ledger(tmp_path / "ledger.sqlite") as opened:
        yield opened


def test_a_result_comes_back_bit_for_bit_with_its_columns(ledger: Ledger) -> None:
    result = example.result()
    number = ledger.record(result, run="r", number=3)
    assert ledger.load(number) == result
    (record,) = ledger.results()
    assert ledger.load(record).to_json() == result.to_json()
    assert (record.id, record.run, record.number, record.name) == (number, "r", 3, "noisy count")
    assert (record.reference, record.fingerprint) == ("counts:noisy_count", fingerprint(result))
    assert (record.claimed, record.lower, record.epsilon_lower) == (1.0, result.certificate.lower, result.epsilon_lower)
    assert (record.verdict, record.runs, record.seed, record.confidence) == ("REFUTED", 1_000_000, 0, 0.999)
    assert (record.commit, record.version) == ("4f0c2d9b1e7a", "0.1.0")
    assert (record.mechanism, record.started) == ("0c6c1f0b8a5d4e21", "2025-01-31T09:30:00+00:00")
    assert record.representation is None


def test_an_audit_of_a_run_is_recorded_once(ledger: Ledger) -> None:
    result = example.result()
    again = replace(result, provenance={**result.provenance, "wall_s": 99.0})  # a resumed one may differ in these
    assert ledger.record(result, run="r", number=1) == ledger.record(again, run="r", number=1)
    assert len(ledger.results()) == 1
    with pytest.raises(LedgerError, match="audit 1 of run r has another result already; start a new run"):
        ledger.record(made.counted(9, 3), run="r", number=1)
    assert ledger.load(1) == result
    ledger.record(result, run="s", number=1)
    ledger.record(result)
    ledger.record(result)  # outside runs every result is one of its own
    assert len(ledger.results()) == 4


def test_failures_of_a_run_keep_their_first_reason(ledger: Ledger) -> None:
    ledger.fail("odd", "it broke", 3, run="r", number=2)
    ledger.fail("odd", "it broke again", 70, run="r", number=2)
    assert ledger.failure("r", 2) == ("it broke", 3)
    assert ledger.failure("s", 2) is None
    ledger.record(example.result(), run="r", number=1)
    assert [None if each is None else each.number for each in map(ledger.of_run, "rs", (1, 1))] == [1, None]


def test_results_are_found_by_name_reference_fingerprint_and_commit(ledger: Ledger) -> None:
    one, two = made.at(example.result(), "abcdef012345"), made.at(made.counted(9_000, 8_000), "abc9-dirty")
    bits = made.with_bits(made.at(made.counted(9_000, 8_000, name="bits"), None))
    for each in (one, two, bits, one):
        ledger.record(each)
    for named in ("abcdef", "abcdef012345", "abcdef012345" + 28 * "0"):
        assert [record.id for record in ledger.results(commit=named)] == [1, 4]
    assert [record.id for record in ledger.results(commit="abc9-dirty")] == [2]
    for named in ("abc9", "abcdee", "abcdef-dirty", "_bcdef", "%", ""):
        assert not [record for record in ledger.results(commit=named) if record.commit != "abcdef012345"]
    assert [record.id for record in ledger.find("bits")] == [3]
    assert [record.id for record in ledger.find("counts:noisy_count")] == [1, 2, 3, 4]
    assert [record.id for record in ledger.find(fingerprint(bits, representation=True))] == [3]
    assert ledger.find("' OR 1=1 --") == []
    assert ledger.near("count") == ["counts:noisy_count", "noisy count", "noisy count, whole noise"]


def test_a_name_is_a_name_whatever_it_holds(ledger: Ledger) -> None:
    with ledger.transaction():  # one commit for all
        for name in hostile.NAMES:
            ledger.record(replace(example.result(), spec={**example.result().spec, "name": name}))
    for number, name in enumerate(hostile.NAMES, start=1):
        assert number in [record.id for record in ledger.find(name)]
        assert as_table(history(ledger, name))
    for number, name in list(enumerate(hostile.NAMES, start=1))[::6]:
        assert ledger.load(number).name == name


def test_a_result_that_was_changed_in_the_file_is_refused(ledger: Ledger) -> None:
    ledger.record(example.result())
    stored = "REPLACE(content, '\"hits_p\": 82289', '\"hits_p\": 82290')"
    with ledger.transaction() as connection:
        connection.execute(f"UPDATE results SET content = {stored}")
    with pytest.raises(LedgerError, match="result 1: not what was recorded; restore the ledger"):
        ledger.load(1)
    with pytest.raises(LedgerError, match="result 7: there is none"):
        ledger.load(7)
    with ledger.transaction() as connection:  # one who also mends the digest meets the arithmetic
        changed = connection.execute("SELECT content FROM results").fetchone()[0]
        connection.execute("UPDATE results SET digest = ?", (digest(changed),))
    with pytest.raises(InvalidSpec, match="result 1: "):
        ledger.load(1)


# the bound of a mechanism over time: every point, its order, and what changed between two of them


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """Four results of one audit and one of another, whose name a spreadsheet would compute."""
    first = made.counted(100_000, 50_000)
    path = tmp_path_factory.mktemp("history") / "ledger.sqlite"
    with Ledger(path) as opened, opened.transaction():  # one commit for all
        for result in (
            made.at(first, "a" * 40),
            made.at(made.sourced(first, "ff"), "b" * 40 + "-dirty", "2026-02-01T00:00:00+00:00"),
            made.at(made.counted(100_000, 50_000, name="=1+1"), None),
            made.at(made.sourced(made.counted(200_000, 50_000, runs=2_000_000), "ff"), None),
            made.at(made.sourced(made.counted(100_000, 50_000, runs=2_000_000), None), None),
        ):
            opened.record(result)
    with Ledger(path, read_only=True) as opened:
        yield opened


def test_points_say_what_changed_since_the_one_before(recorded: Ledger) -> None:
    points = history(recorded, "noisy count, whole noise")
    assert [point.source_changed for point in points] == [None, True, False, None]
    assert [point.question_changed for point in points] == [None, False, True, False]
    assert [point.record.verdict for point in points] == ["NOT_REFUTED", "NOT_REFUTED", "REFUTED", "NOT_REFUTED"]
    assert names(points) == ("noisy count, whole noise",)
    both = history(recorded, "counts:noisy_count")
    assert len(both) == 5
    assert names(both) == ("noisy count, whole noise", "=1+1")
    assert [point.record for point in history(recorded, points[0].record.fingerprint)] == [each.record for each in both]


def test_the_table_is_rounded_towards_safety(recorded: Ledger) -> None:
    lines = as_table(history(recorded, "counts:noisy_count")).splitlines()
    assert lines[0] == "noisy count, whole noise: 4 results, counts:noisy_count"
    assert lines[1].split() == list(HEADER)
    assert " ".join(lines[2].split()) == (
        "2026-01-02 03:04 aaaaaaaaaaaa 1,000,000 1 0.676 0.999 not refuted first first"
    )
    assert lines[3].split()[2] == "bbbbbbbbbbbb-dirty"
    assert lines[4].split()[-4:] == ["REFUTED", "same", "text", "otherwise"]
    assert lines[5].split()[-4:] == ["not", "known", "the", "same"]
    assert lines[6:8] == ["", "=1+1: 1 result, counts:noisy_count"]


def test_equal_text_with_other_counts_is_not_called_the_same(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as opened:
        for hits in (100_000, 100_000, 200_000):
            opened.record(made.at(made.counted(hits, 50_000), None))
        points = history(opened, "counts:noisy_count")
    assert [point.source_changed for point in points] == [None, False, None]
    assert as_table(points).splitlines()[-1].split()[-5:] == ["REFUTED", "not", "known", "the", "same"]


def test_csv_and_json_hold_the_whole_numbers(recorded: Ledger) -> None:
    points = history(recorded, "counts:noisy_count")
    rows = list(csv.DictReader(io.StringIO(as_csv(points))))
    told = json.loads(as_json(points))
    assert len(rows) == len(told) == 5
    for point, row, each in zip(points, rows, told, strict=True):
        assert float(row["lower"]) == each["lower"] == point.record.lower
        assert each["started"].startswith("2026-0")
        assert (row["commit"] or None) == each["commit"]
        assert row["source_changed"] == {None: "", True: "yes", False: "no"}[each["source_changed"]]
    assert rows[2]["audit"] == "'=1+1"
    assert told[2]["audit"] == "=1+1"


@for_each(
    ("column", "value"),
    [("verdict", "NOT_REFUTED"), ("verdict", "MAYBE"), ("lower", 0.5), ("lower", "x"), ("runs", 7), ("content", "{")],
)
def test_what_was_changed_in_the_ledger_is_not_shown(column: str, value: object) -> None:
    with TemporaryDirectory() as folder, Ledger(Path(folder, "ledger.sqlite")) as ledger:
        ledger.record(made.counted(200_000, 50_000))
        ledger.rows(f"UPDATE results SET {column} = ?", (value,))
        with pytest.raises(LedgerError, match="result 1: not what was recorded; restore"):
            history(ledger, "counts:noisy_count")


def test_what_is_not_there_names_what_is(recorded: Ledger, tmp_path: Path) -> None:
    with pytest.raises(
        InvalidSpec, match=r"nothing: the ledger .* has no such audit, function or fingerprint; there is =1\+1, counts"
    ):
        history(recorded, "nothing")
    with (
        Ledger(tmp_path / "empty.sqlite") as empty,
        pytest.raises(InvalidSpec, match="no result is recorded in it yet"),
    ):
        history(empty, "noisy count")


# results chained by hash: what is changed, taken out, put in, moved or cut off is noticed, and old ledgers join


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
