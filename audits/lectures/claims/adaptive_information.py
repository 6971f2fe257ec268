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
from audits.lectures.claims.information import independent, max_divergence, max_information
from audits.lectures.claims.statement import Figure, Statement, Truth, Verdict
from dpaudit.losses.distribution import epsilon_of

Floats = npt.NDArray[np.float64]

SEED, BITS = 1, 5
BETAS = (0.0, 0.001, 0.01, 0.1)


# --- exact tables ---------------------------------------------------------------------------------------------


def mutual_information(joint: Floats) -> float:
    """Shannon's mutual information.

    >>> mutual_information(np.array([[0.5, 0.0], [0.0, 0.5]]))
    1.0
    """
    held = joint > 0.0
    return float(np.sum(joint[held] * np.log2(joint[held] / independent(joint)[held])))


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


def judged(holds: bool, tight: bool | None) -> Verdict:
    """The verdict; `tight` is None where that was not tested."""
    told: Verdict = "right" if tight is None else "right and tight" if tight else "right and loose"
    return told if holds else "wrong"


def stated(
    name: str,
    slide: str,
    says: str,
    verdict: Verdict,
    check: Callable[[], Truth],
    figure: Figure | None = None,
    *,
    quote: str,
    context: str = "",
    reading: str = "",
) -> Statement:
    """A statement of the slides on generalisation: derived and computed, no audit bears on it."""
    return Statement(
        name,
        place(f"'{slide}'"),
        says,
        verdict,
        ("derived", "computed"),
        check,
        figure=figure,
        quote=quote,
        context=context,
        reading=reading,
    )


# --- definitions and properties -------------------------------------------------------------------------------


def check_divergence() -> Truth:
    worst = 0.0
    for table, delta in itertools.product(random_tables(50, 2, 7), (0.0, 0.01, 0.2)):
        p, q = table / table.sum(axis=1, keepdims=True)
        both = max(0.0, max_divergence(p, q, delta), max_divergence(q, p, delta))
        worst = max(worst, abs(both - bounds.BITS * epsilon_of(p, q, delta)))
    alone = max_information(independent(np.full((2, 2), 0.25)), 0.1)
    return Truth(
        judged(worst < 1e-9, tight=None),
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
        judged(worst < 1e-9, tight=None),
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
        {"largest excess": over, "kept where it can be undone": 2.0**kept},
    )


def check_composition() -> Truth:
    """As read; and 16 equally likely datasets: A tells the half, then B singles out one dataset of the first half."""
    worst = max(_composed_excess(table) for table in random_tables(40, 4, 3))
    bit, epsilon = randomised_response(1, 1.0), bounds.BITS
    reached = max(max_divergence(a, b) for a, b in itertools.permutations(np.kron(bit, bit), 2)) / (2.0 * epsilon)
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
    return Truth(
        judged(worst <= 1e-9 and whole > k1 + k2, math.isclose(reached, 1.0)),
        "No excess in 40 random compositions (beta = 0), and two bits told by randomised response, one by A and one by "
        f"B, which hands on what A said, reach {reached:.4f} of k1 + k2. For one fixed distribution of S it would not "
        f"be enough: with 16 equally likely datasets an A of {k1:.2f} bits and a B of {k2:.2f} bits for every y can "
        f"give {whole:.2f} bits together, since given A(S) the data are no longer distributed as S. So a bound for "
        "i.i.d. data, as the next slide's approximate one, does not compose in this way.",
        {"A": k1, "B": k2, "together": whole, "largest excess, every distribution": worst, "reached": reached},
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
        r"$(\varepsilon, \delta)$-DP says that $D_\infty^\delta(\mathcal{A}(S) \| \mathcal{A}(S')) \leq (\log e)\,"
        r"\varepsilon$ for neighbours",
        "right",
        check_divergence,
        quote=(
            r"$D^{\delta}_{\infty}(\boldsymbol{X} \| \boldsymbol{Y}) = \log \max_{\mathcal{O} \subseteq \mathcal{X}, "
            r"\Pr\{\boldsymbol{X} \in \mathcal{O}\} \geq \delta} \frac{\Pr\{\boldsymbol{X} \in \mathcal{O}\} - \delta}"
            r"{\Pr\{\boldsymbol{Y} \in \mathcal{O}\}}$ ... A randomized algorithm $\mathcal{A}$ with domain "
            r"$\mathcal{X}^n$ is $(\varepsilon, \delta)$-DP if for all pairs of datasets that differ in a single "
            r"element $S, S' \in \mathcal{X}^n$:"
        ),
        context="denote the logarithm on base 2 and *e*, respectively.",
    ),
    stated(
        "max-information-conditional",
        "Max-information",
        r"max-information $k$: $\Pr\{X = x \mid Y = y\} \leq 2^k \Pr\{X = x\}$",
        "right and tight",
        check_conditional,
        quote=(
            r"If $I_{\infty}(\boldsymbol{X}; \boldsymbol{Y}) = k$, then $\Pr{\{\boldsymbol{X} = x \mid "
            r"\boldsymbol{Y} = y\}} \le 2^k \Pr{\{\boldsymbol{X} = x\}}$."
        ),
    ),
    stated(
        "max-information-mutual",
        "Max-information",
        r"the max-information bounds the mutual information: $I(X; Y) \leq I_\infty(X; Y)$",
        "right and tight",
        check_mutual,
        quote="The max-information is an upper bound of the mutual information",
    ),
    stated(
        "max-information-symmetric",
        "Max-information",
        r"$I_\infty^\beta(X; Y) = I_\infty^\beta(Y; X)$",
        "right",
        check_symmetry,
        quote=(
            r"For $\beta \geq 0$, $I_{\infty}^{\beta}(\boldsymbol{X}; \boldsymbol{Y}) = I_{\infty}^{\beta}"
            r"(\boldsymbol{Y}; \boldsymbol{X}).$"
        ),
    ),
    stated(
        "max-information-over-datasets",
        "The max-information of an algorithm",
        r"the pure max-information of $\mathcal{A}$ is the largest $D_\infty(\mathcal{A}(S) \| \mathcal{A}(S'))$ over "
        "any two datasets",
        "right and tight",
        check_over_datasets,
        quote=(
            r"For the particular case of $\beta = 0$, we can alternatively define the (pure) max-information of "
            r"algorithm A as ... $I_{\infty}(\mathcal{A}, n) = \max_{S, S' \in \mathcal{X}^n} "
            r"D_{\infty}(\mathcal{A}(S) \| \mathcal{A}(S')),$"
        ),
        context="where $S$ and $S'$ are any two datasets.",
    ),
    stated(
        "max-information-post-processing",
        ALGORITHM,
        r"$I_\infty^\beta(S; \mathcal{B} \circ \mathcal{A}(S)) \leq I_\infty^\beta(S; \mathcal{A}(S))$",
        "right and tight",
        check_processing,
        quote=(
            r"for every random variable $\boldsymbol{S}$ over $\mathcal{X}^n$ and every $\beta \geq 0$, "
            r"$I_{\infty}^{\beta}(\boldsymbol{S}; \mathcal{B} \circ \mathcal{A}(\boldsymbol{S})) \leq "
            r"I_{\infty}^{\beta}(\boldsymbol{S}; \mathcal{A}(\boldsymbol{S})).$"
        ),
    ),
    stated(
        "max-information-composition",
        ALGORITHM,
        r"$I_\infty^{\beta_1}(\mathcal{A}, n) \leq k_1$ and, for every $y$, $I_\infty^{\beta_2}(S; \mathcal{B}(S, y)) "
        r"\leq k_2$: $\mathcal{B}$ after $\mathcal{A}$ has at most $k_1 + k_2$ at $\beta_1 + \beta_2$",
        "right and tight",
        check_composition,
        quote=(
            r"Let $\mathcal{A} : \mathcal{X}^n \to \mathcal{Y}$ be an algorithm such that "
            r"$I_{\infty}^{\beta_1}(\mathcal{A}, n) \leq k_1$, and let $\mathcal{B}$ ... be an algorithm such that, "
            r"for every $y \in \mathcal{Y}$, $I_{\infty}^{\beta_2}(\boldsymbol{S}; "
            r"\mathcal{B}(\boldsymbol{S}, y)) \leq k_2$. ... Then, $I_{\infty}^{\beta_1 + \beta_2}(\mathcal{C}, n) "
            r"\leq k_1 + k_2$."
        ),
        context=(
            r"i.e., $I_{\infty}^{\beta}(\boldsymbol{S}; \mathcal{A}(\boldsymbol{S})) = I_{\infty}^{\beta}(\mathcal{A}, "
            "n)$"
        ),
        reading=(
            r"The condition on $\mathcal{B}$ is read for every distribution of $S$, the kinder way: the notes use both "
            "notations for one thing, as the words from the slide after next show."
        ),
    ),
    stated(
        "max-information-usefulness",
        ALGORITHM,
        r"$\Pr\{(S, \mathcal{A}(S)) \in \mathcal{O}\} \leq 2^k \Pr\{S \times \mathcal{A}(S) \in \mathcal{O}\} + \beta$",
        "right and tight",
        check_usefulness,
        quote=(
            r"$\mathsf{Pr}\big\{\big(\boldsymbol{S},\mathcal{A}(\boldsymbol{S})\big)\in\mathcal{O}\big\}\leq "
            r"2^k\mathsf{Pr}\{\boldsymbol{S}\times\mathcal{A}(\boldsymbol{S})\in\mathcal{O}\}+\beta.$ ... "
            r"$\Pr\left\{\left(\boldsymbol{S}, \mathcal{A}(\boldsymbol{S})\right) \in \mathcal{O}\right\} \leq 2^{k} "
            r"\max_{y \in \mathcal{Y}} \Pr\left\{\left(\boldsymbol{S}, y\right) \in \mathcal{O}\right\} + \beta.$"
        ),
    ),
)
