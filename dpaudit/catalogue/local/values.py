"""One of k values of one person: told, or hidden among others, at random."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from dpaudit import validate
from dpaudit.arrays import Bits, Places
from dpaudit.catalogue.entry import Code, Entry, Parameter, Program, Source, Twin
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.promises import EPSILON, pure_if_local
from dpaudit.claims import PureDP
from dpaudit.errors import InvalidSpec

VALUES = Parameter("k", 4, "values", "how many values there are: 0, 1, ..., k - 1", partial(validate.whole, least=2))
in_room = partial(
    Entry,
    module="dpaudit.catalogue.local",
    neighbours="any two values",
    parameters=(EPSILON, VALUES),
    promise=pure_if_local,
    default_pair=(0, 3),
)


# --- k-ary randomised response ------------------------------------------------------------------------------------


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
    kept = keep(epsilon, k)
    other = np.ceil((rng.random(runs) - kept) * ((k - 1) / (1.0 - kept)))
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
    binary_keep=Twin(
        title="Randomised response on k values that keeps as on two",
        reason="the truth is told as often as with two values, but each lie is k - 1 times rarer: epsilon + ln(k - 1)",
        formula="the value with probability e^epsilon / (e^epsilon + 1), otherwise any other one, all equally likely",
        code=Code(partial(_k_ary, keep=_binary_keep), partial(_k_ary_runs, keep=_binary_keep), _binary_keep_loss),
    ),
    lies_nearby=Twin(
        title="Randomised response on k values that lies by one only",
        reason="a report rules out every value more than one away from it",
        formula="the value with probability e^epsilon / (e^epsilon + k - 1), otherwise the next or the previous one",
        code=Code(_lies_nearby, _lies_nearby_runs, _lies_nearby_loss),
        default_pair=(0, 2),
    ),
    bit_by_bit=Twin(
        title="Randomised response on each bit of a value, each for the whole epsilon",
        reason="the bits of one value are several questions: epsilon each, and as many as differ add up",
        formula="each binary digit of the value with probability e^epsilon / (e^epsilon + 1), otherwise the other",
        code=Code(
            _bit_by_bit, _bit_by_bit_runs, lambda first, second, epsilon, k: epsilon * (first ^ second).bit_count()
        ),
    ),
)


# --- subset selection ---------------------------------------------------------------------------------------------

SIZE = Parameter("size", 2, "values", "how many values a report holds, less than k", partial(validate.whole, least=1))
SIX = Parameter("k", 6, "values", "how many values there are: 0, 1, ..., k - 1", partial(validate.whole, least=2))


def _subset_claim(epsilon: float, k: int, size: int) -> PureDP:
    if size >= k:
        raise InvalidSpec(f"size must be less than k = {k}, got {size}")
    return pure_if_local(epsilon)


def _report(members: set[int], k: int) -> tuple[int, ...]:
    return tuple(int(value in members) for value in range(k))


def _subset_runs(data: int, runs: int, rng: Rng, k: int, size: int, keep: float) -> Bits:
    """One bit for each value: the true one is in with probability `keep`, and of the others those of largest draws."""
    draws = rng.random((runs, k))
    draws[:, data] = np.where(rng.random(runs) < keep, 2.0, -1.0)
    least = np.partition(draws, k - size, axis=1)[:, k - size, None]
    return (draws >= least).view(np.int8)


def _subset_loss(first: int, second: int, k: int, size: int, keep: float) -> float:
    """A subset that holds the value: keep / C(k - 1, size - 1); one without it: (1 - keep) / C(k - 1, size)."""
    if first == second:
        return 0.0
    within, without = keep / math.comb(k - 1, size - 1), (1.0 - keep) / math.comb(k - 1, size)
    return abs(math.log(within / without)) if without > 0.0 else math.inf


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

    return Code(
        program or run,
        lambda data, runs, rng, epsilon, k, size: _subset_runs(data, runs, rng, k, size, keep(epsilon, k, size)),
        lambda first, second, epsilon, k, size: _subset_loss(first, second, k, size, keep(epsilon, k, size)),
    )


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
    kept_as_on_two=Twin(
        title="Subset selection that holds the true value as often as a report on two values",
        reason="a subset with the true value is one of C(k - 1, size - 1) only: epsilon + ln((k - size) / size)",
        formula="as subset selection, the true value within with probability e^epsilon / (e^epsilon + 1)",
        code=_holding(lambda epsilon, k, size: _k_ary_keep(epsilon, 2)),
    ),
    always_in=Twin(
        title="The true value hidden among decoys",
        reason="the true value is always in the report, so every value that is not in it is ruled out",
        formula="the true value and size - 1 random others",
        code=_holding(lambda epsilon, k, size: 1.0, _always_in),
    ),
)
