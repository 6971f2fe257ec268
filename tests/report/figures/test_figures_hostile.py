"""Names that try to be more than names, in every figure: what a user wrote is text, and stays on its line."""

from __future__ import annotations

import re
from dataclasses import replace

from dpaudit.claims import PureDP
from dpaudit.report.figures import Drawing, history_drawing, study, suite_drawing
from dpaudit.report.figures.distributions import distributions
from dpaudit.results.display import Verdict
from dpaudit.results.observations import Histogram
from dpaudit.results.suite import SuiteEntry, SuiteResult
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
        study.claimed_against_certified(rows, heading=name),
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
