"""All small alignments of a sparse vector program: those accepted cost at least the truth, and the cheapest is it.

For k bottoms and m tops the loss is at most, and in the limit, min((k + m)/b, 1/a + 2 m/b, 1/a + 2 k/b), where a is
the scale of the threshold's noise and b that of the answers' (the exact values of the family approach it).
"""

from __future__ import annotations

import itertools
from fractions import Fraction

from dpaudit.verify.checker import ProofRejected, check
from dpaudit.verify.proof import Alignment, Case, Kept
from tests.verify.checker.certificates import SPARSE, proof, shift

PATHS = ("loop:TT", "loop:TF", "loop:FF")
CLASSES = {(3, 0): (0, 0, 3), (2, 1): (0, 1, 2), (1, 2): (1, 1, 1), (0, 2): (1, 1, 0)}  # with a cut-off of 2, 3 answers
SHIFTS = tuple(itertools.product((-1, 0, 1), (-1, 0)))


def truth(k: int, m: int, a: Fraction, b: Fraction) -> Fraction:
    return min((k + m) / b, 1 / a + 2 * m / b, 1 / a + 2 * k / b)


def test_no_alignment_is_cheaper_than_the_truth_and_one_is_as_cheap() -> None:
    a, b = Fraction(2), Fraction(4)
    source = SPARSE.replace("2 / eps", f"{a}").replace("4 * N / eps", f"{b}").replace("eps, ", "")
    cheapest: dict[tuple[int, int], Fraction] = {}
    for threshold, top, bottom in itertools.product((-1, 0, 1), SHIFTS, SHIFTS):
        most_top, most_bottom = (max(abs(c + x * d) for d in (-1, 1)) for c, x in (top, bottom))
        costs = {(k, m): abs(threshold) / a + (m * most_top + k * most_bottom) / b for k, m in CLASSES}
        if not any(cost <= truth(*each, a, b) for each, cost in costs.items()):
            continue  # accepted or not, it is neither too cheap nor the cheapest
        shifts = (
            shift("before:", "draw_1", threshold),
            *(shift(path, "draw_2", *(top if path.startswith("loop:T") else bottom)) for path in PATHS),
        )
        alignment = Alignment(shifts=shifts, kept=(Kept("t", Fraction(threshold)),))
        cases = tuple(
            Case(0, str(costs[each]), dict(zip(PATHS, times, strict=True))) for each, times in CLASSES.items()
        )
        stated = proof(
            source,
            alignment,
            fixed={"N": Fraction(2)},
            answers=3,
            claim=None,
            cost=str(max(costs.values())),
            cases=cases,
        )
        try:
            check(stated)
        except ProofRejected:
            continue
        for each, cost in costs.items():
            assert cost >= truth(*each, a, b)
            cheapest[each] = min(cost, cheapest.get(each, cost))
    assert cheapest == {each: truth(*each, a, b) for each in CLASSES}
