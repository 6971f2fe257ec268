"""Readers of files that somebody gives us: right, or refused in a line; never another error, and never for long."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import fuzz, tampered
from dpaudit.cli.group import exit_code
from dpaudit.errors import InvalidSpec
from dpaudit.ledger.baseline import read_baseline
from dpaudit.report import FORMATS, render
from dpaudit.results import stored
from dpaudit.scores.files import read_scores
from dpaudit.spec.questions import read_spec
from dpaudit.spec.settings import read_settings
from dpaudit.sweeps.spec import read_sweep_file
from dpaudit.verify import stored as proofs
from dpaudit.verify.checker import certified
from tests.cases import NIGHTLY, for_each
from tests.golden import example
from tests.verify.checker.certificates import RIGHT

READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "result": ("x.json", stored.load),
    "suite": ("x.json", stored.load_suite),
    "either": ("x.json", stored.load_either),
    "proof": ("x.proof", proofs.load),
    "spec": ("x.toml", read_spec),
    "sweep": ("x.toml", read_sweep_file),
    "accepted": ("x.toml", read_baseline),
    "settings": ("pyproject.toml", lambda path: read_settings(path.parent)),
    **{f"scores{suffix}": (f"x{suffix}", read_scores) for suffix in (".csv", ".json", ".npy", ".npz")},
}
NO_FILES: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a loop": lambda path: path.symlink_to(path.name),
    "a device that does not end": lambda path: path.symlink_to("/dev/zero"),
    "a device that is full": lambda path: path.symlink_to("/dev/full"),
    "a socket": lambda path: _listening(path),
}
CONTENTS: dict[str, bytes] = {
    "deep": b"[" * 100_000,
    "deep and closed": b'{"dpaudit": ' * 500 + b"1" + b"}" * 500,
    "deeper than any": b"[" * 70 + b"]" * 70,
    "many digits": b"dpaudit = " + b"9" * 200_000,
    "long": b'"dpaudit' + b"x" * 300_000 + b'"',
    "a long name": b"dpaudit" + b".a" * 3_000 + b" = 1",
    "UTF-16": '{"dpaudit": 1}'.encode("utf-16") + b"dpaudit",
    "zeros": b"\0" * 10 + b"dpaudit",
    "half a character": b'{"dpaudit": "\\ud800", "schema": "\\ud800"}',
    "a key twice": b'{"dpaudit": 1, "dpaudit": 2}',
    "no number": b'{"dpaudit": NaN}',
}


def _listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(path.parent)  # its name may have 107 bytes
        made.bind(path.name)


def refusal(read: Callable[[Path], Any], path: Path) -> str:
    with pytest.raises(InvalidSpec) as caught:
        read(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@for_each("reader", READERS)
def test_what_is_no_file_and_what_is_hostile_is_refused(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name, read = READERS[reader]
    for number, make in enumerate(NO_FILES.values()):
        folder = tmp_path / f"{reader}{number}"
        folder.mkdir()
        make(folder / name)
        refusal(read, folder / name)
    for content in CONTENTS.values():
        if reader == "settings" and b"dpaudit" not in content:
            continue  # it is somebody else's
        (tmp_path / name).write_bytes(content)
        refusal(read, tmp_path / name)


def test_files_that_are_too_large_or_not_what_they_say_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "x.json").open("wb") as file:
        file.truncate(2**40)  # of which nothing is on the disk
    assert "larger than 16,384 KB" in refusal(stored.load, tmp_path / "x.json")
    for what, content in fuzz.arrays().items():
        path = tmp_path / f"x{Path(what).suffix}"
        path.write_bytes(content)
        refusal(read_scores, path)


def test_the_command_line_ends_with_2_and_one_line(tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("x.json")
    Path("x.csv").write_bytes(b"score,member\n" + b"1" * 200_000)
    Path("counts.json").write_text('{"tp": 18446744073709551616, "fp": 5, "tn": 9, "fn": 1}')
    Path("x.toml").write_text(fuzz.SPEC.replace("2_000", "9223372036854775807"))
    commands = ("report x.json", "recheck x.json", "check x.json", "audit-scores x.csv", "audit-scores counts.json")
    for command in (*commands, "plan x.toml"):
        assert exit_code(command.split()) == 2, command
        told = capfd.readouterr()
        assert told.err.startswith("error: "), command
        assert told.err.count("\n") == 1, command


# --- nearly right ----------------------------------------------------------------------------------------------------

STORED = {
    "refuted": json.loads(example.result().to_json()),
    "kept": json.loads(example.kept().to_json()),
    "a suite": json.loads(render(example.reviewed_suite(), FORMATS["json"])),
}


def test_files_that_are_nearly_right_are_read_or_refused_and_odd_outputs_have_columns_or_no_verdict() -> None:
    found = fuzz.fuzz(fuzz.corpus({"refuted": STORED["refuted"]}, [RIGHT["c2"], RIGHT["c9"]]), each=30)
    assert not [line for tally in found.values() for line in tally.wrong]

    assert not fuzz.outputs(150).wrong


def test_no_changed_result_or_proof_shows_something_else() -> None:
    results = tampered.tampered(STORED, share=0.005 if NIGHTLY else 0.0015)
    assert sum(sum(tally.kinds.values()) for tally in results.values()) > 45
    assert not [line for tally in results.values() for line in tally.wrong]
    certificates = {name: certified(proof) for name, proof in RIGHT.items()}
    proofs_changed = tampered.proofs_tampered(certificates, share=0.004 if NIGHTLY else 0.001)
    assert sum(proofs_changed.kinds.values()) > 12
    assert not proofs_changed.wrong
