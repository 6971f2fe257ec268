"""The report of the published benchmark: bounds from counts, sentences from records, files whole or not at all."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from audits.literature import expected, figures, study
from audits.literature.page import LONGEST, comparison, markdown, summary, witness
from audits.literature.published import PUBLISHED, of
from audits.literature.record import CONFIDENCE, CONFIDENCES, Failed, Point, Record
from audits.literature.rows import rows
from audits.literature.sections import MARK, bounds, closeness, costs, tables
from audits.literature.study import Study
from audits.literature.table import Table, escape
from dpaudit.certify import CoinFlip, certify
from dpaudit.claims import PureDP
from tests.cases import for_each

RUNS = 25_000_000


def point(runs: int = RUNS, *, loss: float = 0.1, mass: float = 0.5, exact: float | None = 0.1) -> Point:
    """An audit whose counts are those expected of an event of this mass and log ratio."""
    side = int(0.45 * runs)
    hits = round(side * mass)
    others = round(hits * math.exp(-loss))
    best = point_bound(hits, others, side)
    return Point(
        runs, runs - 7, hits, others, side, side, "one less", "1", "0", "output <= 0.5", 3.0, 2.0, exact, best, best,
        hits / side, others / side, 0.0,
    )  # fmt: skip


def point_bound(hits: int, others: int, side: int) -> float:
    bound = certify(CoinFlip(hits, others, side, side), PureDP(0.1), CONFIDENCE).epsilon_lower
    assert bound is not None
    return bound


def record(name: str = "Laplace", *, exact: float | None = 0.1, **given: Any) -> Record:
    """A record with two audits."""
    points = (point(100_000, exact=exact, **given), point(exact=exact, **given))
    return Record(
        name, "dpaudit.catalogue.additive:laplace", {"epsilon": 0.1}, "PureDP(epsilon=0.1)", 0.1, False, 2, exact,
        exact, 0.1, "closed form", 1e-12, "", 0.01, points,
    )  # fmt: skip


def changed(each: Record, **main: Any) -> Record:
    """The record with something else in its last audit."""
    return dataclasses.replace(each, points=(*each.points[:-1], dataclasses.replace(each.main, **main)))


def every_row() -> list[Record]:
    """A record of every row; three of them with an infinite loss."""
    without_end = {"NoisyMax4", "SVT5", "SVT34Parallel"}
    return [
        record(each.name, exact=math.inf if each.name in without_end else 20.0, loss=12.5, mass=0.1)
        for each in PUBLISHED
    ]


def test_the_published_rows_are_those_of_the_benchmark() -> None:
    assert [each.name for each in PUBLISHED] == [row.name for row in rows()]
    for row in rows():
        assert len(row.pairs) == of(row.name).pairs, row.name
        assert row.name in dict.fromkeys(expected.comparable_names()) or row.name in ("Snapping", "NoisySum")


def test_bounds_are_those_of_the_certifier_and_fall_with_confidence() -> None:
    found = point()
    for confidence in CONFIDENCES:
        assert found.bound(confidence) == certify(found.evidence, PureDP(0.1), confidence).epsilon_lower
    assert found.bound(0.9999) < found.bound(0.95) < found.bound(0.90) < 0.1
    assert found.two_intervals < found.bound(0.90)  # the looser rule at the same confidence


def cells(made: Table) -> dict[str, str]:
    """The first row of a table, by the heads of its columns."""
    return dict(zip(made.header, made.rows[0], strict=True))


def test_a_bound_above_the_truth_is_marked_everywhere() -> None:
    right, wrong = record("Laplace"), record("RAPPOR", exact=0.0996)
    assert not right.main.above_the_truth(0.90)
    assert not wrong.main.above_the_truth(0.9999)
    wrong = changed(wrong, exact=0.0976)
    assert wrong.main.above_the_truth(0.9999)
    assert cells(bounds([wrong]))["ours, 0.9999"].endswith(MARK)
    assert cells(bounds([wrong]))["DP-Sniper, network"] == f"0.3008 {MARK}"
    told = list(summary([right, wrong], ()))
    assert sum("RAPPOR; marked" in sentence for sentence in told) == len(CONFIDENCES)
    assert any("0.9999" in sentence and "Laplace" not in sentence for sentence in told)


@for_each(("loss", "above"), [(0.1, "yes"), (0.09, "no")])
def test_a_row_is_compared_with_the_better_published_bound(loss: float, above: str) -> None:
    made = record("Laplace", loss=loss)
    assert of("Laplace").best is of("Laplace").network
    assert expected.compared(made) is (above == "yes")
    assert bounds([made]).rows[0][-1] == above
    assert any(f"{'1' if above == 'yes' else '0'} of 1 are above" in sentence for sentence in summary([made], ()))


def test_what_was_not_published_is_a_dash() -> None:
    made = record("NoisySum")
    assert bounds([made]).rows[0][-4:] == costs([made]).rows[0][-4:] == ("-", "-", "-", "-")
    assert expected.compared(made) is None


def test_an_unknown_law_is_said_and_nothing_is_made_up() -> None:
    known = record("NumericalSVT")
    made = dataclasses.replace(
        changed(known, exact=None, oracle=None, oracle_all=None),
        exact=None, catalogued=None, ceiling=None, method="", error=None, unknown="no quadrature",
    )  # fmt: skip
    assert closeness([made]).notes == ("No law with a stated error is known for: NumericalSVT (no quadrature).",)
    unknown = ("relative error of the law", "part reached", "best event, all pairs", "ceiling at mass 0.01")
    assert [cells(closeness([made]))[name] for name in unknown] == ["-"] * 4
    assert "No law with a stated error is known here." in "\n".join(comparison([made]))
    assert made.agrees
    assert cells(closeness([dataclasses.replace(known, error=1.01e-5)]))["relative error of the law"] == "1.1e-5"


# what the committed page does not show, each beside one that is right
APART = dataclasses.replace(record("SVT6"), catalogued=0.2)
SLOW = changed(record("Laplace"), executions=24_999_000, cpu_s=3.01)
GROUPS = [Table("Soundness", ("a",), (("1",),), verdict="No count is above."), Table("Other", ("a",), ())]


@for_each(
    ("told", "words"),
    [
        (summary([SLOW], ()), "took 24,999,000 executions and 4 CPU seconds"),  # rounded against us
        (summary([SLOW], ()), "614,000,000 with each classifier, 24 times"),  # 24.56
        (costs([SLOW]).rows[0], "3.1"),
        (costs([SLOW]).rows[0], "1,800,000"),
        (summary([record("Laplace"), record("Snapping")], ()), "1 of 1 are above"),  # no two published bounds
        (bounds([record("Snapping")]).rows[0][-1:], "yes"),
        (bounds([record("SVT5", exact=math.inf)]).rows[0], "another mechanism"),
        (list(summary([record()], (), GROUPS))[-1:], "Soundness, below: No count is above."),
        (GROUPS[0].markdown()[1:2], "No count is above."),
        (comparison([record("Laplace"), APART]), "for 1 of 2; not agreeing: SVT6 (0.2)"),
        (comparison([record("Laplace")]), "not agreeing: none"),
        (comparison([record("RAPPOR", exact=0.3001)]), "RAPPOR (DP-Sniper, network 0.3008, exact 0.3001)"),
    ],
)
def test_what_is_told(told: Iterable[str], words: str) -> None:
    assert words in "\n".join(told)


def test_what_is_not_told_of_other_rows() -> None:
    assert "NumericalSVT." not in "\n".join(comparison([record("Laplace")]))
    assert "SVT5" not in "\n".join(comparison([record("SVT5", exact=3.0)])), "another mechanism"


def test_expectations_are_judged_at_their_own_size_alone() -> None:
    met = every_row()
    judged = list(expected.expectations(met))
    assert [each.words for each in judged if not each.met] == []
    unknown = [changed(each, chance_p=None) if each.name == "SVT1" else each for each in met]
    assert [each.found for each in expected.expectations(unknown) if not each.met] == ["all; not known for SVT1"]
    assert len(judged) == 5
    smaller = [changed(each, asked=1_000_000) for each in met]
    assert list(expected.expectations(smaller)) == []
    far = [each if each.name != "SVT5" else changed(each, oracle_all=1.2 * each.main.bound()) for each in met]
    (only,) = (each for each in expected.expectations(far) if not each.met)
    assert only.found == "all but SVT5 (0.833)"
    slow = [changed(each, cpu_s=18.5) for each in met]
    assert [each.found for each in expected.expectations(slow) if not each.met] == ["370 s"]
    missed = Table(expected.STATDP, ("a", "b"), (("iSVT4", expected.MISSED), ("iSVT1", "yes")))
    assert [each.found for each in expected.expectations(met, [missed], 1_801.0) if not each.met] == [
        "missed: iSVT4",
        "1,801 s",
    ]


def test_a_study_comes_back_from_its_record() -> None:
    groups = (Table("Others", ("a", "b"), (("1", "2"),), ("before",), ("after",), "verdict"),)
    made = Study(tuple(every_row()[:2]), (Failed("SVT9", "x"),), groups, {"python": "3.11"}, "python -m it")
    text = made.to_json()
    assert Study.from_json(text) == made
    assert Study.from_json(text).files() == made.files()  # page and figures are functions of the record
    first = json.loads(text)["rows"][0]
    assert first["points"][-1]["bounds"]["0.9999"] == made.records[0].main.bound(0.9999)
    assert first["published"]["network"]["epsilon"] == 0.0976
    with pytest.raises(ValueError, match="schema"):
        Study.from_json("{}")


def test_the_page_escapes_what_is_not_its_own() -> None:
    odd = changed(record("Laplace"), event="output is 'a`b|c' <= 1 " + "x" * LONGEST)
    item = witness(odd)
    assert item.count("`") == 2
    assert "..." in item
    page = markdown([odd], [Failed("A|B", "<script>")], (), {"platform": "a_b"}, "python -m it")
    assert "<script>" not in page.replace("\\<script\\>", "")
    assert r"A\|B" in page
    assert escape("a\nb") == "a b"
    with pytest.raises(ValueError, match="2 cells"):
        Table("t", ("a",), (("1", "2"),))


def test_a_study_in_which_every_row_failed_still_has_a_page(tmp_path: Path) -> None:
    made = Study((), (Failed("Laplace", "no memory"),))
    paths = study.write(made, tmp_path)
    assert sorted(path.name for path in paths) == ["literature.json", "literature.md"]
    assert "no memory" in (tmp_path / "literature.md").read_text()
    assert tables((), made.failed)[0].rows == (("Laplace", "no memory"),)


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Study((record(),))
    study.write(made, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(before) == 6

    def fails(*_: object) -> dict[str, bytes]:
        raise RuntimeError("no canvas")

    monkeypatch.setattr(figures, "against_executions", fails)
    with pytest.raises(RuntimeError, match="no canvas"):
        study.write(Study((record(loss=0.05),)), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_figures_show_every_row_and_are_the_same_each_time() -> None:
    rows_of_both, known = every_row()[6:8], {each.name: each for each in PUBLISHED}  # one of them without end
    for draw in (figures.against_exact, figures.against_executions):
        first = draw(rows_of_both, known)
        assert first["svg"] == draw(rows_of_both, known)["svg"]
        text = first["svg"].decode()
        for each in rows_of_both:
            assert f">{each.name}</text>" in text, each.name
        assert first["png"].startswith(b"\x89PNG")
    # a row that certified nothing, with a law that is not known
    nothing = dataclasses.replace(
        changed(record("SVT3"), hits_p=0, hits_q=0, oracle=None, oracle_all=None), exact=None, unknown="no law"
    )
    assert b"SVT3" in figures.against_executions([nothing], known)["svg"]
