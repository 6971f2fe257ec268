"""Streams and grid: no two parts of an audit share randomness, and grouping never changes a shard."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.running.streams import Shard, Stage, grouped, shards


def test_every_shard_has_two_streams_of_its_own() -> None:
    """Equal 64-bit draws of independent streams, rechecks among them, have a chance below 2e-14 for these 800."""
    keys = itertools.product(Stage, range(4), range(5))
    work = [Shard(stage, pair, index, 10) for stage, pair, index in keys]
    seeds = (0, 1, -1, -2)
    first = [int(stream.integers(1 << 63)) for shard in work for seed in seeds for stream in shard.streams(seed)]
    assert len(set(first)) == len(first) == 4 * 2 * len(work)


def test_stages_and_pairs_are_not_confused_by_their_numbers() -> None:
    """(stage 1, pair 2) and (stage 2, pair 1) are other keys, whatever their order in memory. Chance 1e-19."""
    one, other = Shard(Stage.SEARCH, 2, 0, 1), Shard(Stage.CERTIFY, 1, 0, 1)
    assert one.streams(0)[1].integers(1 << 62) != other.streams(0)[1].integers(1 << 62)


def test_the_size_of_a_shard_does_not_change_its_stream() -> None:
    draws = [Shard(Stage.CERTIFY, 0, 3, runs).streams(7)[1].random(5).tolist() for runs in (1, 1000)]
    assert draws[0] == draws[1]


@settings(deadline=None)
@given(runs=st.integers(1, 10_000), size=st.integers(1, 3_000), start=st.integers(0, 100))
def test_the_grid_covers_all_runs_once(runs: int, size: int, start: int) -> None:
    work = shards(Stage.SEARCH, 1, runs, size, start=start)
    assert sum(shard.runs for shard in work) == runs
    assert [shard.index for shard in work] == list(range(start, start + len(work)))
    assert all(shard.runs == size for shard in work[:-1])
    assert 0 < work[-1].runs <= size


@settings(deadline=None)
@given(runs=st.integers(1, 5_000), size=st.integers(1, 700), task=st.integers(1, 9_000))
def test_grouping_keeps_every_shard_as_it_is(runs: int, size: int, task: int) -> None:
    work = shards(Stage.CERTIFY, 0, runs, size)
    tasks = list(grouped(work, task))
    assert [shard for each in tasks for shard in each] == work
    assert all(sum(shard.runs for shard in each) >= task for each in tasks[:-1])


def test_coins_are_fair_and_independent_of_the_mechanism() -> None:
    """10^6 coins: five standard deviations for the mean and for the correlation; chance below 1.2e-6 together."""
    coins, mechanism = Shard(Stage.CERTIFY, 0, 0, 1).streams(3)
    sides = np.unpackbits(np.frombuffer(coins.bytes(125_000), np.uint8)).astype(float)
    noise = mechanism.random(1_000_000)
    assert abs(sides.mean() - 0.5) < 5 * 0.5 / 1_000
    assert abs(np.corrcoef(sides, noise)[0, 1]) < 5 / 1_000
