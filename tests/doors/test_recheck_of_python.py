"""`dpaudit recheck --fresh` of results that a Python call made; several files at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import dpaudit as package
from tests.doors.conftest import Outcome

MODULE = """
def one(data, rng):
    return data + rng.laplace(scale=0.1)

def many(data, runs, rng, scale):
    return data + rng.laplace(scale=scale, size=runs)

def make_one(scale):
    return lambda data, rng: data + rng.laplace(scale=scale)
"""


@pytest.fixture
def stored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    (folder / "theirs_here.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(folder))
    import theirs_here as theirs  # type: ignore[import-not-found]

    made = (theirs.one, package.batched(theirs.many, scale=0.1), package.built_by(theirs.make_one, scale=0.1))
    files = []
    for number, mechanism in enumerate(made):
        result = package.audit(mechanism, pair=(0, 1), epsilon=1.0, runs=1_000, n_jobs=1)  # shows 10: missed with 1e-50
        files.append(result.save(folder / f"{number}.json").name)
    yield files
    del sys.modules["theirs_here"]


@pytest.mark.long
def test_functions_of_this_folder_are_run_again_and_nothing_else_is(
    dpaudit: Callable[..., Outcome], stored: list[str]
) -> None:
    again = dpaudit("recheck", *stored, "--fresh", "--jobs", "1", "--no-progress")
    assert (again.code, again.err) == (0, "")
    assert again.out.count("fresh   REFUTED") == len(stored) == 3
    result = package.load(stored[0])
    spec = {**result.spec, "mechanism": {**result.spec["mechanism"], "reference": "subprocess:getoutput"}}
    replace(result, spec=spec).save("other.json")
    found = dpaudit("recheck", "other.json", "none.json", stored[0], "--fresh", "--jobs", "1", "--no-progress")
    assert found.code == 2
    assert "'subprocess:getoutput' is no function of a module in this folder" in found.err
    assert "none.json: there is no such file" in found.err
    assert "fresh   REFUTED" in found.out
