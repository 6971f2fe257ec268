"""One training run: what is certified beside published figures, and how often each line is false at a stated 5 %."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.few import (
    ALLOWED,
    ALPHA,
    PARTS,
    REPEATS,
    Answer,
    Bools,
    Floats,
    Rng,
    laplace,
    normal,
    response,
    reveals,
    sometimes,
)
from benchmarks.tables import print_table

DELTA = 1e-5
SEEDS = 20
SIZES = (1_000, 10_000, 100_000)

# Xiang, Wang, Wang & Liu's recorded outcomes at m = 1e3, 1e4, 1e5: mistakes, "Steinke", their own (issue's table 1.2a)
PUBLISHED = (
    ("Gaussian mu .5 (1.993)", 0.5, 1.0, 0.1, (26, 259, 2585), (0.652, 0.928, 1.013), (1.193, 1.744, 1.917)),
    ("Gaussian mu 1 (4.377)", 1.0, 1.0, 0.5, (103, 1034, 10343), (1.163, 1.286, 1.325), (3.756, 4.179, 4.314)),
    ("Gaussian mu 2 (9.997)", 2.0, 1.0, 1.0, (159, 1587, 15866), (1.521, 1.622, 1.654), (9.004, 9.688, 9.900)),
    ("sampled mu 1, q .5 (3.534)", 1.0, 0.5, 0.1, (24, 242, 2423), (0.748, 1.015, 1.098), (2.158, 3.110, 3.400)),
    ("sampled mu 2, q .2 (7.620)", 2.0, 0.2, 0.1, (22, 216, 2156), (0.849, 1.158, 1.248), (4.621, 6.701, 7.333)),
)
# epsilon, mu, and at m = 1e2, 1e3, 1e4, 1e5 the columns "ours" and "f" of table 1.2b; None where it has none
EXPECTED = (
    (1.0, 0.268, (0.0, 0.22, 0.47, 0.66), (0.0, 0.34, 0.60, None)),
    (2.0, 0.502, (0.11, 0.66, 1.06, 1.38), (0.19, 0.97, 1.33, None)),
    (4.0, 0.925, (0.71, 1.52, 2.15, 2.69), (1.35, 2.26, 2.78, None)),
    (8.0, 1.666, (1.67, 2.96, 3.94, 4.78), (3.18, 4.73, 5.54, None)),
)


def run(quick: bool) -> None:
    """Prints the three tables."""
    columns = (
        "setting",
        "m",
        "Steinke",
        "at its counts",
        "certified",
        "Xiang",
        "product at its counts",
        "product",
        "CPU s",
    )
    print_table(
        f"Epsilon of one run at delta 1e-5: median of {SEEDS} seeds, and at the published counts",
        columns,
        published(quick),
    )
    columns = ("epsilon (mu)", "m", "ours", "certified", "expected", "f", "mu certified, read", "expected", "CPU s")
    print_table("Ideal Gaussian audit at delta 1e-5: median of 20 seeds, and at expected counts", columns, ideal(quick))
    columns = ("mechanism", "canaries", "claim", "refuted", "epsilon", "mu", "product line", "of all canaries", "CPU s")
    repeats = REPEATS // 10 if quick else REPEATS
    print_table(f"False of {repeats:,} repeats at a stated 5 % ({ALLOWED} allowed of 2,000)", columns, false(repeats))


def published(quick: bool) -> Iterator[tuple[str, ...]]:
    """Rows of table 1.2a; "certified" is `audit_scores`' bound on the scores of ideal audits."""
    from dpaudit.scores import one_run
    from dpaudit.scores.counts import epsilon_of_mu

    for title, mu, rate, share, mistakes, steinke, xiang in PUBLISHED:
        for m, wrong, anchor, theirs in zip(SIZES, mistakes, steinke, xiang, strict=True):
            start = time.process_time()
            event = "both" if rate == 1.0 else "in"  # who is sampled knows that only high scores tell
            found, products = [], []
            for seed in range(4 if quick else SEEDS):
                rng = np.random.default_rng(seed)
                coins = rng.random(m) < 0.5
                scores = rng.normal(size=m) + mu * (coins & (rng.random(m) < rate))
                right = one_run.ranked(scores, coins, rng, event)
                found.append(one_run.weighted_lower(right, DELTA, ALPHA, event)[0])
                made = round(one_run.SHARE * m)
                guesses = one_run.Guesses(int(right[:made].sum()), made, m, fixed=True)
                products.append(epsilon_of_mu(one_run.mu_lower(guesses, ALPHA), DELTA))
            made = round(share * m)
            counts = one_run.Guesses(made - wrong, made, m, fixed=True)
            theirs_here = epsilon_of_mu(one_run.mu_lower(counts, ALPHA), DELTA)
            told = (f"{theirs_here:.3f}", f"{np.median(products):.3f}") if rate == 1.0 else ("-", "-")
            yield (
                title,
                f"{m:,}",
                f"{anchor:.3f}",
                f"{one_run.epsilon_lower(counts, DELTA, ALPHA):.3f}",
                f"**{np.median(found):.3f}**",
                f"{theirs:.3f}",
                *told,
                f"{time.process_time() - start:.1f}",
            )


def ideal(quick: bool) -> Iterator[tuple[str, ...]]:
    """Rows of table 1.2b. Both bounds are unpaid: designs are known before the run."""
    from dpaudit.claims import GaussianDP
    from dpaudit.scores import one_run
    from dpaudit.scores.counts import epsilon_of_mu

    for epsilon, mu, ours, curve in EXPECTED:
        for m, anchor, read in zip((100, *SIZES), ours, curve, strict=True):
            start = time.process_time()
            found, mus = [], []
            for seed in range(4 if quick else SEEDS):
                rng = np.random.default_rng(seed)
                coins = rng.random(m) < 0.5
                right = one_run.ranked(rng.normal(size=m) + mu * coins, coins, rng)
                found.append(one_run.weighted_lower(right, DELTA, ALPHA)[0])
                mus.append(one_run.parameter_lower(right, GaussianDP(1.0), ALPHA)[0])
            right = Expected(mu, m)
            yield (
                f"{epsilon:g} ({mu})",
                f"{m:,}",
                f"{anchor:.2f}",
                f"**{np.median(found):.2f}**",
                f"{one_run.weighted_lower(right, DELTA, ALPHA)[0]:.2f}",
                "-" if read is None else f"{read:.2f}",
                f"**{epsilon_of_mu(float(np.median(mus)), DELTA):.2f}**",
                f"{epsilon_of_mu(one_run.parameter_lower(right, GaussianDP(1.0), ALPHA)[0], DELTA):.2f}",
                f"{time.process_time() - start:.1f}",
            )


class Expected:
    """Stands for the guesses of an ideal audit, the most extreme first: a part sums to what is right on average."""

    def __init__(self, mu: float, canaries: int) -> None:
        from scipy.special import ndtr

        z = np.linspace(0.0, 12.0, 200_001)
        right, wrong = ndtr(mu / 2.0 - z), ndtr(-mu / 2.0 - z)
        ranks = np.arange(canaries + 1) / canaries
        self.size = canaries
        self.sums = canaries * np.interp(ranks, (right + wrong)[::-1], right[::-1])

    def __getitem__(self, part: slice) -> Expected:
        start, end, _ = part.indices(self.size)
        found = Expected.__new__(Expected)
        found.size, found.sums = end - start, self.sums[start : end + 1]
        return found

    def sum(self) -> float:
        """How many of the part are right, rounded."""
        return round(float(self.sums[-1] - self.sums[0]))


@dataclass(frozen=True, slots=True)
class Boundary:
    """A mechanism that just keeps its claim, and the least epsilon at `delta` and mu that it really has."""

    title: str
    answer: Answer
    claim: Any
    canaries: int
    epsilon: float
    mu: float
    delta: float = DELTA


def boundaries() -> tuple[Boundary, ...]:
    """Every mechanism of the battery."""
    from dpaudit.claims import ApproximateDP, GaussianDP, PureDP
    from dpaudit.claims.calculus import to_gaussian

    one, tight = GaussianDP(1.0), to_gaussian(PureDP(1.0)).mu
    rows = [
        Boundary("null scores", normal(0.0), PureDP(0.0), 200, 0.0, 0.0, 0.0),
        Boundary("null scores", normal(0.0), ApproximateDP(0.0, DELTA), 1_000, 0.0, 0.0),
        Boundary("null scores", normal(0.0), GaussianDP(1e-9), 1_000, 0.0, 0.0),
        Boundary("Laplace", laplace(1.0), PureDP(1.0), 1_000, 1.0, tight, 0.0),
        Boundary("randomised response", response(1.0), PureDP(1.0), 1_000, 1.0, tight, 0.0),
        Boundary("randomised response", response(1.0), ApproximateDP(1.0, DELTA), 1_000, 1.0, math.inf),
        Boundary("independent Gaussian", normal(1.0), one, 1_000, one.epsilon_at(DELTA), 1.0),
        Boundary("independent Gaussian", normal(1.0), one, 10_000, one.epsilon_at(DELTA), 1.0),
    ]
    for (chance, epsilon), m in zip(PARTS, (10_000, 2_000, 1_000, 1_000), strict=True):
        own = math.log(math.exp(epsilon) - DELTA * (1.0 + math.exp(epsilon)) / chance)
        rows.append(Boundary(f"with {chance} RR({epsilon})", sometimes(chance, epsilon), one, m, own, 1.0))
    for k in (10, 20):
        told = reveals(k, 1e-4)
        rows.append(Boundary(f"reveals {k}", told, ApproximateDP(0.0, 1e-4), 10_000, 0.0, math.inf, 1e-4))
    told = both(response(1.0), reveals(10, 1e-4))
    rows.append(Boundary("reveals 10, or RR(1)", told, ApproximateDP(1.0, 1e-4), 10_000, 1.0, math.inf, 1e-4))
    return tuple(rows)


def both(first: Answer, second: Answer) -> Answer:
    """The second's scores where it tells a coin for certain, the first's elsewhere."""

    def answer(coins: Bools, rng: Rng, wealth: float) -> Floats:
        one, other = first(coins, rng, wealth), second(coins, rng, wealth)
        return np.where(other == 0.0, -1.0, np.where(other == 1.0, 2.0, one))

    return answer


def false(repeats: int) -> Iterator[tuple[str, ...]]:
    """How often the claim is refuted, and a bound is above the truth, on the certified and on the product line."""
    from dpaudit.scores import OneRun, audit_scores, one_run
    from dpaudit.scores.one_run import Guesses
    from dpaudit.scores.question import curved

    for each in boundaries():
        start = time.process_time()
        refuted, high, over, alone = 0, 0, 0, [0, 0]
        names = ("one-run-f" if curved(each.claim) else "one-run", "one-run-gaussian")
        for seed in range(repeats):
            rng = np.random.default_rng([each.canaries, seed])
            coins = rng.random(each.canaries) < 0.5
            scores = each.answer(coins, rng, 0.0)
            inside, outside = scores[coins], scores[~coins]
            asked = {"claim": each.claim, "delta": each.delta if curved(each.claim) else None}
            first, mu = audit_scores(
                inside, outside, methods=names, design=OneRun(), **asked, confidence=1.0 - ALPHA, seed=seed
            ).estimates[:2]
            mixing = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])  # as it breaks ties itself
            members = np.arange(each.canaries) < inside.size
            right = one_run.ranked(np.concatenate([inside, outside]), members, mixing)
            refuted += first.p_value <= ALPHA
            high += first.lower > each.epsilon
            over += max(mu.lower, first.detail.get("mu_lower", 0.0)) > each.mu
            for k, made in enumerate((round(one_run.SHARE * each.canaries), each.canaries)):
                guesses = Guesses(int(right[:made].sum()), made, each.canaries, fixed=True)
                alone[k] += each.mu < math.inf and one_run.largest_chance(guesses, each.mu) <= ALPHA
        assert max(refuted, high, over) <= ALLOWED, (each.title, refuted, high, over)
        known = each.mu < math.inf
        yield (
            each.title,
            f"{each.canaries:,}",
            str(each.claim),
            f"{refuted}",
            f"{high}",
            f"{over}" if known else "-",
            *(f"{n} ({100.0 * n / repeats:.1f} %)" if known else "-" for n in alone),
            f"{time.process_time() - start:.0f}",
        )
