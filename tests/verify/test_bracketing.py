"""The join of both halves: proofs that are checked, pairs that are exact, audits, and what each may not do."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import dpaudit
from benchmarks.programs import PROGRAMS
from dpaudit.auditing.known import known_upper
from dpaudit.auditing.question import Question
from dpaudit.base import installed
from dpaudit.catalogue import entries, find
from dpaudit.claims import ApproximateDP, PureDP, Relation
from dpaudit.data import AdjacentPair, SealedPair
from dpaudit.errors import InvalidSpec, MissingRequirement, UnsoundAudit
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import wrap
from dpaudit.results.bounds import Arithmetic, Label, UpperBound
from dpaudit.results.observations import Ending
from dpaudit.verify import alignment
from dpaudit.verify.bracketing import WAYS, Joined, Wanted, run_bracket, target_of
from dpaudit.verify.bracketing.targets import check_adjacent, exact_answers, source_of
from dpaudit.verify.bracketing.upper import Bounds
from dpaudit.verify.checker import ProofRejected
from dpaudit.verify.enclosure import rational
from dpaudit.verify.proof import ADJACENCIES
from tests.cases import for_each
from tests.golden import example

ONE = {"eps": 1, "N": 1, "T": 0}
OF_ANSWERS = [each for entry in entries() for each in (entry, *entry.twins.values()) if each.adjacency]


ENGINES: list[Engine] = []


@pytest.fixture(autouse=True, scope="module")
def one_engine() -> Iterator[None]:
    with Engine(1) as made:
        ENGINES.append(made)
        yield
    ENGINES.clear()


def joined(mechanism: Any, parameters: dict[str, Any] | None = None, **wanted: Any) -> Joined:
    return run_bracket(target_of(mechanism, parameters), Wanted(**{"runs": 0, **wanted}), ENGINES[0])


def program(name: str) -> Any:
    return PROGRAMS[name].function


def counted(data: float, rng: Any, eps: float = 1.0) -> float:
    return data + rng.laplace(scale=1 / eps)  # type: ignore[no-any-return]


def respond(bit: int, rng: Any) -> int:
    return bit if rng.random() < 0.75 else 1 - bit


def die(low: int, rng: Any) -> int:
    return int(rng.integers(low, 6))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, audited: Joined) -> list[Question]:
    """The audits that are asked for; none is made, and the answer is always the same one."""
    specs: list[Question] = []

    def answer(spec: Question, *_: object, **__: object) -> Any:
        specs.append(spec)
        return audited.audit

    monkeypatch.setattr("dpaudit.auditing.runner.run_audit", answer)
    return specs


@pytest.fixture(scope="module")
def audited(one_engine: None) -> Joined:
    """A wrong entry, with its audit."""
    return joined(find("laplace.half_noise"), runs=5_000)


# proofs


def test_a_checked_proof_proves() -> None:
    found = joined(program("c2_sparse_vector"), ONE, claim="eps", adjacency="all-differ", answers=4)
    (proof,) = found.proofs
    assert (found.bracket.verdict.value, found.bracket.ends[1]) == ("PROVED", 1.0)
    assert proof.claim == "eps"
    assert "any number of answers" in str(found.bracket)


def test_the_place_of_the_largest_is_proved_by_coupling_and_its_worst_pair_is_computed() -> None:
    found = joined(program("c1_noisy_max"), {"eps": 1}, claim="eps", adjacency="all-differ")
    assert found.bracket.verdict.value == "PROVED"
    assert 0.999 < found.bracket.ends[0] <= found.bracket.ends[1] == 1.0
    assert [type(proof).__name__ for proof in found.proofs] == ["Derivation"]


def test_one_way_statements_are_proved_without_pair_or_audit_and_monotone_takes_the_larger_cost() -> None:
    sparse = program("c4_sparse_decreasing")
    found = joined(sparse, ONE, claim="eps", adjacency="down", runs=10_000)
    assert (found.bracket.verdict.value, found.bracket.ends) == ("PROVED", (0.0, 0.5))
    assert (found.bracket.one_way, found.audit) == ("down", None)
    assert str(found.bracket).splitlines()[0].endswith("epsilon <= 0.5, claimed 1 (one way: down)")
    assert any("both ways" in reason for reason in found.bracket.reasons)
    both = joined(sparse, ONE, claim="eps", adjacency="monotone", answers=3)
    assert (both.bracket.verdict.value, both.bracket.ends[1], both.bracket.one_way) == ("PROVED", 1.0, None)
    assert [proof.adjacency for proof in both.proofs] == ["up", "down"]


def rejects(proof: object) -> None:
    raise ProofRejected("the shift of draw_1 on path T")


def half(missing: str, prove: Any = alignment.prove) -> Any:
    none = alignment.Unproved("none", growing="eps*n/2")
    return lambda program, way, **options: none if missing in ("both", way) else prove(program, way, **options)


@for_each(
    ("step", "broken", "words"),
    [
        ("certified", rejects, "the shift of draw_1"),
        *(("prove", half(missing), "the cost grows as eps*n/2") for missing in ("both", "up", "down")),
    ],
)
def test_a_rejected_proof_and_one_way_alone_are_no_bound_nor_a_refutation(step: str, broken: Any, words: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(f"dpaudit.verify.bracketing.upper.{step}", broken)
        patched.setattr("dpaudit.verify.bracketing.derived", lambda *given: iter(()))
        found = joined(counted, claim="eps", adjacency="monotone", pair=AdjacentPair(0, 1))
    assert found.bracket.verdict.value in ("OPEN", "PINNED")
    assert not any(each.label is Label.PROVED for each in found.bracket.uppers)
    assert not found.proofs
    assert any(words in reason for reason in found.bracket.reasons)


def test_a_proof_below_an_exact_loss_is_an_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.verify.bracketing.upper.epsilon", lambda proof, parameters: Fraction(1, 10))
    with pytest.raises(UnsoundAudit, match="one of the two is wrong"):
        joined(counted, claim="eps", adjacency="all-differ")


# exact losses


IN_BOTH = ["report_noisy_max", "above_threshold.no_query_noise"]
IN_BOTH_TOO = ["report_noisy_max.replace_one", "sparse", "above_threshold", "sparse_monotone"]


@pytest.mark.long
@for_each("name", IN_BOTH, nightly=IN_BOTH_TOO)
def test_the_catalogue_agrees_with_the_engines(name: str) -> None:
    """The exact loss that the catalogue states lies in the enclosure, and its verdict is that of the bracket."""
    entry = find(name)
    found = joined(entry).bracket
    loss = entry.true_loss(*entry.default_pair)
    assert loss is not None
    (exact,) = [each for each in found.uppers if each.arithmetic is Arithmetic.BALLS]
    assert exact.epsilon_lower is not None
    assert exact.epsilon_lower * (1.0 - 1e-9) <= loss <= exact.epsilon_upper * (1.0 + 1e-9)
    assert found.verdict.value == ("REFUTED" if entry.broken else "PROVED")
    assert loss <= found.ends[1] * (1.0 + 1e-9)


def test_a_loss_at_delta_is_enclosed() -> None:
    def count(data: float, rng: Any, sigma: float) -> float:
        return data + rng.normal(scale=sigma)  # type: ignore[no-any-return]

    claim = ApproximateDP(1.0, 1e-5)
    given: dict[str, Any] = {"claim": claim, "pair": AdjacentPair(0, 1)}
    low, high = joined(count, {"sigma": 3.731}, **given).bracket.ends
    truth = dpaudit.GaussianDP(1 / 3.731).epsilon_at(1e-5)
    assert low <= truth <= high * (1.0 + 1e-9)
    assert high - low < 1e-5
    assert joined(count, {"sigma": 3.0}, **given).bracket.verdict.value == "REFUTED"
    assert joined(count, {"sigma": 4.0}, **given).bracket.verdict.value == "OPEN"  # of other pairs


@pytest.mark.usefixtures("unwatched")
@for_each(
    ("mechanism", "claim", "verdict"),
    [
        (respond, PureDP(math.log(3.0)), "PROVED"),
        (respond, PureDP(1.0), "REFUTED"),
        (respond, ApproximateDP(0.5, 0.34), "PROVED"),  # delta(0.5) = 3/4 - e^0.5 / 4 = 0.3378...
        (respond, ApproximateDP(0.5, 0.33), "REFUTED"),
        (respond, dpaudit.GaussianDP(1.4), "PROVED"),
        (respond, dpaudit.GaussianDP(1.34), "OPEN"),
        (respond, dpaudit.ZeroConcentratedDP(0.54931), "PROVED"),
        (respond, dpaudit.ZeroConcentratedDP(0.54925), "OPEN"),  # the truth is ln(3) / 2 = 0.549306, at order 1
        (respond, dpaudit.TradeOffDP(lambda x: max(1.0 - 3.0 * x, (1.0 - x) / 3.0)), "PROVED"),
        (respond, dpaudit.TradeOffDP(lambda x: float(ndtr(ndtri(1.0 - x) - 1.34894))), "OPEN"),  # 0.250012 at 1/4
        (die, PureDP(50.0), "REFUTED"),
        (die, ApproximateDP(0.2, 1 / 6), "PROVED"),
        (die, ApproximateDP(0.2, 0.16), "REFUTED"),
    ],
)
def test_finite_randomness_is_replayed(mechanism: Any, claim: Any, verdict: str) -> None:
    found = joined(mechanism, claim=claim, domain=[0, 1], neighbours="all").bracket
    assert found.verdict.value == verdict
    assert found.pinned is isinstance(claim, PureDP | ApproximateDP)
    assert not found.reasons  # its source says nothing that the replay does not


@pytest.mark.usefixtures("unwatched")
def test_neighbours_may_come_once_and_paths_may_be_raised() -> None:
    given = ((one, 1 - one) for one in (0, 1))
    assert dpaudit.bracket(respond, 1.2, domain=iter((0, 1)), neighbours=given, runs=0).verdict.value == "PROVED"
    few, enough = (
        dpaudit.bracket(respond, 1.2, domain=(0, 1), neighbours="all", runs=0, most_paths=most) for most in (3, 4)
    )
    assert (few.verdict.value, enough.verdict.value) == ("OPEN", "PROVED")
    assert "raise most_paths" in str(few)


@pytest.mark.long
def test_sparse_as_printed_is_refuted_and_its_loss_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.verify.bracketing.upper.ANSWERS", 2)
    monkeypatch.setattr("dpaudit.verify.bracketing.upper.LENGTHS", (12,))
    printed, given = find("sparse.printed_halt").program, {"epsilon": 1.0, "threshold": 0.0, "c": 2}
    found = joined(printed, given, adjacency="all-differ", claim="epsilon", max_time_s=1e4).bracket
    low, high = found.ends
    assert (found.verdict, high) == (dpaudit.BracketVerdict.REFUTED, 1.5)
    assert low > 1.1


def test_the_worst_pair_of_a_replay_is_audited(asked: list[Question]) -> None:
    def spoiled(data: int, rng: Any) -> int:
        return respond(min(data, 1), rng) if data < 3 else 3

    near = {"domain": [0, 1, 2, 3], "neighbours": lambda one, other: other - one == 1}
    joined(spoiled, claim=PureDP(1.0), runs=1_000, **near)
    (spec,) = asked
    assert [pair.open() for pair in spec.pairs] == [(2, 3)]
    with pytest.raises(InvalidSpec, match="the pair must be neighbours of the domain"):
        joined(spoiled, pair=AdjacentPair(0, 3), runs=1_000, **near)
    assert joined(spoiled, pair=AdjacentPair(2, 1), **near).bracket.verdict.value == "PINNED"


def test_a_pair_pins_nothing_of_a_program_that_leaks_elsewhere() -> None:
    def late(q: list[float], rng: Any, eps: float) -> list[bool]:
        out = []
        for i, x in enumerate(q):
            if i > 1_000_000 and x > 0:
                out.append(True)
        return out

    for claim in (None, PureDP(0.0), dpaudit.GaussianDP(1.0)):
        found = joined(late, {"eps": 1}, claim=claim, pair=AdjacentPair([0, 0], [1, 1])).bracket
        assert found.ends == (0.0, 0.0)
        assert found.verdict is dpaudit.BracketVerdict.OPEN
        assert "both bounds agree within 1 % on this one pair; of other pairs they say nothing" in str(found)


# the audit


def test_a_gaussian_entry_has_both_halves_at_the_delta_of_its_audit(
    audited: Joined, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert audited.audit is not None
    entry = replace(find("gaussian_gdp"), adjacency=())  # nothing is proved of it
    at_delta = known_upper(entry, entry.pair, 1e-3)
    assert at_delta is not None
    certificate = replace(audited.audit.certificate, delta=1e-3)
    answer = replace(audited.audit, certificate=certificate, upper=at_delta)
    monkeypatch.setattr("dpaudit.auditing.runner.run_audit", lambda *_, **__: answer)
    found = joined(entry, runs=1_000).bracket
    assert found.ends[1] == pytest.approx(at_delta.epsilon_upper)


def test_without_a_claim_the_audit_refutes_nothing(audited: Joined, asked: list[Question]) -> None:
    assert audited.bracket.lower is not None
    assert audited.bracket.lower.refutes
    found = joined(counted, pair=AdjacentPair(0, 1), runs=2_000).bracket
    assert found.lower == replace(audited.bracket.lower, refutes=False)
    assert asked[0].claim == PureDP(0.0)
    assert found.verdict.value == "OPEN"


def test_an_audit_without_a_verdict_is_a_reason() -> None:
    def spoils(data: list[int]) -> int:
        data.append(1)
        return 0

    found = joined(spoils, claim=PureDP(1.0), pair=AdjacentPair([1, 2], [1]), runs=1_000).bracket
    assert found.lower is None
    assert any(reason.startswith("audit: ") for reason in found.reasons)


# what may not be concluded


@pytest.mark.parametrize(("error", "verdict"), [(UnsoundAudit, "OPEN"), (MissingRequirement, "PROVED")])
def test_beside_an_audit_that_broke_nothing_is_proved(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception], verdict: str
) -> None:
    """Every run raised, say: then what was proved is not what runs. Where a library is missing nothing ran at all."""

    def broken(*_: object, **__: object) -> Any:
        raise error("every run raised")

    monkeypatch.setattr("dpaudit.auditing.runner.run_audit", broken)
    found = joined(counted, claim=PureDP(1.0), adjacency="all-differ", pair=AdjacentPair(0, 1), runs=1_000)
    assert found.bracket.verdict.value == verdict
    assert any(reason.startswith("set aside, as the audit of what runs broke") for reason in found.bracket.reasons) == (
        verdict == "OPEN"
    )


def test_bounds_of_another_sensitivity_are_not_proved() -> None:
    """A proof is about answers that move by 1; with sensitivity 2 it is no proof of the claim."""

    def scaled(data: float, rng: Any, sensitivity: float = 1.0) -> float:
        return data + rng.laplace(scale=sensitivity)  # type: ignore[no-any-return]

    entry = find("report_noisy_max_general.counts_noise").with_parameters({"sensitivity": 2.0})
    assert target_of(entry).adjacency is None
    assert not any(each.label is Label.PROVED for each in joined(entry).bracket.uppers)
    with pytest.raises(InvalidSpec, match="give sensitivity = 1"):
        joined(entry, adjacency="all-differ")
    for bad in (2, "x", None, np.array([1, 1]), math.nan):
        with pytest.raises(InvalidSpec, match="give sensitivity = 1"):
            joined(scaled, {"sensitivity": bad}, adjacency="all-differ")

    def of_two(data: float, rng: Any, sensitivity: float = 2.0) -> float:
        return data + rng.laplace(scale=sensitivity)  # type: ignore[no-any-return]

    with pytest.raises(InvalidSpec, match=r"give sensitivity = 1, got 2.0"):
        joined(of_two, adjacency="all-differ")


class Method:
    """What looks like `counted` and is something else."""

    def __call__(self, data: float, rng: Any, eps: float = 1.0) -> float:
        return data

    method = __call__

    @staticmethod
    def static(data: float, rng: Any, eps: float = 1.0) -> float:
        return data + rng.laplace(scale=1 / eps)  # type: ignore[no-any-return]


class Partial(functools.partial):  # type: ignore[type-arg]
    """A partial that calls something else."""

    def __call__(self, data: float, rng: Any) -> float:
        return data


@functools.wraps(counted)
def wrapped(data: float, rng: Any, eps: float = 1.0) -> float:
    return data


def changed(data: float, rng: Any, eps: float = 1.0) -> float:
    return data + rng.laplace(scale=1 / eps)  # type: ignore[no-any-return]


changed.__defaults__ = (1e6,)


ON_NUMPYS = {"pair": AdjacentPair(np.array(0), np.int64(1))}
ONE_STEP, STEPS, NUMPYS = AdjacentPair(0, 1), AdjacentPair([0, 0], [1, 1]), AdjacentPair(np.zeros(2), np.ones(2))
HALF = functools.partial(counted, eps=0.5)
STATED = UpperBound(1.0, 0.0, Label.NUMERIC_UPPER, "counts", Arithmetic.FLOATS, "accounting")
FALSE = UpperBound(0.5, 0.0, Label.PROVED, "all", Arithmetic.REALS, "somebody")
ONE_MOVES = {"adjacency": "one-differs"}
TWO, NO_CUT_OFF, READING = {"claim": PureDP(2.0), "adjacency": None}, {"eps": 1, "T": 0}, "reading the source: "
EXCEEDS = "the lower bound exceeds the upper one"
VECTOR = 'counted is read for one number as data, the pair "pair" holds a list'
OTHERWISE: list[Any] = [
    Partial(counted),
    functools.partial(counted, 3),
    functools.lru_cache(counted),
]
OTHERWISE += [changed, lambda data, rng: data + rng.laplace(scale=1.0)]
OTHERWISE += [dpaudit.batched(lambda data, runs, rng: data + rng.laplace(size=runs))]
OTHERWISE += [dpaudit.built_by(lambda: counted), dpaudit.command(["true"])]
# the mechanism, its parameters, what is wanted of neighbours that all differ; the verdict, the upper end (None: there
# is no bound, ...: any), and words of the bracket
BRACKETS: dict[str, tuple[Any, dict[str, Any] | None, dict[str, Any], str, Any, str]] = {
    "a proof above the claim": ("c2_sparse_vector", ONE, {"claim": PureDP(0.4), "pair": STEPS}, "OPEN", 0.5, ""),
    "a fixed number": ("w5_sparse_unscaled", NO_CUT_OFF, {"claim": None, "answers": 2}, "OPEN", 1.0, "; 2 answers"),
    "half noise": ("w2_partial_sum_half_noise", {"eps": 1}, {**ONE_MOVES, "answers": 2}, "REFUTED", 2.0, ""),
    "no noise": ("w4_sparse_no_query_noise", NO_CUT_OFF, {"answers": 2}, "REFUTED", math.inf, ""),
    "refuted by fewer answers": ("w5_sparse_unscaled", NO_CUT_OFF, {"claim": PureDP(0.6)}, "REFUTED", ..., ""),
    # a program for one number runs on an array all the same, with one draw for all entries
    "lists": (counted, None, {"pair": STEPS}, "OPEN", None, VECTOR),
    "arrays": (counted, None, {"pair": NUMPYS}, "OPEN", ..., VECTOR),
    "a number": ("c2_sparse_vector", ONE, {"pair": ONE_STEP}, "OPEN", None, 'the pair "pair" holds one number'),
    "answers of one": (counted, None, {"answers": 10}, "OPEN", None, "so answers must be left out, got 10"),
    "one answer": (counted, None, {"answers": 1}, "PROVED", 1.0, "the data one number"),
    "a number from elsewhere": (counted, None, {**TWO, "uppers": (STATED,)}, "OPEN", 1.0, ""),
    "an exceeded one": (counted, None, {**TWO, "uppers": (FALSE,), "pair": ONE_STEP}, "OPEN", ..., EXCEEDS),
    "a partial": (HALF, {}, {"claim": None, "pair": ONE_STEP}, "PINNED", 0.5, ""),
    "defaults": (counted, {}, {"claim": None, "pair": ONE_STEP}, "PINNED", 1.0, ""),
    "as given": (counted, {"eps": 3.731}, {"claim": "eps", "pair": ONE_STEP}, "PROVED", 3.731, "eps = 3.731"),
    "numpy's": (counted, {"eps": np.float64(0.5)}, ON_NUMPYS, "PROVED", 0.5, ""),
    "an object": (Method(), None, {"pair": ONE_STEP, "claim": PureDP(1.0)}, "REFUTED", math.inf, ""),
    "a method": (Method().method, None, {"pair": ONE_STEP, "claim": PureDP(1.0)}, "REFUTED", math.inf, ""),
    "a static method": (Method.static, None, {"pair": ONE_STEP}, "PROVED", 1.0, ""),
    "a function named as another": (wrapped, None, {"pair": ONE_STEP}, "REFUTED", math.inf, ""),
    "a parameter missing": ("c2_sparse_vector", {"eps": 1}, {}, "OPEN", None, "no value for the parameter 'N'"),
    # numpy draws at an array of scales as it does at a number
    "a parameter in an array": ("c2_sparse_vector", {**ONE, "eps": np.array([1.0])}, {"pair": NUMPYS}, "OPEN", ..., ""),
    # of what is not what it reads, what runs has its loss: it gives out the data, it has other defaults, it is a lambda
    **{
        f"what runs in another way than it reads, {place}": (each, None, {"pair": ONE_STEP}, *ending, READING)
        for place, each in enumerate(OTHERWISE)
        for ending in [{0: ("REFUTED", math.inf), 3: ("REFUTED", ...), 4: ("OPEN", ...)}.get(place, ("OPEN", None))]
    },
    **{
        f"out of range: {bad}": ("c2_sparse_vector", {**ONE, **bad}, {"pair": AdjacentPair([0], [1])}, "OPEN", None, "")
        for bad in ({"eps": -1}, {"N": 0}, {"N": 0.5})
    },
}


class Hundred(float):
    """A float that multiplies as a hundred."""

    def __rmul__(self, other: Any) -> Any:
        return 100 * other


class Silent:
    """In the place of a generator: no noise at all."""

    @staticmethod
    def laplace(scale: float) -> float:
        return 0.0


def times(data: float, rng: Any, by: Any) -> float:
    return data * (by if isinstance(by, float) else by[0]) + rng.laplace(scale=1)  # type: ignore[no-any-return]


def each_noisy(data: Any, rng: Any) -> list[float]:
    return [answer + rng.laplace(scale=1) for answer in data]


OTHERWISE_GIVEN: dict[str, tuple[Any, dict[str, Any], dict[str, Any], str]] = {
    "a number of its own class": (times, {"by": Hundred(1)}, {}, "the type Hundred"),
    "one in a list": (times, {"by": [Hundred(1)]}, {}, "the type Hundred"),
    "one in an array": (times, {"by": np.array([Hundred(1)], dtype=object)}, {}, "the type Hundred"),
    "a narrow one in a list": (times, {"by": [np.uint8(1)]}, {}, "the type uint8"),
    "a generator": (counted, {"rng": Silent}, {}, "parameter 'rng'"),
    "a scale beyond doubles": (counted, {"eps": 1e308}, {}, "a number beyond doubles"),
    # two steps apart under the claim's own relation, which allows twice as much
    "other neighbours": (
        each_noisy,
        {},
        {"pair": STEPS, "claim": PureDP(0.5, Relation.ADD_OR_REMOVE_ONE), "adjacency": None},
        "not at distance 1",
    ),
    "more answers than a proof is about": (each_noisy, {}, {"answers": 10**6, "claim": None}, "more than 1000 answers"),
    # a loop over it is over its keys, and these are alike: the loss is 0
    "a mapping": (each_noisy, {}, {"pair": AdjacentPair({0: 0, 1: 0}, {0: 1, 1: 0}), "adjacency": None}, "mapping"),
}


@for_each("name", OTHERWISE_GIVEN)
def test_what_is_given_may_not_compute_otherwise(name: str) -> None:
    mechanism, parameters, wanted, words = OTHERWISE_GIVEN[name]
    found = joined(mechanism, parameters, **{"claim": PureDP(0.5), "adjacency": "all-differ", **wanted}).bracket
    assert (found.verdict.value, [each for each in found.uppers if each.label is Label.PROVED]) == ("OPEN", [])
    assert words in str(found)


@for_each("name", BRACKETS)
def test_what_is_concluded(name: str) -> None:
    mechanism, parameters, wanted, verdict, upper, words = BRACKETS[name]
    mechanism = program(mechanism) if isinstance(mechanism, str) else mechanism
    asked = {"claim": PureDP(1.0), "adjacency": "all-differ", **wanted}
    found = joined(mechanism, parameters, **asked).bracket
    assert (found.verdict.value, found.lower) == (verdict, None)
    assert (found.uppers == ()) if upper is None else (upper in (found.ends[1], ...))
    assert words in str(found)
    assert found.contradictory == (words == EXCEEDS)


def test_bounds_before_an_error_count_and_no_reason_is_said_twice() -> None:
    def method() -> Iterator[Bounds]:
        yield Bounds((STATED,))
        raise InvalidSpec("no more")

    known = Bounds(reasons=("another",)).attempt("method", method())
    assert (known.uppers, known.reasons) == ((STATED,), ("another", "method: no more"))
    again = known.attempt("another method", method())
    assert (again.uppers, again.reasons) == ((STATED, STATED), known.reasons)
    aside = again.set_aside(lambda bound: bound is STATED, "as a test")
    assert aside.uppers == ()
    assert [reason.startswith("set aside, as a test: ") for reason in aside.reasons[2:]] == [True, True]


def test_what_cannot_be_read_is_open_with_its_line() -> None:
    found = joined(find("permute_and_flip")).bracket
    assert found.verdict.value == "OPEN"
    assert any("line 2" in reason for reason in found.reasons)
    batched = dpaudit.batched(lambda data, runs, rng: rng.laplace(size=runs))
    assert "no source to read" in str(joined(batched, claim=PureDP(1.0), pair=AdjacentPair(0, 1)).bracket)


def test_missing_libraries_leave_the_other_half(asked: list[Question], monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(installed, "import_module", nothing)
    found = joined(find("above_threshold"), runs=1_000).bracket
    assert found.lower is not None
    assert asked
    assert not any(each.source == "randomness alignment" for each in found.uppers)
    assert any("the extra [verify] has it: python3 -m pip install " in reason for reason in found.reasons)


# the question


@for_each(
    ("wanted", "message"),
    [
        ({"adjacency": "nearby"}, "adjacency must be one of all-differ"),
        ({"adjacency": "all-differ", "pair": AdjacentPair([0, 0], [2, 0])}, "the pair is not adjacent"),
        ({"adjacency": "up", "pair": AdjacentPair([0, 0], [1, 1])}, "give 'monotone'"),
        ({"pair": AdjacentPair([0], [1], distance=2)}, "a bracket is about neighbours"),
        ({"adjacency": "all-differ", "pair": AdjacentPair([0, 0], [1, 1]), "answers": 3}, "answers must be those"),
        ({"adjacency": "all-differ", "answers": 0}, "answers must be at least 1"),
        ({"claim": "eps +"}, "claim"),
        ({"claim": "-eps"}, "claim must be at least 0"),
        ({"claim": "n*eps"}, "claim"),
        ({"adjacency": "all-differ", "pair": AdjacentPair([0], [10**400])}, "the answers move by 10000"),
        ({"adjacency": "all-differ", "pair": AdjacentPair(np.eye(2), np.ones((2, 2)))}, "must be a finite number"),
        ({"domain": [0, 1]}, "a replay needs both"),
        ({"domain": 2, "neighbours": "all"}, "domain must be the datasets"),
        ({"domain": [0, 1], "neighbours": "near"}, "neighbours must be a function"),
        ({"domain": [0, 1], "neighbours": "all", "adjacency": "up"}, "adjacency and answers are for query answers"),
        ({"confidence": 1.0}, "confidence must lie"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_wrong_questions(wanted: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        joined(program("c2_sparse_vector"), ONE, **wanted)


def test_runs_that_raise_are_not_those_of_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"claim": PureDP(1.0), "adjacency": "all-differ", "pair": AdjacentPair(0, 1), "runs": 400}
    for last, verdict in (("raised ValueError", "OPEN"), ("None", "PROVED")):
        ends = Ending("a value", (9, 8), (0, 0)), Ending(last, (0, 1), (0, 1))
        answer = example.changed(example.kept(), endings=ends)
        monkeypatch.setattr("dpaudit.auditing.runner.run_audit", lambda *_, answer=answer, **__: answer)
        found = joined(counted, **given).bracket
        assert found.verdict.value == verdict
        said = any("some runs raised ValueError, and what was proved never raises" in each for each in found.reasons)
        assert said == (verdict == "OPEN")


def test_numbers_that_wrap_around_are_not_those_of_a_proof() -> None:
    small = AdjacentPair(np.array([0, 1], dtype=np.uint8), np.array([1, 0], dtype=np.uint8))
    with pytest.raises(InvalidSpec, match="of the type uint8, whose sums wrap around"):
        joined(program("c2_sparse_vector"), ONE, adjacency="all-differ", pair=small)
    given = {**ONE, "N": np.int8(100)}
    found = joined(program("c2_sparse_vector"), given, claim=PureDP(1.0), adjacency="all-differ").bracket
    assert found.verdict.value == "OPEN"
    assert "the parameter N is of the type int8" in " ".join(found.reasons)


def test_numbers_are_taken_as_they_are_and_answers_by_their_place() -> None:
    """data[0] of the series is 2.0, and a program reads it so: its first answer is 1.0 by place alone."""
    assert rational("x", 0.1) == Fraction(0.1) != Fraction(1, 10)
    assert rational("x", 10**400) == 10**400
    assert exact_answers("x", 3) == (3,)
    for bad in (math.nan, math.inf, True, "1", None):
        with pytest.raises(InvalidSpec):
            rational("x", bad)
    series = pytest.importorskip("pandas").Series([1.0, 2.0], index=[1, 0])
    with pytest.raises(InvalidSpec, match="finds its answers by labels"):
        exact_answers("pair.first", series)
    assert exact_answers("pair.first", series.to_list()) == (1, 2)


def test_equal_answers_are_adjacent_and_far_ones_are_not() -> None:
    same = (Fraction(1), Fraction(2))
    for adjacency in WAYS:
        check_adjacent(same, same, adjacency)
        with pytest.raises(InvalidSpec):
            check_adjacent(same, (Fraction(4), Fraction(2)), adjacency)


# the catalogue


@for_each("entry", OF_ANSWERS, ids=lambda entry: entry.name)
def test_the_adjacency_of_an_entry_fits_its_pair(entry: Any) -> None:
    assert set(entry.adjacency) <= set(ADJACENCIES)
    word = target_of(entry).adjacency
    assert word in WAYS
    assert set(WAYS[word]) == set(entry.adjacency)
    check_adjacent(*(exact_answers("data", data) for data in entry.default_pair), word)
    assert any(
        word in entry.neighbours
        for word in ("direction", "rise", "apart", "by at most 1", "enter or leave", "differ by one")
    )
    for twin in entry.twins.values():
        assert twin.neighbours == entry.neighbours or twin.adjacency != entry.adjacency, twin.name


@for_each(
    "text",
    [
        "def f(q, rng):\n    return 0\nf = 1\n",
        "def f(q, rng):\n    return 0\ndef f(q, rng):\n    return 1\n",
        "def f(q, rng):\n    return 0\nfrom os import *\n",
        "def f(q, rng):\n    return 0\ndef g():\n    global f\n    f = 1\n",
        "if True:\n    def f(q, rng):\n        return 0\n",
        "def f(q, rng):\n    return 0\ndef g(x=(f := 1)):\n    pass\n",
        "def f(q, rng):\n    return 0\n@(f := len)\ndef g(x):\n    pass\n",
        "def f(q, rng):\n    return 0\nclass C(f := object):\n    pass\n",
        "def f(q, rng):\n    return 0\ntry:\n    1 / 0\nexcept ZeroDivisionError as f:\n    pass\n",
        "def f(q, rng):\n    return 0\nmatch {}:\n    case {**f}:\n        pass\n",
        "def f(q, rng, *, eps=1):\n    return 0\nf.__kwdefaults__['eps'] = 9\n",
        "def f(q, rng, eps=1):\n    return 0\nf.__defaults__ = (9,)\n",
        "def f(q, rng):\n    return " + "-" * 100_000 + "1\n",
        "",
    ],
)
def test_a_name_that_may_mean_another_function_is_not_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.py").write_text(text)
    with pytest.raises(InvalidSpec):
        source_of("m:f", str(tmp_path))


def test_a_source_is_found_as_python_would(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "_pytest").mkdir()  # no package without __init__.py where there is one with it
    places = ["m/__init__", "m", "m/inner", "time", "random", "pytest", "fast", "_pytest/mark"]  # some loaded elsewhere
    for number, place in enumerate(places):
        (tmp_path / f"{place}.py").write_text(f"def f(q, rng):\n    return {number}\n")
    (tmp_path / f"fast{EXTENSION_SUFFIXES[0]}").write_bytes(b"")  # the compiled one goes first
    (tmp_path / "latin.py").write_bytes("# coding: latin-1\ndef f(q, rng):\n    return 'é'\n".encode("latin-1"))
    for name, returned in (("m:f", "0"), ("m.inner:f", "2"), ("latin:f", "'é'")):
        assert f"return {returned}" in source_of(name, str(tmp_path))[0]
    bad = ["m", "m:", ":f", "time:f", "random:f", "pytest:f", "fast:f", "_pytest.mark:f", "no_such_module:f", "../m:f"]
    for name in bad:
        with pytest.raises(InvalidSpec):
            source_of(name, str(tmp_path))


def test_the_known_loss_of_an_entry() -> None:
    entry = find("laplace.half_noise")
    pair = entry.pair
    found = known_upper(entry, pair, 0.0)
    assert found is not None
    assert (found.epsilon_upper, found.label, found.arithmetic) == (2.0, Label.EXACT_PAIR, Arithmetic.FLOATS)
    assert known_upper(wrap(entry.reference), SealedPair.seal(pair), 0.0) == found
    assert known_upper(wrap("dpaudit.catalogue.additive:laplace.half_noise"), pair, 0.0) == found
    assert known_upper(wrap(lambda data: 0), pair, 0.0) is None
    assert known_upper(entry, AdjacentPair("a", "b"), 0.0) is None
    infinite = find("laplace.uniform_noise")
    assert known_upper(infinite, infinite.pair, 0.0).epsilon_upper == math.inf  # type: ignore[union-attr]
    gaussian = find("gaussian_gdp")
    at_delta = known_upper(gaussian, gaussian.pair, 1e-3)  # of a loss in another parameter
    assert at_delta is not None
    assert (at_delta.delta, at_delta.epsilon_lower) == (1e-3, None)
    assert at_delta.epsilon_upper == pytest.approx(dpaudit.GaussianDP(1.0).epsilon_at(1e-3))


def test_an_audit_of_an_entry_shows_the_bracket_of_the_pair(audited: Joined) -> None:
    known, result = find("laplace.half_noise"), audited.audit
    assert result is not None
    assert audited.bracket.lower is not None
    assert audited.bracket.lower.epsilon_lower == result.epsilon_lower
    assert 0.0 < result.epsilon_lower <= audited.bracket.ends[1]
    assert result.upper is not None
    assert result.bracket is not None
    assert result.bracket.ends[1] == known.true_loss(*known.default_pair)
    assert "\nbracket  " in str(result)
    pairs = [{**result.spec["pairs"][0], "distance": 2}]
    bound = UpperBound(1.0, 0.0, Label.PROVED, "all", Arithmetic.REALS, "x")
    apart = replace(result, spec={**result.spec, "pairs": pairs}, upper=bound)
    assert apart.bracket is None
    assert "the two are not joined" in str(apart.explain())


# the Python door


def test_the_python_door() -> None:
    sparse = program("c4_sparse_decreasing")
    found = dpaudit.bracket(sparse, 1.0, adjacency="monotone", parameters=ONE, answers=3, runs=0)
    assert isinstance(found, dpaudit.Bracket)
    assert found.verdict is dpaudit.BracketVerdict.PROVED
    for bad in (
        {"claim": -1.0}, {"claim": object()}, {"claim": PureDP}, {"claim": math.nan}, {"upper": 1.0}, {"upper": "x"},
        {"upper": [3]}, {"runs": -1}, {"parameters": ["eps"]}, {"pair": 3}, {"mechanism": None},
    ):  # fmt: skip
        with pytest.raises(InvalidSpec):
            dpaudit.bracket(**{"mechanism": sparse, "parameters": ONE, "runs": 0, **bad})  # type: ignore[arg-type]
