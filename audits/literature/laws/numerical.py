"""NumericalSVT: which answers are tops, and a value with fresh noise for each of them.

Which answers are tops is a discrete output: one integral over the noise of the threshold for each of its classes.
Given them the values are Laplace noise of their own, whose log ratios are a sum of clipped terms in closed form. So
P(L >= t) is a finite sum over the classes, without any grid in the values.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from audits.literature.laws.curve import Curve, Floats
from audits.literature.laws.sums import tails
from dpaudit import AdjacentPair
from dpaudit.catalogue import Entry
from dpaudit.catalogue.sparse.values import NUMERIC
from dpaudit.losses.comparisons import one_threshold_laws
from dpaudit.losses.distribution import log_ratios

LEVELS = 2000  # nested sets, beside those that end at an atom
SAME = 1e-12  # log ratios closer than that are the same
QUADRATURE = 1e-9  # relative, of the probability of a class
METHOD = "closed form of the values, summed over all outputs of tops and bottoms, each by quadrature to 1e-9"


def curves(entry: Entry, pair: AdjacentPair) -> tuple[Curve, Curve]:
    """Both directions. Raises ValueError where the answers that move do so by different steps."""
    values = entry.values()
    first, second = np.asarray(pair.first, float), np.asarray(pair.second, float)
    costs = np.abs(first - second) * values["epsilon"] / (3.0 * values["c"])
    scales = NUMERIC.noises(values["epsilon"], values["c"])
    found, p, q, by_kind = one_threshold_laws(first, second, values["c"], values["threshold"], *scales, costs)
    steps = set(by_kind[by_kind > 0.0].tolist())
    if len(steps) != 1:
        raise ValueError(f"the answers that move must move by the same, got costs {sorted(steps)}")
    moved = (found.tops @ (by_kind > 0.0)).astype(np.int64)
    laws = (p * found.size, q * found.size)
    step = steps.pop()
    return one_way(*laws, moved, step), one_way(*laws[::-1], moved, step)


def one_way(p: Floats, q: Floats, moved: npt.NDArray[np.int64], step: float) -> Curve:
    """The curve of classes of outputs with these probabilities, each with so many values that move by `step` scales."""
    ratios = log_ratios(p, q)
    ends = [ratio + step * np.arange(-n, n + 1, 2) for ratio, n in zip(ratios, moved, strict=True)]
    loss = float(np.max(ratios + moved * step))
    levels = np.unique(np.concatenate([*ends, np.linspace(loss, float(np.min(ratios - moved * step)), LEVELS)]))[::-1]
    likelier, other = np.zeros(len(levels)), np.zeros(len(levels))
    for n in np.unique(moved):
        of = moved == n
        rest = levels[:, None] - ratios[of]
        if n:
            atoms = step * np.arange(-n, n + 1, 2)
            nearest = atoms[np.argmin(np.abs(rest[..., None] - atoms), axis=-1)]
            rest = np.where(np.abs(rest - nearest) < SAME, nearest, rest)
            above, also = (tail.reshape(rest.shape) for tail in tails(int(n), step, rest.ravel()))
        else:
            above = also = (rest < SAME).astype(float)
        # a class's law of the values is that of the direction: given the class, ratios of values alone
        likelier += above @ p[of]
        other += also @ q[of]
    return Curve(likelier, other, loss, QUADRATURE, METHOD)
