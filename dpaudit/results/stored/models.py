"""Strict models of `dpaudit.result/1`: what may stand in a stored result, key by key.

Contract: a key may be added; none is renamed and none changes its meaning.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args

import msgspec
from msgspec import UNSET, UnsetType

from dpaudit.base.strict import models
from dpaudit.certify import Binned, Certificate, CoinFlip, certifier_names
from dpaudit.claims import FORMS, Claim
from dpaudit.options import STORED, Option
from dpaudit.results.observations import FAR, PLACES, Control, Diagnosis, Ending, Explored, Health, Histogram, Typical
from dpaudit.results.result import SCHEMA

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
NotNegative = Annotated[float, msgspec.Meta(ge=0.0)]
Probability = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
OpenProbability = Annotated[float, msgspec.Meta(gt=0.0, lt=1.0)]
Lower = NotNegative | Literal["inf"]
Edge = float | Literal["inf", "-inf"]
Adjacency = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(records|rows|entries|any two|answers|neutral|one value|users"
        r"|\d+ (records|rows|entries|users) leave and \d+ come)$"
    ),
]
RelationWord = Literal["add_or_remove_one", "replace_one", "replace_special", "local", "add_or_remove_user"]
PROVENANCE = (  # keys of what may differ between equal audits, in their order; none of them must be there
    ("version python numpy scipy joblib statsmodels scikit-learn platform started", str),
    ("wall_s cpu_s", NotNegative),
    ("n_jobs", int),
    ("backend", str | None),
    ("isolation", Literal["process", "none"]),
    ("task_runs", Count | None),
    ("max_time_s", NotNegative | None),
    ("file", str | None),
    ("line", Count | None),
    ("command source commit", str | None),
    ("interruptions chosen_runs", Count),
    ("exceptions reasons record", dict[str, str]),
    ("excerpt", list[str]),
    ("digest assumed", str),
)
LIMITS = {  # of fields, by their names
    **dict.fromkeys(("delta", "level", "mass", "p_value", "rarer"), Probability),
    "confidence": OpenProbability,
    "log10_p": Annotated[float, msgspec.Meta(le=0.0)],
    "lower": Lower,
    "epsilon_lower": Lower | None,
    "place": (Literal[PLACES], FAR),
}
_model = models({int: Count}, LIMITS)
if TYPE_CHECKING:
    from dpaudit.certify import Certificate as StoredCertificate
    from dpaudit.results.observations import Control as StoredControl
    from dpaudit.results.observations import Diagnosis as StoredDiagnosis
    from dpaudit.results.observations import Ending as StoredEnding
    from dpaudit.results.observations import Explored as StoredExplored
    from dpaudit.results.observations import Health as StoredHealth
    from dpaudit.results.observations import Histogram as StoredHistogram
    from dpaudit.results.observations import Typical as StoredTypical

    StoredProvenance = dict[str, Any]
else:
    StoredCertificate, StoredEnding, StoredTypical = map(_model, (Certificate, Ending, Typical))
    StoredExplored, StoredHealth, StoredHistogram = map(_model, (Explored, Health, Histogram))
    StoredControl, StoredDiagnosis = map(_model, (Control, Diagnosis))
    StoredProvenance = msgspec.defstruct(
        "StoredProvenance",
        [
            (key.replace("-", "_"), kind | UnsetType, msgspec.field(default=UNSET, name=key))
            for keys, kind in PROVENANCE
            for key in keys.split()
        ],
        namespace={"__doc__": "All that may differ between equal audits; nothing in a result depends on it."},
        forbid_unknown_fields=True,
    )


class Stored(msgspec.Struct, forbid_unknown_fields=True):
    """Base of the models: no key may be missing, and none may be added."""


@lru_cache
def _form(form: type[Claim]) -> type[msgspec.Struct]:
    """A claim form as stored: its fields, strictly."""
    known: list[tuple[str, Any] | tuple[str, Any, bool]] = []
    for each in fields(form):
        if each.metadata:
            kind, limits = each.metadata["kind"], each.metadata["limits"]
            known.append((each.name, Annotated[kind, msgspec.Meta(**limits)] if limits else kind))
        elif each.init:
            known.append((each.name, RelationWord | None) if each.name == "relation" else (each.name, bool, False))
    about = f"`{form.form}` as stored{f': {form.stored}' if form.stored else ''}."
    return msgspec.defstruct(
        f"Stored{form.form}", known, bases=(Stored,), namespace={"__doc__": about}, tag_field="form", tag=form.form
    )


def stored_claim() -> Any:
    """A claim as stored: any of the forms that there are now."""
    return Union[tuple(_form(form) for form in FORMS)]  # noqa: UP007


class StoredMechanism(Stored):
    """What a report says of the mechanism; `parameters` are the user's own."""

    name: str
    kind: str
    reference: str | None
    parameters: dict[str, Any]
    takes_rng: bool
    digest: str | None


def stored_key(each: Option) -> tuple[Any, ...]:
    """An option as a key of the stored question."""
    assert each.stored is not None
    inner = each.stored.kind
    limits: Any = each.stored.limits
    if limits:
        number = next(kind for kind in (get_args(inner) or (inner,)) if kind is not type(None))
        limited: Any = Annotated[number, msgspec.Meta(**limits)]
        inner = limited | None if get_args(inner) else limited
    return (each.name, inner | UnsetType, UNSET) if each.stored.when_set else (each.name, inner)


class StoredData(Stored):
    """A dataset: its digest, its value when small and plain (otherwise null), and what it prints where it has none."""

    digest: str
    value: Any
    shown: str | UnsetType = UNSET


class StoredPair(Stored):
    """A pair of adjacent datasets."""

    name: str
    distance: AtLeastOne
    first: StoredData
    second: StoredData
    sensitivity: Annotated[float, msgspec.Meta(gt=0.0)] | UnsetType = UNSET
    user: str | int | UnsetType = UNSET


def stored_spec(known: Iterable[Option]) -> Any:
    """The model of a stored question with these options."""
    keys = [
        ("name", str),
        ("claim", dict[str, Any]),  # `stored_claim`
        ("mechanism", StoredMechanism),
        ("pairs", Annotated[list[StoredPair], msgspec.Meta(min_length=1)]),
        *map(stored_key, known),  # `certifier` is one of `certifier_names`
        ("hash", str),
    ]
    about = {"__doc__": "The question; `hash` is the digest of everything else in it."}
    return msgspec.defstruct("StoredSpec", keys, bases=(Stored,), kw_only=True, namespace=about)


if TYPE_CHECKING:
    StoredSpec = Any
else:
    StoredSpec = stored_spec(STORED.values())


class StoredToken(Stored):
    """A value that is not a number: how it is printed, and the code it is compared by."""

    label: str
    code: Annotated[int, msgspec.Meta(ge=0)]


class StoredBin(Stored):
    """A bin of a partition: half-open intervals (low, high] and tokens of its feature."""

    intervals: list[tuple[Edge, Edge]]
    tokens: list[StoredToken]


class StoredEvent(Stored):
    """A set of outputs: half-open intervals (low, high] and tokens of one feature, which has a `kind`."""

    feature: dict[str, Any]
    intervals: list[tuple[Edge, Edge]]
    tokens: list[StoredToken]


class StoredSets(Stored):
    """An event, or a partition: the `bins` of one feature instead of `intervals` and `tokens`."""

    feature: dict[str, Any]
    intervals: list[tuple[Edge, Edge]] | UnsetType = UNSET
    tokens: list[StoredToken] | UnsetType = UNSET
    bins: list[StoredBin] | UnsetType = UNSET


class StoredTangent(Stored):
    """The half-plane p <= ratio q + offset."""

    ratio: Lower
    offset: float


class StoredWitness(Stored):
    """The frozen question that the certifying runs answered."""

    pair: Count
    event: StoredSets
    event_in_words: str
    p_side: Literal["first", "second"]
    selector: str
    score: float
    tangent: StoredTangent | None


class StoredCoinFlip(Stored, tag_field="kind", tag=CoinFlip.kind):
    """Four integers: all that the certificate of an event rests on."""

    hits_p: Count
    hits_q: Count
    runs_p: Count
    runs_q: Count


class StoredBinned(Stored, tag_field="kind", tag=Binned.kind):
    """Runs in each bin of a partition, and all runs, of either side."""

    counts_p: list[Count]
    counts_q: list[Count]
    runs_p: Count
    runs_q: Count


StoredEvidence = StoredCoinFlip | StoredBinned


class StoredCrossCheck(Stored):
    """The independent bound."""

    method: str
    epsilon_lower: Lower


class StoredModelBased(Stored):
    """What the bound would mean under a model; never a bound."""

    model: str
    delta: Probability
    epsilon: Lower


class StoredFinding(Stored):
    """A further witness with its counts and certificate."""

    witness: StoredWitness
    evidence: StoredEvidence
    certificate: StoredCertificate


class StoredUnits(Stored):
    """What a refutation rests on where runs may share noise: processes (0: the unit is the call), one run in each."""

    processes: Count
    again: list[StoredFinding]


class StoredBlock(Stored):
    """Some runs of an anytime audit, and the bet that was frozen before them."""

    event: StoredEvent
    event_in_words: str
    p_side: Literal["first", "second"]
    p: OpenProbability
    q: OpenProbability
    delta: Annotated[float, msgspec.Meta(ge=0.0, lt=1.0)]
    evidence: StoredCoinFlip


class StoredMilestones(Stored):
    """Where a deadline could cut certification: numbers of runs, fixed before the first, and the part of the last."""

    ends: Annotated[list[AtLeastOne], msgspec.Meta(min_length=1)]
    last: OpenProbability


class StoredUpper(Stored):
    """An upper bound on the loss: what kind of statement it is, for which inputs, and where it comes from."""

    epsilon_upper: Lower
    epsilon_lower: Lower | None
    delta: Probability
    label: Literal["exact-finite", "exact-pair", "proved", "numeric-upper"]
    scope: str
    arithmetic: Literal["exact rational", "balls", "reals", "floats"]
    source: str


class StoredResult(Stored):
    """An `AuditResult` as `to_dict` writes it."""

    schema: Literal["dpaudit.result/1"]
    spec: StoredSpec
    verdict: Literal["REFUTED", "NOT_REFUTED"]
    witness: StoredWitness
    evidence: StoredEvidence
    certificate: StoredCertificate
    cross_check: StoredCrossCheck | None
    others: list[StoredFinding]
    blocks: list[StoredBlock]
    representation: StoredFinding | None
    health: StoredHealth
    controls: list[StoredControl]
    model_based: StoredModelBased | None
    runs_used: AtLeastOne
    explored: list[StoredExplored]
    ceiling: NotNegative
    upper: StoredUpper | None
    reproducible: bool
    provenance: StoredProvenance
    histogram: StoredHistogram | UnsetType | None = UNSET
    trail: list[StoredEvidence] | UnsetType = UNSET
    adjacency: list[Adjacency | None] | UnsetType = UNSET
    unseen: Count | UnsetType = UNSET
    unpaired: Count | UnsetType = UNSET
    unread: str | UnsetType = UNSET
    endings: list[StoredEnding] | UnsetType = UNSET
    milestones: StoredMilestones | UnsetType = UNSET
    typical: StoredTypical | UnsetType = UNSET
    plain: StoredFinding | UnsetType = UNSET
    units: StoredUnits | UnsetType = UNSET
    diagnosis: StoredDiagnosis | UnsetType = UNSET


def result_model(raw: Any) -> StoredResult:
    """A stored result, checked key by key. Raises `msgspec.ValidationError`."""
    model = msgspec.convert(raw, StoredResult)
    kinds = {key: kind for (_, key), (kind,) in open_kinds().items()}
    spec = msgspec.defstruct("Spec", list(kinds.items()))
    given = {key: getattr(model.spec, key) for key in kinds}
    msgspec.convert({"spec": given}, msgspec.defstruct("Result", [("spec", spec)]))
    return model


def schema_of(model: Any, head: Mapping[str, str], parts: Mapping[tuple[str, str], tuple[Any, ...]]) -> dict[str, Any]:
    """The JSON Schema of a model; `parts` are the kinds (and defaults) of keys of tables that are known only now."""
    schema = msgspec.json.schema(model)
    tables: dict[str, Any] = schema["$defs"]
    for (table, key), kind in parts.items():
        further = msgspec.json.schema(msgspec.defstruct("Part", [(key, *kind)]))["$defs"]
        tables[table]["properties"][key] = further.pop("Part")["properties"][key]
        tables |= further
    ordered: dict[str, Any] = {}

    def put(part: Any) -> None:
        for name in re.findall(r'"#/\$defs/(\w+)"', json.dumps(part)):
            if name not in ordered:
                ordered[name] = tables[name]
                put(tables[name])

    put(schema["$ref"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **head, **schema, "$defs": ordered}


def open_kinds() -> dict[tuple[str, str], tuple[Any, ...]]:
    """Of the keys that depend on the claim forms and certifiers there are now: what may stand there."""
    kind: Any = Literal[certifier_names()]
    return {("StoredSpec", "claim"): (stored_claim(),), ("StoredSpec", "certifier"): (kind,)}


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a stored result."""
    return schema_of(StoredResult, {"$id": SCHEMA}, open_kinds())
