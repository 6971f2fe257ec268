"""Strict models of `dpaudit.result/1`: what may stand in a stored result, key by key.

Contract: a key may be added; none is renamed and none changes its meaning.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from dpaudit.certify import CertifierName
from dpaudit.results.audited import SCHEMA

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
NotNegative = Annotated[float, msgspec.Meta(ge=0.0)]
Probability = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
OpenProbability = Annotated[float, msgspec.Meta(gt=0.0, lt=1.0)]
Lower = NotNegative | Literal["inf"]
Edge = float | Literal["inf", "-inf"]
Adjacency = Literal["records", "rows", "entries", "answers", "any two"]
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


class StoredGaussianDP(Stored, tag_field="form", tag="GaussianDP"):
    """`GaussianDP` as stored."""

    mu: NotNegative
    relation: RelationWord | None


class StoredRenyiDP(Stored, tag_field="form", tag="RenyiDP"):
    """`RenyiDP` as stored."""

    order: Annotated[float, msgspec.Meta(gt=1.0)]
    epsilon: NotNegative
    relation: RelationWord | None


class StoredZeroConcentratedDP(Stored, tag_field="form", tag="ZeroConcentratedDP"):
    """`ZeroConcentratedDP` as stored."""

    rho: NotNegative
    xi: NotNegative
    relation: RelationWord | None


class StoredPrivacyProfile(Stored, tag_field="form", tag="PrivacyProfile"):
    """`PrivacyProfile` as stored: points (epsilon, delta)."""

    curve: list[tuple[float, float]]
    relation: RelationWord | None


class StoredTradeOffDP(Stored, tag_field="form", tag="TradeOffDP"):
    """`TradeOffDP` as stored: points (type I error, least type II error); `outer` where they allow more than f."""

    f: list[tuple[float, float]]
    relation: RelationWord | None
    outer: bool = False


StoredClaim = (
    StoredPureDP
    | StoredApproximateDP
    | StoredGaussianDP
    | StoredRenyiDP
    | StoredZeroConcentratedDP
    | StoredPrivacyProfile
    | StoredTradeOffDP
)


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
    sensitivity: Annotated[float, msgspec.Meta(gt=0.0)] | UnsetType = UNSET


class StoredSpec(Stored):
    """The question; `hash` is the digest of everything else in it."""

    name: str
    claim: StoredClaim
    mechanism: StoredMechanism
    pairs: Annotated[list[StoredPair], msgspec.Meta(min_length=1)]
    runs: AtLeastOne
    confidence: Annotated[float, msgspec.Meta(gt=0.0, lt=1.0)]
    seed: Annotated[int, msgspec.Meta(ge=0)]
    stopping: Literal["fixed", "anytime"]
    selector: Literal["penalised"]
    certifier: CertifierName
    sequential_share: Annotated[float, msgspec.Meta(gt=0.0, lt=1.0)]
    certify_pairs: AtLeastOne
    representation: bool
    detect: dict[str, float] | None
    controls: Count
    search_share: Annotated[float, msgspec.Meta(gt=0.0, lt=1.0)]
    shard_runs: AtLeastOne
    run_timeout_s: float | None
    hash: str


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


class StoredCoinFlip(Stored, tag_field="kind", tag="coin-flip"):
    """Four integers: all that the certificate of an event rests on."""

    hits_p: Count
    hits_q: Count
    runs_p: Count
    runs_q: Count


class StoredBinned(Stored, tag_field="kind", tag="binned"):
    """Runs in each bin of a partition, and all runs, of either side."""

    counts_p: list[Count]
    counts_q: list[Count]
    runs_p: Count
    runs_q: Count


StoredEvidence = StoredCoinFlip | StoredBinned


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


class StoredBlock(Stored):
    """Some runs of an anytime audit, and the bet that was frozen before them."""

    event: StoredEvent
    event_in_words: str
    p_side: Literal["first", "second"]
    p: OpenProbability
    q: OpenProbability
    delta: Annotated[float, msgspec.Meta(ge=0.0, lt=1.0)]
    evidence: StoredCoinFlip


class StoredCheck(Stored):
    """One check of the experiment's health."""

    name: str
    log10_p: Annotated[float, msgspec.Meta(le=0.0)]
    level: Probability
    finding: str
    cure: str


class StoredHealth(Stored):
    """All checks of the experiment's health, and notes."""

    checks: list[StoredCheck]
    notes: list[str]


class StoredControl(Stored):
    """A spiked control: a leak of known size, and how often it was caught."""

    mass: Probability
    rarer: Probability
    loss: float
    caught: Count
    repeats: Count
    needed: Count


class StoredExplored(Stored):
    """One thing that search looked at or left out."""

    what: str
    name: str
    status: str
    score: float | None
    runs: Count


class StoredEnding(Stored):
    """How some search runs ended, on either dataset, and how many of them the event of the witness holds."""

    what: str
    runs: tuple[Count, Count]
    hits: tuple[Count, Count]


class StoredUpper(Stored):
    """An upper bound on the loss: what kind of statement it is, for which inputs, and where it comes from."""

    epsilon_upper: Lower
    epsilon_lower: Lower | None
    delta: Probability
    label: Literal["exact-finite", "exact-pair", "proved", "numeric-upper"]
    scope: str
    arithmetic: Literal["exact rational", "balls", "reals", "floats"]
    source: str


class StoredHistogram(Stored):
    """Both output distributions on the witness's feature, in search runs: to look at, never evidence."""

    feature: str
    edges: list[float]
    values: list[float]
    first: list[Count]
    second: list[Count]
    labels: list[str]
    tokens_first: list[Count]
    tokens_second: list[Count]
    runs_first: Count
    runs_second: Count


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
    commit: str | UnsetType | None = UNSET
    interruptions: Count | UnsetType = UNSET
    exceptions: dict[str, str] | UnsetType = UNSET


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
    endings: list[StoredEnding] | UnsetType = UNSET


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a stored result."""
    made = msgspec.json.schema(StoredResult)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **made}
