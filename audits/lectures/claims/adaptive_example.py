"""The unrealistic example of the notes: subsets of a normal sample, chosen by their own means."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.integrate import trapezoid

from audits.lectures.claims.bounds import generalisation_by_dp
from audits.lectures.claims.simulations import Example, final_queries
from audits.lectures.claims.statement import Figure, Statement, Truth
from dpaudit.catalogue import find
from dpaudit.losses.comparisons import density, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

N, BETA, RUNS, SEED = 10_000, 0.05, 400, 1
AT = Example.of(N)
SLIDES, APPENDIX = "'Unrealistic example'", "'Notes on the unrealistic example'"


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
        "right and tight" if right else "wrong",
        f"The expectation of the final query is {at[1e3]:.3f} at n = 1,000, {at[1e4]:.3f} at 10,000, {at[1e6]:.3f} at "
        f"10^6 and {at[1e100]:.3f} at 10^100. It rises to 1, one standard deviation of a single sample, because "
        f"sqrt(2 ln k / ln n) does for k = sqrt(n / ln n). More data make it worse. Simulated at n = 10,000: "
        f"{seen:.3f}, against {exact:.3f} exactly for whole sizes.",
        {"exact": exact, "simulated": seen, **{f"n = {n:g}": value for n, value in at.items()}},
    )


def check_density_of_the_maximum() -> Truth:
    from scipy.special import ndtr

    sigma, n, y = 1.7, 33, np.linspace(-3.0, 8.0, 45)
    step = 1e-5
    slope = (ndtr((y + step) / sigma) ** n - ndtr((y - step) / sigma) ** n) / (2.0 * step)
    told = n / sigma * np.exp(-((y / sigma) ** 2) / 2.0) / math.sqrt(2.0 * math.pi) * ndtr(y / sigma) ** (n - 1)
    worst = float(np.max(np.abs(slope - told)))
    x, height = law_of_the_chosen(n, 0.0)
    total = float(trapezoid(height, x))
    right = worst < 1e-8 and abs(total - 1.0) < 1e-9
    return Truth(
        "right and tight" if right else "wrong",
        f"The derivative of Phi(y / sigma)^n differs from the formula by at most {worst:.0e}, and its integral is 1 to "
        f"{abs(total - 1.0):.0e}. One notation to mind: N(0, sigma) has its standard deviation as second argument "
        "here, while N(0, 1 / ln n) on the other slides has its variance.",
        {"largest difference": worst, "integral": total},
    )


def check_tail_of_a_mean() -> Truth:
    from scipy.integrate import quad
    from scipy.special import ndtr

    size, worst = math.log(N), 0.0
    for t in (0.1, 0.4, 0.8, 1.2):
        told = 2.0 * float(ndtr(-t * math.sqrt(size)))
        inner, _ = quad(lambda x: math.sqrt(size / (2.0 * math.pi)) * math.exp(-size * x * x / 2.0), 0.0, t)
        worst = max(worst, abs(1.0 - 2.0 * inner - told))
    reach = 0.6454
    at = 2.0 * float(ndtr(-reach * math.sqrt(size)))
    return Truth(
        "right and tight" if worst < 1e-12 else "wrong",
        f"The mean of ln n samples is N(0, 1 / ln n), so this is exact (integrated: the same to {worst:.0e}). At "
        f"n = {N:,} a subset fixed in advance is more than {reach:.2f} off with probability {at:.3f}.",
        {"largest difference": worst, "at 0.65": at},
    )


def check_three_sigmas() -> Truth:
    from scipy.special import ndtr

    one = 1.0 - 2.0 * float(ndtr(-3.0))
    return Truth(
        "right and tight" if round(one, 4) == 0.9973 else "wrong",
        f"1 - 2 Q(3) = {one:.6f}, for one sample. All of a subset of ln n samples: {one**AT.size:.3f} at n = {N:,}; "
        f"all of the data: {one**1000:.3f} at n = 1,000 and {one**N:.1e} at n = {N:,}. So in the whole of the data "
        "some sample nearly always lies outside.",
        {"one sample": one, "a subset": one**AT.size, "1,000 samples": one**1000, "10,000 samples": one**N},
    )


def check_sensitivity() -> Truth:
    size, told = AT.size, 3.0 / AT.size
    corners = np.array([-3.0, 3.0])
    replaced = float(np.ptp(corners)) / size
    zeroed = float(np.max(np.abs(corners))) / size
    left = max(abs(x - rest) / size for x in corners for rest in corners)  # the mean of the other size - 1 samples
    entry = find("select_subsets").half_sensitivity
    ratio = float(entry.true_loss(*entry.default_pair)) / entry.claim().promised(0.0)
    holds = replaced <= told
    return Truth(
        "right and tight" if holds else "wrong",
        f"A sample that is replaced goes from 3 to -3 and moves the mean of its subset by 6 / ln n = {replaced:.3f} in "
        f"subsets of {size}, not {told:.3f}; one that leaves moves it by as much ({left:.3f}), since the mean is then "
        f"over one sample less. {zeroed:.3f} is right only where a sample is set to 0. With the notes' noise the "
        f"loss is up to twice the claim ({ratio:.2f} times on the audited pair), and samples beyond 3 are not "
        "clipped, so there is no epsilon at all over all pairs. Clip to [-3, 3] and use 6 / ln n.",
        {"replaced": replaced, "leaves": left, "set to 0": zeroed, "told": told, "audited ratio": ratio},
    )


def check_epsilon() -> Truth:
    from scipy.special import ndtri

    reach, bound = -float(ndtri(BETA / 2.0)), generalisation_by_dp(BETA)
    noisy = beyond(law_of_the_chosen(AT.per_group, AT.noise(BETA)), reach)
    exact = beyond(law_of_the_chosen(AT.per_group, 0.0), reach)
    large = Example.of(1_000_000)
    small = 0.01
    failing = beyond(law_of_the_chosen(large.per_group, 0.0), -float(ndtri(small / 2.0)))
    kept = beyond(law_of_the_chosen(large.per_group, large.noise(small)), -float(ndtri(small / 2.0)))
    as_noted = find("select_subsets").half_sensitivity
    over = float(as_noted.true_loss(*as_noted.default_pair)) > as_noted.claim().promised(0.0)
    holds = noisy <= bound and kept <= generalisation_by_dp(small) < failing
    verdict = ("not provable as argued" if over else "right and loose") if holds else "wrong"
    return Truth(
        verdict,
        "The theorem asks for sqrt(ln(1 / beta) / (2 n)) with all samples that the choice sees; ln n in the place of n "
        "needs one more step (given the other subsets, 'subset j is chosen' is a private function of the ln n samples "
        "of subset j alone, and the theorem holds for each output by itself). The noise then is half of what "
        f"that epsilon needs. The conclusion is true all the same: at n = {N:,} and beta = {BETA:g} the chosen subset "
        f"is bad with probability {noisy:.3f}, and 3 sqrt(beta) = {bound:.2f}. But there even the exact maximum keeps "
        f"that bound ({exact:.3f}); at n = 10^6 and beta = {small:g} it does not ({failing:.2f} against "
        f"{generalisation_by_dp(small):.2f}), and the noisy choice does ({kept:.3f}).",
        {"noisy": noisy, "bound": bound, "exact maximum": exact, "noisy at 10^6": kept, "maximum at 10^6": failing},
    )


def check_revisited() -> Truth:
    seen = {name: float(np.mean(values)) for name, values in simulated().items()}
    error = max(float(np.std(values)) for values in simulated().values()) / math.sqrt(RUNS)
    exact = mean_of(law_of_the_chosen(AT.per_group, AT.noise(BETA))) / math.sqrt(AT.size)
    limit = 1.0 / AT.noise(BETA)
    twice = mean_of(law_of_the_chosen(AT.per_group, 2.0 * AT.noise(BETA))) / math.sqrt(AT.size)
    spread = 1.0 / math.sqrt(AT.size * AT.per_group)
    helps = seen["with noise"] < 0.3 * seen["exact maximum"] and abs(seen["with noise"] - exact) < 6.0 * error
    verdict = ("right and tight" if exact < spread else "right and loose") if helps else "wrong"
    return Truth(
        verdict,
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
        axes.hist(values, bins=np.linspace(-0.25, 0.85, 56).tolist(), color=shades[name], alpha=0.75, label=name)
    axes.axvline(0.0, color="black", linewidth=1.0)
    axes.set_xlabel("the final query (true mean 0)")
    axes.set_ylabel(f"of {RUNS} runs")
    axes.legend(frameon=False)


EXAMPLE = (
    Statement(
        name="example-variance",
        place=place(SLIDES),
        says="sqrt(n / ln n) subsets chosen at random: an unbiased estimate, of variance 1 / sqrt(n ln n)",
        verdict="right and tight",
        how=("derived", "computed"),
        check=check_variance,
    ),
    Statement(
        name="example-maximum",
        place=place("'Unrealistic example (cont.)'"),
        says="the maximum of each group does not concentrate around the true mean",
        verdict="right and tight",
        how=("computed",),
        check=check_maximum,
        audits=("Subsets chosen by their exact means",),
    ),
    Statement(
        name="example-density-of-the-maximum",
        place=place(APPENDIX),
        says="the maximum of n draws of N(0, sigma) has density (n / sigma) phi(y / sigma) Phi(y / sigma)^(n - 1)",
        verdict="right and tight",
        how=("derived", "computed"),
        check=check_density_of_the_maximum,
    ),
    Statement(
        name="example-tail-of-a-mean",
        place=place("'Notes on the unrealistic example (cont.)'"),
        says="Pr(|E_S[phi_j]| >= t) = 2 Q(t sqrt(ln n))",
        verdict="right and tight",
        how=("derived", "computed"),
        check=check_tail_of_a_mean,
    ),
    Statement(
        name="example-three-sigmas",
        place=place("'Notes on the unrealistic example (cont.)'"),
        says="each sample is in [-3, 3] with probability 1 - 2 Q(3) = 0.9973",
        verdict="right and tight",
        how=("computed",),
        check=check_three_sigmas,
    ),
    Statement(
        name="example-sensitivity",
        place=place("'Notes on the unrealistic example (cont.)'"),
        says="the sensitivity of a subset's mean is 3 / ln(n), with high probability",
        verdict="wrong",
        how=("derived", "audited"),
        check=check_sensitivity,
        audits=(
            "Subsets chosen by their noisy means",
            "Subsets chosen with the sensitivity of the notes",
            "Subsets chosen from samples that are not clipped",
        ),
    ),
    Statement(
        name="example-epsilon",
        place=place("'Notes on the unrealistic example (cont.)'"),
        says="epsilon = sqrt(ln(1 / beta) / (2 ln n)), according to the generalisation result",
        verdict="not provable as argued",
        how=("derived", "computed"),
        check=check_epsilon,
        audits=("Subsets chosen with the sensitivity of the notes",),
    ),
    Statement(
        name="example-revisited",
        place=place("'Unrealistic example (revisited)'"),
        says="the queries answered with DP, the final one without: possible, as nothing is chosen by it any more",
        verdict="right and loose",
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
