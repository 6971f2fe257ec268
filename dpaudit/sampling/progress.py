"""Who is told how far the work is; never what it found."""

from __future__ import annotations


class Progress:
    """Hears of the runs of each stage as they are done; this one keeps it to itself."""

    def begin(self, stage: str, runs: int) -> None:
        """A stage of `runs` runs begins."""

    def advance(self, runs: int) -> None:
        """So many more runs are done."""

    def end(self) -> None:
        """The stage is over."""


SILENT = Progress()
