"""The keys of a spec; `reading` refuses what is unknown or of the wrong kind.

Contract: this module is the schema `dpaudit.audit/1`. A key may be added; none is renamed and none changes its meaning.
"""

from functools import lru_cache, reduce
from operator import or_
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from dpaudit.certify import certifier_names
from dpaudit.claims import FORMS, Claim, Relation
from dpaudit.options import IN_SPECS, IN_SWEEPS, Option

SCHEMA = "dpaudit.audit/1"


class CommandTable(Struct, frozen=True, forbid_unknown_fields=True):
    """An external program as the mechanism."""

    command: Annotated[list[str], Meta(description="the program and its arguments; started in the folder of the spec")]


class PairTable(Struct, frozen=True, forbid_unknown_fields=True):
    """Two adjacent datasets, by value."""

    first: Annotated[Any, Meta(description="one dataset, any value")]
    second: Annotated[Any, Meta(description="the other")]
    name: Annotated[str | None, Meta(description="what the report calls the pair")] = None
    distance: Annotated[int, Meta(description="how many steps apart the two are")] = 1


PairEntry = PairTable | str
RelationKey = Annotated[
    Annotated[str, Meta(extra_json_schema={"enum": Relation.words()})] | None,
    Meta(description="how the datasets differ; left out: none stated, none checked"),
]
Words = Annotated[str, Meta(min_length=1)]


class UpperTable(Struct, frozen=True, forbid_unknown_fields=True):
    """An upper bound on the loss; reports show it beside the certified lower bound.

    Either `proof`, which is checked when the spec is read, or `epsilon`, `scope` and `source`, taken as stated.
    """

    proof: Annotated[
        str | list[str] | None,
        Meta(description="a file that `dpaudit bracket --save` wrote, or two, one for each way; beside the spec"),
    ] = None
    epsilon: Annotated[float | None, Meta(description="the loss is at most this, in nats")] = None
    scope: Annotated[Words | None, Meta(description="in words, which inputs it holds for")] = None
    source: Annotated[Words | None, Meta(description="in words, where it comes from")] = None
    delta: Annotated[float, Meta(description="at this delta; left out: 0")] = 0.0
    label: Annotated[
        Literal["proved", "exact-finite", "exact-pair", "numeric-upper"],
        Meta(description="what kind of statement it is; exact-pair: of the audited pair alone"),
    ] = "numeric-upper"
    arithmetic: Annotated[
        Literal["exact rational", "balls", "reals", "floats"], Meta(description="what it was computed with")
    ] = "floats"


class FilledTable(Struct, frozen=True, forbid_unknown_fields=True):
    """What only people know of an audit; reports show it, and it decides nothing."""

    owner: Annotated[Words | None, Meta(description="who answers for the mechanism")] = None
    source: Annotated[Words | None, Meta(description="where the claim is made, quoted, with its version")] = None
    unit: Annotated[Words | None, Meta(description="whom one entry of the data stands for: a person, a visit")] = None
    releases: Annotated[int | Words | None, Meta(description="how many releases the claim covers")] = None
    data: Annotated[Words | None, Meta(description="where the audited datasets come from: made up, a sample")] = None
    reviewer: Annotated[Words | None, Meta(description="who reviews what is found")] = None


class RecordTable(FilledTable, frozen=True, forbid_unknown_fields=True):
    """The record of one audit; `make audit-libraries` shows the rest beside what was found in somebody's library."""

    finding: Annotated[
        Words | None, Meta(description="what is wrong, in a maintainer's words, and under which reading of the claim")
    ] = None
    reported: Annotated[Words | None, Meta(description="where it was reported; or that no report was seen")] = None
    compare: Annotated[Words | None, Meta(description="a name shared by the audits that are to be compared")] = None
    plain: Annotated[
        Words | None,
        Meta(description="module:function that says of one output whether it counts; counted in a plain loop"),
    ] = None
    plain_runs: Annotated[int, Meta(description="runs on each dataset for the plain count", ge=1)] = 10_000
    cause: Annotated[list[Words], Meta(description="words that the sentence on the cause must hold")] = []


class EnvironmentTable(Struct, frozen=True, forbid_unknown_fields=True):
    """Where `make audit-libraries` runs the file: an environment of its own. `dpaudit run` runs it where it is."""

    requirements: Annotated[
        list[Words], Meta(description='what pip installs; the first is the library, "name==version"', min_length=1)
    ]
    python: Annotated[Words | None, Meta(description="its interpreter, such as 3.8; left out: dpaudit's own")] = None
    dpaudit: Annotated[
        bool, Meta(description="false: dpaudit stays outside, and `python` of a command is the environment's")
    ] = True


class SuiteTable(Struct, frozen=True, forbid_unknown_fields=True):
    """What all audits of the file share."""

    name: Annotated[Words | None, Meta(description="what the report calls them")] = None
    product: Annotated[Words | None, Meta(description="what they are about: a library, a release")] = None
    version: Annotated[Words | None, Meta(description="its version")] = None
    record: Annotated[FilledTable | None, Meta(description="for every audit that does not say it otherwise")] = None


def _key_of(each: Option) -> Any:
    """An option as a key of an audit, as it is declared."""
    return each.name, Annotated[each.kind, Meta(description=each.words)], _left_out(each)


def _axis_of(each: Option) -> Any:
    """An option as a key of a sweep."""
    assert each.axis is not None
    kind: Any = each.kind
    if each.axis.several:
        known = [one for one in get_args(kind) if one is not NoneType] if get_origin(kind) is UnionType else [kind]
        one: Any = reduce(or_, known)
        kind = kind | list[one]
    return each.axis.key, Annotated[kind, Meta(description=each.axis.words or each.words)], _left_out(each)


def _left_out(each: Option) -> Any:
    return None if NoneType in get_args(each.kind) else each.default


class _AuditHead(Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(description="what the report calls the audit; once in a file", min_length=1)]
    mechanism: Annotated[str | CommandTable, Meta(description="module:attribute, or { command = [...] }")]
    tags: Annotated[list[str], Meta(description="words that `dpaudit run --tag` chooses by")] = []
    parameters: Annotated[dict[str, Any], Meta(description="keywords of the function or catalogue entry")] = {}
    claim: dict[str, Any] | None = None  # `parts` knows what may stand here, in two more and in a sweep
    relation: RelationKey = None
    pair: Annotated[PairEntry | None, Meta(description="{ first, second }, or module:function that makes them")] = None
    pairs: Annotated[list[PairEntry] | None, Meta(description="several of them; search chooses one")] = None
    data: Annotated[
        Any, Meta(description="one example dataset, or module:function: pairs are made of it; pairs may name patterns")
    ] = None
    pattern: Annotated[str | None, Meta(description="instead of pair or pairs: the name of a stock pattern")] = None
    pattern_parameters: Annotated[dict[str, Any], Meta(description="keywords of the pattern")] = {}
    expect: Annotated[
        Literal["refuted", "not-refuted", "bits"],
        Meta(description="what the author knows; bits: not refuted by values, but by the bits of floats"),
    ] = "not-refuted"


class _SweepHead(Struct, frozen=True, forbid_unknown_fields=True):
    mechanisms: Annotated[
        str | list[str],
        Meta(description="module:attribute; a module of the catalogue without colon stands for all its entries"),
    ]
    name: Annotated[Words, Meta(description="what the page calls the sweep")] = "sweep"
    parameters: Annotated[
        dict[str, Any] | list[dict[str, Any]],
        Meta(description="keywords of the mechanisms: lists of values to combine, or a list of combinations"),
    ] = {}
    claims: dict[str, Any] | list[dict[str, Any]] | None = None
    relation: RelationKey = None
    pairs: Annotated[
        PairEntry | list[PairEntry] | None,
        Meta(description="{ first, second }, or module:function that makes them; each is a point of its own"),
    ] = None


if TYPE_CHECKING:

    class _AuditOptions(_AuditHead, frozen=True): ...

    class _SweepOptions(_SweepHead, frozen=True): ...

else:
    _AuditOptions = msgspec.defstruct(
        "_AuditOptions", [*map(_key_of, IN_SPECS.values())], bases=(_AuditHead,), frozen=True
    )
    _SweepOptions = msgspec.defstruct(
        "_SweepOptions", [*map(_axis_of, IN_SWEEPS.values())], bases=(_SweepHead,), frozen=True
    )


class AuditTable(_AuditOptions, frozen=True, forbid_unknown_fields=True):
    """One audit: a claim about a mechanism, on adjacent pairs."""

    upper: Annotated[UpperTable | None, Meta(description="an upper bound on the loss, known from elsewhere")] = None
    requires: Annotated[list[str], Meta(description="modules without which the audit has no verdict here")] = (
        msgspec.field(default_factory=list)
    )
    record: Annotated[RecordTable | None, Meta(description="what is known of it; changes nothing")] = None


class SweepTable(_SweepOptions, frozen=True, forbid_unknown_fields=True):
    """An audit at every point of a grid: a list is an axis, a single value is the same at all points."""

    prove: Annotated[bool, Meta(description="also bound every question from above, by proof and exact loss")] = False


class Document(Struct, frozen=True, forbid_unknown_fields=True):
    """A spec file of dpaudit."""

    schema: Literal["dpaudit.audit/1"]
    environment: Annotated[EnvironmentTable | None, Meta(description="where `make audit-libraries` runs it")] = None
    suite: Annotated[SuiteTable | None, Meta(description="what they are together, and what people know of all")] = None
    audit: list[AuditTable] = []
    sweep: Annotated[
        SweepTable | list[SweepTable], Meta(description="in a file of its own; `dpaudit sweep` runs it")
    ] = []


Parts = dict[tuple[str, str], tuple[Any, None]]


def parts() -> Parts:
    """The keys of tables that depend on the claim forms and certifiers there are now: their kinds and defaults."""
    return _parts(tuple(FORMS), certifier_names())


@lru_cache
def _parts(forms: tuple[type[Claim], ...], certifiers: tuple[str, ...]) -> Parts:
    keys: dict[str, tuple[Any, str]] = {}
    losses: dict[str, tuple[Any, str]] = {}
    for form in forms:
        for name, each in form.spec_fields().items():
            keys.setdefault(name, (each.metadata["kind"], each.metadata["said"]))
        about = f"for a {form.form} claim" if losses else "the loss, in the parameter of the claim"
        losses.setdefault(form.parameter, (float, about))
    claim = _table("ClaimTable", "What is promised; the keys choose the form.", keys)
    swept = _table(
        "SweptClaimTable",
        "A claim of a sweep; a text stands for the value of the parameter of that name.",
        {name: (float | str, text) for name, (kind, text) in keys.items() if kind is float},
    )
    detect = _table(
        "DetectTable",
        "The power that an audit must have: a loss of this size on an event of this probability.",
        losses,
        ("mass", Annotated[float, Meta(description="probability of the event, in (0, 1]")]),
    )
    certifier: Any = Literal[certifiers]
    of_sweep = "left out: the catalogue entry's own; a text is the value of the parameter of that name"
    return {
        ("AuditTable", "claim"): (_key(claim, "left out: the mechanism's own, of the catalogue or adapted"), None),
        ("AuditTable", "certifier"): (_key(certifier, IN_SPECS["certifier"].words), None),
        ("SweepTable", "certifiers"): (_key(certifier | list[certifier], IN_SPECS["certifier"].words), None),
        ("AuditTable", "detect"): (_key(detect, IN_SPECS["detect"].words), None),
        ("SweepTable", "claims"): (_key(swept | list[swept], of_sweep), None),  # type: ignore[valid-type]
    }


def _table(name: str, about: str, keys: dict[str, tuple[Any, str]], *needed: tuple[str, Any]) -> Any:
    optional = [(key, _key(kind, text), None) for key, (kind, text) in keys.items()]
    return msgspec.defstruct(name, [*needed, *optional], namespace={"__doc__": about}, forbid_unknown_fields=True)


def _key(kind: Any, about: str) -> Any:
    return Annotated[kind | None, Meta(description=about)]


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a spec file, for editors and for other programs."""
    from dpaudit.results.stored.models import schema_of

    return schema_of(Document, {"title": f"spec file, {SCHEMA}"}, parts())
