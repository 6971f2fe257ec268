"""Attacks on releases without DP: what each concludes there, and what is left of it where the release has DP."""

from dpaudit.catalogue.attacks.attack import Achievement, Attack, achieves, allowed, attacked, identified
from dpaudit.catalogue.attacks.on_aggregates import (
    averaging,
    colluding_students,
    differencing,
    membership_in_a_model,
    membership_in_an_average,
    model_differencing,
    model_reconstruction,
    refusal,
)
from dpaudit.catalogue.attacks.on_tables import (
    background,
    by_least_squares,
    by_linear_program,
    homogeneity,
    intersection,
    inverted_pseudonyms,
    linkage,
    matched_ratings,
)
from dpaudit.errors import InvalidSpec

__all__ = ["ATTACKS", "Achievement", "Attack", "achieves", "allowed", "attacked", "find", "identified"]

ATTACKS: tuple[Attack, ...] = (
    *(linkage, inverted_pseudonyms, matched_ratings, homogeneity, background, intersection, differencing),
    *(colluding_students, averaging, refusal, membership_in_an_average, membership_in_a_model),
    *(model_differencing, model_reconstruction, by_least_squares, by_linear_program),
)


def find(name: str) -> Attack:
    """The attack of this name; raises `InvalidSpec` where there is none.

    >>> find("homogeneity").without.name
    'noisy_table.four_anonymous'
    """
    known = {attack.name: attack for attack in ATTACKS}
    if name not in known:
        raise InvalidSpec(f"there is no attack {name!r}; there are: {', '.join(known)}")
    return known[name]
