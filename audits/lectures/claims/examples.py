"""Examples of the notes, computed: the smoker, the histogram, one person in many databases."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from audits.lectures.claims.statement import Figure, Statement, Truth
from dpaudit.catalogue import find
from dpaudit.losses.composing import responses
from dpaudit.losses.distribution import epsilon_of, largest_log_ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

BASSI, CHEEMA = "Bassi 2019, notes 001", "Cheema & Huszár, notes 004"
FIRST = f"{BASSI}, 'First definitions (cont.)'"
SEED, CLOSE = 5, 1e-9
SMOKERS = [10, 2, 4, 13, 44, 35]  # the x of the notes: how many smoke 0, ..., 5 cigarettes a day
REACH = 40  # of geometric noise with epsilon 1: what lies beyond has e^-40 of the rest


def geometric(epsilon: float = 1.0) -> Floats:
    """Two-sided geometric noise on -REACH, ..., REACH: what Laplace noise is for counts."""
    weights = np.exp(-epsilon * np.abs(np.arange(-REACH, REACH + 1)))
    return np.asarray(weights / weights.sum())


def binomial(n: int, p: float) -> Floats:
    from scipy.stats import binom

    return np.asarray(binom.pmf(np.arange(n + 1), n, p))


def with_and_without(others: Floats) -> tuple[Floats, Floats]:
    """The laws of a noisy count of the others and one more person, and of the others alone; epsilon is 1."""
    noisy = np.convolve(others, geometric())
    return np.append(0.0, noisy), np.append(noisy, 0.0)


# --- the smoker -----------------------------------------------------------------------------------------------

SICK, HARMLESS, BELIEVED = 0.2, 0.02, 0.5  # the risk of a smoker; if smoking did nothing; the belief in that


def study(n: int) -> tuple[dict[str, float], float]:
    """What a noisy count of the sick among n smokers, epsilon = 1, tells an insurer, on average.

    The risk that is then seen in a smoker, where Bob took no part, where he did and is sick, and where he is well; and
    the belief that he is sick, if he is, of someone who knows the rate and that he took part.
    """
    harmful, harmless = (np.convolve(binomial(n, risk), geometric()) for risk in (SICK, HARMLESS))
    belief = (1.0 - BELIEVED) * harmful / ((1.0 - BELIEVED) * harmful + BELIEVED * harmless + 1e-300)
    risk = belief * SICK + (1.0 - belief) * HARMLESS  # after each output
    sick, well = with_and_without(binomial(n - 1, SICK))
    after = SICK * sick / (SICK * sick + (1.0 - SICK) * well + 1e-300)
    seen = {"absent": float(harmful @ risk), "sick": float(sick @ risk), "well": float(well @ risk)}
    return seen, float(sick @ after)


def check_smoker() -> Truth:
    seen, mean = study(1_000)
    before = (1.0 - BELIEVED) * SICK + BELIEVED * HARMLESS
    moved = max(abs(seen["sick"] - seen["absent"]), abs(seen["well"] - seen["absent"]))
    most = SICK * math.e / (SICK * math.e + 1.0 - SICK)
    answered = seen["absent"] - before > 0.08 and moved < 1e-6 and mean < most
    return Truth(
        "question or trap" if answered else "wrong",
        f"By this definition it was not, if the result was noisy. Say that 1,000 smokers were counted at epsilon = 1, "
        f"that {SICK:.0%} of smokers fall ill, and that an insurer gave even odds to {HARMLESS:.0%}. The study raises "
        f"the risk that is seen in Bob from {before:.3f} to {seen['absent']:.3f}, whether he took part or not (the "
        f"difference is below {max(moved, 1e-12):.0e}): that is learnt about smokers. What his own record adds is "
        f"bounded: the odds that he is ill change by a factor of e at most, from {SICK:.2f} to at most {most:.3f} for "
        f"someone who knows all other records; for someone who knows the rate only, from {SICK:.2f} to {mean:.4f} on "
        "average. An exact count tells the first of them for sure.",
        {"before": before, "after": seen["absent"], "moved": moved, "most": most, "mean": mean},
    )


def draw_smoker(axes: Axes) -> None:
    sizes = np.unique(np.geomspace(3, 1_000, 20).astype(int))
    found = [study(int(n)) for n in sizes]
    for who, style, label in (("absent", "k--", "Bob is not in it"), ("sick", "-", "he is, and sick")):
        axes.semilogx(sizes, [seen[who] for seen, _ in found], style, label=f"risk seen in a smoker: {label}")
    axes.semilogx(sizes, [mean for _, mean in found], ":", label="belief that he is sick, if he is")
    axes.set_xlabel("smokers in the study")
    axes.set_ylabel("probability, on average")
    axes.legend(frameon=False)


def check_no_disadvantage() -> Truth:
    """Expected costs of random outcomes under random neighbouring laws; and one that reaches the factor."""
    rng, worst = np.random.default_rng(SEED), 0.0
    for _ in range(400):
        p, q = rng.dirichlet(np.ones(6), 2)
        cost = rng.exponential(size=6)
        worst = max(worst, abs(math.log((p @ cost) / (q @ cost))) / largest_log_ratio(p, q))
    p, q = responses(1, 0.1)
    reached = math.log((p @ (p > q)) / (q @ (p > q))) / 0.1
    right = worst <= 1.0 + CLOSE and abs(reached - 1.0) < CLOSE
    return Truth(
        "right and tight" if right else "wrong",
        "Whatever follows from the output, a premium or a harm, its expected cost with you is at most e^epsilon times "
        f"that without you (400 random costs and laws: at most {worst:.2f} of epsilon), and randomised response has "
        f"cases with just that factor. At epsilon = 0.1 it is {math.expm1(0.1):.1%}; no disadvantage at all would be "
        "epsilon = 0, an output that does not depend on the data.",
        {"random": worst, "reached": reached},
    )


# --- the histogram --------------------------------------------------------------------------------------------


def check_histogram() -> Truth:
    """The l1 norm, Bob's database against the other one, and all neighbours of x for the sensitivities."""
    x, y = np.array(SMOKERS), np.array([*SMOKERS[:-1], SMOKERS[-1] - 1])
    moves = [sign * unit for sign in (1, -1) for unit in np.eye(len(x), dtype=int)]
    neighbours = [x + move for move in moves if (x + move).min() >= 0]
    count = max(abs(int(x[5] - other[5])) for other in neighbours)
    disjoint = max(int(np.abs(x - other).sum()) for other in neighbours)
    records = [cigarettes for cigarettes, people in enumerate(SMOKERS) for _ in range(people)]
    loss = find("histogram").true_epsilon(records, records[:-1], {"cells": 6})
    right = x.sum() == len(records) == 108 and np.abs(x - y).sum() == count == disjoint == 1 and loss == 1.0
    return Truth(
        "right and tight" if right else "wrong",
        f"The database has {x.sum()} participants, its l1 norm, and Bob's leaving is a distance of "
        f"{np.abs(x - y).sum()}. Over all {len(neighbours)} neighbours of x the count of those who smoke five moves by "
        f"{count}, and the six disjoint counts together by {disjoint}: so each may have its own Lap(1 / epsilon), and "
        f"the loss of all six between x and y is {loss:g} epsilon. With one record replaced by another the distance is "
        "2, not 1.",
        {"size": float(x.sum()), "disjoint": float(disjoint), "loss": loss or 0.0},
    )


def check_mean_on_a_grid() -> Truth:
    x, reach = np.array(SMOKERS), 20
    n, total = int(x.sum()), int(np.arange(len(x)) @ x)
    grid = np.arange(0, 6 * n + 1)
    inside = grid[np.abs(grid - total) <= reach]
    weights = np.full(len(inside), 1.0 / (2 * reach + 1))
    mean = float(weights @ inside) / n
    common = sum(k * (n - 1) % n == 0 for k in range(5 * n + 1))  # of the grids k / 108 and k / 107 in [0, 5]
    right = len(inside) == 2 * reach + 1 and abs(mean - total / n) < CLOSE
    return Truth(
        "right" if right else "wrong",
        f"For the x of the notes the mean is {total} / {n} = {total / n:.4f}, a point of the grid, so there are just "
        f"2 L + 1 points in reach and the law sums to 1 (L = {reach}: {len(inside)}); its own mean is the true one. "
        f"From L = {5 * n - total + 1} on it gives means above 5, the border effects that the remark sets aside. It is "
        f"an example of a randomised algorithm. As a private one it would not do: the grids of 108 and of 107 people "
        f"have only {common} points of [0, 5] in common, so an output tells how many people there are, and with n "
        "fixed the ends of the interval tell one mean from another. With Laplace noise for a fixed n it is private.",
        {"mean": total / n, "points": float(len(inside)), "common": float(common)},
    )


# --- two interpretations of composition -----------------------------------------------------------------------


def transcripts(counts: tuple[int, ...], about: tuple[int, ...]) -> Floats:
    """The joint law of noisy counts, epsilon 1 each, clamped to 10 on both sides of known numbers."""
    law, noise = np.ones(1), np.arange(-REACH, REACH + 1)
    for count, known in zip(counts, about, strict=True):
        noisy = np.zeros(21)
        np.add.at(noisy, np.clip(noise + count - known, -10, 10) + 10, geometric())
        law = np.outer(law, noisy).ravel()
    return law


def check_two_interpretations() -> Truth:
    """Three noisy counts: of one database that Bob leaves, and of three with other people in them that he leaves."""
    databases = {"one": (5, 5, 5), "three": (3, 17, 40)}
    profiles = {}
    for name, counts in databases.items():
        left = tuple(count - 1 for count in counts)
        laws = transcripts(counts, counts), transcripts(left, counts)
        profiles[name] = [epsilon_of(*laws, delta) for delta in (0.0, 0.01, 0.1)]
    off = max(abs(one - three) for one, three in zip(profiles["one"], profiles["three"], strict=True))
    whole = find("composed_counts.uncoordinated").true_epsilon([2, 1, 2, 1], [1, 0, 1, 0])
    shared = find("composed_counts").true_epsilon([2, 1, 2, 1], [1, 0, 1, 0])
    right = off < 1e-6 and whole == 4.0 and shared == 1.0 and profiles["one"][0] > 3.0 - 1e-6
    return Truth(
        "right" if right else "wrong",
        "Three noisy counts at epsilon = 1, of one database that answers three queries or of three databases with "
        f"other people in them: one who is counted in all loses {profiles['one'][0]:.2f} epsilon at delta = 0, "
        f"{profiles['one'][1]:.2f} at 0.01 and {profiles['one'][2]:.2f} at 0.1, the same both ways (difference "
        f"{off:.0e}, by all transcripts). What differs is who can share the budget out: a database that knows its k "
        "queries gives each epsilon / k; k databases that do not know of each other keep their own, and Bob, who is "
        f"in four, loses {whole:.0f} epsilon.",
        {"at 0": profiles["one"][0], "at 0.1": profiles["one"][2], "four databases": whole or 0.0},
    )


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        name="smoker",
        place=f"{BASSI}, 'What is privacy?'",
        says="A study finds that smokers fall ill, and Bob's premiums rise: was this a breach of privacy?",
        verdict="question or trap",
        how=("derived", "computed"),
        check=check_smoker,
        figure=Figure(
            "The larger the study, the more it tells about smokers, and the less it matters whether Bob is in it and "
            "what his own record says. A noisy count of the sick, epsilon = 1.",
            draw_smoker,
        ),
        quote="Clearly, the study revealed some unknown information about Bob. But, was this a breach of privacy?",
        context='we consider that there is no leakage of private information if the "impact" on the smoker is the same '
        "independent of whether or not he was in the study.",
    ),
    Statement(
        name="no-disadvantage",
        place=f"{BASSI}, 'Privacy in the context of DP'; {CHEEMA}, 'The setup'",
        says="Your participation should bring you no disadvantage, nor affect the result",
        verdict="right and tight",
        how=("derived", "computed"),
        check=check_no_disadvantage,
        quote=(
            "Bob's participation should not affect the result of the study",
            "Your participation in the database should bring you no disadvantage",
        ),
        reading=r"Up to a factor of $e^\varepsilon$ in probabilities: the aim that the definition then makes exact.",
    ),
    Statement(
        name="histogram-of-smokers",
        place=f"{BASSI}, 'First definitions'",
        says=r"For $x = [10, 2, 4, 13, 44, 35]$: its size is $\|x\|_1$, and Bob's leaving is a distance of 1",
        verdict="right and tight",
        how=("computed", "audited"),
        check=check_histogram,
        audits=(
            "smokers, the histogram of the notes, Laplace",
            "smokers, the histogram of the notes, one draw for all",
        ),
        quote="In our example, x = [10, 2, 4, 13, 44, 35] means that the database contains 10 participants that "
        "declared 0 cigarettes per day, 2 participants that smoke only 1 cigarette per day, ... "
        r"$\longrightarrow \quad \|\mathsf{x} - \mathsf{y}\|_1 = 1.$",
    ),
    Statement(
        name="mean-on-a-grid",
        place=FIRST,
        says=r"The noisy empirical mean is uniform on the points $k/n$ within $L/n$ of the true one, $2L + 1$ of them",
        verdict="right",
        how=("computed", "audited"),
        check=check_mean_on_a_grid,
        audits=(
            "smokers, the mean of the notes, uniform on the grid k / n",
            "smokers, the mean of the notes, Laplace",
        ),
        quote=r"We take $B = \left\{\frac{k}{n}\right\}_{k=0}^{\infty}$, i.e., a quantization of the space. ... "
        r"However, ${\mathcal M}$ outputs a random value close to the true mean: $\mathsf{Pr}\{\mathcal{M}(x) = b\} = "
        r"\begin{cases} \frac{1}{2L+1} & \text{if } b \in \left[\mu(x) - \frac{L}{n}, \mu(x) + \frac{L}{n}\right] \\ "
        r"0 & \text{else} \end{cases}$",
        context="for simplicity ignore border effects.",
        reading="An example of a randomised algorithm, which the notes do not call private.",
    ),
    Statement(
        name="two-interpretations",
        place=f"{BASSI}, 'Advanced composition (cont.)'",
        says=r"Composition of $k$ mechanisms: one user in $k$ databases, or one database that answers $k$ queries",
        verdict="right",
        how=("computed", "audited"),
        check=check_two_interpretations,
        audits=(
            "counts of four databases, the budget divided",
            "counts of four databases that do not know of each other",
        ),
        quote=r"One user that participates in $k (\varepsilon, \delta)$-DP databases. ... One database that answers "
        r"$k (\varepsilon, \delta)$-DP queries.",
        context=r"The results on the composition of $k (\varepsilon, \delta)$-DP mechanisms has two interpretations:",
    ),
)
