"""A test over many cases fails where any of them fails, and says which."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import NIGHTLY, for_each, some


@for_each("part", [0.1, 0.2])
@for_each(("number", "square"), [(1, 1), (2, 4), (3, 9)])
def test_every_case_is_tried_and_fixtures_are_given(root: Path, number: int, square: int, part: float) -> None:
    assert root.is_dir()
    assert number**2 == square
    assert 0 < part < 1


def test_a_failure_names_every_case_that_failed_and_an_error_that_is_missing_is_one() -> None:
    tried = []

    @for_each("number", range(5), ids=lambda number: f"<{number}>")
    def even(number: int) -> None:
        tried.append(number)
        assert number % 2 == 0

    @for_each("text", ["1", "one", "2"], ids=["first", "second", "third"])
    def refused(text: str) -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            int(text)

    with pytest.raises(AssertionError) as caught:
        even()
    assert tried == [0, 1, 2, 3, 4]
    assert caught.value.__notes__ == ["failed for 2 of 5 cases: <1>; <3>"]
    with pytest.raises(pytest.fail.Exception) as missing:
        refused()
    assert missing.value.__notes__ == ["failed for 2 of 3 cases: first; third"]


def test_a_case_that_is_skipped_hides_no_failure() -> None:
    tried = []

    @for_each("number", [0, 1, 2])
    def over(number: int) -> None:
        tried.append(number)
        if number == 1:
            pytest.skip("not on a Tuesday")
        assert number not in wrong

    for wrong in ({0}, {2}):
        with pytest.raises(AssertionError) as caught:
            over()
        assert caught.value.__notes__ == [f"failed for 1 of 3 cases: {min(wrong)}"]
    wrong = set()
    with pytest.raises(pytest.skip.Exception, match="not on a Tuesday"):
        over()
    assert tried == 3 * [0, 1, 2]


def test_no_cases_are_no_test_and_every_case_has_a_name_where_they_are_listed() -> None:
    with pytest.raises(AssertionError, match="shows nothing"):
        for_each("number", [])
    for_each("number", [1, 2], ids=["one", "two", "three"], nightly=[3])
    for names in (["one"], ["one", "two"], ["one", "two", "three", "four"]):
        with pytest.raises(AssertionError, match="a case, a name"):
            for_each("number", [1, 2], ids=names, nightly=[3])


def test_some_of_many_cases_are_the_ends_and_what_lies_evenly_between() -> None:
    assert some("abc", 3) == some("abc", 7) == ["a", "b", "c"]
    assert some(range(101), 5) == (list(range(101)) if NIGHTLY else [0, 25, 50, 75, 100])
    assert some("abc", 1) == (["a", "b", "c"] if NIGHTLY else ["a"])
