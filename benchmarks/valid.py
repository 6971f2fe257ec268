"""How often the whole pipeline, search included, refutes a claim that is exactly true."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from benchmarks.tables import print_table

AUDITS = 2_000
RUNS = 20_000
CONFIDENCE = 0.95
FALSE_ALARM = 1e-6  # of each line: that more are refuted although no more than 5 % should be
LEAST = {"laplace": 50, "randomised_response": 50}  # of 2,000: the level is used, not thrown away
MECHANISMS = ("laplace", "randomised_response", "report_noisy_max", "above_threshold", "gaussian")
BATCH = 25  # audits of one task


@dataclass(frozen=True, slots=True)
class Count:
    """What some audits of one mechanism came to."""

    refuted: int
    bounds: tuple[float, ...]
    cpu_s: float


def true_claim(name: str) -> tuple[Any, Any]:
    """A mechanism of the catalogue, and the claim that its default pair meets exactly."""
    from dpaudit import ApproximateDP, PureDP
    from dpaudit.catalogue import find

    entry = find(name)
    promised, loss = entry.claim(), entry.true_epsilon(*entry.default_pair)
    assert loss is not None
    return entry, PureDP(loss) if promised.delta == 0.0 else ApproximateDP(loss, promised.delta)


def refutations(name: str, seeds: range) -> Count:
    """The audits with these seeds."""
    from dpaudit.api import audit

    entry, claim = true_claim(name)
    start = time.process_time()
    results = [
        audit(entry, pair=entry.default_pair, claim=claim, runs=RUNS, confidence=CONFIDENCE, seed=seed, n_jobs=1)
        for seed in seeds
    ]
    bounds = tuple(result.certificate.lower for result in results)
    return Count(sum(result.certificate.refuted for result in results), bounds, time.process_time() - start)


def limit(audits: int) -> int:
    """The most refutations that chance explains: the 1 - 1e-6 quantile of Bin(audits, 0.05)."""
    from scipy.stats import binom

    return int(binom.ppf(1.0 - FALSE_ALARM, audits, 1.0 - CONFIDENCE))


def run(quick: bool) -> None:
    """Prints the table; `quick` makes a tenth of the audits."""
    import numpy as np
    from joblib import Parallel, delayed

    audits = AUDITS // 10 if quick else AUDITS
    rows = []
    for name in MECHANISMS:
        parts = [range(start, min(start + BATCH, audits)) for start in range(0, audits, BATCH)]
        counts = Parallel(n_jobs=2)(delayed(refutations)(name, part) for part in parts)
        refuted = sum(count.refuted for count in counts)
        least = LEAST.get(name, 0) * audits // AUDITS
        claim = true_claim(name)[1]
        bound = np.median([bound for count in counts for bound in count.bounds])
        rows.append(
            (
                name,
                f"{claim.epsilon:.4f}" + (f", delta {claim.delta:g}" if claim.delta else ""),
                f"{refuted}",
                f"{least} to {limit(audits)}",
                "yes" if least <= refuted <= limit(audits) else "NO",
                f"{bound / claim.epsilon:.3f}",
                f"{sum(count.cpu_s for count in counts) / audits * 1e3:.1f}",
            )
        )
    header = (
        "mechanism",
        "claim = loss of the pair",
        "refuted",
        "allowed",
        "met",
        "median bound / loss",
        "CPU ms an audit",
    )
    print_table(f"Valid: {audits:,} audits of {RUNS:,} runs each at confidence {CONFIDENCE}", header, rows)
