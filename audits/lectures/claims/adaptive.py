"""Adaptive data analysis.

The unrealistic example and the statements on max-information have modules of their own; here are the bounds by
differential privacy and the holdout that is used again.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from audits.lectures.claims import bounds
from audits.lectures.claims.adaptive_analyst import ANALYST
from audits.lectures.claims.adaptive_appendix import APPENDIX
from audits.lectures.claims.adaptive_example import EXAMPLE, place
from audits.lectures.claims.adaptive_information import INFORMATION
from audits.lectures.claims.adaptive_private import PRIVATE
from audits.lectures.claims.simulations import Holdout, best_of, holdouts
from audits.lectures.claims.statement import Figure, Statement, Truth

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

N, QUERIES, RUNS, SEED = 400, 100_000, 2_000, 1
TAUS = np.linspace(0.06, 0.14, 9)
REUSED, HOLDOUTS = Holdout(), 12


@functools.cache
def chosen_queries() -> tuple[Floats, Floats]:
    """How often the best of many queries is more than tau off (tau): chosen exactly, and at the corollary's epsilon."""
    epsilons = np.array([bounds.statistical_query_epsilon(N, tau) for tau in TAUS])
    exact, private = best_of(N, QUERIES, epsilons, RUNS, np.random.default_rng(SEED))
    off = np.abs(private / N - 0.5) > TAUS[:, None]
    return (np.abs(exact / N - 0.5) > TAUS[:, None]).mean(axis=1), off.mean(axis=1)


@functools.cache
def reused_holdouts() -> dict[str, Floats]:
    return holdouts(REUSED, HOLDOUTS, np.random.default_rng(SEED))


# --- the checks -----------------------------------------------------------------------------------------------


def check_hoeffding() -> Truth:
    from scipy.stats import binom

    ratios = {}
    for n in (10, 100, 1_000, 10_000):
        for p in (0.5, 0.2, 0.05):
            for reach in (0.5, 1.0, 2.0, 3.0, 4.0):
                tau = reach * 0.5 / math.sqrt(n)
                exact = binom.sf(math.floor(n * (p + tau) + 1e-9), n, p) + binom.cdf(
                    math.ceil(n * (p - tau) - 1e-9) - 1, n, p
                )
                ratios[n, p, reach] = float(exact) / bounds.hoeffding(n, tau)
    worst = max(ratios.values())
    verdict = "wrong" if worst > 1.0 else "right and tight" if worst > 0.9 else "right and loose"
    return Truth(
        verdict,
        f"Held at all {len(ratios)} points of a grid of exact binomials (n up to 10,000, p = 0.5, 0.2, 0.05): the "
        f"truth is at most {worst:.2f} of the bound, and {ratios[10_000, 0.5, 4.0]:.2f} of it four standard deviations "
        "out. The exponent 2 cannot be larger; the factor before it can be smaller.",
        {"largest ratio": worst, "four deviations": ratios[10_000, 0.5, 4.0]},
    )


def proved_factor(beta: float) -> float:
    """The factor before sqrt(beta) that McDiarmid's inequality gives for one output: 1 + int_0^oo e^(-3 s - 4 s^2 / L).

    With g(S) = ln Pr(y | S) / Pr(y) and L = ln(1 / beta): g moves by at most epsilon with a sample and has no positive
    expectation (Jensen), so Pr(g >= epsilon t) <= e^(-2 t^2 / n). The chance of a bad S given y is the integral of
    Pr(bad S, e^g > u) over u: at most beta up to u = beta^(-1/2), and the tail of g from there on.
    """
    from scipy.integrate import quad

    whole, _ = quad(lambda s: math.exp(-3.0 * s - 4.0 * s * s / math.log(1.0 / beta)), 0.0, math.inf)
    return 1.0 + float(whole)


def check_theorem() -> Truth:
    """Randomised response of n fair bits; an output is bad for the datasets that agree with it in k bits or more."""
    from scipy.stats import binom

    n, rows = 2_000, {}
    for target in (1e-2, 1e-3, 1e-6, 1e-12):
        k = int(binom.isf(target, n, 0.5)) + 1
        beta = float(binom.sf(k - 1, n, 0.5))
        epsilon = bounds.generalisation_epsilon(n, beta)
        rows[target] = beta, float(binom.sf(k - 1, n, 1.0 / (1.0 + math.exp(-epsilon))))
    ratios = {target: bad / bounds.generalisation_by_dp(beta) for target, (beta, bad) in rows.items()}
    worst = max(ratios.values())
    factors = {target: proved_factor(beta) for target, (beta, _) in rows.items()}
    proved = max(factors.values()) <= 3.0 and all(
        bad <= factors[target] * math.sqrt(beta) for target, (beta, bad) in rows.items()
    )
    holds = worst <= 1.0 and proved
    verdict = "wrong" if not holds else "right and tight" if worst > 0.9 else "right and loose"
    power = math.log(rows[1e-12][1]) / math.log(rows[1e-12][0])
    return Truth(
        verdict,
        "Randomised response of n bits pulls an output towards its data as hard as epsilon allows. With n = 2,000 an "
        f"output that is bad with beta = {rows[1e-2][0]:.4f} if fixed is bad with {rows[1e-2][1]:.4f} (bound "
        f"{bounds.generalisation_by_dp(rows[1e-2][0]):.2f}); with beta = {rows[1e-12][0]:.1e} it is bad with "
        f"{rows[1e-12][1]:.1e} (bound {bounds.generalisation_by_dp(rows[1e-12][0]):.1e}). That is beta^{power:.2f}, "
        "and tends to beta^(9/16) for many bits, against the square root of the theorem, which says nothing unless "
        f"beta < 1/9. The factor 3 can be 4/3, and holds for every output by itself: McDiarmid's inequality on the log "
        f"ratio gives {factors[1e-2]:.3f} at the first of these and {factors[1e-12]:.3f} at the last, never over 4/3.",
        {
            "power": power,
            "factor": factors[1e-12],
            **{f"ratio at {target:g}": ratio for target, ratio in ratios.items()},
        },
    )


def check_statistical_queries() -> Truth:
    from scipy.stats import binom

    algebra = max(
        abs(bounds.statistical_query_epsilon(n, tau) - bounds.generalisation_epsilon(n, beta))
        + abs(bounds.statistical_query(n, tau) / bounds.generalisation_by_dp(beta) - 1.0)
        for n in (100, 400, 1_000)
        for tau in (0.1, 0.2)
        for beta in [bounds.hoeffding(n, tau)]
    )
    told = np.array([bounds.statistical_query(N, tau) for tau in TAUS])
    exact, private = chosen_queries()
    at = int(np.argmin(np.abs(TAUS - 0.1)))
    sure = -math.expm1(QUERIES * math.log1p(-float(binom.sf(N * 0.6, N, 0.5))))
    simulated = abs(exact[at] - sure) < 6.0 * math.sqrt(sure * (1.0 - sure) / RUNS)
    holds = algebra < 1e-9 and bool(np.all(private <= told)) and exact[at] > told[at] and simulated
    verdict = ("right and tight" if np.max(private / told) > 0.9 else "right and loose") if holds else "wrong"
    return Truth(
        verdict,
        f"The algebra from the theorem is exact. Of {QUERIES:,} queries on n = {N} fair bits each the best is taken. "
        f"At tau = 0.1 the exact choice is off by more with probability {sure:.2f} (simulated {exact[at]:.2f}); an "
        f"exponential mechanism at the corollary's epsilon {bounds.statistical_query_epsilon(N, 0.1):.4f} was so in "
        f"{int(private[at] * RUNS)} of {RUNS:,} runs, and the bound is {told[at]:.3f}. It says nothing below "
        f"n tau^2 = {math.log(3.0 * math.sqrt(2.0)):.2f}, where it passes 1.",
        {"algebra": algebra, "exact choice": sure, "private": float(private[at]), "bound": float(told[at])},
    )


def draw_statistical_queries(axes: Axes) -> None:
    exact, private = chosen_queries()
    axes.plot(TAUS, np.minimum(1.0, [bounds.statistical_query(N, tau) for tau in TAUS]), "k--", label="bound")
    axes.plot(TAUS, exact, "o-", color="#a3262a", label="exact choice")
    axes.plot(TAUS, private, "s-", color="#2b5d8a", label="private choice")
    axes.set_xlabel("tau")
    axes.set_ylabel("how often more than tau off")
    axes.legend(frameon=False)


def check_holdout() -> Truth:
    seen = {name: float(np.mean(values)) for name, values in reused_holdouts().items()}
    naive = seen["naive: holdout"] - seen["naive: fresh"]
    worst = float(np.max(np.abs(reused_holdouts()["thresholdout: holdout"] - reused_holdouts()["thresholdout: fresh"])))
    tau, setting = 0.1, REUSED
    needed = math.ceil(2.0 * setting.budget / (setting.sigma * tau))
    while setting.budget * 2.0 / (setting.sigma * needed) > bounds.statistical_query_epsilon(needed, tau):
        needed += 1
    covered = setting.epsilon <= bounds.statistical_query_epsilon(setting.n, tau)
    works = naive > 0.1 and worst < tau
    verdict = ("right and tight" if covered else "right and loose") if works else "wrong"
    return Truth(
        verdict,
        f"{setting.n:,} samples, {setting.features:,} features, labels that none of them predicts. A holdout asked "
        f"directly about every feature tells an accuracy of {seen['naive: holdout']:.2f}; fresh data tell "
        f"{seen['naive: fresh']:.2f}. Through Thresholdout it tells {seen['thresholdout: holdout']:.2f} against "
        f"{seen['thresholdout: fresh']:.2f} (at most {worst:.3f} apart in {HOLDOUTS} runs), and spends "
        f"{seen['used']:.0f} of its budget of {setting.budget}. The guarantee, by the corollary for statistical "
        f"queries, is far from covering this: epsilon = 2 B / (sigma n) = {setting.epsilon:.0f}, and tau = {tau:g} "
        f"needs about {tau:g}, so a holdout of {needed:,} samples.",
        {
            "epsilon": setting.epsilon,
            "samples needed": float(needed),
            "worst": worst,
            "gap of the naive": naive,
            **seen,
        },
    )


def draw_holdout(axes: Axes) -> None:
    seen = reused_holdouts()
    parts = ("training", "holdout", "fresh")
    for shift, (name, colour) in enumerate((("naive", "#a3262a"), ("thresholdout", "#2b5d8a"))):
        values = [seen[f"{name}: {part}"] for part in parts]
        at = np.arange(3) + 0.36 * shift - 0.18
        spread = [np.std(value) for value in values]
        axes.bar(at, [np.mean(value) for value in values], 0.34, yerr=spread, color=colour, label=name)
    axes.axhline(0.5, color="black", linewidth=1.0)
    axes.set_xticks(range(3), parts)
    axes.set_ylim(0.4, 0.85)
    axes.set_ylabel("accuracy")
    axes.legend(frameon=False)


STATEMENTS = (
    *EXAMPLE,
    *APPENDIX,
    Statement(
        name="generalisation-hoeffding",
        place=place("'Generalization via differential privacy (cont.)'"),
        says=r"a query fixed before: $\Pr\{|\mathcal{P}[\phi] - \mathcal{E}_S[\phi]| > \tau\} \leq 2\exp(-2n\tau^2)$",
        quote=(
            r"By Hoeffding's inequality, a fixed query function verifies that ... $\Pr\{\left|\mathcal{P}[\phi] - "
            r"\mathcal{E}_{\boldsymbol{S}}[\phi]\right| > \tau\} \le 2\exp(-2n\tau^2).$"
        ),
        verdict="right and loose",
        how=("computed",),
        check=check_hoeffding,
    ),
    Statement(
        name="generalisation-by-privacy",
        place=f"""{place("'Generalization via differential privacy'")}; CS 208, notes 002, 'Goals'""",
        says=(
            r"$\varepsilon \leq \sqrt{\ln(1/\beta)/(2n)}$: an output that is bad with $\beta$ if fixed is bad with at "
            r"most $3\sqrt{\beta}$ for its own data"
        ),
        quote=(
            (
                r"Then, for $\varepsilon \leq \sqrt{\frac{\ln(1/\beta)}{2n}}$ we have $\Pr\{\mathbf{S}"
                r" \in R(\mathbf{Y})\} \leq 3\sqrt{\beta}$."
            ),
            (
                "it has been proven that anything learned in a differentially private way might, "
                "under certain conditions, generalize to the population from which the data was "
                "drawn."
            ),
        ),
        context=(
            r"Generalization via DP for i.i.d. datasets ... Assume that for each element $y \in \mathcal{Y}$ there is "
            r"a subset $R(y) \subseteq \mathcal{X}^n$ such that $\max_{y \in \mathcal{Y}} \Pr\{\mathbf{S} \in R(y)\} "
            r"\leq \beta$."
        ),
        reading="The conditions that notes 002 do not name are taken to be those of notes 001.",
        verdict="right and loose",
        how=("derived", "computed"),
        check=check_theorem,
    ),
    Statement(
        name="generalisation-statistical-queries",
        place=place("'Generalization via differential privacy (cont.)'"),
        says=(
            r"$\varepsilon \leq \sqrt{\tau^2 - \ln(2)/(2n)}$: a chosen query is more than $\tau$ off with at most "
            r"$3\sqrt{2}\exp(-n\tau^2)$"
        ),
        quote=(
            r"setting $\varepsilon \leq \sqrt{\tau^2 - \frac{\ln(2)}{2n}}$ ensures that "
            r"$\mathsf{Pr}\big\{\big|\mathcal{P}[\phi] - \mathcal{E}_{\boldsymbol{S}}[\phi]\big| > "
            r"\tau\big\} \le 3\sqrt{2}\exp\big(-n\tau^2\big).$"
        ),
        context=(
            r"Let $\mathcal{A}$ be an $\varepsilon$-DP algorithm that outputs a function from $\mathcal{X}$ to [0,1]."
        ),
        verdict="right and loose",
        how=("derived", "computed"),
        check=check_statistical_queries,
        audits=(
            "Features chosen by noisy agreements, then their vote",
            "Features chosen as if they were disjoint",
            "Features chosen by their exact agreements",
        ),
        figure=Figure(
            "The best of 100,000 useless queries on 400 samples: how often its average is more than tau off. The exact "
            "choice crosses the corollary's bound (dashed); the private one stays far below it.",
            draw_statistical_queries,
        ),
    ),
    Statement(
        name="holdout-reused",
        place=place("'Take-away messages'"),
        says="Thresholdout lets a holdout set be used again, with rigorous generalisation guarantees",
        quote=(
            "Thresholdout is a specific DP mechanism that allows the reuse of a holdout dataset with rigorous "
            "generalization guarantees."
        ),
        verdict="right and loose",
        how=("computed",),
        check=check_holdout,
        figure=Figure(
            "Labels that no feature predicts: accuracies as told by the training set, by the holdout and by fresh "
            "data, with their standard deviations. A holdout asked directly is overfitted; through Thresholdout it "
            "tells the truth.",
            draw_holdout,
        ),
    ),
    *ANALYST,
    *INFORMATION,
    *PRIVATE,
)
