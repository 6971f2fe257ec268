"""Whole audits of mechanisms whose runs depend on each other: each is named, none certified; sound twins pass."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, AuditSpec, PureDP, UnsoundAudit, Verdict, audit, batched
from dpaudit.auditing import run_audit
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import wrap
from tests.auditing import unsound
from tests.cases import for_each

pytestmark = pytest.mark.long

RUNS = 12_000


def ask(mechanism: Any, *, pair: Any = (0.0, 1.0), **options: Any) -> Any:
    return audit(mechanism, pair=pair, **{"epsilon": 2.0, "runs": RUNS, "n_jobs": 1, "seed": 3, **options})


def pooled(make: Any, **pool: Any) -> tuple[Any, str, dict[str, Any]]:
    return make(unsound.Pool(**pool)), "serial dependence", {"runs": 20_000}


@for_each(
    ("mechanism", "name", "options"),
    [
        (unsound.uneven_shared_stream, "repeated streams", {"n_jobs": 2, "backend": "loky"}),
        (unsound.cached, "constant outputs", {"confidence": 0.9}),
        (unsound.Budget(1000, raises=True), "drift over shards", {}),
        (unsound.Budget(7000, raises=False), "drift over shards", {}),
        (unsound.Growing(1e-3, offset=True), "drift over shards", {}),
        (unsound.Reusing(late=True), "serial dependence", {}),
        (batched(unsound.ReusingBatches()), "serial dependence", {"runs": 200_000}),
        (batched(unsound.one_draw_a_batch), "serial dependence", {"runs": 200_000}),
        pooled(batched, values=997),
        pooled(unsound.One, values=3_000, shuffled=True),
        pooled(batched, values=5, again=2),
        (unsound.Stale(), "state between calls", {"runs": 40_000}),
        (unsound.SeedOfProcess(), "over-dispersion between shards", {}),
    ],
    nightly=[
        (unsound.shared_stream, "repeated streams", {"n_jobs": 2, "backend": "loky"}),
        (unsound.Budget(1000, raises=False), "drift over shards", {}),
        (unsound.Growing(2e-3), "drift over shards", {}),
        (unsound.Reusing(), "serial dependence", {}),
        pooled(unsound.One, values=997),
        pooled(batched, values=3_000, shuffled=True),
        pooled(unsound.One, values=5, again=2),
        *(pooled(make, values=100, again=10) for make in (unsound.One, batched)),
        *(pooled(make, values=10, again=2) for make in (unsound.One, batched)),
        (unsound.SeedOfProcess(), "over-dispersion", {"n_jobs": 2, "backend": "loky"}),
    ],
)
def test_dependent_runs_are_named_and_not_certified(mechanism: Any, name: str, options: dict[str, Any]) -> None:
    with pytest.raises(UnsoundAudit) as caught:
        ask(mechanism, **options)
    text = str(caught.value)
    assert name in text.partition("; runs that depend")[0]
    assert "\n" not in text
    assert re.search(r"p-value \S+, level 1.4e-07", text)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_global_generator_is_named() -> None:
    """Forked workers go on from the same state, so the certifying runs repeat those of the search."""
    with pytest.raises(UnsoundAudit, match="repeated streams"):
        ask(unsound.global_stream, n_jobs=2, backend="multiprocessing")


@for_each(
    ("mechanism", "options"),
    [
        (unsound.laplace, {}),
        (batched(unsound.laplace_batch), {"runs": 200_000}),
        (unsound.own_generator, {}),
        (unsound.own_stream, {"n_jobs": 2, "backend": "loky"}),
        (unsound.coins, {}),
    ],
    nightly=[(unsound.shared_stream, {})],
)
def test_sound_twins_have_a_verdict(mechanism: Any, options: dict[str, Any]) -> None:
    """Each is stopped with probability 1e-6."""
    result = ask(mechanism, **options)
    assert result.health.sound
    assert result.verdict is Verdict.NOT_REFUTED, str(result)


@for_each(("stopping", "seed"), [("fixed", 46), ("anytime", 46)], nightly=[("fixed", 47), ("fixed", 48)])
def test_rare_outputs_are_no_constant(stopping: str, seed: int) -> None:
    """27 flips are expected, and the search may see none (at seeds 46 and 47). Each is refuted, or stopped, once in
    1,000; all seeds are fixed."""
    flips = batched(unsound.Flips(8.0))
    result = ask(flips, pair=(0, 1), epsilon=8.0, runs=80_000, seed=seed, stopping=stopping)
    assert result.verdict is Verdict.NOT_REFUTED, (seed, str(result))


def test_an_answer_that_is_kept_is_no_refutation_of_a_large_claim() -> None:
    """Too many processes would be needed, and in this one no rare output ever comes."""
    with pytest.raises(UnsoundAudit, match=r"constant outputs: .* more than 4,096"):
        ask(batched(unsound.KeptFlips(8.0)), pair=(0, 1), epsilon=8.0, runs=80_000)


@for_each("mechanism", [unsound.Reseeding()], nightly=[unsound.answers])
def test_a_fixed_answer_that_differs_is_refuted_by_processes(mechanism: Any) -> None:
    """The sample size is the number of processes, not that of the runs in one of them."""
    result = ask(mechanism, confidence=0.9)
    assert result.verdict is Verdict.REFUTED
    assert result.evidence.runs < 200
    assert (result.evidence.hits_p, result.evidence.hits_q) == (result.evidence.runs_p, 0)
    assert result.health.sound


def test_a_cache_is_named_in_a_supervised_process_too() -> None:
    spec = AuditSpec(PureDP(1.0), wrap(unsound.cached), (AdjacentPair(0.0, 1.0),), runs=2_000, confidence=0.9)
    with Engine(1, supervised=True) as engine, pytest.raises(UnsoundAudit, match="constant outputs"):
        run_audit(spec, engine)


def test_a_mechanism_that_only_opens_here_is_audited_here() -> None:
    lock, generator = threading.Lock(), np.random.default_rng()

    def locked(data: float) -> float:
        with lock:
            return data + generator.laplace()

    assert ask(locked).verdict is Verdict.NOT_REFUTED

    def locked_constant(data: float) -> float:
        with lock:
            return data

    with pytest.raises(UnsoundAudit, match=r"constant outputs: .*built_by"):
        ask(locked_constant)


def test_a_generator_held_by_the_function_is_sound_in_one_process() -> None:
    """A worker would get a copy, and draw what the others draw."""
    generator = np.random.default_rng()

    def holding(data: float) -> float:
        return data + generator.laplace()

    assert ask(holding).verdict is Verdict.NOT_REFUTED
    with pytest.raises(UnsoundAudit, match="repeated streams"):
        ask(holding, n_jobs=2, backend="loky")


def test_what_only_this_process_has_set_up_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unsound, "SET_UP_HERE", 1.0)
    result = ask(unsound.needs_set_up)
    assert result.health.sound


@for_each(
    "kind",
    ["numpy float", "numpy integer", "array", "dictionary", "sometimes nothing", "sometimes another type"],
    nightly=["numpy single", "numpy truth", "tuple", "text"],
)
def test_sound_outputs_of_every_type_pass(kind: str) -> None:
    """Fresh processes and this one tell the same of a type. A check alarms by chance once in 10^6 audits."""
    result = ask(unsound.OwnKind(kind), runs=2_000)
    assert not result.reproducible
    assert result.verdict is Verdict.NOT_REFUTED, str(result)


@for_each(("jitter", "stopping"), [(False, "fixed"), (True, "anytime")], nightly=[(True, "fixed")])
def test_a_memory_that_travels_with_the_mechanism_is_named(jitter: bool, stopping: str) -> None:
    """What the first runs left in it does not go to the fresh processes, nor does noise drawn anew hide it."""
    with pytest.raises(UnsoundAudit, match=r"constant outputs|over-dispersion between shards"):
        ask(unsound.Keeping(jitter), runs=2_000, confidence=0.9, stopping=stopping)


@for_each(("fails", "stopping"), [(0.0, "fixed"), (0.01, "anytime")], nightly=[(0.0, "anytime"), (0.01, "fixed")])
def test_a_kept_answer_that_equal_streams_repeat_is_named(fails: float, stopping: str) -> None:
    """The fresh process of a refutation keeps the same answer, where it is given the same stream."""
    with pytest.raises(UnsoundAudit, match=r"constant outputs|over-dispersion between shards: fresh process 1"):
        ask(unsound.KeptDraw(fails), epsilon=1.0, runs=5_000, seed=1, stopping=stopping)


@for_each("stopping", ["fixed"], nightly=["anytime"])
def test_a_default_beside_a_kept_answer_is_no_sign_of_fresh_noise(stopping: str) -> None:
    """The answer of the one dataset never comes up on the other, whatever the event holds beside it."""
    lock, kept = threading.Lock(), unsound.KeptDraw(5e-5)

    def locked(data: float, rng: Any) -> Any:  # opens in no other process
        with lock:
            return kept(data, rng)

    with pytest.raises(UnsoundAudit, match=r"constant outputs: .*built_by"):
        ask(locked, runs=40_000, seed=1, stopping=stopping)


@for_each(
    ("runs", "confidence", "stopping"), [(200, 0.95, "anytime"), (400, 0.9, "fixed")], nightly=[(230, 0.95, "anytime")]
)
def test_a_tiny_audit_of_a_cache_is_not_certified(runs: int, confidence: float, stopping: str) -> None:
    """Also where bets win last on one process."""
    with pytest.raises(UnsoundAudit, match="constant outputs"):
        ask(unsound.cached, runs=runs, confidence=confidence, stopping=stopping)


def test_a_refutation_is_looked_at_in_a_fresh_process_within_the_runs() -> None:
    result = ask(unsound.laplace, pair=(0.0, 3.0), runs=3_000)
    assert result.verdict is Verdict.REFUTED
    assert result.reproducible
    assert result.runs_used <= 3_000
