"""Proofs in files: `dpaudit.proof/1`, strict JSON, fractions as text.

Reading a proof does not check it; `checker.check` does. Contract: a key may be added; none is renamed and none changes
its meaning.
"""

import json
import os
from fractions import Fraction
from typing import Annotated, Any

import msgspec

from dpaudit.base.quoting import clean
from dpaudit.base.strict import fitted, models, read
from dpaudit.errors import InvalidSpec, at
from dpaudit.verify.proof import Proof

SCHEMA = "dpaudit.proof/1"
CURE = "give the path of a proof that dpaudit saved"

Rational = Annotated[str, msgspec.Meta(pattern=r"^-?[0-9]{1,60}(/[0-9]{1,60})?$")]
Times = Annotated[int, msgspec.Meta(ge=0, le=10**9)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1, le=10**9)]

_model = models({Fraction: Rational, int: Times})
_KEYS: Any = [("schema", str), ("answers", AtLeastOne | None)]
MODEL: Any = msgspec.defstruct("Model", _KEYS, bases=(_model(Proof),), forbid_unknown_fields=True, kw_only=True)


def to_dict(proof: Proof) -> dict[str, Any]:
    """A proof as plain data.

    >>> found = to_dict(Proof("", "f", "up", {"c": Fraction(1, 2)}, None, None, "eps", "winner", (), ()))
    >>> found["schema"], found["fixed"], found["alignments"]
    ('dpaudit.proof/1', {'c': '1/2'}, [])
    """
    return {"schema": SCHEMA, **msgspec.json.decode(msgspec.json.encode(proof, enc_hook=str))}


def from_dict(raw: Any) -> Proof:
    """The proof that plain data is. Raises `InvalidSpec` where it is none of this schema.

    >>> proof = Proof("", "f", "up", {}, None, None, "eps", "winner", (), ())
    >>> from_dict(to_dict(proof)) == proof
    True
    """
    if not isinstance(raw, dict) or "schema" not in raw:
        raise InvalidSpec(f"not a proof: it has no key 'schema'; {CURE}")
    if raw["schema"] != SCHEMA:
        raise InvalidSpec(f"schema must be {SCHEMA!r}, got {clean(raw['schema'], 200)}; {CURE}")
    try:
        fitted(raw, MODEL)
        proof: Proof = fitted(raw, Proof, dec_hook=_fraction)
        return proof
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        if isinstance(error.__cause__, InvalidSpec):
            raise error.__cause__ from None
        raise InvalidSpec(f"not a proof of this version: {clean(error, 200)}; {CURE}") from None


def _fraction(kind: type, text: str) -> Fraction:
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise InvalidSpec(f"{text} is no fraction: its denominator is 0; {CURE}") from None


def save(proof: Proof, path: str | os.PathLike[str]) -> None:
    """Writes a proof; the same proof always gives the same bytes. Raises `InvalidSpec` where that cannot be."""
    text = json.dumps(to_dict(proof), indent=2, ensure_ascii=False) + "\n"
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InvalidSpec(f"{os.fspath(path)}: cannot be written ({error.strerror}); name another file") from None


def load(path: str | os.PathLike[str]) -> Proof:
    """The proof in a file. Raises `InvalidSpec`, in one line, where there is none."""
    name = os.fspath(path)
    with at(name):
        return from_dict(read(name, cure=CURE, not_json=CURE))
