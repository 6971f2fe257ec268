"""Local mechanisms: each person randomises their own value.

Here: one of k values, one bit or one number, reported at random, hidden among others, or as randomised bits.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.base.arrays import Bits, Bools, Places, Reals
from dpaudit.catalogue.entry import Code, Entry, Harmless, Parameter, Program, Source, Twin
from dpaudit.catalogue.local.filters import rappor, rappor_one_time
from dpaudit.catalogue.noise import Rng, random_bits
from dpaudit.catalogue.promises import EPSILON, doubled, pure_if_local, unbounded
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidSpec
from dpaudit.losses.distribution import independent, largest_log_ratio, one_hot, patterns

VALUES = Parameter("k", 4, "values", "how many values there are: 0, 1, ..., k - 1", partial(validate.whole, least=2))
in_room = partial(
    Entry,
    module="dpaudit.catalogue.local",
    neighbours="any two values",
    parameters=(EPSILON, VALUES),
    promise=pure_if_local,
    default_pair=(0, 3),
    every_pair=lambda k, **_: itertools.combinations(range(k), 2),
)


Keep = Callable[[float, int], float]


def _k_ary_keep(epsilon: float, k: int) -> float:
    return 1.0 / (1.0 + (k - 1) * math.exp(-epsilon))


def _binary_keep(epsilon: float, k: int) -> float:
    return _k_ary_keep(epsilon, 2)


def _k_ary(data: int, rng: Rng, epsilon: float, k: int, *, keep: Keep = _k_ary_keep) -> int:
    if rng.random() < keep(epsilon, k):
        return data
    return (data + int(rng.integers(1, k))) % k


def _k_ary_runs(data: int, runs: int, rng: Rng, epsilon: float, k: int, *, keep: Keep = _k_ary_keep) -> Places:
    """The value with probability `keep`, otherwise any other one; one uniform draw makes both choices."""
    chance = keep(epsilon, k)
    other = np.ceil((rng.random(runs) - chance) * ((k - 1) / (1.0 - chance)))
    return np.asarray((data + np.clip(other, 0, k - 1).astype(np.intp)) % k)


def _binary_keep_loss(first: int, second: int, epsilon: float, k: int) -> float:
    return 0.0 if first == second else epsilon + math.log(k - 1)


def _lies_nearby(data: int, rng: Rng, epsilon: float, k: int) -> int:
    if rng.random() < math.exp(epsilon) / (math.exp(epsilon) + k - 1):
        return data
    return (data + (1 if rng.random() < 0.5 else -1)) % k


def _lies_nearby_runs(data: int, runs: int, rng: Rng, epsilon: float, k: int) -> Places:
    keep, draw = _k_ary_keep(epsilon, k), rng.random(runs)
    step = np.where(draw < keep, 0, np.where(draw < (1.0 + keep) / 2.0, 1, -1))
    return np.asarray((data + step) % k)


def _lies_nearby_loss(first: int, second: int, epsilon: float, k: int) -> float:
    """With two or three values the lies nearby are all the lies there are; with more some report rules a value out."""
    if first == second:
        return 0.0
    return math.inf if k > 3 else epsilon


def _bit_by_bit(data: int, rng: Rng, epsilon: float, k: int) -> int:
    report = 0
    for place in range((k - 1).bit_length()):
        bit = data >> place & 1
        if rng.random() >= math.exp(epsilon) / (math.exp(epsilon) + 1):
            bit = 1 - bit
        report |= bit << place
    return report


def _bit_by_bit_runs(data: int, runs: int, rng: Rng, epsilon: float, k: int) -> Places:
    report = np.full(runs, data, np.intp)
    for place in range((k - 1).bit_length()):
        report ^= (rng.random(runs) >= _k_ary_keep(epsilon, 2)).astype(np.intp) << place
    return report


k_randomised_response = in_room(
    name="k_randomised_response",
    title="Randomised response on one of k values",
    source=Source(None, "Kairouz, Bonawitz & Ramage 2016, Discrete distribution estimation under local privacy"),
    formula="the value with probability e^epsilon / (e^epsilon + k - 1), otherwise any other one, all equally likely",
    code=Code(_k_ary, _k_ary_runs, lambda first, second, epsilon, k: 0.0 if first == second else epsilon),
).with_twins(
    """binary_keep: Randomised response on k values that keeps as on two
        the truth is told as often as with two values, but each lie is k - 1 times rarer: epsilon + ln(k - 1)
        the value with probability e^epsilon / (e^epsilon + 1), otherwise any other one, all equally likely
    lies_nearby: Randomised response on k values that lies by one only
        a report rules out every value more than one away from it
        the value with probability e^epsilon / (e^epsilon + k - 1), otherwise the next or the previous one
    bit_by_bit: Randomised response on each bit of a value, each for the whole epsilon
        the bits of one value are several questions: epsilon each, and as many as differ add up
        each binary digit of the value with probability e^epsilon / (e^epsilon + 1), otherwise the other""",
    binary_keep=Twin(
        code=Code(partial(_k_ary, keep=_binary_keep), partial(_k_ary_runs, keep=_binary_keep), _binary_keep_loss)
    ),
    lies_nearby=Twin(code=Code(_lies_nearby, _lies_nearby_runs, _lies_nearby_loss), default_pair=(0, 2)),
    bit_by_bit=Twin(
        code=Code(
            _bit_by_bit, _bit_by_bit_runs, lambda first, second, epsilon, k: epsilon * (first ^ second).bit_count()
        )
    ),
)


SIZE = Parameter("size", 2, "values", "how many values a report holds, less than k")
SIX = replace(VALUES, default=6)


def _subset_claim(epsilon: float, k: int, size: int) -> PureDP:
    if size >= k:
        raise InvalidSpec(f"size must be less than k = {k}, got {size}")
    return pure_if_local(epsilon)


def _report(members: set[int], k: int) -> tuple[int, ...]:
    return tuple(int(value in members) for value in range(k))


def _always_in(data: int, rng: Rng, epsilon: float, k: int, size: int) -> tuple[int, ...]:
    others = rng.permutation([value for value in range(k) if value != data]).tolist()
    return _report({data, *others[: size - 1]}, k)


def _holding(keep: Callable[[float, int, int], float], program: Program | None = None) -> Code:
    """A report that holds the true value with a probability made from the parameters."""

    def run(data: int, rng: Rng, epsilon: float, k: int, size: int) -> tuple[int, ...]:
        others = rng.permutation([value for value in range(k) if value != data]).tolist()
        if rng.random() < keep(epsilon, k, size):
            return _report({data, *others[: size - 1]}, k)
        return _report(set(others[:size]), k)

    def sampler(data: int, runs: int, rng: Rng, epsilon: float, k: int, size: int) -> Bits:
        """A bit for each value: of the others than the true one those of the largest draws are in."""
        draws = rng.random((runs, k))
        draws[:, data] = np.where(rng.random(runs) < keep(epsilon, k, size), 2.0, -1.0)
        least = np.partition(draws, k - size, axis=1)[:, k - size, None]
        return (draws >= least).view(np.int8)

    def loss(first: int, second: int, epsilon: float, k: int, size: int) -> float:
        """A subset that holds the value: keep / C(k - 1, size - 1); one without it: (1 - keep) / C(k - 1, size)."""
        if first == second:
            return 0.0
        chance = keep(epsilon, k, size)
        within, without = chance / math.comb(k - 1, size - 1), (1.0 - chance) / math.comb(k - 1, size)
        return abs(math.log(within / without)) if without > 0.0 else math.inf

    return Code(program or run, sampler, loss)


subset_selection = in_room(
    name="subset_selection",
    title="Subset selection: a report of several values, the true one likely among them",
    source=Source(
        None,
        "Wang et al. 2016, Mutual information optimally local private discrete distribution estimation; "
        "Ye & Barg 2018, Optimal schemes for discrete distribution estimation under locally differential privacy",
    ),
    formula=(
        "`size` of the k values: the true one and size - 1 random others with probability "
        "size e^epsilon / (size e^epsilon + k - size), otherwise `size` random others"
    ),
    code=_holding(lambda epsilon, k, size: size * math.exp(epsilon) / (size * math.exp(epsilon) + k - size)),
    parameters=(EPSILON, SIX, SIZE),
    promise=_subset_claim,
).with_twins(
    """kept_as_on_two: Subset selection that holds the true value as often as a report on two values
        a subset with the true value is one of C(k - 1, size - 1) only: epsilon + ln((k - size) / size)
        as subset selection, the true value within with probability e^epsilon / (e^epsilon + 1)
    always_in: The true value hidden among decoys
        the true value is always in the report, so every value that is not in it is ruled out
        the true value and size - 1 random others""",
    kept_as_on_two=Twin(code=_holding(lambda epsilon, k, size: _k_ary_keep(epsilon, 2))),
    always_in=Twin(code=_holding(lambda epsilon, k, size: 1.0, _always_in)),
)


def _randomised_response(data: int, rng: Rng, keep: float) -> int:
    if rng.random() < keep:
        return data
    return 1 - data


def _randomised_response_runs(data: int, runs: int, rng: Rng, keep: float) -> Bits:
    return np.where(rng.random(runs) < keep, np.int8(data), np.int8(1 - data))


def _randomised_response_loss(first: int, second: int, keep: float) -> float:
    return 0.0 if first == second else abs(math.log(keep / (1.0 - keep)))


def _applied_twice(data: int, rng: Rng, keep: float) -> int:
    return _randomised_response(_randomised_response(data, rng, keep), rng, keep)


def _applied_twice_runs(data: int, runs: int, rng: Rng, keep: float) -> Bits:
    lies = (rng.random(runs) >= keep) ^ (rng.random(runs) >= keep)
    return np.where(lies, np.int8(1 - data), np.int8(data))


def _applied_twice_loss(first: int, second: int, keep: float) -> float:
    return _randomised_response_loss(first, second, keep**2 + (1.0 - keep) ** 2)


def _asked_twice(data: int, rng: Rng, keep: float) -> tuple[int, ...]:
    return (_randomised_response(data, rng, keep), _randomised_response(data, rng, keep))


def _asked_twice_runs(data: int, runs: int, rng: Rng, keep: float) -> Bits:
    return np.stack([_randomised_response_runs(data, runs, rng, keep) for _ in range(2)], axis=1)


def _asked_twice_loss(first: int, second: int, keep: float) -> float:
    return 2.0 * _randomised_response_loss(first, second, keep)


def _one_sided_runs(data: int, runs: int, rng: Rng, keep: float) -> Bits:
    return ((rng.random(runs) < keep) & (data == 1)).astype(np.int8)


randomised_response = in_room(
    name="randomised_response",
    title="Randomised response on one bit",
    source=Source(None, "Warner 1965, Randomized response: a survey technique for eliminating evasive answer bias"),
    formula="the bit with probability `keep`, otherwise the other bit",
    neighbours="any two bits",
    code=Code(_randomised_response, _randomised_response_runs, _randomised_response_loss),
    parameters=(Parameter("keep", 0.75, "probability", "that the truth is told", validate.open_probability),),
    promise=lambda keep: PureDP(abs(math.log(keep / (1.0 - keep))), Relation.LOCAL),
    default_pair=(0, 1),
    every_pair=lambda **_: [(0, 1)],
).with_twins(
    """flipped: Randomised response with the reported bit flipped
        0 and 1 change places in the report, which anyone can undo; only the estimate goes wrong
        the other bit with probability `keep`, otherwise the bit
    applied_twice: Randomised response to the answer of randomised response
        randomising a report once more is post-processing, and the loss shrinks
        the report is randomised again, by the same coin: true with probability keep^2 + (1 - keep)^2
    asked_twice: Randomised response asked twice, with fresh coins
        two independent reports about the same bit cost epsilon each: 2 epsilon
        two reports of randomised response on the same bit
    fair_coin: Randomised response that answers by a fair coin instead of lying
        the coin tells the truth half the time: kept with probability (1 + keep) / 2, claimed for `keep`
        the bit with probability `keep`, otherwise a fair coin
    one_sided: Randomised response that lies for the value 1 only
        whoever has 0 never reports 1, so a report of 1 is the truth for certain
        0 if the bit is 0; if it is 1, the bit with probability `keep`, otherwise 0""",
    flipped=Harmless(on=lambda data, keep: 1 - data),
    applied_twice=Harmless(code=Code(_applied_twice, _applied_twice_runs, _applied_twice_loss)),
    asked_twice=Twin(code=Code(_asked_twice, _asked_twice_runs, _asked_twice_loss)),
    fair_coin=Twin(edit={"1 - data": "int(rng.integers(2))"}, at=lambda data, keep: {"keep": (1.0 + keep) / 2.0}),
    one_sided=Twin(code=Code(sampler=_one_sided_runs, loss=unbounded), edit={"if ": "if data == 0 or "}),
)


def _slope(epsilon: float) -> float:
    return math.tanh(epsilon / 2.0)  # (e^epsilon - 1) / (e^epsilon + 1)


def _chance(data: float, epsilon: float) -> float:
    return (1.0 + _slope(epsilon) * min(max(data, -1.0), 1.0)) / 2.0


def _bit(chance: Callable[[float, float], float]) -> Code:
    """A bit that is 1 with a probability made from the number and epsilon."""

    def program(data: float, rng: Rng, epsilon: float) -> int:
        return int(rng.random() < chance(data, epsilon))

    return Code(
        program,
        lambda data, runs, rng, epsilon: (rng.random(runs) < chance(data, epsilon)).view(np.int8),
        lambda first, second, epsilon: largest_log_ratio(
            *(np.clip([p, 1.0 - p], 0.0, 1.0) for p in (chance(first, epsilon), chance(second, epsilon)))
        ),
    )


one_bit_mean = in_room(
    name="one_bit_mean",
    title="A number in [-1, 1] as one randomised bit",
    source=Source(None, "Duchi, Jordan & Wainwright 2013, Local privacy and statistical minimax rates"),
    formula="1 with probability (1 + t x) / 2, t = (e^epsilon - 1) / (e^epsilon + 1), x the number clipped to [-1, 1]",
    neighbours="any two numbers",
    code=_bit(_chance),
    parameters=(EPSILON,),
    default_pair=(0.8, -1.0),
    every_pair=None,
).with_twins(
    """full_slope: A number as one bit, 1 with probability (1 + x) / 2
        at x = -1 and x = 1 the bit is not random at all: rounding at random is not enough
        1 with probability (1 + x) / 2, x the number clipped to [-1, 1]
    not_clipped: A number as one bit, without clipping it first
        beyond (e^epsilon + 1) / (e^epsilon - 1) the probability passes 0 or 1, and the bit is certain
        1 with probability (1 + t x) / 2, or 0 or 1 where that lies outside [0, 1]; x as it is""",
    full_slope=Twin(code=_bit(lambda data, epsilon: _chance(data, math.inf))),
    not_clipped=Twin(code=_bit(lambda data, epsilon: (1.0 + _slope(epsilon) * data) / 2.0), default_pair=(3.0, 0.0)),
)


Report = tuple[int, ...]
Chances = tuple[float, float]  # that a 1 is reported: where the code has a 1, where it has a 0

WANG = "Wang, Blocki, Li & Jha 2017, Locally differentially private protocols for frequency estimation"


def _independent_runs(data: int, runs: int, rng: Rng, k: int, one: float, zero: float) -> Bits:
    return random_bits(one_hot(data, k).tolist(), runs, rng, one, zero).T


def _law(data: int, k: int, one: float, zero: float) -> Reals:
    return independent(np.where(one_hot(data, k) == 1, one, zero))


def _bits(chances: Callable[[float], Chances], program: Program | None = None) -> Code:
    """Independent bits, each 1 with one of two probabilities."""

    def run(data: int, rng: Rng, epsilon: float, k: int) -> Report:
        one, zero = chances(epsilon)
        return tuple(int(rng.random() < (one if value == data else zero)) for value in range(k))

    def loss(first: int, second: int, epsilon: float, k: int) -> float:
        """Two bits differ: the one that is 1 at the first value, and the one that is 1 at the second."""
        one, zero = chances(epsilon)
        if first == second:
            return 0.0
        return abs(math.log(one * (1.0 - zero) / ((1.0 - one) * zero))) if zero > 0.0 else math.inf

    return Code(
        program or run,
        lambda data, runs, rng, epsilon, k: _independent_runs(data, runs, rng, k, *chances(epsilon)),
        loss,
    )


def _symmetric(epsilon: float) -> Chances:
    keep = 1.0 / (1.0 + math.exp(-epsilon / 2.0))
    return keep, 1.0 - keep


def _optimised(epsilon: float) -> Chances:
    return 0.5, 1.0 / (1.0 + math.exp(epsilon))


def _symmetric_unary(data: int, rng: Rng, epsilon: float, k: int) -> Report:
    keep = math.exp(epsilon / 2.0) / (math.exp(epsilon / 2.0) + 1.0)
    code = [int(value == data) for value in range(k)]
    return tuple(bit if rng.random() < keep else 1 - bit for bit in code)


def _one_coin_runs(data: int, runs: int, rng: Rng, epsilon: float, k: int) -> Bits:
    lie = (rng.random(runs) >= _symmetric(epsilon)[0]).view(np.int8)
    return (lie[None, :] ^ one_hot(data, k)[:, None]).T


def _one_coin_loss(first: int, second: int, epsilon: float, k: int) -> float:
    """The code or its complement; with two values the complement of one code is the other."""
    if first == second:
        return 0.0
    return math.inf if k > 2 else epsilon / 2.0


def _empty_corrected(data: int, rng: Rng, epsilon: float, k: int) -> Report:
    report = _symmetric_unary(data, rng, epsilon, k)
    if sum(report) == 0:
        return tuple(int(value == data) for value in range(k))
    return report


def _empty_corrected_runs(data: int, runs: int, rng: Rng, epsilon: float, k: int) -> Bits:
    report = _independent_runs(data, runs, rng, k, *_symmetric(epsilon))
    report[~report.any(axis=1), data] = 1
    return report


def _empty_corrected_loss(first: int, second: int, epsilon: float, k: int) -> float:
    def law(data: int) -> Reals:
        chances = _law(data, k, *_symmetric(epsilon))
        chances[np.all(patterns(k) == one_hot(data, k), axis=1)] += chances[0]
        chances[0] = 0.0
        return chances

    return largest_log_ratio(law(first), law(second))


def _until(valid: Callable[[Bits], Bools], chances: Callable[[float], Chances], program: Program) -> Code:
    """A report that is drawn again until it is valid; `valid` holds run by run."""

    def run(data: int, rng: Rng, **given: Any) -> Report:
        while True:
            report: Report = program(data, rng, **given)
            if valid(np.array([report], np.int8))[0]:
                return report

    def sampler(data: int, runs: int, rng: Rng, epsilon: float, k: int) -> Bits:
        report = _independent_runs(data, runs, rng, k, *chances(epsilon))
        again = np.flatnonzero(~valid(report))
        while len(again):
            report[again] = _independent_runs(data, len(again), rng, k, *chances(epsilon))
            again = again[~valid(report[again])]
        return report

    def loss(first: int, second: int, epsilon: float, k: int) -> float:
        laws = [_law(data, k, *chances(epsilon))[valid(patterns(k))] for data in (first, second)]
        return largest_log_ratio(*(law / law.sum() for law in laws))

    return Code(run, sampler, loss)


symmetric_unary = in_room(
    name="symmetric_unary",
    title="Symmetric unary encoding",
    source=Source(None, f"{WANG} (after Erlingsson, Pihur & Korolova 2014, RAPPOR, its basic form)"),
    formula="the k bits of the unary code, each kept with probability e^(epsilon / 2) / (e^(epsilon / 2) + 1)",
    code=_bits(_symmetric, _symmetric_unary),
).with_twins(
    """budget_per_bit: Unary encoding with the whole epsilon for each bit
        two bits of the code differ between two values, and each of them costs epsilon
        the k bits of the unary code, each kept with probability e^epsilon / (e^epsilon + 1)
    only_the_one: Unary encoding with noise on the bit that is 1 only
        a bit that is 0 is always reported as 0, so a 1 in the report is the truth for certain
        the unary code, its 1 kept with probability e^(epsilon / 2) / (e^(epsilon / 2) + 1)
    one_coin: Unary encoding with one coin for all bits
        the report is the code or its complement: with more than two values either gives the value away
        the unary code with probability e^(epsilon / 2) / (e^(epsilon / 2) + 1), otherwise its complement
    empty_corrected: Unary encoding that sends the true code in the place of an empty report
        reports without any 1, likely for every value, all become the truth
        the report of the unary encoding; where it holds no 1, the unary code itself
    until_valid: Unary encoding drawn again until exactly one bit is 1
        a report is valid with the same probability for every value, and k-ary response remains
        the report of the unary encoding, drawn again until it is a unary code""",
    budget_per_bit=Twin(at=doubled),
    only_the_one=Twin(
        code=_bits(lambda epsilon: (_symmetric(epsilon)[0], 0.0)), edit={"if rng": "if bit and rng", "1 - bit": "0"}
    ),
    one_coin=Twin(
        code=Code(sampler=_one_coin_runs, loss=_one_coin_loss),
        edit={"return ": "kept = rng.random() < keep\n    return ", "rng.random() < keep": "kept"},
    ),
    empty_corrected=Twin(code=Code(_empty_corrected, _empty_corrected_runs, _empty_corrected_loss)),
    until_valid=Harmless(code=_until(lambda report: report.sum(axis=1) == 1, _symmetric, _symmetric_unary)),
)


def _optimised_unary(data: int, rng: Rng, epsilon: float, k: int) -> Report:
    one, zero = 0.5, 1.0 / (math.exp(epsilon) + 1.0)
    return tuple(int(rng.random() < (one if value == data else zero)) for value in range(k))


optimised_unary = in_room(
    name="optimised_unary",
    title="Optimised unary encoding",
    source=Source(None, WANG),
    formula="k bits: 1 with probability 1/2 where the unary code has its 1, 1 / (e^epsilon + 1) where it has a 0",
    code=_bits(_optimised, _optimised_unary),
).with_twins(
    """ones_likelier: Optimised unary encoding with the 1 kept more often
        the 1/2 is not free to choose: at 3/4 with the same 0s the ratio gains a factor of 3
        k bits: 1 with probability 3/4 where the unary code has its 1, 1 / (e^epsilon + 1) where it has a 0
    chances_swapped: Optimised unary encoding with the two kinds of bits exchanged
        the ratio is the same, epsilon; the estimates are much worse
        k bits: 1 with probability e^epsilon / (e^epsilon + 1) where the code has its 1, 1/2 where it has a 0
    empty_redrawn: Optimised unary encoding that draws empty reports again
        a report is empty with the same probability for every value, so all ratios stay
        the report of the optimised unary encoding, drawn again until it holds a 1""",
    ones_likelier=Twin(code=_bits(lambda epsilon: (0.75, _optimised(epsilon)[1]))),
    chances_swapped=Harmless(code=_bits(lambda epsilon: (1.0 / (1.0 + math.exp(-epsilon)), 0.5))),
    empty_redrawn=Harmless(code=_until(lambda report: np.any(report, axis=1), _optimised, _optimised_unary)),
)


ENTRIES = (
    *(randomised_response, k_randomised_response, subset_selection, symmetric_unary, optimised_unary),
    *(one_bit_mean, rappor_one_time, rappor),
)
