"""Max-information: what the notes say of its definition and its properties, on exact tables."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from audits.lectures.claims import bounds
from audits.lectures.claims.adaptive_example import place
from audits.lectures.claims.statement import Figure, Statement, Truth, Verdict
from dpaudit.losses.discrete import epsilon_of
from dpaudit.losses.information import independent, max_divergence, max_information, mutual_information

Floats = npt.NDArray[np.float64]

SEED, BITS = 1, 5
BETAS = (0.0, 0.001, 0.01, 0.1)


# --- exact tables ---------------------------------------------------------------------------------------------


def randomised_response(bits: int, epsilon: float) -> Floats:
    """The law of the reported bits (row: the data): each bit is told with odds e^epsilon, so this is epsilon-DP."""
    one = np.array([[math.exp(epsilon), 1.0], [1.0, math.exp(epsilon)]]) / (1.0 + math.exp(epsilon))
    return functools.reduce(np.kron, [one] * bits)


def geometric_count(bits: int, epsilon: float) -> Floats:
    """The law of the number of ones with two-sided geometric noise, all beyond 0 and `bits` moved to the ends."""
    ones = np.array([sum(data) for data in itertools.product((0, 1), repeat=bits)])
    reach = np.arange(-200, 201 + bits)
    law = math.tanh(epsilon / 2.0) * np.exp(-epsilon * np.abs(reach - ones[:, None]))
    inside = (reach >= 0) & (reach <= bits)
    told = law[:, inside].copy()
    told[:, 0] = law[:, reach <= 0].sum(axis=1)
    told[:, -1] = law[:, reach >= bits].sum(axis=1)
    return told / told.sum(axis=1, keepdims=True)


def bits_with(chance: float, bits: int) -> Floats:
    """The law of independent bits that are 1 with this chance."""
    return functools.reduce(np.kron, [np.array([1.0 - chance, chance])] * bits)


def random_tables(count: int, rows: int = 5, columns: int = 6) -> Iterator[Floats]:
    rng = np.random.default_rng(SEED)
    for _ in range(count):
        table = rng.gamma(0.3, size=(rows, columns))
        yield table / table.sum()


def judged(holds: bool, tight: bool) -> Verdict:
    return ("right and tight" if tight else "right and loose") if holds else "wrong"


def stated(
    name: str, slide: str, quote: str, verdict: Verdict, check: Callable[[], Truth], figure: Figure | None = None
) -> Statement:
    """A statement of the slides on generalisation: derived and computed, no audit bears on it."""
    return Statement(name, place(f"'{slide}'"), quote, verdict, ("derived", "computed"), check, figure=figure)


# --- definitions and properties -------------------------------------------------------------------------------


def check_divergence() -> Truth:
    worst = 0.0
    for table, delta in itertools.product(random_tables(50, 2, 7), (0.0, 0.01, 0.2)):
        p, q = table / table.sum(axis=1, keepdims=True)
        both = max(0.0, max_divergence(p, q, delta), max_divergence(q, p, delta))
        worst = max(worst, abs(both - bounds.BITS * epsilon_of(p, q, delta)))
    alone = max_information(independent(np.full((2, 2), 0.25)), 0.1)
    return Truth(
        judged(worst < 1e-9, tight=True),
        "The approximate max-divergence, in both orders, is the least epsilon at that delta times log2(e): computed as "
        f"the largest ratio over sets and as the root in epsilon, the same to {worst:.0e} on 150 pairs of laws. An "
        f"oddity: for independent variables the beta-approximate max-information is log2(1 - beta), which is "
        f"{alone:.3f} and not 0 at beta = 0.1.",
        {"largest difference": worst, "independent": alone},
    )


def check_conditional() -> Truth:
    above, reached = -math.inf, 0.0
    for table in random_tables(100):
        ratio = float(np.max(table / independent(table)))
        k = max_information(table)
        above, reached = max(above, ratio / 2.0**k), max(reached, ratio / 2.0**k)
    return Truth(
        judged(above <= 1.0 + 1e-12, reached >= 1.0 - 1e-12),
        "It is the definition, read row by row: k is the log2 of the largest Pr(x | y) / Pr(x), so some x and y reach "
        "it (on 100 random tables, all of them).",
        {"largest ratio": reached},
    )


def check_mutual() -> Truth:
    over = max(mutual_information(table) - max_information(table) for table in random_tables(200))
    whole = np.eye(8) / 8.0
    reached = mutual_information(whole) / max_information(whole)
    table = randomised_response(BITS, 1.0) * bits_with(0.5, BITS)[:, None]
    return Truth(
        judged(over <= 1e-12, reached >= 1.0 - 1e-12),
        "The average of the log ratio is at most its maximum. They are equal where the ratio is constant, as for a "
        f"uniform secret told as it is: 3 bits of 3. For randomised response of {BITS} fair bits at epsilon = 1 they "
        f"are {mutual_information(table):.3f} and {max_information(table):.3f} bits.",
        {"mutual": mutual_information(table), "maximal": max_information(table), "reached": reached},
    )


def check_symmetry() -> Truth:
    worst = max(
        abs(max_information(table, beta) - max_information(table.T, beta))
        for table, beta in itertools.product(random_tables(50), BETAS)
    )
    return Truth(
        judged(worst < 1e-9, tight=True),
        "Joint law and product law are the same with the roles changed (computed on 50 tables at four values of "
        f"beta: they differ by at most {worst:.0e}).",
        {"largest difference": worst},
    )


def check_over_datasets() -> Truth:
    told = randomised_response(BITS, 1.0)
    largest = max(max_divergence(a, b) for a, b in itertools.permutations(told, 2))
    seen = {eta: max_information(told * bits_with(eta, BITS)[:, None]) for eta in (0.5, 0.1, 1e-3, 1e-6)}
    rng = np.random.default_rng(SEED)
    priors = rng.gamma(0.1, size=(100, len(told)))
    over = max(max_information(told * (prior / prior.sum())[:, None]) for prior in priors)
    holds = max(over, *seen.values()) <= largest + 1e-9
    return Truth(
        judged(holds, seen[1e-6] > 0.999 * largest),
        f"Right, with 'max' read as a supremum: the two datasets differ by {largest:.3f} bits, and no distribution "
        f"with all datasets in it reaches that. Independent bits that are 1 with probability eta give {seen[0.5]:.3f} "
        f"at eta = 0.5, {seen[0.1]:.3f} at 0.1 and {seen[1e-6]:.3f}, to three digits, at 10^-6: a rare dataset told "
        "well.",
        {"two datasets": largest, "random priors": over, **{f"eta = {eta:g}": value for eta, value in seen.items()}},
    )


def check_processing() -> Truth:
    rng, over, kept = np.random.default_rng(SEED), -math.inf, math.inf
    for table in random_tables(60):
        step = rng.gamma(0.3, size=(table.shape[1], 4))
        step /= step.sum(axis=1, keepdims=True)
        for beta in BETAS:
            over = max(over, max_information(table @ step, beta) - max_information(table, beta))
            turned = max_information(table[:, ::-1], beta)
            kept = min(kept, turned - max_information(table, beta))
    return Truth(
        judged(over <= 1e-9, abs(kept) < 1e-9),
        f"Held on 60 random tables with random second steps at four values of beta (largest excess {over:.2g} bits), "
        "with equality where the second step can be undone.",
        {"largest excess": over},
    )


def check_composition() -> Truth:
    """16 equally likely datasets: A tells the half, then B singles out one dataset of the first half."""
    m, half = 16, 8
    s = np.arange(m)
    first = (s[:, None] < half) == np.array([True, False])
    one_in = np.zeros((m, 2))
    one_in[:, 1] = (s == 0) | (s >= half)  # B(s, "first half") is 1 also where A cannot have said so
    one_in[:, 0] = 1.0 - one_in[:, 1]
    never = np.tile([1.0, 0.0], (m, 1))
    both = np.where((s < half)[:, None], one_in, never)
    k1 = max_information(first / m)
    k2 = max(max_information(one_in / m), max_information(never / m))
    whole = max_information(both / m)
    worst = max(_composed_excess(table) for table in random_tables(40, 4, 3))
    verdict: Verdict = "not provable as argued" if whole > k1 + k2 and worst <= 1e-9 else judged(worst <= 1e-9, True)
    return Truth(
        verdict,
        "True if the condition on B is meant for every distribution of S (with beta = 0: no excess in 40 random "
        "compositions). For the one S at hand, as it is printed, it is not enough: with 16 equally likely datasets an "
        f"A of {k1:.2f} bits and a B of {k2:.2f} bits for every y can give {whole:.2f} bits together, since given "
        "A(S) the data are no longer distributed as S. So a bound for i.i.d. data, as that of the approximate "
        "max-information, does not compose in this way.",
        {"A": k1, "B": k2, "together": whole, "largest excess, every distribution": worst},
    )


def _composed_excess(table: Floats) -> float:
    """How far B after A exceeds the sum of both over every distribution, for one random A and B."""
    rng = np.random.default_rng(int(1e6 * table[0, 0]))
    one = table / table.sum(axis=1, keepdims=True)
    two = rng.dirichlet(np.ones(3), size=(table.shape[1], table.shape[0]))
    k1 = max(max_divergence(a, b) for a, b in itertools.permutations(one, 2))
    k2 = max(max_divergence(a, b) for law in two for a, b in itertools.permutations(law, 2))
    both = np.einsum("sy,ysz->sz", one, two)
    return max(max_divergence(a, b) for a, b in itertools.permutations(both, 2)) - k1 - k2


def check_usefulness() -> Truth:
    over, reached = -math.inf, 0.0
    for table, beta in itertools.product(random_tables(12, 3, 3), BETAS):
        k, apart = max_information(table, beta), independent(table)
        for event in itertools.product((False, True), repeat=table.size):
            held = np.reshape(event, table.shape)
            told = bounds.probability_bound(k, float(apart[held].sum()), beta)
            over = max(over, float(table[held].sum()) - told)
            reached = max(reached, float(table[held].sum()) / told if told > 0.0 else 0.0)
    return Truth(
        judged(over <= 1e-9, reached >= 1.0 - 1e-9),
        "All 512 events of 12 random tables at four values of beta: none above the bound, and the event that the "
        "max-information is taken at reaches it. The second form, with the worst fixed y, can only be larger.",
        {"largest excess": over, "reached": reached},
    )


ALGORITHM = "The max-information of an algorithm (cont.)"

INFORMATION = (
    stated(
        "max-divergence",
        "Max-divergence",
        "(epsilon, delta)-DP: the delta-approximate max-divergence of neighbours is at most log2(e) epsilon",
        "right and tight",
        check_divergence,
    ),
    stated(
        "max-information-conditional",
        "Max-information",
        "max-information k: Pr(X = x | Y = y) <= 2^k Pr(X = x)",
        "right and tight",
        check_conditional,
    ),
    stated(
        "max-information-mutual",
        "Max-information",
        "the max-information is an upper bound of the mutual information",
        "right and tight",
        check_mutual,
    ),
    stated(
        "max-information-symmetric",
        "Max-information",
        "the beta-approximate max-information of X and Y is that of Y and X",
        "right and tight",
        check_symmetry,
    ),
    stated(
        "max-information-over-datasets",
        "The max-information of an algorithm",
        "the pure max-information of A is the largest max-divergence of A(S) from A(S') over all two datasets",
        "right and tight",
        check_over_datasets,
    ),
    stated(
        "max-information-post-processing",
        ALGORITHM,
        "the approximate max-information of B after A is at most that of A",
        "right and tight",
        check_processing,
    ),
    stated(
        "max-information-composition",
        ALGORITHM,
        "I(A, n) <= k1, and I(S; B(S, y)) <= k2 for every y: B after A has at most k1 + k2",
        "not provable as argued",
        check_composition,
    ),
    stated(
        "max-information-usefulness",
        ALGORITHM,
        "Pr((S, A(S)) in O) <= 2^k Pr(S x A(S) in O) + beta",
        "right and tight",
        check_usefulness,
    ),
)
