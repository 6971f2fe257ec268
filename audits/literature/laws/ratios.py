"""ln(dP/dQ) of outputs one by one, as a sampler gives them: Laplace densities, and a sum over the noisy threshold.

It needs no law of the ratio, and is another computation than the curves: the tests hold each against the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from audits.literature.laws import LAWS, largest, noised, sums
from audits.literature.laws.curve import Floats
from audits.literature.laws.released import Noises
from dpaudit import AdjacentPair
from dpaudit.catalogue import Entry
from dpaudit.catalogue.sparse.lyu import FOUR, THREE
from dpaudit.catalogue.sparse.values import NUMERIC
from dpaudit.losses.comparisons import below

Bools = npt.NDArray[np.bool_]
Ratio = Callable[[Any], Floats]  # of a batch of outputs, the run as first axis, float64[runs]
LEVELS = np.arange(-320.0, 480.0, 0.5)  # of the noisy threshold; the answers are nodes


def log_ratio(name: str, entry: Entry, pair: AdjacentPair) -> Ratio | None:
    """That of a row with noise on entries, on a threshold or on a maximum; None for others, and for bare answers."""
    values, law = entry.values(), LAWS[name]
    if law == "sums":
        scale, running = sums.scale(entry, pair), entry.name.startswith("prefix_sums")
        return lambda y: moves(np.diff(y, axis=1, prepend=0.0) if running else y, pair, scale).sum(axis=1)
    if law == "noised" and not entry.name.startswith("truncated_geometric"):
        scale, bound = noised.scale(entry), values.get("bound", np.inf)
        if entry.name.startswith("laplace_sum"):
            first, second = (float(np.clip(data, -bound, bound).sum()) for data in (pair.first, pair.second))
            return lambda y: moves(y, AdjacentPair(first, second), scale)
        return lambda y: moves(y, pair, scale).reshape(len(y), -1).sum(axis=1)
    if law == "largest" and entry.name.endswith("value_only"):
        answers = [np.asarray(data, float) for data in (pair.first, pair.second)]
        return lambda y: np.subtract(*(largest.log_density(each, y, *largest.noise(entry)) for each in answers))
    epsilon, threshold, most = (values.get(key, 1) for key in ("epsilon", "threshold", "c"))
    if law == "released":
        return lambda y: _released(y, most, pair, Noises(threshold, *THREE.noises(epsilon, most)))
    if law == "transcripts":
        three, four = (Noises(threshold, *rule.noises(epsilon, most)) for rule in (THREE, FOUR))
        places = len(pair.first)
        return lambda y: (
            _released(y[:, :places], most, pair, three)
            + by_pattern(np.ma.filled(y[:, places:], 0) == 1, most, pair, four)
        )
    if law == "numerical":
        noises, scale = Noises(threshold, *NUMERIC.noises(epsilon, most)), 3.0 * most / epsilon

        def numerical(y: Any) -> Floats:
            tops = np.ma.filled(y, 0.0) != 0.0
            values = np.where(tops, moves(y.data, pair, scale), 0.0).sum(axis=1)
            return np.asarray(values + by_pattern(tops, most, pair, noises))

        return numerical
    if law == "thresholds":
        loss: Any = entry.loss
        rule = loss.keywords["rule"]
        given = {key: value for key, value in values.items() if key != "threshold"}
        noises = Noises(threshold, *rule.noises(**{"c": most, **given}))
        halts = most if rule.halts else len(pair.first) + 1
        return (lambda y: by_pattern(np.ma.filled(y, 0) == 1, halts, pair, noises)) if noises.query_scale else None
    return None


def moves(values: Any, pair: AdjacentPair, scale: float) -> Floats:
    """The log ratios of Laplace noise on every answer."""
    first, second = np.asarray(pair.first, float), np.asarray(pair.second, float)
    return np.asarray((np.abs(values - second) - np.abs(values - first)) / scale)


def by_pattern(is_top: Bools, most: int, pair: AdjacentPair, noises: Noises, cuts: Floats | None = None) -> Floats:
    """The log ratio of tops and bottoms; with cuts that of the bottoms alone and a threshold below the cut."""
    found = np.empty(len(is_top))
    codes = is_top @ (1 << np.arange(is_top.shape[1]))  # a number is sorted sooner than a row
    _, firsts, place = np.unique(codes, return_index=True, return_inverse=True)
    for index, tops in enumerate(is_top[firsts]):
        bottoms = (np.cumsum(tops) - tops < most) & ~tops  # of the answers that were compared
        counted = tops if cuts is None else np.zeros(len(tops), np.bool_)
        sides = (_log_reached(np.asarray(data, float), counted, bottoms, noises) for data in (pair.first, pair.second))
        ratio, mine = np.subtract(*sides), place == index
        found[mine] = ratio[-1] if cuts is None else np.interp(cuts[mine], LEVELS, ratio)
    return found


def _released(y: Any, most: int, pair: AdjacentPair, noises: Noises) -> Floats:
    """Algorithm 3: the bottoms with the threshold below the least value, and the values."""
    given = ~np.ma.getmaskarray(y)
    cuts = np.where(given, y.data, LEVELS[-1]).min(axis=1)
    values = np.where(given, moves(y.data, pair, noises.query_scale), 0.0).sum(axis=1)
    return np.asarray(by_pattern(given, most, pair, noises, cuts) + values)


def _log_reached(answers: Floats, is_top: Bools, is_bottom: Bools, noises: Noises) -> Floats:
    """ln of the chance of these tops and bottoms and a noisy threshold below each level."""
    values = np.exp(-np.abs(LEVELS - noises.threshold) / noises.threshold_scale) / (2.0 * noises.threshold_scale)
    for answer, top, bottom in zip(answers, is_top, is_bottom, strict=True):
        values = values * (below(answer - LEVELS, noises.query_scale) if top else 1.0)
        values = values * (below(LEVELS - answer, noises.query_scale) if bottom else 1.0)
    return np.asarray(np.log(np.concatenate([[1e-300], np.cumsum((values[1:] + values[:-1]) / 4.0)])))
