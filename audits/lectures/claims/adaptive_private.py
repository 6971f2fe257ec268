"""Bounds on the max-information of private algorithms, and the generalisation that follows from them."""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from audits.lectures.claims import bounds
from audits.lectures.claims.adaptive_information import (
    BITS,
    bits_with,
    geometric_count,
    judged,
    randomised_response,
    stated,
)
from audits.lectures.claims.information import max_divergence, max_information
from audits.lectures.claims.simulations import best_of
from audits.lectures.claims.statement import Figure, Truth

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

SEED, N, QUERIES, RUNS = 1, 400, 100_000, 2_000
PURE_TAUS, TAKE_TWO_TAUS = np.linspace(0.07, 0.13, 7), np.linspace(0.08, 0.13, 6)


# --- max-information of private algorithms --------------------------------------------------------------------


def check_pure() -> Truth:
    epsilon, ratios = 0.7, {}
    for name, told in (("bits", randomised_response(BITS, epsilon)), ("count", geometric_count(BITS, epsilon))):
        for eta in (0.5, 1e-8):
            found = max_information(told * bits_with(eta, BITS)[:, None])
            ratios[name, eta] = found / bounds.max_information_pure(epsilon, BITS)
    worst = max(ratios.values())
    return Truth(
        judged(worst <= 1.0 + 1e-9, worst > 0.999),
        f"Randomised response of n bits reaches it (n = {BITS}, epsilon = {epsilon:g}: {ratios['bits', 1e-8]:.4f} of "
        f"the bound for bits that are hardly ever 1, {ratios['bits', 0.5]:.2f} for fair bits), and so does a count "
        f"with geometric noise ({ratios['count', 1e-8]:.4f}; {ratios['count', 0.5]:.2f} for fair bits). So it is "
        "tight even for independent samples: what is gained for those is the approximate version.",
        {f"{name}, eta = {eta:g}": ratio for (name, eta), ratio in ratios.items()},
    )


def check_approximate() -> Truth:
    ratios = {}
    for n, epsilon, beta in itertools.product((10, 100, 1_000), (0.01, 0.1, 1.0), (1e-4, 0.01, 0.1)):
        found = max_divergence(*agreements(n, epsilon), beta)
        ratios[n, epsilon, beta] = found / bounds.max_information_approximate(epsilon, n, beta)
    for chance, beta, told in itertools.product(
        (0.5, 0.3, 0.1, 0.02), (1e-4, 0.01, 0.1), (randomised_response(BITS, 0.5), geometric_count(BITS, 0.5))
    ):
        found = max_information(told * bits_with(chance, BITS)[:, None], beta)
        key = chance, beta, float(told[0, 0])
        ratios[key] = found / bounds.max_information_approximate(0.5, BITS, beta)
    worst, at = max(ratios.values()), ratios[100, 0.1, 0.01]
    beyond = 2.0 * math.log(2.0 / 0.01) / 0.1**2
    return Truth(
        judged(worst <= 1.0, worst > 0.9),
        f"Held at {len(ratios)} points, randomised response and geometric counts of independent bits, fair and not: at "
        f"most {worst:.2f} of the bound. For n = 100 fair bits at epsilon = 0.1 and beta = 0.01 it is "
        f"{at * bounds.max_information_approximate(0.1, 100, 0.01):.2f} bits; the bound is "
        f"{bounds.max_information_approximate(0.1, 100, 0.01):.2f}, the pure one "
        f"{bounds.max_information_pure(0.1, 100):.1f}. 'O(epsilon sqrt(n))' holds while epsilon sqrt(n) is small: from "
        f"n = 2 ln(2 / beta) / epsilon^2 (here {beyond:,.0f}) the term epsilon^2 n / 2 is the larger one.",
        {"largest ratio": worst, "ratio at 100": at, "second term no longer larger": beyond},
    )


def check_every_distribution() -> Truth:
    """As read; and all n samples equal: 0, and rarely 1. A count with Laplace noise then tells which."""
    iid = max(
        max_divergence(*agreements(m, each), b) / bounds.max_information_approximate(each, m, b)
        for m, each, b in itertools.product((10, 100, 1_000), (0.01, 0.1), (0.001, 0.01))
    )
    n, epsilon, beta = 10_000, 0.01, 0.001
    rare, missed = 2.0 * beta, math.exp(-epsilon * n / 2.0) / 2.0
    joint = np.outer([1.0 - rare, rare], [1.0, 1.0]) * np.array([[1.0 - missed, missed], [missed, 1.0 - missed]])
    found, told = max_information(joint, beta), bounds.max_information_approximate(epsilon, n, beta)
    return Truth(
        judged(iid <= 1.0, iid > 0.9),
        f"Read for the i.i.d. data of its heading, it holds (at most {iid:.2f} of it on randomised response), and what "
        "the notes derive from it keeps to such data. I(A, n) was defined over every distribution, though, and read so "
        f"it would mean more than is true: n = {n:,} samples, all 0 or (with probability {rare:g}) all 1, counted with "
        f"Lap(1 / epsilon), epsilon = {epsilon:g}, have {found:.2f} bits at beta = {beta:g}, and the formula gives "
        f"{told:.2f}. So a reader who composes it, which needs every distribution, should use the pure bound.",
        {"iid": iid, "found": found, "told": told},
    )


def draw_information(axes: Axes) -> None:
    sizes, epsilon, beta = np.unique(np.geomspace(5, 3_000, 30).astype(int)), 0.1, 0.01
    found = [max_divergence(*agreements(int(n), epsilon), beta) for n in sizes]
    axes.loglog(sizes, [bounds.max_information_pure(epsilon, n) for n in sizes], "k:", label="pure bound")
    axes.loglog(
        sizes, [bounds.max_information_approximate(epsilon, n, beta) for n in sizes], "k--", label="approximate bound"
    )
    axes.loglog(sizes, np.maximum(found, 1e-2), "-", color="#2b5d8a", label="randomised response, exact")
    axes.set_xlabel("n")
    axes.set_ylabel("bits")
    axes.legend(frameon=False)


def agreements(n: int, epsilon: float) -> tuple[Floats, Floats]:
    """The number of bits that data and report agree in: under randomised response, and with fresh data."""
    from scipy.stats import binom

    at = np.arange(n + 1)
    return binom.pmf(at, n, 1.0 / (1.0 + math.exp(-epsilon))), binom.pmf(at, n, 0.5)


# --- generalisation by max-information ------------------------------------------------------------------------


def check_mcdiarmid() -> Truth:
    """The average of n bits that are 1 with probability p has c = 1 / n."""
    from scipy.stats import binom

    ratios = {}
    for n, p, reach in itertools.product((10, 100, 1_000), (0.5, 0.1), (1.0, 2.0, 3.0)):
        tau = reach * 0.5 / math.sqrt(n)
        above, under = math.ceil(n * (p + tau) - 1e-9), math.floor(n * (p - tau) + 1e-9)
        exact = float(binom.sf(above - 1, n, p) + binom.cdf(under, n, p))
        ratios[n, p, reach] = exact / bounds.mcdiarmid(n, tau, 1.0 / n)
    worst = max(ratios.values())
    return Truth(
        judged(worst <= 1.0, worst > 0.9),
        f"For an average it is Hoeffding's bound with c = 1 / n. Held at {len(ratios)} points: the exact tail is at "
        f"most {worst:.2f} of it.",
        {"largest ratio": worst},
    )


@functools.cache
def chosen_at(taus: tuple[float, ...], squared: bool) -> tuple[Floats, Floats]:
    """How often the best query is tau off or more: chosen exactly, and at epsilon = tau^2 or tau."""
    at = np.array(taus)
    exact, private = best_of(N, QUERIES, at**2 if squared else at, RUNS, np.random.default_rng(SEED))
    reached = at[:, None] - 1e-12
    return (np.abs(exact / N - 0.5) >= reached).mean(axis=1), (np.abs(private / N - 0.5) >= reached).mean(axis=1)


def _worst_output(n: int, tau: float, epsilon: float) -> float:
    """How likely a report of randomised response agrees with its data in n (1/2 + tau) bits or more, or as few."""
    from scipy.stats import binom

    agree = 1.0 / (1.0 + math.exp(-epsilon))
    far = math.ceil(n * (0.5 + tau) - 1e-9)
    return float(binom.sf(far - 1, n, agree) + binom.cdf(n - far, n, agree))


def check_generalisation() -> Truth:
    algebra = max(
        abs(
            bounds.probability_bound(bounds.affordable_information(n, tau, c), bounds.mcdiarmid(n, tau, c), beta)
            - bounds.generalisation_by_information(n, tau, c, beta)
        )
        + abs(bounds.max_information_pure(bounds.pure_epsilon(n, tau, c), n) - bounds.affordable_information(n, tau, c))
        for n, tau, beta in itertools.product((100, 400), (0.1, 0.2), (0.0, 0.01))
        for c in [1.0 / n]
    )
    told = np.array([bounds.generalisation_by_information(N, tau, 1.0 / N) for tau in PURE_TAUS])
    exact, private = chosen_at(tuple(PURE_TAUS), True)
    hardest = max(
        _worst_output(n, tau, tau**2) / bounds.generalisation_by_information(n, tau, 1.0 / n)
        for n, tau in itertools.product((100, 400, 2_000), (0.05, 0.1, 0.2))
    )
    at = int(np.argmin(np.abs(PURE_TAUS - 0.1)))
    holds = algebra < 1e-9 and hardest <= 1.0 and bool(np.all(private <= told)) and exact[at] > told[at]
    return Truth(
        judged(holds, hardest > 0.9),
        "2^k 2 exp(-2 x) with k = log2(e) x is 2 exp(-x), x = tau^2 / (n c^2), and a tau^2 / (n c)^2-DP algorithm has "
        "no more than k bits: exact. The report of randomised response, the output most like its data, is off with at "
        f"most {hardest:.2f} of the bound. Simulated, the best of {QUERIES:,} queries on {N} samples, tau = 0.1: "
        f"chosen exactly it is off in {exact[at]:.2f} of the runs, at epsilon = tau^2 = 0.01 in {private[at]:.3f}; "
        f"bound {told[at]:.3f}.",
        {"algebra": algebra, "hardest": hardest, "exact choice": float(exact[at]), "private": float(private[at])},
    )


def check_against_the_corollary() -> Truth:
    n, tau = N, 0.1
    pure, corollary = bounds.pure_epsilon(n, tau, 1.0 / n), bounds.statistical_query_epsilon(n, tau)
    gain = bounds.statistical_query(n, tau) / bounds.generalisation_by_information(n, tau, 1.0 / n)
    same = math.isclose(pure, tau**2) and math.isclose(
        bounds.affordable_information(n, tau, 1 / n), bounds.BITS * n * tau**2
    )
    share = _worst_output(n, tau, pure) / bounds.generalisation_by_information(n, tau, 1.0 / n)
    return Truth(
        judged(same and corollary > pure and share <= 1.0, share > 0.9),
        f"Right, and the price is steep: at n = {n} and tau = {tau:g} it needs epsilon = {pure:g} where the corollary "
        f"needs {corollary:.4f}, and what it gains is a factor of {gain:.2f} = 3 / sqrt(2), whatever n and tau. The "
        f"bound is not reached either: randomised response at that epsilon has {share:.2g} of it.",
        {"share": share, "epsilon": pure, "epsilon of the corollary": corollary, "gain": gain},
    )


def check_take_two() -> Truth:
    algebra = 0.0
    for n, tau in itertools.product((100, 400, 2_000), (0.05, 0.1, 0.2)):
        c, x = 1.0 / n, n * tau**2
        beta = 2.0 * math.exp(-x)
        bits = bounds.max_information_approximate(bounds.approximate_epsilon(n, tau, c), n, beta)
        whole = bounds.probability_bound(bits, bounds.mcdiarmid(n, tau, c), beta)
        algebra = max(algebra, abs(whole / bounds.generalisation_take_two(n, tau, c) - 1.0))
    told = np.array([bounds.generalisation_take_two(N, tau, 1.0 / N) for tau in TAKE_TWO_TAUS])
    exact, private = chosen_at(tuple(TAKE_TWO_TAUS), False)
    hardest = max(
        _worst_output(n, tau, tau) / bounds.generalisation_take_two(n, tau, 1.0 / n)
        for n, tau in itertools.product((100, 400, 2_000), (0.05, 0.1, 0.2))
    )
    at = int(np.argmin(np.abs(TAKE_TWO_TAUS - 0.1)))
    # 3 sqrt(2) e^-x = 2 e^(-0.7929 x) + 2 e^-x, and = 2 e^(-3 x / 4): both in closed form
    crossing = math.log(1.5 * math.sqrt(2.0) - 1.0) / (math.sqrt(0.5) - 0.5)
    rounded = 4.0 * math.log(1.5 * math.sqrt(2.0))
    holds = algebra < 1e-9 and hardest <= 1.0 and bool(np.all(private <= told)) and exact[at] > told[at]
    return Truth(
        judged(holds, hardest > 0.9),
        f"The algebra is exact: x / 2 + x / sqrt(2) - 2 x is -{1.5 - math.sqrt(0.5):.4f} x. Randomised response is off "
        f"with at most {hardest:.2f} of the bound. Simulated, the best of {QUERIES:,} queries on {N} samples, tau = "
        f"0.1: chosen exactly it is off in {exact[at]:.2f} of the runs, at epsilon = tau in {private[at]:.3f}; bound "
        f"{told[at]:.3f}. For statistical queries the corollary's 3 sqrt(2) exp(-x), at nearly the same epsilon, is "
        f"better from x = n tau^2 = {crossing:.3f} on; than the rounded 2 exp(-3 x / 4), from {rounded:.2f} on.",
        {
            "algebra": algebra,
            "hardest": hardest,
            "private": float(private[at]),
            "crossing": crossing,
            "crossing of the rounded": rounded,
        },
    )


def check_three_quarters() -> Truth:
    from scipy.optimize import brentq

    def excess(x: float) -> float:
        return math.exp((math.sqrt(0.5) - 0.75) * x) + math.exp(-0.25 * x) - 1.0

    least = float(brentq(excess, 1.0, 20.0))
    falls = all(excess(x) > excess(x + 0.5) for x in np.arange(0.5, 60.0, 0.5))
    return Truth(
        judged(falls and least <= 10.0, least > 9.0),
        f"2 exp(-{1.5 - math.sqrt(0.5):.4f} x) + 2 exp(-x) <= 2 exp(-3 x / 4) from x = {least:.4f} on, where the bound "
        f"is {2.0 * math.exp(-0.75 * least):.4f}. At x = 10 there is room: {1.0 + excess(10.0):.2f} of it.",
        {"least": least, "bound there": 2.0 * math.exp(-0.75 * least), "share at 10": 1.0 + excess(10.0)},
    )


def draw_generalisation(taus: Floats, squared: bool, axes: Axes) -> None:
    exact, private = chosen_at(tuple(taus), squared)
    bound = bounds.generalisation_by_information if squared else bounds.generalisation_take_two
    axes.plot(taus, np.minimum(1.0, [bound(N, tau, 1.0 / N) for tau in taus]), "k--", label="bound")
    axes.plot(taus, exact, "o-", color="#a3262a", label="exact choice")
    axes.plot(taus, private, "s-", color="#2b5d8a", label=f"private choice, epsilon = tau{'^2' if squared else ''}")
    axes.set_xlabel("tau")
    axes.set_ylabel("how often off by tau or more")
    axes.legend(frameon=False)


DP, VIA = "The max-information of DP algorithms (cont.)", "Generalization via max-information (cont.)"

PRIVATE = (
    stated(
        "max-information-pure",
        "The max-information of DP algorithms",
        r"an $\varepsilon$-DP algorithm has $I_\infty(\mathcal{A}, n) \leq (\log e)\,\varepsilon n$",
        "right and tight",
        check_pure,
        quote=(
            r"Let $\mathcal{A}$ be an $\varepsilon$-DP algorithm. Then $I_{\infty}(\mathcal{A}, n) \leq (\log e) "
            r"\varepsilon n$."
        ),
    ),
    stated(
        "max-information-approximate",
        DP,
        r"for i.i.d. data: at most $(\log e)(\varepsilon^2 n/2 + \varepsilon \sqrt{n \ln(2/\beta)/2})$",
        "right and loose",
        check_approximate,
        Figure(
            "Approximate max-information of randomised response of n fair bits at epsilon = 0.1 and beta = 0.01, in "
            "bits, with the two bounds of the notes.",
            draw_information,
        ),
        quote=(
            r"Then for any $\beta > 0$, $I_{\infty}^{\beta}(\mathcal{A}, n) \leq (\log e) (\varepsilon^2 n/2 + "
            r"\varepsilon \sqrt{n \ln(2/\beta)/2}).$ ... For small $\varepsilon$ and fixed $\beta > 0$, the bound on "
            r"$I_{\infty}^{\beta}(\mathcal{A}, n)$ is $\mathcal{O}(\varepsilon \sqrt{n})$."
        ),
        context="Approx. max-information of DP algorithms for i.i.d. datasets",
        reading=r"'For small $\varepsilon$' is read as: while $\varepsilon \sqrt{n}$ is small.",
    ),
    stated(
        "max-information-every-distribution",
        DP,
        r"the same bound, written for $I_\infty^\beta(\mathcal{A}, n)$",
        "right and loose",
        check_every_distribution,
        quote=(
            r"The previous result applied to general distributions of datasets but we can obtain a tighter bound for "
            r"datasets with i.i.d. samples. ... Then for any $\beta > 0$, $I_{\infty}^{\beta}(\mathcal{A}, n) \leq "
            r"(\log e) (\varepsilon^2 n/2 + \varepsilon \sqrt{n \ln(2/\beta)/2}).$"
        ),
        context="Approx. max-information of DP algorithms for i.i.d. datasets",
        reading=(
            r"The heading of the box limits $I_\infty^\beta(\mathcal{A}, n)$ to i.i.d. data, which is the kinder way: "
            "its definition was over every distribution."
        ),
    ),
    stated(
        "generalisation-mcdiarmid",
        "Generalization via max-information",
        r"a $c$-sensitive function of i.i.d. samples: $\Pr\{|f(S) - \mathcal{P}^n[f]| \geq \tau\} \leq "
        r"2 \exp(-2\tau^2/(nc^2))$",
        "right and loose",
        check_mcdiarmid,
        quote=(
            r"By McDiarmid's inequality, if the samples are i.i.d. ... then for every possible function $f$ we have "
            r"that ... $\mathsf{Pr}\{\left|f(\boldsymbol{S}) - \mathcal{P}^n[f]\right| \geq \tau\} \leq 2\exp\left("
            r"-\frac{2\tau^2}{nc^2}\right).$"
        ),
    ),
    stated(
        "generalisation-max-information",
        VIA,
        r"$I_\infty^\beta(\mathcal{A}, n) \leq (\log e)\,\tau^2/(nc^2)$, as for $\tau^2/(nc)^2$-DP: off by $\tau$ with "
        r"at most $2 \exp(-\tau^2/(nc^2)) + \beta$",
        "right and loose",
        check_generalisation,
        Figure(
            "The best of 100,000 useless queries on 400 samples, at epsilon = tau^2: the exact choice crosses the "
            "bound by pure max-information (dashed), the private one does not.",
            functools.partial(draw_generalisation, PURE_TAUS, True),
        ),
        quote=(
            r"$\Pr\{|\mathbf{f}(\mathbf{S}) - \mathcal{P}^n[\mathbf{f}]| \ge \tau\} \le 2\exp\left(-\frac{\tau^2}{nc^2}"
            r"\right) + \beta.$ ... In particular, if $\mathcal{A}$ is a $\left(\frac{\tau^2}{n^2c^2}\right)$-DP "
            "algorithm"
        ),
        context="Generalization via max-information for i.i.d. datasets",
    ),
    stated(
        "generalisation-restrictive",
        VIA,
        r"for a statistical query, $\tau^2$-DP gives $2\exp(-n\tau^2)$: a very restrictive privacy level",
        "right and loose",
        check_against_the_corollary,
        quote=(
            r"If $\mathcal{A}$ is a $\tau^2$-DP algorithm, then $I_{\infty}(\mathcal{A}, n) \leq (\log e) n\tau^2$ and "
            r"... $\Pr\{|\mathcal{E}_{\boldsymbol{S}}[\phi] - \mathcal{P}[\phi]| \geq \tau\} \leq 2\exp(-n\tau^2).$ "
            r"... the previous result requires a very restrictive privacy level of $\varepsilon = \tau^2$"
        ),
    ),
    stated(
        "generalisation-take-two",
        VIA,
        r"$\tau/(nc)$-DP: off with at most $2\exp((1/\sqrt{2} - 3/2)\,x) + 2\exp(-x)$, $x = \tau^2/(nc^2)$",
        "right and loose",
        check_take_two,
        Figure(
            "The best of 100,000 useless queries on 400 samples, at epsilon = tau: the exact choice crosses the bound "
            "by approximate max-information (dashed), the private one does not.",
            functools.partial(draw_generalisation, TAKE_TWO_TAUS, False),
        ),
        quote=(
            r"$\Pr\left\{\left|\boldsymbol{f}(\boldsymbol{S}) - \mathcal{P}^n[\boldsymbol{f}]\right| \geq \tau\right\} "
            r"\leq 2 \exp\left(\left(\frac{1}{\sqrt{2}} - \frac{3}{2}\right)\frac{\tau^2}{nc^2}\right) + 2 \exp\left("
            r"-\frac{\tau^2}{nc^2}\right)$"
        ),
        context="Generalization via max-information for i.i.d. datasets (take 2)",
    ),
    stated(
        "generalisation-three-quarters",
        VIA,
        r"that is at most $2\exp(-\frac{3}{4} x)$ for large $x$: more than 10 seems OK",
        "right and loose",
        check_three_quarters,
        quote=(
            r"$\leq 2\exp\left(-\frac{3}{4} \frac{\tau^2}{nc^2}\right)$, for large $\frac{\tau^2}{nc^2}$ (more than 10 "
            "seems OK)."
        ),
    ),
)
