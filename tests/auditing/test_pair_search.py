"""Search over a generator of pairs: bugs of some parameters are found, sound twins are not, every run is counted."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, InvalidSpec, PureDP, Verdict, batched
from dpaudit.auditing.pair_search import GLANCED, PairSearch, Spent, check_bounds, move, search_pairs
from dpaudit.execution.engine import Session
from dpaudit.running.streams import Stage
from tests.cases import for_each

CLAIM = PureDP(1.0, "add_or_remove_one")  # type: ignore[arg-type]
BOUND = 80.0


@batched
def forgetful(rows: list[float], runs: int, rng: np.random.Generator) -> Any:
    """Clips to [0, 1], but not beyond `BOUND`."""
    return sum(row if row > BOUND else min(max(row, 0.0), 1.0) for row in rows) + rng.laplace(size=runs)


@batched
def clipped(rows: list[float], runs: int, rng: np.random.Generator) -> Any:
    return sum(min(max(row, 0.0), 1.0) for row in rows) + rng.laplace(size=runs)


def small_sensitivity(rows: list[float], rng: np.random.Generator) -> float:
    """Noise for values up to 2; larger ones are neither clipped nor expected. Loss: value / 2."""
    return sum(rows) + rng.laplace(scale=2.0)


def one_more(value: float) -> tuple[list[float], list[float]]:
    return [0.5], [0.5, value]


def found(mechanism: Any, generate: Any, **changed: Any) -> PairSearch:
    settings: dict[str, Any] = {"claim": CLAIM, "runs": 40_000, "tries": 24, "confidence": 0.999, "n_jobs": 1}
    return search_pairs(mechanism, generate, **{**settings, **changed})


BOUNDS = {"value": (0.0, 100.0)}


@pytest.mark.long
def test_a_bug_of_large_values_is_found_and_its_sound_twin_is_not_refuted() -> None:
    """A fifth of the values are bad. Of the 9 first tries, spread evenly, at least one lies there: certain.

    Its outputs never meet: the refutation is certain too. The twin is refuted with probability at most 0.001, and
    its certificate here, at 1 - 1e-6, with at most 1e-6.
    """
    bad = found(forgetful, one_more, bounds=BOUNDS)
    assert bad.result.verdict is Verdict.REFUTED
    assert bad.best.second[1] > BOUND
    assert bad.best.name == f"value = {bad.best.second[1]:.6g}"
    sound = found(clipped, one_more, bounds=BOUNDS, confidence=1.0 - 1e-6)
    assert sound.result.verdict is Verdict.NOT_REFUTED


@pytest.mark.long
def test_a_sensitivity_taken_too_small_is_found_among_choices() -> None:
    """Losses 0.25 to 4; the worst is certain to promise more than the ones that keep the claim (1 or less)."""
    values = [0.5, 1.0, 2.0, 8.0, 1.5]
    search = found(small_sensitivity, one_more, bounds={"value": values}, runs=10_000)
    assert [each.parameters["value"] for each in search.tried] == values
    assert search.best.second == [0.5, 8.0]
    assert search.result.verdict is Verdict.REFUTED


@pytest.mark.long
def test_pairs_of_a_generator_and_of_a_list_are_tried() -> None:
    """Every other value is above `BOUND`: 24 draws miss them with probability 6e-8."""
    drawn = found(forgetful, lambda rng: one_more(rng.uniform(2.0 * BOUND - 100.0, 100.0)))
    assert len(drawn.tried) == 24
    assert drawn.best.second[1] > BOUND
    assert drawn.best.name.startswith("try ")
    listed = found(forgetful, [one_more(3.0), AdjacentPair([0.5], [0.5, 95.0], "the large one")])
    assert [each.name for each in listed.tried] == ["try 0", "the large one"]
    assert listed.best.name == "the large one"
    assert len(found(forgetful, (one_more(float(j)) for j in itertools.count(78)), tries=4).tried) == 4


@pytest.mark.long
def test_every_try_is_listed_and_every_run_is_counted() -> None:
    calls = 0

    def counted(rows: list[float], rng: np.random.Generator) -> float:
        nonlocal calls
        calls += 1
        return small_sensitivity(rows, rng)

    search = found(counted, one_more, bounds=BOUNDS, runs=6_000, tries=10)
    glances = 2 * GLANCED * 10  # in a process of their own, as is the last look before a refutation
    assert 0 <= search.runs_used - glances - calls <= 8
    assert search.runs_used <= 6_000
    assert sum(each.runs for each in search.tried) + glances + search.result.runs_used == search.runs_used
    assert [each.number for each in search.tried] == list(range(10))
    assert all(each.score is not None and 0.0 <= each.parameters["value"] <= 100.0 for each in search.tried)
    stored = search.to_dict()
    assert stored["tried"][3]["parameters"] == search.tried[3].parameters
    assert stored["runs_used"] == search.runs_used
    assert str(search).startswith(f"10 pairs tried; {search.runs_used:,} runs in all.")


@pytest.mark.long
def test_the_same_seed_tries_the_same_and_another_does_not() -> None:
    one, again, other = (
        found(clipped, one_more, bounds={"value": (0.0, 9.0)}, runs=3_000, tries=6, seed=seed) for seed in (1, 1, 2)
    )
    assert one.tried == again.tried
    assert one.result.evidence == again.result.evidence
    assert one.tried != other.tried


def test_a_batch_that_raises_rarely_is_tried_run_by_run() -> None:
    """One run in 25 raises: of the tries, with 600 runs each, some call does, and so do those of the audit."""

    def raising(data: float, runs: int, rng: np.random.Generator) -> Any:
        if runs > 1 and (rng.random(runs) < 0.04).any():
            raise ValueError("rare")
        return data + rng.laplace(size=runs)

    found = search_pairs(
        batched(raising), [(0.0, 1.0), (0.0, 3.0)], claim=PureDP(1.0), runs=6_000, tries=3, n_jobs=1, seed=1
    )
    assert found.result.verdict is Verdict.REFUTED
    assert found.runs_used <= 6_000
    assert found.runs_used == sum(each.runs for each in found.tried) + found.result.runs_used


@pytest.mark.long
def test_nothing_that_the_search_saw_certifies(monkeypatch: pytest.MonkeyPatch) -> None:
    """No shard of a try is run again, by another try or by the audit; certifying shards belong to the audit."""
    drawn: list[tuple[Stage, int, int, int]] = []
    run = Session._run

    def recorded(self: Session, work: Any, reducer: Any) -> Any:
        drawn.extend((shard.stage, shard.pair, shard.index, self.job.seed) for shard in work)
        return run(self, work, reducer)

    monkeypatch.setattr(Session, "_run", recorded)
    found(forgetful, one_more, bounds=BOUNDS)
    assert len(set(drawn)) == len(drawn)
    stages = [stage for stage, *_ in drawn]
    assert set(stages[: stages.index(Stage.CERTIFY)]) == {Stage.SEARCH}
    assert set(stages[stages.index(Stage.CERTIFY) :]) == {Stage.CERTIFY}


def broken(rng: np.random.Generator) -> Any:
    raise ValueError("no such\nrow")


@for_each(
    ("generate", "keywords", "message"),
    [
        (broken, {}, "pair search, try 0: making the pair failed with ValueError: no such"),
        (lambda rng: 3, {}, r"pair search, try 0: try 0 must be two datasets \(first, second\), got int"),
        (lambda rng: ([1], [1]), {}, "pair search, try 0: the datasets of 'try 0' must differ"),
        ([one_more(1.0), ([1], [2])], {}, "pair search, try 1: .* not at distance 1 under add_or_remove_one"),
        (
            lambda value: ([1], [value]),
            {"bounds": {"value": [2, 3]}},
            r"pair search, try 0 \(value = 2\): the datasets of 'value = 2' are not at distance 1",
        ),
        (lambda other: other, {"bounds": BOUNDS}, r"try 0 \(value = .*failed with TypeError"),
        ([], {}, "generate gave no pair"),
        (7, {}, "generate must be a function or an iterable of pairs, got int"),
        ([one_more(1.0)], {"bounds": BOUNDS}, "with bounds, generate must be a function of value"),
        (one_more, {"bounds": {"value": (1.0, 1.0)}}, r"bounds\['value'\] must be \(low, high\)"),
        (one_more, {"bounds": {"value": []}}, r"bounds\['value'\] must be \(low, high\), a range or a list"),
        (one_more, {"bounds": {}}, "bounds must be a dictionary"),
        (one_more, {"bounds": BOUNDS, "tries": 0}, "tries must be at least 1"),
        (one_more, {"bounds": BOUNDS, "tries": 1_000}, "runs = 40,000 leave 20 for each of 1000 tries"),
        (one_more, {"bounds": BOUNDS, "claim": 1.0}, "claim must be a claim"),
        (one_more, {"bounds": BOUNDS, "confidence": 2.0}, "confidence must lie strictly between 0 and 1"),
    ],
)
def test_failures_name_the_try_in_one_line(generate: Any, keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec, match=message) as caught:
        found(clipped, generate, **keywords)
    assert "\n" not in str(caught.value)


def moved(bounds: dict[str, Any], tries: int, worth: Any, seed: int = 0) -> list[dict[str, Any]]:
    """Every point that was tried, in order."""
    points: list[dict[str, Any]] = []

    def score(parameters: dict[str, Any]) -> float:
        if len(points) == tries:
            raise Spent
        points.append(dict(parameters))
        return float(worth(**parameters))

    move(check_bounds(bounds), tries, score, np.random.default_rng(seed))
    return points


def test_few_combinations_are_all_tried_once() -> None:
    points = moved({"a": ["x", "y"], "b": range(3)}, 6, lambda a, b: 0.0)
    assert [tuple(point.values()) for point in points] == list(itertools.product("xy", range(3)))


@for_each(
    "bounds",
    [
        {"a": (0.0, 1.0), "b": (-1.0, 1.0)},
        {"a": (0.0, 1.0), "b": [3, 1, 2]},
        {"a": range(50), "b": ["one"], "c": range(2, 40, 3)},
        {"a": list(range(9)), "b": list("abcdefghi")},
    ],
)
def test_moves_stay_in_bounds_and_within_the_tries(bounds: dict[str, Any]) -> None:
    points = moved(bounds, 40, lambda **given: hash(str(given)) % 7)
    assert 30 <= len(points) <= 40
    assert len({str(point) for point in points}) == len(points)
    for name, given in bounds.items():
        if isinstance(given, tuple):
            assert all(given[0] <= point[name] <= given[1] for point in points)
        else:
            assert all(point[name] in given for point in points)


def test_moves_climb() -> None:
    """The top of a hill in a square, and one of 216 words; with these streams."""
    ends = []
    for seed in range(5):
        near = moved({"a": (0.0, 1.0), "b": (0.0, 1.0)}, 120, lambda a, b: -((a - 0.3) ** 2) - (b - 0.8) ** 2, seed)
        ends.append(min(abs(point["a"] - 0.3) + abs(point["b"] - 0.8) for point in near))
    assert sorted(ends)[2] < 0.08
    words = moved(
        {name: list("abcdef") for name in "xyz"}, 60, lambda **given: sum(value == "e" for value in given.values())
    )
    assert {"x": "e", "y": "e", "z": "e"} in words


def test_an_error_of_the_score_is_its_own() -> None:
    def failing(**_: Any) -> float:
        raise InvalidSpec("no")

    for bounds in ({"a": (0.0, 1.0)}, {"a": list(range(90))}, {"a": [1, 2]}):
        with pytest.raises(InvalidSpec, match=r"^no$"):
            moved(bounds, 20, failing)
