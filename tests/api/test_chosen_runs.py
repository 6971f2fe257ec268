"""The runs of a call that says neither how many nor how long: chosen once, by the time of a run, and said."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.account.repeat import python_form
from dpaudit.account.statements import headline
from dpaudit.auditing import Question, plan, probing, runner
from dpaudit.claims import PureDP
from dpaudit.data import AdjacentPair
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms import wrap
from tests.cases import for_each

ASKED: dict[str, Any] = {"pair": (10, 9), "epsilon": 1.0, "n_jobs": 1, "progress": False}


def noisy(data: int, rng: np.random.Generator) -> float:
    return data + float(rng.laplace())


@pytest.fixture
def takes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Says what the probe finds: the seconds of a run."""

    def put(run_s: float) -> None:
        monkeypatch.setattr(probing, "time_of_a_run", lambda *_: SimpleNamespace(run_s=run_s))

    return put


def chosen(epsilon: float = 1.0, jobs: int = 2, **options: Any) -> int:
    question = Question(PureDP(epsilon), wrap(noisy), (AdjacentPair(10, 9),), runs=None, **options)
    return probing.chosen_runs(question, plan(question), SimpleNamespace(n_jobs=jobs))  # type: ignore[arg-type]


def test_they_take_about_a_minute_on_the_workers(takes: Any) -> None:
    for run_s, runs in (
        (0.0, 10**6),
        (1.2e-4, 10**6),
        (1.3e-4, 300_000),
        (1e-3, 100_000),
        (2.8e-3, 30_000),
        (9.0, 10_000),
    ):
        takes(run_s)
        assert chosen() == runs, run_s
    takes(1e-3)
    assert chosen(jobs=200) == 10**6
    assert chosen(detect={"epsilon": 1.2, "mass": 0.01}) == 10**6


def test_they_are_enough_to_refute_the_claim(takes: Any) -> None:
    takes(9.0)
    assert [chosen(epsilon) for epsilon in (6.0, 7.0, 8.0, 9.0, 10.0)] == [*probing.CHOICES]
    with pytest.raises(InvalidSpec, match="runs = 1,000,000 can never refute"):
        dpaudit.audit(noisy, **ASKED | {"epsilon": 40.0})


def test_they_are_stored_said_and_repeated(takes: Any, tmp_path: Path) -> None:
    takes(5e-3)
    found = dpaudit.audit(noisy, **ASKED)
    assert (found.spec["runs"], found.provenance["chosen_runs"]) == (10_000, 10_000)
    first = str(found).splitlines()[0]
    seen = re.search(
        "; 10,000 runs, as many as a minute allows, which could see epsilon from (.*) on at probability 0.1$", first
    )
    assert seen is not None, first
    assert float(seen[1]) == pytest.approx(found.least_found(0.1), abs=0.01)
    assert "runs=10000, " in "\n".join(python_form(found))
    again = dpaudit.audit(noisy, runs=10_000, **ASKED)
    assert (again.evidence, again.witness, again.spec) == (found.evidence, found.witness, found.spec)
    assert "a minute" not in headline(again)
    assert headline(dpaudit.load(found.save(tmp_path / "result.json"))) == first
    broken = dpaudit.audit(noisy, **ASKED | {"epsilon": 0.1})
    assert headline(broken).endswith("claimed 0.1; adjacency taken on trust; 10,000 runs, as many as a minute allows")


@for_each("given", [{"runs": 2_000}, {"max_time_s": 60.0, "runs": 2_000}])
def test_who_says_how_many_or_how_long_is_not_asked_twice(given: dict[str, Any]) -> None:
    found = dpaudit.audit(noisy, **ASKED, **given)
    assert found.spec["runs"] == 2_000
    assert "chosen_runs" not in found.provenance


def test_a_call_that_goes_on_has_the_number_of_its_beginning(
    takes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    takes(5e-3)
    with monkeypatch.context() as patch:
        patch.setattr(runner, "run_audit", interrupted)
        with pytest.raises(dpaudit.AuditInterrupted):
            dpaudit.audit(noisy, **ASKED, ledger=tmp_path / "kept.sqlite")
    takes(1e-6)
    found = dpaudit.audit(noisy, **ASKED, ledger=tmp_path / "kept.sqlite")
    assert (found.spec["runs"], found.provenance["chosen_runs"]) == (10_000, 10_000)
    assert found.provenance["interruptions"] == 1
