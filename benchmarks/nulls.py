"""How often every printed line of every estimator is false where the scores say nothing of the coins."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.tables import print_table

LEVEL, SEEN = 0.05, 0.01  # stated by the lines, and by the words "dependence seen"
REPEATS, SIZES = 300, (20, 100, 1_000)
Rng = np.random.Generator
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Drawn = Callable[[Rng, tuple[int, ...]], Floats]

NULLS: dict[str, Drawn] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "yes or no": lambda rng, shape: rng.integers(0, 2, shape).astype(float),
    "rare flags": lambda rng, shape: (rng.random(shape) < 0.05).astype(float),
}
TRAININGS = (("GaussianDP", 0.1, 1, 1.0), ("PureDP", 0.1, 1, 1.0), ("GaussianDP", 0.1, 5, 1.0), ("PureDP", 0.1, 5, 1.0))
SAMPLED = (("GaussianDP", 0.1, 5, 0.5), ("ApproximateDP", 0.1, 5, 0.5))


def false_of(made: Any, level: float = LEVEL) -> dict[str, bool]:
    """What an `Estimate` says that is false where nothing leaks, by its printed place."""
    where = f"{made.line}: {made.method}, {made.quantity}"
    found = {}
    if made.lower is not None:
        found[where] = made.lower > 0.0
    if made.upper is not None:
        found[f"{where}, upper"] = made.upper < 0.0
    if made.p_value is not None:
        found[f"{where}, p-value"] = made.p_value <= level
    for key, value in made.detail.items():
        if key.endswith("_lower"):
            found[f"{where}, {key}"] = value > 0.0
        if key.endswith("_p_value"):
            found[f"{where}, {key}"] = value <= SEEN
    return found


def of_scores(scores: Floats, coins: Bools, seed: int, confidence: float) -> dict[str, bool]:
    """The lines of `audit_scores`, of one list of scores a side, with every method; and the dependence."""
    from dpaudit.claims import GaussianDP, PureDP
    from dpaudit.scores import ManyRun, OneRun, audit_scores
    from dpaudit.scores.dependence import dependence

    half = np.arange(scores.size) < scores.size // 2  # numbers in and out that were fixed before
    found: dict[str, bool] = {"dependence": dependence(scores, coins).p_value <= SEEN}
    asked: tuple[tuple[ManyRun | OneRun, Bools, Any, float | None], ...] = (
        (OneRun(), coins, PureDP(0.0), None),
        (OneRun(), coins, GaussianDP(1e-9), 1e-5),
        (ManyRun(), half, PureDP(0.0), None),
        (ManyRun(), half, GaussianDP(1e-9), 1e-5),
        (ManyRun(threshold="all"), half, PureDP(0.0), None),
        (ManyRun(splits=3), half, PureDP(0.0), None),
    )
    for design, members, claim, delta in asked:
        more: dict[str, Any] = {"claim": claim, "delta": delta, "confidence": confidence, "seed": seed}
        result = audit_scores(scores[members], scores[~members], design=design, methods="all", **more)
        name = f"{design.name} {claim.form}, {design}"
        for each in result.estimates:
            found |= {f"{name} | {where}": false for where, false in false_of(each, 1.0 - confidence).items()}
        if result.band:
            found[f"{name} | band"] = any(x + y < 1.0 for x, y in result.band)
    return found


def of_trainings(rng: Rng, drawn: Drawn, canaries: int, confidence: float, kinds: Any) -> dict[str, bool]:
    """The lines of five trainings, or of a training of five steps, as they are told at the end."""
    from dpaudit import claims
    from dpaudit.scores import few

    found: dict[str, bool] = {}
    for form, value, steps, rate in kinds:
        claim = claims.ApproximateDP(value, 1e-5) if form == "ApproximateDP" else getattr(claims, form)(value)
        coins = rng.random((5, canaries)) < 0.5
        alpha = 1.0 - confidence
        evidence = few.begin(claim, canaries, alpha, delta=1e-5, steps=None if steps == 1 else steps, rate=rate)
        scores = drawn(rng, coins.shape)
        for row in range(0, 5, steps):
            evidence = evidence.after(scores[row : row + steps], coins[row : row + steps])
        made = [*evidence.estimates(), *([] if steps == 1 else [evidence.composed(steps, 1e-5)])]
        name = f"{'trainings' if steps == 1 else 'steps'} {form} at rate {rate}"
        for each in made:
            found |= {f"{name} | {where}": false for where, false in false_of(each, alpha).items()}
    return found


def counted(kind: str, canaries: int, repeats: int, confidence: float = 1.0 - LEVEL) -> Counter[str]:
    """How often each line was false."""
    found: Counter[str] = Counter()
    for repeat in range(repeats):
        rng = np.random.default_rng([canaries, repeat])
        coins = rng.random(canaries) < 0.5
        if not 2 <= coins.sum() <= canaries - 2:
            continue
        scores = NULLS[kind](rng, coins.shape)
        if np.ptp(scores) == 0.0:  # rare flags that are all 0 are refused
            continue
        told = of_scores(scores, coins, repeat, confidence)
        told |= of_trainings(rng, NULLS[kind], canaries, confidence, TRAININGS + SAMPLED)
        found.update({name: int(false) for name, false in told.items()})
    return found


def run(quick: bool) -> None:
    """Prints, for each line, how often it was false at each size."""
    repeats = REPEATS // 10 if quick else REPEATS
    for kind in NULLS:
        started = time.process_time()
        by_size = {size: counted(kind, size, repeats) for size in SIZES}
        names = sorted({name for found in by_size.values() for name in found})
        rows: Iterator[tuple[str, ...]] = (
            (name.replace("|", "-"), *(str(by_size[size].get(name, "-")) for size in SIZES)) for name in names
        )
        cpu = time.process_time() - started
        title = f"False of {repeats} at a stated 5 %, {kind} scores that say nothing ({cpu:.0f} CPU s)"
        print_table(title, ("line", *(f"{size:,}" for size in SIZES)), rows)
