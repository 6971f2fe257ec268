"""Sparse as approximate DP: the same algorithm, with the noise of advanced composition over c epochs."""

import math
from functools import partial
from typing import Any

from dpaudit import validate
from dpaudit.catalogue.entry import Harmless, Parameter, Source, Twin
from dpaudit.catalogue.promises import approximate, at_least_one
from dpaudit.catalogue.sparse.common import BASSI, BOOK, THRESHOLD, in_room
from dpaudit.catalogue.sparse.losses import bits_loss_at, by_rule
from dpaudit.catalogue.sparse.runs import Rule

TOPS = Parameter("c", 3, "answers", "the tops after which a run halts", at_least_one)
DELTA = Parameter("delta", 1e-6, "probability", "the claim", validate.open_probability)


def noise_level(epsilon: float, c: int, delta: float) -> float:
    """The sigma of the notes for delta > 0.

    >>> round(noise_level(1.0, 2, 0.01), 4)
    8.5839
    """
    return 2.0 * math.sqrt(2.0 * c * math.log(1.0 / delta)) / epsilon


def _noises(inverted: bool = False, **given: Any) -> tuple[float, float]:
    sigma = noise_level(**given)
    return (1.0 / sigma, 2.0 / sigma) if inverted else (sigma, 2.0 * sigma)


_by_rule = partial(by_rule, loss=bits_loss_at)

sparse_approximate = in_room(
    name="sparse_approximate",
    title="Sparse with the noise of advanced composition",
    source=Source(
        f"{BASSI}, 'Sparse vector mechanism (cont.)', with delta > 0", f"{BOOK}, algorithm 2, there with more noise"
    ),
    formula=(
        "with sigma = 2 sqrt(2 c ln(1 / delta)) / epsilon: the threshold gets a draw of Lap(sigma), anew after each "
        "top, each answer Lap(2 sigma); halt at the c-th top"
    ),
    code=_by_rule(Rule(_noises)),
    parameters=(Parameter("epsilon", 2.0, "nats", "the claim", validate.positive), THRESHOLD, TOPS, DELTA),
    promise=approximate,
    default_pair=([0, 0, 0, 0, -1] * 3, [1, 1, 1, 1, -2] * 3),
).with_twins(
    noise_inverted=Twin(
        title="Sparse with the noise of advanced composition upside down",
        reason="the fraction is turned over: noise that shrinks as c grows and as epsilon shrinks hides nothing",
        formula="as this Sparse, with sigma = epsilon / (2 sqrt(2 c ln(1 / delta)))",
        code=_by_rule(Rule(partial(_noises, inverted=True))),
    ),
    no_query_noise=Twin(
        title="Sparse with the noise of advanced composition on the threshold alone",
        reason="a larger answer cannot be a bottom where a smaller one is the next top, and that is no rare event",
        formula="the threshold gets a draw of Lap(sigma), anew after each top; the answers none",
        code=_by_rule(Rule(lambda epsilon, c, delta: (noise_level(epsilon, c, delta), 0.0))),
        default_pair=([0, 1, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0]),
    ),
    threshold_kept=Harmless(
        title="Sparse with the noise of advanced composition and one noisy threshold",
        reason="the threshold is paid for once, and each top then costs 1 / sigma instead of 2 / sigma",
        formula="as this Sparse, but the threshold gets one draw of Lap(sigma), kept after each top",
        code=_by_rule(Rule(_noises, "once")),
    ),
)
