"""Bad input: one line that names the place, the value and the cure; never a traceback, nothing half written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.cases import for_each
from tests.doors.conftest import Outcome, document, spec, unnumbered

Run = Callable[..., Outcome]
Write = Callable[..., str]


@for_each(
    ("text", "message"),
    [
        (spec(), "error: spec.toml: the key 'schema' is missing"),
        (
            document(spec()).replace("/1", "/2"),
            "error: spec.toml: schema must be one of dpaudit.audit/1, got 'dpaudit.audit/2'",
        ),
        ("a" + ".a" * 100_000 + " = 1", "error: spec.toml: line 1: a name of more than 16 parts; use shorter names"),
        ('\n"a"' + " . 'a'" * 40_000 + " = 1", "error: spec.toml: line 2: a name of more than 16 parts"),
        ("a = " + "[" * 100_000 + "]" * 100_000, "error: spec.toml: nested more than 32 deep; flatten it"),
        ("a = " + "[" * 40 + "]" * 40, "error: spec.toml: nested more than 32 deep; flatten it"),
        ("#" * 300_000, "error: spec.toml: larger than 256 KB"),
        ("a" * 250_000, "error: spec.toml: not valid TOML"),
        ('"' * 250_000, "error: spec.toml: not valid TOML"),
        ("seed = " + "1" * 5_000, "error: spec.toml: not valid TOML"),
    ],
    ids=[
        "no-schema",
        "other-schema",
        "dotted",
        "quoted-dotted",
        "nested",
        "too-deep",
        "too-large",
        "one-word",
        "quotes",
        "digits",
    ],
)
def test_hostile_files_are_refused_cheaply(dpaudit: Run, folder: Path, text: str, message: str) -> None:
    # each would take the bare parser from nothing to a minute; without the guard this test would hang
    (folder / "spec.toml").write_text(text)
    ended = dpaudit("validate", "spec.toml")
    assert ended.code == 2
    assert ended.err.startswith(message) or unnumbered(ended.err).startswith(message)
    assert ended.err.count("\n") == 1
    assert len(ended.err) < 300


def test_bytes_that_are_no_text(dpaudit: Run, folder: Path) -> None:
    (folder / "spec.toml").write_bytes(b"\xff\xfe\x00")
    assert dpaudit("validate", "spec.toml").err == "error: spec.toml: not UTF-8 text (byte 0); save it as UTF-8\n"


def test_a_wrong_spec_stops_the_suite_before_it_starts(dpaudit: Run, write: Write) -> None:
    write(spec(), name="right.toml")
    write(spec(epsilom="1"), name="wrong.toml")
    write(spec(runs="1"), name="wronger.toml")
    ended = dpaudit("run", ".", "--report", "out", "--format", "json,md")
    assert (ended.code, ended.out) == (2, "")
    assert [line.split(":")[1] for line in ended.err.splitlines()] == [" wrong.toml", " wronger.toml"]
    assert not os.path.exists("out")


REFUSED_IN_THE_WORKER = {
    "no module": (spec(mechanism='"no_module:f"'), 2, "there is no module 'no_module'; check the name and its folder"),
    "broken module": (spec(mechanism='"broken:f"'), 2, "'broken:f': importing failed with ZeroDivisionError"),
    "module that exits": (spec(mechanism='"exits:f"'), 2, "'exits:f': importing failed with SystemExit: 0"),
    "module that needs another": (spec(mechanism='"needs:f"'), 3, "needs the module 'not_installed_here'"),
    "unknown parameter": (spec(parameters="{ a = 1 }"), 2, "constant has no parameter 'a'; it has: none"),
    "equal datasets": (spec(pair='"mechs:equal_pair"'), 2, "must differ, got the same value twice"),
    "no pair": (spec(pair='"mechs:no_pair"'), 2, "must be two datasets (first, second), got int"),
    "pair that fails": (spec(pair='"mechs:failing_pair"'), 2, "making the pair failed with KeyError: 'nothing here'"),
    "pair too far": (
        spec(pair='"mechs:pair"', relation='"replace_one"'),
        2,
        "not at distance 1 under replace_one: 1 records leave and 0 come",
    ),
    "no such program": (spec(mechanism='{ command = ["no-such-program"] }'), 3, "is not installed here"),
}


def test_refused_where_mechanisms_run(dpaudit: Run, write: Write, folder: Path) -> None:
    (folder / "broken.py").write_text("1 / 0\n")
    (folder / "exits.py").write_text("import sys\nsys.exit(0)\n")
    (folder / "needs.py").write_text("import not_installed_here\n")
    audits = [text.replace('"it"', f'"{name}"') for name, (text, _, _) in REFUSED_IN_THE_WORKER.items()]
    ended = dpaudit("run", write(*audits), "--no-progress", "--report", "out", "--format", "md")
    assert ended.code == 2
    lines = ended.err.splitlines()
    assert len(lines) == len(REFUSED_IN_THE_WORKER)
    for line, (name, (_, _, message)) in zip(lines, REFUSED_IN_THE_WORKER.items(), strict=True):
        assert line.startswith(f"no verdict   spec.toml: audit {name!r}: ")
        assert message in line
    assert os.listdir("out") == ["report.md"]


def test_what_is_not_installed_is_no_verdict_rather_than_a_wrong_spec(dpaudit: Run, write: Write, folder: Path) -> None:
    (folder / "needs.py").write_text("import not_installed_here\n")
    assert dpaudit("run", write(REFUSED_IN_THE_WORKER["module that needs another"][0])).code == 3


def test_a_hang_on_one_dataset_is_an_output(dpaudit: Run, write: Write) -> None:
    hangs = spec(mechanism='"mechs:hangs_on_ten"', run_timeout_s="0.005", runs="400", expect='"refuted"')
    ended = dpaudit("run", write(hangs), "--confidence", "0.99")
    assert ended.code == 0, ended.out + ended.err
    assert "REFUTED" in ended.out


def test_nothing_of_the_command_line_imports_a_mechanism(dpaudit: Run, write: Write, folder: Path) -> None:
    (folder / "marks.py").write_text(
        "open('imported', 'w').close()\ndef f(data):\n    return 0\ndef p():\n    return 1, 2\n"
    )
    name = write(spec(mechanism='"marks:f"', pair='"marks:p"'))
    assert dpaudit("validate", name).code == 0
    assert dpaudit("plan", name).code == 0
    assert not os.path.exists("imported")
