"""What an output tells, and what an adversary is not told.

The ideas that come before the definition (an output that does not change, one that says little), the noise that the
adversary does not know, and the questions that are asked of aggregates.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

from audits.lectures.claims.attacking import CHEEMA, HAGHTALAB, SARKAR
from audits.lectures.claims.statement import Statement, Truth
from dpaudit.catalogue.attacks import allowed
from dpaudit.losses.composing import responses
from dpaudit.losses.distribution import delta_of

SEED = 3
INCHES = 67.0


# --- ideas of privacy -----------------------------------------------------------------------------------------


def unchanged_functions(most: int) -> tuple[int, int, int]:
    """Of all functions from datasets of at most so many bits to two outputs: how many there are, how many no change of
    one record ever shows in, and how many of these are constant."""
    datasets = [(zeros, ones) for zeros in range(most + 1) for ones in range(most + 1 - zeros)]
    place = {data: number for number, data in enumerate(datasets)}
    moves = [(place[a, b], place[more]) for a, b in datasets for more in ((a + 1, b), (a, b + 1)) if more in place]
    every = np.array(list(itertools.product((0, 1), repeat=len(datasets))), np.int8)
    same = np.all([every[:, one] == every[:, other] for one, other in moves], axis=0)
    return len(every), int(same.sum()), int((np.ptp(every[same], axis=1) == 0).sum())


def check_same_output() -> Truth:
    every, same, constant = unchanged_functions(3)
    return Truth(
        "right" if same == constant > 0 else "wrong",
        f"Nothing at all is learnt then, and nothing else either: from any dataset one comes to any other by adding "
        "and "
        f"removing records, so an output that no record changes is the same for all datasets. Of all {every:,} yes/no "
        f"functions of at most three bits, {same} keep to this idea, and these are the {constant} constants. It is "
        "epsilon = 0, and the reason why the next idea asks for 'not much'.",
        {"functions": every, "unchanged": same, "constant": constant},
    )


def check_influence() -> Truth:
    every, same, constant = unchanged_functions(3)
    return Truth(
        "right" if every - same == every - constant else "wrong",
        f"Of all {every:,} yes/no functions of datasets of at most three bits {every - same:,} are no constant, and "
        "for each of these there is a dataset and a record whose presence the output shows. What is useful leaks; the "
        "question is how much.",
        {"leaking": every - same},
    )


def check_idea_2() -> Truth:
    """The average height of a group of ten, noisy: belief that hers was used, against the same with her left out."""
    beliefs = {epsilon: 1.0 / (1.0 + math.exp(-epsilon)) for epsilon in (0.1, 1.0)}  # randomised response reaches it
    grid = np.linspace(40.0, 100.0, 6_001)
    shift, scale = 20.0 / 10, 20.0 / 10  # heights between 58 and 78 inches, epsilon = 1
    with_her, without = (stats.laplace(centre, scale).pdf(grid) for centre in (INCHES + shift, INCHES))
    height = float(np.max(with_her / (with_her + without)))
    right = height <= beliefs[1.0] + 1e-9 and beliefs[0.1] < 0.53
    return Truth(
        "right" if right else "wrong",
        "In numbers, from even odds that her data were used: an exact average makes a certainty of it for who knows "
        "the "
        f"others. With noise for epsilon = 1 in the average height of ten (58 to 78 inches) the belief rises to at "
        "most "
        f"{height:.3f}, which is e / (1 + e), and with epsilon = 0.1 no mechanism lifts it above {beliefs[0.1]:.3f}.",
        {"average height": height, **{f"most at {e:g}": value for e, value in beliefs.items()}},
    )


def check_estimate() -> Truth:
    """Ten values, any belief: the largest factor by which a belief rises, with epsilon for presence."""
    epsilon, values = 0.1, 10
    rng, worst = np.random.default_rng(SEED), 0.0
    keep = np.full((values, values), 1.0) + np.eye(values) * (math.exp(2 * epsilon) - 1.0)
    law = keep / keep.sum(axis=1, keepdims=True)  # of two values no output tells more than 2 epsilon
    for _ in range(200):
        prior = rng.dirichlet(np.full(values, 0.3)) + 1e-12
        after = prior[:, None] * law / (prior @ law)
        worst = max(worst, float((after / prior[:, None]).max()))
    even = float(law[0, 0])
    return Truth(
        "right" if worst <= math.exp(2 * epsilon) + 1e-9 else "wrong",
        f"By a factor of at most e^(2 epsilon), {math.exp(2 * epsilon):.3f} at epsilon = 0.1, for any belief "
        "beforehand "
        f"(200 random ones over ten values, and the response that gives most away: {worst:.3f}): from 10% each to at "
        f"most {even:.1%}. Not at all would be epsilon = 0.",
        {"largest factor": worst, "from a tenth": even},
    )


# --- what the adversary knows ---------------------------------------------------------------------------------


def check_noise_known() -> Truth:
    """A count of 19 or 20 with noise of a computer: an adversary who knows the algorithm, and one who tries seeds."""
    epsilon, seeds = 1.0, 500
    noise = np.array([np.random.default_rng(seed).laplace(scale=1.0 / epsilon) for seed in range(seeds)])
    fits = 0
    for count, secret in itertools.product((19, 20), (3, 141, 499)):
        published = count + noise[secret]
        whole = published - noise
        found = {round(each) for each in whole if abs(each - round(each)) < 1e-9 and round(each) in (19, 20)}
        fits += found == {count}
    best = 1.0 - math.exp(-epsilon / 2.0)  # of a threshold in the middle
    right = fits == 6 and best <= allowed(epsilon)
    return Truth(
        "right" if right else "wrong",
        f"Who knows the algorithm and the distribution tells two counts apart with an advantage of at most {best:.3f} "
        "at "
        f"epsilon = 1 ({allowed(epsilon):.3f} for any mechanism): hiding the design would add nothing. Who knows the "
        f"noise subtracts it. A computer's noise is known to who can try its seeds: of {seeds} seeds only the true one "
        f"leaves a whole number, and the count is found in all {fits} examples. So the noise needs a seed that nobody "
        "can try out.",
        {"found by seeds": fits, "advantage": best},
    )


def check_smaller_epsilon() -> Truth:
    grid = (0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0)
    bounds = [allowed(epsilon) for epsilon in grid]
    kept = all(delta_of(*responses(1, one), other) <= 1e-12 for one, other in itertools.combinations(grid, 2))
    with_delta = [allowed(1.0, delta) for delta in (0.0, 0.01, 0.1)]
    rising = all(one < other for each in (bounds, with_delta) for one, other in itertools.pairwise(each))
    words = ", ".join(f"{epsilon:g}: {bound:.3f}" for epsilon, bound in zip(grid, bounds, strict=True))
    return Truth(
        "right" if kept and rising else "wrong",
        "Whatever keeps a smaller epsilon keeps every larger one, and the most that anybody's guess gains falls with "
        "it: "
        f"{words}. At 0.1 a guess between two neighbours is right in at most {(1 + allowed(0.1)) / 2:.1%}. "
        f"With a delta of 0.01 or 0.1 beside an epsilon of 1 it is {with_delta[1]:.3f} or {with_delta[2]:.3f} in the "
        f"place of {with_delta[0]:.3f}.",
        {f"allowed at {epsilon:g}": bound for epsilon, bound in zip(grid, bounds, strict=True)},
    )


# --- aggregates -----------------------------------------------------------------------------------------------


def check_large_queries() -> Truth:
    """Twelve people: sums over all who are not named so; and sums over 5 to 7 people only."""
    people = 12
    rng = np.random.default_rng(SEED)
    secret = rng.integers(0, 100, people)
    all_but_one = secret.sum() - np.array([np.delete(secret, place).sum() for place in range(people)])
    middle = np.array([row for row in itertools.product((0, 1), repeat=people) if 5 <= sum(row) <= 7], float)
    order = rng.permutation(len(middle))
    needed = next(m for m in range(1, 200) if np.linalg.matrix_rank(middle[order[:m]]) == people)
    solved = np.linalg.lstsq(middle[order[:needed]], middle[order[:needed]] @ secret, rcond=None)[0]
    right = bool(np.array_equal(all_but_one, secret)) and bool(np.allclose(solved, secret))
    return Truth(
        "right" if right else "wrong",
        f"Two sums over nearly all people differ by the value of one: so all {people} values are found from the sum of "
        "all and the sums of all but one. That only sums over a middling number of people are answered, 5 to 7 of 12, "
        f"does not help: {needed} random ones of them are as many independent equations as there are people, and give "
        "all values. How large a query is does not matter; how much one person moves it against the noise does.",
        {"queries needed": needed},
    )


AGGREGATES: dict[str, Callable[[Sequence[int]], object]] = {
    "count of those above 2": lambda data: sum(value > 2 for value in data),
    "largest": max,
    "median": lambda data: sorted(data)[len(data) // 2],
    "sum or average": sum,
    "average of each of three bits": lambda data: tuple(sum(value >> bit & 1 for value in data) for bit in range(3)),
}


def check_aggregates() -> Truth:
    """All neighbours among datasets of five values from 0 to 5: how many pairs an exact aggregate tells apart."""
    told = dict.fromkeys(AGGREGATES, 0)
    pairs = 0
    for rest in itertools.combinations_with_replacement(range(6), 4):
        for one, other in itertools.combinations(range(6), 2):
            pairs += 1
            for name, publishes in AGGREGATES.items():
                told[name] += publishes((*rest, one)) != publishes((*rest, other))
    words = ", ".join(f"{name} {count / pairs:.0%}" for name, count in told.items())
    assert min(told.values()) > 0, "an aggregate that shows nobody"
    return Truth(
        "question or trap",
        f"No. Of all {pairs:,} pairs of neighbouring datasets of five values from 0 to 5 (one value replaced), the "
        "exact "
        f"aggregate tells apart: {words}. Two that are told apart once are told apart for sure, so none of them has an "
        "epsilon; the attacks on this page use it. Fewer numbers show less, and still somebody.",
        {name: count / pairs for name, count in told.items()},
    )


def check_population_scale() -> Truth:
    """An average of n grades beside all but one of them, for classes of any size."""
    found = []
    for size in (10, 100, 1_000, 10_000):
        grades = np.random.default_rng([SEED, size]).integers(0, 11, size)
        average = float(np.mean(grades))
        found.append(round(size * average) - int(grades[1:].sum()) == grades[0])
    return Truth(
        "right" if all(found) else "wrong",
        f"However large the population: in classes of 10 to 10,000 the average gives the grade of one to who knows the "
        f"others ({sum(found)} of {len(found)}), for it moves by a whole 1 / n for each point. What must grow is not "
        "the "
        "number of people but the noise against what one of them can move.",
        {"found": float(sum(found))},
    )


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        "population-scale-statistics",
        f"{HAGHTALAB}, section 1.1",
        "Reporting statistics at population scale is not sufficient for the privacy of individuals",
        "right",
        ("derived", "computed", "audited"),
        check_population_scale,
        ("average grade, exact",),
        quote="reporting of statistics at population-scale is not sufficient to ensure the privacy of individuals.",
    ),
    Statement(
        "same-output",
        f"{SARKAR}, 'Privacy Idea'",
        "If the output does not change when $x$ is added or removed, the adversary learns nothing from it",
        "right",
        ("derived", "computed"),
        check_same_output,
        quote="The output A(D) does not change if we add or remove x from D ... Then there is no privacy leak ... "
        "Adversary "
        "does not learn anything from algorithm output",
    ),
    Statement(
        "points-influence-the-output",
        f"{SARKAR}, 'Observations'",
        "Data points influence the output, so something about them can be deduced",
        "right",
        ("derived", "computed"),
        check_influence,
        quote="Data points influence the output. Thus, some information about data points can be deduced from output "
        "(information leak)",
    ),
    Statement(
        "little-more-probability",
        f"{SARKAR}, 'Privacy idea 2'",
        "From the output it is hard to be sure that the data of $x$ were used",
        "right",
        ("derived", "computed"),
        check_idea_2,
        quote="The Output A(D) does not reveal much more probability about x if x is in the dataset, compared to if x "
        "is not "
        "... looking at the output (e.g. average height), it is hard to be sure that data of x was used",
    ),
    Statement(
        "estimate-of-the-value",
        f"{SARKAR}, 'Hiding values: meaning'",
        "The estimate of which value was used does not get better by seeing the output",
        "right",
        ("derived", "computed"),
        check_estimate,
        quote="Imagine the adversary is assigning a probability estimate of what value was used ... This probability "
        "estimate "
        "does not get better by seeing the output",
        context="Seeing the DP output does not change this probability/confidence by much",
        reading="'Does not get better' is read as the slide after it has it: not by much.",
    ),
    Statement(
        "all-but-the-noise",
        f"{SARKAR}, 'Adversary'",
        "The adversary knows the algorithm and the distribution, and does not know the noise that was drawn",
        "right",
        ("derived", "computed"),
        check_noise_known,
        quote="Knows the algorithm and the distribution ... Does not know the noise y the random number drawn by "
        "computer from "
        "the distribution at the time",
    ),
    Statement(
        "smaller-epsilon",
        f"{SARKAR}, 'Some notes'; Bassi 2019, notes 001, 'Definition and properties of DP'",
        r"Smaller $\epsilon$ implies greater privacy, and so does a smaller $\delta$",
        "right",
        ("derived", "computed"),
        check_smaller_epsilon,
        quote=(
            r"Smaller $\epsilon$ implies greater privacy",
            r"The smaller $\varepsilon$ and $\delta$ are, the more private the algorithm is.",
        ),
    ),
    Statement(
        "aggregates-protect",
        f"{SARKAR}, 'Aggregate functions'",
        "Does it protect us if only an aggregate is released?",
        "question or trap",
        ("computed", "audited"),
        check_aggregates,
        (
            "counts by area, exact",
            "average grade, exact",
            "median grade, exact",
            "best grade, exact",
            "average of six attributes, exact",
        ),
        quote="But released only an aggregate value ... e.g. average, sum, high-d average, count... ... Does this "
        "protect us?",
    ),
    Statement(
        "large-queries",
        f"{CHEEMA}, 'Why bother?'",
        "Large queries allow differencing attacks",
        "right",
        ("derived", "computed", "audited"),
        check_large_queries,
        ("counts over six subsets, exact",),
        quote="**Large queries** allow differencing attacks",
    ),
)
