"""Stored files are written again byte for byte, and their parts are read by the types of their fields alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dpaudit.base import validate
from dpaudit.base.strict import keys_of, models, stored, value_of
from dpaudit.certify import CoinFlip
from dpaudit.certify.sequential import Block, Milestones
from dpaudit.claims import Claim
from dpaudit.events import Event, Partition, event_from_dict
from dpaudit.report import exchange
from dpaudit.results.result import AuditResult, Finding
from dpaudit.results.stored import load_either, loads
from dpaudit.results.stored.models import model_of
from dpaudit.results.suite import SuiteEntry, SuiteResult
from tests.cases import for_each
from tests.golden import example

ROOT = Path(__file__).resolve().parents[2]
FORMATS = ("dpaudit.result/1", "dpaudit.suite/1")
FILES = [path for folder in ("reports", "tests") for path in sorted((ROOT / folder).rglob("*.json"))]
STORED = [path for path in FILES if json.loads(path.read_text(encoding="utf-8")).get("schema") in FORMATS]


def _written(held: AuditResult | SuiteResult) -> str:
    return held.to_json() if isinstance(held, AuditResult) else exchange.json_suite(held)


def test_there_are_some() -> None:
    assert {path.name for path in STORED} >= {"result.json", "suite.json"}


@pytest.mark.parametrize("path", STORED, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_stored_file_is_written_again_byte_for_byte(path: Path) -> None:
    assert _written(load_either(path)) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("made", [example.result(), example.kept(), example.result(provenance={}, histogram=None)])
def test_a_result_of_the_tests_is_written_again_byte_for_byte(made: AuditResult) -> None:
    assert loads(made.to_json()).to_json() == made.to_json()


def _parts(value: Any) -> Iterator[Any]:
    """Every dataclass in a value that is stored by its keys, the inner ones first."""
    inner = value if isinstance(value, tuple) else ()
    if is_dataclass(value) and not isinstance(value, Claim | Event):
        inner = tuple(getattr(value, each.name) for each in fields(value))
    for each in inner:
        yield from _parts(each)
    if is_dataclass(value) and not isinstance(value, Claim | Event | AuditResult | SuiteResult | SuiteEntry | Finding):
        yield value


OWN = {Event: lambda event, _: event_from_dict(event), Event | Partition: lambda event, _: event_from_dict(event)}
BLOCK = Block(example.result().witness.event, "first", 0.5, 0.25, 0.0, CoinFlip(3, 1, 10, 10))  # type: ignore[arg-type]
PARTS = {
    type(each): each
    for whole in (example.result(milestones=Milestones((10, 20))), example.kept(), example.reviewed_suite(), BLOCK)
    for each in _parts(whole)
}


@for_each("kind", PARTS, ids=lambda kind: kind.__name__)
def test_a_part_is_read_back_by_its_own_types(kind: type) -> None:
    written = json.loads(json.dumps(stored(PARTS[kind])))
    msgspec.convert(written, model_of(kind))
    assert value_of(kind, written, OWN) == PARTS[kind]
    for key in written:
        if key not in (*getattr(kind, "LATER", ()), "place", "kind"):  # the kind may be missing where there is only one
            with pytest.raises(msgspec.ValidationError):
                msgspec.convert({name: each for name, each in written.items() if name != key}, model_of(kind))
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**written, "further": 1}, model_of(kind))


@for_each("kind", [AuditResult, SuiteResult, SuiteEntry, Finding, *PARTS], ids=lambda kind: kind.__name__)
def test_what_may_be_missing_is_a_key(kind: type) -> None:
    later = getattr(kind, "LATER", ())
    assert set(getattr(kind, "SPARSE", ())) <= set(later) <= set(keys_of(kind))


def test_limits_of_types_are_those_of_files() -> None:
    model = models({})
    for kind, right, wrong in (
        (validate.Count, (0, 2**63 - 1), (-1, 2**63, 0.5, True)),
        (validate.AtLeastOne, (1,), (0,)),
        (validate.Probability, (0.0, 1.0), (-0.1, 1.1, "inf")),
        (validate.OpenProbability, (0.5,), (0.0, 1.0)),
        (validate.Bound, (0.0, "inf"), (-1.0, "-inf", "nan", None)),
        (validate.Edge, (-1.0, "inf", "-inf"), ("nan", None)),
    ):
        for value in right:
            assert stored(value_of(kind, msgspec.convert(value, model(kind)), {})) == value
        for other in wrong:
            with pytest.raises(msgspec.ValidationError):
                msgspec.convert(other, model(kind))
