"""Typical outputs inside the event of a refutation, as people look at them first; of search runs, never evidence."""

from collections import Counter
from dataclasses import dataclass

from dpaudit.results.audited import Audited
from dpaudit.results.wording.advice import Diagnosis
from dpaudit.results.wording.cause import cause
from dpaudit.results.wording.diagnosis import diagnosis
from dpaudit.results.wording.quoting import LONGEST_DATA, clean

NONE_KEPT = "no outputs are kept: the claim is not refuted, or the result is of an older version"
LINE, LINES = 96, 3  # characters of outputs on one line; lines of longer outputs that a report shows


@dataclass(frozen=True, slots=True)
class Explanation:
    """What tells the datasets of a refutation apart: the cause, typical outputs of either dataset, the diagnosis.

    `first` and `second` are up to eight outputs inside the event, as text, spread over what the event looks at; of a
    dataset that has none inside, up to eight others. `hits` of `runs` search runs were inside it, on either dataset.
    All of it is empty where no outputs are kept.
    """

    cause: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    hits: tuple[int, int]
    runs: tuple[int, int]
    diagnosis: Diagnosis | None

    def lines(self, most: int | None = None) -> tuple[str, ...]:
        """The outputs line by line: short ones on one line, of long ones the first `most` of either dataset."""
        if not all(self.runs):
            return ()
        width = len("second") if all(self.hits) else len("second, outside")
        held = [f"{hits:,} of {runs:,}" for hits, runs in zip(self.hits, self.runs, strict=True)]
        lines = [f"inside the event were {held[0]} search runs on the first dataset, {held[1]} on the second"]
        for name, texts, hits in (("first", self.first, self.hits[0]), ("second", self.second, self.hits[1])):
            told = [
                clean(text, LONGEST_DATA) + (f" ({n} of these)" if n > 1 else "") for text, n in Counter(texts).items()
            ]
            if not told or sum(map(len, told)) <= LINE:
                told = [", ".join(told)]
            kept, name = told[:most], name if hits else f"{name}, outside"
            lines += [f"{name if j == 0 else '':<{width}} {text}" for j, text in enumerate(kept)]
            if len(kept) < len(told):
                lines.append(f"{'':<{width}} and {len(told) - len(kept)} more: result.explain()")
        return tuple(lines)

    def __str__(self) -> str:
        told = () if self.diagnosis is None else self.diagnosis.lines
        return "\n".join((self.cause, *self.lines(), *told) if all(self.runs) else (NONE_KEPT,))


def explanation(result: Audited) -> Explanation:
    """The explanation of a result, from what is stored in it: the same after it was saved and loaded.

    >>> from tests.golden import example
    >>> print(explanation(example.result()).lines()[1])
    first  9.51, 9.62, 9.84, 10.4
    """
    kept = result.typical
    inside, hits, runs = (((), ()), (0, 0), (0, 0)) if kept is None else (kept.inside, kept.hits, kept.runs)
    return Explanation(cause(result), *inside, hits, runs, diagnosis(result))
