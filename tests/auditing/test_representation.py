"""Representation findings: there for sums of unrounded floats, absent where outputs are integers or snapped.

All seeds are fixed. A claim that holds is refuted here with probability at most 1e-6 a case, by its confidence;
what must be found has a loss far above the claim, with a margin of many standard deviations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dpaudit.auditing.other_witnesses import best, find_representation, tables
from dpaudit.auditing.question import Plan, Question
from dpaudit.base.strict import stored, value_of
from dpaudit.catalogue.additive import snapping
from dpaudit.certify import Certificate, CoinFlip, certify
from dpaudit.claims import ApproximateDP, Claim, PureDP
from dpaudit.data import AdjacentPair
from dpaudit.events import Event, Partition, event_from_dict
from dpaudit.mechanisms import batched
from dpaudit.outputs.canonical import Pilot, Sample
from dpaudit.outputs.encode import encode_batch
from dpaudit.results.certification import Witness
from dpaudit.search.goal import Goal
from tests.cases import for_each

Rng = np.random.Generator
Outputs = npt.NDArray[Any]
Run = Callable[[Any, int, Rng], Outputs]

RUNS, PILOT, CERTIFYING = 200_000, 24_000, 150_000
CONFIDENCE = 0.999999
GAUSSIAN = ApproximateDP(1.0, 1e-5)
SIGMA = 3.7305  # of the analytic Gaussian mechanism at (1, 1e-5)


def laplace(data: float, runs: int, rng: Rng) -> Outputs:
    return rng.laplace(size=runs) + data


def gaussian(data: float, runs: int, rng: Rng) -> Outputs:
    return rng.normal(scale=SIGMA, size=runs) + data


def single_precision(data: float, runs: int, rng: Rng) -> Outputs:
    return rng.laplace(size=runs).astype(np.float32) + np.float32(data)


def vector(data: list[float], runs: int, rng: Rng) -> Outputs:
    return rng.laplace(scale=len(data), size=(runs, len(data))) + np.array(data)


def several_uniforms(data: float, runs: int, rng: Rng) -> Outputs:
    """Laplace noise from four uniforms, as diffprivlib draws it (Holohan & Braghin 2021)."""
    one, two, three, four = (1.0 - rng.random(runs) for _ in range(4))
    return data - (np.log(one) * np.cos(np.pi * two) + np.log(three) * np.cos(np.pi * four))


def integers(data: int, runs: int, rng: Rng) -> Outputs:
    stop = -np.expm1(-1.0)
    return data + rng.geometric(stop, runs) - rng.geometric(stop, runs)


def snapped(data: float, runs: int, rng: Rng) -> Outputs:
    entry = snapping.with_parameters({"epsilon": 1.0, "sensitivity": 0.125})
    return entry.open().call(data / 8.0, runs, rng)  # type: ignore[no-any-return]


def finely_snapped(data: float, runs: int, rng: Rng) -> Outputs:
    return np.round(laplace(data, runs, rng) * 2.0**30) / 2.0**30


def finely_snapped_half_noise(data: float, runs: int, rng: Rng) -> Outputs:
    return np.round((data + rng.laplace(scale=0.5, size=runs)) * 2.0**30) / 2.0**30


def decimals(data: float, runs: int, rng: Rng) -> Outputs:
    return np.round(laplace(data, runs, rng), 2)


def a_spec(run: Run, claim: Claim, pair: tuple[Any, Any]) -> Plan:
    return Question(
        claim, batched(run), (AdjacentPair.of(pair),), runs=RUNS, confidence=CONFIDENCE, certifier="coin-flip"
    ).resolved()


def a_pilot(run: Run, pair: tuple[Any, Any], rng: Rng, runs: int = PILOT) -> Pilot:
    return Pilot(*(encode_batch(run(side, runs // 2, rng), runs // 2) for side in pair))


def look(run: Run, claim: Claim, pair: tuple[Any, Any], seed: int) -> tuple[Witness | None, Certificate | None]:
    """The witness on bits and what fresh runs say of it."""
    rng = np.random.default_rng(seed)
    witness = find_representation(a_spec(run, claim, pair), a_pilot(run, pair, rng), 0, CERTIFYING)
    if witness is None:
        return None, None
    sides = rng.binomial(CERTIFYING, 0.5)
    hits = [
        int(witness.event.contains(encode_batch(run(side, runs, rng), runs)).sum())
        for side, runs in zip(pair, (CERTIFYING - sides, sides), strict=True)
    ]
    runs = [CERTIFYING - sides, sides]
    order = (0, 1) if witness.p_side == "first" else (1, 0)
    evidence = CoinFlip(*(hits[j] for j in order), *(int(runs[j]) for j in order))
    return witness, certify(evidence, claim, CONFIDENCE)


@for_each(
    ("run", "claim", "pair"),
    [
        (laplace, PureDP(1.0), (0, 1)),
        (gaussian, GAUSSIAN, (2, 1)),
        (single_precision, PureDP(1.0), (0, 1)),
        (vector, PureDP(1.0), ([0, 0, 0], [1, 1, 1])),
        (several_uniforms, PureDP(1.0), (0, 1)),
    ],
)
def test_a_float_plus_noise_gives_itself_away(run: Run, claim: Claim, pair: tuple[Any, Any]) -> None:
    witness, certificate = look(run, claim, pair, seed=1)
    assert witness.selector.startswith("representation: ")
    assert certificate.refuted
    own = {Event | Partition: lambda event, _: event_from_dict(event)}
    assert value_of(Witness, stored(witness), own) == witness


@for_each("seed, pair", [(1, (0, 1)), (2, (10, 9))], nightly=[(3, (0, 1)), (3, (10, 9))])
@for_each("run", [integers, snapped, finely_snapped, decimals])
def test_integers_and_snapped_outputs_are_not_refuted(run: Run, pair: tuple[Any, Any], seed: int) -> None:
    _, certificate = look(run, PureDP(1.0), pair, seed)
    assert certificate is None or not certificate.refuted


@for_each("seed", [1, 2], nightly=[3])
def test_noise_that_is_too_small_is_no_finding_about_floats(seed: int) -> None:
    """Events on bits that only repeat what the values show belong to the other witness."""
    assert look(finely_snapped_half_noise, PureDP(1.0), (0, 1), seed) == (None, None)


def test_the_proposal_is_the_same_either_way_round() -> None:
    rng = np.random.default_rng(7)
    pilot = a_pilot(laplace, (0, 1), rng)
    goal = Goal(PureDP(1.0), CERTIFYING, 0.001)
    chosen = tables(pilot)
    counts = chosen(Sample(pilot.first), Sample(pilot.second))
    one, other = best(chosen, counts, goal), best(chosen, counts[:, ::-1], goal)
    assert {one.p_side, other.p_side} == {"first", "second"}
    assert one.score == pytest.approx(other.score, abs=0.3)  # the random halves of a ratio order differ


def test_equal_sides_are_no_finding() -> None:
    """The same outputs on both sides: no event can have a bound, whatever its bits."""
    rng = np.random.default_rng(8)
    for run in (laplace, gaussian, vector):
        data: Any = [0, 0, 0] if run is vector else 0
        pilot = a_pilot(run, (data, data), rng)
        found = find_representation(
            a_spec(run, PureDP(1.0), (data, [1])), Pilot(pilot.first, pilot.first), 0, CERTIFYING
        )
        assert found is None or found.score < 0.5
