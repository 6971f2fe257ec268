"""Tasks on the workers of a dask cluster: the one that the program is connected to, or that dask's own settings name.

Where there is neither, a cluster of this machine's processes is made, and ended with the engine.
"""

import importlib
import logging
import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from dpaudit.errors import InvalidSpec, OutOfTime
from dpaudit.installed import lacking
from dpaudit.sampling.pools import LostWorker, Task

LOCAL_SETTINGS = {"distributed.scheduler.allowed-failures": 0, "distributed.worker.daemon": False}


class Dask:
    """A pool on `distributed.Client`; connected when it first runs something."""

    name = "dask"

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs
        self._client: Any = None
        self._cluster: Any = None

    def run(self, function: Callable[..., Any], tasks: list[Task], until: float = math.inf) -> Iterator[Any]:
        if self._client is None:
            self._client = self._connect()
        client = self._client
        distributed: Any = importlib.import_module("distributed")
        lost = (distributed.KilledWorker, distributed.client.FutureCancelledError, distributed.comm.CommClosedError)

        futures: list[Any] = []

        def submitted() -> list[Any]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # a mechanism may be large, and goes with each task
                fresh = [client.submit(function, *task, pure=False) for task in tasks]
            tasks.clear()
            futures.extend(fresh)
            return fresh

        try:
            left_s = None if until == math.inf else max(0.0, until - time.monotonic())
            done = distributed.as_completed(submitted(), loop=client.loop, timeout=left_s)
            for future in done:
                yield future.result()
                future.release()
                done.update(submitted())
        except TimeoutError:
            raise OutOfTime from None
        except lost as error:
            raise LostWorker(str(error)) from None
        finally:
            with suppress(Exception):  # a lost scheduler cancels nothing
                client.cancel(futures)

    def close(self) -> None:
        """Ends the cluster that was made here; one that was there stays."""
        for each in (self._client, self._cluster):
            if each is not None and self._cluster is not None:
                with suppress(Exception):
                    each.close()
        self._client = self._cluster = None

    def _connect(self) -> Any:
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise lacking('backend "dask" needs dask.distributed, which is not installed here', "dask") from None
        with suppress(ValueError):  # the program has none
            return distributed.default_client()
        settings: Any = importlib.import_module("dask.config")
        address = settings.get("scheduler-address", None)
        if address is not None:
            try:
                return distributed.Client(address, set_as_default=False)
            except (OSError, ValueError) as error:
                raise InvalidSpec(f"the dask scheduler at {address} cannot be reached ({error})") from None
        with settings.set(LOCAL_SETTINGS):
            self._cluster = distributed.LocalCluster(
                n_workers=self.n_jobs,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
                memory_limit=0,
            )
            return distributed.Client(self._cluster, set_as_default=False)
