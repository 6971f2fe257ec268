"""The benchmark's committed page says what its committed record holds."""

from __future__ import annotations

import json
import math
import re
import warnings
from pathlib import Path

import pytest

from audits.digest import MADE_OF, digest, stale
from audits.literature.page import markdown, summary
from audits.literature.published import of
from audits.literature.record import PEERS, ROUNDING
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
    """Of the rows with both of its classifiers; a bound above the exact loss does not count as above theirs."""
    study = Study.from_json((FOLDER / "literature.json").read_text(encoding="utf-8"))
    stored = json.loads((FOLDER / "literature.json").read_text(encoding="utf-8"))["rows"]
    both = [row for row in stored if row["published"]["logistic"] and row["published"]["network"]]
    for row, record in zip(stored, study.records, strict=True):
        best = of(record.name).best
        if best is not None:
            exact = math.inf if record.main.exact is None else record.main.exact * (1.0 + ROUNDING)
            assert row["above_dp_sniper"] is (best.epsilon < record.main.bound(PEERS) <= exact), record.name
    above = sum(row["above_dp_sniper"] for row in both)
    told = f"{above} of {len(both)} are above the better one of DP-Sniper's two classifiers"
    assert told in "\n".join(summary(study.records, study.failed, study.groups))
    tools = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8")
    assert "<!-- stored: literature -->" in tools  # the site takes the same sentences from the record
    for page in (ROOT / "README.md", ROOT / "reports" / "README.md", *(ROOT / "docs").rglob("*.md")):
        assert not re.search(r"\d+ of (the )?\d+ (rows|are above|claims)", page.read_text(encoding="utf-8")), page


@pytest.mark.filterwarnings("default:reports/")
def test_a_stored_report_of_other_code_is_noted() -> None:
    """A note among the warnings of the tests, and no failure: the reports are made again when search is done."""
    for report in MADE_OF:
        if (note := stale(report)) is not None:
            warnings.warn(note, stacklevel=1)


def test_a_note_names_the_code_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("audits.digest.ROOT", tmp_path)
    for folder in ("dpaudit/search", "dpaudit/account", "audits/literature", "reports/literature"):
        (tmp_path / folder).mkdir(parents=True)
    page, code = tmp_path / "reports/literature/literature.md", tmp_path / "dpaudit/search/look.py"
    code.write_text("1")
    page.write_text("")
    assert stale("literature") == "reports/literature is of other code (which it does not say): make literature"
    page.write_text(f"Made with: python 3.11, code digest {digest('literature')}.")
    (tmp_path / "dpaudit/account/words.py").write_text("1")  # decides nothing
    assert stale("literature") is None
    code.write_text("2")
    assert "is of other code" in str(stale("literature"))
