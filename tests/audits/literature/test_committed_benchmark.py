"""The benchmark's committed page says what its committed record holds."""

from __future__ import annotations

from pathlib import Path

from audits.literature.page import markdown
from audits.literature.rows import rows
from audits.literature.study import Study

FOLDER = Path(__file__).resolve().parents[3] / "reports" / "literature"


def test_the_committed_page_is_made_of_the_committed_record() -> None:
    study = Study.from_json((FOLDER / "literature.json").read_text(encoding="utf-8"))
    made = markdown(study.records, study.failed, study.groups, study.machine, study.command)
    assert made == (FOLDER / "literature.md").read_text(encoding="utf-8")
    assert [record.name for record in study.records] == [row.name for row in rows()]
    assert study.failed == ()
    for name in ("against-exact", "against-executions"):
        assert (FOLDER / f"{name}.svg").stat().st_size > 1_000
        assert (FOLDER / f"{name}.png").stat().st_size > 1_000
