"""The accuracy of Laplace noise, the sensitivities it is made with, and how many queries it can answer."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

from audits.lectures.claims.composition_advanced import solved
from audits.lectures.claims.statement import Statement, Truth
from dpaudit.catalogue import find
from dpaudit.catalogue.noise import laplace
from dpaudit.claims import PureDP, compose_optimal
from dpaudit.losses.composing import responses_delta

Floats = npt.NDArray[np.float64]

DRAWS, SEED = 400_000, 1
CLOSE = 1e-9  # relative: what rounding may cost a computed value
EPSILONS = (0.1, 0.5, 1.0, 2.0)

HAGHTALAB, BASSI = "Haghtalab 2020, notes 000", "Bassi 2019, notes 001"
SARKAR, CHEEMA = "Sarkar, notes 003", "Cheema & Huszár, notes 004"
ACCURACY = f"{BASSI}, 'Accuracy of queries under the Laplace mechanism'"


def noise(scale: float, draws: int = DRAWS) -> Floats:
    return laplace(np.random.Generator(np.random.SFC64(SEED)), scale, draws)


def within(value: float, truth: float, deviation: float) -> bool:
    """Six standard deviations of a mean of the simulation: beyond them by chance with less than 1e-8."""
    return abs(value - truth) <= 6.0 * deviation / math.sqrt(DRAWS)


# --- accuracy -------------------------------------------------------------------------------------------------


def check_accuracy() -> Truth:
    scale, drawn = 3.0, np.abs(noise(3.0))
    shares = {beta: float(np.mean(drawn > scale * math.log(1.0 / beta))) for beta in (0.5, 0.05, 0.001)}
    tight = all(within(share, beta, math.sqrt(beta * (1.0 - beta))) for beta, share in shares.items())
    return Truth(
        "right and tight" if tight else "wrong",
        "Pr(|Lap(b)| > b ln(1 / beta)) is beta exactly, so the bound cannot be smaller. Simulated for beta = 0.05: "
        f"exceeded in a share {shares[0.05]:.4f} of {DRAWS:,} draws.",
        {f"exceeded at {beta:g}": share for beta, share in shares.items()},
    )


def check_average_accuracy() -> Truth:
    bound, m, epsilon, beta = 100.0, 20, 0.5, 0.05
    scale = bound / (m * epsilon)
    alpha = scale * math.log(1.0 / beta)
    share = float(np.mean(np.abs(noise(scale)) >= alpha))
    return Truth(
        "right and tight" if within(share, beta, math.sqrt(beta * (1.0 - beta))) else "wrong",
        f"With equality. For 20 values in [0, 100], epsilon = 0.5 and beta = 0.05, alpha = {alpha:.2f}, and a share "
        f"{share:.4f} of {DRAWS:,} simulated releases was further off.",
        {"alpha": alpha, "share beyond": share},
    )


def distortion(scale: float) -> tuple[float, bool]:
    """The mean of |Lap(scale)|, simulated, and whether that is the scale."""
    mean = float(np.mean(np.abs(noise(scale))))
    return mean, within(mean, scale, scale)


def check_distortion() -> Truth:
    found = {epsilon: distortion(1.0 / epsilon) for epsilon in EPSILONS}
    return Truth(
        "right and tight" if all(same for _, same in found.values()) else "wrong",
        f"E |Lap(b)| = b exactly. Simulated at epsilon = 0.5: {found[0.5][0]:.3f}.",
        {f"epsilon {epsilon:g}": mean for epsilon, (mean, _) in found.items()},
    )


def check_distortion_of_many() -> Truth:
    m, epsilon = 20, 1.0
    mean, same = distortion(m / epsilon)
    return Truth(
        "right and tight" if same else "wrong",
        f"For noise of Lap(m / epsilon) on each of {m} answers: {mean:.2f} simulated. No independent Laplace noise of "
        "one scale does better for m queries that one person can all move, since the loss is m over the scale.",
        {"simulated": mean},
    )


def check_distortion_advanced() -> Truth:
    m, delta = 1000, 0.01
    each = {epsilon: epsilon / math.sqrt(2.0 * m * math.log(1.0 / delta)) for epsilon in (1.0, 8.0)}
    formula = 1.0 + m * each[1.0] * math.expm1(each[1.0])
    optimal = {epsilon: compose_optimal(PureDP(one), m).epsilon_at(delta) for epsilon, one in each.items()}
    true_at_one = optimal[1.0] <= 1.0
    return Truth(
        "right and tight" if formula <= 1.0 else "not provable as argued" if true_at_one else "wrong",
        f"The distortion is 1 / epsilon_0, as said: {1.0 / each[1.0]:.1f} at m = {m}, epsilon = 1, delta = 0.01. The "
        f"theorem with both terms gives {formula:.4f} for that epsilon_0, always above epsilon. It is true for "
        "moderate epsilon all the same: optimal composition gives "
        f"{optimal[1.0]:.4f}. At epsilon = 8 it is not: {optimal[8.0]:.2f}.",
        {"epsilon_0": each[1.0], "advanced": formula, "optimal at 1": optimal[1.0], "optimal at 8": optimal[8.0]},
    )


def check_variance() -> Truth:
    scale, rng = 1.5, np.random.default_rng(SEED)
    variance = float(np.mean(noise(scale) ** 2))
    glued = rng.choice((-1.0, 1.0), DRAWS) * rng.exponential(scale, DRAWS)
    tails = [float(np.mean(side * glued > scale)) for side in (1.0, -1.0)]
    tail = math.exp(-1.0) / 2.0
    alike = all(within(share, tail, math.sqrt(tail * (1.0 - tail))) for share in tails)
    deviation = math.sqrt(20.0) * scale**2  # of a squared draw: E x^4 - (E x^2)^2 = (24 - 4) b^4
    loss = find("laplace").deviation_as_scale.true_epsilon(10, 9)
    return Truth(
        "right" if alike and within(variance, 2.0 * scale**2, deviation) else "wrong",
        "An exponential number with a random sign has this density: a share "
        f"{tails[0]:.4f} of such draws lies above b and {tails[1]:.4f} below -b, where e^-1 / 2 = {tail:.4f} should. "
        "So the variance is the second moment of an exponential number, exactly 2 b^2 (simulated at b = 1.5: "
        f"{variance:.3f}). The standard deviation is b sqrt(2), not b: who passes it for the scale has the loss "
        f"{loss:.4f} where 1 was claimed.",
        {"variance": variance, "loss with the deviation for the scale": loss or 0.0},
    )


# --- sensitivities, by trying all small datasets --------------------------------------------------------------


def check_sensitivity_counts() -> Truth:
    m = 3
    rows = list(itertools.product((0, 1), repeat=m))
    moved = max(sum(row) for row in rows)  # a record more adds its own row to the m counts
    cells = [tuple(int(place == cell) for place in range(m)) for cell in range(m)]  # a record falls into one cell
    disjoint = max(sum(row) for row in cells)
    swapped = max(sum(abs(a - b) for a, b in zip(row, other, strict=True)) for row in cells for other in cells)
    one = max(row[0] for row in rows)
    tight = (one, moved, disjoint) == (1, m, 1)
    return Truth(
        "right and tight" if tight else "wrong",
        f"For a record more or less: {one} for one count, {moved} for {m} counts, {disjoint} for disjoint counts, by "
        f"trying every record. For a record replaced the disjoint counts have {swapped}: it leaves one cell and enters "
        "another.",
        {"one count": one, "three counts": moved, "disjoint": disjoint, "disjoint, replaced": swapped},
    )


def check_sensitivity_average() -> Truth:
    largest, n = 4, 3
    data = list(itertools.product(range(largest + 1), repeat=n))
    replaced = max(abs(value - row[0]) / n for row in data for value in range(largest + 1))
    removed = max(abs(sum(row) / n - sum(row[1:]) / (n - 1)) for row in data)
    bound = largest / n
    tight = max(abs(replaced - bound), abs(removed - bound)) <= CLOSE
    return Truth(
        "right and tight" if tight else "right and loose" if max(replaced, removed) <= bound + CLOSE else "wrong",
        f"By trying all {len(data)} datasets of n = {n} values in 0..{largest}: {replaced:.4f} for a value replaced "
        f"and {removed:.4f} for one removed, both {largest} / {n}. The second is no sensitivity to calibrate noise "
        "with: n is then the larger of two numbers of records, and so a secret.",
        {"replaced": replaced, "removed": removed, "bound": bound},
    )


# --- how many queries -----------------------------------------------------------------------------------------


def check_number_of_queries() -> Truth:
    """How the noise that m queries need grows with m, by the notes' rule and by optimal composition, in powers of m."""
    epsilon, delta, few, many = 1.0, 0.01, 1_000, 30_000

    def each(m: int) -> float:
        return solved(lambda one: responses_delta(m, one, epsilon) <= delta, 0.0, 0.2)

    power = math.log(each(few) / each(many)) / math.log(many / few)
    rule = math.log(many / few) / 2.0 / math.log(many / few)
    right = abs(power - rule) < 0.01
    return Truth(
        "right" if right else "wrong",
        "The noise on each of m answers grows like m^0.5 by the notes' "
        f"rule, and like m^{power:.3f} by optimal composition (m from {few:,} to {many:,}), so the error of a "
        "percentage is of order sqrt(m) / n: it goes to 0 just where m = o(n^2), and is below the sampling error "
        "n^-1/2 just where m = o(n). It is the error of one answer; for the largest of all m errors a factor of ln(m) "
        "comes on top.",
        {"power of m": power},
    )


def check_coordinated() -> Truth:
    """Noise of density e^(-epsilon |z|_max): a radius Gamma(m + 1) times a point of the cube."""
    m, epsilon, draws = 20, 1.0, 20_000
    rng = np.random.default_rng(SEED)
    drawn = rng.gamma(m + 1.0, 1.0 / epsilon, draws)[:, None] * rng.uniform(-1.0, 1.0, (draws, m))
    moves = rng.uniform(-1.0, 1.0, (20, m))
    moves[:, 0] = 1.0  # one person moves each count by at most 1
    size = np.abs(drawn).max(axis=1)
    loss = max(float((epsilon * np.abs(np.abs(drawn - move).max(axis=1) - size)).max()) for move in moves)
    mean, apart = float(np.abs(drawn).mean()), m / epsilon
    right = mean < 0.9 * apart and loss <= epsilon + CLOSE
    return Truth(
        "right" if right else "wrong",
        f"An example with delta = 0: for {m} counts at epsilon = 1, noise that is drawn for all of them together, with "
        f"density e^(-epsilon times its largest entry), is off by {mean:.1f} for each (simulated; exactly (m + 1) / (2 "
        f"epsilon)), where independent noise is off by {apart:.0f}; its loss on 20 random pairs is at most {loss:.3f}. "
        "And a query that is asked again needs no new noise at all: its answer can be given again. How much better "
        "the best methods are for very many queries is not computed here.",
        {"together": mean, "independent": apart, "loss": loss},
    )


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        name="laplace-theorem-2.6",
        place=f"{HAGHTALAB}, theorem 2.6",
        says=r"with probability $1 - \beta$ the noise is at most $(\Delta f/\varepsilon)\ln(1/\beta)$",
        verdict="right and tight",
        how=("derived", "computed"),
        check=check_accuracy,
        quote=(
            r"Furthermore, with probability $1 - \beta$ $\left|\mathcal{M}_{Lap}\left(S, f, \epsilon\right) - "
            r"f(S)\right| \leq \frac{\Delta f}{\epsilon} \ln(1/\beta).$"
        ),
    ),
    Statement(
        name="laplace-average-accuracy",
        place=f"{HAGHTALAB}, section 2.1",
        says=(
            r"the noisy average is $\alpha$ or more off with probability at most $\beta$, $\alpha = "
            r"\frac{b}{m\varepsilon}\ln(1/\beta)$"
        ),
        verdict="right and tight",
        how=("derived", "computed"),
        check=check_average_accuracy,
        quote=(
            r"$\Pr_{x \sim Lap\left(\frac{b}{m\epsilon}\right)}\left[|x| \ge \alpha\right] = "
            r"\exp\left(\frac{-\alpha\epsilon m}{b}\right) \le \beta$ for $\alpha = \frac{b}{m\epsilon} "
            r"\ln(1/\beta)$."
        ),
    ),
    Statement(
        name="laplace-variance",
        place=f"{HAGHTALAB}, definition 2.3; {BASSI}, 'Laplace distribution'; {SARKAR}, 'Solution'",
        says=r"$\mathrm{Lap}(b)$ is two exponential distributions glued together, and its variance is $2b^2$",
        verdict="right",
        how=("derived", "computed", "audited"),
        check=check_variance,
        audits=("noisy count, noise whose standard deviation was meant to be its scale",),
        quote=(
            "The distribution is like gluing together two exponential distributions.",
            (
                "The variance of this distribution is $2b^2$. ... The Laplace distribution is a "
                "symmetric version of the exponential distribution."
            ),
            r"$\mu$ is the mean, $2b^2$ is variance",
        ),
    ),
    Statement(
        name="sensitivity-of-counts",
        place=f"{BASSI}, 'Preliminaries (cont.)'; {CHEEMA}, 'Privacy vs utility'",
        says=r"$\ell_1$ sensitivity: 1 for a counting query, m for m of them, 1 for m disjoint ones",
        verdict="right and tight",
        how=("computed", "audited"),
        check=check_sensitivity_counts,
        audits=(
            "two counting queries, Laplace",
            "histogram, Laplace",
            "a histogram with the noise of remove-one, claimed for replace-one",
        ),
        quote=(
            (
                r"Removing one user can only affect the count by one, i.e., $\Delta f = 1$. ... In the"
                r" worst case, a user affects all counts, i.e., $\Delta f = m$. ... A user can only "
                r"affect the count of only one question by one, i.e., $\Delta f = 1$."
            ),
            r"number of PhD students in CBL ... $\Delta_1 f = 1$",
        ),
    ),
    Statement(
        name="sensitivity-of-averages",
        place=f"{HAGHTALAB}, section 2.1; {CHEEMA}, 'Privacy vs utility'",
        says=r"sensitivity of an average: $b/m$ for values in $[0, b]$; about $a_{\max}/n$ for ages",
        verdict="right and tight",
        how=("computed",),
        check=check_sensitivity_average,
        quote=(
            r"Now the worst case $S_2$ is such that the average has moved by $\pm b/m$ value.",
            r"$\Delta_1 f \approx a_{\max}/n$",
        ),
    ),
    Statement(
        name="distortion-of-a-count",
        place=ACCURACY,
        says=r"the expected distortion of a counting query is $1/\varepsilon$, whatever the size of the database",
        verdict="right and tight",
        how=("derived", "computed"),
        check=check_distortion,
        quote=(
            r"The expected distortion, or error, is $\mathbb{E}[|f(x) - \mathcal{M}_L(x, f, \varepsilon)|] = "
            r"\mathbb{E}[|Y|] = \frac{1}{\varepsilon},$ which is independent of the size of the database."
        ),
    ),
    Statement(
        name="distortion-of-m-counts",
        place=ACCURACY,
        says=r"the expected distortion of each of m counting queries is $m/\varepsilon$",
        verdict="right and tight",
        how=("derived", "computed"),
        check=check_distortion_of_many,
        quote=(
            r"The expected distortion for each query is now $\mathbb{E}[|f(x)_i - \mathcal{M}_L(x, f, "
            r"\frac{\varepsilon}{m})_i|] = \mathbb{E}[|Y_i|] = \frac{m}{\varepsilon},$"
        ),
        reading=(
            r"$\mathcal{M}_L(x, f, \varepsilon/m)_i$ is read as the mechanism of one query, with sensitivity 1, at "
            r"$\varepsilon/m$. With $\Delta f = m$ in it the noise would be $m$ times as large as the notes want it."
        ),
    ),
    Statement(
        name="distortion-advanced",
        place=ACCURACY,
        says=(
            r"with a small $\delta$ each of m queries has $\varepsilon_0$, about "
            r"$\varepsilon/\sqrt{2m\ln(1/\delta)}$, and the distortion $1/\varepsilon_0$"
        ),
        verdict="not provable as argued",
        how=("derived", "computed"),
        check=check_distortion_advanced,
        cause="second-term",
        quote=(
            r"Remember that by accepting a small $\delta > 0$, we can ensure $(\varepsilon, \delta)$ cumulative "
            r"privacy loss over m mechanisms if each mechanism is $\varepsilon_0$-DP, where $\varepsilon_0 "
            r"\approx \frac{\varepsilon}{\sqrt{2m\ln(1/\delta)}}$"
        ),
        context=(
            "As we saw, this is an approximation and should be handled with care. For simplicity, we will take "
            "the inequality as true for the rest of the presentation."
        ),
    ),
    Statement(
        name="number-of-queries",
        place=f"{BASSI}, after 'Accuracy of queries under the Laplace mechanism'",
        says="$o(n^2)$ queries with non-trivial accuracy; with $o(n)$ the error is below the sampling error",
        verdict="right",
        how=("derived", "computed"),
        check=check_number_of_queries,
        quote=(
            r"Therefore, given that the expected distortion is $\mathcal{O}(\sqrt{m})$, we may ask $o(n^2)$ "
            "queries with non-trivial accuracy. ... Asking $o(n)$ queries reduces the error introduced by the "
            r"DP mechanism below the level of sampling error, i.e., $o(1/\sqrt{n})$."
        ),
        reading="As orders of n, at a fixed epsilon and delta, and for the error of one answer.",
    ),
    Statement(
        name="coordinated-noise",
        place=f"{BASSI}, after 'Accuracy of queries under the Laplace mechanism'",
        says="if the noises are not i.i.d. this can be further improved, by coordinating the answers",
        verdict="right",
        how=("derived", "computed"),
        check=check_coordinated,
        quote=(
            "If the Laplacian noises are not i.i.d. this can be further improved. To achieve this, we need to "
            "coordinate the answers."
        ),
    ),
)
