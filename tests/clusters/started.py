"""Clusters of this machine, each process started by hand, so that any of them can be killed."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ENGINES = ("dask", "ray", "spark")


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


class Started:
    """A scheduler and workers of one slot each; every process leads a group of its own."""

    def __init__(self, engine: str, folder: Path) -> None:
        self.engine, self.folder, self.port = engine, folder, free_port()
        scheme = {"dask": "tcp://", "ray": "", "spark": "spark://"}[engine]
        self.host = node() if engine == "ray" else "127.0.0.1"
        self.address = f"{scheme}{self.host}:{self.port}"
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self, workers: int, **environment: str) -> Started:
        """Starts the scheduler, and so many workers."""
        self.scheduler = self._process(self._words_of_scheduler(), {})
        wait_for(self.host, self.port)
        for _ in range(workers):
            self.add(**environment)
        return self

    def add(self, **environment: str) -> None:
        """Starts one more worker."""
        self.workers.append(self._process(self._words_of_worker(), environment))
        time.sleep(3.0 if self.engine == "ray" else 0.0)  # two that start at the same moment may want the same ports

    def kill_worker(self) -> None:
        """Kills a worker with all that it has started."""
        kill(self.workers.pop())

    def kill_scheduler(self) -> None:
        """Kills the scheduler."""
        assert self.scheduler is not None
        kill(self.scheduler)

    def stop(self) -> None:
        """Kills everything."""
        for each in [*self.workers, *([self.scheduler] if self.scheduler else [])]:
            kill(each)

    def _process(self, words: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        log = open(self.folder / f"{self.engine}-{time.time_ns()}.log", "wb")  # noqa: SIM115
        return subprocess.Popen(
            words, cwd=self.folder, env=os.environ | environment, stdout=log, stderr=log, start_new_session=True
        )

    def _words_of_scheduler(self) -> list[str]:
        if self.engine == "dask":
            main = ["-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--no-dashboard"]
            return [sys.executable, *main, "--port", str(self.port)]
        if self.engine == "ray":
            how = ["--head", "--port", str(self.port), "--num-cpus", "0"]
            return [*RAY, *how, "--include-dashboard", "false", "--block"]
        return [*spark_class(), "master.Master", "--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0"]

    def _words_of_worker(self) -> list[str]:
        if self.engine == "dask":
            how = ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
            return [sys.executable, "-m", "distributed.cli.dask_worker", self.address, *how]
        if self.engine == "ray":
            return [*RAY, "--address", self.address, "--num-cpus", "1", "--block"]
        return [*spark_class(), "worker.Worker", "-c", "1", "-m", "1500M", "--webui-port", "0", self.address]


RAY = [sys.executable, "-m", "ray.scripts.scripts", "start"]


def node() -> str:
    """The address that ray has for this machine, whatever else is said."""
    import ray

    return str(ray.util.get_node_ip_address())


def spark_class() -> list[str]:
    """The words that start a class of Spark's own cluster, but for its last part."""
    import pyspark

    return ["sh", "-c", f'exec "{Path(pyspark.__file__).parent}/bin/spark-class" "org.apache.spark.deploy.$0" "$@"']


def wait_for(host: str, port: int, seconds: float = 60.0) -> None:
    """Until somebody listens there."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection((host, port), 1.0).close()
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"nobody listens at {host}:{port}")


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kills a process and its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
