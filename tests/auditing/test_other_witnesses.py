"""Other witnesses: the bits of floats, and what only the first call of each process gives away.

Findings on bits are there for sums of unrounded floats, absent where outputs are integers or snapped. All seeds are
fixed. A claim that holds is refuted there with probability at most 1e-6 a case, by its confidence; what must be found
has a loss far above the claim, with a margin of many standard deviations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dpaudit import AuditSpec, recheck
from dpaudit.account.statements import FIRSTS, not_looked_at
from dpaudit.auditing.audit import run_audit
from dpaudit.auditing.other_witnesses import FEW, SELECTOR, best, find_representation, tables
from dpaudit.auditing.question import Plan, Question
from dpaudit.base.strict import stored, value_of
from dpaudit.catalogue.additive import snapping
from dpaudit.certify import Certificate, CoinFlip, certify
from dpaudit.claims import ApproximateDP, Claim, PureDP
from dpaudit.data import AdjacentPair
from dpaudit.events import Event, Partition, event_from_dict
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import batched, wrap
from dpaudit.outputs.canonical import Pilot, Sample
from dpaudit.outputs.encode import encode_batch
from dpaudit.results.certification import Witness
from dpaudit.search.goal import Goal
from tests.auditing import unsound
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


def one_bit(data: float, runs: int, rng: Rng) -> Outputs:
    """Noise in which one of the low bits says which dataset it is, in .8 of runs."""
    words = rng.laplace(size=runs).view(np.uint64) & ~np.uint64(1 << 7)
    says = (rng.random(runs) < (0.8 if data else 0.2)).astype(np.uint64)
    return (words | says << np.uint64(7)).view(np.float64)


def one_bit_alike(data: float, runs: int, rng: Rng) -> Outputs:
    return one_bit(1.0, runs, rng)


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
        (one_bit, PureDP(1.0), (0, 1)),
    ],
)
def test_a_float_plus_noise_gives_itself_away(run: Run, claim: Claim, pair: tuple[Any, Any]) -> None:
    witness, certificate = look(run, claim, pair, seed=1)
    assert witness.selector.startswith("representation: ")
    assert certificate.refuted
    own = {Event | Partition: lambda event, _: event_from_dict(event)}
    assert value_of(Witness, stored(witness), own) == witness


@for_each("seed, pair", [(1, (0, 1)), (2, (10, 9))], nightly=[(3, (0, 1)), (3, (10, 9))])
@for_each("run", [integers, snapped, finely_snapped, decimals, one_bit_alike])
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


PAIR = AdjacentPair(0.0, 1.0)


def asked(mechanism: Any, *, runs: int = 25_000, isolated: bool = True) -> Any:
    spec = AuditSpec(claim=PureDP(1.0), mechanism=wrap(mechanism), pairs=(PAIR,), runs=runs, confidence=0.95)
    with Engine(1, supervised=isolated) as engine:
        return run_audit(spec, engine)


@pytest.mark.long
def test_a_leak_of_first_calls_is_found_and_certified_in_fresh_processes() -> None:
    """The sides are drawn from seed 0, so that nothing here is left to chance."""
    result = asked(batched(unsound.Leaky()))
    assert result.verdict.value == "REFUTED"
    assert result.witness.selector.startswith(SELECTOR)
    assert result.evidence.hits_q == 0 < result.evidence.hits_p == result.evidence.runs_p
    assert result.runs_used <= result.spec["runs"]
    assert any("first of a fresh process" in note for note in result.health.notes)
    assert FIRSTS not in not_looked_at(result)
    again = recheck(result, batched(unsound.Leaky()), fresh=True)
    assert again.verdict.value == "REFUTED"
    assert again.evidence != result.evidence


def truthful(data: float, runs: int, rng: np.random.Generator) -> Any:
    """One run in 400 lies: 16 first calls tell the truth, but some processes could show less than all other runs."""
    return np.where(rng.random(runs) < 1 / 400, 1.0 - data, data)


@pytest.mark.long
@for_each("mechanism", [unsound.laplace_batch, truthful])
def test_first_calls_without_a_leak_change_no_count(mechanism: Any) -> None:
    """Nor are those a witness that are like all others."""
    apart, here = asked(batched(mechanism)), asked(batched(mechanism), isolated=False)
    assert apart.evidence == here.evidence
    firsts = [[entry for entry in each.explored if entry.name == "first calls"] for each in (apart, here)]
    assert [[entry.runs for entry in each] for each in firsts] == [[FEW], []]
    assert ("so do most other runs" in firsts[0][0].status) == (mechanism is truthful)
    assert [FIRSTS in not_looked_at(each) for each in (apart, here)] == [False, True]


@pytest.mark.long
def test_texts_and_exceptions_that_are_all_different_are_named() -> None:
    def text(data: float, rng: np.random.Generator) -> str:
        return f"n={data + rng.laplace():.6f}"

    def word(data: float, rng: np.random.Generator) -> str:
        return "yes" if rng.random() < 0.5 else "no"

    def raises(data: float, rng: np.random.Generator) -> str:
        raise type(f"Error{rng.integers(1 << 60)}", (Exception,), {})

    for mechanism, said in ((text, True), (raises, True), (word, False)):
        result = asked(mechanism, runs=1_000, isolated=False)
        assert any("no output came twice" in entry.status for entry in result.explored) is said
