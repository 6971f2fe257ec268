"""Whole audits of mechanisms whose runs depend on each other: each is named, none certified; sound twins pass."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest

from dpaudit import UnsoundAudit, Verdict, audit, batched
from tests.auditing import unsound
from tests.cases import for_each, some

pytestmark = pytest.mark.long

RUNS = 12_000


def ask(mechanism: Any, *, pair: Any = (0.0, 1.0), **options: Any) -> Any:
    return audit(mechanism, pair=pair, **{"epsilon": 2.0, "runs": RUNS, "n_jobs": 1, "seed": 3, **options})


POOLS: dict[str, dict[str, Any]] = {
    "a cycle": {"values": 997},
    "a deck": {"values": 3_000, "shuffled": True},
    "ten replays": {"values": 100, "again": 10},
    "a replay at lag 5": {"values": 5, "again": 2},
    "a replay at lag 10": {"values": 10, "again": 2},
}
WAYS = [("one run a call", unsound.One), ("in batches", batched)]
POOLED = [
    (name, how, make, pool)
    for place, (name, pool) in enumerate(POOLS.items())
    for how, make in (WAYS if place % 2 else WAYS[::-1])
]
CASES: list[tuple[str, Any, str, dict[str, Any]]] = [
    ("seeded on import", unsound.shared_stream, "repeated streams", {"n_jobs": 2, "backend": "loky"}),
    (
        "seeded on import, out of step",
        unsound.uneven_shared_stream,
        "repeated streams",
        {"n_jobs": 2, "backend": "loky"},
    ),
    ("cached", unsound.cached, "constant outputs", {"confidence": 0.9}),
    ("budget, then raises", unsound.Budget(1000, raises=True), "drift over shards", {}),
    ("budget, then zeros", unsound.Budget(1000, raises=False), "drift over shards", {}),
    ("budget within certification", unsound.Budget(7000, raises=False), "drift over shards", {}),
    ("growing offset", unsound.Growing(1e-3, offset=True), "drift over shards", {}),
    ("growing scale", unsound.Growing(2e-3), "drift over shards", {}),
    ("noise reused", unsound.Reusing(), "serial dependence", {}),
    ("noise reused, out of phase", unsound.Reusing(late=True), "serial dependence", {}),
    ("noise reused in batches", batched(unsound.ReusingBatches()), "serial dependence", {"runs": 200_000}),
    ("one draw a batch", batched(unsound.one_draw_a_batch), "serial dependence", {"runs": 200_000}),
    *(
        (f"{name}, {how}", make(unsound.Pool(**pool)), "serial dependence", {"runs": 20_000})
        for name, how, make, pool in some(POOLED, 5)  # each pool, in one way or the other
    ),
    ("the dataset before", unsound.Stale(), "state between calls", {"runs": 40_000}),
    ("a seed for each process", unsound.SeedOfProcess(), "over-dispersion between shards", {}),
    ("a seed for each worker", unsound.SeedOfProcess(), "over-dispersion", {"n_jobs": 2, "backend": "loky"}),
]


@for_each(("mechanism", "name", "options"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
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


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        (unsound.laplace, {}),
        (batched(unsound.laplace_batch), {"runs": 200_000}),
        (unsound.own_generator, {}),
        (unsound.own_stream, {"n_jobs": 2, "backend": "loky"}),
        (unsound.shared_stream, {"n_jobs": 1}),
        (unsound.coins, {}),
    ],
    ids=["laplace", "batched", "own entropy", "own stream", "one process", "coins"],
)
def test_sound_twins_have_a_verdict(mechanism: Any, options: dict[str, Any]) -> None:
    """Each is stopped with probability 1e-6."""
    result = ask(mechanism, **options)
    assert result.health.sound
    assert result.verdict is Verdict.NOT_REFUTED, str(result)


# --- deterministic mechanisms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stopping", "seeds"), [("fixed", (46, 47, 48)), ("anytime", (46,))])
def test_rare_outputs_are_no_constant(stopping: str, seeds: tuple[int, ...]) -> None:
    """27 flips are expected, and the search may see none (at seeds 46 and 47). Each is refuted, or stopped, once in
    1,000; all seeds are fixed."""
    for seed in seeds:
        flips = batched(unsound.Flips(8.0))
        result = ask(flips, pair=(0, 1), epsilon=8.0, runs=80_000, seed=seed, stopping=stopping)
        assert result.verdict is Verdict.NOT_REFUTED, (seed, str(result))


def test_an_answer_that_is_kept_is_no_refutation_of_a_large_claim() -> None:
    """Too many processes would be needed, and in this one no rare output ever comes."""
    with pytest.raises(UnsoundAudit, match=r"constant outputs: .* more than 4,096"):
        ask(batched(unsound.KeptFlips(8.0)), pair=(0, 1), epsilon=8.0, runs=80_000)


@pytest.mark.parametrize("mechanism", [unsound.answers, unsound.Reseeding()], ids=["no noise", "fixed seed"])
def test_a_fixed_answer_that_differs_is_refuted_by_processes(mechanism: Any) -> None:
    """The sample size is the number of processes, not that of the runs in one of them."""
    result = ask(mechanism, confidence=0.9)
    assert result.verdict is Verdict.REFUTED
    assert result.evidence.runs < 200
    assert (result.evidence.hits_p, result.evidence.hits_q) == (result.evidence.runs_p, 0)
    assert result.health.sound


def test_a_constant_is_private() -> None:
    result = ask(unsound.constant)
    assert result.verdict is Verdict.NOT_REFUTED, str(result)
    assert "constant" in result.health.notes[0]


def test_a_cache_is_named_in_a_supervised_process_too() -> None:
    from dpaudit import AdjacentPair, AuditSpec, PureDP
    from dpaudit.auditing import run_audit
    from dpaudit.execution.engine import Engine
    from dpaudit.mechanisms import wrap

    with Engine(1, supervised=True) as engine:
        description, pairs = engine.describe(wrap(unsound.cached), (AdjacentPair(0.0, 1.0),))
        spec = AuditSpec(
            claim=PureDP(1.0),
            mechanism=wrap(unsound.cached),
            pairs=pairs,
            runs=2_000,
            confidence=0.9,
            description=description,
        )
        with pytest.raises(UnsoundAudit, match="constant outputs"):
            run_audit(spec, engine)


def test_a_tiny_audit_of_a_cache_is_not_certified() -> None:
    with pytest.raises(UnsoundAudit, match="constant outputs"):
        ask(unsound.cached, runs=400, confidence=0.9)


# --- mechanisms that live in one process ------------------------------------------------------------------------------


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
    [
        "numpy float",
        "numpy single",
        "numpy integer",
        "numpy truth",
        "tuple",
        "array",
        "dictionary",
        "text",
        "sometimes nothing",
        "sometimes another type",
    ],
)
def test_sound_outputs_of_every_type_pass(kind: str) -> None:
    """Fresh processes and this one tell the same of a type. A check alarms by chance once in 10^6 audits."""
    result = ask(unsound.OwnKind(kind), runs=4_000)
    assert not result.reproducible
    assert result.verdict is Verdict.NOT_REFUTED, str(result)


@pytest.mark.parametrize(("jitter", "stopping"), [(False, "fixed"), (True, "fixed"), (True, "anytime")])
def test_a_memory_that_travels_with_the_mechanism_is_named(jitter: bool, stopping: str) -> None:
    """What the first runs left in it does not go to the fresh processes, nor does noise drawn anew hide it."""
    with pytest.raises(UnsoundAudit, match=r"constant outputs|over-dispersion between shards"):
        ask(unsound.Keeping(jitter), runs=2_000, confidence=0.9, stopping=stopping)


@pytest.mark.parametrize("fails", [0.0, 0.01])
@pytest.mark.parametrize("stopping", ["fixed", "anytime"])
def test_a_kept_answer_that_equal_streams_repeat_is_named(fails: float, stopping: str) -> None:
    """The fresh process of a refutation keeps the same answer, where it is given the same stream."""
    with pytest.raises(UnsoundAudit, match=r"constant outputs|over-dispersion between shards: fresh process 1"):
        ask(unsound.KeptDraw(fails), epsilon=1.0, runs=5_000, seed=1, stopping=stopping)


@pytest.mark.parametrize("stopping", ["fixed", "anytime"])
def test_a_default_beside_a_kept_answer_is_no_sign_of_fresh_noise(stopping: str) -> None:
    """The answer of the one dataset never comes up on the other, whatever the event holds beside it."""
    lock, kept = threading.Lock(), unsound.KeptDraw(5e-5)

    def locked(data: float, rng: Any) -> Any:  # opens in no other process
        with lock:
            return kept(data, rng)

    with pytest.raises(UnsoundAudit, match=r"constant outputs: .*built_by"):
        ask(locked, runs=40_000, seed=1, stopping=stopping)


@pytest.mark.parametrize("runs", [200, 230])
def test_bets_that_win_last_on_one_process_are_no_refutation(runs: int) -> None:
    with pytest.raises(UnsoundAudit, match="constant outputs"):
        ask(unsound.cached, runs=runs, confidence=0.95, stopping="anytime")


def test_a_refutation_is_looked_at_in_a_fresh_process_within_the_runs() -> None:
    result = ask(unsound.laplace, pair=(0.0, 3.0), runs=3_000)
    assert result.verdict is Verdict.REFUTED
    assert result.reproducible
    assert result.runs_used <= 3_000
