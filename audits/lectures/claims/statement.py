"""A statement of the lecture notes, and what is true of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Verdict = Literal["right and tight", "right", "right and loose", "not provable as argued", "wrong", "question or trap"]
How = Literal["derived", "computed", "audited"]

CAUSES = {
    "second-term": (
        r"Advanced composition has two terms, $\sqrt{2 k \ln(1/\delta')}\,\varepsilon$ and "
        r"$k \varepsilon (e^{\varepsilon} - 1)$. The notes leave out the second one, and say so in a footnote: an "
        "approximation, taken as true for the rest of the presentation."
    )
}


@dataclass(frozen=True, slots=True)
class Truth:
    """What a check found: a verdict that follows from its numbers, and the true value in one or two sentences.

    `numbers` are the figures that the text rests on, by name.
    """

    verdict: Verdict
    text: str
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture beside a statement: `draw` fills one set of axes, `caption` says what is to be seen."""

    caption: str
    draw: Callable[[Axes], None]


@dataclass(frozen=True, slots=True)
class Statement:
    """A quantitative statement: where the notes make it, what it says in short, and the check that recomputes it.

    `verdict` is what is known; a check that finds another one fails the page. `audits` names the audits of
    `audits/lectures/` that bear on it, `how` the ways in which the true value was found.

    `quote` are the words of the notes, of several lecturers those of each, in the order of the places that `place` has
    between semicolons; and `context` those beside them that limit it: a footnote, a remark. `reading` says where the
    words can be read in more than one way, and which way is taken. `hangs_on` is the one sign that a charge hangs on,
    where the text that we have may have lost it. `cause` is the key in `CAUSES` of what several verdicts have in
    common, which is said once. Between dollar signs stands TeX, in `says` too.
    """

    name: str
    place: str
    says: str
    verdict: Verdict
    how: tuple[How, ...]
    check: Callable[[], Truth]
    audits: tuple[str, ...] = ()
    figure: Figure | None = None
    quote: str | tuple[str, ...] = ""
    context: str = ""
    reading: str = ""
    hangs_on: str = ""
    cause: str = ""

    @property
    def quotations(self) -> list[tuple[str, str]]:
        """Each quotation with its place."""
        if isinstance(self.quote, tuple):
            return list(zip(self.quote, self.place.split("; "), strict=True))
        return [(self.quote, self.place)] if self.quote else []
