"""Projects of somebody else, whose test sessions run as processes of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

CONFTEST = """
import pytest

def wide(rows, rng):
    return len(rows) + rng.laplace(scale=2.0)

@pytest.fixture
def noise():
    return wide
"""

TESTS = """
import os
import random
from dataclasses import dataclass

import hypothesis.strategies as st
import numpy as np
import pytest

PAIR = ([1] * 10, [1] * 9)
SCALE = 0.25

def noisy(rows, rng):
    return len(rows) + helper(rng)

def helper(rng):
    return rng.laplace(scale=SCALE)

@pytest.mark.parametrize("name", ["it's [a] 'b' $c"])
def test_broken(audit, name):
    audit(noisy, pair=PAIR, epsilon=1.0)

@dataclass
class Person:
    age: int

@pytest.mark.parametrize("scale", [2.0])
def test_closure(audit, noise, scale):
    pair = [Person(1)] * 3, [Person(1)] * 2
    result = audit(lambda rows, rng: noise([each.age for each in rows], rng) * scale, pair=pair, epsilon=1.0)
    assert result.spec["mechanism"]["reference"] is None
    assert "test_closure[2.0]" in result.spec["mechanism"]["name"]

@pytest.mark.dpaudit(epsilon=1.0, pair=PAIR, runs=3_500)
def test_known_with_a_strategy_and_random_state(audit):
    before = random.getstate(), np.random.get_state()[1].tolist()
    rows = st.lists(st.integers(0, 1), min_size=1, max_size=8)
    result = audit(noisy, pairs=rows.map(lambda all: (all, all[1:])), expect="refuted", seed=5)
    assert (result.spec["runs"], result.spec["seed"]) == (3_500, 5)
    assert len(result.spec["pairs"]) > 1
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before

def test_ends_its_process(audit):
    audit(lambda data: os._exit(0), pair=PAIR, epsilon=1.0)
"""


@dataclass(frozen=True)
class Ended:
    """How a session ended."""

    code: int
    out: str

    def section(self, title: str) -> list[str]:
        """The lines under a heading of the output."""
        found = re.search(rf"^[=_]+ {re.escape(title)} [=_]+\n(.*?)(?=^[=_]{{5,}})", self.out, re.M | re.S)
        assert found is not None, self.out
        return found[1].splitlines()


def session(folder: Path, *arguments: str, under: tuple[str, ...] = ()) -> Ended:
    """Runs pytest in a folder, `under` a module that runs modules, with nothing of the caller's in its environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV", "CI"))}
    source = os.pathsep.join([str(ROOT), str(folder / "src")])
    ended = subprocess.run(
        [sys.executable, *under, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:benchmark", *arguments],
        cwd=folder,
        env={**kept, "PYTHONPATH": source, "COLUMNS": "100", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return Ended(ended.returncode, ended.stdout + ended.stderr)
