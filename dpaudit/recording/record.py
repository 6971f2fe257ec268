"""Recorded noise of a mechanism on pairs: asked for in a process of its own, which sends back plain values."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from dpaudit.base.strict import parsed, stored
from dpaudit.claims import Claim
from dpaudit.data.pair import AdjacentPair, SealedPair
from dpaudit.execution.engine import Engine, FreshProcesses
from dpaudit.execution.executor import Retry
from dpaudit.mechanisms.functions import Imported, PerRun
from dpaudit.mechanisms.importing import is_own
from dpaudit.mechanisms.protocol import Mechanism, is_known
from dpaudit.processes.tasks import FreshTask, worker_for
from dpaudit.recording.patching import patched
from dpaudit.recording.replays import analysed, confirmed, constant
from dpaudit.results.recorded import NoiseRecord
from dpaudit.results.stored.reading import named, record_of
from dpaudit.running import guard
from dpaudit.running.streams import Shard, Stage, apart
from dpaudit.running.worker import Job

ENDED = "the process in which noise was recorded ended twice: nothing is known of its draws"


def record(
    engine: Engine,
    mechanism: Mechanism,
    pairs: Sequence[AdjacentPair | SealedPair],
    *,
    claim: Claim | None,
    seed: int = 0,
    run_timeout_s: float | None = None,
) -> tuple[NoiseRecord, ...]:
    """What recorded noise tells of a mechanism, a record for each pair; 45 runs a pair, in a child process.

    What no draw touched is looked at again in another process, where it has to be the same.

    Raises `InvalidSpec` where the mechanism cannot be opened there, and `UnsoundAudit` where its process ends.
    """
    with engine.session(_in_python(mechanism), tuple(pairs), seed, run_timeout_s or LONGEST_S) as session:
        session.job = replace(session.job, alone=True)  # a batched mechanism gets a call for each run
        distances = tuple(pair.distance for pair in pairs)

        def asked(ask: Callable[..., dict[str, str]], places: Sequence[int]) -> dict[int, NoiseRecord]:
            body = FreshProcesses(session, [FreshTask(Shard(Stage.FRESH, place, 0, 0), ()) for place in places], ask)
            results = [each for done in Retry(body, ENDED).run(body.work) for each in done.results]
            return {shard.pair: again(words["record"]) for shard, words in results}

        records = asked(partial(recorded_here, claim, distances, seed), range(len(pairs)))
        led = {place: each for place, each in records.items() if any(map(constant, each.leads))}
        records |= asked(partial(confirmed_here, led, apart(seed)), list(led)) if led else {}
    return tuple(
        replace(records[place], mechanism=mechanism.name, pair=pair.record()) for place, pair in enumerate(pairs)
    )


def _in_python(mechanism: Mechanism) -> Mechanism:
    """An entry of the catalogue as its program, for many runs at once may take bits of the generator itself."""
    entry = mechanism.resolve() if isinstance(mechanism, Imported) and is_own(mechanism.reference) else mechanism
    return PerRun(entry.program, entry.values()) if is_known(entry) else mechanism


def again(text: str) -> NoiseRecord:
    """A record from what its process sent. Raises `InvalidSpec` where this is none."""
    with named("the record of noise that a process sent"):
        return record_of(parsed(text, cure="run it again", not_json="run it again"))


MOST_SEEDS = 2**31
LONGEST_S = 60.0  # of a run, where nobody says: draws at the ends of their laws may have a loop go on


def recorded_here(
    claim: Claim | None, distances: Sequence[int], seed: int, job: Job, task: FreshTask
) -> dict[str, str]:
    """The record of one pair, in the process that runs the mechanism."""
    return _here(job, task, partial(analysed, claim=claim, distance=distances[task.shard.pair], seed=seed % MOST_SEEDS))


def confirmed_here(records: Mapping[int, NoiseRecord], seed: int, job: Job, task: FreshTask) -> dict[str, str]:
    """The record of one pair after a look in another process."""
    return _here(job, task, partial(confirmed, record=records[task.shard.pair], seed=seed % MOST_SEEDS))


def _here(job: Job, task: FreshTask, ask: Callable[..., NoiseRecord]) -> dict[str, str]:
    with patched(), guard.alarms(job.run_timeout_s is not None):  # what a module makes when it is imported records too
        worker = worker_for(job)
        found = ask(worker.opened.call, *worker.pairs[task.shard.pair])
    guard.disarm()
    return {"record": json.dumps(stored(found))}
