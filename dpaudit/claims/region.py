"""Half-planes of the square (q, p) = (Q(S), P(S)): the one shape that certification tests.

Every claim form is a convex region p <= G(q) (Dong, Roth & Su 2022, section 2); its tangent at the point that
search found is a half-plane p <= R q + d which contains the region. Refuting the half-plane refutes the claim.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HalfPlane:
    """The points with p <= ratio * q + offset. With an infinite ratio it says something only where q is 0.

    >>> HalfPlane(ratio=2.0, offset=0.1).holds(p=0.5, q=0.2)
    True
    """

    ratio: float
    offset: float

    def holds(self, p: float, q: float) -> bool:
        """Whether the point (q, p) lies in the half-plane."""
        return p <= (self.offset if q == 0.0 else self.ratio * q + self.offset)
