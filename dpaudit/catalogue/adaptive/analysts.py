"""Analysts who choose each query by the answers to the ones before, and never see the data."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter

from dpaudit.catalogue.entry import Entry, Parameter
from dpaudit.catalogue.promises import one_of, pure_if_replaced

in_room = partial(Entry, module="dpaudit.catalogue.adaptive", promise=pure_if_replaced)

Record = Sequence[float]
Records = Sequence[Record]
Query = Callable[[Record], float]  # into [0, 1]
Readings = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Analyst:
    """Chooses the next query: `asks(readings)`, from how each answer so far was read.

    A reading is whether the private data answered (1, a top) or not (0), and the place of the answer among the `cuts`,
    0 below all of them. So there are finitely many transcripts, and the loss of all of them together is exact.
    `queries` says how many are asked, None: as many as a record has numbers. Where only the numbers of answers and of
    tops matter, not their order, `counts` says so: that keeps the exact loss cheap. One that an audit names, one of
    `ANALYSTS` or `module:name`, is the same for both datasets.
    """

    asks: Callable[[Readings], Query]
    queries: int | None = None
    cuts: tuple[float, ...] = ()
    counts: bool = False

    def many(self, data: Records) -> int:
        """How many queries these records are asked."""
        return len(data[0]) if self.queries is None else self.queries

    def read(self, is_top: bool, answer: float) -> tuple[int, int]:
        """How an answer is read."""
        return int(is_top), bisect_left(self.cuts, answer)

    def state(self, readings: Readings) -> Readings:
        """What matters of the readings: their numbers, or all of them."""
        return tuple(sorted(readings)) if self.counts else readings


def _bisects(readings: Readings) -> Query:
    low, high = 0.0, 1.0
    for _, at_least_half in readings:
        middle = (low + high) / 2.0
        low, high = (low, middle) if at_least_half else (middle, high)
    return lambda record: float(record[0] <= (low + high) / 2.0)


def _follows(readings: Readings) -> Query:
    def query(record: Record) -> float:
        agree = [feature == record[-1] for feature in record[:-1]]
        if len(readings) < len(agree):
            return float(agree[len(readings)])
        votes = sum(agrees == bool(chosen) for agrees, (_, chosen) in zip(agree, readings, strict=False))
        return float(2 * votes > len(agree))

    return query


ANALYSTS = {
    "in order": Analyst(
        lambda readings: itemgetter(len(readings)), counts=True
    ),  # query j is the number at place j of a record, whatever the answers
    "repeats": Analyst(
        lambda readings: itemgetter(sum(top for top, _ in readings)), 8, counts=True
    ),  # asks for the first number until it is a top, then for the next one
    "bisects": Analyst(_bisects, 4, (0.5,)),  # looks for the median of the first number, in [0, 1]
    "follows": Analyst(_follows, None, (0.5,)),  # keeps features that agree with the label, then asks for their vote
}


def average(query: Query, data: Records) -> float:
    """E_S[phi], the average of a query over a dataset."""
    return sum(map(query, data)) / len(data)


def named(analyst: object, what: str = "analyst") -> Analyst:
    """The analyst of this name; raises `InvalidSpec`."""
    return one_of(what, ANALYSTS, Analyst, analyst)


ANALYST = Parameter(
    "analyst", "in order", "name", "who chooses the queries", lambda name, value: named(value, name) and value
)
