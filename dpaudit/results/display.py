"""What every result has: a verdict, a line at a prompt, a page in print, a page in a notebook, figures, a table.

The modules that make pages and figures import results, not the other way: `presented()` is the module that the package
names. There are two verdicts and no third word: "not refuted" is not "private".
"""

from enum import Enum
from typing import Any

from dpaudit.base.presenter import presented


class Displayed:
    """A result that somebody holds, at a prompt or in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {presented().line(self)}>"

    def __str__(self) -> str:
        return str(presented().text(self))

    def explain(self) -> Any:
        """The whole account, section by section; printed, all of it."""
        return presented().account(self)

    def _repr_html_(self) -> str:
        """The result for a notebook: no script, nothing from a network, no style for what stands beside it."""
        return str(presented().html(self))

    def plot(self, kind: str | None = None, *, size: str | float | None = None, style: str = "screen") -> Any:
        """A figure of the result, that of this name, or the first there is: a notebook shows it, `save(path)` keeps it.

        `size` is a width for print: "column" (3.33 inches), "text" (7 inches), both with text of 8 to 9 points, or a
        number of inches. The `style` "paper" has a serif font and no ground. Raises `InvalidSpec` with the names of its
        figures where it has none of that name.
        """
        return presented().plot(self, kind, size, style)

    def to_frame(self) -> Any:
        """The result as a pandas DataFrame, numbers that are not known as NaN; of results and suites a row an audit.

        The columns are those of the CSV. Raises `MissingRequirement` where pandas is not installed.
        """
        return presented().frame(self)


class Verdict(Enum):
    """What an audit says of a claim; derived from the certificate, never stored beside it."""

    REFUTED = "REFUTED"
    NOT_REFUTED = "NOT_REFUTED"
