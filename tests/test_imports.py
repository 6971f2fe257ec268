"""What is loaded where: heavy libraries where they are used, no catalogue in the core, nothing of Unix on Windows."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpaudit.ledger.results import Ledger
from dpaudit.results.stored import load
from tests.cases import for_each

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("scipy.stats", "pandas", "statsmodels", "matplotlib", "sklearn", "pytest")
PUBLIC = (
    "import dpaudit\nassert {*dpaudit.__all__} <= {*dir(dpaudit)}\n[getattr(dpaudit, name) for name in dpaudit.__all__]"
)
ROOMS = (
    "import dpaudit\n(dpaudit.claims.PureDP, dpaudit.catalogue.find, dpaudit.training.TrainingResult, dpaudit.adapters)"
)
FEWEST = 15  # modules of ours that a module of a few lines may bring with it
ENGINE = tuple(f"dpaudit.{room}" for room in ("running", "execution", "search", "auditing", "catalogue", "verify"))
GOLDEN = ROOT / "tests" / "golden" / "result.json"
HELP = "from dpaudit.cli.group import exit_code\nexit_code(['--help'])\nexit_code(['--version'])"
READ = [
    ["report", str(GOLDEN), "--format", "txt,html", "--output", "pages"],
    ["history", "noisy count", "--ledger", "audits.sqlite", "--figure", "noisy.svg"],
    ["compare", str(GOLDEN), "audits.sqlite"],
]


def loaded(code: str) -> set[str]:
    """The modules that a fresh interpreter holds after running the code."""
    script = f"{code}\nimport sys\nprint('loaded', *sys.modules)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(ended.stdout.rpartition("loaded")[2].split())


@for_each(
    ("code", "not_loaded"),
    [
        ("import dpaudit", (*HEAVY, "numpy", "joblib", "click", "msgspec")),
        (PUBLIC, (*HEAVY, "joblib", "click")),
        (HELP, (*HEAVY, "numpy", "joblib", "msgspec")),
        (ROOMS, ("pytest",)),  # modules are there after the import, and cost nothing before
    ],
)
def test_what_is_heavy_is_not_loaded(code: str, not_loaded: tuple[str, ...]) -> None:
    found = loaded(code)
    assert "dpaudit" in found
    assert not found & set(not_loaded)


def test_a_verdict_is_a_few_modules() -> None:
    ours = {name for name in loaded("import dpaudit.results.display") if name.startswith("dpaudit")}
    assert len(ours) < FEWEST, sorted(ours)


def test_what_reads_results_does_not_load_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.dpaudit]\nledger = 'audits.sqlite'\n")
    with Ledger(tmp_path / "audits.sqlite") as ledger:
        ledger.record(load(GOLDEN))
    monkeypatch.chdir(tmp_path)
    found = loaded(f"from dpaudit.cli.group import exit_code\nassert [*map(exit_code, {READ!r})] == [0, 0, 0]")
    assert "dpaudit.results.result" in found
    engine = sorted(name for name in found if name.startswith(ENGINE))
    assert not engine, f"what reads what is stored loads {engine}"


CORE = (  # a few seconds of tests; those that audit entries of the catalogue are not among them
    "tests/data/test_pair.py",
    "tests/mechanisms/test_wrap.py",
    "tests/auditing/test_known.py",
)
OF_THE_COPY = """
import importlib.util
from pathlib import Path
import dpaudit

def test_this_is_the_copy():
    assert Path(dpaudit.__file__).is_relative_to(Path(__file__).parent)
    assert importlib.util.find_spec("dpaudit.catalogue") is None
"""


@pytest.mark.long
def test_the_core_passes_its_tests_without_the_catalogue(tmp_path: Path) -> None:
    cache = shutil.ignore_patterns(".*")  # bytecode comes along: it is valid where times and sizes are the same
    shutil.copytree(ROOT / "dpaudit", tmp_path / "dpaudit", ignore=cache)
    shutil.rmtree(tmp_path / "dpaudit" / "catalogue")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for folder in {Path(name).parent for name in CORE}:  # with the helpers beside them
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=cache)
    for helper in set((ROOT / "tests").glob("*.py")) - set((ROOT / "tests").glob("test_*.py")):
        shutil.copy(helper, tmp_path / "tests")
    (tmp_path / "test_copy.py").write_text(OF_THE_COPY)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_copy.py", *CORE]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-4_000:] + ended.stderr[-4_000:]
    passed = re.search(r"(\d+) passed", ended.stdout)
    assert passed is not None
    assert int(passed[1]) > 30


# No Windows is here: a fresh interpreter is stripped of the modules and functions that it would not have.
SPEC = 'schema = "dpaudit.audit/1"\n[[audit]]\nname = "a"\nmechanism = "dpaudit.catalogue.additive:laplace"\n'
STRIPPED = """
import multiprocessing.connection, os, select, signal, socket, subprocess, sys
import click, cloudpickle, joblib, msgspec, numpy, pytest, scipy.stats  # they ask the system

for name in ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "syslog"):
    sys.modules[name] = None
LACKING = {
    os: "O_CLOEXEC O_NOCTTY O_NONBLOCK P_PID WNOHANG WSTOPPED fork forkpty getegid geteuid getgid getgroups getloadavg "
    "getpgid getsid getuid killpg memfd_create mkfifo register_at_fork sched_getaffinity setpgid setsid uname wait "
    "waitid",
    signal: "ITIMER_REAL SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGSTOP SIGUSR1 SIG_BLOCK SIG_SETMASK alarm "
    "pthread_sigmask setitimer",
    select: "epoll poll",
    socket: "AF_UNIX",
}
for module, names in LACKING.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
sys.platform = "win32"
"""
USE = """
import importlib, pkgutil
import dpaudit

for found in pkgutil.walk_packages(dpaudit.__path__, "dpaudit."):
    if found.name != "dpaudit.__main__":
        importlib.import_module(found.name)

def noisy_count(rows, rng):
    return len(rows) + rng.laplace(scale=0.5)

def told(**options):
    try:
        return dpaudit.audit(noisy_count, pair=([1, 2], [1]), epsilon=1.0, runs=4000, **options).verdict.value
    except dpaudit.DpAuditError as error:
        return f"{type(error).__name__}: {error}"

from dpaudit.cli.group import exit_code
from dpaudit.ledger.runs import RunLock
from pathlib import Path

print(told(n_jobs=1), told(), told(isolation="process"), told(run_timeout_s=1.0), sep="\\n")
try:
    RunLock(Path("audits.sqlite"), "run").take()
except dpaudit.DpAuditError as error:
    print(error)
print(*(exit_code(words) for words in (["--help"], ["validate", "a.toml"], ["run", "a.toml"])))
"""


@pytest.mark.long
def test_python_audits_and_specs_are_read_where_there_is_no_fork(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(SPEC)
    ended = subprocess.run([sys.executable, "-c", STRIPPED + USE], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[:2] == ["REFUTED", "REFUTED"]
    assert lines[2].startswith("MissingRequirement: processes of mechanisms need fork: Linux, macOS or WSL;")
    assert lines[3].startswith("InvalidSpec: run_timeout_s needs the alarms of Linux and macOS")
    assert lines[4].startswith("this needs the file locks of Linux and macOS")
    assert lines[-1] == "0 0 3"
    assert ended.stderr == f"error: {lines[2].removeprefix('MissingRequirement: ')}\n"
