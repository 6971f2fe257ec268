"""Learners that see the data through statistical queries alone: any of them can be plugged into a private oracle.

A learner is a generator. It yields a query psi(x, y) with values in [0, 1], is sent an answer within tau of its
expectation, and so on; so each query may depend on the answers before it. At last it returns a hypothesis, a number.
Those here only ask whether an answer is above tau. A point x is a whole number in {0, ..., 2^bits - 1}: a point of the
line, `bits` Booleans, or a point of a grid in the plane. Queries and hypotheses take numbers and arrays alike.

Sources: Kearns 1998, Efficient noise-tolerant learning from statistical queries (conjunctions, and decision lists
after Rivest 1987); the halfspaces are learned as any finite class is, by the error of one hypothesis after the other.
"""

import itertools
import math
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpaudit.catalogue.adaptive.subsets import Analyst, Readings
from dpaudit.catalogue.adaptive.subsets import Query as Asked
from dpaudit.catalogue.entry import Parameter
from dpaudit.catalogue.promises import one_of
from dpaudit.errors import InvalidSpec

Query = Callable[[Any, Any], Any]
Asking = Generator[Query, float, int]


@dataclass(frozen=True, slots=True)
class SQLearner:
    """A class and how it is learned: `start(bits, tau)` asks at most `queries(bits)` queries.

    With answers within tau of the truth, the hypothesis errs on at most `errors(bits)` times tau of the distribution.
    `predict(hypothesis, x, bits)` is its label of x, true or false.
    """

    start: Callable[[int, float], Asking]
    queries: Callable[[int], int]
    errors: Callable[[int], float]
    predict: Callable[[int, Any, int], Any]


def learned(asking: Asking, answer: Callable[[Query], float], most: int) -> tuple[int, tuple[float, ...]]:
    """What a learner returns where `answer` answers it, and the answers that it was given.

    Raises `InvalidSpec` for a query more than `most`, which is not answered.
    """
    answers: list[float] = []
    try:
        query = next(asking)
        while len(answers) < most:
            answers.append(answer(query))
            query = asking.send(answers[-1])
    except StopIteration as end:
        return end.value, tuple(answers)
    raise InvalidSpec(f"the learner asks query {most + 1}; the budget is divided among {most}")


def following(asking: Asking, answers: Iterable[float]) -> Query | int:
    """What a learner asks after these answers, or the hypothesis that it has returned by then."""
    try:
        query = next(asking)
        for answer in answers:
            query = asking.send(answer)
    except StopIteration as end:
        return int(end.value)
    return query


def _one_below(t: int, x: Any, y: Any) -> Any:
    return (y == 1) & (x < t)


def _by_search(bits: int, tau: float) -> Asking:
    low, step = 0, 2 ** (bits - 1)
    while step:
        answer = yield partial(_one_below, low + step)
        low, step = low if answer > tau else low + step, step // 2
    return low


def _by_scan(bits: int, tau: float) -> Asking:
    for t in range(1, 2**bits):
        if (yield partial(_one_below, t)) > tau:
            return t - 1
    return (1 << bits) - 1


def _is_above(threshold: int, x: Any, bits: int) -> Any:
    return x >= threshold


# --- conjunctions of literals: literal 2 i + v says that bit i of x is v ----------------------------------------


def _holds(literal: int, x: Any) -> Any:
    return (x >> literal // 2) & 1 == literal % 2


def _conjunction(bits: int, tau: float) -> Asking:
    """Keeps the literals that are never false where the label is 1; those of the target are among them."""
    true = 0
    for literal in range(2 * bits):
        true += ((yield partial(lambda literal, x, y: (y == 1) & (_holds(literal, x) == 0), literal)) <= tau) << literal
    return true


def _all_hold(literals: int, x: Any, bits: int) -> Any:
    label = x >= 0
    for literal in range(2 * bits):
        if literals >> literal & 1:
            label = label & _holds(literal, x)
    return label


# --- decision lists: rules (test, label), a test is a literal or, the last one, true ----------------------------


def _reached(rules: tuple[int, ...], x: Any, bits: int) -> Any:
    """Whether the last of the rules decides on x: a rule is 2 test + label."""
    reached = x >= 0
    for place, rule in enumerate(rules, start=1):
        test = rule // 2
        holds = _holds(test, x) if test < 2 * bits else x >= 0
        reached = reached & (holds == (place == len(rules)))
    return reached


def _decided_wrongly(rules: tuple[int, ...], bits: int, x: Any, y: Any) -> Any:
    return _reached(rules, x, bits) & (y != rules[-1] % 2)


def _decision_list(bits: int, tau: float) -> Asking:
    """Takes the first rule that is hardly ever wrong on what those before it leave, and goes on without its test."""
    rules: tuple[int, ...] = ()
    while not rules or rules[-1] < 4 * bits:
        used = {rule // 2 for rule in rules}
        for test, label in itertools.product(range(2 * bits + 1), (0, 1)):
            more = (*rules, 2 * test + label)
            if test not in used and (yield partial(_decided_wrongly, more, bits)) <= tau:
                rules = more
                break
        else:
            break  # an answer was off by more than tau
    return sum((rule + 1) * int((4 * bits + 3) ** place) for place, rule in enumerate(rules))


def _digits(code: int, base: int) -> Iterator[int]:
    while code:
        code, digit = divmod(code, base)
        yield digit - 1


def _listed(code: int, x: Any, bits: int) -> Any:
    rules = tuple(_digits(code, 4 * bits + 3))
    ones = x < 0
    for place, rule in enumerate(rules, start=1):
        ones = ones | (_reached(rules[:place], x, bits) & (rule % 2 == 1))
    return ones


# --- halfspaces of the plane through the middle of a grid, in one of a few directions ---------------------------


def _directions(bits: int) -> int:
    return 2 << bits // 2


def _ahead(direction: int, x: Any, bits: int) -> Any:
    """x is u 2^(bits // 2) + v; the directions are turned a little, so that no point lies on a border."""
    half = bits // 2
    angle = 2.0 * math.pi * (direction + 0.25) / _directions(bits)
    u, v = (x >> half) - (2 ** (bits - half) - 1) / 2.0, x % 2**half - (2**half - 1) / 2.0
    return math.cos(angle) * u + math.sin(angle) * v >= 0.0


def _wrong_side(direction: int, bits: int, x: Any, y: Any) -> Any:
    return _ahead(direction, x, bits) != (y == 1)


def _halfspace(bits: int, tau: float) -> Asking:
    """The first direction whose error is hardly above 0; that of the target is."""
    for direction in range(_directions(bits)):
        if (yield partial(_wrong_side, direction, bits)) <= tau:
            return direction
    return _directions(bits)  # all the way round: an answer was off by more than tau


LEARNERS = {
    "threshold": SQLearner(_by_search, lambda bits: bits, lambda bits: 2.0, _is_above),
    "scan": SQLearner(_by_scan, lambda bits: 2**bits - 1, lambda bits: 2.0, _is_above),
    "conjunction": SQLearner(_conjunction, lambda bits: 2 * bits, lambda bits: max(4.0, 2.0 * bits), _all_hold),
    "decision list": SQLearner(
        _decision_list, lambda bits: 2 * bits * (2 * bits + 1) + 2, lambda bits: 4.0 * bits + 2.0, _listed
    ),
    "halfspace": SQLearner(_halfspace, _directions, lambda bits: 2.0, _ahead),
}


def named(learner: object, what: str = "learner") -> SQLearner:
    """The learner of this name, one of `LEARNERS` or `module:name`; raises `InvalidSpec`."""
    return one_of(what, LEARNERS, SQLearner, learner)


LEARNER = Parameter(
    "learner", "threshold", "name", "who asks the queries", lambda name, value: named(value, name) and value
)


def as_analyst(learner: str, bits: int, tau: float) -> Analyst:
    """A learner as an analyst of records (x, y), whose answers can be released and audited as those of any other.

    One that has its hypothesis before all K queries are asked goes on with a query that is 0 everywhere.
    """

    def asks(readings: Readings) -> Asked:
        step = following(named(learner).start(bits, tau), [math.inf if above else -math.inf for _, above in readings])
        return (lambda record: 0.0) if isinstance(step, int) else lambda record: float(step(*record))

    return Analyst(asks, named(learner).queries(bits), (tau,))


THRESHOLD, CONJUNCTION = as_analyst("threshold", 3, 0.15), as_analyst("conjunction", 2, 0.3)
DECISION_LIST, HALFSPACE = as_analyst("decision list", 1, 0.15), as_analyst("halfspace", 2, 0.4)
