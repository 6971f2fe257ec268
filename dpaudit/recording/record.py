"""Recorded noise of a mechanism on pairs: asked for in a process of its own, which sends back plain values."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dpaudit.base.strict import fitted, parsed, stored
from dpaudit.claims import Claim
from dpaudit.data.pair import AdjacentPair, SealedPair
from dpaudit.errors import InvalidSpec
from dpaudit.execution.engine import Engine, FreshProcesses
from dpaudit.execution.executor import Retry
from dpaudit.mechanisms.protocol import Mechanism
from dpaudit.processes.tasks import FreshTask, worker_for
from dpaudit.recording.patching import patched
from dpaudit.recording.replays import analysed
from dpaudit.results.recorded import NoiseRecord
from dpaudit.running import guard
from dpaudit.running.streams import Shard, Stage
from dpaudit.running.worker import Job

ENDED = "the process in which noise was recorded ended twice: nothing is known of its draws"
PROGRAM = "a program of its own, in which nothing is recorded"


def record(
    engine: Engine,
    mechanism: Mechanism,
    pairs: Sequence[AdjacentPair | SealedPair],
    *,
    claim: Claim | None,
    seed: int = 0,
    run_timeout_s: float | None = None,
) -> tuple[NoiseRecord, ...]:
    """What recorded noise tells of a mechanism, a record for each pair; about 47 runs a pair, in a child process.

    Raises `InvalidSpec` where the mechanism cannot be opened there, and `UnsoundAudit` where its process ends.
    """
    with engine.session(mechanism, tuple(pairs), seed, run_timeout_s) as session:
        session.job = replace(session.job, alone=True)  # a batched mechanism gets a call for each run
        tasks = [FreshTask(Shard(Stage.FRESH, place, 0, 0), ()) for place in range(len(pairs))]
        distances = tuple(pair.distance for pair in pairs)
        body = FreshProcesses(session, tasks, partial(recorded_here, claim, distances))
        texts = {shard.pair: words for done in Retry(body, ENDED).run(body.work) for shard, words in done.results}
    return tuple(
        replace(again(texts[place]["record"]), mechanism=mechanism.name, pair=pair.record())
        for place, pair in enumerate(pairs)
    )


def again(text: str) -> NoiseRecord:
    """A record from what its process sent. Raises `InvalidSpec` where this is none."""
    try:
        return fitted(_numbers(parsed(text, cure="run it again", not_json="run it again")), NoiseRecord, strict=False)  # type: ignore[no-any-return]
    except ValueError as error:
        raise InvalidSpec(f"the record of noise that a process sent cannot be read ({error})") from None


def _numbers(value: Any) -> Any:
    """Infinities as JSON has them, as numbers."""
    if isinstance(value, dict):
        return {key: float(each) if key in LOSSES and each == "inf" else _numbers(each) for key, each in value.items()}
    return [_numbers(each) for each in value] if isinstance(value, list) else value


LOSSES = ("loss", "allowed", "shift")


def recorded_here(claim: Claim | None, distances: Sequence[int], job: Job, task: FreshTask) -> dict[str, str]:
    """The record of one pair, in the process that runs the mechanism."""
    with patched(), guard.alarms(job.run_timeout_s is not None):  # what a module makes when it is imported records too
        worker = worker_for(job)
        place = task.shard.pair
        first, second = worker.pairs[place]
        found = analysed(
            worker.opened.call, first, second, claim=claim, distance=distances[place], seed=job.seed % 2**31
        )
    guard.disarm()
    return {"record": json.dumps(stored(found))}
