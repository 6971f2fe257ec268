"""A small calibration: whole audits at the boundary of every claim form, seeded; the rest is `dpaudit calibrate`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import binomtest

from dpaudit.auditing import calibration
from dpaudit.auditing.calibration import CalibrationCase, CalibrationLine, calibrate, cases, claims
from dpaudit.certify import CERTIFIERS, certifier_named, certifier_names, suited
from dpaudit.claims import FORMS, ApproximateDP, PureDP
from dpaudit.cli.group import exit_code
from tests.cases import for_each

pytestmark = pytest.mark.long

REPEATS, RUNS = 5, 600  # of four, chance explains all; of five no more than four
SMALL = tuple(case for case in cases() if case.pairs in (1, case.certified))
OTHERS = tuple(case for case in SMALL if case.certifier != suited(case.claim) and case.claim.form != "PureDP")


@for_each("case", [case for case in SMALL if case not in OTHERS], nightly=OTHERS)
def test_the_rate_is_as_stated(case: CalibrationCase) -> None:
    """`CalibrationLine.kept` fails by chance once in 10^6: all of five refuted. So one that is not ends the case."""
    (line,) = calibrate((case,), repeats=1, runs=RUNS, n_jobs=1)
    if line.refuted or line.unsound or not 0.5 < (line.fraction or 1.0) < 1.5:
        (line,) = calibrate((case,), repeats=REPEATS, runs=RUNS, n_jobs=1)
    assert line.kept, line
    assert line.fraction is None or 0.5 < line.fraction < 1.5


def test_every_form_certifier_and_stopping_is_there() -> None:
    assert {type(claim) for claim in claims().values()} == set(FORMS)
    assert {case.certifier.name for case in cases()} == set(certifier_names())
    assert {case.stopping for case in cases()} == {"fixed", "anytime"}
    assert {case.pairs for case in cases()} == {1, calibration.SCREENED}


@for_each("case", cases())
def test_the_point_lies_on_the_boundary(case: CalibrationCase) -> None:
    q, p = case.point()
    claim = case.claim.at_distance(case.distance)
    assert claim.max_probability(q) * (1 - 2e-9) <= p <= claim.max_probability(q) * (1 + 1e-12)


def test_a_rate_above_the_stated_one_is_seen() -> None:
    """The audits of a claim below the truth: refuted far more often than chance explains."""

    class Broken(CalibrationCase):
        def point(self) -> tuple[float, float]:
            return 0.1, 0.9

    (line,) = calibrate((Broken("broken", PureDP(1.0), suited(PureDP(1.0))),), repeats=6, runs=RUNS, n_jobs=1)
    assert line.refuted == 6
    assert not line.kept


def test_a_line_does_not_depend_on_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "TASK", 2)  # three tasks, of two audits each and of one
    case = CalibrationCase("ApproximateDP", ApproximateDP(1.0, 0.01), certifier_named("coin-flip"))
    one, two = (list(calibrate((case,), repeats=5, runs=RUNS, n_jobs=jobs)) for jobs in (1, 2))
    assert one == two


def test_the_limits_and_the_interval_are_binomial() -> None:
    line = CalibrationLine(cases()[0], 2_000, 2_000, 100, 0, 1.0)
    assert line.allowed == 149
    exact = binomtest(100, 2_000).proportion_ci(0.95, method="exact")
    assert line.interval == pytest.approx((exact.low, exact.high), rel=1e-6)
    assert line.kept
    assert not replace(line, refuted=150).kept
    assert not replace(line, unsound=1).kept


def test_the_command_prints_lines_and_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "lines.json"
    asked = ["calibrate", "--repeats", "2", "--runs", "600", "--form", "local DP", "--jobs", "1", "--json", str(path)]
    assert exit_code(asked) == 0
    out = capsys.readouterr().out
    assert "2 whole audits a line, 600 runs each, at confidence 0.95" in out
    assert "every rate is as stated" in out
    lines = json.loads(path.read_text())
    assert {line["certifier"] for line in lines} == {each.name for each in CERTIFIERS if each.fits(PureDP(1.0))}
    assert all(line["repeats"] == 2 for line in lines)
    assert exit_code(["calibrate", "--form", "no such form"]) == 2
