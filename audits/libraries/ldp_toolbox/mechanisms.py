"""Protocols of ldp-toolbox, called as in its README. Values are 0 to k - 1; the library owns its randomness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xxhash
from ldp_toolbox.protocols.frequency.grr import GeneralizedRandomizedResponse
from ldp_toolbox.protocols.frequency.he import HistogramEncoding
from ldp_toolbox.protocols.frequency.lh import LocalHashing
from ldp_toolbox.protocols.frequency.ss import SubsetSelection
from ldp_toolbox.protocols.frequency.ue import UnaryEncoding

import dpaudit

Local = Callable[[int], Any]


def _make_subset(k: int, epsilon: float) -> Local:
    return SubsetSelection(k, epsilon).obfuscate


def _make_direct(k: int, epsilon: float) -> Local:
    return GeneralizedRandomizedResponse(k, epsilon).obfuscate


def _make_unary(k: int, epsilon: float, optimal: bool) -> Local:
    return UnaryEncoding(k, epsilon, optimal).obfuscate


def _make_thresholds(k: int, epsilon: float) -> Local:
    return HistogramEncoding(k, epsilon, thresholding=True).obfuscate


def _make_hashed(k: int, epsilon: float) -> Local:
    protocol = LocalHashing(k, epsilon)

    def report(value: int) -> list[bool]:
        """For each value whether its hash is the report, which is what `estimate` makes of report and seed."""
        hashed, seed = protocol.obfuscate(value)
        return [xxhash.xxh32(str(each), seed=int(seed)).intdigest() % protocol.g == hashed for each in range(k)]

    return report


subset = dpaudit.built_by(_make_subset)
direct = dpaudit.built_by(_make_direct)
unary = dpaudit.built_by(_make_unary)
thresholds = dpaudit.built_by(_make_thresholds)
hashed = dpaudit.built_by(_make_hashed)
