"""Attacks on aggregates and models.

Differencing, collusion, averaging, membership inference and reconstruction: what they find in exact answers, and what
is left of them where the answers have noise that is calibrated.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from audits.lectures.claims.attacking import BASSI, HAGHTALAB, SARKAR, certain, measured
from audits.lectures.claims.attacks_inference import INFERENCE
from audits.lectures.claims.attacks_models import ON_MODELS
from audits.lectures.claims.statement import Statement, Truth, Verdict
from dpaudit.catalogue import find
from dpaudit.catalogue.attacks import ATTACKS, achieves, allowed
from dpaudit.catalogue.attacks.on_aggregates import bobs_number, the_last_grade

SEED = 1


# --- differencing, collusion, averaging -----------------------------------------------------------------------


def check_differencing() -> Truth:
    exact, noisy = find("noisy_count_and_average.exact"), find("noisy_count_and_average")
    with_bob, _ = exact.default_pair
    rng = np.random.Generator(np.random.SFC64(SEED))
    found = float(bobs_number(exact.open().call(with_bob, 1, rng))[0])
    blurred = bobs_number(noisy.open().call(with_bob, 20_000, rng))
    middle = float(np.median(np.abs(blurred - 5.0)))
    verdict: Verdict = "right" if abs(found - 5.0) < 1e-9 and certain("differencing") else "wrong"
    return Truth(
        verdict,
        f"Count times average, less the same without Bob, is {found:.0f}: his number, without error. With noise in "
        f"both answers (epsilon = 1, values up to 20) the same arithmetic is off by more than {middle:.0f} in half of "
        f"the runs, and {measured('differencing')}.",
        {"found": found, "median error": middle},
    )


def check_collusion() -> Truth:
    exact, noisy = find("noisy_average.exact"), find("noisy_average")
    grades, _ = exact.default_pair
    rng = np.random.Generator(np.random.SFC64(SEED))
    found = float(the_last_grade(exact.open().call(grades, 1, rng))[0])
    middle = float(np.median(np.abs(the_last_grade(noisy.open().call(grades, 20_000, rng)) - grades[0])))
    verdict: Verdict = "right" if abs(found - grades[0]) < 1e-9 and certain("colluding_students") else "wrong"
    return Truth(
        verdict,
        f"n times the average, less the n - 1 grades they know, is {found:.0f}: the grade, without error. With "
        f"Lap(b / (n epsilon)) in the average and epsilon = 1 they are off by more than {middle:.1f} of 10 points in "
        f"half of the runs (exactly: b ln 2 / epsilon = {10.0 * math.log(2.0):.1f}), and "
        f"{measured('colluding_students')}.",
        {"found": found, "median error": middle},
    )


def check_drop_out() -> Truth:
    """Grades from 0 to 10: how many sets of grades of those who left fit the averages before and after."""
    stay = [4, 5, 5, 6, 6, 7, 7, 8]
    gone = {1: (9,), 2: (9, 4), 3: (9, 4, 7)}
    fits = {}
    for size, grades in gone.items():
        before, after = sum((*stay, *grades)) / (len(stay) + size), sum(stay) / len(stay)
        total = before * (len(stay) + size) - after * len(stay)
        choices = itertools.combinations_with_replacement(range(11), size)
        fits[size] = sum(abs(sum(each) - total) < 1e-9 for each in choices)
    left, found = [*stay, *gone[3]], []
    while len(left) > len(stay):  # one after another, the average published each time
        before, size = sum(left) / len(left), len(left)
        grade = left.pop()
        found.append(abs(before * size - sum(left) / len(left) * len(left) - grade) < 1e-9)
    return Truth(
        "right" if fits[1] == 1 and all(found) else "wrong",
        f"One who leaves is found exactly, and so are {len(found)} who leave one after another, when each change is "
        f"published. Of several who leave at once only the sum is: the two averages fit {fits[2]} sets of two "
        f"grades and {fits[3]} sets of three, so no single grade follows without more knowledge; who knows the others "
        f"again finds it. Under 1-DP no attacker has an advantage above {allowed(1.0):.2f} on one of them, and above "
        f"{allowed(3.0):.2f} on three together.",
        {f"sets of {size} that fit": count for size, count in fits.items()},
    )


def check_averaging() -> Truth:
    runs = 4_000
    rng = np.random.Generator(np.random.SFC64(SEED))
    entry, (data, _) = find("noisy_sum.asked_again"), find("noisy_sum").default_pair
    errors, ratios = {}, []
    for times in (4, 25, 100, 400):
        answers = entry.with_parameters({"times": times, "cap": 10.0}).open().call(data, runs, rng)
        errors[times] = float(np.sqrt(np.mean((answers.mean(axis=1) - sum(data)) ** 2)))
        ratios.append(errors[times] / (10.0 * math.sqrt(2.0 / times)))
    loss = entry.true_epsilon(*entry.default_pair, {"times": 100})
    # the variance of a squared mean of Laplace draws is at most 5 times its mean squared
    right = all(abs(ratio**2 - 1.0) < 6.0 * math.sqrt(5.0 / runs) for ratio in ratios)
    needed = math.ceil(2.0 * (10.0 / 5.0 * 3.0) ** 2)  # three standard errors within half of one salary of 10
    words = ", ".join(f"{times}: {error:.2f}" for times, error in errors.items())
    return Truth(
        "right" if right else "wrong",
        "The mean of k answers with Lap(b) has an error of b sqrt(2 / k) (root mean square), as simulated with b = 10 "
        f"({words}). {needed} answers tell whether a salary of 10 is in the sum, three standard errors away. The "
        f"budget sees it coming: k answers cost k epsilon exactly, {loss:.0f} after 100, and if that is kept at 1 the "
        "error of the mean is b sqrt(2 k) instead. An answer kept and given again costs nothing.",
        {f"error at {times}": error for times, error in errors.items()},
    )


# --- what DP leaves -------------------------------------------------------------------------------------------


def check_allowed() -> Truth:
    """No attack passes the bound, and randomised response reaches it."""
    left, bounds = {}, {}
    for attack in ATTACKS:
        runs = min(attack.runs, 1_000 if attack.name.startswith("membership_in_an") else attack.runs) // 2
        claim = attack.private.claim()
        bounds[attack.name] = allowed(claim.epsilon, claim.delta)  # type: ignore[attr-defined]
        slack = 6.0 / math.sqrt(runs)  # six deviations of a difference of two rates, or more
        left[attack.name] = achieves(attack, attack.private, runs, SEED).advantage
        if left[attack.name] > bounds[attack.name] + slack:
            return Truth("wrong", f"{attack.title} passes the bound.", {attack.name: left[attack.name]})
    keep = 1.0 / (1.0 + math.exp(-1.0))  # randomised response of one bit at epsilon = 1
    reached, laplace = 2.0 * keep - 1.0, 1.0 - math.exp(-0.5)
    best = max(left, key=lambda name: left[name])
    sure = sum(certain(attack.name) for attack in ATTACKS)
    return Truth(
        "right and tight" if math.isclose(reached, allowed(1.0)) else "right and loose",
        f"At epsilon = 1 no attacker tells two neighbours apart with an advantage above (e - 1) / (e + 1) = "
        f"{allowed(1.0):.3f}; randomised response gives exactly {reached:.3f} away, a Laplace count {laplace:.3f} at "
        f"its best event. Of the {len(ATTACKS)} attacks of this page {sure} are always right without DP; with "
        f"it the best is left with {left[best]:.2f} ({best.replace('_', ' ')}).",
        {**left, "allowed": allowed(1.0), "randomised response": reached},
    )


STATEMENTS = (
    Statement(
        "differencing",
        f"{BASSI}, 'A differencing attack'; {SARKAR}, 'Aggregate functions'",
        "The number of participants and the average, with Bob and without, give his number of cigarettes exactly",
        "right",
        ("derived", "computed", "audited"),
        check_differencing,
        ("smokers, exact count and exact average", "smokers, noisy count and noisy average"),
        quote=(
            (
                'The innocent-looking queries "total number of participants" and "average cigarette '
                'consumption", when performed on both databases, allow for perfectly characterizing '
                "Bob's daily cigarette consumption."
            ),
            ("Datasets with and without an individual. E.g. average before and after employee joins"),
        ),
        context="Assume you have two identical databases except for Bob's data, which it only appears in the first "
        "one.",
    ),
    Statement(
        "collusion",
        f"{HAGHTALAB}, 'Motivating Example'",
        "$n - 1$ students who collude find the grade of the one who is left from the average",
        "right",
        ("derived", "computed", "audited"),
        check_collusion,
        ("average grade, exact", "average grade, with noise"),
        quote="If there are n students in the class, n-1 students could collude to figure out a single student's "
        "grade.",
    ),
    Statement(
        "drop-out",
        f"{HAGHTALAB}, 'Motivating Example'",
        "The change of the average could be exploited to reveal the grades of those who dropped the course",
        "right",
        ("computed", "audited"),
        check_drop_out,
        ("smokers, exact average alone", "average grade, rounded to one decimal"),
        quote="If a student(s) drop the course and the mean is updated, the differential in the average could be "
        "exploited to reveal the grade(s) of the student(s) who dropped the course.",
        reading="Of several who drop the course at once, 'reveal the grades' is read with what the attacker may know "
        "besides, as of the class mates who know their own.",
    ),
    Statement(
        "averaging",
        f"{BASSI}, 'A differencing attack' (cont.)",
        "The noise of many identical queries can be averaged out",
        "right",
        ("derived", "computed", "audited"),
        check_averaging,
        ("sum of salaries with noise, asked four times",),
        quote="If the analyst performs multiple identical queries, the effect of the noise can be averaged out.",
    ),
    *INFERENCE,
    *ON_MODELS,
    Statement(
        "cannot-be-sure",
        f"{SARKAR}, 'DP meaning' and 'The adversary who is trying to learn private information'",
        "Even an adversary who knows everything else cannot be sure whether a record was used",
        "right and tight",
        ("derived", "computed", "audited"),
        check_allowed,
        ("a table of conditions, noise in every cell", "counts by area, noise in every cell"),
        quote=(
            "Since the output is equally likely in the two cases ... Even if adversary knows "
            "everything, DP is a probability guarantee that they cannot be sure if the data point was"
            " used in the computation!"
        ),
        context="The idea is that results are almost the same for D and D', which ensures privacy",
        reading="'Equally likely' is read with the line after it: almost the same.",
    ),
)
