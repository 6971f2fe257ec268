"""What a claim promises and to whom, in plain words: one account for each form and each relation."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dpaudit.claims import Relation, claim_from_dict
from dpaudit.claims.words import FULL_DIGITS
from dpaudit.results.result import AuditResult
from dpaudit.results.wording.numerals import bound

UNITS: Mapping[str, tuple[str, ...]] = {
    Relation.ADD_OR_REMOVE_ONE.value: (
        "One entry of the dataset: neighbours are the dataset with it and the dataset without it.",
        "That somebody takes part at all is within the promise; how many entries there are may not be taken as known.",
    ),
    Relation.REPLACE_ONE.value: (
        "One entry of the dataset: neighbours are the dataset with it and the dataset with another in its place.",
        "What an entry says is within the promise; how many entries there are counts as known to everybody.",
    ),
    Relation.REPLACE_SPECIAL.value: (
        "One entry of the dataset: neighbours are the dataset with it and the one with a neutral entry in its place.",
        "How the neutral entry is treated is part of the mechanism, and of what the claim means.",
    ),
    Relation.LOCAL.value: (
        "One record, of the person who hands it over: neighbours are any two records, for each is randomised before "
        "it is handed over.",
        "Nobody who collects the records is trusted with them (the local model).",
    ),
}
NO_UNIT = "Not recorded: the claim states no relation, so neighbours are the two datasets of each pair that was run."
WHOSE = (
    "Whether an entry is a person, a household, a device or an event is not recorded; where one person has several "
    "entries, the promise for one entry does not cover that person."
)
WHOSE_RECORD = (
    "How many records a person hands over is not recorded; the promise for one record does not cover several of them."
)


def promise(result: AuditResult) -> str:
    """What the claim promises for neighbours, by its form."""
    claim = claim_from_dict(result.spec["claim"])
    return f"The claim is {claim.short}. It promises: {claim.promise('its neighbour')}."


def implied_promise(result: AuditResult) -> tuple[str, ...]:
    """What the claim implies for datasets several steps apart, which is what their bound is held against."""
    if result.distance == 1:
        return ()
    # without the last digits of a product: 0.3 for three times 0.1
    stored = {k: float(f"{v:.12g}") if isinstance(v, float) else v for k, v in result.claim.to_dict().items()}
    implied = claim_from_dict(stored)
    apart = f"For datasets {result.distance:,} steps apart that comes to"
    return (f"{apart} {implied.short}: {implied.promise('the other')}.",)


def unit(result: AuditResult) -> tuple[str, ...]:
    """Whom or what the claim protects, by its relation; what it does not say is said to be unknown."""
    relation = result.spec["claim"]["relation"]
    lines = [*UNITS[relation]] if relation else [NO_UNIT]
    if result.distance > 1:
        lines.append(f"The bound is about datasets {result.distance:,} steps apart: a group of so many entries.")
    return (*lines, WHOSE_RECORD if relation == Relation.LOCAL.value else WHOSE)


def ratio_text(times: float) -> str:
    """How many times as probable: three digits, rounded down.

    >>> ratio_text(6.8549), ratio_text(116.24), ratio_text(59_874.1)
    ('6.85', '116', '59,800')
    """
    if times < 100.0:
        return bound(times)
    if times >= FULL_DIGITS:
        return f"10^{math.floor(math.log10(times)):,}"
    whole = math.floor(times)
    step = 10 ** (len(str(whole)) - 3)
    return f"{whole // step * step:,}"
