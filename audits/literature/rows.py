"""The rows of the published benchmark: the mechanisms and pairs that `benchmark.toml` states, in their order."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dpaudit import AdjacentPair, stock_pairs
from dpaudit.catalogue import Entry, find

SPEC = Path(__file__).parent / "benchmark.toml"
DISCRETE = frozenset(
    (
        "TruncGeo",
        "NoisyMax1",
        "NoisyMax2",
        "SVT1",
        "SVT2",
        "SVT4",
        "SVT5",
        "SVT6",
        "OneTimeRAPPOR",
        "RAPPOR",
        "Snapping",
    )
)


@dataclass(frozen=True, slots=True)
class Row:
    """A mechanism of the benchmark with its parameters and every pair that is stated for it."""

    name: str  # as published
    entry: Entry
    pairs: tuple[AdjacentPair, ...]
    discrete: bool  # outputs recur: a table of them is all there is

    @property
    def claim(self) -> float:
        """The epsilon that the mechanism promises."""
        return float(self.entry.claim().epsilon_at(0.0))

    @property
    def exact(self) -> float:
        """The exact loss of the pair where it is largest, either way; may be infinite. `ValueError` if unknown."""
        losses = [self.entry.true_loss(pair.first, pair.second) for pair in self.pairs]
        if None in losses:
            raise ValueError(f"{self.name}: the exact loss of a pair is not known")
        return max(loss for loss in losses if loss is not None)


@cache
def rows() -> tuple[Row, ...]:
    """All of them.

    >>> [row.name for row in rows()][:3], len(rows())
    (['Laplace', 'TruncGeo', 'NoisyHist1'], 22)
    """
    return tuple(map(_row, tomllib.loads(SPEC.read_text(encoding="utf-8"))["audit"]))


def row(name: str) -> Row:
    """The row of this published name; raises `KeyError`.

    >>> row("SVT5").entry.name
    'sparse_lyu_1.lyu_5'
    """
    return {each.name: each for each in rows()}[name]


def _row(table: dict[str, Any]) -> Row:
    entry = find(table["mechanism"].partition(":")[2]).with_parameters(table["parameters"])
    if "pattern" in table:
        pairs = stock_pairs(table["pattern"], **table["pattern_parameters"])
    else:
        pairs = tuple(AdjacentPair(**pair) for pair in table["pairs"])
    return Row(table["name"], entry, pairs, table["name"] in DISCRETE)
