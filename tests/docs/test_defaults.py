"""The defaults of the spec reference are the real ones: who writes them down asks the same question."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import ModuleType

import pytest

import dpaudit
from dpaudit.execution.engine import Engine
from dpaudit.options import IN_SPECS, OPTIONS, Working, options
from dpaudit.spec.questions import read_spec
from dpaudit.sweeps.spec import read_sweep_file
from tests.docs.pages import ROOT

AUDIT = 'name = "a"\nmechanism = "m:f"\nclaim = { epsilon = 1.0 }\npair = { first = 1, second = 2 }\n'
SWEEP = 'mechanisms = "dpaudit.catalogue.additive:laplace"\n'
LEFT_OUT = {"relation", "pairs", "pattern", "upper", "record", "data"}
LEFT_OUT |= {name for name, each in IN_SPECS.items() if each.default is None and name != "isolation"}


@pytest.fixture
def schemas(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs" / "hooks"), *sys.path])
    return importlib.import_module("reference.schemas")


def defaults(schemas: ModuleType, table: str) -> dict[str, str]:
    """The default of each key of a table as the page shows it."""
    told = schemas.schema("spec")["$defs"][table]["properties"]
    return {key: unescape(re.sub("<.*?>", "", schemas._default(table, key, value))) for key, value in told.items()}


def asked(text: str) -> tuple[object, ...]:
    Path("spec.toml").write_text(f'schema = "dpaudit.audit/1"\n[[audit]]\n{text}')
    (question,) = read_spec("spec.toml")
    question = replace(question, isolation=None)
    return question.outline(), question


def test_written_down_the_defaults_ask_the_same(
    schemas: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = {key: value for key, value in defaults(schemas, "AuditTable").items() if key not in AUDIT}
    assert {key for key, value in told.items() if value == "*left out*"} == LEFT_OUT
    shown = {key: value for key, value in told.items() if value not in ("*left out*", "none")}
    assert {"runs", "confidence", "seed", "expect", "stopping", "isolation"} <= shown.keys()
    for key, value in shown.items():
        assert asked(f"{AUDIT}{key} = {value}\n") == asked(AUDIT), key
    with (
        Engine(1, supervised=True) as left_out,
        Engine(1, supervised=True, isolation=json.loads(shown["isolation"])) as said,
    ):
        assert left_out.isolated == said.isolated


def test_so_do_those_of_a_sweep(schemas: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sweep.toml"

    def grid(text: str) -> object:
        path.write_text(f'schema = "dpaudit.audit/1"\n[sweep]\n{text}')
        return read_sweep_file(path)

    for key, value in defaults(schemas, "SweepTable").items():
        if value not in ("*left out*", "none", "*required*"):
            assert grid(f"{SWEEP}{key} = {value}\n") == grid(SWEEP), key


def test_the_signature_of_audit_is_that_of_the_declared_options() -> None:
    keywords = {name: each.default for name, each in inspect.signature(dpaudit.audit).parameters.items()}
    declared = {each.name: each.usual for each in (*OPTIONS.values(), *options(Working)) if each.keyword}
    assert {name: keywords[name] for name in declared} == declared
    others = {"mechanism", "pair", "pairs", "data", "claim", "epsilon", "delta", "relation", "parameters"}
    assert keywords.keys() - declared.keys() == others | {"name", "upper", "record"}


def test_the_table_of_keywords_has_each_of_audit_with_its_default(schemas: ModuleType) -> None:
    page = (ROOT / "docs" / "how" / "keywords.md").read_text(encoding="utf-8")
    rows = importlib.import_module("reference.keywords").rows
    page = re.sub("<!-- keywords: (.*) -->", lambda slot: rows(slot[1]), page)
    told = dict(re.findall(r"^\| `(\w+)` \| `([^`|]+)` \| \S.* \|$", page, re.MULTILINE))
    wanted = inspect.signature(dpaudit.audit).parameters
    first, *keywords = wanted.values()
    assert first.name == "mechanism"
    assert {name: ast.literal_eval(said) for name, said in told.items()} == {
        each.name: each.default for each in keywords
    }
    assert page.count("\n| `") == len(keywords)  # none is there twice
