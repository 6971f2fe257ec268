"""The sentences about a result: rounded towards safety, harmless whatever a user wrote, complete."""

from __future__ import annotations

import ast
import builtins
import json
import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.account import findings, sections, statements
from dpaudit.account.sections import full_text, python_form, repeat
from dpaudit.account.statements import LIMITS, NO_BITS, NO_FIRSTS, headline, limits, statement
from dpaudit.account.suites import MISSED, REPRESENTATION, reported, suite_headline, suite_line, suite_question
from dpaudit.base import numerals, quoting
from dpaudit.certify import Certificate, CoinFlip, certify
from dpaudit.certify.certificate import divided
from dpaudit.claims import ApproximateDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP
from dpaudit.report import exchange, summary
from dpaudit.results.display import Verdict
from dpaudit.results.observations import Explored
from dpaudit.results.result import AuditResult, Finding
from dpaudit.results.stored.reading import either_of, result_of
from dpaudit.results.suite import SuiteEntry, SuiteResult
from dpaudit.sweeps import sentences
from tests.cases import for_each
from tests.golden import example
from tests.report import hostile

NOT_NEGATIVE = st.floats(min_value=0.0, max_value=1e9, allow_subnormal=False)
settings.register_profile("wording", derandomize=True, deadline=None)  # the same examples each time: no chance left
SAME = settings.get_profile("wording")


def _decimal(value: float) -> Decimal:
    return Decimal(repr(value))


# numbers


@for_each(
    ("value", "digits", "low", "high"),
    [
        (1.98765, 3, "1.987", "1.988"),
        (1.999999, 2, "1.99", "2.00"),
        (2.0, 2, "2.00", "2.00"),
        (0.3, 1, "0.3", "0.3"),
        (0.0, 2, "0.00", "0.00"),
        (1e-12, 2, "0.00", "0.01"),
        (1234567.891, 1, "1234567.8", "1234567.9"),
        (math.inf, 2, "inf", "inf"),
    ],
)
def test_down_goes_down_and_up_goes_up(value: float, digits: int, low: str, high: str) -> None:
    assert (numerals.down(value, digits), numerals.up(value, digits)) == (low, high)


@SAME
@given(NOT_NEGATIVE, st.integers(0, 12))
def test_down_and_up_enclose_the_number_within_one_last_digit(value: float, digits: int) -> None:
    low, high = Decimal(numerals.down(value, digits)), Decimal(numerals.up(value, digits))
    assert low <= _decimal(value) <= high
    assert high - low <= Decimal(1).scaleb(-digits)


@SAME
@given(NOT_NEGATIVE, st.integers(2, 8))
def test_a_shown_bound_never_exceeds_the_bound(value: float, digits: int) -> None:
    shown = Decimal(numerals.bound(value, digits=digits))
    assert 0 <= shown <= _decimal(value)
    assert shown >= _decimal(value) * (1 - Decimal(10) ** (1 - digits))


@SAME
@given(st.floats(0.01, 20.0), st.floats(1e-12, 1.0))
def test_a_shown_bound_above_the_claim_is_seen_to_be_above_it(claimed: float, more: float) -> None:
    value = claimed + more
    shown = Decimal(numerals.bound(value, above=claimed))
    assert _decimal(claimed) < shown <= _decimal(value) or value == claimed


@SAME
@given(st.floats(0.0, 1.0))
def test_a_shown_p_value_is_never_below_the_p_value_nor_zero(p: float) -> None:
    shown = Decimal(numerals.p_text(p))
    assert shown > 0
    assert shown >= _decimal(p)
    assert shown <= max(_decimal(p) * Decimal("1.1"), Decimal("1e-300"))


@for_each(
    ("p", "shown"),
    [(0.0, "1e-300"), (5e-324, "1e-300"), (3.21e-9, "3.3e-9"), (9.99e-9, "1e-8"), (0.001, "0.001"), (0.0501, "0.051"),
     (0.5994, "0.6"), (1.0, "1")],
)  # fmt: skip
def test_p_values_read_well(p: float, shown: str) -> None:
    assert numerals.p_text(p) == shown


@pytest.mark.parametrize(
    ("confidence", "shown"),
    [(0.999, "0.999"), (0.95, "0.95"), (0.5, "0.5"), (1 - 0.01 / 13, "0.99923"), (1 - 1e-9, "0.999999999")],
)
def test_confidences_read_well(confidence: float, shown: str) -> None:
    assert numerals.confidence_text(confidence) == shown


@SAME
@given(st.floats(0.5, 1.0 - 1e-9))
def test_a_shown_confidence_never_exceeds_the_confidence(confidence: float) -> None:
    noise = Decimal("1e-12") * (1 - _decimal(confidence))  # what `error_probability` rounds away
    assert Decimal(numerals.confidence_text(confidence)) <= _decimal(confidence) + noise


@pytest.mark.parametrize(
    ("value", "shown"), [(1.0, "1"), (0.1, "0.1"), (1e-06, "1e-06"), (1 / 3, "0.3333333333333333")]
)
def test_claims_are_shown_as_they_were_made(value: float, shown: str) -> None:
    assert numerals.exact(value) == shown


# text that came from a user


@for_each("name", hostile.NAMES, ids=range(len(hostile.NAMES)))
def test_clean_text_is_one_printable_line_of_bounded_length(name: str) -> None:
    cleaned = quoting.clean(name)
    assert cleaned.isprintable()
    assert len(cleaned) <= 10 * quoting.LONGEST_NAME
    assert quoting.clean(cleaned, len(cleaned)) == cleaned


@for_each("character", [chr(c) for c in (*range(32), *range(127, 160), 0x61C, 0x200E, 0x200F)])
def test_control_characters_become_escapes(character: str) -> None:
    assert quoting.clean(f"a{character}b").encode("ascii").startswith(b"a\\")


@for_each("code", [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF, 0x2028, 0x2029, 0xE0041])
def test_bidirectional_and_invisible_characters_become_escapes(code: int) -> None:
    assert quoting.clean(chr(code)).startswith("\\")


def test_ordinary_text_is_left_alone() -> None:
    assert quoting.clean("naïve 計數, half the noise") == "naïve 計數, half the noise"


def test_long_text_keeps_its_head_and_its_tail() -> None:
    cleaned = quoting.clean("head" + "x" * 1_000 + "tail")
    assert len(cleaned) == quoting.LONGEST_NAME
    assert cleaned.startswith("head")
    assert cleaned.endswith("tail")


@for_each("name", hostile.NAMES, ids=range(len(hostile.NAMES)))
def test_no_text_adds_a_line_or_hides_a_character(name: str) -> None:
    lines = full_text(hostile.result(name)).split("\n")
    assert len(lines) == len(full_text(hostile.result("plain")).split("\n"))
    assert all(line.isprintable() for line in lines)
    assert headline(hostile.result(name)).isprintable()
    assert all(suite_line(entry).isprintable() for entry in hostile.suite(name).entries)


# datasets


@for_each(
    ("value", "shown"),
    [
        (["a"] * 9, "['a'] * 9"),
        ([0] * 9 + [1], "[0] * 9 + [1]"),
        ([1, 2, 3], "[1, 2, 3]"),
        ((1, 2), "[1, 2]"),
        ({"x": None}, "{'x': None}"),
        ("text", "'text'"),
        (3.5, "3.5"),
    ],
)
def test_small_datasets_are_shown_whole(value: object, shown: str) -> None:
    assert quoting.data_text({"digest": "d", "value": value}) == shown


def test_a_shown_dataset_is_the_dataset() -> None:
    value = [1, 1, 1, 1, "b", "b", "b", "b", [2, 2], None, True]
    shown = quoting.data_text({"digest": "d", "value": value})
    assert "*" in shown
    assert eval(shown) == value


def test_large_datasets_are_named_by_size_and_digest() -> None:
    assert (
        quoting.data_text({"digest": "5d1f", "value": list(range(500))}) == "not shown here (500 entries, digest 5d1f)"
    )
    assert quoting.data_text({"digest": "5d1f", "value": None}) == "not shown here (digest 5d1f)"


# sentences


def test_the_headline_of_a_refutation() -> None:
    assert headline(example.result()) == ("REFUTED  noisy count: epsilon >= 1.96 with confidence 0.999, claimed 1")


def test_the_headline_of_an_audit_that_does_not_refute() -> None:
    assert headline(example.kept()) == (
        "not refuted  noisy count, whole noise: epsilon >= 0.982 with confidence 0.999, claimed 1"
    )


def _with_claim(claim: PureDP | ApproximateDP, distance: int = 1) -> object:
    made = example.result()
    pair = {**made.spec["pairs"][0], "distance": distance}
    audited = claim.at_distance(distance)
    return replace(
        made,
        spec={**made.spec, "claim": claim.to_dict(), "pairs": [pair]},
        claim=audited,
        certificate=certify(made.evidence, audited, 0.999),
    )


def test_an_epsilon_is_stated_at_its_delta() -> None:
    result = _with_claim(ApproximateDP(1.0, 1e-6))
    assert "epsilon >= 1.96 at delta 1e-06 with confidence 0.999, claimed 1" in headline(result)
    assert full_text(result).count(" at delta 1e-06 ") == 3  # headline, bound, cross-check


def test_a_pair_at_a_distance_is_held_against_what_the_claim_implies_there() -> None:
    result = _with_claim(PureDP(0.5), distance=3)
    text = full_text(result)
    assert "claimed 1.5" in headline(result)
    assert "PureDP(epsilon=0.5)" in text
    assert "for datasets 3 steps apart that is PureDP(epsilon=1.5)" in text
    assert "dpaudit.AdjacentPair(['a'] * 9, ['a'] * 8, distance=3)" in text
    assert "claim=dpaudit.PureDP(epsilon=0.5)" in text


def test_a_narrow_refutation_is_shown_with_the_digits_it_takes() -> None:
    made = example.result()
    narrow = replace(made, certificate=replace(made.certificate, lower=1.0000123, p_value=0.0009))
    assert "epsilon >= 1.00001 with" in headline(narrow)


def test_a_bound_of_zero_reads_as_zero() -> None:
    made = example.kept()
    evidence = CoinFlip(10, 10, 100, 100)
    empty = replace(made, evidence=evidence, certificate=certify(evidence, made.claim, 0.999))
    assert "epsilon >= 0 with" in headline(empty)
    assert "epsilon >= 0 by two" in full_text(empty)


def test_the_full_text_has_everything_a_stranger_needs() -> None:
    text = full_text(example.result())
    for needed in (
        "REFUTED",
        "PureDP(epsilon=1); relation add_or_remove_one",
        "counts:noisy_count",
        "output > 9.5",
        "['a'] * 9",
        "['a'] * 8",
        "82,289 of 449,701",
        "11,206 of 450,267",
        "p-value at most 1e-300",
        "epsilon >= 1.96273 with confidence 0.999",
        "epsilon >= 1.95405 by two Clopper-Pearson intervals (statsmodels)",
        "at most epsilon 11.09",
        "1.03 at 0.5",
        "899,968 of them to certify",
        "seed 0",
        "dpaudit.audit(",
        *LIMITS,
    ):
        assert needed in text


@for_each("error", [ImportError("numpy.dtype size changed"), AttributeError("no _ARRAY_API"), SystemExit(1)])
def test_a_broken_pandas_leaves_the_cross_check_out_and_nothing_else(error: BaseException) -> None:
    """statsmodels brings pandas, and the one line of it is all that it may cost: text, file and reading go on."""
    made, path, real = example.result(), "statsmodels.stats.proportion", builtins.__import__

    def broken(name: str, *rest: Any) -> Any:
        if name == path:
            raise error
        return real(name, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builtins, "__import__", broken)
        text, stored = full_text(made), made.to_json()
        assert made.cross_check is None
    assert f"not made: statsmodels cannot be loaded here ({type(error).__name__}: {error}); the verdict and" in text
    assert text.count("\n") == full_text(made).count("\n")
    assert json.loads(stored)["cross_check"] is None
    assert result_of(json.loads(stored)).verdict is made.verdict


def test_not_refuted_is_not_private_stands_in_every_such_text() -> None:
    assert "Not refuted is not private" in full_text(example.kept())
    assert "Not refuted is not private" not in full_text(example.result())


def test_the_sides_are_named_first_and_second_whichever_is_likelier() -> None:
    made = example.result()
    mirrored = replace(made, witness=replace(made.witness, p_side="second"))
    lines = [line.strip() for line in full_text(mirrored).split("\n")]
    assert any(line.startswith("evidence        first   11,206 of 450,267") for line in lines)
    assert any(line.startswith("second  82,289 of 449,701") for line in lines)


def test_what_could_not_be_seen_is_said() -> None:
    made = example.kept()
    evidence = CoinFlip(40, 12, 150, 150)
    small = replace(made, evidence=evidence, certificate=certify(evidence, made.claim, 0.999))
    assert "nothing is caught on an event of probability" in full_text(small)


def test_an_audit_that_cannot_be_repeated_bit_for_bit_says_so() -> None:
    assert "not reproducible" in full_text(example.result(reproducible=False))


def test_a_recorded_command_is_how_to_repeat() -> None:
    made = example.result(provenance={**example.PROVENANCE, "command": "dpaudit run counts.toml --seed 0"})
    assert repeat(made) == ("dpaudit run counts.toml --seed 0",)


def test_a_result_without_provenance_can_be_told() -> None:
    assert "REFUTED" in full_text(example.result(provenance={}))


@for_each(
    ("changes", "mechanism"),
    [
        ({}, "counts.noisy_count"),
        ({"kind": "batched"}, "dpaudit.batched(counts.noisy_count)"),
        ({"kind": "batched", "parameters": {"scale": 0.5}}, "dpaudit.batched(counts.noisy_count, scale=0.5)"),
        ({"kind": "built in the worker"}, "dpaudit.built_by(counts.noisy_count)"),
        ({"parameters": {"scale": 0.5}}, "functools.partial(counts.noisy_count, scale=0.5)"),
        ({"reference": None}, "noisy_count"),
        ({"reference": None, "name": "<lambda>"}, "mechanism"),
        ({"kind": "command", "parameters": {"command": ["python3", "m.py"]}}, "dpaudit.command(['python3', 'm.py'])"),
    ],
)
def test_the_python_form_is_python(changes: dict[str, object], mechanism: str) -> None:
    made = example.result()
    made = replace(made, spec={**made.spec, "mechanism": {**made.spec["mechanism"], **changes}})
    form = python_form(made)
    call = ast.parse("\n".join(form)).body[-1].value  # type: ignore[attr-defined]
    assert ast.unparse(call.func) == "dpaudit.audit"
    assert ast.unparse(call.args[0]) == mechanism
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    assert given == {
        "pair": "(['a'] * 9, ['a'] * 8)",
        "claim": "dpaudit.PureDP(epsilon=1.0, relation='add_or_remove_one')",
        "runs": "1000000",
        "confidence": "0.999",
        "seed": "0",
    }


def test_the_python_form_names_datasets_that_are_too_large_to_write() -> None:
    made = example.result()
    large = {**made.spec["pairs"][0], "first": {"digest": "d", "value": None}}
    form = python_form(replace(made, spec={**made.spec, "pairs": [large, large]}))
    assert "    pairs=[(first_1, second_1), (first_2, second_2)]," in form
    digests = f"d and {large['second']['digest']}"
    assert f"# first_1, second_1: your datasets with the digests {digests}, which the result does not hold" in form
    apart = {**large, "distance": 2, "sensitivity": 0.5}
    form = python_form(replace(made, spec={**made.spec, "pairs": [apart]}))
    assert "    pair=dpaudit.AdjacentPair(first, second, distance=2, sensitivity=0.5)," in form
    form = python_form(replace(made, spec={**made.spec, "pairs": [{**large, "user": "id"}]}))
    assert "    pair=dpaudit.AdjacentPair(first, second, user='id')," in form
    form = python_form(replace(made, spec={**made.spec, "pairs": [large] * 2_000}))
    assert "# pairs: your 2,000 pairs of datasets, too long to write here" in form
    assert len(form) < 12


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ((7_448, 7_392, 7_448, 7_392), "came no more often on the first dataset"),
        ((0, 0, 500, 500), "came no more often on the first dataset"),
        ((5_010, 4_990, 10_000, 10_000), "came more often on the first dataset"),
        ((4_990, 5_010, 10_000, 10_000), "came no more often on the first dataset"),
        ((900, 100, 1_000, 1_000), "is likelier on the first dataset"),
        ((1_000, 0, 1_000, 1_000), "is likelier on the first dataset"),
    ],
)
def test_a_side_is_called_likelier_only_where_the_counts_certify_it(counts: tuple[int, ...], says: str) -> None:
    made, evidence = example.result(), CoinFlip(*counts)
    result = replace(made, evidence=evidence, certificate=certify(evidence, made.claim, 0.999), trail=())
    for text in (full_text(result), "\n".join(sections.refuted_lines(result))):
        assert says in text
        assert ("is likelier" in text) == ("is likelier" in says)


def test_no_chance_is_stated_for_more_bounds_than_one_can_speak_of() -> None:
    def rows(number: int) -> list[dict[str, object]]:
        return [
            {"verdict": "REFUTED", "confidence": 0.95, "p_value": 0.05 / (number + place)} for place in range(number)
        ]

    assert sentences.chance(rows(1)) == "The bound is wrong with probability at most 0.05."
    assert sentences.chance(rows(3)) == (
        "Of 3 points each bound is wrong with probability at most 0.05; "
        "all hold together with confidence at least 0.85 (Bonferroni)."
    )
    for number, wrong, each in ((20, "1.0", "0.9975"), (24, "1.2", "0.997916667"), (400, "20.0", "0.999875")):
        assert sentences.chance(rows(number)) == (
            f"Of {number} points each bound is wrong with probability at most 0.05, so {wrong} wrong ones or fewer are "
            f"to be expected. That all hold together has no confidence; it would have 0.95 with {each} for each. "
            f"{number} of the {number} refutations hold together, with 0.95 (Holm)."
        )


# suites


def test_a_suite_line_for_each_ending() -> None:
    lines = [suite_line(entry) for entry in example.suite().entries]
    assert lines == [
        "as expected  REFUTED      noisy count: epsilon >= 1.96 with confidence 0.999, claimed 1; "
        "output above 9.5 in 18 % of the runs on the first dataset against 2.5 % on the second",
        "as expected  not refuted  noisy count, whole noise: epsilon >= 0.982 with confidence 0.999, claimed 1",
        "no verdict   sparse: the worker of shard 3 was lost twice",
    ]
    surprise = SuiteEntry("noisy count", Verdict.NOT_REFUTED, example.result())
    assert suite_line(surprise).startswith("UNEXPECTED   REFUTED      noisy count")
    assert ", expected not refuted; output above 9.5" in suite_line(surprise)
    failed = replace(surprise, expect=Verdict.REFUTED, error="the report could not be written", exit_code=2)
    assert suite_line(failed).endswith("; the report could not be written")


def test_the_headline_of_a_suite() -> None:
    assert suite_headline(example.suite()) == (
        "3 audits: 1 refuted, 1 not refuted, 1 without verdict; every verdict as expected"
    )
    alone = SuiteResult((SuiteEntry("noisy count", Verdict.NOT_REFUTED, example.result()),), 0.999)
    assert suite_headline(alone) == ("1 audit: 1 refuted, 0 not refuted, 0 without verdict; 1 verdict not as expected")
    assert suite_headline(SuiteResult((), 0.999)).startswith("0 audits: ")


@pytest.mark.parametrize("word", ["trial", "iteration", "passed", "safe"])
def test_words_that_are_not_ours_do_not_occur(word: str) -> None:
    suite = example.suite()
    texts = [full_text(entry.result) for entry in suite.entries if entry.result is not None]
    texts += [suite_headline(suite), *suite_question(suite)]
    assert not any(word in text.lower() for text in texts)


# what is said of bets, of bins and of several witnesses


def _finding(result: AuditResult) -> Finding:
    return Finding(result.claim, result.witness, result.evidence, result.certificate)


def test_the_best_of_several_witnesses_is_told_at_the_confidence_of_all() -> None:
    """Each has a part of the error probability; what is said of the best holds with that of all of them."""
    one = example.result()
    level = divided(one.spec["confidence"], 2)
    certificate = certify(one.evidence, one.claim, level)
    spec = {**one.spec, "certify_pairs": 2}
    both = replace(one, spec=spec, certificate=certificate, others=(_finding(replace(one, certificate=certificate)),))
    assert level == 0.9995
    text = full_text(both)
    assert "with confidence 0.999, claimed" in text
    assert "and 0.0005 or less refutes\n" in text
    assert "refuted with probability at most 0.001\n" in text
    assert "0.9995" not in text


def test_bets_that_refute_without_a_larger_number_say_that_the_truth_is_above_the_claim() -> None:
    certificate = Certificate(1.0, 0.4, 0.0004, 0.1, 0.999, "bets")
    assert statements.certified_bound(GaussianDP(1.0), certificate) == "mu > 1"
    assert statements.certified_bound(RenyiDP(2.0, 1.0), certificate) == "epsilon > 1 at order 2"
    # refuted somewhere on its curve: that says nothing of the curve at this delta
    profile = PrivacyProfile([(0.0, 0.2), (2.0, 0.0)])
    assert statements.certified_bound(profile, certificate) == "epsilon >= 1.00 at delta 0.1"


def test_a_bound_of_nothing_is_not_told_as_one() -> None:
    certificate = Certificate(1.2, 0.0, 0.0004, 0.1, 0.999, "bets")
    assert statements.implied(GaussianDP(1.0), certificate) == ()
    told = statements.implied(RenyiDP(2.0, 1.0), replace(certificate, epsilon_lower=0.5))
    assert told == ("whatever the mechanism is: epsilon >= 0.500000 at delta 0.1",)
    assert statements.implied(RenyiDP(2.0, 1.0), replace(certificate, epsilon_lower=None)) == ()


def test_bits_that_nothing_looked_at_stay_among_what_is_not_shown() -> None:
    """A spec may ask for them where the runs were bets, or had a process each: then no event on bits was sought."""
    asked = replace(example.result(), spec={**example.result().spec, "representation": True})
    assert NO_BITS in limits(asked)
    assert "the bits of the outputs were not looked at" in full_text(asked)
    searched = replace(asked, explored=(Explored("representation", "bits of floats", "nothing"),))
    assert NO_BITS not in limits(searched)
    assert "representation  no finding: no event on bits" in full_text(searched)


def test_first_calls_that_nothing_looked_at_are_among_what_is_not_shown() -> None:
    made = example.result()
    assert NO_FIRSTS in limits(made)
    for runs in (0, 16):  # without runs it is said why they were not looked at
        looked = replace(made, explored=(Explored("processes", "first calls", "in fresh processes", runs=runs),))
        assert (NO_FIRSTS in limits(looked)) is (runs == 0)
        assert NO_FIRSTS in limits(looked, made)


def test_a_long_curve_is_told_by_its_ends() -> None:
    points = [[float(number), 0.5] for number in range(200)]
    one = example.result()
    for few, shown in ((2, "[(0, 0.5), (1, 0.5)])"), (200, "(3, 0.5), ..., (196, 0.5), ")):
        stored = {"form": "PrivacyProfile", "curve": points[:few], "relation": None}
        text = full_text(replace(one, spec={**one.spec, "claim": stored}))
        assert "PrivacyProfile(curve=[(0, 0.5), " in text
        assert shown in text
        assert ("200 points])" in text) == (few == 200)


def test_a_suite_says_where_power_is_missing_and_where_bits_leak() -> None:
    one = replace(example.result(), spec={**example.result().spec, "detect": {"epsilon": 1e-9, "mass": 0.5}})
    assert one.power_reached is False
    entry = SuiteEntry("it", one.verdict, one, exit_code=4)
    assert suite_line(entry).endswith("; without the power that the spec demands")
    assert "every verdict as expected, 1 without the power demanded" in suite_headline(SuiteResult((entry,), 0.999))
    refuted = replace(one.certificate, p_value=1e-9)
    leaking = replace(example.result(), representation=replace(_finding(one), certificate=refuted))
    line = suite_line(SuiteEntry("it", one.verdict, leaking))
    assert line.startswith("as expected  REFUTED, by bits too  it: ")
    assert "; by bits: epsilon >= " in line


def _bits(of: AuditResult) -> AuditResult:
    """The same result with a finding on bits: that of the example which is refuted."""
    return replace(of, representation=example.result().main, spec={**of.spec, "representation": True})


def test_not_refuted_never_stands_alone_on_top_where_bits_refute() -> None:
    kept, result = example.kept(), _bits(example.kept())
    by_bits, by_values = f"REFUTED by bits  {kept.name}: epsilon >= ", f"not refuted by values: {statement(kept)}"
    line = headline(result)
    assert line.startswith(by_bits)
    assert line.endswith(f", claimed 1; {by_values}")
    first, second = full_text(result).splitlines()[:2]
    assert (first.startswith(by_bits), second) == (True, by_values)
    assert headline(_bits(example.result())).startswith("REFUTED, by bits too  ")
    entry = SuiteEntry("it", kept.verdict, result)
    assert "every verdict as expected, 1 finding on bits" in suite_headline(SuiteResult((entry,), 0.999))
    (found,) = reported(SuiteResult((entry,), 0.999))
    assert found.rule is REPRESENTATION


def test_a_known_finding_on_bits_is_expected_and_missed_where_there_is_none() -> None:
    kept, refuted = example.kept(), example.result()
    for result, expected in ((_bits(kept), True), (kept, False), (refuted, False), (_bits(refuted), False)):
        entry = SuiteEntry(result.name, Verdict.NOT_REFUTED, result, bits=True)
        suite = SuiteResult((entry,), 0.999)
        assert (entry.as_expected, suite.exit_code) == (expected, int(not expected))
        assert suite_line(entry).count(", expected REFUTED by bits") == int(not expected)
        rules = [each.rule for each in reported(suite)]
        assert (rules == []) is expected
        assert (MISSED in rules) is (result is kept)
        text = summary.summary_suite(suite)
        assert ("known finding on bits missed" in text) is (result is kept)
        assert either_of(json.loads(exchange.json_suite(suite))) == suite


def test_choices_are_listed_as_people_do() -> None:
    assert [findings._either(words) for words in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a or b", "a, b or c"]
