"""What is said where a cluster fails, by a pretended engine: `make cluster-dask` and others break the true ones."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

import dpaudit
from dpaudit.errors import InvalidSpec, OutOfTime, UnsoundAudit
from dpaudit.options import precedence
from dpaudit.processes import clusters
from dpaudit.processes.clusters import KINDS, Cluster, ClusterLost, check_alone, connected, parsed
from tests.cases import for_each


class Pretended:
    """Runs tasks on threads of this process; `broken` says what each of them comes to instead."""

    task_s = 0.01
    there: Any = 2  # workers, or the error that is raised instead
    broken: Callable[[int], BaseException | None] = staticmethod(lambda task: None)
    close = leave = theirs = staticmethod(lambda: None)

    def __init__(self, address: str | None, n_jobs: int) -> None:
        self.threads, self.tasks = ThreadPoolExecutor(2), 0

    def submit(self, function: Callable[..., Any], task: tuple[Any, ...]) -> Future[Any]:
        self.tasks += 1
        return self.threads.submit(self._run, self.tasks, function, task)

    def _run(self, number: int, function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
        if (error := type(self).broken(number)) is not None:
            raise error
        return function(*task)

    def workers(self) -> int:
        if isinstance(self.there, Exception):
            raise self.there
        return int(self.there)

    def cancel(self, futures: Iterable[Future[Any]]) -> None:
        for each in futures:
            each.cancel()


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> type[Pretended]:
    """The engine that stands where dask does; a cluster is looked at all the time."""

    class Link(Pretended):
        pass

    monkeypatch.setitem(KINDS, "dask", replace(KINDS["dask"], link=Link))
    for name, value in {"NO_WORKER_S": 0.3, "LOOK_S": 0.02, "FROM_S": 0.0}.items():
        monkeypatch.setattr(clusters, name, value)
    monkeypatch.setattr(clusters, "_CONNECTED", {})
    return Link


def noisy(data: float, rng: np.random.Generator) -> float:
    return data + rng.laplace()


def audited(**way: Any) -> Any:
    return dpaudit.audit(noisy, pair=(10.0, 9.0), epsilon=1.0, runs=20_000, seed=1, **way)


def test_a_cluster_counts_what_this_process_counts(link: type[Pretended]) -> None:
    alone, there = audited(n_jobs=1).to_dict(), audited(backend="dask")
    (host,) = there.provenance["hosts"]
    assert (host["host"], there.provenance["isolation"], there.provenance["n_jobs"]) == (
        socket.gethostname(),
        "none",
        2,
    )
    assert {key: value for key, value in there.to_dict().items() if key != "provenance"} == {
        key: value for key, value in alone.items() if key != "provenance"
    }


def test_a_lost_worker_is_replaced_once_and_a_second_loss_is_told_of_the_cluster(link: type[Pretended]) -> None:
    link.broken = staticmethod(lambda task: RuntimeError("the worker died") if task == 3 else None)
    assert audited(backend="dask").evidence == audited(n_jobs=1).evidence
    link.broken = staticmethod(lambda task: RuntimeError("the worker died"))
    with pytest.raises(UnsoundAudit, match="workers of the dask cluster were lost twice on the same runs"):
        audited(backend="dask")


def test_a_scheduler_that_is_gone_ends_the_audit_and_every_later_one_at_once(link: type[Pretended]) -> None:
    def broken(task: int) -> BaseException:
        link.there = OSError("nobody answers")
        return RuntimeError("cancelled")

    link.broken = staticmethod(broken)
    with pytest.raises(ClusterLost, match=r"the dask scheduler went away \(nobody answers\), which is not"):
        audited(backend="dask")
    before = time.monotonic()
    with pytest.raises(ClusterLost):
        audited(backend="dask")
    assert time.monotonic() - before < 5.0
    link.there, link.broken = 2, staticmethod(lambda task: None)  # and once it is there again, it is asked again
    assert audited(backend="dask").provenance["hosts"]


def test_without_a_worker_nothing_waits_for_ever(link: type[Pretended]) -> None:
    link.there = 0
    with pytest.raises(InvalidSpec, match=r"the dask scheduler has no worker after 0.3 s \(none has come\); start one"):
        audited(backend="dask")
    link.there, held = 1, threading.Event()

    def broken(task: int) -> None:
        link.there = 0
        held.wait(20.0)

    link.broken = staticmethod(broken)
    with pytest.raises(ClusterLost, match=r"has had no worker for 0.3 s \(none has come\)"):
        audited(backend="dask")
    held.set()


def test_a_late_worker_is_waited_for(link: type[Pretended]) -> None:
    link.there = 0
    threading.Timer(0.1, lambda: setattr(link, "there", 3)).start()
    assert connected("dask", None, 1).told == "the dask scheduler: 3 workers, isolation none"


def test_time_that_is_over_ends_what_waits(link: type[Pretended]) -> None:
    cluster, held = Cluster("dask", None, 1), threading.Event()
    with pytest.raises(OutOfTime):
        list(cluster.run(held.wait, [(20.0,)], until=time.monotonic() + 0.1))
    held.set()


def test_a_worker_without_dpaudit_is_told_the_cure(link: type[Pretended]) -> None:
    link.broken = staticmethod(lambda task: ModuleNotFoundError("No module named 'dpaudit'"))
    with pytest.raises(InvalidSpec, match="a worker of the dask scheduler has no dpaudit; install dpaudit 0"):
        audited(backend="dask")


def test_other_outputs_of_the_first_runs_are_told(link: type[Pretended], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.processes.tasks.likeness", lambda pilot: "another")
    result = audited(backend="dask")
    assert not result.reproducible
    assert any("other outputs than here: other libraries, or hardware" in note for note in result.health.notes)


@for_each(
    "name, address, place",
    [
        ("dask", "tcp://10.0.0.1:8786", ("10.0.0.1", 8786)),
        ("dask", "node:8786", ("node", 8786)),
        ("dask", "tls://[fe80::1]:8786", ("fe80::1", 8786)),
        ("ray", "auto", None),
        ("ray", "ray://head:10001", ("head", 10001)),
        ("spark", "local[*]", None),
        ("spark", "yarn", None),
        ("spark", "spark://one:7077,two:7077", None),
    ],
)
def test_an_address(name: str, address: str, place: tuple[str, int] | None) -> None:
    assert parsed(name, address) == place


@for_each(
    "name, address",
    [
        *(("dask", each) for each in ("foo", "tcp://host", "http://host:80", "host:99999", "host:1/x", "", "a b:1")),
        *(("ray", each) for each in ("host", "ray://host", "spark://host:1")),
        *(("spark", each) for each in ("host:7077", "local[]", "spark://host", "tcp://host:1")),
    ],
)
def test_what_is_no_address_is_refused_with_one_that_is(name: str, address: str) -> None:
    with pytest.raises(InvalidSpec, match=f"scheduler must be that of a {KINDS[name].title}, .*HOST.*, got '"):
        parsed(name, address)


def test_where_nobody_listens_nobody_is_waited_for(link: type[Pretended]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
    with pytest.raises(InvalidSpec, match=rf"the dask scheduler at 127.0.0.1:{port} cannot be reached \(.*refused"):
        audited(backend="dask", scheduler=f"127.0.0.1:{port}")
    with pytest.raises(InvalidSpec, match="scheduler is of a cluster: give backend dask or ray or spark with it"):
        audited(scheduler=f"127.0.0.1:{port}")


def test_the_environment_names_them_too(link: type[Pretended], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPAUDIT_BACKEND", "dask")
    assert audited().provenance["hosts"]
    monkeypatch.setenv("DPAUDIT_SCHEDULER", "foo")
    with pytest.raises(InvalidSpec, match="got 'foo'"):
        audited()


def test_a_call_with_a_ledger_goes_on_when_its_cluster_went_away(link: type[Pretended], tmp_path: Path) -> None:
    def broken(task: int) -> BaseException | None:
        if task < 12:
            return None
        link.there = OSError("nobody answers")
        return RuntimeError("cancelled")

    link.broken, ledger = staticmethod(broken), tmp_path / "ledger.sqlite"
    with pytest.raises(ClusterLost):
        audited(backend="dask", ledger=ledger)
    again = audited(ledger=ledger, n_jobs=1)  # and where it runs is no part of the question
    assert again.provenance["interruptions"] == 1
    assert again.provenance["hosts"]
    assert again.evidence == audited(n_jobs=1).evidence


def test_what_the_program_has_open_is_asked_for_each_time(link: type[Pretended]) -> None:
    link.theirs = staticmethod(lambda: True)
    assert connected("dask", None, 1) is not connected("dask", None, 1)
    link.theirs = staticmethod(lambda: False)
    assert connected("dask", None, 1) is connected("dask", None, 1)
    assert connected("dask", None, 1) is not connected("dask", None, 2)


def test_another_backend_leaves_the_scheduler_of_the_project() -> None:
    project = {"backend": "dask", "scheduler": "tcp://10.0.0.1:8786", "seed": 1}
    assert precedence({"backend": "loky"}, project) == {"backend": "loky", "seed": 1}


def test_the_program_goes_before_the_environment(link: type[Pretended], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPAUDIT_BACKEND", "dask")
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert "hosts" not in audited().provenance


def test_an_address_beside_what_is_open_is_refused_and_not_left_unused() -> None:
    check_alone(None, "ray")
    with pytest.raises(InvalidSpec, match="the program has a ray open already: close it, or leave out sched"):
        check_alone("auto", "ray")
