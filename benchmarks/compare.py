"""How often `dpaudit compare` calls chance a rise: pairs of audits of one unchanged mechanism with different seeds.

The upper limit of the old loss was chosen before this was run: it has the error probability of the old certificate.
The margin for another event was not: half an interval was taken over a whole one after both had been tried on audits
of a Gaussian, Laplace noise and others, and then measured with other seeds. Where the new event loses no more than the
old one, a rise is then said with probability at most twice that; two audits of one mechanism need not find equally good
events, so the rate is measured, with mechanisms that make this hard among them: two coordinates, and several pairs,
whose losses are close; a loss that grows with the tail.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.tables import print_table

PAIRS = 60  # of audits, each of the lines: 600 at either confidence
RUNS = 20_000
FALSE_ALARM = 1e-6  # of each line: that more rises are said although no more than allowed should be
BATCH = 20
GROWN = (1.1, 1.2, 1.5, 2.0)  # times the noise of the old version is divided by
POWER_PAIRS, POWER_RUNS = 40, 200_000

Question = tuple[Any, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Count:
    """What became of some pairs of audits."""

    rose: int
    fell: int
    refuted: int
    elsewhere: int
    cpu_s: float


def from_catalogue(name: str) -> Question:
    """An entry with the exact loss of its pair as the claim."""
    from benchmarks.valid import true_claim

    entry, claim = true_claim(name)
    return entry, {"pair": entry.default_pair, "claim": claim}


def gaussian(_: str) -> Question:
    """A claim about a curve: the delta at which it is certified changes from audit to audit."""
    import numpy as np

    import dpaudit

    def released(data: float, runs: int, rng: np.random.Generator) -> Any:
        return data + rng.normal(size=runs)

    return dpaudit.batched(released), {"pair": (0.0, 1.0), "claim": dpaudit.GaussianDP(1.0)}


def gaussian_as_pure(_: str) -> Question:
    """A loss that grows with the tail, of which every search chooses another one."""
    mechanism, _asked = gaussian("")
    return mechanism, {"pair": (0.0, 1.0), "epsilon": 3.0}


def rare_output(_: str) -> Question:
    """A value inside the tail that one dataset alone releases, seldom: some searches find it."""
    import numpy as np

    import dpaudit

    def released(data: float, runs: int, rng: np.random.Generator) -> Any:
        noisy = data / 2.0 + rng.laplace(size=runs)
        return np.where(rng.random(runs) < 6e-3 * data, 9.0, noisy)

    return dpaudit.batched(released), {"pair": (0.0, 1.0), "epsilon": 3.0}


def renyi(_: str) -> Question:
    """A claim that is held to several bins."""
    import dpaudit

    mechanism, asked = gaussian("")
    return mechanism, {**asked, "claim": dpaudit.ZeroConcentratedDP(0.5)}


def close_coordinates(_: str) -> Question:
    """Two coordinates whose losses differ by a tenth, in separate releases of which one is seen."""
    import numpy as np

    import dpaudit

    def released(data: float, runs: int, rng: np.random.Generator) -> Any:
        which = rng.integers(2, size=runs)
        scale = np.where(which == 0, 1.0, 1.0 / 1.1)
        return np.stack([which, data + rng.laplace(size=runs) * scale], axis=1)

    return dpaudit.batched(released), {"pair": (0.0, 1.0), "epsilon": 1.1}


def close_pairs(_: str) -> Question:
    """Six pairs whose losses differ by up to a tenth."""
    import numpy as np

    import dpaudit

    def released(data: float, runs: int, rng: np.random.Generator) -> Any:
        return data + rng.laplace(size=runs)

    pairs = [(0.0, 1.0 + 0.02 * step) for step in range(6)]
    return dpaudit.batched(released), {"pairs": pairs, "epsilon": 1.1}


def louder(grown: float) -> Question:
    """Laplace noise of scale 1 over `grown`, claimed so that nothing is refuted."""
    import numpy as np

    import dpaudit

    def released(data: float, runs: int, rng: np.random.Generator) -> Any:
        return data + rng.laplace(size=runs) / grown

    return dpaudit.batched(released), {"pair": (0.0, 1.0), "epsilon": 4.0}


LINES: dict[str, Callable[[str], Question]] = {
    "laplace": from_catalogue,
    "randomised_response": from_catalogue,
    "report_noisy_max": from_catalogue,
    "above_threshold": from_catalogue,
    "gaussian as mu": gaussian,
    "gaussian as rho": renyi,
    "gaussian as pure": gaussian_as_pure,
    "rare output": rare_output,
    "close coordinates": close_coordinates,
    "close pairs": close_pairs,
}


def compared(name: str, seeds: range, confidence: float) -> Count:
    """The pairs of audits with seeds 2k and 2k + 1: every line of the table counts these."""
    from dpaudit.api import audit

    mechanism, asked = LINES[name](name)
    start = time.process_time()

    def once(seed: int) -> Any:
        return audit(mechanism, **asked, runs=RUNS, confidence=confidence, seed=seed, n_jobs=1)

    return tally([(once(2 * seed), once(2 * seed + 1)) for seed in seeds], start)


def tally(pairs: list[tuple[Any, Any]], start: float) -> Count:
    """What the comparison says of pairs of results; a rise is one of the bound, whether or not the claim fell."""
    from dpaudit.ledger.comparison import change_of
    from dpaudit.results.change import Half, Kind

    changes = [change_of(Half(old.name, old), Half(new.name, new)) for old, new in pairs]
    return Count(
        sum(Kind.ROSE in change.kinds for change in changes),
        sum(Kind.FELL in change.kinds for change in changes),
        sum(Kind.REFUTED in change.kinds for change in changes),
        sum(bool(change.noise and (change.noise.elsewhere or change.noise.why_not)) for change in changes),
        time.process_time() - start,
    )


def grown(factor: float, seeds: range) -> Count:
    """Pairs of audits between which the noise became smaller."""
    from dpaudit.api import audit

    def once(scale: float, seed: int) -> Any:
        mechanism, asked = louder(scale)
        return audit(mechanism, **asked, runs=POWER_RUNS, confidence=0.999, seed=seed, n_jobs=1)

    start = time.process_time()
    return tally([(once(1.0, 2 * seed), once(factor, 2 * seed + 1)) for seed in seeds], start)


def run(quick: bool) -> None:
    """Prints both tables; `quick` makes a tenth of the audits."""
    from joblib import Parallel, delayed
    from scipy.stats import binom

    pairs = PAIRS // 10 if quick else PAIRS
    rows = []
    everything = []
    for confidence in (0.95, 0.999):
        whole = 0
        allowed = int(binom.ppf(1.0 - FALSE_ALARM, pairs, min(1.0, 2.0 * (1.0 - confidence))))
        for name in LINES:
            parts = [range(first, min(first + BATCH, pairs)) for first in range(0, pairs, BATCH)]
            counts = Parallel(n_jobs=2)(delayed(compared)(name, part, confidence) for part in parts)
            rose, fell, became, elsewhere = (
                sum(getattr(count, key) for count in counts) for key in ("rose", "fell", "refuted", "elsewhere")
            )
            spent = sum(count.cpu_s for count in counts) / pairs
            whole += rose
            rows.append(
                (
                    name,
                    f"{confidence:g}",
                    f"{rose}",
                    f"{allowed}",
                    "yes" if rose <= allowed else "NO",
                    f"{fell}",
                    f"{became}",
                    f"{elsewhere}",
                    f"{spent * 1e3:.0f}",
                )
            )
        everything.append((f"{confidence:g}", f"{whole} of {pairs * len(LINES)}", f"{2.0 * (1.0 - confidence):.3g}"))
    header = (
        "mechanism, unchanged",
        "confidence",
        "rose",
        "allowed",
        "met",
        "fell",
        "became refuted",
        "elsewhere",
        "CPU ms a pair",
    )
    print_table(f"Compare: {pairs:,} pairs of audits of {RUNS:,} runs, nothing changed but the seed", header, rows)
    print_table("Compare: all of them", ("confidence", "rose", "allowed rate"), everything)
    few = POWER_PAIRS // 10 if quick else POWER_PAIRS
    told = Parallel(n_jobs=2)(delayed(grown)(factor, range(few)) for factor in GROWN)
    power = [(f"{factor:g}", f"{count.rose} of {few}") for factor, count in zip(GROWN, told, strict=True)]
    title = f"Compare: epsilon 1 grew, {POWER_RUNS:,} runs at confidence 0.999"
    print_table(title, ("epsilon times", "seen to rise"), power)
