"""What a stranger reads of a training: three lines that are never mixed, captions that hold, names that stay names."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import ApproximateDP, GaussianDP, InvalidSpec, OneRun, PrivacyProfile, audit_scores
from dpaudit.account import account
from dpaudit.report import html, markdown
from dpaudit.report.figures import drawings, membership
from dpaudit.scores.counts import corners, histogram
from dpaudit.scores.dependence import Dependence
from dpaudit.scores.result import CERTIFIED, INDEPENDENT, LINES, MODEL, Estimate, on_lines, statement
from dpaudit.training import result as page
from dpaudit.training.result import TrainingResult
from tests.cases import for_each
from tests.report import hostile
from tests.report.figures.reading import lines
from tests.report.html.test_html_pages import parse, text_of

RNG = np.random.default_rng(0)
INSIDE, OUTSIDE = RNG.normal(2.0, 1.0, 200), RNG.normal(0.0, 1.0, 200)


def stated(label: str, method: str, **more: Any) -> Estimate:
    return Estimate(method=method, label=label, quantity="epsilon", delta=1e-5, confidence=0.95, **more)


def result(**more: Any) -> TrainingResult:
    """A result with a statement on every line, whose numbers are all different."""
    fields: dict[str, Any] = {
        "claim": ApproximateDP(2.0, 1e-5),
        "delta": 1e-5,
        "confidence": 0.95,
        "seed": 7,
        "canaries": 400,
        "trainings": 20,
        "trainings_used": 3,
        "inserted": "gradient canaries of norm 1",
        "not_tested": ("the loader", "the accountant"),
        "lines": (
            stated(CERTIFIED, "few", lower=3.1014, p_value=0.03, assumption="fair coins"),
            stated(INDEPENDENT, "product", lower=9.0312, assumption="answered one by one"),
            stated(MODEL, "gaussian", lower=8.4151, value=8.4488, assumption="Gaussian scores"),
        ),
        "dependence": Dependence(0.41, 1.2, "p-value 0.41, nothing seen; one coin for all cannot be seen"),
        "e_values": (1.4, 7.0, 33.3),
        "histogram": histogram(INSIDE, OUTSIDE),
        "roc": corners(INSIDE, OUTSIDE),
        "repeat": ("dpaudit audit-training mine:train --canaries 400",),
    }
    return TrainingResult(**fields | more)


def read(made: Any) -> str:
    """The text of the page in HTML."""
    return text_of(parse(html.render_account(account(made), drawings(made))))


def test_a_certified_line_that_another_outdoes_and_one_that_keeps_its_claim() -> None:
    """What else a terminal shows is in `tests/golden/accounts/training.txt`, word for word."""
    assert "the test of the claim shows more" not in str(result().explain())
    assert "the test of the claim shows more" in str(result(claim=ApproximateDP(4.0, 1e-5)).explain())
    kept = str(result(lines=(stated(CERTIFIED, "few", lower=0.0, p_value=1.0, assumption=""),)))
    assert kept.startswith("NOT REFUTED")
    assert "Not refuted is not private" in kept


def test_no_line_holds_a_number_of_another() -> None:
    """In the text, in Markdown and in HTML: each number stands below the name of its own line."""
    made = result()
    page_ = read(made).partition("In short")[2].partition("In short")[2]
    numbers = {CERTIFIED: "3.10", INDEPENDENT: "9.03", "estimate": "8.44"}
    told_below: list[tuple[str, list[str]]] = [
        (str(made).partition("\n")[2], list(LINES)),
        (markdown.account_page(account(made)).partition("\n")[2], [f"## {line.capitalize()}\n" for line in LINES]),
        (page_, [f"{line.capitalize()} " for line in LINES]),
    ]
    for told, names in told_below:
        places = [told.index(name) for name in names]
        assert places == sorted(places)
        for line, start, end in zip(LINES, places, [*places[1:], len(told)], strict=True):
            part = told[start:end].partition("tested")[0]
            assert [number for number in numbers.values() if number in part] == [numbers[line]]


def test_a_bound_says_its_own_parameter_first_and_a_figure_without_a_bound_is_an_estimate() -> None:
    bound = stated(CERTIFIED, "f", lower=9.2, value=9.9, detail={"mu_lower": 1.9371}, assumption="")
    assert statement(bound) == "mu >= 1.93, epsilon >= 9.20 at delta 1e-05"
    assert statement(replace(bound, label=MODEL)) == "epsilon about 9.90, in its model >= 9.20 at delta 1e-05"
    assert statement(replace(bound, label=MODEL, value=None)) == "in its model epsilon >= 9.20 at delta 1e-05"
    apart = [stated(CERTIFIED, "plain", value=0.9, assumption=""), stated(MODEL, "p", assumption="")]
    assert list(on_lines(apart)) == ["estimate"]


def test_the_band_is_a_staircase_that_never_falls_and_lies_below_the_curve_of_the_scores() -> None:
    found = audit_scores(INSIDE, OUTSIDE, epsilon=1.0, methods="clopper-pearson")
    x, y = membership._stairs(found.band)
    assert (x[0], x[-1], sorted(x), sorted(y)) == (0.0, 1.0, x, y)
    fpr, fnr = np.transpose(found.roc)
    assert np.all(np.array(y) <= np.interp(x, fpr, 1.0 - fnr) + 1e-12)


def test_the_evidence_stands_where_its_logarithm_is_and_has_an_end() -> None:
    drawn = membership.evidence([10.0, 100.0, 0.0, float("inf")], 0.05)
    assert [row[1] for row in drawn.rows] == ["1", "10", "100", "1e-30", "1e308"]
    (curve,) = [each for each in lines(membership.evidence([10.0, 100.0], 0.05).svg, "certified") if len(each) == 3]
    (a, first), (b, second), (c, third) = curve
    assert abs((first - second) - (second - third)) < 0.02
    assert abs((b - a) - (c - b)) < 0.02


def test_the_files_need_nothing_but_each_other(tmp_path: Path) -> None:
    paths = result().write_report(tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(path.name for path in paths)
    assert {"training.html", "training.md", "training.json", "training-evidence.svg"} <= set(names)
    assert json.loads((tmp_path / "training.json").read_text())["schema"] == "dpaudit.training/1"
    assert set(re.findall(r"!\[.*\]\((.*)\)", (tmp_path / "training.md").read_text())) <= set(names)
    told = text_of(parse((tmp_path / "training.html").read_text()))
    assert all(words in told for words in ("Not tested", "The loader.", "400 canaries"))


KINDS: dict[str, dict[str, Any]] = {
    "few": {},
    "many": {"canaries": 1, "trainings": 400, "band": ((0.2, 0.3),)},
    "steps": {"steps": 4, "claim": GaussianDP(1.0)},
    "sampled": {"steps": 4, "claim": GaussianDP(1.0), "sample_rate": 0.2},
    "nothing": dict.fromkeys(("lines", "roc", "e_values", "repeat"), ()) | {"histogram": None, "dependence": None},
}


@for_each("more", KINDS.values(), ids=list(KINDS))
def test_every_kind_of_result_has_a_page_that_says_what_it_is_about(more: dict[str, Any]) -> None:
    made = result(**more)
    told = read(made)
    assert ("of one step" in told) == (made.steps is not None)
    assert ("limits at 0.95, certified" in told) == (made.canaries == 1)
    assert ("independent runs of the same code" in told) == (made.canaries == 1 and bool(made.lines))
    assert ("allowed by the claim" in told) == (made.sample_rate == 1.0 and bool(made.roc))
    assert made.headline in str(made)


def test_scores_have_the_same_page_and_counts_have_one_without_pictures(tmp_path: Path) -> None:
    found = audit_scores(INSIDE, OUTSIDE, epsilon=1.0, methods=("clopper-pearson", "gaussian"))
    assert dpaudit.write_report(found, tmp_path) == tmp_path / "scores.html"
    found.plot("roc").save(tmp_path / "alone.svg")
    written = {"scores.html", "scores.md", "scores.json", "scores-roc.svg", "alone.svg"}
    assert {path.name for path in tmp_path.iterdir()} >= written
    assert "limits at 0.95, certified" in text_of(parse((tmp_path / "scores.html").read_text()))
    counts = audit_scores(counts=found.counts, epsilon=1.0, methods="clopper-pearson")
    assert (drawings(counts), account(counts).stamp) == ((), "REFUTED")
    with pytest.raises(InvalidSpec, match="holds no numbers for a figure"):
        counts.plot("roc")
    for given, words in ((OneRun(), "of a weight of"), (OneRun(guesses=(50, 30)), "of 80 guesses are right")):
        assert words in str(audit_scores(INSIDE, OUTSIDE, design=given, methods="one-run"))
    nothing = audit_scores(INSIDE, OUTSIDE, methods=["gaussian-fit"])
    assert (account(nothing).tone, account(nothing).stamp) == ("none", "NO CERTIFICATE")
    assert "Nothing is certified" in read(nothing)


def test_what_a_user_wrote_is_text_and_stays_on_its_line() -> None:
    plain = result(histogram=None, roc=(), e_values=())
    rows = len(markdown.account_page(account(plain)).splitlines())
    tags = {each.tag for each in parse(html.render_account(account(plain))).iter()}
    for number, name in enumerate(hostile.NAMES):
        words = f"x{name}x"
        made = result(
            inserted=words, not_tested=(words, words), repeat=(words,), histogram=None, roc=(), e_values=(),
            dependence=Dependence(0.5, 1.0, words), provenance={"version": words, "platform": words},
        )  # fmt: skip
        assert all(line.isprintable() for line in (*str(made).splitlines(), *str(made.explain()).splitlines()))
        told = markdown.account_page(account(made))
        assert len(told.splitlines()) == rows + 4, name  # who made it
        assert "<script" not in told.partition("```")[0]
        if number % 5:  # the parser is slow
            continue
        shown = html.render_account(account(made))
        assert "<script" not in shown
        assert {each.tag for each in parse(shown).iter()} == tags, name


@for_each("claim", [GaussianDP(0.5), ApproximateDP(2.0, 1e-5), PrivacyProfile([(0.0, 0.1), (1.0, 0.01)])])
def test_the_lines_that_repeat_an_audit_ask_the_same(claim: Any) -> None:
    made = result(repeat=(), claim=claim, steps=4, compose=8, sample_rate=0.25)
    asked: dict[str, Any] = {}
    train = object()
    code = "\n".join(page.repeat(made)).replace("dpaudit.audit_training", "door")
    exec(code, {"dpaudit": dpaudit, "train": train, "door": lambda given, **more: asked.update(more, given=given)})
    known = {name: getattr(made, name) for name in ("delta", "canaries", "trainings", "steps", "compose", "confidence")}
    known["sample_rate"] = 0.25
    assert asked == known | {"claim": claim, "seed": 7, "given": train}


def test_few_scores_that_all_differ_lie_on_an_axis_and_every_score_is_counted() -> None:
    for inside, outside, bars in ((INSIDE[:10], OUTSIDE[:10], False), (INSIDE[:10] > 2.0, OUTSIDE[:10] > 2.0, True)):
        seen = histogram(inside * 1.0, outside * 1.0)
        assert bool(seen.values) == bars
        assert (sum(seen.first), sum(seen.second)) == (10, 10)
