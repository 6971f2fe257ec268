"""Local mechanisms: filters by the published hash, published losses, corners; their laws stand in `laws.txt`.

Every comparison fails by chance with probability at most 1e-8; there are fewer than 150 of them, with fixed seeds.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpaudit.catalogue import find
from dpaudit.catalogue.local.filters import filter_of, murmur3
from dpaudit.claims import PureDP
from dpaudit.losses.distribution import independent, patterns
from tests.catalogue.laws import fits, independent_bits, law_of, loss_of

LEVEL = 1e-8
RUNS = 100_000


def places(value: int, bits: int = 20, hashes: int = 4) -> list[int]:
    return [place for place, bit in enumerate(filter_of(value, bits, hashes)) if bit]


# --- the hash, and the published numbers of RAPPOR ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seed", "value"),
    [
        (b"", 0, 0),
        (b"", 1, 0x514E28B7),
        (b"test", 0, 0xBA6BD213),
        (b"test", 0x9747B28C, 0x704B81DC),
        (b"Hello, world!", 0, 0xC0363E43),
        (b"The quick brown fox jumps over the lazy dog", 0x9747B28C, 0x2FA826CD),
    ],
)
def test_the_hash_is_murmur3(text: bytes, seed: int, value: int) -> None:
    """The published test values of MurmurHash3_x86_32."""
    assert murmur3(text, seed) % 2**32 == value
    assert -(2**31) <= murmur3(text, seed) < 2**31


def test_the_filters_of_three_values() -> None:
    assert [places(value) for value in range(3)] == [[0, 11, 18], [3, 10, 13], [7, 10, 11, 19]]


# --- reports of filters -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 3])
def test_one_report_of_rappor_has_the_law_of_both_steps(value: int) -> None:
    """It is drawn in one step. The loss, too, is that of all reports listed."""
    given = {"f": 0.75, "bits": 4, "hashes": 1, "q": 0.55, "p": 0.45, "reports": 1}
    entry = find("rappor").with_parameters(given)
    assert fits(law_of(entry, value), entry.open().call(value, RUNS, np.random.Generator(np.random.SFC64(34)))) > LEVEL
    assert entry.true_epsilon(0, 3) == pytest.approx(loss_of(law_of(entry, 0), law_of(entry, 3), PureDP(1.0)))


@pytest.mark.parametrize("bit", [0, 3])
def test_all_reports_of_a_bit_come_from_one_permanent_bit(bit: int) -> None:
    """Value 3 sets bit 0 only: how many of four reports show it is a mixture of two binomial laws."""
    found = find("rappor").open().call(3, RUNS, np.random.Generator(np.random.SFC64(33)))
    ones = found.reshape(RUNS, 4, 4)[:, :, bit].sum(axis=1)
    kept = 0.75 if bit == 0 else 0.25
    law = kept * stats.binom(4, 0.75).pmf(range(5)) + (1.0 - kept) * stats.binom(4, 0.25).pmf(range(5))
    assert stats.chisquare(np.bincount(ones, minlength=5), law * RUNS).pvalue > LEVEL


# --- closed forms and corners -------------------------------------------------------------------------------------


def test_patterns_and_their_law() -> None:
    ones = np.array([0.5, 0.1, 0.9])
    assert {tuple(row): chance for row, chance in zip(patterns(3).tolist(), independent(ones), strict=True)} == (
        pytest.approx(independent_bits(ones.tolist()))
    )
