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
from dpaudit.verify.coupled.joins import ANY
from dpaudit.verify.coupled.noise import EntryAxis, Rng
from dpaudit.verify.coupled.values import (
    ALL,
    CLOCK,
    ME,
    STILL,
    USER,
    Bound,
    EntryIndex,
    FreshNoise,
    Keyed,
    KnownArray,
    Noisy,
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
    of_itself,
    parts,
)
from dpaudit.verify.coupled.ways import Contents, Left, NotShown

UP, DOWN = Span(Fraction(0), Fraction(1)), Span(Fraction(-1), Fraction(0))
MOVES = {"all-differ": (UP | DOWN,), "one-differs": (UP, DOWN), "up": (UP,), "down": (DOWN,)}
RECORDS = ("add_or_remove_one", "replace_one", "add_or_remove_user")
MOST_CASES = 5_000
Region = Mapping[tuple[Any, ...], Place]
MOST_ROWS = 16  # of a user, where the code bounds their number


class DataAxis(EntryAxis):
    """Names the places of a dataset that is not empty."""

    filled = True


class RowAxis(EntryAxis):
    """Names the length of each row of a table: a number once one was used for it."""

    number: int | None = None


class LoopRules(CallRules):
    """Loops and comprehensions over as many entries as a dataset has."""

    def __init__(self, run: TreeExecutor) -> None:
        super().__init__(run)
        self.rows, self.changed_axes, self.ones, self.standing = RowAxis(), {}, set[int](), {}
        self.marks: dict[Any, PairedNumber] = {}  # of each variable: what it is at the start of a turn of one run alone
        self.facts: dict[Any, Any] = {}  # what was found out of the case on the way, undone with all else
        self.numbers = set[tuple[Any, ...]]()

    # --- comprehensions -------------------------------------------------------------------------------------------

    def comprehension(self, generator: ast.comprehension, items: Vector, element: Any) -> Any:
        """The list of what is made of each entry."""
        run = self.run

        perhaps = False

        def made(entry: Any) -> Any:
            nonlocal perhaps
            run.assign(generator.target, entry)
            for test in generator.ifs:
                condition = run.truth(run.value(test))
                if isinstance(condition, PairedTruth):
                    if self.single is None:
                        perhaps = True
                        continue  # both runs have the entry, or neither
                    condition = self.taken(condition)
                if not condition:
                    return MISSING
            return element()

        before, clock = run.contents(), self.clock
        usual = self.many(lambda: self.check_own(self.of_entry(made, items.usual, items), clock))
        changed = [
            self.check_own(self.both(lambda one: self.of_entry(made, one, items), each), clock)
            for each in items.changed
        ]
        changed = [self.perhaps(each) for each in changed] if perhaps else changed
        extra = items.extra
        if extra is not None:
            extra = extra[0], self.alone(extra[0], lambda: made(items.extra[1]))  # type: ignore[index]
        before.pop(id(self.facts))
        if not self.untouched_contents(before, run.contents()):
            raise run.refusal("a comprehension that changes something", "write it as a loop")
        for each in changed:
            if isinstance(each, Replaced) and MISSING in (each.first, each.second):
                if extra is None and not (each.first is MISSING and each.second is MISSING):
                    extra = (each.first is MISSING, each.second if each.first is MISSING else each.first)
                elif each.first is not MISSING or each.second is not MISSING:
                    raise run.refusal("such a selection", "select in one place")
        changed = [
            each
            for each in changed
            if each is not MISSING and not (isinstance(each, Replaced) and MISSING in (each.first, each.second))
        ]
        if extra is not None and extra[1] is MISSING:
            extra = None
        if usual is MISSING:
            usual = (
                PairedNumber(True, STILL, STILL, True)
                if not changed and extra is None
                else self.like([*changed, *(extra or ())[1:]][0])
            )
        axis = items.axis if not generator.ifs else EntryAxis()
        self.changed_axes[axis] = bool(changed)
        self.stand([usual, *changed, *(extra or ())[1:]])
        return Vector(usual=usual, changed=tuple(changed), extra=extra, axis=axis, most=items.most)

    def perhaps(self, value: Any) -> Any:
        """An entry that changes, where it is not known whether it is there."""
        if isinstance(value, PairedNumber):
            return replace(value, moved=value.moved | STILL, less=None)
        if isinstance(value, tuple):
            return tuple(map(self.perhaps, value))
        if not is_same(value):
            raise self.run.refusal("a record that is selected by its place", "select what is made of the records")
        return value

    def stand(self, value: Any) -> None:
        """Notes the containers in the entries of a vector."""
        for each in parts(value):
            if isinstance(each, list | dict | set | KnownArray):
                self.standing[id(each)] = each
            self.stand(each)

    def of_entry(self, made: Callable[[Any], Any], entry: Any, vector: Vector) -> Any:
        """What is made of an entry, by names that are its own; what is taken from it is not that of other entries."""
        since = next(CLOCK)
        return of_itself(made(replace(entry, entry_of=vector) if type(entry) is PairedNumber else copied(entry)), since)

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

    def like(self, value: Any) -> Any:
        """An entry that both runs have, of the same kind as another."""
        number = number_of(self.numeric(value))
        return PairedNumber(True, number.span, whole=number.whole) if number is not None else UnknownValue()

    def appended(self, node: ast.For, items: Vector) -> bool:
        """Whether a loop only appends one value a turn to a new list: that is a comprehension."""
        match node:
            case ast.For(
                target=ast.Name() | ast.Tuple(),
                body=[
                    ast.Expr(
                        value=ast.Call(
                            func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[made], keywords=[]
                        )
                    )
                ],
                orelse=[],
            ):
                pass
            case _:
                return False
        run = self.run
        target = run.frame.get(name)
        if name in {each.id for each in ast.walk(made) if isinstance(each, ast.Name)}:
            return False
        if target != [] or sum(each is target for frame in run.frames for each in frame.values()) != 1:
            return False
        generator = ast.comprehension(target=node.target, iter=node.iter, ifs=[], is_async=0)
        run.frame[name] = self.comprehension(generator, items, lambda: run.value(made))
        for each in ast.walk(node.target):
            if isinstance(each, ast.Name):
                run.frame[each.id] = UnknownValue(False)
        return True

    # --- loops ----------------------------------------------------------------------------------------------------

    def loop(self, node: ast.For, items: Vector, more: tuple[tuple[bool, Any], ...] = ()) -> None:
        """A loop over the entries of a dataset, and `more` that one run alone has."""
        run = self.run
        if self.single is not None and items.most is not None and items.most <= 32:
            for _ in range(items.most):
                if run.choose():
                    break
                if not self.one_turn(node, copied(items.usual)):
                    return
            return

        def usual() -> None:
            run.turn(node, copied(items.usual))

        run.endless(usual)
        for each in items.changed:
            if isinstance(each, Replaced):
                self.apart(node, each.first, each.second)
            elif not self.one_turn(node, each):
                run.block(node.orelse)
                return
        if items.changed:
            run.endless(usual)
        for second, entry in (*([] if items.extra is None else [items.extra]), *more):
            self.apart(node, MISSING if second else entry, entry if second else MISSING)
            run.endless(usual)
        run.block(node.orelse)

    def winner_loop(self, node: ast.For, items: Vector) -> bool:
        """Whether a loop only keeps the place of the largest noisy value: `if i == 0 or y > best: best, w = y, i`."""
        match node:
            case ast.For(
                target=ast.Tuple(elts=[ast.Name(id=index), _]),
                body=[ast.Assign(targets=[ast.Name(id=noisy)], value=made), ast.If(test=test, body=kept, orelse=[])],
                orelse=[],
            ):
                pass
            case _:
                return False
        run = self.run
        given = {ast.unparse(each) for each in kept} if len(kept) == 2 else {"; ".join(map(ast.unparse, kept))}
        compares = [each for each in ast.walk(test) if isinstance(each, ast.Compare)]
        bests = [
            each.comparators[0].id
            for each in compares
            if isinstance(each.comparators[0], ast.Name) and ast.unparse(each) == f"{noisy} > {each.comparators[0].id}"
        ]
        over = ast.unparse(node.iter)
        plain = (
            isinstance(node.iter, ast.Call)
            and len(node.iter.args) == 1
            and over == f"enumerate({ast.unparse(node.iter.args[0])})"
        )
        if len(bests) != 1 or items.extra is not None or not plain:
            return False
        best = bests[0]
        if {noisy, best} & {each.id for each in ast.walk(made) if isinstance(each, ast.Name)}:
            return False
        start = run.frame.get(best, MISSING)
        first = {f"{index} == 0 or {noisy} > {best}", f"{best} is None or {noisy} > {best}", f"{noisy} > {best}"}
        begun = ast.unparse(test) in first and ("== 0" in ast.unparse(test) or start is None or start == -math.inf)
        winners = {
            name
            for name in {*run.frame, index}
            if given
            in (
                {f"{best} = {noisy}", f"{name} = {index}"},
                {f"{name}, {best} = ({index}, {noisy})"},
                {f"{best}, {name} = ({noisy}, {index})"},
            )
        }
        if (
            not begun
            or len(winners) != 1
            or winners & {each.id for each in ast.walk(made) if isinstance(each, ast.Name)}
        ):
            return False
        entries, clock = [], self.clock

        def noise(entry: Any) -> Any:
            run.assign(node.target, entry)
            return run.value(made)

        for each in (items.usual, *items.changed):
            of_one = functools.partial(self.of_entry, noise, each, items)
            entries.append(self.check_own(self.many(of_one), clock))
        if not self.largest(entries):
            return False
        run.frame[winners.pop()] = EntryIndex(True, Span(Fraction(0), math.inf), whole=True)
        for name in (noisy, best, *(n.id for n in ast.walk(node.target) if isinstance(n, ast.Name))):
            run.frame[name] = UnknownValue(False)
        return True

    def rows_of_users(self, node: ast.For, rows: UserRows) -> None:
        """A loop over rows of users: usual ones, and one by one those of the user whom one run alone has."""
        run = self.run

        def usual() -> None:
            run.turn(node, Record())

        run.endless(usual)
        for _ in range(MOST_ROWS):
            if run.choose():
                run.block(node.orelse)
                return
            before, found, paid = run.contents(), self.found_of_all(), len(self.steps)
            entry = Record(False, (), dict(rows.regions[run.choose(len(rows.regions))]))
            self.apart(node, MISSING if rows.second else entry, entry if rows.second else MISSING)
            run.endless(usual)
            before.pop(id(self.facts))
            changed = not self.alike_contents(before, run.contents()) or self.found_of_all() != found
            if not changed and len(self.steps) == paid:
                run.block(node.orelse)  # as if the row were not there
                return
        raise run.refusal(
            "rows of a user without a bound", "count the rows of each user, and leave out those beyond a bound"
        )

    def found_of_all(self) -> dict[Any, Any]:
        """What was found out of the case, but for the keys of single rows."""
        return {what: found for what, found in self.facts.items() if not isinstance(what, tuple)}

    def one_turn(self, node: ast.For, entry: Any) -> bool:
        """A turn of both runs; whether the loop goes on."""
        try:
            self.run.turn(node, entry)
        except Left as left:
            if left.how == "break":
                return False
            if left.how != "continue":
                raise
        return True

    def apart(self, node: ast.For, first: Any, second: Any) -> None:
        """A turn for an entry that the first run has, and one for an entry that the second has, each alone."""
        run = self.run
        before = run.contents()
        after = [
            self.turn_alone(node, entry, side) if entry is not MISSING else None
            for side, entry in ((False, first), (True, second))
        ]
        for each in after:
            self.facts.update({} if each is None else each[id(self.facts)][1])
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

        def turn() -> None:
            run.turn(node, entry)

        steps, most = len(self.steps), Fraction(0)

        def counted() -> None:
            nonlocal most
            self.facts["failing"] = Fraction(0)
            turn()
            most = max(most, self.facts["failing"])

        ends, _ = self.alone(second, lambda: run.every_way(counted))
        run.adopt(before)
        self.pay("an entry of one dataset alone that shows", delta=most)
        steps += bool(most)
        if any(end.how not in ("end", "continue") for end in ends) or len(self.steps) > steps:
            raise run.refusal("a loop that one record may end", "go over all records")
        after: Contents = ends[run.choose(len(ends))].contents
        self.ones |= set(after) - set(before)
        return after

    def marked(self, key: int, held: Any, second: bool) -> Any:
        """What a container holds, each number as one to be counted from."""

        def mark(slot: Any, value: Any) -> Any:
            token = (key, slot)
            if isinstance(value, Only):
                return value.value if value.second is second else value
            if isinstance(value, NormedVector):
                return replace(value, start=token, added=Fraction(0))
            if type(value) is not PairedNumber:
                return value  # what no turn changes is known, or is no number
            found = self.marks[token] = PairedNumber(True, value.span, whole=value.whole, start=token)
            return found

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
                    one, two = ({name: held[ANY], **each} for each in (one, two))
            if not local and not held.keys() | own == one.keys() | own == two.keys() | own:
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
        if held == one == two:
            return held
        raise self.run.refusal("a list that one record makes longer", "release sums and counts")

    def moved_value(self, token: Any, old: Any, one: Any, two: Any, local: bool) -> Any:
        """A variable once each run has made its turn."""
        one, two = (old if self.untouched(each, token) else each for each in (one, two))
        if one is old and two is old:
            return old
        if isinstance(old, NormedVector | KnownArray) and (
            isinstance(one, NormedVector) or isinstance(two, NormedVector)
        ):
            far = [
                each.added
                if isinstance(each, NormedVector) and each.start == token
                else Fraction(0)
                if each is old
                else math.inf
                for each in (one, two)
            ]
            before = old.moved_2 if isinstance(old, NormedVector) else Fraction(0)
            return NormedVector(False, math.inf, math.inf, before + far[0] + far[1], self.rows)
        was = number_of(old) if not isinstance(old, bool) else None
        sides = [number_of(each) if each is not old else was for each in (one, two)]
        if None in sides or (was is None and old is not MISSING):
            if local:
                return UnknownValue(False)
            raise self.run.refusal("an entry that one record changes", "count and add up only")
        first, second = sides
        assert first is not None
        assert second is not None
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
        if isinstance(value, NormedVector):
            return bool(value.start == token and value.added == 0)
        return value is not MISSING and value is self.marks.get(token)

    # --- samplers ---------------------------------------------------------------------------------------------------

    def coin_loop(self, node: ast.While) -> bool:
        """`while rng.random() < p: k += 1` draws k from a geometric law."""
        match node:
            case ast.While(
                test=ast.Compare(
                    left=ast.Call(func=ast.Attribute(value=rng, attr="random"), args=[], keywords=[]),
                    ops=[ast.Lt()],
                    comparators=[p],
                ),
                body=[ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.Constant(value=1))],
            ):
                pass
            case _:
                return False
        run = self.run
        for each in ast.walk(p):
            calls = isinstance(each, ast.Call) and not (
                isinstance(each.func, ast.Attribute)
                and isinstance(each.func.value, ast.Name)
                and each.func.value.id in run.source.modules
            )
            if isinstance(each, ast.Name) and each.id == name or isinstance(each, ast.Lambda | ast.NamedExpr) or calls:
                return False
        chance, start = run.value(p), run.frame.get(name)
        if type(run.value(rng)) is not Rng or type(start) is not int or not is_number(chance) or not 0 < chance < 1:
            return False
        drawn = self.made(FreshNoise("geometric", fraction_of(chance), run.line))
        run.frame[name] = self.made(Noisy(start - 1, ((Fraction(1), drawn),)))
        return True

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
    axes: Mapping[Any, bool] = field(default_factory=dict)
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
    axis = DataAxis() if adjacency == "replace_one" else EntryAxis()
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
        usual = Vector(usual=Record(), axis=EntryAxis())
    if adjacency == "replace_one":
        for one, two in itertools.product(regions, repeat=2):
            changed = Replaced(False, Record(False, (), one), Record(False, (), two))
            both = Vector(usual=usual, changed=(changed,), axis=axis)
            held = Keyed(vector=both) if kind == "a mapping" else both
            yield NeighbourCase(
                f"{_shown(one)} in the place of {_shown(two)}", held, {axis: True}, (one, two, regions[0])
            )
        return
    for region, second in itertools.product(regions, (True, False)):
        entry: Any = Record(False, (), region)
        if adjacency == "add_or_remove_user":
            entry = Vector(usual=Record(False, (), region), axis=EntryAxis())
        vector = Vector(usual=usual, extra=(second, entry), axis=axis)
        data = Keyed(vector=vector) if kind == "a mapping" else vector
        common = next((each for each in regions if each is not region), region)
        sides = (None, region, common) if second else (region, None, common)
        yield NeighbourCase(f"{_shown(region)} {'added' if second else 'removed'}", data, {}, sides)


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
            axis = DataAxis()
            one = adjacency == "one-differs"
            vector = Vector(usual=still if one else moved, changed=(moved,) if one else (), axis=axis, array=None)
            yield NeighbourCase(words, Keyed(vector=vector) if kind == "a mapping" else vector, {axis: one})


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
