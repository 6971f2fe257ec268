"""Regression: what the notes say of regularised optima, of noise on them, and of noisy statistics."""

from __future__ import annotations

import math

import numpy as np

from audits.lectures.claims.private_erm import ERM
from audits.lectures.claims.risk import RISK
from audits.lectures.claims.statement import Statement, Truth
from dpaudit.catalogue import find

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
        "right" if grows else "wrong",
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


def largest_move(weight: float, records: int, seed: int) -> tuple[float, float]:
    """The largest share of 2 / (n lambda) that one label turned moved the optimum by: huber hinge, and logistic."""
    from dpaudit.catalogue.promises import HUBER_HINGE, LOGISTIC, classifier

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
    weaker = entry.no_correction.true_loss(*entry.default_pair, {"weight": 0.001})
    others: list[list[float]] = [[0.1, -1.0]] * 7
    single = entry.no_correction.true_loss([*others, [1.0, 1.0]], [*others, [0.1, -1.0]], {"weight": 0.005})
    assert with_it is not None
    assert without is not None
    assert weaker is not None
    assert single is not None
    return Truth(
        "right" if with_it <= 1.0 < min(without, single) < max(without, single) < weaker else "wrong",
        "The density of the optimum holds the determinant of the Hessian, which one record changes. At epsilon = 1, "
        "with two features, n = 3 and lambda = 0.01, all of epsilon for the noise gives an exact loss of "
        f"{without:.4f}, and {weaker:.4f} at a tenth of that lambda; with the correction for |loss''| <= 1/4 it is "
        f"{with_it:.4f}. With one feature, n = 8 and lambda = 0.005 it is {single:.4f} without the correction.",
        {"corrected": with_it, "not corrected": without, "lambda 0.001": weaker, "one feature": single},
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
    *RISK,
    Statement(
        name="the name of the squared penalty",
        place=f"{CS208}, exercise 3.1",
        says=r"$\frac{1}{n} \|Y - X\theta\|_2^2 + \lambda \|\theta\|_2^2$ is called LASSO.",
        verdict="wrong",
        how=("computed",),
        check=_lasso,
        quote=r"With regularization, the regularized OLS loss will be $L(\theta | X, Y) = \frac{1}{n} "
        r"\|Y - X\theta\|_2^2 + \lambda \|\theta\|_2^2.$ ... (This is called LASSO.)",
    ),
    Statement(
        name="the global sensitivity of a slope",
        place=f"{CS208}, 'Output Perturbation'",
        says="In linear regression the global sensitivity of slope and intercept is infinite.",
        verdict="right",
        how=("derived", "computed"),
        check=_infinite_sensitivity,
        audits=("ridge regression, labels not clipped", "NoisyStats, exact variance"),
        quote="In the case of linear regression, we saw that the global sensitivity of the function that computes the "
        "slope/intercept is infinite!",
        context="Second, the global sensitivity of the optimal parameter might be very high.",
    ),
    Statement(
        name="when the optimum has a bounded sensitivity",
        place=f"{CS208}, 'Output Perturbation'",
        says=r"The sensitivity of the optimum is bounded where the loss is strictly convex with bounded gradient and "
        r"$R$ is strongly convex.",
        verdict="right and loose",
        how=("derived", "computed", "audited"),
        check=_strong_convexity,
        audits=(
            "output perturbation of a support vector machine",
            "output perturbation, half the sensitivity",
            "output perturbation, the regulariser left out",
        ),
        quote="There are cases in which we can reason about the global sensitivity; in particular, when the loss "
        r"function l is strictly convex, has bounded gradient as a function of $\theta$, and R is strongly convex.",
        reading="Conditions that are enough, as 'in particular' says; not read as necessary ones.",
    ),
    Statement(
        name="second derivatives in objective perturbation",
        place=f"{CS208}, 'Objective Perturbation'",
        says="The proof for objective perturbation needs extra assumptions on the second derivative of the loss.",
        verdict="right",
        how=("computed", "audited"),
        check=_second_derivative,
        audits=(
            "objective perturbation of logistic regression",
            "objective perturbation, no correction for the curvature",
            "objective perturbation, two features",
            "objective perturbation, two features, no correction",
        ),
        quote="Proving privacy for objective perturbation requires similar conditions to those of output conditions, "
        "plus some extra second derivative assumptions about the loss function.",
    ),
    *ERM,
    Statement(
        name="noise on the sufficient statistics",
        place=f"{CS208}, 'Modifying ML Algorithms'",
        says="For linear regression, add Laplace noise to the sufficient statistics.",
        verdict="right and tight",
        how=("derived", "audited"),
        check=_noisy_statistics,
        audits=("regression from five noisy sums", "regression from sums, budget not split"),
        quote="For example, in the case of linear regression, we will add Laplace noise to the sufficient statistics.",
        context="These steps will often be statistical queries, such as estimating the mean of bounded values.",
    ),
)
