"""The bound of a mechanism over time: every point, its order, and what changed between two of them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.ledger.database import LedgerError
from dpaudit.ledger.history import HEADER, as_csv, as_json, as_table, history, names
from dpaudit.ledger.results import Ledger
from tests.ledger import made
from tests.report import hostile


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
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


def test_points_say_what_changed_since_the_one_before(ledger: Ledger) -> None:
    points = history(ledger, "noisy count, whole noise")
    assert [point.source_changed for point in points] == [None, True, False, None]
    assert [point.question_changed for point in points] == [None, False, True, False]
    assert [point.record.verdict for point in points] == ["NOT_REFUTED", "NOT_REFUTED", "REFUTED", "NOT_REFUTED"]
    assert names(points) == ("noisy count, whole noise",)
    both = history(ledger, "counts:noisy_count")
    assert len(both) == 5
    assert names(both) == ("noisy count, whole noise", "=1+1")
    assert [point.record for point in history(ledger, points[0].record.fingerprint)] == [each.record for each in both]


def test_the_table_is_rounded_towards_safety(ledger: Ledger) -> None:
    lines = as_table(history(ledger, "counts:noisy_count")).splitlines()
    assert lines[0] == "noisy count, whole noise: 4 results, counts:noisy_count"
    assert lines[1].split() == list(HEADER)
    told = [
        "2026-01-02",
        "03:04",
        "aaaaaaaaaaaa",
        "1,000,000",
        "1",
        "0.676",
        "0.999",
        "not",
        "refuted",
        "first",
        "first",
    ]
    assert lines[2].split() == told
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


def test_csv_and_json_hold_the_whole_numbers(ledger: Ledger) -> None:
    points = history(ledger, "counts:noisy_count")
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


@pytest.mark.parametrize(
    ("column", "value"),
    [("verdict", "NOT_REFUTED"), ("verdict", "MAYBE"), ("lower", 0.5), ("lower", "x"), ("runs", 7), ("content", "{")],
)
def test_what_was_changed_in_the_ledger_is_not_shown(tmp_path: Path, column: str, value: object) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as ledger:
        ledger.record(made.counted(200_000, 50_000))
        ledger.rows(f"UPDATE results SET {column} = ?", (value,))
    with Ledger(path) as ledger, pytest.raises(LedgerError, match="result 1: not what was recorded; restore"):
        history(ledger, "counts:noisy_count")


def test_no_name_looks_changed(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger, ledger.transaction():
        for name in hostile.NAMES:
            ledger.record(made.counted(10, 5, name=name))
            assert as_table(history(ledger, name))


def test_what_is_not_there_names_what_is(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match=r"nothing: no audit, reference or fingerprint in .*: there is =1\+1, counts"):
        history(ledger, "nothing")
    with (
        Ledger(tmp_path / "empty.sqlite") as empty,
        pytest.raises(InvalidSpec, match="no result is recorded in it yet"),
    ):
        history(empty, "noisy count")
