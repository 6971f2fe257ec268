"""Nasty structure, which search looks into, must not make a true claim look false."""

from __future__ import annotations

import pytest

from benchmarks.classes.boundary import sound
from benchmarks.valid import nasty_refutations
from tests.statistics.rates import most_refuted


@pytest.mark.long
def test_nasty_structure_does_not_refute_what_is_true() -> None:
    """Atoms, lattices, text, dependence: claims exactly true, and both sides alike. `FALSE_ALARM`."""
    audits, runs = 6, 4_000
    places = [place for place, case in enumerate(sound()) if not case.slow]
    counts = [nasty_refutations(place, range(audits), runs) for place in places]
    assert sum(count.refuted for count in counts) <= most_refuted(audits * len(places))
    assert not any(count.undecided for count in counts)
