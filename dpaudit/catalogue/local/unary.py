"""Unary encodings: one of k values as k bits, each of them randomised."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpaudit.base.arrays import Bits, Bools, Reals
from dpaudit.catalogue.entry import Code, Harmless, Program, Source, Twin
from dpaudit.catalogue.local.values import in_room, told
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import doubled
from dpaudit.losses.discrete import independent, largest_log_ratio, one_hot, patterns

Report = tuple[int, ...]
Chances = tuple[float, float]  # that a 1 is reported: where the code has a 1, where it has a 0

WANG = "Wang, Blocki, Li & Jha 2017, Locally differentially private protocols for frequency estimation"


def _independent_runs(data: int, runs: int, rng: Rng, k: int, one: float, zero: float) -> Bits:
    return told(one_hot(data, k).tolist(), runs, rng, one, zero).T


def _law(data: int, k: int, one: float, zero: float) -> Reals:
    return independent(np.where(one_hot(data, k) == 1, one, zero))


def _runs(data: int, runs: int, rng: Rng, epsilon: float, k: int, *, chances: Callable[[float], Chances]) -> Bits:
    return _independent_runs(data, runs, rng, k, *chances(epsilon))


def _loss(first: int, second: int, epsilon: float, k: int, *, chances: Callable[[float], Chances]) -> float:
    """Two bits differ: the one that is 1 at the first value, and the one that is 1 at the second."""
    one, zero = chances(epsilon)
    if first == second:
        return 0.0
    return abs(math.log(one * (1.0 - zero) / ((1.0 - one) * zero))) if zero > 0.0 else math.inf


def _bits(chances: Callable[[float], Chances], program: Program | None = None) -> Code:
    """Independent bits, each 1 with one of two probabilities."""

    def run(data: int, rng: Rng, epsilon: float, k: int) -> Report:
        one, zero = chances(epsilon)
        return tuple(int(rng.random() < (one if value == data else zero)) for value in range(k))

    return Code(program or run, partial(_runs, chances=chances), partial(_loss, chances=chances))


def _symmetric(epsilon: float) -> Chances:
    keep = 1.0 / (1.0 + math.exp(-epsilon / 2.0))
    return keep, 1.0 - keep


def _optimised(epsilon: float) -> Chances:
    return 0.5, 1.0 / (1.0 + math.exp(epsilon))


def _symmetric_unary(data: int, rng: Rng, epsilon: float, k: int) -> Report:
    keep = math.exp(epsilon / 2.0) / (math.exp(epsilon / 2.0) + 1.0)
    code = [int(value == data) for value in range(k)]
    return tuple(bit if rng.random() < keep else 1 - bit for bit in code)


def _only_the_one(data: int, rng: Rng, epsilon: float, k: int) -> Report:
    keep = math.exp(epsilon / 2.0) / (math.exp(epsilon / 2.0) + 1.0)
    return tuple(int(value == data and rng.random() < keep) for value in range(k))


def _one_coin(data: int, rng: Rng, epsilon: float, k: int) -> Report:
    keep = math.exp(epsilon / 2.0) / (math.exp(epsilon / 2.0) + 1.0)
    code = [int(value == data) for value in range(k)]
    if rng.random() < keep:
        return tuple(code)
    return tuple(1 - bit for bit in code)


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
    only_the_one=Twin(code=_bits(lambda epsilon: (_symmetric(epsilon)[0], 0.0), _only_the_one)),
    one_coin=Twin(code=Code(_one_coin, _one_coin_runs, _one_coin_loss)),
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
