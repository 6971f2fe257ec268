"""Which datasets are neighbours: what the one entry is in which they differ, and loops over their entries.

Each case is followed by itself: which way the entry moves, in which run the record is, in which region of all records
it lies. Regions are told apart by what the program compares records with, as it comes up (`Split`). A loop over the
entries is: any number of usual turns, the turn of the changed entry, any number of usual turns. Of a record that one
run alone has, that turn is made in it alone: what a variable is after it, less what it was before, is how far the runs
are apart since.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from dpaudit.verify.coupled.executor import TreeExecutor
from dpaudit.verify.coupled.expressions import MISSING
from dpaudit.verify.coupled.functions import CallRules
from dpaudit.verify.coupled.rules import ANY
from dpaudit.verify.coupled.templates import names_in, seen_in
from dpaudit.verify.coupled.values import (
    ALL,
    ME,
    STILL,
    USER,
    AnyRow,
    Bound,
    EntryAxis,
    Function,
    Keyed,
    KnownArray,
    NormedVector,
    Only,
    Own,
    PairedNumber,
    PairedTruth,
    Place,
    Record,
    Replaced,
    Span,
    UnknownValue,
    UserRows,
    Vector,
    copied,
    fraction_of,
    is_number,
    is_same,
    number_of,
    parts,
)
from dpaudit.verify.coupled.ways import Contents, NotShown, RaisedAlike

UP, DOWN = Span(Fraction(0), Fraction(1)), Span(Fraction(-1), Fraction(0))
MOVES = {"all-differ": (UP | DOWN,), "one-differs": (UP, DOWN), "up": (UP,), "down": (DOWN,)}
RECORDS = ("add_or_remove_one", "replace_one", "add_or_remove_user")
MOST_CASES = 5_000
Region = Mapping[tuple[Any, ...], Place]
APPENDED = "for T in OVER:\n    v_.append(MADE)"
RACES = {  # the last lines of a turn that keeps the place of the largest, or the smallest
    pick: [
        f"if {first}{test}:\n    {kept}"
        for first in ("", "FIRST or ")
        for test in (f"y_ {sign} b_", f"y_ {sign}= b_", f"b_ {turned} y_", f"b_ {turned}= y_")
        for kept in ("b_ = y_; w_ = i_", "w_ = i_; b_ = y_", "b_, w_ = y_, i_", "w_, b_ = i_, y_")
    ]
    for pick, sign, turned in ((max, ">", "<"), (min, "<", ">"))
}
MOST_ROWS = 16  # of a user, where the code bounds their number


class LoopRules(CallRules):
    """Loops and comprehensions over as many entries as a dataset has."""

    def __init__(self, run: TreeExecutor) -> None:
        super().__init__(run)
        self.rows, self.standing = EntryAxis(), {}
        self.ones: dict[int, Any] = {}  # containers that one run alone has made
        self.marks: dict[Any, PairedNumber] = {}  # of each variable: what it is at the start of a turn of one run alone
        self.habits = {}
        self.facts: dict[Any, Any] = {}  # what was found out of the case on the way, undone with all else
        self.numbers = set[tuple[Any, ...]]()

    # --- comprehensions -------------------------------------------------------------------------------------------

    def comprehension(self, generator: ast.comprehension, items: Vector, element: Any) -> Any:
        """The list of what is made of each entry."""
        run = self.run

        perhaps = False

        inside = self.single is not None  # of what one run alone has, of which there may be many

        def made(entry: Any) -> Any:
            nonlocal perhaps
            run.assign(generator.target, copied(entry))
            for test in generator.ifs:
                condition = run.truth(run.value(test))
                if isinstance(condition, PairedTruth):
                    if self.single is None or inside:
                        perhaps |= entry is not items.usual
                        continue  # both runs have the entry, or neither
                    condition = self.taken(condition)
                if not condition:
                    return MISSING
            return element()

        before, clock = run.contents(), self.clock
        found = self.each(items, lambda entry: self.check_own(made(entry), clock))
        before.pop(id(self.facts))
        if not self.untouched_contents(before, run.contents()):
            raise run.refusal("a comprehension that changes something", "write it as a loop")
        extras = [one for one in zip(items.axis.extras, found.extras, strict=True) if one[1] is not MISSING]
        changed = []
        for each in found.changed:
            first, second = (each.first, each.second) if isinstance(each, Replaced) else (each, each)
            if first is not MISSING and second is not MISSING:
                changed.append(self.perhaps(each) if perhaps else each)
            elif first is not second:
                extras.append((first is MISSING, second if first is MISSING else first))
        none = found.usual is MISSING
        if none and (changed or extras):
            raise run.refusal("such a selection", "select in one place")
        usual = PairedNumber(True, STILL, STILL, True) if none else found.usual
        axis = EntryAxis(len(changed), tuple(second for second, _ in extras)) if generator.ifs else items.axis
        result = Vector(usual=usual, changed=tuple(changed), extras=tuple(each for _, each in extras), axis=axis)
        self.stand(parts(result))
        return result

    def perhaps(self, value: Any) -> Any:
        """An entry that changes, where it is not known whether it is there."""
        if isinstance(value, PairedNumber):
            return replace(value, moved=value.moved | STILL, less=None)
        if not is_same(value):
            raise self.run.refusal("a record that is selected by its place", "select what is made of the records")
        return value

    def stand(self, value: Any) -> None:
        """Notes the containers in the entries of a vector."""
        for each in parts(value):
            if isinstance(each, list | dict | KnownArray):
                self.standing[id(each)] = each
            self.stand(each)

    def of_any(self, generator: ast.comprehension, items: UnknownValue, element: Callable[[], Any]) -> Any:
        """A comprehension over entries of which nothing is known."""
        run, before = self.run, self.run.contents()

        def made() -> Any:
            run.assign(generator.target, UnknownValue(items.same))
            for test in generator.ifs:
                run.truth(run.value(test))
            return self.look(element())

        found = self.many(made)
        if not self.untouched_contents(before, run.contents()) or not is_same(found) or not items.same:
            raise run.refusal("a comprehension over what is not known", "write it over public or noisy values")
        return UnknownValue()

    def appended(self, node: ast.For, items: Vector) -> bool:
        """Whether a loop only appends one value a turn to a new list: that is a comprehension."""
        seen, run = seen_in(node, APPENDED), self.run
        if seen is None or seen["v_"] in names_in(seen["MADE"], node.target) or run.frame.get(seen["v_"]) != []:
            return False
        if run.names_of(run.frame[seen["v_"]]) != 1:
            return False
        run.frame[seen["v_"]] = self.made_of_each(node, seen["MADE"], items, seen["v_"])
        return True

    def made_of_each(self, node: ast.For, made: ast.expr, items: Vector, *changing: str) -> Any:
        """What an expression is for each entry that a loop goes over; what the names of the entry are then is left.

        `changing`: names that nothing may read on the way.
        """
        self.run.frame.update(dict.fromkeys({*changing, *names_in(node.target)}, MISSING))
        generator = ast.comprehension(target=node.target, iter=node.iter, ifs=[], is_async=0)
        found = self.run.comprehension(ast.ListComp(made, [generator]), items)
        self.run.frame.update(dict.fromkeys(names_in(node.target), UnknownValue(False)))
        return found

    # --- loops ----------------------------------------------------------------------------------------------------

    def loop(self, node: ast.For, items: Vector) -> None:
        """A loop over the entries of a dataset."""
        run = self.run

        def usual() -> None:
            entry = items.usual
            run.turn(
                node, copied(entry.records[run.choose(len(entry.records))] if isinstance(entry, AnyRow) else entry)
            )

        run.endless(usual)
        for each in items.changed:
            if isinstance(each, Replaced):
                self.apart(node, each.first, each.second)
            elif run.broken(functools.partial(run.turn, node, each)):
                return
        if items.changed:
            run.endless(usual)
        for second, entry in zip(items.axis.extras, items.extras, strict=True):
            self.apart(node, MISSING if second else entry, entry if second else MISSING)
            run.endless(usual)

    def winner_loop(self, node: ast.For) -> bool:
        """Whether a loop only keeps the place of the largest noisy value: it is that in a list of these values then.

        Its turns end with one `if i == 0 or y > best: best, winner = y, i`, and read neither name elsewhere.
        """
        match node.iter, node.target:
            case ast.Call(ast.Name("enumerate" as over), [_], []), ast.Tuple([ast.Name(index), _]):
                pass
            case ast.Call(ast.Name("range" as over), [ast.Call(ast.Name("len"), [_], [])], []), ast.Name(index):
                pass
            case _:
                return False
        run, (*before, last) = self.run, node.body
        race = next(((pick, seen) for pick in RACES if (seen := seen_in(last, *RACES[pick]))), None)
        other = ast.Break | ast.Continue | ast.Return | ast.FunctionDef
        if race is None or node.orelse or any(isinstance(each, other) for each in ast.walk(node)):
            return False
        pick, seen = race
        noisy, best, winner = names = [seen[name] for name in ("y_", "b_", "w_")]
        begun = ast.unparse(seen["FIRST"]) if "FIRST" in seen else ""
        none = {f"{each} is None" for each in (best, winner) if run.frame.get(each, 0) is None}
        start, least = run.frame.get(best), -math.inf if pick is max else math.inf
        if begun not in {f"{index} == 0", *none} and (begun or not isinstance(start, float) or start != least):
            return False
        functions = (run.source.definition, *run.source.functions.values())
        others = {each for part in functions for each in ast.walk(part)} - {*ast.walk(node)}
        read = {each.id for each in others if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
        names_of = [each for part in before for each in ast.walk(part) if isinstance(each, ast.Name)]
        given = {each.id for each in names_of if not isinstance(each.ctx, ast.Load)}
        turned = [each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)]
        if len({*names, *turned}) < 3 + len(turned) or read & {noisy, best} or given & {best, winner, index}:
            return False
        if seen["i_"] != index or any(run.name(each) != Function(each) for each in (over, "len")):
            return False

        def placed() -> None:
            turn = ast.parse(f"def turn({', '.join(turned)}):\n return {noisy}").body[0]
            assert isinstance(turn, ast.FunctionDef)
            turn.body[:0] = before
            run.frame.update(dict.fromkeys({*names, *turned, *given}, MISSING))  # so that nothing else reads them
            run.frame["(turn)"] = Function("turn", ast.copy_location(turn, node), run.frame)
            call = ast.Call(ast.Name("(turn)", ast.Load()), [ast.Name(each, ast.Load()) for each in turned], [])
            every = ast.ListComp(call, [ast.comprehension(node.target, node.iter, [], 0)])
            try:
                values = run.value(ast.fix_missing_locations(ast.copy_location(every, node)))
            except RaisedAlike:  # by what is carried from turn to turn, perhaps
                values = []
            filled = values.axis.filled if isinstance(values, Vector) else bool(values)
            found = self._place_of(pick, values) if filled else NotImplemented
            if found is NotImplemented:
                raise run.refusal("such a search for the largest", "use np.argmax")
            del run.frame["(turn)"]
            run.frame.update(dict.fromkeys({*names, *turned, *given}, UnknownValue(False)) | {winner: found})

        return self.settles(placed)

    def rows_of_users(self, node: ast.For, rows: UserRows) -> None:
        """A loop over rows of users: usual ones, and one by one those of the user whom one run alone has."""
        run = self.run

        def usual() -> None:
            run.turn(node, Record())

        run.endless(usual)
        for _ in range(MOST_ROWS):
            if run.choose():
                return
            before, found, paid = run.contents(), self.found_of_all(), len(self.steps)
            entry = Record(False, (), dict(rows.regions[run.choose(len(rows.regions))]))
            self.apart(node, MISSING if rows.second else entry, entry if rows.second else MISSING)
            run.endless(usual)
            before.pop(id(self.facts))
            changed = not self.alike_contents(before, run.contents()) or self.found_of_all() != found
            if not changed and len(self.steps) == paid:
                return  # as if the row were not there
        raise run.refusal(
            "rows of a user without a bound", "count the rows of each user, and leave out those beyond a bound"
        )

    def found_of_all(self) -> dict[Any, Any]:
        """What was found out of the case, but for the keys of single rows."""
        return {what: found for what, found in self.facts.items() if not isinstance(what, tuple)}

    def apart(self, node: ast.For, first: Any, second: Any) -> None:
        """A turn for an entry that the first run has, and one for an entry that the second has, each alone."""
        run = self.run
        before = run.contents()
        after = [
            self.turn_alone(node, entry, side) if entry is not MISSING else None
            for side, entry in ((False, first), (True, second))
        ]
        for each in after:
            found = {} if each is None else each[id(self.facts)][1]
            self.facts.update({what: each for what, each in found.items() if what != "failing"})  # it is paid
        result: Contents = {}
        for key, (container, held) in before.items():
            if container is self.facts:
                result[key] = container, dict(self.facts)
                continue
            one, two = (each[key][1] if each is not None and key in each else held for each in after)
            result[key] = container, self.moved_contents(key, held, one, two)
        run.adopt(result)

    def turn_alone(self, node: ast.For, entry: Any, second: bool) -> Contents:
        """What everything holds after a turn of one run: numbers as what was added to what they were."""
        run = self.run
        before = run.contents()
        tokens = {key: (container, self.marked(key, held, second)) for key, (container, held) in before.items()}
        run.adopt(tokens)

        steps, most = len(self.steps), Fraction(0)

        def counted() -> None:
            nonlocal most
            self.facts["failing"] = Fraction(0)
            run.turn(node, entry)
            most = max(most, self.facts["failing"])

        ends, _ = self.alone(second, lambda: run.every_way(counted))
        run.adopt(before)
        self.pay("an entry of one dataset alone that shows", delta=most)
        steps += bool(most)
        if any(end.how not in ("end", "continue") for end in ends) or len(self.steps) > steps:
            raise run.refusal("a loop that one record may end", "go over all records")
        after: Contents = ends[run.choose(len(ends))].contents
        self.ones |= {key: container for key, (container, _) in after.items() if key not in before}
        return after

    def marked(self, key: int, held: Any, second: bool) -> Any:
        """What a container holds, each number as one to be counted from."""

        def mark(slot: Any, value: Any) -> Any:
            token = (key, slot)
            if isinstance(value, Only):
                return value.value if value.second is second else value
            number = value.number if isinstance(value, NormedVector) else value
            if type(number) is not PairedNumber:
                return value  # what no turn changes is known, or is no number
            found = self.marks[token] = PairedNumber(True, number.span, whole=number.whole, start=token)
            return found if number is value else replace(value, number=found)

        if isinstance(held, dict):
            return {name: mark(name, value) for name, value in held.items()}
        return [mark(place, value) for place, value in enumerate(held)] if isinstance(held, list) else held

    def moved_contents(self, key: int, held: Any, one: Any, two: Any) -> Any:
        """What a container holds once each run has made its turn."""
        if key in self.ones:  # one run alone has it
            return one if one != held else two
        if isinstance(held, dict):
            local = "(locals)" in held
            own = {}
            for name in {**one, **two}:
                old, shared = held.get(name, MISSING), self.facts.get(("shared", key, name))
                added = isinstance(name, Own) and old is MISSING
                if isinstance(old, Only) or added and not shared and (name in one) is not (name in two):
                    second = old.second if isinstance(old, Only) else name in two
                    own[name] = Only(False, second, (two if second else one)[name])
                elif added and shared and ANY in held:
                    held = {**held, name: held[ANY]}
                    one, two = ({**each, name: each.get(name, held[ANY])} for each in (one, two))
            order, *others = ([repr(name) for name in each if name not in own] for each in (held, one, two))
            if not local and others != [order, order]:
                raise self.run.refusal("a key that one record adds", "use public keys")
            olds = {name: held.get(name, MISSING) for name in {**held, **one, **two} if name not in own}
            return own | {
                name: self.moved_value((key, name), old, one.get(name, old), two.get(name, old), local)
                for name, old in olds.items()
            }
        if isinstance(held, list) and len(held) == len(one) == len(two):
            return [
                self.moved_value((key, place), old, a, b, False)
                for place, (old, a, b) in enumerate(zip(held, one, two, strict=True))
            ]
        raise self.run.refusal("a list that one record changes", "release sums and counts, or replay a `domain`")

    def moved_value(self, token: Any, old: Any, one: Any, two: Any, local: bool) -> Any:
        """A variable once each run has made its turn."""
        one, two = (old if self.untouched(each, token) else each for each in (one, two))
        if one is old and two is old:
            return old
        if isinstance(old, NormedVector | KnownArray) and any(isinstance(each, NormedVector) for each in (one, two)):
            return self.lifted(
                lambda was, a, b: self.moved_value(
                    token, was, was if one is old else a, was if two is old else b, local
                ),
                old,
                one,
                two,
            )
        was = number_of(old) if not isinstance(old, bool) else None
        sides = [number_of(each) if each is not old else was for each in (one, two)]
        if None in sides or (was is None and old is not MISSING):
            if local:
                return UnknownValue(False)
            raise self.run.refusal("an entry that one record changes", "count and add up only")
        first, second = (each for each in sides if each is not None)
        whole = first.whole and second.whole
        if was is not None and all(each is old or side.start == token for each, side in ((one, first), (two, second))):
            offsets = [STILL if each is old else side.offset for each, side in ((one, first), (two, second))]
            span = was.span + (offsets[0] | offsets[1])
            return PairedNumber(False, span, was.moved + offsets[1] + -offsets[0], whole and was.whole)
        if was is None and (one is MISSING or two is MISSING):
            return UnknownValue(False)
        return PairedNumber(False, first.span | second.span, second.span + -first.span, whole)

    def untouched(self, value: Any, token: Any) -> bool:
        """Whether a variable is what it was before the turn: the very one, as 0 and 0.0 are told apart."""
        number = value.number if isinstance(value, NormedVector) else value
        return number is not MISSING and number is self.marks.get(token)

    def settles(self, action: Any) -> bool:
        """Whether a loop that noise ends can be followed to where nothing changes any more."""
        before, mark = self.run.contents(), self.mark()
        made = list(self.run.script.made)
        try:
            action()
            return True
        except NotShown:
            self.run.adopt(before)
            self.undo(mark)
            self.run.script.made = made
            return False


@dataclass(frozen=True, slots=True)
class NeighbourCase:
    """One way in which two datasets may be neighbours: words, and the dataset of both as the program sees it.

    Of records: the region of the one that the first has, of that of the second, of one that both have; None: no such.
    `numbers`: the parts of records that were used as numbers.
    """

    words: str
    data: Any
    regions: tuple[Region | None, Region | None, Region] | None = None
    numbers: set[tuple[Any, ...]] = field(default_factory=set)


def cases(
    adjacency: str, kind: str, answers: int | None, whole: bool, points: Mapping[tuple[Any, ...], set[Any]]
) -> Iterator[NeighbourCase]:
    """All of them; `whole`: answers are whole numbers."""
    if adjacency in MOVES:
        yield from _of_answers(adjacency, kind, answers, whole)
        return
    regions = list(_regions(points))
    usual: Any = Record()
    if adjacency == "add_or_remove_user" and kind != "a mapping":
        named = {path: Place(True, ME) for path in USER}
        every = tuple({**region, **named} for region in regions)
        yield from (
            NeighbourCase(f"rows of one user {'added' if second else 'removed'}", UserRows(False, second, every))
            for second in (True, False)
        )
        return
    if adjacency == "add_or_remove_user":
        rows = Vector(usual=AnyRow(False, tuple(Record(False, (), region) for region in regions)), axis=EntryAxis())
        for second in (True, False):
            vector = Vector(
                usual=Vector(usual=Record(), axis=EntryAxis()), extras=(rows,), axis=EntryAxis(extras=(second,))
            )
            sides = (None, regions[-1], regions[0]) if second else (regions[-1], None, regions[0])
            yield NeighbourCase(f"a user {'added' if second else 'removed'}", Keyed(vector=vector), sides)
        return
    if adjacency == "replace_one":
        for one, two in itertools.product(regions, repeat=2):
            changed = Replaced(False, Record(False, (), one), Record(False, (), two))
            both = Vector(usual=usual, changed=(changed,), axis=EntryAxis(1, filled=True))
            held = Keyed(vector=both) if kind == "a mapping" else both
            yield NeighbourCase(f"{_shown(one)} in the place of {_shown(two)}", held, (one, two, regions[0]))
        return
    for region, second in itertools.product(regions, (True, False)):
        entry = Record(False, (), region)
        vector = Vector(usual=usual, extras=(entry,), axis=EntryAxis(extras=(second,)))
        data = Keyed(vector=vector) if kind == "a mapping" else vector
        common = next((each for each in regions if each is not region), region)
        sides = (None, region, common) if second else (region, None, common)
        yield NeighbourCase(f"{_shown(region)} {'added' if second else 'removed'}", data, sides)


def _of_answers(adjacency: str, kind: str, answers: int | None, whole: bool) -> Iterator[NeighbourCase]:
    for move in MOVES[adjacency]:
        words = {UP: "an answer rises by up to 1", DOWN: "an answer falls by up to 1"}.get(
            move, "answers move by up to 1"
        )
        moved, still = PairedNumber(True, ALL, move, whole), PairedNumber(whole=whole)
        if kind == "one number":
            yield NeighbourCase(words, moved)
        elif answers is not None and adjacency == "one-differs":
            for place in range(answers):
                yield NeighbourCase(
                    f"{words}, that at {place}",
                    KnownArray([replace(moved if each == place else still) for each in range(answers)], kind="L"),
                )
        elif answers is not None:
            yield NeighbourCase(words, KnownArray([replace(moved) for _ in range(answers)], kind="L"))
        else:
            one = adjacency == "one-differs"
            axis = EntryAxis(int(one), filled=True)
            vector = Vector(usual=still if one else moved, changed=(moved,) if one else (), axis=axis, array=None)
            yield NeighbourCase(words, Keyed(vector=vector) if kind == "a mapping" else vector)


def _regions(points: Mapping[tuple[Any, ...], set[Any]]) -> Iterator[dict[tuple[Any, ...], Place]]:
    paths = sorted(points, key=repr)
    places = [list(_places(points[path])) for path in paths]
    if math.prod(map(len, places)) > MOST_CASES:
        raise NotShown(1, "too many kinds of records to tell apart", "compare them with fewer values")
    for chosen in itertools.product(*places):
        yield dict(zip(paths, chosen, strict=True))


def _places(values: set[Any]) -> Iterator[Place]:
    numbers = sorted({value for value in values if is_number(value)})
    others = sorted((value for value in values if not is_number(value)), key=repr)
    for value in (*numbers, *others):
        yield Place(True, value)
    ends: list[Bound] = [-math.inf, *map(fraction_of, numbers), math.inf]
    if numbers or not others:
        for low, high in itertools.pairwise(ends):
            yield Place(False, frozenset(values), Span(low, high))
    if others:
        yield Place(False, frozenset(values), Span(-math.inf, math.inf) if not numbers else Span(math.inf, math.inf))


def _shown(region: Mapping[tuple[Any, ...], Place]) -> str:
    parts = []
    for path, place in region.items():
        name = "the record" + "".join(f"[{step!r}]" if not str(step).startswith(".") else str(step) for step in path)
        if place.exactly:
            parts.append(f"{name} == {place.value!r}")
        elif place.span.low != place.span.high and any(map(is_number, place.value)):
            parts.append(f"{name} between {float(place.span.low):g} and {float(place.span.high):g}")
        else:
            parts.append(f"{name} anything else")
    return "a record" + (f" ({', '.join(parts)})" if parts else "")
