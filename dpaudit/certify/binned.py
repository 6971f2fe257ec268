"""A lower bound on a Rényi divergence from several bins at once, valid at every number of runs.

The bins are frozen in order of falling ratio p/q, and what is certified are the first j of them together, T_j: a lower
limit A_j of P(T_j) and an upper one B_j of Q(T_j), alpha divided equally over the 2 (k - 1) limits. With H the least
concave curve through (0, 0) and (1, 1) that is not below any point (B_j, A_j), over its straight pieces of width dB and
height dA and for a > 1 (the proof: docs/statistics/curves.md),
    D_a(P || Q) >= ln(sum of dA^a dB^(1 - a)) / (a - 1).
A wrong order of the bins makes the bound smaller, never wrong. The limits hold for all orders a together, so a claim
about many is held to the one that says most. No epsilon at a delta follows without a model.
"""

import itertools
import math
from typing import Any

from dpaudit.base.validate import error_probability
from dpaudit.certify.binomial import LEAST, SLACK, joint_limits
from dpaudit.certify.certificate import Certificate, Certifier, EventCertifier
from dpaudit.certify.evidence import Binned, Evidence
from dpaudit.certify.unconditional import UNCONDITIONAL
from dpaudit.claims import FORMS, Claim
from dpaudit.errors import InvalidSpec

METHOD = "Rényi divergence of nested events, Clopper-Pearson limits at equal shares of the error probability"
ORDERS = (1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0, 24.0, 32.0, 64.0)
PRECISION = 1e-9  # of ln alpha, in the search for the p-value

Point = tuple[float, float]  # (q, p)


def parameter_lower(evidence: Binned, claim: Claim, alpha: float) -> float:
    """The lower bound of the claim's own parameter, at the order that says most of its own or of `ORDERS`.

    >>> from dpaudit.claims import RenyiDP, ZeroConcentratedDP
    >>> counts = Binned((900, 100), (100, 900), 1000, 1000)
    >>> [round(parameter_lower(counts, claim, 0.05), 3) for claim in (RenyiDP(2.0, 1.0), ZeroConcentratedDP(1.0))]
    [1.864, 1.443]
    """
    orders = claim.orders(ORDERS)
    if not orders:
        raise InvalidSpec(f"the binned certifier takes claims of the forms {_forms()}, got {claim}")
    pieces = _pieces(evidence, alpha)
    return max(0.0, *(claim.at_divergence(order, _divergence(pieces, order)) for order in orders))


def _forms() -> str:
    return " and ".join(form.__name__ for form in FORMS if form(*form.example).orders())


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


class BinnedCertifier(Certifier):
    """The functions above, for a partition: bounds in the claim's parameter, and no delta. Bets are on one event."""

    name, method, takes, bins = "binned", METHOD, (Binned,), True

    def suits(self, claim: Claim, stopping: str) -> bool:
        return self.fits(claim) and stopping == "fixed"

    def fits(self, claim: Claim) -> bool:
        return bool(claim.orders())

    @property
    def forms(self) -> str:
        return _forms()

    @property
    def single(self) -> EventCertifier:
        return UNCONDITIONAL

    def certify(self, evidence: Evidence, claim: Claim, confidence: float, delta: float | None = None) -> Certificate:
        self.check(evidence)
        assert isinstance(evidence, Binned)
        alpha, promised = error_probability(confidence), claim.promised(0.0)
        lower, value = parameter_lower(evidence, claim, alpha), p_value(evidence, claim, promised)
        # one statement in two forms, each rounded to its own safe side: they must not disagree
        value = min(value, alpha) if lower > promised else max(value, math.nextafter(alpha, 1.0))
        return Certificate(lower, None, value, 0.0, confidence, METHOD)

    def perfect(self, runs_p: int, runs_q: int, claim: Claim, confidence: float, delta: float) -> float:
        counts = Binned((runs_p, 0), (0, runs_q), runs_p, runs_q)
        return parameter_lower(counts, claim, error_probability(confidence))

    def refutable(self, runs_p: int, runs_q: int, claim: Claim, confidence: float) -> bool:
        return self.perfect(runs_p, runs_q, claim, confidence, 0.0) > claim.promised(0.0)

    def perfect_bound(self, claim: Claim, runs: int, confidence: float) -> float:
        return self.perfect(runs, runs, claim, confidence, 0.0)

    def counts(self, few: int, many: int, runs: int) -> Binned:
        half = runs // 2
        return Binned((few, half - few), (many, half - many), half, half)

    def refutes(self, evidence: Any, claim: Claim, delta: float, alpha: float) -> bool:
        return parameter_lower(evidence, claim, alpha) > claim.promised(0.0)


def _pieces(evidence: Binned, alpha: float) -> list[tuple[float, float]]:
    """(height, width) of the straight pieces of H, steepest first."""
    limits = joint_limits(evidence.events, evidence.runs_p, evidence.runs_q, alpha)
    points = [(most_q, least_p) for least_p, most_q in limits]
    corners = [(0.0, 0.0)]
    for q, p in [*sorted(points), (1.0, 1.0)]:
        if p <= corners[-1][1]:
            continue
        while len(corners) > 1 and not _bends(corners[-2], corners[-1], (q, p)):
            corners.pop()
        corners.append((q, p))
    return [(after[1] - before[1], after[0] - before[0]) for before, after in itertools.pairwise(corners)]


def _bends(first: Point, middle: Point, last: Point) -> bool:
    """Whether the middle corner lies above the line from the first to the last."""
    rise, run = last[1] - first[1], last[0] - first[0]
    return (middle[1] - first[1]) * run > rise * (middle[0] - first[0])


def _divergence(pieces: list[tuple[float, float]], order: float) -> float:
    # slopes fall, so what rounding does to a short piece is small against the pieces before it: SLACK covers it
    terms = [order * math.log(height) + (1.0 - order) * math.log(width) for height, width in pieces]
    top = max(terms)
    total = top + math.log(math.fsum(math.exp(term - top) for term in terms))
    return max(0.0, (total - SLACK * max(1.0, abs(total))) / (order - 1.0))
