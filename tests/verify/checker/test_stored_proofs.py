"""Proofs in files: read back as they were, and refused where they are anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.verify.stored import from_dict, load, save, to_dict
from tests.cases import for_each
from tests.verify.checker.certificates import RIGHT


@for_each("name", RIGHT)
def test_a_proof_is_read_back_as_it_was_and_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    one, two = tmp_path / "1.json", tmp_path / "2.json"
    save(RIGHT[name], one)
    save(load(one), two)
    assert load(one) == RIGHT[name]
    assert one.read_bytes() == two.read_bytes()


def changed(**keys: Any) -> dict[str, Any]:
    return {**to_dict(RIGHT["c2"]), **keys}


@for_each(
    "raw",
    [
        [],
        {},
        changed(schema="dpaudit.proof/2"),
        changed(schema=1),
        changed(extra=1),
        changed(adjacency="sideways"),
        changed(shape="both"),
        changed(shape="\ud800"),
        changed(answers=0),
        changed(answers=1.5),
        changed(answers="8"),
        changed(claim=1),
        changed(fixed={"N": 1}),
        changed(fixed={"N": "1.5"}),
        changed(fixed={"N": "1/0"}),
        changed(fixed={"N": "nan"}),
        changed(fixed={"N": "1e9"}),
        changed(alignments={}),
        changed(alignments=[{}]),
        changed(cases=[{"alignment": -1, "cost": "eps", "counts": None}]),
        changed(cases=[{"alignment": 0, "cost": "eps", "counts": {"loop:T": -1}}]),
        changed(cases=[{"alignment": 0, "cost": "eps"}]),
        changed(assumptions="eps > 0"),
        {key: value for key, value in changed().items() if key != "answers"},
    ],
)
def test_anything_else_is_refused_in_one_line(raw: Any, tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(raw))
    with pytest.raises(InvalidSpec) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)
    with pytest.raises(InvalidSpec):
        from_dict(raw)


@for_each(
    ("content", "words"),
    [
        *((text, "JSON|twice") for text in (b"", b"{", b'{"schema": NaN}', b'{"schema": 1, "schema": 2}', b"\x00")),
        (b"[" * 100_000, "JSON"),
        (b"\xff\xfe\x00", "not text in UTF-8"),
        (None, "there is no such file"),
    ],
)
def test_files_that_hold_no_json_are_refused(content: bytes | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "none.json" if content is None else tmp_path / "proof.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidSpec, match=words):
        load(path)


def test_a_folder_that_is_not_there_cannot_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match="cannot be written"):
        save(RIGHT["c2"], tmp_path / "none" / "proof.json")
