"""Convex functions, and gradient descent without privacy: definitions and exercises."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from audits.lectures.claims.statement import Figure, Statement, Truth
from dpaudit.catalogue import find

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

PLACE = "CS 208, notes 002, 'Non-private Gradient Descent'"
CLOSE = 0.01  # of the distance at the start: what "close to the optimum" is taken to mean

# --- gradients -------------------------------------------------------------------------------------------------------

X = [[Fraction(2), Fraction(-1)], [Fraction(1), Fraction(3)], [Fraction(-2), Fraction(1, 2)]]
Y = [Fraction(1), Fraction(-2), Fraction(3, 4)]
AT = [Fraction(1, 3), Fraction(-5, 7)]


def residuals(theta: list[Fraction]) -> list[Fraction]:
    """Y - X theta."""
    return [y - sum(a * t for a, t in zip(row, theta, strict=True)) for row, y in zip(X, Y, strict=True)]


def check_gradients() -> Truth:
    """A central difference of a quadratic function is its derivative, whatever the step: exact in fractions."""

    def slope(function: Callable[[list[Fraction]], Fraction], place: int, step: Fraction) -> Fraction:
        ends = [[t + sign * step * (k == place) for k, t in enumerate(AT)] for sign in (1, -1)]
        return (function(ends[0]) - function(ends[1])) / (2 * step)

    def squares(theta: list[Fraction]) -> Fraction:
        return sum((r * r for r in residuals(theta)), Fraction(0))

    steps = (Fraction(1), Fraction(1, 1000))
    one = all(slope(lambda t: t[0] ** 2, 0, step) == 2 * AT[0] for step in steps)
    gradient = [-2 * sum(row[k] * r for row, r in zip(X, residuals(AT), strict=True)) for k in range(2)]
    both = all(slope(squares, k, step) == gradient[k] for k in range(2) for step in steps)
    return Truth(
        "question or trap" if one and both else "wrong",
        "2 theta, and -2 X^T (Y - X theta). Checked in fractions: for a quadratic function the central difference "
        f"(L(theta + h) - L(theta - h)) / 2h is the derivative exactly, for every h. On three points, at theta = "
        f"({AT[0]}, {AT[1]}), the second one is ({gradient[0]}, {gradient[1]}).",
        {"first coordinate": float(gradient[0]), "second coordinate": float(gradient[1])},
    )


# --- convex functions ------------------------------------------------------------------------------------------------

SMOOTH: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats], tuple[float, float]]] = {
    "x^2": (lambda x: x**2, lambda x: 0.0 * x + 2.0, (-3.0, 3.0)),
    "x^3": (lambda x: x**3, lambda x: 6.0 * x, (-3.0, 3.0)),
    "sqrt x": (np.sqrt, lambda x: -0.25 * x**-1.5, (0.01, 4.0)),
    "log x": (np.log, lambda x: -(x**-2.0), (0.01, 4.0)),
    "x^3, x >= 0": (lambda x: x**3, lambda x: 6.0 * x, (0.0, 3.0)),
}


def largest_excess(function: Callable[[Floats], Floats], ends: tuple[float, float]) -> float:
    """How far a function lies above a chord of its own, at most, by definition 5.1 on a grid of a, b and t."""
    a, b, t = np.meshgrid(np.linspace(*ends, 41), np.linspace(*ends, 41), np.linspace(0.0, 1.0, 21))
    return float((function(t * a + (1.0 - t) * b) - t * function(a) - (1.0 - t) * function(b)).max())


def check_second_derivative() -> Truth:
    bent = {name: bool(np.all(second(np.linspace(*ends, 101)) >= 0.0)) for name, (_, second, ends) in SMOOTH.items()}
    excess = {name: largest_excess(function, ends) for name, (function, _, ends) in SMOOTH.items()}
    agree = all((excess[name] <= 1e-12) == bent[name] for name in SMOOTH)
    return Truth(
        "right" if agree else "wrong",
        f"Definition and hint agree on all {len(SMOOTH)} functions tried, on a grid of a, b and t. The domain matters, "
        f"as the hint says: x^3 lies up to {excess['x^3']:.1f} above a chord on [-3, 3], and nowhere above one on "
        "[0, 3]. The domain must be an interval.",
        excess,
    )


def check_which() -> Truth:
    squares = all(
        t * a * a + (1 - t) * b * b - (t * a + (1 - t) * b) ** 2 == t * (1 - t) * (a - b) ** 2 >= 0
        for a in (Fraction(-3), Fraction(1, 2))
        for b in (Fraction(2), Fraction(7, 3))
        for t in (Fraction(0), Fraction(1, 5), Fraction(1))
    )
    above = {
        "x^3": float((-1) ** 3 - ((-2) ** 3 + 0**3) / 2.0),
        "sqrt x": math.sqrt(2.0) - (math.sqrt(0.0) + math.sqrt(4.0)) / 2.0,
        "log x": math.log(5.0) - (math.log(1.0) + math.log(9.0)) / 2.0,
    }
    return Truth(
        "question or trap" if squares and min(above.values()) > 0.0 else "wrong",
        "x^2 alone. For it the chord lies t (1 - t) (a - b)^2 above the function. The others lie above a chord in its "
        f"middle: x^3 between -2 and 0 by {above['x^3']:g} (on x >= 0 it is convex), the square root between 0 and 4 "
        f"by {above['sqrt x']:.3f}, the logarithm between 1 and 9 by {above['log x']:.3f}. The last two are concave.",
        above,
    )


def local_minima(values: Floats) -> Floats:
    """The values on a grid at which no neighbour is lower, of stretches of equal values both ends looked at."""
    left, right = np.append(np.inf, values[:-1]), np.append(values[1:], np.inf)
    candidates = values[(values <= left) & (values <= right)]
    return np.unique(candidates)


def check_one_minimum() -> Truth:
    rng, x = np.random.default_rng(5), np.arange(-50, 51, dtype=np.float64)
    most = 0
    for _ in range(200):  # the largest of some lines is convex; whole numbers, so nothing is rounded
        slopes, heights = rng.integers(-5, 6, 6), rng.integers(-100, 101, 6)
        most = max(most, len(local_minima((slopes[:, None] * x + heights[:, None]).max(axis=0))))
    flat = np.maximum(np.abs(x) - 10.0, 0.0)
    places = int(np.count_nonzero(flat == flat.min()))
    two = local_minima((x / 25.0) ** 4 - 2.0 * (x / 25.0) ** 2 + x / 100.0)
    return Truth(
        "right" if most == 1 and places > 1 and len(two) == 2 else "wrong",
        f"Every local minimum has the value of the global one: so for 200 random maxima of six lines. It need not be "
        f"at one point: max(|x| - 10, 0) has its minimum at all {places} whole numbers from -10 to 10. A strictly "
        "convex function has one point at most, a strongly convex one exactly one; e^x has none. Without convexity it "
        f"fails: a polynomial of degree 4 has the local minima {two[0]:.2f} and {two[1]:.2f}.",
        {"minima of a convex function": most, "points": places, "lower": float(two[0]), "higher": float(two[1])},
    )


# --- gradient descent ------------------------------------------------------------------------------------------------


def check_naive_release() -> Truth:
    entry = find("gradient_descent").with_parameters({"steps": 1})
    (*others, record), rng = entry.default_pair[0], np.random.default_rng(0)
    model = np.asarray(entry.run([*others, record], rng))
    whole = model * (len(others) + 1) / entry.values()["learning_rate"]  # after one step from 0: the sum of y x
    rest = sum(label * np.asarray(features) for features, label in others)
    label = float((whole - rest)[0]) / record[0][0]
    same = entry.true_loss(*entry.default_pair)
    return Truth(
        "right" if math.isclose(label, record[1]) and same == math.inf else "wrong",
        f"Whoever knows the other records reads the last label off the model: after one step it is {label:g}, exactly. "
        "Another label makes another model, so no epsilon and no delta below 1 holds.",
        {"label read off": label, "label": record[1]},
    )


def problem(condition: float) -> tuple[Floats, Floats]:
    """A seeded least squares problem of 200 points and 3 features; its Hessian's eigenvalues are 1, and 1 / condition.

    The features are made orthogonal and scaled, so that the spectrum of (2/n) X^T X is (1, 1 / sqrt, 1 / condition).
    """
    rng = np.random.default_rng(7)
    q, _ = np.linalg.qr(rng.standard_normal((200, 3)))
    turn, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    x = q * np.sqrt(100.0 / np.array([1.0, math.sqrt(condition), condition])) @ turn
    return x, x @ np.array([1.0, -2.0, 0.5]) + 0.1 * rng.standard_normal(200)


def distances(condition: float, rate: float, steps: int) -> Floats:
    """How far vanilla gradient descent on (1/n) ||Y - X theta||^2 is from the optimum after 0, 1, 2, ... steps."""
    x, y = problem(condition)
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    theta, found = np.zeros(3), []
    for _ in range(steps + 1):
        found.append(float(np.linalg.norm(theta - best)))
        theta = theta - rate * 2.0 / len(y) * (x.T @ (x @ theta - y))
    return np.array(found)


def predicted(condition: float, rate: float, steps: int) -> Floats:
    """The same from the eigenvalues of the Hessian: along each eigenvector the error shrinks by 1 - rate * value."""
    x, y = problem(condition)
    values, vectors = np.linalg.eigh(2.0 / len(y) * x.T @ x)
    start = vectors.T @ np.linalg.lstsq(x, y, rcond=None)[0]
    return np.linalg.norm((1.0 - rate * values) ** np.arange(steps + 1)[:, None] * start, axis=1)


def check_iterations() -> Truth:
    needed = {}
    agree = True
    for condition in (1.0, 10.0, 100.0):
        run, law = (each(condition, 1.0, 800) for each in (distances, predicted))
        agree &= bool(np.allclose(run, law, rtol=1e-9, atol=1e-10))
        needed[condition] = int(np.argmax(run <= CLOSE * run[0]))
    too_far = distances(10.0, 2.1, 100)
    uphill = distances(10.0, -1.0, 10)
    return Truth(
        "question or trap" if agree and too_far[-1] > too_far[0] and uphill[-1] > uphill[0] else "wrong",
        "The error along an eigenvector of the Hessian H = (2/n) X^T X shrinks by |1 - eta lambda| in each step, so "
        "about kappa ln(1 / accuracy) steps are needed at eta = 1 / the largest eigenvalue, kappa being its ratio to "
        f"the smallest one; runs and eigenvalues agree in all digits. To come {1.0 / CLOSE:.0f} times "
        f"closer than theta = 0, on 200 points with three features: {needed[1.0]} step for kappa = 1, "
        f"{needed[10.0]} for 10, {needed[100.0]} for 100. With eta above twice that it runs away, and so does "
        "gradient ascent, which is for a function that is to be made large.",
        {f"steps, kappa = {condition:g}": count for condition, count in needed.items()},
    )


def draw_iterations(axes: Axes) -> None:
    """Distance from the optimum against steps, runs and eigenvalues."""
    steps = np.arange(0, 301, 10)
    for condition, mark in ((10.0, "o"), (100.0, "s"), (1000.0, "^")):
        line = axes.plot(predicted(condition, 1.0, 300), label=f"kappa = {condition:g}, by eigenvalues")[0]
        run = distances(condition, 1.0, 300)[steps]
        axes.plot(steps, run, mark, color=line.get_color(), markersize=3, label="runs")
    axes.set_yscale("log")
    axes.set_ylim(1e-6, 5.0)
    axes.set_xlabel("steps")
    axes.set_ylabel("distance from the optimum")
    axes.legend()


CONVEXITY: tuple[Statement, ...] = (
    Statement(
        name="two-gradients",
        place="CS 208, notes 002, exercise 3.2",
        says=r"What are the gradients of $\theta^2$ and $\|Y - X\theta\|_2^2$?",
        verdict="question or trap",
        how=("derived", "computed"),
        check=check_gradients,
        quote=r"Exercise 3.2. What is the gradient of the following convex functions? ... "
        r"$L(\theta | X, Y) = \theta^2$ ... $L(\theta | X, Y) = \|Y - X\theta\|_2^2$",
    ),
    Statement(
        name="convex-by-second-derivative",
        place=f"{PLACE}, definition 5.1 and the hint to exercise 5.2",
        says="A function of one dimension with two derivatives is convex just where its second derivative is never "
        "negative.",
        verdict="right",
        how=("computed",),
        check=check_second_derivative,
        quote="In one dimension, a twice-differentiable function is convex if and only if its second derivative is "
        "nonnegative on the entire domain of the function.",
        context=r"$L(t\vec{a} + (1-t)\vec{b}) \leq tL(\vec{a}) + (1-t)L(\vec{b}).$",
    ),
    Statement(
        name="which-are-convex",
        place=f"{PLACE}, exercise 5.2",
        says=r"Which of $x^2$, $x^3$, $\sqrt{x}$ and $\log x$ are convex?",
        verdict="question or trap",
        how=("derived", "computed"),
        check=check_which,
        quote=r"Exercise 5.2. Why of the following functions are convex: $f(x) = x^2$, $f(x) = x^3$, "
        r"$f(x) = \sqrt{n}$, $f(x) = \log n$?",
        reading="'Which' is meant, and the argument n of the last two is x: as constants both would be convex.",
    ),
    Statement(
        name="one-local-minimum",
        place=f"{PLACE}, below definition 5.1",
        says="A convex function has only one local minimum, which equals the global one.",
        verdict="right",
        how=("derived", "computed"),
        check=check_one_minimum,
        quote="For convex functions, there is only one local minimum which is equal to the global minimum.",
        reading="One value, where there is a minimum at all; the kinder reading, for it may be taken at many points.",
    ),
    Statement(
        name="naive-release-of-a-model",
        place="CS 208, notes 002, 'General Machine Learning' and algorithm 1",
        says="Released as it is, a model trained by gradient descent can violate privacy.",
        verdict="right",
        how=("derived", "computed", "audited"),
        check=check_naive_release,
        audits=("Gradient descent without noise",),
        quote="As a result, the naive release of ML models could lead to privacy violations. ... "
        r"$g_t = \frac{1}{n} \sum_i [\nabla l(\hat{\theta}_{t-1} | x_i, y_i)] + \nabla R(\hat{\theta}_{t-1})$",
    ),
    Statement(
        name="steps-of-gradient-descent",
        place=f"{PLACE}, exercise 5.3",
        says="How many steps does vanilla gradient descent on ordinary least squares take to come close?",
        verdict="question or trap",
        how=("derived", "computed"),
        check=check_iterations,
        quote="How many iterations of the gradient descent/ascent does it take to converge to a value that is close "
        "to the optimal?",
        context="Write some python code for vanilla gradient descent on the OLS function.",
        figure=Figure(
            "Vanilla gradient descent on least squares with learning rate 1 / the largest eigenvalue: dots are runs, "
            "lines what the eigenvalues of the Hessian say. kappa is the ratio of its largest and its smallest "
            "eigenvalue.",
            draw_iterations,
        ),
    ),
)
