"""The rows of the benchmark: the published names, parameters and pairs, and the losses that these pairs have."""

from __future__ import annotations

import math

import numpy as np
import pytest

from audits.literature.rows import Row, row, rows
from tests.cases import for_each

PUBLISHED = {  # largest loss of the pairs: closed forms, or four digits by quadrature
    "Laplace": 0.1,
    "TruncGeo": math.log(1.125),
    "NoisyHist1": 0.1,
    "NoisyHist2": 10.0,
    "NoisyMax1": 0.0946,
    "NoisyMax2": 0.1000,
    "NoisyMax3": 0.2500,
    "NoisyMax4": math.inf,
    "SVT1": 0.0885,
    "SVT2": 0.0882,
    "SVT3": 0.5000,
    "SVT4": 0.1725,
    "SVT5": math.inf,
    "SVT6": 0.4200,
    "NumericalSVT": 0.0805,
    "PrefixSum": 1.0,
    "OneTimeRAPPOR": 0.6005,
    "RAPPOR": 0.3001,
    "LaplaceParallel": 0.1,
    "SVT34Parallel": 0.4874,
    "Snapping": 0.1,
    "NoisySum": 0.1,
}
CLAIMED = {"TruncGeo": math.log(1.125), "OneTimeRAPPOR": 0.8007, "RAPPOR": 0.4001, "SVT34Parallel": 0.2}
SLOW = ("SVT34Parallel", "SVT3")
ANSWERS = {"NoisyHist": (5, 2), "NoisyMax": (5, 8), "SVT": (10, 8), "NumericalSVT": (10, 8), "PrefixSum": (10, 8)}


def test_the_rows_stand_in_the_published_order() -> None:
    assert [each.name for each in rows()] == list(PUBLISHED)


@for_each("each", [each for each in rows() if each.name not in SLOW], nightly=map(row, SLOW))
def test_a_row_has_its_claim_its_losses_and_its_pairs(each: Row) -> None:
    assert each.claim == pytest.approx(CLAIMED.get(each.name, 0.1), abs=5.1e-5)
    exact = each.exact
    assert exact == pytest.approx(PUBLISHED[each.name], abs=5.1e-5)
    assert each.entry.expect == ("refuted" if exact > each.claim * (1 + 1e-9) else "not-refuted")
    answers, pairs = next((known for prefix, known in ANSWERS.items() if each.name.startswith(prefix)), (None, 2))
    assert len(each.pairs) == pairs
    if answers is not None:
        assert {len(data) for pair in each.pairs for data in (pair.first, pair.second)} == {answers}


def test_the_parameters_that_differ_from_row_to_row() -> None:
    given = {each.name: dict(each.entry.bound) for each in rows()}
    assert all(given[name]["epsilon"] == 0.1 for name in given if not name.endswith("RAPPOR"))
    tops = {name: (values["threshold"], values["c"]) for name, values in given.items() if "c" in values}
    ones = {f"SVT{number}": (1.0, 1) for number in range(2, 7)}
    assert tops == {"SVT1": (0.5, 1), **ones, "NumericalSVT": (1.0, 2), "SVT34Parallel": (1.0, 2)}
    assert len(row("LaplaceParallel").pairs[0].first) == 20
    assert given["RAPPOR"] == {"f": 0.75, "bits": 20, "hashes": 4, "q": 0.55, "p": 0.45, "reports": 1}
    assert given["OneTimeRAPPOR"] == {"f": 0.95, "bits": 20, "hashes": 4}


@for_each("each", rows(), ids=lambda each: each.name)
def test_outputs_recur_where_the_row_says_so(each: Row) -> None:
    """Certain but for rounding: what is drawn from floats never recurs, what is drawn from few values does."""
    outputs = np.ma.asarray(each.entry.open().call(each.pairs[0].first, 2_000, np.random.Generator(np.random.SFC64(1))))
    few = len({value for value in outputs.compressed().ravel().tolist() if value}) <= 20
    assert few == each.discrete
