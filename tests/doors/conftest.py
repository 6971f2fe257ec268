"""The command line as a function: arguments in; exit code, output and error output back."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpaudit.cli.group import exit_code

# what the specs of these tests point at: whatever is drawn, `leak` tells its dataset, so no verdict is left to chance
# (of a mechanism that draws nothing, each run that certifies has a process of its own)
MECHANISMS = '''
import os
import time

def constant(data):
    """Tells nothing."""
    return 0

def leak(data, rng, times=1):
    """Tells everything."""
    return data * times + 0.25 * rng.integers(2)

def noisy(data, rng):
    """Keeps a claim of 1, and half of it."""
    return data + rng.laplace(scale=2.0)

def dies(data):
    os._exit(0)

def spoils(data):
    data.append(1)
    return 0

def hangs_on_ten(data):
    if data == 10:
        time.sleep(3600)
    return 0

def pair():
    return [1, 2, 3], [1, 2]

def equal_pair():
    return [1], [1]

def no_pair():
    return 7

def failing_pair():
    raise KeyError("nothing here")
'''


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]
Write = Callable[..., str]


def spec(**keys: str | None) -> str:
    """An [[audit]] as text; a value is TOML as it stands, None leaves the key out."""
    table: dict[str, str | None] = {
        "name": '"it"',
        "mechanism": '"mechs:constant"',
        "claim": "{ epsilon = 1.0 }",
        "pair": "{ first = 10, second = 9 }",
        "runs": "1_000",
        **keys,
    }
    return "\n".join(["[[audit]]", *(f"{key} = {value}" for key, value in table.items() if value is not None)]) + "\n"


def unnumbered(text: str) -> str:
    """What was said, without the lines of a spec file."""
    return re.sub(r": line \d+: ", ": ", text)


def document(*audits: str) -> str:
    """A whole spec file."""
    return 'schema = "dpaudit.audit/1"\n' + "\n".join(audits)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder with the module `mechs`."""
    (tmp_path / "mechs.py").write_text(MECHANISMS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write(folder: Path) -> Write:
    """Writes a spec of the given audits and returns its name."""

    def writer(*audits: str, name: str = "spec.toml") -> str:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(document(*audits))
        return name

    return writer


@pytest.fixture
def dpaudit(folder: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in this process; mechanisms run in another, as always."""

    def run(*arguments: str) -> Outcome:
        capfd.readouterr()
        code = exit_code(list(arguments))
        said = capfd.readouterr()
        assert "Traceback" not in said.out + said.err
        return Outcome(code, said.out, said.err)

    return run


def process(*arguments: str, **options: object) -> subprocess.Popen[str]:
    """The same command line as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "dpaudit", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
        **options,  # type: ignore[call-overload]
    )


def read_until(terminal: int, enough: Callable[[str], bool], seconds: float = 60.0) -> str:
    """What stands on the terminal once it is enough, or its other end is closed."""
    seen, deadline = "", time.monotonic() + seconds
    while not enough(seen) and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                seen += os.read(terminal, 1 << 16).decode(errors="replace")
            except OSError:
                break
    return seen
