"""Private empirical risk minimisation: how far above its minimum the objective ends, measured and bounded."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.integrate import trapezoid

from audits.lectures.claims.statement import Statement, Truth

Floats = npt.NDArray[np.float64]

CS208 = "CS 208, notes 002"


def excess_risks(records: int, weight: float, epsilon: float) -> tuple[float, float]:
    """How far above its minimum the objective lies on average, by output and by objective perturbation: quadrature."""
    from dpaudit.catalogue.learning.objective_noise import CURVATURE, corrected

    x = np.linspace(-1.0, 1.0, records)
    signed = x * np.where(x + 0.3 * np.sin(7.0 * np.arange(records)) > 0.0, 1.0, -1.0)
    assert CURVATURE == 0.25

    def objective(w: Floats) -> Floats:
        return np.logaddexp(0.0, -np.outer(w, signed)).mean(axis=1) + weight / 2.0 * w * w

    left, added = corrected(epsilon, records, weight)
    w = np.sinh(np.linspace(-9.0, 9.0, 6_001))
    tails = 1.0 / (1.0 + np.exp(np.minimum(700.0, np.outer(w, signed))))
    noise = tails @ signed - records * (weight + added) * w
    bend = records * (weight + added) + (tails * (1.0 - tails)) @ signed**2
    density = left / 4.0 * np.exp(-left / 2.0 * np.abs(noise)) * bend
    values = objective(w)
    best = values.argmin()
    scale = 2.0 / (records * weight * epsilon)
    z = np.linspace(-30.0, 30.0, 3_001) * scale
    laplace = np.exp(-np.abs(z) / scale) / (2.0 * scale)
    output = trapezoid(laplace * (objective(w[best] + z) - values[best]), z)
    return float(output), float(trapezoid(density * (values - values[best]), w))


def _better_performance() -> Truth:
    output, perturbed = excess_risks(100, 0.05, 1.0)
    poor_output, poor_perturbed = excess_risks(50, 0.01, 1.0)
    return Truth(
        "right and loose" if perturbed < output and poor_perturbed > poor_output else "right and tight",
        f"Even with one feature: logistic regression on 100 records, lambda = 0.05, epsilon = 1, ends {output:.4f} "
        f"above the least objective with output and {perturbed:.4f} with objective perturbation, "
        f"{output / perturbed:.1f} times closer. Not always: with 50 records and lambda = 0.01 the correction eats up "
        f"epsilon, and it is {poor_output:.2f} against {poor_perturbed:.2f}. High dimensions are not computed here.",
        {"output": output, "objective": perturbed, "output, n = 50": poor_output, "objective, n = 50": poor_perturbed},
    )


ERM: tuple[Statement, ...] = (
    Statement(
        name="objective against output perturbation",
        place=f"{CS208}, 'Objective Perturbation'",
        says="Objective perturbation might have better statistical performance, especially in high dimensions.",
        verdict="right and loose",
        how=("computed",),
        check=_better_performance,
        quote="However, objective perturbation might have better statistical performance than output perturbation, "
        "especially in high-dimensional cases.",
    ),
)
