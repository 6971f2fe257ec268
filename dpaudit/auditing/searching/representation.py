"""Representation findings: a second witness, on the bits of floating-point outputs, with a level of its own.

An event on bits is proposed only where it promises more than every event on the rounded values of the same outputs.
"""

import numpy as np

from dpaudit.arrays import Integers
from dpaudit.auditing.freezing import frozen
from dpaudit.auditing.spec import ResolvedSpec
from dpaudit.certify.certificate import error_probability
from dpaudit.events.bits import KINDS
from dpaudit.events.cells import Binning
from dpaudit.events.features.column import Feature
from dpaudit.events.features.plain import Coordinate
from dpaudit.events.search.binning import Tables, binning
from dpaudit.events.search.candidates import bit_binning, bit_features, without_bits
from dpaudit.events.search.goal import Goal
from dpaudit.events.search.plainer import EASIER, readable
from dpaudit.events.search.selection import Proposal
from dpaudit.events.search.selection import propose as propose_for
from dpaudit.outputs import Outputs, Path, Pilot, Sample, concatenate
from dpaudit.results.witness import Witness

SELECTOR = "representation"
AHEAD = 0.05  # by this part of the bound on rounded values: more than the luck of a search


def tables(pilot: Pilot) -> Tables:
    """What a search for a bit event counts: features on bits, and the same without bits, which they have to beat.

    Empty where no output is a float with a fraction: text, integers and whole numbers have no bits to look at.
    """
    both = concatenate([pilot.first, pilot.second])
    bits = [(feature, bit_binning(feature, both)) for feature in bit_features(both)]
    shadows = [(each, bit_binning(each, both)) for feature, _ in bits if (each := without_bits(feature)) is not None]
    paths: set[Path] = set().union(*(feature.wanted or () for feature, _ in bits))
    rounded = [_rounded_values(path, both) for path in sorted(paths, key=repr)]
    return Tables((*bits, *shadows, *rounded))


def best(chosen: Tables, counts: Integers, goal: Goal) -> Proposal | None:
    """The best bit event of these counts (cells of `chosen.features` one after the other, a column for each side).

    None where no bit event promises more than the rounded values do.
    """
    rounded, found_bits = 0.0, list[Proposal]()
    for (feature, bins), table in zip(chosen.features, chosen.split(counts), strict=True):
        found = propose_for(feature, bins, table, goal)
        if found is None:
            continue
        if not isinstance(feature, KINDS):
            rounded = max(rounded, found.score)
        else:
            found_bits.append(found)
    most = max((each.score for each in found_bits), default=0.0)
    # which multiples there are is easier to read than how bits end by the size of a number
    good = [each for each in found_bits if each.score >= (1.0 - EASIER) * most > (1.0 + AHEAD) * rounded]
    return max(good, key=lambda each: (readable(each.event), each.score), default=None)


def propose(pilot: Pilot, goal: Goal) -> Proposal | None:
    """The bit event that a pilot proposes, by search outputs alone."""
    chosen = tables(pilot)
    return best(chosen, chosen(Sample(pilot.first), Sample(pilot.second)), goal) if chosen.features else None


def find_representation(spec: ResolvedSpec, pilot: Pilot, pair: int, certifying: int) -> Witness | None:
    """The frozen witness on bits for a pair, to be counted on `certifying` runs beside the main one; None for none.

    Its certificate has the confidence of the spec to itself, and is a statement of its own: neither finding
    lends error probability to the other.
    """
    claim = spec.claim_at(pair)
    goal = Goal(claim, certifying, error_probability(spec.confidence), spec.certifier.coins, spec.certifier.bins)
    found = propose(pilot, goal)
    return None if found is None else frozen(spec, pair, found, SELECTOR)


def _rounded_values(path: Path, both: Outputs) -> tuple[Feature, Binning]:
    column = both.column(path)
    numbers = column.values[np.isfinite(column.values)].astype(np.float64)
    feature = Coordinate(path, float(np.median(numbers)) if len(numbers) else 0.0)
    return feature, binning(feature.column(both), dict(both.labels))
