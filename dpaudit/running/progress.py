"""Reports how far an audit is."""

import math


class Progress:
    """Receives the runs of each stage as they are done; this one shows nothing."""

    def plan(self, runs: int, workers: int, left_s: float = math.inf) -> None:
        """An audit begins: the runs of all its stages, its workers, and its time limit in seconds."""

    def begin(self, stage: str, runs: int) -> None:
        """A stage of `runs` runs begins."""

    def advance(self, runs: int, seconds: float = 0.0, *, stored: bool = False) -> None:
        """`runs` more runs are done; they took a worker so many seconds; `stored` ones were made by an earlier call."""

    def end(self) -> None:
        """The stage is over."""


SILENT = Progress()
