"""Processes of ours as a joblib backend: threads of the driver, each of which has a host run a task."""

from collections.abc import Callable
from typing import Any

from joblib.parallel import ThreadingBackend, register_parallel_backend

NAME = "dpaudit"


class HostBackend(ThreadingBackend):
    """Threads that ask hosts and wait; where a call of `joblib.Parallel` ends early, what they wait for is ended.

    It is asked for by its name in dpaudit's own calls; of what others give to `joblib.Parallel` it makes threads.
    """

    def __init__(self, end: Callable[[], Any] = lambda: None, **options: Any) -> None:
        super().__init__(**options)
        self._end = end

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Ends the processes at work, so that no thread waits for them."""
        self._end()
        super().abort_everything(ensure_ready=ensure_ready)


register_parallel_backend(NAME, HostBackend)
