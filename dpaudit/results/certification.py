"""From a frozen witness and its counts to a certificate: the one place where the two meet the claim.

The witness is the frozen question put to the fresh runs: which pair, which event, which side is the likelier one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, ClassVar, Literal

import numpy as np

from dpaudit.base.arrays import Bools, Integers
from dpaudit.certify.certificate import Certificate, Certifier, divided
from dpaudit.certify.evidence import Binned, CoinFlip
from dpaudit.certify.sequential import Block, certificate, united
from dpaudit.claims.claim import Claim, HalfPlane
from dpaudit.errors import InvalidSpec
from dpaudit.events import Event, Partition

Side = Literal["first", "second"]


@dataclass(frozen=True, slots=True)
class Witness:
    """What search proposes and certification tests; frozen before the first certifying run.

    `pair` is the index of the pair in the spec, `event` a set of outputs (or, for a Rényi bound, a partition into
    several), `p_side` the dataset that makes it likelier, `score` the selector's uncertified guess of the bound,
    `tangent` the half-plane p <= ratio q + offset that the claim implies and the event is to refute: its offset is
    the delta at which epsilon is certified (None for a partition).
    """

    pair: int
    event: Event | Partition
    p_side: Side
    selector: str
    score: float
    tangent: HalfPlane | None
    _KEYS: ClassVar = ("pair", "event", "event_in_words", "p_side", "selector", "score", "tangent")  # as stored

    @property
    def event_in_words(self) -> str:
        """The event as it prints."""
        return str(self.event)

    @property
    def q_side(self) -> Side:
        """The other dataset."""
        return "second" if self.p_side == "first" else "first"

    def contains(self, outputs: Any) -> Bools:
        """Which outputs are in the event, or in the first bin of a partition: bool[outputs].

        `outputs` is a list with an output for each run, as the mechanism gives it, or the array that it gives for a
        batch. Raises `InvalidSpec` for anything else.

        >>> from tests.golden import example
        >>> example.result().witness.contains([9.4, 9.6])
        array([False,  True])
        """
        if not isinstance(outputs, list | np.ndarray) or getattr(outputs, "shape", None) == ():
            got = type(outputs).__name__
            raise InvalidSpec(
                f"contains takes a list of outputs, or the array of a batch, got {got}; put one in a list"
            )
        event = self.event.bins[0] if isinstance(self.event, Partition) else self.event
        encode = import_module("dpaudit.outputs.encode")  # which stands on results
        if isinstance(outputs, list):
            return event.contains(encode.encode_objects(outputs, event.wanted))
        return event.contains(encode.encode_batch(outputs, len(outputs), event.wanted))


AuditEvidence = CoinFlip | Binned  # what audits leave behind: coins draw the sides of their runs


def evidence_of(witness: Witness, hits: Integers, runs: Integers) -> AuditEvidence:
    """The counts as evidence: hits int64[sides, sets] of each set of the witness, runs int64[sides]."""
    p, q = (0, 1) if witness.p_side == "first" else (1, 0)
    runs_p, runs_q = int(runs[p]), int(runs[q])
    if isinstance(witness.event, Partition):
        return Binned(tuple(hits[p].tolist()), tuple(hits[q].tolist()), runs_p, runs_q)
    return CoinFlip(int(hits[p, 0]), int(hits[q, 0]), runs_p, runs_q)


def nothing(witness: Witness) -> AuditEvidence:
    """Evidence of no runs."""
    bins = len(witness.event.bins) if isinstance(witness.event, Partition) else 1
    return evidence_of(witness, np.zeros((2, bins), np.int64), np.zeros(2, np.int64))


def frozen_delta_of(witness: Witness, claim: Claim) -> float:
    """The delta that was frozen with the witness; the claim's own for a partition."""
    return claim.delta if witness.tangent is None else witness.tangent.offset


def certificate_of(
    witness: Witness,
    evidence: AuditEvidence,
    claim: Claim,
    confidence: float,
    certifier: Certifier,
    *,
    part: float = 1.0,
) -> Certificate:
    """What the counts say of the claim at the witness's distance, at the delta frozen with the witness.

    `part` of the error probability is theirs where a deadline may choose among counts (`certify.sequential`): the bound
    is that of this part, and the p-value is divided by it, to be compared with the whole.
    """
    level = divided(confidence, 1.0 / part)
    certificate = certifier.of(evidence).certify(evidence, claim, level, frozen_delta_of(witness, claim))
    return (
        certificate
        if part == 1.0
        else replace(certificate, confidence=confidence, p_value=min(1.0, certificate.p_value / part))
    )


def anytime_certificate(
    blocks: Sequence[Block],
    witness: Witness,
    evidence: AuditEvidence,
    claim: Claim,
    confidence: float,
    certifier: Certifier,
    *,
    share: float,
    part: float = 1.0,
) -> Certificate:
    """What the bets on the blocks and the fixed bound at the end say together: a union bound over the two shares."""
    fixed = certificate_of(witness, evidence, claim, rest(confidence, share), certifier, part=part)
    if not blocks:  # the runs of the blocks were not independent ones and count for nothing
        return replace(fixed, confidence=confidence, p_value=min(1.0, fixed.p_value / (1.0 - share)))
    bets = certificate(blocks, claim, confidence, share=share)
    return bets if evidence.runs == 0 else united(bets, fixed, share=share)


def rest(confidence: float, share: float) -> float:
    """The confidence of the fixed bound of an anytime audit: what the bets leave of the error probability."""
    return divided(confidence, 1.0 / (1.0 - share))


def ceiling_of(
    witness: Witness, evidence: AuditEvidence, claim: Claim, confidence: float, certifier: Certifier
) -> float:
    """The bound that all hits on one side would have given: in epsilon at the frozen delta, or at the order."""
    delta = frozen_delta_of(witness, claim)
    return certifier.of(evidence).perfect(evidence.runs_p, evidence.runs_q, claim, confidence, delta)
