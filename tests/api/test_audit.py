"""The Python door: what may be asked, and each question that cannot be in one clear line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import AdjacentPair, ApproximateDP, InvalidSpec, PureDP, UnsoundAudit, Verdict, audit, batched, built_by
from tests.api import mechanisms
from tests.cases import for_each

PAIR = ([1, 1], [1])
ASKED: dict[str, Any] = {"pair": PAIR, "epsilon": 1.0, "runs": 2_000, "n_jobs": 1}


def ask(mechanism: Any = mechanisms.count, **options: Any) -> Any:
    asked = {**ASKED, **options}
    return audit(mechanism, **{name: value for name, value in asked.items() if value is not ...})


@for_each(
    ("options", "words"),
    [
        ({"epsilon": ...}, "an audit needs a claim"),
        ({"epsilon": float("nan")}, "epsilon must be a number, got NaN"),
        ({"epsilon": float("inf")}, "epsilon must be finite"),
        ({"epsilon": "1"}, "epsilon must be a number, got '1'"),
        ({"epsilon": True}, "epsilon must be a number, got True"),
        ({"delta": 1.5}, r"delta must be in \[0, 1\], got 1.5"),
        ({"claim": PureDP(1.0)}, "either as claim=... or as epsilon"),
        ({"claim": PureDP(1.0), "epsilon": ..., "delta": 0.1}, "not both"),
        ({"claim": 1.0, "epsilon": ...}, "claim"),
        ({"pair": ...}, "an audit needs datasets"),
        ({"pairs": [PAIR]}, "give one of pair=.*, pairs="),
        ({"pair": ..., "pairs": []}, "at least one pair of datasets, got none"),
        ({"pair": ..., "pairs": [PAIR, 3]}, "pair 1 must be two datasets .* got int"),
        ({"pair": ..., "pairs": 3}, "pairs must"),
        ({"pair": ([1], [1])}, "must differ, got the same value twice"),
        ({"pair": ..., "pairs": [PAIR, (np.ones(2), np.ones(2))]}, "'pair 1' must differ"),
        ({"relation": "replace_one"}, "not at distance 1 under replace_one: 1 records leave and 0 come"),
        ({"runs": 10}, "runs must be at least 200, got 10"),
        ({"runs": "many"}, "runs must be a whole number, got 'many'"),
        ({"runs": 10**400}, "runs"),
        ({"confidence": 1.0}, "confidence must lie strictly between 0 and 1, got 1.0"),
        ({"confidence": 1.0 - 1e-16, "runs": 200}, "runs"),
        ({"name": 3}, "name must be a text, got 3"),
        ({"parameters": 3}, "parameters must be a dictionary .* got 3"),
        ({"parameters": {"other": 1}}, "count has no parameter 'other'; it has: none"),
        ({"run_timeout_s": -1}, "run_timeout_s must be finite and above 0, got -1"),
        ({"max_time_s": 0}, "max_time_s must be finite and above 0"),
        ({"n_jobs": 0}, "n_jobs must be a whole number other than 0"),
        ({"backend": "nope"}, "backend must be a registered joblib backend"),
    ],
)
def test_questions_that_cannot_be_asked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidSpec, match=words) as caught:
        ask(**options)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


@for_each("mechanism", [3, None, "no_colon", "no_such_module:f", lambda: 1, batched(lambda data: data)])
def test_mechanisms_that_are_none(mechanism: Any) -> None:
    with pytest.raises(InvalidSpec):
        ask(mechanism)


def test_too_few_runs_for_the_claim_are_refused() -> None:
    with pytest.raises(InvalidSpec, match="runs = 200 can never refute"):
        ask(runs=200, epsilon=50.0)
    assert ask(runs=200, epsilon=1.0).ceiling > 1.0
    with pytest.raises(InvalidSpec, match="runs must be at least 2,000, got 1000"):
        ask(pair=..., pairs=[(0, step) for step in range(1, 51)], runs=1_000)


def test_a_look_tells_what_differs_and_certifies_nothing() -> None:
    """Of the seed 0: a quarter of 150 runs fail (none: 1e-19); of equal laws something differs in one seed of 1,000."""
    pairs = (PAIR, ([1], [2]))
    seen, nothing = (dpaudit.look(mechanisms.fails_on_two, pair=pair, runs=400, n_jobs=1) for pair in pairs)
    assert (seen.hits[0] > 0 == seen.hits[1], "RuntimeError" in str(seen)) == (True, True)
    assert nothing.event == ""
    assert nothing.words[0].startswith('no difference between the datasets of "pair" showed in ')
    for told in (seen, nothing):
        assert "certifies nothing" in str(told)
        assert not any(word in str(told).lower() for word in ("refuted", "epsilon", "p-value"))


# --- answers --------------------------------------------------------------------------------------------------------


def test_laplace_is_not_refuted_and_half_the_noise_is() -> None:
    """Of the fixed seed: a sound mechanism is refuted with chance 0.001 at most, twice its loss is found surely."""
    sound = ask(runs=20_000)
    assert sound.verdict is Verdict.NOT_REFUTED
    assert sound.raise_if_refuted() is sound
    broken = ask(lambda rows, rng: len(rows) + rng.laplace(scale=0.5), runs=20_000)
    assert broken.verdict is Verdict.REFUTED
    assert 1.5 < broken.epsilon_lower < 2.0
    with pytest.raises(AssertionError, match="REFUTED") as caught:
        broken.raise_if_refuted()
    assert isinstance(caught.value, dpaudit.ClaimRefuted)
    assert caught.value.exit_code == 1


def test_runs_cap_all_executions() -> None:
    """Not one execution more than `runs`, whatever is asked."""
    for options in ({"pair": ..., "pairs": [PAIR, ([1, 2], [2]), ([3, 2], [3])]}, {"runs": 200}):
        calls = []

        def counting(rows: Any, rng: Any, calls: list[int] = calls) -> Any:
            calls.append(1)
            return len(rows) + rng.laplace()

        result = ask(counting, **options)
        assert len(calls) == result.runs_used <= result.spec["runs"]


def test_the_callers_datasets_stay_as_they_are() -> None:
    rows = [[1], [2]]
    with pytest.raises(UnsoundAudit, match="changed its dataset"):
        ask(lambda data, rng: data[0].append(1), pair=(rows, [[1]]))
    assert rows == [[1], [2]]


def test_a_pair_two_steps_apart_is_held_to_twice_the_claim() -> None:
    """A loss of 2 over two steps is what epsilon 1 allows; the same pair called one step apart is refuted."""

    def two_steps(data: int, rng: Any) -> float:
        return 2.0 * data + rng.laplace()

    near, far = (ask(two_steps, pair=AdjacentPair(0, 1, distance=k), runs=20_000) for k in (1, 2))
    assert near.verdict is Verdict.REFUTED
    assert far.verdict is Verdict.NOT_REFUTED
    assert far.claim.epsilon == 2.0


def test_claims_relations_names_and_any_iterable_of_pairs() -> None:
    pairs = (each for each in [AdjacentPair([1, 1], [1], "mine"), PAIR])
    result = ask(claim=ApproximateDP(1.0, 0.01), epsilon=..., relation="add_or_remove_one", pair=..., pairs=pairs)
    assert [pair["name"] for pair in result.spec["pairs"]] == ["mine", "pair 1"]
    assert (result.claim.delta, result.spec["claim"]["relation"]) == (0.01, "add_or_remove_one")
    name = "tests.api.mechanisms:count"  # which is a mechanism too
    again = ask(name, delta=0.01, relation=dpaudit.Relation.ADD_OR_REMOVE_ONE)
    assert (again.claim, again.spec["mechanism"]["reference"]) == (result.claim, name)
    assert ask(built_by(mechanisms.make_scaled, scale=3.0), runs=400).name == "scaled"


def test_runs_and_time_are_both_caps() -> None:
    result = ask(max_time_s=60.0, runs=700)  # a minute would do for a million
    assert (result.spec["runs"], result.provenance["max_time_s"]) == (700, 60.0)
    with pytest.raises(UnsoundAudit, match="max_time_s was over") as caught:
        ask(max_time_s=1e-9)
    assert caught.value.exit_code == 3


@for_each("made", [mechanisms.scaled, batched(mechanisms.scaled_many), built_by(mechanisms.make_scaled)])
def test_parameters_and_a_name_of_ones_own(made: Any) -> None:
    named = ask(made, runs=400, parameters={"scale": 3.0}, name="ours")
    assert (named.name, named.spec["mechanism"]["parameters"]) == ("ours", {"scale": 3.0})


def test_a_pair_with_nan_is_shown(tmp_path: Path) -> None:
    found = ask(pair=([1.0, float("nan")], [1.0]), runs=400)
    assert dpaudit.load(found.save(tmp_path / "result.json")) == found
    for line in ("first   [1.0, float('nan')]", "pair=([1.0, float('nan')], [1.0])"):
        assert line in str(found.explain())


# --- what one types first, after `import dpaudit` --------------------------------------------------------------------

CALL: dict[str, Any] = {"runs": 1_000, "n_jobs": 1, "isolation": "none"}


def test_a_sweep_takes_names_of_the_catalogue() -> None:
    names = ["laplace", "laplace.half_noise"]
    asked = {"parameters": {"epsilon": [1.0]}, "progress": False, **CALL}
    named, given = (dpaudit.sweep(each, **asked) for each in (names, [*map(dpaudit.catalogue.find, names)]))
    keys = ("mechanism", "reference", "claim", "verdict", "epsilon_lower")
    assert [[row[key] for key in keys] for row in named.rows] == [[row[key] for key in keys] for row in given.rows]
    with pytest.raises(dpaudit.InvalidSpec, match="has no entry 'laplase'; did you mean 'laplace'"):
        dpaudit.sweep("laplase", progress=False, **CALL)


def test_a_sweep_tells_its_progress_as_an_audit_does_or_to_a_function(capfd: pytest.CaptureFixture[str]) -> None:
    heard: list[dict[str, Any]] = []
    for progress, said in ((False, ""), (None, ""), (True, "[1/1] laplace: 1-DP not refuted"), (heard.append, "")):
        found = dpaudit.sweep("laplace", progress=progress, **CALL)
        told = capfd.readouterr()
        assert told.out == ""
        assert told.err.startswith(said)
        assert bool(told.err) == bool(said)
    assert heard == list(found.rows)


def test_a_report_of_a_bracket_is_its_page_and_of_what_is_no_finding_there_is_none(tmp_path: Path) -> None:
    bracket = dpaudit.bracket(dpaudit.catalogue.find("laplace"), runs=0)
    for suffix, begins in ((".html", "<!DOCTYPE html>"), (".md", "# "), (".txt", str(bracket)[:9]), (".json", "{")):
        assert dpaudit.write_report(bracket, tmp_path / f"b{suffix}").read_text("utf-8").startswith(begins)
    assert dpaudit.write_report(bracket, tmp_path / "folder") == tmp_path / "folder" / "bracket.html"
    known = {"bracket.html", "bracket.md", "bracket.json", "bracket-bracket.svg"}
    assert {each.name for each in (tmp_path / "folder").iterdir()} == known
    for finding, suffix in ((bracket, ".xml"), (bracket, ".csv"), ({}, ".html"), ("text", "")):
        with pytest.raises(dpaudit.InvalidSpec, match=r"^a (Bracket|dict|str) has no report as "):
            dpaudit.write_report(finding, tmp_path / f"none{suffix}")
    assert not [*tmp_path.glob("none*")]


# --- hangs and Ctrl-C ------------------------------------------------------------------------------------------------

SCRIPT = """
from dpaudit.api.audits import audit
from tests.api import mechanisms
if __name__ == "__main__":
    print("ready", flush=True)
    audit({call})
    print("finished")
"""


@contextmanager
def started(call: str) -> Iterator[subprocess.Popen[str]]:
    """An audit in a process of its own, which ends with the test."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", SCRIPT.format(call=call)], start_new_session=True, **pipes)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@for_each("workers", ["n_jobs=1", "n_jobs=2, backend='threading'"], nightly=["n_jobs=2, backend='loky'"])
def test_ctrl_c_ends_at_once(workers: str) -> None:
    began = time.monotonic()
    with started(f"mechanisms.slow, pair=(0, 1), epsilon=1.0, runs=4_000_000, {workers}") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        started_s = time.monotonic() - began  # tells how busy the machine is
        time.sleep(1.0)
        pressed = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
        said, errors = process.communicate(timeout=120.0)  # the audit would take an hour
        assert time.monotonic() - pressed < max(5.0, 10.0 * started_s)
        assert "finished" not in said
        assert process.returncode in (1, 130, -signal.SIGINT)
        assert "KeyboardInterrupt" in errors


def test_planning_the_runs_keeps_the_limit_of_a_run() -> None:
    """`max_time_s` with `run_timeout_s`: the planning probe must not wait for a run that hangs."""
    options = "max_time_s=1.0, run_timeout_s=0.001, n_jobs=1"
    with started(f"mechanisms.hangs, pair=(0, 1), epsilon=1.0, {options}") as process:
        _, errors = process.communicate(timeout=50.0)  # a run that hangs does so for 60 s
        assert process.returncode == 0 or "InvalidSpec" in errors or "OutOfTime" in errors
