"""What is promised: claim forms, each a convex region of the square (Q(S), P(S)), and relation words.

`calculus` tells what one claim implies, and what several imply together.
"""

from dpaudit.claims.calculus import compose_advanced as compose_advanced
from dpaudit.claims.calculus import compose_basic as compose_basic
from dpaudit.claims.calculus import compose_gaussian as compose_gaussian
from dpaudit.claims.calculus import compose_optimal as compose_optimal
from dpaudit.claims.calculus import compose_renyi as compose_renyi
from dpaudit.claims.calculus import compose_zcdp as compose_zcdp
from dpaudit.claims.calculus import implies as implies
from dpaudit.claims.calculus import subsample_poisson as subsample_poisson
from dpaudit.claims.calculus import to_approximate as to_approximate
from dpaudit.claims.calculus import to_gaussian as to_gaussian
from dpaudit.claims.calculus import to_profile as to_profile
from dpaudit.claims.calculus import to_renyi as to_renyi
from dpaudit.claims.calculus import to_zcdp as to_zcdp
from dpaudit.claims.claim import POINTS as POINTS
from dpaudit.claims.claim import Claim as Claim
from dpaudit.claims.claim import HalfPlane as HalfPlane
from dpaudit.claims.claim import Relation as Relation
from dpaudit.claims.claim import frozen_delta as frozen_delta
from dpaudit.claims.claim import key as key
from dpaudit.claims.forms import FORMS as FORMS
from dpaudit.claims.forms import check_claim as check_claim
from dpaudit.claims.forms import claim_from_dict as claim_from_dict
from dpaudit.claims.forms import claim_of as claim_of
from dpaudit.claims.forms import claim_of_keys as claim_of_keys
from dpaudit.claims.forms import form_of as form_of
from dpaudit.claims.profile import PrivacyProfile as PrivacyProfile
from dpaudit.claims.pure import ApproximateDP as ApproximateDP
from dpaudit.claims.pure import PureDP as PureDP
from dpaudit.claims.renyi import RenyiDP as RenyiDP
from dpaudit.claims.renyi import ZeroConcentratedDP as ZeroConcentratedDP
from dpaudit.claims.tradeoff import GaussianDP as GaussianDP
from dpaudit.claims.tradeoff import TradeOffDP as TradeOffDP
