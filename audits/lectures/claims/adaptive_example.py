"""The unrealistic example of the notes: subsets of a normal sample, chosen by their own means."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.integrate import trapezoid

from audits.lectures.claims.simulations import EPSILON_OF_ONE, Example, final_queries, whole_examples
from audits.lectures.claims.statement import Figure, Statement, Truth
from dpaudit.losses.comparisons import density, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

N, BETA, RUNS, SEED = 10_000, 0.05, 400, 1
WHOLE_RUNS = 60
AT = Example.of(N)
SLIDES = "'Unrealistic example'"


def place(slide: str) -> str:
    return f"Bassi 2019, notes 001, {slide}"


# --- exact laws, in standard deviations of a subset's mean ----------------------------------------------------


@functools.cache
def law_of_the_chosen(per_group: int, scale: float) -> tuple[Floats, Floats]:
    """The density of the mean that is chosen, where Lap(scale) is added to all before the largest is taken."""
    from scipy.special import log_ndtr, ndtr

    x = np.linspace(-8.0, 8.0, 1601)
    normal = per_group * np.exp(-(x**2) / 2.0) / math.sqrt(2.0 * math.pi)
    if scale == 0.0:
        return x, normal * ndtr(x) ** (per_group - 1)
    x, normal = x[::4], normal[::4]
    _, nodes, weights = panels([0.0], scale, 4.0)
    keep = np.abs(nodes) < 40.0 * scale
    nodes, mass = nodes[keep], (weights * density(nodes, scale))[keep]
    noisy = x[:, None] + nodes
    tails = (0.5 * np.exp(s * noisy / scale + 0.5 / scale**2 + log_ndtr(-s * noisy - 1.0 / scale)) for s in (1, -1))
    below = ndtr(noisy) + next(tails) - next(tails)
    return x, normal * (below ** (per_group - 1) @ mass)


def mean_of(law: tuple[Floats, Floats]) -> float:
    x, height = law
    return float(trapezoid(x * height, x))


def beyond(law: tuple[Floats, Floats], reach: float) -> float:
    """The probability of being at least `reach` off the true mean; the grid is cut at it."""
    x, height = law
    inside = np.linspace(-reach, reach, 4001)
    return 1.0 - float(trapezoid(np.interp(inside, x, height), inside))


def bias_of_the_maximum(n: float) -> float:
    """The expectation of the final query of the example at n, sizes not rounded: E max / sqrt(ln n)."""
    from scipy.special import log_ndtr

    size = math.log(n)
    per_group = math.sqrt(n / size)
    reach = math.sqrt(2.0 * math.log(per_group)) + 8.0
    x = np.linspace(-reach, reach, 20_001)
    height = per_group / math.sqrt(2.0 * math.pi) * np.exp(-(x**2) / 2.0 + (per_group - 1.0) * log_ndtr(x))
    return float(trapezoid(x * height, x)) / math.sqrt(size)


@functools.cache
def simulated() -> dict[str, Floats]:
    """The final query with subsets chosen at random, by the exact maximum and with the noise of the appendix."""
    noises = {"chosen at random": math.inf, "exact maximum": 0.0, "with noise": AT.noise(BETA)}
    rng = np.random.default_rng(SEED)
    return {name: final_queries(AT, noise, RUNS, rng) for name, noise in noises.items()}


@functools.cache
def end_to_end() -> dict[str, Floats]:
    return whole_examples(AT, BETA, WHOLE_RUNS, np.random.default_rng(SEED))


# --- the checks -----------------------------------------------------------------------------------------------


def check_variance() -> Truth:
    subsets = math.sqrt(N / math.log(N))
    exact, told = 1.0 / (math.log(N) * subsets), 1.0 / math.sqrt(N * math.log(N))
    rounded = 1.0 / (AT.size * AT.per_group)
    seen = float(np.var(simulated()["chosen at random"]))
    right = math.isclose(exact, told) and abs(seen / rounded - 1.0) < 6.0 * math.sqrt(2.0 / RUNS)
    return Truth(
        "right and tight" if right else "wrong",
        f"sqrt(n / ln n) means, each of variance 1 / ln n, average to a variance of {exact:.6f} at n = {N:,}, which is "
        f"1 / sqrt(n ln n). Simulated with subsets of {AT.size}: {seen:.6f}, against {rounded:.6f} exactly. The "
        f"average of all n samples would have variance 1 / n = {1 / N:.6f}.",
        {"exact": exact, "told": told, "simulated": seen},
    )


def check_maximum() -> Truth:
    at = {n: bias_of_the_maximum(n) for n in (1e3, 1e4, 1e6, 1e30, 1e100)}
    exact = mean_of(law_of_the_chosen(AT.per_group, 0.0)) / math.sqrt(AT.size)
    seen, error = float(np.mean(simulated()["exact maximum"])), float(np.std(simulated()["exact maximum"]))
    values = list(at.values())
    moves_away = values == sorted(values) and values[0] > 0.5 and values[-1] > 0.95
    right = moves_away and abs(seen - exact) < 6.0 * error / math.sqrt(RUNS)
    return Truth(
        "right" if right else "wrong",
        f"The expectation of the final query is {at[1e3]:.3f} at n = 1,000, {at[1e4]:.3f} at 10,000, {at[1e6]:.3f} at "
        f"10^6 and {at[1e100]:.3f} at 10^100. It rises to 1, one standard deviation of a single sample, because "
        f"sqrt(2 ln k / ln n) does for k = sqrt(n / ln n). More data make it worse. Simulated at n = 10,000: "
        f"{seen:.3f}, against {exact:.3f} exactly for whole sizes.",
        {"exact": exact, "simulated": seen, **{f"n = {n:g}": value for n, value in at.items()}},
    )


def draw_maximum(axes: Axes) -> None:
    for n, line in ((N, "-"), (1_000_000, "--")):
        at = Example.of(n)
        for subsets, shade in ((1, "#8a8f98"), (at.per_group, "#a3262a")):
            x, height = law_of_the_chosen(subsets, 0.0)
            label = f"{'one subset' if subsets == 1 else f'the largest of {subsets}'}, n = {n:,}"
            axes.plot(x / math.sqrt(at.size), height * math.sqrt(at.size), line, color=shade, label=label)
    axes.set_xlim(-1.2, 1.8)
    axes.set_xlabel("mean of the subset (true mean 0)")
    axes.set_ylabel("density")
    axes.legend(frameon=False)


def check_not_close() -> Truth:
    from scipy.special import ndtr

    seen, spread = end_to_end(), 1.0 / math.sqrt(AT.size * AT.per_group)
    fixed = 2.0 * float(ndtr(-0.5 * math.sqrt(AT.size)))
    off = {name: float(np.mean(np.abs(told) > 0.5)) for name, told in seen.items()}
    least, told = float(np.min(seen["largest mean"])), np.abs(seen["Thresholdout"])
    right = off["at random"] == off["with noise"] == 0.0 and off["Thresholdout"] < 0.05 and off["largest mean"] == 1.0
    return Truth(
        "right" if right and fixed < 0.2 else "wrong",
        f"From the samples on, {WHOLE_RUNS} times at n = {N:,}: a subset fixed in advance is more than 0.5 off with "
        f"probability {fixed:.2f}. The final query averages {AT.per_group} of them and has a standard error of "
        f"{spread:.3f}; chosen by the largest means it was never less than {least:.2f} off, on the same samples. "
        f"Chosen by the mechanism of the appendix it was {np.mean(seen['with noise']):.3f} on average (largest "
        f"{np.max(np.abs(seen['with noise'])):.2f}). A holdout sample helps as well, and more than once: the final "
        f"query chosen by a training sample, four times with other groups, was told by Thresholdout with an error of "
        f"{np.mean(told):.3f} on average, and more than 0.5 off in {np.sum(told > 0.5)} of {told.size} answers "
        f"(epsilon = {EPSILON_OF_ONE:g} for a sample that moves by six deviations at most, all four together), where "
        "the training sample says "
        f"{np.mean(seen['training set']):.2f}.",
        {
            "a fixed subset": fixed,
            "least": least,
            "Thresholdout": float(np.mean(told)),
            "with noise": float(np.mean(seen["with noise"])),
        },
    )


def draw_end_to_end(axes: Axes) -> None:
    shades = {"at random": "#8a8f98", "largest mean": "#a3262a", "with noise": "#2b5d8a", "Thresholdout": "#0b6e3c"}
    bins = np.linspace(-0.45, 0.85, 53).tolist()
    for name, shade in shades.items():
        told = end_to_end()[name].ravel()
        share = np.full(len(told), 1.0 / len(told))
        axes.hist(told, bins, weights=share, histtype="stepfilled", color=shade, alpha=0.7, label=name)
    axes.axvline(0.0, color="black", linewidth=1.0)
    axes.set_xlabel("what is told of the final query (true mean 0)")
    axes.set_ylabel("share of the answers")
    axes.legend(frameon=False)


def check_revisited() -> Truth:
    seen = {name: float(np.mean(values)) for name, values in simulated().items()}
    error = max(float(np.std(values)) for values in simulated().values()) / math.sqrt(RUNS)
    exact = mean_of(law_of_the_chosen(AT.per_group, AT.noise(BETA))) / math.sqrt(AT.size)
    limit = 1.0 / AT.noise(BETA)
    twice = mean_of(law_of_the_chosen(AT.per_group, 2.0 * AT.noise(BETA))) / math.sqrt(AT.size)
    spread = 1.0 / math.sqrt(AT.size * AT.per_group)
    helps = seen["with noise"] < 0.3 * seen["exact maximum"] and abs(seen["with noise"] - exact) < 6.0 * error
    return Truth(
        "right" if helps else "wrong",
        f"The final query is then close to the true mean again. At n = {N:,} and beta = {BETA:g} its mean falls from "
        f"{seen['exact maximum']:.3f} to {seen['with noise']:.3f} (exactly {exact:.3f}), not to 0: noise of scale b "
        f"standard deviations leaves a bias of 1 / b = {limit:.3f} of them for many subsets, whatever n. That is "
        f"{exact / spread:.1f} standard errors of the final query; with the sensitivity put right it is {twice:.3f}. "
        "Answering the final query without noise is fine for generalisation, as the notes say; the answer itself has "
        "then no privacy at all.",
        {"exact": exact, "limit in deviations": limit, "standard error": spread, "twice the noise": twice, **seen},
    )


def draw_revisited(axes: Axes) -> None:
    shades = {"chosen at random": "#8a8f98", "exact maximum": "#a3262a", "with noise": "#2b5d8a"}
    for name, values in simulated().items():
        bins = np.linspace(-0.25, 0.85, 56).tolist()
        axes.hist(values, bins, histtype="stepfilled", color=shades[name], alpha=0.75, label=name)
    axes.axvline(0.0, color="black", linewidth=1.0)
    axes.set_xlabel("the final query (true mean 0)")
    axes.set_ylabel(f"of {RUNS} runs")
    axes.legend(frameon=False)


EXAMPLE = (
    Statement(
        name="example-variance",
        place=place(SLIDES),
        says=r"$\sqrt{n/\ln(n)}$ subsets chosen at random give an unbiased estimate, of variance $1/\sqrt{n\ln(n)}$",
        quote=(
            r"If we were to randomly select $\sqrt{n/\ln(n)}$ subsets and average the queries' responses (final query "
            r"$\overline{\phi}$), we would have an unbiased estimator of the true mean with a smaller variance "
            r"$(1/\sqrt{n\ln(n)})$."
        ),
        context="For simplicity, all these values are assumed to be integers.",
        verdict="right and tight",
        how=("derived", "computed"),
        check=check_variance,
    ),
    Statement(
        name="example-maximum",
        place=place("'Unrealistic example (cont.)'"),
        says="the largest mean of each group does not concentrate around the true mean",
        quote=(
            "choosing the maximum among the sample means in the group has a particular p.d.f. that does not "
            "concentrate around the true mean of X."
        ),
        verdict="right",
        how=("computed",),
        check=check_maximum,
        audits=("Subsets chosen by their exact means",),
        figure=Figure(
            "The density of the mean of one subset, and of the largest of a group, at n = 10,000 and at n = 1,000,000: "
            "as on the slide, the second does not come closer to the true mean 0.",
            draw_maximum,
        ),
    ),
    Statement(
        name="example-not-close",
        place=place("'Unrealistic example (cont.)'"),
        says=(
            r"every fixed query is close to its expectation, $\mathcal{E}_S[\phi_j] \approx \mathcal{P}[\phi_j]$, and "
            r"the final one, chosen by their answers, is not"
        ),
        quote=(
            "this (unrealistic) method for improving the sample convergence does not result in $E_S[φ̄]$ being close to "
            "$P[φ̄]$, even though $E_S[φ_j]$ is close to $P[φ_j]$ for every fixed $φ_j$."
        ),
        verdict="right",
        how=("computed",),
        check=check_not_close,
        figure=Figure(
            "The unrealistic example from its samples on: n = 10,000 of them, the final query as subsets are chosen at "
            "random, by the largest mean of each group (as on the slide, far from the true mean 0), and with the noise "
            "of the appendix; and the answer of Thresholdout to the final query, chosen by the training set.",
            draw_end_to_end,
        ),
    ),
    Statement(
        name="example-revisited",
        place=place("'Unrealistic example (revisited)'"),
        says="the queries answered with DP, the final one without: possible, as nothing is chosen by it any more",
        quote=(
            r"Once the appropriate subsets are selected, the final query $\bar{\phi}$ is answered by a non-DP "
            "mechanism. This is possible since there will be no further adaptivity."
        ),
        reading="Possible as to generalisation, which is what the slide is about.",
        verdict="right",
        how=("computed", "audited"),
        check=check_revisited,
        audits=("Subsets chosen, then their average with noise", "Subsets chosen with noise, their average exact"),
        figure=Figure(
            "The final query of the unrealistic example at n = 10,000: with subsets chosen at random it lies around "
            "the true mean 0, with the largest of each group far off, and with the noise of the appendix close to 0, "
            "though not at it.",
            draw_revisited,
        ),
    ),
)
