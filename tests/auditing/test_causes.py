"""Libraries' mistakes in small: the sentence on the cause holds the words of a maintainer; each sound twin is kept.

The audits are seeded; a sound twin is refuted by chance with probability at most 1e-6.
"""

from __future__ import annotations

from typing import Any

import pytest

import dpaudit
from dpaudit.account.first import cause
from tests.auditing import libraries
from tests.cases import for_each

THREE, TWO = [1.0, 2.0, 3.0], [1.0, 2.0]
RUNS = 1600
TWINS: dict[tuple[int, str], dpaudit.AuditResult] = {}


AGES = ([50.0, 52.25, 55.0], [50.0, 55.0])


@pytest.mark.long
@for_each(
    ("broken", "sound", "pair", "words"),
    [
        (libraries.median, libraries.known_place, AGES, "against 0 % on the first; 55 is a value of the data"),
        (
            libraries.largest,
            None,
            (AGES[0], [50.0, 52.25]),
            "55 on the first, 52.25 on the second; 55 and 52.25 are values of",
        ),
        (
            libraries.letter,
            libraries.any_letter,
            (["a", "b", "c"], ["a", "b"]),
            "against 0 % on the second; 'c' is a value of the data",
        ),
        (
            libraries.records,
            None,
            ([{"age": 31}, {"age": 47}], [{"age": 31}]),
            " on the first; 31 is a value of the data",
        ),
        (
            libraries.raising(libraries.count, RuntimeError("not fitted")),
            libraries.count,
            (THREE, TWO),
            "raises RuntimeError, 'not fitted' (",
        ),
        (
            libraries.not_a_number,
            None,
            (THREE, TWO),
            "output['sum'] is NaN in 100 % of the runs on the second dataset against 0",
        ),
        (
            libraries.categories,
            libraries.all_categories,
            (["a", "b", "c"], ["a", "b"]),
            "the key 'c' is missing in 100 % of the runs",
        ),
        (
            libraries.by_row,
            libraries.laplaces,
            (THREE, TWO),
            "length of output is 2 in 100 % of the runs on the second dataset",
        ),
        (libraries.subset, libraries.sorted_subset, (0, 1), "the first entry, output[0], is "),
        (libraries.somewhere, None, (0, 1), "position of the first 'mark' in output "),
        (libraries.some_words, None, (0, 1), "'N' is in output in "),
        (libraries.one_sided, None, (THREE, TWO), "output at most "),
        (
            libraries.typed,
            None,
            (THREE, TWO),
            "type of output is int in 100 % of the runs on the second dataset against 0 %",
        ),
        (libraries.member, None, (0, 1), "output is one of "),
        (libraries.summed, None, (0.0, 1.0), "sum(output) at most "),
        (libraries.both, None, (0, 1), "the first entry, output[0], is 'b' and output[1] above "),
        (libraries.many, None, (0.0, 1.0), "score of "),
    ],
    nightly=[
        (
            libraries.raising(libraries.fits, ValueError("one row")),
            libraries.fits,
            (THREE, TWO),
            "raises ValueError, 'one row' (",
        ),
        (
            libraries.nothing,
            libraries.count,
            (THREE, TWO),
            "gives None in 100 % of the runs on the second dataset against 0 %",
        ),
        (libraries.texts, libraries.sorted_texts, (0, 1), "position of the first 'c1' in output is 1 to 3 in "),
        (libraries.whole_number, None, (0, 1), "output at most 1 in "),
    ],
)
def test_a_cause_is_told_in_words_of_a_maintainer(
    broken: libraries.Run, sound: libraries.Run | None, pair: Any, words: str
) -> None:
    settings = {"pair": pair, "epsilon": 1.0, "runs": RUNS, "n_jobs": 1, "seed": 5}
    found = dpaudit.audit(broken, **settings)
    told = cause(found)
    assert words in told, told
    assert ("of the data" in told) == ("value" in words)
    assert (found.plain is not None) == ("score" in told)
    if found.plain is not None:
        assert "; mostly: " in told
        assert "which alone shows epsilon >= " in told
    if sound is not None:
        key = id(sound), str(pair)  # a twin of several is audited once
        if key not in TWINS:
            TWINS[key] = dpaudit.audit(sound, confidence=1 - 1e-6, **settings)
        assert cause(TWINS[key]) == ""
