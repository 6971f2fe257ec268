"""Loops as draws: the exact law of how a loop of plain numbers ends, though it may have no last round.

A *sampler* begins with plain numbers and texts and does nothing but compute and draw, so that how it ends depends on
what it begins with and on its draws alone. Its own code is replayed, one round at a time. Rounds make a chain of
states, the values that are read before they are written again, and how the chain ends is solved for in fractions: a
state that is left with probability p each time it is come to adds a geometric sum, 1 / p. A counter, to which the loop
only adds constants, is no part of the state: where the first state comes back with it larger by c, the loop adds c
times a geometric number, see `tails`. States that are next to never reached are not followed.
"""

from builtins import type  # the real one: while mechanisms run there is another in its place
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from dpaudit.errors import DpAuditError, InvalidSpec, OutOfTime
from dpaudit.verify.replay.canonical import NUMBERS, PLAIN, Raised, canonical
from dpaudit.verify.replay.choices import Choices
from dpaudit.verify.replay.faces import BEHIND, FACE
from dpaudit.verify.replay.source import StandIn, Weights
from dpaudit.verify.replay.tails import FINE, Geometric, Tail, Unbounded, in_whole
from dpaudit.verify.replay.walk import walk_paths

MOST_PATHS = 100_000  # of one round
MOST_STATES = 20_000  # of a loop
WIDE = 32  # states to go on from where no state was reached in two ways: paths are as few
RARE = 2.0**-80  # how likely a state is that is not followed any further
MOST_LOST = Fraction(1, 1 << 60)  # of a law, in states that are not followed
ATOMS = PLAIN | NUMBERS - {Decimal}
RNG = object()  # stands for the generator
AGAIN, EXIT = -1, -2  # how a round ends; else by the return of this number

Parts = tuple[tuple[str, Any], ...]  # values by name: their forms
Ends = tuple[list[tuple[int, Parts]], Weights]  # how a loop ends, and how likely


class RoundEnd(NamedTuple):
    """How a round ends: with which values, and what is added to the counter by then."""

    kind: int
    parts: Parts
    added: int


Row = dict[RoundEnd, Fraction]


@dataclass
class Sampler:
    """A loop: it reads names that are `fixed`, and those of its `state` before it writes them; `kept` are read after.

    To a `counter` it only adds. `code` is one round, as a function of those names that have a value. `unfit` is told
    why it is no sampler.
    """

    place: str
    fixed: set[str]
    state: set[str]
    counter: str
    kept: set[str]
    code: Callable[[tuple[str, ...]], Callable[..., tuple[int, dict[str, Any]]]]
    unfit: dict[str, str]
    laws: dict[Hashable, Ends | str] = field(default_factory=dict)
    values: dict[Hashable, Any] = field(default_factory=lambda: {RNG: RNG})
    idealised: bool = False

    def end(self, given: Mapping[str, Any]) -> tuple[int, dict[str, Any]] | None:
        """How it ends, and the values of names then; None where it is to be run as it stands."""
        begun = {name: given[name] for name in sorted(self.fixed | self.state) if name in given}
        source = next((BEHIND.__get__(each) for each in begun.values() if type(each) is FACE), None)
        try:
            return None if source is None else self._drawn(source, begun)
        except OutOfTime:
            raise
        except DpAuditError as error:
            self.unfit[self.place] = str(error)
            return None

    def _drawn(self, source: StandIn, begun: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        law: Ends | str = ""
        for counter in (self.counter, "") if type(begun.get(self.counter)) in (int, Unbounded) else ("",):
            parts = {name: self._form(value) for name, value in begun.items() if name != counter}
            law = self._law_of((counter, *parts.items(), *np.geterr().values()), parts, counter)
            if not isinstance(law, str):
                ends, weights = law
                source.idealised = source.idealised or self.idealised
                place = source.pick(weights)
                if place == len(ends):
                    raise source.lose()
                kind, end = ends[place]
                found = {name: self._filled(source, part) for name, part in end}
                return kind, found | ({counter: begun[counter] + found[counter]} if counter else {})
        raise InvalidSpec(law)

    def _law_of(self, key: Hashable, begun: dict[str, Any], counter: str) -> Ends | str:
        """The law of how it ends, or why there is none."""
        if key not in self.laws:
            self.laws[key] = "it calls itself"  # while the law is found
            try:
                self.laws[key] = self._law(begun, counter)
            except OutOfTime:
                raise
            except DpAuditError as error:
                self.laws[key] = str(error)
        return self.laws[key]

    def _form(self, value: Any, *, ends: bool = False) -> Hashable:
        """The form of a value; only one that a round `ends` with may have no largest value."""
        if type(value) is tuple:
            return tuple(self._form(each, ends=ends) for each in value)
        if type(value) is Unbounded:
            if not ends:
                raise value.refuse("before a loop")
            value = value.form()
        if type(value) is Tail:
            return value
        if type(value) is FACE and not ends:
            return RNG
        if not is_plain(value):
            raise InvalidSpec(f"it uses a {type(value).__name__}: use whole numbers, floats and texts alone")
        self.values[form := canonical(value)] = value
        return form

    def _filled(self, source: StandIn, part: Any) -> Any:
        """The value of a form; a number without a largest value is drawn anew."""
        if type(part) is Tail:
            return Unbounded(Geometric(source, part.rate), part.start, part.step)
        return tuple(self._filled(source, each) for each in part) if type(part) is tuple else self.values[part]

    def _law(self, begun: dict[str, Any], counter: str) -> Ends:
        """How it ends from a state, with what is added to the counter by then: of its chain of rounds."""
        fixed = {name: part for name, part in begun.items() if name not in self.state}
        first = RoundEnd(AGAIN, tuple((name, part) for name, part in begun.items() if name in self.state), 0)
        likely, waiting, rows = {first: 1.0}, [first], dict[RoundEnd, Row]()
        before, met, cut = defaultdict[RoundEnd, dict[RoundEnd, None]](dict), False, False
        for here in waiting:
            if len(rows) > MOST_STATES or not met and len(waiting) - len(rows) > WIDE:
                raise InvalidSpec(f"its rounds begin in more than {MOST_STATES:,} states, or no two ways meet")
            rows[here] = self._round({**fixed, **dict(here.parts)}, counter) if likely[here] > RARE else {}
            cut = cut or not rows[here]
            for state, p in [(end._replace(added=0), p) for end, p in rows[here].items() if end.kind == AGAIN]:
                met = met or state in likely
                waiting += [] if state in likely else [state]
                likely[state] = max(likely.get(state, 0.0), likely[here] * float(p))
                before[state][here] = None
        for here in reversed(waiting):  # it is left out, but the first: who comes to it goes on as it does
            back, row = _apart(rows.pop(here), here)
            leaves, rate, step = 1 - back.pop(0, Fraction(0)), Fraction(0), 0
            if here is first and len(back) == 1:
                ((step, rate),) = back.items()
            elif back:
                raise InvalidSpec(f"{counter} may grow in more than one way")
            row = {end: p / (leaves - rate) for end, p in row.items() if leaves != rate}
            row = _rounded(row) if cut else row
            for other in [each for each in before[here] if each in rows]:
                moves, rows[other] = _apart(rows[other], here)
                for (added, p), (end, q) in product(moves.items(), row.items()):
                    end = end._replace(added=added + end.added)
                    rows[other][end] = rows[other].get(end, Fraction(0)) + p * q
                    before[end._replace(added=0)][other] = None
        weights = in_whole([*row.values()])
        if not row or weights[-1] > MOST_LOST * sum(weights):
            raise InvalidSpec("it may never end, or has too many likely ways to go on; bound its rounds")
        grown = {end: Tail(end.added, step, rate / leaves) if step else self._form(end.added) for end in row}
        return [(end.kind, (*end.parts, (counter, grown[end])) if counter else end.parts) for end in row], weights

    def _round(self, begun: Mapping[str, Any], counter: str) -> Row:
        """How one round ends from a state."""
        code = self.code((*begun, counter) if counter else (*begun,))
        choices, places = Choices(MOST_PATHS), dict[RoundEnd, int]()

        def once(_: None, rng: Any) -> int:
            given = [self._filled(choices, part) for part in begun.values()]
            kind, found = code(*(rng if each is RNG else each for each in given), *([0] if counter else []))
            names = {*found} & (self.state if kind == AGAIN else self.kept)
            added = found[counter] if counter in names else 0
            parts = tuple((name, self._form(found[name], ends=True)) for name in sorted(names - {counter}))
            return places.setdefault(RoundEnd(kind, parts, added), len(places))

        law = walk_paths(once, None, choices, MOST_PATHS, sure=False).law
        self.idealised = self.idealised or choices.idealised
        failed = next((each for each in law if type(each) is Raised), None)
        if failed is not None:
            raise InvalidSpec(f"it may raise {failed.kind.__name__}: {failed.message}")
        row = {end: law[place] for end, place in places.items() if place in law}
        return row if sum(row.values()) == 1 else _rounded(row)


def _rounded(row: Row) -> Row:
    """Rounded down, as something is missing anyway: long fractions are slow."""
    return {end: Fraction(p.numerator * FINE // p.denominator, FINE) for end, p in row.items()}


def _apart(row: Row, here: RoundEnd) -> tuple[dict[int, Fraction], Row]:
    """The ways back to a state, by what is added on them, and the others."""
    back = {end.added: p for end, p in row.items() if end[:2] == here[:2]}
    return back, {end: p for end, p in row.items() if end[:2] != here[:2]}


def is_plain(value: Any) -> bool:
    """Whether it is a number, a text, or a tuple of such: nothing can be told of it but its value.

    >>> is_plain((1, "a", 0.5)), is_plain([1]), is_plain(float("nan"))
    (True, False, False)
    """
    return type(value) in ATOMS and value == value or type(value) is tuple and all(map(is_plain, value))
