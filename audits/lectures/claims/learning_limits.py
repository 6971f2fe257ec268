"""What statistical queries cannot learn, parities, and what can be learned privately without them.

Sources: Kearns 1998 (parities need exponentially many queries); Blum, Furst, Jackson, Kearns, Mansour & Rudich 1994;
Kasiviswanathan, Lee, Nissim, Raskhodnikova & Smith 2011, What can we learn privately? (KLNRS: parities are privately
learnable, any finite class with a sample that grows with the log of its size).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from scipy import stats
from scipy.linalg import hadamard

from audits.lectures.claims.statement import Figure, Truth
from dpaudit.catalogue.learning.learners import LEARNERS
from dpaudit.catalogue.learning.queries import sample_size

Floats = npt.NDArray[np.float64]

EPSILON, ALPHA, BETA = 1.0, 0.1, 0.05
TAU = 0.1


def answers(zero: Floats, one: Floats) -> Floats:
    """The expectation of a query under each parity y = <s, x> mod 2 and uniform x: psi(x, 0) and psi(x, 1) by x.

    It is the mean of the two, plus the Fourier coefficient at s of half their difference.
    """
    signs = hadamard(len(zero), dtype=float)  # row s: 1 where the parity of x is 0, -1 where it is 1
    found = np.mean(zero + one) / 2.0 + signs @ (zero - one) / (2.0 * len(zero))
    return np.asarray(found, float)


def queries(bits: int, rng: np.random.Generator) -> Iterator[tuple[Floats, Floats]]:
    """A family of queries on {0, 1}^bits: random ones, those of the learners of the catalogue, each parity itself,
    and one whose answers are spread over as many parities as can be: a bent function of four bits.
    """
    x, size = np.arange(2**bits), 2**bits
    for _ in range(40):
        yield rng.random(size), rng.random(size)
        yield rng.integers(2, size=size).astype(float), rng.integers(2, size=size).astype(float)
    for name in ("threshold", "conjunction", "halfspace"):
        asking = LEARNERS[name].start(bits, TAU)
        try:
            query = next(asking)
            while True:
                yield query(x, np.zeros(size)).astype(float), query(x, np.ones(size)).astype(float)
                query = asking.send(0.5)
        except StopIteration:
            pass
    bent = 1.0 - 2.0 * ((x & x >> 1 & 1) ^ (x >> 2 & x >> 3 & 1))
    for sign in (bent, *hadamard(size, dtype=float)[rng.integers(1, size, 8)]):
        yield (1.0 + sign) / 2.0, (1.0 - sign) / 2.0


def told_apart(bits: int) -> tuple[int, int]:
    """The most parities whose answer is more than TAU from one common answer, over the family; and its size."""
    most = count = 0
    for zero, one in queries(bits, np.random.default_rng(bits)):
        common = float(np.mean(zero + one)) / 2.0
        most = max(most, int(np.sum(np.abs(answers(zero, one)[1:] - common) > TAU)))
        count += 1
    return most, count


def eliminated(bits: int, records: int, samples: int, seed: int) -> float:
    """How often Gaussian elimination finds the parity from so many noiseless records: their vectors have full rank."""
    rng, full = np.random.default_rng(seed), 0
    for _ in range(samples):
        rows = [int(row) for row in rng.integers(2**bits, size=records)]
        rank = 0
        for place in range(bits):
            pivot = next((row for row in rows if row >> place & 1), None)
            if pivot is not None:
                rank += 1
                rows = [row ^ pivot if row >> place & 1 else row for row in rows if row != pivot]
        full += rank == bits
    return full / samples


def by_exponential_mechanism(bits: int, records: int, samples: int, seed: int) -> float:
    """How likely the exponential mechanism over all parities misses the true one: exact given each sample."""
    rng, signs, missed = np.random.default_rng(seed), hadamard(2**bits, dtype=float), 0.0
    for _ in range(samples):
        counts = rng.multinomial(records, np.full(2**bits, 2.0**-bits))
        wrong = (records - signs @ counts) / 2.0  # of the parity s where all labels are 0: the target is s = 0
        weights = np.exp(-EPSILON / 2.0 * wrong)
        missed += float(weights[1:].sum() / weights.sum())
    return missed / samples


def check_parities() -> Truth:
    """Counts the parities that a query tells apart, and learns them by other means."""
    texts, numbers, held = [], {}, True
    limit = 1.0 / (4.0 * TAU**2)
    for bits in (6, 7, 8):
        most, count = told_apart(bits)
        held = held and most <= limit
        texts.append(f"{most} of {2**bits - 1} for d = {bits} ({count} queries, each enumerated)")
        numbers[f"told apart, d = {bits}"] = most
    found = eliminated(8, 18, 400, seed=1)
    by_queries = sample_size(255, 0.25, EPSILON, BETA)
    enough = next(m for m in range(8, 400, 8) if by_exponential_mechanism(8, m, 60, seed=m) <= BETA)
    return Truth(
        "right and loose" if held and enough < by_queries else "wrong",
        "It cannot be turned round: parities of d bits are privately learnable (KLNRS 2011, even efficiently), but "
        "not by "
        "statistical queries. For "
        rf"uniform $x$, a query's answers under the $2^d$ parities differ from one common answer by Fourier "
        rf"coefficients; "
        rf"by Parseval at most $1/(4\tau^2)$, here {limit:.0f}, are off by more than $\tau = {TAU}$. The most that "
        rf"were: "
        + ", ".join(texts)
        + rf". So K queries with $K < 4\tau^2 (2^d - 1)$ leave it open. Gaussian elimination, no such learner, found "
        f"the parity of 8 bits from 18 records in {found:.1%} of 400 samples. Privately, the exponential mechanism "
        f"over "
        f"all 256 needs m = {enough} for epsilon = 1, beta = {BETA}; by asking for all 255 correlations it would be "
        f"{by_queries:,}.",
        numbers | {"elimination": found, "exponential mechanism": enough, "by queries": by_queries},
    )


# --- theorem 4.1 of notes 002 -----------------------------------------------------------------------------------


def missed_point(size: int, records: int) -> float:
    """How likely the exponential mechanism over `size` point functions misses an error ALPHA: exact.

    The target holds 2 ALPHA of the distribution and the rest is a point with the label 0 outside all of them: every
    other point function errs on 2 ALPHA, and on as many records as hit the target.
    """
    hits = np.arange(records + 1)
    others = np.exp(math.log(size - 1) - EPSILON / 2.0 * hits)
    return float(stats.binom.pmf(hits, records, 2.0 * ALPHA) @ (others / (1.0 + others)))


def records_needed(size: int) -> int:
    """The least m at which that is at most BETA, by bisection: it falls with m."""
    low, high = 0, general_sample(size)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if missed_point(size, middle) <= BETA else (middle, high)
    return high


def general_sample(size: int) -> int:
    """The m that suffices for any class of `size` hypotheses: (8 / (epsilon alpha)) ln(2 size / beta), epsilon <= 1."""
    return math.ceil(8.0 / (EPSILON * ALPHA) * math.log(2.0 * size / BETA))


SIZES = (2**4, 2**8, 2**16, 2**32)


def check_universe() -> Truth:
    """The sample of the exponential mechanism over point functions, for larger and larger universes."""
    needed, general = [records_needed(size) for size in SIZES], [general_sample(size) for size in SIZES]
    plain = math.ceil(math.log(BETA) / math.log1p(-2.0 * ALPHA))
    steps = [(needed[i + 1] - needed[i]) / math.log2(SIZES[i + 1] / SIZES[i]) for i in range(3)]
    within = all(a <= b for a, b in zip(needed, general, strict=True))
    return Truth(
        ("right and tight" if min(steps) > 0.5 * max(steps) else "right and loose") if within else "wrong",
        r"By the exponential mechanism over all hypotheses, one record moving an error by 1: "
        r"$m = \frac{8}{\varepsilon\alpha}\ln\frac{2|H|}{\beta}$ suffices for any finite class (epsilon at most 1), "
        r"and on $|X|$ points one "
        r"of VC dimension $v$ has at most $|X|^v$ hypotheses that differ. Point functions show the logarithm: without "
        f"privacy {plain} records are enough for any universe (error {ALPHA}, beta = {BETA}), with epsilon = 1 exactly "
        + ", ".join(f"{m} for {size:,}" for m, size in zip(needed, SIZES, strict=True))
        + f" points: {steps[-1]:.1f} more for each doubling, where the formula has "
        f"{(general[-1] - general[-2]) / 16:.1f}. It says nothing of the time it takes.",
        {f"m at {size}": m for size, m in zip(SIZES, needed, strict=True)}
        | {"without privacy": plain, "a doubling": steps[-1]},
    )


def _draw(axes: Axes) -> None:
    doublings = np.arange(2, 41, 2)
    axes.plot(doublings, [records_needed(2 ** int(k)) for k in doublings], color="C0", label="measured, exactly")
    axes.plot(doublings, [general_sample(2 ** int(k)) for k in doublings], color="C1", label="the formula")
    axes.axhline(math.log(BETA) / math.log1p(-2.0 * ALPHA), color="C5", linestyle=":", label="without privacy")
    axes.set(xlabel="log2 of the size of the universe", ylabel="records m")
    axes.legend(frameon=False)


UNIVERSE = Figure(
    "Point functions learned by the exponential mechanism: the sample grows with the log of the universe.", _draw
)
