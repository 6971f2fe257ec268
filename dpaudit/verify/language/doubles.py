"""Decisions without noise: Python makes them in doubles, a proof in real numbers; a proof needs both to be the same.

Exact in both are whole numbers, doubles that are compared as they are, and sums of a few small halves, quarters and so
on. A decision with noise in it is one of real numbers by the assumption of every proof, unless the noise may cancel:
then rounding alone decides. What a variable may hold is followed on all paths, through the loop until nothing is new.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Any

from dpaudit.verify.language import nodes
from dpaudit.verify.language.facts import OPERATIONS, inside, reads, statements
from dpaudit.verify.language.outline import OutsideLanguage
from dpaudit.verify.language.values import ZERO

GRID, LARGEST = 64, 2**20  # such steps add up without rounding for 2**26 answers
NEAR = Fraction(1, 2**40)  # relative: how far a scale in doubles may be from the real one
MOST = 64  # kinds of values of a variable that are followed one by one
WIDEST = 500  # powers of two by which factors may make noise larger or smaller: doubles end at 2**-1022 and 2**1024
CURE = "compare whole numbers, or numbers as they are given: count the answers instead of adding up fractions"
LONGEST, DOUBLE = 62, -math.inf  # bits of the whole numbers that everything holds
COMPARED = 1023  # bits of the whole numbers that a double of numpy's can be compared with
DATA, UNKNOWN = "data", "?"  # among the origins of a value; others are draws, and what earlier answers left in a name


@dataclass(frozen=True, slots=True)
class ValueKind:
    """One kind of value that an expression may have.

    `exact`: the double is the real number. `whole`: Python computes it with whole numbers. `small`: it is a sum of
    steps; `step`: it is one. `huge`: data that is added to it is rounded away. `size`: of all its factors, in powers of
    two. `bits`: of a whole number of Python's, which data may be; DOUBLE where it is none. `doubled`: how often a
    public double may have become twice as large by sums. `once` are the draws in it with a factor that is surely not 0,
    `more` all other origins.
    """

    exact: bool = True
    whole: bool = False
    small: bool = False
    step: bool = False
    huge: bool = False
    size: int = 0
    bits: float = 0.0
    doubled: int = 0
    once: frozenset[str] = frozenset()
    more: frozenset[str] = frozenset()


Values = frozenset[ValueKind]
Known = dict[str, Values]
AS_GIVEN = ValueKind()
COUNT = ValueKind(whole=True, small=True, bits=31)
ROUNDED = ValueKind(exact=False, bits=DOUBLE, more=frozenset((DATA, UNKNOWN)))


def rounded(program: nodes.Program, parameters: Mapping[str, Fraction]) -> OutsideLanguage | None:
    """The first decision or output of a program that rounding may change at these parameters; None where there is none.

    A parameter without a value is taken to be of common size. Whole numbers that outgrow doubles are among the refused,
    used or not: `int * float`, `float(int)`, numpy's integers and comparisons with numpy's doubles raise.

    >>> from dpaudit.verify.language import read
    >>> source = "def f(q, rng, eps):\\n    return q + rng.laplace(scale=1 / eps) if {} else 0"
    >>> rounded(read(source.format("eps <= 0.1")), {})
    >>> rounded(read(source.format("3 * eps <= 0.3")), {}).line
    2
    """
    follower = _Follower(program, parameters)
    try:
        known = follower.block(program.before, {})
        if program.loop is not None and known is not None:
            known = follower.loop(program.loop, known)
        known = follower.block(program.after, known or {})
        for part in program.result:
            follower.output(part, known or {}, 1)
        ever = {name: frozenset((kind,)) for name, kind in follower.longest.items()}
        for operation, line in program.operations:
            if isinstance(operation, nodes.Compared):
                follower.compared(operation.left, operation.right, ever, line)
            else:
                follower.values(operation, ever, line)
    except OutsideLanguage as error:
        return error
    return wrong_scale(program, parameters)


def wrong_scale(program: nodes.Program, parameters: Mapping[str, Fraction]) -> OutsideLanguage | None:
    """The first scale or divisor that at these parameters is another number in doubles; None where there is none."""
    draws = (each for each in statements(program.body) if isinstance(each, nodes.Draw))
    scales = ((draw.scale, draw.line) for draw in draws)
    for number, line in (*scales, *program.divisors):
        try:
            real = _computed(number, parameters, Fraction)
        except (KeyError, ZeroDivisionError):  # without a value, of the loop's whole numbers, or refused as it is
            continue
        try:
            same = near(_computed(number, parameters, float), real)
        except ArithmeticError:
            same = False
        if not same:
            cure = "write it by products and quotients, and give parameters of common size"
            return OutsideLanguage(program.name, line, "a scale or divisor that rounding makes another number", cure)
    return None


def near(double: float, real: Fraction) -> bool:
    """Whether a scale in doubles is the real one except for the last bits.

    >>> near(0.1, Fraction(1, 10)), near(0.1, Fraction(1, 9))
    (True, False)
    """
    return math.isfinite(double) and abs(Fraction(double) - real) <= abs(real) * NEAR


def size_of(factor: Fraction) -> int:
    """By how many powers of two a factor makes a number larger or smaller.

    >>> size_of(Fraction(1)), size_of(Fraction(8)), size_of(Fraction(-1, 8))
    (0, 3, 3)
    """
    return abs(factor.numerator.bit_length() - factor.denominator.bit_length())


def _computed(scale: nodes.Expression, parameters: Mapping[str, Fraction], kind: Callable[[Fraction], Any]) -> Any:
    match scale:
        case nodes.Number(value):
            return kind(value)
        case nodes.ProgramParameter(name):
            return kind(parameters[name])
        case nodes.Arithmetical(operation, left, right):
            return OPERATIONS[operation](_computed(left, parameters, kind), _computed(right, parameters, kind))
    raise KeyError(scale)


@dataclass(slots=True)
class _Follower:
    program: nodes.Program
    parameters: Mapping[str, Fraction]
    left: list[Known] | None = None  # what is known at each break
    longest: dict[str, ValueKind] = field(default_factory=dict)  # the bits that a variable may ever have

    def loop(self, block: nodes.Block, known: Known) -> Known:
        """What is known after the loop, from what is known before it."""
        known = _carried(known)
        while True:
            self.left = []
            further = _either(known, _carried(self.block(block, known) or {}))
            if further == known:
                for each in self.left:
                    further = _either(further, each)
                return further
            known = further

    def block(self, block: nodes.Block, known: Known) -> Known | None:
        """What is known after a block; None where it always ends the loop."""
        for statement in block:
            match statement:
                case nodes.Assign(target, value, line):
                    known = {**known, target: self.values(value, known, line)}
                    every = known[target] | ({self.longest[target]} if target in self.longest else set())
                    whole = all(kind.whole for kind in every)
                    self.longest[target] = ValueKind(whole=whole, bits=max(kind.bits for kind in every))
                case nodes.Draw(target):
                    known = {**known, target: frozenset((ValueKind(False, bits=DOUBLE, once=frozenset((target,))),))}
                case nodes.Emit(value, _, line):
                    self.output(value, known, line)
                case nodes.Branch(condition, then, otherwise, line):
                    self.values(condition, known, line)
                    arms = [arm for arm in (self.block(then, known), self.block(otherwise, known)) if arm is not None]
                    if not arms:
                        return None
                    known = _either(arms[0], arms[-1])
                case nodes.Stop():
                    assert self.left is not None
                    self.left.append(known)
                    return None
        return known

    def output(self, expression: nodes.Expression, known: Known, line: int) -> None:
        """What is public rounds alike for both datasets; what is not must have noise, or be given out as it is."""
        for kind in self.values(expression, known, line):
            if (kind.once or kind.more) and not (kind.exact or _noisy(kind)):
                what = "an output whose data or noise may cancel but for rounding"
                raise OutsideLanguage(self.program.name, line, what, "write it without what cancels")

    def values(self, expression: nodes.Expression, known: Known, line: int) -> Values:
        """All kinds of values that an expression may have."""
        match expression:
            case nodes.Number(value, real):
                small = abs(value) <= LARGEST and (value * GRID).denominator == 1
                kind = ValueKind(
                    whole=not real, small=small, step=small, huge=abs(value) > LARGEST, size=size_of(value)
                )
                kind = replace(kind, bits=DOUBLE if real else _bits(value))
            case nodes.ProgramParameter(name):
                kind = self.public(expression, ValueKind(whole=name in self.program.integers))
            case nodes.Index() | nodes.Length():
                kind = COUNT
            case nodes.Answer():
                kind = ValueKind(more=frozenset((DATA,)))
            case nodes.Variable(name):
                return known.get(name, frozenset((ROUNDED,)))
            case nodes.Arithmetical(operation, left, right):
                sides = self.values(left, known, line), self.values(right, known, line)
                grows = operation in ("+", "-") and bool(reads(left)) and bool(reads(right))
                every = {_combined(operation, left, right, *pair, grows) for pair in product(*sides)}
                if max(each.bits for each in every.union(*sides)) > LONGEST:
                    what, cure = "a whole number that may outgrow doubles", "count by adding, and give common numbers"
                    raise OutsideLanguage(self.program.name, line, what, cure)
                return _few(frozenset(self.public(expression, each) for each in every))
            case nodes.Compared(_, left, right):
                self.decision(left, right, known, line)
                kind = AS_GIVEN
            case _:
                for part in inside(expression):
                    self.values(part, known, line)
                kind = AS_GIVEN
        return frozenset((kind,))

    def public(self, expression: nodes.Expression, kind: ValueKind) -> ValueKind:
        """The same of what is computed of parameters alone, whose size is known where their values are."""
        try:
            value = _computed(expression, self.parameters, Fraction)
        except (KeyError, ZeroDivisionError):
            return kind
        bits = DOUBLE if kind.bits == DOUBLE else _bits(value)
        return replace(kind, huge=abs(value) > LARGEST, size=size_of(value), bits=bits)

    def decision(self, left: nodes.Expression, right: nodes.Expression, known: Known, line: int) -> None:
        """Both sides are exact, or there is noise between them that cannot cancel."""
        for ours, theirs in self.compared(left, right, known, line):
            if not (ours.exact and theirs.exact or _noisy(_with_origins(ours, theirs))):
                raise OutsideLanguage(self.program.name, line, "a comparison that rounding may decide", CURE)

    def compared(
        self, left: nodes.Expression, right: nodes.Expression, known: Known, line: int
    ) -> list[tuple[ValueKind, ValueKind]]:
        """What the sides may be: two whole numbers of Python's, or numbers that a double can be compared with."""
        pairs = list(product(self.values(left, known, line), self.values(right, known, line)))
        if any(max(ours.bits, theirs.bits) > COMPARED and not (ours.whole and theirs.whole) for ours, theirs in pairs):
            what = "a comparison with a whole number beyond the largest double"
            raise OutsideLanguage(self.program.name, line, what, "give common numbers")
        return pairs


def _noisy(kind: ValueKind) -> bool:
    """Whether noise is surely left in a value: a draw of this answer's, or all the noise of one variable."""
    fresh = any(not name.startswith("head:") for name in kind.once) and UNKNOWN not in kind.more
    alone = len(kind.once) == 1 and all(name.startswith(DATA) for name in kind.more)
    return kind.size <= WIDEST and (fresh or alone)


def _with_origins(left: ValueKind, right: ValueKind, size: int = 0, bits: float = 0.0) -> ValueKind:
    """What comes of two values; what stands in both may cancel, and take with it what was rounded in its size."""
    ours, theirs = left.once | left.more, right.once | right.more
    once = (left.once | right.once) - (ours & theirs)
    more = (ours | theirs) - once
    size = max(size, left.size, right.size)
    return ValueKind(False, once=once, more=more | {UNKNOWN} if ours & theirs else more, size=size, bits=bits)


def _combined(
    operation: nodes.Operation,
    left: nodes.Expression,
    right: nodes.Expression,
    ours: ValueKind,
    theirs: ValueKind,
    grows: bool,
) -> ValueKind:
    adds = operation in ("+", "-")
    if adds and left == ZERO:
        return replace(theirs, step=False)
    small = adds and ours.small and theirs.small and (ours.step or theirs.step)
    twice = grows and not small
    if ours.more or theirs.more:  # "data:..." is what data left in a variable
        twice = all(any(":" in each for each in side.more) for side in (ours, theirs))
    bits = max(ours.bits, theirs.bits) + (adds and twice)  # a sum of what does not grow with it grows slowly
    if operation == "*":
        bits = ours.bits + theirs.bits
    if operation == "/" or DOUBLE in (ours.bits, theirs.bits):
        bits = DOUBLE
    origins = _with_origins(ours, theirs, 0 if adds else ours.size + theirs.size, bits)
    factor = {"*": (left, right), "/": (right,)}.get(operation, ())
    if not adds and not any(isinstance(each, nodes.Number) and each.value for each in factor):
        origins = replace(origins, once=frozenset(), more=origins.once | origins.more)
    huge = ours.huge or theirs.huge
    if origins.once or origins.more:
        return replace(origins, more=origins.more | {UNKNOWN}) if adds and huge else origins
    whole = ours.whole and theirs.whole and operation != "/"
    doubled = min(max(ours.doubled, theirs.doubled) + (adds and twice and bits == DOUBLE), LARGEST.bit_length())
    huge = huge or LARGEST.bit_length() <= (doubled if adds else origins.size)
    return ValueKind(whole or small, whole, small, huge=huge, size=origins.size, bits=bits, doubled=doubled)


def _carried(known: Known) -> Known:
    """What variables hold at the next answer: the noise of each is one of its own there, and may cancel another's."""
    return {name: frozenset(_renamed(kind, name) for kind in values) for name, values in known.items()}


def _renamed(kind: ValueKind, name: str) -> ValueKind:
    private = any(each.startswith(DATA) for each in kind.more)
    plain = (kind.more & {UNKNOWN}) | ({f"{DATA}:{name}"} if private else set())
    if _noisy(kind):
        return replace(kind, once=frozenset((f"head:{name}",)), more=plain)
    noise = kind.once or any(not each.startswith(DATA) for each in kind.more - {UNKNOWN})
    return replace(kind, once=frozenset(), more=plain | {f"head:{name}"} if noise else plain)


def _either(one: Known, other: Known) -> Known:
    return {name: _few(one.get(name, frozenset()) | other.get(name, frozenset())) for name in {**one, **other}}


def _few(values: Values) -> Values:
    if len(values) > MOST:
        return frozenset((replace(ROUNDED, bits=max(math.inf if kind.bits >= 0 else DOUBLE for kind in values)),))
    unknown = any(replace(kind, bits=DOUBLE) == ROUNDED for kind in values)
    return frozenset((replace(ROUNDED, bits=max(kind.bits for kind in values)),)) if unknown else values


def _bits(value: Fraction) -> int:
    return int(abs(value)).bit_length() if abs(value) > 1 else 0
