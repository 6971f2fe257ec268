"""Proofs in files: `dpaudit.proof/1` by alignment, `dpaudit.derivation/1` by coupling; strict JSON, fractions as text.

Reading a proof does not check it; `checker.check` and `coupled.check_derivation` do. Contract: a key may be added; none
is renamed and none changes its meaning.
"""

import json
import math
import os
from fractions import Fraction
from typing import Annotated, Any

import msgspec

from dpaudit.base.quoting import clean
from dpaudit.base.strict import fitted, models, read, stored, value_of
from dpaudit.errors import InvalidSpec, at
from dpaudit.verify.coupled import Derivation
from dpaudit.verify.proof import Proof

SCHEMA, DERIVED = "dpaudit.proof/1", "dpaudit.derivation/1"
KINDS: dict[str, type[Proof | Derivation]] = {SCHEMA: Proof, DERIVED: Derivation}
CURE = "give the path of a proof that dpaudit saved"

RATIONAL = "-?[0-9]{1,3000}(/[0-9]{1,3000})?"
Rational = Annotated[str, msgspec.Meta(pattern=f"^{RATIONAL}$")]
OrInfinite = Annotated[str, msgspec.Meta(pattern=f"^({RATIONAL}|inf)$")]
Times = Annotated[int, msgspec.Meta(ge=0, le=10**9)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1, le=10**9)]

_model = models({Fraction: Rational, int: Times, Fraction | float: OrInfinite})
MODELS: dict[str, Any] = {
    schema: msgspec.defstruct(
        "Model",
        [("schema", str), *([("answers", AtLeastOne | None)] if schema == DERIVED else [])],
        bases=(_model(kind),),
        forbid_unknown_fields=True,
        kw_only=True,
    )
    for schema, kind in KINDS.items()
}


def to_dict(proof: Proof | Derivation) -> dict[str, Any]:
    """A proof as plain data. Raises `InvalidSpec` where a parameter is no plain value of JSON.

    >>> from dpaudit.verify.proof import Alignment
    >>> found = to_dict(Proof("", "f", "up", {"c": Fraction(1, 2)}, None, "eps", Alignment(())))
    >>> found["schema"], found["fixed"], found["alignment"]["shifts"]
    ('dpaudit.proof/1', {'c': '1/2'}, [])
    """
    if isinstance(proof, Proof):
        return {"schema": SCHEMA, **msgspec.json.decode(msgspec.json.encode(proof, enc_hook=str))}
    for name, value in proof.parameters.items():
        if not is_json(value):
            raise InvalidSpec(
                f"the parameter {name} = {clean(repr(value), 60)} cannot be saved: give numbers, texts, lists"
            )
    return {"schema": DERIVED, **json.loads(json.dumps(stored(proof), default=str))}


def is_json(value: Any) -> bool:
    """Whether a value comes back from a file as it is.

    >>> is_json({"bins": [1, 2.0, None]}), is_json((1, 2)), is_json(float("inf"))
    (True, False, False)
    """
    kind = type(value)
    if kind is dict:
        return all(type(key) is str and is_json(key) and is_json(each) for key, each in value.items())
    if kind is list:
        return all(map(is_json, value))
    if kind is str:
        return not any("\ud800" <= letter <= "\udfff" for letter in value)
    return value is None or kind is bool or kind is int and abs(value) < 2**63 or kind is float and math.isfinite(value)


def from_dict(raw: Any) -> Proof | Derivation:
    """The proof that plain data is. Raises `InvalidSpec` where it is none of these schemas.

    >>> from dpaudit.verify.proof import Alignment
    >>> proof = Proof("", "f", "up", {}, None, "eps", Alignment(()))
    >>> from_dict(to_dict(proof)) == proof
    True
    """
    if not isinstance(raw, dict) or "schema" not in raw:
        raise InvalidSpec(f"not a proof: it has no key 'schema'; {CURE}")
    schema = raw["schema"]
    if schema not in (SCHEMA, DERIVED):
        raise InvalidSpec(f"schema must be {SCHEMA!r} or {DERIVED!r}, got {clean(schema, 200)}; {CURE}")
    try:
        fitted(raw, MODELS[schema])
        if schema == DERIVED:
            derivation: Derivation = value_of(Derivation, raw, {Fraction: _number, Fraction | float: _number})
            return derivation
        proof: Proof = fitted(raw, Proof, dec_hook=_fraction)
        return proof
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        if isinstance(error.__cause__, InvalidSpec):
            raise error.__cause__ from None
        raise InvalidSpec(f"not a proof of this version: {clean(error, 200)}; {CURE}") from None


def _number(text: str, _: str) -> Fraction | float:
    return math.inf if text == "inf" else _fraction(Fraction, text)


def _fraction(kind: type, text: str) -> Fraction:
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise InvalidSpec(f"{text} is no fraction: its denominator is 0; {CURE}") from None


def save(proof: Proof | Derivation, path: str | os.PathLike[str]) -> None:
    """Writes a proof; the same proof always gives the same bytes. Raises `InvalidSpec` where that cannot be."""
    text = json.dumps(to_dict(proof), indent=2, ensure_ascii=False) + "\n"
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InvalidSpec(f"{os.fspath(path)}: cannot be written ({error.strerror}); name another file") from None


def load(path: str | os.PathLike[str]) -> Proof | Derivation:
    """The proof in a file. Raises `InvalidSpec`, in one line, where there is none."""
    name = os.fspath(path)
    with at(name):
        return from_dict(read(name, cure=CURE, not_json=CURE))
