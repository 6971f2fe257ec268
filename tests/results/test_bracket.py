"""The verdicts of a bracket: what refutes, what proves, what pins, and what never does."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import cycle, product
from typing import Any

import pytest

from dpaudit.account.bracketed import at_least, at_most, headline, nearest, sentences, upper_text
from dpaudit.claims import ApproximateDP, Claim, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.errors import InvalidSpec
from dpaudit.results.bounds import Arithmetic, Bracket, BracketVerdict, Label, LowerBound, UpperBound
from tests.cases import for_each

PROVED = UpperBound(1.0, 0.0, Label.PROVED, "all query answers", Arithmetic.REALS, "alignment")
PAIR = UpperBound(0.991, 0.0, Label.EXACT_PAIR, "one pair", Arithmetic.BALLS, "integrals", 0.9909)
FINITE = UpperBound(0.7, 0.0, Label.EXACT_FINITE, "a domain", Arithmetic.RATIONAL, "replay", 0.7)
NUMERIC = UpperBound(0.9, 0.0, Label.NUMERIC_UPPER, "the declared mechanism", Arithmetic.FLOATS, "accounting")
AUDITED = LowerBound(0.95, 0.0, 0.999, "one pair", "coin-flip")
REFUTING = replace(AUDITED, refutes=True)
INF, LOG3 = math.inf, math.log(3.0)
BELOW, ABOVE = math.nextafter(LOG3, 0.0), math.nextafter(LOG3, 9.0)
BESIDE = math.nextafter(1 / 6, 1.0)  # a delta that was rounded
FALSE = replace(PROVED, epsilon_upper=0.5)
SHOWS = replace(PROVED, epsilon_upper=2.3, delta=1e-6, shows=GaussianDP(0.5))


def bracket(claim: Claim | None, *bounds: LowerBound | UpperBound, **named: Any) -> Bracket:
    lower = next((each for each in bounds if isinstance(each, LowerBound)), None)
    return Bracket("m", claim, lower, tuple(each for each in bounds if isinstance(each, UpperBound)), **named)


def ends(bound: UpperBound, low: float | None, high: float, **changes: Any) -> UpperBound:
    return replace(bound, epsilon_lower=low, epsilon_upper=high, **changes)


AT = UpperBound(0.9, 1e-5, Label.PROVED, "all", Arithmetic.REALS, "x")
APPROXIMATE = ApproximateDP(1.0, 1e-5)
ZERO, SIXTH = ends(FINITE, 0.0, 0.0), ApproximateDP(0.0, 1 / 6)
ROUNDED = ends(FINITE, BELOW, ABOVE)


@for_each(
    ("verdict", "claim", "bounds"),
    [
        ("OPEN", PureDP(1.0), ()),
        ("OPEN", None, ()),
        # a bound for all inputs proves; a number in floats or one pair never does
        ("PROVED", PureDP(1.0), (PROVED,)),
        ("PROVED", PureDP(1.0), (FINITE,)),
        ("OPEN", PureDP(0.5), (PROVED,)),
        ("OPEN", PureDP(0.5), (replace(FINITE, epsilon_lower=None),)),
        ("OPEN", PureDP(5.0), (NUMERIC,)),
        ("OPEN", PureDP(5.0), (replace(PAIR, epsilon_lower=None),)),
        ("OPEN", PureDP(5.0), (replace(PROVED, arithmetic=Arithmetic.FLOATS),)),
        ("OPEN", PureDP(0.95), (PROVED, NUMERIC)),
        # an enclosed loss above the claim refutes, at its delta; floats and other labels never do
        ("REFUTED", PureDP(0.5), (PAIR,)),
        ("REFUTED", PureDP(0.5), (FINITE,)),
        ("OPEN", ApproximateDP(0.5, 1e-6), (PAIR,)),
        ("OPEN", PureDP(0.5), (replace(PAIR, arithmetic=Arithmetic.FLOATS),)),
        ("OPEN", PureDP(0.5), (replace(NUMERIC, epsilon_lower=0.9),)),
        ("OPEN", PureDP(0.5), (replace(PROVED, epsilon_lower=1.0),)),
        # the audit refutes by its p-value and not by its bound
        ("OPEN", PureDP(0.9), (AUDITED,)),
        ("REFUTED", PureDP(0.9), (REFUTING,)),
        ("REFUTED", PureDP(0.9), (REFUTING, PROVED, FINITE)),
        ("OPEN", None, (REFUTING, PROVED)),
        # precedence, and one per cent
        ("REFUTED", PureDP(0.98), (PROVED, PAIR)),
        ("PROVED", PureDP(1.0), (PROVED, PAIR)),
        ("PINNED", PureDP(0.995), (PROVED, PAIR)),
        ("PINNED", None, (PROVED, PAIR)),
        ("OPEN", PureDP(0.995), (PROVED, replace(PAIR, epsilon_lower=0.5))),
        ("PINNED", None, (ends(PAIR, 0.9901, 1.0), PROVED)),
        ("PINNED", None, (ends(PAIR, 1.0, 1.0), PROVED)),
        ("OPEN", None, (ends(PAIR, 0.98, 1.0), PROVED)),
        ("OPEN", None, (PROVED, replace(NUMERIC, epsilon_upper=0.995), replace(PAIR, epsilon_lower=0.986))),
        ("PINNED", None, (PROVED, replace(NUMERIC, epsilon_upper=0.995), replace(PAIR, epsilon_lower=0.9901))),
        # two infinite ends, and zero; an infinite loss refutes every claim without delta
        ("PINNED", None, (ends(FINITE, INF, INF),)),
        ("PINNED", None, (ZERO,)),
        ("OPEN", None, (ends(FINITE, 0.2, INF),)),
        ("REFUTED", PureDP(1e6), (ends(PAIR, INF, INF),)),
        ("OPEN", ApproximateDP(1e6, 1e-9), (ends(PAIR, INF, INF),)),
        *(
            ("OPEN", claim, (ends(FINITE, INF, INF),))  # at delta 0; the claim is about every delta
            for claim in (GaussianDP(0.1), GaussianDP(9.0), RenyiDP(2.0, 1.0), ZeroConcentratedDP(1.0))
        ),
        # claims and deltas are the numbers before they were rounded
        ("PROVED", PureDP(LOG3), (ROUNDED,)),
        ("PROVED", PureDP(BELOW), (ROUNDED,)),
        ("PROVED", PureDP(LOG3 + 1e-12), (ROUNDED,)),
        ("REFUTED", PureDP(LOG3 - 1e-12), (ROUNDED,)),
        ("PROVED", SIXTH, (replace(ZERO, delta=BESIDE),)),
        ("OPEN", SIXTH, (replace(ZERO, delta=1 / 6 + 1e-12),)),
        ("REFUTED", SIXTH, (ends(FINITE, INF, INF, delta=BESIDE),)),
        ("OPEN", PureDP(1.0), (replace(FINITE, delta=5e-324),)),
        # deltas count the right way
        ("PROVED", APPROXIMATE, (AT,)),
        ("PROVED", APPROXIMATE, (replace(AT, delta=1e-6),)),
        ("OPEN", APPROXIMATE, (replace(AT, delta=1e-4),)),
        # other forms are proved by what implies them: 1-DP is 1/2-zCDP
        ("PROVED", ZeroConcentratedDP(0.6), (PROVED,)),
        ("OPEN", ZeroConcentratedDP(0.4), (PROVED,)),
        ("PROVED", GaussianDP(1.3), (PROVED,)),
        ("OPEN", GaussianDP(1.2), (PROVED,)),
        ("OPEN", RenyiDP(2.0, 0.3), (PROVED, PAIR)),
        # what a bound shows in the claim's own form, unless the audit contradicts it there
        ("PROVED", GaussianDP(0.5), (SHOWS,)),
        ("OPEN", GaussianDP(0.49), (SHOWS,)),
        ("PROVED", ZeroConcentratedDP(0.13), (SHOWS,)),
        ("OPEN", GaussianDP(0.5), (SHOWS, replace(AUDITED, epsilon_lower=0.1, parameter="mu", lower=0.6))),
        ("OPEN", GaussianDP(0.5), (replace(SHOWS, arithmetic=Arithmetic.FLOATS),)),
        # a proof that is contradicted proves nothing: the claim may be true, but not by one that says too little
        ("OPEN", PureDP(1.0), (FALSE, PAIR)),
        ("OPEN", PureDP(1.0), (FALSE, AUDITED)),
        ("OPEN", PureDP(1.0), (replace(FINITE, epsilon_lower=None), AUDITED)),
        (
            "PROVED",  # what is found at a larger delta says nothing of delta 0, where the loss is no smaller
            APPROXIMATE,
            (replace(FALSE, delta=1e-2), PROVED, replace(AUDITED, delta=1e-3)),
        ),
    ],
)
def test_verdicts(verdict: str, claim: Claim | None, bounds: tuple[Any, ...]) -> None:
    found = bracket(claim, *bounds)
    assert found.verdict.value == verdict
    assert (found.refuting != ()) is (verdict == "REFUTED")
    if verdict == "OPEN" and isinstance(claim, GaussianDP | RenyiDP) and PROVED in bounds:
        assert "of another form" in str(found)


@for_each("claim", [None, PureDP(1.0), PureDP(0.995), ApproximateDP(1.0, 1e-5), GaussianDP(1.0)])
def test_only_what_is_proved_for_all_inputs_is_pinned(claim: Claim | None) -> None:
    """A pair that loses nothing, or as much as claimed, says nothing of other pairs, and floats prove nothing."""
    for low, high in ((0.0, 0.0), (0.99, 0.991), (INF, INF)):
        pair, floats = ends(PAIR, low, high), replace(NUMERIC, epsilon_upper=high)
        for bounds in ((pair,), (floats, pair), (floats,)):
            found = bracket(claim, replace(AUDITED, epsilon_lower=low), *bounds)
            assert found.verdict in (BracketVerdict.OPEN, BracketVerdict.REFUTED), (low, bounds)


@for_each(
    ("claim", "bounds", "expected", "contradictory"),
    [
        (PureDP(1.0), (), (0.0, INF), False),
        (APPROXIMATE, (AT, replace(AUDITED, delta=1e-6)), (0.0, 0.9), False),  # at a smaller delta the loss is larger
        (APPROXIMATE, (AT, replace(AUDITED, delta=1e-3)), (0.95, 0.9), True),
        (APPROXIMATE, (replace(AT, delta=1e-4),), (0.0, INF), False),
        (SIXTH, (replace(ZERO, delta=BESIDE),), (0.0, 0.0), False),
        (None, (replace(AUDITED, epsilon_lower=1.5), PROVED), (1.5, 1.0), True),
        (None, (replace(AUDITED, epsilon_lower=math.nextafter(1.0, 2.0)), PROVED), None, False),
        # a pair may lose less than the worst of the domain
        (None, (PAIR, ends(FINITE, INF, INF)), (INF, INF), False),
        (None, (PAIR, ends(FINITE, 2.0, 2.0)), (2.0, 2.0), False),
        # what a bound shows is held against a pair at every delta: 0.5-GDP has 1.35 at 1/1000
        (GaussianDP(0.5), (SHOWS, ends(PAIR, 1.4, 1.5, delta=1e-3)), None, True),
        (GaussianDP(0.5), (SHOWS, ends(PAIR, 1.3, 1.4, delta=1e-3)), None, False),
    ],
)
def test_the_ends_are_those_of_the_claim_and_a_contradiction_is_said(
    claim: Claim | None, bounds: tuple[Any, ...], expected: tuple[float, float] | None, contradictory: bool
) -> None:
    found = bracket(claim, *bounds)
    assert expected in (None, found.ends)
    assert found.contradictory is contradictory
    for text in (str(found), "".join(sentences(found))):
        assert ("exceeds the upper one" in text) is contradictory


def test_a_pair_is_not_the_mechanism() -> None:
    found = bracket(PureDP(1.0), PAIR)
    assert not found.for_all_inputs
    assert headline(found).startswith("OPEN  m: epsilon of one pair in [")
    assert "both bounds agree within 1 % on this one pair; of other pairs they say nothing" in str(found)
    assert bracket(PureDP(1.0), PAIR, replace(PROVED, epsilon_upper=INF)).upper == PAIR


def test_what_contradicts_a_bound_is_marked_where_it_stands() -> None:
    """Above the exact loss of its own pair, below what is proved for all: near each other, and one of them is wrong."""
    found = bracket(PureDP(0.999), replace(AUDITED, epsilon_lower=0.995), ends(PAIR, 0.97, 0.97), PROVED)
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
    proofs = bracket(PureDP(1.0), FALSE, PAIR, PROVED)
    assert proofs.proving == PROVED
    assert "one of the bounds is wrong" in str(proofs)
    assert "the audit erred" not in str(proofs)


@pytest.mark.long
def test_every_three_bounds_are_marked_where_two_contradict_each_other() -> None:
    """An audit, the loss of its pair and a third bound, at two deltas: against the definition, word for word."""
    audits = [replace(AUDITED, epsilon_lower=low, delta=at) for low in (0.0, 0.5, 0.995, 2.0) for at in (0.0, 1e-6)]
    pairs = [
        ends(PAIR, low, high, delta=delta, arithmetic=arithmetic)
        for low, high in ((0.0, 0.3), (0.97, 0.97), (1.0, 1.0), (INF, INF), (None, 0.5))
        for delta, arithmetic in product((0.0, 1e-6), (Arithmetic.BALLS, Arithmetic.FLOATS))
    ]
    thirds = [
        ends(bound, low, high, delta=delta)
        for bound, delta in product((PROVED, FINITE, NUMERIC), (0.0, 1e-6))
        for low, high in ((None, 0.0), (None, 1.0), (0.97, 0.98), (INF, INF))
        if low is None or bound is FINITE
    ]
    claims, seen = (None, PureDP(0.999), ApproximateDP(1.0, 1e-6)), {True: 0, False: 0}
    for (audit, pair, third), claim in zip(product(audits, pairs, thirds), cycle(claims), strict=False):
        found = bracket(claim, audit, pair, third)
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


def test_every_combination_keeps_the_contract() -> None:
    """Over all small combinations: REFUTED, PROVED and PINNED only with what they need."""
    every = [
        UpperBound(high, 0.0, label, "s", arithmetic, "x", low)
        for high, label, arithmetic, low in product((0.0, 0.5, 1.0, INF), Label, Arithmetic, (None, 0.0, 0.5, 1.0))
        if low is None or low <= high
    ]
    for bound, epsilon, refutes in product(every, (0.25, 0.5, 2.0), (None, False, True)):
        lower = None if refutes is None else replace(AUDITED, epsilon_lower=0.4, refutes=refutes)
        found = Bracket("m", PureDP(epsilon), lower, (bound,))
        exact = bound.label in (Label.EXACT_PAIR, Label.EXACT_FINITE)
        rigorous = exact and bound.arithmetic in (Arithmetic.RATIONAL, Arithmetic.BALLS)
        sure = bound.label in (Label.PROVED, Label.EXACT_FINITE) and bound.arithmetic is not Arithmetic.FLOATS
        beside = lower is None or bound.epsilon_upper >= lower.epsilon_lower
        if refutes or (rigorous and bound.epsilon_lower is not None and bound.epsilon_lower > epsilon):
            assert found.verdict is BracketVerdict.REFUTED
        elif sure and bound.epsilon_upper <= epsilon and beside:
            assert found.verdict is BracketVerdict.PROVED
        else:
            assert found.verdict is BracketVerdict.OPEN or (found.verdict is BracketVerdict.PINNED and sure)
        assert len(str(found).splitlines()) >= 2


def test_one_way_is_said_first_of_all() -> None:
    found = bracket(PureDP(1.0), PROVED, one_way="down")
    assert headline(found) == "PROVED  m: epsilon <= 1, claimed 1 (one way: down)"
    assert "holds for all query answers; one way alone, from the first dataset to the second: " in str(found)
    assert found.to_dict()["one_way"] == "down"
    assert "one way" not in str(replace(found, one_way=None))


def test_texts_of_users_stay_on_their_line() -> None:
    bad = "x\x1b[31m\u202e\r\nPROVED  m: epsilon = 0"
    bounds = tuple(replace(each, scope=bad, source=bad) for each in (PROVED, PAIR, FINITE, NUMERIC))
    found = Bracket(bad, PureDP(0.99), replace(AUDITED, scope=bad, source=bad), bounds, (bad,))
    assert len(str(found).splitlines()) == 9
    assert all(line.isprintable() for line in str(found).splitlines())


@for_each(
    ("bound", "change"),
    [
        *(
            (PROVED, change)
            for change in ({"label": "proved"}, {"arithmetic": "reals"}, {"scope": None}, {"source": 3})
        ),
        *((PROVED, change) for change in ({"epsilon_upper": "1"}, {"epsilon_upper": math.nan}, {"delta": None})),
        (PROVED, {"epsilon_lower": math.nan}),
        *((AUDITED, change) for change in ({"epsilon_lower": -1.0}, {"delta": 2.0}, {"confidence": 1.0})),
    ],
)
def test_impossible_bounds_are_refused(bound: Any, change: dict[str, object]) -> None:
    with pytest.raises(InvalidSpec, match=next(iter(change))):
        replace(bound, **change)


def test_words_round_outwards() -> None:
    assert (at_least(0.1234567), at_most(0.1234561)) == ("0.123456", "0.123457")
    assert (at_least(INF), at_most(INF), nearest(0.0)) == ("infinity", "infinity", "0")
    assert at_most(0.1 + 0.2) == "0.3"
    for value in (1.7499999, 1e-7 / 3, 123456.789, 5e-324, 3.14159265):
        assert float(at_least(value)) <= value <= float(at_most(value))


def test_the_account_names_label_scope_arithmetic_and_confidence_of_what_the_golden_one_has_not() -> None:
    text = str(bracket(PureDP(1.0), AUDITED, PROVED, PAIR, reasons=("exact replay: a continuous draw",)))
    assert "PROVED  m: epsilon in [0.9909, 1], claimed 1\n" in text
    assert "nothing from exact replay" in text.replace("  ", " ")
    assert "numeric-upper, no proof, for the declared mechanism" in upper_text(NUMERIC)
    assert "exact-finite, for a domain" in upper_text(FINITE)
    assert "no finite bound" in upper_text(replace(PROVED, epsilon_upper=INF))
    plain = bracket(None, AUDITED, ends(PAIR, None, INF), reasons=("why",)).to_dict()
    assert (plain["epsilon"], plain["verdict"], plain["reasons"]) == ({"lower": 0.95, "upper": "inf"}, "OPEN", ["why"])
    assert plain["lower"]["confidence"] == 0.999


@for_each(("claim", "own"), [(ZeroConcentratedDP(0.3), "rho"), (RenyiDP(2.0, 0.3), "epsilon")])
def test_a_lower_bound_in_the_own_parameter_alone_refutes(claim: Claim, own: str) -> None:
    found = bracket(claim, replace(REFUTING, epsilon_lower=0.0, parameter=own, lower=0.4))
    assert found.verdict is BracketVerdict.REFUTED
    assert f"{own} >= 0.4{claim.where}, claimed" in headline(found)
    assert f"lower    {own} >= 0.4{claim.where} (wrong" in str(found)


@for_each(("claim", "both_ways"), [(ZeroConcentratedDP(0.5), True), (RenyiDP(2.0, 1.0), True), (PureDP(1.0), None)])
def test_a_loss_of_one_way_says_nothing_of_other_forms(claim: Claim, both_ways: bool | None) -> None:
    assert bracket(claim, PROVED).verdict is BracketVerdict.PROVED
    one_way = bracket(claim, PROVED, one_way="down").verdict
    assert one_way is (BracketVerdict.OPEN if both_ways else BracketVerdict.PROVED)
