"""Geometric noise on a count, truncated to its range and drawn with exact whole numbers."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Integers
from dpaudit.catalogue.additive.shared import in_room
from dpaudit.catalogue.entry import Code, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import also, pure
from dpaudit.claims import PureDP
from dpaudit.losses.counting import geosample_law, geosample_steps
from dpaudit.losses.discrete import largest_log_ratio

BV = "Balcer & Vadhan 2018, Differential privacy on finite computers, algorithm 4.8 (GeoSample)"
BICHSEL = "Bichsel, Steffen, Bogunovic & Vechev 2021, DP-Sniper (its programs, which take the natural logarithm)"


EPSILON = Parameter(
    "epsilon", 0.04, "nats", "what k is made from", also(validate.positive, lambda x: x < 2.0, "be below 2")
)
PEOPLE = Parameter("n", 5, "people", "counts run from 0 to this", partial(validate.whole, least=1))


def _truncated(data: int, rng: Rng, epsilon: float, n: int) -> int:
    k = math.ceil(math.log(2.0 / epsilon))
    outcomes = (2 ** (k + 1) + 1) * (2**k + 1) ** (n - 1)
    bits = outcomes.bit_length()
    uniform = outcomes
    while uniform >= outcomes:  # uniform on 0, 1, ..., outcomes - 1, however many there are
        uniform = int.from_bytes(rng.bytes(bits // 8 + 1), "little") % 2**bits
    for z in range(n):
        if z < data:
            upto = 2 ** (k * (data - z)) * (2**k + 1) ** (n - data + z)
        else:
            upto = outcomes - 2 ** (k * (z - data + 1)) * (2**k + 1) ** (n - 1 - z + data)
        if uniform < upto:
            return z
    return n


def _truncated_runs(data: int, runs: int, rng: Rng, epsilon: float, n: int) -> Integers:
    cuts = np.cumsum(geosample_law(geosample_steps(epsilon), n, data))[:-1]
    return np.searchsorted(cuts, rng.random(runs), side="right").astype(np.int64, copy=False)


def _truncated_loss(first: int, second: int, epsilon: float, n: int) -> float:
    return largest_log_ratio(*(geosample_law(geosample_steps(epsilon), n, count) for count in (first, second)))


truncated_geometric = in_room(
    name="truncated_geometric",
    title="Geometric noise on a count, truncated to the range of the count, in whole numbers",
    source=Source(None, f"{BV}; {BICHSEL}"),
    formula=(
        "with k = ceil(ln(2 / epsilon)) and a = 2^k / (2^k + 1): the count plus z with probability proportional to "
        "a^|z|, clamped to 0, ..., n; the claim is ln(1 + 2^-k)"
    ),
    neighbours="counts from 0 to `n` that differ by one",
    code=Code(_truncated, _truncated_runs, _truncated_loss),
    parameters=(EPSILON, PEOPLE),
    promise=lambda epsilon, n: PureDP(math.log1p(2.0 ** -geosample_steps(epsilon))),
    default_pair=(1, 0),
).with_twins(
    claimed_as_epsilon=Twin(
        title="The same, claimed as the epsilon that k was made from",
        reason="2^-k is at most epsilon / 2 for a logarithm to base 2; the natural one gives a smaller k, which for a "
        "small epsilon is too small",
        formula="as truncated geometric noise, with the claim epsilon",
        promise=pure,
    ),
)
