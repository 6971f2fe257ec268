"""What is promised: claim forms, each a convex region of the square (Q(S), P(S)), and relation words.

`conversion` and `composition` are a small calculus of claims: what one implies, and what several imply together.
"""

from dpaudit.claims.composition import (
    compose_advanced,
    compose_basic,
    compose_gaussian,
    compose_optimal,
    compose_renyi,
    compose_zcdp,
    subsample_poisson,
)
from dpaudit.claims.conversion import implies, to_approximate, to_gaussian, to_profile, to_renyi, to_zcdp
from dpaudit.claims.forms import FORMS, claim_from_dict
from dpaudit.claims.gaussian import GaussianDP
from dpaudit.claims.profile import PrivacyProfile
from dpaudit.claims.protocol import Claim, frozen_delta
from dpaudit.claims.pure import ApproximateDP, PureDP
from dpaudit.claims.region import HalfPlane
from dpaudit.claims.relation import Relation
from dpaudit.claims.renyi import RenyiDP
from dpaudit.claims.tradeoff import TradeOffDP
from dpaudit.claims.zcdp import ZeroConcentratedDP

__all__ = [
    "FORMS",
    "ApproximateDP",
    "Claim",
    "GaussianDP",
    "HalfPlane",
    "PrivacyProfile",
    "PureDP",
    "Relation",
    "RenyiDP",
    "TradeOffDP",
    "ZeroConcentratedDP",
    "claim_from_dict",
    "compose_advanced",
    "compose_basic",
    "compose_gaussian",
    "compose_optimal",
    "compose_renyi",
    "compose_zcdp",
    "frozen_delta",
    "implies",
    "subsample_poisson",
    "to_approximate",
    "to_gaussian",
    "to_profile",
    "to_renyi",
    "to_zcdp",
]
