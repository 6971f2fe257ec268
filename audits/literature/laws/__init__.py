"""The exact law of every row of the published benchmark on its pairs, as curves of the likeliest events."""

from __future__ import annotations

from importlib import import_module

from audits.literature.laws.curve import Curve, Floats
from dpaudit import AdjacentPair
from dpaudit.catalogue import Entry

__all__ = ["Curve", "Floats", "curves"]

LAWS = {  # published name -> module here, whose `curves(entry, pair)` has the mathematics
    "Laplace": "noised",
    "TruncGeo": "noised",
    "NoisyHist1": "noised",
    "NoisyHist2": "noised",
    "NoisySum": "noised",
    "Snapping": "snapped",
    "NoisyMax1": "largest",
    "NoisyMax2": "largest",
    "NoisyMax3": "largest",
    "NoisyMax4": "largest",
    "SVT1": "thresholds",
    "SVT2": "thresholds",
    "SVT3": "released",
    "SVT4": "thresholds",
    "SVT5": "thresholds",
    "SVT6": "thresholds",
    "NumericalSVT": "numerical",
    "PrefixSum": "sums",
    "OneTimeRAPPOR": "bits",
    "RAPPOR": "bits",
    "LaplaceParallel": "sums",
    "SVT34Parallel": "transcripts",
}


def curves(name: str, entry: Entry, pair: AdjacentPair) -> tuple[Curve, Curve]:
    """The likeliest events of a row on a pair: where the first dataset is likelier, then where the second is.

    `name` is the published name, `entry` has its parameters. Raises KeyError for a name that is not of the set.
    """
    law = import_module(f"audits.literature.laws.{LAWS[name]}")
    found: tuple[Curve, Curve] = law.curves(entry, pair)
    return found
