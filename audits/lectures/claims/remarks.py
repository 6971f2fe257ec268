"""Remarks beside the theorems: half sentences, footnotes and steps of proofs that say something of their own."""

from __future__ import annotations

import itertools
import math

import numpy as np

from audits.lectures.claims.holdout import promised
from audits.lectures.claims.information import max_divergence, max_information
from audits.lectures.claims.statement import Statement, Truth
from dpaudit.catalogue import find
from dpaudit.claims import PureDP, compose_optimal
from dpaudit.losses.composing import laplace_epsilon

HAGHTALAB, BASSI, CHEEMA = "Haghtalab 2020, notes 000", "Bassi 2019, notes 001", "Cheema & Huszár, notes 004"
SEED = 3


def check_any_function() -> Truth:
    """A sum of numbers within [0, 1], and one of numbers without a bound, one of them replaced."""
    within = laplace_epsilon(1, 1.0, 0.0)
    beyond = {far: float(far) for far in (1, 10, 1_000)}  # the log ratio of Lap(1) where the answer moves by so much
    loss = find("laplace").true_epsilon(0, 1_000, {"sensitivity": 1.0})
    right = math.isclose(within, 1.0) and loss is not None and math.isclose(loss, beyond[1_000])
    return Truth(
        "right" if right else "wrong",
        "It is so for every function whose sensitivity is finite, with noise in proportion to it: a sum of numbers "
        f"in [0, 1] has a loss of {within:.3f} at epsilon = 1. A sum of numbers without a bound has no finite "
        "sensitivity, and no scale is enough: with Lap(1) a record moved by 1,000 has a loss of "
        f"{loss:,.0f}. There numbers are clipped first, and that is another function.",
        {"within [0, 1]": within, "moved by 1,000": loss or 0.0},
    )


def check_almost_equally_likely() -> Truth:
    rates = {epsilon: math.exp(epsilon) / (1.0 + math.exp(epsilon)) for epsilon in (0.1, 1.0, 5.0)}
    losses = {epsilon: math.log(rate / (1.0 - rate)) for epsilon, rate in rates.items()}
    return Truth(
        "right and tight" if all(math.isclose(losses[each], each) for each in losses) else "wrong",
        "'Almost' is a factor of e^epsilon, and randomised response has just that: an output is 1.11 times as likely "
        f"at epsilon = 0.1, {math.exp(1.0):.2f} times at 1 and {math.exp(5.0):.0f} times at 5. So it says much for a "
        "small epsilon only, and it speaks of neighbours: k records apart it is the factor to the power k.",
        {f"loss at {each:g}": loss for each, loss in losses.items()},
    )


def check_mixture() -> Truth:
    """A random map of four outputs to three as a mixture of all 81 maps that are not random."""
    rng, off, over = np.random.default_rng(SEED), 0.0, -math.inf
    maps = [np.eye(3)[list(each)] for each in itertools.product(range(3), repeat=4)]
    for _ in range(20):
        step, (p, q) = rng.dirichlet(np.ones(3), size=4), rng.dirichlet(np.ones(4), size=2)
        weights = [float(np.prod((step * each).sum(axis=1))) for each in maps]
        mixed = sum(weight * each for weight, each in zip(weights, maps, strict=True))
        off = max(off, float(np.abs(mixed - step).max()))
        # what each map keeps, p <= e^0.5 q + delta for all sets, a mean of them keeps
        excess = [float(np.maximum(p @ each - math.exp(0.5) * (q @ each), 0.0).sum()) for each in (*maps, step)]
        over = max(over, excess[-1] - max(excess[:-1]))
    return Truth(
        "right" if off < 1e-12 and over <= 1e-12 else "wrong",
        "A random map is drawn as one of the maps that are not random, an independent choice for each output it is "
        f"given: 20 random ones of four outputs to three are mixtures of the 81 maps (to {off:.0e}). The bound is "
        "linear in both probabilities, so a mean of maps that keep it keeps it: the delta at 0.5 was never above the "
        "largest of theirs. For infinitely many outputs the mean is an integral over the coins of the map.",
        {"off": off, "excess": over},
    )


def check_footnote_4() -> Truth:
    case = (100, 1.0, 1e-2)
    article = math.sqrt(32.0 * case[0] * math.log(2.0 / case[2])) * case[1]
    least = compose_optimal(PureDP(case[1]), 2 * case[0]).epsilon_at(case[2])
    factor = article / promised(*case)
    return Truth(
        "right" if math.isclose(factor, 2.0) else "wrong",
        r"The article (Dwork et al. 2015, holdout reuse) has $\sqrt{32 B \ln(2/\delta)} / (\sigma n)$, the notes, with "
        rf"the root over the logarithm, $2 \sqrt{{2 B \ln(2/\delta)}} / (\sigma n)$: a factor of {factor:.4f}. The "
        "article's has room for the second term of advanced composition, which the notes leave out: at B = 100, sigma "
        f"n = 1 and delta = 0.01 it is {article:.0f}, the notes' {promised(*case):.0f}, and {least:.0f} is what 2 B "
        "mechanisms of 1 / (sigma n) can need.",
        {"factor": factor, "article": article, "notes": promised(*case), "least": least},
    )


def check_beta() -> Truth:
    """Randomised response of one bit at epsilon = 1: two datasets, and the largest over a grid of distributions."""
    keep, beta = math.e / (1.0 + math.e), 0.05
    law = np.array([[keep, 1.0 - keep], [1.0 - keep, keep]])
    found = {}
    for each in (0.0, beta):
        priors = [np.array([1.0 - eta, eta]) for eta in np.geomspace(1e-6, 0.5, 400)]
        most = max(max_information(prior[:, None] * law, each) for prior in priors)
        found[each] = most, max_divergence(law[0], law[1], each)
    same, apart = (abs(found[each][0] - found[each][1]) for each in (0.0, beta))
    return Truth(
        "right" if same < 1e-4 < 0.1 < apart else "wrong",
        f"At beta = 0 the two are one: {found[0.0][0]:.4f} bits over distributions of one bit in randomised response "
        f"at epsilon = 1, {found[0.0][1]:.4f} between its two datasets. At beta = {beta} they are not, so the "
        f"restriction is needed: {found[beta][0]:.3f} bits over distributions, where a dataset that is rarer than beta "
        f"counts for nothing, and {found[beta][1]:.3f} between the two.",
        {"over distributions": found[beta][0], "two datasets": found[beta][1], "apart at 0": same},
    )


def check_reasonable() -> Truth:
    delta, people = 1e-5, 1_000_000
    none = (1.0 - delta) ** people
    return Truth(
        "right" if none < 1e-4 else "wrong",
        "Up to a probability of delta, in which anything may happen: a release that shows each record as it is with "
        f"probability {delta:g} keeps epsilon = 0 at that delta, has no bound on the loss, and shows "
        f"{people * delta:.0f} of {people:,} people on average (none of them with probability {none:.0e}). So it is "
        "reasonable for a delta far below 1 / n, and for noise such as the normal one, where a larger loss is rarer "
        "still.",
        {"shown": people * delta, "none shown": none},
    )


def check_both_papers() -> Truth:
    """The theorem at beta = 2 exp(-2 n tau^2) against the corollary."""
    off = 0.0
    for n, tau in itertools.product((100, 400, 2_000), (0.05, 0.1, 0.2)):
        beta = 2.0 * math.exp(-2.0 * n * tau**2)
        pairs = (
            (
                math.sqrt(max(0.0, math.log(1.0 / beta) / (2.0 * n))),
                math.sqrt(max(0.0, tau**2 - math.log(2.0) / (2 * n))),
            ),
            (3.0 * math.sqrt(beta), 3.0 * math.sqrt(2.0) * math.exp(-n * tau**2)),
        )
        off = max(off, *(abs(one - other) for one, other in pairs))
    return Truth(
        "right" if off < 1e-12 else "wrong",
        "The one paper bounds how likely an output is bad for its own data (3 sqrt(beta)), the other how likely a "
        f"query is off by tau: at beta = 2 exp(-2 n tau^2) epsilon and bound are the same (to {off:.0e}). The second "
        "follows from the first with Hoeffding's inequality, as the slide has it; the first also speaks of bad events "
        "that are not about queries.",
        {"largest difference": off},
    )


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        name="any-function",
        place=f"{HAGHTALAB}, section 2.1",
        says=r"Laplace noise can make any function $f : \mathcal{X}^m \to \mathbb{R}$ private",
        verdict="right",
        how=("derived", "computed"),
        check=check_any_function,
        quote=r"But it can make any function $f : \mathcal{X}^m \to \mathbb{R}$ private.",
        reading="Any function of finite sensitivity, which the definition after it is about.",
    ),
    Statement(
        name="almost-equally-likely",
        place=f"{BASSI}, 'Definition and properties of DP (cont.)'",
        says="What is observed is almost equally likely on every neighbouring database",
        verdict="right and tight",
        how=("derived", "computed"),
        check=check_almost_equally_likely,
        quote=r"For every run of the mechanism $\mathcal{M}(x)$, the output observed is (almost) equally likely to be "
        "observed on every neighboring database.",
        context=r"If $\delta = 0$ we see that",
    ),
    Statement(
        name="mixture-of-maps",
        place=f"{BASSI}, 'Post-processing'",
        says=r"Post-processing: a stochastic $f$ follows as a convex combination of deterministic functions",
        verdict="right",
        how=("derived", "computed"),
        check=check_mixture,
        quote="Stochastic f follows as a convex combination of deterministic functions.",
    ),
    Statement(
        name="footnote-4",
        place=f"{BASSI}, 'Thresholdout (cont.)', footnote 4",
        says="The notes' value differs from the one in the article by a factor of 2",
        verdict="right",
        how=("derived", "computed"),
        check=check_footnote_4,
        quote="This value differs from the one in the article by a factor of 2.",
        reading="The root in the notes' value is over the logarithm too.",
    ),
    Statement(
        name="max-information-of-an-algorithm-at-beta",
        place=f"{BASSI}, 'The max-information of an algorithm'",
        says=r"$\beta$-approximate max-information of an algorithm is over all distributions; by two datasets it can "
        r"be defined for $\beta = 0$",
        verdict="right",
        how=("computed",),
        check=check_beta,
        quote=r"For the particular case of $\beta = 0$, we can alternatively define the (pure) max-information of "
        r"algorithm",
    ),
    Statement(
        name="reasonable-worst-case",
        place=f"{CHEEMA}, 'Composition'",
        says=r"$(\varepsilon, \delta)$-DP bounds a reasonable worst case of the privacy loss",
        verdict="right",
        how=("derived", "computed"),
        check=check_reasonable,
        quote="A reasonable worst case privacy loss.",
        reading="The worst case but for a probability of delta.",
    ),
    Statement(
        name="both-papers",
        place=f"{BASSI}, 'Generalization via differential privacy (cont.)'",
        says="Both papers show the same result but with different wording",
        verdict="right",
        how=("derived",),
        check=check_both_papers,
        quote="Both papers show the same result but with different wording.",
    ),
)
