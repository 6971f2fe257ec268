"""The code itself followed on a pair of datasets: what it draws stays open, and each way through it is a path.

In the place of the generator stands one whose laplace, normal, exponential and gumbel give back sums of draws. They can
be added, multiplied by numbers, compared and given out; whatever else is done with them is refused. A comparison takes
either way, each in a run of its own, and what it needs is a constraint of the path. `max`, `min` and `float` are
Python's for numbers; of sums one wins.

What was followed is a guess until numbers confirm it: of each path that draws can take, one run of the code is made on
numbers that take it, with all of Python's and numpy's own types, and must give out what the path gives out.

Sums are those of real numbers, and what the code computes of data alone are its own doubles: where numbers are so close
that rounding may part them, nothing is said.
"""

import builtins
import functools
import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from numbers import Number
from typing import Any, NoReturn

import numpy as np

from dpaudit.errors import OutOfTime
from dpaudit.mechanisms.functions import PerRun
from dpaudit.verify.deadline import left_s
from dpaudit.verify.language import nodes
from dpaudit.verify.language.facts import ORDERS
from dpaudit.verify.replay import no_other_randomness
from dpaudit.verify.replay.faces import face
from dpaudit.verify.replay.walk import Call, copier
from dpaudit.verify.witnesses.losses import flat
from dpaudit.verify.witnesses.outcomes import Balls, Outcomes, event_of
from dpaudit.verify.witnesses.outputs import OutputEvent, shape
from dpaudit.verify.witnesses.paths import ConcretePath
from dpaudit.verify.witnesses.states import Noise, NoisySum, OutsideIntegrals, Released, compared, computed, exact

MOST_RUNS, MOST_STEPS = 600, 60_000  # of one dataset; steps are draws and choices by noise, of all its runs
AGAIN = 24  # runs on random numbers, every other with draws eight times as large
CLOSE = 1e-9  # relative: numbers that rounding may part
NARROW = 1e-6  # of a scale: paths no wider than this may have no draws
DIFFERS = "a run on numbers does not do what was followed"
DRAWS = {
    **dict.fromkeys(("laplace", "normal", "gumbel"), ("loc", "scale", "size")),
    "exponential": ("scale", "size"),
    **dict.fromkeys(("standard_normal", "standard_exponential"), ("size",)),
}
FLOAT = float
ZERO = NoisySum(Fraction(0))


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

    def __copy__(self) -> "Sum":
        return self

    def __deepcopy__(self, memo: object) -> "Sum":
        return self

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.run.unused(name)


def _operator(word: Any, swapped: bool) -> Callable[[Sum, Any], Any]:
    def method(one: Sum, other: Any) -> Any:
        run, noisy = one.run, one.run.noisy(other)
        if noisy is None and isinstance(other, FLOAT) and word in ORDERS:  # infinity, or no number
            return ORDERS[word](0.0, other)
        if noisy is None and isinstance(other, Number | np.generic | Sum):
            raise run.refusal(f"a noisy number beside {type(other).__name__} {other}")
        if noisy is None:
            return NotImplemented
        left, right = (noisy, one.noisy) if swapped else (one.noisy, noisy)
        return run.compared(word, left, right) if word in ORDERS else run.computed(word, left, right)

    return method


def _refused(name: str) -> Callable[..., NoReturn]:
    def method(one: Sum, *_: Any) -> NoReturn:
        raise one.run.unused(name)

    return method


for _name, _word in {"add": "+", "sub": "-", "mul": "*", "truediv": "/"}.items():
    setattr(Sum, f"__{_name}__", _operator(_word, False))
    setattr(Sum, f"__r{_name}__", _operator(_word, True))
for _name, _word in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
    setattr(Sum, f"__{_name}__", _operator(_word, False))
ELSE = "float int complex index round trunc floor ceil pow rpow floordiv rfloordiv mod rmod divmod rdivmod"
for _name in (*ELSE.split(), "repr", "str", "format", "hash", "reduce_ex"):
    setattr(Sum, f"__{_name}__", _refused(_name))


@dataclass(slots=True)
class _Run:
    """One run of the code: the draws so far, what its choices need, and which way it goes at each choice."""

    ways: list[list[Any]] = field(default_factory=list)  # at each choice: what is asked, the ways, which is taken
    steps: Iterator[int] = field(default_factory=lambda: iter(range(MOST_STEPS)))  # that are left
    place: int = 0
    draws: list[Noise] = field(default_factory=list)
    constraints: list[NoisySum] = field(default_factory=list)
    known: set[NoisySum] = field(default_factory=set)  # what is positive
    error: OutsideIntegrals | None = None

    def refusal(self, what: str) -> OutsideIntegrals:
        """The error for what is not followed; it ends the run, even where the code catches it."""
        self.error = self.error or OutsideIntegrals(what)
        return self.error

    def unused(self, name: str) -> OutsideIntegrals:
        return self.refusal(f"a noisy number can be added, scaled, compared and given out, not used by `{name}`")

    def noisy(self, value: Any) -> NoisySum | None:
        """A sum of this run or a finite number as a sum; None for anything else."""
        if type(value) is Sum:
            return value.noisy if value.run is self else None
        if isinstance(value, np.float64 | np.integer | np.bool_):
            value = value.item()
        if type(value) in (int, bool) or type(value) is FLOAT and math.isfinite(value):
            return NoisySum(Fraction(value), python=value)
        return None

    def step(self) -> None:
        if next(self.steps, None) is None:
            raise self.refusal(f"the code draws or chooses by noise more than {MOST_STEPS:,} times")

    def choice(self, asked: Any, ways: Callable[[], Sequence[Any]]) -> Any:
        """Which of some ways is taken here."""
        self.step()
        if self.place == len(self.ways):
            self.ways.append([asked, ways(), 0])
        known, among, taken = self.ways[self.place]
        if known != asked:
            raise self.refusal("the code does not do the same again")
        self.place += 1
        return among[taken]

    def drawn(self, law: Any, scale: Any, loc: Any) -> Any:
        self.step()
        wide = self.noisy(scale)
        if wide is None or wide.terms or wide.constant < 0:
            raise self.refusal(f"a draw of rng.{law} whose scale is no number of at least 0")
        if wide.constant == 0:
            return loc + 0.0
        self.draws.append(Noise(law, wide.constant, 0))
        noise = Sum(NoisySum.draw(len(self.draws) - 1), self)
        return noise if type(loc) is FLOAT and loc == 0.0 else noise + loc

    def computed(self, word: Any, left: NoisySum, right: NoisySum) -> Sum:
        if word == "*" and ZERO in (left, right):
            return Sum(ZERO, self)  # of a sign that the noise has
        try:
            return Sum(exact(computed(word, left, right, self.draws, None), None), self)
        except OutsideIntegrals as error:
            raise self.refusal(str(error)) from None

    def compared(self, word: Any, left: NoisySum, right: NoisySum) -> bool:
        asked = word, left, right
        if self.place == len(self.ways) or self.ways[self.place][0] != asked:
            try:
                ways = compared(word, left, right, None)
            except OutsideIntegrals as error:
                raise self.refusal(str(error)) from None
            for truth, needs in ways:
                if len(ways) == 1 or needs[0] in self.known:
                    return truth
        truth, needs = self.choice(asked, lambda: ways)
        self._need(needs[0])
        return bool(truth)

    def _need(self, positive: NoisySum) -> None:
        self.constraints.append(positive)
        self.known.add(positive)

    def winner(self, numbers: Sequence[NoisySum], sign: int) -> int:
        """Which of several numbers is the largest, or the smallest: each that can be, in a run of its own."""
        apart = [[(one - other).times(Fraction(sign)) for other in numbers] for one in numbers]
        if any(
            each.is_number and each.constant and is_close(each.constant, ZERO.constant) for row in apart for each in row
        ):
            raise self.refusal("numbers so close that only rounding may part them decide")
        can = [
            here
            for here, row in enumerate(apart)
            if not any(each.is_number and (each.constant, there) < (0, here) for there, each in enumerate(row))
        ]
        needs = {here: [each for each in apart[here] if each.terms and each not in self.known] for here in can}
        chosen = can[0] if len(can) == 1 else next((here for here in can if not needs[here]), None)
        if chosen is None:
            chosen = self.choice((sign, *numbers), lambda: can)
        for each in needs[chosen]:
            self._need(each)
        return chosen


class _Generator:
    """Stands behind the generator: gives its draws by `drawn(law, scale, loc)`, one by one, arrays of a `dtype`."""

    def __init__(self, drawn: Callable[[str, Any, Any], Any], refuse: Callable[[str], Exception], dtype: type) -> None:
        self._drawn, self.refuse, self._dtype = drawn, refuse, dtype

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in DRAWS:
            raise self.refuse(f"rng.{name} is not followed: of the generator's draws {', '.join(DRAWS)} are")
        return functools.partial(self._filled, name)

    def _filled(self, name: str, *given: Any, **named: Any) -> Any:
        places = dict(zip(DRAWS[name], given, strict=False))
        if len(given) > len(DRAWS[name]) or not named.keys() <= set(DRAWS[name]) - places.keys():
            raise self.refuse(f"rng.{name} is followed with {', '.join(DRAWS[name])} alone")
        values = {"loc": 0.0, "scale": 1.0, "size": None, **places, **named}
        law, size = name.removeprefix("standard_"), values["size"]
        if size is None and np.ndim(values["scale"]) == np.ndim(values["loc"]) == 0:
            return self._drawn(law, values["scale"], values["loc"])
        parts = [np.asarray(values[part], object) for part in ("scale", "loc")]
        filled = np.empty(np.broadcast_shapes(*(each.shape for each in parts)) if size is None else size, object)
        scales, locs = (np.broadcast_to(each, filled.shape) for each in parts)
        for place in np.ndindex(filled.shape):
            filled[place] = self._drawn(law, scales[place], locs[place])
        return filled.astype(self._dtype)


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
        numbers = [] if run is None else [run.noisy(each) for each in keys]
        if run is not None and None not in numbers:
            return items[run.winner([each for each in numbers if each is not None], sign)]
        return items[own(range(len(items)), key=keys.__getitem__)] if items else own(items, **default)

    return found


def _with_own_words(own: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(own)
    def imported(*given: Any, **named: Any) -> Any:
        with _words(OWN):
            return own(*given, **named)

    return imported


@contextmanager
def _words(words: Sequence[Any]) -> Iterator[None]:
    """While the code is followed, `float`, `max` and `min` take sums; what it imports has Python's own."""
    before = [getattr(*place) for place in PLACES]
    try:
        for place, word in zip(PLACES, words, strict=True):
            setattr(*place, word)
        yield
    finally:
        for place, word in zip(PLACES, before, strict=True):
            setattr(*place, word)


PLACES: list[tuple[Any, str]] = [*((builtins, name) for name in ("float", "max", "min", "__import__"))]
PLACES += [(importlib, "import_module")]
OWN = [getattr(*place) for place in PLACES]
OURS = [_Float, _extreme(max, 1), _extreme(min, -1), *map(_with_own_words, OWN[3:])]


def _given_out(value: Any, run: _Run) -> Released:
    """An output as what a path gives out; containers are told apart by their kind. Raises `OutsideIntegrals`."""
    if isinstance(value, np.ndarray):
        return nodes.Symbol("array"), _given_out(value.tolist(), run)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        items = sorted(value.items(), key=lambda item: repr(item[0]))
        return nodes.Symbol("dict"), *((_given_out(key, run), _given_out(each, run)) for key, each in items)
    if isinstance(value, tuple | list):
        return nodes.Symbol(type(value).__name__), *(_given_out(each, run) for each in value)
    if isinstance(value, str) or value is None or type(value) is bool:
        return nodes.Symbol(repr(value))
    noisy = run.noisy(value)
    if noisy is None and type(value) is not FLOAT:
        raise OutsideIntegrals(f"an output that is a {type(value).__name__}")
    return nodes.Symbol(repr(value)) if noisy is None else noisy


def _kinds(value: Any) -> Any:
    """The types in an output, the order of its keys, and the shapes of its arrays."""
    if isinstance(value, np.ndarray):
        inside = value.ravel().tolist() if value.dtype.hasobject else ()
        return type(value), value.dtype, value.shape, *map(_kinds, inside)
    if isinstance(value, dict):
        return type(value), *((repr(key), _kinds(each)) for key, each in value.items())
    return (type(value), *map(_kinds, value)) if isinstance(value, tuple | list) else type(value)


def followed(
    function: Callable[..., Any], first: Any, second: Any, parameters: Mapping[str, Any], name: str = "the code"
) -> tuple[Outcomes, Outcomes]:
    """What a function gives out on either dataset. Raises `OutsideIntegrals` for what is not followed."""
    call, balls = PerRun(function, dict(parameters)).open().call, Balls()
    with no_other_randomness():
        pair = [_outcomes(name, _paths(call, copier(data)), balls) for data in (first, second)]
    ours, theirs = pair
    _check_apart(ours, theirs)
    return ours, theirs


def _paths(call: Call, fresh: Callable[[], Any]) -> list[ConcretePath]:
    """All paths on a dataset, of which `fresh` makes copies."""
    found, ways, steps = list[ConcretePath](), list[list[Any]](), iter(range(MOST_STEPS))
    while True:
        run = _Run(ways, steps)
        with _words(OURS):
            output = _ended(call, fresh, _Generator(run.drawn, run.refusal, object), run)
        if run.place < len(ways):
            raise OutsideIntegrals("the code does not do the same again")
        found.append(ConcretePath(tuple(run.draws), tuple(run.constraints), (_given_out(output, run),)))
        while ways and ways[-1][2] + 1 == len(ways[-1][1]):
            ways.pop()
        if not ways:
            break
        ways[-1][2] += 1
        if len(found) == MOST_RUNS:
            raise OutsideIntegrals(f"the code takes more than {MOST_RUNS} ways by noise")
    taken: dict[int, ConcretePath] = {}
    for number in range(AGAIN):
        place, path = _again(call, fresh, _at_random(number), found)
        taken[place] = path
    for place, path in enumerate(found):
        if place not in taken and (inside := _inside(path)) is not None:
            _, taken[place] = _again(call, fresh, _one_by_one(inside), [path])
    return [taken.get(place, path) for place, path in enumerate(found)]


def _at_random(seed: int) -> Callable[[str, float], float]:
    """Draws of any law, of every other seed wide ones."""
    rng, wide = np.random.default_rng(seed), 8.0 if seed % 2 else 1.0
    return lambda law, scale: wide * FLOAT(getattr(rng, law)(scale=scale))


def _one_by_one(numbers: Sequence[float]) -> Callable[[str, float], float]:
    left = iter(numbers)
    return lambda *_: next(left, 1.0)


def _ended(call: Call, fresh: Callable[[], Any], behind: Any, run: _Run) -> Any:
    """What a run gives back, with what stands behind its generator."""
    left_s()
    try:
        output = call(fresh(), face(behind))
    except (OutOfTime, KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        raise run.error or OutsideIntegrals(f"it raises {type(error).__name__}: {error}") from None
    if run.error is not None:
        raise run.error
    return output


def _on_numbers(
    call: Call, fresh: Callable[[], Any], number: Callable[[str, float], float]
) -> tuple[Any, tuple[Noise, ...], list[Fraction]]:
    """A run on numbers: what it gives back, the noise that it draws, and the draws."""
    draws, drawn, run = list[Noise](), list[Fraction](), _Run()

    def draw(law: Any, scale: Any, loc: Any) -> Any:
        if not scale:
            return loc + 0.0
        draws.append(Noise(law, Fraction(FLOAT(scale)), 0))
        drawn.append(Fraction(number(law, FLOAT(scale))))
        return loc + FLOAT(drawn[-1])

    return _ended(call, fresh, _Generator(draw, run.refusal, float), run), tuple(draws), drawn


def _again(
    call: Call, fresh: Callable[[], Any], number: Callable[[str, float], float], found: Sequence[ConcretePath]
) -> tuple[int, ConcretePath]:
    """A run on numbers: by place the path that it takes, with the types of what it gives out, and zeros of its sign.

    Raises `OutsideIntegrals` where it takes no one path, or gives out something else.
    """
    output, draws, drawn = _on_numbers(call, fresh, number)
    alike = (each for each in enumerate(found) if each[1].draws == draws)
    taken = [(place, path) for place, path in alike if all(_at(need, drawn) > 0 for need in path.constraints)]
    if len(taken) != 1:
        raise OutsideIntegrals(DIFFERS)
    place, path = taken[0]
    given = _confirmed((_given_out(output, _Run()),), path.outputs, drawn)
    return place, replace(path, outputs=given, kinds=_kinds(output))


def _at(noisy: NoisySum, drawn: Sequence[Fraction]) -> Fraction:
    return noisy.constant + sum((factor * drawn[draw] for draw, factor in noisy.terms), Fraction(0))


def _confirmed(given: Any, path: Any, drawn: Sequence[Fraction]) -> Any:
    """What a path gives out, numbers without noise as a run gave them; raises where that gave something else."""
    if isinstance(given, tuple) and isinstance(path, tuple) and len(given) == len(path):
        return tuple(_confirmed(*both, drawn) for both in zip(given, path, strict=True))
    if isinstance(given, NoisySum) and isinstance(path, NoisySum) and path.terms:
        size = abs(path.constant) + sum(abs(factor * drawn[draw]) for draw, factor in path.terms)
        if given.is_number and abs(given.constant - _at(path, drawn)) <= Fraction(CLOSE) * size:
            return path
    elif given == path:
        return path if path == ZERO and path.python is None else given
    raise OutsideIntegrals(DIFFERS)


def _inside(path: ConcretePath) -> list[float] | None:
    """Draws that take a path, as far from its edges as a scale; None where none do. Raises `OutsideIntegrals`."""
    from scipy.optimize import linprog

    scales = np.array([FLOAT(draw.scale) for draw in path.draws])
    factors = np.zeros((len(path.constraints), len(scales)))
    for row, each in enumerate(path.constraints):
        for draw, factor in each.terms:
            factors[row, draw] = factor * path.draws[draw].scale
    solve: Any = linprog
    found = solve(
        np.append(np.zeros(len(scales)), -1.0),
        np.column_stack([-factors, np.abs(factors).sum(1)]),
        [FLOAT(each.constant) for each in path.constraints],
        bounds=[*((NARROW if each.law == "exponential" else None, None) for each in path.draws), (None, 1.0)],
    )
    if found.status == 0 and found.x[-1] > NARROW:
        return [FLOAT(each) for each in scales * found.x[:-1]]
    if found.status != 0 or found.x[-1] > -NARROW and event_of([path]):
        raise OutsideIntegrals("a way so narrow that rounding may decide whether it is taken")
    return None


def is_close(one: Fraction, other: Fraction) -> bool:
    """Whether rounding may have parted two numbers."""
    return abs(one - other) <= Fraction(CLOSE) * max(Fraction(1), abs(one), abs(other))


def _outcomes(name: str, paths: Sequence[ConcretePath], balls: Balls) -> Outcomes:
    """What the paths give out. `answers`, near which outputs are looked at, are the numbers beside the noise."""
    centres = {each.constant for path in paths for each in flat(path.outputs) if isinstance(each, NoisySum)}
    program = nodes.Program(name, "", "", (), frozenset(), (), (), None, (), ())
    outcomes = Outcomes(program, sorted(centres)[:8] or [0], {}, balls)
    outcomes.__dict__["paths"] = tuple(paths)
    return outcomes


def _check_apart(ours: Outcomes, theirs: Outcomes) -> None:
    """Raises `OutsideIntegrals` where rounding may part numbers: of the datasets, or that one draw must meet.

    And where outputs that are the same here are of different types.
    """
    ends = {Fraction(0), *ours.answers, *theirs.answers}
    plain, met = dict[tuple[Any, ...], set[Fraction]](), dict[tuple[Any, ...], set[Fraction]]()
    kinds: dict[OutputEvent, Any] = {}
    for place, outcomes in enumerate((ours, theirs)):
        for number, path in enumerate(outcomes.paths):
            for each in (each for each in flat(path.outputs) if isinstance(each, NoisySum)):
                plain.setdefault((), set()).add(each.constant)
                for end in ends if each.terms else ():
                    _met(met, (place, number), each - NoisySum(end))
            for each in path.constraints:
                _met(met, (place, number), each)
            if path.kinds is not None and kinds.setdefault(shape(path.outputs), path.kinds) != path.kinds:
                raise OutsideIntegrals("outputs whose types differ, or the order of whose keys does")
    for numbers in map(sorted, (*plain.values(), *met.values())):
        if any(is_close(*pair) for pair in pairwise(numbers)):
            raise OutsideIntegrals("numbers so close that only rounding may part them decide")


def _met(met: dict[tuple[Any, ...], set[Fraction]], path: tuple[int, int], noisy: NoisySum) -> None:
    factor = noisy.terms[0][1]
    terms = tuple((draw, each / factor) for draw, each in noisy.terms)
    met.setdefault((*path, terms), set()).add(noisy.constant / factor)
