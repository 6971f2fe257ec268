"""The upper bound beside the certified one: what the two say together."""

from __future__ import annotations

from dpaudit.results.answer import Answer
from dpaudit.results.wording.bracketed import sentences, upper_text
from dpaudit.results.wording.quoting import LONGEST_DATA, clean

APART = "that is a bound for neighbours, and these datasets are {} steps apart: the two are not joined"


def bracket_lines(result: Answer) -> tuple[str, ...]:
    """The bracket of the pair, or of all inputs where the upper bound holds for them; empty where there is none."""
    if result.upper is None:
        return ()
    joined = result.bracket
    if joined is None:
        lines: tuple[str, ...] = (upper_text(result.upper), APART.format(result.distance))
    else:
        lines = sentences(joined)
    return tuple(clean(line, 2 * LONGEST_DATA) for line in lines)
