"""All claim forms, and claims read back from their stored form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dpaudit.claims.gaussian import GaussianDP
from dpaudit.claims.profile import PrivacyProfile
from dpaudit.claims.protocol import Claim
from dpaudit.claims.pure import ApproximateDP, PureDP
from dpaudit.claims.renyi import RenyiDP
from dpaudit.claims.tradeoff import TradeOffDP
from dpaudit.claims.zcdp import ZeroConcentratedDP
from dpaudit.errors import InvalidSpec

FORMS: tuple[type[Any], ...] = (
    PureDP,
    ApproximateDP,
    GaussianDP,
    RenyiDP,
    ZeroConcentratedDP,
    TradeOffDP,
    PrivacyProfile,
)


def claim_from_dict(stored: Mapping[str, Any]) -> Claim:
    """The claim that `to_dict` wrote, bit for bit. Raises `InvalidSpec` for anything else.

    >>> claim_from_dict(PureDP(1.0).to_dict())
    PureDP(epsilon=1.0, relation=None)
    """
    word = stored.get("form")
    known = {form.form: form for form in FORMS}
    if not isinstance(word, str) or word not in known:
        raise InvalidSpec(f"claim.form must be one of {', '.join(known)}, got {str(word)!r}")
    form = known[word]
    values = {key: value for key, value in stored.items() if key != "form"}
    wanted = [each.name for each in fields(form) if each.init]
    if not set(values) <= set(wanted) or not set(wanted) - set(values) <= {"relation", "outer"}:
        raise InvalidSpec(f"a claim of form {word} has other keys, got {', '.join(values)}; it has {', '.join(wanted)}")
    claim: Claim = form(**values)
    return claim
