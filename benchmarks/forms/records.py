"""Records: counts, clipped sums, means, histograms, groups, joins, users, quantiles, sampling."""

# ruff: noqa: C420

from __future__ import annotations

import math
import statistics

import numpy as np

from benchmarks.forms.entry import Collection
from dpaudit import AdjacentPair, ApproximateDP

RECORDS = Collection("records")
keeps, breaks, twin = RECORDS.keeps, RECORDS.breaks, RECORDS.twin
ADD, REPLACE, USER = "add_or_remove_one", "replace_one", "add_or_remove_user"
NUMBER, KEYED, OWNED = "a number", "a text key and a number", "the user and a number"
AGES = ([23, 71, 40], [23, 40])


def older_than(rows, rng, eps, age):
    count = sum(1 for row in rows if row >= age)
    return count + rng.laplace(scale=1 / eps)


form = keeps(older_than, "eps", ADD, at={"eps": 1.0, "age": 65}, pair=AGES, records=NUMBER)
twin(
    form,
    "older than the mean",
    "what is counted moves with the mean",
    (">= age", ">= sum(rows) / max(1, len(rows))"),
    pair=([10] * 9 + [1000], [10] * 9),
)


def how_many(rows, rng, eps):
    return len(rows) + rng.laplace(scale=1 / eps)


form = keeps(how_many, "eps", ADD, pair=AGES, records="anything")
twin(
    form,
    "how many, if any",
    "an empty table is told",
    ("return len(rows)", "if not rows:\n        return 0\n    return len(rows)"),
    pair=([23], []),
)
twin(
    form,
    "how many with noise of the data",
    "seeded by the records",
    ("rng.laplace(scale=1 / eps)", "np.random.default_rng(len(rows)).laplace(scale=1 / eps)"),
)


def sum_replaced(rows, rng, eps, low, high):
    total = sum(max(low, min(high, x)) for x in rows)
    return total + rng.laplace(scale=(high - low) / eps)


at = {"eps": 1.0, "low": -2.0, "high": 3.0}
form = keeps(sum_replaced, "eps", REPLACE, at=at, pair=([-9.0, 1.0], [9.0, 1.0]), records=NUMBER)
twin(
    form,
    "sum replaced at the largest",
    "moves by high - low = 5, noise of 3",
    ("(high - low) / eps", "max(-low, high) / eps"),
)
keeps(sum_replaced, "eps", ADD, at=at, pair=([9.0, 1.0], [1.0]), records=NUMBER, name="sum added")


def mean_of_public(rows, rng, eps, low, high):
    clipped = np.clip(rows, low, high)
    return clipped.mean() + rng.laplace(scale=(high - low) / (len(rows) * eps))


at = {"eps": 1.0, "low": 0.0, "high": 10.0}
form = keeps(mean_of_public, "eps", REPLACE, at=at, pair=([0.0, 1.0], [12.0, 1.0]), records=NUMBER)
twin(form, "mean of a private length", "the scale tells the length", adjacency=ADD, pair=([9.0, 1.0], [1.0]))
twin(
    form,
    "mean without clip",
    "no bound",
    ("np.clip(rows, low, high)", "np.array(rows)"),
    pair=([0.0, 1.0], [99.0, 1.0]),
)


def histogram(rows, rng, eps, keys):
    counts = {key: 0 for key in keys}
    for row in rows:
        if row in counts:
            counts[row] += 1
    return {key: counts[key] + rng.laplace(scale=1 / eps) for key in keys}


PAIRS = (["a", "b", "b"], ["b", "b"])
at = {"eps": 1.0, "keys": ("a", "b", "c")}
form = keeps(histogram, "eps", ADD, at=at, pair=PAIRS, records="a text key")
twin(form, "histogram of replaced rows", "two counts move", adjacency=REPLACE, pair=(["a", "b"], ["c", "b"]))
twin(
    form,
    "histogram of the keys in the data",
    "a key that is in the data is told",
    ("for key in keys}\n    for", "for key in keys}\n    keys = sorted(set(rows))\n    for"),
)
twin(
    form,
    "histogram, unknown key raises",
    "KeyError",
    ("        if row in counts:\n            counts[row] += 1", "        counts[row] += 1"),
    pair=(["a", "d"], ["a"]),
)


def histogram_replaced(rows, rng, eps, keys):
    counts = np.zeros(len(keys))
    for row in rows:
        counts += [row == key for key in keys]
    return counts + rng.laplace(scale=2 / eps, size=len(keys))


keeps(histogram_replaced, "eps", REPLACE, at=at, pair=(["a", "b"], ["c", "b"]), records="a text key")


def bins_of_ages(rows, rng, eps, width, bins):
    counts = [0] * bins
    for age in rows:
        place = min(max(int(age // width), 0), bins - 1)
        counts[place] += 1
    return [max(0, round(c + rng.laplace(scale=1 / eps))) for c in counts]


form = keeps(bins_of_ages, "eps", ADD, at={"eps": 1.0, "width": 20, "bins": 4}, pair=AGES, records=NUMBER)
twin(
    form,
    "bins of ages without the last",
    "an age of 80 and more raises",
    ("min(max(int(age // width), 0), bins - 1)", "max(int(age // width), 0)"),
    pair=([23, 99], [23]),
)


def array_bins(rows, rng, eps, bins):
    places = np.clip(np.array(rows, dtype=int), 0, bins - 1)
    return np.bincount(places, minlength=bins) + rng.laplace(scale=1 / eps, size=bins)


form = keeps(
    array_bins, "eps", ADD, at={"eps": 1.0, "bins": 3}, pair=([0, 2], [0]), records="a whole number below 2^62"
)
twin(
    form,
    "array bins of an empty list",
    "np.bincount refuses floats, and np.clip([]) is one: it raises",
    ("np.clip(np.array(rows, dtype=int),", "np.clip(rows,"),
    pair=([1], []),
)


def sums_by_group(rows, rng, eps, groups, cap):
    sums = dict.fromkeys(groups, 0.0)
    for group, value in rows:
        if group not in sums:
            continue
        sums[group] += min(max(value, 0.0), cap)
    return {group: total + rng.laplace(scale=cap / eps) for group, total in sums.items()}


SPENT = ([("a", 3.0), ("b", 9.0), ("a", 7.0)], [("b", 9.0), ("a", 7.0)])
at = {"eps": 1.0, "groups": ("a", "b"), "cap": 5.0}
form = keeps(sums_by_group, "eps", ADD, at=at, pair=SPENT, records=KEYED)
twin(
    form,
    "sums by group without clip",
    "no value is clipped",
    ("min(max(value, 0.0), cap)", "value"),
    pair=([("a", 60.0), ("b", 1.0)], [("b", 1.0)]),
)


def noisy_average(rows, rng, eps, cap):
    total, count = 0.0, 0
    for x in rows:
        total += abs(x) if abs(x) < cap else cap
        count += 1
    noisy_total = total + rng.laplace(scale=2 * cap / eps)
    noisy_count = count + rng.laplace(scale=2 / eps)
    if noisy_count < 1:
        return 0.0
    return min(cap, max(0.0, noisy_total / noisy_count))


form = keeps(noisy_average, "eps", ADD, at={"eps": 1.0, "cap": 5.0}, pair=([3.0, 9.0], [3.0]), records=NUMBER)
twin(
    form, "noisy average, none if none", "count < 1 is exact", ("if noisy_count < 1", "if count < 1"), pair=([3.0], [])
)


def moments(rows, rng, eps, cap):
    clipped = [min(max(x, -cap), cap) for x in rows]
    n = len(rows)
    first = sum(clipped) / n + rng.laplace(scale=4 * cap / (n * eps))
    second = sum(x * x for x in clipped) / n + rng.laplace(scale=2 * cap**2 / (n * eps))
    return first, max(0.0, second - first**2)


form = keeps(moments, "eps", REPLACE, at={"eps": 1.0, "cap": 2.0}, pair=([-5.0, 1.0], [5.0, 1.0]), records=NUMBER)
twin(
    form,
    "moments about the true mean",
    "two means beside each other differ by noise and the exact mean",
    ("max(0.0, second - first**2)", "second - (sum(clipped) / n) ** 2, first - sum(clipped) / n"),
)


def split_by_sex(rows, rng, eps):
    women = [value for sex, value in rows if sex == "f"]
    others = [value for sex, value in rows if sex != "f"]
    return len(women) + rng.laplace(scale=1 / eps), len(others) + rng.laplace(scale=1 / eps)


form = keeps(split_by_sex, "eps", ADD, pair=([("f", 1.0), ("m", 2.0)], [("m", 2.0)]), records=KEYED)
twin(
    form,
    "split by sex, with the total",
    "a third count",
    ("return len(women)", "return len(rows) + rng.laplace(scale=1 / eps), len(women)"),
)


def median_of_candidates(rows, rng, eps, candidates):
    scores = []
    for c in candidates:
        below = sum(1 for x in rows if x < c)
        above = sum(1 for x in rows if x > c)
        scores.append(-abs(above - below))
    top = max(scores)
    weights = [math.exp(eps * (s - top) / 2) for s in scores]
    total = sum(weights)
    return candidates[int(rng.choice(len(candidates), p=[w / total for w in weights]))]


at = {"eps": 1.0, "candidates": (0, 25, 50, 75, 100)}
form = keeps(median_of_candidates, "eps", ADD, at=at, pair=AGES, records=NUMBER)
twin(
    form,
    "median of the records",
    "only what is among the records can be returned",
    ("    scores = []\n", "    scores = []\n    candidates = sorted(rows)\n"),
)
twin(
    form,
    "median replaced",
    "a score moves by 2",
    adjacency=REPLACE,
    at={"candidates": (25, 50)},
    pair=([1, 1, 30, 30, 30, 30], [1, 99, 30, 30, 30, 30]),
)


def median_and_noise(rows, rng, eps):
    if not rows:
        rows = [0]
    return statistics.median(rows) + rng.laplace(scale=1 / eps)


why = "a median moves by any amount"
breaks(median_and_noise, "eps", ADD, pair=([0, 0, 99, 99, 99], [0, 0, 99, 99]), records=NUMBER, why=why)


def most_common(rows, rng, eps, keys):
    counts = [sum(1 for row in rows if row == key) for key in keys]
    noisy = [c + rng.laplace(scale=1 / eps) for c in counts]
    return keys[noisy.index(max(noisy))]


at = {"eps": 1.0, "keys": ("a", "b", "c")}
form = keeps(most_common, "eps", ADD, at=at, pair=PAIRS, records="a text key", why="one count moves, and one way")
twin(
    form,
    "most common replaced",
    "one count rises, one falls: 2 eps in the limit",
    adjacency=REPLACE,
    pair=(["a", "b", "b", "b"], ["a", "a", "b", "b"]),
)


def first_quantile_above(rows, rng, eps, cuts, wanted):
    threshold = wanted + rng.laplace(scale=2 / eps)
    for cut in cuts:
        count = len([x for x in rows if x <= cut])
        if count + rng.laplace(scale=4 / eps) >= threshold:
            return cut
    return None


at = {"eps": 1.0, "cuts": (20, 40, 60, 80), "wanted": 2}
form = keeps(first_quantile_above, "eps", ADD, at=at, pair=AGES, records=NUMBER)
twin(form, "quantile with its count", "the exact count", ("return cut", "return cut, count"))


def first_of_each_user(rows, rng, eps, most, cap):
    seen = {}
    total = 0.0
    for user, value in rows:
        taken = seen.get(user, 0)
        if taken < most:
            seen[user] = taken + 1
            total += min(max(value, 0.0), cap)
    return total + rng.laplace(scale=most * cap / eps)


VISITS = AdjacentPair([(1, 9.0), (2, 1.0), (1, 9.0), (1, 9.0)], [(2, 1.0)], user=0)
at = {"eps": 1.0, "most": 2, "cap": 5.0}
form = keeps(first_of_each_user, "eps", USER, at=at, pair=VISITS, records=OWNED)
twin(form, "first of each user, for one row", "a user has two", ("most * cap", "cap"))


def distinct_users(rows, rng, eps):
    return len({user for user, _ in rows}) + rng.laplace(scale=1 / eps)


form = keeps(distinct_users, "eps", USER, pair=VISITS, records=OWNED)
twin(form, "rows of users", "a user has many rows", ("{user for user, _ in rows}", "rows"))


def largest_of_each_user(rows, rng, eps, cap):
    largest = {}
    for user, value in rows:
        largest[user] = max(largest.get(user, 0.0), min(value, cap))
    return sum(largest.values()) + rng.laplace(scale=cap / eps)


form = keeps(largest_of_each_user, "eps", USER, at={"eps": 1.0, "cap": 5.0}, pair=VISITS, records=OWNED)
twin(
    form,
    "largest of each user, exact for one",
    "no noise for one user",
    ("+ rng.laplace(scale=cap / eps)", "+ (rng.laplace(scale=cap / eps) if len(largest) > 1 else 0.0)"),
)


def top_keys_of_users(rows, rng, eps, keys, most):
    kept = {}
    for user, key in rows:
        mine = kept.setdefault(user, [])
        if key in keys and key not in mine and len(mine) < most:
            mine.append(key)
    counts = dict.fromkeys(keys, 0)
    for mine in kept.values():
        for key in mine:
            counts[key] += 1
    return [counts[key] + rng.laplace(scale=most / eps) for key in keys]


CLICKS = AdjacentPair([(1, "a"), (2, "b"), (1, "b"), (1, "c")], [(2, "b")], user=0)
at = {"eps": 1.0, "keys": ("a", "b", "c"), "most": 2}
form = keeps(top_keys_of_users, "eps", USER, at=at, pair=CLICKS, records="the user and a text key")
twin(form, "keys of users without the bound", "three keys of one user", (" and len(mine) < most", ""))


def spending_of_users(users, rng, eps, most, cap):
    total = 0.0
    for rows in users.values():
        total += sum(min(max(x, 0.0), cap) for x in rows[:most])
    return total + rng.laplace(scale=most * cap / eps)


BASKETS = ({1: [9.0, 9.0, 9.0], 2: [1.0]}, {2: [1.0]})
MAPPING = "a list of numbers, of each user by name"
at = {"eps": 1.0, "most": 2, "cap": 5.0}
form = keeps(spending_of_users, "eps", USER, at=at, pair=BASKETS, records=MAPPING)
twin(form, "spending of users, all rows", "no bound on rows", ("rows[:most]", "rows"))
twin(form, "spending of users at one row's noise", "a user has two", ("most * cap", "cap"))


def number_of_users(users, rng, eps):
    return len(users) + rng.laplace(scale=1 / eps)


form = keeps(number_of_users, "eps", USER, pair=BASKETS, records=MAPPING)
twin(form, "number of rows of users", "a user has many", ("len(users)", "sum(len(rows) for rows in users.values())"))


def joined_spending(rows, rng, eps, prices, most):
    bought = {}
    for user, item in rows:
        if item in prices:
            bought.setdefault(user, []).append(prices[item])
    total = 0
    for basket in bought.values():
        total += sum(sorted(basket)[-most:])
    return total + rng.laplace(scale=most * max(prices.values()) / eps)


at = {"eps": 1.0, "prices": {"a": 1, "b": 2, "c": 4}, "most": 2}
form = keeps(joined_spending, "eps", USER, at=at, pair=CLICKS, records="the user and a text key")
twin(form, "joined spending at the least price", "the least price for the largest", ("max(prices", "min(prices"))


def local_yes(rows, rng, eps):
    p = 1 / (1 + math.exp(eps))
    return sum(1 - x if rng.random() < p else x for x in rows)


form = keeps(local_yes, "eps", REPLACE, pair=([1, 0], [0, 0]), records="0 or 1")
twin(form, "local yes, added", "the sum is at most the number of rows", adjacency=ADD, pair=([1], []))


def column_sums(rows, rng, eps, columns):
    table = np.clip(np.array(rows, dtype=float).reshape(-1, columns), 0.0, 1.0)
    return table.sum(axis=0) + rng.laplace(scale=columns / eps, size=columns)


form = keeps(
    column_sums,
    "eps",
    ADD,
    at={"eps": 1.0, "columns": 2},
    pair=([(1, 1), (0, 1)], [(0, 1)]),
    records="a vector of two numbers",
)
twin(form, "column sums at one column's noise", "both columns move", ("columns / eps", "1 / eps"))


def sampled_count(rows, rng, eps, rate):
    batch = [row for row in rows if rng.random() < rate]
    return len(batch) + rng.laplace(scale=1 / eps)


SAMPLED = 0.1586  # ln(1 + 0.1 (e - 1)) = 0.158566
form = keeps(sampled_count, SAMPLED, ADD, at={"eps": 1.0, "rate": 0.1}, pair=AGES, records="anything")
twin(
    form,
    "sampled count of the same coin",
    "one coin for all rows",
    ("rng.random() < rate]", "coin < rate]"),
    ("    batch", "    coin = rng.random()\n    batch"),
    at={"rate": 0.5},
    claim=0.63,
    pair=([1] * 4, [1] * 3),
)
twin(form, "sampled count, other rate", "ln(1 + 0.5 (e - 1)) = 0.62", at={"rate": 0.5})


def sampled_gaussian(rows, rng, rate, eps, delta):
    sigma = math.sqrt(2 * math.log(1.25 / delta)) / eps
    kept = np.array(rows)[rng.random(len(rows)) < rate]
    return np.clip(kept, 0, 1).sum() + rng.normal(0, sigma)


claim = ApproximateDP(math.log1p(0.1 * math.expm1(0.5)) + 1e-9, 1e-6)
keeps(
    sampled_gaussian, claim, ADD, at={"rate": 0.1, "eps": 0.5, "delta": 1e-5}, pair=([1.0, 0.0], [0.0]), records=NUMBER
)


def thresholded_keys(rows, rng, eps, delta):
    counts = {}
    for key in rows:
        counts[key] = counts.get(key, 0) + 1
    threshold = 1 + math.log(1 / (2 * delta)) / eps
    released = []
    for key in sorted(counts):
        noisy = counts[key] + rng.laplace(scale=1 / eps)
        if noisy > threshold:
            released.append((key, noisy))
    return released


at = {"eps": 1.0, "delta": 1e-3}
many = ["b", "a"] + ["a", "b"] * 20
form = keeps(
    thresholded_keys, ApproximateDP(1.0, 1e-3), ADD, at=at, pair=(["a", "b", "b"], ["b", "b"]), records="a text key"
)
twin(
    form,
    "thresholded keys in their order",
    "who came first is told",
    ("sorted(counts)", "counts"),
    pair=(many, many[1:]),
)
twin(
    form,
    "threshold without 1",
    "delta e^eps",
    ("1 + math.log(1 / (2 * delta)) / eps", "math.log(1 / (2 * delta)) / eps"),
    at={"delta": 0.01},
    claim=ApproximateDP(1.0, 0.01),
)


def branch_on_many(rows, rng, eps):
    if len(rows) > 2:
        return len(rows) + rng.laplace(scale=1 / eps)
    return len(rows) + rng.laplace(scale=10 / eps)


breaks(branch_on_many, "eps", ADD, pair=([1] * 3, [1] * 2), records="anything", why="the scale depends on the rows")


def largest_value(rows, rng, eps, cap):
    return min(cap, max(rows)) + rng.laplace(scale=cap / eps)


breaks(
    largest_value, "eps", ADD, at={"eps": 1.0, "cap": 5.0}, pair=([3.0], []), records=NUMBER, why="max of none raises"
)
