"""Laplace noise of scale 1 as SQL writes it: the inverse of its distribution at duckdb's random().

duckdb promises nothing of privacy: the claims are the textbook's. It owns its randomness.
"""

from __future__ import annotations

from typing import Any

import duckdb

import dpaudit

NOISE = "SELECT random() - 0.5 AS u FROM range(?)"
NOISY = "SELECT ?::DOUBLE - sign(u) * ln(1 - 2 * abs(u)) AS noisy"


def _make_laplace() -> Any:
    return _asked(f"{NOISY} FROM ({NOISE})")


def _make_rounded() -> Any:
    return _asked(f"SELECT round(noisy) AS noisy FROM ({NOISY} FROM ({NOISE}))")


def _asked(query: str) -> Any:
    """A table of noisy answers, each from a number of its own; the database seeds itself when it is opened."""
    base = duckdb.connect()
    return dpaudit.batched(lambda value, runs: base.execute(query, [value, runs]).fetchnumpy()["noisy"])


laplace, rounded = dpaudit.built_by(_make_laplace), dpaudit.built_by(_make_rounded)


def beside_the_grid(output: float) -> bool:
    """The output is not a multiple of 2^-53."""
    return output * 2.0**53 % 1.0 != 0.0
