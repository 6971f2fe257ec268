"""Figures of suites, sweeps and histories; scales, words and colours; and names that try to be more than names."""

from __future__ import annotations

import itertools
import math
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import pytest

from dpaudit.claims import PureDP
from dpaudit.errors import InvalidSpec
from dpaudit.report.figures import Drawing, history_drawing, study, suite_drawing
from dpaudit.report.figures.distributions import distributions
from dpaudit.report.figures.panel import DARK, GLYPHS, LIGHT, STYLE, Scale, breadth, fitted, number, padded
from dpaudit.report.figures.study import grouped
from dpaudit.results.display import Verdict
from dpaudit.results.observations import Histogram
from dpaudit.results.suite import SuiteEntry, SuiteResult
from dpaudit.sweeps import Sweep
from tests.cases import for_each
from tests.golden import example
from tests.report import hostile
from tests.report.figures.reading import SVG, lines, marks, tree

SHAPES = {"path", "text", "clipPath", "rect"}
LONGEST = 130_000  # bytes of a drawing, however long the names


def pictures(name: str) -> list[Drawing | None]:
    made = hostile.result(name)
    held = Histogram(name, (0.0, 1.0), (), (1, 8, 1), (2, 6, 2), (name, "others"), (5, 1), (1, 5), 16, 16)
    made = example.changed(made, histogram=held, provenance={})
    rows = [
        {"mechanism": name, "parameters.k": name, "claimed_epsilon": 1.0, "epsilon_lower": 0.5, "runs": runs,
         "certifier": kind, "verdict": "NOT_REFUTED"}
        for runs, kind in ((100, name), (1_000, "other"))
    ]  # fmt: skip
    point = {"started": name, "commit": name, "lower": 1.0, "claimed": 1.0, "verdict": name, "runs": 5}
    return [
        distributions(made),
        suite_drawing(hostile.suite(name), ["a.html", None]),
        history_drawing([point], name=name),
        study.claimed_against_certified(rows),
        study.bound_against_runs(rows),
    ]


def test_what_a_user_wrote_is_text_and_nothing_else() -> None:
    for name in hostile.NAMES:
        for drawing in pictures(name):
            assert drawing is not None
            top = tree(drawing.svg)
            tags = {each.tag.removeprefix(SVG) for each in top.iter()} - {"svg", "title", "desc", "a"}
            assert tags <= SHAPES, name
            told = [drawing.title, drawing.description, *(text for row in drawing.rows for text in row)]
            told += ["".join(each.itertext()) for each in top.iter()]
            assert all(text.isprintable() for text in told), name
            assert not re.search(r"<(?!/?(?:svg|title|desc|path|text|clipPath|rect|a)\b)", drawing.svg), name
            assert len(drawing.svg.encode()) < LONGEST, name
            assert all(len(text) <= 1_100 for text in told), name


def test_mathematics_in_a_name_is_not_set_as_mathematics() -> None:
    entry = replace(example.suite().entries[0], name=r"cost $\frac{a}{b}$ and $x$")
    assert r"$x$" in suite_drawing(SuiteResult((entry,), 0.99)).svg
    broken = replace(entry, name=r"$\undefined{")
    assert r"$\undefined{" in suite_drawing(SuiteResult((broken,), 0.99)).svg


@for_each(
    ("link", "kept"),
    [
        ("noisy-count.html", "noisy-count.html"),
        ("pages/a%20b.html#top", "pages/a%20b.html#top"),
        ('x" onclick="y', "x&quot; onclick=&quot;y"),
        ("javascript:alert(1)", None),
        (" JavaScript:alert(1)", None),
        ("https://example.org", None),
        ("//example.org/x", None),
        ("data:text/html,x", None),
    ],
)
def test_links_lead_to_files_beside_the_page_and_nowhere_else(link: str, kept: str | None) -> None:
    suite = SuiteResult(example.suite().entries[:1], 0.99)
    svg = suite_drawing(suite, [link]).svg
    assert re.findall(r'<a href="([^"]*)">', svg) == ([] if kept is None else [kept])
    assert svg.count("<a") == (kept is not None)
    assert f'role="{"img" if kept is None else "group"}"' in svg  # an image has no links inside
    assert "noisy count" in svg


def test_the_overview_tells_every_audit_and_marks_what_nobody_expected() -> None:
    suite = example.suite()
    odd = replace(suite, entries=(replace(suite.entries[0], expect=Verdict.NOT_REFUTED), *suite.entries[1:]))
    plain, marked = suite_drawing(suite), suite_drawing(odd)
    assert [row[0] for row in plain.rows] == [entry.name for entry in suite.entries]
    assert [row[4] for row in plain.rows] == ["REFUTED", "not refuted", "no verdict"]
    assert plain.rows[0][1:3] == ("epsilon 1", "epsilon >= 1.96")
    assert plain.rows[1][3] == "1.0000"  # the exact loss of the pair
    assert "(!)" not in plain.svg
    assert "noisy count (!)" in marked.svg
    assert marked.rows[0][4] == "REFUTED, not expected"
    assert 'role="img"' in plain.svg


def test_a_refuted_claim_lies_left_of_its_bound_and_a_kept_one_right() -> None:
    """Read from the picture: the strokes of the claims, then the marks, in the order of the rows."""
    svg = suite_drawing(example.suite()).svg
    refuted, kept = (stroke[0][0] for stroke in lines(svg, "claim")[1:])
    assert marks(svg, "refuted")[-1][0] > refuted
    assert marks(svg, "first")[-1][0] < kept


def test_what_has_no_place_on_the_scale_is_said_to_stand_at_its_end() -> None:
    nothing = replace(example.result(), claim=PureDP(0.0))
    odd = suite_drawing(SuiteResult((SuiteEntry("zero", Verdict.REFUTED, nothing),), 0.99))
    assert "stands at its end" in odd.description
    assert "stands at its end" not in suite_drawing(example.suite()).description


def test_an_overview_of_a_hundred_audits_is_small_and_one_of_none_is_drawn() -> None:
    entries = tuple(replace(example.suite().entries[k % 3], name=f"audit {k}") for k in range(100))
    drawing = suite_drawing(SuiteResult(entries, 0.99), [f"audit-{k}.html" for k in range(100)])
    assert len(drawing.svg.encode()) < 120_000
    assert drawing.svg.count("<a ") == 100
    assert len(drawing.rows) == 100
    assert suite_drawing(SuiteResult((), 0.99)).rows == ()


# scales, words and colours of figures


GROUNDS = ("allowed", "event", "paper")
QUIET = ("rule", *GROUNDS)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255.0 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("values", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_and_words_stand_out_from_every_ground(values: dict[str, str]) -> None:
    for name in values.keys() - set(QUIET):
        assert contrast(values[name], values["paper"]) >= 4.5, name
        assert all(contrast(values[name], values[ground]) >= 3.0 for ground in GROUNDS), name
    assert all(contrast(values["ink"], values[ground]) >= 7.0 for ground in GROUNDS)


def test_every_colour_has_a_name_of_its_own_in_light_and_dark() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert len(set(LIGHT.values())) == len(LIGHT)
    assert all(STYLE.count(f"--dp-{name}:") == 2 for name in LIGHT)


def test_ticks_are_few_in_order_and_on_the_scale() -> None:
    rng = random.Random(5)
    for _ in range(400):
        low = 10.0 ** rng.uniform(-9.0, 6.0)
        for scale in (
            Scale(low, low * 10.0 ** rng.uniform(0.1, 9.0), log=True),
            Scale(-low, low * rng.uniform(0.01, 5.0)),
        ):
            ticks = scale.ticks()
            places = [at for at, _ in ticks]
            assert 1 <= len(ticks) <= 7, scale
            assert places == sorted(set(places))
            assert all(-1e-6 <= scale(at) <= 1.0 + 1e-6 for at in places)
            assert len({text for _, text in ticks}) == len(ticks), (scale, ticks)
            for at, text in ticks:
                assert float(text.replace(",", "")) == pytest.approx(at, rel=6e-3, abs=1e-12)


def test_scales_put_what_lies_beyond_far_outside_and_no_further() -> None:
    scale = Scale(1e-3, 1.0, log=True)
    assert scale([0.0, 1e-3, 1.0, math.inf]).tolist() == [-20.0, 0.0, 1.0, 20.0]
    assert scale(-1.0) == -20.0
    assert padded([math.inf, 2.0]).high < 3.0
    assert padded([]) == padded([1.0])
    assert padded([0.0, 5.0], log=True).low > 0.0


def test_numbers_beside_ticks_say_what_they_stand_for() -> None:
    assert [number(each) for each in (1e-4, 2.5e-7, 0.01, 1.0, 3e6, 2e12)] == [
        "1e-4",
        "2.5e-7",
        "0.01",
        "1",
        "3,000,000",
        "2e12",
    ]
    assert number(1e-17, 0.1) == "0"


@for_each("text", ["W" * 500, "plain", "計數" * 60, "\x00" * 90, "\u202e" * 40, "", "a\nb", "🙂" * 50])
def test_words_are_cut_to_the_room_they_have(text: str) -> None:
    for room in (40.0, 142.0, 400.0):
        told = fitted(text, room)
        assert breadth(told) <= max(room, breadth("計計計計"))
        assert told.isprintable()


def test_short_words_are_left_as_they_are() -> None:
    assert fitted("noisy count", 400.0) == "noisy count"
    for one, other in itertools.pairwise(["", "a", "ab", "計"]):
        assert breadth(one) < breadth(other) or other == "計"


# figures of a sweep and of a history: whose numbers they hold, what they leave out, and the files they become


def row(**changes: Any) -> dict[str, Any]:
    made = {
        "mechanism": "laplace", "certifier": "coin-flip", "stopping": "fixed", "runs": 1_000, "claimed_epsilon": 1.0,
        "epsilon_lower": 0.8, "true_epsilon": 1.0, "exact_epsilon": None, "proved": None, "verdict": "NOT_REFUTED",
        "runs_to_refute": None, "broken": False,
    }  # fmt: skip
    return made | changes


def test_claimed_against_certified_names_each_mechanism_and_says_what_it_left_out() -> None:
    rows = [
        row(),
        row(mechanism="broken", epsilon_lower=1.5, true_epsilon=math.inf, verdict="REFUTED"),
        row(mechanism="trained", epsilon_lower=0.0, true_epsilon=None, estimate=0.7),
        row(epsilon_lower=None, verdict=None, error="no verdict"),
        row(claimed_epsilon="", epsilon_lower=1.0),
        row(claimed_epsilon=math.inf),
    ]
    drawing = study.claimed_against_certified(rows)
    assert drawing.rows == (
        ("laplace", "1", "0.800", "1", "", "", "not refuted"),
        ("broken", "1", "1.50", "inf", "", "", "REFUTED"),
        ("trained", "1", "0", "", "", "0.7", "not refuted"),
    )
    assert "3 rows of the table had no numbers" in drawing.description
    said = ["".join(each.itertext()) for each in tree(drawing.svg).iter(f"{SVG}text")]
    assert {"laplace", "broken", "trained", "less", "∞", "estimate, not certified", "exact loss"} <= {*said}
    own = row(claim="0.4-GDP", parameter="mu", claimed=0.4, lower=0.5, delta=1e-5, epsilon_lower=0.9, verdict="REFUTED")
    drawing = study.claimed_against_certified([row(mechanism="mean"), own])
    assert drawing.rows[1][0] == "laplace, delta 1e-05, REFUTED as 0.4-GDP: mu >= 0.500"
    assert "epsilon, at each row's delta" in ["".join(each.itertext()) for each in tree(drawing.svg).iter(f"{SVG}text")]
    assert "refutes its claim otherwise: its name says how. Deltas differ" in drawing.description
    many = [
        row(mechanism=f"m{k % 40}", **{"parameters.epsilon": float(k), "claimed_epsilon": 1.0 + k}) for k in range(80)
    ]
    told = ["".join(each.itertext()) for each in tree(study.claimed_against_certified(many).svg).iter(f"{SVG}text")]
    assert sum(text.startswith("m") for text in told) == 40  # a row for each mechanism where there are too many


def test_what_exceeds_its_claim_lies_right_of_it_and_what_chance_explains_is_marked() -> None:
    p_values = {"both": 1e-6, "alone": 0.04, "kept": 0.5}
    rows = [
        row(mechanism=name, confidence=0.95, p_value=p, epsilon_lower=lower, true_epsilon=true,
            verdict="NOT_REFUTED" if name == "kept" else "REFUTED")
        for (name, p), lower, true in zip(p_values.items(), (1.8, 1.01, 0.9), (2.0, 1.0, 1.0), strict=True)
    ]  # fmt: skip
    assert study.together(rows) == [True, False, False]
    drawing = study.claimed_against_certified(rows)
    assert [each[-1] for each in drawing.rows] == ["REFUTED", "REFUTED, alone, above the exact loss", "not refuted"]
    assert "not together with the others (Holm). A square marks a bound above the exact loss" in drawing.description
    claims = [stroke[0] for stroke in lines(drawing.svg, "claim")[1:]]
    (both,), (kept,) = (marks(drawing.svg, colour)[1:] for colour in ("refuted", "first"))
    alone, wrong = marks(drawing.svg, "paper")[-1], marks(drawing.svg, "paper")[-2]  # those that are hollow
    assert kept[0] < claims[2][0] < alone[0] < both[0]
    assert wrong == pytest.approx(alone, abs=0.1)  # around the bound that is wrong


def test_a_name_says_what_tells_its_row_from_the_others_and_no_more() -> None:
    rows = [
        row(mechanism=name, claim=f"{epsilon:g}-DP", pair=f"{name}, default", **{"parameters.epsilon": epsilon})
        for name, epsilon in (("laplace", 0.5), ("laplace", 1.0), ("geometric", 0.5))
    ]
    assert study.labels(rows) == ["laplace, epsilon 0.5", "laplace, epsilon 1", "geometric"]
    rows += [row(mechanism="geometric", certifier="unconditional", claim="1-DP")]
    assert study.labels(rows)[2:] == ["geometric, epsilon 0.5", "geometric"]
    assert study.labels(rows[:2]) == ["epsilon 0.5", "epsilon 1"]
    assert study.labels(rows[:2], mechanism=True) == ["laplace, epsilon 0.5", "laplace, epsilon 1"]


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
    for suffix, head in ((".png", b"\x89PNG\r\n"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        one = study.bound_against_runs(rows).save(tmp_path / f"one{suffix}").read_bytes()
        with matplotlib.rc_context({"lines.linewidth": 7.0, "savefig.dpi": 10.0}):
            other = study.bound_against_runs(rows).save(tmp_path / "deep" / f"other{suffix}").read_bytes()
        assert one == other
        assert one.startswith(head)
        assert b"matplotlib" not in one.lower()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["deep", "one.pdf", "one.png", "one.svg"]


@for_each(("size", "inches"), [("column", 3.33), ("text", 7.0), (5.5, 5.5)])
def test_a_figure_for_print_is_as_wide_as_it_is_asked_to_be(size: Any, inches: float, tmp_path: Path) -> None:
    table = Sweep(tuple(row(mechanism=name, runs=runs) for name in ("laplace", "a name of fifty letters " * 2)
                        for runs in (100, 1_000)))  # fmt: skip
    for kind in ("claimed_against_certified", "bound_against_runs"):
        drawing = table.plot(kind, size=size, style="paper")
        assert f'width="{inches * 72:.6g}pt"' in drawing.svg
        pdf = drawing.save(tmp_path / "figure.pdf").read_bytes()
        width = float(re.search(rb"/MediaBox \[\s*0 0 ([\d.]+)", pdf)[1])  # type: ignore[index]
        assert width == pytest.approx(inches * 72, abs=0.01)
        assert b"/Type3" not in pdf
        assert "prefers-color-scheme" not in drawing.save(tmp_path / "figure.svg").read_text()
        words = [each for each in drawing.panel.shapes if hasattr(each, "text")]
        assert all(8.0 <= each.size * drawing.panel.ground.points <= 9.0 for each in words)
        assert all(
            each.x + (each.to == "left") * GLYPHS["paper"] * len(each.text) * each.size <= drawing.panel.width
            for each in words
        )


@for_each("asked", [{"size": "page"}, {"size": 0.5}, {"size": True}, {"style": "poster"}])
def test_a_size_that_no_paper_has_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpec, match="must be"):
        Sweep((row(),)).plot(**asked)


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
