"""Leaks that a search of equal masses, few entries and whole texts missed: mechanisms, laws and sizes."""

from __future__ import annotations

import functools
import math
from functools import partial
from typing import Any

import numpy as np

from benchmarks.classes.leak import (
    DRAWS,
    Floats,
    Leak,
    Points,
    Rng,
    apart,
    cells,
    density,
    discrete_laplace_noise,
    laplace,
    laplace_below,
    normal,
    normal_below,
    sampled,
)

# --- atoms --------------------------------------------------------------------------------------------------------


def _exact(data: float, runs: int, rng: Rng, chance: float, sigma: float | None = None) -> Floats:
    noise = rng.laplace(size=runs) if sigma is None else rng.normal(0.0, sigma, runs)
    return np.where(rng.random(runs) < chance, data, data + noise)


def _exact_and_another(data: float, runs: int, rng: Rng, chance: float) -> Floats:
    return np.column_stack([_exact(data, runs, rng, chance), rng.normal(size=runs)])


@functools.cache
def _exact_law(chance: float, sigma: float | None = None) -> Points:
    laws = []
    for mean in (1.0, 0.0):
        below = laplace_below(mean, 1.0) if sigma is None else normal_below(mean, sigma)
        noisy = (1.0 - chance) * density(below, -40.0, 41.0)
        laws.append(np.concatenate([[chance * mean, chance * (1.0 - mean)], noisy]))
    return cells(*laws)


def _atom_inside(data: float, runs: int, rng: Rng, mass: float, loss: float) -> Floats:
    """A value that noise of 50 hides on one dataset with the whole mass, on the other with e^-loss of it."""
    chance = mass if data else mass * math.exp(-loss)
    return np.where(rng.random(runs) < chance, 3.0, rng.normal(0.0, 50.0, runs))


def _atom_law(mass: float, loss: float) -> Points:
    return cells([mass, 1.0 - mass], [mass * math.exp(-loss), 1.0 - mass * math.exp(-loss)])


def _tiny_branch(data: float, runs: int, rng: Rng) -> Floats:
    scale = np.where(rng.random(runs) < 0.02, 1e-3, 1.0)
    return data + scale * rng.laplace(size=runs)


def _tiny_law() -> Points:
    """The grid is finer than the branch, so that what the wide noise adds to it counts."""
    laws = []
    grid = np.unique(
        np.concatenate([np.linspace(-9.0, 10.0, 20_001), *(m + np.linspace(-0.02, 0.02, 8_001) for m in (0.0, 1.0))])
    )
    for mean in (1.0, 0.0):
        below = 0.02 * laplace_below(mean, 1e-3)(grid) + 0.98 * laplace_below(mean, 1.0)(grid)
        laws.append(np.diff(np.concatenate([[0.0], below, [1.0]])))
    return cells(*laws)


# --- lattices -----------------------------------------------------------------------------------------------------


def _rounded_noise(data: float, runs: int, rng: Rng, scale: float, places: int) -> Floats:
    return data + np.round(rng.laplace(0.0, scale, runs), places)


def _even_noise(data: int, runs: int, rng: Rng) -> Any:
    return data + 2 * discrete_laplace_noise(rng, 100.0, runs)


# --- wide ---------------------------------------------------------------------------------------------------------


def _late_entry(data: int, runs: int, rng: Rng, entries: int, place: int, shift: float, scale: float) -> Floats:
    output = rng.laplace(size=(runs, entries))
    output[:, place] = output[:, place] * scale + shift * data
    return output


def _nested(data: int, runs: int, rng: Rng) -> list[Any]:
    return _late_entry(data, runs, rng, 484, 20 * 22 + 20, 3.0, 1.0).reshape(runs, 22, 22).tolist()


def _dense(data: int, runs: int, rng: Rng, entries: int) -> Floats:
    """Every entry moves by as much, up or down, 2 deviations of the noise in all."""
    signs = np.where(np.arange(entries) * 7 % 11 < 5, 1.0, -1.0)
    return rng.standard_normal((runs, entries)) + data * 2.0 / math.sqrt(entries) * signs


# --- text and tokens ----------------------------------------------------------------------------------------------


def _text(data: float, runs: int, rng: Rng, form: str) -> list[Any]:
    numbers = data + rng.laplace(0.0, 0.5, runs)
    if form == "json":
        return [f'{{"count": {x!r}, "unit": "people"}}' for x in numbers.tolist()]
    if form == "bytes":
        return [repr(x).encode() for x in numbers.tolist()]
    return [f"{x:.6f}" for x in numbers.tolist()]


def _token_masses(data: int, loss: float) -> Floats:
    masses = np.full(100, 0.996 / 99)
    masses[41] = 0.004 * math.exp(-loss * (not data))
    return np.asarray(masses / masses.sum())


def _token(data: int, runs: int, rng: Rng, loss: float) -> list[str]:
    return [f"token {j}" for j in rng.choice(100, runs, p=_token_masses(data, loss))]


# --- tails, dependence --------------------------------------------------------------------------------------------


def _gaussian(data: float, runs: int, rng: Rng) -> Floats:
    return data + rng.standard_normal(runs)


def _persistent(data: int, runs: int, rng: Rng) -> Floats:
    """Twenty bits; each stays what the one before it was with probability .6, or .5."""
    changes = rng.random((runs, 20)) < (0.4 if data else 0.5)
    changes[:, 0] = rng.random(runs) < 0.5
    return np.asarray(np.cumsum(changes, axis=1) % 2.0, np.float64)


def _persistent_law() -> Points:
    from scipy.stats import binom

    return cells(*(binom.pmf(np.arange(20), 19, chance) for chance in (0.4, 0.5)))


SHAPE, GAP = 1.5, 0.1  # of the gaps between events, on the first dataset; exponential on the second


def _gaps(data: int, runs: int, rng: Rng) -> Floats:
    shape = SHAPE if data else 1.0
    return rng.gamma(shape, GAP / shape, (runs, 60))


def _times(data: int, runs: int, rng: Rng) -> list[Any]:
    """Times of events on [0, 1), as many as there are: the gaps are nearly of one length, or not."""
    times = np.cumsum(_gaps(data, runs, rng), axis=1)
    return [row[:end].tolist() for row, end in zip(times, (times < 1.0).sum(axis=1), strict=True)]


def _times_ratio(first: bool, rng: Rng) -> Floats:
    from scipy.special import gammaln
    from scipy.stats import gamma

    gaps = _gaps(int(first), DRAWS, rng)
    times = np.cumsum(gaps, axis=1)
    inside = times < 1.0
    rate = SHAPE / GAP
    one = SHAPE * math.log(rate) + (SHAPE - 1.0) * np.log(gaps) - rate * gaps - gammaln(SHAPE)
    other = -math.log(GAP) - gaps / GAP
    last = 1.0 - np.where(inside, times, 0.0).max(axis=1)
    end = gamma.logsf(last, SHAPE, scale=1.0 / rate) + last / GAP
    return np.asarray(np.where(inside, one - other, 0.0).sum(axis=1) + end)


def _released(data: list[float], runs: int, rng: Rng) -> Any:
    from dpaudit.catalogue import find

    entry = find("above_threshold.threshold_released")
    return entry.sampler(data, runs, rng, epsilon=1.0, threshold=0.0)


def _released_law() -> Points:
    """Given the threshold, each of eight answers passes it or not: the law of threshold and place, cell by cell."""
    grid = np.linspace(-60.0, 60.0, 24_001)
    weight = np.diff(laplace_below(0.0, 2.0)(grid))
    middle = (grid[:-1] + grid[1:]) / 2.0
    laws = []
    for mean in (0.0, 1.0):
        stays = laplace_below(mean, 4.0)(middle)
        laws.append(weight * np.array([stays**j * (1.0 - stays if j < 8 else 1.0) for j in range(9)]))
    return cells(*laws)


def missed() -> list[Leak]:
    """The table of what was missed; sizes and sides as it was found."""
    found = []
    for key, chance, runs in (
        ("exact_01", 0.01, 200_000),
        ("exact_003", 0.003, 1_000_000),
        ("exact_03", 0.03, 200_000),
    ):
        title = f"exact answer with probability {chance:g}"
        law = partial(_exact_law, chance)
        found.append(Leak(key, "atoms", title, partial(_exact, chance=chance), (10.0, 9.0), runs, law))
    found += [
        Leak(
            "exact_beside",
            "atoms",
            "exact answer with .005, beside an irrelevant number",
            partial(_exact_and_another, chance=0.005),
            (10.0, 9.0),
            1_000_000,
            partial(_exact_law, 0.005),
        ),
        Leak(
            "raw",
            "atoms",
            "raw data with probability 2e-4, claimed (1, 1e-5)",
            partial(_exact, chance=2e-4, sigma=3.73),
            (10.0, 9.0),
            1_000_000,
            partial(_exact_law, 2e-4, 3.73),
            claim=(1.0, 1e-5),
            wanted=0.95,
        ),
        Leak(
            "atom_1",
            "atoms",
            "loss 2 on an atom of .1 inside N(0, 50²)",
            partial(_atom_inside, mass=0.1, loss=2.0),
            (1, 0),
            20_000,
            partial(_atom_law, 0.1, 2.0),
        ),
        Leak(
            "atom_01",
            "atoms",
            "loss 2 on an atom of .01 inside N(0, 50²)",
            partial(_atom_inside, mass=0.01, loss=2.0),
            (1, 0),
            200_000,
            partial(_atom_law, 0.01, 2.0),
        ),
        Leak(
            "tiny",
            "atoms",
            "a branch of mass .02 with a thousandth of the noise",
            _tiny_branch,
            (1.0, 0.0),
            200_000,
            _tiny_law,
        ),
    ]
    for key, scale, places, pair in (
        ("rounded_1", 0.5, 2, (10.005, 10.0)),
        ("rounded_2", 20.0, 1, (10.037, 10.0)),
        ("rounded_3", 5.0, 2, (10.0037, 10.0)),
    ):
        title = f"Lap({scale:g}) rounded to {places} decimals, on {pair[0]:g} against {pair[1]:g}"
        sampler = partial(_rounded_noise, scale=scale, places=places)
        found.append(Leak(key, "lattices", title, sampler, pair, 200_000, partial(apart, 1.0)))
    found += [
        Leak(
            "even",
            "lattices",
            "even noise of scale 200 on an integer",
            _even_noise,
            (101, 100),
            200_000,
            partial(apart, 1.0),
            claim=(0.05, 0.0),
        ),
        Leak(
            "entry_280",
            "wide",
            "entry 280 of 300, loss 3",
            partial(_late_entry, entries=300, place=280, shift=3.0, scale=1.0),
            (1, 0),
            20_000,
            partial(laplace, 3.0),
        ),
        Leak("nested", "wide", "[20][20] of a nested list, loss 3", _nested, (1, 0), 20_000, partial(laplace, 3.0)),
        Leak(
            "one_bin",
            "wide",
            "one bin of 1,000 with half the noise, loss 2",
            partial(_late_entry, entries=1_000, place=700, shift=1.0, scale=0.5),
            (1, 0),
            20_000,
            partial(laplace, 1.0, 0.5),
        ),
    ]
    for entries in (64, 100, 256, 1_000):
        goal = 0.8 if entries == 1_000 else 0.9
        found.append(
            Leak(
                f"dense_{entries}",
                "wide",
                f"dense Gaussian shift of 2 in {entries:,} entries",
                partial(_dense, entries=entries),
                (1, 0),
                40_000,
                partial(normal, 2.0),
                goal=goal,
            )
        )
    for form, title in (
        ("json", "number in JSON text"),
        ("bytes", "number as bytes of text"),
        ("decimals", "number as text with six decimals"),
    ):
        found.append(
            Leak(
                f"text_{form}",
                "text",
                f"{title}, loss 2",
                partial(_text, form=form),
                (10.0, 9.0),
                40_000,
                partial(laplace, 1.0, 0.5),
            )
        )
    for loss in (1.4, 1.8, 2.2):
        laws = partial(_token_law, loss)
        found.append(
            Leak(
                f"token_{loss:g}",
                "tokens",
                f"one token of 100 at .004, loss {loss:g}",
                partial(_token, loss=loss),
                (1, 0),
                100_000,
                laws,
                claim=(0.1, 0.0),
            )
        )
    found += [
        Leak(
            "rdp_8",
            "tails",
            "Rényi divergence of order 8 of a Gaussian",
            _gaussian,
            (1.0, 0.0),
            200_000,
            partial(normal_one_way, 1.0),
            claim=(1.0, 0.0),
            goal=0.8,
            order=8.0,
        ),
        Leak(
            "persistence",
            "dependence",
            "persistence of 20 bits, .6 against .5",
            _persistent,
            (1, 0),
            200_000,
            _persistent_law,
            claim=(0.1, 0.0),
        ),
        Leak(
            "times",
            "dependence",
            "times of events on [0, 1), gaps of shape 1.5 against 1",
            _times,
            (1, 0),
            100_000,
            _times_law,
            claim=(0.1, 0.0),
        ),
        Leak(
            "released",
            "dependence",
            "AboveThreshold with its threshold released",
            _released,
            ([0.0] * 8, [1.0] * 8),
            400_000,
            _released_law,
        ),
    ]
    return found


@functools.cache
def _times_law() -> Points:
    return sampled(_times_ratio)


def _token_law(loss: float) -> Points:
    return cells(_token_masses(1, loss), _token_masses(0, loss))


def normal_one_way(mu: float) -> Points:
    """Nested events in order of the ratio, from one side."""
    p, q = normal(mu)
    return p[: len(p) // 2], q[: len(q) // 2]
