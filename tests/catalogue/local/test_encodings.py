"""Local mechanisms: losses by listing all reports, filters by the published hash, samplers by their exact laws.

Every comparison fails by chance with probability at most 1e-8; there are fewer than 150 of them, with fixed seeds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit.catalogue import find
from dpaudit.catalogue.local.filters import filter_of, murmur3
from dpaudit.claims import PureDP, Relation
from dpaudit.losses.distribution import independent, one_hot, patterns
from tests.cases import for_each

LEVEL = 1e-8
RUNS = 100_000
E = math.e
Report = tuple[int, ...]


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


# --- losses by listing all reports --------------------------------------------------------------------------------


def bits_with(ones: list[float]) -> dict[Report, float]:
    """The law of independent bits, by hand."""
    return {
        report: math.prod(one if bit else 1.0 - one for bit, one in zip(report, ones, strict=True))
        for report in itertools.product((0, 1), repeat=len(ones))
    }


def given_that(law: dict[Report, float], valid: Callable[[Report], bool]) -> dict[Report, float]:
    kept = {report: chance for report, chance in law.items() if valid(report)}
    return {report: chance / sum(kept.values()) for report, chance in kept.items()}


def unary(value: int, k: int, one: float, zero: float) -> dict[Report, float]:
    return bits_with([one if place == value else zero for place in range(k)])


def corrected(value: int, k: int, keep: float) -> dict[Report, float]:
    law = unary(value, k, keep, 1.0 - keep)
    law[tuple(one_hot(value, k).tolist())] += law.pop((0,) * k)
    return law


def subsets(value: int, k: int, size: int, keep: float) -> dict[Report, float]:
    law = {}
    for members in itertools.combinations(range(k), size):
        chance = keep / math.comb(k - 1, size - 1) if value in members else (1.0 - keep) / math.comb(k - 1, size)
        law[tuple(int(place in members) for place in range(k))] = chance
    return law


def rappor_law(value: int, f: float, q: float, p: float, reports: int) -> dict[Report, float]:
    """All patterns of the permanent response, then independent bits."""
    law: dict[Report, float] = {}
    code = filter_of(value, 4, 1)
    for memo, chance in bits_with([1.0 - f / 2.0 if bit else f / 2.0 for bit in code]).items():
        for report, told in bits_with([q if bit else p for bit in memo] * reports).items():
            law[report] = law.get(report, 0.0) + chance * told
    return law


HALF, WHOLE, RARE = math.sqrt(E) / (math.sqrt(E) + 1.0), E / (E + 1.0), 1.0 / (E + 1.0)
LAWS: dict[str, Callable[[int], dict[Any, float]]] = {
    "randomised_response": lambda v: {v: 0.75, 1 - v: 0.25},
    "randomised_response.flipped": lambda v: {v: 0.25, 1 - v: 0.75},
    "randomised_response.applied_twice": lambda v: {v: 0.625, 1 - v: 0.375},
    "randomised_response.asked_twice": lambda v: bits_with([0.75 if v else 0.25] * 2),
    "randomised_response.fair_coin": lambda v: {v: 0.875, 1 - v: 0.125},
    "k_randomised_response": lambda v: {r: (E if r == v else 1.0) / (E + 3.0) for r in range(4)},
    "k_randomised_response.binary_keep": lambda v: {r: WHOLE if r == v else RARE / 3.0 for r in range(4)},
    "k_randomised_response.bit_by_bit": lambda v: {
        r: WHOLE ** (2 - (r ^ v).bit_count()) * RARE ** (r ^ v).bit_count() for r in range(4)
    },
    "subset_selection": lambda v: subsets(v, 6, 2, 2.0 * E / (2.0 * E + 4.0)),
    "subset_selection.kept_as_on_two": lambda v: subsets(v, 6, 2, WHOLE),
    "symmetric_unary": lambda v: unary(v, 4, HALF, 1.0 - HALF),
    "symmetric_unary.budget_per_bit": lambda v: unary(v, 4, WHOLE, RARE),
    "symmetric_unary.empty_corrected": lambda v: corrected(v, 4, HALF),
    "symmetric_unary.until_valid": lambda v: given_that(unary(v, 4, HALF, 1.0 - HALF), lambda r: sum(r) == 1),
    "optimised_unary": lambda v: unary(v, 4, 0.5, RARE),
    "optimised_unary.ones_likelier": lambda v: unary(v, 4, 0.75, RARE),
    "optimised_unary.chances_swapped": lambda v: unary(v, 4, WHOLE, 0.5),
    "optimised_unary.empty_redrawn": lambda v: given_that(unary(v, 4, 0.5, RARE), any),
}
TWICE: dict[str, Callable[[int], dict[Report, float]]] = {  # two reports of four bits
    "rappor": lambda v: rappor_law(v, 0.5, 0.75, 0.25, 2),
    "rappor.no_permanent_step": lambda v: bits_with([0.75 if bit else 0.25 for bit in filter_of(v, 4, 1)] * 2),
    "rappor.memo_lost": lambda v: bits_with([0.625 if bit else 0.375 for bit in filter_of(v, 4, 1)] * 2),
    "rappor.same_report_again": lambda v: {r + r: c for r, c in rappor_law(v, 0.5, 0.75, 0.25, 1).items()},
}


@for_each("name", [*LAWS, *TWICE])
def test_the_loss_is_the_largest_ratio_of_all_reports(name: str) -> None:
    entry = find(name).with_parameters({"reports": 2} if name in TWICE else {})
    first, second = entry.default_pair
    laws = [(LAWS | TWICE)[name](value) for value in (first, second)]
    assert [sum(law.values()) for law in laws] == pytest.approx([1.0, 1.0])
    largest = max(abs(math.log(chance / laws[1][report])) for report, chance in laws[0].items())
    assert entry.true_epsilon(first, second) == pytest.approx(largest, rel=1e-9)


@pytest.mark.parametrize("name", [*LAWS, *TWICE])
@pytest.mark.parametrize("side", [0, 1], ids=["first", "second"])
def test_the_sampler_has_the_law_of_all_reports(name: str, side: int) -> None:
    entry = find(name).with_parameters({"reports": 2} if name in TWICE else {})
    value = entry.default_pair[side]
    law = (LAWS | TWICE)[name](value)
    found = entry.open().call(value, RUNS, np.random.Generator(np.random.SFC64(31)))
    reports = [tuple(row) for row in found.tolist()] if found.ndim > 1 else found.tolist()
    index = {report: place for place, report in enumerate(law)}
    seen = np.bincount([index[report] for report in reports], minlength=len(law))
    assert stats.chisquare(seen, np.array(list(law.values())) * RUNS).pvalue > LEVEL


@pytest.mark.parametrize("value", [0, 3])
def test_one_report_of_rappor_has_the_law_of_both_steps(value: int) -> None:
    """It is drawn in one step. The loss, too, is that of all reports listed."""
    given = {"f": 0.75, "bits": 4, "hashes": 1, "q": 0.55, "p": 0.45, "reports": 1}
    entry = find("rappor").with_parameters(given)
    laws = [rappor_law(each, 0.75, 0.55, 0.45, 1) for each in (value, 3 - value)]
    reports = entry.open().call(value, RUNS, np.random.Generator(np.random.SFC64(34))) @ [8, 4, 2, 1]
    chances = [laws[0][report] for report in itertools.product((0, 1), repeat=4)]
    assert stats.chisquare(np.bincount(reports, minlength=16), np.array(chances) * RUNS).pvalue > LEVEL
    largest = max(math.log(chance / laws[1][report]) for report, chance in laws[0].items())
    assert entry.true_epsilon(0, 3) == pytest.approx(largest)


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
        pytest.approx(bits_with(ones.tolist()))
    )
