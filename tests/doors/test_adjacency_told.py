"""Where neighbours are such only if the data are what they are taken for, the first line of every door says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit import audit, stock_pairs
from dpaudit.account.statements import headline
from dpaudit.results.stored import loads
from tests.cases import for_each
from tests.doors.conftest import Outcome, spec

FEW: dict[str, Any] = {"epsilon": 1.0, "runs": 600, "n_jobs": 1, "progress": False}
ANSWERS = "adjacency taken on trust (neighbours only if the data are query answers of sensitivity 1)"
ONE_VALUE = "adjacency taken on trust (neighbours only if each dataset is the value of one person)"
NEUTRAL = "adjacency taken on trust (neighbours only if the new record is the neutral one)"


def histogram(rows: Any, rng: np.random.Generator) -> list[float]:
    """Keeps 1 where a record is added or removed, and loses 3 where three are replaced."""
    return [sum(row == value for row in rows) + rng.laplace(scale=1.0) for value in (0, 1)]


def direction(value: Any, rng: np.random.Generator) -> list[float]:
    """A vector of L1 norm 1 with Laplace noise for 1."""
    return [float(each + rng.laplace(scale=2.0)) for each in np.ravel(value)]


ALL_DIFFER = stock_pairs("all_differ", queries=3)


@for_each(
    ("given", "told"),
    [
        ({"pairs": ALL_DIFFER, "relation": "add_or_remove_one"}, ANSWERS),
        ({"pairs": ALL_DIFFER}, ANSWERS),
        ({"data": [0, 1, 1], "relation": "replace_special", "pairs": ["replace_one"]}, NEUTRAL),
        ({"pair": ([1.0, 0.0], [-1.0, 0.0]), "relation": "local"}, ONE_VALUE),
        ({"data": [[1, 0], [0, 1]], "relation": "local"}, ONE_VALUE),
        ({"pair": ([[1.0, 0.0]], [[-1.0, 0.0]]), "relation": "local"}, ""),
        ({"pairs": stock_pairs("one_differs", queries=3), "relation": "replace_one"}, ""),
        ({"pair": ([0, 1], [0]), "relation": "add_or_remove_one"}, ""),
    ],
    nightly=[
        ({"pairs": ALL_DIFFER, "relation": "local"}, ANSWERS),
        ({"pair": (np.eye(3)[0], np.eye(3)[2]), "relation": "local"}, ONE_VALUE),
    ],
)
def test_the_first_line_says_what_has_to_be_believed(given: dict[str, Any], told: str) -> None:
    found = audit(direction if given.get("relation") == "local" else histogram, **given, **FEW)
    first = str(found).splitlines()[0]
    assert first.count("on trust") == bool(told)
    assert told in first
    assert found.on_trust == bool(told)
    assert headline(loads(found.to_json())) == first  # as stored


def test_so_does_a_spec(dpaudit: Callable[..., Outcome], write: Callable[..., str]) -> None:
    asked = [
        (
            {"relation": '"add_or_remove_one"', "pattern": '"all_differ"', "pattern_parameters": "{ queries = 3 }"},
            ANSWERS,
        ),
        ({"relation": '"local"', "pair": "{ first = [1.0, 0.0], second = [-1.0, 0.0] }"}, ONE_VALUE),
        ({"relation": '"local"', "data": "[[1, 0], [0, 1]]"}, ONE_VALUE),
        ({"relation": '"replace_special"', "data": "[1, 2]", "pairs": '["replace_one"]'}, NEUTRAL),
    ]
    named = [spec(**{"pair": None, **given, "name": f'"audit {number}"'}) for number, (given, _) in enumerate(asked)]
    done = dpaudit("run", write(*named), "--no-progress", "--jobs", "1")
    assert done.code == 0, done.err
    for number, (_, told) in enumerate(asked):
        (line,) = [line for line in done.out.splitlines() if f" audit {number}:" in line]
        assert told in line
