"""Sparse for counts: answers that all rise, or all fall, need half the noise on the answers."""

from __future__ import annotations

from dpaudit.catalogue.entry import Source, Twin
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.sparse.common import BOTTOM, LYU, NEIGHBOURS, TOP, in_room
from dpaudit.catalogue.sparse.losses import by_rule
from dpaudit.catalogue.sparse.runs import Answers, Rule

RIGHT = Rule(lambda epsilon, c: (2.0 / epsilon, 2.0 * c / epsilon), "once")
HALVED_AGAIN = Rule(lambda epsilon, c: (2.0 / epsilon, c / epsilon), "once")


def _monotone(data: Answers, rng: Rng, epsilon: float, threshold: float, c: int) -> tuple[int, ...]:
    noisy_threshold = threshold + rng.laplace(scale=2.0 / epsilon)
    output, count = [], 0
    for answer in data:
        if answer + rng.laplace(scale=2.0 * c / epsilon) >= noisy_threshold:
            output.append(TOP)
            count += 1
            if count >= c:
                break
        else:
            output.append(BOTTOM)
    return tuple(output)


def _halved_again(data: Answers, rng: Rng, epsilon: float, threshold: float, c: int) -> tuple[int, ...]:
    noisy_threshold = threshold + rng.laplace(scale=2.0 / epsilon)
    output, count = [], 0
    for answer in data:
        if answer + rng.laplace(scale=c / epsilon) >= noisy_threshold:
            output.append(TOP)
            count += 1
            if count >= c:
                break
        else:
            output.append(BOTTOM)
    return tuple(output)


sparse_monotone = in_room(
    name="sparse_monotone",
    title="Sparse for counts: half the noise on the answers",
    source=Source(None, f"{LYU}, section 4.3 (monotonic queries)"),
    formula="the threshold gets one draw of Lap(2 / epsilon), each answer Lap(2 c / epsilon); halt at the c-th top",
    neighbours="vectors of answers that all rise, or all fall, by at most 1: counts when one person comes or goes",
    adjacency=("up", "down"),
    code=by_rule(RIGHT, _monotone),
    default_pair=([1, 1, 1, 1, 1, 1, 0, 0], [2, 2, 2, 2, 2, 2, 0, 0]),
).with_twins(
    general_queries=Twin(
        title="The noise for counts, on answers that move both ways",
        reason="an answer that falls as the threshold rises moves by 2: each top costs epsilon / c, 3/2 epsilon in all",
        formula="as for counts",
        default_pair=([1, 1, 1, 1, 1, 1, -1, -1], [2, 2, 2, 2, 2, 2, -2, -2]),
        neighbours=NEIGHBOURS,
        adjacency=("all-differ",),
    ),
    halved_again=Twin(
        title="The noise for counts, halved once more",
        reason="each of the c tops costs epsilon / c and the threshold epsilon / 2: 3/2 times the claim",
        formula="the threshold gets one draw of Lap(2 / epsilon), each answer Lap(c / epsilon); halt at the c-th top",
        code=by_rule(HALVED_AGAIN, _halved_again),
    ),
)
