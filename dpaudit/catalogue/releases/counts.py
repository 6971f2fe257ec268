"""Counts of a table of areas, with Laplace noise and with what statistics offices did before."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Integers, Masked, Reals
from dpaudit.catalogue.entry import Code, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, around_each, centred_each, exact, normal_each
from dpaudit.catalogue.promises import BASSI, DELTA, DMNS, EPSILON, SARKAR, pure_if_added_or_removed
from dpaudit.catalogue.releases.tables import in_room
from dpaudit.claims import ApproximateDP, Relation
from dpaudit.losses.comparisons import vector_loss
from dpaudit.losses.distribution import gaussian_mu
from dpaudit.losses.released import random_rounding_loss, rounded_noise_loss

Records = Sequence[Sequence[str]]  # (area, health)

AREAS, HEALTH = ("north", "east", "south"), ("ill", "well")
CELLS = [(area, health) for area in AREAS for health in HEALTH]


def _counts(data: Records, **_: float) -> list[int]:
    """How many in each cell; the cells are fixed beforehand."""
    seen = Counter(tuple(record) for record in data)
    return [seen[cell] for cell in CELLS]


def _noisy(data: Records, runs: int, rng: Rng, epsilon: float) -> Reals:
    return around_each(np.array(_counts(data), float), 1.0 / epsilon, runs, rng)


def _rounded_noise(data: Records, rng: Rng, epsilon: float, base: int) -> tuple[int, ...]:
    noisy = [count + rng.laplace(scale=1.0 / epsilon) for count in _counts(data)]
    return tuple(max(0, base * int(np.floor(count / base + 0.5))) for count in noisy)


def _rounded_noise_runs(data: Records, runs: int, rng: Rng, epsilon: float, base: int) -> Integers:
    whole = np.floor(_noisy(data, runs, rng, epsilon) / base + 0.5).astype(np.int64)
    return np.maximum(0, base * whole)


def _rounded_noise_loss(first: Records, second: Records, epsilon: float, base: int) -> float:
    return rounded_noise_loss(_counts(first), _counts(second), 1.0 / epsilon, base)


def _empty_left_out(data: Records, rng: Rng, epsilon: float) -> dict[int, float]:
    places = enumerate(_counts(data))
    return {place: count + rng.laplace(scale=1.0 / epsilon) for place, count in places if count > 0}


def _empty_left_out_runs(data: Records, runs: int, rng: Rng, epsilon: float) -> Masked:
    hidden = np.array(_counts(data)) == 0
    return np.ma.MaskedArray(_noisy(data, runs, rng, epsilon), mask=np.broadcast_to(hidden, (runs, len(CELLS))))


def _empty_left_out_loss(first: Records, second: Records, epsilon: float) -> float:
    empty = [[count == 0 for count in _counts(data)] for data in (first, second)]
    one, other = (np.array(_counts(data), float) for data in (first, second))
    return vector_loss(one, other, 1.0 / epsilon) if empty[0] == empty[1] else float("inf")


def _small_cells_left_out(data: Records, least: int, **_: float) -> dict[int, float]:
    return {place: float(count) for place, count in enumerate(_counts(data)) if count >= least}


def _small_groups_left_out(data: Records, least: int, **_: float) -> dict[int, float]:
    size = Counter(area for area, _ in data)
    cells = zip(CELLS, _counts(data), strict=True)
    return {place: float(count) for place, ((area, _), count) in enumerate(cells) if size[area] >= least}


def _randomly_rounded(data: Records, rng: Rng, epsilon: float, base: int) -> tuple[int, ...]:
    """Up with a probability of remainder / base, so that the mean is right."""
    published = []
    for count in _counts(data):
        below, remainder = base * (count // base), count % base
        published.append(below + base if rng.random() < remainder / base else below)
    return tuple(published)


def _randomly_rounded_runs(data: Records, runs: int, rng: Rng, epsilon: float, base: int) -> Integers:
    quotient, remainder = np.divmod(_counts(data), base)
    return base * (quotient + (rng.random((runs, len(CELLS))) < remainder / base))


def _randomly_rounded_loss(first: Records, second: Records, epsilon: float, base: int) -> float:
    return random_rounding_loss(_counts(first), _counts(second), base)


def _bounded_noise(data: Records, rng: Rng, epsilon: float, most: int) -> tuple[int, ...]:
    return tuple(count + int(rng.integers(-most, most + 1)) for count in _counts(data))


def _bounded_noise_runs(data: Records, runs: int, rng: Rng, epsilon: float, most: int) -> Integers:
    return np.array(_counts(data)) + rng.integers(-most, most + 1, (runs, len(CELLS)), dtype=np.int8)


def _swapped(data: Records, rng: Rng, epsilon: float, rate: float) -> tuple[int, ...]:
    health = [state for _, state in data]
    chosen = [row for row in range(len(data)) if rng.random() < rate]
    for row, other in zip(chosen, rng.permutation(chosen), strict=True):
        health[row] = data[other][1]
    return tuple(_counts([(area, state) for (area, _), state in zip(data, health, strict=True)]))


def _swapped_runs(data: Records, runs: int, rng: Rng, epsilon: float, rate: float) -> Integers:
    areas = np.array([AREAS.index(area) for area, _ in data], np.int8)
    ill = np.array([health == "ill" for _, health in data])
    chosen = rng.random((runs, len(data)), np.float32) < rate
    # the chosen in their order against the chosen in random order; the others stay, and stand behind both
    key = np.where(chosen, rng.random((runs, len(data)), np.float32), 2.0 + np.arange(len(data)))
    places = np.argsort(~chosen, axis=1, kind="stable")
    swapped = np.empty((runs, len(data)), np.bool_)
    np.put_along_axis(swapped, places, ill[np.argsort(key, axis=1)], axis=1)
    states = [swapped[:, areas == area] for area in range(len(AREAS))]
    return np.stack([np.count_nonzero(each == (h == 0), axis=1) for each in states for h in (0, 1)], axis=1)


_EXACT = exact(lambda data, **_: tuple(_counts(data)))


def _people(*sizes: int) -> list[tuple[str, str]]:
    return [cell for cell, size in zip(CELLS, sizes, strict=True) for _ in range(size)]


_ALL = _people(3, 6, 5, 4, 1, 4)
_BASE = Parameter("base", 5, "people", "counts are published as its multiples", partial(validate.whole, least=2))

noisy_counts = in_room(
    name="noisy_counts",
    title="A table of counts with noise in every cell",
    source=Source(f"{SARKAR}, 'Aggregate functions' (counts); {BASSI}, 'Laplace mechanism (cont.)'", DMNS),
    formula="for each area, how many are ill and how many are well, each plus a draw of Lap(1 / epsilon)",
    neighbours="lists of records (area, health) of which one is added or removed: one cell moves by 1",
    code=centred_each(_counts, lambda data, epsilon: 1.0 / epsilon),
    parameters=(EPSILON,),
    promise=pure_if_added_or_removed,
    default_pair=(_ALL, _people(2, 6, 5, 4, 1, 4)),
).with_twins(
    """exact: Exact counts
        the counts are a function of the data: with and without one person they differ in every run
        for each area, how many are ill and how many are well
    rounded: Counts rounded to the nearest multiple of 5
        at the edge between two multiples one person moves the rounded count, in every run
        every count rounded to the nearest multiple of `base`
    randomly_rounded: Counts rounded at random to a multiple of 3, up or down
        a count that is a multiple of 3 stays as it is, and one person less may be rounded away from it
        base * (count // base), plus base with a probability of (count mod base) / base
    small_cells_left_out: Exact counts, those below 5 left out
        the counts shown are exact, and a count of 5 disappears when one person leaves
        every count of at least `least`; nothing for the others
    small_groups_left_out: A k-anonymous table of counts: areas of fewer than k people left out
        a group of k people disappears when one of them leaves, and the groups shown are exact
        the exact counts of every area that has at least `least` people
    bounded_noise: Counts with whole noise from -2 to 2
        the noise ends: a fifth of the outputs of one dataset cannot come from the other
        every count plus a whole number drawn uniformly from -most, ..., most
    swapped: Counts after random swapping of records between areas
        swapping keeps the number of people in every area, so that number is published exactly
        each record is chosen with probability `rate`; the chosen exchange health at random; then counts
    empty_left_out: Noise in the cells that hold somebody, nothing for empty ones
        a cell of one person disappears when that person leaves: which cells are empty is exact
        every count above 0 plus a draw of Lap(1 / epsilon); nothing for the others
    rounded_noise: Noisy counts, then rounded and cut off at 0
        the noise comes first, and what is done with a noisy count afterwards costs nothing
        every count plus a draw of Lap(1 / epsilon), then rounded to a multiple of `base` and at least 0""",
    exact=Twin(code=_EXACT),
    rounded=Twin(
        code=exact(lambda data, base, **_: tuple(base * ((2 * count + base) // (2 * base)) for count in _counts(data))),
        parameters=(_BASE,),
    ),
    randomly_rounded=Twin(
        code=Code(_randomly_rounded, _randomly_rounded_runs, _randomly_rounded_loss),
        parameters=(replace(_BASE, default=3),),
    ),
    small_cells_left_out=Twin(
        code=exact(_small_cells_left_out, places=len(CELLS)),
        parameters=(Parameter("least", 5, "people", "the smallest count that is shown"),),
        default_pair=(_ALL, _people(3, 6, 4, 4, 1, 4)),
    ),
    small_groups_left_out=Twin(
        code=exact(_small_groups_left_out, places=len(CELLS)),
        parameters=(Parameter("least", 5, "people", "k, the smallest group"),),
        default_pair=(_ALL, _people(3, 6, 5, 4, 1, 3)),
    ),
    bounded_noise=Twin(
        code=Code(_bounded_noise, _bounded_noise_runs, _EXACT.loss),
        parameters=(Parameter("most", 2, "people", "the largest noise"),),
    ),
    swapped=Twin(
        code=Code(_swapped, _swapped_runs, _EXACT.loss),
        parameters=(Parameter("rate", 0.1, "probability", "of a record to be swapped", validate.probability),),
    ),
    empty_left_out=Twin(
        code=Code(_empty_left_out, _empty_left_out_runs, _empty_left_out_loss),
        default_pair=(_ALL, _people(3, 6, 5, 4, 0, 4)),
    ),
    rounded_noise=Harmless(
        code=Code(_rounded_noise, _rounded_noise_runs, _rounded_noise_loss),
        parameters=(_BASE,),
    ),
)


Rows = Sequence[Sequence[float]]

HOMER = "Homer et al. 2008, Resolving individuals contributing trace amounts of DNA to highly complex mixtures"
BALLE = "Balle & Wang 2018, Improving the Gaussian mechanism"


def noise_of(people: int, attributes: int, epsilon: float, delta: float) -> float:
    """The standard deviation: one person of `people` moves the average by 2 sqrt(attributes) / people at most.

    >>> noise_of(10, 4, 1.0, 0.01) / noise_of(10, 1, 1.0, 0.01)
    2.0
    """
    return 2.0 * math.sqrt(attributes) / (people * gaussian_mu(epsilon, delta))


def _average(data: Rows, **_: float) -> Reals:
    return np.asarray(np.clip(np.asarray(data, float), -1.0, 1.0).mean(axis=0))


_OTHERS = [[1, -1, 1, 1, -1, 1], [-1, -1, 1, -1, 1, 1], [1, 1, -1, -1, -1, 1], [-1, 1, 1, 1, 1, -1]]

noisy_mean_vector = in_room(
    name="noisy_mean_vector",
    title="The average of many attributes, with normal noise",
    source=Source("Sarkar, notes 003, 'Aggregate functions' (high-d average)", f"{HOMER}; the noise: {BALLE}"),
    formula=(
        "the average of the n rows, every attribute cut to [-1, 1], plus N(0, sigma^2) in each of the d attributes; "
        "sigma is the least that hides a shift of 2 sqrt(d) / n at (epsilon, delta)"
    ),
    neighbours="lists of n rows of d attributes with one row replaced",
    code=normal_each(_average, lambda data, epsilon, delta: noise_of(len(data), len(data[0]), epsilon, delta)),
    parameters=(EPSILON, DELTA),
    promise=lambda epsilon, delta: ApproximateDP(epsilon, delta, relation=Relation.REPLACE_ONE),
    default_pair=([[1] * 6, *_OTHERS], [[-1] * 6, *_OTHERS]),
).with_twins(
    """exact: The exact average of many attributes
        every attribute leans a little towards a member's, and many attributes add up to certainty
        the average of the n rows, every attribute cut to [-1, 1]
    noise_of_one_attribute: The average of many attributes, each with the noise that one alone would need
        a person moves all d attributes at once: sqrt(d) times as far as the noise is for
        the average of the n rows, plus N(0, sigma^2) in each attribute; sigma hides a shift of 2 / n only""",
    exact=Twin(code=exact(lambda data, **_: tuple(map(float, _average(data))))),
    noise_of_one_attribute=Twin(
        code=normal_each(_average, lambda data, epsilon, delta: noise_of(len(data), 1, epsilon, delta))
    ),
)
