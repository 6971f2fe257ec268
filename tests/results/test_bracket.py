"""The verdicts of a bracket: what refutes, what proves, what pins, and what never does."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import cycle, product

import pytest

from dpaudit.account.bracketed import at_least, at_most, headline, nearest, sentences, upper_text
from dpaudit.claims import ApproximateDP, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.errors import InvalidSpec
from dpaudit.results.bounds import Arithmetic, Bracket, BracketVerdict, Label, LowerBound, UpperBound
from tests.cases import for_each

PROVED = UpperBound(1.0, 0.0, Label.PROVED, "all query answers", Arithmetic.REALS, "alignment")
PAIR = UpperBound(0.991, 0.0, Label.EXACT_PAIR, "one pair", Arithmetic.BALLS, "integrals", 0.9909)
FINITE = UpperBound(0.7, 0.0, Label.EXACT_FINITE, "a domain", Arithmetic.RATIONAL, "replay", 0.7)
NUMERIC = UpperBound(0.9, 0.0, Label.NUMERIC_UPPER, "the declared mechanism", Arithmetic.FLOATS, "accounting")
AUDITED = LowerBound(0.95, 0.0, 0.999, "one pair", "coin-flip")


def verdict(claim: object, *uppers: UpperBound, lower: LowerBound | None = None) -> str:
    return Bracket("m", claim, lower, uppers).verdict.value  # type: ignore[arg-type]


def test_nothing_is_open() -> None:
    assert verdict(PureDP(1.0)) == "OPEN"
    assert verdict(None) == "OPEN"
    assert Bracket("m", PureDP(1.0)).ends == (0.0, math.inf)


@pytest.mark.parametrize("bound", [PROVED, FINITE])
def test_a_bound_for_all_inputs_proves(bound: UpperBound) -> None:
    assert verdict(PureDP(1.0), bound) == "PROVED"
    assert verdict(PureDP(0.5), replace(bound, epsilon_lower=None)) == "OPEN"


@pytest.mark.parametrize("bound", [NUMERIC, PAIR, replace(PROVED, arithmetic=Arithmetic.FLOATS)])
def test_a_number_in_floats_or_one_pair_never_proves(bound: UpperBound) -> None:
    assert verdict(PureDP(5.0), replace(bound, epsilon_lower=None)) == "OPEN"


def test_numeric_bounds_prove_nothing_however_labelled_their_neighbours_are() -> None:
    assert Bracket("m", PureDP(0.95), None, (PROVED, NUMERIC)).proving is None


@pytest.mark.parametrize("bound", [PAIR, FINITE])
def test_an_enclosed_loss_above_the_claim_refutes(bound: UpperBound) -> None:
    assert verdict(PureDP(0.5), bound) == "REFUTED"


def test_an_exact_loss_at_delta_zero_does_not_refute_an_approximate_claim() -> None:
    assert Bracket("m", ApproximateDP(0.5, 1e-6), None, (PAIR,)).refuting == ()


@pytest.mark.parametrize(
    "bound",
    [
        replace(PAIR, arithmetic=Arithmetic.FLOATS),
        replace(NUMERIC, epsilon_lower=0.9),
        replace(PROVED, epsilon_lower=1.0),
    ],
)
def test_lower_ends_in_floats_or_of_other_labels_never_refute(bound: UpperBound) -> None:
    assert Bracket("m", PureDP(0.5), None, (bound,)).refuting == ()


def test_the_audit_refutes_by_its_p_value_and_not_by_its_bound() -> None:
    assert verdict(PureDP(0.9), lower=AUDITED) == "OPEN"
    assert verdict(PureDP(0.9), lower=replace(AUDITED, refutes=True)) == "REFUTED"
    assert verdict(PureDP(0.9), PROVED, FINITE, lower=replace(AUDITED, refutes=True)) == "REFUTED"


def test_without_a_claim_nothing_is_refuted_or_proved() -> None:
    assert verdict(None, PROVED, lower=replace(AUDITED, refutes=True)) == "OPEN"
    assert verdict(None, PROVED, PAIR) == "PINNED"


def test_precedence() -> None:
    assert verdict(PureDP(0.98), PROVED, PAIR) == "REFUTED"
    assert verdict(PureDP(1.0), PROVED, PAIR) == "PROVED"
    assert verdict(PureDP(0.995), PROVED, PAIR) == "PINNED"
    assert verdict(PureDP(0.995), PROVED, replace(PAIR, epsilon_lower=0.5)) == "OPEN"


@pytest.mark.parametrize(("low", "pinned"), [(0.9901, True), (0.98, False), (1.0, True)])
def test_pinned_is_one_per_cent(low: float, pinned: bool) -> None:
    bracket = Bracket("m", None, None, (replace(PAIR, epsilon_lower=low, epsilon_upper=1.0), PROVED))
    assert bracket.pinned is pinned


def test_two_infinite_ends_are_pinned_and_zero_too() -> None:
    infinite = replace(FINITE, epsilon_lower=math.inf, epsilon_upper=math.inf)
    assert verdict(None, infinite) == "PINNED"
    assert verdict(None, replace(FINITE, epsilon_lower=0.0, epsilon_upper=0.0)) == "PINNED"
    assert verdict(None, replace(FINITE, epsilon_lower=0.2, epsilon_upper=math.inf)) == "OPEN"
    for claim in (GaussianDP(0.1), GaussianDP(9.0), RenyiDP(2.0, 1.0), ZeroConcentratedDP(1.0)):
        assert verdict(claim, infinite) == "OPEN"  # at delta 0; the claim is about every delta


@pytest.mark.parametrize("claim", [None, PureDP(1.0), PureDP(0.995), ApproximateDP(1.0, 1e-5), GaussianDP(1.0)])
def test_only_what_is_proved_for_all_inputs_is_pinned(claim: object) -> None:
    """A pair that loses nothing, or as much as claimed, says nothing of other pairs, and floats prove nothing."""
    for low, high in ((0.0, 0.0), (0.99, 0.991), (math.inf, math.inf)):
        pair = replace(PAIR, epsilon_lower=low, epsilon_upper=high)
        near = replace(AUDITED, epsilon_lower=low)
        for bounds in ((pair,), (replace(NUMERIC, epsilon_upper=high), pair), (replace(NUMERIC, epsilon_upper=high),)):
            found = Bracket("m", claim, near, bounds)  # type: ignore[arg-type]
            assert found.verdict in (BracketVerdict.OPEN, BracketVerdict.REFUTED), (low, bounds)
    for low, expected in ((0.986, "OPEN"), (0.9901, "PINNED")):  # 0.986 is within 1 % of 0.995, which is no proof
        assert (
            verdict(None, PROVED, replace(NUMERIC, epsilon_upper=0.995), replace(PAIR, epsilon_lower=low)) == expected
        )


def test_an_infinite_loss_refutes_every_claim_without_delta() -> None:
    bound = replace(PAIR, epsilon_lower=math.inf, epsilon_upper=math.inf)
    assert verdict(PureDP(1e6), bound) == "REFUTED"
    assert verdict(ApproximateDP(1e6, 1e-9), bound) == "OPEN"
    assert verdict(RenyiDP(2.0, 1.0), bound) != "REFUTED"
    assert verdict(GaussianDP(1.0), bound) != "REFUTED"


def test_a_claim_is_the_number_before_it_was_rounded() -> None:
    exact = math.log(3.0)
    ends = math.nextafter(exact, 0.0), math.nextafter(exact, 9.0)
    finite = replace(FINITE, epsilon_lower=ends[0], epsilon_upper=ends[1])
    assert verdict(PureDP(exact), finite) == "PROVED"
    assert verdict(PureDP(ends[0]), finite) == "PROVED"
    assert verdict(PureDP(exact - 1e-12), finite) == "REFUTED"
    assert verdict(PureDP(exact + 1e-12), finite) == "PROVED"


def test_deltas_count_the_right_way() -> None:
    claim = ApproximateDP(1.0, 1e-5)
    at_claim = UpperBound(0.9, 1e-5, Label.PROVED, "all", Arithmetic.REALS, "x")
    assert verdict(claim, at_claim) == "PROVED"
    assert verdict(claim, replace(at_claim, delta=1e-6)) == "PROVED"
    assert verdict(claim, replace(at_claim, delta=1e-4)) == "OPEN"
    assert Bracket("m", claim, None, (replace(at_claim, delta=1e-4),)).upper is None
    low = replace(AUDITED, delta=1e-6)  # at a smaller delta the loss is larger: it says nothing at 1e-5
    assert Bracket("m", claim, low, (at_claim,)).ends == (0.0, 0.9)
    assert Bracket("m", claim, replace(low, delta=1e-3), (at_claim,)).ends == (0.95, 0.9)
    assert Bracket("m", claim, replace(low, delta=1e-3), (at_claim,)).contradictory


def test_other_forms_are_proved_by_what_implies_them() -> None:
    assert verdict(ZeroConcentratedDP(0.6), PROVED) == "PROVED"  # 1-DP is 1/2-zCDP
    assert verdict(ZeroConcentratedDP(0.4), PROVED) == "OPEN"
    assert verdict(GaussianDP(1.3), PROVED) == "PROVED"
    assert verdict(GaussianDP(1.2), PROVED) == "OPEN"


def test_a_pair_is_not_the_mechanism() -> None:
    bracket = Bracket("m", PureDP(1.0), None, (PAIR,))
    assert bracket.verdict is BracketVerdict.OPEN
    assert not bracket.for_all_inputs
    assert headline(bracket).startswith("OPEN  m: epsilon of one pair in [")
    assert "both bounds agree within 1 % on this one pair; of other pairs they say nothing" in str(bracket)
    assert Bracket("m", PureDP(1.0), None, (PAIR, replace(PROVED, epsilon_upper=math.inf))).upper == PAIR


def test_a_contradiction_is_said_and_pins_nothing() -> None:
    bracket = Bracket("m", None, replace(AUDITED, epsilon_lower=1.5), (PROVED,))
    assert bracket.contradictory
    assert bracket.verdict is BracketVerdict.OPEN
    assert "exceeds the upper one" in str(bracket)
    assert "exceeds the upper one" in "".join(sentences(bracket))
    hair = replace(AUDITED, epsilon_lower=math.nextafter(1.0, 2.0))
    assert not Bracket("m", None, hair, (PROVED,)).contradictory


def test_a_proof_that_is_contradicted_proves_nothing() -> None:
    """The claim may be true, but not by a proof that says too little, whoever wrote it."""
    false = replace(PROVED, epsilon_upper=0.5)
    assert verdict(PureDP(1.0), false, PAIR) == "OPEN"
    assert verdict(PureDP(1.0), false, lower=AUDITED) == "OPEN"
    assert verdict(PureDP(1.0), replace(FINITE, epsilon_lower=None), lower=AUDITED) == "OPEN"
    found = Bracket("m", PureDP(1.0), None, (false, PAIR, PROVED))
    assert found.proving == PROVED
    assert "one of the bounds is wrong" in str(found)
    assert "the audit erred" not in str(found)
    at_delta = replace(AUDITED, delta=1e-3)  # says nothing of delta 0, where the loss is no smaller
    assert verdict(ApproximateDP(1.0, 1e-5), replace(false, delta=1e-2), PROVED, lower=at_delta) == "PROVED"


def test_an_audit_beside_an_exact_loss_that_it_exceeds_pins_nothing() -> None:
    """Above the exact loss of its own pair, below what is proved for all: near each other, and one of them is wrong."""
    exact = replace(PAIR, epsilon_lower=0.97, epsilon_upper=0.97)
    found = Bracket("m", PureDP(0.999), replace(AUDITED, epsilon_lower=0.995), (exact, PROVED))
    assert (found.verdict, found.ends) == (BracketVerdict.OPEN, (0.995, 1.0))
    assert headline(found) == "OPEN  m: epsilon in [0.995, 1], beside a contradiction, claimed 0.999"
    said = dict(line.split(maxsplit=1) for line in str(found).splitlines()[1:])
    assert said["lower"].endswith("coin-flip; exceeds an upper bound")
    assert said["exact"].endswith("integrals; exceeded by a lower bound")
    assert said["upper"].endswith("alignment; beside a contradiction")
    assert "either the audit erred" in said["beware"]
    assert found.to_dict()["contradictory"]
    assert found.to_frame()["contradictory"].tolist() == [True]
    assert "beside a contradiction" in "".join(sentences(found))


def test_a_pair_may_lose_less_than_the_worst_of_the_domain() -> None:
    worst = replace(FINITE, epsilon_lower=math.inf, epsilon_upper=math.inf)
    for finite in (worst, replace(FINITE, epsilon_lower=2.0, epsilon_upper=2.0)):
        found = Bracket("m", None, None, (PAIR, finite))
        assert not found.contradictory
        assert found.ends == (finite.epsilon_lower, finite.epsilon_upper)
        assert found.verdict is BracketVerdict.PINNED


@pytest.mark.long
def test_every_three_bounds_are_marked_where_two_contradict_each_other() -> None:
    """An audit, the loss of its pair and a third bound, at two deltas: against the definition, word for word."""
    audits = [
        replace(AUDITED, epsilon_lower=low, delta=delta) for low in (0.0, 0.5, 0.995, 2.0) for delta in (0.0, 1e-6)
    ]
    pairs = [
        replace(PAIR, epsilon_lower=low, epsilon_upper=high, delta=delta, arithmetic=arithmetic)
        for low, high in ((0.0, 0.3), (0.97, 0.97), (1.0, 1.0), (math.inf, math.inf), (None, 0.5))
        for delta, arithmetic in product((0.0, 1e-6), (Arithmetic.BALLS, Arithmetic.FLOATS))
    ]
    thirds = [
        replace(bound, epsilon_upper=high, epsilon_lower=low, delta=delta)
        for bound, delta in product((PROVED, FINITE, NUMERIC), (0.0, 1e-6))
        for low, high in ((None, 0.0), (None, 1.0), (0.97, 0.98), (math.inf, math.inf))
        if low is None or bound is FINITE
    ]
    claims, seen = (None, PureDP(0.999), ApproximateDP(1.0, 1e-6)), {True: 0, False: 0}
    for (audit, pair, third), claim in zip(product(audits, pairs, thirds), cycle(claims), strict=False):
        found = Bracket("m", claim, audit, (pair, third))
        sure = pair.arithmetic is Arithmetic.BALLS and pair.epsilon_lower is not None
        lows = [(audit.epsilon_lower, audit.delta)] + ([(pair.epsilon_lower, pair.delta)] if sure else [])
        wrong = any(low > high.epsilon_upper and high.delta <= at for low, at in lows for high in (pair, third))
        assert found.contradictory is wrong, found
        seen[wrong] += 1
        head, *said = str(found).splitlines()
        lines = [line for line in said if line.startswith(("lower ", "exact ", "upper "))]
        marked = [line for line in lines if re.search("; (beside a|exceed(s|ed by) an? )", line)]
        assert len(lines) == 3
        assert len(marked) == (3 if wrong else 0)
        assert any(line.startswith("beware") for line in said) is wrong
        assert ("beside a contradiction" in head or " and yet " in head) is wrong
        if wrong:
            assert not head.startswith("PINNED")
            assert "within 1 %" not in said[0]
            proof = found.proving
            assert proof is None or all(low <= proof.epsilon_upper for low, at in lows if at >= proof.delta)
    assert min(seen.values()) > 500


def test_delta_is_a_number_that_was_rounded_too() -> None:
    claim, beside = ApproximateDP(0.0, 1 / 6), math.nextafter(1 / 6, 1.0)
    finite = replace(FINITE, delta=beside, epsilon_upper=0.0, epsilon_lower=0.0)
    assert verdict(claim, finite) == "PROVED"
    assert Bracket("m", claim, None, (finite,)).ends == (0.0, 0.0)
    assert verdict(claim, replace(finite, delta=1 / 6 + 1e-12)) == "OPEN"
    assert verdict(claim, replace(finite, epsilon_upper=math.inf, epsilon_lower=math.inf)) == "REFUTED"
    assert verdict(PureDP(1.0), replace(FINITE, delta=5e-324)) == "OPEN"


def test_one_way_is_said_first_of_all() -> None:
    found = Bracket("m", PureDP(1.0), None, (PROVED,), one_way="down")
    assert headline(found) == "PROVED  m: epsilon <= 1, claimed 1 (one way: down)"
    assert "holds for all query answers; one way alone, from the first dataset to the second: " in str(found)
    assert found.to_dict()["one_way"] == "down"
    assert "one way" not in str(replace(found, one_way=None))


@for_each(
    ("claim", "uppers", "is_open"),
    [
        (PureDP(1.0), (PROVED,), False),
        (PureDP(0.5), (PAIR,), False),
        (PureDP(0.995), (PROVED, PAIR), False),
        (PureDP(0.995), (PAIR,), True),
        (PureDP(0.5), (PROVED,), True),
        (GaussianDP(1.0), (PROVED, PAIR), True),
        (RenyiDP(2.0, 0.3), (PROVED, PAIR), True),
        (None, (PAIR,), True),
        (None, (PROVED,), True),
        (None, (PROVED, PAIR), False),
    ],
)
def test_what_stays_open(claim: object, uppers: tuple[UpperBound, ...], is_open: bool) -> None:
    found = Bracket("m", claim, None, uppers)  # type: ignore[arg-type]
    assert (found.verdict is BracketVerdict.OPEN) is is_open
    assert ("of another form" in str(found)) is isinstance(claim, GaussianDP | RenyiDP)


def test_texts_of_users_stay_on_their_line() -> None:
    bad = "x\x1b[31m\u202e\r\nPROVED  m: epsilon = 0"
    bounds = tuple(replace(each, scope=bad, source=bad) for each in (PROVED, PAIR, FINITE, NUMERIC))
    found = Bracket(bad, PureDP(0.99), replace(AUDITED, scope=bad, source=bad), bounds, (bad,))
    assert len(str(found).splitlines()) == 9
    assert all(line.isprintable() for line in str(found).splitlines())


@for_each(
    "change",
    [
        {"label": "proved"},
        {"arithmetic": "reals"},
        {"scope": None},
        {"source": 3},
        {"epsilon_upper": "1"},
        {"epsilon_upper": math.nan},
        {"epsilon_lower": math.nan},
        {"delta": None},
    ],
)
def test_impossible_upper_bounds_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidSpec, match=next(iter(change))):
        replace(PROVED, **change)  # type: ignore[arg-type]


def test_every_combination_keeps_the_contract() -> None:
    """Over all small combinations: REFUTED, PROVED and PINNED only with what they need."""
    numbers = (0.0, 0.5, 1.0, math.inf)
    every = [
        UpperBound(high, 0.0, label, "s", arithmetic, "x", low)
        for high, label, arithmetic, low in product(numbers, Label, Arithmetic, (None, 0.0, 0.5, 1.0))
        if low is None or low <= high
    ]
    for bound, epsilon, refutes in product(every, (0.25, 0.5, 2.0), (None, False, True)):
        lower = None if refutes is None else replace(AUDITED, epsilon_lower=0.4, refutes=refutes)
        found = Bracket("m", PureDP(epsilon), lower, (bound,))
        rigorous = bound.arithmetic in (Arithmetic.RATIONAL, Arithmetic.BALLS)
        exact = bound.label in (Label.EXACT_PAIR, Label.EXACT_FINITE) and rigorous
        refutable = exact and bound.epsilon_lower is not None and bound.epsilon_lower > epsilon
        provable = (
            bound.label in (Label.PROVED, Label.EXACT_FINITE)
            and bound.arithmetic is not Arithmetic.FLOATS
            and bound.epsilon_upper <= epsilon
            and (lower is None or bound.epsilon_upper >= lower.epsilon_lower)
        )
        if refutes or refutable:
            assert found.verdict is BracketVerdict.REFUTED
        elif provable:
            assert found.verdict is BracketVerdict.PROVED
        else:
            sure = bound.label in (Label.PROVED, Label.EXACT_FINITE) and bound.arithmetic is not Arithmetic.FLOATS
            assert found.verdict is BracketVerdict.OPEN or (found.verdict is BracketVerdict.PINNED and sure)
        assert len(str(found).splitlines()) >= 2


def test_words_round_outwards() -> None:
    assert (at_least(0.1234567), at_most(0.1234561)) == ("0.123456", "0.123457")
    assert (at_least(math.inf), at_most(math.inf), nearest(0.0)) == ("infinity", "infinity", "0")
    assert at_most(0.1 + 0.2) == "0.3"
    for value in (1.7499999, 1e-7 / 3, 123456.789, 5e-324, 3.14159265):
        assert float(at_least(value)) <= value <= float(at_most(value))


def test_the_account_names_label_scope_arithmetic_and_confidence() -> None:
    text = str(Bracket("m", PureDP(1.0), AUDITED, (PROVED, PAIR), ("exact replay: a continuous draw",)))
    for part in (
        "PROVED  m: epsilon in [0.9909, 1], claimed 1\n",
        "holds for all query answers\n",
        "with confidence 0.999; statistical, for one pair: one pair; coin-flip\n",
        "proved, for all query answers; over the real numbers; alignment\n",
        "exact-pair, for one pair: one pair; enclosed in balls; integrals\n",
    ):
        assert part in text
    assert "numeric-upper, no proof, for the declared mechanism" in upper_text(NUMERIC)
    assert "exact-finite, for a domain" in upper_text(FINITE)
    assert "nothing from exact replay" in text.replace("  ", " ")
    assert "no finite bound" in upper_text(replace(PROVED, epsilon_upper=math.inf))


def test_a_bracket_as_plain_values() -> None:
    bracket = Bracket("m", None, AUDITED, (replace(PAIR, epsilon_upper=math.inf, epsilon_lower=None),), ("why",))
    plain = bracket.to_dict()
    assert plain["epsilon"] == {"lower": 0.95, "upper": "inf"}
    assert plain["verdict"] == "OPEN"
    assert plain["reasons"] == ["why"]
    assert plain["lower"]["confidence"] == 0.999


@pytest.mark.parametrize("change", [{"epsilon_lower": -1.0}, {"delta": 2.0}, {"confidence": 1.0}])
def test_impossible_lower_bounds_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(InvalidSpec):
        replace(AUDITED, **change)
