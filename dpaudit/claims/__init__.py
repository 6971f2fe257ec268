"""What is promised: claim forms, each a convex region of the square (Q(S), P(S)), and relation words."""

from dpaudit.claims.forms import ApproximateDP, Claim, PureDP
from dpaudit.claims.region import HalfPlane
from dpaudit.claims.relation import Relation

__all__ = ["ApproximateDP", "Claim", "HalfPlane", "PureDP", "Relation"]
