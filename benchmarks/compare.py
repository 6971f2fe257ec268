"""How often `dpaudit compare` calls chance a rise: pairs of audits of one unchanged mechanism with different seeds.

The upper limit of the old loss has the error probability of the old certificate. Where the new event loses no more than
the old one, a rise is said with probability at most twice that; two audits of one mechanism need not find equally good
events, so the rate is measured, with mechanisms that make this hard among them: two coordinates, and several pairs,
whose losses are close; a loss that grows with the tail; a rare token, or an atom, that every other search finds. The
old event on fresh runs (`--rerun`) needs no margin for that: its rises are counted beside.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.tables import print_table

if TYPE_CHECKING:
    import numpy as np

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
    again: int
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

    import dpaudit

    def released(data: float, runs: int, rng: np.random.Generator) -> Any:
        return data + rng.laplace(size=runs)

    pairs = [(0.0, 1.0 + 0.02 * step) for step in range(6)]
    return dpaudit.batched(released), {"pairs": pairs, "epsilon": 1.1}


def many_tokens(_: str) -> Question:
    """A rare token that loses most, beside a frequent one that loses little: about every other search finds it."""
    import numpy as np

    import dpaudit

    names, big = np.array([f"token {k}" for k in range(102)]), 0.7 / (1.0 + np.exp(0.3))

    def released(data: float, runs: int, rng: np.random.Generator) -> Any:
        rare = 0.004 if data else 0.004 * np.exp(-1.7)
        share = [0.7 - big, big] if data else [big, 0.7 - big]
        return names[rng.choice(102, size=runs, p=[*share, rare, *[(0.3 - rare) / 99] * 99])]

    return dpaudit.batched(released), {"pair": (0.0, 1.0), "epsilon": 2.5, "runs": 100_000}


def many_tokens_bets(_: str) -> Question:
    """The same by bets, which learn from the runs that they were made on."""
    mechanism, asked = many_tokens("")
    return mechanism, {**asked, "stopping": "anytime"}


def atoms(_: str) -> Question:
    """Two values inside the range of noise that lose more than it does."""
    import numpy as np

    import dpaudit

    def released(data: float, runs: int, rng: np.random.Generator) -> Any:
        value = np.where(rng.random(runs) < (0.85 if data else 0.15), 1.0, 2.0)
        return np.where(rng.random(runs) < 0.02, value, data / 2.0 + 3.0 * rng.normal(size=runs))

    return dpaudit.batched(released), {"pair": (0.0, 1.0), "epsilon": 3.0}


def learned(_: str) -> Question:
    """Six coordinates that lose a little each: the event is a score that every search learns anew."""
    import dpaudit

    def released(data: float, runs: int, rng: np.random.Generator) -> Any:
        return rng.laplace(size=(runs, 6)) + 0.2 * data

    return dpaudit.batched(released), {"pair": (0.0, 1.0), "epsilon": 3.0}


def walk(_: str) -> Question:
    """A vector whose entries depend on each other, and shift alike."""
    import numpy as np

    import dpaudit

    def released(data: float, runs: int, rng: np.random.Generator) -> Any:
        return np.cumsum(rng.laplace(size=(runs, 5)), axis=1) + 0.7 * data

    return dpaudit.batched(released), {"pair": (0.0, 1.0), "epsilon": 3.0}


def mixture(_: str) -> Question:
    """A branch with little noise that is seldom taken."""
    import numpy as np

    import dpaudit

    def released(data: float, runs: int, rng: np.random.Generator) -> Any:
        return data + rng.laplace(size=runs) * np.where(rng.random(runs) < 0.02, 0.1, 5.0)

    return dpaudit.batched(released), {"pair": (0.0, 1.0), "epsilon": 6.0, "runs": 40_000}


def ties(_: str) -> Question:
    """Few integers, whose losses grow with the tail."""
    import numpy as np

    import dpaudit

    def released(data: float, runs: int, rng: np.random.Generator) -> Any:
        return np.round(1.5 * rng.normal(size=runs) + 0.7 * data)

    return dpaudit.batched(released), {"pair": (0.0, 1.0), "epsilon": 4.0}


def raising(_: str) -> Question:
    """Two exceptions that tell the data, both rare."""

    def released(data: float, rng: np.random.Generator) -> float:
        place = rng.random()
        if place < (0.02 if data else 0.005):
            raise ValueError
        if place > (0.99 if data else 0.996):
            raise KeyError
        return float(rng.laplace() + 0.3 * data)

    return released, {"pair": (0.0, 1.0), "epsilon": 3.0}


def louder(grown: float) -> Question:
    """Laplace noise of scale 1 over `grown`, claimed so that nothing is refuted."""

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
    "many tokens": many_tokens,
    "many tokens, bets": many_tokens_bets,
    "atoms": atoms,
    "learned score": learned,
    "walk": walk,
    "mixture": mixture,
    "ties": ties,
    "exceptions": raising,
}


def compared(name: str, seeds: range, confidence: float) -> Count:
    """The pairs of audits with seeds 2k and 2k + 1: every line of the table counts these."""
    from dpaudit.api.audits import audit

    mechanism, asked = LINES[name](name)
    start = time.process_time()

    def once(seed: int) -> Any:
        return audit(mechanism, **{"runs": RUNS, **asked}, confidence=confidence, seed=seed, n_jobs=1)

    return tally([(once(2 * seed), once(2 * seed + 1), mechanism) for seed in seeds], start)


def tally(pairs: list[tuple[Any, Any, Any]], start: float) -> Count:
    """What the comparison says of pairs of results; a rise is one of the bound, whether or not the claim fell.

    The third of each is the new mechanism, on which the old event is run again.
    """
    from dpaudit.account.change import Half, Kind
    from dpaudit.api.existing import recheck
    from dpaudit.ledger.comparison import change_of, noise

    changes = [change_of(Half(old.name, old), Half(new.name, new)) for old, new, _ in pairs]
    again = [(old, recheck(old, mechanism, fresh=True)) for old, _, mechanism in pairs]
    return Count(
        sum(Kind.ROSE in change.kinds for change in changes),
        sum(noise(old, fresh).old_upper < fresh.certificate.lower for old, fresh in again),
        sum(Kind.FELL in change.kinds for change in changes),
        sum(Kind.REFUTED in change.kinds for change in changes),
        sum(bool(change.noise and (change.noise.elsewhere or change.noise.why_not)) for change in changes),
        time.process_time() - start,
    )


def grown(factor: float, seeds: range) -> Count:
    """Pairs of audits between which the noise became smaller."""
    from dpaudit.api.audits import audit

    def once(scale: float, seed: int) -> Any:
        mechanism, asked = louder(scale)
        return audit(mechanism, **asked, runs=POWER_RUNS, confidence=0.999, seed=seed, n_jobs=1)

    start = time.process_time()
    new = louder(factor)[0]
    return tally([(once(1.0, 2 * seed), once(factor, 2 * seed + 1), new) for seed in seeds], start)


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
            rose, again, fell, became, elsewhere = (
                sum(getattr(count, key) for count in counts)
                for key in ("rose", "again", "fell", "refuted", "elsewhere")
            )
            spent = sum(count.cpu_s for count in counts) / pairs
            whole += rose
            rows.append(
                (
                    name,
                    f"{confidence:g}",
                    f"{rose}",
                    f"{again}",
                    f"{allowed}",
                    "yes" if max(rose, again) <= allowed else "NO",
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
        "by fresh runs",
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
    power = [
        (f"{factor:g}", f"{count.rose} of {few}", f"{count.again}") for factor, count in zip(GROWN, told, strict=True)
    ]
    title = f"Compare: epsilon 1 grew, {POWER_RUNS:,} runs at confidence 0.999"
    print_table(title, ("epsilon times", "seen to rise", "by fresh runs"), power)
