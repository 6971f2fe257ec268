"""Tables of people: with noise in every cell, and with names taken out or attributes made coarse instead.

The records are those of two hospitals, whose generalisations are the 4-anonymous and the 6-anonymous table of Sarkar,
notes 003, 'Examples' (after Ganta, Kasiviswanathan & Smith 2008, figure 1). The records behind them are made up. Where
the notes write both ">" and "≥" in one group, "≥" is meant. The rows without names, made
up too, have the shape of three that were published: with names left out, hashed, or as ratings.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.catalogue.entry import Code, Entry, Parameter, Source, Twin
from dpaudit.catalogue.noise import Rng, centred, centred_each, exact
from dpaudit.catalogue.promises import DMNS, EPSILON, SARKAR, pure_if_replaced, unless_same

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
