"""A mechanism as it travels to workers, pickled before anything ran here, with no state of this process; fresh runs."""

import io
import pickle
import random
from collections import ChainMap
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, ClassVar

from dpaudit.errors import InvalidSpec, UnsoundAudit
from dpaudit.mechanisms.protocol import Mechanism
from dpaudit.processes.pools import LostWorker, Processes
from dpaudit.processes.tasks import FreshTask, run_alone
from dpaudit.running.progress import Progress
from dpaudit.running.worker import Job


class AsMade:
    """A pickled mechanism that unpickles to the mechanism."""

    def __init__(self, made: bytes) -> None:
        self.made = made

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return pickle.loads, (self.made,)

    @classmethod
    def of(cls, mechanism: Mechanism) -> Any:
        """The mechanism itself where it cannot be pickled: that is told when it has to be sent."""
        try:
            return cls(_bytes_of(mechanism))
        except Exception:
            return mechanism


def pickled(contents: Any) -> bytes:
    """The bytes of a mechanism and its pairs; raises `InvalidSpec` where they cannot be sent."""
    try:
        return _bytes_of(contents)
    except Exception as error:  # whatever an object's own way to be pickled raises
        raise InvalidSpec(
            f"the mechanism cannot be sent to workers ({error}); build it there with dpaudit.built_by(make), "
            "or use n_jobs=1"
        ) from None


def _bytes_of(contents: Any) -> bytes:
    """The bytes of cloudpickle; the randomness of the system has no state, so another source of it is the same.

    Code keeps the name of its file, which cloudpickle leaves out from 3.1.3 on: errors and coverage are told by it.
    """
    import cloudpickle

    known = cloudpickle.Pickler.dispatch_table

    def code(each: CodeType) -> tuple[Any, ...]:
        return _code, (each.co_filename, *known[CodeType](each))

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        dispatch_table: ClassVar[Any] = ChainMap(
            {random.SystemRandom: lambda source: (random.SystemRandom, ()), CodeType: code}, known
        )

    buffer = io.BytesIO()
    Pickler(buffer).dump(contents)
    return buffer.getvalue()


def _code(file: str, make: Callable[..., CodeType], values: tuple[Any, ...]) -> CodeType:
    return make(*values).replace(co_filename=file)


INTERPRETERS = 2  # fresh ones, each with a hash seed of its own; the processes are shared among them
PER_INTERPRETER = 8  # processes for which one more is started, where so many may run at once


def run_fresh(
    job: Job,
    work: Sequence[FreshTask],
    heard: Progress,
    at_once: int,
    until: float,
    run: Callable[[Job, FreshTask], Any] = run_alone,
) -> list[Any]:
    """What `run` tells of each task, its outputs, made in a process of its own; the job carries a payload.

    Each imports the mechanism anew and makes its first runs, whatever others have kept: a few hosts load this package
    and nothing of the user's, and each forks a process for every task, which opens the mechanism, runs it, and ends. So
    many processes cost little more than the import of the mechanism.

    Raises the error that a mechanism's process reported, `OutOfTime` past `until` (of `time.monotonic()`), and
    `UnsoundAudit` where a process was lost twice.
    """
    found: dict[int, Any] = {}
    hosts = min(at_once, max(INTERPRETERS, len(work) // PER_INTERPRETER))
    for _ in range(2):  # a lost process is run once more, with the same seed, as any worker is
        missing = [place for place in range(len(work)) if place not in found]
        pool = Processes(hosts, anew=True, spread=INTERPRETERS)
        try:
            for number, (told,) in pool.numbered(run, [(job, work[place]) for place in missing], until):
                found[missing[number]] = told
                heard.advance(len(work[missing[number]].sides))
        except LostWorker:
            continue
        finally:
            pool.close()
    if len(found) < len(work):
        raise UnsoundAudit(
            "a fresh process ended twice before its runs were done: the mechanism ended it, hung past "
            "run_timeout_s or ran out of memory; no verdict"
        )
    return [found[place] for place in range(len(work))]
