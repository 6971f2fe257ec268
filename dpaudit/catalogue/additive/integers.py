"""Geometric noise on an integer: Laplace noise for counts, whose outputs are counts again."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Integers
from dpaudit.catalogue.additive.single import in_room, of_number
from dpaudit.catalogue.entry import Code, Harmless, Loss, Parameter, Source, Twin, remade
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import EPSILON, also, doubled, per_unit, pure, unbounded
from dpaudit.claims import PureDP
from dpaudit.losses.distribution import largest_log_ratio
from dpaudit.losses.released import geosample_law, geosample_steps

GRS = "Ghosh, Roughgarden & Sundararajan 2009, Universally utility-maximizing privacy mechanisms"

WIDTH = Parameter("width", 5, "units of the answer", "the largest noise")
LARGEST = Parameter("largest", 10, "people", "counts run from 0 to this")


def _stop(epsilon: float, sensitivity: float = 1.0, **_: float) -> float:
    return -math.expm1(-epsilon / sensitivity)


def _difference(data: int, rng: Rng, stop: float) -> int:
    return data + int(rng.geometric(stop)) - int(rng.geometric(stop))


def _clamped(data: int, rng: Rng, epsilon: float, largest: int) -> int:
    stop = -math.expm1(-epsilon)
    noisy = data + int(rng.geometric(stop)) - int(rng.geometric(stop))
    return min(max(noisy, 0), largest)


def _two_sided(stop: Callable[..., float], loss: Loss, kept: Callable[..., Any] | None = None) -> Code:
    """The difference of two geometric draws that stop with a probability; `kept` is what is made of the noisy count."""
    noisy_count = remade(_difference, lambda **given: {"stop": stop(**given)})

    def program(data: int, rng: Rng, **given: float) -> int:
        noisy = noisy_count(data, rng, **given)
        return int(noisy if kept is None else kept(noisy, data, **given))

    def sampler(data: int, runs: int, rng: Rng, **given: float) -> Integers:
        noisy = rng.geometric(stop(**given), runs)
        noisy -= rng.geometric(stop(**given), runs)
        noisy += data
        return noisy if kept is None else np.asarray(kept(noisy, data, **given))

    return Code(noisy_count if kept is None else program, sampler, loss)


def _at_once(epsilon: float, sensitivity: float) -> float:
    return min(1.0, epsilon / sensitivity)


def _first_order_loss(first: int, second: int, epsilon: float, sensitivity: float) -> float:
    """A step changes the mass by 1 - stop, and there is no noise left where stop reaches 1."""
    if first == second:
        return 0.0
    stop = _at_once(epsilon, sensitivity)
    return math.inf if stop == 1.0 else -math.log1p(-stop) * abs(first - second)


def _one_sided(data: int, rng: Rng, epsilon: float, sensitivity: float) -> int:
    return data + int(rng.geometric(_stop(epsilon, sensitivity))) - 1


def _one_sided_runs(data: int, runs: int, rng: Rng, epsilon: float, sensitivity: float) -> Integers:
    return rng.geometric(_stop(epsilon, sensitivity), runs) + (data - 1)


def _uniform(data: int, rng: Rng, epsilon: float, sensitivity: float, width: int) -> int:
    return data + int(rng.integers(0, width + 1))


def _uniform_runs(data: int, runs: int, rng: Rng, epsilon: float, sensitivity: float, width: int) -> Integers:
    return rng.integers(0, width + 1, runs) + data


geometric = of_number(
    name="geometric",
    title="Two-sided geometric noise on an integer",
    source=Source(None, GRS),
    formula="the answer plus z with probability proportional to e^(-epsilon |z| / sensitivity), z an integer",
    neighbours="integers at most `sensitivity` apart",
    code=_two_sided(_stop, per_unit),
).with_twins(
    """half_noise: Geometric noise with the exponent doubled
        the parameter counts e^-epsilon for each of the two sides: a step costs 2 epsilon
        the answer plus z with probability proportional to e^(-2 epsilon |z| / sensitivity)
    first_order: Geometric draws that stop with probability epsilon
        epsilon is not 1 - e^-epsilon: a step costs -ln(1 - epsilon), and epsilon = 1 leaves no noise
        the answer plus the difference of two geometric draws, stop probability epsilon / sensitivity
    one_sided: Geometric noise upwards only
        the output is never below the answer, so the least outputs of one dataset cannot come from the other
        the answer plus z with probability proportional to e^(-epsilon z / sensitivity), z = 0, 1, 2, ...
    uniform_noise: Uniform integer noise from 0 to width
        the noise ends: a share 1 / (width + 1) of one dataset's outputs cannot come from the other
        the answer plus an integer from 0 to `width`, all equally likely""",
    half_noise=Twin(at=doubled),
    first_order=Twin(code=_two_sided(_at_once, _first_order_loss)),
    one_sided=Twin(code=Code(_one_sided, _one_sided_runs, unbounded)),
    uniform_noise=Twin(code=Code(_uniform, _uniform_runs, unbounded), parameters=(WIDTH,)),
)


def _wrapped_loss(first: int, second: int, epsilon: float, largest: int) -> float:
    """Round a circle of N places the mass u steps up is proportional to r^u + r^(N - u), r = e^-epsilon."""
    places = largest + 1
    up = np.arange(places)
    before, after = (
        np.logaddexp(-epsilon * ((up - data) % places), -epsilon * (places - (up - data) % places))
        for data in (first, second)
    )
    return float(np.max(np.abs(before - after)))


clamped_geometric = of_number(
    name="clamped_geometric",
    title="Geometric noise on a count, clamped to the range of the count",
    source=Source(None, GRS),
    formula="the count plus z with probability proportional to e^(-epsilon |z|), clamped to 0, ..., largest",
    neighbours="counts from 0 to `largest` that differ by one",
    code=_two_sided(_stop, per_unit, lambda noisy, data, largest, **_: np.clip(noisy, 0, largest))._replace(
        program=_clamped
    ),
    parameters=(EPSILON, LARGEST),
    default_pair=(1, 0),
).with_twins(
    """own_bound: The noisy count clamped to twice the true one
        the upper end is a function of the data, and outputs at or near it show where it is
        the count plus geometric noise, clamped to 0, ..., 2 count
    wrapped: The noisy count wrapped around at the ends
        the remainder is taken after the noise and knows nothing else of the data, useless as it is
        the count plus geometric noise, its remainder modulo largest + 1""",
    own_bound=Twin(
        code=_two_sided(_stop, unbounded, lambda noisy, data, **_: np.clip(noisy, 0, 2 * data)), default_pair=(2, 1)
    ),
    wrapped=Harmless(
        code=_two_sided(_stop, _wrapped_loss, lambda noisy, data, largest, **_: noisy % (largest + 1)),
        edit={"min(max(noisy, 0), largest)": "noisy % (largest + 1)"},
    ),
)


# --- geometric noise on a count, truncated to its range and drawn with exact whole numbers --------------------


BV = "Balcer & Vadhan 2018, Differential privacy on finite computers, algorithm 4.8 (GeoSample)"
BICHSEL = "Bichsel, Steffen, Bogunovic & Vechev 2021, DP-Sniper (its programs, which take the natural logarithm)"


EPSILON = Parameter(
    "epsilon", 0.04, "nats", "what k is made from", also(validate.positive, lambda x: x < 2.0, "be below 2")
)


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
    parameters=(EPSILON, Parameter("n", 5, "people", "counts run from 0 to this")),
    promise=lambda epsilon, n: PureDP(math.log1p(2.0 ** -geosample_steps(epsilon))),
    default_pair=(1, 0),
    every_pair=lambda n, **_: itertools.pairwise(range(n + 1)),
).with_twins(
    """claimed_as_epsilon: The same, claimed as the epsilon that k was made from
        2^-k is at most epsilon / 2 for a logarithm to base 2; the natural one gives a smaller k, which for a \
            small epsilon is too small
        as truncated geometric noise, with the claim epsilon""",
    claimed_as_epsilon=Twin(promise=pure),
)
