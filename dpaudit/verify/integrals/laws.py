"""The four laws at real and complex balls: what a draw between two numbers weighs, its density, and its tails.

All are centred at 0 with scale 1 (normal: standard deviation 1). Between two numbers the form is the one that loses
the fewest digits; every form is entire, so that it may be integrated along a line.
"""

from typing import Any

from dpaudit.base.installed import flint
from dpaudit.verify.language.nodes import Law


def between(law: Law, lower: Any, upper: Any, above: bool) -> Any:
    """P(lower < X < upper) of a normal or Gumbel draw; None is no limit. `above`: take upper tails if both are given.

    >>> arb = flint().arb
    >>> float(between("normal", arb(0), None, True)), round(float(between("gumbel", None, arb(0), True)), 6)
    (0.5, 0.367879)
    """
    if law == "normal":
        if lower is None and upper is None:
            return 1
        if upper is None:
            return normal_tail(lower)
        if lower is None:
            return normal_tail(-upper)
        return normal_tail(lower) - normal_tail(upper) if above else normal_tail(-upper) - normal_tail(-lower)
    if lower is None:
        return 1 if upper is None else _gumbel(upper)
    if upper is None:
        return -(-(-lower).exp()).expm1()
    return -_gumbel(upper) * ((-upper).exp() - (-lower).exp()).expm1()


def density(law: Law, at: Any) -> Any:
    """The density of a draw at a number; of a Laplace draw that of numbers above 0, of an exponential one too.

    >>> round(float(density("normal", flint().arb(0))), 6)
    0.398942
    """
    if law == "normal":
        return (-(at * at) / 2).exp() / (2 * flint().arb.pi()).sqrt()
    if law == "gumbel":
        return (-at - (-at).exp()).exp()
    return (-at).exp() / (2 if law == "laplace" else 1)


def upper_tail(law: Law, at: Any) -> Any:
    """P(X > at) for a number that is not below 0.

    >>> round(float(upper_tail("laplace", flint().arb(1))), 6)
    0.18394
    """
    if law in ("laplace", "exponential"):
        return density(law, at)  # the same number
    return between(law, at, None, True)


def lower_tail(law: Law, at: Any) -> Any:
    """P(X < -at) for a number that is not below 0.

    >>> float(lower_tail("exponential", flint().arb(1))), round(float(lower_tail("gumbel", flint().arb(1))), 6)
    (0.0, 0.065988)
    """
    if law == "gumbel":
        return _gumbel(-at)
    return flint().arb(0) if law == "exponential" else upper_tail(law, at)


def highest_density(law: Law) -> Any:
    """A bound on the density of a draw.

    >>> highest_density("laplace") == 0.5
    True
    """
    arb = flint().arb
    return {"laplace": arb(1) / 2, "exponential": arb(1), "normal": arb(1) / 2, "gumbel": arb(1) / 2}[law]


def normal_tail(at: Any) -> Any:
    """P(X > at) of a normal draw, for any number."""
    return (at / flint().arb(2).sqrt()).erfc() / 2


def _gumbel(at: Any) -> Any:
    return (-(-at).exp()).exp()
