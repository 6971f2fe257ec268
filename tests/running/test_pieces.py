"""Shards of slow runs are made in parts, and come to what they come to in one piece."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit.api.audits import audit
from dpaudit.results.result import AuditResult
from dpaudit.running import pieces
from dpaudit.running.pieces import Piece, Pieces, again, outputs_of, state_of, text_of
from dpaudit.running.streams import Shard, Stage
from tests.cases import some


class Odd:
    """An output that JSON cannot hold."""

    def __init__(self, x: float) -> None:
        self.x = x


def spawning(data: int, rng: np.random.Generator) -> float:
    return data + float(rng.spawn(1)[0].laplace()) + float(rng.integers(3, dtype=np.uint8))


def mixed(data: int, rng: np.random.Generator) -> Any:
    x = float(np.round(data + rng.laplace(), 3))
    if x < -1.0:
        raise ValueError(f"{x:.1f} is too small")
    return {"n": x, "k": [int(x), None, (np.float64(x), "a")], "a": np.array([x, -0.0])} if x < 1.5 else "big"


def odd(data: int, rng: np.random.Generator) -> Any:
    return Odd(data + rng.laplace())


def answer(mechanism: Any, **options: Any) -> dict[str, Any]:
    result: AuditResult = audit(mechanism, pair=(1, 0), epsilon=0.5, runs=600, n_jobs=1, **options)
    return {key: value for key, value in result.to_dict().items() if key != "provenance"}


APART = {"isolation": "process", "stopping": "anytime"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("mechanism", "options"),
    [(spawning, APART), (mixed, {}), *some([(odd, {}), (mixed, APART), (spawning, {})], 1)],
)
def test_parts_change_no_result(monkeypatch: pytest.MonkeyPatch, mechanism: Any, options: Any) -> None:
    """Whatever outputs are; with a stream that was left in the midst of a word, and one that has spawned others."""
    asked: list[Piece] = []
    following = Pieces.next

    def counting(self: Pieces, *given: Any) -> Piece:
        asked.append(following(self, *given))
        return asked[-1]

    whole = answer(mechanism, **{**options, "isolation": "none"})
    for name, value in (("PART_S", 1e-12), ("CHECK_PART", 0), ("OCTET", 24)):  # so parts are as short as they may be
        monkeypatch.setattr(pieces, name, value)
    monkeypatch.setattr(Pieces, "next", counting)
    assert answer(mechanism, **options) == whole
    assert len(asked) > 12


def test_a_stream_goes_on_where_it_was_left() -> None:
    _, rng = Shard(Stage.SEARCH, 0, 3, 100).streams(7)
    rng.integers(5, dtype=np.uint8, size=3)
    rng.spawn(2)
    other = again(Shard(Stage.SEARCH, 0, 3, 100).streams(7)[1], state_of(rng))
    for one in (rng, other):
        one.integers(5, dtype=np.uint32)
    assert rng.spawn(1)[0].random() == other.spawn(1)[0].random()
    assert rng.bytes(40) == other.bytes(40)


def test_outputs_are_told_bit_for_bit_or_not_at_all() -> None:
    found = [np.float32(0.1), np.array([[1, 2]], np.int16), np.bool_(True), float("inf"), {3: [(), {}]}, "\ud800"]
    again_ = outputs_of(text_of(found) or "")
    assert [(type(each), np.asarray(each).tolist()) for each in found] == [
        (type(each), np.asarray(each).tolist()) for each in again_
    ]
    assert again_[1].dtype == np.int16
    for value in (float("nan"), {1.5: 0}, b"x", Odd(1.0), True + 0j, np.longlong(1), np.ma.array([1])):
        assert text_of([value]) is None, value
