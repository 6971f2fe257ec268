"""Numbers and text in sentences: rounded towards safety, harmless and short whatever a user wrote."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.base import numerals, quoting
from tests.cases import for_each
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
    ("text", "value", "shown"),
    [
        (numerals.p_text, 0.0, "1e-300"),
        (numerals.p_text, 5e-324, "1e-300"),
        (numerals.p_text, 3.21e-9, "3.3e-9"),
        (numerals.p_text, 9.99e-9, "1e-8"),
        (numerals.p_text, 0.0501, "0.051"),
        (numerals.p_text, 0.5994, "0.6"),
        (numerals.p_text, 1.0, "1"),
        (numerals.confidence_text, 0.999, "0.999"),
        (numerals.confidence_text, 0.5, "0.5"),
        (numerals.confidence_text, 1 - 0.01 / 13, "0.99923"),
        (numerals.confidence_text, 1 - 1e-9, "0.999999999"),
        (numerals.exact, 1.0, "1"),
        (numerals.exact, 1e-06, "1e-06"),
        (numerals.exact, 1 / 3, "0.3333333333333333"),
    ],
)
def test_numbers_read_well(text: Callable[[float], str], value: float, shown: str) -> None:
    assert text(value) == shown


@SAME
@given(st.floats(0.5, 1.0 - 1e-9))
def test_a_shown_confidence_never_exceeds_the_confidence(confidence: float) -> None:
    noise = Decimal("1e-12") * (1 - _decimal(confidence))  # what `error_probability` rounds away
    assert Decimal(numerals.confidence_text(confidence)) <= _decimal(confidence) + noise


# text that came from a user


@for_each("name", hostile.NAMES, ids=range(len(hostile.NAMES)))
def test_clean_text_is_one_printable_line_of_bounded_length(name: str) -> None:
    cleaned = quoting.clean(name)
    assert cleaned.isprintable()
    assert len(cleaned) <= 10 * quoting.LONGEST_NAME
    assert quoting.clean(cleaned, len(cleaned)) == cleaned


@for_each(
    "code",
    [
        *(*range(32), *range(127, 160), 0x61C, 0x200E, 0x200F),  # controls
        *(*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF, 0x2028, 0x2029, 0xE0041),  # that turn and hide
    ],
)
def test_characters_that_control_turn_or_hide_text_become_escapes(code: int) -> None:
    assert quoting.clean(f"a{chr(code)}b").encode("ascii").startswith(b"a\\")


def test_ordinary_text_is_left_alone_and_long_text_keeps_its_head_and_its_tail() -> None:
    assert quoting.clean("naïve 計數, half the noise") == "naïve 計數, half the noise"
    cleaned = quoting.clean("head" + "x" * 1_000 + "tail")
    assert len(cleaned) == quoting.LONGEST_NAME
    assert (cleaned[:4], cleaned[-4:]) == ("head", "tail")


@for_each("text", ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "  =1", "\uff1d1", "\n=1"])
def test_no_cell_is_a_formula(text: str) -> None:
    assert str(quoting.cell(text)).startswith("'")
    assert not str(quoting.cell(f"x{text}")).startswith("'")


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
        ([1, 1, 1, 1, "b", "b", "b", "b", [2, 2], None, True], "[1] * 4 + ['b'] * 4 + [[2, 2]] + [None] + [True]"),
        (list(range(500)), "not shown here (500 entries, digest 5d1f)"),
        (None, "not shown here (digest 5d1f)"),
    ],
)
def test_small_datasets_are_shown_whole_and_large_ones_named(value: object, shown: str) -> None:
    assert quoting.data_text({"digest": "5d1f", "value": value}) == shown
    assert "*" not in shown or eval(shown) == value
