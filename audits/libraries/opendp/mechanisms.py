"""Measurements of opendp, as its users make them, in the words of whichever version is installed (0.1 to 0.16).

The library owns its randomness. Names and arguments changed at 0.3, 0.7 and 0.8; the newest are tried first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opendp.mod import enable_features

import dpaudit

enable_features("contrib", "floating-point")


def _make_laplace(scale: float) -> Callable[[float], float]:
    """Laplace noise on a double."""
    return _make_noise("laplace", scale)


def _make_double_gaussian(scale: float) -> Callable[[float], float]:
    """Gaussian noise on a double."""
    return _make_noise("gaussian", scale)


def _make_noise(kind: str, scale: float) -> Callable[[float], float]:
    try:
        import opendp.prelude as dp  # 0.7 and later
    except ImportError:
        return _make_old(f"make_base_{kind}", scale)
    dp.enable_features("contrib", "floating-point")
    try:
        space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    except TypeError:
        space = dp.atom_domain(T=float), dp.absolute_distance(T=float)  # before 0.13
    make = getattr(dp.m, f"make_{kind}", None) or getattr(dp.m, f"make_base_{kind}")
    return _once(make(*space, scale=scale))


def _make_old(name: str, scale: float) -> Callable[[Any], Any]:
    try:
        from opendp import measurements as made
    except ImportError:
        from opendp import meas as made
    return _once(getattr(made, name)(scale=scale))


def _once(measurement: Any) -> Callable[[Any], Any]:
    """Its call: handles of a library keep their measurement alive only as long as this does."""
    return lambda data: measurement(data)


def _make_randomized_response(probability: float) -> Callable[[bool], bool]:
    import opendp.prelude as dp

    return _once(dp.m.make_randomized_response_bool(prob=probability))


def _make_gaussian(scale: float) -> Callable[[int], int]:
    """Gaussian noise on a whole number."""
    import opendp.prelude as dp

    return _once(dp.m.make_gaussian(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=scale))


def _make_noisy_max(scale: float) -> Callable[[list[int]], int]:
    """The index of the highest score, scores within 1 of one another's."""
    import opendp.prelude as dp

    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    return _once(dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale))


def context_count(values: list[int], *, epsilon: float) -> int:
    """A count as a user of `Context` asks for it, all of the budget for the one query."""
    import opendp.prelude as dp

    context = dp.Context.compositor(
        data=values,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=epsilon),
        split_evenly_over=1,
        domain=dp.vector_domain(dp.atom_domain(T=int)),
    )
    return int(context.query().count().laplace().release())


laplace = dpaudit.built_by(_make_laplace)
double_gaussian = dpaudit.built_by(_make_double_gaussian)
randomized_response = dpaudit.built_by(_make_randomized_response)
gaussian = dpaudit.built_by(_make_gaussian)
noisy_max = dpaudit.built_by(_make_noisy_max)


def off_the_grid(output: float) -> bool:
    """The output is no multiple of 2^-53: noise around 0 may have finer bits, a sum near 1 that is rounded has not."""
    return output * 2.0**53 % 1.0 != 0.0
