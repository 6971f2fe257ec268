"""A cluster counts what one machine counts; where it breaks, that is said, of the cluster, within 70 seconds.

`make cluster-dask`, `cluster-ray` and `cluster-spark` run these tests on three local workers, each with its engine.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import dpaudit
from tests.clusters.started import ENGINES, Started

ENGINE = os.environ.get("DPAUDIT_CLUSTER", "")
pytestmark = [pytest.mark.cluster, pytest.mark.skipif(ENGINE not in ENGINES, reason="make cluster-dask runs them")]

LONGEST_S, STARTS_S = 70.0, 20.0  # of a fault; until a client of Spark is there
HELPER = "SCALE = {scale}\n"
MECHANISM = """
import os
import time

import dpaudit
from helper import SCALE

def slow(data, rng):
    time.sleep(0.0002)
    return data + float(os.environ.get("SHIFT", "0")) + rng.laplace(scale=SCALE)

@dpaudit.batched
def quick(data, runs, rng):
    return data + rng.laplace(scale=SCALE, size=runs)
"""
SPEC = """
schema = "dpaudit.audit/1"

[[audit]]
name = "slow"
mechanism = "mechs:slow"
claim = {{ epsilon = 1.0 }}
pair = {{ first = 10.0, second = 9.0 }}
runs = {runs}

[[audit]]
name = "quick"
mechanism = "mechs:quick"
claim = {{ epsilon = 1.0 }}
pair = {{ first = 10.0, second = 9.0 }}
runs = 30_000_000
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended, and after how many seconds."""

    code: int
    out: str
    err: str
    seconds: float


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a spec, whose mechanism reads a module that each worker has by its own path."""
    monkeypatch.chdir(tmp_path)
    for name, scale in (("helpers", 1.0), ("others", 0.5), ("none", None)):
        (tmp_path / name).mkdir()
        if scale is not None:
            (tmp_path / name / "helper.py").write_text(HELPER.format(scale=scale))
    (tmp_path / "mechs.py").write_text(MECHANISM)
    (tmp_path / "spec.toml").write_text(SPEC.format(runs=150_000))
    monkeypatch.setenv("PYTHONPATH", path_with("helpers"))
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0123456789abcdef" * 2)
    return tmp_path


def path_with(*folders: str) -> str:
    """A path of modules: these folders, and this dpaudit."""
    return os.pathsep.join([*(str(Path(each).resolve()) for each in folders), str(Path(dpaudit.__file__).parents[1])])


@pytest.fixture
def cluster(folder: Path) -> Iterator[Started]:
    """A cluster that is not started yet."""
    found = Started(ENGINE, folder)
    yield found
    found.stop()


def run(
    *more: str,
    scheduler: str | None,
    meanwhile: Callable[[], Any] = lambda: None,
    after_s: float = 3.0,
    at_once: bool = False,
) -> Ended:
    """Runs the spec on the cluster, and does something else some seconds after its first line, or after its start."""
    words = ["run", "spec.toml", "--no-progress", "--report", "out", "--format", "json", *more]
    if scheduler is not None:
        words += ["--backend", ENGINE, "--scheduler", scheduler]
    timer, began = threading.Timer(after_s, meanwhile), time.monotonic()
    with (
        open("err", "w+") as err,
        subprocess.Popen(
            [sys.executable, "-m", "dpaudit", *words], stdout=subprocess.PIPE, stderr=err, text=True
        ) as ran,
    ):
        assert ran.stdout is not None
        if at_once:
            timer.start()
        out = ran.stdout.readline()
        if out and not at_once:
            timer.start()
        out += ran.stdout.read()
    seconds = time.monotonic() - began
    timer.cancel()
    said = Path("err").read_text()
    assert "Traceback" not in out + said, said
    return Ended(ran.returncode, out, said, seconds)


def stored() -> dict[str, Any]:
    found = [json.loads(each.read_text()) for each in Path("out").glob("*-*.json")]
    return {each["spec"]["name"]: each for each in found}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of one machine, without their provenance."""
    known: dict[str, Any] = {}
    return known


def expected(alone: dict[str, Any]) -> dict[str, Any]:
    """What one machine says."""
    if not alone:
        assert run(scheduler=None).code == 0
        alone.update(stored())
        shutil.rmtree("out")
        shutil.rmtree(".dpaudit")
    return alone


def same_as(alone: dict[str, Any], found: dict[str, Any]) -> None:
    assert found.keys() == expected(alone).keys()
    for name, result in found.items():
        for key, value in result.items():
            assert key == "provenance" or value == alone[name][key], (name, key)


def test_the_result_is_that_of_one_machine_and_names_the_hosts(cluster: Started, alone: dict[str, Any]) -> None:
    expected(alone)
    cluster.start(3)
    ended = run(scheduler=cluster.address)
    assert ended.code == 0, ended.err
    first = ended.out.splitlines()[0]
    assert f"at {cluster.address}: " in first
    assert first.endswith("isolation none")
    found = stored()
    same_as(alone, found)
    for name, result in found.items():
        (host,) = result["provenance"]["hosts"]
        assert host["workers"] <= 3
        assert host["host"] == socket.gethostname()
        assert host["runs"] >= 0.7 * result["spec"]["runs"], name
        assert result["provenance"]["isolation"] == "none"


def test_a_killed_worker_costs_nothing(cluster: Started, alone: dict[str, Any]) -> None:
    expected(alone)
    cluster.start(3)
    ended = run(scheduler=cluster.address, meanwhile=cluster.kill_worker)
    assert ended.code == 0, ended.err
    same_as(alone, stored())


def test_a_killed_scheduler_is_told_as_what_it_is_and_the_run_goes_on(cluster: Started, alone: dict[str, Any]) -> None:
    expected(alone)
    cluster.start(3)
    ended = run(scheduler=cluster.address, meanwhile=cluster.kill_scheduler)
    assert (ended.code, ended.err.count("\n")) == (3, 1), ended
    assert f"at {cluster.address} went away" in ended.err
    assert "not for the mechanism" in ended.err
    assert "--resume" in ended.err
    assert ended.seconds < LONGEST_S
    assert run("--resume", scheduler=None).code == 0
    same_as(alone, stored())


def test_all_workers_killed_end_the_run_after_a_minute(cluster: Started) -> None:
    cluster.start(1)
    ended = run(scheduler=cluster.address, meanwhile=cluster.kill_worker)
    assert (ended.code, ended.err.count("\n")) == (3, 1), ended
    assert "has had no worker for 60 s" in ended.err
    assert ended.seconds < STARTS_S + LONGEST_S


def test_a_late_worker_is_waited_for(cluster: Started, alone: dict[str, Any]) -> None:
    expected(alone)
    cluster.start(0)
    ended = run(scheduler=cluster.address, meanwhile=cluster.add, after_s=12.0, at_once=True)
    assert ended.code == 0, ended.err
    same_as(alone, stored())


def test_no_worker_ends_with_a_line(cluster: Started) -> None:
    cluster.start(0)
    ended = run(scheduler=cluster.address)
    assert (ended.code, ended.err.count("\n"), ended.out) == (2, 1, ""), ended
    assert f"at {cluster.address} has no worker after 60 s" in ended.err
    assert ended.seconds < STARTS_S + LONGEST_S


def test_other_code_is_no_code_of_ours(cluster: Started) -> None:
    cluster.start(1, PYTHONPATH=path_with("others"))
    ended = run(scheduler=cluster.address)
    assert ended.code == 3 or ended.code == 2, ended
    assert "has module helper" in ended.out + ended.err
    assert ended.seconds < LONGEST_S


def test_another_dpaudit_is_not_counted(cluster: Started, folder: Path) -> None:
    copy = folder / "other"
    shutil.copytree(Path(dpaudit.__file__).parent, copy / "dpaudit", ignore=shutil.ignore_patterns("__pycache__"))
    with (copy / "dpaudit" / "errors.py").open("a") as file:
        file.write("# another\n")
    cluster.start(1, PYTHONPATH=os.pathsep.join([str(folder / "helpers"), str(copy)]))
    ended = run(scheduler=cluster.address)
    assert ended.code in (2, 3), ended
    assert "has dpaudit 0.1.0 (" in ended.out + ended.err
    assert ended.seconds < LONGEST_S


def test_a_worker_without_the_module_is_named_with_the_cure(cluster: Started) -> None:
    cluster.start(1, PYTHONPATH=path_with("none"))
    ended = run(scheduler=cluster.address)
    assert ended.code in (2, 3), ended
    said = ended.out + ended.err
    assert "needs the module 'helper', which is not installed here" in said
    assert "no verdict   spec.toml: audit 'slow': the worker " in said
    assert "give every worker the same files" in said
    assert ended.seconds < LONGEST_S


def test_other_outputs_of_the_same_streams_are_told(cluster: Started) -> None:
    cluster.start(1, SHIFT="0.0000000001")
    ended = run(scheduler=cluster.address)
    assert ended.code == 0, ended
    found = stored()
    assert not found["slow"]["reproducible"]
    assert any("other outputs than here" in note for note in found["slow"]["health"]["notes"])
    assert found["quick"]["reproducible"]


@pytest.mark.parametrize("address", ["foo", "127.0.0.1", "http://127.0.0.1:80", "tcp://127.0.0.1:99999"])
def test_a_wrong_address_ends_at_once(folder: Path, address: str) -> None:
    ended = run(scheduler=address)
    assert (ended.code, ended.err.count("\n"), ended.out) == (2, 1, ""), ended
    assert "scheduler must be that of a" in ended.err
    assert address in ended.err
    assert ended.seconds < 15.0


def test_an_address_where_nobody_listens_ends_at_once(cluster: Started) -> None:
    ended = run(scheduler=cluster.address)
    assert (ended.code, ended.err.count("\n"), ended.out) == (2, 1, ""), ended
    assert f"at {cluster.address} cannot be reached" in ended.err
    assert ended.seconds < 15.0


def test_an_address_of_something_else_ends_with_a_line(cluster: Started) -> None:
    with socket.create_server((cluster.host, cluster.port)):
        ended = run(scheduler=cluster.address)
    assert (ended.code, ended.out) == (2, ""), ended
    assert f"error: the {'ray cluster' if ENGINE == 'ray' else ''}" in ended.err.splitlines()[-1]
    assert "cannot be reached" in ended.err.splitlines()[-1]
    assert ended.seconds < LONGEST_S


def test_without_an_address_a_cluster_of_this_machine_is_made(folder: Path, alone: dict[str, Any]) -> None:
    expected(alone)
    words = ["run", "spec.toml", "--no-progress", "--report", "out", "--format", "json", "--backend", ENGINE]
    done = subprocess.run([sys.executable, "-m", "dpaudit", *words, "--jobs", "3"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    same_as(alone, stored())
