"""Both output distributions where the witness looks, as a result keeps them: to look at, never evidence."""

from __future__ import annotations

from dataclasses import dataclass

Counts = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Histogram:
    """Both output distributions on the witness's feature, in search runs: to look at, never evidence.

    `feature` is its printed name. With `edges` there are len(edges) + 1 counts a side: at most the first edge, then the
    half-open bins (low, high], then above the last edge. With `values` (few different ones) a count for each. Tokens,
    what is no number, are counted by `labels`, the last of them perhaps `others`. `runs_first` and `runs_second` are
    all runs looked at.
    """

    feature: str
    edges: tuple[float, ...]
    values: tuple[float, ...]
    first: Counts
    second: Counts
    labels: tuple[str, ...]
    tokens_first: Counts
    tokens_second: Counts
    runs_first: int
    runs_second: int
