"""Loops as draws: the exact law of how a loop of plain numbers ends, though it may have no last round.

A *sampler* begins with plain numbers and texts and does nothing but compute and draw, so that how it ends depends on
what it begins with and on its draws alone. Its own code is replayed, one round at a time. Rounds make a chain of
states, the values that a round reads before it writes them, and how the chain ends is solved for in fractions. A
counter, to which the loop only adds constants, is no part of the state: where a state comes back with it larger by c,
the loop adds c times a geometric number, see `tails`. States that are next to never reached are not followed.
"""

import operator
import re
import types
from builtins import type  # the real one: while mechanisms run there is another in its place
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from dpaudit.errors import DpAuditError, OutOfTime
from dpaudit.verify.replay.canonical import NUMBERS, PLAIN, Raised, canonical
from dpaudit.verify.replay.choices import Choices
from dpaudit.verify.replay.faces import BEHIND, FACE
from dpaudit.verify.replay.source import StandIn, Weights
from dpaudit.verify.replay.tails import FINE, RARE, Geometric, Unbounded, in_whole
from dpaudit.verify.replay.walk import walk_paths

MOST_PATHS = 100_000  # of one round
MOST_STATES = 20_000  # of a loop
WIDE = 32  # states to go on from where no state was reached in two ways: paths are as few
MOST_LOST = Fraction(1, 1 << 60)  # of a law, in states that are not followed
ATOMS = PLAIN | NUMBERS - {Decimal}
AGAIN, EXIT = -1, -2  # how a round ends; else by the return of this number

Place = tuple[types.CodeType, int]  # a loop: whose code, and the line in it


class Unfit(DpAuditError):
    """A loop is no sampler after all: it is run as it stands."""

    def __init__(self, place: Place, why: str) -> None:
        super().__init__(f"the loop in line {place[1]} of {place[0].co_name} cannot be summed up: {why}")
        self.place = place


class Missing(Unfit):
    """A name is part of the state: a round reads it before it writes it, or it grows in more than one way."""

    def __init__(self, place: Place, name: str) -> None:
        super().__init__(place, f"{name} may be read before it has a value")
        self.name = name


class Relearned(DpAuditError):
    """A draw has other weights than in the runs before: these are to be made anew."""


class Pending(NamedTuple):
    """An `Unbounded` of how a round ends; those of one law depend on one draw."""

    law: int
    start: int
    step: int
    rate: Fraction


class RoundEnd(NamedTuple):
    """How a round ends: with which values, by their forms, and what is added to each counter by then."""

    kind: int
    parts: tuple[tuple[str, Any], ...]
    added: tuple[int, ...]


Row = dict[RoundEnd, Fraction]


@dataclass
class Sampler:
    """A loop: `names` stand in it, of which it writes `stored`, and only adds to `counters`; `kept` may be read after.

    `code` is one round, as a function of those names that have a value; `others` are the names that are not its
    function's, each with what it means now, by a function, and what it meant. What ends a replay goes to `failed` too.
    """

    place: Place
    names: set[str]
    stored: set[str]
    counters: set[str]
    kept: set[str]
    code: Callable[[tuple[str, ...]], Callable[..., tuple[int, dict[str, Any]]]]
    others: Sequence[tuple[Callable[[], Any], Any]]
    failed: list[Unfit]
    tracked: set[str] = field(default_factory=set)
    laws: dict[Hashable, tuple[list[tuple[RoundEnd, tuple[int, ...], Fraction]], Weights]] = field(default_factory=dict)
    values: dict[Hashable, Any] = field(default_factory=lambda: {FACE: FACE})
    idealised: bool = False

    def end(self, given: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """How it ends, and the values of names then."""
        source = next((BEHIND.__get__(given[name]) for name in self.names if type(given.get(name)) is FACE), None)
        if source is None:
            self.failed.append(Unfit(self.place, "it draws from no generator that it is given"))
            raise self.failed[-1]
        while True:
            try:
                return self._end(source, given)
            except Missing as missing:
                if missing.name in self.tracked or missing.name not in self.stored:
                    raise source.remembered(missing) from None  # it may be of a loop around this one
                self.tracked.add(missing.name)
                if self.laws:
                    raise source.remembered(Relearned()) from None
            except (OutOfTime, Unfit) as error:
                raise source.remembered(error) from None
            except DpAuditError as error:
                raise source.remembered(Unfit(self.place, str(error))) from None

    def _end(self, source: StandIn, given: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        begun = {name: given[name] for name in sorted(self.names) if name in given}
        counted = [n for n in begun if n in self.counters - self.tracked and type(begun[n]) in (int, Unbounded)]
        state = [name for name in begun if name not in counted and name not in self.stored - self.tracked]
        parts = tuple((name, self._part(begun[name])) for name in state)
        key = tuple(counted), parts, *np.geterr().values(), *(self._same(now(), then) for now, then in self.others)
        if key not in self.laws:
            self.laws[key] = self._law(dict(parts), counted)
        ends, weights = self.laws[key]
        source.idealised = source.idealised or self.idealised
        place = source.pick(weights)
        if place == len(ends):
            raise source.lose()
        end, grows, rate = ends[place]
        found, law = self._filled(source, end.parts), Geometric(source, rate)
        for name, added, growing in zip(counted, end.added, grows, strict=True):
            found[name] = begun[name] + (Unbounded(law, added, growing) if growing else added)
        return end.kind, found

    def _same(self, now: Any, then: Any) -> Hashable:
        """What a name means, which may be another number than before, and otherwise nothing else."""
        if now is not then and not is_plain(now):
            raise Unfit(self.place, "a name of its module means something else now")
        return canonical(now) if is_plain(now) else None

    def _filled(self, source: StandIn, parts: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        """Values by name; numbers without a largest value are drawn anew."""
        laws: dict[int, Geometric] = {}

        def filled(part: Any) -> Any:
            if type(part) is Pending:
                return Unbounded(laws.setdefault(part.law, Geometric(source, part.rate)), part.start, part.step)
            return tuple(map(filled, part)) if type(part) is tuple else self.values[part]

        return {name: filled(part) for name, part in parts}

    def _part(self, value: Any, laws: list[Geometric] | None = None) -> Any:
        """The form of a value; `laws` are those of the numbers of an end, None where there may be none."""
        if type(value) is tuple:
            return tuple(self._part(each, laws) for each in value)
        if type(value) is Unbounded and value.law.value is None and laws is not None:
            value.law.once()
            laws.extend([value.law] if value.law not in laws else [])
            return Pending(laws.index(value.law), value.offset + value.step * value.law.low, value.step, value.law.rate)
        value = _known(value)
        if type(value) is FACE and laws is None:
            return FACE
        if not is_plain(value):
            raise Unfit(self.place, f"it uses a {type(value).__name__}: use whole numbers, floats and texts alone")
        self.values[form := canonical(value)] = value
        return form

    def _law(self, begun: Mapping[str, Any], counted: list[str]) -> Any:
        """The ways it ends from a state, what counters grow by again and again, at which rate; and their weights."""
        fixed = {name: part for name, part in begun.items() if name not in self.stored}
        still = (0,) * len(counted)
        first = RoundEnd(AGAIN, tuple((name, part) for name, part in begun.items() if name in self.stored), still)
        likely, waiting, rows = {first: 1.0}, [first], dict[RoundEnd, Row]()
        before, met = defaultdict[RoundEnd, dict[RoundEnd, None]](dict), False
        for here in waiting:
            if len(rows) > MOST_STATES or not met and len(waiting) - len(rows) > WIDE:
                raise Unfit(self.place, f"its rounds begin in more than {MOST_STATES:,} states, or no two ways meet")
            rows[here] = self._round({**fixed, **dict(here.parts)}, counted) if likely[here] > RARE else {}
            for state, p in [(end._replace(added=still), p) for end, p in rows[here].items() if end.kind == AGAIN]:
                met = met or state in likely
                waiting += [] if state in likely else [state]
                likely[state] = max(likely.get(state, 0.0), likely[here] * float(p))
                before[state][here] = None
        for here in waiting[1:]:
            back, row = _apart(rows.pop(here), here)
            if back.keys() - {still}:
                raise Missing(self.place, counted[0])
            for other in [each for each in before[here] if each in rows]:
                moves, rest = _apart(rows[other], here)
                for (added, p), (end, q) in product(moves.items(), row.items() if back.get(still) != 1 else ()):
                    end = end._replace(added=tuple(map(operator.add, added, end.added)))
                    rest[end] = rest.get(end, Fraction(0)) + p * q / (1 - back.get(still, 0))
                    before[end._replace(added=still)][other] = None
                rows[other] = rest
        back, row = _apart(rows[first], first)
        wait = 1 - back.pop(still, Fraction(0))
        grows, again = next(iter(back.items()), (still, Fraction(0)))
        if len(back) > 1:
            raise Missing(self.place, counted[0])
        weights = in_whole([p / (wait - again) for p in row.values() if wait != again])
        if wait == again or weights[-1] > MOST_LOST * sum(weights):
            raise Unfit(self.place, "it may never end, or has too many likely ways to go on; bound its rounds")
        return [(end, grows, again / wait) for end in row], weights

    def _round(self, begun: Mapping[str, Any], counted: list[str]) -> Row:
        """How one round ends from a state."""
        code, choices, places = self.code((*begun, *counted)), Choices(MOST_PATHS), dict[RoundEnd, int]()

        def once(_: None, rng: Any) -> int:
            given = [rng if value is FACE else value for value in self._filled(choices, begun.items()).values()]
            kind, found = code(*given, *(0 for _ in counted))
            names, laws = self.tracked if kind == AGAIN else self.kept, list[Geometric]()
            for name in sorted(names - found.keys() - self.tracked):
                raise Missing(self.place, name)
            parts = tuple((n, self._part(found[n], laws)) for n in sorted(names & found.keys() - set(counted)))
            added = tuple(_known(found[name]) if name in names or kind == AGAIN else 0 for name in counted)
            return places.setdefault(RoundEnd(kind, parts, added), len(places))

        try:
            law = walk_paths(once, None, choices, MOST_PATHS).law
        except Relearned:
            return self._round(begun, counted)
        self.idealised = self.idealised or choices.idealised
        for output in law:
            if type(output) is Raised:
                named = re.search(r"variable '(\w+)'", output.message)
                if issubclass(output.kind, NameError) and named and named[1] in self.stored:
                    raise Missing(self.place, named[1])
                raise Unfit(self.place, f"it may raise {output.kind.__name__}")
        row = {end: law[place] for end, place in places.items() if place in law}
        return row if sum(row.values()) == 1 else {end: Fraction(int(p * FINE), FINE) for end, p in row.items()}


def _apart(row: Row, here: RoundEnd) -> tuple[dict[tuple[int, ...], Fraction], Row]:
    """The ways back to a state, by what is added on them, and the others."""
    back = {end.added: p for end, p in row.items() if end[:2] == here[:2]}
    return back, {end: p for end, p in row.items() if end[:2] != here[:2]}


def _known(value: Any) -> Any:
    return value.known() if type(value) is Unbounded else value


def is_plain(value: Any) -> bool:
    """Whether it is a number, a text, or a tuple of such: nothing can be told of it but its value.

    >>> is_plain((1, "a", 0.5)), is_plain([1]), is_plain(float("nan"))
    (True, False, False)
    """
    return type(value) in ATOMS and value == value or type(value) is tuple and all(map(is_plain, value))
