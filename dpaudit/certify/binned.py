"""A lower bound on a Rényi divergence from several bins at once, valid at every number of runs.

By data processing D_a(P || Q) is at least the divergence of the bins, ln(sum of p^a q^(1 - a)) / (a - 1), a > 1
(van Erven & Harremoës 2014, theorem 9). Each term rises in p, falls in q and is at least 0: so with a lower
Clopper-Pearson limit for p and an upper one for q in each of k bins, alpha divided equally over the 2 k limits,
    D_a(P || Q) >= ln(sum of pL^a qU^(1 - a)) / (a - 1).
Bins that hold no runs, and outputs in no bin, drop out. The limits hold for all orders together, so a claim about
many orders, such as zero-concentrated DP, is held to the order that says most, and nothing is paid for the choice.

No epsilon at a delta follows without a model, so these certificates have none.
"""

from __future__ import annotations

import math

from dpaudit.certify.binomial import LEAST, SLACK, lower_limit, upper_limit
from dpaudit.certify.certificate import Certificate, error_probability
from dpaudit.certify.evidence import Binned
from dpaudit.claims import Claim, RenyiDP, ZeroConcentratedDP
from dpaudit.errors import InvalidSpec

METHOD = "Rényi divergence of the bins, Clopper-Pearson limits at equal shares of the error probability"
ORDERS = (1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0, 24.0, 32.0, 64.0)
PRECISION = 1e-9  # of ln alpha, in the search for the p-value


def certify(evidence: Binned, claim: Claim, confidence: float) -> Certificate:
    """The certificate of one frozen partition on fresh runs; its bound is in the claim's own parameter.

    Raises `InvalidSpec` for a claim that is not stated in Rényi divergences.
    """
    return Certificate(
        lower=parameter_lower(evidence, claim, error_probability(confidence)),
        epsilon_lower=None,
        p_value=p_value(evidence, claim, claim.promised(0.0)),
        delta=0.0,
        confidence=confidence,
        method=METHOD,
    )


def divergence_lower(evidence: Binned, order: float, alpha: float) -> float:
    """The lower bound of D_order(P || Q), `order` above 1; 0 where there is none.

    >>> round(divergence_lower(Binned((900, 100), (100, 900), 1000, 1000), order=2.0, alpha=0.05), 3)
    1.831
    """
    return _divergence(_limits(evidence, alpha), order)


def rho_lower(evidence: Binned, alpha: float, *, xi: float = 0.0, order: float | None = None) -> float:
    """The lower bound of rho in D_a <= xi + rho a: the largest of (D_a - xi) / a over `ORDERS`, or at one order.

    >>> round(rho_lower(Binned((900, 100), (100, 900), 1000, 1000), 0.05), 3)
    1.244
    """
    limits = _limits(evidence, alpha)
    return max(0.0, *((_divergence(limits, a) - xi) / a for a in (ORDERS if order is None else (order, order))))


def parameter_lower(evidence: Binned, claim: Claim, alpha: float) -> float:
    """The lower bound of the claim's own parameter: its epsilon at the order, or rho."""
    if isinstance(claim, RenyiDP):
        return divergence_lower(evidence, claim.order, alpha)
    if isinstance(claim, ZeroConcentratedDP):
        return rho_lower(evidence, alpha, xi=claim.xi)
    raise InvalidSpec(f"the binned certifier takes claims of the forms RenyiDP and ZeroConcentratedDP, got {claim}")


def p_value(evidence: Binned, claim: Claim, promised: float) -> float:
    """The least alpha whose bound exceeds the promised value, rounded up; 1 where none does."""

    def refutes(log_alpha: float) -> bool:
        return parameter_lower(evidence, claim, math.exp(log_alpha)) > promised

    low, high = math.log(LEAST), 0.0
    if refutes(low):
        return LEAST
    if not refutes(math.nextafter(high, low)):
        return 1.0
    while high - low > PRECISION * max(1.0, -high):
        middle = (low + high) / 2.0
        low, high = (low, middle) if refutes(middle) else (middle, high)
    return math.exp(high)


def ceiling(runs_p: int, runs_q: int, alpha: float) -> float:
    """What no bound on a divergence of any order can exceed, whatever the bins: ln(pL / qU) of all hits and none."""
    most, least = lower_limit(runs_p, runs_p, alpha / 2.0), upper_limit(0, runs_q, alpha / 2.0)
    return max(0.0, math.log(most / least)) if most > 0.0 else 0.0


def _limits(evidence: Binned, alpha: float) -> list[tuple[float, float]]:
    share = alpha / (2 * len(evidence.counts_p))
    return [
        (math.log(lower_limit(x, evidence.runs_p, share)), math.log(upper_limit(y, evidence.runs_q, share)))
        for x, y in zip(evidence.counts_p, evidence.counts_q, strict=True)
        if x > 0 and lower_limit(x, evidence.runs_p, share) > 0.0
    ]


def _divergence(limits: list[tuple[float, float]], order: float) -> float:
    if not limits:
        return 0.0
    terms = [order * p + (1.0 - order) * q for p, q in limits]
    top = max(terms)
    total = top + math.log(math.fsum(math.exp(term - top) for term in terms))
    return max(0.0, (total - SLACK * max(1.0, abs(total))) / (order - 1.0))
