"""Local mechanisms: filters by the published hash, published losses, corners; their laws stand in `laws.txt`.

Every comparison fails by chance with probability at most 1e-8; there are fewer than 150 of them, with fixed seeds.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.catalogue import find
from dpaudit.catalogue.local.filters import filter_of, murmur3
from dpaudit.claims import PureDP, Relation
from dpaudit.losses.distribution import independent, patterns
from tests.cases import for_each
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


def test_one_time_rappor_has_the_published_losses() -> None:
    """f = 0.95: eight differing bits at most, 0.8007; the values 0 and 1 have six, 0.6005."""
    entry = find("rappor_one_time").with_parameters({"f": 0.95})
    assert entry.claim() == PureDP(8 * math.log(1.05 / 0.95), Relation.LOCAL)
    assert entry.claim().promised(0.0) == pytest.approx(0.8007, abs=5.1e-5)
    assert entry.true_epsilon(0, 1) == pytest.approx(0.6005, abs=5.1e-5)


def test_one_report_of_rappor_has_the_published_loss() -> None:
    """f = 0.75, q = 0.55, p = 0.45: 0.3001 with six differing bits."""
    given = {"f": 0.75, "q": 0.55, "p": 0.45, "bits": 20, "hashes": 4, "reports": 1}
    assert find("rappor").true_epsilon(0, 1, given) == pytest.approx(0.3001, abs=5.1e-5)


def test_one_report_of_rappor_is_claimed_at_less_than_many() -> None:
    """Eight differing bits at most, 0.4001; of several reports, and of bits that say all, the permanent step."""
    entry = find("rappor").with_parameters({"f": 0.75, "q": 0.55, "p": 0.45, "bits": 20, "hashes": 4, "reports": 1})
    assert entry.claim().promised(0.0) == pytest.approx(0.4001, abs=5.1e-5)
    losses = [entry.true_epsilon(first, second) or 0.0 for first in range(40) for second in range(first)]
    assert max(losses) == pytest.approx(entry.claim().promised(0.0))
    for given in ({"reports": 2}, {"q": 1.0, "p": 0.0}):
        assert entry.claim(given).promised(0.0) == pytest.approx(8 * math.log(1.25 / 0.75))


# --- reports of filters -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 3])
def test_one_report_of_rappor_has_the_law_of_both_steps(value: int) -> None:
    """It is drawn in one step. The loss, too, is that of all reports listed."""
    given = {"f": 0.75, "bits": 4, "hashes": 1, "q": 0.55, "p": 0.45, "reports": 1}
    entry = find("rappor").with_parameters(given)
    assert fits(law_of(entry, value), entry.open().call(value, RUNS, np.random.Generator(np.random.SFC64(34)))) > LEVEL
    assert entry.true_epsilon(0, 3) == pytest.approx(loss_of(law_of(entry, 0), law_of(entry, 3), PureDP(1.0)))


@pytest.mark.parametrize("value", [0, 2])
def test_the_bits_of_a_filter_have_their_probabilities(value: int) -> None:
    """20 bits, too many reports to list: each bit, and each pair of neighbouring bits."""
    kept = {"": (0.625, 0.375), ".half_f": (0.8125, 0.1875), ".only_set_bits": (0.625, 0.0)}
    code = np.array(filter_of(value, 20, 4))
    for twin, (one, zero) in kept.items():
        entry = find(f"rappor_one_time{twin}")
        found = entry.open().call(value, RUNS, np.random.Generator(np.random.SFC64(32)))
        chances = np.where(code == 1, one, zero)
        both = np.append(chances, chances[1:] * chances[:-1])
        seen = np.append(found.sum(axis=0, dtype=np.int64), (found[:, 1:] & found[:, :-1]).sum(axis=0, dtype=np.int64))
        assert np.all(np.abs(seen - both * RUNS) <= 7.0 * np.sqrt(both * (1.0 - both) * RUNS))  # 3e-12 each


@pytest.mark.parametrize("bit", [0, 3])
def test_all_reports_of_a_bit_come_from_one_permanent_bit(bit: int) -> None:
    """Value 3 sets bit 0 only: how many of four reports show it is a mixture of two binomial laws."""
    found = find("rappor").open().call(3, RUNS, np.random.Generator(np.random.SFC64(33)))
    ones = found.reshape(RUNS, 4, 4)[:, :, bit].sum(axis=1)
    kept = 0.75 if bit == 0 else 0.25
    law = kept * stats.binom(4, 0.75).pmf(range(5)) + (1.0 - kept) * stats.binom(4, 0.25).pmf(range(5))
    assert stats.chisquare(np.bincount(ones, minlength=5), law * RUNS).pvalue > LEVEL


# --- closed forms and corners -------------------------------------------------------------------------------------


@for_each("epsilon", [0.1, 1.0, 4.0])
@for_each("k", [2, 3, 7])
def test_sound_encodings_reach_their_claim_exactly(epsilon: float, k: int) -> None:
    for name in ("k_randomised_response", "symmetric_unary", "optimised_unary"):
        loss = find(name).true_epsilon(0, 1, {"epsilon": epsilon, "k": k})
        assert loss == pytest.approx(epsilon, rel=1e-12)
    chosen = find("subset_selection").true_epsilon(0, 1, {"epsilon": epsilon, "k": 7, "size": k - 1})
    assert chosen == pytest.approx(epsilon, rel=1e-12)


def test_two_and_three_values_leave_no_room_for_some_mistakes() -> None:
    nearby, coin = find("k_randomised_response.lies_nearby"), find("symmetric_unary.one_coin")
    assert [nearby.true_epsilon(0, 1, {"k": k}) for k in (2, 3, 4, 5)] == [1.0, 1.0, math.inf, math.inf]
    assert [coin.true_epsilon(0, 1, {"k": k}) for k in (2, 3)] == [0.5, math.inf]


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_one_bit_for_a_number(epsilon: float) -> None:
    entry = find("one_bit_mean")
    assert entry.true_epsilon(-1.0, 1.0, {"epsilon": epsilon}) == pytest.approx(epsilon)
    assert entry.true_epsilon(-50.0, 9.0, {"epsilon": epsilon}) == pytest.approx(epsilon)
    assert entry.not_clipped.true_epsilon(-1.0, 1.0, {"epsilon": epsilon}) == pytest.approx(epsilon)
    assert entry.full_slope.true_epsilon(0.5, -0.5, {"epsilon": epsilon}) == pytest.approx(math.log(3.0))


def test_patterns_and_their_law() -> None:
    ones = np.array([0.5, 0.1, 0.9])
    assert {tuple(row): chance for row, chance in zip(patterns(3).tolist(), independent(ones), strict=True)} == (
        pytest.approx(independent_bits(ones.tolist()))
    )
