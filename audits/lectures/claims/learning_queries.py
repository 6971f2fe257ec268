"""The proof of theorem 3.2 line by line: what K private statistical queries cost, and how far off they are.

Haghtalab 2020, notes 000, 'Privacy-preserving PAC Learning'. m is the number of records, tau the tolerance of a query,
beta the probability of a failure.
"""

from __future__ import annotations

import itertools
import math
import tomllib
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from audits.lectures.claims.statement import Truth
from dpaudit.catalogue import find
from dpaudit.catalogue.learning.queries import sample_size

Floats = npt.NDArray[np.float64]

SPEC = Path(__file__).parents[1] / "learning_queries.toml"
QUERIES, TOLERANCE, EPSILON, BETA = 3, 0.1, 1.0, 0.05


def check_sensitivity() -> Truth:
    """One record and the average of a query, by enumeration of all samples of four."""
    m = 4
    found = max(
        abs(sum(data) - sum([*data[:i], 1 - data[i], *data[i + 1 :]])) / m
        for data in itertools.product((0, 1), repeat=m)
        for i in range(m)
    )
    signed = 2.0 / m
    return Truth(
        "right and tight" if found == 1.0 / m else "wrong",
        "For queries with values in [0, 1] one replaced record moves the average by at most 1/m, and some do: "
        f"the largest over all samples of m = {m} is {found:g}. A query with values in [-1, 1] moves by "
        f"{signed:g}: twice as much.",
        {"largest": found, "with values in [-1, 1]": signed},
    )


def check_privacy() -> Truth:
    """What K answers cost, with epsilon divided and not, exactly."""
    entry = find("statistical_queries")
    loss = entry.true_loss(*entry.default_pair)
    whole = entry.budget_not_divided.true_loss(*entry.default_pair)
    assert loss is not None
    assert whole is not None
    return Truth(
        "right and tight" if math.isclose(loss, 1.0) else "right and loose" if loss < 1.0 else "wrong",
        "K Laplace noises of scale $K / (\\varepsilon m)$ are epsilon together, and a record that counts in every "
        "query "
        f"costs all of it: exactly {loss:.4f} of epsilon = 1 for K = 3. With $\\mathrm{{Lap}}(1 / (\\varepsilon m))$ "
        f"for "
        f"each it is {whole:.4f}.",
        {"divided": loss, "not divided": whole},
    )


def learner_losses(twin: str = "") -> dict[str, tuple[float, float]]:
    """The exact loss of each learner where it was audited: of the hypothesis, of a twin's too, and of all answers."""
    found = {}
    for table in tomllib.loads(SPEC.read_text(encoding="utf-8"))["audit"]:
        if table["mechanism"].endswith(":sq_learner"):
            given, pair = table["parameters"], (table["pair"]["first"], table["pair"]["second"])
            name = str(given["learner"])
            analyst = f"dpaudit.catalogue.learning.learners:{name.upper().replace(' ', '_')}"
            asked = {"epsilon": given["epsilon"], "analyst": analyst}
            told = find("sq_learner" + twin).true_loss(*pair, given), find("adaptive_laplace").true_loss(*pair, asked)
            assert told[0] is not None
            assert told[1] is not None
            found[name] = told[0], told[1]
    return found


def check_any_computation() -> Truth:
    """The learners whole: the hypothesis alone, all answers, and the same with half the noise."""
    losses, half = learner_losses(), learner_losses(".half_noise")
    largest = max(max(both) for both in losses.values())
    kept = all(told <= answers + 1e-12 for told, answers in losses.values())
    return Truth(
        ("right and tight" if largest > 0.99 else "right and loose") if kept and largest <= 1.0 + 1e-9 else "wrong",
        "Queries may be chosen by the answers so far, and the hypothesis is one more function of them. On the audited "
        "pairs the hypothesis alone loses, of epsilon = 1, exactly "
        + ", ".join(f"{told:.3f} ({name})" for name, (told, _) in losses.items())
        + "; all answers lose "
        + ", ".join(f"{answers:.3f}" for _, answers in losses.values())
        + "; the hypothesis with half the noise "
        + ", ".join(f"{told:.3f}" for told, _ in half.values())
        + ". A decision list loses less: a record that a rule decides is in no later query. What does not divide "
        "epsilon over every answer is refuted: answers asked again until they are clear, only the last one charged, or "
        "an error that is released exactly beside the hypothesis.",
        {f"{name}, hypothesis": told for name, (told, _) in losses.items()}
        | {f"{name}, answers": answers for name, (_, answers) in losses.items()},
    )


def check_one_answer() -> Truth:
    """The tail of one Laplace noise at the bound of the notes, exactly."""
    scale = QUERIES / (EPSILON * 1000)
    bound = scale * math.log(1.0 / BETA)
    missed = math.exp(-bound / scale)
    return Truth(
        "right and tight" if math.isclose(missed, BETA) else "wrong",
        "Theorem 2.6 for one query, with equality: $\\mathrm{Lap}(b)$ is beyond $b \\ln(1/\\beta)$ with probability "
        f"beta exactly. For K = {QUERIES}, epsilon = {EPSILON:g} and m = 1,000 the bound is {bound:.5f}, and it is "
        f"missed with probability {missed:.4f}.",
        {"bound": bound, "missed": missed},
    )


def check_all_answers() -> Truth:
    """The same for K noises at once."""
    one = math.exp(-math.log(1.0 / BETA))
    together = 1.0 - (1.0 - one) ** QUERIES
    repaired = 1.0 - (1.0 - BETA / QUERIES) ** QUERIES
    ten = 1.0 - (1.0 - BETA) ** 10
    return Truth(
        "not provable as argued" if together > BETA >= repaired else "right and tight",
        f"ln(1/beta) is enough for each query by itself: it fails with probability {one:g} exactly. That one of K "
        f"independent noises does has probability $1 - (1 - \\beta)^K$: {together:.4f} for K = 3 and {ten:.4f} for "
        f"K = 10. With ln(K/beta), as the theorem itself has it, it is {repaired:.4f}, below beta.",
        {"one": one, "K = 3": together, "K = 10": ten, "with ln(K/beta)": repaired},
    )


def needed(queries: int, tolerance: float, beta: float) -> int:
    """The least m at which K independent queries of expectation 1/2 are all within tau/2 with probability 1 - beta.

    The deviation is compared with tau/2 exactly, by binomial tails; by bisection over whole multiples of 20 records.
    """

    def fails(m: int) -> bool:
        beyond = float(2.0 * binom.cdf(math.ceil(m * (0.5 - tolerance / 2.0)) - 1, m, 0.5))
        return 1.0 - (1.0 - beyond) ** queries > beta

    low, high = 0, math.ceil(2.0 / tolerance**2 * math.log(2.0 * queries / beta) / 20)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fails(20 * middle) else (low, middle)
    return 20 * high


def overfitted(queries: int, epsilon: float, samples: int, seed: int) -> float:
    """The mean excess of the last of K queries over its expectation, 1/2, where it is chosen by the answers before.

    The others ask for the share of ones in each of K - 1 fair bits; the last one for the share of records whose bits
    agree more often than not with what those answers were nearer to. m is that of the theorem.
    """
    rng, excess = np.random.default_rng(seed), 0.0
    records = sample_size(queries, TOLERANCE, epsilon, BETA)
    for _ in range(samples):
        bits = rng.integers(2, size=(records, queries - 1), dtype=np.int8)
        answers = bits.mean(axis=0) + rng.laplace(scale=queries / (epsilon * records), size=queries - 1)
        agree = np.where(answers > 0.5, 1, -1) @ (2.0 * bits.T - 1.0) > 0.0
        excess += float(agree.mean()) - 0.5
    return excess / samples


def check_sample() -> Truth:
    """Hoeffding's sample against the exact one, and adaptive queries."""
    least = needed(QUERIES, TOLERANCE, BETA)
    hoeffding = math.ceil(2.0 / TOLERANCE**2 * math.log(2.0 * QUERIES / BETA))
    loud, calm = overfitted(800, 100.0, 2, seed=1), overfitted(100, EPSILON, 2, seed=2)
    tight = least <= hoeffding < 2 * least and loud > TOLERANCE
    return Truth(
        "right" if tight else "right and loose" if least <= hoeffding else "wrong",
        "By Hoeffding's inequality, with constants: $m = \\frac{2}{\\tau^2} \\ln\\frac{2K}{\\beta}$. For K = "
        f"{QUERIES}, tau = {TOLERANCE}, beta = {BETA} that is {hoeffding:,}; queries of expectation 1/2 need "
        f"{least:,}. "
        "For queries that are chosen by the answers before them it does not follow so: with next to no noise (epsilon "
        "= "
        f"100, K = 800) the average of the last one was {loud:.3f} above its expectation, more than tau, at the m of "
        f"the theorem. The noise itself helps: with epsilon = 1 and K = 100 it was {calm:.3f} (notes 001, "
        f"generalization "
        "via differential privacy).",
        {"Hoeffding": hoeffding, "exact": least, "adaptive, epsilon = 100": loud, "adaptive, epsilon = 1": calm},
    )


def _off(records: int, queries: int, epsilon: float, distance: float) -> float:
    """The probability that a query with the true answer 1/2 comes out further off than `distance`: sample and noise."""
    counts = np.arange(records + 1)
    shift, scale = counts / records - 0.5, queries / (epsilon * records)

    def tail(gap: Floats) -> Floats:
        near = np.exp(-np.abs(gap) / scale) / 2.0
        return np.where(gap > 0.0, near, 1.0 - near)

    outside = tail(distance - shift) + tail(distance + shift)
    return float(binom.pmf(counts, records, 0.5) @ outside)


def check_triangle() -> Truth:
    """The two errors together, exactly, at the m of the proof."""
    epsilon = 0.1  # the noise decides the sample, as it does for small epsilon
    records = math.ceil(
        max(
            2.0 * QUERIES / (epsilon * TOLERANCE) * math.log(1.0 / BETA),
            2.0 / TOLERANCE**2 * math.log(2.0 * QUERIES / BETA),
        )
    )
    half, whole = (_off(records, QUERIES, epsilon, distance) for distance in (TOLERANCE / 2.0, TOLERANCE))
    return Truth(
        "not provable as argued" if half > BETA >= whole else "right and tight",
        f"Two errors of at most tau/2 make tau, not tau/2, and that is all the theorem needs. At m = {records:,} (K = "
        f"{QUERIES}, tau = {TOLERANCE}, epsilon = {epsilon}, beta = {BETA}) one answer is further off than tau/2 with "
        f"probability {half:.4f}, above beta, and further off than tau with {whole:.4f}. Four times the sample "
        "gives tau/2 as well: the O(.) takes it up.",
        {"m": records, "beyond tau/2": half, "beyond tau": whole},
    )


def check_polynomial() -> Truth:
    """The sample of the theorem for smaller and smaller beta."""
    sizes = [sample_size(QUERIES, TOLERANCE, EPSILON, beta) for beta in (0.1, 1e-3, 1e-6)]
    growth = sizes[2] / sizes[0]
    return Truth(
        "right and loose" if growth < 10.0 else "right and tight",
        "It asks for less than the theorem gives: the sample grows with ln(1/beta). For beta = 0.1, 0.001 and "
        f"0.000001 it is {sizes[0]:,}, {sizes[1]:,} and {sizes[2]:,} records: {growth:.1f} times as many for "
        "100,000 times less risk.",
        {"m at 0.1": sizes[0], "m at 1e-6": sizes[2], "growth": growth},
    )
