"""Gradient descent with differential privacy."""

from __future__ import annotations

import math

from audits.lectures.claims.batches import (
    BATCHES,
    CLOSE,
    DELTA,
    EPSILON,
    RECORDS,
    STEPS,
    advanced,
    epsilon_of_steps,
    noise_for,
)
from audits.lectures.claims.converging import CONVERGING
from audits.lectures.claims.convexity import CONVEXITY
from audits.lectures.claims.statement import Statement, Truth
from dpaudit.catalogue import find
from dpaudit.losses.distribution import gaussian_epsilon

GD = "CS 208, notes 002, 'DP Gradient Descent'"

# --- advanced composition -----------------------------------------------------------------------------------------


def step_noise() -> float:
    """The noise, in clip norms, that advanced composition asks for: classic calibration, DELTA / 2T for each step."""
    from scipy.optimize import brentq

    epsilon = brentq(lambda value: advanced(value, STEPS) - EPSILON, 1e-9, 1.0)
    return math.sqrt(2.0 * math.log(1.25 * 2.0 * STEPS / DELTA)) / epsilon


def check_advanced() -> Truth:
    given, needed = step_noise(), noise_for(EPSILON, 1.0, STEPS)
    true = epsilon_of_steps(given, 1.0, STEPS)
    verdict = "right and loose" if given > needed * (1.0 + CLOSE) else "right and tight"
    return Truth(
        verdict if true <= EPSILON else "wrong",
        f"With T = {STEPS}, epsilon = {EPSILON:g} and delta = {DELTA:g} it asks for noise of {given:.1f} clip norms on "
        f"the sum of the gradients; {needed:.1f} are enough, {given / needed:.1f} times less, because T Gaussian steps "
        f"are one Gaussian release with sqrt(T) times the shift, exactly, also when each step depends on the models "
        f"before it. With the noise of advanced composition the true epsilon is {true:.3f}.",
        {"noise of advanced composition": given, "noise needed": needed, "true epsilon": true},
    )


# --- what the noise is added to -----------------------------------------------------------------------------------


def check_average() -> Truth:
    for_sum = noise_for(EPSILON, 1.0, STEPS)
    kept = gaussian_epsilon(DELTA, math.sqrt(STEPS) / (RECORDS * for_sum))  # that noise, on the average
    moved = noise_for(EPSILON, 1.0, STEPS // 4), noise_for(2.0 * EPSILON, 1.0, STEPS)
    return Truth(
        "right" if max(moved) < for_sum and kept <= EPSILON else "wrong",
        f"A quarter of the steps takes {moved[0] / for_sum:.2f} of the noise, and twice the epsilon "
        f"{moved[1] / for_sum:.2f} of it. It is added to the average, which a record moves by Delta / n: n has its "
        "part in sigma too. "
        f"For n = {RECORDS:,}, T = {STEPS}, epsilon = {EPSILON:g} and delta = {DELTA:g} a sigma of "
        f"{for_sum / RECORDS:.4f} Delta is enough for a record that is added or removed, n being public, and "
        f"{2.0 * for_sum / RECORDS:.4f} Delta for one that is replaced, which can turn its clipped gradient round. A "
        f"sigma from Delta alone is {for_sum:.1f} Delta: private (true epsilon {kept:.4f}), with n times the noise.",
        {
            "sigma / Delta, added or removed": for_sum / RECORDS,
            "sigma / Delta, replaced": 2.0 * for_sum / RECORDS,
            "sigma / Delta without n": for_sum,
            "true epsilon without n": kept,
        },
    )


# --- clipping and noise -------------------------------------------------------------------------------------------


def check_both() -> Truth:
    sound, plain = find("dp_sgd_iterates"), find("gradient_descent")
    without = {"noise": plain, "clipping": sound.no_clipping}
    losses = {word: twin.true_loss(*twin.default_pair) for word, twin in without.items()}
    kept = sound.true_epsilon(*sound.default_pair)
    claimed = sound.claim().promised(sound.claim().delta)
    assert kept is not None
    assert losses["noise"] is not None
    assert losses["clipping"] is not None
    needed = math.isinf(losses["noise"]) and losses["clipping"] > claimed
    return Truth(
        ("right and tight" if kept > claimed * (1.0 - CLOSE) else "right and loose") if needed else "wrong",
        f"Both are needed. Clipped or not, without noise one record more gives another model, always. With the noise "
        f"and without clipping a small DP-SGD that is claimed at epsilon = {claimed:.3f} has {losses['clipping']:.3f} "
        f"on a record whose gradient is 1.5 clip norms long, and no bound over all records. With both it has "
        f"{kept:.3f} on a record that is clipped whenever it is drawn.",
        {"with both": kept, "without clipping": losses["clipping"], "claimed": claimed},
    )


STATEMENTS: tuple[Statement, ...] = (
    *CONVEXITY,
    *CONVERGING,
    Statement(
        name="dp-gd-advanced-composition",
        place=f"{GD}, below algorithm 2",
        says=r"The variance $\sigma^2$ of the noise can be set by advanced composition for adaptive queries.",
        verdict="right and loose",
        how=("derived", "computed"),
        check=check_advanced,
        audits=("DP-GD, all models", "DP-GD, claimed as one step"),
        quote=r"Note that the variance $\sigma^2$ of the noise we need to add to the gradient at every iteration can "
        r"be set using advanced composition for adaptive queries",
        reading="Advanced composition with both of its terms.",
    ),
    Statement(
        name="dp-gd-noise-on-the-average",
        place=f"{GD}, algorithm 2",
        says=r"$\mathcal{N}(0, \sigma^2 I)$ is added to the average of the clipped gradients, and $\sigma$ depends on "
        r"$T$, $\varepsilon$, $\delta$ and $\Delta$.",
        verdict="right",
        how=("derived", "computed"),
        check=check_average,
        audits=("DP-GD, the last model", "DP-GD, claimed for a record replaced", "DP-GD, noise averaged twice"),
        quote=r"$\hat{g}_t = \frac{1}{n} \sum_i [\nabla l(\hat{\theta}_{t-1} | x_i, y_i)]_{\nabla} + "
        r"\nabla R(\hat{\theta}_{t-1}) + \mathcal{N}(0, \sigma^2 I)$ ... and will depend on T, $\epsilon$, $\delta$, "
        r"and $\Delta$.",
        context="Estimate gradient as noisy average of clipped gradients",
        reading="A list of what sigma depends on, which need not be whole: it is not read as saying that n has no part "
        "in it.",
    ),
    Statement(
        name="dp-gd-clipping-and-noise",
        place=f"{GD}, algorithm 2",
        says="Clipped gradients and noise are what is added for privacy.",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_both,
        audits=("Gradient descent without noise", "DP-SGD without clipping", "DP-SGD, all models"),
        quote="The items in red are what are added for privacy. ... "
        "Estimate gradient as noisy average of clipped gradients",
    ),
    *BATCHES,
)
