"""Results in the ledger: whole, once, and found again by whatever a person knows of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.ledger.database import LedgerError
from dpaudit.ledger.results import Ledger, digest
from dpaudit.results.result import fingerprint
from tests.golden import example
from tests.ledger import made
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
