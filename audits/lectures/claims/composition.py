"""Composition of several releases.

Advanced composition, and the rules beside (post-processing, groups, replaced records, the definitions), have modules
of their own.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from audits.lectures.claims.composition_advanced import ADVANCED, DATABASES, judged
from audits.lectures.claims.composition_rules import RULES
from audits.lectures.claims.statement import Statement, Truth
from dpaudit.catalogue import find
from dpaudit.losses.composing import responses, responses_epsilon
from dpaudit.losses.distribution import delta_of, largest_log_ratio

BASSI, CHEEMA, HAGHTALAB = "Bassi 2019, notes 001", "Cheema & Huszár, notes 004", "Haghtalab 2020, notes 000"


def transcript_loss(k: int, epsilon: float) -> float:
    """The exact loss of k responses, from all their transcripts."""
    return largest_log_ratio(*responses(k, epsilon))


# --- basic composition ----------------------------------------------------------------------------------------


def check_basic() -> Truth:
    fixed = {k: transcript_loss(k, 0.25) / (k * 0.25) for k in (1, 2, 10, 100)}
    bisection = find("noisy_bisection")
    adaptive = bisection.true_epsilon(*bisection.default_pair)
    assert adaptive is not None
    return Truth(
        judged([*fixed.values(), adaptive]),
        f"Reached: k randomised responses that all agree lose k epsilon exactly (ratio {fixed[100]:.6f} at k = 100), "
        f"and so does a bisection whose questions depend on the answers ({adaptive:.6f} of the epsilon it was "
        "given). Without a delta nothing less than the sum can be promised.",
        {"fixed, k = 100": fixed[100], "adaptive": adaptive},
    )


def check_two() -> Truth:
    ratios = {}
    for one, other in ((0.3, 0.9), (0.01, 2.0), (1.0, 1.0)):
        first, second = (np.outer(*(responses(1, each)[side] for each in (one, other))).ravel() for side in (0, 1))
        ratios[one, other] = largest_log_ratio(first, second) / (one + other)
    counts = find("halving_budget")
    uneven = counts.true_epsilon([10] * 6, [9] * 6)
    assert uneven is not None
    shares = sum(0.5**i for i in range(1, 7))
    return Truth(
        judged([*ratios.values(), uneven / shares]),
        f"Reached by two randomised responses with epsilons 0.3 and 0.9 (loss {ratios[0.3, 0.9] * 1.2:.4f}) and by six "
        f"noisy counts with shares 1/2, 1/4, ..., 1/64 of one budget (loss {uneven:.6f}).",
        {"two responses": ratios[0.3, 0.9], "six counts": uneven},
    )


def check_approximate() -> Truth:
    """What responses that sometimes give the bit away need beyond k epsilon: the chance that one of them does."""
    needed = {(k, d): delta_of(*responses(k, 0.1, d), k * 0.1) for k, d in ((100, 1e-6), (4, 0.0125), (10, 0.05))}
    ratios = {(k, d): value / (k * d) for (k, d), value in needed.items()}
    return Truth(
        judged(ratios.values()),
        f"At k epsilon the exact delta is 1 - (1 - delta)^k, which is {ratios[100, 1e-6]:.5f} of k delta for k = 100 "
        f"and delta = 1e-6, {ratios[4, 0.0125]:.3f} for k = 4 and 0.0125, and {ratios[10, 0.05]:.3f} for k = 10 and "
        "0.05: tight for the deltas that are used.",
        {f"ratio, k = {k}, delta = {d:g}": ratio for (k, d), ratio in ratios.items()},
    )


def check_adaptive() -> Truth:
    """All lists of at most three values in [0, 8), and each of them with one value more."""
    entry = find("noisy_bisection")
    losses = [
        entry.true_epsilon(list(data), [*data, more]) or 0.0
        for size in range(4)
        for data in itertools.combinations_with_replacement(range(8), size)
        for more in range(0, 8, 3)
    ]
    return Truth(
        judged(losses),
        f"A bisection with three questions, each chosen by the answers before it, loses at most {max(losses):.4f} of "
        f"its epsilon on {len(losses)} pairs of small datasets, and all of it on some: adaptivity costs nothing "
        "more. It does where the choice looks at the data: an answer without noise that picks the next question is "
        "a release.",
        {"largest": max(losses), "pairs": len(losses)},
    )


def check_ten_thousand() -> Truth:
    """In logarithms: the transcript in which all agree has a probability of about 2^-10,000."""
    epsilon = 1.0 / DATABASES
    loss = DATABASES * (math.log1p(math.exp(epsilon)) - math.log1p(math.exp(-epsilon)))
    return Truth(
        judged([loss]),
        f"Exactly: 10,000 responses with epsilon 1/10,000 lose {loss:.6f}, in the transcript in which all agree. With "
        "no delta allowed nothing larger is possible.",
        {"loss": loss},
    )


def check_total() -> Truth:
    pure, relaxed = transcript_loss(100, 0.1), responses_epsilon(100, 0.1, 1e-6)
    return Truth(
        judged([pure / (100 * 0.1)]),
        f"100 randomised responses with epsilon 0.1 lose {pure:.4f} exactly, and a relaxation does help: all but a "
        f"part of 1e-6 of it is covered by {relaxed:.3f}. The delta belongs to that claim: without it the smaller "
        "epsilon is refuted.",
        {"pure": pure, "at delta 1e-6": relaxed},
    )


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        "composition-of-k",
        f"{HAGHTALAB}, theorem 3.3",
        r"any combination of k mechanisms that are $\varepsilon$-DP is $k\varepsilon$-DP",
        "right and tight",
        ("derived", "computed", "audited"),
        check_basic,
        (
            "ten randomised responses, the basic bound",
            "four noisy counts, the budget divided",
            "four answers, the noise of one",
        ),
        quote=(
            r"Given mechanisms $\mathcal{M}_1, \ldots, \mathcal{M}_k$ that are each $\epsilon$-differentially "
            r"private, any $\mathcal{M}$ that is defined as a combination of the $\mathcal{M}_i$ is "
            r"$k\epsilon$-differentially private."
        ),
    ),
    Statement(
        "composition-of-two",
        f"{BASSI}, 'Composition of DP mechanisms'",
        r"$\varepsilon_1$-DP and $\varepsilon_2$-DP together are $(\varepsilon_1 + \varepsilon_2)$-DP",
        "right and tight",
        ("derived", "computed", "audited"),
        check_two,
        ("counts without end, each with half of what is left", "counts without end, with shares of 1/2, 1/3, 1/4"),
        quote=(
            r"Then their combination, defined to be $\mathcal{M}_{1,2} : \mathbb{N}^{|\mathcal{X}|} \to R_1 "
            r"\times R_2$ by the mapping: $\mathcal{M}_{1,2}(x) = (\mathcal{M}_1(x), \mathcal{M}_2(x))$ is "
            r"$(\varepsilon_1 + \varepsilon_2)$-DP."
        ),
    ),
    Statement(
        "composition-of-approximate",
        f"{BASSI}, 'Composition of DP mechanisms (cont.)'",
        r"k mechanisms that are $(\varepsilon_i, \delta_i)$-DP are $(\sum\varepsilon_i, \sum\delta_i)$-DP",
        "right and tight",
        ("computed", "audited"),
        check_approximate,
        (
            "four approximate responses, epsilon and delta divided",
            "four approximate responses, only epsilon divided",
        ),
        quote=r"then $\mathcal{M}_{[k]}$ is $(\sum_{i=1}^k \varepsilon_i, \sum_{i=1}^k \delta_i)$-DP.",
    ),
    Statement(
        "adaptive-composition",
        f"{BASSI}, 'Adaptive composition of several DP mechanisms'",
        "the same sums where each mechanism is chosen by the outputs before it",
        "right and tight",
        ("computed", "audited"),
        check_adaptive,
        (
            "a median by bisection",
            "a median by bisection that turns by the truth",
            "a median by bisection that stops by the truth",
        ),
        quote=(
            r"Then their adaptive composition, defined to be $\mathcal{M} : \mathbb{N}^{|\mathcal{X}|} \to R_k$, "
            r"is $\left(\sum_{i=1}^k \varepsilon_i, \sum_{i=1}^k \delta_i\right)$-DP."
        ),
    ),
    Statement(
        "total-privacy-loss",
        f"{CHEEMA}, 'Composition'",
        (
            r"the total privacy loss of k $\varepsilon$-DP functions is $k\varepsilon$; to do better needs a "
            "relaxation"
        ),
        "right and tight",
        ("computed", "audited"),
        check_total,
        ("ten randomised responses, the delta of advanced composition forgotten",),
        quote=(
            r"The total privacy loss of $k$ $\epsilon$-DP functions is $k\epsilon$. To do better we need a "
            "relaxation."
        ),
    ),
    *ADVANCED,
    Statement(
        "one-in-10000",
        f"{BASSI}, 'Advanced composition (cont.)'",
        r"with $\delta' = 0$ the simple bound needs $\varepsilon \leq 1/10,000$",
        "right and tight",
        ("computed",),
        check_ten_thousand,
        quote=(
            r"Compare this to $\varepsilon \leq 1/10,000$ from the simple composition bound, which assumes "
            r"$\delta' = 0$."
        ),
    ),
    *RULES,
)
