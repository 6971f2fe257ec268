"""Controls of batched mechanisms of every kind of output end with a verdict, and one that breaks costs only itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.auditing import controls
from dpaudit.auditing.audit import run_stages
from dpaudit.auditing.question import Question
from dpaudit.claims import PureDP
from dpaudit.data import AdjacentPair
from dpaudit.errors import InvalidSpec, UnsoundAudit
from dpaudit.execution.engine import Engine
from dpaudit.results.stored import loads
from tests.cases import for_each


def _steps(data: int, runs: int, rng: np.random.Generator) -> Any:
    """Two-sided geometric noise for epsilon 1."""
    return data + rng.geometric(1 - np.exp(-1.0), runs) - rng.geometric(1 - np.exp(-1.0), runs)


def _bits(data: int, runs: int, rng: np.random.Generator) -> Any:
    return rng.random(runs) < (0.73 if data == 10 else 0.27)


KINDS: dict[str, Callable[..., Any]] = {
    "bytes": lambda data, runs, rng: np.clip(_steps(data, runs, rng), 0, 255).astype(np.uint8),
    "booleans": _bits,
    "texts": lambda data, runs, rng: np.where(_bits(data, runs, rng), "yes", "no"),
    "a tuple of integers": lambda data, runs, rng: (_steps(data, runs, rng), rng.integers(0, 9, runs)),
    "records": lambda data, runs, rng: np.rec.fromarrays([_steps(data, runs, rng)], names="count"),
}
FURTHER: dict[str, Callable[..., Any]] = {
    "integers": _steps,
    "numbers as texts": lambda data, runs, rng: _steps(data, runs, rng).astype(str),
    "a mapping of integers": lambda data, runs, rng: {"count": _steps(data, runs, rng)},
}


@pytest.mark.long
@for_each("kind", KINDS, nightly=FURTHER)
def test_controls_of_every_kind_of_batch_end(kind: str) -> None:
    """Of a mark in a fifth of the runs, wherever it stands."""
    spec = Question(
        PureDP(1.0), dpaudit.batched((KINDS | FURTHER)[kind]), (AdjacentPair(10, 9),), runs=4_000
    ).resolved()
    with Engine(n_jobs=1) as engine:
        found = tuple(controls.run_controls(spec, engine, run_stages, repeats=1, sizes=(0.2,)))
    assert found
    assert all(each.seen for each in found), found


@pytest.mark.long
def test_a_control_that_breaks_costs_only_that_control(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, calls = controls.with_controls, []

    def breaking(result: Any, spec: Any, engine: Any, audit: Callable[..., Any], **more: Any) -> Any:
        def sometimes(*given: Any, **named: Any) -> Any:
            calls.append(given)
            if len(calls) == 2:
                raise UnsoundAudit("serial dependence: of a control")
            if len(calls) > 12:
                raise InvalidSpec("a wrong question is no broken control")
            return audit(*given, **named)

        return whole(result, spec, engine, sometimes, **more)

    monkeypatch.setattr("dpaudit.auditing.audit.with_controls", breaking)

    def noisy(data: int, rng: np.random.Generator) -> int:
        return int(rng.random() < (0.73 if data == 10 else 0.27))

    found = dpaudit.audit(noisy, pair=(10, 9), epsilon=1.0, runs=2_000, controls=1, n_jobs=1, progress=False)
    (told,) = [entry for entry in found.explored if entry.what == "control"]
    assert told.name.endswith("probability 0.0003")
    assert told.status.startswith(controls.BROKEN)
    assert told.status.endswith("of a control")
    assert [each.mass for each in found.controls][:2] == [1e-4, 1e-3]
    assert f"control {told.name}: {controls.BROKEN}" in str(found.explain())
    assert loads(found.to_json()).explored == found.explored
