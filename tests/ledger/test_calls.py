"""A call goes on where it was stopped only if the code is the same, wherever what has changed stands."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from dpaudit.mechanisms import wrap
from dpaudit.sampling.made import made_of

ALIKE = """
class Noise:
    scale = {scale}
    @property
    def twice(self): return 2 * self.scale
def inner(rng): return rng.laplace(scale=Noise.scale)
def outer(data, rng): return data + inner(rng)
outer.part = {part}
"""


def made(**values: Any) -> Any:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(ALIKE.format(**({"scale": 1, "part": 1} | values)), names)
    return made_of(wrap(names["outer"]))


def test_a_class_or_an_attribute_that_changes_makes_another_call() -> None:
    assert made() == made()
    assert len({repr(each) for each in (made(), made(scale=2), made(part=2))}) == 3


def test_a_module_that_a_module_imports_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "near.py").write_text("import far\ndef noisy(data, rng): return data + rng.laplace(scale=far.SCALE)\n")
    (tmp_path / "far.py").write_text("SCALE = 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        near = importlib.import_module("near")
        before = made_of(wrap(near.noisy))
        assert made_of(wrap(near.noisy)) == before
        near.far.SCALE = 2.0
        assert made_of(wrap(near.noisy)) != before
        near.far.SCALE = 1.0
        (tmp_path / "far.py").write_text("SCALE = 3.0\n")
        assert made_of(wrap(near.noisy)) != before
    finally:
        for name in ("near", "far"):
            sys.modules.pop(name, None)
