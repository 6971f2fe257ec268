"""Attacks on tables without names: what an attacker knows of a person leads to that person's row or group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.arrays import Bools, Reals
from dpaudit.catalogue.attacks.attack import Attack
from dpaudit.catalogue.entry import Source
from dpaudit.catalogue.releases.hospital import CONDITIONS, DECADES, HALVES, HOSPITAL_A, cell, changed
from dpaudit.catalogue.releases.tables import noisy_table, two_noisy_tables
from dpaudit.pairs import AdjacentPair

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
    held = [np.array([line == f"{group} | {condition}" for line in lines])[places] for condition in CONDITIONS]
    return np.broadcast_to(np.stack([each.any(axis=1) for each in held], axis=1), (len(rows), len(CONDITIONS)))


def one_table(rows: Rows) -> bool:
    """Whether all runs published the same rows."""
    return rows.strides[0] == 0 or bool((rows == rows[:1]).all())  # what draws nothing publishes one table


def only(held: Bools, condition: str, ruled_out: Sequence[str] = ()) -> Bools:
    """Whether this condition is the one that is left of those present once some are ruled out."""
    left = held & [each not in ruled_out for each in CONDITIONS]
    return np.asarray(left[:, CONDITIONS.index(condition)] & (left.sum(axis=1) == 1))


# --- one table ------------------------------------------------------------------------------------------------


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


def _viral_is_left(rows: Rows) -> Bools:
    return only(present(rows, "130** | <30 | *"), "Viral Infection", ruled_out=("AIDS", "Heart Disease"))


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
    guess=_viral_is_left,
    guess_private=lambda counts: counts[:, cell("<30", "Viral Infection")] - counts[:, cell("<30", "Cancer")] > 1.0,
)


# --- two tables -----------------------------------------------------------------------------------------------


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
