"""Gradient descent with differential privacy."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from audits.lectures.claims.statement import Figure, Statement, Truth
from dpaudit.catalogue import find
from dpaudit.losses.distribution import ALONE, poisson, repeated_epsilon, step_losses
from dpaudit.losses.normal import gaussian_epsilon

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GD, SGD = "CS 208, notes 002, 'DP Gradient Descent'", "CS 208, notes 002, 'DP Stochastic Gradient Descent'"
EPSILON, DELTA, STEPS, RECORDS, BATCH = 1.0, 1e-5, 100, 1000, 10
WIDTH, NARROW = 0.003, 0.001  # of the grid of losses, for rare and for frequent steps: three digits and more
CLOSE = 1e-4


@lru_cache(maxsize=256)
def epsilon_of_steps(noise: float, rate: float, steps: int, shift: float = 1.0) -> float:
    """The exact epsilon at DELTA of T steps; a record that is drawn moves the sum by `shift` clip norms."""
    if rate == 1.0:
        return gaussian_epsilon(DELTA, shift * math.sqrt(steps) / noise)
    return repeated_epsilon(
        DELTA, step_losses(poisson(rate, shift / noise), ALONE, "above", WIDTH if rate < 0.05 else NARROW), steps
    )


@lru_cache(maxsize=256)
def noise_for(epsilon: float, rate: float, steps: int, shift: float = 1.0) -> float:
    """The least noise, in clip norms, at which T steps keep epsilon at DELTA."""
    from scipy.optimize import brentq

    def excess(log_noise: float) -> float:
        return math.log(epsilon_of_steps(math.exp(log_noise), rate, steps, shift) / epsilon)

    return math.exp(brentq(excess, math.log(0.75 * shift), math.log(50.0 * shift), xtol=CLOSE)) * (1.0 + CLOSE)


# --- advanced composition -----------------------------------------------------------------------------------------


def advanced(epsilon: float, steps: int) -> float:
    """Advanced composition of T steps of `epsilon`, half of DELTA for it."""
    return epsilon * math.sqrt(2.0 * steps * math.log(2.0 / DELTA)) + steps * epsilon * math.expm1(epsilon)


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
    verdict = "right and tight" if abs(kept / EPSILON - 1.0) <= CLOSE else "right and loose"
    return Truth(
        verdict if kept <= EPSILON else "wrong",
        f"The noise is added to the average, which a record moves by Delta / n, not by Delta: n belongs in the list. "
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


# --- batches ------------------------------------------------------------------------------------------------------


def check_batch() -> Truth:
    sizes = (BATCH, 10 * BATCH, RECORDS)
    noise = {size: noise_for(EPSILON, size / RECORDS, STEPS) for size in sizes}
    sigma = {size: noise[size] / size for size in sizes}
    moves = all(abs(sigma[a] / sigma[b] - 1.0) > CLOSE for a, b in ((sizes[0], sizes[1]), (sizes[1], sizes[2])))
    listed = ", ".join(f"{sigma[size]:.4f} Delta for B = {size:,}" for size in sizes)
    return Truth(
        "right and tight" if moves else "wrong",
        f"In two ways: a record moves the average of a batch by Delta / B, and it is in the batch with probability "
        f"B / n only. For n = {RECORDS:,}, T = {STEPS}, epsilon = {EPSILON:g}, delta = {DELTA:g} and Poisson batches "
        f"the exact sigma is {listed}. The sum of a batch needs {noise[sizes[0]]:.2f}, {noise[sizes[1]]:.2f} and "
        f"{noise[sizes[2]]:.2f} clip norms: subsampling saves a factor {noise[sizes[2]] / noise[sizes[0]]:.1f} "
        f"at B = {sizes[0]}.",
        {f"sigma / Delta, B = {size}": sigma[size] for size in sizes},
    )


def check_fixed_size() -> Truth:
    rate = BATCH / RECORDS
    noise = noise_for(EPSILON, rate, STEPS)
    fixed = epsilon_of_steps(noise, BATCH / (RECORDS + 1), STEPS, shift=2.0)
    small, twin = find("dp_sgd_iterates"), find("dp_sgd_iterates").shuffled_batches
    shuffled, claimed = twin.true_epsilon(*twin.default_pair), small.true_epsilon(*small.default_pair)
    assert shuffled is not None
    assert claimed is not None
    broken = fixed > EPSILON * (1.0 + CLOSE) and shuffled > claimed
    return Truth(
        "not provable as argued" if broken else "right and loose",
        "It is private with a sigma of its own, but not by the analysis of Poisson batches, which lets each record "
        "join by itself: a batch of exactly B is full, so a record that joins pushes another out, and if that one "
        f"pulls the other way the sum moves by 2 Delta. For n = {RECORDS:,}, B = {BATCH} and T = {STEPS}, noise of "
        f"{noise:.3f} clip norms keeps epsilon = {EPSILON:g} at delta = {DELTA:g} with Poisson batches; with batches "
        f"of exactly B the true epsilon of such data is {fixed:.3f}. Dealt out from a shuffled deck, in a small case, "
        f"it is {shuffled:.3f} where {claimed:.3f} is claimed.",
        {"noise": noise, "true epsilon, batches of B": fixed, "shuffled": shuffled, "claimed": claimed},
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


# --- figure -------------------------------------------------------------------------------------------------------

DRAWN = (1, 2, 4, 8, 16, 32, 64, 128)
RATE = 0.05


def advanced_epsilon(steps: int) -> float:
    """Advanced, or basic, composition of T subsampled Gaussian steps with noise of 1 clip norm."""
    whole = gaussian_epsilon(DELTA / (2.0 * steps * RATE), 1.0)
    each = math.log1p(RATE * math.expm1(whole))
    return min(steps * each, advanced(each, steps))


def draw_steps(axes: Axes) -> None:
    """Epsilon against steps."""
    axes.plot(DRAWN, [advanced_epsilon(steps) for steps in DRAWN], "o--", label="advanced composition")
    axes.plot(DRAWN, [epsilon_of_steps(1.0, 1.0, steps) for steps in DRAWN], "^:", label="exact, full batches")
    axes.plot(DRAWN, [epsilon_of_steps(1.0, RATE, steps) for steps in DRAWN], "s-", label="exact, Poisson batches")
    axes.set_xscale("log")
    axes.set_xticks(DRAWN, [str(steps) for steps in DRAWN])
    axes.minorticks_off()
    axes.set_yscale("log")
    axes.set_xlabel("steps")
    axes.set_ylabel(f"epsilon at delta = {DELTA:g}")
    axes.legend()


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        name="dp-gd-advanced-composition",
        place=f"{GD}, below algorithm 2",
        says="sigma^2 can be set by advanced composition for adaptive queries",
        verdict="right and loose",
        how=("derived", "computed"),
        check=check_advanced,
        audits=("DP-GD, all models", "DP-GD, claimed as one step"),
    ),
    Statement(
        name="dp-gd-noise-on-the-average",
        place=f"{GD}, algorithm 2",
        says="N(0, sigma^2 I) is added to the average, and sigma depends on T, epsilon, delta and Delta",
        verdict="right and loose",
        how=("derived", "computed"),
        check=check_average,
        audits=("DP-GD, the last model", "DP-GD, claimed for a record replaced", "DP-GD, noise averaged twice"),
    ),
    Statement(
        name="dp-gd-clipping-and-noise",
        place=f"{GD}, algorithm 2",
        says="clipped gradients and noise are what is added for privacy",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_both,
        audits=("Gradient descent without noise", "DP-SGD without clipping", "DP-SGD, all models"),
    ),
    Statement(
        name="dp-sgd-batch-size",
        place=f"{SGD}, below algorithm 3",
        says="for batches of size B << n, sigma^2 depends on B too",
        verdict="right and tight",
        how=("computed",),
        check=check_batch,
        audits=("DP-SGD, all models", "DP-SGD, accounted at the rate of one record"),
        figure=Figure(
            f"Epsilon of DP-SGD with noise of one clip norm and batches of {RATE:.0%} of the records, all models seen. "
            "What is drawn at random protects; advanced composition shows less and less of it.",
            draw_steps,
        ),
    ),
    Statement(
        name="dp-sgd-fixed-size-batches",
        place=f"{SGD}, algorithm 3, read with the usual sigma, which the notes leave open",
        says="S_t is a random batch of size B << n; sigma from the analysis of subsampled steps",
        verdict="not provable as argued",
        how=("derived", "computed", "audited"),
        check=check_fixed_size,
        audits=("DP-SGD, shuffled batches claimed as Poisson", "DP-SGD, divided by the batch that was drawn"),
    ),
)
