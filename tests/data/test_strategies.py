"""Pairs from Hypothesis strategies: a fixed number, always the same, and nothing else touched."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest

from dpaudit.api.audits import pose
from dpaudit.data import AdjacentPair
from dpaudit.data.patterns import PAIRS, _draws, drawn_pairs, is_strategy
from dpaudit.errors import InvalidSpec

ROWS = st.lists(st.integers(), min_size=1, max_size=6)
LEAVES = ROWS.map(lambda rows: (rows, rows[:-1]))


def pairs_of(strategy: Any, seed: int = 0) -> list[tuple[Any, Any]]:
    return [pair.open() for pair in drawn_pairs(strategy, seed)]


def test_a_fixed_number_of_different_pairs() -> None:
    pairs = drawn_pairs(LEAVES, 1)
    assert [pair.name for pair in pairs] == [f"drawn pair {number}" for number in range(1, PAIRS + 1)]
    assert len({repr(pair.open()) for pair in pairs}) == PAIRS
    assert max(len(pair.first) for pair in pairs) > 1  # not the simplest only


def test_the_same_from_a_seed_and_others_from_another() -> None:
    assert pairs_of(LEAVES, 3) == pairs_of(LEAVES, 3) != pairs_of(LEAVES, 4)


def test_what_else_is_loaded_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Hypothesis likes to draw constants that stand in the modules of a project; a test alone would draw others."""
    before = _draws(st.integers(), 5, 120)
    source = tmp_path / "of_the_project.py"
    source.write_text(f"CONSTANTS = {[7_000_001 + 13 * step for step in range(400)]}\n")
    module = ModuleType("of_the_project")
    module.__file__ = str(source)
    exec(source.read_text(), module.__dict__)
    monkeypatch.setitem(sys.modules, "of_the_project", module)
    assert _draws(st.integers(), 5, 120) == before


def test_nothing_random_is_touched_and_no_file_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    before = random.getstate(), np.random.get_state()[1].tolist()
    drawn_pairs(LEAVES, 0)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
    assert not (tmp_path / ".hypothesis" / "examples").exists()


def test_few_pairs_and_pairs_of_equal_datasets() -> None:
    assert sorted(pairs_of(st.tuples(st.booleans(), st.booleans()))) == [(False, True), (True, False)]
    pairs = drawn_pairs(st.builds(AdjacentPair, st.just(1), st.just(2), distance=st.just(4)), 0)
    assert [(pair.distance, pair.open()) for pair in pairs] == [(4, (1, 2))]


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (st.just(([1], [1])), "drew none of two different datasets"),
        (st.integers(), "must draw .first, second. or dpaudit.AdjacentPair, it drew 0"),
        (st.nothing(), "cannot be drawn from .Unsatisfiable"),
        (st.integers().map(lambda number: number / 0), "raised ZeroDivisionError: division by zero; its example"),
    ],
)
def test_what_is_no_strategy_of_pairs(strategy: Any, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        drawn_pairs(strategy, 0)


def test_the_door_takes_a_strategy() -> None:
    assert is_strategy(LEAVES)
    assert not is_strategy([([1], [])])
    others = dict.fromkeys(("pair", "claim", "parameters", "max_time_s", "upper"))
    keywords = {**others, "pairs": LEAVES, "epsilon": 1.0, "delta": 0.0, "relation": "add_or_remove_one", "seed": 3}
    question = pose(lambda rows, rng: len(rows), **keywords)
    assert [pair.open() for pair in question.pairs] == pairs_of(LEAVES, 3)
    with pytest.raises(InvalidSpec, match="'drawn pair 1' are not at distance 1 under replace_one"):
        pose(lambda rows, rng: len(rows), **{**keywords, "relation": "replace_one"})
