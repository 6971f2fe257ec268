"""The study of the catalogue: its claims are what it says, and its table, figures and page hold one set of numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audits.research import figures, page, table
from audits.research.questions import CLAIMED, DIALS, JOINT, Plan, asked, dialled, every, kind_of, promised
from audits.research.study import answered, tasks
from audits.research.work import Work, worst_pair
from benchmarks.best_event import Asked, Events, law_of, likeliest
from dpaudit import PureDP, audit
from dpaudit.catalogue import entries, find
from tests.cases import for_each

PLAN = Plan(seeds=2, runs=10_000, sizes=(5_000,), claimed=(0.5,), claim_runs=10_000)
CONFIDENCE = 1.0 - 1e-8  # of each bound: a test that holds 20 of them to the truth fails with probability 2e-7


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """A sound mechanism, a broken one, one whose law can be listed, and a claim that no parameter makes."""
    names = ("laplace", "laplace.half_noise", "randomised_response")
    found = [row for name in names for row in answered((name, name == "laplace"), PLAN, CONFIDENCE)]
    return table.finished([*found, {"part": "left out", "mechanism": "gaussian", "claimed": 2.0}])


@for_each("name", ["laplace", "gaussian_gdp", "gaussian_zcdp", "randomised_response", "rappor_one_time"])
@for_each("epsilon", [CLAIMED[0], 1.0, CLAIMED[-1]])
def test_an_entry_is_set_to_the_claim(name: str, epsilon: float) -> None:
    made = dialled(find(name), epsilon)
    assert made is not None
    assert promised(made) == pytest.approx(epsilon, rel=1e-8)


def test_what_no_parameter_claims_is_left_out_and_said() -> None:
    assert asked(find("gaussian"), (2.0,)) == ([], [2.0])  # its theorem is one of epsilon below 1
    for entry in entries():
        assert {"epsilon", *DIALS} & {parameter.name for parameter in entry.parameters}, entry.name


def test_every_twin_is_asked_and_all_bounds_together_have_one_confidence() -> None:
    work, confidence = tasks(Plan(), None)
    names = [name for name, sized in work if sized is not None]
    assert len(names) == len(set(names)) == len(every()) > 300
    assert {kind_of(find(name)) for name in names} == {"sound", "broken", "harmless"}
    assert sum(kind_of(find(name)) == "broken" for name in names) > 230
    most = Plan().bounds(len(names), sum(kind_of(find(name)) == "sound" for name in names), len(work) - len(names))
    assert (1.0 - confidence) * most <= JOINT * (1.0 + 1e-6)
    assert Plan().seeds >= 10


def test_certified_best_and_exact_stand_in_their_order(rows: list[dict[str, Any]]) -> None:
    assert not [row["error"] for row in rows if row["error"]]
    assert len({row["seed"] for row in rows}) == len(rows)  # one of them is None
    for row in (row for row in rows if row["part"] != "left out"):
        assert row["certified"] <= row["exact"] * (1.0 + 1e-9)
        assert row["oracle"] is None or row["oracle"] <= row["exact"] * (1.0 + 1e-9)
        assert row["p_value_holm"] >= row["p_value"]
    sources = {row["mechanism"]: row["oracle_from"] for row in rows if row["part"] == "seeds"}
    assert sources["randomised_response"] == "law"
    assert sources["laplace"].startswith("best of ")
    assert [len([row for row in rows if row["part"] == part]) for part in ("seeds", "runs", "claims")] == [6, 1, 2]
    exact = {row["mechanism"]: row["exact_from"] for row in rows}
    assert (exact["laplace"], exact["randomised_response"]) == ("enclosure", "enumeration")


def test_the_best_event_of_a_law_is_no_less_than_any_that_is_found() -> None:
    entry = find("randomised_response")
    law = law_of(entry)
    assert law is not None
    asks = Asked(entry.claim(), "coin-flip", 0.0, 0.999, 100_000)
    assert asks.best(*likeliest(law)) == pytest.approx(asks.bound(0.75, 0.25), rel=1e-12)
    assert law_of(find("laplace")) is None
    found = audit(find("laplace"), pair=find("laplace").pair, claim=PureDP(1.0), runs=10_000, n_jobs=1)
    points, _ = Events(find("laplace"), [found], 20_000).measured
    p, q = points[0]
    assert 0.0 < q < p < 1.0
    assert math.log(p / q) < 1.2  # of about 1: the counts behind it have an error of a hundredth or two
    assert Asked(PureDP(1.0), "coin-flip", 0.0, 0.95, 200).best(np.array([0.5]), np.array([0.0])) > 2.78


def test_the_worst_pair_is_a_neighbour_and_loses_at_least_as_much() -> None:
    found = worst_pair(find("report_noisy_max"))
    assert found is not None
    pair, own, largest = found
    moves = [after - before for before, after in zip(pair.first, pair.second, strict=True)]
    assert min(moves) >= 0 or max(moves) <= 0  # its claim is one for counts that all rise or all fall
    assert own <= largest * (1.0 + 1e-9) <= 1.0 + 1e-6
    assert worst_pair(find("noisy_table")) is None


def test_the_page_and_the_table_have_the_same_numbers(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    import csv

    paths = table.write(rows, tmp_path)
    with paths[0].open(newline="") as file:
        read = list(csv.DictReader(file))
    assert list(read[0]) == list(table.COLUMNS)
    assert [float(row["certified"] or 0) for row in read] == [row["certified"] or 0.0 for row in rows]
    drawn = figures.drawings(rows)
    assert [each.name for each in drawn] == ["mechanisms", "against-runs-finite", "claimed-against-certified"]
    written = page.write(rows, drawn, PLAN, tmp_path)
    assert len(written) == 2 * len(drawn) + 2
    for path in written[-2:]:
        told = path.read_text(encoding="utf-8")
        assert "gaussian at 2" in told
        assert "Refuted: 1 of the broken ones (1 in every repetition), 0 of the sound ones" in told
        assert "all hold together with confidence at least 0.99 " in told
        assert "at most 1." not in told
        assert "pandas.read_csv(" in told
    (mechanisms,) = [each for each in table.by_mechanism(rows) if each["mechanism"] == "laplace.half_noise"]
    assert (mechanisms["audits"], mechanisms["refuted"], mechanisms["exact"]) == (2, 2, 2.0)  # twice its claim


def test_no_bound_stands_above_the_exact_loss_for_its_delta_alone(
    rows: list[dict[str, Any]],
) -> None:
    """Repetitions of a curve are told at deltas of their own: each bound is held against the exact loss at its own."""
    row = next(each for each in rows if each["part"] == "seeds" and each["certified"])
    repeats = [
        {**row, "claimed": 1.0, "certified": 0.9, "exact": 1.0},
        {**row, "claimed": 0.1, "certified": 0.4, "exact": 0.5},
    ]
    (made,) = table.by_mechanism(repeats)
    assert (made["largest"], made["exact"]) == (4.0, 5.0)


def test_what_breaks_is_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: Any) -> Any:
        raise ZeroDivisionError("of our own")

    monkeypatch.setattr(Work, "done", breaks)
    (row,) = table.finished(answered(("laplace", False), PLAN, CONFIDENCE))
    assert row["error"] == "ZeroDivisionError: of our own"
