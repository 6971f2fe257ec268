"""What the definition says."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from audits.lectures.claims.statement import Statement, Truth, Verdict
from dpaudit.catalogue.additive.normal import analytic_sigma, tail_sigma
from dpaudit.catalogue.attacks import allowed
from dpaudit.losses.composing import responses
from dpaudit.losses.distribution import delta_of, gaussian_delta, largest_log_ratio, log_ratios

Floats = npt.NDArray[np.float64]

HAGHTALAB, BASSI = "Haghtalab 2020, notes 000", "Bassi 2019, notes 001"
SARKAR, CHEEMA = "Sarkar, notes 003", "Cheema & Huszár, notes 004"
SEED, DRAWS, CLOSE = 5, 400, 1e-9


def tail(first: Floats, second: Floats, epsilon: float) -> float:
    """The probability that the privacy loss exceeds epsilon, the larger of the two orders."""
    return float(max(p[log_ratios(p, q) > epsilon].sum() for p, q in ((first, second), (second, first))))


def normal_tail(epsilon: float, sigma: float) -> float:
    """The same for normal noise and a shift of 1: the loss is N(mu^2 / 2, mu^2) with mu = 1 / sigma."""
    return math.erfc((epsilon * sigma - 0.5 / sigma) / math.sqrt(2.0)) / 2.0


# --- pure DP --------------------------------------------------------------------------------------------------


def check_points_or_sets() -> Truth:
    """All sets of eight outcomes; and outcomes that are each rare on one side and impossible on the other."""
    rng, apart = np.random.default_rng(SEED), 0.0
    sets = np.array(list(itertools.product((0.0, 1.0), repeat=8)))[1:]
    for _ in range(60):
        p, q = rng.dirichlet(np.ones(8), 2)
        over_sets = float(np.abs(np.log(sets @ p) - np.log(sets @ q)).max())
        apart = max(apart, abs(over_sets - largest_log_ratio(p, q)))
    one_side = np.repeat([0.01, 0.0], 100)
    by_points = float(np.max(one_side - math.e * one_side[::-1]))
    by_sets = delta_of(one_side, one_side[::-1], 1.0)
    return Truth(
        "right" if apart < CLOSE else "wrong",
        f"For epsilon alone the two are the same: over all {len(sets)} sets of eight outcomes the largest log ratio is "
        f"that of a single outcome (60 random pairs, to {apart:.0e}). With a delta they are not: if each of 100 "
        f"outcomes has probability {by_points:g} on one side and 0 on the other, every single one keeps within a delta "
        f"of {by_points:g}, and the set of all needs a delta of {by_sets:.0f}. Both bounds on the ratio or the upper "
        "one alone, as the slides have it in turn, is the same: a pair is read in both orders.",
        {"largest difference": apart, "delta by single outcomes": by_points, "delta by sets": by_sets},
    )


def check_epsilon_zero() -> Truth:
    constant = largest_log_ratio(np.array([1.0]), np.array([1.0]))
    seen = {epsilon: delta_of(*responses(1, epsilon), 0.0) for epsilon in (0.0, 0.1)}
    many = delta_of(*responses(100, 0.1), 0.0)
    right = constant == 0.0 == seen[0.0] and abs(seen[0.1] - allowed(0.1)) < CLOSE
    return Truth(
        "right" if right else "wrong",
        "At epsilon = 0 all databases give the same outputs with the same probabilities, as a constant does: nothing "
        "can be learnt of any of them. At 0.1 nobody tells two neighbours apart with an advantage above "
        f"{seen[0.1]:.3f}, which randomised response reaches. That is for one release: after 100 of them with "
        f"epsilon = 0.1 it can be {many:.2f}.",
        {"loss of a constant": constant, "advantage at 0.1": seen[0.1], "advantage after 100": many},
    )


def check_log_odds() -> Truth:
    """Bayes' rule on random pairs of laws and random beliefs, against the log ratio of the two laws."""
    rng, off = np.random.default_rng(SEED), 0.0
    for belief in rng.uniform(0.01, 0.99, DRAWS):
        p, q = rng.dirichlet(np.ones(6), 2)
        after = belief * p / (belief * p + (1.0 - belief) * q)
        moved = np.log(after / (1.0 - after)) - math.log(belief / (1.0 - belief))
        off = max(off, float(np.abs(moved - log_ratios(p, q)).max()))
    p, q = responses(1, 1.0)
    happens = p > 0.0
    beliefs = {b: float(np.max(b * p[happens] / (b * p[happens] + (1.0 - b) * q[happens]))) for b in (0.01, 0.5, 0.9)}
    return Truth(
        "right" if off < 1e-6 else "wrong",
        "This is Bayes' rule, for every belief beforehand and every output (random ones: the same to "
        f"{off:.0e}). With epsilon = 1 the odds change by a factor of e at most: a belief of 0.5 rises to at most "
        f"{beliefs[0.5]:.3f}, one of 0.01 to {beliefs[0.01]:.3f}, one of 0.9 to {beliefs[0.9]:.3f}, and randomised "
        "response does that.",
        {"largest difference": off, **{f"from {b:g}": value for b, value in beliefs.items()}},
    )


# --- with a delta ---------------------------------------------------------------------------------------------


def check_tail() -> Truth:
    """The least sigma for (1, 1e-5)-DP against that of the tail; a pair that post-processing makes worse."""
    epsilon, delta = 1.0, 1e-5
    least, asked = analytic_sigma(epsilon, delta, 1.0), tail_sigma(epsilon, delta, 1.0)
    rng = np.random.default_rng(SEED)
    drawn = [rng.dirichlet(np.ones(6), 2) for _ in range(DRAWS)]
    enough = all(delta_of(*pair, epsilon) <= tail(*pair, epsilon) + 1e-12 for pair in drawn)
    enough = enough and gaussian_delta(epsilon, 1.0 / asked) <= delta
    more = normal_tail(epsilon, least) > 1.001 * delta
    bit = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    p, q = np.array([0.1, 0.3, 0.6]), np.array([0.001, 0.115, 0.884])
    merged = tuple(np.array([side[0] + side[1], side[2]]) for side in (p, q))
    verdict: Verdict = "wrong" if not enough else "right and loose" if more else "right and tight"
    return Truth(
        verdict,
        f"It is enough for (epsilon, delta)-DP ({DRAWS} random pairs, no exception), and more than that asks for, so "
        "it is not the definition of notes 001 in other words. Normal noise that is just (1, 1e-5)-DP has sigma = "
        f"{least:.3f}, and its privacy loss exceeds 1 with probability {normal_tail(epsilon, least):.1e}; for a "
        f"probability of 1e-5 it takes sigma = {asked:.3f}. Randomised response that keeps 3/4 exceeds 1 with "
        f"probability {tail(*bit, 1.0):.2f}, and its delta at 1 is {delta_of(*bit, 1.0):.4f}. This promise has a name "
        "of its own, probabilistic DP, and post-processing can break it: two outcomes taken as one can raise the "
        f"probability, in an example from {tail(p, q, 1.0):.1f} to {tail(*merged, 1.0):.1f}.",
        {
            "least sigma": least,
            "sigma of the tail": asked,
            "tail at the least sigma": normal_tail(epsilon, least),
            "response, tail": tail(*bit, 1.0),
            "response, delta": delta_of(*bit, 1.0),
            "apart": tail(p, q, 1.0),
            "merged": tail(*merged, 1.0),
        },
    )


def check_unlikely() -> Truth:
    """Pr(loss > t) <= delta / (1 - e^(epsilon - t)) for t > epsilon, on random pairs and on one that reaches it."""
    rng, epsilon, far = np.random.default_rng(SEED), 0.5, 1.0
    share = 1.0 / -math.expm1(epsilon - far)
    worst = 0.0
    for _ in range(DRAWS):
        pair = rng.dirichlet(np.ones(6), 2)
        delta = delta_of(*pair, epsilon)
        less = max(p[log_ratios(p, q) < -far].sum() for p, q in (pair, pair[::-1])) * math.exp(far)
        worst = max(worst, max(tail(*pair, far), less) / (share * delta) if delta > 0.0 else 0.0)
    rare = 1e-3
    reached = np.array([rare, 1.0 - rare]), np.array([rare * math.exp(-far - 1e-12), 1.0 - rare * math.exp(-far)])
    tight = tail(*reached, far) / (share * delta_of(*reached, epsilon))
    sigma = analytic_sigma(1.0, 1e-5, 1.0)
    once, twice = normal_tail(1.0, sigma), normal_tail(2.0, sigma)
    verdict: Verdict = "wrong" if max(worst, tight) > 1.0 + 1e-6 else "right and loose"
    return Truth(
        "right and tight" if verdict != "wrong" and tight > 0.99 else verdict,
        "In numbers: a privacy loss above t, for a t above epsilon, has probability at most delta / (1 - e^(epsilon - "
        f"t)), which can be reached ({tight:.4f} of it, and at most {worst:.2f} on {DRAWS} random pairs). 'Much more' "
        "must be more than e^epsilon times by a margin: normal noise that is just (1, 1e-5)-DP has a loss above 2 "
        f"with probability {twice:.0e}, and one above 1 with {once:.1e}, which is {once / 1e-5:.0f} times delta. A "
        "loss below -t is rarer still, by a factor of e^t.",
        {"reached": tight, "random pairs": worst, "above 1": once, "above 2": twice},
    )


# --- what it is and what it is not ----------------------------------------------------------------------------


def check_secure() -> Truth:
    """Additive shares of a sum modulo m, enumerated: what one server sees, and what both of them publish."""
    m = 7
    shares = np.array([[float((x - mask) % m == seen) for seen in range(m)] for x in (2, 3) for mask in range(m)])
    of_one = largest_log_ratio(*(part.mean(axis=0) for part in np.split(shares, 2)))
    of_sum = largest_log_ratio(np.eye(m)[2], np.eye(m)[3])
    noise = np.exp(-np.abs(np.arange(-40, 42)))
    noisy = largest_log_ratio(noise[:-1] / noise[:-1].sum(), noise[1:] / noise[:-1].sum())
    different = of_one < CLOSE and of_sum == math.inf
    return Truth(
        "right" if different and abs(noisy - 1.0) < CLOSE else "wrong",
        f"Two servers that hold shares of a sum modulo {m} see nothing of a person (loss {abs(of_one):.0f}), and the "
        "sum that they publish gives the person away (no epsilon at all). Noise on the sum does the other half: "
        f"geometric noise of ratio e^-1 has the loss {noisy:.4f}, whoever computes it. Neither replaces the other.",
        {"one server": abs(of_one), "published": of_sum, "published with noise": noisy},
    )


def check_worst_case() -> Truth:
    """A bit that is published in one run of a thousand: mutual information against the largest privacy loss."""
    p, q = responses(1, 0.0, 1e-3)
    middle = (p + q) / 2.0
    bits = sum(float(np.sum(side[side > 0.0] * np.log2(side[side > 0.0] / middle[side > 0.0]))) for side in (p, q)) / 2
    largest = largest_log_ratio(p, q)
    mean = {}
    for epsilon in (0.1, 1.0):
        keeps = math.exp(epsilon) / (1.0 + math.exp(epsilon))
        mean[epsilon] = epsilon * (2.0 * keeps - 1.0)  # randomised response loses epsilon, or gains it
    small = bits < 2e-3 and largest == math.inf and all(value < e for e, value in mean.items())
    return Truth(
        "right" if small else "wrong",
        f"A bit that is published in one run of a thousand has {bits:.4f} bits of information on it, "
        "and no epsilon: an average does not see the person whose bit it was. Randomised response has an average "
        f"privacy loss of {mean[1.0]:.3f} at epsilon = 1, and of {mean[0.1]:.4f} at 0.1.",
        {"bits": bits, "largest loss": largest, **{f"average at {e:g}": value for e, value in mean.items()}},
    )


def least_error(epsilon: float, n: int) -> float:
    """The least expected error, in the worst case over counts 0..n, of any epsilon-DP output in 0..n."""
    size = n + 1
    cost = np.zeros(size * size + 1)
    cost[-1] = 1.0
    rows = []
    for x in range(size):
        row = np.zeros_like(cost)
        row[x * size : (x + 1) * size] = np.abs(np.arange(size) - x)
        row[-1] = -1.0
        rows.append(row)
        for y, z in itertools.product({x - 1, x + 1} & set(range(size)), range(size)):
            row = np.zeros_like(cost)
            row[x * size + z], row[y * size + z] = 1.0, -math.exp(epsilon)
            rows.append(row)
    whole = np.zeros((size, len(cost)))
    for x in range(size):
        whole[x, x * size : (x + 1) * size] = 1.0
    found = linprog(cost, np.array(rows), np.zeros(len(rows)), whole, np.ones(size), bounds=(0.0, None))
    return float(found.fun)


def check_inherent() -> Truth:
    """The best mechanism for a count of ten people, by a linear program over all mechanisms."""
    least = {epsilon: least_error(epsilon, 10) for epsilon in (0.5, 1.0, 2.0)}
    geometric = {e: 2.0 * math.exp(-e) / -math.expm1(-2.0 * e) for e in least}  # E |k| of weights e^(-epsilon |k|)
    inherent = all(value > 0.0 for value in least.values())
    near = all(least[e] <= geometric[e] + CLOSE for e in least)
    return Truth(
        "right" if inherent and near else "wrong",
        "For the count of ten people no mechanism whatever has a smaller expected error than "
        f"{least[0.5]:.3f}, {least[1.0]:.3f} and {least[2.0]:.3f} for epsilon = 0.5, 1 and 2, in the worst case over "
        f"counts (a linear program over all mechanisms). Geometric noise has {geometric[0.5]:.3f}, "
        f"{geometric[1.0]:.3f} and {geometric[2.0]:.3f}.",
        {
            **{f"least at {e:g}": value for e, value in least.items()},
            **{f"geometric at {e:g}": geometric[e] for e in geometric},
        },
    )


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        "points-or-sets",
        f"{HAGHTALAB}, definition 2.2; {SARKAR}, 'The subset version'",
        r"$\varepsilon$-DP for every set of outcomes is the same as a bounded ratio at every single outcome",
        "right",
        ("derived", "computed"),
        check_points_or_sets,
        quote=(
            (
                r"The latter part is the same as requiring that the ratio of the densities of each "
                r"outcome $r \in \mathcal{R}$ is bounded between $\exp(-\epsilon)$ and "
                r"$\exp(\epsilon)$."
            ),
            "The corresponding subset definition follows the same template",
        ),
    ),
    Statement(
        "epsilon-zero",
        f"{HAGHTALAB}, section 2; {SARKAR}, 'Some notes'",
        (
            r"a constant output is private even for $\varepsilon = 0$, perfect privacy; about 0.1 is considered "
            "good"
        ),
        "right",
        ("derived", "computed"),
        check_epsilon_zero,
        quote=(
            r"This, of course, is differentially private even for $\epsilon = 0$.",
            r"Zero is perfect privacy ... Something like $\epsilon=0.1$ is considered good privacy",
        ),
    ),
    Statement(
        "log-odds",
        f"{CHEEMA}, 'Privacy loss as a random variable'; {SARKAR}, 'Hiding values: meaning'",
        "the privacy loss is the improvement of the log odds; a DP output does not change a belief by much",
        "right",
        ("derived", "computed"),
        check_log_odds,
        quote=(
            (
                r"$\lambda(x||x')$ is the improvement of the Bayesian log odds in favour of $x$ rather"
                r" than $x'$"
            ),
            "Seeing the DP output does not change this probability/confidence by much",
        ),
    ),
    Statement(
        "approximate-dp-as-a-tail",
        f"{CHEEMA}, 'delta-approximate differential privacy'",
        (
            r"$(\varepsilon, \delta)$-DP if, for every adjacent pair, $\Pr[\lambda \leq \varepsilon] \geq 1 - "
            r"\delta$"
        ),
        "right and loose",
        ("derived", "computed", "audited"),
        check_tail,
        ("Gaussian noise, the tail of the loss at delta", "Gaussian noise, analytic"),
        quote=(
            r"A function $\phi$ is $\delta$-approximately $\epsilon$ differentially private (or $(\epsilon, "
            r"\delta)$-DP) if for every adjacent pair $x, x'$ $\Pr[\lambda(x||x') \leq \epsilon] \geq 1 - "
            r"\delta$"
        ),
        reading=(
            r"As a condition that is enough for $(\varepsilon, \delta)$-DP as notes 001 define it. It is not the "
            "same definition: the text says by how much."
        ),
    ),
    Statement(
        "unlikely-for-small-delta",
        f"{BASSI}, 'Definition and properties of DP (cont.)'",
        (
            r"for very small $\delta$ an output that is much more, or much less, likely for x than for y is "
            "extremely unlikely"
        ),
        "right and tight",
        ("derived", "computed"),
        check_unlikely,
        quote=(
            r"For very small $\delta$, it is extremely unlikely that the observed value $\mathcal{M}(x)$ will be "
            "much more or much less likely to be generated when the database is x than when the database is y."
        ),
        context=(
            r"However, it is possible that $0 < \Pr{\mathcal{M}(x) \in S} < \delta$ and $\Pr{\mathcal{M}(y) \in "
            "S} = 0$."
        ),
        reading=r"'Much more' is read as more than $e^\varepsilon$ times by a margin, however small: the kinder way.",
    ),
    Statement(
        name="secure-computation",
        place=f"{CHEEMA}, 'Why bother?'",
        says="computational security does something different from DP, and complements it",
        verdict="right",
        how=("derived", "computed"),
        check=check_secure,
        quote="Computational security and federated learning do different, complementary things",
    ),
    Statement(
        name="worst-case-not-average",
        place=f"{CHEEMA}, 'Reflections'",
        says="a worst case and not an average, as in information theory",
        verdict="right",
        how=("derived", "computed"),
        check=check_worst_case,
        quote="Contrast with information theory ... worst case analysis rather than averages",
    ),
    Statement(
        name="inherent-loss",
        place="CS 208, notes 002, section 2",
        says="any procedure can be made private, with a loss in accuracy that is inherent",
        verdict="right",
        how=("derived", "computed"),
        check=check_inherent,
        quote=(
            "Using similar ideas, you can extend any ML procedure to satisfy DP with an inherent—and provable—loss in "
            "accuracy."
        ),
        reading="Inherent: no mechanism is without it. Shown on the simplest procedure there is, a count.",
    ),
)
