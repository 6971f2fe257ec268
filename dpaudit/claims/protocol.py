"""What every claim form answers. A new form is one class with these members, listed in `claims.FORMS`."""

from __future__ import annotations

from typing import ClassVar, Protocol

from dpaudit.arrays import Reals
from dpaudit.claims.region import HalfPlane
from dpaudit.claims.relation import Relation

FLAT = 1.25  # a ratio of probabilities that bad luck may well turn into none


class Claim(Protocol):
    """A promise about every adjacent pair: P(S) <= G(Q(S)) for every set S of outputs, in both orders.

    G is concave, so for each d in [0, 1] the claim implies one half-plane p <= e^epsilon q + d, with the epsilon
    that `epsilon_at(d)` gives: the line through (0, d) that touches the region. What runs certify is such an epsilon
    at a d that was frozen before; `lower` says what it means for the claim's own parameter. Members of a form's
    family are nested, so the half-planes at one d are nested too, and `lower` is valid without any correction.
    """

    form: ClassVar[str]
    parameter: ClassVar[str]

    @property
    def relation(self) -> Relation | None:
        """The relation the promise is stated for; None: none stated, none checked."""

    @property
    def delta(self) -> float:
        """The additive part of the promise; 0 where the form has none."""

    def max_probability(self, q: float) -> float:
        """G(q): the largest P(S) that the claim allows where Q(S) = q."""

    def tangent(self, q: float) -> HalfPlane:
        """A half-plane that contains the region (rounded outwards) and touches it at Q(S) = q."""

    def epsilon_at(self, delta: float) -> float:
        """The least epsilon of the (epsilon, delta)-DP that the claim implies, rounded up; inf where there is none.

        It is ln sup (G(q) - delta) / q over q in (0, 1], and at least 0.
        """

    def delta_at(self, epsilon: float) -> float:
        """The privacy profile: the least delta of the (epsilon, delta)-DP that the claim implies, rounded up."""

    def lower(self, epsilon: float, delta: float) -> float:
        """The least value of `parameter` whose member has `epsilon_at(delta)` of at least `epsilon`, rounded down.

        0.0 where that says nothing: `epsilon` is not above 0, or every member has an infinite one at this delta.
        inf where no member reaches it, as at a delta of 1.
        """

    def promised(self, delta: float) -> float:
        """The promised value that `lower(..., delta)` is compared with: the claim's own parameter."""

    def least_parameter(self, q: Reals, p: Reals) -> Reals:
        """The least parameter whose member's region holds each point (q, p); for scores, not for certificates.

        Arrays of one shape in, that shape out; -inf where every member holds the point, inf where none does.
        """

    def delta_through(self, q: float, p: float) -> float:
        """The delta to freeze for a point that search found: where the tangent, at (q, p), of its member meets q = 0.

        Beyond p + q = 1 that of the mirror image (1 - p, 1 - q): the complement of the event, on the other side, is
        the event whose half-plane has a slope of at least 1.
        """

    def at_distance(self, distance: int) -> Claim:
        """What the claim implies for datasets `distance` steps apart (group privacy)."""

    def to_dict(self) -> dict[str, object]:
        """The claim as plain values, as specs and results store it; `claim_from_dict` reads it back."""


def frozen_delta(claim: Claim, q: float, p: float) -> float:
    """The delta to freeze with an event at (q, p), so that what is tested there bounds the claim's region closely.

    It is `delta_through`, but where that tangent is flatter than `FLAT` a delta through (q, p) that leaves some
    epsilon, though never less than `delta_at(0)`: at that one the claim implies p <= q + delta_at(0), and beyond it
    a larger delta only weakens what is tested.

    >>> from dpaudit.claims import GaussianDP
    >>> claim = GaussianDP(0.5)
    >>> frozen_delta(claim, 0.4, 0.599) == claim.delta_at(0.0) < claim.delta_through(0.4, 0.599)
    True
    """
    through = claim.delta_through(q, p)
    if through <= claim.delta:
        return through
    if p + q > 1.0:  # the mirrored point, of which `delta_through` gives the tangent
        q, p = 1.0 - p, 1.0 - q
    return min(through, max(claim.delta_at(0.0), p - FLAT * q))
