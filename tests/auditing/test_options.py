"""Options as declared: what a new one gets from its declaration alone, and what no door lets through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import dpaudit
from dpaudit import InvalidSpec, audit, sweep
from dpaudit.api.audits import pose
from dpaudit.auditing import Question, plan
from dpaudit.base.strict import models
from dpaudit.base.validate import AtLeastOne
from dpaudit.certify import certifier_names
from dpaudit.claims import FORMS, PureDP
from dpaudit.data import AdjacentPair
from dpaudit.mechanisms import wrap
from dpaudit.options import STORED, Option, StoredKey, precedence, whole
from dpaudit.results.stored.models import stored_spec
from dpaudit.spec.questions import read_spec
from dpaudit.sweeps.grid import Grid
from tests.cases import for_each

ASKED: dict[str, Any] = {"pair": (10, 9), "epsilon": 1.0, "runs": 1_000, "n_jobs": 1, "progress": False}


def constant(data: int) -> int:
    """Tells nothing."""
    return 0


def test_an_option_that_is_stored_where_it_is_set_may_be_missing_in_a_file() -> None:
    later = Option("later", None, whole(least=1), stored=StoredKey(99, AtLeastOne | None, when_set=True))
    model = stored_spec(tuple(FORMS), certifier_names(), models({}), [*STORED.values(), later])
    question = plan(Question(PureDP(1.0), wrap(constant), (AdjacentPair(10, 9),), runs=1_000))
    stored = {**question.to_dict(), "hash": question.hash}
    assert msgspec.convert(stored, model).later is msgspec.UNSET
    assert msgspec.convert({**stored, "later": 8}, model).later == 8
    with pytest.raises(msgspec.ValidationError, match="later"):
        msgspec.convert({**stored, "later": 0}, model)


@for_each(
    ("keywords", "words"),
    [
        ({"certifier": "nonsense"}, "certifier must be one of"),
        ({"max_time_s": 2**63}, "max_time_s must be at most 100,000,000"),
        ({"record": 1}, "record must be a mapping"),
        ({"search_share": 0.5}, "audit has no keyword 'search_share'; did you mean 'sequential_share'"),
    ],
)
def test_a_wrong_value_is_refused_before_the_mechanism_is_made(keywords: dict[str, Any], words: str) -> None:
    def make() -> Any:
        pytest.fail("it was opened")

    with pytest.raises((InvalidSpec, TypeError), match=words):
        audit(dpaudit.built_by(make), **{**ASKED, **keywords})


def test_a_word_that_nothing_knows_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="audit has no keyword 'runz'"):
        pose(constant, pair=(10, 9), epsilon=1.0, runz=5)
    with pytest.raises(InvalidSpec, match="a sweep has no option 'runz'"):
        Grid((constant,), options={"runz": (5,)})


@for_each(
    ("keywords", "words"),
    [
        ({"runs": None}, "runs must be a whole number"),
        ({"confidence": [0.9, 0.99]}, "confidence must be one value for all points, got 2"),
    ],
)
def test_a_sweep_takes_no_axis_that_it_does_not_have(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidSpec, match=words):
        sweep(constant, **{"pair": (10, 9), "claim": 1.0, "runs": 1_000, "n_jobs": 1, **keywords})


def test_a_wrong_pair_hides_no_other_fault(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(
        'schema = "dpaudit.audit/1"\n[[audit]]\nname = "a"\nmechanism = "m:f"\nclaim = { epsilon = 20.0 }\n'
        "pair = { first = [1], sekond = [2] }\nruns = 300\n"
    )
    with pytest.raises(InvalidSpec) as caught:
        read_spec(path)
    assert len(caught.value.args) == 2
    assert "can never refute" in caught.value.args[1]


def test_who_gives_runs_or_a_time_decides_about_both() -> None:
    usual, project, time = {"runs": 1_000_000}, {"runs": 7_000, "seed": 3}, {"max_time_s": 9.0}
    assert precedence({}, time, project, usual) == {"max_time_s": 9.0, "seed": 3}
    assert precedence({}, {**time, "runs": 500}, project, usual) == {**time, "runs": 500, "seed": 3}
    assert precedence({"runs": 400}, {**time, "seed": 1}, project, usual) == {"runs": 400, "seed": 1}
    assert precedence({}, {}, project, usual) == project
