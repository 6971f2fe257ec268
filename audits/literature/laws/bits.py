"""Reports of independent bits: only those in which the two filters differ tell anything, and only by their number."""

from __future__ import annotations

import math

import numpy as np

from audits.literature.laws.curve import ROUNDING, Curve, Floats, both
from dpaudit import AdjacentPair
from dpaudit.catalogue import Entry
from dpaudit.catalogue.local.filters import filter_of
from dpaudit.losses.distribution import log_ratios


def curves(entry: Entry, pair: AdjacentPair) -> tuple[Curve, Curve]:
    """The curves of RAPPOR, permanent step alone or one report. Raises ValueError for several reports."""
    values = entry.values()
    if values.get("reports", 1) != 1:
        raise ValueError(f"{entry.name}: the law is that of one report")
    lost, gained = differing(pair, int(values["bits"]), int(values["hashes"]))
    one, zero = set_chances(entry)
    p = np.outer(_binomial(lost, one), _binomial(gained, zero)).ravel()
    q = np.outer(_binomial(lost, zero), _binomial(gained, one)).ravel()
    up, down = (float(np.max(log_ratios(*order))) for order in ((p, q), (q, p)))
    return both(p, q, (up, down), "closed form: two binomial numbers of bits", ROUNDING)


def differing(pair: AdjacentPair, bits: int, hashes: int) -> tuple[int, int]:
    """How many bits only the first value sets, and how many only the second.

    >>> differing(AdjacentPair(1, 2), bits=20, hashes=4)
    (2, 3)
    """
    one, other = (np.array(filter_of(value, bits, hashes)) for value in (pair.first, pair.second))
    return int(np.sum(one > other)), int(np.sum(other > one))


def set_chances(entry: Entry) -> tuple[float, float]:
    """The probability that a bit of the report is 1 where the filter has a 1, and where it has a 0.

    >>> from dpaudit.catalogue.local import rappor_one_time
    >>> set_chances(rappor_one_time.with_parameters({"f": 0.5}))
    (0.75, 0.25)
    """
    values = entry.values()
    flipped, q, p = float(values["f"]) / 2.0, float(values.get("q", 1.0)), float(values.get("p", 0.0))
    return (1.0 - flipped) * q + flipped * p, flipped * q + (1.0 - flipped) * p


def _binomial(count: int, chance: float) -> Floats:
    ones = range(count + 1)
    return np.array([math.comb(count, k) * chance**k * (1.0 - chance) ** (count - k) for k in ones])
