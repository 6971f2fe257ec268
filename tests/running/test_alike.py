"""A worker that is not ours runs the same program as its driver, or the audit ends and names it with both values."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import dpaudit
from dpaudit.errors import InvalidSpec
from dpaudit.events import Event, HitCounter
from dpaudit.events.features import Coordinate
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import command, wrap
from dpaudit.processes.frames import Done
from dpaudit.running import alike
from dpaudit.running.program import made_of, made_with
from dpaudit.running.streams import Stage, shards
from tests.cases import for_each

MECH = """
import alike_helper
try:
    import alike_optional
except ImportError:
    alike_optional = None
def noisy(data, rng):
    import alike_late
    return data + rng.laplace(scale=alike_helper.SCALE * alike_late.TIMES)
"""
FILES = {"alike_mech": MECH, "alike_helper": "SCALE = 1.0\n", "alike_late": "TIMES = 1.0\n", "alike_optional": ""}


@pytest.fixture
def mech(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text)
    yield importlib.import_module("alike_mech")
    for name in FILES:
        sys.modules.pop(name, None)


def change(name: str) -> Callable[[Path, pytest.MonkeyPatch], None]:
    return lambda folder, patch: (folder / f"{name}.py").write_text(FILES[name] + "# older\n") and None


def without(folder: Path, patch: pytest.MonkeyPatch) -> None:
    (folder / "alike_optional.py").unlink()
    patch.delitem(sys.modules, "alike_optional")


def stale(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """The file is the same, and what was loaded is an older one."""
    older: Any = sys.modules["alike_mech"]
    patch.setattr(older.noisy, "__code__", (lambda data, rng: data).__code__)


def other(name: str) -> Callable[[Path, pytest.MonkeyPatch], None]:
    told = {**made_with(), name: "9.9.9"}
    return lambda folder, patch: patch.setattr(alike, "made_with", lambda: told)


CHANGES = [
    ("module alike_mech", change("alike_mech")),
    ("module alike_helper", change("alike_helper")),
    ("module alike_late", change("alike_late")),
    ("module alike_optional", without),
    ("function alike_mech.noisy", stale),
    ("Python", other("Python")),
    ("numpy", other("numpy")),
    ("scipy", other("scipy")),
    ("dpaudit", other("dpaudit")),
]


@for_each("part, make", CHANGES, ids=str)
def test_a_difference_is_an_error_with_both_values(
    mech: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, make: Callable[..., None]
) -> None:
    mechanism = wrap(mech.noisy)
    shown = alike.shown(made_of(mechanism) | made_with())
    code = mech.noisy.__code__
    with monkeypatch.context() as patch:
        make(tmp_path, patch)
        with pytest.raises(InvalidSpec) as raised:
            alike.check(shown, opened=True)
    mech.noisy.__code__ = code
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text)
    importlib.invalidate_caches()
    alike.check(shown, opened=True)
    value = dict(shown)[part].lstrip("#")
    assert str(raised.value).startswith("it has ")
    assert f"has {part} " in str(raised.value) or f"has no {part}, " in str(raised.value)
    assert str(raised.value).endswith(f", and here it is {value}")


def test_what_travels_along_is_not_asked_for(mech: ModuleType) -> None:
    def noisy(data: int, rng: Any) -> Any:
        return mech.noisy(data, rng)

    shown = dict(alike.shown(made_of(wrap(noisy)) | made_with()))
    assert {"module alike_mech", "function alike_mech.noisy", "numpy", "dpaudit"} <= set(shown)
    assert not [each for each in shown if each.startswith(("values", "environment", "class", "the "))]
    script = command(["sh", __file__])
    assert f"program {os.path.normpath(__file__)}" in dict(alike.shown(made_of(script) | made_with()))


@pytest.mark.long
def test_one_of_two_workers_with_an_older_file_ends_the_audit(tmp_path: Path) -> None:
    """Two processes of dask by hand, each with a folder of its own; the driver has the files of the first."""
    distributed = pytest.importorskip("distributed")
    for name, scale in (("here", "1.0"), ("there", "0.5")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "alike_mixed.py").write_text(
            f"def noisy(data, rng):\n    return data + rng.laplace(scale={scale})\n"
        )
    root = str(Path(dpaudit.__file__).parents[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = distributed.LocalCluster(n_workers=0, dashboard_address=None, silence_logs=50)
        started = [
            subprocess.Popen(
                [sys.executable, "-m", "dask", "worker", cluster.scheduler_address, "--nthreads", "1", "--no-nanny"],
                env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path / name), root))},
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for name in ("here", "there")
        ]
        sys.path.insert(0, str(tmp_path / "here"))
        try:
            with distributed.Client(cluster) as client:
                client.wait_for_workers(2, timeout=60)
                mixed: Any = importlib.import_module("alike_mixed")
                said = r"the worker tcp://\S+: it has (module|function) alike_mixed\S* \w+, and here it is \w+; give ev"
                with pytest.raises(InvalidSpec, match=said):
                    dpaudit.audit(mixed.noisy, pair=(10.0, 9.0), epsilon=1.0, runs=10**6, seed=3, backend="dask")
        finally:
            sys.path.remove(str(tmp_path / "here"))
            for each in started:
                each.kill()
                each.wait()
            cluster.close()


def test_a_worker_that_says_nothing_is_refused(mech: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one with an older dpaudit does."""
    monkeypatch.setattr("dpaudit.processes.tasks.alike.check", lambda *_, **__: None)
    monkeypatch.setattr("dpaudit.processes.tasks.Done", lambda *given, place=None, **named: Done(*given, **named))
    event = HitCounter(Event(Coordinate(), intervals=((9.5, float("inf")),)))
    pairs = (dpaudit.AdjacentPair(10, 9),)
    with (
        Engine(2, "multiprocessing") as engine,
        engine.session(wrap(mech.noisy), pairs, 3, None) as session,
        pytest.raises(InvalidSpec, match="a worker has another dpaudit"),
    ):
        session.shard_counts(shards(Stage.CERTIFY, 0, 400, 100), event)
