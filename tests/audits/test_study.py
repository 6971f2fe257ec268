"""The example study: its claims are what it says, and its page holds the numbers of its table."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from audits.research.study import CLAIMED, DELTA, DIALS, about, asked, dialled, promised, study
from dpaudit import Sweep
from dpaudit.catalogue import entries, find
from tests.cases import for_each
from tests.report.figures.reading import marks


@for_each("name", ["laplace", "gaussian_gdp", "gaussian_zcdp", "randomised_response", "rappor_one_time"])
@for_each("epsilon", [CLAIMED[0], 1.0, CLAIMED[-1]])
def test_an_entry_is_set_to_the_claim(name: str, epsilon: float) -> None:
    made = dialled(find(name), epsilon)
    assert made is not None
    assert promised(made) == pytest.approx(epsilon, rel=1e-8)


def test_what_no_parameter_claims_is_left_out_and_said() -> None:
    assert dialled(find("gaussian"), 2.0) is None  # its theorem is one of epsilon below 1
    made, left_out = asked((2.0,), most=14)
    assert [entry.name for entry in made] == [entry.name for entry in entries()[:13]]
    assert left_out == ["gaussian at 2"]


def test_every_entry_has_a_dial_and_a_broken_one_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for entry in entries():
        assert {"epsilon", *DIALS} & {parameter.name for parameter in entry.parameters}, entry.name
    monkeypatch.setattr("audits.research.study.dialled", lambda entry, epsilon: None)
    sound = [entry.name for entry in entries() if not entry.broken]
    assert asked((0.5,)) == ([], [f"{name} at 0.5" for name in sound])
    assert len(sound) < len(entries())


def test_the_study_holds_certified_exact_and_proved_values_apart(tmp_path: Path) -> None:
    mechanisms = [made for name in ("laplace", "geometric", "gaussian_zcdp") if (made := dialled(find(name), 1.0))]
    table = study(mechanisms, runs=20_000, n_jobs=1)
    laplace, geometric, zcdp = table.rows
    assert laplace["proved"] == 1.0
    assert laplace["exact_epsilon"] == pytest.approx(1.0, rel=1e-9)
    assert (geometric["proved"], geometric["exact_epsilon"]) == (None, None)  # what verify cannot read is not proved
    assert geometric["not_proved"]
    assert geometric["true_epsilon"] == 1.0
    assert zcdp["certifier"] == "unconditional"
    for row in table.rows:  # each fails with probability 0.00001 over seeds; the seed is fixed
        assert 0.0 < row["epsilon_lower"] <= row["true_epsilon"] * (1.0 + 1e-9)
        assert row["true_epsilon"] <= row["claimed_epsilon"] * (1.0 + 1e-9)
    told = about(table, ["gaussian at 2"], 20_000)
    assert "enclosed rigorously for 1" in told[1]
    assert "checked for 1 points" in told[1]
    assert f"delta {DELTA:g}" in told[0]
    paths = table.write(tmp_path, title="A study", about=told)
    assert {path.suffix for path in paths} == {".csv", ".svg", ".png", ".md", ".html"}
    for name in ("sweep.md", "sweep.html"):
        page = (tmp_path / name).read_text()
        assert "gaussian at 2" in page
        assert "A study" in page


def test_claims_that_differ_by_rounding_stand_beside_each_other_in_the_figure() -> None:
    """None may hide another: 8 and 8.000000000000002 are one claim, and a claim close by takes no room from them."""
    rows = [
        {"mechanism": "x", "verdict": "NOT_REFUTED", "claimed_epsilon": claimed, "epsilon_lower": 0.5, "proved": proved}
        for claimed in (1.0, 1.0000000000000002, 1.004, 8.0, 8.000000000000002)
        for proved in (8.0, None, None)
    ]
    svg = Sweep(tuple(rows)).plot().svg
    across = sorted(x for x, _ in marks(svg, "first")[1:])  # after the key
    assert len(across) == len(rows)
    assert min(right - left for left, right in itertools.pairwise(across)) > 4.0
