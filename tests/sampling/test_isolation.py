"""Outputs counted in a host, where no mechanism runs, give the counts of a worker that counts its own, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dpaudit import audit, batched, command
from dpaudit.errors import InvalidSpec
from dpaudit.events import Event, HitCounter
from dpaudit.events.features import Coordinate
from dpaudit.mechanisms import wrap
from dpaudit.outputs import Outputs, token
from dpaudit.pairs import AdjacentPair
from dpaudit.report import text
from dpaudit.sampling import Engine, Shard, Stage, Watch, shards
from dpaudit.sampling.codec import outputs_apart
from tests.cases import for_each

PAIR = ([1.0] * 3, [1.0] * 2)


def number(rows: Any, rng: Any) -> float:
    return float(len(rows) + rng.laplace())


def word(rows: Any, rng: Any) -> Any:
    return ("a" if rng.random() < 0.3 + 0.05 * len(rows) else "b", 1)


def mixture(rows: Any, rng: Any) -> Any:
    if rng.random() < 0.1:
        raise ValueError("no answer")
    return {"count": len(rows) + rng.normal(), "said": "yes" if rng.random() < 0.5 else None}


def wide(rows: Any, runs: int, rng: Any) -> Any:
    return len(rows) + rng.laplace(size=(runs, 80))


def many(rows: Any, runs: int, rng: Any) -> Any:
    return len(rows) + rng.laplace(size=runs)


def breaks(rows: Any, runs: int, rng: Any) -> Any:
    if runs > 1:
        raise RuntimeError("one at a time")
    return many(rows, runs, rng)


PROGRAM = (
    r"read -r line; runs=${line#*\"runs\": }; runs=${runs%%,*}; seed=${line##*\"seed\": }; seed=${seed%\}*}; "
    r"awk -v n=$runs -v s=$seed 'BEGIN { srand(s); for (i = 0; i < n; i++) print rand() }'"
)
MECHANISMS: dict[str, tuple[Any, ...]] = {  # runs, and the time limit of one
    "per run": (number, 9_000),
    "recurring": (word, 5_000),
    "mixture": (mixture, 2_500),
    "batched": (batched(many), 40_000),
    "wide": (batched(wide), 2_500),
    "alone": (batched(breaks), 2_500),
    "limited": (number, 2_500, 5.0),
    "command": (command(["sh", "-c", PROGRAM]), 160),
}
SETS = (
    Event(Coordinate(()), intervals=((2.0, 4.0),)),
    Event(Coordinate((0,)), tokens=(token("text", "a"),)),
    Event(Coordinate(("count",)), intervals=((2.5, np.inf),)),
)
EVENTS = Watch(SETS[0], SETS[1:], also=HitCounter(SETS[2]))


def bits(outputs: Outputs) -> Any:
    """All that outputs hold; the order of labels is that of a set."""
    arrays: list[Any] = []
    told = outputs_apart(outputs, arrays)
    return {**told, "labels": dict(told["labels"])}, [array.tobytes() for array in arrays]


def made(engine: Engine, mechanism: Any, runs: int, timeout_s: float | None = None) -> list[Any]:
    """What a probe, a pilot and two ways of counting find: shards of all sizes, of both pairs."""
    pairs = (AdjacentPair(*PAIR), AdjacentPair([1.0], []))
    with engine.session(wrap(mechanism), pairs, 7, timeout_s) as session:
        probe = session.probe(64)
        work = [*shards(Stage.SEARCH, 0, runs, runs - 100), Shard(Stage.SEARCH, 1, 0, 9)]
        pilot = session.pilot(work)
        looks = [bits(side) for each in (pilot, *probe.pilots) for side in (each.first, each.second)]
        counts = [session.shard_counts(work, reducer) for reducer in (EVENTS, HitCounter(SETS[0]), EVENTS)]
    return [probe.alone, probe.reproducible, *([each.tolist() for each in table.values()] for table in counts), *looks]


@pytest.fixture(scope="module")
def engines() -> Iterator[list[Engine]]:
    with Engine(1, supervised=True, isolation="none") as one, Engine(1, isolation="process") as other:
        assert (one.isolated, other.isolated) == (False, True)
        yield [one, other]


@for_each("name", MECHANISMS)
def test_outputs_and_counts_are_the_same(name: str, engines: list[Engine]) -> None:
    one, other = (made(engine, *MECHANISMS[name]) for engine in engines)
    assert one == other


def test_a_result_says_where_it_was_counted() -> None:
    found = audit(number, pair=PAIR, epsilon=1.0, runs=1_000, n_jobs=1, stopping="anytime", isolation="process")
    assert found.provenance["isolation"] == "process"
    assert "isolation process" in text.render_result(found)


def test_it_is_refused_where_others_make_the_workers() -> None:
    for backend in ("dask", "threading", "multiprocessing"):
        with pytest.raises(InvalidSpec, match='isolation = "none"'):
            audit(number, pair=PAIR, epsilon=1.0, runs=2_000, backend=backend, isolation="process")
    with pytest.raises(InvalidSpec, match="isolation"):
        audit(number, pair=PAIR, epsilon=1.0, runs=2_000, isolation="thread")
