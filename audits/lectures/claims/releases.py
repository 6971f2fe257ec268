"""Releases without differential privacy.

Tables without names, tables with groups of k, exact counts and refusals: what the notes say of them, on the notes' own
tables where they give some.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from audits.lectures.claims.attacking import BASSI, CHEEMA, SARKAR, certain, measured
from audits.lectures.claims.releases_linkage import LINKAGE
from audits.lectures.claims.statement import Statement, Truth, Verdict
from dpaudit.catalogue import find
from dpaudit.catalogue.releases.tables import HOSPITAL_A, HOSPITAL_B, decade, half, k_anonymous
from dpaudit.losses.comparisons import density
from dpaudit.losses.distribution import delta_of


def groups(table: Sequence[str]) -> dict[str, Counter[str]]:
    """How often each condition stands in each group of a table."""
    found: dict[str, Counter[str]] = {}
    for row in table:
        group, _, condition = row.rpartition(" | ")
        found.setdefault(group, Counter())[condition] += 1
    return found


def certainty(conditions: Mapping[str, int]) -> Fraction:
    """How sure the best guess is when every row of the group is as likely to be the person's."""
    return Fraction(max(conditions.values()), sum(conditions.values()))


def both(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, Fraction]:
    """How likely each condition is for somebody in both groups, each pair of equal rows being as likely."""
    weights = {condition: count * other.get(condition, 0) for condition, count in one.items()}
    return {each: Fraction(weight, sum(weights.values())) for each, weight in weights.items() if weight}


FOUR, SIX = groups(k_anonymous(HOSPITAL_A, 4, decade)), groups(k_anonymous(HOSPITAL_B, 6, half))
YOUNG, THIRTIES, OLD = (f"130** | {age} | *" for age in ("<30", "3*", "≥40"))
BELOW_35, FROM_35 = (f"130** | {age} | *" for age in ("<35", "≥35"))


# --- the checks -----------------------------------------------------------------------------------------------


def check_groups() -> Truth:
    sure = {"4-anonymous": FOUR, "6-anonymous": SIX}
    found = {name: [certainty(each) for each in table.values()] for name, table in sure.items()}
    hoped = {"4-anonymous": Fraction(1, 4), "6-anonymous": Fraction(1, 6)}
    kept = all(each <= hoped[name] for name, table in found.items() for each in table)
    hidden = all(each < 1 for table in found.values() for each in table)
    some = any(each < 1 for table in found.values() for each in table)
    verdict: Verdict = "right and loose" if kept or hidden else "right" if some else "wrong"
    four, six = (", ".join(map(str, table)) for table in found.values())
    few = sum(each <= hoped[name] for name, table in found.items() for each in table)
    sharp = sum(each == 1 for table in found.values() for each in table)
    return Truth(
        verdict,
        "May be, as the notes say, and need not be. Being one of k hides which row is yours, not what it says: "
        "certainty about the condition is the share of the commonest one in the group. In the groups of the "
        f"4-anonymous table that is {four}, in those of the 6-anonymous one {six}: at most 1/k in {few} of "
        f"{len(FOUR) + len(SIX)} groups, and nothing is hidden in {sharp}. No k gives an epsilon, as the table is a "
        "function of the data.",
        {f"{name}, group {i}": float(each) for name, table in found.items() for i, each in enumerate(table, 1)},
    )


def check_homogeneity() -> Truth:
    all_cancer = dict(FOUR[THIRTIES]) == {"Cancer": 4}
    right = all_cancer and certainty(FOUR[THIRTIES]) == 1 and certain("homogeneity")
    return Truth(
        "right" if right else "wrong",
        f"Whoever is known to be in the thirties and in the notes' 4-anonymous table has cancer: certainty "
        f"{float(certainty(FOUR[THIRTIES])):.0%}, rows 9 to 12. In the 6-anonymous table the best guess is right with "
        f"{float(certainty(SIX[BELOW_35])):.0%} (below 35) and {float(certainty(SIX[FROM_35])):.0%} (35 and over). "
        f"Where one of the four may have another condition, {measured('homogeneity')}.",
        {"certainty in the thirties": float(certainty(FOUR[THIRTIES]))},
    )


def check_background() -> Truth:
    left = [each for each in FOUR[YOUNG] if each not in ("AIDS", "Heart Disease")]
    before = certainty(FOUR[YOUNG])
    right = left == ["Viral Infection"] and certain("background_knowledge") and before < 1
    return Truth(
        "right" if right else "wrong",
        f"In the group below 30 of the 4-anonymous table the best guess, a viral infection, is right with "
        f"{float(before):.0%}. Who knows that the person has neither AIDS nor a heart disease is left with "
        f"{' and '.join(left).lower()} alone: certainty. From what an attacker may know no table protects; "
        f"{measured('background_knowledge')}, whatever the attacker knows.",
        {"certainty before": float(before), "conditions left": len(left)},
    )


def check_intersection() -> Truth:
    alone = float(certainty(FOUR[YOUNG])), float(certainty(SIX[BELOW_35]))
    young, old = both(FOUR[YOUNG], SIX[BELOW_35]), both(FOUR[OLD], SIX[FROM_35])
    best = all(table["AIDS"] < max(table.values()) for table in (FOUR[YOUNG], SIX[BELOW_35]))
    right = young == {"AIDS": Fraction(1)} and best and certain("intersection")
    words = ", ".join(f"{condition.lower()} {float(share):.0%}" for condition, share in sorted(old.items()))
    return Truth(
        "right" if right else "wrong",
        "A person of 28 who is in both tables has AIDS: it is the only condition that her group of four and her group "
        f"of six share, though the best guess from either table alone is right with {alone[0]:.0%} and {alone[1]:.0%} "
        f"and not AIDS. Of somebody over 40 it leaves {len(old)} conditions ({words}). Two k-anonymous tables are no "
        f"k-anonymous table, while epsilons add up: {measured('intersection')}.",
        {"young": float(young.get("AIDS", 0)), **{condition: float(share) for condition, share in old.items()}},
    )


def check_all_attended() -> Truth:
    """An office of 20, each there with probability 1/2: what the count tells of one of them."""
    office, epsilon = 20, 1.0
    others = np.array([math.comb(office - 1, k) for k in range(office)]) / 2.0 ** (office - 1)

    def odds(published: float) -> float:
        there, away = (others @ density(published - np.arange(office) - own, 1.0 / epsilon) for own in (1, 0))
        return float(there / away)

    with_her, without = np.append(0.0, others), np.append(others, 0.0)  # the laws of the exact count
    exact = with_her[office] / (with_her[office] + without[office])
    noisy, largest = odds(float(office)), max(odds(value) for value in np.arange(-20.0, 60.0, 0.25))
    right = exact == 1.0 and largest <= math.exp(epsilon) * (1.0 + 1e-9)
    return Truth(
        "right" if right else "wrong",
        f"If {office} of {office} are counted, each is known to have been there with probability {exact:.0f}, whatever "
        f"was believed before. The noisy count with epsilon = 1 moves even odds for one of them to {noisy:.3f} to 1 "
        f"when it says {office}, and to at most {largest:.3f} to 1 whatever it says, as e^epsilon = {math.e:.3f} "
        f"allows: a certainty of {largest / (1.0 + largest):.2f}.",
        {"odds at 20": noisy, "largest odds": largest},
    )


def check_zero_mean_noise() -> Truth:
    most, base = 2, 3
    span = np.arange(-most, most + 2)
    uniform = [
        np.where((span >= low) & (span <= low + 2 * most), 1.0 / (2 * most + 1), 0.0) for low in (-most, 1 - most)
    ]
    whole = {epsilon: delta_of(*uniform, epsilon) for epsilon in (0.0, 1.0, 10.0)}
    two, three = np.array([1.0 - 2.0 / base, 2.0 / base]), np.array([0.0, 1.0])  # published as 0, published as 3
    rounded = delta_of(two, three, 10.0)
    unprotected = min(whole.values()) == max(whole.values()) > 0.0 and rounded > 0.3
    losses = [find(name).true_epsilon(*find(name).default_pair) for name in BOUNDED]
    no_epsilon = unprotected and all(loss == math.inf for loss in losses)
    helps = max(whole[10.0], rounded) < 1.0  # without noise the two counts are always told apart: delta = 1
    return Truth(
        ("right" if no_epsilon else "right and loose") if helps else "wrong",
        "It helps, and that is all that follows: exact counts tell two neighbours apart always, noisy ones sometimes. "
        "For an epsilon, mean 0 and independence are not enough: the noise must have no end. Whole noise from -2 to 2 "
        f"on a count has mean 0, and its delta is {whole[10.0]:.2f} at every epsilon; rounding at random to multiples "
        f"of 3 has the right mean too, and its delta is {rounded:.2f} at every epsilon, for 3 is always published as "
        "3. Laplace noise of the same variance 2 as the whole noise has epsilon = 1 with delta = 0.",
        {"delta of whole noise": whole[10.0], "delta of random rounding": rounded},
    )


BOUNDED = ("noisy_counts.bounded_noise", "noisy_counts.randomly_rounded")


def check_query_auditing() -> Truth:
    """All data of four values from 1 to 10: what the refusal tells of the last value."""
    release = find("noisy_maxima.query_auditing")
    refused = told = 0
    every = list(itertools.product(range(1, 11), repeat=4))
    for data in every:
        answers = release.program(data, None, epsilon=1.0, cap=10.0)
        if 1 not in answers:
            refused += 1
            told += answers[0] == data[-1]
    right = refused > 0 and told == refused and certain("refusal")
    return Truth(
        "right" if right else "wrong",
        "An auditor of queries answers the largest value of all, and refuses the largest of all but one person where "
        f"both would give that person's value away. Over all {len(every):,} datasets of four values from 1 to 10 it "
        f"refuses in {refused / len(every):.0%}, and in {told / refused:.0%} of these the person's value is the first "
        "answer: the refusal gives away what it was to hide. A sum refused for fewer than five people tells that there "
        "are fewer than five, with noise in its answers or without. With noise in both answers and no refusals, "
        f"{measured('refusal')}.",
        {"refused": refused / len(every), "told": told / refused},
    )


def check_k_anonymous() -> Truth:
    least = {k: min(sum(held.values()) for held in table.values()) for k, table in ((4, FOUR), (6, SIX))}
    sizes = {k: len(table) for k, table in ((4, FOUR), (6, SIX))}
    right = all(size >= k for k, size in least.items())
    return Truth(
        "right" if right and all(size == k for k, size in least.items()) else "right and loose",
        f"In the first table the {sizes[4]} groups have {least[4]} rows each and in the second the {sizes[6]} groups "
        f"{least[6]}: 4-anonymous and 6-anonymous, and no more. What is counted are the zip code, the age and the "
        "nationality; the condition is left as it is, and that is where the next slides find the gap.",
        {"smallest group of the first": least[4], "smallest group of the second": least[6]},
    )


STATEMENTS = (
    *LINKAGE,
    Statement(
        "k-anonymous-tables",
        f"{SARKAR}, 'K-anonymity'",
        "In the two printed tables everybody shares the pseudo-identifiers with at least $k - 1$ others, $k = 4$ and "
        "$6$",
        "right",
        ("computed", "audited"),
        check_k_anonymous,
        ("the 4-anonymous table of the notes", "the 6-anonymous table of the notes"),
        quote="Such that for any one person, there are at least k-1 others with identical psudo-identifiers",
        context="Example: 4 and 6 anonymized tables",
        reading="Where one group is printed with '>' in some rows and with '≥' in others, '≥' is meant in all of them.",
    ),
    Statement(
        "groups-of-k",
        f"{SARKAR}, 'K-anonymity'",
        "Being in a group of $k$ gives better protection: the adversary may be less certain of your condition",
        "right",
        ("computed", "audited"),
        check_groups,
        ("the 4-anonymous table of the notes", "the 6-anonymous table of the notes"),
        quote="Being in a group gives you better protection: ... Adversary may be less certain which health condition "
        "applies to you.",
        context="Still sensitive to linkage type attacks ... E.g. if everyone in a group has the same condition, then "
        "there is no hiding",
        reading="'May be' is taken at its word: sometimes, not always.",
    ),
    Statement(
        "homogeneity",
        f"{SARKAR}, 'K-anonymity'",
        "If everyone in a group has the same condition, there is no hiding",
        "right",
        ("computed", "audited"),
        check_homogeneity,
        ("the 4-anonymous table of the notes", "a table of conditions, noise in every cell"),
        quote="if everyone in a group has the same condition, then there is no hiding",
    ),
    Statement(
        "background-knowledge",
        f"{SARKAR}, 'Observations'",
        "What an adversary can learn depends on what is known beforehand",
        "right",
        ("computed", "audited"),
        check_background,
        ("the 4-anonymous table of the notes",),
        quote="What the adversary can learn may depend on what the adversary knows beforehand or outside this system",
        context="E.g. linking other datasets",
    ),
    Statement(
        "two-tables",
        f"{SARKAR}, 'Examples' and 'K-anonymity'",
        "A 4-anonymous and a 6-anonymous table are still sensitive to linkage (here: to each other)",
        "right",
        ("computed", "audited"),
        check_intersection,
        (
            "two hospitals, the 4-anonymous and the 6-anonymous table",
            "two hospitals, noise in every cell of both tables",
        ),
        quote="Example: 4 and 6 anonymized tables ... Still sensitive to linkage type attacks",
        reading="The notes show the two tables beside each other; that they are linked to each other is our example, "
        "after the paper that the tables come from.",
    ),
    Statement(
        "all-attended",
        f"{SARKAR}, 'Simple Example'",
        "If everybody was at the meeting, the exact count reveals that each of them was",
        "right",
        ("computed", "audited"),
        check_all_attended,
        ("counts by area, exact", "counts by area, noise in every cell"),
        quote="if all people in an office attended the meeting, then publishing the exact count reveals that all "
        "people attended the meeting",
    ),
    Statement(
        "zero-mean-noise",
        f"{BASSI}, 'A differencing attack' (cont.)",
        "Zero-mean independent random noise on the answers helps us protect the participants",
        "right",
        ("computed", "audited"),
        check_zero_mean_noise,
        (
            "counts by area, with noise from -2 to 2",
            "counts by area, rounded at random to multiples of 3",
            "counts over six subsets, each off by at most 1",
        ),
        quote="Adding zero-mean independent random noise to the queries' answers helps us protect the participants "
        "but degrades the quality of the statistical analysis.",
        context="There is a trade-off.",
        reading="'Helps' is read as 'tells less than the exact answers', and not as 'gives an epsilon'.",
    ),
    Statement(
        "query-auditing",
        f"{CHEEMA}, 'Why bother?'",
        "Query auditing is hard: not answering is informative too",
        "right",
        ("computed", "audited"),
        check_query_auditing,
        (
            "largest salaries, with query auditing",
            "sum of salaries, refused for fewer than 5 people",
            "sum of salaries with noise, refused for fewer than 5 people",
        ),
        quote="**Query auditing** is hard, and non-answers are informative",
    ),
)
