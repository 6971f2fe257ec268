"""Supervised learning as the notes set it up: losses, empirical risk, and what a regulariser does."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from audits.lectures.claims.statement import Statement, Truth

Floats = npt.NDArray[np.float64]

CS208 = "CS 208, notes 002"

# --- risk and empirical risk ------------------------------------------------------------------------------------------

# a world of four outcomes (x, y) and their probabilities: y = x with noise
WORLD = (((1.0, 1.5), 0.25), ((1.0, 0.5), 0.25), ((-1.0, -1.5), 0.25), ((-1.0, -0.5), 0.25))


def ridge(sample: Sequence[tuple[float, float]], weight: float) -> float:
    """argmin over theta of the average squared error plus weight theta^2."""
    return sum(x * y for x, y in sample) / (sum(x * x for x, _ in sample) + len(sample) * weight)


def risk(theta: float) -> float:
    """The expected squared error in the world."""
    return sum(chance * (y - theta * x) ** 2 for (x, y), chance in WORLD)


def mean_risks(records: int, weight: float) -> tuple[float, float]:
    """Of the fitted theta, over all samples: the average error on its own sample, and the risk; both exact."""
    seen = true = 0.0
    for sample in itertools.product(WORLD, repeat=records):
        points = [point for point, _ in sample]
        chance, theta = math.prod(each for _, each in sample), ridge(points, weight)
        seen += chance * sum((y - theta * x) ** 2 for x, y in points) / records
        true += chance * risk(theta)
    return seen, true


def check_overfitting() -> Truth:
    least = risk(1.0)
    sizes = (1, 2, 4)
    plain = {n: mean_risks(n, 0.0) for n in sizes}
    helped = mean_risks(2, 0.1)
    fits = all(seen < least < true for seen, true in plain.values())
    return Truth(
        "right" if fits and helped[1] < plain[2][1] else "wrong",
        "All samples of a small world enumerated: y = x plus or minus 1/2, whose least risk is "
        f"{least:g}. A fit of n = 2 points has a mean error of {plain[2][0]:.4f} on its own points and a mean risk of "
        f"{plain[2][1]:.4f}; for n = 4 it is {plain[4][0]:.4f} and {plain[4][1]:.4f}. The empirical risk of a theta "
        "chosen without looking is unbiased; of the one that fits best it is too small. A squared penalty of 0.1 "
        f"brings the risk at n = 2 down to {helped[1]:.4f}. What differential privacy does against this has statements "
        "of its own: see generalisation-by-privacy.",
        {"least risk": least, "own error, n = 2": plain[2][0], "risk, n = 2": plain[2][1], "with penalty": helped[1]},
    )


# --- losses ----------------------------------------------------------------------------------------------------------


def check_log_likelihood() -> Truth:
    labels = np.array([1, 1, 0, 1, 0, 1, 1])
    p = np.linspace(0.001, 0.999, 999)
    likelihood = np.prod(np.where(labels[:, None] == 1, p, 1.0 - p), axis=0)
    logs = -np.log(np.where(labels[:, None] == 1, p, 1.0 - p)).sum(axis=0)
    many = np.tile(labels, 200)
    product = math.prod(0.7 if label else 0.3 for label in many)
    total = -sum(math.log(0.7 if label else 0.3) for label in many)
    same = int(likelihood.argmax()) == int(logs.argmin()) and np.array_equal(np.argsort(-likelihood), np.argsort(logs))
    return Truth(
        "right" if same and product == 0.0 < total < math.inf else "wrong",
        f"On a grid of 999 models the likelihood of seven labels is greatest where the negative log likelihood is "
        f"least, at p = {p[logs.argmin()]:.3f}, and they order all models alike. And it is computed safely: the "
        f"likelihood of {len(many):,} labels is {product:g} in double precision, its negative logarithm {total:.1f}.",
        {"best p": float(p[logs.argmin()]), "negative log likelihood": total},
    )


# --- regularisation --------------------------------------------------------------------------------------------------


def check_prior() -> Truth:
    rng = np.random.default_rng(11)
    x = rng.standard_normal((12, 3))
    y = x @ np.array([2.0, -1.0, 0.5]) + rng.standard_normal(12)
    sizes, gaps = [], []
    for weight in (0.0, 0.1, 1.0, 10.0):
        theta = np.linalg.solve(x.T @ x + 12 * weight * np.eye(3), x.T @ y)
        sizes.append(float(np.linalg.norm(theta)))
        if weight:  # the mode under noise N(0, 1) and the prior N(0, I / (n lambda)): gradient of the log posterior
            gaps.append(float(np.abs(x.T @ (y - x @ theta) - 12 * weight * theta).max()))
    shrinks = all(early > late for early, late in itertools.pairwise(sizes))
    return Truth(
        "right" if shrinks and max(gaps) < 1e-9 else "wrong",
        f"For a squared penalty both are exact. The length of theta falls with lambda, {sizes[0]:.3f}, {sizes[1]:.3f}, "
        f"{sizes[2]:.3f} and {sizes[3]:.3f} for 0, 0.1, 1 and 10 on 12 points; and the regularised theta is the most "
        "probable one under the prior N(0, s^2 / (n lambda)), s^2 being the variance of the errors: the gradient of "
        "the log posterior is 0 there.",
        {"no penalty": sizes[0], "lambda 0.1": sizes[1], "lambda 1": sizes[2], "lambda 10": sizes[3]},
    )


def noisy_features(noise: float) -> tuple[float, float]:
    """The mean squared error over features moved by plus or minus `noise`, in all ways; and that plus noise^2 w^2."""
    x, y, w = np.array([1.0, -1.0, 0.5, 0.2]), np.array([0.3, -0.2, 0.1, 0.1]), 0.7
    moved = [x + noise * np.array(signs) for signs in itertools.product((-1.0, 1.0), repeat=4)]
    return float(np.mean([((y - each * w) ** 2).mean() for each in moved])), float(
        ((y - x * w) ** 2).mean() + noise**2 * w**2
    )


def check_source_of_noise() -> Truth:
    from dpaudit.catalogue import find
    from dpaudit.catalogue.promises import HUBER_HINGE, classifier

    noised, penalised = noisy_features(0.4)
    first, second = find("output_perturbation").default_pair
    moved = float(np.linalg.norm(classifier(first, 0.4, HUBER_HINGE) - classifier(second, 0.4, HUBER_HINGE)))
    return Truth(
        "right" if math.isclose(noised, penalised) and moved > 0.0 else "wrong",
        "On average a squared penalty is noise on the features (Bishop 1995): over all ways of moving four x by plus "
        f"or minus 0.4 the mean squared error at theta = 0.7 is {noised:.6f}, and so is that of the features as they "
        f"are plus 0.16 theta^2: {penalised:.6f}. The regulariser itself draws nothing, and no privacy comes from it: "
        f"neighbouring data give optima {moved:.3f} apart, always. What it does for privacy is keep them that close.",
        {"noise on the features": noised, "penalty": penalised, "neighbours": moved},
    )


# --- no unique optimum -----------------------------------------------------------------------------------------------


def check_no_unique_optimum() -> Truth:
    """The median of an even number of points in [0, 1]: a convex loss of bounded gradient, and a flat stretch."""
    jumps = {}
    for records in (4, 100, 10_000):
        half = records // 2
        even, turned = ([0.0] * (half - gone) + [1.0] * (half + gone) for gone in (0, 1))
        jumps[records] = float(np.median(turned) - np.median(even))
    return Truth(
        "right" if min(jumps.values()) == 0.5 else "wrong",
        "The absolute loss has a bounded gradient, and no unique optimum where half of the points lie at 0 and half "
        f"at 1: one record then moves the midpoint of all optima by {jumps[4]:g}, {jumps[100]:g} and "
        f"{jumps[10_000]:g} of the whole range for n = 4, 100 and 10,000. It does not fall with n. A regulariser makes "
        "the optimum unique and its move at most 2 L / (n lambda).",
        {f"n = {records}": jump for records, jump in jumps.items()},
    )


RISK: tuple[Statement, ...] = (
    Statement(
        name="negative-log-likelihood",
        place=f"{CS208}, 'Inputs'",
        says="Minimising the negative log likelihood is maximising the likelihood, and easier to work with.",
        verdict="right",
        how=("derived", "computed"),
        check=check_log_likelihood,
        quote="Since the logarithm is a monotone function, optimizing the function is the same as optimizing the "
        "logarithm of it.",
        context="multiplications become sums and small likelihoods become larger negative values",
    ),
    Statement(
        name="empirical-risk-overfits",
        place=f"{CS208}, 'Goals'",
        says="What minimises the empirical risk might not generalise to the distribution of the data.",
        verdict="right",
        how=("computed",),
        check=check_overfitting,
        quote="In other words, we might minimize empirical risk for the given dataset, but this might not generalize "
        "to the probability distribution.",
        context="Here, we use our dataset as a proxy for the underlying distribution",
    ),
    Statement(
        name="a regulariser as a source of noise",
        place=f"{CS208}, 'Goals'",
        says=r"Another source of noise, a regularisation term $R(\theta)$, prevents overfitting.",
        verdict="right",
        how=("derived", "computed"),
        check=check_source_of_noise,
        quote="But more generally, we can prevent overfitting by adding another source of noise: a regularization "
        "term.",
        reading="Noise on the features has the effect of a squared penalty on average; the kinder reading. It is not "
        "read as noise for privacy.",
    ),
    Statement(
        name="what-a-regulariser-does",
        place=f"{CS208}, 'Goals', below equation (1)",
        says=r"The regularisation term prevents large $\theta$ and can capture a Bayesian prior.",
        verdict="right",
        how=("derived", "computed"),
        check=check_prior,
        quote=r"The regularization term typically prevents large $\theta$ s (which would imply too much complexity "
        "that is specific to the given dataset) and can capture a Bayesian prior.",
        context=r"$L(\theta | \vec{x}, \vec{y}) = \frac{1}{n} \sum_{i=1}^n \ell(\theta | x_i, y_i) + R(\theta), "
        r"\quad (1)$",
    ),
    Statement(
        name="no-unique-optimum",
        place=f"{CS208}, 'Output Perturbation'",
        says="Without a unique optimum a bounded sensitivity is unlikely.",
        verdict="right",
        how=("derived", "computed"),
        check=check_no_unique_optimum,
        quote="But in general, if there is no unique optimum, it is unlikely that we will have bounded sensitivity.",
        reading="Bounded by something that falls with n: in a bounded space every sensitivity is bounded.",
    ),
)
