"""The shapes of mechanisms in libraries: classes that check, clip, draw and clamp. In shape, and not in text."""

# ruff: noqa: B007, C420

from __future__ import annotations

import math

import numpy as np

from benchmarks.forms.entry import Collection
from dpaudit import AdjacentPair, ApproximateDP

LIBRARY = Collection("library")
keeps, breaks, twin = LIBRARY.keeps, LIBRARY.breaks, LIBRARY.twin


# --- a clipped mean -------------------------------------------------------------------------------------------


class LaplaceTruncated:
    """Laplace noise on a value within bounds; the noisy value is moved to the nearer bound."""

    def __init__(self, *, epsilon, sensitivity, lower, upper):
        if epsilon <= 0:
            raise ValueError("epsilon must be above 0")
        if lower > upper:
            raise ValueError("lower must be at most upper")
        self.epsilon = float(epsilon)
        self.sensitivity = float(sensitivity)
        self.lower = lower
        self.upper = upper

    def _truncate(self, value):
        if value > self.upper:
            return self.upper
        if value < self.lower:
            return self.lower
        return value

    def randomise(self, value, rng):
        scale = self.sensitivity / self.epsilon
        noisy = value + rng.laplace(0.0, scale)
        return self._truncate(noisy)


def clip_to_bounds(array, bounds):
    lower, upper = bounds
    return np.clip(array, lower, upper)


def mean(array, rng, epsilon=1.0, bounds=(0.0, 1.0)):
    array = clip_to_bounds(np.ravel(array), bounds)
    lower, upper = bounds
    sensitivity = (upper - lower) / array.size
    mechanism = LaplaceTruncated(epsilon=epsilon, sensitivity=sensitivity, lower=lower, upper=upper)
    return mechanism.randomise(np.mean(array), rng)


at = {"epsilon": 1.0, "bounds": (0.0, 10.0)}
form = keeps(
    mean,
    "epsilon",
    "replace_one",
    at=at,
    pair=([0.0, 5.0], [12.0, 5.0]),
    records="a number",
    name="library mean",
    why="no rows raise, and their number is public",
)
twin(
    form,
    "library mean, rows added",
    "the length is in the scale, and no rows raise",
    adjacency="add_or_remove_one",
    pair=([5.0], []),
)
twin(
    form,
    "library mean, bounds of the data",
    "the bounds are the least and the largest",
    ("lower, upper = bounds", "lower, upper = array.min(), array.max()"),
)


# --- a histogram with a threshold -----------------------------------------------------------------------------


class PartitionSelection:
    """Which partitions to release: those whose noisy number of users is at least a threshold."""

    def __init__(self, eps, delta, max_partitions):
        self.max_partitions = max_partitions
        self.scale = max_partitions / eps
        self.threshold = 1 + self.scale * math.log(max_partitions / (2 * delta))

    def bounded(self, rows):
        taken = {}
        for user, partition in rows:
            mine = taken.setdefault(user, [])
            if partition not in mine and len(mine) < self.max_partitions:
                mine.append(partition)
        return taken.values()

    def select(self, rows, rng):
        counts = {}
        for partitions in self.bounded(rows):
            for partition in partitions:
                counts[partition] = counts.get(partition, 0) + 1
        released = {}
        for partition, count in sorted(counts.items()):
            noisy = count + rng.laplace(scale=self.scale)
            if noisy >= self.threshold:
                released[partition] = noisy
        return released

    def select_unbounded(self, rows, rng):
        counts = {}
        for user, partition in rows:
            counts[partition] = counts.get(partition, 0) + 1
        return {p: c + rng.laplace(scale=self.scale) for p, c in sorted(counts.items()) if c >= self.threshold}


selection = PartitionSelection(1.0, 1e-3, 2)
VISITS = AdjacentPair([(1, "a"), (1, "b"), (1, "c"), (2, "a")], [(2, "a")], user=0)
keeps(
    selection.select,
    ApproximateDP(1.0, 1e-3),
    "add_or_remove_user",
    at={},
    pair=VISITS,
    records="the user and a text key",
    name="library histogram",
)
MANY = AdjacentPair([(1, "a")] * 20 + [(2, "b")] * 20, [(2, "b")] * 20, user=0)
breaks(
    selection.select_unbounded,
    ApproximateDP(1.0, 1e-3),
    "add_or_remove_user",
    at={},
    pair=MANY,
    records="the user and a text key",
    name="library histogram, threshold before the noise",
    why="no bound on a user, and an exact comparison",
)


# --- a selection ----------------------------------------------------------------------------------------------


class Exponential:
    """The exponential mechanism over a list of utilities, by its cumulative probabilities."""

    def __init__(self, epsilon, sensitivity=1.0, monotonic=False):
        self.epsilon = epsilon
        self.sensitivity = sensitivity
        self.monotonic = monotonic

    def _probabilities(self, utility):
        scale = self.epsilon / self.sensitivity / (2 - self.monotonic)
        utility = np.array(utility) - max(utility)
        probabilities = np.exp(scale * utility)
        probabilities /= probabilities.sum()
        return np.cumsum(probabilities)

    def randomise(self, utility, rng):
        cumulative = self._probabilities(utility)
        drawn = rng.random()
        if np.any(drawn <= cumulative):
            return int(np.argmax(drawn <= cumulative))
        return len(cumulative) - 1


FAR = ([0, 3], [1, 2])
keeps(Exponential(1.0).randomise, 1.0, "all-differ", at={}, pair=FAR, name="library selection")
keeps(
    Exponential(1.0, monotonic=True).randomise,
    1.0,
    "monotone",
    at={},
    pair=([1, 0], [1, 1]),
    name="library selection, monotonic",
)
breaks(
    Exponential(1.0, monotonic=True).randomise,
    1.0,
    "all-differ",
    at={},
    pair=FAR,
    name="library selection, not monotonic",
    why="2 eps in the limit",
)


# --- the sparse vector technique ------------------------------------------------------------------------------


class SparseVector:
    """Answers whether queries are above a threshold, until so many were."""

    def __init__(self, epsilon, threshold, max_above=1, sensitivity=1.0, share=0.5):
        self.threshold = threshold
        self.max_above = max_above
        self.threshold_scale = sensitivity / (share * epsilon)
        self.query_scale = 2 * max_above * sensitivity / ((1 - share) * epsilon)

    def _above(self, value, noisy_threshold, rng):
        return value + rng.laplace(scale=self.query_scale) >= noisy_threshold

    def run(self, answers, rng):
        noisy_threshold = self.threshold + rng.laplace(scale=self.threshold_scale)
        above = 0
        results = []
        for value in answers:
            if above >= self.max_above:
                break
            is_above = self._above(value, noisy_threshold, rng)
            results.append(is_above)
            above += int(is_above)
        return results

    def run_and_tell(self, answers, rng):
        noisy_threshold = self.threshold + rng.laplace(scale=self.threshold_scale)
        for index, value in enumerate(answers):
            if self._above(value, noisy_threshold, rng):
                return index, value
        return None


FIVE = ([1, 1, 1, 1, 2], [2, 2, 2, 2, 1])
keeps(SparseVector(1.0, 2.0, max_above=2).run, 1.0, "all-differ", at={}, pair=FIVE, name="library sparse vector")
breaks(
    SparseVector(1.0, 2.0).run_and_tell,
    1.0,
    "all-differ",
    at={},
    pair=FIVE,
    name="library sparse vector, with its answer",
    why="the exact answer",
)


# --- sums with bounded contributions --------------------------------------------------------------------------


class SumParams:
    """The bounds of what one user may contribute."""

    def __init__(self, max_partitions, max_rows, low, high):
        self.max_partitions = max_partitions
        self.max_rows = max_rows
        self.low = low
        self.high = high

    @property
    def sensitivity(self):
        return self.max_partitions * self.max_rows * max(abs(self.low), abs(self.high))


def bound_contributions(rows, partitions, params, rng):
    by_user = {}
    for user, partition, value in rows:
        if partition in partitions:
            by_user.setdefault(user, {}).setdefault(partition, []).append(value)
    for mine in by_user.values():
        keys = sorted(mine)
        if len(keys) > params.max_partitions:
            keys = [keys[i] for i in rng.permutation(len(keys))[: params.max_partitions]]
        for key in keys:
            for value in mine[key][: params.max_rows]:
                yield key, min(max(value, params.low), params.high)


def sums_per_partition(rows, rng, eps, partitions, params):
    sums = {partition: 0.0 for partition in partitions}
    for partition, value in bound_contributions(rows, partitions, params, rng):
        sums[partition] += value
    scale = params.sensitivity / eps
    return {partition: sums[partition] + rng.laplace(0, scale) for partition in partitions}


BOUNDS = SumParams(max_partitions=1, max_rows=2, low=-1.0, high=4.0)
BOUGHT = AdjacentPair([(1, "a", 9.0), (1, "a", 9.0), (2, "b", 1.0)], [(2, "b", 1.0)], user=0)
at = {"eps": 1.0, "partitions": ("a", "b"), "params": BOUNDS}
form = keeps(
    sums_per_partition,
    "eps",
    "add_or_remove_user",
    at=at,
    pair=BOUGHT,
    records="the user, a text key and a number",
    name="library sum",
)
twin(
    form,
    "library sum, rows of the first bound",
    "a user has two rows",
    ("params.sensitivity / eps", "params.sensitivity / params.max_rows / eps"),
)
twin(
    form,
    "library sum, partitions of the data",
    "which partitions there are",
    ("    sums = {", "    partitions = sorted({row[1] for row in rows})\n    sums = {"),
)


def sum_of_first_rows(rows, rng, eps, partitions, max_partitions, max_rows, cap):
    kept = {}
    sums = dict.fromkeys(partitions, 0.0)
    for user, partition, value in rows:
        mine = kept.setdefault(user, {})
        if partition not in sums or (partition not in mine and len(mine) == max_partitions):
            continue
        if mine.get(partition, 0) >= max_rows:
            continue
        mine[partition] = mine.get(partition, 0) + 1
        sums[partition] += min(max(value, -cap), cap)
    scale = max_partitions * max_rows * cap / eps
    return [total + rng.laplace(scale=scale) for total in sums.values()]


at = {"eps": 1.0, "partitions": ("a", "b"), "max_partitions": 1, "max_rows": 2, "cap": 4.0}
form = keeps(
    sum_of_first_rows,
    "eps",
    "add_or_remove_user",
    at=at,
    pair=BOUGHT,
    records="the user, a text key and a number",
    name="library sum of first rows",
)
twin(
    form,
    "library sum of all partitions",
    "no bound on partitions",
    (" or (partition not in mine and len(mine) == max_partitions)", ""),
    pair=AdjacentPair([(1, "a", 9.0), (1, "a", 9.0), (1, "b", 9.0), (1, "b", 9.0)], [], user=0),
)
