"""All claim forms, and the ways to state a claim: of a form's keys, of its stored form, of an epsilon alone."""

from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from typing import Any

from dpaudit.claims.claim import Claim, Relation
from dpaudit.claims.profile import PrivacyProfile
from dpaudit.claims.pure import ApproximateDP, PureDP
from dpaudit.claims.renyi import RenyiDP, ZeroConcentratedDP
from dpaudit.claims.tradeoff import GaussianDP, TradeOffDP
from dpaudit.errors import InvalidSpec

FORMS: list[type[Claim]] = [PureDP, ApproximateDP, GaussianDP, RenyiDP, ZeroConcentratedDP, PrivacyProfile, TradeOffDP]
"""The forms there are. One of your own joins by `FORMS.append(...)`; nothing else has to know it."""


def claim_of(epsilon: float, delta: float = 0.0, relation: Relation | str | None = None) -> PureDP | ApproximateDP:
    """The claim of an epsilon and a delta alone.

    >>> claim_of(1.0), claim_of(1.0, 0.01).delta
    (PureDP(epsilon=1.0, relation=None), 0.01)
    """
    word = Relation.of(relation)
    return PureDP(epsilon, word) if delta == 0 else ApproximateDP(epsilon, delta, word)


def check_claim(given: object) -> Claim:
    """The claim itself. Raises `InvalidSpec` for anything that is none."""
    if not isinstance(given, Claim):
        raise InvalidSpec(f"claim must be a claim such as dpaudit.PureDP(epsilon=1.0), got {given!r}")
    return given


def form_of(keys: Collection[str], *, numbers: bool = False, place: str = "claim") -> type[Claim]:
    """The form that the keys of a spec choose, among all or those of `numbers` alone. Raises `InvalidSpec` for none.

    >>> form_of(["rho"]).form
    'ZeroConcentratedDP'
    """
    choices: list[str] = []
    for form in FORMS:
        stated = form.spec_fields()
        if numbers and any(each.metadata["kind"] is not float for each in stated.values()):
            continue
        needed = {key: each.default is MISSING for key, each in stated.items()}
        if set(keys) <= needed.keys() and all(key in keys for key in needed if needed[key]):
            return form
        choices.append(", ".join(key if needed[key] else f"[{key}]" for key in needed))
    raise InvalidSpec(
        f"{place}: its keys choose the form, one of: {'; '.join(choices)}; got {', '.join(keys) or 'none'}"
    )


def claim_of_keys(keys: Mapping[str, Any], relation: Relation | str | None = None) -> Claim:
    """The claim that a spec states. Raises `InvalidSpec` for keys of no form, and for a value out of range.

    >>> claim_of_keys({"profile": [[1.0, 0.02], [2.0, 0.001]]}).form
    'PrivacyProfile'
    """
    form: Any = form_of(keys)
    claim: Claim = form(**{form.spec_fields()[key].name: value for key, value in keys.items()}, relation=relation)
    return claim


def claim_from_dict(stored: Mapping[str, Any]) -> Claim:
    """The claim that `to_dict` wrote, bit for bit. Raises `InvalidSpec` for anything else.

    >>> claim_from_dict(PureDP(1.0).to_dict())
    PureDP(epsilon=1.0, relation=None)
    """
    word = stored.get("form")
    known: dict[str, Any] = {form.form: form for form in FORMS}
    if not isinstance(word, str) or word not in known:
        raise InvalidSpec(f"claim.form must be one of {', '.join(known)}, got {str(word)!r}")
    form = known[word]
    values = {key: value for key, value in stored.items() if key != "form"}
    wanted = {each.name: each.default for each in fields(form) if each.init}
    spare = {name for name, default in wanted.items() if default is None or default is False}
    if not set(values) <= set(wanted) or not set(wanted) - set(values) <= spare:
        raise InvalidSpec(f"a claim of form {word} has other keys, got {', '.join(values)}; it has {', '.join(wanted)}")
    claim: Claim = form(**values)
    return claim
