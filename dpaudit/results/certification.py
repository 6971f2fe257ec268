"""From a frozen witness and its counts to a certificate: the one place where the two meet the claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpaudit.certify import Binned, Certificate, CoinFlip, ceiling, certify
from dpaudit.certify.certificate import divided
from dpaudit.certify.sequential import Block, certificate, united
from dpaudit.claims import Claim, frozen_delta
from dpaudit.events import Partition
from dpaudit.results.witness import Witness

Evidence = CoinFlip | Binned
SINGLE = {"binned": "unconditional"}  # what certifies one event in an audit of bins


def fitting(certifier: str, claim: Claim) -> str:
    """The certifier for what a claim has become at a distance: a Rényi claim several steps apart has bins no more."""
    return certifier if hasattr(claim, "order") or hasattr(claim, "rho") else SINGLE.get(certifier, certifier)


def evidence_of(witness: Witness, hits: Any, runs: Any) -> Evidence:
    """The counts as evidence: `hits` of either side in each set of the witness, `runs` of either side."""
    p, q = (0, 1) if witness.p_side == "first" else (1, 0)
    hits, runs = np.asarray(hits), [int(each) for each in runs]
    if isinstance(witness.event, Partition):
        return Binned(tuple(hits[p].tolist()), tuple(hits[q].tolist()), runs[p], runs[q])
    return CoinFlip(int(hits[p][0]), int(hits[q][0]), runs[p], runs[q])


def nothing(witness: Witness) -> Evidence:
    """Evidence of no runs."""
    if isinstance(witness.event, Partition):
        none = (0,) * len(witness.event.bins)
        return Binned(none, none, 0, 0)
    return CoinFlip(0, 0, 0, 0)


def certificate_of(
    witness: Witness, evidence: Evidence, claim: Claim, confidence: float, certifier: str
) -> Certificate:
    """What the counts say of the claim at the witness's distance, at the delta frozen with the witness."""
    if isinstance(evidence, Binned):
        return certify(evidence, claim, confidence, certifier=certifier)
    certifier = SINGLE.get(certifier, certifier)
    delta = None if witness.tangent is None else witness.tangent.offset
    return certify(evidence, claim, confidence, certifier=certifier, delta=delta)


def anytime_certificate(
    blocks: Sequence[Block],
    witness: Witness,
    evidence: Evidence,
    claim: Claim,
    confidence: float,
    certifier: str,
    *,
    share: float,
) -> Certificate:
    """What the bets on the blocks and the fixed bound at the end say together: a union bound over the two shares."""
    level = rest(confidence, share)
    fixed = certificate_of(witness, evidence, claim, level, certifier)
    if not blocks:  # the runs of the blocks were not independent ones and count for nothing
        return replace(fixed, confidence=confidence, p_value=min(1.0, fixed.p_value / (1.0 - share)))
    bets = certificate(blocks, claim, confidence, share=share)
    return bets if evidence.runs == 0 else united(bets, fixed, share=share)


def rest(confidence: float, share: float) -> float:
    """The confidence of the fixed bound of an anytime audit: what the bets leave of the error probability."""
    return divided(confidence, 1.0 / (1.0 - share))


def ceiling_of(witness: Witness, evidence: Evidence, claim: Claim, confidence: float, certifier: str) -> float:
    """The bound that all hits on one side would have given: in epsilon at the frozen delta, or at the order."""
    if isinstance(evidence, Binned):
        return certify(_perfect(evidence), claim, confidence, certifier=certifier).lower
    delta = claim.delta if witness.tangent is None else witness.tangent.offset
    certifier = SINGLE.get(certifier, certifier)
    return ceiling(evidence.runs_p, evidence.runs_q, delta, confidence, certifier=certifier)


def refutable(runs_p: int, runs_q: int, claim: Claim, confidence: float, *, certifier: str) -> bool:
    """Whether outputs that give the dataset away refute the claim with so many runs a side.

    >>> from dpaudit.claims import PureDP
    >>> [refutable(runs, runs, PureDP(1.0), 0.999, certifier="coin-flip") for runs in (1000, 2)]
    [True, False]
    """
    if min(runs_p, runs_q) < 1:
        return False
    certifier = fitting(certifier, claim)
    if certifier == "binned":
        return certify(_perfect(Binned((0,), (0,), runs_p, runs_q)), claim, confidence, certifier=certifier).refuted
    return any(
        ceiling(runs_p, runs_q, delta, confidence, certifier=certifier) > claim.epsilon_at(delta)
        for delta in _free_deltas(claim, min(runs_p, runs_q))
    )


def perfect_bound(claim: Claim, runs: int, confidence: float, certifier: str) -> float:
    """The bound in the claim's parameter that outputs which give the dataset away have, with `runs` a side."""
    certifier = fitting(certifier, claim)
    if certifier == "binned":
        return certify(_perfect(Binned((0,), (0,), runs, runs)), claim, confidence, certifier=certifier).lower
    bounds = ((ceiling(runs, runs, d, confidence, certifier=certifier), d) for d in _free_deltas(claim, runs))
    return max(claim.lower(epsilon, delta) for epsilon, delta in bounds)


def best_delta(claim: Claim, runs: int, confidence: float, *, certifier: str) -> float:
    """The delta at which outputs that give the dataset away refute best with so many runs a side."""
    certifier = SINGLE.get(certifier, certifier)

    def margin(delta: float) -> float:
        return ceiling(runs, runs, delta, confidence, certifier=certifier) - claim.epsilon_at(delta)

    return max(_free_deltas(claim, runs), key=margin)


def _free_deltas(claim: Claim, runs: int) -> Iterator[float]:
    """Deltas that search might freeze for outputs which give the dataset away; the claim's own where it has one."""
    points = [(q, p) for q in (min(0.25, 10.0 / runs), 0.01, 0.05, 0.25) for p in (1.0 - q, 0.5)]
    yield from dict.fromkeys(frozen_delta(claim, q, p) for q, p in points)


def _perfect(evidence: Evidence) -> Evidence:
    if isinstance(evidence, Binned):
        return Binned((evidence.runs_p, 0), (0, evidence.runs_q), evidence.runs_p, evidence.runs_q)
    return CoinFlip(evidence.runs_p, 0, evidence.runs_p, evidence.runs_q)
