"""Valid at the exact boundary, broken twins refuted beside their sound controls, null and mirror; all seeded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, ApproximateDP, AuditResult, AuditSpec, PureDP, Verdict, batched
from dpaudit.auditing import run_audit
from dpaudit.catalogue import find
from dpaudit.certify import certify
from dpaudit.claims import Claim
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import Mechanism
from tests.cases import NIGHTLY, for_each
from tests.statistics.rates import AUDITS, CONFIDENCE, FALSE_ALARM, refuted_too_often

PAIRS: dict[str, tuple[Any, Any]] = {  # where the default pair is longer than a test can wait for
    "above_threshold": ([1, 1, -1], [2, 2, -2])
}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(n_jobs=1) as engine:
        yield engine


def pair_of(name: str) -> tuple[Any, Any]:
    return PAIRS.get(name.partition(".")[0]) or find(name).default_pair


def exact_claim(name: str, pair: tuple[Any, Any]) -> Claim:
    """The claim that is the loss of this pair, and not a hair more."""
    entry = find(name)
    promised, loss = entry.claim(), entry.true_epsilon(*pair)
    assert loss is not None
    return PureDP(loss) if promised.delta == 0.0 else ApproximateDP(loss, promised.delta)


def audited(
    engine: Engine, mechanism: Mechanism, pair: tuple[Any, Any], claim: Claim, runs: int, seed: int
) -> AuditResult:
    spec = AuditSpec(
        claim=claim, mechanism=mechanism, pairs=(AdjacentPair(*pair),), runs=runs, confidence=CONFIDENCE, seed=seed
    )
    return run_audit(spec, engine)


@for_each("name", AUDITS)
def test_valid_at_the_exact_boundary(engine: Engine, name: str) -> None:
    """Fails by chance once in 10^6 (`FALSE_ALARM`): the limit is the binomial quantile, the bounds come with it."""
    audits, runs = AUDITS[name]
    audits *= 3 if NIGHTLY else 1
    pair = pair_of(name)
    claim = exact_claim(name, pair)

    def refuted(seed: int) -> bool:
        result = audited(engine, find(name), pair, claim, runs, seed)
        assert result.runs_used <= runs
        assert (result.certificate.lower > float(getattr(claim, "epsilon"))) == (result.verdict is Verdict.REFUTED)
        return result.verdict is Verdict.REFUTED

    assert not refuted_too_often(refuted, audits)


def test_valid_for_a_joint_event(engine: Engine) -> None:
    """Ten releases that share one loss: a learned score, on runs it has not seen. `FALSE_ALARM`."""
    entry = find("laplace_vector").with_parameters({"sensitivity": 4.0})
    pair = ([0] * 4, [1] * 4)
    claim = PureDP(1.0)
    assert entry.true_epsilon(*pair) == pytest.approx(1.0)
    assert not refuted_too_often(
        lambda seed: audited(engine, entry, pair, claim, 3_000, seed).verdict is Verdict.REFUTED, 12
    )


def test_valid_when_pairs_compete(engine: Engine) -> None:
    """The best of six pairs is certified on fresh runs at the full error probability. `FALSE_ALARM`."""
    entry, runs = find("laplace"), 4_000
    pairs = tuple(AdjacentPair(float(j), float(j + 1), f"pair {j}") for j in range(6))

    def refuted(seed: int) -> bool:
        spec = AuditSpec(claim=PureDP(1.0), mechanism=entry, pairs=pairs, runs=runs, confidence=CONFIDENCE, seed=seed)
        result = run_audit(spec, engine)
        assert result.runs_used <= runs
        return result.verdict is Verdict.REFUTED

    assert not refuted_too_often(refuted, 12)


def test_valid_with_any_event_that_the_data_picked(engine: Engine) -> None:
    """Many cells, no leak, the claim epsilon = 0: the search can only find luck, and fresh runs must not confirm it.

    `FALSE_ALARM`. On the runs that chose the event, most audits would refute.
    """

    def mechanism(data: float, runs: int, rng: np.random.Generator) -> Any:
        return rng.integers(0, 300, runs)

    assert not refuted_too_often(
        lambda seed: (
            audited(engine, batched(mechanism), (0.0, 1.0), PureDP(0.0), 4_000, seed).verdict is Verdict.REFUTED
        ),
        14,
    )


TWINS = [
    ("laplace", "half_noise", 4_000),
    ("laplace", "uniform_noise", 2_000),
    ("report_noisy_max", "half_noise", 20_000),
    ("above_threshold", "no_query_noise", 4_000),
    ("sparse", "no_query_noise", 20_000),
]


@for_each(("name", "twin", "runs"), TWINS)
def test_a_broken_twin_is_refuted_and_its_control_is_not(engine: Engine, name: str, twin: str, runs: int) -> None:
    """The same claim, pair and size.

    The bounds of the twins lie five of their deviations above the claim or more, so that one misses it with probability
    below `POWER_ALARM`. What must not be said of a sound control, or beyond the twin's own loss, is judged at
    confidence 1 - `FALSE_ALARM`, on the same counts.
    """
    sound, broken = find(name), getattr(find(name), twin)
    pair, claim = broken.default_pair, sound.claim()
    found, control = (audited(engine, each, pair, claim, runs, 0) for each in (broken, sound))
    assert found.verdict is Verdict.REFUTED
    assert not certify(control.evidence, claim, 1.0 - FALSE_ALARM).refuted
    loss = broken.true_epsilon(*pair)
    assert loss is not None
    assert certify(found.evidence, claim, 1.0 - FALSE_ALARM).lower <= loss
    assert loss > float(getattr(claim, "epsilon"))


def test_a_broken_gaussian_is_refuted_beside_its_control(engine: Engine) -> None:
    """A quarter of the noise that the claim asks for; the bound is over ten deviations above the claim."""
    entry = find("gaussian")
    claim = entry.claim()
    for seed in range(2):
        assert audited(engine, entry, (10, 9), claim, 8_000, seed).verdict is Verdict.NOT_REFUTED
        assert audited(engine, entry, (10, 6), claim, 8_000, seed).verdict is Verdict.REFUTED


def same_law(kind: str) -> Mechanism:
    """A mechanism that ignores its data."""

    def number(data: float, runs: int, rng: np.random.Generator) -> Any:
        return rng.normal(size=runs)

    def vector(data: float, runs: int, rng: np.random.Generator) -> Any:
        return rng.laplace(size=(runs, 3))

    def words(data: float, runs: int, rng: np.random.Generator) -> Any:
        return [("yes", None, float("nan"), 1.0)[j] for j in rng.integers(0, 4, runs)]

    return batched({"number": number, "vector": vector, "words": words}[kind])


@for_each(("kind", "audits"), [("number", 14), ("vector", 10), ("words", 14)])
def test_null_equal_laws_certify_nothing(engine: Engine, kind: str, audits: int) -> None:
    """A bound above 0 is a false statement: at most 5 % of audits make it. `FALSE_ALARM`."""

    def refuted(seed: int) -> bool:
        result = audited(engine, same_law(kind), (0.0, 1.0), PureDP(0.0), 2_000, seed)
        assert (result.certificate.lower > 0.0) == (result.verdict is Verdict.REFUTED)
        return result.verdict is Verdict.REFUTED

    assert not refuted_too_often(refuted, audits)


@for_each("name", ["laplace.half_noise", "above_threshold.no_query_noise"], nightly=["report_noisy_max.half_noise"])
def test_mirror_exchanging_the_datasets_changes_nothing(engine: Engine, name: str) -> None:
    """Both orders are refuted, and their bounds differ by sampling alone: by at most 0.3 of the larger.

    The bounds vary by 0.05 of themselves; a sixfold of that is beyond `POWER_ALARM`.
    """
    entry = find(name)
    first, second = entry.default_pair
    runs = 20_000
    one, other = (audited(engine, entry, pair, entry.claim(), runs, 3) for pair in ((first, second), (second, first)))
    assert one.verdict is other.verdict is Verdict.REFUTED
    bounds = sorted((one.certificate.lower, other.certificate.lower))
    assert bounds[0] >= 0.7 * bounds[1]
    assert one.claim == other.claim


def test_mirror_a_one_sided_leak_is_found_on_its_side(engine: Engine) -> None:
    """An output that only one dataset gives: the witness names that side as the likelier one, in either order."""

    def mechanism(data: int, runs: int, rng: np.random.Generator) -> Any:
        return np.where((rng.random(runs) < 0.2) & (data == 1), 7, rng.integers(0, 3, runs))

    found = [audited(engine, batched(mechanism), pair, PureDP(1.0), 4_000, 1) for pair in ((1, 0), (0, 1))]
    assert [result.witness.p_side for result in found] == ["first", "second"]
    for result in found:
        assert result.evidence.hits_q == 0
        assert result.verdict is Verdict.REFUTED
        assert result.certificate.lower <= result.ceiling
        expected = math.log(result.evidence.hits_p / 3.0)
        assert result.certificate.lower == pytest.approx(expected, abs=0.05)
