"""Users who own several rows: the option `user` through Python, specs, the plugin's keywords and stored results.

Mechanisms draw from the seeded rng alone, so each test gives the same counts every time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import AdjacentPair, InvalidSpec, Verdict, audit
from dpaudit.account.repeat import python_form
from dpaudit.claims import PureDP
from dpaudit.spec.questions import read_spec
from tests.cases import for_each

RECORDS = [{"id": 1, "v": 4}, {"id": 1, "v": 5}, {"id": 1, "v": 6}, {"id": 2, "v": 5}]
TUPLES = [(1, 5.0), (1, -1.0), (1, 2.0), (2, 0.3)]
COLUMNS = {"id": [1, 1, 1, 2], "v": [4, 5, 6, 5]}
ASKED: dict[str, Any] = {"epsilon": 1.0, "relation": "add_or_remove_user", "n_jobs": 1, "progress": False}
SPEC = """schema = "dpaudit.audit/1"
[[audit]]
name = "visits"
mechanism = "visiting:visits"
claim = { epsilon = 1.0 }
relation = "add_or_remove_user"
user = "id"
"""


def visits(data: Any, rng: np.random.Generator) -> float:
    """A count whose noise is for one record."""
    rows = data if isinstance(data, list) else data["id"]
    return float(len(rows) + rng.laplace())


MORE = [(RECORDS, "id"), (COLUMNS, "id"), ("polars", "id")]


@for_each(("data", "user"), [("pandas", "id"), (TUPLES, 0)], nightly=MORE)
def test_pairs_are_made_of_users_and_the_noise_of_one_record_is_too_little(
    data: Any, user: str | int, tmp_path: Path
) -> None:
    data = pytest.importorskip(data).DataFrame(COLUMNS) if isinstance(data, str) else data
    result = audit(visits, data=data, user=user, runs=6_000, **ASKED)
    assert result.verdict is Verdict.REFUTED
    assert result.epsilon_lower > 2.0  # three records at once
    assert result.adjacency == ("users",) * len(result.spec["pairs"])
    assert f"user={user!r}" in "\n".join(python_form(result))
    again = dpaudit.load(result.save(tmp_path / "result.json"))
    assert again.to_json() == result.to_json()
    assert dpaudit.recheck(again, visits, fresh=True).verdict is Verdict.REFUTED


def test_without_a_relation_it_is_that_of_users_where_data_are_given() -> None:
    asked = {key: value for key, value in ASKED.items() if key != "relation"}
    result = audit(visits, data=RECORDS[2:], pairs=["drop_one"], user="id", runs=2_000, **asked)
    assert result.provenance["assumed"] == result.spec["claim"]["relation"] == "add_or_remove_user"
    assert result.verdict is Verdict.NOT_REFUTED  # each user has one record


@for_each(
    ("keywords", "words"),
    [
        ({"user": "id", "relation": None}, "user = 'id' is for relation 'add_or_remove_user': state that relation"),
        ({"user": None}, "must be known whose record each one is; give user = 'id'"),
        ({"user": 2.5}, "user must be the name of a column or key"),
        ({"pair": (AdjacentPair(RECORDS, RECORDS[3:], user="v"))}, "has user = 'v' already, got user = 'id'"),
        ({"pair": (RECORDS, RECORDS[1:])}, "not at distance 1 under add_or_remove_user: 1 users leave and 1 come"),
    ],
)
def test_what_cannot_be_asked_is_said_in_one_line(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidSpec, match=words) as caught:
        audit(visits, **{**ASKED, "pair": (RECORDS, RECORDS[3:]), "user": "id", "runs": 2_000, **keywords})
    assert "\n" not in str(caught.value)


@for_each(
    "datasets",
    [
        "data = [{ id = 1, v = 4 }, { id = 1, v = 5 }, { id = 2, v = 6 }]",
        "data = { id = [1, 1, 2], v = [4, 5, 6] }\npairs = ['drop_one']",
        "data = 'visiting:data'",
        "pair = { first = [{ id = 1, v = 4 }, { id = 1, v = 5 }], second = [] }",
        "pairs = ['visiting:pair']",
        "pattern = 'many_records'\npattern_parameters = { data = [{ id = 1, v = 4 }, { id = 2, v = 5 }] }",
    ],
)
def test_a_spec_has_the_key_beside_every_way_to_give_data(
    datasets: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    rows = f"def data():\n    return {RECORDS!r}\n\n\ndef pair():\n    return {RECORDS!r}, {RECORDS[3:]!r}\n"
    Path("visiting.py").write_text(rows)
    Path("spec.toml").write_text(SPEC + datasets.replace("'", '"'))
    (question,) = read_spec("spec.toml")
    assert question.user == "id"
    pairs = [each for pair in question.pairs for each in (pair.resolve() if hasattr(pair, "resolve") else (pair,))]
    assert {pair.user for pair in pairs} == {"id"}


def test_sweeps_and_searches_take_the_user_too() -> None:
    claim = PureDP(1.0, "add_or_remove_user")  # type: ignore[arg-type]
    asked: dict[str, Any] = {"claim": claim, "user": "id", "runs": 6_000, "n_jobs": 1}
    (row,) = dpaudit.sweep(visits, pair=(RECORDS, RECORDS[3:]), progress=False, **asked).rows
    assert (row["verdict"], row["error"]) == ("REFUTED", None)
    searched = dpaudit.search_pairs(visits, [(RECORDS, RECORDS[3:])], tries=1, **asked)
    assert searched.result.verdict is Verdict.REFUTED
