"""Utility beside privacy: how good the private answers are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from audits.lectures.claims.statement import Figure, Statement, Truth
from audits.lectures.claims.utility_queries import QUERIES
from dpaudit.catalogue import find
from dpaudit.losses.released import exponential, permute_and_flip

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

SARKAR, CHEEMA = "Sarkar, notes 003", "Cheema & Huszár, notes 004"
NOISE = f"{CHEEMA}, 'Just add noise'"
SEED, CLOSE = 7, 1e-9
BLUE = "#2b5d8a"


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
        "right" if falls else "wrong",
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
        for name, answer, sensitivity, colour, mark in (
            ("number", people, 1.0, BLUE, ""),
            ("average age", AGE, OLDEST / people, "#b5532d", "o"),
        ):
            chances = [close(answer, sensitivity, float(epsilon)) for epsilon in epsilons]
            label = f"{name}, {people} people"
            axes.semilogx(epsilons, chances, mark + style, markevery=6, markersize=4, color=colour, label=label)
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
        "right" if right else "wrong",
        "For the use of the answer: privacy itself would be content with noise as flat as one likes (at epsilon = "
        f"0.001 no value has more than {flat:.4f}). It only limits how high the peak can be: on the integers no noise "
        f"that keeps epsilon gives one value more than tanh(epsilon / 2), {peak:.4f} at epsilon = 1, and the two-sided "
        f"geometric one, Laplace noise for counts, gives just that (400 random noises: at most {highest:.4f}). And why "
        f"at zero: there the error is least. It is {error:.3f} on average, {moved[1]:.3f} with the peak at 1 and "
        f"{moved[3]:.3f} at 3, at the same privacy; none of the random ones is below {smallest:.3f}.",
        {"peak": peak, "random": highest, "error": error, "peak at 1": moved[1], "peak at 3": moved[3]},
    )


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


def draw_two_prices(axes: Axes) -> None:
    shifts = np.linspace(0.0, 4.0, 80)
    for too_low, style in ((1.0, ":"), (4.0, "-"), (16.0, "--")):
        costs = [laplace_cost(float(shift), 1.0, too_low, 1.0) for shift in shifts]
        axes.plot(shifts, costs, style, color=BLUE, label=f"a unit too low costs {too_low:g}")
        best = max(0.0, math.log((too_low + 1.0) / 2.0))
        axes.plot([best], [laplace_cost(best, 1.0, too_low, 1.0)], "o", color=BLUE)
    axes.set_xlabel("noise moved up by")
    axes.set_ylabel("mean cost")
    axes.legend(frameon=False)


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
        verdict="right",
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
        verdict="right",
        how=("derived", "computed"),
        check=check_concentration,
        quote="Needs high concentration somewhere ... Concentration at zero is and useful. ... Why do you think that "
        "is?",
        reading="It is needed for the use of the answer: privacy does not ask for it.",
    ),
    *QUERIES,
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
        figure=Figure(
            "The mean cost of Laplace noise with epsilon = 1 that is moved up, where a unit too high costs 1: a matter "
            "of use alone, for all have the same epsilon. Dots: the best shift.",
            draw_two_prices,
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
