"""What an adversary knows, and what there is to learn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from audits.lectures.claims.examples import REACH, binomial, with_and_without
from audits.lectures.claims.statement import Figure, Statement, Truth
from dpaudit.catalogue import find
from dpaudit.losses.composing import responses
from dpaudit.losses.distribution import log_ratios

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

SARKAR, CHEEMA = "Sarkar, notes 003", "Cheema & Huszár, notes 004"
CLOSE = 1e-9


# --- knowledge as probability ---------------------------------------------------------------------------------

MEAN, SPREAD, HEARD = 67.0, 4.0, 1.5  # inches: of heights, and of what somebody has heard about yours


def guessed(height: float, people: int) -> float:
    """The belief that your entry is you, of somebody who has heard your height roughly; the others are typical."""
    from scipy.special import ndtri

    others = MEAN + SPREAD * ndtri((np.arange(people - 1) + 0.5) / (people - 1))
    return float(1.0 / (1.0 + np.exp(-((others - height) ** 2) / (2.0 * HEARD**2)).sum()))


def normal(at: float, mean: float, deviation: float) -> float:
    return math.exp(-((at - mean) ** 2) / (2.0 * deviation**2)) / deviation


def check_heights() -> Truth:
    people, group, seen = 100, 5, 70.5
    found = {height: guessed(height, people) for height in (78.0, 72.0, 66.0)}
    with_you = normal(seen, (78.0 + (group - 1) * MEAN) / group, SPREAD * math.sqrt(group - 1) / group)
    member = with_you / (with_you + normal(seen, MEAN, SPREAD / math.sqrt(group)))
    most = math.e / (1.0 + math.e)
    right = found[78.0] > found[72.0] > found[66.0] > 1.0 / people and member > 0.5
    return Truth(
        "right" if right else "wrong",
        f"In a table of {people} people, heights of 5 ft 7 with a deviation of 4 inches, and an adversary who has "
        f"heard yours to 1.5 inches: the entry is taken for you with a belief of {found[78.0]:.2f} if you have 6 ft 6, "
        f"of {found[72.0]:.2f} at 6 ft and of {found[66.0]:.2f} at 5 ft 6 ({1.0 / people:.2f} before). And an average "
        f"of 5 ft 10.5 in a group of five raises the belief that somebody of 6 ft 6 is in it from 0.50 to {member:.2f}."
        f" An average with noise for epsilon = 1 raises it to {most:.2f} at the most, whatever is known; a table has "
        "no such bound.",
        {"6 ft 6": found[78.0], "6 ft": found[72.0], "5 ft 6": found[66.0], "member": member},
    )


def check_benign() -> Truth:
    """Independent facts that hold for 60 % of those with a condition and for 40 % of all others."""
    share, prior = 0.01, math.log(0.01 / 0.99)
    step = math.log(0.6 / 0.4)
    found = {}
    for facts in (1, 20, 100):
        odds = prior + step * (2 * np.arange(facts + 1) - facts)
        found[facts] = float(binomial(facts, 0.6)[odds > 0.0].sum()), float(binomial(facts, 0.4)[odds > 0.0].sum())
    one = 1.0 / (1.0 + math.exp(-prior - step))
    right = found[1][0] == 0.0 and found[100][0] > 0.75 and found[100][1] < 0.01
    return Truth(
        "right" if right else "wrong",
        f"Many of them together are not. Take facts that hold for 60 % of those with a condition, which is {share:.0%} "
        f"of all, and for 40 % of the others: any one of them raises the belief to {one:.3f} at most. Twenty make it "
        f"likelier than not for {found[20][0]:.1%} of those who have it, a hundred for {found[100][0]:.0%}, and for "
        f"{found[100][1]:.2%} of the others. So it is the sum that counts, as in composition: a fact with a log ratio "
        f"of {step:.2f} costs that much each time.",
        {"one": one, "twenty": found[20][0], "a hundred": found[100][0], "mistaken": found[100][1]},
    )


def check_binoculars() -> Truth:
    """Bob was seen in the room; was he counted? A noisy count at epsilon = 1, all others known to be counted."""
    prior = 0.5
    p, q = with_and_without(np.ones(1))
    held = (p > 0.0) & (q > 0.0)
    counted = prior * p[held] / (prior * p[held] + (1.0 - prior) * q[held])
    low, high = float(counted.min()), float(counted.max())
    bound = 1.0 / (1.0 + math.exp(-1.0))
    right = abs(high - bound) < 1e-9 and abs(low - (1.0 - bound)) < 1e-9
    return Truth(
        "question or trap" if right else "wrong",
        "It does, and it speaks of the count. Bob was seen in the room: the belief that he was there is 1, before the "
        "output and after it, and no mechanism can or need change that. Whether his row was used is another question: "
        f"from even odds the noisy count moves that belief to between {low:.3f} and {high:.3f} at epsilon = 1, also "
        "for an adversary who knows every other row.",
        {"lowest": low, "highest": high},
    )


def check_opinion() -> Truth:
    """Three averages of ages, by what one person more or less known can tell of them."""
    ages, other = [70.0, 80.0, 55.0, 95.0, 0.0], [70.0, 80.0, 55.0, 95.0, 100.0]
    noisy = find("laplace_average").true_epsilon(ages, other)
    exact = find("noisy_average.exact").true_epsilon(*find("noisy_average.exact").default_pair)
    answered = exact == math.inf and noisy is not None and abs(noisy - 1.0) < CLOSE
    return Truth(
        "question or trap" if answered else "wrong",
        "The answer that the notes come to: when the output is about as likely with the person as without. An output "
        "that does not change at all is private for all, and useless (a loss of 0); an exact average is for nobody (no "
        "epsilon: two data sets with different averages have no output in common); with noise of scale range / (n "
        f"epsilon) it has a loss of {noisy:.2f} epsilon for each person at once.",
        {"noisy average": noisy or 0.0},
    )


def check_authorised() -> Truth:
    """An average of 500 ages in [0, 100] for an analyst who may ask: the error, and what it adds about one age."""
    n, largest, epsilon = 500, 100.0, 1.0
    scale = largest / (n * epsilon)
    error = scale * math.log(20.0)
    belief = 0.1 * math.e / (0.1 * math.e + 0.9)
    exact = find("noisy_average.exact").true_epsilon(*find("noisy_average.exact").default_pair)
    right = error < 1.0 and exact == math.inf
    return Truth(
        "right" if right else "wrong",
        "Both can be had at once: whoever may ask for the average of 500 ages between 0 and 100, at epsilon = 1, gets "
        f"it to within {error:.1f} years with probability 0.95, and if all other ages are known too, the belief that "
        f"one person has a certain age moves from 0.10 to {belief:.2f} at the most. The exact average would tell that "
        "age: no lock on the data prevents this, for the analyst holds the key.",
        {"error": error, "belief": belief},
    )


# --- what is promised, and what is not ------------------------------------------------------------------------


def losses(n: int) -> tuple[Floats, Floats]:
    """The losses of a noisy count, epsilon = 1, and their chances, where n other bits are unknown, fair coins."""
    p, q = with_and_without(binomial(n, 0.5))
    at = np.arange(len(p)) - REACH
    near = (at >= -REACH // 2) & (at <= n + REACH // 2)  # all but e^-20; beyond, the cut noise would show
    return log_ratios(p[near], q[near]), p[near]


def check_side_information() -> Truth:
    found = {n: losses(n) for n in (0, 10, 100, 1_000)}
    mean = {n: float(chances @ ratios) for n, (ratios, chances) in found.items()}
    often = {n: float(chances[ratios > 0.5].sum()) for n, (ratios, chances) in found.items()}
    ratios, chances = found[10]
    largest, rare = float(ratios.max()), float(chances[ratios > 0.999].sum())
    right = abs(mean[0] - math.tanh(0.5)) < 1e-6 and mean[1_000] < 0.01 * mean[0] and abs(largest - 1.0) < 1e-6
    return Truth(
        "right" if right else "wrong",
        "A noisy count at epsilon = 1, and an adversary who knows all other bits, or takes n of them for fair coins. "
        f"With all known the loss is {mean[0]:.3f} on average and above 0.5 with probability {often[0]:.2f}; with ten "
        f"unknown {mean[10]:.3f} and {often[10]:.3f}; with a hundred {mean[100]:.4f} and {often[100]:.0e}; with a "
        f"thousand {mean[1000]:.5f} on average. The worst case stays: a count above all that there can be has a loss "
        f"of 1 whatever is unknown ({largest:.3f} with ten unknown, with probability {rare:.0e}). The definition does "
        "not rely on what an adversary might not know.",
        {**{f"mean, {n} unknown": value for n, value in mean.items()}, "largest": largest, "rare": rare},
    )


def draw_side_information(axes: Axes) -> None:
    sizes = np.unique(np.geomspace(1, 1_000, 25).astype(int))
    found = [losses(int(n)) for n in sizes]
    axes.loglog(sizes, np.ones(len(sizes)), "k--", label="largest loss")  # the ratio of the tails, whatever is unknown
    axes.loglog(sizes, [float(c @ r) for r, c in found], "-", color="#2b5d8a", label="mean loss")
    axes.set_xlabel("records that the adversary does not know")
    axes.set_ylabel("privacy loss")
    axes.legend(frameon=False)


def check_groups() -> Truth:
    """epsilon for any group of the n people: no output tells none of them from all of them."""
    epsilon = 1.0
    best = 1.0 / (1.0 + math.exp(epsilon))
    missed = {n: math.exp(-n * epsilon / 2.0) / 2.0 for n in (10, 100)}
    p, q = responses(1, epsilon)
    bound = min(float(np.minimum(p, q).sum()) / 2.0, best)
    far = math.exp(-epsilon / 2.0) / 2.0  # Laplace noise of scale n / epsilon, cut at n / 2
    right = abs(bound - best) < CLOSE and missed[10] < 0.01 < best <= far
    return Truth(
        "right" if right else "wrong",
        "If epsilon = 1 held for groups of any size, then for any two databases; so whoever tells a database where all "
        f"say yes from one where nobody does is wrong with probability {best:.3f} at the least, for any number of "
        f"people, and randomised response of that one bit is. A noisy count does it with {far:.3f}. Where epsilon = 1 "
        f"protects each person, a noisy count of 10 is wrong with {missed[10]:.4f}, one of 100 with {missed[100]:.0e}.",
        {"at least": best, "count for groups": far, "ten people": missed[10]},
    )


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        name="knowledge-of-heights",
        place=f"{SARKAR}, 'Knowledge'",
        says="Who has heard that you are unusually tall can guess which entry is yours; of average people less surely",
        verdict="right",
        how=("computed",),
        check=check_heights,
        quote="Someone has heard that you are unusually tall; they can guess that the entry with 6'6\" height is "
        "likely you ... (or, if the average in a small group is high, you were likely in the group) ... If you are 6', "
        "they can make a guess, but be less sure of it (lower probability) ... If you are 5'6', they are even less "
        "sure",
        context="Knowledge can be seen as probabilistic",
    ),
    Statement(
        name="benign-facts",
        place=f"{CHEEMA}, 'Why bother?'",
        says="Benign facts may not be benign",
        verdict="right",
        how=("computed",),
        check=check_benign,
        quote="**Benign facts** may not be benign...",
    ),
    Statement(
        name="binoculars",
        place=f"{SARKAR}, 'Interpretation of differential privacy'",
        says="The adversary sees through binoculars who was in the meeting room: does DP apply?",
        verdict="question or trap",
        how=("derived", "computed"),
        check=check_binoculars,
        quote="Suppose the adversary has powerful binoculars to see who was in the meeting room ... Does DP apply? "
        "What does it mean?",
        context="Differential privacy is about which data point was used or not used in the computation, not about "
        "what actually happened",
    ),
    Statement(
        name="private-for-a-person",
        place=f"{SARKAR}, 'Question: What is Privacy in your opinion?'",
        says="When is an aggregate value or a model private for a person in the training data?",
        verdict="question or trap",
        how=("derived", "computed"),
        check=check_opinion,
        quote="When would you say an aggregate value or model is private for a person in the training data?",
    ),
    Statement(
        name="privacy-and-security",
        place=f"{SARKAR}, 'Privacy vs security'",
        says="Privacy keeps authorised users from learning more than they should, and leaves the data useful",
        verdict="right",
        how=("derived", "computed"),
        check=check_authorised,
        quote="Privacy: prevent authorized users from learning more than they should ... Data should still be useful "
        "for intended tasks",
        context="Security: prevent unauthorized users from reading data",
    ),
    Statement(
        name="side-information",
        place=f"{CHEEMA}, 'Privacy loss as a random variable'",
        says="The privacy loss is a worst case: an adversary may need a lot of side information to gain that much",
        verdict="right",
        how=("computed",),
        check=check_side_information,
        figure=Figure(
            "The privacy loss of one person in a noisy count with epsilon = 1, for an adversary who does not know so "
            "many of the other bits: its mean falls, the worst case stays.",
            draw_side_information,
        ),
        quote="This is a worst case assessment ... an adversary may need a lot of side information to gain this much "
        "information.",
    ),
    Statement(
        name="groups-preclude-learning",
        place=f"{CHEEMA}, 'Reflections'",
        says="Privacy for arbitrary groups precludes learning",
        verdict="right",
        how=("derived", "computed"),
        check=check_groups,
        quote="Privacy is guaranteed for *individuals* ... privacy for arbitrary groups precludes learning",
    ),
)
