"""The executor as a second reader: the syntax tree run on plain data, with draws that are written down beforehand.

What the first reader made of a program is run on the same data and draws; one difference and nothing is proved.
"""

import ast
import functools
import math
import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np

from dpaudit.errors import InvalidSpec
from dpaudit.verify.coupled.cases import LoopRules
from dpaudit.verify.coupled.executor import TreeExecutor
from dpaudit.verify.coupled.noise import ARGUMENTS, Rng
from dpaudit.verify.coupled.values import KnownArray
from dpaudit.verify.coupled.ways import NotShown, RaisedAlike
from dpaudit.verify.language.interpreter import run
from dpaudit.verify.language.nodes import Program
from dpaudit.verify.language.outline import OutsideLanguage
from dpaudit.verify.language.source import ReadSource

READINGS = 48  # runs in which both readers must agree
NEAR = 1e-9


class DrawTape(Rng):
    """A generator whose draws follow from a seed: halves from -4 to 4, from 0 and 1 upwards where the law is.

    The same calls give the same draws, to Python and to the executor; `array` makes the arrays of either. Scales are
    looked at but change nothing.

    >>> DrawTape(1).laplace(scale=2.0) == DrawTape(1).laplace(scale=5.0)
    True
    """

    def __init__(self, seed: int, array: Callable[[list[Any]], Any] = np.array) -> None:
        self.numbers, self.array = random.Random(seed), array

    def one(self, law: str) -> Any:
        """One draw."""
        if law in ("random", "uniform"):
            return self.numbers.randint(0, 15) / 16
        if law == "geometric":
            return self.numbers.randint(1, 6)
        return self.numbers.randint(0 if law in ("exponential", "standard_exponential") else -8, 8) / 2

    def draw(self, law: str, args: list[Any], kwargs: Mapping[str, Any]) -> Any:
        """What a method of the generator gives."""
        if law == "integers":
            low, high = (0, args[0]) if len(args) == 1 else args[:2]
            return self.numbers.randrange(low, high)
        if law == "choice":
            items = range(args[0]) if isinstance(args[0], int) else getattr(args[0], "items", args[0])
            return self.numbers.choice(items)
        if law not in ARGUMENTS:
            raise AttributeError(law)
        given = dict(zip(ARGUMENTS[law], args, strict=False)) | dict(kwargs)
        size, centre = given.get("size"), given.get("loc", 0)
        if not given.get("scale", given.get("p", 1)) > 0:
            raise ValueError("scale")
        if size is None:
            return centre + self.one(law)
        number = size if isinstance(size, int) else math.prod(size)
        noise = self.array([self.one(law) for _ in range(number)])
        return noise if isinstance(centre, int) and centre == 0 else centre + noise

    def __getattr__(self, law: str) -> Callable[..., Any]:
        if law not in ARGUMENTS and law not in ("integers", "choice"):
            raise AttributeError(law)
        return lambda *args, **kwargs: self.draw(law, list(args), kwargs)


class PlainRules(LoopRules):
    """Every loop turn by turn: a draw that was made cannot be made again."""

    def winner_loop(self, node: ast.For) -> bool:
        return False


def executed(source: ReadSource, arguments: Mapping[str, Any]) -> Any:
    """What the syntax tree returns on plain arguments; ("raised", name) where it raises. Raises `NotShown`."""
    run = TreeExecutor(source)
    run.rules = PlainRules(run)
    try:
        return as_plain(run.call_definition(source.definition, [], dict(arguments), None))
    except RaisedAlike as error:
        return "raised", str(error)


def as_plain(value: Any) -> Any:
    """Arrays and lists as tuples, dictionaries as their items, numbers of numpy's as Python's."""
    if isinstance(value, KnownArray):
        value = value.items
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        value = value.items()
    return tuple(map(as_plain, value)) if isinstance(value, list | tuple | type({}.items())) else value


def check_reading(
    source: ReadSource, program: Program, data: str, rng: str, parameters: Mapping[str, Fraction]
) -> None:
    """Raises `OutsideLanguage` where what was read of a program is not what its syntax tree does, in some run."""
    for seed in range(READINGS):
        numbers = random.Random(seed)
        answers = [Fraction(numbers.randint(-8, 8), 4) for _ in range(numbers.choice((1, 1, 2, 3, 5, 8)))]
        values = {
            name: int(value) if value.denominator == 1 and name in program.integers else float(value)
            for name, value in parameters.items()
        }
        given: Any = list(map(float, answers)) if program.loop is not None else float(answers[0])
        tape, other = DrawTape(seed, lambda items: KnownArray(list(items))), DrawTape(seed)
        try:
            theirs = executed(source, {data: given, rng: tape, **values})
            ours = as_plain(
                run(
                    program,
                    answers if program.loop is not None else answers[0],
                    parameters,
                    functools.partial(_drawn, other),
                )
            )
        except (NotShown, InvalidSpec) as error:
            raise OutsideLanguage(
                program.name, 1, f"what is executed otherwise ({error})", "write it in plainer Python"
            ) from None
        if not near(ours, theirs) and not near(ours, (theirs,)):  # a choice is read as a list with one output
            what = f"a program that reads as {ours!r} and executes as {theirs!r} on {given!r}"
            raise OutsideLanguage(program.name, 1, what, "write it in plainer Python, and report this")


def _drawn(tape: DrawTape, law: str, _: Any) -> Fraction:
    return Fraction(tape.one(law))


def near(one: Any, two: Any) -> bool:
    """Whether two outputs are equal but for rounding."""
    if isinstance(one, tuple) and isinstance(two, tuple):
        return len(one) == len(two) and all(map(near, one, two))
    if isinstance(one, bool) or isinstance(two, bool) or not (isinstance(one, Real) and isinstance(two, Real)):
        return type(one) is type(two) and bool(one == two)
    return abs(float(one) - float(two)) <= NEAR * max(1.0, abs(float(one)))
