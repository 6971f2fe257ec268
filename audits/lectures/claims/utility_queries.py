"""How good the answers to many queries are: all of them, the best of them, and those above a threshold."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from audits.lectures.claims.statement import Figure, Statement, Truth
from dpaudit.losses.comparisons import below, density, panels
from dpaudit.losses.composing import laplace_epsilon, responses_epsilon

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BASSI = "Bassi 2019, notes 001"
SPARSE = f"{BASSI}, 'Sparse vector mechanism'"
BETA, BLUE = 0.05, "#2b5d8a"


def least(chance: Callable[[float], float], beta: float, most: float) -> float:
    """The least gap at which a falling chance of failure is at most beta; at most `most`."""
    low, high = 0.0, most
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if chance(middle) > beta else (low, middle)
    return high


# --- all answers ----------------------------------------------------------------------------------------------


def check_many_answers() -> Truth:
    """k counts with Lap(1 / epsilon_0), epsilon_0 = 0.05: the loss by k, and how far off the worst of them is."""
    each, delta = 0.05, 1e-6
    exact = {k: laplace_epsilon(k, each, delta) for k in (1, 10, 30)}
    optimal = {k: responses_epsilon(k, each, delta) for k in (100, 400)}
    power = math.log(optimal[400] / optimal[100]) / math.log(4.0)
    off = {k: (math.log(k / BETA) / each, -math.log(-math.expm1(math.log1p(-BETA) / k)) / each) for k in (10, 400)}
    right = exact[30] < 30 * each and optimal[400] < 0.6 * 400 * each and 0.5 <= power < 0.7
    right = right and all(bound >= least_off > 0.99 * bound for bound, least_off in off.values())
    return Truth(
        "right" if right else "wrong",
        "With Lap(20) on each of k counts, epsilon_0 = 0.05: at delta = 0 the loss is k epsilon_0, in proportion. At "
        f"delta = 1e-6 it is {exact[10]:.2f} for 10 and {exact[30]:.2f} for 30 counts (exact), and by optimal "
        f"composition at most {optimal[100]:.2f} for 100 and {optimal[400]:.2f} for 400, instead of 5 and 20: about "
        f"the power {power:.2f} of k there, the root and a rest of order k epsilon_0^2. The answers stay as good as "
        f"one but for a logarithm: with probability 0.95 all 10 are within {off[10][1]:.0f} of the truth, and all 400 "
        f"within {off[400][1]:.0f}; theorem 3.8 of Dwork & Roth 2014 says ln(k / beta) / epsilon_0, "
        f"{off[10][0]:.0f} and {off[400][0]:.0f}.",
        {"30, exact": exact[30], "400, optimal": optimal[400], "power": power, "400 within": off[400][1]},
    )


# --- selection and thresholds ---------------------------------------------------------------------------------


def leads(counts: int, gap: float, scale: float) -> float:
    """The chance that a count which leads all others by the gap comes out on top, with Lap(scale) on each."""
    _, level, mass = panels([0.0, gap], scale, 1.0 / scale)
    return float(np.sum(mass * density(level - gap, scale) * below(level, scale) ** (counts - 1)))


def lead(counts: int, scale: float = 1.0, beta: float = BETA) -> float:
    """The lead that a count needs to come out on top with probability 1 - beta."""
    return least(lambda gap: 1.0 - leads(counts, gap, scale), beta, 2.0 * scale * math.log(counts / beta))


def check_noisy_max() -> Truth:
    """The exact lead against the union bound 2 ln(m / beta) / epsilon; all counts released need m times the noise."""
    sizes = (10, 100, 1_000, 100_000)
    need = {m: lead(m) for m in sizes}
    union = {m: 2.0 * math.log(m / BETA) for m in sizes}
    kept = all(1.0 - leads(m, union[m], 1.0) <= BETA for m in sizes)
    all_counts = lead(1_000, 1_000.0)
    right = kept and all_counts > 100.0 * need[1_000]
    return Truth(
        "right" if right else "wrong",
        "How far the best count must lead to be named with probability 0.95, at epsilon = 1 and with all others tied: "
        f"{need[10]:.1f} among 10, {need[1000]:.1f} among 1,000 and {need[100000]:.1f} among 100,000 counts, exactly. "
        f"A union bound over the noises gives 2 ln(m / 0.05) / epsilon, {union[1000]:.1f} among 1,000. To release all "
        f"counts with the noise for their l1 sensitivity takes m times the lead, {all_counts:,.0f} among 1,000.",
        {**{f"lead among {m}": gap for m, gap in need.items()}, "all of 1,000": all_counts, "union": union[1_000]},
    )


def first_top(bottoms: int, gap: float, scale: float) -> float:
    """The chance that AboveThreshold is right: answers a gap below the threshold, and then one a gap above it.

    The threshold has Lap(scale), each answer Lap(2 scale).
    """
    _, level, mass = panels([0.0, -gap, gap], scale, 1.0 / scale)
    said = below(level + gap, 2.0 * scale) ** bottoms * below(gap - level, 2.0 * scale)
    return float(np.sum(mass * density(level, scale) * said))


def sparse_right(queries: int, tops: int, gap: float, epsilon: float) -> float:
    """The same for Sparse with its noise 2 c / epsilon, with as many bottoms before each top: the worst order.

    The chance of an epoch is a moment of its bottoms, so it is log-convex in their number, and the product is least
    where they are shared out evenly.
    """
    scale, (each, more) = 2.0 * tops / epsilon, divmod(queries - tops, tops)
    return first_top(each, gap, scale) ** (tops - more) * (first_top(each + 1, gap, scale) ** more if more else 1.0)


def promised(queries: int, tops: int, epsilon: float, beta: float = BETA) -> float:
    """The gap of the theorem: 8 c (ln k + ln(2 c / beta)) / epsilon."""
    return 8.0 * tops * (math.log(queries) + math.log(2.0 * tops / beta)) / epsilon


def gap_of(queries: int, tops: int, epsilon: float = 1.0, beta: float = BETA) -> float:
    """The least gap at which Sparse makes no mistake with probability 1 - beta."""
    most = promised(queries, tops, epsilon, beta)
    return least(lambda gap: 1.0 - sparse_right(queries, tops, gap, epsilon), beta, most)


def check_above_threshold() -> Truth:
    sizes = (10, 1_000, 100_000, 10_000_000)
    need = {k: gap_of(k, 1) for k in sizes}
    told = {k: promised(k, 1, 1.0) for k in sizes}
    kept = {k: 1.0 - sparse_right(k, 1, told[k], 1.0) for k in sizes}
    decade = (need[10_000_000] - need[1_000]) / 4.0
    right = max(kept.values()) <= BETA and decade < 4.5 * math.log(10.0)
    return Truth(
        "right" if right else "wrong",
        "AboveThreshold says top and bottom without a mistake, with probability 0.95 at epsilon = 1, if the answers "
        f"are {need[10]:.1f} away from the threshold for 10 queries, {need[1000]:.1f} for 1,000 and "
        f"{need[10000000]:.1f} for ten million (exact, in the worst order): {decade:.2f} for each factor of 10, which "
        "is (4 / epsilon) ln(10). Theorem 3.24 of Dwork & Roth 2014 promises it at 8 (ln k + ln(2 / beta)) / epsilon, "
        f"{told[1000]:.1f} for 1,000 queries; there a mistake has probability {kept[1000]:.0e}, not 0.05.",
        {**{f"gap for {k}": gap for k, gap in need.items()}, "theorem for 1,000": told[1_000], "a decade": decade},
    )


def gap_of_all(queries: int, epsilon: float = 1.0, beta: float = BETA) -> float:
    """The same with Lap(m / epsilon) on each of the m answers, which are then compared with the threshold."""
    return -queries / epsilon * math.log(-2.0 * math.expm1(math.log1p(-beta) / queries))


def check_savings() -> Truth:
    many = 10_000
    plain, need = gap_of_all(many), {c: gap_of(many, c) for c in (1, 10, 100)}
    kept = all(1.0 - sparse_right(many, c, promised(many, c, 1.0), 1.0) <= BETA for c in need)
    delta = 1e-6  # the notes' noise for it is 2 sqrt(2 c ln(1 / delta)) / epsilon
    shared = gap_of(many, 100, 100 / math.sqrt(2.0 * 100 * math.log(1.0 / delta)))
    missed = 1.0 - sparse_right(many, 10, promised(many, 10, 1.0), 1.0)
    pays = {c: next(m for m in range(c, many) if gap_of(m, c) < gap_of_all(m)) for c in (1, 10)}
    right = kept and need[1] < 0.01 * plain and pays[1] < 100
    return Truth(
        "right" if right else "wrong",
        f"For {many:,} queries at epsilon = 1 and a mistake with probability 0.05, how far the answers must be from "
        f"the threshold: {plain:,.0f} where every answer gets Laplace noise and is then compared, and with Sparse "
        f"{need[1]:.0f} if one of them is above, {need[10]:,.0f} if ten are and {need[100]:,.0f} if a hundred are "
        "(all exact, Sparse in the worst order; the theorem behind it, 3.26 of Dwork & Roth 2014, says "
        f"{promised(many, 10, 1.0):,.0f} for ten, where a mistake has probability {missed:.0e}); with the noise that "
        f"the notes have for a delta, at 1e-6, {shared:,.0f} for a hundred. It pays where few of many are "
        f"above, as the notes say: from {pays[1]} queries on for one, from {pays[10]} on for ten. It says which ones "
        "they are and no values, and the c must be known beforehand.",
        {"all answers": plain, **{f"c = {c}": gap for c, gap in need.items()}, "with delta": shared},
    )


def draw_savings(axes: Axes) -> None:
    sizes = np.unique(np.geomspace(10, 1e6, 30).astype(int))
    axes.loglog(sizes, [gap_of_all(int(m)) for m in sizes], "k--", label="Laplace noise on all answers")
    for tops, style in ((1, "-"), (10, "-.")):
        need = [gap_of(int(m), tops) for m in sizes if m > tops]
        axes.loglog(sizes[sizes > tops], need, style, color=BLUE, label=f"Sparse, {tops} above the threshold")
    axes.set_xlabel("queries")
    axes.set_ylabel("distance from the threshold")
    axes.legend(frameon=False)


QUERIES: tuple[Statement, ...] = (
    Statement(
        name="many-answers",
        place=SPARSE,
        says="The privacy loss grows in proportion with the number of queries answered, or with its square root",
        verdict="right",
        how=("computed",),
        check=check_many_answers,
        quote="The Laplace mechanism can be used to answer adaptively chosen low-sensitivity queries. ... The privacy "
        "loss increases proportionally with the number of queries answered (or its square root)",
        reading=r"The square root is that of composition with a $\delta$, up to its second term.",
    ),
    Statement(
        name="noisy-max-accuracy",
        place=f"{BASSI}, 'Report Noisy Max'",
        says="To add noise to each count and to return the index of the largest is better than to release all counts",
        verdict="right",
        how=("derived", "computed"),
        check=check_noisy_max,
        quote=r"A better approach is to (internally) add independently generated Laplace noise $Lap(1/\varepsilon)$ to "
        "each count and return the index of the largest noisy count.",
        context="Releasing all the counts and letting the data analyst find the maximum is suboptimal.",
    ),
    Statement(
        name="above-threshold-accuracy",
        place=SPARSE,
        says="A very large number of queries can be answered with reasonable accuracy where only those above a "
        "threshold matter",
        verdict="right",
        how=("derived", "computed"),
        check=check_above_threshold,
        quote="What do we do if we want to answer a very large number of queries with reasonable accuracy? ... In some "
        "situations, we may only care on identifying the queries that lie above a certain threshold.",
        reading="Reasonable is read as: the error grows with the logarithm of the number of queries.",
    ),
    Statement(
        name="sparse-savings",
        place=SPARSE,
        says="Where few of the queries lie above the threshold, to report only those is a huge savings",
        verdict="right",
        how=("derived", "computed"),
        check=check_savings,
        figure=Figure(
            "How far answers must be from the threshold for all to be told right with probability 0.95 at epsilon = 1: "
            "with Laplace noise on each of them, and with Sparse. Both exact.",
            draw_savings,
        ),
        quote="This can be a huge savings if we know that the set of queries that lie above the threshold is much "
        "smaller than the total number of queries",
        context="that is, if the answer vector is sparse.",
    ),
)
