"""Selection: Report Noisy Max and the exponential mechanism, in general and for learning."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from audits.lectures.claims.statement import Statement, Truth
from dpaudit.catalogue import find
from dpaudit.losses.comparisons import winning
from dpaudit.losses.released import exponential

BASSI, CS208, CHEEMA = "Bassi 2019, notes 001", "CS 208, notes 002", "Cheema & Huszár, notes 004"
NOISY_MAX = f"{BASSI}, 'Report Noisy Max'"
LEARNING = f"{CS208}, section 4.3"

CLOSE = 1e-9
TIGHT = 0.995  # of epsilon reached: the rest is approached only as gaps or numbers of candidates grow
GAPS = range(-40, 41)  # with two answers the loss still grows beyond, towards the bound, as 1 - 1 / (gap + 2)


def _loss(name: str, first: list[int], second: list[int], **parameters: float) -> float:
    found = find(name).true_epsilon(first, second, parameters)
    assert found is not None
    return found


# --- Report Noisy Max ---------------------------------------------------------------------------------------------


def _counts(number: int) -> Iterator[tuple[list[int], list[int]]]:
    """One count against the others, with every gap: it rises alone, or all others do."""
    for gap in GAPS:
        first = [0] + [gap] * (number - 1)
        yield first, [1, *first[1:]]
        yield first, [0] + [gap + 1] * (number - 1)


def check_counts() -> Truth:
    sup = {number: max(_loss("report_noisy_max", *pair) for pair in _counts(number)) for number in (2, 3, 5)}
    largest = max(sup.values())
    return Truth(
        "wrong" if largest > 1.0 + CLOSE else "right and tight" if largest > TIGHT else "right and loose",
        "With epsilon = 1, one person more or less and counts up to 40 apart, the loss reaches "
        f"{sup[2]:.4f} for two counts (it tends to 1 as they move apart) and {sup[3]:.4f} for three, and never passes "
        f"1 ({sup[5]:.4f} for five). All counts then move one way: that is what the proof uses.",
        {"two counts": sup[2], "three counts": sup[3], "five counts": sup[5]},
    )


def check_any_queries() -> Truth:
    pairs = {number: ([-40] + [0] * (number - 1), [-39] + [-1] * (number - 1)) for number in (2, 3, 10)}
    sup = {number: _loss("report_noisy_max", *pair) for number, pair in pairs.items()}
    seen = _loss("report_noisy_max.replace_one", [0, 1, 1, 1, 1], [1, 0, 0, 0, 0])
    twice = max(_loss("report_noisy_max_general", *pair) for pair in pairs.values())
    return Truth(
        "question or trap" if max(sup.values()) > 1.0 + CLOSE else "right and loose",
        "The notes speak of counts, with one person more or less, and there it is right. Who takes it further meets a "
        "factor of 2: where one answer can rise while another falls, as counts do when one person is replaced, the "
        "same noise gives 2 epsilon. At epsilon = "
        f"1, {sup[2]:.4f} for two answers that are 40 apart, {sup[3]:.4f} for three, and {seen:.4f} on five counts "
        f"that differ by 1. Lap(2 / epsilon) keeps the claim for all queries of sensitivity 1 ({twice:.4f}).",
        {"two answers": sup[2], "three answers": sup[3], "five counts": seen, "with twice the noise": twice},
    )


def check_all_counts() -> Truth:
    m, lead, epsilon = 10, 5.0, 1.0
    counts = np.array([lead] + [0.0] * (m - 1))
    released = _loss("laplace_vector", [0] * m, [1] * m, epsilon=epsilon, sensitivity=1.0)
    right = {name: float(winning(counts, scale)[0]) for name, scale in (("max", 1 / epsilon), ("all", m / epsilon))}
    exact = abs(released - m * epsilon) < CLOSE
    return Truth(
        "wrong" if not exact or right["max"] <= right["all"] else "right and tight",
        f"One person who is counted in all m = {m} queries moves the vector by m: with Lap(1 / epsilon) on each count "
        f"the release has a loss of exactly {released:.1f} epsilon, so it needs Lap(m / epsilon). At epsilon = 1 and "
        f"a count that leads by {lead:.0f} the right one then comes out on top with probability {right['all']:.3f}; "
        f"with Report Noisy Max it does with probability {right['max']:.3f}.",
        {"loss of all counts": released, "right by noisy max": right["max"], "right by all counts": right["all"]},
    )


# --- the exponential mechanism ------------------------------------------------------------------------------------


def _opposed(number: int) -> tuple[list[int], list[int]]:
    """One utility goes up by 1 and all others go down by 1, from one behind to one ahead."""
    return [0] + [1] * (number - 1), [1] + [0] * (number - 1)


def check_exponential() -> Truth:
    sizes = (2, 6, 1_000)
    loss = {size: _loss("exponential_mechanism", *_opposed(size)) for size in sizes}
    missing = _loss("exponential_mechanism.factor_two_missing", *_opposed(1_000))
    rng = np.random.default_rng(1)
    moved = [(u, u + rng.uniform(-1.0, 1.0, 6)) for u in rng.normal(scale=5.0, size=(2_000, 6))]
    largest = max(_loss("exponential_mechanism", list(u), list(v)) for u, v in moved)
    most = max(largest, *loss.values())
    return Truth(
        "wrong" if most > 1.0 + CLOSE else "right and tight" if loss[1_000] > TIGHT else "right and loose",
        f"At epsilon = 1 the loss is {loss[2]:.4f} for two candidates that change places, {loss[6]:.4f} for six and "
        f"{loss[1000]:.4f} for a thousand (2000 random pairs: at most {largest:.4f}). The 2 is needed: without it the "
        f"last one is {missing:.4f}. Only utilities that all move one way, such as counts, do without it.",
        {"two": loss[2], "six": loss[6], "a thousand": loss[1_000], "without the 2": missing, "random": largest},
    )


def check_laplace_special_case() -> Truth:
    at = np.arange(-4_000, 4_001) / 100.0  # the output on a grid, far beyond the answers
    before, after = (exponential(-np.abs(at - answer), 0.5) for answer in (0.0, 1.0))
    inner = np.abs(at) <= 20.0
    reached = float(np.max(np.abs(np.log(before[inner] / after[inner]))))
    scale = -1.0 / float(np.polyfit(at[(at > 1.0) & inner], np.log(before[(at > 1.0) & inner]), 1)[0])
    return Truth(
        "wrong" if reached > 1.0 + CLOSE else "right and tight" if reached > TIGHT else "right and loose",
        "With u(x, r) = -|f(x) - r| and the 2 in the exponent the output is f(x) plus Laplace noise of scale "
        f"{scale:.4f} sensitivity / epsilon, twice what the Laplace mechanism needs: the true loss is {reached:.4f} "
        "epsilon. The sum of the weights does not depend on the data, so the 2 may be dropped, and then the two "
        "mechanisms are the same. So it is a special case at twice the epsilon: the formula at 2 epsilon is the "
        "Laplace mechanism at epsilon.",
        {"scale": scale, "loss": reached},
    )


# --- the exponential mechanism for learning -----------------------------------------------------------------------


def _replacements(n: int, kinds: int = 5) -> Iterator[tuple[list[int], list[int]]]:
    """All lists of n records, each of one of five kinds, with one of them replaced."""
    for rest in itertools.combinations_with_replacement(range(kinds), n - 1):
        for one, other in itertools.combinations(range(kinds), 2):
            yield [one, *rest], [other, *rest]


def check_learning() -> Truth:
    toy = max(_loss("exponential_mechanism_learning", *pair) for pair in _replacements(5))
    n, size = 5, 1_000
    before, after = (np.array([first, *[1.0 - first] * (size - 1)]) for first in (1.0, 0.0))  # losses of one record
    laws = [exponential(-losses / n, n / 2.0) for losses in (before, after)]
    many = float(np.max(np.abs(np.log(laws[0] / laws[1]))))
    left_out = max(_loss("exponential_mechanism_learning.n_left_out", *pair) for pair in _replacements(5))
    return Truth(
        "wrong" if max(toy, many) > 1.0 + CLOSE else "right and tight" if many > TIGHT else "right and loose",
        "The average loss of n records moves by Delta / n when one is replaced, Delta the range of one record's loss, "
        f"and n makes up for it. Of all pairs of five records with three hypotheses the worst has {toy:.4f} at "
        f"epsilon = 1, and with a thousand hypotheses the loss is {many:.4f}. Without the n it would be "
        f"{left_out:.4f}: private, and of no use. A penalty R does not depend on the records and costs nothing.",
        {"three hypotheses": toy, "a thousand": many, "without n": left_out},
    )


def check_learning_as_printed() -> Truth:
    worst = {
        n: max(_loss("exponential_mechanism_learning.sum_for_average", *p) for p in _replacements(n)) for n in (2, 5)
    }
    return Truth(
        "wrong" if worst[5] > 1.0 + CLOSE else "right and loose",
        "A slip of the display: it has lost the 1 / n of the average, which the line above it has. As printed, n "
        f"times the sum of losses moves by n Delta, so the true loss is up to n epsilon ({worst[2]:.4f} for two "
        f"records and {worst[5]:.4f} for five, at epsilon = 1). The same happens when Delta is read as the "
        "sensitivity of the average, which is n times smaller. The sign of R(theta) is turned too: it favours large "
        "penalties, a matter of usefulness only.",
        {"two records": worst[2], "five records": worst[5]},
    )


def check_grid() -> Truth:
    bins = 10
    points = {k: (len(list(itertools.product(range(2), repeat=k))), bins**k) for k in (1, 3, 10)}
    right = all(few == 2**k for k, (few, _) in points.items())
    return Truth(
        "right" if right else "wrong",
        f"The space {{0, 1}}^k has 2^k points ({points[10][0]:,} at k = 10, counted), and a loss is needed at each of "
        f"them. Where a space such as [0, 1]^k is cut into {bins} bins a coordinate, as the words about bins suggest, "
        f"it is {bins}^k, {points[10][1]:,} at k = 10. Exponential in k both times, which is the point.",
        {"2^10": float(points[10][0]), "10^10": float(points[10][1])},
    )


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        name="noisy-max-counts",
        place=NOISY_MAX,
        says=r"The index of the largest of $m$ counts, each with $\mathrm{Lap}(1/\varepsilon)$, is "
        r"$(\varepsilon, 0)$-DP",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_counts,
        audits=("Report Noisy Max", "Report Noisy Max, half the noise"),
        quote=r"A better approach is to (internally) add independently generated Laplace noise $Lap(1/\varepsilon)$ to "
        r"each count and return the index of the largest noisy count. ... The Report Noisy Max algorithm is "
        r"$(\varepsilon, 0)$-differentially private.",
        context=r"Imagine we want to determine which of $m$ counting queries has the highest value when the queries "
        "are not disjoint.",
        reading="One person more or less, as in the definition of these notes.",
    ),
    Statement(
        name="noisy-max-any-queries",
        place=NOISY_MAX,
        says=r"Would $\mathrm{Lap}(1/\varepsilon)$ also do for any answers of sensitivity 1, or for counts when one "
        "person is replaced?",
        verdict="question or trap",
        how=("derived", "computed", "audited"),
        check=check_any_queries,
        audits=(
            "Report Noisy Max, claimed for replacing one person",
            "Report Noisy Max over any queries, noise for counts",
            "Report Noisy Max over any queries",
        ),
        quote=r"add independently generated Laplace noise $Lap(1/\varepsilon)$ to each count and return the index of "
        "the largest noisy count.",
        context=r"which of $m$ counting queries has the highest value",
        reading="The notes say counts, and do not say this. It is the way in which the algorithm is often read.",
    ),
    Statement(
        name="noisy-max-against-all-counts",
        place=NOISY_MAX,
        says=r"To release all $m$ counts is suboptimal: their vector has $\ell_1$ sensitivity $m$",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_all_counts,
        audits=("Report Noisy Max with the noisy count",),
        quote="Releasing all the counts and letting the data analyst find the maximum is suboptimal. Remember that the "
        r"vector of counts has high $\ell_1$-sensitivity, specifically, $\Delta f = m$.",
        context="when the queries are not disjoint",
    ),
    Statement(
        name="exponential-mechanism",
        place=f"{CHEEMA}, 'The exponential mechanism'",
        says=r"To output $r$ with probability proportional to $\exp(\epsilon u(x, r) / (2 \Delta u))$ is "
        r"$\epsilon$-DP",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_exponential,
        audits=("the exponential mechanism", "the exponential mechanism without the 2"),
        quote=r"Let the utility of $f(x) = r$ be $u(x, r)$. Then for $\epsilon$-DP, output $r$ with distribution "
        r"$p(r) \propto \exp\left(\frac{\epsilon u(x, r)}{2 \max_r \Delta_1 u(\cdot, r)}\right).$",
    ),
    Statement(
        name="laplace-as-exponential-mechanism",
        place=f"{CHEEMA}, 'The exponential mechanism'",
        says="The Laplace mechanism is a special case of the exponential mechanism",
        verdict="right and loose",
        how=("derived", "computed"),
        check=check_laplace_special_case,
        quote="and the Laplace mechanism is a special case.",
        context=r"$p(r) \propto \exp\left(\frac{\epsilon u(x, r)}{2 \max_r \Delta_1 u(\cdot, r)}\right).$",
        reading=r"As a family of mechanisms, with $u(x, r) = -|f(x) - r|$: the kinder reading. At one and the same "
        r"$\epsilon$ the printed exponent gives twice the noise.",
    ),
    Statement(
        name="exponential-mechanism-learning",
        place=f"{LEARNING}, the text",
        says=r"With $u$ minus the average loss and $\Delta$ the sensitivity of one record's loss, the exponent "
        r"$\epsilon n u / (2 \Delta)$ satisfies $\epsilon$-DP",
        verdict="right and tight",
        how=("derived", "computed", "audited"),
        check=check_learning,
        audits=("learning by the exponential mechanism", "learning by the exponential mechanism, regularised"),
        quote=r"$u((\vec{x}, \vec{y}), \theta) = -L(\theta | \vec{x}, \vec{y}) = -\frac{1}{n} \sum_{i=1}^n "
        r"\ell(\theta | x_i, y_i) - R(\theta).$ ... where $\Delta$ is the sensitivity of the loss function "
        r"$\ell$. This procedure, as we have seen in class, satisfies $\epsilon$-DP.",
        context="The utility function we choose is the negative loss function, since we want to minimize loss and "
        "maximize utility.",
        reading=r"The utility of the first display in the exponent of the second, with its factor $n$.",
    ),
    Statement(
        name="exponential-mechanism-learning-as-printed",
        place=f"{LEARNING}, the display",
        says=r"The exponent is $-\frac{\epsilon n}{2\Delta}$ times the sum of the losses less $R(\theta)$",
        verdict="wrong",
        how=("derived", "computed", "audited"),
        check=check_learning_as_printed,
        audits=(
            "learning by the exponential mechanism, sum for average",
            "a private median, sensitivity n times too small",
        ),
        quote=r"$\Pr[M(x) = \theta] \propto \exp \left(-\frac{\epsilon n}{2\Delta} \left(\sum_{i=1}^n "
        r"\ell(\theta | x_i, y_i) - R(\theta) \right) \right),$ where $\Delta$ is the sensitivity of the loss function "
        r"$\ell$.",
        context=r"$u((\vec{x}, \vec{y}), \theta) = -L(\theta | \vec{x}, \vec{y}) = -\frac{1}{n} \sum_{i=1}^n "
        r"\ell(\theta | x_i, y_i) - R(\theta).$",
        reading=r"$\Delta$ is the sensitivity of one record's loss, as the words say. That of the sum is the same, so "
        r"neither makes up for the factor $n$.",
    ),
    Statement(
        name="exponential-mechanism-grid",
        place=f"{LEARNING}, the caveat",
        says=r"For the parameter space $\{0, 1\}^k$ the loss might be needed at $2^k$ points",
        verdict="right",
        how=("derived",),
        check=check_grid,
        quote=r"if the parameter space is $\{0, 1\}^k$, and we discretize into 10 bins, we **might** have to calculate "
        r"the loss for $2^k$ points.",
        context="even when discretizing, the runtime of this mechanism can be exponential in the dimensionality of the "
        "parameter space.",
        reading=r"$2^k$ is the size of $\{0, 1\}^k$: the kinder reading. With 10 bins a coordinate it would be $10^k$.",
    ),
)
