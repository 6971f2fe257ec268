"""Proofs in files: `dpaudit.proof/1`, strict JSON, fractions as text.

Reading a proof does not check it; `checker.check` does. Contract: a key may be added; none is renamed and none changes
its meaning.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, NoReturn

import msgspec

from dpaudit.errors import InvalidSpec
from dpaudit.verify.proof import Adjacency, Alignment, Case, Kept, Potential, Proof, Shape, Shift

SCHEMA = "dpaudit.proof/1"
CURE = "give the path of a proof that dpaudit saved"
LONGEST_FILE = 20_000_000  # bytes; real ones have a few thousand

Rational = Annotated[str, msgspec.Meta(pattern=r"^-?[0-9]{1,60}(/[0-9]{1,60})?$")]
Times = Annotated[int, msgspec.Meta(ge=0, le=10**9)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1, le=10**9)]


class Stored(msgspec.Struct, forbid_unknown_fields=True):
    """Base of the models: no key may be missing, and none may be added."""


class StoredShift(Stored):
    """`Shift` as stored."""

    path: str
    draw: str
    constant: Rational
    answer: Rational
    differences: dict[str, Rational]


class StoredKept(Stored):
    """`Kept` as stored."""

    variable: str
    value: Rational
    by: Literal["used"] | None


class StoredPotential(Stored):
    """`Potential` as stored."""

    start: str
    counters: dict[str, str]
    used: str
    held: dict[str, str]


class StoredAlignment(Stored):
    """`Alignment` as stored."""

    shifts: list[StoredShift]
    kept: list[StoredKept]
    bounds: list[str]
    potential: StoredPotential | None
    phases: dict[str, str]


class StoredCase(Stored):
    """`Case` as stored."""

    alignment: Times
    cost: str
    counts: dict[str, Times] | None


class StoredProof(Stored):
    """`Proof` as stored."""

    schema: Literal["dpaudit.proof/1"]
    source: str
    function: str
    adjacency: Adjacency
    fixed: dict[str, Rational]
    answers: AtLeastOne | None
    claim: str | None
    cost: str
    shape: Shape
    alignments: list[StoredAlignment]
    cases: list[StoredCase]
    assumptions: list[str]


def to_dict(proof: Proof) -> dict[str, Any]:
    """A proof as plain data.

    >>> found = to_dict(Proof("", "f", "up", {"c": Fraction(1, 2)}, None, None, "eps", "winner", (), ()))
    >>> found["schema"], found["fixed"], found["alignments"]
    ('dpaudit.proof/1', {'c': '1/2'}, [])
    """
    return {
        "schema": SCHEMA,
        "source": proof.source,
        "function": proof.function,
        "adjacency": proof.adjacency,
        "fixed": _texts(proof.fixed),
        "answers": proof.answers,
        "claim": proof.claim,
        "cost": proof.cost,
        "shape": proof.shape,
        "alignments": [_alignment_to_dict(alignment) for alignment in proof.alignments],
        "cases": [_case_to_dict(case) for case in proof.cases],
        "assumptions": list(proof.assumptions),
    }


def from_dict(raw: Any) -> Proof:
    """The proof that plain data is. Raises `InvalidSpec` where it is none of this schema.

    >>> proof = Proof("", "f", "up", {}, None, None, "eps", "winner", (), ())
    >>> from_dict(to_dict(proof)) == proof
    True
    """
    if not isinstance(raw, dict) or "schema" not in raw:
        raise InvalidSpec(f"not a proof: it has no key 'schema'; {CURE}")
    if raw["schema"] != SCHEMA:
        raise InvalidSpec(f"schema must be {SCHEMA!r}, got {_short(raw['schema'])}; {CURE}")
    try:
        model = msgspec.convert(raw, StoredProof)
    except msgspec.ValidationError as error:
        raise InvalidSpec(f"not a proof of this version: {_short(error)}; {CURE}") from None
    return Proof(
        source=model.source,
        function=model.function,
        adjacency=model.adjacency,
        fixed=_fractions(model.fixed),
        answers=model.answers,
        claim=model.claim,
        cost=model.cost,
        shape=model.shape,
        alignments=tuple(_alignment(each) for each in model.alignments),
        cases=tuple(Case(each.alignment, each.cost, each.counts) for each in model.cases),
        assumptions=tuple(model.assumptions),
    )


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
    try:
        return from_dict(_read(name))
    except InvalidSpec as error:
        raise InvalidSpec(f"{name}: {error}") from None


def _read(name: str) -> Any:
    try:
        with open(name, encoding="utf-8") as file:
            text = file.read(LONGEST_FILE + 1)
    except FileNotFoundError:
        raise InvalidSpec(f"there is no such file; {CURE}") from None
    except UnicodeDecodeError:
        raise InvalidSpec(f"not JSON: it is not text in UTF-8; {CURE}") from None
    except (OSError, ValueError) as error:
        raise InvalidSpec(f"cannot be read ({getattr(error, 'strerror', None) or error}); {CURE}") from None
    if len(text) > LONGEST_FILE:
        raise InvalidSpec(f"longer than a proof can be; {CURE}")
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_not_a_number)
    except InvalidSpec:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidSpec(f"not JSON ({_short(error)}); {CURE}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # readers differ in which of the two they take
        (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise InvalidSpec(f"the key {_short(repr(twice))} stands twice in one object; {CURE}")
    return found


def _not_a_number(text: str) -> NoReturn:
    raise InvalidSpec(f"{text} is not a number of JSON; {CURE}")


def _alignment_to_dict(alignment: Alignment) -> dict[str, Any]:
    return {
        "shifts": [
            {
                "path": shift.path,
                "draw": shift.draw,
                "constant": str(shift.constant),
                "answer": str(shift.answer),
                "differences": _texts(shift.differences),
            }
            for shift in alignment.shifts
        ],
        "kept": [{"variable": each.variable, "value": str(each.value), "by": each.by} for each in alignment.kept],
        "bounds": list(alignment.bounds),
        "potential": None if alignment.potential is None else _potential_to_dict(alignment.potential),
        "phases": dict(alignment.phases),
    }


def _potential_to_dict(potential: Potential) -> dict[str, Any]:
    return {
        "start": potential.start,
        "counters": dict(potential.counters),
        "used": potential.used,
        "held": dict(potential.held),
    }


def _case_to_dict(case: Case) -> dict[str, Any]:
    counts = None if case.counts is None else dict(case.counts)
    return {"alignment": case.alignment, "cost": case.cost, "counts": counts}


def _alignment(model: StoredAlignment) -> Alignment:
    return Alignment(
        shifts=tuple(
            Shift(each.path, each.draw, _fraction(each.constant), _fraction(each.answer), _fractions(each.differences))
            for each in model.shifts
        ),
        kept=tuple(Kept(each.variable, _fraction(each.value), each.by) for each in model.kept),
        bounds=tuple(model.bounds),
        potential=None if model.potential is None else _potential(model.potential),
        phases=model.phases,
    )


def _potential(model: StoredPotential) -> Potential:
    return Potential(model.start, model.counters, model.used, model.held)


def _texts(values: Mapping[str, Fraction]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}


def _fractions(values: Mapping[str, str]) -> dict[str, Fraction]:
    return {name: _fraction(value) for name, value in values.items()}


def _fraction(text: str) -> Fraction:
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise InvalidSpec(f"{text} is no fraction: its denominator is 0; {CURE}") from None


def _short(message: object) -> str:
    text = "".join(c if c.isprintable() else "?" for c in str(message))
    return text if len(text) <= 200 else text[:197] + "..."
