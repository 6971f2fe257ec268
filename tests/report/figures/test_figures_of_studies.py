"""Figures of a sweep and of a history: whose numbers they hold, what they leave out, and the files they become."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import matplotlib
import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.report.figures import history_drawing, study
from dpaudit.report.figures.study import grouped
from tests.report.figures.reading import lines, marks


def row(**changes: Any) -> dict[str, Any]:
    made = {
        "mechanism": "laplace", "certifier": "coin-flip", "stopping": "fixed", "runs": 1_000, "claimed_epsilon": 1.0,
        "epsilon_lower": 0.8, "true_epsilon": 1.0, "exact_epsilon": None, "proved": None, "verdict": "NOT_REFUTED",
        "runs_to_refute": None, "broken": False,
    }  # fmt: skip
    return made | changes


def test_the_scatter_has_a_row_for_each_audit_and_says_what_it_left_out() -> None:
    rows = [
        row(),
        row(epsilon_lower=1.5, true_epsilon=2.0, verdict="REFUTED"),
        row(epsilon_lower=None, verdict=None, error="no verdict"),
        row(claimed_epsilon="", epsilon_lower=1.0),
        row(claimed_epsilon=math.inf),
    ]
    drawing = study.claimed_against_certified(rows)
    assert [each[1:] for each in drawing.rows] == [
        ("1", "0.800", "1.000", "", "not refuted"),
        ("1", "1.50", "2.000", "", "REFUTED"),
    ]
    assert "3 rows of the table had no numbers" in drawing.description


def test_marks_of_the_scatter_stand_above_the_level_of_their_claim_where_it_is_exceeded() -> None:
    """Audits of one claim stand beside each other; none may seem to exceed a claim that it keeps."""
    rng = random.Random(11)
    rows = []
    for claimed in (0.1, 1.0, 8.0):
        for _ in range(12):
            lower = claimed * rng.uniform(0.5, 1.5)
            rows.append(row(claimed_epsilon=claimed, epsilon_lower=lower, true_epsilon=None,
                            verdict="REFUTED" if lower > claimed else "NOT_REFUTED"))  # fmt: skip
    svg = study.claimed_against_certified(rows).svg
    levels = lines(svg, "claim")[1:]  # after the key
    assert len(levels) == 3
    seen = {colour: marks(svg, colour)[1:] for colour in ("refuted", "first")}
    for colour, places in seen.items():
        for x, y in places:
            (level,) = (level for level in levels if level[0][0] <= x <= level[-1][0])
            assert (y < level[0][1]) is (colour == "refuted")
    assert len(seen["refuted"]) == sum(each["verdict"] == "REFUTED" for each in rows)
    assert len(seen["refuted"]) + len(seen["first"]) == len(rows)


def test_lines_are_told_apart_by_what_differs_and_take_medians() -> None:
    rows = [
        row(certifier=kind, runs=runs, epsilon_lower=lower)
        for kind, shift in (("coin-flip", 0.0), ("unconditional", 0.1))
        for runs in (100, 1_000)
        for lower in (0.1 + shift, 0.2 + shift, 0.9 + shift)
    ]
    drawing = study.bound_against_runs(rows)
    assert drawing.columns == ("procedure", "runs", "certified epsilon", "audits")
    assert drawing.rows[0] == ("coin-flip", "100", "0.200", "3")
    assert [each[0] for each in drawing.rows] == ["coin-flip"] * 2 + ["unconditional"] * 2
    assert float(drawing.rows[2][2]) <= 0.2 + 0.1


def test_many_procedures_are_left_together() -> None:
    rows = [row(mechanism=f"m{k}", runs=10 * (1 + k % 2)) for k in range(40)]
    lines = grouped(rows, lambda each: each["runs"], lambda each: each["epsilon_lower"])
    assert len(lines) == 12
    assert "all others" in lines
    assert sum(len(values) for series in lines.values() for values in series.values()) == 40


def test_power_counts_wrong_claims_alone() -> None:
    rows = [
        row(true_epsilon=2.0, verdict="REFUTED"),
        row(true_epsilon=2.0),
        row(true_epsilon=1.0),  # keeps its claim
        row(true_epsilon=None, broken=True, verdict="REFUTED"),
        row(true_epsilon=None, broken=False),
        row(true_epsilon=2.0, verdict=None),
    ]
    drawing = study.power_curves(rows)
    assert drawing.rows == (("laplace", "1000", "0.667", "3"),)
    assert "3 rows of the table" in drawing.description


def test_audits_that_missed_a_violation_are_counted_where_their_runs_have_no_place() -> None:
    rows = [
        row(true_epsilon=2.0, verdict="REFUTED", runs_to_refute=500),
        row(true_epsilon=2.0, verdict="REFUTED", runs_to_refute=700),
        row(true_epsilon=2.0),
        row(true_epsilon=1.0),  # a claim that holds was missed by nobody
    ]
    drawing = study.runs_to_refute(rows)
    assert drawing.rows == (("laplace", "1", "500", "2"),)
    assert "1 audit of a wrong claim that did not refute it" in drawing.description
    assert "1 row of the table had no numbers" in drawing.description


@pytest.mark.parametrize(
    "draw", [study.claimed_against_certified, study.bound_against_runs, study.power_curves, study.runs_to_refute]
)
def test_a_table_without_numbers_is_not_drawn(draw: Any) -> None:
    for rows in ([], [row(epsilon_lower=None, verdict=None)]):
        with pytest.raises(InvalidSpec, match="no row of the table"):
            draw(rows)


def test_files_are_the_same_every_time(tmp_path: Path) -> None:
    rows = [row(runs=runs, epsilon_lower=runs / 2_000.0) for runs in (100, 1_000)]
    for suffix, head in ((".png", b"\x89PNG\r\n"), (".svg", b"<?xml")):
        one = study.bound_against_runs(rows).save(tmp_path / f"one{suffix}").read_bytes()
        with matplotlib.rc_context({"lines.linewidth": 7.0, "savefig.dpi": 10.0}):
            other = study.bound_against_runs(rows).save(tmp_path / "deep" / f"other{suffix}").read_bytes()
        assert one == other
        assert one.startswith(head)
        assert b"matplotlib" not in one.lower()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["deep", "one.png", "one.svg"]


def test_a_history_holds_its_points_in_order() -> None:
    points = [
        {"started": "2026-01-05T10:00:00+00:00", "commit": "0123456789abcdef-dirty", "lower": 0.9876, "claimed": 1.0,
         "verdict": "NOT_REFUTED", "runs": 1_000_000},
        {"started": "2026-01-06T10:00:00+00:00", "commit": None, "epsilon_lower": 1.2345, "claimed": 1.0,
         "verdict": "REFUTED", "runs": 500},
        {"started": "2026-01-07T10:00:00+00:00", "commit": "beef", "lower": "inf", "claimed": None,
         "verdict": "REFUTED", "runs": 500},
    ]  # fmt: skip
    drawing = history_drawing(points, name="noisy count")
    assert drawing.title == "The certified bound over time: noisy count"
    assert [each[1:] for each in drawing.rows] == [
        ("0123456789ab-dirty", "1,000,000", "1", "0.987", "not refuted"),
        ("", "500", "1", "1.23", "REFUTED"),
        ("beef", "500", "", "inf", "REFUTED"),
    ]
    assert "2026-01-05" in drawing.svg
    assert history_drawing([]).rows == ()
