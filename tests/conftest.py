"""What all tests share: one repository root, and an environment that no developer's shell leaks into."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule

# before numpy is loaded: its threads only wait for each other where every core has a test to run
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# what is compiled is kept: else pytest rewrites 770 files in each worker, and every process compiles the package anew
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# a background job ignores Ctrl-C, and nohup a hang-up: so would every process that a test starts and ends by them
for ignored, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, handler)

ROOT = Path(__file__).resolve().parent.parent


def pytest_configure(config: pytest.Config) -> None:
    """The package is a plugin, so pytest would rewrite the asserts of all its modules: it has none to explain."""
    hook = config.pluginmanager.rewrite_hook
    getattr(hook, "_must_rewrite", set()).discard("dpaudit")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[None]:
    """A module of tests without an example is not searched for some."""
    found = yield
    examples = file_path.suffix != ".py" or b">>> " in file_path.read_bytes()
    return found if examples else [each for each in found if not isinstance(each, DoctestModule)]


LOADED = [0]  # modules when what was loaded was frozen last
MANY = 100  # modules more


def pytest_runtest_setup() -> None:
    """What is loaded stays loaded: full collections, and whatever else looks at all objects, need not walk it again."""
    if len(sys.modules) >= LOADED[0] + MANY:
        gc.collect()
        gc.freeze()
        LOADED[0] = len(sys.modules)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No colours, no CI, no settings of the caller's; child processes find the dpaudit that is being tested."""
    for name in ("CI", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("MPLBACKEND", "Agg")


@pytest.fixture(autouse=True)
def whole_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a report that cannot be told fails its test, where a user would get a line that says so."""

    def fail(error: Exception) -> str:
        raise error

    monkeypatch.setattr("dpaudit.base.quoting.untold", fail)


@pytest.fixture(autouse=True, scope="session")
def processes_alike() -> Iterator[None]:
    """Whether processes keep values costs four of them a refutation: only tests/auditing/test_units.py asks it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("dpaudit.auditing.units._keeps", lambda *_: False)
        yield


@pytest.fixture
def root() -> Path:
    """The repository."""
    assert os.path.isdir(ROOT / "dpaudit")
    return ROOT
