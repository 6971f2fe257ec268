"""Tables of people: with noise in every cell, and with names taken out or attributes made coarse instead.

The records are those of two hospitals, whose generalisations are the 4-anonymous and the 6-anonymous table of Sarkar,
notes 003, 'Examples' (after Ganta, Kasiviswanathan & Smith 2008, figure 1). The records behind them are made up. Where
the notes write both ">" and "≥" in one group, "≥" is meant. The rows without names, made
up too, have the shape of three that were published: with names left out, hashed, or as ratings.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.base.arrays import Integers, Reals
from dpaudit.catalogue.entry import Code, Entry, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, centred, centred_each, exact
from dpaudit.catalogue.promises import (
    CMS,
    DMNS,
    EPSILON,
    LOGISTIC,
    SARKAR,
    WEIGHT,
    classifier,
    in_unit_ball,
    pure_if_replaced,
    unless_same,
)

in_room = partial(Entry, module="dpaudit.catalogue.releases", promise=pure_if_replaced)

Record = Sequence[Any]  # zip code, age, nationality, condition
AgeGroup = Callable[[int], str]

CONDITIONS = ("AIDS", "Cancer", "Flu", "Heart Disease", "Tuberculosis", "Viral Infection")
DECADES, HALVES = ("<30", "3*", "≥40"), ("<35", "≥35")  # the groups of the two tables

HOSPITAL_A: list[Record] = [
    ("13012", 28, "Canadian", "AIDS"),
    ("13068", 29, "American", "Heart Disease"),
    ("13068", 21, "Japanese", "Viral Infection"),
    ("13053", 23, "American", "Viral Infection"),
    ("13085", 50, "Indian", "Cancer"),
    ("13085", 55, "Russian", "Heart Disease"),
    ("13085", 47, "American", "Viral Infection"),
    ("13085", 49, "American", "Viral Infection"),
    ("13053", 31, "American", "Cancer"),
    ("13053", 37, "Indian", "Cancer"),
    ("13068", 36, "Japanese", "Cancer"),
    ("13068", 35, "American", "Cancer"),
]
HOSPITAL_B: list[Record] = [
    ("13012", 28, "Canadian", "AIDS"),
    ("13012", 27, "Italian", "Tuberculosis"),
    ("13067", 33, "American", "Flu"),
    ("13053", 19, "Indian", "Tuberculosis"),
    ("13067", 30, "American", "Cancer"),
    ("13053", 34, "Japanese", "Cancer"),
    ("13012", 38, "American", "Cancer"),
    ("13067", 52, "Canadian", "Cancer"),
    ("13053", 61, "American", "Cancer"),
    ("13067", 44, "Indian", "Tuberculosis"),
    ("13012", 49, "Russian", "Viral Infection"),
    ("13053", 36, "American", "Viral Infection"),
]


def decade(age: int) -> str:
    """The age group of the 4-anonymous table.

    >>> decade(28), decade(35), decade(40)
    ('<30', '3*', '≥40')
    """
    return "<30" if age < 30 else "3*" if age < 40 else "≥40"


def half(age: int) -> str:
    """The age group of the 6-anonymous table.

    >>> half(34), half(35)
    ('<35', '≥35')
    """
    return "<35" if age < 35 else "≥35"


def k_anonymous(records: Sequence[Record], k: int, group: AgeGroup) -> tuple[str, ...]:
    """The table: zip code cut to three digits, age to a group, nationality left out; groups of fewer than k left out.

    >>> k_anonymous(HOSPITAL_A, 4, decade)[0]
    '130** | <30 | * | AIDS'
    """
    keys = [f"{zip_code[:3]}** | {group(age)} | *" for zip_code, age, _, _ in records]
    size = Counter(keys)
    return tuple(f"{key} | {record[3]}" for key, record in zip(keys, records, strict=True) if size[key] >= k)


def counts(records: Sequence[Record], group: AgeGroup, groups: Sequence[str]) -> list[int]:
    """How many have each condition in each age group: the groups in order, in each the conditions in order.

    Groups and conditions are fixed beforehand, so that the list is of one length for all data.
    """
    seen = Counter((group(age), condition) for _, age, _, condition in records)
    return [seen[name, condition] for name in groups for condition in CONDITIONS]


def cell(name: str, condition: str, groups: Sequence[str] = DECADES) -> int:
    """The place of a count in `counts`.

    >>> cell("3*", "Cancer")
    7
    """
    return groups.index(name) * len(CONDITIONS) + CONDITIONS.index(condition)


def changed(records: Sequence[Record], row: int, condition: str) -> list[Record]:
    """The records with another condition in one row: the other world of an attack on a condition."""
    zip_code, age, nationality, _ = records[row]
    return [*records[:row], (zip_code, age, nationality, condition), *records[row + 1 :]]


Records = Sequence[Record]

GANTA = "Ganta, Kasiviswanathan & Smith 2008, Composition attacks and auxiliary information in data privacy"


def _pseudonymised(data: Records, rng: Rng, epsilon: float) -> tuple[str, ...]:
    rows = [""] * len(data)
    for identity, record in zip(rng.permutation(len(data)), data, strict=True):
        rows[identity] = _without_name(record)
    return tuple(rows)


def _pseudonymised_runs(data: Records, runs: int, rng: Rng, epsilon: float) -> npt.NDArray[np.str_]:
    order = np.tile(np.arange(len(data), dtype=np.int16), (runs, 1))
    rows: npt.NDArray[np.str_] = np.array([_without_name(record) for record in data])
    rng.permuted(order, axis=1, out=order)
    return np.take(rows, order)


def _without_name(record: Record) -> str:
    return " | ".join(map(str, record))


noisy_table = in_room(
    name="noisy_table",
    title="A table of conditions by age group, with noise in every cell",
    source=Source(f"{SARKAR}, 'K-anonymity', as a release with DP", DMNS),
    formula="for each age group and each condition of a fixed list: how many, plus a draw of Lap(2 / epsilon)",
    neighbours="lists of records (zip code, age, nationality, condition) with one replaced: two cells move by 1",
    code=centred_each(lambda data, **_: counts(data, decade, DECADES), lambda data, epsilon: 2.0 / epsilon),
    parameters=(EPSILON,),
    default_pair=(HOSPITAL_A, changed(HOSPITAL_A, 0, "Flu")),
).with_twins(
    """pseudonymised: A pseudonymised table: names replaced by random numbers
        zip code, age and nationality still single a person out, and beside them stands the condition
        every record as it is; the name is replaced by a random number, the place of its row
    four_anonymous: The 4-anonymous table of the notes
        the conditions of a group are exact: where all four share one, each of them is known to have it
        zip code 130**, age as <30, 3* or ≥40, no nationality, condition exact; groups below 4 left out
    six_anonymous: The 6-anonymous table of the notes
        the conditions of a group are exact: who can rule out the others' rows reads the one that is left
        zip code 130**, age as <35 or ≥35, no nationality, condition exact; groups below 6 left out
    generalised: A table made coarse, with no look at the size of the groups
        a coarse zip code and age with the nationality still leave people alone in their group
        zip code cut to three digits, age to its decade; nationality and condition exact""",
    pseudonymised=Twin(
        code=Code(
            _pseudonymised,
            _pseudonymised_runs,
            unless_same(lambda data, epsilon: sorted(map(_without_name, data))),  # the order is uniform
        )
    ),
    four_anonymous=Twin(
        code=exact(lambda data, epsilon: k_anonymous(data, 4, decade)),
        default_pair=(HOSPITAL_A, changed(HOSPITAL_A, 8, "Flu")),
    ),
    six_anonymous=Twin(
        code=exact(lambda data, epsilon: k_anonymous(data, 6, half)),
        default_pair=(HOSPITAL_B, changed(HOSPITAL_B, 6, "Heart Disease")),
    ),
    generalised=Twin(
        code=exact(
            lambda data, **_: tuple(
                f"{zip_code[:3]}** | {age // 10}* | {nationality} | {condition}"
                for zip_code, age, nationality, condition in data
            )
        )
    ),
)


def _seen_at(data: Records, hospital: str) -> list[Record]:
    return [record[1:] for record in data if hospital in record[0]]


def _both_k_anonymous(data: Records, **_: float) -> tuple[str, ...]:
    tables = k_anonymous(_seen_at(data, "A"), 4, decade), k_anonymous(_seen_at(data, "B"), 6, half)
    return tuple(f"{name}: {row}" for name, table in zip("AB", tables, strict=True) for row in table)


def _seen(condition: str) -> list[Record]:
    """Both hospitals' records, with the first patient, who went to both, as one record of this condition."""
    both = ("AB", *HOSPITAL_A[0][:3], condition)
    return [both, *(("A", *record) for record in HOSPITAL_A[1:]), *(("B", *record) for record in HOSPITAL_B[1:])]


two_noisy_tables = in_room(
    name="two_noisy_tables",
    title="Two hospitals with common patients, each with a noisy table",
    source=Source(f"{SARKAR}, 'Examples' (the two tables), as releases with DP", GANTA),
    formula="for each hospital, age group and condition: how many, plus a draw of Lap(4 / epsilon); both tables",
    neighbours=(
        "lists of records (hospitals A, B or AB, zip code, age, nationality, condition) with one of them replaced: "
        "four cells move by 1"
    ),
    code=centred_each(
        lambda data, **_: counts(_seen_at(data, "A"), decade, DECADES) + counts(_seen_at(data, "B"), half, HALVES),
        lambda data, epsilon: 4.0 / epsilon,
    ),
    parameters=(EPSILON,),
    default_pair=(_seen("AIDS"), _seen("Flu")),
).with_twins(
    """both_k_anonymous: The 4-anonymous and the 6-anonymous table of the notes, together
        a patient of both hospitals has one of the conditions that both groups hold, and that may be only one
        the 4-anonymous table of hospital A, then the 6-anonymous table of hospital B""",
    both_k_anonymous=Twin(code=exact(_both_k_anonymous)),
)


Person = tuple[str, str, float]  # the name, what else stands in the row, and a number that is nobody's business

EXAMPLES = "Sarkar, notes 003, 'Examples'"
CAP = Parameter("cap", 10.0, "units of the number", "the largest number that counts in full")


def voters(size: int, seed: int = 1997) -> list[tuple[str, str]]:
    """The voters of a town with seven zip codes: name, and 'zip code | date of birth | sex', all drawn at random.

    >>> voters(1)
    [('voter 0', '02143 | 1960-03-26 | F')]
    """
    drawn = np.random.default_rng(seed).integers(0, [7, 60 * 365, 2], (size, 3)).tolist()
    return [
        (f"voter {place}", f"{2138 + code:05} | {date(1919, 1, 1) + timedelta(day)} | {'FM'[sex]}")
        for place, (code, day, sex) in enumerate(drawn)
    ]


def ratings(people: int, films: int, each: int, seed: int = 2006) -> list[tuple[str, str]]:
    """Subscribers, and 'film:stars@day' for `each` of the films that they rated; film k is seen 1 / (k + 1) as often.

    >>> ratings(1, 9, 2)[0][1].count("@")
    2
    """
    rng, chances = np.random.default_rng(seed), 1.0 / np.arange(1, films + 1)
    seen = [sorted(rng.choice(films, each, False, chances / chances.sum()).tolist()) for _ in range(people)]
    rows = [" ".join(f"{film}:{rng.integers(1, 6)}@{rng.integers(0, 2000)}" for film in row) for row in seen]
    return [(f"subscriber {place}", row) for place, row in enumerate(rows)]


def hashed(name: str) -> str:
    """The pseudonym of a name: the same for everybody who computes it."""
    return hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()


def _two_worlds(people: Sequence[tuple[str, str]]) -> tuple[list[Person], list[Person]]:
    """Everybody with a number; that of the first is 10 or 0."""
    others = [(name, row, float(3 * place % 8)) for place, (name, row) in enumerate(people[1:])]
    return [(*people[0], 10.0), *others], [(*people[0], 0.0), *others]


_WITHOUT_NAMES = exact(lambda data, **_: tuple(sorted(f"{row} | {number:g}" for _, row, number in data)))

VOTERS, RATINGS = voters(600), ratings(24, 200, 10)
CABS = [(f"{place % 10}{'BQX'[place % 3]}{10 + 4 * place}", "") for place in range(20)]

noisy_column = in_room(
    name="noisy_column",
    title="One column of a table of people: its average, with noise",
    source=Source(EXAMPLES, "Dwork, McSherry, Nissim & Smith 2006, Calibrating noise to sensitivity"),
    formula="the average of the last number of each record, cut to [0, cap], plus a draw of Lap(cap / (n epsilon))",
    neighbours="lists of n records (name, what else stands in the row, a number) with one of them replaced",
    code=centred(
        lambda data, epsilon, cap: sum(min(max(number, 0.0), cap) for _, _, number in data) / len(data),
        lambda data, epsilon, cap: cap / (len(data) * epsilon),
    ),
    parameters=(EPSILON, CAP),
    default_pair=_two_worlds(VOTERS[:20]),
).with_twins(
    """without_names: Patients without names, with zip code, date of birth and sex (as in Massachusetts)
        a list of voters has the same three attributes beside the names, and most people have theirs alone
        every row without its name, sorted: 'zip code | date of birth | sex | days in hospital'
    hashed_names: Taxi cabs under pseudonyms that are a hash of their plate (as in New York)
        there are so few plates that all of them can be hashed and looked up
        for each cab 'md5(plate) | income of a year', sorted
    ratings: Ratings of films with their dates, without names (as of the Netflix prize)
        nobody else has rated the same few films at about the same time: a few known ratings single a row out
        for each subscriber 'film:stars@day ...' and the stars of one film more, sorted""",
    without_names=Twin(code=_WITHOUT_NAMES),
    hashed_names=Twin(
        code=exact(lambda data, **_: tuple(sorted(f"{hashed(name)} | {number:g}" for name, _, number in data))),
        default_pair=_two_worlds(CABS),
    ),
    ratings=Twin(code=_WITHOUT_NAMES, default_pair=_two_worlds(RATINGS)),
)


Labelled = Sequence[Sequence[float]]  # a 1, the features, and a label of -1 or +1


def population(size: int, features: int, seed: int) -> list[list[float]]:
    """Labelled with standard normal features, to two digits; the label leans towards the first of them.

    >>> population(1, 2, 0)
    [[1.0, 0.13, -0.13, 1.0]]
    """
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((size, features)).round(2)
    labels = np.where(x[:, 0] + 0.5 * rng.standard_normal(size) > 0.0, 1.0, -1.0)
    records: list[list[float]] = np.column_stack([np.ones(size), x, labels]).tolist()
    return records


def fit(data: Labelled, weight: float) -> Reals:
    """The coefficients of logistic regression, each record scaled into the unit ball."""
    return classifier([in_unit_ball(record) for record in data], weight, LOGISTIC)


def _both(data: Labelled, epsilon: float, weight: float) -> Reals:
    return np.concatenate([fit(data[:-1], weight), fit(data, weight)])


def _scale(data: Labelled, epsilon: float, weight: float) -> float:
    """A record moves each model by at most 2 / (n weight) in length, and sqrt(d) times that in absolute values."""
    return 2.0 * math.sqrt(len(data[0]) - 1) * 2.0 / ((len(data) - 1) * weight * epsilon)


def _read(reading: Callable[[Reals], Any]) -> Code:
    return exact(lambda data, **given: tuple(np.ravel(reading(_both(data, **given))).tolist()))


_PEOPLE = population(13, 3, 11)
_ASKED = np.array(population(21, 3, 13))[:, :-1]

noisy_models = in_room(
    name="noisy_models",
    title="A classifier before and after somebody joins, each with noise",
    source=Source("Sarkar, notes 003, 'What about machine learning models?'", CMS),
    formula=(
        "logistic regression with (weight / 2) ||w||^2 on all but the last of n records, then on all, ||x|| <= 1; plus "
        "a draw of Lap(4 sqrt(d) / ((n - 1) weight epsilon)) in each of the 2 d coefficients"
    ),
    neighbours="lists of n records (a 1, features, a label of -1 or +1) with one of them replaced",
    code=centred_each(_both, _scale),
    parameters=(EPSILON, WEIGHT),
    default_pair=(_PEOPLE, [[*_PEOPLE[0][:-1], -_PEOPLE[0][-1]], *_PEOPLE[1:]]),
).with_twins(
    """exact: A classifier before and after somebody joins, exactly
        the difference points to the features of who joined, and who knows the others finds them to the digit
        the d coefficients without the last record, then with it
    labels_only: Classifiers that answer only yes or no, to 21 questions
        a record that turns the boundary across one of the questions is seen
        for 21 public points: their labels by the model before, then by the one after""",
    exact=Twin(code=_read(lambda both: both)),
    labels_only=Twin(code=_read(lambda both: both.reshape(2, -1) @ _ASKED.T > 0.0)),
)


Bits = Sequence[int]

QUERIES = Parameter("queries", 6, "queries", "how many subsets are counted")
DINUR = "Dinur & Nissim 2003, Revealing information while preserving privacy"


@lru_cache(maxsize=64)
def subsets(people: int, queries: int) -> Integers:
    """The public subsets, the same for everybody: a row for each query, with a 1 for everyone it counts.

    Each holds each person with probability one half, drawn once and for all.

    >>> subsets(4, 2).shape
    (2, 4)
    """
    chosen = np.random.default_rng([people, queries]).integers(0, 2, (queries, people))
    chosen.flags.writeable = False
    return chosen


def most_queries_of_one(people: int, queries: int) -> int:
    """The l1 sensitivity: how many of the counts the person in most subsets is in.

    >>> most_queries_of_one(8, 6)
    5
    """
    return int(subsets(people, queries).sum(axis=0).max())


def _noisy(data: Bits, rng: Rng, epsilon: float, queries: int) -> tuple[float, ...]:
    scale = most_queries_of_one(len(data), queries) / epsilon
    chosen = subsets(len(data), queries)
    return tuple(sum(bit for bit, c in zip(data, row, strict=True) if c) + rng.laplace(scale=scale) for row in chosen)


def _counts(data: Bits, queries: int, **_: float) -> Reals:
    return np.asarray(subsets(len(data), queries) @ np.asarray(data), float)


def _bounded(data: Bits, rng: Rng, epsilon: float, queries: int, error: float) -> tuple[float, ...]:
    return tuple(float(count + rng.uniform(-error, error)) for count in _counts(data, queries))


def _bounded_runs(data: Bits, runs: int, rng: Rng, epsilon: float, queries: int, error: float) -> Reals:
    return _counts(data, queries) + rng.uniform(-error, error, (runs, queries))


def _flipped(data: Bits, queries: int) -> list[int]:
    """The data with another bit for the person who is in most of the subsets."""
    person = int(subsets(len(data), queries).sum(axis=0).argmax())
    return [1 - bit if place == person else bit for place, bit in enumerate(data)]


_BITS = [0, 1, 1, 0, 1, 0, 0, 1]

noisy_subset_counts = in_room(
    name="noisy_subset_counts",
    title="Counts over many subsets of the people, with noise for all of them together",
    source=Source("Sarkar, notes 003, 'Aggregate functions' (data reconstruction attack)", DINUR),
    formula="for each public subset: how many in it have the bit, plus Lap(s / epsilon); nobody is in more than s",
    neighbours="lists of bits, one a person in a public order, with one of them replaced",
    code=centred_each(
        _counts, lambda data, epsilon, queries: most_queries_of_one(len(data), queries) / epsilon, _noisy
    ),
    parameters=(EPSILON, QUERIES),
    default_pair=(_BITS, _flipped(_BITS, 6)),
).with_twins(
    """exact: Exact counts over many subsets
        as many counts as people are linear equations for all the bits
        for each public subset: how many in it have the bit
    bounded_noise: Counts over many subsets, each off by at most a little
        the noise ends, and errors well below the square root of the people leave nearly every bit to be found
        for each public subset: how many in it have the bit, plus a draw from the uniform on [-error, error]
    noise_of_one_query: Counts over many subsets, each with the noise that one alone would need
        every count is epsilon-DP by itself, and a person in five of them pays five times
        for each public subset: how many in it have the bit, plus a draw of Lap(1 / epsilon)""",
    exact=Twin(code=exact(lambda data, epsilon, queries: tuple(map(int, _counts(data, queries))))),
    bounded_noise=Twin(
        code=Code(_bounded, _bounded_runs, unless_same(lambda data, queries, **_: _counts(data, queries).tolist())),
        parameters=(Parameter("error", 1.0, "people", "the largest noise"),),
    ),
    noise_of_one_query=Twin(code=centred_each(_counts, lambda data, epsilon, queries: 1.0 / epsilon)),
)
