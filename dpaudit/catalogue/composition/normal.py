"""Normal noise composes exactly: k releases are one release along the line between the two vectors of answers."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Reals
from dpaudit.catalogue.entry import Code, Entry, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng
from dpaudit.claims import GaussianDP


def _composed_gaussians(data: list[float], rng: Rng, mu: float, *, power: float = 0.5) -> tuple[float, ...]:
    sigma = math.pow(len(data), power) / mu
    return tuple(answer + rng.normal(scale=sigma) for answer in data)


def _sigma_of_one(data: list[float], rng: Rng, mu: float) -> tuple[float, ...]:
    return tuple(answer + rng.normal(scale=1.0 / mu) for answer in data)


def _gaussian_runs(data: list[float], runs: int, rng: Rng, mu: float, *, power: float = 0.5) -> Reals:
    noisy = rng.standard_normal((len(data), runs))
    noisy *= math.pow(len(data), power) / mu
    noisy += np.asarray(data, float)[:, None]
    return noisy.T


def _gaussian_loss(first: list[float], second: list[float], mu: float, *, power: float = 0.5) -> float:
    return mu * math.dist(first, second) / math.pow(len(first), power)


composed_gaussians = Entry(
    module="dpaudit.catalogue.composition",
    name="composed_gaussians",
    title="k releases with normal noise, as one claim of Gaussian DP",
    source=Source(
        "Cheema & Huszár, notes 004, 'Zero concentrated DP' (its nice analysis of the Gaussian mechanism)",
        "Dong, Roth & Su 2022, Gaussian differential privacy, corollary 3.3; Bun & Steinke 2016, lemma 1.7",
    ),
    formula="each of the k answers plus its own draw of N(0, sigma^2), sigma = sqrt(k) / mu; it is rho = mu^2 / 2",
    neighbours="vectors of answers that each move by at most 1",
    code=Code(_composed_gaussians, _gaussian_runs, _gaussian_loss),
    parameters=(Parameter("mu", 1.0, "standard deviations", "the claim on all k together", validate.positive),),
    promise=GaussianDP,
    default_pair=([10, 10, 10, 10], [9, 9, 9, 9]),
).with_twins(
    sigma_of_one=Twin(
        title="k releases with normal noise, each with the sigma of a single one",
        reason="the squares add up: k releases of mu are sqrt(k) mu",
        formula="each of the k answers plus its own draw of N(0, sigma^2), sigma = 1 / mu",
        code=Code(_sigma_of_one, partial(_gaussian_runs, power=0.0), partial(_gaussian_loss, power=0.0)),
    ),
    sigma_times_k=Twin(
        title="k releases with normal noise, the budget divided as for epsilon",
        reason="mu adds up in squares and not as epsilon does, so k times the sigma is more noise than needed",
        formula="each of the k answers plus its own draw of N(0, sigma^2), sigma = k / mu",
        code=Code(_composed_gaussians, _gaussian_runs, _gaussian_loss).given(power=1.0),
        broken=False,
    ),
)
