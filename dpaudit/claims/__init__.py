"""What is promised: claim forms, each a convex region of the square (Q(S), P(S)), and relation words.

`conversion` and `composition` are a small calculus of claims: what one implies, and what several imply together.
"""

from dpaudit.claims.claim import POINTS, Claim, HalfPlane, frozen_delta, key
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
from dpaudit.claims.forms import FORMS, check_claim, claim_from_dict, claim_of, claim_of_keys, form_of
from dpaudit.claims.gaussian import GaussianDP
from dpaudit.claims.profile import PrivacyProfile
from dpaudit.claims.pure import ApproximateDP, PureDP
from dpaudit.claims.relation import Relation
from dpaudit.claims.renyi import RenyiDP
from dpaudit.claims.tradeoff import TradeOffDP
from dpaudit.claims.zcdp import ZeroConcentratedDP

__all__ = [
    "FORMS",
    "POINTS",
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
    "check_claim",
    "claim_from_dict",
    "claim_of",
    "claim_of_keys",
    "compose_advanced",
    "compose_basic",
    "compose_gaussian",
    "compose_optimal",
    "compose_renyi",
    "compose_zcdp",
    "form_of",
    "frozen_delta",
    "implies",
    "key",
    "subsample_poisson",
    "to_approximate",
    "to_gaussian",
    "to_profile",
    "to_renyi",
    "to_zcdp",
]
