"""The variants that Lyu, Su & Li compare: their algorithms 1 and 7 are right, 3 to 6 are wrong (2 is `sparse`).

And Sparse for counts: answers that all rise, or all fall, need half the noise on the answers.
"""

from functools import partial

import numpy as np

from dpaudit.catalogue.entry import Code, Source, Twin, edited
from dpaudit.catalogue.noise import Rng
from dpaudit.catalogue.sparse.runs import BOTTOM, LYU, NEIGHBOURS, TOP, Answers, Rule, Scales, compared_values, in_room
from dpaudit.catalogue.sparse.values import by_rule
from dpaudit.losses.released import one_threshold_values_loss


def _allocated_noises(epsilon: float, c: int, *, per_top: float) -> Scales:
    """Epsilon is divided between the threshold and the tops, as 1 to (2 c)^(2/3)."""
    for_threshold = epsilon / (1.0 + (2.0 * c) ** (2.0 / 3.0))
    return 1.0 / for_threshold, per_top * c / (epsilon - for_threshold)


ONE = Rule(lambda epsilon, c: (2.0 / epsilon, 4.0 * c / epsilon), "once")
THREE = Rule(lambda epsilon, c: (2.0 / epsilon, 2.0 * c / epsilon), "once")
FOUR = Rule(lambda epsilon, c: (4.0 / epsilon, 4.0 / (3.0 * epsilon)), "once")
_NO_HALT = {", count = [], 0": " = []", "count +=": None, "count >=": None, "break": None}


def _lyu_1(data: Answers, rng: Rng, epsilon: float, threshold: float, c: int) -> tuple[int, ...]:
    noisy_threshold = threshold + rng.laplace(scale=2.0 / epsilon)
    output, count = [], 0
    for answer in data:
        if answer + rng.laplace(scale=4.0 * c / epsilon) >= noisy_threshold:
            output.append(TOP)
            count += 1
            if count >= c:
                break
        else:
            output.append(BOTTOM)
    return tuple(output)


def _lyu_3(data: Answers, rng: Rng, epsilon: float, threshold: float, c: int) -> dict[int, float]:
    noisy_threshold = threshold + rng.laplace(scale=2.0 / epsilon)
    output: dict[int, float] = {}
    for place, answer in enumerate(data):
        noisy_answer = answer + rng.laplace(scale=2.0 * c / epsilon)
        if noisy_answer >= noisy_threshold:
            output[place] = noisy_answer
            if len(output) >= c:
                break
    return output


def _lyu_3_loss(first: Answers, second: Answers, epsilon: float, threshold: float, c: int) -> float:
    p, q = np.asarray(first, float), np.asarray(second, float)
    scales = THREE.noises(epsilon, c)
    return max(one_threshold_values_loss(*pair, c, threshold, *scales) for pair in ((p, q), (q, p)))


sparse_lyu_1 = in_room(
    name="sparse_lyu_1",
    title="Sparse with one noisy threshold (algorithm 1 of Lyu, Su & Li)",
    source=Source(None, f"{LYU}, algorithm 1"),
    formula="the threshold gets one draw of Lap(2 / epsilon), each answer Lap(4 c / epsilon); halt at the c-th top",
    code=by_rule(ONE, _lyu_1),
).with_twins(
    """lyu_3: Algorithm 3 (Roth's lecture notes of 2011): the tops give away the noisy answers compared
        a low value betrays a low threshold, and then every bottom before it costs epsilon / (2 c) of its own
        the threshold gets one draw of Lap(2 / epsilon), each answer Lap(2 c / epsilon), given away at a top
    lyu_4: Algorithm 4 (Lee & Clifton 2014): noise that does not grow with c
        each of the c tops costs 3 epsilon / 2 and the threshold epsilon / 4: (1 + 6 c) / 4 times the claim
        the threshold gets one draw of Lap(4 / epsilon), each answer Lap(4 / (3 epsilon)); halt at top c
    lyu_5: Algorithm 5 (Stoddard, Chen & Machanavajjhala 2014): exact answers, no cut-off
        all answers meet one threshold: a larger one cannot be a bottom where a smaller one is a top
        the threshold gets one draw of Lap(2 / epsilon), the answers none; there is no halt
    lyu_6: Algorithm 6 (Chen, Xiao, Zhang & Xu 2015): no cut-off
        every top costs epsilon of its own, and nothing bounds their number: n epsilon / 2 for n answers
        the threshold gets one draw of Lap(2 / epsilon), each answer Lap(2 / epsilon); there is no halt
    query_noise_not_scaled: One noisy threshold, and noise on the answers that forgets c
        each of the c tops costs epsilon / 2 and the threshold as much: (1 + c) / 2 times the claim
        the threshold gets one draw of Lap(2 / epsilon), each answer Lap(4 / epsilon); halt at the c-th top""",
    lyu_3=Twin(
        code=Code(_lyu_3, partial(compared_values, rule=THREE), _lyu_3_loss),
        default_pair=([0] * 7 + [1], [1] * 7 + [0]),
    ),
    lyu_4=Twin(
        code=by_rule(FOUR),
        edit={"2.0 / epsilon": "4.0 / epsilon", "4.0 * c / epsilon": "4.0 / (3.0 * epsilon)"},
        default_pair=([1, 1, -1, -1], [2, 2, -2, -2]),
    ),
    lyu_5=Twin(
        code=by_rule(Rule(lambda epsilon, c: (2.0 / epsilon, 0.0), "once", halts=False)),
        edit={" + rng.laplace(scale=4.0 * c / epsilon)": "", **_NO_HALT},
        default_pair=([0, 1], [1, 0]),
    ),
    lyu_6=Twin(
        code=by_rule(Rule(lambda epsilon, c: (2.0 / epsilon, 2.0 / epsilon), "once", halts=False)),
        edit={"4.0 * c": "2.0", **_NO_HALT},
        default_pair=([1, 1, -1, -1], [2, 2, -2, -2]),
    ),
    query_noise_not_scaled=Twin(
        code=by_rule(Rule(lambda epsilon, c: (2.0 / epsilon, 4.0 / epsilon), "once")), edit={"4.0 * c": "4.0"}
    ),
)


sparse_lyu_7 = in_room(
    name="sparse_lyu_7",
    title="Sparse with epsilon divided for the best accuracy (algorithm 7 of Lyu, Su & Li)",
    source=Source(None, f"{LYU}, algorithm 7, without values, at the ratio 1 : (2 c)^(2/3)"),
    formula=(
        "epsilon_1 : epsilon_2 = 1 : (2 c)^(2/3), together epsilon: the threshold gets one draw of Lap(1 / epsilon_1), "
        "each answer Lap(2 c / epsilon_2); halt at the c-th top"
    ),
    code=by_rule(Rule(partial(_allocated_noises, per_top=2.0), "once")),
).with_twins(
    """top_moves_by_one: Noise for tops that move by 1 against the threshold
        answer and threshold move against each other, by 2: each top costs twice its part of epsilon
        as algorithm 7, but each answer gets Lap(c / epsilon_2)""",
    top_moves_by_one=Twin(code=by_rule(Rule(partial(_allocated_noises, per_top=1.0), "once"))),
)


sparse_monotone = in_room(
    name="sparse_monotone",
    title="Sparse for counts: half the noise on the answers",
    source=Source(None, f"{LYU}, section 4.3 (monotonic queries)"),
    formula="the threshold gets one draw of Lap(2 / epsilon), each answer Lap(2 c / epsilon); halt at the c-th top",
    neighbours="vectors of answers that all rise, or all fall, by at most 1: counts when one person comes or goes",
    adjacency=("up", "down"),
    code=by_rule(
        Rule(lambda epsilon, c: (2.0 / epsilon, 2.0 * c / epsilon), "once"),
        edited(_lyu_1, "_monotone", {"4.0 * c": "2.0 * c"}),
    ),
    default_pair=([1, 1, 1, 1, 1, 1, 0, 0], [2, 2, 2, 2, 2, 2, 0, 0]),
).with_twins(
    """general_queries: The noise for counts, on answers that move both ways
        an answer that falls as the threshold rises moves by 2: each top costs epsilon / c, 3/2 epsilon in all
        as for counts
    halved_again: The noise for counts, halved once more
        each of the c tops costs epsilon / c and the threshold epsilon / 2: 3/2 times the claim
        the threshold gets one draw of Lap(2 / epsilon), each answer Lap(c / epsilon); halt at the c-th top""",
    general_queries=Twin(
        default_pair=([1, 1, 1, 1, 1, 1, -1, -1], [2, 2, 2, 2, 2, 2, -2, -2]),
        neighbours=NEIGHBOURS,
        adjacency=("all-differ",),
    ),
    halved_again=Twin(
        code=by_rule(Rule(lambda epsilon, c: (2.0 / epsilon, c / epsilon), "once")), edit={"2.0 * c": "c"}
    ),
)
