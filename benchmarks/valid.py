"""How often the whole pipeline, search included, refutes a claim that is exactly true."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any

from benchmarks.classes.boundary import Sound, sound
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
    undecided: int
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
    """The audits of an entry of the catalogue with these seeds."""
    entry, claim = true_claim(name)
    return counted(entry, entry.default_pair, claim, seeds)


def nasty_refutations(place: int, seeds: range, runs: int = RUNS) -> Count:
    """The audits of a mechanism of `benchmarks.classes.boundary` with these seeds."""
    from dpaudit import PureDP, batched

    case = sound()[place]
    return counted(batched(case.sampler), (1, 0), PureDP(case.epsilon), seeds, runs)


def counted(mechanism: Any, pair: tuple[Any, Any], claim: Any, seeds: range, runs: int = RUNS) -> Count:
    """How many of some audits refute; an audit that ends without a verdict refutes nothing."""
    from dpaudit import UnsoundAudit
    from dpaudit.api.audits import audit

    start = time.process_time()
    refuted, bounds, undecided = 0, [], 0
    for seed in seeds:
        try:
            result = audit(mechanism, pair=pair, claim=claim, runs=runs, confidence=CONFIDENCE, seed=seed, n_jobs=1)
        except UnsoundAudit:
            undecided += 1
            continue
        refuted += result.certificate.refuted
        bounds.append(result.certificate.lower)
    return Count(refuted, tuple(bounds), undecided, time.process_time() - start)


def limit(audits: int) -> int:
    """The most refutations that chance explains: the 1 - 1e-6 quantile of Bin(audits, 0.05)."""
    from scipy.stats import binom

    return int(binom.ppf(1.0 - FALSE_ALARM, audits, 1.0 - CONFIDENCE))


def run(quick: bool) -> None:
    """Prints the table; `quick` makes a tenth of the audits."""
    import numpy as np
    from joblib import Parallel, delayed

    _nasty(AUDITS // 10 if quick else AUDITS)
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


def _nasty(audits: int) -> None:
    """Atoms, lattices, text, wide and dependent outputs, at the exact boundary and with both sides alike."""
    from joblib import Parallel, delayed

    header = (
        "mechanism",
        "claim",
        "audits",
        "refuted",
        "allowed",
        "met",
        "no verdict",
        "median bound",
        "CPU ms an audit",
    )
    rows = []
    for place, case in enumerate(sound()):
        made = audits // 10 if case.slow else audits
        parts = [range(start, min(start + BATCH, made)) for start in range(0, made, BATCH)]
        rows.append(
            nasty_row(case, made, Parallel(n_jobs=2)(delayed(nasty_refutations)(place, part) for part in parts))
        )
    print_table(
        f"Valid where structure is nasty: audits of {RUNS:,} runs each at confidence {CONFIDENCE}", header, rows
    )


def nasty_row(case: Sound, audits: int, counts: list[Count]) -> tuple[str, ...]:
    """One line of the table."""
    refuted, most = sum(count.refuted for count in counts), limit(audits)
    return (
        case.title,
        f"{case.epsilon:g}",
        f"{audits:,}",
        f"{refuted}",
        f"0 to {most}",
        "yes" if refuted <= most else "NO",
        f"{sum(count.undecided for count in counts)}",
        f"{statistics.median(bound for count in counts for bound in count.bounds):.3f}",
        f"{sum(count.cpu_s for count in counts) / audits * 1e3:.1f}",
    )
