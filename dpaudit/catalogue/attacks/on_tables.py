"""Attacks on tables without names: what an attacker knows of a person leads to that person's row or group."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from string import ascii_uppercase
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.base.arrays import Bools, Reals
from dpaudit.catalogue.attacks.attack import Attack
from dpaudit.catalogue.entry import Entry, Source
from dpaudit.catalogue.releases.tables import (
    CABS,
    CONDITIONS,
    DECADES,
    EXAMPLES,
    HALVES,
    HOSPITAL_A,
    RATINGS,
    VOTERS,
    cell,
    changed,
    hashed,
    noisy_column,
    noisy_subset_counts,
    noisy_table,
    subsets,
    two_noisy_tables,
)
from dpaudit.data import AdjacentPair

Rows = npt.NDArray[Any]  # (run, row), a line of text each

SARKAR = "Sarkar, notes 003"
IN_B = len(DECADES) * len(CONDITIONS)  # where the second hospital's counts begin


def present(rows: Rows, group: str) -> Bools:
    """Which conditions a group of the table holds: (run, condition), in the order of `CONDITIONS`.

    >>> present(np.array([["130** | <30 | * | AIDS", "130** | 3* | * | Flu"]]), "130** | <30 | *").tolist()
    [[True, False, False, False, False, False]]
    """
    rows = np.asarray(rows, np.str_)
    lines, places = np.unique(rows[:1] if one_table(rows) else rows, return_inverse=True)
    places = places.reshape(-1, rows.shape[1])
    matches = [np.array([line == f"{group} | {condition}" for line in lines])[places] for condition in CONDITIONS]
    return np.broadcast_to(np.stack([each.any(axis=1) for each in matches], axis=1), (len(rows), len(CONDITIONS)))


def one_table(rows: Rows) -> bool:
    """Whether all runs published the same rows."""
    return rows.strides[0] == 0 or bool((rows == rows[:1]).all())  # what draws nothing publishes one table


def only(conditions: Bools, condition: str, ruled_out: Sequence[str] = ()) -> Bools:
    """Whether this condition is the one that is left of those present once some are ruled out."""
    left = conditions & [each not in ruled_out for each in CONDITIONS]
    return np.asarray(left[:, CONDITIONS.index(condition)] & (left.sum(axis=1) == 1))


homogeneity = Attack(
    name="homogeneity",
    title="Homogeneity: everybody of the group has the same condition",
    source=Source(f"{SARKAR}, 'K-anonymity'", "Machanavajjhala, Kifer, Gehrke & Venkitasubramaniam 2007, l-diversity"),
    formula=(
        "the attacker knows that he is 31, and says cancer where cancer is all that the group of the thirties holds; "
        "from the noisy table: where the thirties have over 3 more cancer than flu"
    ),
    without=noisy_table.four_anonymous,
    private=noisy_table,
    pair=AdjacentPair(*noisy_table.four_anonymous.default_pair, name="he has cancer, or flu"),
    guess=lambda rows: only(present(rows, "130** | 3* | *"), "Cancer"),
    guess_private=lambda counts: counts[:, cell("3*", "Cancer")] - counts[:, cell("3*", "Flu")] > 3.0,
)


background = Attack(
    name="background_knowledge",
    title="Background knowledge: all other conditions of the group can be ruled out",
    source=Source(f"{SARKAR}, 'Knowledge'", "Machanavajjhala, Kifer, Gehrke & Venkitasubramaniam 2007, l-diversity"),
    formula=(
        "the attacker knows that he is 21 and has neither AIDS nor a heart disease, and says viral infection where "
        "that is what is left of the group; from the noisy table: where it has over 1 more viral infection than cancer"
    ),
    without=noisy_table.four_anonymous,
    private=noisy_table,
    pair=AdjacentPair(HOSPITAL_A, changed(HOSPITAL_A, 2, "Cancer"), name="he has a viral infection, or cancer"),
    guess=lambda rows: only(present(rows, "130** | <30 | *"), "Viral Infection", ruled_out=("AIDS", "Heart Disease")),
    guess_private=lambda counts: counts[:, cell("<30", "Viral Infection")] - counts[:, cell("<30", "Cancer")] > 1.0,
)


def _more_aids_in_both(counts: Reals) -> Bools:
    aids = counts[:, cell("<30", "AIDS")] + counts[:, IN_B + cell("<35", "AIDS", HALVES)]
    flu = counts[:, cell("<30", "Flu")] + counts[:, IN_B + cell("<35", "Flu", HALVES)]
    return aids - flu > -1.0


intersection = Attack(
    name="intersection",
    title="Intersection: what the 4-anonymous and the 6-anonymous table have in common",
    source=Source(f"{SARKAR}, 'Examples' (the two tables)", "Ganta, Kasiviswanathan & Smith 2008, Composition attacks"),
    formula=(
        "the attacker knows that she is 28 and was in both hospitals, and says AIDS where it is the only condition "
        "that both of her groups hold; from the noisy tables: where AIDS less flu in both is nearer to 1 than to -3"
    ),
    without=two_noisy_tables.both_k_anonymous,
    private=two_noisy_tables,
    pair=AdjacentPair(*two_noisy_tables.default_pair, name="she has AIDS, or flu"),
    guess=lambda rows: only(present(rows, "A: 130** | <30 | *") & present(rows, "B: 130** | <35 | *"), "AIDS"),
    guess_private=_more_aids_in_both,
)


# attacks on rows without names: a join with a list that has them, a look-up of all pseudonyms, a match of ratings


Rated = Mapping[int, tuple[int, int]]  # stars and day, by film

STARS, DAYS, APART = 1.5, 30.0, 1.5  # errors that count e times less, and the margin: as in the paper


def register(named: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Names by what is known of them, of those whom it singles out.

    >>> register([("Ann", "02138 | F"), ("Bob", "02138 | M"), ("Tom", "02138 | M")])
    {'02138 | F': 'Ann'}
    """
    seen = Counter(known for _, known in named)
    return {known: name for name, known in named if seen[known] == 1}


def joined(rows: Iterable[str], names: Mapping[str, str]) -> dict[str, float]:
    """The numbers, by name, of all whose row has a key that is in the list, and is no other row's.

    >>> joined(["02138 | F | 7", "02138 | M | 3"], {"02138 | F": "Ann"})
    {'Ann': 7.0}
    """
    parts = [row.rpartition(" | ") for row in rows]
    seen = Counter(key for key, _, _ in parts)
    return {names[key]: float(number) for key, _, number in parts if key in names and seen[key] == 1}


def rated(row: str) -> dict[int, tuple[int, int]]:
    """Stars and day by film, as a row of ratings has them.

    >>> rated("3:5@120 17:1@8")
    {3: (5, 120), 17: (1, 8)}
    """
    parts = [part.replace("@", ":").split(":") for part in row.split()]
    return {int(film): (int(stars), int(day)) for film, stars, day in parts}


def match(tables: Sequence[Rated], known: Rated) -> int | None:
    """The row that fits what is known best, if it does so by a margin; stars and days may be off.

    Narayanan & Shmatikov 2008 (Scoreboard-RH, as used on the Netflix ratings): a film that few rated says more.

    >>> tables = [{1: (5, 10)}, {2: (3, 70)}, {3: (1, 99)}, {4: (2, 5)}]
    >>> match(tables, {2: (3, 77)}), match(tables, {9: (1, 1)})
    (1, None)
    """
    scores = np.zeros(len(tables))
    for film, (stars, day) in known.items():
        ratings = [(place, table[film]) for place, table in enumerate(tables) if film in table]
        for place, (own, at) in ratings:
            close = math.exp(-abs(stars - own) / STARS) + math.exp(-abs(day - at) / DAYS)
            scores[place] += close / math.log(max(2, len(ratings)))
    second, best = np.sort(scores)[-2:]
    return int(scores.argmax()) if best - second > APART * scores.std() else None


_LIST = register(VOTERS)
PLATES = {
    hashed(f"{i // 100}{x}{i % 100:02}"): f"{i // 100}{x}{i % 100:02}" for i in range(1000) for x in ascii_uppercase
}
_KNOWN = {film: (min(5, stars + 1), day + 9) for film, (stars, day) in list(rated(RATINGS[0][1]).items())[::2]}


def _beside_known_ratings(rows: Sequence[str]) -> float:
    parts = [row.rpartition(" | ") for row in rows]
    place = match([rated(row) for row, _, _ in parts], _KNOWN)
    return 0.0 if place is None else float(parts[place][2])


def _attack(
    name: str, title: str, paper: str, formula: str, twin: str, number_in: Callable[[Sequence[str]], float]
) -> Attack:
    """Says the first world where the number that is found in the table is above 5, or a noisy average is high."""
    without = noisy_column.twins[twin]
    middle = float(np.mean([number for data in without.default_pair for _, _, number in data]))

    def guess(rows: Rows) -> Bools:
        tables = rows[:1] if one_table(rows) else rows
        return np.broadcast_to(np.array([number_in(table.tolist()) > 5.0 for table in tables]), len(rows))

    return Attack(
        name=name,
        title=title,
        source=Source(EXAMPLES, paper),
        formula=f"{formula}; from the noisy average: where it lies above the middle of the two worlds",
        without=without,
        private=noisy_column,
        pair=AdjacentPair(*without.default_pair, name="the number in question is 10, or 0"),
        guess=guess,
        guess_private=lambda averages: np.asarray(averages > middle),
    )


linkage = _attack(
    "linkage",
    "Linkage: a table without names is joined with a list of voters",
    "Sweeney 2002, k-anonymity: a model for protecting privacy",
    "the rows are joined with a list of 600 voters by zip code, date of birth and sex, and the patient's row is read",
    "without_names",
    lambda rows: joined(rows, _LIST).get(VOTERS[0][0], 0.0),
)
inverted_pseudonyms = _attack(
    "inverted_pseudonyms",
    "Inversion: all pseudonyms there can be are worked out beforehand",
    "Douriez, Doraiswamy, Freire & Silva 2016, Anonymizing NYC taxi data: does it matter?",
    "all 26,000 plates are hashed, and the income is read beside the hash of the cab's plate",
    "hashed_names",
    lambda rows: joined(rows, PLATES).get(CABS[0][0], 0.0),
)
matched_ratings = _attack(
    "matched_ratings",
    "Match of noisy ratings: half of a subscriber's ratings, each off by a star and nine days",
    "Narayanan & Shmatikov 2008, Robust de-anonymization of large sparse datasets",
    "the row with the best score, if the second is 1.5 standard deviations away: sum over the known films of "
    "(e^(-|stars off| / 1.5) + e^(-|days off| / 30)) / ln(how many rated the film)",
    "ratings",
    _beside_known_ratings,
)


Decoder = Callable[[Reals, int], Bools]

SARKAR_NOTES = "Sarkar, notes 003, 'Aggregate functions' (data reconstruction attack)"
PEOPLE, QUERIES = 24, 72


def least_squares(counts: Reals, people: int) -> Bools:
    """The bits whose counts come nearest to the published ones in squares, rounded: (run, person).

    >>> least_squares((subsets(4, 8) @ [1, 0, 1, 1])[None], 4).astype(int)
    array([[1, 0, 1, 1]])
    """
    return np.asarray(counts @ _inverse(people, counts.shape[1]) > 0.5)


@lru_cache(maxsize=64)
def _inverse(people: int, queries: int) -> Reals:
    return np.linalg.pinv(subsets(people, queries).astype(float)).T


def linear_program(counts: Reals, people: int) -> Bools:
    """The bits whose counts come nearest to the published ones in absolute differences, rounded: (run, person).

    A linear program over numbers in [0, 1] (Dwork, McSherry & Talwar 2007, The price of privacy and the limits of LP
    decoding); it bears a few counts that are far off, which squares do not.
    """
    solved: dict[bytes, Bools] = {}
    for row in counts:
        key = np.asarray(row, float).tobytes()
        if key not in solved:  # what draws nothing publishes the same in every run
            solved[key] = _solve(np.asarray(row, float), people)
    return np.array([solved[np.asarray(row, float).tobytes()] for row in counts])


def _solve(counts: Reals, people: int) -> Bools:
    from scipy.optimize import linprog

    queries = len(counts)
    chosen, slack = subsets(people, queries).astype(float), np.eye(queries)
    solution = linprog(  # the variables: a number for each person, then the difference of each count
        np.concatenate([np.zeros(people), np.ones(queries)]),
        A_ub=np.block([[chosen, -slack], [-chosen, -slack]]),
        b_ub=np.concatenate([counts, -counts]),
        bounds=[(0.0, 1.0)] * people + [(0.0, None)] * queries,
        method="highs",
    )
    assert solution.x is not None  # the differences are free, so there always is a solution
    return np.asarray(solution.x[:people] > 0.5)


def fraction_recovered(decoder: Decoder, entry: Entry, secret: Sequence[int], runs: int, seed: int) -> float:
    """The fraction of all secret bits that the decoder finds from the release, over `runs` runs."""
    outputs = entry.open().call(secret, runs, np.random.Generator(np.random.SFC64(seed)))
    return float(np.mean(decoder(np.asarray(outputs, float), len(secret)) == np.asarray(secret, bool)))


def release(people: int, queries: int, epsilon: float = 1.0) -> Entry:
    """The noisy counts over `queries` subsets; its twins are those of the catalogue."""
    return noisy_subset_counts.with_parameters({"queries": queries, "epsilon": epsilon})


SECRET = [int(bit) for bit in np.random.default_rng(2003).integers(0, 2, PEOPLE)]
_TARGET = SECRET.index(1)
_PAIR = AdjacentPair(
    SECRET, [0 if place == _TARGET else bit for place, bit in enumerate(SECRET)], name="the target's bit is 1, or 0"
)


by_least_squares = Attack(
    name="reconstruction_by_least_squares",
    title="Reconstruction of 24 bits from 72 counts by least squares",
    source=Source(
        SARKAR_NOTES, "Dwork & Yekhanin 2008, New efficient attacks on statistical disclosure control mechanisms"
    ),
    formula="the bits x that make the sum of (A x - counts)^2 smallest, rounded; the attacker says the target's bit",
    without=release(PEOPLE, QUERIES).exact,
    private=release(PEOPLE, QUERIES),
    pair=_PAIR,
    guess=lambda counts: least_squares(np.asarray(counts, float), PEOPLE)[:, _TARGET],
)
by_linear_program = Attack(
    name="reconstruction_by_linear_program",
    title="Reconstruction of 24 bits from 72 counts by a linear program",
    source=Source(SARKAR_NOTES, "Dinur & Nissim 2003, Revealing information while preserving privacy"),
    formula="the x in [0, 1] that make the sum of |A x - counts| smallest, rounded; the attacker says the target's bit",
    without=release(PEOPLE, QUERIES).exact,
    private=release(PEOPLE, QUERIES),
    pair=_PAIR,
    guess=lambda counts: linear_program(np.asarray(counts, float), PEOPLE)[:, _TARGET],
    runs=200,
)
