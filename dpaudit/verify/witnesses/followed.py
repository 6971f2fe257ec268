"""The code itself followed on a dataset: what it draws stays open, and each way through it is a path.

In the place of the generator stands one whose laplace, normal, exponential and gumbel give back sums of draws. They can
be added, multiplied by numbers, compared and given out; whatever else is done with them is refused. A comparison takes
either way, each in a run of its own, and what it needs is a constraint of the path. `max`, `min` and `float` are
Python's for numbers; of sums one wins. What was followed is held against runs of the code on numbers, some far out.

Sums are those of real numbers, and what the code computes of data alone are its own doubles: where numbers are so close
that rounding may part them, nothing is said.
"""

import builtins
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np

from dpaudit.errors import OutOfTime
from dpaudit.verify.deadline import left_s
from dpaudit.verify.language import nodes
from dpaudit.verify.replay import no_other_randomness
from dpaudit.verify.replay.faces import face
from dpaudit.verify.witnesses.losses import flat
from dpaudit.verify.witnesses.outcomes import Balls, Outcomes
from dpaudit.verify.witnesses.paths import ConcretePath
from dpaudit.verify.witnesses.states import (
    ConcreteRun,
    Noise,
    NoisySum,
    OutsideIntegrals,
    Released,
    evaluated,
    exact,
    splits,
)

MOST_RUNS, MOST_DRAWS = 600, 2_000  # of one dataset, of one run
AGAIN = 24  # runs on numbers, every other with draws eight times as large
CLOSE = 1e-9  # relative: numbers that rounding may part
DRAWS = {
    **dict.fromkeys(("laplace", "normal", "gumbel"), ("loc", "scale", "size")),
    "exponential": ("scale", "size"),
    **dict.fromkeys(("standard_normal", "standard_exponential"), ("size",)),
}
FLOAT = float


class Sum:
    """A number with draws in it; one that has any is 0 with probability 0."""

    __slots__ = ("noisy", "run")

    def __init__(self, noisy: NoisySum, run: "_Run") -> None:
        self.noisy, self.run = noisy, run

    def __neg__(self) -> Any:
        return self.run.computed("-", ZERO, self.noisy)

    def __pos__(self) -> "Sum":
        return self

    def __abs__(self) -> Any:
        return self if self.run.compared(">=", self.noisy, ZERO) else -self

    def __bool__(self) -> bool:
        return self.noisy != ZERO

    __hash__ = object.__hash__


def _operator(word: str, swapped: bool) -> Callable[[Sum, Any], Any]:
    def method(one: Sum, other: Any) -> Any:
        noisy = _noisy(other)
        if noisy is None:
            return NotImplemented
        left, right = (noisy, one.noisy) if swapped else (one.noisy, noisy)
        return one.run.computed(word, left, right) if word in "+-*/" else one.run.compared(word, left, right)

    return method


def _refused(name: str) -> Callable[..., NoReturn]:
    def method(one: Sum, *_: Any) -> NoReturn:
        raise one.run.refusal(f"a noisy number can be added, scaled, compared and given out, not used by `{name}`")

    return method


for _name, _word in {"add": "+", "sub": "-", "mul": "*", "truediv": "/"}.items():
    setattr(Sum, f"__{_name}__", _operator(_word, False))
    setattr(Sum, f"__r{_name}__", _operator(_word, True))
for _name, _word in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
    setattr(Sum, f"__{_name}__", _operator(_word, False))
ELSE = "float int index round trunc floor ceil pow rpow floordiv mod divmod repr str format"
for _name in ELSE.split():
    setattr(Sum, f"__{_name}__", _refused(_name))


def _noisy(value: Any) -> NoisySum | None:
    """A sum or a number as a sum; None for anything else."""
    if type(value) is Sum:
        return value.noisy
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) in (int, bool) or type(value) is FLOAT and math.isfinite(value):
        return NoisySum(Fraction(value), python=value)
    return None


@dataclass(slots=True)
class _Run:
    """One run of the code: the draws so far, what its choices need, and which way it goes at each choice."""

    ways: list[list[int]]  # at each place the way that is taken, and how many there are
    place: int = 0
    draws: list[Noise] = field(default_factory=list)
    constraints: list[NoisySum] = field(default_factory=list)
    known: dict[NoisySum, bool] = field(default_factory=dict)  # what is positive, or is not
    error: OutsideIntegrals | None = None

    def refusal(self, what: str) -> OutsideIntegrals:
        self.error = self.error or OutsideIntegrals(what)
        return self.error

    def choice(self, count: int) -> int:
        """Which of some ways is taken here."""
        if self.place == len(self.ways):
            self.ways.append([0, count])
        if self.place >= MOST_DRAWS:
            raise self.refusal(f"a run chooses by noise more than {MOST_DRAWS:,} times")
        self.place += 1
        return self.ways[self.place - 1][0]

    def drawn(self, law: Any, scale: Any, loc: Any) -> Any:
        wide = _noisy(scale)
        if wide is None or wide.terms or wide.constant < 0 or len(self.draws) >= MOST_DRAWS:
            raise self.refusal(f"a draw of rng.{law} whose scale is no number of at least 0")
        if wide.constant == 0:
            return loc
        self.draws.append(Noise(law, wide.constant, 0))
        return Sum(NoisySum.draw(len(self.draws) - 1), self) + loc

    def _state(self, left: NoisySum, right: NoisySum) -> ConcreteRun:
        return ConcreteRun((), {}, {"left": left, "right": right}, draws=tuple(self.draws))

    def computed(self, word: Any, left: NoisySum, right: NoisySum) -> Any:
        if word == "*" and ZERO in (left, right):
            return Sum(ZERO, self)  # of a sign that the noise has
        try:
            made = evaluated(nodes.Arithmetical(word, *SIDES), self._state(left, right), None)
            assert isinstance(made, NoisySum)
            return Sum(exact(made, None), self)
        except OutsideIntegrals as error:
            raise self.refusal(str(error)) from None

    def compared(self, word: Any, left: NoisySum, right: NoisySum) -> bool:
        try:
            ways = splits(nodes.Compared(word, *SIDES), self._state(left, right), None)
        except OutsideIntegrals as error:
            raise self.refusal(str(error)) from None
        for truth, needs in ways:
            if len(ways) == 1 or self.known.get(needs[0]):
                return truth
        truth, needs = ways[self.choice(len(ways))]
        self._need(needs[0])
        return truth

    def _need(self, positive: NoisySum) -> None:
        self.constraints.append(positive)
        self.known[positive] = True

    def winner(self, numbers: Sequence[NoisySum], sign: int) -> int:
        """Which of several numbers is the largest, or the smallest: each that can be, in a run of its own."""
        apart = [[(one - other).times(Fraction(sign)) for other in numbers] for one in numbers]
        can = [
            here
            for here, row in enumerate(apart)
            if not any(each.is_number and (each.constant, there) < (0, here) for there, each in enumerate(row))
        ]
        decided = (each for each in can if all(map(self.known.get, filter(_has_draws, apart[each]))))
        chosen = can[0] if len(can) == 1 else next(decided, None)
        chosen = can[self.choice(len(can))] if chosen is None else chosen
        for each in apart[chosen]:
            if each.terms and each not in self.known:
                self._need(each)
        return chosen


def _has_draws(noisy: NoisySum) -> bool:
    return bool(noisy.terms)


ZERO = NoisySum(Fraction(0))
SIDES = (nodes.Variable("left"), nodes.Variable("right"))


class _Generator:
    """Stands behind the generator: gives its draws by `drawn(law, scale, loc)`, one by one."""

    def __init__(self, drawn: Callable[[str, Any, Any], Any], refuse: Callable[[str], Exception]) -> None:
        self._drawn, self.refuse = drawn, refuse

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in DRAWS:
            raise self.refuse(f"rng.{name} is not followed: of the generator's draws {', '.join(DRAWS)} are")
        return functools.partial(self._filled, name)

    def _filled(self, name: str, *given: Any, **named: Any) -> Any:
        values = {"loc": 0.0, "scale": 1.0, "size": None, **dict(zip(DRAWS[name], given, strict=False)), **named}
        law, size = name.removeprefix("standard_"), values["size"]
        if size is None:
            return self._drawn(law, values["scale"], values["loc"])
        filled = np.empty(size, object)
        scales, locs = (np.broadcast_to(values[part], filled.shape) for part in ("scale", "loc"))
        for place in np.ndindex(filled.shape):
            filled[place] = self._drawn(law, scales[place], locs[place])
        return filled


class _OfFloat(type):
    def __call__(cls, *given: Any) -> Any:
        return given[0] if len(given) == 1 and type(given[0]) is Sum else FLOAT(*given)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, FLOAT) or type(value) is Sum


class _Float(float, metaclass=_OfFloat):
    """Python's float, which leaves a sum as it is."""

    dtype = np.dtype(float)  # for numpy, which asks a type that it does not know


def _extreme(own: Callable[..., Any], sign: int) -> Callable[..., Any]:
    def found(*given: Any, key: Any = None, **default: Any) -> Any:
        items = list(given[0]) if len(given) == 1 else list(given)
        keys = items if key is None else [key(item) for item in items]
        run = next((each.run for each in keys if type(each) is Sum), None)
        numbers = [_noisy(each) for each in keys]
        if run is None or None in numbers:
            return own(items, key=key, **default)
        return items[run.winner([each for each in numbers if each is not None], sign)]

    return found


@contextmanager
def _words() -> Iterator[None]:
    """While the code is followed, `float`, `max` and `min` take sums."""
    names: Any = builtins
    before = names.float, names.max, names.min
    names.float, names.max, names.min = _Float, _extreme(max, 1), _extreme(min, -1)
    try:
        yield
    finally:
        names.float, names.max, names.min = before


def _given_out(value: Any) -> Released:
    """An output as what a path gives out; containers are told apart by their type. Raises `OutsideIntegrals`."""
    if isinstance(value, np.ndarray):
        return nodes.Symbol("array"), _given_out(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return nodes.Symbol("dict"), *((_given_out(key), _given_out(each)) for key, each in sorted(value.items()))
    if isinstance(value, tuple | list):
        return nodes.Symbol(type(value).__name__), *map(_given_out, value)
    if isinstance(value, str) or value is None or type(value) is bool:
        return nodes.Symbol(repr(value))
    noisy = _noisy(value)
    if noisy is None and type(value) is not FLOAT:
        raise OutsideIntegrals(f"an output that is a {type(value).__name__}")
    return nodes.Symbol(repr(value)) if noisy is None else noisy


def followed(function: Callable[..., Any], data: Any, parameters: Mapping[str, Any]) -> tuple[ConcretePath, ...]:
    """All paths of a function on a dataset. Raises `OutsideIntegrals` for what is not followed."""
    found, ways = list[ConcretePath](), list[list[int]]()
    with no_other_randomness():
        while True:
            left_s()
            run = _Run(ways)
            with _words():
                output = _run(function, data, run.drawn, parameters, run)
            found.append(ConcretePath(tuple(run.draws), tuple(run.constraints), (_given_out(output),)))
            while ways and ways[-1][0] + 1 == ways[-1][1]:
                ways.pop()
            if not ways:
                break
            ways[-1][0] += 1
            if len(found) == MOST_RUNS:
                raise OutsideIntegrals(f"the code takes more than {MOST_RUNS} ways by noise")
        for number in range(AGAIN):
            _check_again(function, data, parameters, found, number)
    return tuple(found)


def _run(function: Callable[..., Any], data: Any, drawn: Any, parameters: Mapping[str, Any], run: _Run) -> Any:
    rng: Any = _Generator(drawn, run.refusal)
    try:
        output = function(data, face(rng), **parameters)
    except OutOfTime:
        raise
    except Exception as error:
        raise run.error or OutsideIntegrals(f"it raises {type(error).__name__}: {error}") from None
    if run.error is not None:
        raise run.error
    return output


def _check_again(
    function: Callable[..., Any], data: Any, parameters: Mapping[str, Any], found: Sequence[ConcretePath], number: int
) -> None:
    """Raises `OutsideIntegrals` where a run on numbers is not the one path that its draws lead to."""
    rng, drawn, draws = np.random.default_rng(number), list[Fraction](), list[Noise]()
    wide = 8.0 if number % 2 else 1.0

    def draw(law: Any, scale: Any, loc: Any) -> Any:
        if scale == 0:
            return loc
        draws.append(Noise(law, Fraction(scale), 0))
        drawn.append(Fraction(wide * getattr(rng, law)(scale=scale)))
        return loc + FLOAT(drawn[-1])

    run = _Run([])
    output = _given_out(_run(function, data, draw, parameters, run))
    short = (path for path in found if len(path.draws) <= len(drawn))
    taken = [path for path in short if all(_at(each, drawn) > 0 for each in path.constraints)]
    if len(taken) != 1 or taken[0].draws != tuple(draws) or not _alike((output,), taken[0].outputs, drawn):
        raise OutsideIntegrals("a run on numbers does not do what was followed")


def _at(noisy: NoisySum, drawn: Sequence[Fraction]) -> Fraction:
    return noisy.constant + sum((factor * drawn[draw] for draw, factor in noisy.terms), Fraction(0))


def _alike(output: Sequence[Released], path: Sequence[Released], drawn: Sequence[Fraction]) -> bool:
    ours, theirs = list(flat(output)), list(flat(path))
    return len(ours) == len(theirs) and all(
        is_close(one.constant, _at(other, drawn))
        if isinstance(one, NoisySum) and isinstance(other, NoisySum)
        else one == other
        for one, other in zip(ours, theirs, strict=True)
    )


def is_close(one: Fraction, other: Fraction) -> bool:
    """Whether rounding may have parted two numbers."""
    return abs(one - other) <= Fraction(CLOSE) * max(Fraction(1), abs(one), abs(other))


def outcomes_of(name: str, paths: Sequence[ConcretePath], balls: Balls) -> Outcomes:
    """What the paths give out. `answers`, near which outputs are looked at, are the numbers beside the noise."""
    centres = {each.constant for path in paths for each in flat(path.outputs) if isinstance(each, NoisySum)}
    program = nodes.Program(name, "", "", (), frozenset(), (), (), None, (), ())
    outcomes = Outcomes(program, sorted(centres)[:8] or [0], {}, balls)
    outcomes.__dict__["paths"] = tuple(paths)
    return outcomes


def check_rounding(ours: Outcomes, theirs: Outcomes) -> None:
    """Raises `OutsideIntegrals` where rounding may part numbers: of the datasets, or that one draw must meet."""
    ends = {Fraction(0), *ours.answers, *theirs.answers}
    plain, met = dict[tuple[Any, ...], set[Fraction]](), dict[tuple[Any, ...], set[Fraction]]()
    for place, outcomes in enumerate((ours, theirs)):
        for number, path in enumerate(outcomes.paths):
            for each in (each for each in flat(path.outputs) if isinstance(each, NoisySum)):
                plain.setdefault((), set()).add(each.constant)
                for end in ends if each.terms else ():
                    _met(met, (place, number), each - NoisySum(end))
            for each in path.constraints:
                _met(met, (place, number), each)
    for numbers in map(sorted, (*plain.values(), *met.values())):
        if any(is_close(*pair) for pair in pairwise(numbers)):
            raise OutsideIntegrals("numbers so close that only rounding may part them decide")


def _met(met: dict[tuple[Any, ...], set[Fraction]], path: tuple[int, int], noisy: NoisySum) -> None:
    factor = noisy.terms[0][1]
    terms = tuple((draw, each / factor) for draw, each in noisy.terms)
    met.setdefault((*path, terms), set()).add(noisy.constant / factor)
