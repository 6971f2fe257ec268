"""Hostile mechanisms: each ends in the right verdict, in no verdict, or in a refusal; never in a fake one or a hang."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, AuditSpec, InvalidSpec, PureDP, UnsoundAudit, Verdict, batched
from dpaudit.api.audits import audit
from dpaudit.api.existing import recheck
from dpaudit.auditing import run_audit
from dpaudit.events import Event, HitCounter
from dpaudit.events.features import Coordinate
from dpaudit.execution.engine import Engine, Session
from dpaudit.mechanisms import Imported, wrap
from dpaudit.running import guard
from dpaudit.running.streams import Stage, apart, shards
from dpaudit.running.worker import run_each
from tests.cases import for_each, some
from tests.processes import hostile, left

pytestmark = pytest.mark.long

RUNS = 2_000


def ask(mechanism: Any, *, pair: Any = (0, 1), **options: Any) -> Any:
    return audit(mechanism, pair=pair, epsilon=1.0, **{"runs": RUNS, "n_jobs": 1, "confidence": 0.99, **options})


def supervised(
    mechanism: Any,
    *,
    pair: Any = (0, 1),
    runs: int = RUNS,
    confidence: float = 0.99,
    run_timeout_s: float | None = None,
) -> Any:
    """The audit as the command line asks for it: no mechanism in this process."""
    with Engine(1, supervised=True) as engine:
        description, pairs = engine.describe(wrap(mechanism), (AdjacentPair.of(pair),))
        spec = AuditSpec(
            claim=PureDP(1.0),
            mechanism=wrap(mechanism),
            pairs=pairs,
            runs=runs,
            confidence=confidence,
            run_timeout_s=run_timeout_s,
            description=description,
        )
        return run_audit(spec, engine)


# --- outputs like any other ------------------------------------------------------------------------------------


@pytest.mark.parametrize("act", some(hostile.LEAKS, 4))
def test_what_happens_on_one_dataset_only_is_refuted(act: str) -> None:
    """Sure events: the witness parts the datasets in every certifying run, each in a process of its own."""
    result = ask(hostile.Second(act), runs=200, confidence=0.9)
    assert result.verdict is Verdict.REFUTED
    assert (result.evidence.hits_p, result.evidence.hits_q) == (result.evidence.runs_p, 0)
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("act", "way"), some([(act, way) for act in hostile.UNREADABLE for way in (ask, supervised)], 2)
)
def test_objects_that_fail_when_read_end_in_a_verdict_or_in_none(act: str, way: Any) -> None:
    try:
        assert way(hostile.Second(act), runs=200, confidence=0.9).verdict is Verdict.REFUTED
    except UnsoundAudit:
        pass
    except BaseException as error:  # SystemExit would end the caller, with the mechanism's exit code
        pytest.fail(f"{error!r} escaped from the audit")


@pytest.mark.parametrize("act", some(["exits", "raises", "interrupts"], 1))
def test_supervised_audits_keep_their_streams_and_exit_to_themselves(
    act: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The one that prints has equal sides: a false alarm at epsilon 1 has a chance below 1e-6."""
    assert supervised(hostile.Second(act), runs=200, confidence=0.9).verdict is Verdict.REFUTED
    assert supervised(hostile.prints).verdict is Verdict.NOT_REFUTED
    assert capfd.readouterr() == ("", "")


def test_a_mechanism_that_reads_standard_input_gets_none_and_has_no_verdict() -> None:
    with pytest.raises(UnsoundAudit, match=r"raised EOFError, the first time .*, so there is no verdict"):
        supervised(hostile.reads)


def test_harmless_oddities_change_nothing_and_randomness_of_its_own_is_told() -> None:
    """Both sides are alike: a false alarm against epsilon 1 has a chance far below 1e-6."""
    for mechanism, reproducible in (
        (hostile.reseeds, True),
        (hostile.spawns_threads, True),
        (hostile.draws_elsewhere, False),
        (hostile.owns_its_randomness, False),
    ):
        result = ask(mechanism)
        assert (result.verdict, result.reproducible) == (Verdict.NOT_REFUTED, reproducible), mechanism


# --- time ------------------------------------------------------------------------------------------------------


def test_a_hang_on_one_dataset_is_refuted() -> None:
    """A tenth of the runs of one side hang, about 37 of the certifying ones, and none of the other.

    Fifteen hits refute epsilon 1 at confidence 0.99: chance of fewer below 1e-5, and the seed is fixed.
    """
    result = supervised(hostile.hangs, runs=1_000, run_timeout_s=0.02)
    assert result.verdict is Verdict.REFUTED
    assert result.evidence.hits_q == 0
    assert result.reproducible


def test_a_hang_in_every_run_of_one_dataset_is_refuted() -> None:
    result = ask(hostile.hangs_always, runs=220, confidence=0.9, run_timeout_s=0.005)
    assert result.verdict is Verdict.REFUTED


def test_a_run_that_swallows_the_alarm_ends_without_a_verdict() -> None:
    """The watchdog waits 3 limits and half a second, twice: the audit is over long before 30 s, with no child left."""
    started = time.monotonic()
    with pytest.raises(UnsoundAudit, match="hung past run_timeout_s"):
        supervised(hostile.leaves_children, run_timeout_s=0.05)
    assert time.monotonic() - started < 30.0
    time.sleep(0.2)
    sleepers = [process for process, (*_, line) in left.processes().items() if line == "sleep 987"]
    for process in sleepers:
        os.kill(process, signal.SIGKILL)
    assert not sleepers


def test_a_late_alarm_is_not_an_output() -> None:
    """An alarm that arrives between two runs belongs to none: one output a run, in order."""

    def late() -> Any:
        yield from (0, 1)
        signal.raise_signal(signal.SIGALRM)
        yield from (2, 3)

    with guard.alarms(True):
        outputs = run_each(guard.time_limited(lambda data, rng: data, 5.0, hard=False), late(), None)
    assert outputs == [0, 1, 2, 3]


def test_the_callers_alarm_is_given_back() -> None:
    before = signal.getsignal(signal.SIGALRM)
    ask(hostile.reseeds, runs=200, run_timeout_s=1.0)
    assert signal.getsignal(signal.SIGALRM) == before


def test_batched_calls_may_be_limited_on_several_workers() -> None:
    """What large audits do by themselves: batched work goes to threads, where no alarm can be set."""
    mechanism, pair = batched(hostile.many), AdjacentPair(0, 1)
    spec = AuditSpec(claim=PureDP(2.0), mechanism=mechanism, pairs=(pair,), runs=20_000, run_timeout_s=1.0)
    for is_supervised in (False, True):
        with Engine(2, "threading", task_runs=256, supervised=is_supervised) as engine:
            assert run_audit(spec, engine).verdict is Verdict.NOT_REFUTED


# --- lost workers --------------------------------------------------------------------------------------------------


def test_a_dead_worker_is_no_verdict_and_no_child_outlives_the_engine() -> None:
    before = _children()
    supervised(hostile.reseeds, runs=400)
    for mechanism in (hostile.leaves, hostile.dies_rarely):
        with pytest.raises(UnsoundAudit, match="died twice"):
            supervised(mechanism)
    deadline = time.monotonic() + 5.0
    while set(_children()) - set(before) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not {line for process, line in _children().items() if process not in before}


def _children() -> dict[int, str]:
    """The command lines of the processes that this one has started."""
    helpers = ("resource_tracker", "pgrep")
    return {
        process: line
        for process, (state, parent, line) in left.processes().items()
        if parent == os.getpid() and state != "Z" and not any(word in line for word in helpers)
    }


def test_leaving_from_a_loky_worker_does_not_decide_the_verdict() -> None:
    work, reducer = shards(Stage.CERTIFY, 0, 1_000, 100), HitCounter(Event(Coordinate(()), intervals=((0.5, 1.5),)))
    with (
        Engine(2, "loky") as engine,
        engine.session(wrap(hostile.leaves), (AdjacentPair(0, 1),), 0, None) as session,
        pytest.raises(UnsoundAudit, match="died twice"),
    ):
        session.counts(work, reducer)


def test_a_forked_child_runs_nothing(tmp_path: Path) -> None:
    """A mechanism that forks and comes back twice: only the process that was asked goes on, or children multiply."""
    folder = str(tmp_path)
    result = supervised(hostile.forks, pair=((folder, 0), (folder, 1)), runs=200, confidence=0.9)
    assert result.verdict is Verdict.REFUTED
    pids = (tmp_path / "runs").read_text().split()
    # one for all runs of the search, one for each run that counts, one for the last look before a refutation
    assert len(set(pids)) == 2 + result.evidence.runs, f"{len(set(pids))} processes made runs"


# --- datasets -------------------------------------------------------------------------------------------------------


@for_each(
    "mechanism, pair, way",
    [
        (hostile.appends, ([0], [0, 1]), supervised),
        (hostile.overwrites, (np.zeros(2), np.ones(2)), ask),
        (hostile.overwrites, ([0.0], [1.0]), ask),
        (hostile.adds_a_key, ({}, {"a": 1}), ask),
        (batched(hostile.changes_in_a_batch), ([0], [1]), ask),
    ],
    nightly=[(batched(hostile.changes_in_a_batch), ([0], [1]), supervised), (hostile.appends, ([0], [0, 1]), ask)],
)
def test_a_changed_dataset_is_no_verdict(mechanism: Any, pair: Any, way: Any) -> None:
    before = repr(pair)
    with pytest.raises(UnsoundAudit, match=r"changed its dataset .*copy"):
        way(mechanism, pair=pair)
    assert repr(pair) == before


# --- batched ---------------------------------------------------------------------------------------------------------


@for_each("name", hostile.NONSENSE)
def test_nonsense_from_a_batch_is_no_verdict(name: str) -> None:
    with pytest.raises(UnsoundAudit, match="batched mechanism"):
        ask(batched(lambda data, runs, rng: hostile.NONSENSE[name](runs, rng)))


def test_a_batch_that_fails_on_one_dataset_is_run_one_by_one() -> None:
    result = ask(batched(hostile.raises_in_a_batch), runs=200, confidence=0.9)
    assert result.verdict is Verdict.REFUTED
    assert any("one run at a time" in entry.status for entry in result.explored)


@pytest.mark.parametrize("stopping", ["fixed", "anytime"])
def test_a_batch_that_fails_rarely_is_run_one_by_one(stopping: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe, of 64 runs, sees none of what 0.2 % of the runs raise (at this seed); the search does. What is
    certified has streams that nothing before had."""
    seen: list[tuple[Stage, bool, int]] = []
    before = Session._run

    def noted(session: Session, work: Any, reducer: Any) -> Any:
        seen.append((work[0].stage, session.job.alone, session.job.seed))
        return before(session, work, reducer)

    monkeypatch.setattr(Session, "_run", noted)
    result = ask(batched(hostile.raises_rarely_in_a_batch), runs=12_800, stopping=stopping, seed=5)
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.runs_used <= 12_800
    assert any("one run at a time" in entry.status for entry in result.explored)
    assert not seen[0][1]
    assert {seed for _, alone, seed in seen if not alone} == {5}
    assert {seed for _, alone, seed in seen if alone} == {apart(5)}
    assert [alone for stage, alone, _ in seen if stage is Stage.CERTIFY] == [True]
    assert not result.blocks
    again = recheck(result, batched(hostile.raises_rarely_in_a_batch), fresh=True)
    assert again.verdict is Verdict.NOT_REFUTED


@pytest.mark.parametrize("stopping", ["fixed", "anytime"])
def test_a_batch_that_first_fails_while_certifying_is_no_verdict(stopping: str) -> None:
    """Other runs in the place of those would be a second chance to refute; in the place of search runs they are not.
    The blocks of an anytime audit after the freeze are those of its fixed bound."""
    assert ask(batched(hostile.RaisesLate(2_000)), runs=20_000, stopping=stopping).verdict is Verdict.NOT_REFUTED
    with pytest.raises(UnsoundAudit, match=r"ValueError: late, for the first time while .* give one run a call"):
        ask(batched(hostile.RaisesLate(12_000)), runs=20_000, stopping=stopping)


def test_a_single_run_of_a_failing_batch_keeps_the_shape_rule() -> None:
    """Called one by one, a result without the run as first axis is still no output."""

    def wrong(data: int, runs: int, rng: Any) -> Any:
        if runs > 1:
            raise ValueError
        return np.zeros(2)

    with pytest.raises(UnsoundAudit, match=r"first axis|returned 2 outputs"):
        ask(batched(wrong))


# --- what cannot be sent to workers -----------------------------------------------------------------------------


def test_a_closure_over_a_lock_is_refused_with_a_cure() -> None:
    lock = threading.Lock()

    def locked(data: int, rng: Any) -> float:
        with lock:
            return float(rng.random())

    with pytest.raises(InvalidSpec, match="built_by"):
        ask(locked, n_jobs=2, backend="loky")
    assert ask(locked).verdict is Verdict.NOT_REFUTED


def test_a_mechanism_that_cannot_be_opened_in_a_worker_is_refused_in_words() -> None:
    with (
        Engine(1, supervised=True) as engine,
        engine.session(_Unpicklable(), (AdjacentPair(0, 1),), 0, None) as session,
        pytest.raises((InvalidSpec, UnsoundAudit)),
    ):
        session.probe(4)


class _Unpicklable:
    """Pickled well, but not to be had back."""

    name = "unpicklable"

    def __reduce__(self) -> Any:
        return _not_here, ()

    def open(self) -> Any:
        raise AssertionError("never had back")

    def describe(self) -> Any:
        raise AssertionError("never had back")


def _not_here() -> Any:
    raise ImportError("not in this worker")


def test_a_module_whose_import_ends_one_process_is_tried_in_another(tmp_path: Path) -> None:
    text = "import os, pathlib\nmark = pathlib.Path(__file__).with_suffix('.mark')\n"
    text += "if not mark.exists():\n    mark.touch()\n    os._exit(0)\n\ndef f(data, rng):\n    return data\n"
    (tmp_path / "ends_once.py").write_text(text)
    with Engine(1, supervised=True) as engine:
        found, _ = engine.describe(Imported("ends_once:f", folder=str(tmp_path)), (AdjacentPair(0, 1),))
    assert found.name == "f"
