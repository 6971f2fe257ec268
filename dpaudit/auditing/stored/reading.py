"""Results read back: strict models of `dpaudit.result/1`, and the arithmetic again from the stored counts.

Contract: what `AuditResult.to_dict` writes is read exactly, floats bit for bit; anything else is refused with
one line. A file whose verdict, certificate, ceiling or hash its own numbers do not give is never loaded.
"""

from __future__ import annotations

import json
import math
import os
from typing import Annotated, Any, Literal, NoReturn

import msgspec
from msgspec import UNSET, UnsetType

from dpaudit.auditing.quoting import clean
from dpaudit.auditing.result import SCHEMA, AuditResult, Explored
from dpaudit.auditing.spec import spec_hash
from dpaudit.auditing.verdict import Verdict
from dpaudit.auditing.witness import Witness
from dpaudit.certify import Certificate, CoinFlip, ceiling, certify
from dpaudit.certify.binomial import lower_limit, upper_limit
from dpaudit.certify.certificate import error_probability
from dpaudit.claims import ApproximateDP, Claim, PureDP
from dpaudit.errors import InvalidSpec

TOLERANCE = 1e-6  # relative; releases of scipy differ by less, and no reader sees so far
CLAIM_FORMS: tuple[type[PureDP] | type[ApproximateDP], ...] = (PureDP, ApproximateDP)
CURE = "restore the file, or audit again"

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
NotNegative = Annotated[float, msgspec.Meta(ge=0.0)]
Probability = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Lower = NotNegative | Literal["inf"]
Edge = float | Literal["inf", "-inf"]
RelationWord = Literal["add_or_remove_one", "replace_one", "replace_special", "local"]


class Stored(msgspec.Struct, forbid_unknown_fields=True):
    """Base of the models: no key may be missing, and none may be added."""


class StoredPureDP(Stored, tag_field="form", tag="PureDP"):
    """`PureDP` as stored."""

    epsilon: NotNegative
    relation: RelationWord | None


class StoredApproximateDP(Stored, tag_field="form", tag="ApproximateDP"):
    """`ApproximateDP` as stored."""

    epsilon: NotNegative
    delta: Probability
    relation: RelationWord | None


class StoredMechanism(Stored):
    """What a report says of the mechanism; `parameters` are the user's own."""

    name: str
    kind: str
    reference: str | None
    parameters: dict[str, Any]
    takes_rng: bool
    digest: str | None


class StoredData(Stored):
    """A dataset: its digest, and its value when small and plain (otherwise null)."""

    digest: str
    value: Any


class StoredPair(Stored):
    """A pair of adjacent datasets."""

    name: str
    distance: AtLeastOne
    first: StoredData
    second: StoredData


class StoredSpec(Stored):
    """The question; `hash` is the digest of everything else in it."""

    name: str
    claim: StoredPureDP | StoredApproximateDP
    mechanism: StoredMechanism
    pairs: Annotated[list[StoredPair], msgspec.Meta(min_length=1)]
    runs: AtLeastOne
    confidence: Annotated[float, msgspec.Meta(gt=0.0, lt=1.0)]
    seed: Annotated[int, msgspec.Meta(ge=0)]
    stopping: Literal["fixed"]
    selector: Literal["penalised"]
    certifier: Literal["coin-flip"]
    search_share: Annotated[float, msgspec.Meta(gt=0.0, lt=1.0)]
    shard_runs: AtLeastOne
    run_timeout_s: float | None
    hash: str


class StoredToken(Stored):
    """A value that is not a number: how it is printed, and the code it is compared by."""

    label: str
    code: Annotated[int, msgspec.Meta(ge=0)]


class StoredEvent(Stored):
    """A set of outputs: half-open intervals (low, high] and tokens of one feature, which has a `kind`."""

    feature: dict[str, Any]
    intervals: list[tuple[Edge, Edge]]
    tokens: list[StoredToken]


class StoredTangent(Stored):
    """The half-plane p <= ratio q + offset."""

    ratio: float
    offset: float


class StoredWitness(Stored):
    """The frozen question that the certifying runs answered."""

    pair: Count
    event: StoredEvent
    event_in_words: str
    p_side: Literal["first", "second"]
    selector: str
    score: float
    tangent: StoredTangent


class StoredEvidence(Stored):
    """Four integers: all that the certificate rests on."""

    kind: Literal["coin-flip"]
    hits_p: Count
    hits_q: Count
    runs_p: Count
    runs_q: Count


class StoredCertificate(Stored):
    """The certified statement."""

    lower: Lower
    epsilon_lower: Lower | None
    p_value: Probability
    delta: Probability
    confidence: Annotated[float, msgspec.Meta(gt=0.0, lt=1.0)]
    method: str


class StoredCrossCheck(Stored):
    """The independent bound."""

    method: str
    epsilon_lower: Lower


class StoredExplored(Stored):
    """One thing that search looked at or left out."""

    what: str
    name: str
    status: str
    score: float | None
    runs: Count


class StoredProvenance(Stored):
    """All that may differ between equal audits; nothing in a result depends on it."""

    version: str | UnsetType = UNSET
    python: str | UnsetType = UNSET
    numpy: str | UnsetType = UNSET
    scipy: str | UnsetType = UNSET
    joblib: str | UnsetType = UNSET
    statsmodels: str | UnsetType = UNSET
    scikit_learn: str | UnsetType = msgspec.field(default=UNSET, name="scikit-learn")
    platform: str | UnsetType = UNSET
    started: str | UnsetType = UNSET
    wall_s: NotNegative | UnsetType = UNSET
    cpu_s: NotNegative | UnsetType = UNSET
    n_jobs: int | UnsetType = UNSET
    backend: str | UnsetType | None = UNSET
    task_runs: Count | UnsetType | None = UNSET
    max_time_s: NotNegative | UnsetType | None = UNSET
    file: str | UnsetType | None = UNSET
    line: Count | UnsetType | None = UNSET
    command: str | UnsetType | None = UNSET
    source: str | UnsetType | None = UNSET


class StoredResult(Stored):
    """An `AuditResult` as `to_dict` writes it."""

    schema: Literal["dpaudit.result/1"]
    spec: StoredSpec
    verdict: Literal["REFUTED", "NOT_REFUTED"]
    witness: StoredWitness
    evidence: StoredEvidence
    certificate: StoredCertificate
    cross_check: StoredCrossCheck
    runs_used: AtLeastOne
    explored: list[StoredExplored]
    ceiling: NotNegative
    upper: None
    reproducible: bool
    provenance: StoredProvenance


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a stored result."""
    made = msgspec.json.schema(StoredResult)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **made}


def load(path: str | os.PathLike[str]) -> AuditResult:
    """The result in a file that `AuditResult.save` wrote.

    Raises `InvalidSpec` where the file is missing, is not such a result, or contradicts its own counts.
    """
    name = clean(path, 200)
    try:
        raw = _read(path)
        _check_schema(raw)
        model = msgspec.convert(raw, StoredResult)
        result = _result(raw, model)
        _check(result, model)
    except InvalidSpec as error:
        raise InvalidSpec(f"{name}: {error}") from None
    except msgspec.ValidationError as error:
        raise InvalidSpec(f"{name}: not a result of this version: {clean(error, 300)}; {CURE}") from None
    return result


def recompute(result: AuditResult) -> Certificate:
    """The certificate again, from the counts, the claim and the confidence of a result alone."""
    return certify(result.evidence, result.claim, result.spec["confidence"])


def claim_from_dict(stored: dict[str, Any]) -> Claim:
    """The claim behind its stored form; raises `InvalidSpec` for an unknown form or a wrong value.

    >>> claim_from_dict({"form": "PureDP", "epsilon": 1.0, "relation": None})
    PureDP(epsilon=1.0, relation=None)
    """
    values = {key: value for key, value in stored.items() if key != "form"}
    for form in CLAIM_FORMS:
        if form.form == stored.get("form"):
            try:
                return form(**values)
            except TypeError:
                raise InvalidSpec(
                    f"a claim of form {form.form} has other keys, got {clean(', '.join(values))}"
                ) from None
    known = ", ".join(form.form for form in CLAIM_FORMS)
    raise InvalidSpec(f"claim.form must be one of {known}, got {clean(stored.get('form'))!r}")


def _read(path: str | os.PathLike[str]) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        raise InvalidSpec("there is no such file; give the path of a result that dpaudit saved") from None
    except UnicodeDecodeError:
        raise InvalidSpec("not JSON: it is not text in UTF-8; give the path of a result that dpaudit saved") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidSpec(f"cannot be read ({reason}); give the path of a result that dpaudit saved") from None
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_not_a_number, parse_float=_finite)
    except InvalidSpec:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidSpec(f"not JSON ({clean(error)}); give the path of a result that dpaudit saved") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # readers differ in which of the two they take
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidSpec(f"the key {clean(twice)!r} stands twice in one object; {CURE}")
    return found


def _not_a_number(text: str) -> NoReturn:
    raise InvalidSpec(f"{text} is not a number of JSON; {CURE}")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise InvalidSpec(f"the number {clean(text)} is too large; {CURE}")
    return number


def _check_schema(raw: Any) -> None:
    if not isinstance(raw, dict) or "schema" not in raw:
        raise InvalidSpec(f"not a result: it has no key 'schema'; give the path of a result in {SCHEMA!r}")
    if raw["schema"] != SCHEMA:
        found = clean(raw["schema"])
        raise InvalidSpec(f"schema must be {SCHEMA!r}, got {found!r}; read it with the dpaudit that wrote it")


def _result(raw: dict[str, Any], model: StoredResult) -> AuditResult:
    e, c = model.evidence, model.certificate
    chosen, pairs = model.witness.pair, model.spec.pairs
    if chosen >= len(pairs):
        raise InvalidSpec(f"witness.pair must be below the number of pairs, {len(pairs)}, got {chosen}; {CURE}")
    epsilon = None if c.epsilon_lower is None else float(c.epsilon_lower)
    return AuditResult(
        spec={key: value for key, value in raw["spec"].items() if key != "hash"},
        claim=claim_from_dict(raw["spec"]["claim"]).at_distance(pairs[chosen].distance),
        witness=_witness(raw["witness"]),
        evidence=CoinFlip(e.hits_p, e.hits_q, e.runs_p, e.runs_q),
        certificate=Certificate(float(c.lower), epsilon, c.p_value, c.delta, c.confidence, c.method),
        runs_used=model.runs_used,
        explored=tuple(Explored(x.what, x.name, x.status, x.score, x.runs) for x in model.explored),
        ceiling=model.ceiling,
        reproducible=model.reproducible,
        provenance=raw["provenance"],
    )


def _witness(stored: dict[str, Any]) -> Witness:
    """The witness, whose event must be one that this version writes the same way."""
    try:
        witness = Witness.from_dict(stored)
        codes = [token["code"] for token in stored["event"]["tokens"]]
        same = witness.event.to_dict() == stored["event"] and max(codes, default=0) < 2**64
        str(witness.event)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError) as error:
        if isinstance(error, InvalidSpec):
            raise
        raise InvalidSpec(f"witness.event is not an event ({clean(error)}); {CURE}") from None
    if not same:
        raise InvalidSpec(f"witness.event is not an event that this version writes; {CURE}")
    return witness


def _check(result: AuditResult, model: StoredResult) -> None:
    """That everything derived follows from the counts, the claim and the confidence."""
    spec, e = model.spec, result.evidence
    _equal("spec.hash", spec.hash, spec_hash(result.spec), "the spec gives")
    if not e.runs <= result.runs_used <= spec.runs:
        found = f"{e.runs}, {result.runs_used} and {spec.runs}"
        raise InvalidSpec(f"runs of the evidence, runs_used and spec.runs must not fall, got {found}; {CURE}")
    again, stored = recompute(result), result.certificate
    for key in ("lower", "epsilon_lower", "p_value", "delta", "confidence", "method"):
        _equal(f"certificate.{key}", getattr(stored, key), getattr(again, key))
    for certificate in (again, stored):  # a p-value at the border must fall on the same side by both
        given = Verdict.REFUTED if certificate.refuted else Verdict.NOT_REFUTED
        _equal("verdict", model.verdict, given.value, f"at p-value {again.p_value!r} the counts give")
    _equal("ceiling", result.ceiling, ceiling(e.runs_p, e.runs_q, again.delta, again.confidence))
    cross_check = float(model.cross_check.epsilon_lower)
    _equal("cross_check.epsilon_lower", cross_check, _two_intervals(e, again.delta, again.confidence))


def _equal(place: str, stored: Any, again: Any, source: str = "the counts give") -> None:
    if isinstance(stored, float) and isinstance(again, float):
        if math.isclose(stored, again, rel_tol=TOLERANCE, abs_tol=1e-300):
            return
    elif stored == again:
        return
    raise InvalidSpec(f"{place} is {clean(repr(stored))}, but {source} {clean(repr(again))}; {CURE}")


def _two_intervals(e: CoinFlip, delta: float, confidence: float) -> float:
    """The rule of the cross-check, here without statsmodels, which takes a second to import."""
    half = error_probability(confidence) / 2.0
    low, high = lower_limit(e.hits_p, e.runs_p, half), upper_limit(e.hits_q, e.runs_q, half)
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0
