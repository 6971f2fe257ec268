"""The table of a sweep: a row a point of its grid; as CSV, DataFrame, figures and a page."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.errors import MissingRequirement
from dpaudit.results.files import write_text
from dpaudit.sweeps import page
from dpaudit.sweeps.rows import REALS, columns
from dpaudit.sweeps.sentences import sweep_lines

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sweep:
    """The table of a sweep: a row a point of the grid, in its order, each with all columns.

    `dpaudit.sweeps.COLUMNS` says what each column means. Every bound holds with the confidence of its row,
    for itself alone.
    """

    rows: tuple[Fields, ...]
    name: str = "sweep"

    def __add__(self, other: Sweep) -> Sweep:
        """Both tables as one, its points numbered anew; the name is the first one's."""
        rows = (*self.rows, *other.rows)
        return Sweep(tuple({**row, "point": number} for number, row in enumerate(rows, start=1)), self.name)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns, those of the mechanisms' parameters after the mechanism."""
        return columns(self.rows)

    @property
    def without_verdict(self) -> tuple[Fields, ...]:
        """The rows of points that could not be asked, or whose audit broke; `error` says why."""
        return tuple(row for row in self.rows if row["verdict"] is None)

    @property
    def exit_code(self) -> int:
        """0 where every point has a verdict, whichever; 3 where one has none; 5 for an empty table."""
        if not self.rows:
            return 5
        return 3 if self.without_verdict else 0

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Writes the table, cells that no spreadsheet takes for a formula; returns the path."""
        return write_text(path, page.csv_text(self.rows))

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame, numbers that are not known as NaN.

        Raises `MissingRequirement` where pandas is not installed.
        """
        try:
            pandas: Any = importlib.import_module("pandas")
        except ImportError:
            raise MissingRequirement("to_pandas needs pandas, which is not installed here; install pandas") from None
        return pandas.DataFrame(list(self.rows), columns=list(self.columns)).astype(dict.fromkeys(REALS, "float64"))

    def figure(self, kind: str = page.KINDS[0], path: str | os.PathLike[str] | None = None) -> Any:
        """A figure of the table, one of `dpaudit.sweeps.KINDS`; also written to `path` (.svg or .png) where given.

        Raises `InvalidSpec` for another kind, and where the table has nothing to draw.
        """
        return page.figure(self.rows, kind, path)

    def write(
        self, folder: str | os.PathLike[str], *, title: str | None = None, about: Iterable[str] = ()
    ) -> list[Path]:
        """Writes the table, its figures and a page that explains them into a folder; returns the paths.

        `about` are paragraphs of plain text that stand first on the page.
        """
        return page.write_page(self.rows, Path(folder), title or self.name, tuple(about))

    def __str__(self) -> str:
        return "\n".join(sweep_lines(self.rows))
