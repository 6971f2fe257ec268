"""From a spec file to questions, checked as far as possible without running code of users; and their suite.

A suite is several questions at one confidence: the error probability is divided among them.
"""

import importlib.util
import math
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from dpaudit.adapters.adapted import OwnClaim, settled
from dpaudit.auditing.question import Plan, Question, plan
from dpaudit.base.strict import fitted, read_toml
from dpaudit.claims import Claim, PureDP, Relation, claim_of_keys, form_of
from dpaudit.data import AdjacentPair, pairs_of_data, stock_pairs
from dpaudit.data.patterns import Example
from dpaudit.errors import DpAuditError, InvalidSpec, MissingRequirement, at
from dpaudit.mechanisms import Command, Description, Imported, Mechanism
from dpaudit.mechanisms.functions import own
from dpaudit.mechanisms.importing import import_reference, is_own
from dpaudit.mechanisms.protocol import Known
from dpaudit.options import IN_SPECS, OPTIONS, precedence
from dpaudit.results.bounds import Arithmetic, Label, UpperBound
from dpaudit.results.display import Verdict
from dpaudit.results.provenance import RECORD, recorded

if TYPE_CHECKING:
    from dpaudit.spec.reading import Fault, SpecPlace
    from dpaudit.spec.tables import AuditTable, PairEntry, UpperTable


@dataclass(frozen=True, slots=True)
class ImportedPair:
    """A pair named as `module:function`; the function, of no arguments, returns an `AdjacentPair` or two datasets.

    `resolve` calls it, in a worker; `folder` is first in the import path there.
    """

    reference: str
    name: str
    folder: str | None = None
    relation: Relation | None = None
    user: str | int | None = None
    distance: ClassVar[int] = 1  # until it is made
    reason: ClassVar[str] = ""
    what: ClassVar[str] = "pair"

    def value(self) -> Any:
        """What the function returns. Raises `InvalidSpec` where it cannot."""
        value = import_reference(self.reference, self.folder)
        try:
            return value() if callable(value) else value
        except DpAuditError:
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise InvalidSpec(f"{self.reference!r}: making the {self.what} failed with {what}") from None

    def resolve(self) -> tuple[AdjacentPair, ...]:
        """The pair, checked against the relation. Raises `InvalidSpec` for any other value."""
        pair = AdjacentPair.of(self.value(), self.name).of_user(self.user)
        pair.check(self.relation)
        return (pair,)


@dataclass(frozen=True, slots=True)
class ImportedData(ImportedPair):
    """One example dataset named as `module:function`; `resolve` makes its pairs, of all patterns or of `patterns`."""

    patterns: tuple[str, ...] | None = None
    what: ClassVar[str] = "data"

    def resolve(self) -> tuple[AdjacentPair, ...]:
        """The pairs, checked against the relation. Raises `InvalidSpec` where none can be made."""
        assert self.relation is not None
        return pairs_of_data(self.value(), self.relation, self.patterns, self.user)


def made_of(
    table: "AuditTable", folder: str, relation: Relation | None, user: str | int | None = None
) -> tuple[AdjacentPair | ImportedPair, ...]:
    """The pairs of a dataset that a spec contains or names. Raises `InvalidSpec` without a relation."""
    names = None if table.pairs is None else tuple(each for each in table.pairs if isinstance(each, str))
    if table.pair is not None or len(names or ()) < len(table.pairs or ()):
        raise InvalidSpec("data makes the pairs: leave out pair, and let pairs be a list of patterns, or leave it out")
    if relation is None:
        raise InvalidSpec('pairs are made of data under a relation: give relation = "add_or_remove_one" or another')
    if isinstance(table.data, str) and relation is not Relation.LOCAL:
        return (ImportedData(table.data, "data", folder, relation, user, names),)
    return pairs_of_data(table.data, relation, names, user)


def pairs_of(
    entries: "Sequence[PairEntry]", folder: str, relation: Relation | None, user: str | int | None = None
) -> tuple[AdjacentPair | ImportedPair, ...]:
    """The pairs that a spec in this folder names. Raises `InvalidSpec` for an empty list or a bad entry."""
    if not entries:
        raise InvalidSpec("pairs must name at least one pair, got an empty list")
    names = ["pair"] if len(entries) == 1 else [f"pair {number}" for number, _ in enumerate(entries, start=1)]
    return tuple(_pair(entry, name, folder, relation, user) for entry, name in zip(entries, names, strict=True))


def _pair(
    entry: "PairEntry", name: str, folder: str, relation: Relation | None, user: str | int | None
) -> AdjacentPair | ImportedPair:
    if isinstance(entry, str):
        module, colon, function = entry.partition(":")
        if not (module and colon and function):
            raise InvalidSpec(f"{name} must be a table or read module:function, got {entry!r}")
        return ImportedPair(entry, function if name == "pair" else f"{name}, {function}", folder, relation, user)
    pair = AdjacentPair(entry.first, entry.second, entry.name or name, entry.distance, user=user)
    pair.check(relation)
    return pair


USUAL = {"runs": OPTIONS["runs"].default}  # of a question that says neither runs nor time
PAIRS = {"pair", "pairs", "data", "pattern", "pattern_parameters", "user"}
INSTEAD = {  # of wrong values, so that the other keys can be checked
    "name": "audit",
    "mechanism": "stand_in:mechanism",
    "claim": {"epsilon": 1.0},
    "pair": {"first": 0, "second": 1},
    "user": "id",
}


@dataclass(frozen=True, slots=True)
class SpecQuestion(Question):
    """One audit of a spec file. `source` is the file as it was named; `confidence` not yet divided by the suite.

    `bits`: a finding on bits is known. `suite` are name, product and version that its file gives to all its audits.
    """

    source: Path = field(kw_only=True)
    expect: Verdict = field(kw_only=True)
    bits: bool = field(default=False, kw_only=True)
    tags: tuple[str, ...] = field(default=(), kw_only=True)
    requires: tuple[str, ...] = field(default=(), kw_only=True)
    suite: tuple[str, str, str] = field(default=("", "", ""), kw_only=True)

    @property
    def place(self) -> str:
        """Its name in messages."""
        return f"{self.source}: audit {self.name!r}"

    @property
    def settle(self) -> Callable[..., Any]:
        """The function that finds claim and pairs in a worker: those of the mechanism, where it is adapted."""
        return partial(settled, self.claim, self.user)

    def outline(self) -> Plan:
        """The plan, with names in place of what only a worker may import. Raises `InvalidSpec` as `plan` does."""
        return plan(self, Description(self.mechanism.name, "not yet imported"))

    def check(self) -> None:
        """Raises `InvalidSpec` for options that do not go together, and for runs too few to refute the claim at all."""
        if self.runs is not None and not isinstance(self.claim, OwnClaim):
            self.outline()

    def check_requirements(self) -> None:
        """Raises `MissingRequirement` for a module that is not installed here; imports none of them."""
        for module in self.requires:
            if importlib.util.find_spec(module.partition(".")[0]) is None:
                raise MissingRequirement(f"{self.place}: requires the module {module!r}, which is not installed here")

    def identity(self) -> dict[str, Any]:
        """The whole question as it is known before a mechanism is imported, for the run that it is part of."""
        known = self.mechanism.__dataclass_fields__  # type: ignore[attr-defined]
        mechanism = {each: getattr(self.mechanism, each) for each in known if each != "folder"}
        return {
            **Question.identity(self),
            "mechanism": [type(self.mechanism).__name__, mechanism],
            "upper": None if self.upper is None else self.upper.to_dict(),
            "expect": self.expect.value,
            "bits": self.bits,
            "requires": self.requires,
        }


@dataclass(frozen=True, slots=True)
class Layers:
    """What goes before a spec, and what stands behind it: options of the command line, defaults of the project.

    `look`: at outputs of a few runs, without the claim.
    """

    command: Mapping[str, Any] = field(default_factory=dict)
    project: Mapping[str, Any] = field(default_factory=dict)
    look: bool = False


def read_spec(path: str | os.PathLike[str], layers: Layers | None = None) -> tuple[SpecQuestion, ...]:
    """The questions of a spec file. Raises `InvalidSpec` that names file, line, audit and key of all that is wrong."""
    from dpaudit.spec.reading import audits_of

    source = Path(path)
    questions: dict[str, SpecQuestion | None] = {}
    document = read_toml(source)
    audits, wrong = audits_of(document, str(source))
    for raw, place in audits:
        question, faults = _asked(source, raw, place, layers or Layers())
        name = raw.get("name") if isinstance(raw, dict) else None
        if isinstance(name, str) and name in questions:
            faults = [*faults, (("name",), "a name may stand only once in a file; rename one of the two")]
        questions[str(name)] = question
        wrong += [place.says(what, *keys) for keys, what in faults]
    if wrong:
        raise InvalidSpec(*wrong)
    head = document.get("suite", {})
    named = head.get("name", ""), head.get("product", ""), head.get("version", "")
    asked = (question for question in questions.values() if question is not None)
    return tuple(
        replace(question, record=recorded({**head.get("record", {}), **question.record}), suite=named)
        for question in asked
    )


def asked_of(raw: dict[str, Any], place: str, layers: Layers) -> SpecQuestion:
    """The question of a table that stands in no file: `place` is its name in messages, this folder its own.

    Raises `InvalidSpec` that names place and key of all that is wrong.
    """
    from dpaudit.spec.reading import SpecPlace

    question, wrong = _asked(Path(place), raw, SpecPlace(place), layers)
    if question is None or wrong:
        raise InvalidSpec(*(f"{place}: {what}" for _, what in wrong))
    return question


class _Wrong(InvalidSpec):
    """An error of one key of an audit, which is its first argument."""


@contextmanager
def _about(key: str) -> Iterator[None]:
    try:
        yield
    except InvalidSpec as error:
        raise _Wrong(key, *error.args) from None


def _asked(source: Path, raw: Any, place: "SpecPlace", layers: Layers) -> "tuple[SpecQuestion | None, list[Fault]]":
    """The question of a table, and all faults: a wrong value is replaced by a right one, to find the next fault."""
    from dpaudit.spec.reading import example, faults
    from dpaudit.spec.tables import AuditTable

    complaints = list(faults(raw, AuditTable))
    if not isinstance(raw, dict):
        return None, complaints
    wrong = {str(keys[0]) for keys, _ in complaints}
    wrong.update(key for each in [*wrong] for key in get_close_matches(each[:100], AuditTable.__struct_fields__, n=1))
    while True:
        wrong |= PAIRS if wrong & PAIRS else wrong
        given = {key: value for key, value in raw.items() if key not in wrong}
        right = {key: INSTEAD[key] for key in wrong if key in INSTEAD and (key != "user" or key in raw)}
        try:
            question = _question(source, fitted({**given, **right}, AuditTable), layers)
            with _about("runs"):
                question.check()
            return question, complaints
        except _Wrong as error:
            key, *messages = error.args
            path = re.match(r"[a-z_.]*", messages[0])[0].split(".")  # type: ignore[index]
            keys = path if path[0] in AuditTable.__struct_fields__ else [key]
            key = keys[0]
            if key in wrong:  # the message is about a key that is no longer there
                return None, complaints
            complaints += [
                (tuple(keys), f"{each}{'' if ';' in each or key == 'claim' else example(*keys)}") for each in messages
            ]
            wrong.add(key)
        except DpAuditError as error:
            raise type(error)(*(place.says(each) for each in error.args)) from None


def _question(source: Path, table: "AuditTable", layers: Layers) -> SpecQuestion:
    folder = str(source.resolve().parent)
    with _about("relation"):
        relation = Relation.of(table.relation)
    known = None  # the mechanism where it is one of dpaudit's: its name and parameters are checked now
    with _about("mechanism"):
        mechanism = _mechanism(table, folder)
        if isinstance(mechanism, Imported) and mechanism.folder is None:
            known = own(mechanism.reference, mechanism.parameters)
    with _about("claim"):
        claim = _claim(table, relation, known)
    with _about("requires"):
        for module in table.requires:
            if not all(part.isidentifier() for part in module.split(".")):
                raise InvalidSpec(f"requires must name modules as an import does, got {module!r}")
    given = {key: value for key in IN_SPECS if (value := getattr(table, key)) is not None}
    for key, value in given.items():
        with _about(key):
            OPTIONS[key].check(key, value)
    bits = table.expect == "bits"
    with _about("expect"):
        if bits and not given["representation"]:
            raise InvalidSpec('expect = "bits" needs representation = true: without it bits are not looked at')
    with _about("pair"):
        pairs = _pairs(table, folder, claim, known, given.get("user"))
    with _about("upper"):
        upper = None if table.upper is None else upper_bound(table.upper, known or mechanism, folder, pairs, claim)
    example = pairs[0].value if pairs and isinstance(pairs[0], ImportedData) else table.data
    under = claim.relation if table.pairs is None else None
    options = precedence(layers.command, given, layers.project, USUAL)
    if layers.look:
        claim = PureDP(0.0, claim.relation)
        options = {key: options[key] for key in ("runs", "seed", "run_timeout_s", "isolation") if key in options}
    options.setdefault("runs", None)
    return SpecQuestion(
        claim,
        mechanism,
        pairs,
        name=table.name,
        upper=upper,
        example=None if example is None or under is None else Example(example, under, given.get("user")),
        record=recorded({key: text for key in RECORD if (text := getattr(table.record, key, None)) is not None}),
        source=source,
        expect=Verdict.REFUTED if table.expect == "refuted" else Verdict.NOT_REFUTED,
        bits=bits,
        tags=tuple(table.tags),
        requires=tuple(table.requires),
        **options,
    )


def _mechanism(table: "AuditTable", folder: str) -> Mechanism:
    if not isinstance(table.mechanism, str):
        if table.parameters:
            raise InvalidSpec("parameters are for functions; put those of a command on its line")
        argv = table.mechanism.command
        if not argv or not argv[0]:
            raise InvalidSpec("mechanism.command must name a program, got an empty list")
        program = os.path.join(folder, argv[0])  # as a shell finds it with this folder in its path
        if os.sep not in argv[0] and os.path.isfile(program) and os.access(program, os.X_OK):
            argv = [os.path.join(os.curdir, argv[0]), *argv[1:]]
        return Command(tuple(argv), folder, getattr(table, "run_timeout_s"))
    module, colon, attribute = table.mechanism.partition(":")
    if not (module and colon and attribute):
        raise InvalidSpec(f"mechanism must read module:attribute, got {table.mechanism!r}")
    for key, value in table.parameters.items():
        _check_plain(f"parameters.{key}", value)
    return Imported(table.mechanism, dict(table.parameters), None if is_own(table.mechanism) else folder)


def _claim(table: "AuditTable", relation: Relation | None, known: Known | None) -> Claim | OwnClaim:
    if table.claim is not None:
        fields = form_of(table.claim, place="claim").spec_fields()
        renamed = next((key for key in table.claim if fields[key].name != key), None)
        with at("claim" if renamed is None else f"claim.{renamed}"):
            return claim_of_keys(table.claim, relation)
    if known is None and not isinstance(table.mechanism, str):
        raise InvalidSpec("the key 'claim' is missing: claim = { epsilon = 1.0 }")
    if known is None:
        return OwnClaim(relation)
    claim = known.claim()
    return claim if relation is None else claim.with_relation(relation)


def _pairs(
    table: "AuditTable", folder: str, claim: Claim | OwnClaim, known: Known | None, user: str | int | None
) -> tuple[AdjacentPair | ImportedPair, ...]:
    if table.data is not None:
        return made_of(table, folder, claim.relation, user)
    if table.pattern is not None:
        if table.pair is not None or table.pairs is not None:
            raise InvalidSpec("give pair, pairs or pattern, one of the three")
        for key in ("pattern", "relation", "user"):
            if key in table.pattern_parameters:
                raise InvalidSpec(f"pattern_parameters: {key!r} is no parameter of a pattern; it is a key of the audit")
        return stock_pairs(table.pattern, relation=claim.relation, user=user, **table.pattern_parameters)
    if table.pattern_parameters:
        raise InvalidSpec("pattern_parameters needs pattern, the name of a stock pattern")
    if table.pair is None and table.pairs is None and (known is not None or isinstance(claim, OwnClaim)):
        return () if known is None else (known.pair.of_user(user),)
    if (table.pair is None) == (table.pairs is None):
        raise InvalidSpec("give pair = { first = ..., second = ... } or pairs = [...], one of the two")
    return pairs_of([table.pair] if table.pair is not None else table.pairs or [], folder, claim.relation, user)


def _check_plain(key: str, value: Any) -> None:
    """Parameters stand in results, and JSON has no NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidSpec(f"{key} must be finite, got {value}")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_plain(key, inner)


# --- the upper bound of a spec: a proof in a file, checked now, or one that is only stated ---------------------


STATED = ("epsilon", "scope", "source")


def upper_bound(
    table: "UpperTable",
    mechanism: Mechanism,
    folder: str,
    pairs: Sequence[AdjacentPair | ImportedPair],
    claim: Claim | OwnClaim,
) -> UpperBound:
    """The bound that a spec gives for its mechanism on its pairs; `folder` is the spec's, `claim` that of its audit.

    Raises `InvalidSpec` for a bad table, and for a proof that is rejected, of another program or of other pairs.
    """
    if table.proof is None:
        return _stated(table)
    given = [key for key in STATED if getattr(table, key) is not None]
    if given:
        raise InvalidSpec(f"upper: a proof says it all; leave out {', '.join(given)}")
    from dpaudit.verify.checker import ProofRejected

    paths = [table.proof] if isinstance(table.proof, str) else table.proof
    try:
        return _proved([Path(folder, path) for path in paths], mechanism, folder, pairs, claim)
    except ProofRejected as error:
        raise InvalidSpec(f"upper.proof: the checker rejects it: {error}") from None
    except DpAuditError as error:
        raise type(error)(f"upper.proof: {error}") from None


def _stated(table: "UpperTable") -> UpperBound:
    for key in STATED:
        if getattr(table, key) is None:
            raise InvalidSpec(f"upper: the key {key!r} is missing (or give proof, the file of a proof)")
    assert table.epsilon is not None
    source = f"stated in the spec, not checked here: {table.source}"
    label, arithmetic = Label(table.label), Arithmetic(table.arithmetic)
    with at("upper"):
        return UpperBound(table.epsilon, table.delta, label, str(table.scope), arithmetic, source)


def _proved(
    paths: list[Path],
    mechanism: Mechanism,
    folder: str,
    pairs: Sequence[AdjacentPair | ImportedPair],
    claim: Claim | OwnClaim,
) -> UpperBound:
    from dpaudit.verify.bracketing import bound_of_proofs, target_named, target_of
    from dpaudit.verify.stored import load

    if isinstance(mechanism, Imported) and mechanism.folder is not None:
        target = target_named(mechanism.reference, dict(mechanism.parameters), folder)
    else:
        target = target_of(mechanism)
    known = [pair for pair in pairs if isinstance(pair, AdjacentPair)]
    if len(known) < len(pairs):
        raise InvalidSpec("it is about neighbours: write the datasets of the pair down, not a function's name")
    source = f"checked proof {', '.join(os.path.basename(path) for path in paths)}"
    promised = claim if isinstance(claim, Claim) else None
    return bound_of_proofs([load(path) for path in paths], target, known, claim=promised, source=source)


# --- a suite: several questions at one confidence, and the command that repeats one file -----------------------


def share(confidence: float, audits: int) -> float:
    """The confidence of each of `audits` audits, so that together they err with probability at most 1 - confidence.

    >>> share(0.999, 1)
    0.999
    """
    return confidence if audits == 1 else 1.0 - (1.0 - confidence) / audits


def shared(questions: tuple[SpecQuestion, ...]) -> tuple[tuple[SpecQuestion, ...], float]:
    """The questions, each at its share, and the confidence of the suite; raises `InvalidSpec` for too few runs."""
    if not questions:
        return (), 0.0
    confidence = max(question.confidence for question in questions)
    each = share(confidence, len(questions))
    posed = tuple(replace(question, confidence=each) for question in questions)
    for question in posed:
        with at(question.place):
            question.check()  # a share may ask for more runs than the whole
    return posed, confidence


def command(
    question: SpecQuestion,
    questions: tuple[SpecQuestion, ...],
    tags: tuple[str, ...],
    *,
    only: tuple[str, ...] = (),
    given: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """The command that repeats this question's file as it was run here: same seed, same share of the confidence.

    `questions` are those of the suite, at their shares; `given` are options that are not those of the spec.
    """
    siblings = sum(other.source == question.source for other in questions)
    parts = ["dpaudit", "run", str(question.source)]
    parts += [word for tag in tags for word in ("--tag", tag)]
    parts += [word for name in only for word in ("--only", name)]
    parts += ["--seed", str(question.seed), "--confidence", _whole_confidence(question.confidence, siblings)]
    parts += [word for name, value in given.items() for word in (OPTIONS[name].flag, str(value))]
    return shlex.join(parts)


def _whole_confidence(each: float, audits: int) -> str:
    """The shortest decimal whose share among `audits` audits is exactly `each`."""
    whole = 1.0 - (1.0 - each) * audits
    texts = (f"{whole:.{digits}g}" for digits in range(1, 18))
    return next((text for text in texts if share(float(text), audits) == each), repr(whole))
