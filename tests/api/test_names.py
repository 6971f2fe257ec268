"""What one types first, after `import dpaudit`: modules, names of the catalogue, progress, the report of a bracket."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dpaudit
from tests.cases import for_each

CALL: dict[str, Any] = {"runs": 1_000, "n_jobs": 1, "isolation": "none"}


def test_modules_are_there_after_the_import_and_cost_nothing_before() -> None:
    code = (
        "import sys, dpaudit; assert 'numpy' not in sys.modules; "
        "told = dpaudit.claims.PureDP(1.0), dpaudit.catalogue.find('laplace').name, dpaudit.training.TrainingResult; "
        "print(*told[:2], told[2].__name__)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["1-DP", "laplace", "TrainingResult"]
    assert {"adapters", "catalogue", "claims", "training"} <= {*dir(dpaudit)}


def test_a_sweep_takes_names_of_the_catalogue() -> None:
    named, given = (
        dpaudit.sweep(each, parameters={"epsilon": [1.0]}, progress=False, **CALL)
        for each in (
            ["laplace", "laplace.half_noise"],
            [dpaudit.catalogue.find("laplace"), dpaudit.catalogue.find("laplace.half_noise")],
        )
    )
    keys = ("mechanism", "reference", "claim", "verdict", "epsilon_lower")
    assert [[row[key] for key in keys] for row in named.rows] == [[row[key] for key in keys] for row in given.rows]
    (row,) = dpaudit.sweep("laplase", progress=False, **CALL).rows
    assert row["error"] == "the catalogue has no entry 'laplase'; did you mean 'laplace'?"


@for_each(("progress", "said"), [(False, ""), (None, ""), (True, "[1/1] laplace: 1-DP not refuted")])
def test_a_sweep_tells_its_progress_as_an_audit_does(
    capfd: pytest.CaptureFixture[str], progress: bool | None, said: str
) -> None:
    dpaudit.sweep("laplace", progress=progress, **CALL)
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err.startswith(said)
    assert bool(told.err) == bool(said)


def test_a_sweep_still_calls_a_function_with_each_row(capfd: pytest.CaptureFixture[str]) -> None:
    heard: list[dict[str, Any]] = []
    found = dpaudit.sweep("laplace", progress=heard.append, **CALL)
    assert heard == list(found.rows)
    assert capfd.readouterr() == ("", "")


def test_a_report_of_a_bracket_is_refused_in_one_line(tmp_path: Path) -> None:
    bracket = dpaudit.bracket(dpaudit.catalogue.find("laplace"), runs=10_000)
    with pytest.raises(
        dpaudit.InvalidSpec, match=r"^write_report takes the result of an audit, .* got Bracket; print it, .*$"
    ):
        dpaudit.write_report(bracket, tmp_path / "b.html")  # type: ignore[arg-type]
    assert not any(tmp_path.iterdir())
    assert bracket.plot().save(tmp_path / "figure.svg").is_file()  # the way that it names
