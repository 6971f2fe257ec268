"""The figures of a result: which there are, what stands in them, and that they are the same every time."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from statsmodels.stats.proportion import proportion_confint

from dpaudit.certify import CoinFlip, certify
from dpaudit.certify.certifiers import MASSES
from dpaudit.certify.sequential import log_wealth
from dpaudit.claims import PureDP
from dpaudit.errors import InvalidSpec, MissingRequirement
from dpaudit.events import Event
from dpaudit.events.features import Coordinate
from dpaudit.outputs.canonical import Token
from dpaudit.report.figures import LIGHT, Drawing, drawings
from dpaudit.results.result import AuditResult
from tests.account.results import made
from tests.cases import for_each
from tests.golden import example
from tests.report.figures.reading import SVG, lines, marks, tree

ALL = ("distributions", "trade-off", "privacy-profile", "bound-against-runs", "power")
ELEMENTS = {"svg", "title", "desc", "path", "text", "clipPath", "rect", "a"}
DIGESTS = """
import hashlib, sys
from dpaudit.report.figures import drawings
from tests.golden import example
print(hashlib.sha256("".join(each.svg for each in drawings(example.result())).encode()).hexdigest())
print("matplotlib" in sys.modules)
"""


RESULTS = {
    "refuted": example.result,
    "kept": example.kept,
    "binned": lambda: made("bins"),
    "stopped": lambda: made("anytime"),
    "spent": lambda: example.result(
        spec={**example.SPEC, "stopping": "anytime"}, blocks=made("anytime").blocks, trail=()
    ),
}


@lru_cache
def drawn(name: str) -> dict[str, Drawing]:
    """The drawings of one of `RESULTS` by their names."""
    return {each.name: each for each in drawings(RESULTS[name]())}


def test_each_result_has_the_figures_that_it_has_numbers_for() -> None:
    assert tuple(drawn("refuted")) == tuple(drawn("binned")) == ALL
    assert tuple(drawn("kept")) == tuple(name for name in ALL if name != "bound-against-runs")  # a trail of one
    assert tuple(drawn("stopped")) == ("distributions", "wealth-against-runs")
    assert tuple(drawn("spent")) == (*ALL[:3], "wealth-against-runs", "power")
    assert drawings(example.result(histogram=None, evidence=CoinFlip(0, 0, 0, 0), trail=())) == ()


@for_each("name", RESULTS)
def test_svg_is_small_holds_what_is_drawn_and_has_a_title_a_description_and_a_table(name: str) -> None:
    for drawing in drawn(name).values():
        top = tree(drawing.svg)
        assert {each.tag.removeprefix(SVG) for each in top.iter()} <= ELEMENTS
        assert not re.search(r"<style|<script|<metadata|<!|<\?|\son\w+=", drawing.svg)
        assert drawing.svg.count("http") == 1  # the name of its language
        assert not re.search(r"#[0-9a-fA-F]{6}", drawing.svg), "a colour that is no variable does not turn dark"
        assert set(re.findall(r"var\(--dp-(\w+)\)", drawing.svg)) <= LIGHT.keys()
        title, desc = top[0], top[1]
        assert (title.tag, desc.tag) == (f"{SVG}title", f"{SVG}desc")
        assert (title.text, desc.text) == (drawing.title, drawing.description)
        assert top.get("role") == "img"
        assert top.get("aria-labelledby") == title.get("id")  # the description is one by itself: not told twice
        assert drawing.rows
        assert all(len(row) == len(drawing.columns) for row in drawing.rows)
    page = "".join(each.svg for each in drawn(name).values())
    assert len(page.encode()) <= 180 * 1024
    found = re.findall(r'\bid="([^"]+)"', page)
    assert len(found) == len(set(found))
    wanted = set(re.findall(r'href="#([^"]+)"', page)) | set(re.findall(r"url\(#([^)]+)\)", page))
    assert wanted <= set(found)
    assert wanted


def test_another_process_draws_the_same_without_matplotlib(root: Path) -> None:
    here = hashlib.sha256("".join(each.svg for each in drawn("refuted").values()).encode()).hexdigest()
    there = subprocess.run(
        [sys.executable, "-c", DIGESTS],
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
        env={"PYTHONHASHSEED": "77", "PYTHONPATH": str(root), "MPLBACKEND": "Agg", "PATH": "/usr/bin:/bin"},
    )
    assert there.stdout.split() == [here, "False"]


def test_the_table_of_the_distributions_holds_every_run() -> None:
    result = example.result()
    assert result.illustration.histogram is not None
    rows = drawn("refuted")["distributions"].rows
    for side, runs in ((1, result.illustration.histogram.runs_first), (2, result.illustration.histogram.runs_second)):
        assert sum(int(row[side].replace(",", "")) for row in rows) == runs
    inside = [row[0] for row in rows if row[3]]
    assert inside == ["above 9.5, at most 10", "above 10, at most 11", "above 11"]


def test_the_trade_off_tells_the_counts_and_limits_rounded_away_from_each_other() -> None:
    result = example.result()
    ((_, x, n, y, m, low, high),) = drawn("refuted")["trade-off"].rows
    e = result.evidence
    assert isinstance(e, CoinFlip)
    assert [x, n, y, m] == [f"{each:,}" for each in (e.hits_p, e.runs_p, e.hits_q, e.runs_q)]
    exact_low = proportion_confint(e.hits_p, e.runs_p, alpha=0.001, method="beta")[0]
    exact_high = proportion_confint(e.hits_q, e.runs_q, alpha=0.001, method="beta")[1]
    assert exact_low - 2e-6 <= float(low) <= exact_low
    assert exact_high <= float(high) <= exact_high + 2e-6


def test_the_profile_is_certified_downwards_and_claimed_upwards() -> None:
    result = example.result()
    rows = drawn("refuted")["privacy-profile"].rows
    beyond = 0
    for epsilon, claimed, certified in rows:
        assert float(claimed) >= result.claim.delta_at(float(epsilon))
        beyond += float(certified) > float(claimed)
    assert beyond >= 3  # a loss of 2 where 1 was claimed is seen in the curve
    kept = drawn("kept")["privacy-profile"].rows
    assert not any(float(certified) > float(claimed) for _, claimed, certified in kept)


def test_the_last_bound_is_the_certificate_and_the_others_are_what_fewer_runs_give() -> None:
    result = example.result()
    rows = drawn("refuted")["bound-against-runs"].rows
    assert [row[0] for row in rows] == [f"{each.runs:,}" for each in result.illustration.trail]
    assert rows[-1][1] == "epsilon >= 1.96"
    other = example.result(certificate=replace(result.certificate, lower=1.5))
    assert next(each for each in drawings(other) if each.name == "bound-against-runs").rows[-1][1] == "epsilon >= 1.50"
    first = certify(result.illustration.trail[0], result.claim, 0.999).lower
    assert 0.0 <= first - float(rows[0][1].removeprefix("epsilon >= ")) < 0.01


def test_wealth_is_that_of_the_blocks() -> None:
    result, figure = made("anytime"), drawn("stopped")["wealth-against-runs"]
    assert figure.rows[0] == ("0", "1")
    assert figure.rows[-1][0] == f"{sum(block.evidence.runs for block in result.blocks):,}"
    tens = log_wealth(result.blocks, result.claim)[-1] / math.log(10.0)
    assert math.log10(float(figure.rows[-1][1].replace(",", ""))) == pytest.approx(tens, abs=0.03)
    assert "5,000" in figure.svg  # one over a fifth of a thousandth


def test_power_is_rounded_up_and_says_where_nothing_is_seen() -> None:
    result = example.result()
    rows = {row[0]: row[1] for row in drawn("refuted")["power"].rows}
    for mass in MASSES:
        least, told = result.least_found(mass), rows[f"{mass!r}".removesuffix(".0")]
        assert (least is None) == (told == "nothing is")
        if least is not None:
            assert least <= float(told.removeprefix("epsilon ")) <= 1.01 * least


def test_a_refutation_lies_outside_of_the_region_and_a_kept_claim_inside() -> None:
    """Read from the picture itself: the mark against the boundary of the claim at the same place."""
    for name, outside in (("refuted", True), ("kept", False)):
        svg = drawn(name)["trade-off"].svg
        x, y = marks(svg, "certified")[-1]
        boundary = lines(svg, "claim")[0]
        left, right = next(both for both in itertools.pairwise(boundary) if both[0][0] <= x <= both[1][0])
        share = (x - left[0]) / (right[0] - left[0])
        assert (y < left[1] + share * (right[1] - left[1])) is outside


def events(*intervals: tuple[float, float], words: tuple[Token, ...] = (), **changes: Any) -> AuditResult:
    """The refuted result with another event."""
    result = example.result()
    return replace(result, witness=replace(result.witness, event=Event(Coordinate(), intervals, words)), **changes)


def several() -> AuditResult:
    """The best of three witnesses: its limits have the confidence of all together."""
    result = example.result()
    return replace(result, certificate=replace(result.certificate, confidence=1.0 - 0.001 / 3))


WORDS = (Token("raised ValueError", 7),)


@for_each(
    ("make", "figure", "said", "unsaid"),
    [
        (several, "trade-off", "confidence 0.999", "0.9996"),
        (several, "privacy-profile", "confidence 0.999", "0.9996"),
        (
            lambda: events(words=WORDS, evidence=CoinFlip(90, 0, 10_000, 10_000)),
            "trade-off",
            "no hit at all on the other dataset",
            "search runs",
        ),
        (
            lambda: replace(example.result(), claim=PureDP(0.0)),
            "privacy-profile",
            "claimed: delta is 0, below this",
            "no hit",
        ),
        (lambda: made("anytime"), "distributions", "never evidence", "the search runs"),
        (lambda: events((40.0, math.inf)), "distributions", "further out", "no hit"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_is_odd_about_a_result_is_said_beside_its_figure(
    make: Callable[[], AuditResult], figure: str, said: str, unsaid: str
) -> None:
    drawing, usual = next(each for each in drawings(make()) if each.name == figure), drawn("refuted")[figure]
    assert said in drawing.svg
    assert unsaid not in drawing.svg
    assert said.startswith(("conf", "never")) or said not in usual.svg
    assert figure != "distributions" or any(row[3] for row in drawing.rows) is (said == "never evidence")


def test_an_svg_file_carries_its_colours_and_any_drawing_may_become_a_png(tmp_path: Path) -> None:
    drawing = drawn("refuted")["power"]
    text = drawing.save(tmp_path / "new" / "power.svg").read_text()
    assert tree(text).tag == f"{SVG}svg"
    assert "prefers-color-scheme:dark" in text
    assert "--dp-paper:#ffffff" in text
    assert drawing.save(tmp_path / "power.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InvalidSpec, match=r"ends in \.svg, \.png, \.pdf, got '\.eps'"):
        drawing.save(tmp_path / "power.eps")
    assert not (tmp_path / "power.eps").exists()


def test_without_matplotlib_a_png_names_the_extra_and_an_svg_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpaudit.report.figures.drawing.find_spec", lambda name: None)
    drawing = drawn("refuted")["distributions"]
    assert drawing.save(tmp_path / "power.svg").exists()
    for suffix in (".png", ".pdf"):
        with pytest.raises(MissingRequirement, match=r"needs matplotlib.*the extra \[plots\] has it"):
            drawing.save(tmp_path / f"power{suffix}")
    assert [path.name for path in tmp_path.iterdir()] == ["power.svg"]
