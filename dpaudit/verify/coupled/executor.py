"""The syntax tree of a mechanism, executed: on plain values as Python does it, and on what is unknown by rules.

Where both runs may go one way or another, but the same way, every way is followed (`choose`, `every_way`). A loop over
as many entries as a dataset has is followed to where another turn changes nothing that is known.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from dpaudit.verify.coupled.expressions import TOTAL, Expressions
from dpaudit.verify.coupled.templates import names_in, seen_in
from dpaudit.verify.coupled.values import (
    Instance,
    KnownArray,
    NormedVector,
    PairedTruth,
    Record,
    Replaced,
    Rest,
    UnknownValue,
    UserRows,
    Vector,
    form_of,
    is_plain,
    is_same,
)
from dpaudit.verify.coupled.ways import End, Left, NotShown, RaisedAlike

COUNTED = "c_[K] = c_.get(K, START) + MORE"
MOST_TURNS = 10_000  # of a loop whose condition is known
UNROLLED = 48  # turns of a loop that noise ends
WIDENED = 3  # turns after which a number that still grows is taken to be anything


class TreeExecutor(Expressions):
    """Executes a function that was read. `rules` does what is unknown: see `cases.LoopRules`."""

    def block(self, statements: list[ast.stmt]) -> None:
        """Executes statements."""
        for statement in statements:
            self.line = statement.lineno
            self.step()
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        """Executes a statement."""
        match node:
            case ast.Assign() if (
                (seen := seen_in(node, COUNTED))
                and not names_in(seen["START"])
                and all(
                    isinstance(each.func, ast.Name) and each.func.id in TOTAL
                    for part in ("K", "START", "MORE")
                    for each in ast.walk(seen[part])
                    if isinstance(each, ast.Call)
                )
            ):
                container, place = self.name(seen["c_"]), self.value(seen["K"])
                more, start = seen["MORE"], seen["START"]
                self.rules.check_keys(container, place, ast.dump(start))
                if not isinstance(container, dict) or not self.rules.adds_somewhere(
                    container, place, ast.Add(), more, start
                ):
                    self.store(container, place, self.value(node.value))
            case ast.Assign(targets=targets, value=value):
                result = self.value(value)
                for target in targets:
                    self.assign(target, result)
            case ast.AnnAssign(target=target, value=value) if value is not None or isinstance(target, ast.Name):
                if value is not None:
                    self.assign(target, self.value(value))
            case ast.AugAssign(target=target, op=op, value=value):
                self.augmented(target, op, value)
            case ast.Expr(value=value):
                self.value(value)
            case ast.If(test=test, body=body, orelse=orelse):
                self.branch(self.truth(self.value(test)), body, orelse)
            case ast.For():
                self.loop(node)
            case ast.While():
                self.while_loop(node)
            case ast.Return(value=value):
                raise Left("return", None if value is None else self.value(value))
            case ast.Break():
                raise Left("break")
            case ast.Continue():
                raise Left("continue")
            case ast.Raise(exc=value, cause=cause):
                name = value.func if isinstance(value, ast.Call) else value
                said = [*value.args, *(each.value for each in value.keywords)] if isinstance(value, ast.Call) else []
                if not is_same(self.rules.look([self.value(each) for each in (*said, cause) if each is not None])):
                    raise self.refusal("data without noise in the message of an exception", "leave it out")
                raise RaisedAlike(name.id if isinstance(name, ast.Name) else "raise")
            case ast.Assert(test=test, msg=message):
                error: ast.expr = ast.Name("AssertionError", ast.Load())
                error = error if message is None else ast.Call(error, [message], [])
                raising = ast.fix_missing_locations(ast.copy_location(ast.Raise(error), node))
                self.branch(self.truth(self.value(test)), [], [raising])
            case ast.Pass():
                pass
            case _:
                raise self.refusal(f"`{ast.unparse(node).splitlines()[0]}`", "write the mechanism without it")

    def assign(self, target: ast.expr, value: Any) -> None:
        """Gives a name, some names, or an entry a value."""
        match target:
            case ast.Name(id=name):
                self.frame[name] = value
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for each, part in zip(targets, self.unpacked(value, len(targets)), strict=True):
                    self.assign(each, part)
            case ast.Subscript(value=owner, slice=index):
                container, place = self.value(owner), self.value(index)
                self.rules.check_keys(container, place, "store")
                self.store(container, place, value)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if isinstance(self.name(name), Instance):
                self.store(self.name(name).attributes, attribute, value)
            case _:
                raise self.refusal(f"a value for `{ast.unparse(target)}`", "keep it in a variable")

    def unpacked(self, value: Any, number: int) -> list[Any]:
        """The parts of a value that is assigned to several names."""
        if isinstance(value, UnknownValue):
            return list(self.rules.unpacked(value, number))
        found = self.known_items(value)
        if len(found) != number:
            raise RaisedAlike("ValueError")
        return found

    def augmented(self, target: ast.expr, op: ast.operator, value: ast.expr) -> None:
        """`target op= value`: lists and arrays are changed where they are."""
        if isinstance(target, ast.Subscript):
            owner, index = self.value(target.value), self.value(target.slice)
            self.rules.check_keys(owner, index, "add")
            if not self.rules.adds_somewhere(owner, index, op, value):
                index = self.rules.key(owner, index)
                before = self.entry(owner, index)
                self.store(owner, index, self.in_place(op, before, self.value(value), 2))
        elif isinstance(target, ast.Name):
            before = self.name(target.id)
            names = 2 if target.id in self.frame.get("(others)", ()) else 1
            self.frame[target.id] = self.in_place(op, before, self.value(value), names)
        else:
            self.assign(target, self.in_place(op, self.value(target), self.value(value), 2))

    def in_place(self, op: ast.operator, before: Any, more: Any, names: int) -> Any:
        """What `before op= more` makes of a value that has so many names at least: its others see it change too."""
        if form_of(before) == "list or array":
            raise self.refusal("a list or an array that is changed in place", "write `a = a + b`")
        if isinstance(before, list) and isinstance(op, ast.Add) and not isinstance(more, list | tuple | str | range):
            raise self.refusal("a list to which something else is added in place", "append to it")
        if isinstance(before, list) and isinstance(op, ast.Add):
            self.check_alone(before)
            before.extend(self.known_items(more))
            return before
        after = self.binary(op, before, more)
        if isinstance(before, KnownArray) and not before.shared and isinstance(after, KnownArray):
            before.items[:] = [self.rules.fitting(before, each) for each in after.items]
            return before
        if isinstance(before, KnownArray) and not before.shared and isinstance(after, UnknownValue):
            before.items[:] = [UnknownValue(False)] * len(before.items)  # another name of it would have changed too
            return after
        if isinstance(before, NormedVector) and names == 1 and self.names_of(before) <= 1:
            return after
        if isinstance(before, KnownArray | NormedVector | Vector | Record | Replaced | list | dict):
            raise self.refusal("a container or an array that is changed in place", "write `a = a + b`, tables as lists")
        return after

    def check_alone(self, owner: Any) -> None:
        """Raises where a container stands for those of many entries: it cannot be changed then."""
        if id(owner) in self.rules.standing:
            raise self.refusal("a change of the list of one entry", "make a new list for each entry")

    def store(self, owner: Any, index: Any, value: Any) -> None:
        """owner[index] = value."""
        if isinstance(index, slice):
            raise self.refusal("a slice that is given a value", "give its entries values one by one")
        self.check_alone(owner)
        if isinstance(owner, list) and isinstance(index, bool | np.bool_):
            raise self.refusal("a truth value as a place", "use int(...)")
        if isinstance(owner, list) and any(isinstance(each, Rest) for each in owner):
            raise self.refusal("an entry of a list whose length noise decides", "append to it, or make a new one")
        if isinstance(owner, list | dict) and is_plain(index):
            try:
                owner[index] = value
            except Exception as error:
                raise RaisedAlike(type(error).__name__) from None
        else:
            self.rules.store(owner, index, value)

    def branch(self, condition: Any, then: list[ast.stmt], otherwise: list[ast.stmt]) -> None:
        """One of two blocks; both, where either may be taken."""
        if not isinstance(condition, PairedTruth):
            self.block(then if condition else otherwise)
            return
        ends, spends = self.every_way(lambda: self.block(then), lambda: self.block(otherwise))
        if not spends and all(end.how == "end" for end in ends):
            with suppress(NotShown):
                self.adopt(self.joined([end.contents for end in ends]))
                return
        self.block(otherwise if self.choose() else then)

    def loop(self, node: ast.For) -> None:
        """A `for` loop: turn by turn over what is known, by cases over the entries of a dataset."""
        if self.rules.winner_loop(node):
            return
        value = self.value(node.iter)
        if isinstance(value, UserRows):
            self.rules.rows_of_users(node, value)
            return
        items = self.items(value)
        if isinstance(items, Vector):
            if not self.rules.appended(node, items):
                self.rules.loop(node, items)
            return
        if isinstance(items, UnknownValue):
            self.endless(lambda: self.turn(node, UnknownValue(items.same)))
            return
        for item in self.each_of(value, items):
            if self.broken(functools.partial(self.turn, node, item)):
                return

    def turn(self, node: ast.For, item: Any) -> None:
        """One turn of a loop."""
        self.assign(node.target, item)
        self.block(node.body)

    @staticmethod
    def broken(turn: Callable[[], Any]) -> bool:
        """Does a turn of a loop; whether it breaks the loop."""
        try:
            turn()
        except Left as left:
            if left.how not in ("break", "continue"):
                raise
            return left.how == "break"
        return False

    def while_loop(self, node: ast.While) -> None:
        """A `while` loop: turn by turn while its condition is known."""
        for turn in range(MOST_TURNS):
            condition = self.truth(self.value(node.test))
            if isinstance(condition, PairedTruth) and self.rules.single is not None:
                raise self.refusal("a loop that noise ends, for one record alone", "write it before the loop")
            if isinstance(condition, PairedTruth):
                if turn == 0 and self.rules.settles(lambda: self.endless(lambda: self.guarded(node))):
                    return
                if turn > UNROLLED:
                    raise self.refusal("a loop that noise ends, in which privacy is spent", "bound its turns")
                condition = not self.choose()
            if not condition or self.broken(lambda: self.block(node.body)):
                return
            self.step()
        raise self.refusal(f"more than {MOST_TURNS} turns of a loop", "give smaller parameters")

    def guarded(self, node: ast.While) -> None:
        """One turn of a `while` loop."""
        condition = self.truth(self.value(node.test))
        if not (not self.choose() if isinstance(condition, PairedTruth) else condition):
            raise Left("break")
        self.block(node.body)

    def endless(self, turn: Callable[[], Any]) -> None:
        """Any number of turns that are alike in both runs and spend nothing."""
        for number in range(20):
            before = self.contents()
            ends, spends = self.every_way(turn)
            if spends:
                cure = "give `answers`, how many there are"
                raise self.refusal("privacy is spent at every entry, and their number is not known", cure)
            again = [end.contents for end in ends if end.how in ("end", "continue")]
            after = self.rules.many(functools.partial(self.joined, [before, *again]))
            if number >= WIDENED:
                after = self.rules.widened(before, after)
            self.adopt(after)
            if self.rules.alike_contents(before, self.contents()):
                broken = [self.contents(), *(end.contents for end in ends if end.how == "break")]
                stays = End("end", None, self.rules.many(functools.partial(self.joined, broken)))
                self.resume([stays, *(end for end in ends if end.how in ("return", "raise"))])
                return
        raise self.refusal(
            "a loop in which what is known changes at every turn", "keep public bounds on what it carries"
        )
