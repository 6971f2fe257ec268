"""Strict models of `dpaudit.result/1` and `dpaudit.suite/1`: what may stand in a stored file, key by key.

They are those of the dataclasses, whose types have the limits; only what no class of ours holds, the question and the
provenance, is written out here. Contract: a key may be added; none is renamed and none changes its meaning.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypedDict, Union

import msgspec
from msgspec import UNSET, UnsetType

from dpaudit.base.strict import JsonObject, Kind, Layout, models
from dpaudit.base.validate import AtLeastOne, Bound, Count, Edge, NotNegative, Probability
from dpaudit.certify import Binned, CoinFlip, certifier_names
from dpaudit.claims import FORMS, Claim, HalfPlane, Relation
from dpaudit.events import Event, Feature, Partition
from dpaudit.mechanisms.protocol import Description
from dpaudit.options import STORED, Option
from dpaudit.outputs.canonical import Token
from dpaudit.results.bounds import UpperBound
from dpaudit.results.certification import Witness
from dpaudit.results.observations import FAR, PLACES, Control
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteEntry, SuiteResult


class HostRuns(TypedDict):
    """A machine whose workers dpaudit has not started: how many these are, or parts of a plan, and their runs."""

    host: str
    workers: int
    runs: int


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
    ("interruptions chosen_runs parts", Count),
    ("hosts", list[HostRuns]),
    ("exceptions reasons record", dict[str, str]),
    ("excerpt", list[str]),
    ("digest assumed", str),
)


@dataclass(frozen=True)
class StoredData:
    """A dataset: its digest, its value when small and plain (otherwise null), and what it prints where it has none."""

    digest: str
    value: Any
    shown: str
    _LATER: ClassVar = ("shown",)


@dataclass(frozen=True)
class StoredPair:
    """A pair of adjacent datasets."""

    name: str
    distance: AtLeastOne
    first: StoredData
    second: StoredData
    sensitivity: Annotated[float, ("gt", 0.0)]
    user: str | int
    _LATER: ClassVar = ("sensitivity", "user")


@dataclass(frozen=True)
class StoredBin:
    """A bin of a partition: half-open intervals (low, high] and tokens of its feature."""

    intervals: tuple[tuple[Edge, Edge], ...]
    tokens: tuple[Token, ...]


@dataclass(frozen=True)
class StoredSets(Event):
    """An event, or a partition: the `bins` of one feature instead of `intervals` and `tokens`."""

    bins: tuple[StoredBin, ...] = ()
    _LATER: ClassVar = ("intervals", "tokens", "bins")


@dataclass(frozen=True)
class StoredCrossCheck:
    """The independent bound."""

    method: str
    epsilon_lower: Bound


@dataclass(frozen=True)
class StoredModelBased:
    """What the bound would mean under a model; never a bound."""

    model: str
    delta: Probability
    epsilon: Bound


@cache
@cache
def _form(form: type[Claim]) -> type[msgspec.Struct]:
    """A claim form as stored: its fields, strictly."""
    known: list[tuple[str, Kind] | tuple[str, Kind, bool]] = []
    for each in fields(form):
        if each.metadata:
            kind, limits = each.metadata["kind"], each.metadata["limits"]
            known.append((each.name, Annotated[kind, msgspec.Meta(**limits)] if limits else kind))
        elif each.init:
            known.append(
                (each.name, models({})(Relation | None)) if each.name == "relation" else (each.name, bool, False)
            )
    about = f"`{form.form}` as stored{f': {form.stored}' if form.stored else ''}."
    return msgspec.defstruct(
        f"Stored{form.form}",
        known,
        namespace={"__doc__": about},
        forbid_unknown_fields=True,
        tag_field="form",
        tag=form.form,
    )


def stored_spec(
    forms: tuple[type[Claim], ...],
    certifiers: tuple[str, ...],
    model: Callable[[Kind], Kind],
    known: Iterable[Option] = STORED.values(),
) -> Kind:
    """The model of a stored question with these options."""
    keys: dict[str, tuple[Kind, ...]] = {}
    for name, place in ((each.name, each.stored) for each in known if each.stored):
        kind = model(place.kind)
        keys[name] = (name, kind | UnsetType, UNSET) if place.when_set else (name, kind)
    keys["certifier"] = ("certifier", Literal[certifiers])
    head = [
        ("name", str),
        ("claim", Union[tuple(map(_form, forms))]),  # noqa: UP007
        ("mechanism", model(Description)),
        ("pairs", Annotated[list[model(StoredPair)], msgspec.Meta(min_length=1)]),  # type: ignore[misc]
    ]
    about = {"__doc__": "The question; `hash` is the digest of everything else in it."}
    return msgspec.defstruct(
        "StoredSpec",
        [*head, *keys.values(), ("hash", str)],
        namespace=about,
        forbid_unknown_fields=True,
        kw_only=True,
    )


def _provenance(model: Callable[[Kind], Kind]) -> Kind:
    """Where and with what a result was made."""
    kinds = [(key, model(kind)) for keys, kind in PROVENANCE for key in keys.split()]
    optional = [
        (key.replace("-", "_"), kind | UnsetType, msgspec.field(default=UNSET, name=key)) for key, kind in kinds
    ]
    about = {"__doc__": "All that may differ between equal audits; nothing in a result depends on it."}
    return msgspec.defstruct("StoredProvenance", optional, namespace=about, forbid_unknown_fields=True)


@cache
def _models(forms: tuple[type[Claim], ...], certifiers: tuple[str, ...]) -> Callable[[Kind], Kind]:
    number = models({})
    layouts = {
        Description: Layout("Mechanism", "What a report says of the mechanism; `parameters` are the user's own."),
        StoredPair: Layout(kinds={"user": str | int}),
        Token: Layout(
            about="A value that is not a number: how it is printed, and the code it is compared by.",
            kinds={"code": Annotated[int, msgspec.Meta(ge=0)]},  # of 64 bits, none of them a sign
        ),
        Event: Layout(
            about="A set of outputs: half-open intervals (low, high] and tokens of one feature, which has a `kind`."
        ),
        Witness: Layout(about="The frozen question that the certifying runs answered."),
        HalfPlane: Layout("Tangent", "The half-plane p <= ratio q + offset."),
        CoinFlip: Layout(about="Four integers: all that the certificate of an event rests on."),
        Binned: Layout(about="Runs in each bin of a partition, and all runs, of either side."),
        UpperBound: Layout("Upper"),
        Control: Layout(kinds={"place": (Literal[PLACES], FAR)}),
        SuiteEntry: Layout(
            "Entry",
            kinds={"expect": Literal["REFUTED", "NOT_REFUTED", "BITS"], "p_value_holm": number(Probability | None)},
        ),
        SuiteResult: Layout("Suite"),
    }
    claim: Kind = Union[tuple(map(_form, forms))]  # noqa: UP007
    types: dict[Kind, Kind] = {int: number(Count), Feature: JsonObject, Claim: claim}
    model = models(types, layouts)
    types[Event | Partition] = model(StoredSets)
    kinds = {
        "spec": stored_spec(forms, certifiers, model),
        "cross_check": model(StoredCrossCheck | None),
        "model_based": model(StoredModelBased | None),
        "provenance": _provenance(number),
    }
    layouts[AuditResult] = Layout("Result", "An `AuditResult` as `to_dict` writes it.", kinds)
    return model


def model_of(kind: type) -> Kind:
    """The model of a class of results, with the claim forms and certifiers that there are now."""
    return _models(tuple(FORMS), certifier_names())(kind)


def schema_of(model: Kind, head: Mapping[str, str], parts: Mapping[tuple[str, str], tuple[Kind, ...]]) -> JsonObject:
    """The JSON Schema of a model; `parts` are the kinds (and defaults) of keys of tables that are known only now."""
    schema = msgspec.json.schema(model)
    tables: JsonObject = schema["$defs"]
    for (table, key), kind in parts.items():
        further = msgspec.json.schema(msgspec.defstruct("Part", [(key, *kind)]))["$defs"]
        tables[table]["properties"][key] = further.pop("Part")["properties"][key]
        tables |= further
    ordered: JsonObject = {}

    def put(part: object) -> None:
        for name in re.findall(r'"#/\$defs/(\w+)"', json.dumps(part)):
            if name not in ordered:
                ordered[name] = tables[name]
                put(tables[name])

    put(schema["$ref"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **head, **schema, "$defs": ordered}


def json_schema(kind: type[AuditResult | SuiteResult] = AuditResult) -> JsonObject:
    """The JSON Schema (draft 2020-12) of a stored result, or suite."""
    return schema_of(model_of(kind), {"$id": kind.schema}, {})
