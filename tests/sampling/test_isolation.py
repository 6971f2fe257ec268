"""Outputs counted in a host, where no mechanism runs, give the counts of a worker that counts its own, bit for bit."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, audit, batched, command
from dpaudit.errors import DpAuditError, InvalidSpec, UnsoundAudit
from tests.cases import for_each

PAIR = ([1.0] * 3, [1.0] * 2)


def number(rows: Any, rng: Any) -> float:
    return float(len(rows) + rng.laplace())


def word(rows: Any, rng: Any) -> Any:
    return ("a" if rng.random() < 0.3 + 0.05 * len(rows) else "b", 1)


def mixture(rows: Any, rng: Any) -> Any:
    if rng.random() < 0.1:
        raise ValueError("no answer")
    return {"count": len(rows) + rng.normal(), "said": "yes" if rng.random() < 0.5 else None}


def wide(rows: Any, runs: int, rng: Any) -> Any:
    return len(rows) + rng.laplace(size=(runs, 80))


def many(rows: Any, runs: int, rng: Any) -> Any:
    return len(rows) + rng.laplace(size=runs)


def breaks(rows: Any, runs: int, rng: Any) -> Any:
    if runs > 1:
        raise RuntimeError("one at a time")
    return many(rows, runs, rng)


def evidence(result: AuditResult) -> Any:
    return json.dumps(replace(result, provenance={}).to_dict(), sort_keys=True)


MODES: dict[str, tuple[Any, dict[str, Any]]] = {
    "per run": (number, {}),
    "recurring": (word, {}),
    "mixture": (mixture, {"runs": 3_000}),
    "batched": (batched(many), {"runs": 60_000}),
    "wide": (batched(wide), {"runs": 1_500}),
    "alone": (batched(breaks), {"runs": 3_000}),
    "limited": (number, {"run_timeout_s": 5.0, "runs": 3_000}),
    "anytime": (number, {"stopping": "anytime"}),
    "bits": (number, {"representation": True}),
    "binned": (number, {"certifier": "binned"}),
    "pairs": (number, {"pair": None, "pairs": [PAIR, ([1.0], [])]}),
}


@for_each(*MODES)
def test_the_evidence_is_the_same(case: str) -> None:
    mechanism, options = MODES[case]
    asked: dict[str, Any] = {"pair": PAIR, "epsilon": 1.0, "runs": 6_000, "seed": 3, "n_jobs": 1, **options}
    one, other = (audit(mechanism, isolation=mode, **asked) for mode in ("none", "process"))
    assert evidence(one) == evidence(other)
    assert [each.provenance["isolation"] for each in (one, other)] == ["none", "process"]
