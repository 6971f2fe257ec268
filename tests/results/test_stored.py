"""Results read back: exactly, or refused with one line that names the file, the place and both numbers."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.base.strict import spec_hash
from dpaudit.certify import CoinFlip, certifier_named
from dpaudit.claims import (
    FORMS,
    ApproximateDP,
    Claim,
    GaussianDP,
    HalfPlane,
    PureDP,
    Relation,
    RenyiDP,
    claim_from_dict,
)
from dpaudit.errors import InvalidSpec
from dpaudit.report import exchange
from dpaudit.results import stored
from dpaudit.results.bounds import Arithmetic, Label, UpperBound
from dpaudit.results.certification import ceiling_of
from dpaudit.results.display import Verdict
from dpaudit.results.observations import Explored
from dpaudit.results.result import AuditResult, recompute
from tests.cases import for_each
from tests.golden import example

Change = Callable[[dict[str, Any]], object]
Path_ = tuple[str | int, ...]


BOUND = UpperBound(1.25, 1e-6, Label.PROVED, "all counts", Arithmetic.REALS, "alignment", 1.0)
SCHEMA = jsonschema.Draft202012Validator(stored.json_schema())


def _written(folder: Path, contents: Any) -> Path:
    path = folder / "result.json"
    path.write_text(contents if isinstance(contents, str) else json.dumps(contents), encoding="utf-8")
    return path


def _refusal(path: Path) -> str:
    with pytest.raises(InvalidSpec) as caught:
        stored.load(path)
    message = str(caught.value)
    assert message.isprintable()  # so it is one line
    assert len(message) < 700
    assert message.startswith(f"{path}: ")
    assert caught.value.exit_code == 2
    return message


def _changed(change: Change, made: AuditResult | None = None) -> dict[str, Any]:
    whole: dict[str, Any] = copy.deepcopy((made or example.result()).to_dict())
    change(whole)
    return whole


def _audited(claim: Claim, evidence: CoinFlip, *, distance: int = 1, confidence: float = 0.999) -> AuditResult:
    made = example.result()
    audited = claim.at_distance(distance)
    spec = {
        **made.spec,
        "claim": claim.to_dict(),
        "confidence": confidence,
        "pairs": [{**made.spec["pairs"][0], "distance": distance}],
    }
    witness = replace(made.witness, tangent=HalfPlane(1.0, audited.delta))
    bare = example.changed(made, spec=spec, claim=audited, evidence=evidence, trail=(), witness=witness)
    certificate = recompute(bare)
    most = ceiling_of(witness, evidence, audited, confidence, certifier_named("coin-flip"))
    return replace(bare, certificate=certificate, ceiling=most)


# what is read


@for_each(
    "made",
    [
        example.result(),
        example.kept(),
        example.result(reproducible=False, provenance={}, histogram=None),
        example.result(explored=(Explored("pair", "a", "kept", None, 7), Explored("feature", "x", "left out: large"))),
        _audited(ApproximateDP(1.0, 1e-6, Relation.REPLACE_ONE), CoinFlip(900, 100, 1000, 1003)),
        _audited(PureDP(0.3), CoinFlip(900, 100, 1000, 1003), distance=3),
        _audited(PureDP(0.0), CoinFlip(0, 0, 10, 0)),
        _audited(ApproximateDP(0.1, 1.0), CoinFlip(10, 0, 10, 10), confidence=0.1 + 0.2),
        *(
            example.result(upper=bound)
            for bound in (
                replace(BOUND, epsilon_upper=math.inf, epsilon_lower=None),
                replace(BOUND, epsilon_upper=math.inf, epsilon_lower=math.inf),
                *(replace(BOUND, shows=shown) for shown in (GaussianDP(0.5), RenyiDP(2.0, 0.25, Relation.REPLACE_ONE))),
                *(replace(BOUND, label=label) for label in Label),
                *(replace(BOUND, arithmetic=arithmetic) for arithmetic in Arithmetic),
                replace(BOUND, epsilon_upper=math.nextafter(1.0, 2.0), scope="a \u202e \x1b[31m name"),
            )
        ),
    ],
)
def test_a_result_comes_back_equal_and_fits_the_schema(tmp_path: Path, made: AuditResult) -> None:
    path = made.save(tmp_path / "result.json")
    again = stored.load(path)
    assert again == made
    assert exchange.json_result(again) == made.to_json() == path.read_text(encoding="utf-8")
    assert str(again) == str(made)
    SCHEMA.validate(json.loads(made.to_json()))


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.long
@settings(derandomize=True, deadline=None, max_examples=50)  # the same examples each time: no chance left
@given(FLOATS, st.floats(0.0, 1e300), st.floats(1e-9, 1.0 - 1e-9))
def test_floats_come_back_bit_for_bit(tmp_path_factory: Any, any_float: float, spent: float, share: float) -> None:
    made = example.result()
    spec = {**made.spec, "search_share": share}
    made = replace(made, spec=spec, provenance={"wall_s": spent}, witness=replace(made.witness, score=any_float))
    again = stored.load(_written(tmp_path_factory.getbasetemp(), exchange.json_result(made)))
    assert (again.witness.score.hex(), again.provenance["wall_s"].hex()) == (any_float.hex(), spent.hex())
    assert again.spec["search_share"].hex() == share.hex()


def test_what_is_laid_out_otherwise_or_was_written_before_is_read(tmp_path: Path) -> None:
    made = example.result()
    text = json.dumps(made.to_dict(), sort_keys=True, indent=7).replace("0.999", "9.99e-1")
    assert stored.load(_written(tmp_path, text)) == made
    whole = _changed(lambda whole: whole["provenance"].pop("digest"))
    assert stored.load(_written(tmp_path, whole)) == made
    for part in ("lower", "epsilon_lower"):
        whole["certificate"][part] *= 1.0 + 1e-12  # the last digits of another scipy
    whole["ceiling"] *= 1.0 - 1e-12
    again = stored.load(_written(tmp_path, whole))
    assert again.certificate.lower == whole["certificate"]["lower"]  # as stored, not as computed here


@for_each(
    ("form", "message"),
    [
        ({"form": "Vague"}, "claim.form must be one of PureDP, ApproximateDP, GaussianDP, RenyiDP, "),
        ({}, f"{FORMS[-1].form}, got 'None'"),
        ({"form": ["PureDP"]}, "claim.form must be one of PureDP, ApproximateDP, "),
        ({"form": "PureDP", "epsilon": 1.0, "delta": 0.1}, "has other keys, got epsilon, delta"),
        ({"form": "PureDP", "epsilon": -1.0}, "epsilon must be finite and at least 0, got -1.0"),
        ({"form": "PureDP", "epsilon": 1.0, "relation": "near"}, "relation must be one of"),
    ],
)
def test_a_wrong_claim_is_refused(form: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        claim_from_dict(form)
    assert message in str(caught.value)


# what is not a result


@for_each(
    ("contents", "message"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("not json", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a result: it has no key 'schema'"),
        ("7", "not a result: it has no key 'schema'"),
        ("{}", "not a result: it has no key 'schema'"),
        ('{"schema": "dpaudit.result/2"}', "schema must be 'dpaudit.result/1', got 'dpaudit.result/2'"),
        ('{"schema": ["\\u202e"]}', "schema must be 'dpaudit.result/1', got"),
        ('{"schema": "dpaudit.result/1", "schema": "x"}', "the key 'schema' stands twice"),
        ('{"schema": "dpaudit.result/1"}', "missing required field `spec`"),
        ('{"schema": "dpaudit.result/1", "ceiling": NaN}', "NaN is not a number of JSON"),
        ('{"schema": "dpaudit.result/1", "ceiling": -Infinity}', "-Infinity is not a number of JSON"),
        ('{"schema": "dpaudit.result/1", "ceiling": 1e999}', "the number 1e999 is too large"),
        ('{"schema": ' + "9" * 10_000 + "}", "not JSON"),
    ],
    ids=range(15),
)
def test_what_is_not_a_result_is_refused(tmp_path: Path, contents: str, message: str) -> None:
    assert message in _refusal(_written(tmp_path, contents))


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    assert "there is no such file" in _refusal(tmp_path / "missing.json")
    assert "cannot be read (Is a directory)" in _refusal(tmp_path)
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "not text in UTF-8" in _refusal(binary)
    with pytest.raises(InvalidSpec, match="cannot be read"):
        stored.load("nul\0.json")


# the shape, and what no count gives


UNCOUNTED: list[Change] = [  # each is one that contradicts no other part
    lambda w: w["health"]["checks"][0].update(finding="nothing"),
    lambda w: w["health"].update(checks=[]),
    lambda w: w["histogram"]["first"].__setitem__(0, 7),
    lambda w: w.update(histogram=None),
    lambda w: w["provenance"].update(commit="0" * 40),
    lambda w: w["provenance"].pop("version"),
    lambda w: w["explored"].clear(),
    lambda w: w.update(unseen=7),
    lambda w: w["witness"].update(event_in_words="nothing to see"),
    lambda w: w["provenance"].update(digest="0" * 64),
]


def _places(value: Any, at: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    yield at, value
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from _places(child, (*at, key))


def _at(whole: Any, place: Path_) -> Any:
    for key in place:
        whole = whole[key]
    return whole


FREE = (("spec", "mechanism", "parameters"), ("provenance",))  # the user's own; nothing depends on it
WHOLE = example.result().to_dict()
OBJECTS = [place for place, value in _places(WHOLE) if isinstance(value, dict) and place != FREE[0]]
LATER = [(key,) for key in ("histogram", "trail", "adjacency", "unseen", "unpaired", "endings")]  # not in older ones
KEYS = [
    place
    for place, _ in _places(WHOLE)
    if place and isinstance(place[-1], str) and place[0] != "provenance" and place not in LATER
]
LEAVES = [
    place
    for place, value in _places(WHOLE)
    if isinstance(value, int | float)
    and place[0] not in ("provenance", "explored")
    and place[:2] != ("witness", "tangent")
]


@for_each("place", OBJECTS, ids=lambda place: ".".join(map(str, place)) or "top")
def test_an_added_key_is_refused_everywhere(tmp_path: Path, place: Path_) -> None:
    whole = _changed(lambda whole: _at(whole, place).update({"ex\ntra": 1}))
    assert "ex\\ntra" in _refusal(_written(tmp_path, whole))
    if place[:3] != ("witness", "event", "feature"):  # a feature is checked by the class of its kind
        assert not SCHEMA.is_valid(whole)


@pytest.mark.long
@for_each("place", KEYS, ids=lambda place: ".".join(map(str, place)))
def test_a_missing_key_is_refused_everywhere(tmp_path: Path, place: Path_) -> None:
    assert _refusal(_written(tmp_path, _changed(lambda whole: _at(whole, place[:-1]).pop(place[-1]))))


@for_each("place", LEAVES, ids=lambda place: ".".join(map(str, place)))
def test_a_number_of_another_type_is_refused_everywhere(tmp_path: Path, place: Path_) -> None:
    whole = _changed(lambda whole: _at(whole, place[:-1]).__setitem__(place[-1], [str(_at(whole, place))]))
    assert _refusal(_written(tmp_path, whole))


@for_each(
    ("change", "message"),
    [
        (lambda w: w["evidence"].update(hits_p=82_289.0), "Expected `int`, got `float` - at `$.evidence.hits_p`"),
        (lambda w: w["evidence"].update(hits_p=True), "Expected `int`, got `bool`"),
        (lambda w: w["evidence"].update(hits_p=-1), ">= 0 - at `$.evidence.hits_p`"),
        (lambda w: w["evidence"].update(runs_p=2**70), "`$.evidence.runs_p`"),
        (lambda w: w["evidence"].update(kind="two-sided"), "`$.evidence.kind`"),
        (lambda w: w["certificate"].update(p_value=1.5), "`$.certificate.p_value`"),
        (lambda w: w["certificate"].update(lower="-inf"), "`$.certificate.lower`"),
        (lambda w: w.update(verdict="PASSED"), "Invalid enum value 'PASSED' - at `$.verdict`"),
        (lambda w: w.update(verdict="\ud800"), "not a result of this version: 'utf-8' codec can't encode"),
        (lambda w: w.update(upper={}), "`$.upper`"),
        (lambda w: w["witness"].update(p_side="third"), "`$.witness.p_side`"),
        (lambda w: w["spec"].update(pairs=[]), "`$.spec.pairs`"),
        (lambda w: w["spec"]["claim"].update(form="Vague"), "`$.spec.claim.form`"),
        (lambda w: w["spec"]["claim"].update(relation="near"), "`$.spec.claim.relation`"),
        (lambda w: w["spec"]["claim"].update(epsilon="inf"), "`$.spec.claim.epsilon`"),
        (lambda w: w["witness"]["event"].update(feature={"kind": "unheard"}), "the unknown kind 'unheard'"),
        (lambda w: w["witness"]["event"].update(feature={"kind": "coordinate", "paths": []}), "not an event"),
        (lambda w: w["witness"]["event"].update(feature={"kind": "coordinate", "path": 7}), "not an event"),
        (lambda w: w["witness"]["event"].update(feature={"kind": "log-ratio"}), "not an event"),
        (lambda w: w["witness"]["event"].update(intervals=[[9.5]]), "`$.witness.event.intervals[0]`"),
        (
            lambda w: w["witness"]["event"].update(tokens=[{"label": "x", "code": 2**64}]),
            "witness.event is not an event",
        ),
        (lambda w: w["provenance"].update(wall_s=-1.0), "`$.provenance.wall_s`"),
        *(
            (lambda w, change=change: w.update(upper={**BOUND.to_dict(), **change}), message)
            for change, message in (
                ({"epsilon_upper": -1.0}, "upper.epsilon_upper"),
                ({"epsilon_upper": "-inf"}, "upper.epsilon_upper"),
                ({"epsilon_upper": None}, "upper.epsilon_upper"),
                ({"epsilon_lower": 2.0}, "epsilon_lower must lie in"),
                ({"delta": 1.5}, "upper.delta"),
                ({"label": "sure"}, "upper.label"),
                ({"arithmetic": "decimal"}, "upper.arithmetic"),
                ({"scope": 3}, "upper.scope"),
                ({"shows": {"form": "GaussianDP", "mu": -1.0, "relation": None}}, "upper.shows"),
                ({"more": 1}, "more"),
            )
        ),
    ],
    ids=range(32),
)
def test_a_wrong_value_is_refused_with_its_place(tmp_path: Path, change: Change, message: str) -> None:
    assert message in _refusal(_written(tmp_path, _changed(change)))


# what contradicts itself


@for_each(
    ("change", "numbers"),
    [
        (lambda w: w["evidence"].update(hits_p=449_702), ("hits_p must be in 0 .. runs_p = 449701", "449702")),
        (lambda w: w["evidence"].update(hits_p=82_290), ("certificate.lower is 1.9627309845969991", "1.96274")),
        (lambda w: w["evidence"].update(hits_q=11_205), ("certificate.lower is 1.9627309845969991", "1.9628")),
        (lambda w: w["certificate"].update(lower=3.0), ("certificate.lower is 3.0", "1.9627309845969991")),
        (lambda w: w["certificate"].update(epsilon_lower=3), ("certificate.epsilon_lower is 3.0", "1.96273")),
        (lambda w: w["certificate"].update(epsilon_lower=None), ("certificate.epsilon_lower is None", "1.96273")),
        (lambda w: w["certificate"].update(lower="inf"), ("certificate.lower is inf", "1.9627309845969991")),
        (lambda w: w["certificate"].update(p_value=0.01), ("certificate.p_value is 0.01", "1e-300")),
        (lambda w: w["certificate"].update(delta=1e-6), ("certificate.delta is 1e-06", "0.0")),
        (lambda w: w["certificate"].update(confidence=0.95), ("certificate.confidence is 0.95", "0.999")),
        (lambda w: w["certificate"].update(method="guess"), ("certificate.method is 'guess'", "Clopper-Pearson")),
        (lambda w: w.update(verdict="NOT_REFUTED"), ("verdict is 'NOT_REFUTED'", "'REFUTED'", "p-value 1e-300")),
        (lambda w: w.update(ceiling=20.0), ("ceiling is 20.0", "11.0836")),
        (lambda w: w["cross_check"].update(epsilon_lower=2.5), ("cross_check.epsilon_lower is 2.5", "1.95405")),
        (lambda w: w.update(runs_used=10), ("899968, 10 and 1000000",)),
        (lambda w: w.update(runs_used=1_000_001), ("899968, 1000001 and 1000000",)),
        (lambda w: w["witness"].update(pair=1), ("witness.pair must be below the number of pairs, 1, got 1",)),
        (lambda w: w["trail"][-1].update(hits_p=82_288), ("the last counts of 'trail' are not those of 'evidence'",)),
        (lambda w: w["histogram"]["first"].append(1), ("the counts of 'histogram' do not fit its bins",)),
        (lambda w: w["histogram"]["labels"].append("x"), ("the counts of 'histogram' do not fit its bins",)),
        (lambda w: w["spec"].update(seed=1), ("spec.hash is '6abe893a13d4f650'", "the spec gives")),
        (lambda w: w["spec"].update(hash="0" * 16), ("spec.hash is '0000000000000000'", "6abe893a13d4f650")),
    ],
    ids=range(22),
)
def test_a_contradiction_is_refused_with_both_numbers(tmp_path: Path, change: Change, numbers: tuple[str, ...]) -> None:
    message = _refusal(_written(tmp_path, _changed(change)))
    assert all(number in message for number in numbers), message
    assert message.endswith("audit again") or "hits_p" in message


@for_each(
    ("change", "number"),
    [
        (lambda w: w["spec"]["claim"].update(epsilon=0.5), "certificate.p_value is 0.5994705017012506"),
        (lambda w: w["spec"].update(confidence=0.9), "certificate.lower is 0.98257"),
        (lambda w: w["spec"]["pairs"][0].update(distance=2), "certificate.p_value is 0.5994705017012506"),
        (lambda w: w["spec"].update(runs=1000), "899968, 999968 and 1000"),
    ],
    ids=range(4),
)
def test_a_changed_question_does_not_fit_the_old_answer(tmp_path: Path, change: Change, number: str) -> None:
    whole = _changed(change, example.kept())
    whole["spec"]["hash"] = spec_hash({key: value for key, value in whole["spec"].items() if key != "hash"})
    assert number in _refusal(_written(tmp_path, whole))  # and a careful forger has made the hash anew


def test_a_p_value_moved_over_the_border_by_less_than_the_tolerance_is_refused(tmp_path: Path) -> None:
    made = _audited(PureDP(1.0), CoinFlip(900, 250, 1000, 1000))
    level = made.certificate.p_value
    border = _audited(PureDP(1.0), CoinFlip(900, 250, 1000, 1000), confidence=1.0 - level * (1.0 - 1e-8))
    assert border.verdict is Verdict.NOT_REFUTED
    whole = border.to_dict()
    whole["certificate"]["p_value"] = level * (1.0 - 1e-7)
    whole["verdict"] = "REFUTED"
    assert "verdict is 'REFUTED', but at p-value" in _refusal(_written(tmp_path, whole))


# what no count gives


@for_each("change", UNCOUNTED, ids=range(len(UNCOUNTED)))
def test_a_change_by_mistake_is_noticed_wherever_it_is(tmp_path: Path, change: Change) -> None:
    assert "provenance.digest is" in _refusal(_written(tmp_path, _changed(change)))


# the bracket of an upper bound


@for_each(
    ("made", "upper", "verdict"),
    [
        (example.kept(), BOUND, "OPEN"),
        (example.kept(), replace(BOUND, epsilon_upper=1.0, epsilon_lower=None), "PROVED"),
        (example.result(), replace(BOUND, epsilon_upper=2.0), "REFUTED"),
    ],
)
def test_the_bracket_of_a_result_has_both_halves(made: AuditResult, upper: UpperBound, verdict: str) -> None:
    found = replace(made, upper=replace(upper, delta=0.0)).bracket
    assert found is not None
    assert found.ends == (made.epsilon_lower, upper.epsilon_upper)
    assert found.verdict.value == verdict
    assert replace(made, upper=None).bracket is None
    assert "\nbracket" not in str(replace(made, upper=None).explain())


def test_a_pair_some_steps_apart_is_held_against_what_the_claim_implies_there() -> None:
    """A pair two steps apart that loses 1.9 refutes no claim of 1 for neighbours."""
    made = _audited(PureDP(1.0), CoinFlip(500, 499, 1000, 1000), distance=2)
    exact = UpperBound(1.9, 0.0, Label.EXACT_PAIR, "the pair", Arithmetic.BALLS, "integrals", 1.8)
    for bound, verdict in ((exact, "OPEN"), (replace(exact, epsilon_upper=2.2, epsilon_lower=2.1), "REFUTED")):
        found = replace(made, upper=bound).bracket
        assert found is not None
        assert found.verdict.value == verdict
    assert replace(made, upper=replace(exact, label=Label.PROVED)).bracket is None
