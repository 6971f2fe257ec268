"""Writes the golden files anew: `python -m tests.golden.rewrite`. A change of one needs a stated reason."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from dpaudit.account import account
from dpaudit.report import csv_, exchange, markdown, record_names
from dpaudit.results.stored import json_schema, suite_schema
from tests.account.results import KINDS, made
from tests.golden import example

FOLDER = Path(__file__).parent


@cache
def contents() -> dict[str, str]:
    """What each golden file must hold, by today's code."""
    reviewed = example.reviewed_suite()
    records = record_names(reviewed)
    return {
        "result.json": exchange.json_result(example.result()),
        "result.schema.json": json.dumps(json_schema(), indent=1) + "\n",
        **{f"accounts/{kind}.txt": f"{account(made(kind))}\n" for kind in KINDS},
        "result.md": markdown.render_result(example.kept()),
        "suite.md": markdown.render_suite(reviewed, records, links=True),
        "suite.json": exchange.json_suite(reviewed),
        "suite.schema.json": json.dumps(suite_schema(), indent=1) + "\n",
        "suite.junit.xml": exchange.junit_suite(reviewed),
        "suite.sarif": exchange.sarif_suite(reviewed, records),
        "suite.csv": csv_.render_suite(reviewed, records),
    }


if __name__ == "__main__":
    (FOLDER / "accounts").mkdir(exist_ok=True)
    for name, whole in contents().items():
        (FOLDER / name).write_text(whole, encoding="utf-8")
