"""Private empirical risk minimisation: how far above its minimum the objective ends, measured and bounded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.integrate import trapezoid

from audits.lectures.claims.statement import Figure, Statement, Truth
from dpaudit.catalogue.learning.objective_noise import CURVATURE, corrected, minimisers, spherical

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

CS208 = "CS 208, notes 002"


def excess_risks(records: int, weight: float, epsilon: float) -> tuple[float, float]:
    """How far above its minimum the objective lies on average, by output and by objective perturbation: quadrature."""
    x = np.linspace(-1.0, 1.0, records)
    signed = x * np.where(x + 0.3 * np.sin(7.0 * np.arange(records)) > 0.0, 1.0, -1.0)

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


# --- more features: simulated, beside the bounds ---------------------------------------------------------------------

FEATURES, RECORDS, WEIGHT, EPSILON, RUNS = (1, 5, 20), 1000, 0.05, 1.0, 200
BETA = 0.05  # the bound for all but this part of the runs


@dataclass(frozen=True, slots=True)
class Excess:
    """How far above its minimum the objective ends: on average, in all but BETA of the runs, and bounds of both."""

    mean: float
    most: float
    mean_bound: float
    most_bound: float


@lru_cache(maxsize=16)
def simulated(features: int, records: int = RECORDS, runs: int = RUNS) -> tuple[Excess, Excess]:
    """Logistic regression on seeded points of length 1, by output and by objective perturbation with the same noise.

    With noise b of norm Gamma(d) times 2 / epsilon, output perturbation adds b / (n lambda) to the optimum, where the
    objective rises by at most (c + lambda) / 2 times its square; objective perturbation leaves a gradient of b / n,
    which strong convexity turns into ||b||^2 / (2 n^2 lambda). Chaudhuri, Monteleoni & Sarwate 2011 argue so, with
    ||b|| <= (2 / epsilon) d ln(d / beta) for all but a part beta of the runs.
    """
    rng = np.random.default_rng(17)
    x = rng.standard_normal((records, features))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    chance = 1.0 / (1.0 + np.exp(-3.0 * x[:, 0]))
    signed = x * np.where(rng.random(records) < chance, 1.0, -1.0)[:, None]

    def objective(w: Floats) -> Floats:
        return np.asarray(np.logaddexp(0.0, -w @ signed.T).mean(axis=1) + WEIGHT / 2.0 * (w * w).sum(axis=1))

    left, added = corrected(EPSILON, records, WEIGHT)
    assert added == 0.0
    best = minimisers(signed, records * WEIGHT, np.zeros((1, features)))
    noise = spherical(rng, runs, features)
    ends = {
        2.0 / EPSILON: best + noise * (2.0 / EPSILON) / (records * WEIGHT),
        2.0 / left: minimisers(signed, records * WEIGHT, noise * (2.0 / left)),
    }
    factors = (CURVATURE + WEIGHT) / (2.0 * (records * WEIGHT) ** 2), 1.0 / (2.0 * records**2 * WEIGHT)
    least, found = float(objective(best)[0]), []
    for (scale, w), factor in zip(ends.items(), factors, strict=True):
        above = objective(w) - least
        tail = features * math.log(features / BETA)
        found.append(
            Excess(
                float(above.mean()),
                float(np.quantile(above, 1.0 - BETA)),
                factor * scale**2 * features * (features + 1),
                factor * (scale * tail) ** 2,
            )
        )
    return found[0], found[1]


def _better_performance() -> Truth:
    output, perturbed = excess_risks(100, 0.05, 1.0)
    poor_output, poor_perturbed = excess_risks(50, 0.01, 1.0)
    many = {d: simulated(d) for d in FEATURES}
    saved = [out.mean - obj.mean for out, obj in many.values()]
    better = perturbed < output and min(saved) > 0.0 and saved == sorted(saved) and poor_perturbed > poor_output
    listed = "; ".join(f"d = {d}: {out.mean:.5f} against {obj.mean:.5f}" for d, (out, obj) in many.items())
    first, *_, last = (out.mean / obj.mean for out, obj in many.values())
    return Truth(
        "right" if better else "wrong",
        f"Already with one feature: logistic regression on 100 records, lambda = 0.05, epsilon = 1, ends {output:.4f} "
        f"above the least objective with output and {perturbed:.4f} with objective perturbation, exactly. Means of "
        f"{RUNS} seeded runs on {RECORDS:,} points of length 1, lambda = {WEIGHT:g}: {listed}. What is saved grows "
        f"with d; the factor falls, from {first:.1f} to {last:.1f}, because it is (curvature / lambda)^2 and points "
        "that spread over d directions bend each of them less. Not always: with 50 records, one feature and lambda = "
        f"0.01 the correction eats up epsilon, and it is {poor_output:.2f} against {poor_perturbed:.2f}.",
        {
            "output": output,
            "objective": perturbed,
            "output, n = 50": poor_output,
            "objective, n = 50": poor_perturbed,
            **{f"output, d = {d}": out.mean for d, (out, _) in many.items()},
            **{f"objective, d = {d}": obj.mean for d, (_, obj) in many.items()},
        },
    )


def _accuracy() -> Truth:
    pairs = {d: simulated(d) for d in FEATURES}
    held = all(
        each.mean <= each.mean_bound and each.most <= each.most_bound for pair in pairs.values() for each in pair
    )
    largest = max(each.mean / each.mean_bound for pair in pairs.values() for each in pair)
    output, perturbed = pairs[FEATURES[-1]]
    return Truth(
        "right" if held else "wrong",
        "How much is lost has bounds, by strong convexity (Chaudhuri, Monteleoni & Sarwate 2011): d(d + 1) 2 (c + "
        "lambda) / (n lambda epsilon)^2 on average for output perturbation, d(d + 1) 2 / (lambda (n epsilon')^2) for "
        f"objective perturbation, c = 1/4. Measured on {RECORDS:,} points, {RUNS} seeded runs each, d = 1, 5 and 20, "
        f"lambda = {WEIGHT:g}, epsilon = 1, the means are at most {largest:.2f} of them. At d = 20 it is "
        f"{output.mean:.4f} of at most {output.mean_bound:.4f}, and {perturbed.mean:.4f} of "
        f"{perturbed.mean_bound:.4f}; 95 % of the runs end below {output.most:.4f} and {perturbed.most:.4f}, where the "
        f"bounds with (d ln(d / 0.05))^2 allow {output.most_bound:.3f} and {perturbed.most_bound:.3f}. The loss in "
        "accuracy falls with n^2, and grows with d^2.",
        {
            "largest share of a bound": largest,
            "output, d = 20": output.mean,
            "its bound": output.mean_bound,
            "objective, d = 20": perturbed.mean,
            "bound of the objective's": perturbed.mean_bound,
        },
    )


def draw_accuracy(axes: Axes) -> None:
    """Measured excess of both, and their bounds, against the number of features."""
    tried = (1, 2, 5, 10, 20)
    for place, (name, mark) in enumerate((("output", "o"), ("objective", "s"))):
        pairs = [simulated(d)[place] for d in tried]
        line = axes.plot(tried, [each.mean for each in pairs], mark + "-", label=f"{name} perturbation, mean")[0]
        axes.plot(tried, [each.mean_bound for each in pairs], "--", color=line.get_color(), label=f"{name}, bound")
    axes.set_xscale("log")
    axes.set_xticks(tried, [str(d) for d in tried])
    axes.minorticks_off()
    axes.set_yscale("log")
    axes.set_xlabel("features")
    axes.set_ylabel("objective above its minimum")
    axes.legend()


ERM: tuple[Statement, ...] = (
    Statement(
        name="the accuracy of private learning",
        place=f"{CS208}, 'General Machine Learning'",
        says="Any ML procedure can be extended to satisfy DP, with a loss in accuracy that is provable.",
        verdict="right",
        how=("derived", "computed"),
        check=_accuracy,
        quote="Using similar ideas, you can extend any ML procedure to satisfy DP with an inherent\u2014and "
        "provable\u2014loss in accuracy.",
        reading="Provable: the loss in accuracy has a bound. Shown on regularised logistic regression. "
        "The notes name no bound, so that this one is not reached is no fault of theirs.",
        figure=Figure(
            f"Private logistic regression on {RECORDS:,} points of length 1, epsilon = 1, lambda = {WEIGHT:g}: how "
            f"far above its minimum the objective ends, the mean of {RUNS} seeded runs, and the bounds "
            "of strong convexity.",
            draw_accuracy,
        ),
    ),
    Statement(
        name="objective against output perturbation",
        place=f"{CS208}, 'Objective Perturbation'",
        says="Objective perturbation might have better statistical performance, especially in high dimensions.",
        verdict="right",
        how=("computed",),
        check=_better_performance,
        quote="However, objective perturbation might have better statistical performance than output perturbation, "
        "especially in high-dimensional cases.",
        reading="Performance as the distance from the least objective, and 'especially' as what is saved of it. "
        "'Might' is taken at its word: often, not always.",
    ),
)
