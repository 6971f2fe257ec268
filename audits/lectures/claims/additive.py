"""Additive noise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

from audits.lectures.claims import additive_accuracy, additive_normal
from audits.lectures.claims.statement import Statement, Truth
from dpaudit.catalogue import find
from dpaudit.losses.distribution import delta_of, largest_log_ratio

Floats = npt.NDArray[np.float64]

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
        f"{losses[10]:.6f} times epsilon for every m. That holds for a public m: where a record may also be added or "
        "removed, the scale b / (m epsilon) itself differs between neighbours, and there is no epsilon at all.",
        {
            "loss": losses[10],
            "loss where m is a secret": find("laplace_average").secret_size.true_epsilon([0.0], [0.0] * 2),
        },
    )


def check_display() -> Truth:
    """The total mass of e^(-|r| epsilon m / b), and the largest quotient of it and the same a step of b / m further."""
    bound, m, epsilon = 100.0, 10, 1.0
    scale = bound / (m * epsilon)
    at, step = np.linspace(-60.0 * scale, 60.0 * scale, 240_001, retstep=True)
    mass = float(np.sum(np.exp(-np.abs(at) / scale)) * step)
    quotient = log_ratio(bound / m, scale)
    return Truth(
        "right and tight" if abs(quotient - epsilon) <= CLOSE else "wrong",
        f"The logarithm of the quotient is at most {quotient:.6f} at epsilon = 1, and reaches that. As a density the "
        f"display lacks a factor m epsilon / (2 b): its mass is 2 b / (m epsilon) = {mass:.3f} for b = 100 and m = 10. "
        "The factor is the same for both datasets.",
        {"mass": mass, "quotient": quotient},
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
        f"at epsilon = 1). With the noise of a single answer, four answers that all move have {one:.1f} epsilon.",
        {"loss": beyond, "four answers with the noise of one": one or 0.0},
    )


def clipped(reach: int, cells: int = 100) -> tuple[Floats, Floats]:
    """Lap(1) clipped to [-reach, reach], and the same a step of 1 further: cells of 1 / 100, then the four ends.

    Each cell is right to fifteen digits, in either tail, so a delta of the two is within 2e-16.
    """
    edges = np.arange(-reach * cells, reach * cells + 1) / cells
    beyond = np.exp(-np.abs(edges)) / 2.0  # of an edge, on its own side of 0
    inside = np.maximum(beyond[:-1], beyond[1:]) * -math.expm1(-1.0 / cells)
    end, none = [float(beyond[0])] * 2, np.zeros(cells)
    return (
        np.concatenate([inside, none, end, [0.0, 0.0]]),
        np.concatenate([none, inside, [0.0, 0.0], end]),
    )


def check_support() -> Truth:
    laws = {reach: clipped(reach) for reach in (1, 5, 30)}
    needed = all(largest_log_ratio(*law) == math.inf for law in laws.values())
    delta = {reach: delta_of(*law, 1.0) for reach, law in laws.items()}
    return Truth(
        "right" if needed else "wrong",
        "Noise that ends at k has no epsilon, however large k: outputs within 1 of the end cannot come from a "
        "neighbour. What a larger k buys is their rarity: Laplace noise that is clipped at k has delta = "
        f"{delta[1]:.3f} at k = 1 and {delta[5]:.4f} at k = 5, for epsilon = 1 (the last step before the end, and the "
        "noise heaped up on the other end).",
        {f"delta at {reach}": value for reach, value in delta.items()},
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
        "question or trap" if loss == math.inf and same else "wrong",
        "No: there is no epsilon at all. A share of "
        f"{delta['at epsilon 1']:.3f} of the outputs cannot come from the neighbour, so delta is 1/5 at every epsilon "
        f"(1/6 = {delta['integers']:.4f} on the integers 0 to 5).",
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
        "question or trap" if min(delta.values()) > 0.0 else "wrong",
        f"It is not: there is no epsilon. With L = {reach}, a value that changes by L moves a share of "
        f"{delta[reach]:.3f} of the outputs out of the neighbour's reach (1/2 as L grows), one that changes by 2 L "
        f"{delta[2 * reach]:.3f}: delta, at every epsilon. Removing a record of value 0 even changes the grid k / n: "
        f"delta = {removed:.3f} at n = {n}.",
        {"value moves by L": delta[reach], "value moves by 2 L": delta[2 * reach], "record removed": removed},
    )


def check_first_order() -> Truth:
    ratio = {epsilon: math.exp(epsilon) / (1.0 + epsilon) - 1.0 for epsilon in EPSILONS}
    ends = [abs(math.expm1(sign * e) / (sign * e) - 1.0) / e for e in (1e-3, 0.01, 0.1) for sign in (1.0, -1.0)]
    right = all(0.4 < end < 0.6 for end in ends)  # e^epsilon = 1 + epsilon + epsilon^2 / 2 + ..., and both ends so
    first = find("geometric").first_order.true_epsilon(10, 9, {"epsilon": 0.5})
    return Truth(
        "right" if right else "wrong",
        "To first order, as said: both ends are off by about epsilon^2 / 2. The quotient may reach e^epsilon, which "
        f"is above 1 + epsilon by {100 * ratio[0.1]:.2f} % at epsilon = 0.1 and {100 * ratio[1.0]:.0f} % at 1. Noise "
        "must not be made with it: geometric draws that stop with probability 0.5 in place of 1 - e^-0.5 have the "
        f"loss {first:.4f}.",
        {"above at 0.1": ratio[0.1], "above at 1": ratio[1.0], "loss of the geometric twin": first or 0.0},
    )


def check_variance() -> Truth:
    variances = [2.0 * b * b for b in (0.5, 1.0, 2.0, 5.0, 10.0)]
    losses = [log_ratio(1.0, math.sqrt(variance / 2.0)) for variance in variances]
    falls = all(late < early - CLOSE for early, late in itertools.pairwise(losses))
    exact = all(
        abs(loss / math.sqrt(2.0 / variance) - 1.0) <= CLOSE for loss, variance in zip(losses, variances, strict=True)
    )
    wide = math.sqrt(3.0 * variances[-1])  # uniform noise on [-wide, wide] has the variance wide^2 / 3
    return Truth(
        ("right" if exact else "right and loose") if falls else "wrong",
        "For Laplace noise epsilon is sqrt(2 / variance), "
        f"{losses[0]:.1f} at variance {variances[0]:g} and {losses[-1]:.1f} at {variances[-1]:g}. Between kinds of "
        f"noise the variance decides nothing: uniform noise of variance {variances[-1]:g} has no epsilon at all, only "
        f"a delta of {0.5 / wide:.3f}.",
        {f"variance {variance:g}": loss for variance, loss in zip(variances, losses, strict=True)},
    )


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        name="laplace-count",
        place=f"{SARKAR}, 'Solution' and 'Proof (sketch)'",
        says=r"a count plus $\mathrm{Lap}(1/\varepsilon)$ is $\varepsilon$-DP",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_count,
        audits=("noisy count, Laplace", "noisy count, half the noise"),
        quote=(
            r"where $y \sim Lap\left(\frac{1}{\epsilon}\right)$ ... The published count is "
            r"$\epsilon$-differentially private"
        ),
    ),
    Statement(
        name="larger-variance",
        place=f"{SARKAR}, 'Solution'",
        says="larger variance in noise gives greater privacy",
        verdict="right",
        how=("derived", "computed"),
        check=check_variance,
        quote="Larger variance in noise gives greater privacy.",
        reading="Of Laplace noise, which the slide is about.",
    ),
    Statement(
        name="laplace-vector",
        place=f"{BASSI}, 'Laplace mechanism (cont.)'; {CHEEMA}, 'The Laplace mechanism'",
        says=(
            r"$f(x) + (Y_1, \ldots, Y_k)$, $Y_i$ from $\mathrm{Lap}(\Delta f/\varepsilon)$ for the $\ell_1$ "
            r"sensitivity $\Delta f$, is $(\varepsilon, 0)$-DP"
        ),
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_vector,
        audits=("four answers, Laplace", "four answers, the noise of one"),
        quote=(
            (
                r"where $Y_i$ are i.i.d. random variables drawn from Lap($\sigma$), and $\sigma = "
                r"\Delta f / \varepsilon$ is sometimes called the noise rate. ... The Laplace "
                r"mechanism preserves ($\varepsilon$, 0)-differential privacy."
            ),
            (
                r"The Laplace mechanism is $\varepsilon$-DP. $\phi(x) = f(x) + \nu, \quad \nu \sim "
                r"\text{Lap}\left(\frac{\Delta_1 f}{\varepsilon}\right)$"
            ),
        ),
    ),
    Statement(
        name="laplace-average",
        place=f"{HAGHTALAB}, section 2.1",
        says=r"the average of m values in $[0, b]$ plus $\mathrm{Lap}(b/(m\varepsilon))$ is $\varepsilon$-DP",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_average,
        audits=("average grade, Laplace", "average grade, the size of the course a secret"),
        quote=(
            r"And we release $\mathcal{M}(S) = f(S) + \eta$ For $\eta \sim Lap\left(\frac{b}{m\epsilon}\right)$. "
            r"... Next, we show that $\mathcal{M}(S)$ is $\epsilon$-differentially private"
        ),
        context="Suppose we have a set S of m values in [0, b]",
    ),
    Statement(
        name="laplace-density-display",
        place=f"{HAGHTALAB}, section 2.1, the proof",
        says=(
            r"$\Pr[\mathcal{M}(S_1) = r] = \exp(-|r|\varepsilon m/b)$, and so the quotient is at most "
            r"$e^{\varepsilon}$"
        ),
        verdict="right and tight",
        how=("computed",),
        check=check_display,
        quote=(
            r"$\Pr[\mathcal{M}(S_1) = r] = \exp\left(-\frac{|r|\epsilon m}{b}\right).$ ... Now the worst case "
            r"$S_2$ is such that the average has moved by $\pm b/m$ value."
        ),
        reading=(
            r"Up to the factor $m\varepsilon/(2b)$ and with $f(S_1) = 0$: both cancel in the quotient, which is "
            "what the display is for."
        ),
    ),
    Statement(
        name="first-order-epsilon",
        place=f"{HAGHTALAB}, definition 2.2",
        says=(
            r"for small $\varepsilon$ approximately: $1 - \varepsilon \le$ the quotient of probabilities $\le 1 "
            r"+ \varepsilon$"
        ),
        verdict="right",
        how=("computed", "audited"),
        check=check_first_order,
        audits=("noisy count, geometric with epsilon for the chance to stop",),
        quote=(
            r"Approximating $\exp(\pm \epsilon)$ by $1 \pm \epsilon$, for small $\epsilon$ this approximately "
            r"states $1 - \epsilon \le \frac{\Pr\left[\mathcal{A}(S_1) \in R\right]}{\Pr\left[\mathcal{A}(S_2) "
            r"\in R\right]} \le 1 + \epsilon$"
        ),
        reading="To first order, as the word 'approximately' has it.",
    ),
    Statement(
        name="noise-needs-infinite-support",
        place=f"{SARKAR}, 'Observations'",
        says="the noise distribution needs infinite support",
        verdict="right",
        how=("derived", "computed", "audited"),
        check=check_support,
        audits=("noisy count, noise clipped to a largest error",),
        quote="The noise distribution needs infinite support",
        reading=r"For $\varepsilon$-DP, which these slides are about; with a delta it need not.",
    ),
    Statement(
        name="uniform-noise-on-a-count",
        place=f"{SARKAR}, 'Question'",
        says="a count plus uniform noise on [0, 5]: does this give DP?",
        verdict="question or trap",
        how=("derived", "computed", "audited"),
        check=check_uniform_count,
        audits=("noisy count, uniform noise on [0, 5]", "noisy count, uniform on six integers"),
        quote=(
            "Instead of Laplace, what if we use a uniform random noise? ... Suppose we output $A(n) = n + y$ "
            r"where $y \in [0,5]$ uniformly ... Does this give DP? Are the output probabilities similar for all "
            "possible outputs?"
        ),
    ),
    Statement(
        name="uniform-noise-on-a-mean",
        place=f"{BASSI}, 'First definitions (cont.)', read as a private mechanism",
        says=r"a mean, released uniformly on the points $k/n$ of $[\mu - L/n, \mu + L/n]$: is it private?",
        verdict="question or trap",
        how=("derived", "computed", "audited"),
        check=check_uniform_mean,
        audits=("average grade, uniform noise",),
        quote=r"However, ${\mathcal M}$ outputs a random value close to the true mean:",
        context=(
            r"Example: In our example about the daily cigarette intake, let $\mathcal{M}(x)$ calculate the "
            "(noisy) empirical mean ... for simplicity ignore border effects."
        ),
        reading=(
            "An example of a randomised algorithm, given before privacy is defined: the notes do not call it private."
        ),
    ),
    *additive_accuracy.STATEMENTS,
    *additive_normal.STATEMENTS,
)
