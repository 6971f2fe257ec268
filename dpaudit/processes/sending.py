"""A mechanism as it travels to workers, pickled before anything ran here, with no state of this process; fresh runs."""

import io
import pickle
import random
from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any, ClassVar

from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms.protocol import Mechanism
from dpaudit.processes.pools import Processes
from dpaudit.processes.tasks import FreshTask
from dpaudit.running.worker import Job


class AsMade:
    """A pickled mechanism that unpickles to the mechanism."""

    def __init__(self, content: bytes) -> None:
        self.made = content

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


def fresh_results(
    job: Job, work: Sequence[FreshTask], at_once: int, until: float, run: Callable[[Job, FreshTask], Any]
) -> Iterator[tuple[FreshTask, Any]]:
    """Each task with what `run` gives of it, made in a process of its own; the job carries what it runs, pickled.

    Each imports the mechanism anew and makes its first runs, whatever others have kept: a few hosts load this package
    and nothing of the user's, and each forks a process for every task, which opens the mechanism, runs it, and ends. So
    many processes cost little more than the import of the mechanism.

    Raises the error that a mechanism's process reported, `OutOfTime` past `until` (of `time.monotonic()`), and
    `LostWorker` where a process was lost.
    """
    hosts = min(at_once, max(INTERPRETERS, len(work) // PER_INTERPRETER))
    pool = Processes(hosts, anew=True, spread=INTERPRETERS)
    try:
        for number, (result,) in pool.numbered(run, [(job, task) for task in work], until):
            yield work[number], result
    finally:
        pool.close()
