"""RAPPOR: the Bloom filter of a value, randomised once for all (permanent) and once more for each report."""

import math
import struct
from functools import partial
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Bits, Reals
from dpaudit.catalogue.entry import Code, Entry, Harmless, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, random_bits
from dpaudit.catalogue.promises import unless_same
from dpaudit.claims import PureDP, Relation

_WORD = 0xFFFFFFFF


def murmur3(text: bytes, seed: int) -> int:
    """The 32-bit MurmurHash3 of a text, as a signed number (Appleby, MurmurHash3_x86_32).

    >>> murmur3(b"", 0), murmur3(b"hello", 0)
    (0, 613153351)
    """
    mixed, whole = seed, len(text) // 4 * 4
    for (block,) in struct.iter_unpack("<I", text[:whole]):
        mixed = _rotated(mixed ^ _scrambled(block), 13) * 5 + 0xE6546B64 & _WORD
    mixed ^= _scrambled(int.from_bytes(text[whole:], "little"))
    mixed ^= len(text)
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _WORD
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _WORD
    mixed ^= mixed >> 16
    return mixed - (1 << 32) if mixed >> 31 else mixed


def filter_of(value: int, bits: int, hashes: int) -> list[int]:
    """The Bloom filter of a value: bit i is 1 where one of the hash functions gives i.

    >>> [place for place, bit in enumerate(filter_of(0, bits=20, hashes=4)) if bit]
    [0, 11, 18]
    """
    text = str(value).encode()
    places = {murmur3(text, seed) % bits for seed in range(hashes)}
    return [int(place in places) for place in range(bits)]


def _scrambled(block: int) -> int:
    return _rotated(block * 0xCC9E2D51 & _WORD, 15) * 0x1B873593 & _WORD


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & _WORD


Report = tuple[int, ...]

PAPER = "Erlingsson, Pihur & Korolova 2014, RAPPOR: randomized aggregatable privacy-preserving ordinal response"


def _parameters(f: float, bits: int, hashes: int) -> tuple[Parameter, ...]:
    return (
        Parameter("f", f, "probability", "that a bit of the filter is replaced by a coin", validate.open_probability),
        Parameter("bits", bits, "bits", "the length of the filter", partial(validate.whole, least=2)),
        Parameter("hashes", hashes, "functions", "how many bits a value sets at most"),
    )


def _permanent_claim(f: float, hashes: int, **_: object) -> PureDP:
    """Two values differ in at most 2 * hashes bits; each costs ln((1 - f/2) / (f/2))."""
    return PureDP(2 * hashes * math.log((2.0 - f) / f), Relation.LOCAL)


def _differing(first: int, second: int, bits: int, hashes: int) -> tuple[int, int]:
    """How many bits are set by the first value only, and by the second only."""
    one, other = (np.array(filter_of(value, bits, hashes)) for value in (first, second))
    return int(np.sum(one > other)), int(np.sum(other > one))


def _report_claim(f: float, hashes: int, q: float, p: float, reports: int, **_: object) -> PureDP:
    """Of one report what its two steps tell together (theorem 2 of the paper); of more, what the permanent one does."""
    permanent = _permanent_claim(f, hashes)
    one, zero = _one_report(f, q, p)
    if reports > 1 or not 0.0 < min(one, zero) <= max(one, zero) < 1.0:
        return permanent
    return PureDP(hashes * abs(math.log(one / zero) + math.log((1.0 - zero) / (1.0 - one))), Relation.LOCAL)


def _permanent(bit: int, rng: Rng, f: float) -> int:
    draw = rng.random()
    if draw < f / 2.0:
        return 1
    return 0 if draw < f else bit


def _rappor_one_time(data: int, rng: Rng, f: float, bits: int, hashes: int) -> Report:
    return tuple(_permanent(bit, rng, f) for bit in filter_of(data, bits, hashes))


def _rappor_one_time_runs(data: int, runs: int, rng: Rng, f: float, bits: int, hashes: int) -> Bits:
    return random_bits(filter_of(data, bits, hashes), runs, rng, 1.0 - f / 2.0, f / 2.0).T


def _rappor_one_time_loss(first: int, second: int, f: float, bits: int, hashes: int) -> float:
    return sum(_differing(first, second, bits, hashes)) * math.log((2.0 - f) / f)


def _half_f(data: int, rng: Rng, f: float, bits: int, hashes: int) -> Report:
    code = filter_of(data, bits, hashes)
    return tuple(int(rng.integers(2)) if rng.random() < f / 2.0 else bit for bit in code)


def _only_set_bits_runs(data: int, runs: int, rng: Rng, f: float, bits: int, hashes: int) -> Bits:
    return random_bits(filter_of(data, bits, hashes), runs, rng, 1.0 - f / 2.0, 0.0).T


rappor_one_time = Entry(
    module="dpaudit.catalogue.local",
    name="rappor_one_time",
    title="One-time RAPPOR: the permanent randomised response of a Bloom filter",
    source=Source(None, PAPER),
    formula="each bit of the filter: 1 with probability f / 2, 0 with probability f / 2, otherwise as it is",
    neighbours="any two values; their filters differ in at most 2 bits for each hash function",
    code=Code(_rappor_one_time, _rappor_one_time_runs, _rappor_one_time_loss),
    parameters=_parameters(0.75, bits=20, hashes=4),
    promise=_permanent_claim,
    default_pair=(0, 1),
).with_twins(
    """half_f: One-time RAPPOR that replaces a bit with probability f / 2
        f / 2 is the probability of a 1 and again of a 0: with f / 2 in all the bits are kept too often
        each bit of the filter: a fair coin with probability f / 2, otherwise as it is
    only_set_bits: One-time RAPPOR with noise on the bits that are set only
        a bit that the value does not set is never 1, so every 1 in the report rules values out
        each 1 of the filter: 1 with probability 1 - f / 2, otherwise 0; each 0 as it is""",
    half_f=Twin(code=Code(_half_f), at=lambda data, f, **_: {"f": f / 2.0}),
    only_set_bits=Twin(
        code=Code(sampler=_only_set_bits_runs, loss=unless_same(lambda data, f, **given: filter_of(data, **given))),
        edit={"(bit, rng, f)": "(1, rng, f) if bit else 0"},
    ),
)


Q = Parameter(
    "q", 0.75, "probability", "that a bit is reported as 1 where the permanent one is 1", validate.probability
)
P = Parameter(
    "p", 0.25, "probability", "that a bit is reported as 1 where the permanent one is 0", validate.probability
)
REPORTS = Parameter("reports", 4, "reports", "how often the same person reports")


def _rappor(data: int, rng: Rng, f: float, bits: int, hashes: int, q: float, p: float, reports: int) -> Report:
    memo = [_permanent(bit, rng, f) for bit in filter_of(data, bits, hashes)]
    return tuple(int(rng.random() < (q if bit else p)) for _ in range(reports) for bit in memo)


def _rappor_runs(
    data: int, runs: int, rng: Rng, f: float, bits: int, hashes: int, q: float, p: float, reports: int
) -> Bits:
    if reports == 1:  # of the two steps only what comes out counts
        return random_bits(filter_of(data, bits, hashes), runs, rng, *_one_report(f, q, p)).T
    memo = random_bits(filter_of(data, bits, hashes), runs, rng, 1.0 - f / 2.0, f / 2.0).view(np.bool_)
    report = np.empty((reports, bits, runs), np.bool_)
    for each in report:
        for row, bit in zip(each, memo, strict=True):
            np.less(rng.random(runs), np.where(bit, q, p), out=row)
    return report.reshape(reports * bits, runs).view(np.int8).T


def _rappor_loss(first: int, second: int, f: float, bits: int, hashes: int, q: float, p: float, reports: int) -> float:
    """The bits are independent; of one bit only the number of its 1s counts, a mixture of two binomial laws."""
    ones = np.arange(reports + 1)

    def chances(set_before: bool) -> Reals:
        """Of each pattern, by the number of 1s in a bit."""
        one = 1.0 - f / 2.0 if set_before else f / 2.0
        return one * q**ones * (1.0 - q) ** (reports - ones) + (1.0 - one) * p**ones * (1.0 - p) ** (reports - ones)

    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(chances(True)) - np.log(chances(False))
    up, down = np.nanmax(ratios), -np.nanmin(ratios)
    lost, gained = _differing(first, second, bits, hashes)
    orders = ((lost, gained), (gained, lost))
    worst = [sum(float(n * ratio) for n, ratio in zip(order, (up, down), strict=True) if n) for order in orders]
    return max(0.0, *worst)


def _memo_lost(data: int, rng: Rng, reports: int, **given: Any) -> Report:
    return tuple(bit for _ in range(reports) for bit in _rappor(data, rng, reports=1, **given))


def _one_report(f: float, q: float, p: float) -> tuple[float, float]:
    """That a bit is 1 in a report with a permanent step of its own, where the filter has a 1 and where it has a 0."""
    return (1.0 - f / 2.0) * q + f / 2.0 * p, f / 2.0 * q + (1.0 - f / 2.0) * p


def _no_permanent_step_runs(
    data: int, runs: int, rng: Rng, f: float, bits: int, hashes: int, q: float, p: float, reports: int
) -> Bits:
    return random_bits(filter_of(data, bits, hashes) * reports, runs, rng, q, p).T


def _same_report_again(data: int, rng: Rng, reports: int, **given: Any) -> Report:
    return _rappor(data, rng, reports=1, **given) * reports


def _same_report_again_runs(data: int, runs: int, rng: Rng, reports: int, **given: Any) -> Bits:
    return np.tile(_rappor_runs(data, runs, rng, reports=1, **given), reports)


rappor = Entry(
    module="dpaudit.catalogue.local",
    name="rappor",
    title="RAPPOR: several reports from one permanent randomised response",
    source=Source(None, PAPER),
    formula=(
        "one permanent randomised response, as in one-time RAPPOR; in each report a bit is 1 with probability q "
        "where the permanent one is 1, and p where it is 0; one report is claimed at less than many"
    ),
    neighbours="any two values; their filters differ in at most 2 bits for each hash function; however many reports",
    code=Code(_rappor, _rappor_runs, _rappor_loss),
    parameters=(*_parameters(0.5, bits=4, hashes=1), Q, P, REPORTS),
    promise=_report_claim,
    default_pair=(0, 3),
).with_twins(
    """memo_lost: RAPPOR that draws the permanent response anew for each report
        the reports become independent, so their noise averages out and each costs what one report costs
        each report with a permanent randomised response of its own
    no_permanent_step: RAPPOR without the permanent step
        all reports start from the true filter: q and p bound what one report tells, not what many do
        in each report a bit is 1 with probability q where the filter has a 1, and p where it has a 0
    same_report_again: RAPPOR that sends its first report again and again
        copies of one report tell what one report tells
        one report, drawn once, sent each time""",
    memo_lost=Twin(
        code=Code(
            _memo_lost,
            lambda data, runs, rng, f, bits, hashes, q, p, reports: (
                random_bits(filter_of(data, bits, hashes) * reports, runs, rng, *_one_report(f, q, p)).T
            ),
            lambda first, second, reports, **given: reports * _rappor_loss(first, second, reports=1, **given),
        )
    ),
    no_permanent_step=Twin(
        code=Code(sampler=_no_permanent_step_runs),
        edit={"_permanent(bit, rng, f)": "bit"},
        at=lambda data, **_: {"f": 0.0},
    ),
    same_report_again=Harmless(
        code=Code(_same_report_again, _same_report_again_runs), at=lambda data, **_: {"reports": 1}
    ),
)
