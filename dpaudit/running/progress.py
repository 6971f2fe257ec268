"""Who is told how far an audit is."""

import math


class Progress:
    """Hears of the runs of each stage as they are done; this one keeps it to itself."""

    def plan(self, runs: int, workers: int, left_s: float = math.inf) -> None:
        """An audit begins: so many runs in all its stages, on so many workers, in so many seconds at the most."""

    def speed(self, run_s: float, runs: int) -> None:
        """So many runs took so many seconds each."""

    def begin(self, stage: str, runs: int) -> None:
        """A stage of `runs` runs begins."""

    def advance(self, runs: int, *, stored: bool = False) -> None:
        """So many more runs are done; `stored` ones were made before."""

    def end(self) -> None:
        """The stage is over."""


SILENT = Progress()
