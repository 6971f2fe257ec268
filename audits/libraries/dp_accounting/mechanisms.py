"""Sums of clipped values whose noise dp-accounting calibrates to the claim, as its users do; the noise is numpy's.

`calibrate_dp_mechanism` finds the smallest noise multiplier for which an accountant promises (epsilon, delta). Values
are clipped to [-1, 1]: the bound C of `GaussianDpEvent` and `LaplaceDpEvent` is 1, and the multiplier is the scale.
"""

from __future__ import annotations

import dp_accounting
import numpy as np
import numpy.typing as npt
from dp_accounting import NeighboringRelation
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

import dpaudit

ACCOUNTANTS = {"rdp": RdpAccountant, "pld": PLDAccountant}
BRACKET = dp_accounting.ExplicitBracketInterval(0.5, 20.0)  # 0, the default, divides by zero with Laplace noise
Floats = npt.NDArray[np.float64]


def _scale(event: object, accountant: str, relation: str, epsilon: float, delta: float) -> float:
    def fresh() -> dp_accounting.PrivacyAccountant:
        return ACCOUNTANTS[accountant](neighboring_relation=NeighboringRelation[relation])

    return float(dp_accounting.calibrate_dp_mechanism(fresh, event, epsilon, delta, BRACKET))


def _make_gaussian(accountant: str, relation: str, epsilon: float, delta: float) -> object:
    scale = _scale(dp_accounting.GaussianDpEvent, accountant, relation, epsilon, delta)

    def noisy(values: list[float], runs: int, rng: np.random.Generator) -> Floats:
        return np.clip(np.array(values), -1.0, 1.0).sum() + scale * rng.standard_normal(runs)

    return dpaudit.batched(noisy)


def _make_composed(accountant: str, relation: str, epsilon: float, delta: float, times: int) -> object:
    """The same sum, released several times."""
    event = dp_accounting.SelfComposedDpEvent
    scale = _scale(
        lambda scale: event(dp_accounting.GaussianDpEvent(scale), times), accountant, relation, epsilon, delta
    )

    def noisy(values: list[float], runs: int, rng: np.random.Generator) -> Floats:
        return np.clip(np.array(values), -1.0, 1.0).sum() + scale * rng.standard_normal((runs, times))

    return dpaudit.batched(noisy)


def _make_laplace(accountant: str, relation: str, epsilon: float, delta: float) -> object:
    scale = _scale(dp_accounting.LaplaceDpEvent, accountant, relation, epsilon, delta)

    def noisy(values: list[float], runs: int, rng: np.random.Generator) -> Floats:
        return np.clip(np.array(values), -1.0, 1.0).sum() + rng.laplace(scale=scale, size=runs)

    return dpaudit.batched(noisy)


gaussian, composed, laplace = map(dpaudit.built_by, (_make_gaussian, _make_composed, _make_laplace))


def above(output: float) -> bool:
    """The sum is above 1.9."""
    return bool(output > 1.9)
