"""Quotations: each of one lecturer and in the order of the notes, by `quotations.json`; tight is what was tested."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from audits.lectures.claims import collect, quotations
from audits.lectures.claims.items import NOTES
from audits.lectures.claims.quotations import digest, found, plain, said
from audits.lectures.claims.statement import Statement, Truth
from audits.lectures.claims.tightness import ENOUGH, TIGHT

EVERY = [each for statements in collect.topics().values() for each in statements]
TABLE = json.loads(quotations.FILE.read_text(encoding="utf-8"))


def test_every_quotation_has_one_place_and_keeps_the_order_of_the_notes() -> None:
    """The file was written from the notes, which are not here: a word that changes asks for a new look at them."""
    wrong = []
    for name, words, place in said(EVERY):
        entry = TABLE.get(digest(words), {"notes": "nowhere", "at": []})
        named = [notes for notes in NOTES if notes in place]
        rising = all(one < other for one, other in pairwise(entry["at"]))
        if entry["notes"] not in named or not rising or not entry["at"]:
            wrong.append(name)
    assert not wrong
    assert {digest(words) for _, words, _ in said(EVERY)} == set(TABLE)


def test_a_quotation_of_two_lecturers_is_two() -> None:
    for each in EVERY:
        lecturers = [[notes for notes in NOTES if notes in place] for _, place in each.quotations]
        if isinstance(each.quote, tuple):
            assert all(len(notes) == 1 for notes in lecturers), each.name
            assert len({notes[0] for notes in lecturers}) == len(lecturers), each.name


@pytest.mark.parametrize(
    ("words", "where"),
    [
        ("one thing ... another", ("000", [0, 11])),
        ("another ... one thing", None),  # the order reversed
        ("one thing ... elsewhere", None),  # of two lecturers
        (r"$\varepsilon \leq \delta$", ("001", [9])),
    ],
)
def test_the_search_keeps_to_one_text_and_its_order(words: str, where: object) -> None:
    texts = {"000": plain("One thing, and another."), "001": plain("Elsewhere ε≤ δ")}
    assert found(words, "notes 000 and 001", texts) == where


def test_tight_is_said_where_a_number_shows_it_and_nowhere_else() -> None:
    assert {each.name for each in EVERY if each.verdict == "right and tight"} == set(TIGHT)

    def made(name: str, verdict: str, numbers: dict[str, float]) -> collect.Checked:
        statement = Statement(name, "notes 000", "says", verdict, ("computed",), lambda: Truth(verdict, "."))  # type: ignore[arg-type]
        return collect.Checked(statement, Truth(verdict, ".", numbers), (), (), "file", 1)  # type: ignore[arg-type]

    assert made("replace-one", "right and tight", {"histogram": 2.0}).as_known
    assert not made("replace-one", "right and tight", {"histogram": 2.0 * ENOUGH - 1e-6}).as_known
    assert not made("larger-variance", "right and tight", {}).as_known
    assert made("larger-variance", "right", {}).as_known
    assert not made("replace-one", "right and loose", {"histogram": 2.0}).as_known


def test_a_charge_that_hangs_on_one_sign_says_so() -> None:
    hanging = {each.name for each in EVERY if each.hangs_on}
    assert hanging == {"The halting line of Sparse, as printed", "renyi-divergence-display", "root-of-k"}
    assert all(each.verdict == "wrong" for each in EVERY if each.hangs_on)
