"""Additive noise."""

from __future__ import annotations

import math

import numpy as np

from audits.lectures.claims import additive_accuracy, additive_normal
from audits.lectures.claims.statement import Statement, Truth
from dpaudit.catalogue import find

SEED = 1
CLOSE = 1e-9  # relative: what rounding may cost a computed value
EPSILONS = (0.1, 0.5, 1.0, 2.0)

HAGHTALAB, BASSI = "Haghtalab 2020, notes 000", "Bassi 2019, notes 001"
SARKAR, CHEEMA = "Sarkar, notes 003", "Cheema & Huszár, notes 004"


def log_ratio(shift: float, scale: float) -> float:
    """The largest |ln| of the ratio of two Lap(scale) densities a shift apart, over a grid that holds the kinks."""
    at = np.concatenate([np.linspace(-30.0, 30.0, 6001) * scale, [0.0, shift]])
    return float(np.max(np.abs(np.abs(at - shift) - np.abs(at)))) / scale


# --- privacy --------------------------------------------------------------------------------------------------


def check_count() -> Truth:
    ratios = {epsilon: log_ratio(1.0, 1.0 / epsilon) for epsilon in EPSILONS}
    tight = all(abs(ratio / epsilon - 1.0) <= CLOSE for epsilon, ratio in ratios.items())
    return Truth(
        "right and tight" if tight else "wrong",
        f"The largest log ratio of the two densities is epsilon itself (at epsilon = 1: {ratios[1.0]:.6f}), at every "
        "output above both counts or below both. Half of the noise has twice the loss.",
        {"loss": ratios[1.0], "with half the noise": log_ratio(1.0, 0.5)},
    )


def check_average() -> Truth:
    bound, epsilon = 100.0, 1.0
    losses = {m: log_ratio(bound / m, bound / (m * epsilon)) for m in (2, 10, 100)}
    tight = all(abs(loss / epsilon - 1.0) <= CLOSE for loss in losses.values())
    return Truth(
        "right and tight" if tight else "wrong",
        "A value replaced by one at the other end of [0, b] moves the average by b / m, and the loss is "
        f"{losses[10]:.6f} "
        "times epsilon for every m. That holds for a public m: where a record may also be added or removed, the scale "
        "b / (m epsilon) itself differs between neighbours, and there is no epsilon at all.",
        {
            "loss": losses[10],
            "loss where m is a secret": find("laplace_average").secret_size.true_epsilon([0.0], [0.0] * 2),
        },
    )


def check_display() -> Truth:
    """The total mass of e^(-|r| epsilon m / b), which the notes call the density of the release."""
    bound, m, epsilon = 100.0, 10, 1.0
    scale = bound / (m * epsilon)
    at, step = np.linspace(-60.0 * scale, 60.0 * scale, 240_001, retstep=True)
    mass = float(np.sum(np.exp(-np.abs(at) / scale)) * step)
    return Truth(
        "right and tight" if abs(mass - 1.0) < 1e-3 else "wrong",
        f"A slip without consequence: as printed the mass is 2 b / (m epsilon) = {mass:.3f} (b = 100, m = 10, "
        "epsilon = 1) and not 1. The missing factor m epsilon / (2 b) is the same for both datasets, so it cancels in "
        "the quotient, and the conclusion stands. The display also sets f(S_1) = 0, which loses nothing.",
        {"mass": mass},
    )


def check_vector() -> Truth:
    rng, m, scale = np.random.default_rng(SEED), 5, 3.0
    moves = rng.dirichlet(np.ones(m), 50) * scale  # of l1 length epsilon times the scale, epsilon = 1
    at = rng.normal(scale=3.0 * scale, size=(20_000, m))
    largest = max(float(np.max((np.abs(at - move) - np.abs(at)).sum(axis=1))) / scale for move in moves)
    beyond = max(float((np.abs(-50.0 - move) - 50.0).sum()) / scale for move in moves)
    right, tight = largest <= 1.0 + CLOSE, abs(beyond - 1.0) <= CLOSE
    one = find("laplace_vector").sensitivity_of_one.true_epsilon([0] * 4, [1] * 4, {"sensitivity": 4.0})
    return Truth(
        "wrong" if not right else "right and tight" if tight else "right and loose",
        f"No output has a log ratio above epsilon, and one that is beyond all answers has exactly that ({beyond:.6f} "
        "at "
        f"epsilon = 1). With the noise of a single answer, four answers that all move have {one:.1f} epsilon.",
        {"loss": beyond, "four answers with the noise of one": one or 0.0},
    )


def check_support() -> Truth:
    laplace_entry = find("laplace")
    clipped = {k: laplace_entry.clipped_noise.true_epsilon(10, 9, {"reach": k}) for k in (1.0, 5.0, 50.0)}
    needed = all(loss == math.inf for loss in clipped.values())
    delta = {k: math.exp(1.0 - k) / 2.0 for k in clipped}  # the noise in the last step before its end, at epsilon = 1
    return Truth(
        "right and tight" if needed else "wrong",
        "Noise that ends at k has no epsilon, however large k: outputs within 1 of the end cannot come from a "
        "neighbour. "
        f"What a larger k buys is their rarity: clipped Laplace noise has delta = {delta[1.0]:.3f} at k = 1 and "
        f"{delta[5.0]:.4f} at k = 5, for epsilon = 1.",
        {"epsilon": clipped[5.0] or 0.0, "delta at 5": delta[5.0]},
    )


def check_uniform_count() -> Truth:
    delta = {"continuous": 1.0 / 5.0, "integers": 1.0 / 6.0}
    loss = find("laplace").uniform_noise.true_epsilon(10, 9)
    at = np.linspace(0.0, 7.0, 700_001)[:-1]
    first, second = ((at >= low) & (at < low + 5.0) for low in (0.0, 1.0))
    for epsilon in EPSILONS:
        excess = np.maximum(first / 5.0 - math.exp(epsilon) * second / 5.0, 0.0)
        delta[f"at epsilon {epsilon:g}"] = float(excess.sum() * 7.0 / len(at))
    same = all(abs(value - 0.2) < 1e-4 for name, value in delta.items() if name.startswith("at"))
    return Truth(
        "wrong" if loss == math.inf and same else "right and loose",
        f"No: there is no epsilon at all. A share of {delta['at epsilon 1']:.3f} of the outputs cannot come from the "
        f"neighbour, so delta is 1/5 at every epsilon (1/6 = {delta['integers']:.4f} on the integers 0 to 5). The "
        "notes "
        "ask this as a question.",
        delta,
    )


def check_uniform_mean() -> Truth:
    """On the points k / n, |k - n mu| <= L: the share of one side's points that the other has not."""
    reach, n = 50, 20
    points = {
        move: {*range(-reach, reach + 1)} - {*range(move - reach, move + reach + 1)} for move in (reach, 2 * reach)
    }
    delta = {move: len(lost) / (2 * reach + 1) for move, lost in points.items()}
    left = {k / n for k in range(-reach, reach + 1)} - {k / (n - 1) for k in range(-reach, reach + 1)}
    removed = len(left) / (2 * reach + 1)
    return Truth(
        "wrong" if min(delta.values()) > 0.0 else "right and loose",
        f"As a private mechanism it has no epsilon. With L = {reach}, a value that changes by L moves a share of "
        f"{delta[reach]:.3f} of the outputs out of the neighbour's reach (1/2 as L grows), one that changes by 2 L "
        f"{delta[2 * reach]:.3f}: delta, at every epsilon. Removing a record of value 0 even changes the grid k / n: "
        f"delta = {removed:.3f} at n = {n}. The notes give it as an example of a randomised algorithm only.",
        {"value moves by L": delta[reach], "value moves by 2 L": delta[2 * reach], "record removed": removed},
    )


def check_first_order() -> Truth:
    excess = {epsilon: math.expm1(epsilon) / epsilon - 1.0 for epsilon in EPSILONS}
    ratio = {epsilon: math.exp(epsilon) / (1.0 + epsilon) - 1.0 for epsilon in EPSILONS}
    right = all(abs(ratio[e] - e * e / 2.0) < e * e / 2.0 for e in (0.1, 0.5))
    first = find("geometric").first_order.true_epsilon(10, 9, {"epsilon": 0.5})
    return Truth(
        "right and loose" if right else "wrong",
        f"To first order. The quotient may reach e^epsilon, which is above 1 + epsilon by {100 * ratio[0.1]:.2f} % at "
        f"epsilon = 0.1 and {100 * ratio[1.0]:.0f} % at 1. Noise must not be made with it: geometric draws that stop "
        f"with probability 0.5 in place of 1 - e^-0.5 have the loss {first:.4f}.",
        {"excess at 0.1": excess[0.1], "excess at 1": excess[1.0], "loss of the geometric twin": first or 0.0},
    )


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        name="laplace-count",
        place=f"{SARKAR}, 'Solution' and 'Proof (sketch)'",
        quote="a count plus Lap(1 / epsilon) is epsilon-DP",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_count,
        audits=("noisy count, Laplace", "noisy count, half the noise"),
    ),
    Statement(
        name="laplace-vector",
        place=f"{BASSI}, 'Laplace mechanism (cont.)'; {CHEEMA}, 'The Laplace mechanism'",
        quote="f(x) + (Y_1, ..., Y_k), Y_i from Lap(l1 sensitivity / epsilon), is (epsilon, 0)-DP",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_vector,
        audits=("four answers, Laplace", "four answers, the noise of one"),
    ),
    Statement(
        name="laplace-average",
        place=f"{HAGHTALAB}, section 2.1",
        quote="the average of m values in [0, b] plus Lap(b / (m epsilon)) is epsilon-DP",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_average,
        audits=("average grade, Laplace", "average grade, the size of the course a secret"),
    ),
    Statement(
        name="laplace-density-display",
        place=f"{HAGHTALAB}, section 2.1, the proof",
        quote="Pr[M(S_1) = r] = exp(-|r| epsilon m / b)",
        verdict="wrong",
        how=("computed",),
        check=check_display,
    ),
    Statement(
        name="first-order-epsilon",
        place=f"{HAGHTALAB}, definition 2.2",
        quote="for small epsilon: 1 - epsilon <= quotient of probabilities <= 1 + epsilon, approximately",
        verdict="right and loose",
        how=("computed", "audited"),
        check=check_first_order,
        audits=("noisy count, geometric with epsilon for the chance to stop",),
    ),
    Statement(
        name="noise-needs-infinite-support",
        place=f"{SARKAR}, 'Observations'",
        quote="the noise distribution needs infinite support",
        verdict="right and tight",
        how=("derived", "audited"),
        check=check_support,
        audits=("noisy count, noise clipped to a largest error",),
    ),
    Statement(
        name="uniform-noise-on-a-count",
        place=f"{SARKAR}, 'Question'",
        quote="a count plus uniform noise on [0, 5] is DP (asked as a question)",
        verdict="wrong",
        how=("derived", "computed", "audited"),
        check=check_uniform_count,
        audits=("noisy count, uniform noise on [0, 5]", "noisy count, uniform on six integers"),
    ),
    Statement(
        name="uniform-noise-on-a-mean",
        place=f"{BASSI}, 'First definitions (cont.)'",
        quote="a mean released uniformly on the points k / n of [mu - L/n, mu + L/n], taken as a private mechanism",
        verdict="wrong",
        how=("derived", "computed", "audited"),
        check=check_uniform_mean,
        audits=("average grade, uniform noise",),
    ),
    *additive_accuracy.STATEMENTS,
    *additive_normal.STATEMENTS,
)
