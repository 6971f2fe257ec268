"""How near the certified bound comes to the truth, and to what the best event would give, were it known.

First a few whole audits, luck of certifying included. Then the classics at the limit: what a search froze, judged by
the bound at its expected counts (`benchmarks.classics`), and held to `lines`: hardly anything may be lost from one
decade of runs to the next. Ten seeds of a hundred million runs take most of the time.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from benchmarks.classics import Classic, Floats, Frozen, best_bound, classics, frozen, plan_of
from benchmarks.tables import print_table
from dpaudit.api.audits import audit
from dpaudit.catalogue import find

SEEDS = 5
CONFIDENCE = 0.95
SIZES = (1_000_000, 10_000_000)  # of whole audits
JOINT = 0.55  # of the loss of ten Laplace releases, at the first of these
ENDLESS = (  # the mass of the best event, which the other side never shows
    ("uniform noise on [0, 5]", "laplace.uniform_noise", 0.2),
    ("AboveThreshold without query noise", "above_threshold.no_query_noise", 0.196735),
)
WITHIN = 0.5
DECADES, QUICK_DECADES = (10**5, 10**6, 10**7, 10**8), (10**4, 10**5)  # runs of the classics
DECADE_SEEDS, QUICK_SEEDS = 10, 2
USUAL = 0.999  # the confidence of an audit where none is given: that of the decades
FALL = 0.002  # of the best event's bound, at most, from one decade to the next
WORST = {10**5: 0.93, 10**6: 0.97, 10**7: 0.98, 10**8: 0.98}  # parts of the best event, worst seed, where `steep`
OF_TRUTH = {"AboveThreshold": 0.92, "no threshold noise": 0.88}  # at a million runs, CONFIDENCE, median of SEEDS
OF_BEST = 0.8  # of these two at a hundred thousand
CELLS = 400  # of one coordinate's log ratio, in the law of the joint event
LAWS = {each.title: each for each in classics()}


def run(quick: bool) -> None:
    """Prints the tables; `quick` leaves out the larger sizes, and most seeds of the classics."""
    header = ("mechanism", "runs", "bound", "all seeds", "best event known", "goal", "event of the last seed")
    sizes = SIZES[:1] if quick else SIZES
    rows = [_joint_event(), *(_endless(*each, size) for each in ENDLESS for size in sizes)]
    print_table(f"Tight: certified bounds, median of {SEEDS} seeds, confidence {CONFIDENCE}", header, rows)
    at_the_limit(QUICK_DECADES if quick else DECADES, QUICK_SEEDS if quick else DECADE_SEEDS)


def _joint_event() -> tuple[str, ...]:
    """Ten Laplace releases that all move: no entry says much, and the loss is 1."""
    bounds, certifying, event = _certified("laplace_vector", SIZES[0])
    best = best_bound(plan_of("laplace_vector", SIZES[0], 0, CONFIDENCE), _joint(10, 10.0), certifying)
    goal = f"{JOINT:g} {_met(statistics.median(bounds) >= JOINT)}"
    return _told("ten Laplace releases, joint event", SIZES[0], bounds, best, goal, event)


def _endless(title: str, name: str, mass: float, size: int) -> tuple[str, ...]:
    """Where the loss has no end the bound is that of the hits: ln(K / 3), K hits on one side and none on the other."""
    bounds, certifying, event = _certified(name, size)
    best = math.log(certifying / 2.0 * mass / 3.0)
    goal = f"within {WITHIN:g} {_met(abs(best - statistics.median(bounds)) <= WITHIN)}"
    return _told(f"{title}, an endless loss", size, bounds, best, goal, event)


def _certified(name: str, runs: int) -> tuple[list[float], int, str]:
    """The bounds of some seeds, the certifying runs of the first, and the last event."""
    entry = find(name)
    results = [
        audit(entry, pair=entry.default_pair, claim=entry.claim(), runs=runs, confidence=CONFIDENCE, seed=seed)
        for seed in range(SEEDS)
    ]
    return [r.certificate.lower for r in results], results[0].evidence.runs, str(results[-1].witness.event)


def _told(title: str, size: int, bounds: list[float], best: float, goal: str, event: str) -> tuple[str, ...]:
    spread = f"{min(bounds):.4f} to {max(bounds):.4f}"
    return title, f"{size:,}", f"{statistics.median(bounds):.4f}", spread, f"{best:.4f}", goal, f"`{event}`"


def _joint(coordinates: int, scale: float) -> tuple[Floats, Floats]:
    """P(S) and Q(S) by the log ratio of independent Laplace releases of 0 against 1: a convolution on a grid."""
    ratio = np.linspace(-1.0, 1.0, CELLS + 1) / scale  # of one coordinate: least above 1, largest below 0
    one = np.exp(ratio / 2.0)  # between 0 and 1 the density falls by e^(-1 / scale)
    above = 0.5 * math.exp(-1.0 / scale)
    one[1:-1] *= (0.5 - above) / one[1:-1].sum()
    one[0], one[-1] = above, 0.5
    law = np.ones(1)
    for _ in range(coordinates):
        law = np.convolve(law, one)
    total = np.linspace(-coordinates / scale, coordinates / scale, len(law))
    tail = np.cumsum(law[::-1])
    return tail, np.cumsum((law * np.exp(-total))[::-1])


def at_the_limit(sizes: Sequence[int], seeds: int) -> None:
    """Prints the table of the classics, and each of the lines as met or MISSED."""
    found: dict[str, dict[int, list[Frozen]]] = {}
    header = ("classic", "runs", "median", "worst", "same runs", "of truth", "searched", "CPU, s", "event of the worst")
    rows = (_row(each, size, seeds, found) for each in LAWS.values() for size in sizes)
    print_table(
        f"Tight: the frozen event's bound over the best event's on 3/4 of the runs, {seeds} seeds, expected counts, "
        f"confidence {USUAL}; and over the best event's on the same certifying runs",
        header,
        rows,
    )
    held = [*lines(found), *truths()]
    print_table("Tight: the lines", ("line", "found", ""), [(line, told, _met(met)) for line, told, met in held])


def _row(classic: Classic, size: int, seeds: int, found: dict[str, dict[int, list[Frozen]]]) -> tuple[str, ...]:
    each = [frozen(classic, size, seed, USUAL) for seed in range(seeds)]
    found.setdefault(classic.title, {})[size] = each
    worst = min(each, key=lambda one: one.part)
    truth = _truth(classic)
    medians = (statistics.median(getattr(one, name) for one in each) for name in ("part", "same", "share", "cpu_s"))
    part, same, share, cpu_s = medians
    of_truth = "-" if math.isinf(truth) else f"{statistics.median(one.bound for one in each) / truth:.4f}"
    row = (classic.title, f"{size:,}", f"{part:.4f}", f"{worst.part:.4f}", f"{same:.4f}", of_truth)
    return (*row, f"{share:.3f}", f"{cpu_s:.2f}", f"`{worst.event}`")


def lines(found: Mapping[str, Mapping[int, Sequence[Frozen]]]) -> Iterator[tuple[str, str, bool]]:
    """What the classics are held to over the decades, with what was found: at most FALL lost in each, and WORST."""
    for title, sizes in found.items():
        for kind, of in (("median", statistics.median), ("worst", min)):
            parts = [of([one.part for one in each]) for each in sizes.values()]
            met = all(after >= before - FALL for before, after in pairwise(parts))
            yield f"{title}: {kind} falls by at most {FALL:g} a decade", _spelled(parts), met
        if LAWS[title].steep:
            worst = {size: min(one.part for one in each) for size, each in sizes.items() if size in WORST}
            wanted = ", ".join(f"{WORST[size]:g}" for size in worst)
            met = all(part >= WORST[size] for size, part in worst.items())
            yield f"{title}: worst at least {wanted}", _spelled(worst.values()), met


def truths() -> Iterator[tuple[str, str, bool]]:
    """The same of the two whose best event is rare."""
    for title, least in OF_TRUTH.items():
        few, more = ([frozen(LAWS[title], size, seed, CONFIDENCE) for seed in range(SEEDS)] for size in (10**5, 10**6))
        part = statistics.median(one.part for one in few)
        of_truth = statistics.median(one.bound for one in more) / _truth(LAWS[title])
        yield f"{title}: {least:g} of the truth at 1,000,000, {CONFIDENCE:g}", f"{of_truth:.4f}", of_truth >= least
        yield f"{title}: {OF_BEST:g} of the best event at 100,000, {CONFIDENCE:g}", f"{part:.4f}", part >= OF_BEST


def _spelled(parts: Iterable[float]) -> str:
    return ", ".join(f"{part:.4f}" for part in parts)


def _truth(classic: Classic) -> float:
    """The loss of the pair; mu where the claim is one on mu, which is exact."""
    entry = find(classic.name)
    loss = entry.true_epsilon(*entry.default_pair)
    return entry.claim().value or 0.0 if loss is None else loss


def _met(yes: bool) -> str:
    return "met" if yes else "MISSED"
