"""Two hospitals: records whose generalisations are the 4-anonymous and the 6-anonymous table of the notes.

The tables are those of Sarkar, notes 003, 'Examples' (after Ganta, Kasiviswanathan & Smith 2008, figure 1). The
records behind them are made up. Where the notes write both ">" and "≥" in one group, "≥" is meant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

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
