"""Rows about people, made up, in the shape of three that were published: with names left out, hashed, or as ratings."""

import hashlib
from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np

from dpaudit import validate
from dpaudit.catalogue.entry import Parameter, Source, Twin
from dpaudit.catalogue.noise import centred
from dpaudit.catalogue.promises import EPSILON
from dpaudit.catalogue.releases.fixed import exact, in_room

Person = tuple[str, str, float]  # the name, what else stands in the row, and a number that is nobody's business

EXAMPLES = "Sarkar, notes 003, 'Examples'"
CAP = Parameter("cap", 10.0, "units of the number", "the largest number that counts in full", validate.positive)


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


def _average(data: Sequence[Person], epsilon: float, cap: float) -> float:
    return sum(min(max(number, 0.0), cap) for _, _, number in data) / len(data)


_WITHOUT_NAMES = exact(lambda data, **_: tuple(sorted(f"{row} | {number:g}" for _, row, number in data)))

VOTERS, RATINGS = voters(600), ratings(24, 200, 10)
CABS = [(f"{place % 10}{'BQX'[place % 3]}{10 + 4 * place}", "") for place in range(20)]

noisy_column = in_room(
    name="noisy_column",
    title="One column of a table of people: its average, with noise",
    source=Source(EXAMPLES, "Dwork, McSherry, Nissim & Smith 2006, Calibrating noise to sensitivity"),
    formula="the average of the last number of each record, cut to [0, cap], plus a draw of Lap(cap / (n epsilon))",
    neighbours="lists of n records (name, what else stands in the row, a number) with one of them replaced",
    code=centred(_average, lambda data, epsilon, cap: cap / (len(data) * epsilon)),
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
