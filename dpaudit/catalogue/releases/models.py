"""A model as a release: the slope of a regression line, one number computed from all records."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit import validate
from dpaudit.catalogue.entry import Entry, Parameter, Source, Twin
from dpaudit.catalogue.noise import centred
from dpaudit.catalogue.promises import EPSILON, also, pure_if_replaced
from dpaudit.catalogue.releases.fixed import exact

Points = Sequence[Sequence[float]]  # (x, y), both cut to [-1, 1]


_ENOUGH = also(validate.positive, lambda x: x >= 1.0, "be at least 1 for the sensitivity to hold")
PENALTY = Parameter("penalty", 1.0, "units of x^2", "the weight of w^2 against the squared errors", _ENOUGH)


def slope(data: Points, penalty: float) -> float:
    """The w that makes the average of (y - w x)^2, plus penalty * w^2, smallest.

    >>> slope([(1.0, 1.0), (-1.0, -1.0)], penalty=1.0)
    0.5
    """
    points = [(min(max(x, -1.0), 1.0), min(max(y, -1.0), 1.0)) for x, y in data]
    return sum(x * y for x, y in points) / (len(data) * penalty + sum(x * x for x, _ in points))


def sensitivity(people: int, penalty: float) -> float:
    """How far one record moves the slope, for a penalty of at least 1.

    Without it the slope is w0, at most 1/2 as t / (1 + t^2) is. The record moves it by x (y - x w0) over at least
    n * penalty, and x (y - x w0) lies between -1 - w0 and 1 - w0, which are 2 apart.

    >>> sensitivity(20, 1.0)
    0.1
    """
    return 2.0 / (people * penalty)


def _slope(data: Points, epsilon: float, penalty: float) -> float:
    return slope(data, penalty)


def _scale(data: Points, epsilon: float, penalty: float) -> float:
    return sensitivity(len(data), penalty) / epsilon


def _noisy_loss(first: Points, second: Points, epsilon: float, penalty: float) -> float:
    moved = abs(slope(first, penalty) - slope(second, penalty))
    return epsilon * moved / sensitivity(len(first), penalty)


_QUESTIONS = tuple((1.0, step / 20.0) for step in range(-10, 11))  # is the line above this point?
_OTHERS = [(0.2, 0.1), (-0.4, -0.3), (0.6, 0.2), (-0.1, 0.3), (0.5, 0.6), (-0.7, -0.2), (0.3, 0.4)]

noisy_slope = Entry(
    module="dpaudit.catalogue.releases",
    name="noisy_slope",
    title="A regression line through the origin, its slope with noise",
    source=Source(
        "Sarkar, notes 003, 'What about machine learning models?'",
        "Dwork, McSherry, Nissim & Smith 2006, Calibrating noise to sensitivity in private data analysis",
    ),
    formula=(
        "w = argmin of the average of (y - w x)^2 plus penalty * w^2, all x and y cut to [-1, 1], "
        "plus a draw of Lap(2 / (n penalty epsilon))"
    ),
    neighbours="lists of n points (x, y) with one of them replaced",
    code=centred(_slope, _scale, loss=_noisy_loss),
    parameters=(EPSILON, PENALTY),
    promise=pure_if_replaced,
    default_pair=([(1.0, 1.0), *_OTHERS], [(1.0, -1.0), *_OTHERS]),
).with_twins(
    Twin(
        name="exact",
        title="The exact slope of a regression line",
        reason="the slope is a function of the data, and every record off the line moves it",
        formula="w = argmin of the average of (y - w x)^2 plus penalty * w^2",
        code=exact(_slope),
    ),
    Twin(
        name="two_digits",
        title="The slope, printed with two digits after the point",
        reason="one of n records moves the slope by about 1 / n, which two digits show for any n below a hundred",
        formula="the exact slope, rounded to a hundredth",
        code=exact(lambda data, **given: round(_slope(data, **given), 2)),
    ),
    Twin(
        name="labels_only",
        title="A model that answers only yes or no, to 21 questions",
        reason="the answers bracket the slope, so a record that moves it across a bracket is seen",
        formula="for y from -1/2 to 1/2 in steps of 1/20: whether w * 1 > y, with the exact slope w",
        code=exact(lambda data, **given: tuple(_slope(data, **given) * x > y for x, y in _QUESTIONS)),
    ),
)
