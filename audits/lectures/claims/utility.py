"""Utility beside privacy: how good the private answers are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from audits.lectures.claims.statement import Figure, Statement, Truth
from dpaudit.catalogue import find
from dpaudit.losses.comparisons import below, density, panels
from dpaudit.losses.selecting import exponential, permute_and_flip

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

BASSI, SARKAR, CHEEMA = "Bassi 2019, notes 001", "Sarkar, notes 003", "Cheema & Huszár, notes 004"
NOISE = f"{CHEEMA}, 'Just add noise'"
SEED, CLOSE, BETA = 7, 1e-9, 0.05
BLUE = "#2b5d8a"


def least(chance: Callable[[float], float], beta: float, most: float) -> float:
    """The least gap at which a falling chance of failure is at most beta; at most `most`."""
    low, high = 0.0, most
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if chance(middle) > beta else (low, middle)
    return high


# --- the exponential mechanism --------------------------------------------------------------------------------


def short(candidates: int, t: float, law: Callable[[Floats, float], Floats] = exponential) -> float:
    """How likely the choice is 2 (ln(candidates) + t) or more below the best, epsilon and sensitivity 1.

    One candidate is the best, and all others are just that far below it: the worst utilities there are.
    """
    gap = 2.0 * (math.log(candidates) + t)
    return float(law(np.array([0.0] + [-gap] * (candidates - 1)), 0.5)[1:].sum())


def check_exponential_utility() -> Truth:
    rng, worst = np.random.default_rng(SEED), 0.0
    for _ in range(2_000):
        utilities, t = rng.normal(scale=10.0, size=12), rng.uniform(0.0, 4.0)
        bar = utilities.max() - 2.0 * (math.log(12) + t)
        worst = max(worst, float(exponential(utilities, 0.5)[utilities <= bar].sum()) * math.exp(t))
    reached = {size: short(size, 5.0) * math.exp(5.0) for size in (2, 10, 1_000)}
    flip = short(100, 3.0, permute_and_flip) / short(100, 3.0)
    right = max(worst, *reached.values()) <= 1.0 + CLOSE
    return Truth(
        "wrong" if not right else "right and tight" if reached[1_000] > 0.98 else "right and loose",
        "The guarantee is theorem 3.11 of Dwork & Roth 2014 (McSherry & Talwar 2007): the choice is (2 / epsilon) "
        "(ln|R| + t) sensitivities or more below the best with probability at most e^-t. Exact laws keep it (2000 "
        f"random ones: at most {worst:.3f} of the bound) and come close: at t = 5 they have {reached[10]:.3f} of it "
        f"for ten candidates and {reached[1000]:.3f} for a thousand, where one is the best and all others are just so "
        "far below. The number of candidates costs its logarithm only. It is not the best choice for that price: "
        f"permute-and-flip misses {flip:.2f} times as often there (a hundred candidates, t = 3).",
        {"random": worst, "ten": reached[10], "a thousand": reached[1_000], "permute-and-flip": flip},
    )


def draw_exponential(axes: Axes) -> None:
    t = np.linspace(0.0, 8.0, 60)
    axes.semilogy(t, np.exp(-t), "k--", label="bound: $e^{-t}$")
    for size, style in ((2, ":"), (10, "-."), (1_000, "-")):
        axes.semilogy(t, [short(size, float(one)) for one in t], style, color=BLUE, label=f"{size:,} candidates, exact")
    axes.set_xlabel("t")
    axes.set_ylabel("chance to be that far below the best")
    axes.legend(frameon=False)


# --- one noisy number -----------------------------------------------------------------------------------------


def close(answer: float, sensitivity: float, epsilon: float, share: float = 0.1) -> float:
    """The chance that Laplace noise is at most that share of the answer."""
    return -math.expm1(-share * answer * epsilon / sensitivity)


STUDENTS, AGE, OLDEST = 30, 26.0, 100.0  # a laboratory of that size


def check_accuracy_and_noise() -> Truth:
    """Laplace noise on a number of students and on their average age, and what it takes to be within a tenth."""
    answers = {"number": (float(STUDENTS), 1.0), "age": (AGE, OLDEST / STUDENTS)}
    at = {name: [close(*both, epsilon) for epsilon in (0.1, 1.0, 10.0)] for name, both in answers.items()}
    needed = {name: math.log(20.0) * both[1] / (0.1 * both[0]) for name, both in answers.items()}
    falls = all(row == sorted(row) and row[0] < 0.5 < row[-1] for row in at.values())
    return Truth(
        "right and tight" if falls else "wrong",
        f"For {STUDENTS} students of {AGE:.0f} years on average, ages up to {OLDEST:.0f}: the number has sensitivity "
        f"1 and the average {OLDEST / STUDENTS:.2f}. The noisy number is within a tenth of the truth with probability "
        f"{at['number'][0]:.2f}, {at['number'][1]:.2f} and {at['number'][2]:.2f} at epsilon = 0.1, 1 and 10, the noisy "
        f"average with {at['age'][0]:.2f}, {at['age'][1]:.2f} and {at['age'][2]:.2f}. For 95 % it takes epsilon = "
        f"{needed['number']:.2f} and {needed['age']:.2f}. With more people both grow better: the noise of the "
        "average falls as 1 / n, and that of the count stays while the count grows.",
        {"number at 1": at["number"][1], "age at 1": at["age"][1], **{f"{k}, 95 %": v for k, v in needed.items()}},
    )


def draw_accuracy(axes: Axes) -> None:
    epsilons = np.geomspace(0.01, 30.0, 60)
    for people, style in ((STUDENTS, "-"), (10 * STUDENTS, "--")):
        for name, answer, sensitivity, colour in (
            ("number", people, 1.0, BLUE),
            ("average age", AGE, OLDEST / people, "#b5532d"),
        ):
            chances = [close(answer, sensitivity, float(epsilon)) for epsilon in epsilons]
            axes.semilogx(epsilons, chances, style, color=colour, label=f"{name}, {people} people")
    axes.set_xlabel("epsilon")
    axes.set_ylabel("chance to be within a tenth")
    axes.legend(frameon=False)


def check_concentration() -> Truth:
    """Random noises on the integers whose steps keep epsilon, against the geometric one."""
    epsilon, rng = 1.0, np.random.default_rng(SEED)
    at = np.arange(-80, 81)
    two_sided = np.exp(-epsilon * np.abs(at))
    two_sided /= two_sided.sum()
    peak, error = math.tanh(epsilon / 2.0), float(np.abs(at) @ two_sided)
    highest, smallest = 0.0, math.inf
    for _ in range(400):
        steps = epsilon * rng.uniform(-1.0, rng.uniform(-0.9, 0.5), 80)
        sides = [np.concatenate([[0.0], np.cumsum(rng.permutation(steps))]) for _ in range(2)]
        law = np.exp(np.concatenate([sides[0][:0:-1], sides[1]]))
        law /= law.sum()
        highest, smallest = max(highest, float(law.max())), min(smallest, float(np.abs(at) @ law))
    moved = {shift: float(np.abs(at + shift) @ two_sided) for shift in (1, 3)}
    flat = math.tanh(0.001 / 2.0)
    right = highest <= peak + CLOSE and abs(two_sided.max() - peak) < CLOSE and error <= smallest < moved[3]
    return Truth(
        "right and tight" if right else "wrong",
        "For the use of the answer: privacy itself would be content with noise as flat as one likes (at epsilon = "
        f"0.001 no value has more than {flat:.4f}). It only limits how high the peak can be: on the integers no noise "
        f"that keeps epsilon gives one value more than tanh(epsilon / 2), {peak:.4f} at epsilon = 1, and the two-sided "
        f"geometric one, Laplace noise for counts, gives just that (400 random noises: at most {highest:.4f}). And why "
        f"at zero: there the error is least. It is {error:.3f} on average, {moved[1]:.3f} with the peak at 1 and "
        f"{moved[3]:.3f} at 3, at the same privacy; none of the random ones is below {smallest:.3f}.",
        {"peak": peak, "random": highest, "error": error, "peak at 1": moved[1], "peak at 3": moved[3]},
    )


# --- selection and thresholds ---------------------------------------------------------------------------------


def leads(counts: int, gap: float, scale: float) -> float:
    """The chance that a count which leads all others by the gap comes out on top, with Lap(scale) on each."""
    _, level, mass = panels([0.0, gap], scale, 1.0 / scale)
    return float(np.sum(mass * density(level - gap, scale) * below(level, scale) ** (counts - 1)))


def lead(counts: int, scale: float = 1.0, beta: float = BETA) -> float:
    """The lead that a count needs to come out on top with probability 1 - beta."""
    return least(lambda gap: 1.0 - leads(counts, gap, scale), beta, 2.0 * scale * math.log(counts / beta))


def check_noisy_max() -> Truth:
    """The exact lead against the union bound 2 ln(m / beta) / epsilon; all counts released need m times the noise."""
    sizes = (10, 100, 1_000, 100_000)
    need = {m: lead(m) for m in sizes}
    union = {m: 2.0 * math.log(m / BETA) for m in sizes}
    kept = all(1.0 - leads(m, union[m], 1.0) <= BETA for m in sizes)
    all_counts = lead(1_000, 1_000.0)
    right = kept and all_counts > 100.0 * need[1_000]
    return Truth(
        "right and tight" if right else "wrong",
        "How far the best count must lead to be named with probability 0.95, at epsilon = 1 and with all others tied: "
        f"{need[10]:.1f} among 10, {need[1000]:.1f} among 1,000 and {need[100000]:.1f} among 100,000 counts, exactly. "
        f"A union bound over the noises gives 2 ln(m / 0.05) / epsilon, {union[1000]:.1f} among 1,000. To release all "
        f"counts with the noise for their l1 sensitivity takes m times the lead, {all_counts:,.0f} among 1,000.",
        {**{f"lead among {m}": gap for m, gap in need.items()}, "all of 1,000": all_counts, "union": union[1_000]},
    )


def first_top(bottoms: int, gap: float, scale: float) -> float:
    """The chance that AboveThreshold is right: answers a gap below the threshold, and then one a gap above it.

    The threshold has Lap(scale), each answer Lap(2 scale).
    """
    _, level, mass = panels([0.0, -gap, gap], scale, 1.0 / scale)
    said = below(level + gap, 2.0 * scale) ** bottoms * below(gap - level, 2.0 * scale)
    return float(np.sum(mass * density(level, scale) * said))


def sparse_right(queries: int, tops: int, gap: float, epsilon: float) -> float:
    """The same for Sparse with its noise 2 c / epsilon, with as many bottoms before each top: the worst order.

    The chance of an epoch is a moment of its bottoms, so it is log-convex in their number, and the product is least
    where they are shared out evenly.
    """
    scale, (each, more) = 2.0 * tops / epsilon, divmod(queries - tops, tops)
    return first_top(each, gap, scale) ** (tops - more) * (first_top(each + 1, gap, scale) ** more if more else 1.0)


def promised(queries: int, tops: int, epsilon: float, beta: float = BETA) -> float:
    """The gap of the theorem: 8 c (ln k + ln(2 c / beta)) / epsilon."""
    return 8.0 * tops * (math.log(queries) + math.log(2.0 * tops / beta)) / epsilon


def gap_of(queries: int, tops: int, epsilon: float = 1.0, beta: float = BETA) -> float:
    """The least gap at which Sparse makes no mistake with probability 1 - beta."""
    most = promised(queries, tops, epsilon, beta)
    return least(lambda gap: 1.0 - sparse_right(queries, tops, gap, epsilon), beta, most)


def check_above_threshold() -> Truth:
    sizes = (10, 1_000, 100_000, 10_000_000)
    need = {k: gap_of(k, 1) for k in sizes}
    told = {k: promised(k, 1, 1.0) for k in sizes}
    kept = {k: 1.0 - sparse_right(k, 1, told[k], 1.0) for k in sizes}
    decade = (need[10_000_000] - need[1_000]) / 4.0
    right = max(kept.values()) <= BETA and decade < 4.5 * math.log(10.0)
    return Truth(
        "right and tight" if right else "wrong",
        "AboveThreshold says top and bottom without a mistake, with probability 0.95 at epsilon = 1, if the answers "
        f"are {need[10]:.1f} away from the threshold for 10 queries, {need[1000]:.1f} for 1,000 and "
        f"{need[10000000]:.1f} for ten million (exact, in the worst order): {decade:.2f} for each factor of 10, which "
        "is (4 / epsilon) ln(10). Theorem 3.24 of Dwork & Roth 2014 promises it at 8 (ln k + ln(2 / beta)) / epsilon, "
        f"{told[1000]:.1f} for 1,000 queries; there a mistake has probability {kept[1000]:.0e}, not 0.05.",
        {**{f"gap for {k}": gap for k, gap in need.items()}, "theorem for 1,000": told[1_000], "a decade": decade},
    )


def gap_of_all(queries: int, epsilon: float = 1.0, beta: float = BETA) -> float:
    """The same with Lap(m / epsilon) on each of the m answers, which are then compared with the threshold."""
    return -queries / epsilon * math.log(-2.0 * math.expm1(math.log1p(-beta) / queries))


def check_savings() -> Truth:
    many = 10_000
    plain, need = gap_of_all(many), {c: gap_of(many, c) for c in (1, 10, 100)}
    kept = all(1.0 - sparse_right(many, c, promised(many, c, 1.0), 1.0) <= BETA for c in need)
    pays = {c: next(m for m in range(c, many) if gap_of(m, c) < gap_of_all(m)) for c in (1, 10)}
    right = kept and need[1] < 0.01 * plain and pays[1] < 100
    return Truth(
        "right and tight" if right else "wrong",
        f"For {many:,} queries at epsilon = 1 and a mistake with probability 0.05, how far the answers must be from "
        f"the threshold: {plain:,.0f} where every answer gets Laplace noise and is then compared, and with Sparse "
        f"{need[1]:.0f} if one of them is above, {need[10]:,.0f} if ten are and {need[100]:,.0f} if a hundred are "
        "(all exact, Sparse in the worst order). It pays where few of many are above, as the notes say: from "
        f"{pays[1]} queries on for one, from {pays[10]} on for ten. It says which ones they are and no values, and the "
        "c must be known beforehand.",
        {"all answers": plain, **{f"c = {c}": gap for c, gap in need.items()}, "pays for one from": pays[1]},
    )


def draw_savings(axes: Axes) -> None:
    sizes = np.unique(np.geomspace(10, 1e6, 30).astype(int))
    axes.loglog(sizes, [gap_of_all(int(m)) for m in sizes], "k--", label="Laplace noise on all answers")
    for tops, style in ((1, "-"), (10, "-.")):
        need = [gap_of(int(m), tops) for m in sizes if m > tops]
        axes.loglog(sizes[sizes > tops], need, style, color=BLUE, label=f"Sparse, {tops} above the threshold")
    axes.set_xlabel("queries")
    axes.set_ylabel("distance from the threshold")
    axes.legend(frameon=False)


# --- a few issues with noise ----------------------------------------------------------------------------------


def laplace_cost(shift: float, scale: float, too_low: float, too_high: float) -> float:
    """The mean cost of Lap(scale) moved up by `shift` >= 0: E too_high Y+ + too_low Y-."""
    missed = scale / 2.0 * math.exp(-shift / scale)
    return too_high * (shift + missed) + too_low * missed


def check_two_prices() -> Truth:
    """A unit too low costs 4, one too high 1; the exponential mechanism far from the ends of its candidates."""
    too_low, too_high, count, top = 4.0, 1.0, 200, 400
    plain = laplace_cost(0.0, 1.0, too_low, too_high)
    shift = math.log((too_low + too_high) / (2.0 * too_high))
    moved = laplace_cost(shift, 1.0, too_low, too_high)
    costs = np.array([max(too_low * (count - r), too_high * (r - count)) for r in range(top + 1)])
    chosen = float(exponential(-costs, 0.5 / max(too_low, too_high)) @ costs)
    given = {"too_low": too_low, "too_high": too_high, "top": 10}
    loss = {name: find(f"exponential_mechanism.{name}").true_epsilon(5, 6, given) for name in LOSSES}
    same = find("laplace.moved_up").true_epsilon(10, 9)
    never = find("laplace.one_sided").true_epsilon(10, 9)
    assert loss["two_prices"] is not None
    assert loss["lower_price"] is not None
    answered = moved < plain and same == 1.0 and never == math.inf and loss["two_prices"] <= 1.0 < loss["lower_price"]
    return Truth(
        "question or trap" if answered else "wrong",
        "Move the noise: with a unit too low at 4 and a unit too high at 1 (epsilon = 1) symmetric Laplace noise costs "
        f"{plain:.2f} on average, and moved up by {shift:.2f} it costs {moved:.2f}, at the same epsilon, for the shift "
        "is public. The exponential mechanism takes the cost itself for its utility, and is private too (a loss of "
        f"{loss['two_prices']:.2f} from 5 to 6), but its exponent must allow for the higher price and for the 2, and "
        f"so it costs {chosen:.2f} here; scaled to the lower price it would lose {loss['lower_price']:.2f}. The trap "
        "is noise that is never negative: no estimate is too low, and no epsilon holds.",
        {"symmetric": plain, "moved up": moved, "exponential mechanism": chosen, "lower price": loss["lower_price"]},
    )


LOSSES = ("two_prices", "lower_price")


def check_thousand() -> Truth:
    loss, kept = (find("laplace").true_epsilon(1000, 0, {"sensitivity": s}) for s in (1.0, 1000.0))
    mistaken = math.exp(-500.0) / 2.0  # by whoever takes the nearer of the two answers
    answered = loss == 1000.0 and kept is not None and abs(kept - 1.0) < CLOSE
    return Truth(
        "question or trap" if answered else "wrong",
        f"Then the noise hides nothing: the privacy loss is {loss:.0f}, and who takes the nearer of the two answers is "
        f"mistaken with probability {mistaken:.0e}. That is why the scale goes with the sensitivity: noise of scale "
        f"1000 / epsilon has a loss of {kept:.0f} epsilon, and an error of 1000 / epsilon.",
        {"loss": loss or 0.0, "mistaken": mistaken},
    )


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        name="exponential-mechanism-utility",
        place=f"{CHEEMA}, 'The exponential mechanism'",
        says="The exponential mechanism has strong utility guarantees",
        verdict="right and tight",
        how=("derived", "computed"),
        check=check_exponential_utility,
        figure=Figure(
            "How likely the exponential mechanism is (2 / epsilon) (ln|R| + t) sensitivities below the best, in the "
            "worst case, and the bound of the theorem.",
            draw_exponential,
        ),
        quote="This has strong utility guarantees, and the Laplace mechanism is a special case.",
        reading="The guarantee meant is taken to be that of McSherry and Talwar, which the notes do not print.",
    ),
    Statement(
        name="accuracy-and-noise",
        place=f"{CHEEMA}, 'Privacy vs utility'",
        says="Accuracy is compromised if the noise is high",
        verdict="right and tight",
        how=("derived", "computed"),
        check=check_accuracy_and_noise,
        figure=Figure(
            "The chance that the noisy number of students, and their noisy average age, is within a tenth of the "
            "truth, for a laboratory of 30 and for ten times as many.",
            draw_accuracy,
        ),
        quote="Accuracy is compromised if noise is high...",
        context=r"number of PhD students in CBL ... $\Delta_1 f = 1$ ... average age of students in CBL ... "
        r"$\Delta_1 f \approx a_{\max}/n$",
    ),
    Statement(
        name="concentration-at-zero",
        place=f"{SARKAR}, 'Observations'",
        says="The noise needs high concentration somewhere, and concentration at zero is useful",
        verdict="right and tight",
        how=("derived", "computed"),
        check=check_concentration,
        quote="Needs high concentration somewhere ... Concentration at zero is and useful. ... Why do you think that "
        "is?",
        reading="It is needed for the use of the answer: privacy does not ask for it.",
    ),
    Statement(
        name="noisy-max-accuracy",
        place=f"{BASSI}, 'Report Noisy Max'",
        says="To add noise to each count and to return the index of the largest is better than to release all counts",
        verdict="right and tight",
        how=("derived", "computed"),
        check=check_noisy_max,
        quote=r"A better approach is to (internally) add independently generated Laplace noise $Lap(1/\varepsilon)$ to "
        "each count and return the index of the largest noisy count.",
        context="Releasing all the counts and letting the data analyst find the maximum is suboptimal.",
    ),
    Statement(
        name="above-threshold-accuracy",
        place=f"{BASSI}, 'Sparse vector mechanism'",
        says="A very large number of queries can be answered with reasonable accuracy where only those above a "
        "threshold matter",
        verdict="right and tight",
        how=("derived", "computed"),
        check=check_above_threshold,
        quote="What do we do if we want to answer a very large number of queries with reasonable accuracy? ... In some "
        "situations, we may only care on identifying the queries that lie above a certain threshold.",
        reading="Reasonable is read as: the error grows with the logarithm of the number of queries.",
    ),
    Statement(
        name="sparse-savings",
        place=f"{BASSI}, 'Sparse vector mechanism'",
        says="Where few of the queries lie above the threshold, to report only those is a huge savings",
        verdict="right and tight",
        how=("derived", "computed"),
        check=check_savings,
        figure=Figure(
            "How far answers must be from the threshold for all to be told right with probability 0.95 at epsilon = 1: "
            "with Laplace noise on each of them, and with Sparse. Both exact.",
            draw_savings,
        ),
        quote="This can be a huge savings if we know that the set of queries that lie above the threshold is much "
        "smaller than the total number of queries",
        context="that is, if the answer vector is sparse.",
    ),
    Statement(
        name="two-prices",
        place=NOISE,
        says="What if underestimates are much worse than overestimates?",
        verdict="question or trap",
        how=("derived", "computed", "audited"),
        check=check_two_prices,
        audits=(
            "a count, too low worse than too high, exponential mechanism",
            "a count, too low worse than too high, scaled to the lower price",
            "noisy count, moved up",
            "noisy count, never too low",
        ),
        quote="What if underestimates are much worse than overestimates?",
        context="A few issues...",
    ),
    Statement(
        name="scale-and-shift",
        place=NOISE,
        says=r"What if $\nu$ has scale 1, but $f(x) - f(x') = 1000$?",
        verdict="question or trap",
        how=("derived", "computed"),
        check=check_thousand,
        quote=r"If $\nu$ has scale 1, but $f(x) - f(x') = 1000...$",
        context="A few issues...",
    ),
)
