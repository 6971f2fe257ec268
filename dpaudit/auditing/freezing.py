"""Between search and certification: what was proposed becomes the witness, which no later run changes."""

from dpaudit.auditing.spec import ResolvedSpec
from dpaudit.claims import Claim, HalfPlane
from dpaudit.claims.rounding import ratio
from dpaudit.events import Partition
from dpaudit.events.search.grouping import PartitionProposal
from dpaudit.events.search.selection import Proposal
from dpaudit.results.witness import Witness


def frozen(spec: ResolvedSpec, pair: int, found: Proposal | PartitionProposal, selector: str) -> Witness:
    """The witness of a pair; its `selector` says what proposed it, and of which family it is."""
    tangent = None if isinstance(found.event, Partition) else tangent_at(spec.claim_at(pair), found.delta)
    return Witness(pair, found.event, found.p_side, f"{selector}: {found.family}", round(found.score, 6), tangent)


def tangent_at(claim: Claim, delta: float) -> HalfPlane:
    """The half-plane through (0, delta) that the claim implies."""
    return HalfPlane(ratio(claim.epsilon_at(delta)), delta)
