"""Learning: the private PAC learner, regularised regression, and regression from statistics."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

from audits.lectures.claims.regressions import REGRESSION
from audits.lectures.claims.statement import Statement, Truth
from dpaudit.catalogue import find
from dpaudit.catalogue.learning.queries import sample_size

Floats = npt.NDArray[np.float64]

HAGHTALAB = "Haghtalab 2020, notes 000"
QUERIES, TOLERANCE, EPSILON, BETA = 3, 0.1, 1.0, 0.05


# --- theorem 3.2 ------------------------------------------------------------------------------------------------


def learner_failures(records: int, samples: int, seed: int) -> tuple[float, float]:
    """How often the learner of the threshold 5 on {0, ..., 7} misses its error 2 tau, and any answer the tolerance.

    It searches for t by asking for the share of records with x < t and label 1, as the entry `sq_learner` does.
    """
    rng = np.random.default_rng(seed)
    chances = np.full(8, 1 / 8)
    counts = rng.multinomial(records, chances, size=samples)
    positive = np.concatenate([np.zeros((samples, 1)), np.cumsum(counts * (np.arange(8) >= 5), axis=1)], axis=1)
    truth = np.concatenate([[0.0], np.cumsum(chances * (np.arange(8) >= 5))])
    low, missed = np.zeros(samples, int), np.zeros(samples, bool)
    for step in (4, 2, 1):
        asked = low + step
        answer = positive[np.arange(samples), asked] / records
        answer += rng.laplace(scale=QUERIES / (EPSILON * records), size=samples)
        missed |= np.abs(answer - truth[asked]) > TOLERANCE
        low = np.where(answer > TOLERANCE, low, asked)
    return float(np.mean(np.abs(low - 5) / 8.0 > 2.0 * TOLERANCE)), float(np.mean(missed))


def _sample_size() -> Truth:
    records = sample_size(QUERIES, TOLERANCE, EPSILON, BETA)
    failed, missed = learner_failures(records, 20_000, seed=0)
    few, _ = learner_failures(records // 40, 20_000, seed=1)
    held = failed <= BETA and missed <= BETA
    return Truth(
        ("right and loose" if missed < BETA / 2 else "right and tight") if held else "wrong",
        "With constants: m = max((2K / (epsilon tau)) ln(2K / beta), (2 / tau^2) ln(4K / beta)) suffices. For "
        f"binary search over 8 thresholds (K = {QUERIES}, tau = {TOLERANCE}, epsilon = {EPSILON:g}, beta = "
        f"{BETA}) that is m = {records:,}; in 20,000 simulated samples an answer missed its tolerance in "
        f"{missed:.2%} and the learner its error 2 tau in {failed:.2%} of them. With m = {records // 40} it "
        f"failed in {few:.0%}.",
        {"m": records, "missed": missed, "failed": failed, "failed with a fortieth": few},
    )


def _each_or_all() -> Truth:
    one = math.exp(-math.log(1.0 / BETA))
    together = 1.0 - (1.0 - one) ** QUERIES
    repaired = 1.0 - (1.0 - BETA / QUERIES) ** QUERIES
    ten = 1.0 - (1.0 - BETA) ** 10
    return Truth(
        "not provable as argued" if together > BETA >= repaired else "right and tight",
        f"ln(1/beta) is enough for one query: |Lap(b)| exceeds b ln(1/beta) with probability {one:g} exactly. "
        f"That one of K independent noises does has probability 1 - (1 - beta)^K: {together:.4f} for K = 3 and "
        f"{ten:.4f} for K = 10. With ln(K/beta), as the theorem itself states, it is {repaired:.4f}, below beta.",
        {"one": one, "K = 3": together, "K = 10": ten, "with ln(K/beta)": repaired},
    )


def _off(records: int, queries: int, epsilon: float, distance: float) -> float:
    """The probability that a query with the true answer 1/2 comes out further off than `distance`: sample and noise."""
    from scipy.stats import binom

    counts = np.arange(records + 1)
    shift, scale = counts / records - 0.5, queries / (epsilon * records)

    def tail(gap: Floats) -> Floats:
        near = np.exp(-np.abs(gap) / scale) / 2.0
        return np.where(gap > 0.0, near, 1.0 - near)

    outside = tail(distance - shift) + tail(distance + shift)
    return float(binom.pmf(counts, records, 0.5) @ outside)


def _triangle() -> Truth:
    epsilon = 0.1  # the noise decides the sample, as it does for small epsilon
    records = math.ceil(
        max(
            2.0 * QUERIES / (epsilon * TOLERANCE) * math.log(1.0 / BETA),
            2.0 / TOLERANCE**2 * math.log(2.0 * QUERIES / BETA),
        )
    )
    half, whole = (_off(records, QUERIES, epsilon, distance) for distance in (TOLERANCE / 2.0, TOLERANCE))
    return Truth(
        "wrong" if half > BETA >= whole else "right and tight",
        f"A slip in the last line: two errors of at most tau/2 make tau, not tau/2. At m = {records:,} (K = "
        f"{QUERIES}, tau = {TOLERANCE}, epsilon = {epsilon}, beta = {BETA}) one answer is further off than tau/2 with "
        f"probability {half:.4f}, above beta, and further off than tau with {whole:.4f}. The theorem only needs tau.",
        {"m": records, "beyond tau/2": half, "beyond tau": whole},
    )


def _query_sensitivity() -> Truth:
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


def _query_privacy() -> Truth:
    entry = find("statistical_queries")
    loss = entry.true_loss(*entry.default_pair)
    whole = entry.budget_not_divided.true_loss(*entry.default_pair)
    assert loss is not None
    assert whole is not None
    return Truth(
        "right and tight" if math.isclose(loss, 1.0) else "right and loose" if loss < 1.0 else "wrong",
        "K Laplace noises of scale K / (epsilon m) are epsilon together, and a record that counts in every query "
        f"costs all of it: exactly {loss:.4f} of epsilon = 1 for K = 3. With Lap(1 / (epsilon m)) for each it is "
        f"{whole:.4f}. (In the notes the scale K / (epsilon m) stands where their own definition has the epsilon.)",
        {"divided": loss, "not divided": whole},
    )


def _polynomial() -> Truth:
    sizes = [sample_size(QUERIES, TOLERANCE, EPSILON, beta) for beta in (0.1, 1e-3, 1e-6)]
    growth = sizes[2] / sizes[0]
    return Truth(
        "right and loose" if growth < 10.0 else "right and tight",
        "It asks for less than the theorem gives: the sample grows with ln(1/beta). For beta = 0.1, 0.001 and "
        f"0.000001 it is {sizes[0]:,}, {sizes[1]:,} and {sizes[2]:,} records: {growth:.1f} times as many for "
        "100,000 times less risk.",
        {"m at 0.1": sizes[0], "m at 1e-6": sizes[2], "growth": growth},
    )


def _finite_universe() -> Truth:
    """Thresholds on a universe of U points, by the exponential mechanism on the errors of the sample: one record, 1."""
    alpha, samples = 0.1, 40
    sizes, failures = {}, {}
    for size in (2**6, 2**11, 2**16):
        records = sizes[size] = math.ceil(8.0 / (EPSILON * alpha) * math.log(2.0 * size / BETA))
        rng, half, missed = np.random.default_rng(size), size // 2, 0.0
        for _ in range(samples):
            held = np.bincount(rng.integers(0, size, records), minlength=size)
            seen = np.concatenate([[0], np.cumsum(held)])
            errors = np.abs(seen - seen[half])  # of the threshold t: the records between t and the true one
            weights = np.exp(-EPSILON / 2.0 * errors)
            missed += float(weights[np.abs(np.arange(size + 1) - half) > alpha * size].sum() / weights.sum())
        failures[size] = missed / samples
    worst = max(failures.values())
    return Truth(
        ("right and loose" if worst < BETA / 2.0 else "right and tight") if worst <= BETA else "wrong",
        "By the exponential mechanism over all hypotheses. For thresholds on a universe of U points (epsilon = "
        f"{EPSILON:g}, error {alpha}, beta = {BETA}) m = (8 / (epsilon alpha)) ln(2 U / beta) samples suffice: "
        + ", ".join(f"{records:,} for U = {size:,}" for size, records in sizes.items())
        + f". With them it misses the error with probability {worst:.0e} at most, over {samples} simulated samples of "
        "each size. For other classes their VC dimension multiplies ln(U). It says nothing of the time it takes.",
        {f"m at {size}": records for size, records in sizes.items()} | {"largest failure": worst},
    )


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        "the sample of the private PAC learner",
        f"{HAGHTALAB}, theorem 3.2",
        "m = O((K / (epsilon tau)) ln(K / beta) + (1 / tau^2) ln(K / beta)) samples suffice",
        "right and loose",
        ("derived", "computed"),
        _sample_size,
        ("PAC learner of a threshold",),
    ),
    Statement(
        "each query is a 1/m-sensitive average",
        f"{HAGHTALAB}, proof of theorem 3.2",
        "Delta f_i <= 1/m",
        "right and tight",
        ("derived", "computed"),
        _query_sensitivity,
    ),
    Statement(
        "K answers at epsilon / K each",
        f"{HAGHTALAB}, proof of theorem 3.2",
        "Lap(K / (epsilon m)) on each of K queries is epsilon-DP for all of them",
        "right and tight",
        ("derived", "audited"),
        _query_privacy,
        ("three statistical queries", "statistical queries, budget not divided"),
    ),
    Statement(
        "ln(1/beta) for all queries",
        f"{HAGHTALAB}, proof of theorem 3.2",
        "m >= (2K / (epsilon tau)) ln(1/beta): each noise is at most tau/2 with probability 1 - beta, and so all are",
        "not provable as argued",
        ("derived", "computed"),
        _each_or_all,
    ),
    Statement(
        "tau/2 after the triangle inequality",
        f"{HAGHTALAB}, proof of theorem 3.2, last line",
        "with probability 1 - beta the noisy answer is within tau/2 of the true expectation",
        "wrong",
        ("derived", "computed"),
        _triangle,
    ),
    Statement(
        "a sample polynomial in 1/beta",
        f"{HAGHTALAB}, definition 3.1",
        "poly(1/alpha, 1/beta, 1/epsilon, size of H) samples",
        "right and loose",
        ("computed",),
        _polynomial,
    ),
    Statement(
        "learning on a finite universe",
        "CS 208, notes 002, theorem 4.1",
        "anything learnable on a finite universe is learnable with DP, with n larger by the log of its size at most",
        "right and loose",
        ("derived", "computed"),
        _finite_universe,
    ),
    *REGRESSION,
)
