"""An upper bound in a stored result: it comes back, old results without one load, and nonsense is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dpaudit.claims import PureDP
from dpaudit.errors import InvalidSpec
from dpaudit.results.bounds import Arithmetic, Label, UpperBound
from dpaudit.results.result import AuditResult
from dpaudit.results.stored import json_schema, load
from tests.cases import for_each
from tests.golden import example

BOUND = UpperBound(1.25, 1e-6, Label.PROVED, "all counts", Arithmetic.REALS, "alignment", 1.0)


def written(tmp_path: Path, upper: Any) -> Path:
    whole = example.result().to_dict()
    whole["upper"] = upper
    path = tmp_path / "r.json"
    path.write_text(json.dumps(whole))
    return path


def test_it_comes_back_equal(tmp_path: Path) -> None:
    schema = jsonschema.Draft202012Validator(json_schema())
    for bound in (
        BOUND,
        replace(BOUND, epsilon_upper=math.inf, epsilon_lower=None),
        replace(BOUND, epsilon_upper=math.inf, epsilon_lower=math.inf),
        *(replace(BOUND, label=label) for label in Label),
        *(replace(BOUND, arithmetic=arithmetic) for arithmetic in Arithmetic),
        replace(BOUND, epsilon_upper=math.nextafter(1.0, 2.0), scope="a \u202e \x1b[31m name"),
    ):
        made = example.result(upper=bound)
        path = made.save(tmp_path / "r.json")
        assert load(path) == made
        schema.validate(json.loads(path.read_text()))
        assert "\x1b" not in str(load(path))


def test_a_result_of_before_has_none(tmp_path: Path) -> None:
    found = load(written(tmp_path, None))
    assert found.upper is None
    assert found.bracket is None
    assert "bracket" not in str(found)


@for_each(
    ("change", "message"),
    [
        ({"epsilon_upper": -1.0}, "upper.epsilon_upper"),
        ({"epsilon_upper": "-inf"}, "upper.epsilon_upper"),
        ({"epsilon_upper": None}, "upper.epsilon_upper"),
        ({"epsilon_lower": 2.0}, "epsilon_lower must lie in"),
        ({"delta": 1.5}, "upper.delta"),
        ({"label": "sure"}, "upper.label"),
        ({"arithmetic": "decimal"}, "upper.arithmetic"),
        ({"scope": 3}, "upper.scope"),
        ({"more": 1}, "more"),
    ],
)
def test_nonsense_is_refused_with_its_place(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        load(written(tmp_path, {**BOUND.to_dict(), **change}))


def test_every_key_is_needed(tmp_path: Path) -> None:
    for key in BOUND.to_dict():
        with pytest.raises(InvalidSpec, match=key):
            load(written(tmp_path, {k: v for k, v in BOUND.to_dict().items() if k != key}))


def test_it_changes_nothing_else() -> None:
    plain, bounded = example.result().to_dict(), example.result(upper=BOUND).to_dict()
    assert {key for key in plain if plain[key] != bounded[key]} == {"upper", "provenance"}
    made = plain["provenance"], bounded["provenance"]
    assert {key for key in made[0] if made[0][key] != made[1][key]} == {"digest"}


def test_the_bracket_of_a_result_has_both_halves() -> None:
    kept: AuditResult = example.kept(upper=replace(BOUND, delta=0.0))
    assert kept.bracket is not None
    assert kept.bracket.ends == (kept.epsilon_lower, 1.25)
    assert kept.bracket.verdict.value == "OPEN"
    proved = example.kept(upper=replace(BOUND, delta=0.0, epsilon_upper=1.0, epsilon_lower=None)).bracket
    assert proved is not None
    assert proved.verdict.value == "PROVED"
    refuted = example.result(upper=replace(BOUND, delta=0.0, epsilon_upper=2.0)).bracket
    assert refuted is not None
    assert refuted.verdict.value == "REFUTED"


def test_a_pair_some_steps_apart_is_held_against_what_the_claim_implies_there() -> None:
    """A pair two steps apart that loses 1.9 refutes no claim of 1 for neighbours."""
    made = example.result(claim=PureDP(2.0, "add_or_remove_one"))  # the claim of a result is that of its distance
    made.spec["pairs"][0]["distance"] = 2
    certificate = replace(made.certificate, epsilon_lower=1.5, p_value=0.5)
    exact = UpperBound(1.9, 0.0, Label.EXACT_PAIR, "the pair", Arithmetic.BALLS, "integrals", 1.8)
    for bound, verdict in ((exact, "OPEN"), (replace(exact, epsilon_upper=2.2, epsilon_lower=2.1), "REFUTED")):
        found = replace(made, certificate=certificate, upper=bound).bracket
        assert found is not None
        assert found.verdict.value == verdict
    assert replace(made, upper=replace(exact, label=Label.PROVED)).bracket is None
