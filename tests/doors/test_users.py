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
from dpaudit.auditing import Question, plan
from dpaudit.claims import PureDP
from dpaudit.mechanisms import wrap
from dpaudit.spec.questions import read_spec
from tests.cases import for_each, some

RECORDS = [{"id": 1, "v": 4}, {"id": 1, "v": 5}, {"id": 1, "v": 6}, {"id": 2, "v": 5}]
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


def frame(library: str) -> Any:
    return pytest.importorskip(library).DataFrame(COLUMNS)


@pytest.mark.parametrize("data", some([RECORDS, COLUMNS, "pandas", "polars"], 3))
def test_pairs_are_made_of_users_and_the_noise_of_one_record_is_too_little(data: Any, tmp_path: Path) -> None:
    data = frame(data) if isinstance(data, str) else data
    result = audit(visits, data=data, user="id", runs=6_000, **ASKED)
    assert result.verdict is Verdict.REFUTED
    assert result.epsilon_lower > 2.0  # three records at once
    assert result.adjacency == ("users",) * len(result.spec["pairs"])
    assert "user='id'" in "\n".join(python_form(result))
    again = dpaudit.load(result.save(tmp_path / "result.json"))
    assert again.spec == result.spec
    assert dpaudit.recheck(result, visits, fresh=True).verdict is Verdict.REFUTED


def test_one_record_less_is_no_neighbour_where_a_user_has_three() -> None:
    with pytest.raises(InvalidSpec, match=r"not at distance 1 under add_or_remove_user: 1 users leave and 1 come"):
        audit(visits, pair=(RECORDS, RECORDS[1:]), user="id", **ASKED)
    sound = audit(visits, pair=(RECORDS, RECORDS[:3]), user="id", runs=6_000, **ASKED)  # bob has one record
    assert sound.verdict is Verdict.NOT_REFUTED


def test_without_a_relation_it_is_that_of_users_where_data_are_given() -> None:
    asked = {key: value for key, value in ASKED.items() if key != "relation"}
    result = audit(visits, data=RECORDS, pairs=["drop_one"], user="id", runs=6_000, **asked)
    assert result.provenance["assumed"] == result.spec["claim"]["relation"] == "add_or_remove_user"


@for_each(
    ("keywords", "words"),
    [
        ({"user": "id", "relation": "replace_one"}, "user = 'id' is for relation 'add_or_remove_user'"),
        ({"user": "id", "relation": None}, "user = 'id' is for relation 'add_or_remove_user': state that relation"),
        ({"user": None}, "must be known whose record each one is; give user = 'id'"),
        ({"user": "ident"}, "no key 'ident' for user"),
        ({"user": 2.5}, "user must be the name of a column or key"),
        ({"pair": (AdjacentPair(RECORDS, RECORDS[3:], user="v"))}, "has user = 'v' already, got user = 'id'"),
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


def test_a_question_that_names_no_user_is_stored_and_hashed_as_before() -> None:
    question = Question(PureDP(1.0), wrap(visits), (AdjacentPair(RECORDS, RECORDS[3:]),))
    stored = plan(question).to_dict()
    assert "user" not in stored
    assert "user" not in stored["pairs"][0]


def clipped_by_user(rows: list[tuple[Any, float]], rng: np.random.Generator) -> float:
    """A sum of what each user adds, bounded by 1: one user changes it by 1 at most."""
    totals: dict[Any, float] = {}
    for user, value in rows:
        totals[user] = totals.get(user, 0.0) + value
    return sum(max(-1.0, min(1.0, total)) for total in totals.values()) + float(rng.laplace())


@for_each("other", [1.0, True, np.int64(1)])
def test_users_that_a_mechanism_may_take_for_one_are_refused(other: Any) -> None:
    with pytest.raises(InvalidSpec, match="are equal and not alike"):
        audit(clipped_by_user, data=[(1, 5.0), (2, 0.3), (other, -10.0)], user=0, **ASKED)
    with pytest.raises(InvalidSpec, match="are equal and not alike"):
        audit(clipped_by_user, pair=([(1, 5.0), (2, 0.3)], [(other, 5.0)]), user=0, **ASKED)


def test_a_mechanism_that_bounds_what_a_user_adds_keeps_its_claim_and_its_advice_speaks_of_users() -> None:
    data = [(1, 5.0), (2, 0.3), (1, -10.0)]
    assert audit(clipped_by_user, data=data, user=0, runs=6_000, **ASKED).verdict is Verdict.NOT_REFUTED
    broken = audit(visits, data=data, user=0, runs=6_000, **ASKED)
    text = str(broken)
    assert "which differ by one user with all of their records" in text
    assert "a record adds" not in text
    assert dpaudit.recheck(broken, visits, fresh=True).verdict is Verdict.REFUTED  # lists of tuples are there again


def test_sweeps_and_searches_take_the_user_too() -> None:
    claim = PureDP(1.0, "add_or_remove_user")  # type: ignore[arg-type]
    (row,) = dpaudit.sweep(
        visits, pair=(RECORDS, RECORDS[3:]), claim=claim, user="id", runs=5_000, n_jobs=1, progress=False
    ).rows
    assert (row["verdict"], row["error"]) == ("REFUTED", None)
    searched = dpaudit.search_pairs(
        visits, [(RECORDS, RECORDS[3:])], claim=claim, user="id", runs=6_000, tries=1, n_jobs=1
    )
    assert searched.result.verdict is Verdict.REFUTED
