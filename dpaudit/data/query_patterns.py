"""Stock pairs of query vectors: the answers of several queries on two neighbours, each at most `sensitivity` apart.

Shapes of StatDP (Ding et al. 2018, table 1), at both ends of the vector, and those that mechanisms with a threshold
need. Search looks at both orders of a pair.
"""

from collections.abc import Sequence

from dpaudit.base import validate
from dpaudit.data.pair import AdjacentPair

Number = int | float


def one_differs(
    queries: int, *, sensitivity: Number = 1, base: Number = 0, distance: int = 1
) -> tuple[AdjacentPair, ...]:
    """Vectors of `queries` answers, all `base`; one answer, the first or the last, moves up or down.

    It moves by `distance * sensitivity`, in units of the answers. Raises `InvalidSpec` for values out of range.

    >>> one_differs(3)[0]
    AdjacentPair(first=[0, 0, 0], second=[1, 0, 0], name='one differs: first up', distance=1, sensitivity=1)
    """
    shape = _Shape(queries, sensitivity, distance, base)
    same = shape.same
    places = ((0, "first"), (-1, "last"))[: shape.queries]
    return tuple(
        shape.pair(f"one differs: {word} {way}", same, _changed(same, place, same[place] + step))
        for way, step in (("up", shape.step), ("down", -shape.step))
        for place, word in places
    )


def all_differ(
    queries: int, *, sensitivity: Number = 1, base: Number = 0, distance: int = 1
) -> tuple[AdjacentPair, ...]:
    """Vectors of `queries` answers, all `base`, that all move: together, one against the rest, or exchanging places.

    Each moves by `distance * sensitivity`, in units of the answers. Raises `InvalidSpec` for values out of range.

    >>> [pair.second for pair in all_differ(3)][:3]
    [[1, 1, 1], [-1, -1, -1], [1, -1, -1]]
    """
    shape = _Shape(queries, sensitivity, distance, base)
    same, up, down = shape.same, base + shape.step, base - shape.step
    moved = [("all up", [up] * shape.queries), ("all down", [down] * shape.queries)]
    if shape.queries >= 2:
        moved += [("first up, rest down", _changed([down] * shape.queries, 0, up))]
        moved += [("first down, rest up", _changed([up] * shape.queries, 0, down))]
    if shape.queries >= 3:  # of two answers these are the ones above
        moved += [("last up, rest down", _changed([down] * shape.queries, -1, up))]
        moved += [("last down, rest up", _changed([up] * shape.queries, -1, down))]
    pairs = [shape.pair(f"all differ: {name}", same, second) for name, second in moved]
    if shape.queries >= 2:
        exchanged = _changed(same, -1, up), _changed([up] * shape.queries, -1, base)
        pairs.append(shape.pair("all differ: last and rest exchanged", *exchanged))
    return tuple(pairs)


def half_up_half_down(
    queries: int, *, sensitivity: Number = 1, base: Number = 0, distance: int = 1
) -> tuple[AdjacentPair, ...]:
    """Vectors of at least two answers, all `base`: one half moves up and the other down, or the halves exchange.

    Each answer moves by `distance * sensitivity`. Raises `InvalidSpec` for values out of range.

    >>> [pair.second for pair in half_up_half_down(4)]
    [[1, 1, -1, -1], [-1, -1, 1, 1], [0, 0, 1, 1]]
    """
    shape = _Shape(queries, sensitivity, distance, base, least=2)
    same, up, down = shape.same, base + shape.step, base - shape.step
    half, rest = shape.queries // 2, shape.queries - shape.queries // 2
    return (
        shape.pair("half up, half down: first half up", same, [up] * half + [down] * rest),
        shape.pair("half up, half down: first half down", same, [down] * half + [up] * rest),
        shape.pair("half up, half down: halves exchanged", [up] * half + [base] * rest, [base] * half + [up] * rest),
    )


def far_from_threshold(
    queries: int, *, threshold: Number = 0, far: Number = 10, sensitivity: Number = 1, distance: int = 1
) -> tuple[AdjacentPair, ...]:
    """Vectors for mechanisms that compare answers with a `threshold`: all `far` below it, all above, or one above.

    `far`, above 0, is in units of the answers; choose it well beyond the noise. Each answer moves by
    `distance * sensitivity` or not at all. Raises `InvalidSpec` for values out of range.

    >>> far_from_threshold(3, threshold=5, far=10)[2].first, far_from_threshold(3, threshold=5, far=10)[2].second
    ([-5, -5, 15], [-4, -4, 14])
    """
    shape = _Shape(queries, sensitivity, distance)
    validate.positive("far", far)
    validate.real("threshold", threshold)
    low, high = threshold - far, threshold + far
    below, above = [low] * shape.queries, [high] * shape.queries
    pairs = [
        shape.pair("far from the threshold: all below, all up", below, [low + shape.step] * shape.queries),
        shape.pair("far from the threshold: all above, all down", above, [high - shape.step] * shape.queries),
    ]
    if shape.queries >= 2:
        last = _changed(below, -1, high)
        towards = _changed([low + shape.step] * shape.queries, -1, high - shape.step)
        pairs.append(shape.pair("far from the threshold: last above, all towards it", last, towards))
        pairs.append(
            shape.pair("far from the threshold: last above and down", last, _changed(last, -1, high - shape.step))
        )
    return tuple(pairs)


def statdp_one_differs(queries: int) -> tuple[AdjacentPair, ...]:
    """The inputs of StatDP (Ding et al. 2018, table 1) where one answer differs, as it and DP-Sniper try them.

    All answers are 1, and the first moves down or up. For other numbers and places there is `one_differs`. Raises
    `InvalidSpec` for fewer than one query.

    >>> [pair.second for pair in statdp_one_differs(3)]
    [[0, 1, 1], [2, 1, 1]]
    """
    shape = _Shape(queries, 1, 1, base=1)
    return (
        shape.pair("StatDP: one below", shape.same, _changed(shape.same, 0, 0)),
        shape.pair("StatDP: one above", shape.same, _changed(shape.same, 0, 2)),
    )


def statdp_all_differ(queries: int) -> tuple[AdjacentPair, ...]:
    """The inputs of StatDP (Ding et al. 2018, table 1) where all answers may differ, as it and DP-Sniper try them.

    At least two answers, all 1 but in the last pair: those where one differs; one against the rest; all together;
    half against half, of four answers and more; and two halves that change places. Raises `InvalidSpec` for fewer
    than two queries.

    >>> [pair.second for pair in statdp_all_differ(4)][2:]
    [[2, 0, 0, 0], [0, 2, 2, 2], [2, 2, 2, 2], [0, 0, 0, 0], [2, 2, 0, 0], [0, 0, 1, 1]]
    """
    shape = _Shape(queries, 1, 1, base=1, least=2)
    half, rest = shape.queries // 2, shape.queries - shape.queries // 2
    moved: dict[str, Sequence[Number]] = {
        "StatDP: one above, rest below": _changed([0] * shape.queries, 0, 2),
        "StatDP: one below, rest above": _changed([2] * shape.queries, 0, 0),
        "StatDP: all above": [2] * shape.queries,
        "StatDP: all below": [0] * shape.queries,
    }
    if half >= 2:  # else it is one against the rest
        moved["StatDP: half above, half below"] = [2] * half + [0] * rest
    return (
        *statdp_one_differs(queries),
        *(shape.pair(name, shape.same, second) for name, second in moved.items()),
        shape.pair("StatDP: halves exchanged", [1] * half + [0] * rest, [0] * half + [1] * rest),
    )


class _Shape:
    """The checked parameters that all patterns share, and the pairs made with them."""

    def __init__(self, queries: int, sensitivity: Number, distance: int, base: Number = 0, *, least: int = 1) -> None:
        self.queries = validate.whole("queries", queries, least=least)
        self.distance = validate.whole("distance", distance, least=1)
        validate.positive("sensitivity", sensitivity)
        self.sensitivity = sensitivity
        self.step = self.distance * sensitivity  # of whole numbers, a whole number
        validate.real("base", base)
        self.same = [base] * self.queries  # as it was given: mechanisms may want whole ones

    def pair(self, name: str, first: Sequence[Number], second: Sequence[Number]) -> AdjacentPair:
        return AdjacentPair(list(first), list(second), name, self.distance, self.sensitivity)


def _changed(answers: Sequence[Number], place: int, value: Number) -> list[Number]:
    changed = list(answers)
    changed[place] = value
    return changed
