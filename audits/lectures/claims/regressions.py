"""Regression: what the notes say of regularised optima, of noise on them, and of noisy statistics."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.integrate import trapezoid

from audits.lectures.claims.statement import Statement, Truth
from dpaudit.catalogue import find

Floats = npt.NDArray[np.float64]

CS208 = "CS 208, notes 002"


def slope_and_intercept(points: list[tuple[float, float]]) -> tuple[float, float]:
    """The line of least squares."""
    x, y = np.array(points).T
    slope = ((x - x.mean()) @ (y - y.mean())) / ((x - x.mean()) @ (x - x.mean()))
    return float(slope), float(y.mean() - slope * x.mean())


def _infinite_sensitivity() -> Truth:
    moved = []
    for width in (1e-1, 1e-3, 1e-6):
        others = [(1.0, 0.5)] * 9
        lines = [slope_and_intercept([*others, (1.0 - width, y)]) for y in (0.0, 1.0)]
        moved.append([abs(before - after) for before, after in zip(*lines, strict=True)])
    grows = all(late > 900.0 * early for early, late in zip(moved[1], moved[2], strict=True))
    return Truth(
        "right and tight" if grows else "wrong",
        "Even with x and y in [0, 1]: nine points at x = 1 and one at x = 1 - h, whose y goes from 0 to 1. The "
        f"slope moves by 1/h: by {moved[0][0]:.0f}, {moved[1][0]:,.0f} and {moved[2][0]:,.0f} for h = 0.1, 0.001 "
        f"and 0.000001, the intercept by {moved[0][1]:.0f}, {moved[1][1]:,.0f} and {moved[2][1]:,.0f}. No noise "
        "of a fixed scale is enough.",
        {"slope, h = 1e-6": moved[2][0], "intercept, h = 1e-6": moved[2][1]},
    )


def _lasso() -> Truth:
    x, y, weight = np.array([1.0, -1.0, 0.5, 0.2]), np.array([0.3, -0.2, 0.1, 0.1]), 1.0
    grid = np.linspace(-1.0, 1.0, 200_001)
    risk = ((y[:, None] - np.outer(x, grid)) ** 2).mean(axis=0)
    squared, absolute = (float(grid[np.argmin(risk + weight * each)]) for each in (grid**2, np.abs(grid)))
    plain = float((x @ y) / (x @ x))
    return Truth(
        "wrong" if abs(absolute) < 1e-9 < abs(squared) else "right and tight",
        "A slip of the name: a squared penalty is ridge regression (Tikhonov); LASSO has the sum of |theta|. They "
        f"differ: on four points with slope {plain:.3f} and lambda = 1 the squared penalty shrinks the slope to "
        f"{squared:.3f}, the absolute one puts it at {absolute:.3f}, as LASSO does. For privacy the squared one is "
        "the right choice: it is strongly convex.",
        {"plain": plain, "ridge": squared, "LASSO": absolute},
    )


def _source_of_noise() -> Truth:
    from dpaudit.catalogue.learning.optimum import HUBER_HINGE, classifier

    first, second = find("output_perturbation").default_pair
    again = float(np.abs(classifier(first, 0.4, HUBER_HINGE) - classifier(first, 0.4, HUBER_HINGE)).max())
    moved = float(np.linalg.norm(classifier(first, 0.4, HUBER_HINGE) - classifier(second, 0.4, HUBER_HINGE)))
    return Truth(
        "wrong" if again == 0.0 < moved else "right and tight",
        "A way of speaking that should not be taken at its word: a regulariser draws nothing. Two fits of the same "
        f"data differ by {again:g}. Neighbouring data give optima {moved:.3f} apart, told apart with certainty, so "
        "without noise there is no epsilon. What it does is keep that distance small, at most 2 / (n lambda).",
        {"two fits": again, "neighbours": moved},
    )


def largest_move(weight: float, records: int, seed: int) -> tuple[float, float]:
    """The largest share of 2 / (n lambda) that one label turned moved the optimum by: huber hinge, and logistic."""
    from dpaudit.catalogue.learning.optimum import HUBER_HINGE, LOGISTIC, classifier

    rng = np.random.default_rng(seed)
    found = [0.0, 0.0]
    for _ in range(60):
        x = rng.standard_normal((records, 2))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        data = np.column_stack([x, rng.choice([-1.0, 1.0], records)])
        turned = data.copy()
        turned[-1, -1] *= -1.0
        for place, loss in enumerate((HUBER_HINGE, LOGISTIC)):
            optima = [classifier(each.tolist(), weight, loss) for each in (data, turned)]
            share = float(np.linalg.norm(optima[0] - optima[1])) * records * weight / 2.0
            found[place] = max(found[place], share)
    return found[0], found[1]


def _strong_convexity() -> Truth:
    hinge, logistic = largest_move(1.0, 10, seed=2)
    bounded = max(hinge, logistic) <= 1.0 + 1e-9
    return Truth(
        ("right and loose" if hinge > 0.99 else "right and tight") if bounded else "wrong",
        "With gradients of length at most L and a lambda-strongly convex objective the optimum moves by at most "
        "2L / (n lambda). Strict convexity of the loss is not needed: the hinge with a rounded corner, straight "
        f"on one side, reaches {hinge:.2f} of that bound in a random search over data with n = 10 and lambda = 1. "
        f"Logistic loss, which is strictly convex, reached {logistic:.2f}: for one turned label the two slopes "
        "add up to 1, not 2.",
        {"hinge": hinge, "logistic": logistic},
    )


def _second_derivative() -> Truth:
    entry = find("objective_perturbation")
    with_it, without = (each.true_loss(*entry.default_pair) for each in (entry, entry.no_correction))
    weaker = entry.no_correction.true_loss(*entry.default_pair, {"weight": 0.0005})
    assert with_it is not None
    assert without is not None
    assert weaker is not None
    return Truth(
        "right and tight" if with_it <= 1.0 < without < weaker else "wrong",
        "The density of the optimum holds the curvature of the objective, which one record changes. At epsilon = "
        f"1, n = 8, lambda = 0.005, all of epsilon for the noise gives an exact loss of {without:.4f}, and "
        f"{weaker:.4f} at a tenth of that lambda; with the correction for |loss''| <= 1/4 it is {with_it:.4f}.",
        {"corrected": with_it, "not corrected": without, "lambda 0.0005": weaker},
    )


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


def _noisy_statistics() -> Truth:
    entry = find("regression_from_sums")
    loss, whole = (each.true_loss(*entry.default_pair) for each in (entry, entry.budget_not_split))
    assert loss is not None
    assert whole is not None
    return Truth(
        "right and tight" if math.isclose(loss, 1.0) else "wrong",
        "Five sums are enough: n, x, y, xy, x^2, clipped to [-1, 1]. Lap(5 / epsilon) on each is epsilon-DP, and "
        f"a record at (1, 1) costs exactly {loss:.4f} of epsilon = 1. Noise of scale 1 / epsilon on each would be "
        f"{whole:.4f}; one exact sum, or bounds read off the data, leave no epsilon at all.",
        {"split": loss, "not split": whole},
    )


REGRESSION: tuple[Statement, ...] = (
    Statement(
        "a regulariser as a source of noise",
        f"{CS208}, 'Goals'",
        "prevent overfitting by adding another source of noise: a regularisation term R(theta)",
        "wrong",
        ("computed",),
        _source_of_noise,
    ),
    Statement(
        "the name of the squared penalty",
        f"{CS208}, exercise 3.1",
        "(1/n) ||Y - X theta||^2 + lambda ||theta||_2^2 is called LASSO",
        "wrong",
        ("computed",),
        _lasso,
    ),
    Statement(
        "the global sensitivity of a slope",
        f"{CS208}, 'Output Perturbation'",
        "the global sensitivity of slope and intercept is infinite",
        "right and tight",
        ("derived", "computed"),
        _infinite_sensitivity,
        ("ridge regression, labels not clipped", "NoisyStats, exact variance"),
    ),
    Statement(
        "when the optimum has a bounded sensitivity",
        f"{CS208}, 'Output Perturbation'",
        "bounded where the loss is strictly convex with bounded gradient and R is strongly convex",
        "right and loose",
        ("derived", "computed", "audited"),
        _strong_convexity,
        (
            "output perturbation of a support vector machine",
            "output perturbation, half the sensitivity",
            "output perturbation, the regulariser left out",
        ),
    ),
    Statement(
        "second derivatives in objective perturbation",
        f"{CS208}, 'Objective Perturbation'",
        "its proof needs extra assumptions on the second derivative of the loss",
        "right and tight",
        ("computed", "audited"),
        _second_derivative,
        ("objective perturbation of logistic regression", "objective perturbation, no correction for the curvature"),
    ),
    Statement(
        "objective against output perturbation",
        f"{CS208}, 'Objective Perturbation'",
        "it might have better statistical performance, especially in high dimensions",
        "right and loose",
        ("computed",),
        _better_performance,
    ),
    Statement(
        "noise on the sufficient statistics",
        f"{CS208}, 'Modifying ML Algorithms'",
        "for linear regression, add Laplace noise to the sufficient statistics",
        "right and tight",
        ("derived", "audited"),
        _noisy_statistics,
        ("regression from five noisy sums", "regression from sums, budget not split"),
    ),
)
