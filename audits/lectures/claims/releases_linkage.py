"""Linkage: what singles a person out in a table without names, on made-up data of the shape of the notes' examples."""

from __future__ import annotations

import functools
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from audits.lectures.claims.attacking import CHEEMA, SARKAR, certain, measured
from audits.lectures.claims.statement import Figure, Statement, Truth
from dpaudit.catalogue.attacks.on_tables import PLATES, joined, match, rated, register
from dpaudit.catalogue.releases.tables import hashed, ratings, voters

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SEED = 1
TOWN = 20_000
PATIENTS = 2_000
KNOWN = {
    "sex": (2,),
    "zip code": (0,),
    "zip code and sex": (0, 2),
    "date of birth": (1,),
    "date of birth and sex": (1, 2),
    "zip code and date of birth": (0, 1),
    "all three": (0, 1, 2),
}
SUBSCRIBERS, FILMS, EACH, TRIED = 300, 100, 20, 40
HOW_MANY = (1, 2, 3, 4, 6, 8)
EXAMPLES = f"{SARKAR}, 'Examples'"


# --- a join on attributes -------------------------------------------------------------------------------------


@functools.cache
def town() -> tuple[tuple[str, ...], ...]:
    """The three attributes of everybody in a town."""
    return tuple(tuple(row.split(" | ")) for _, row in voters(TOWN))


@functools.cache
def alone(places: tuple[int, ...], of_date: int = 10) -> float:
    """The share of the town that these attributes single out; of the date the first 10, 7 (month) or 4 (year) signs."""
    people = [(code, born[:of_date], sex) for code, born, sex in town()]
    keys = [tuple(person[place] for place in places) for person in people]
    seen = Counter(keys)
    return sum(seen[key] == 1 for key in keys) / len(keys)


def check_linkage() -> Truth:
    found = {name: alone(places) for name, places in KNOWN.items()}
    coarse = alone((0, 1, 2), 4)
    right = found["all three"] > 0.9 and coarse < 0.01 and certain("linkage")
    words = ", ".join(f"{share:.0%} by {name}" for name, share in found.items())
    return Truth(
        "right" if right else "wrong",
        f"In a made-up town of {TOWN:,} people with seven zip codes, so many are alone with what is known of them: "
        f"{words}. Nothing of it is secret. With the year of birth in place of the day it is "
        f"{coarse:.0%}, and what is left is still a table without an epsilon: who is in it, and what the group has, "
        f"shows. {measured('linkage').capitalize()}.",
        {**{f"alone by {name}": share for name, share in found.items()}, "alone when coarse": coarse},
    )


def draw_alone(axes: Axes) -> None:
    names, height = list(KNOWN), 0.27
    for place, (signs, colour, label) in enumerate(
        ((10, "#a3262a", "day of birth"), (7, "#2b5d8a", "month of birth"), (4, "#5b6168", "year of birth"))
    ):
        shares = [alone(KNOWN[name], signs) for name in names]
        axes.barh([row - place * height for row in range(len(names))], shares, height, color=colour, label=label)
    axes.set_yticks([row - height for row in range(len(names))], [name.replace("date of ", "") for name in names])
    axes.set_xlabel(f"share of {TOWN:,} people")
    axes.set_ylabel("what is known")
    axes.legend(frameon=False, loc="lower right")


def check_governor() -> Truth:
    """The list of voters has three quarters of the town; patients are every tenth of the town, voter or not."""
    everybody = voters(TOWN)
    rng = np.random.default_rng(SEED)
    listed, ill = rng.random(TOWN) < 0.75, rng.permutation(TOWN)[:PATIENTS]
    days = dict(zip(ill.tolist(), rng.integers(1, 30, PATIENTS).tolist(), strict=True))
    rows = [f"{everybody[place][1]} | {many}" for place, many in days.items()]
    names = register([person for person, on in zip(everybody, listed, strict=True) if on])
    found = joined(rows, names)
    true = sum(days.get(int(name.split()[1])) == many for name, many in found.items())
    voting = sum(bool(listed[place]) for place in days)
    right = true > 0.9 * voting and certain("linkage")
    return Truth(
        "right" if right else "wrong",
        f"On made-up data of that shape: {PATIENTS:,} patients of a town of {TOWN:,}, without names and with zip code, "
        f"date of birth and sex, and a list of voters that has these beside the names. The join names {len(found):,} "
        "of "
        f"the {voting:,} patients who vote, {true / len(found):.1%} of them rightly: wrong is a name only where two "
        "share "
        f"all three and one does not vote. A governor's name and birthday are known to everybody. "
        f"{measured('linkage').capitalize()}.",
        {"named": len(found), "rightly": true, "patients who vote": voting},
    )


# --- pseudonyms -----------------------------------------------------------------------------------------------


def check_taxi() -> Truth:
    """A fleet of a thousand cabs, each under the hash of its plate."""
    rng = np.random.default_rng(SEED)
    fleet = rng.choice(np.array(list(PLATES.values())), 1_000, replace=False).tolist()
    incomes = dict(zip(fleet, rng.integers(20, 90, len(fleet)).tolist(), strict=True))
    found = joined([f"{hashed(plate)} | {income}" for plate, income in incomes.items()], PLATES)
    salted = joined([f"{hashed(f'salt of 2013 {plate}')} | {income}" for plate, income in incomes.items()], PLATES)
    right = found == incomes and not salted and certain("inverted_pseudonyms")
    return Truth(
        "right" if right else "wrong",
        f"There are {len(PLATES):,} plates of a digit, a letter and two digits. Whoever hashes them all looks up any "
        f"pseudonym: the plate and the income of {len(found):,} of {len(fleet):,} cabs. With a secret salt "
        f"{len(salted)} "
        "are found so; but the same cab keeps its pseudonym, and one trip that was seen gives the others of that cab. "
        f"{measured('inverted_pseudonyms').capitalize()}.",
        {"plates": len(PLATES), "found": len(found), "found with a salt": len(salted)},
    )


def check_tracking() -> Truth:
    """Visits to a thousand pages under a random number that stays: what one more visit tells without any name."""
    rng = np.random.default_rng(SEED)
    people, pages, visits, habit = 400, 1_000, 25, 0.3
    liked = rng.choice(pages, (people, visits))
    groups = rng.integers(0, 2, people)  # who pays more: seen in what a person looks at, page by page
    liked = np.where(rng.random((people, visits)) < habit, liked // 2 * 2 + groups[:, None], liked)
    told = float(np.mean((np.mean(liked % 2, axis=1) > 0.5) == groups))
    fresh = float(np.mean((liked[:, 0] % 2 > 0.5) == groups))
    right = told > fresh + 0.1
    return Truth(
        "right" if right else "wrong",
        f"A made-up example: {people} people, {visits} visits each, and who pays more for the same ticket looks at odd "
        f"pages in {(1 + habit) / 2:.0%} of the visits, the others in {(1 - habit) / 2:.0%}. A number that stays "
        "with a person, and is nobody's name, lets a site tell the two "
        f"kinds apart for {told:.0%} of the people; with a new number at each visit for {fresh:.0%}. No name is needed "
        "for a price or an advertisement: what counts is that the rows are known to be of one person. DP speaks of all "
        "the rows of a person together, whatever they are called.",
        {"with one number": told, "with a new number each time": fresh},
    )


# --- ratings --------------------------------------------------------------------------------------------------


@functools.cache
def shares(known: int, days: int = 14, wrong: float = 0.25) -> tuple[float, float]:
    """How many subscribers are found from so many of their ratings, and how many are named wrongly.

    Days are off by up to `days`, and a part of the stars is any number.
    """
    tables = [rated(row) for _, row in ratings(SUBSCRIBERS, FILMS, EACH)]
    rng, right, misled = np.random.default_rng([SEED, known, days]), 0, 0
    for place in range(TRIED):
        films = rng.permutation(list(tables[place]))[:known].tolist()
        about = {}
        for film in films:
            stars, day = tables[place][film]
            stars = int(rng.integers(1, 6)) if rng.random() < wrong else stars
            about[film] = (stars, day + int(rng.integers(-days, days + 1)))
        named = match(tables, about)
        right += named == place
        misled += named is not None and named != place
    return right / TRIED, misled / TRIED


def check_films() -> Truth:
    tables = [rated(row) for _, row in ratings(SUBSCRIBERS, FILMS, EACH)]
    films = Counter(frozenset(table) for table in tables)
    same = sum(films[frozenset(table)] > 1 for table in tables)
    few, many, vague = shares(2), shares(8), shares(8, days=10_000)
    right = many[0] > 0.9 and many[1] == 0.0 and same == 0 and certain("matched_ratings")
    return Truth(
        "right" if right else "wrong",
        f"On made-up ratings ({SUBSCRIBERS} subscribers, {EACH} of {FILMS} films each): eight ratings, a quarter of "
        "them "
        f"with any number of stars and all with days off by up to two weeks, lead to the right row for {many[0]:.0%} "
        f"({many[1]:.0%} to a wrong one); two to {few[0]:.0%}; eight without any knowledge of the days to "
        f"{vague[0]:.0%}. "
        f"The films alone make {len(tables) - same} of {len(tables)} rows the only one of its kind, so such rows are "
        "not "
        f"k-anonymous for any k above 1, and not made so by errors in some of them. "
        f"{measured('matched_ratings').capitalize()}.",
        {"of eight": many[0], "wrongly": many[1], "of two": few[0], "of eight, no days": vague[0], "alike": same},
    )


def draw_films(axes: Axes) -> None:
    for days, mark, colour, label in (
        (14, "o-", "#a3262a", "days off by two weeks"),
        (10_000, "s-", "#2b5d8a", "days not known"),
    ):
        axes.plot(HOW_MANY, [shares(many, days)[0] for many in HOW_MANY], mark, color=colour, label=label)
    axes.set_xlabel(f"ratings that are known, of {EACH}")
    axes.set_ylabel("share of subscribers found")
    axes.set_ylim(-0.05, 1.05)
    axes.legend(frameon=False)


LINKAGE = (
    Statement(
        "linkage",
        f"{SARKAR}, 'Often used techniques'; {CHEEMA}, 'Why bother?'",
        "A little side information, such as age and postcode, finds a person in a table without names",
        "right",
        ("computed", "audited"),
        check_linkage,
        ("patients without names", "a table of conditions, pseudonymised", "a table of conditions, made coarse"),
        Figure(
            f"Of a made-up town of {TOWN:,} people, with seven zip codes: how many are alone with what is known of "
            "them.",
            draw_alone,
        ),
        quote=(
            (
                "Linkage attacks: An adversary with a little bit of knowledge (e.g. age, gender, "
                "postcode) can match to the database and identify people"
            ),
            "**Anonymisation** foiled by using side-information",
        ),
        context="E.g. they may know someone personally, or they may have access to other datasets with that info.",
    ),
    Statement(
        "tracking",
        f"{SARKAR}, 'Often used techniques'",
        "Information can be exploited without real-world identification, as with tracking cookies",
        "right",
        ("computed",),
        check_tracking,
        quote="Sometimes, information can be exploited without real-world identification (e.g. tracking cookies on web "
        "sites)",
    ),
    Statement(
        "taxi",
        EXAMPLES,
        "The cabs of New York's pseudonymised trips were identifiable, and their incomes leaked",
        "right",
        ("computed", "audited"),
        check_taxi,
        ("cabs under the hash of their plate", "one column of a table, with noise"),
        quote="NYC taxi trips data released (pseudonymised) on a freedom of information request ... Specific taxi cabs "
        "identifiable. Incomes leaked",
        reading="Shown on made-up cabs of that shape; the trips themselves are not used here.",
    ),
    Statement(
        "governor",
        EXAMPLES,
        "The medical record of the governor of Massachusetts was found by a join with the list of voters",
        "right",
        ("computed", "audited"),
        check_governor,
        ("patients without names", "one column of a table, with noise"),
        quote="Medical record of Governor of Massachusetts identified by cross linking voter data",
        reading="Shown on a made-up town; the records themselves are not used here.",
    ),
    Statement(
        "films",
        EXAMPLES,
        "Film ratings without names were cross linked with public ratings",
        "right",
        ("computed", "audited"),
        check_films,
        ("ratings of films without names", "one column of a table, with noise"),
        Figure(
            f"Of {TRIED} subscribers, how many rows are found from a few ratings with errors in stars and days; none "
            "is "
            "named without a margin to the second best.",
            draw_films,
        ),
        quote="Netflix prize data (k-anonymized) cross linked with public imdb rating",
        reading="'k-anonymized' is read as 'anonymised': the names were taken out, and groups of k equal rows were not "
        "made. Shown on made-up ratings of that shape.",
    ),
)
