"""The benchmark's committed page says what its committed record holds."""

from __future__ import annotations

import json
from pathlib import Path

from audits.literature.page import markdown
from audits.literature.rows import rows
from audits.literature.study import Study

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "reports" / "literature"


def test_the_committed_page_is_made_of_the_committed_record() -> None:
    study = Study.from_json((FOLDER / "literature.json").read_text(encoding="utf-8"))
    made = markdown(study.records, study.failed, study.groups, study.machine, study.command)
    assert made == (FOLDER / "literature.md").read_text(encoding="utf-8")
    assert [record.name for record in study.records] == [row.name for row in rows()]
    assert study.failed == ()
    for name in ("against-exact", "against-executions"):
        assert (FOLDER / f"{name}.svg").stat().st_size > 1_000
        assert (FOLDER / f"{name}.png").stat().st_size > 1_000


def test_the_comparison_with_dp_sniper_is_counted_by_one_rule_wherever_it_is_told() -> None:
    """Of the rows with both of its classifiers: on the page of the benchmark, and beside other tools."""
    stored = json.loads((FOLDER / "literature.json").read_text(encoding="utf-8"))["rows"]
    both = [row for row in stored if row["published"]["logistic"] and row["published"]["network"]]
    above, below = (sum(row["above_dp_sniper"] is it for row in both) for it in (True, False))
    assert above + below == len(both)
    tools = " ".join((ROOT / "docs" / "tools.md").read_text(encoding="utf-8").split())
    assert f"DP-Sniper's two in {above} of the {len(both)} rows that have both. In the {below} others" in tools
    page = (FOLDER / "literature.md").read_text(encoding="utf-8")
    assert f"{above} of {len(both)} are above the better one of DP-Sniper's two classifiers" in page
    took = sorted(row["published"]["dp_sniper_executions"] for row in both)
    assert (round(took[0] / 1e6), round(took[-1] / 1e8)) == (614, 13)
