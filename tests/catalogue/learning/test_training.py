"""One private training and the mistakes in it: what each line does, by hand, and the exact losses by other ways.

One test is random; it fails by chance with probability at most 1e-9.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from dpaudit.catalogue import find
from dpaudit.catalogue.learning.descent import training
from dpaudit.catalogue.learning.descent.programs import Descent
from dpaudit.losses.distribution import subsampled_gaussian_epsilon

PARENT = find("private_training")
DELTA, NOISE = 0.01, 1.25
GRID = 0.04  # of both outputs; the rule has an error of the order of its square, for the integrands have a corner
AT = Descent(clip=2.0, size=4.0, noise_multiplier=3.0)
BATCH = [[[3.0, 4.0], 1.0], [[1.0, 0.0], -1.0], [[0.0, 8.0], 1.0]]
SUMS = {  # of the batch, a clip norm of 2: (1.2, 1.6) - (1, 0) + (0, 2)
    "": (0.2, 3.6),
    "no_clipping": (2.0, 12.0),
    "clip_by_batch": (0.5 * 2 / math.hypot(0.5, 3.0), 3.0 * 2 / math.hypot(0.5, 3.0)),
    "layers": (2.0 - 1.0, 2.0 + 2.0),
    "no_clip_factor": (0.2, 3.6),
    "noise_divided_twice": (0.2, 3.6),
    "microbatches": (1.0 * 2 / math.sqrt(5.0), 2.0 * 2 / math.sqrt(5.0) + 2.0),  # (1, 2) and (0, 8)
    "one_seed": (0.2, 3.6),
    "shuffled": (0.2, 3.6),
    "last_partial_batch": (0.2 / 3, 3.6 / 3),
    "sampled_size": (0.2 / 3, 3.6 / 3),
    "padding": (2.0 - 1.0, 8.0 / 3 + 8.0),  # the norms seen are 3, 1 and 0
    "nan_gradients": (0.2, 3.6),
    "batch_norm": (5 / 3 * 1.0 + 1 / 3 * 2 / math.hypot(1 / 3, 4) - 4 / 3 * 2 / math.hypot(4 / 3, 4), 0.0),
    "noise_first": (0.2, 3.6),
    "expected_size": (0.05, 0.9),
    "clip_factor": (0.2, 3.6),
}
NOISES = {"no_clip_factor": 3.0} | dict.fromkeys(training.FOR_A_SHARE, 1.5)  # of a deviation of 6 else


def test_every_line_does_what_it_says() -> None:
    assert {twin.rpartition(".")[2] for twin in SUMS if twin} | {"wrong_length"} == set(PARENT.twins)
    for mistake, by_hand in SUMS.items():
        if mistake != "batch_norm":
            assert training.summed(BATCH, AT, 2, mistake) == pytest.approx(by_hand, abs=1e-5), mistake
        assert training.spread(AT, mistake) == NOISES.get(mistake, 6.0), mistake
        assert not training.summed([], AT, 2, mistake).any()
    means = [[1.0, 0.0], 1.0], [[3.0, 0.0], 1.0], [[8.0, 0.0], 0.0]  # around 4: -3 and -1, and one that counts for 0
    assert training.summed(list(means), AT, 2, "batch_norm").tolist() == [-3.0, 0.0]


def test_a_gradient_that_is_not_finite_counts_as_nothing_but_in_its_twin() -> None:
    batch = [*BATCH, [[math.inf, 0.0], 1.0]]
    for mistake in SUMS:
        if mistake not in ("nan_gradients", "batch_norm", "clip_by_batch", "microbatches"):  # which mix records before
            assert np.isfinite(training.summed(batch, AT, 2, mistake)).all(), mistake
    assert np.isnan(training.summed(batch, AT, 2, "nan_gradients")).tolist() == [True, False]


def test_program_and_sampler_show_a_nan_as_often_as_the_canary_joins() -> None:
    entry = PARENT.nan_gradients
    data, rng = entry.default_pair[0], np.random.default_rng(1)
    one = np.array([entry.run(data, rng) for _ in range(300)])
    for released in (one, entry.open().call(data, 3_000, rng)):
        seen = int(np.isnan(released).any(axis=1).sum())
        assert not np.isnan(released[:, 1::2]).any()
        assert stats.binomtest(seen, len(released), 0.75).pvalue > 5e-10


def subsampled(shift: float, rate: float = 0.5) -> float:
    return subsampled_gaussian_epsilon(DELTA, NOISE / shift, rate, 2)


def naive(mixture: list[tuple[float, float]], alone: list[tuple[float, float]], steps: int = 2) -> float:
    """Epsilon of two steps of (chance, shift in deviations), on a plain grid of both outputs."""
    x = np.arange(-9.0, 13.0, GRID)
    p, q = (sum(chance * stats.norm.pdf(x - shift) for chance, shift in law) for law in (mixture, alone))
    return between(np.outer(p, p), np.outer(q, q), GRID**2)


def between(p: Any, q: Any, cell: float) -> float:
    def excess(epsilon: float) -> float:
        ratio = math.exp(epsilon)
        one, other = (np.maximum(a - ratio * b, 0.0).sum() * cell for a, b in ((p, q), (q, p)))
        return float(max(one, other)) - DELTA

    return float(optimize.brentq(excess, 0.0, 20.0, xtol=1e-6))


def in_batches(left: float, first: tuple[float, float], second: tuple[float, float]) -> float:
    """Left over with a chance, else in one of two batches with (chance, shift), on a plain grid of both outputs."""
    x = np.arange(-9.0, 13.0, GRID)
    alone, one, other = (stats.norm.pdf(x - shift) for shift in (0.0, first[1], second[1]))
    q = np.outer(alone, alone)
    return between(left * q + first[0] * np.outer(one, alone) + second[0] * np.outer(alone, other), q, GRID**2)


def test_exact_losses_have_other_forms() -> None:
    u = 1.0 / NOISE
    forms = {
        "no_clipping": subsampled(2.0),
        "clip_by_batch": subsampled(2.0),
        "layers": subsampled(math.sqrt(2.0)),
        "no_clip_factor": subsampled(1.5),
        "noise_divided_twice": subsampled(2.0),
        "padding": subsampled(2.0),
        "expected_size": subsampled(1.0),
        "noise_first": subsampled(1.0),
        "clip_factor": subsampled(1.0),
        "wrong_length": subsampled(1.0),
        "shuffled": in_batches(0.2, (0.4, 2.0 * u), (0.4, 2.0 * u)),
        # the canary is in the first batch of two, at a weight of 1/2, or alone in the second
        "last_partial_batch": in_batches(0.0, (2 / 3, u), (1 / 3, 2 * u)),
        "microbatches": naive([(0.5, u), (0.25, -u), (0.25, 0.0)], [(0.5, -u), (0.5, 0.0)]),
        "sampled_size": naive([(0.5, 0.0), (1 / 8, 2 * u), (1 / 4, u), (1 / 8, 2 * u / 3)], [(1.0, 0.0)]),
        "batch_norm": naive(
            [(0.5 + 1 / 16, 0.0), (3 / 16, u), (3 / 16, 2 * u), (1 / 16, 3 * u)],
            [(1.0, 0.0)],
        ),
    }
    for name, form in forms.items():
        twin = PARENT.twins[name]
        assert twin.true_loss(*twin.default_pair) == pytest.approx(form, abs=GRID**2), name
    assert PARENT.true_loss(*PARENT.default_pair) == pytest.approx(subsampled(1.0), rel=1e-9)
