"""External programs: any language, one request in, one line of JSON a run out; each failure in one clear line."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import InvalidSpec, MissingRequirement, UnsoundAudit, Verdict, command
from dpaudit.api.audits import audit
from dpaudit.auditing import units
from tests.cases import for_each
from tests.processes.left import gone

PROGRAM = str(Path(__file__).with_name("programs.py"))
AWK = (
    r"read -r line; runs=${line#*\"runs\": }; runs=${runs%%,*}; seed=${line##*\"seed\": }; seed=${seed%\}*}; "
    r"data=${line#*\"data\": }; data=${data%%,*}; "
    r"awk -v n=$runs -v s=$seed -v d=$data "
    r"'BEGIN { srand(s); for (i = 0; i < n; i++) print d + (rand() < 0.5) }'"
)


def program(way: str) -> Any:
    return command([sys.executable, PROGRAM, way])


def ask(mechanism: Any, *, pair: Any = ([1], [1, 1]), **options: Any) -> Any:
    return audit(mechanism, pair=pair, epsilon=2.0, **{"runs": 2_000, "n_jobs": 1, "confidence": 0.99, **options})


def test_a_python_program() -> None:
    """Laplace noise of scale 1 keeps epsilon 2: a false alarm has a chance of about 1e-30."""
    result = ask(program("noisy"))
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.reproducible
    assert result.spec["mechanism"]["kind"] == "command"
    assert "count" in str([entry.name for entry in result.explored])


def test_a_shell_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs 1, 2 against 3, 4: a sure event, in runs of a call each too."""
    monkeypatch.setattr(units, "LONGEST_S", float("inf"))
    result = ask(command(["sh", "-c", AWK]), pair=(1, 3))
    assert result.verdict is Verdict.REFUTED
    assert result.units is not None
    assert result.condition == ""
    assert (result.evidence.hits_p, result.evidence.hits_q) == (result.evidence.runs_p, 0)


def test_values_of_json_are_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "LONGEST_S", -1.0)  # no second bound: the shell program has one
    assert ask(program("leaky")).verdict is Verdict.REFUTED


@for_each(
    ("way", "words"),
    [
        ("short", r"printed \d+ lines for a request of \d+ runs; one line a run is needed"),
        ("long", r"printed \d+ lines for a request of \d+ runs"),
        ("not json", "a line that is not JSON"),
        ("binary", "a line that is not JSON"),
        ("deep", "a line that is not JSON"),
        ("exits", r"ended with exit code 3 .* it said: first line \| last words"),
        ("killed", "ended with exit code -9"),
    ],
)
def test_a_program_that_fails_is_no_verdict(way: str, words: str) -> None:
    with pytest.raises(UnsoundAudit, match=words) as caught:
        ask(program(way))
    assert "\n" not in str(caught.value)
    assert "programs.py" in str(caught.value)


def test_a_program_may_close_its_input() -> None:
    assert ask(program("closes stdin")).verdict is Verdict.NOT_REFUTED


@for_each("way", ["hangs", "hangs on one"])
def test_a_program_that_hangs_is_no_verdict(way: str) -> None:
    """The limit is for one run; a request for n runs may take n times as long, and is never split after the fact."""
    started = time.monotonic()
    with pytest.raises(UnsoundAudit, match=r"within|time"):
        ask(program(way), run_timeout_s=0.01, runs=400)
    assert time.monotonic() - started < 10.0
    process = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert f"programs.py {way}\n" not in process


def test_a_missing_program() -> None:
    with pytest.raises(MissingRequirement, match="'no-such-program-here' is not installed here"):
        ask(command(["no-such-program-here"]))


def test_a_file_that_is_not_executable_and_one_that_no_path_finds_are_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "program").write_text("#!/bin/sh\n")
    for given in (command([str(tmp_path / "program")]), command(["program"], folder=str(tmp_path))):
        with pytest.raises((UnsoundAudit, InvalidSpec)):
            ask(given)


@for_each("pair", [([object()], [1]), ([np.int64(1)], [np.int64(2)]), ({1, "a"}, {2, "a"}), ([1j], [2j])])
def test_data_that_json_cannot_hold_is_no_verdict(pair: Any) -> None:
    """Never a program that was not even started, found to be not refuted."""
    with pytest.raises((UnsoundAudit, InvalidSpec), match="JSON"):
        ask(program("noisy"), pair=pair)


@for_each("argv", ["python3 x.py", [], [1], ["a", None], None, 3])
def test_a_command_is_a_list_of_strings(argv: Any) -> None:
    with pytest.raises(InvalidSpec, match="a command is a list of strings"):
        command(argv)


def test_what_a_program_leaves_running_is_not_waited_for() -> None:
    """It holds the streams of the program open for as long as it runs; it is ended with the request."""
    leaves = command(["sh", "-c", "sleep 600 & echo $!"]).open()
    (left,) = leaves.call([1], 1, np.random.default_rng(0))
    assert gone(left)
