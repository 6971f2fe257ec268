"""The code itself followed on a pair of datasets: what it draws stays open, and each way through it is a path.

In the place of the generator stands one whose draws of a finite law are picked in turn, as a replay does it, and whose
laplace, normal, exponential and gumbel give back sums of draws. They can be added, multiplied by numbers, compared and
given out; whatever else is done with them is refused. A comparison takes either way, each in a run of its own, and what
it needs is a constraint of the path. `max`, `min` and `float` are Python's for numbers; of sums one wins.

What was followed is a guess until numbers confirm it: of each path that draws can take, runs of the code are made on
numbers that take it, with all of Python's and numpy's own types, and must give out what the path gives out.

Sums are those of real numbers, and what the code computes of data alone are its own doubles: where numbers are so close
that rounding may part them, nothing is said.
"""

import builtins
import functools
import importlib
import math
from builtins import type  # the real one: while code runs there is another in its place
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from numbers import Number
from typing import Any, NoReturn

import numpy as np

from dpaudit.errors import DpAuditError, OutOfTime
from dpaudit.mechanisms.functions import PerRun
from dpaudit.running.guard import ended_at
from dpaudit.verify.deadline import left_s, time_over, within
from dpaudit.verify.language import nodes
from dpaudit.verify.language.facts import ORDERS
from dpaudit.verify.replay import no_other_randomness
from dpaudit.verify.replay.canonical import Raised
from dpaudit.verify.replay.choices import Again, Choices, Draws, PastRun
from dpaudit.verify.replay.faces import numpys, types_as_they_seem
from dpaudit.verify.replay.walk import Call, copier, outcome
from dpaudit.verify.witnesses.losses import flat
from dpaudit.verify.witnesses.outcomes import Balls, Outcomes, event_of
from dpaudit.verify.witnesses.outputs import OutputEvent, required, shape
from dpaudit.verify.witnesses.paths import ConcretePath
from dpaudit.verify.witnesses.states import (
    Noise,
    NoisySum,
    OutsideIntegrals,
    Released,
    compared,
    computed,
    exact,
    winners,
)

MOST_RUNS, MOST_STEPS = 600, 60_000  # of one dataset; steps are draws and choices of all its runs
AGAIN = 24  # runs on numbers, of all paths together, and one of each at least
LONGEST_S = 30.0  # for both datasets: code that draws nothing may never end
CLOSE = 1e-9  # relative: numbers that rounding may part
MOST_FACTORS = 4_000_000  # of the draws of a path, in all that it needs
TRIED = 64  # draws that may take a path, and as many wide ones, before it is asked which do
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

    def __init__(self, noisy: NoisySum, run: "_Followed") -> None:
        self.noisy, self.run = noisy, run

    def __neg__(self) -> Any:
        return self.run.computed("-", ZERO, self.noisy)

    def __abs__(self) -> Any:
        return self if self.run.compared(">=", self.noisy, ZERO) else -self

    def __bool__(self) -> bool:
        return self.noisy != ZERO

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.run.unused(name)


def _operator(word: Any, swapped: bool) -> Callable[[Sum, Any], Any]:
    def method(one: Sum, other: Any) -> Any:
        run, noisy = one.run, one.run.noisy(other)
        if noisy is None and type(other) in (FLOAT, np.float64) and word in ORDERS:  # infinity, or no number
            return ORDERS[word](0.0, other)
        if noisy is None and isinstance(other, Number | np.generic | Sum):
            raise run.refuse(f"a noisy number beside one of the type {type(other).__name__}")
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
for _name in (*ELSE.split(), "pos", "copy", "deepcopy", "repr", "str", "format", "hash", "reduce_ex"):
    setattr(Sum, f"__{_name}__", _refused(_name))


class _Laws(Draws):
    """A generator that has the laws of `DRAWS` beside the finite ones; each draw is `drawn(law, scale, loc)`."""

    dtype: type = object  # of arrays of draws
    drawn: Callable[[Any, Any, Any], Any]

    def filled(self, name: str, *given: Any, **named: Any) -> Any:
        places = dict(zip(DRAWS[name], given, strict=False))
        if len(given) > len(DRAWS[name]) or not named.keys() <= set(DRAWS[name]) - places.keys():
            raise self.refuse(f"rng.{name} is followed with {', '.join(DRAWS[name])} alone")
        values = {"loc": 0.0, "scale": 1.0, "size": None, **places, **named}
        law, size = name.removeprefix("standard_"), values["size"]
        if size is None and np.ndim(values["scale"]) == np.ndim(values["loc"]) == 0:
            return self.drawn(law, values["scale"], values["loc"])
        asked = {**places, **named}
        numpys(name, (), {part: np.zeros(np.shape(each)) if part == "loc" else each for part, each in asked.items()})
        parts = [np.asarray(values[part], object) for part in ("scale", "loc")]
        filled = np.empty(np.broadcast_shapes(*(each.shape for each in parts)) if size is None else size, object)
        scales, locs = (np.broadcast_to(each, filled.shape) for each in parts)
        for place in np.ndindex(filled.shape):
            filled[place] = self.drawn(law, scales[place], locs[place])
        return filled.astype(self.dtype)


for _name in DRAWS:
    setattr(_Laws, _name, functools.partialmethod(_Laws.filled, _name))


class _Ways(tuple[int, ...]):
    """What is picked where noise decides: one of some ways, which are no more likely than they are."""


class _Followed(_Laws, Choices):
    """One run after the other of the code: the draws of the present one, and what its choices need."""

    def __init__(self) -> None:
        super().__init__(MOST_RUNS)
        self.steps, self.contests = 0, dict[Any, dict[int, list[NoisySum]]]()

    def begin(self) -> None:
        super().begin()
        self.draws, self.constraints, self.known = list[Noise](), list[NoisySum](), set[NoisySum]()

    def step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise self.refuse(f"the code draws or chooses by noise more than {MOST_STEPS:,} times")

    def way(self, ways: Sequence[Any]) -> Any:
        """Which of some ways is taken here."""
        self.step()
        return ways[self.pick(_Ways((1,) * len(ways)))]

    def path(self, output: Any) -> ConcretePath:
        """The run that has just ended."""
        weight = Fraction(*self.mass()) * math.prod(len(key) for key in self._keys if isinstance(key, _Ways))
        released = (_given_out(output, self),)
        return ConcretePath(tuple(self.draws), tuple(self.constraints), released, weight)

    def unused(self, name: str) -> Exception:
        return self.refuse(f"a noisy number can be added, scaled, compared and given out, not used by `{name}`")

    def noisy(self, value: Any) -> NoisySum | None:
        """A sum of this run or a finite number as a sum; None for anything else."""
        if type(value) is Sum:
            return value.noisy if value.run is self else None
        if isinstance(value, np.float64 | np.integer | np.bool_):
            value = value.item()
        if type(value) in (int, bool) or type(value) is FLOAT and math.isfinite(value):
            return NoisySum(Fraction(value), python=value)
        return None

    def drawn(self, law: Any, scale: Any, loc: Any) -> Any:
        self.step()
        wide = self.noisy(scale)
        if wide is None or wide.terms or math.copysign(1.0, float(scale)) < 0.0 or self.noisy(loc) is None:
            raise self.refuse(f"a draw of rng.{law} whose scale is no number of at least 0, or whose loc is none")
        if wide.constant == 0:
            return loc if type(loc) is Sum else FLOAT(loc)
        self.draws.append(Noise(law, wide.constant, 0))
        noise = Sum(NoisySum.draw(len(self.draws) - 1), self)
        return noise if type(loc) is FLOAT and loc == 0.0 else noise + loc

    def told(self, step: Callable[..., Any], *given: Any) -> Any:
        """What a step of numbers gives; what it refuses, the run does."""
        try:
            return step(*given)
        except OutsideIntegrals as error:
            raise self.refuse(str(error)) from None

    def computed(self, word: Any, left: NoisySum, right: NoisySum) -> Sum:
        if word == "*" and ZERO in (left, right):
            return Sum(ZERO, self)  # of a sign that the noise has
        return Sum(self.told(exact, self.told(computed, word, left, right, self.draws, None), None), self)

    def compared(self, word: Any, left: NoisySum, right: NoisySum) -> bool:
        ways = self.told(compared, word, left, right, None)
        for truth, needs in ways:
            if len(ways) == 1 or needs[0] in self.known:
                return bool(truth)
        truth, needs = self.way(ways)
        self._need(needs[0])
        return bool(truth)

    def _need(self, positive: NoisySum) -> None:
        if positive not in self.known:
            self.constraints.append(positive)
            self.known.add(positive)

    def winner(self, numbers: Sequence[NoisySum], sign: int) -> int:
        """Which of several numbers is the largest, or the smallest: each that can be, in a run of its own."""
        contest = sign, *numbers
        if contest not in self.contests:
            self.contests[contest] = self.told(winners, numbers, sign, True)
        can = self.contests[contest]
        chosen = next((here for here, needs in can.items() if self.known.issuperset(needs)), None)
        chosen = self.way(list(can)) if chosen is None else chosen
        for each in can[chosen]:
            self._need(each)
        return chosen


class _OnNumbers(_Laws, Again):
    """One generator for many runs with numbers, as an audit has it: each makes the picks of a past run again."""

    dtype = FLOAT

    def __init__(self) -> None:
        super().__init__(PastRun((), (), None), last=False)

    def begin(self, past: PastRun, numbers: Iterable[float], *, last: bool) -> None:
        """Before a run; `numbers` are its draws, in units of their scales."""
        seen, picked = self.face, tuple(each for each in past.picked if not isinstance(each[0], _Ways))
        super().__init__(replace(past, picked=picked), last=last)
        self.face, self.numbers, self.draws, self.values = seen, iter(numbers), list[Noise](), list[Fraction]()

    def drawn(self, law: Any, scale: Any, loc: Any) -> Any:
        if not scale:
            return FLOAT(loc)
        self.draws.append(Noise(law, Fraction(FLOAT(scale)), 0))
        self.values.append(Fraction(FLOAT(scale) * next(self.numbers, 1.0)))
        return FLOAT(loc) + FLOAT(self.values[-1])


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


def _given_out(value: Any, run: _Followed) -> Released:
    """An output as what a path gives out; containers are told apart by their kind. Raises `OutsideIntegrals`."""
    value = value.item() if isinstance(value, np.generic) else value
    kind = type(value)
    if kind is np.ndarray:
        return nodes.Symbol("array"), _given_out(value.tolist(), run)
    if kind is dict:
        items = sorted(value.items(), key=lambda item: repr(item[0]))
        return nodes.Symbol("dict"), *((_given_out(key, run), _given_out(each, run)) for key, each in items)
    if kind is list or issubclass(kind, tuple) and not hasattr(value, "__dict__"):
        return nodes.Symbol(kind.__name__), *(_given_out(each, run) for each in value)
    if kind in (str, bool, type(None)):
        return nodes.Symbol(repr(value))
    noisy = run.noisy(value)
    if noisy is None and kind is not FLOAT:
        raise OutsideIntegrals(f"an output that is a {kind.__name__}")
    return nodes.Symbol(repr(value)) if noisy is None else noisy


def _kinds(value: Any) -> Any:
    """The types in an output, the order of its keys, and the shapes of its arrays."""
    if isinstance(value, np.ndarray | np.generic):
        inside = value.ravel().tolist() if value.dtype.hasobject else ()
        return type(value), value.dtype, value.shape, *map(_kinds, inside)
    if isinstance(value, dict):
        return type(value), *((repr(key), _kinds(each)) for key, each in value.items())
    return (type(value), *map(_kinds, value)) if isinstance(value, tuple | list) else type(value)


def followed(
    function: Callable[..., Any], first: Any, second: Any, parameters: Mapping[str, Any], name: str = "the code"
) -> tuple[Outcomes, Outcomes]:
    """What a function gives out on either dataset. Raises `OutsideIntegrals` for what is not followed."""
    call, balls, true = PerRun(function, dict(parameters)).open().call, Balls(), list[np.random.Generator]()
    try:
        with within(LONGEST_S), no_other_randomness(true), types_as_they_seem(), ended_at(time_over()):
            codes = [_Code(call, copier(data)) for data in (first, second)]
            ours, theirs = (_outcomes(name, each.paths(), balls) for each in codes)
            true.append(np.random.default_rng(AGAIN))
            for each in codes:  # once more, as what is kept or used up by then may change what it does
                each.confirm(1)
                each.compare(true[0])
        _check_apart(ours, theirs)
    except OverflowError:
        raise OutsideIntegrals("noisy numbers beyond doubles") from None
    except OutOfTime:
        left_s()
        raise OutsideIntegrals(f"the code does not come to an end in {LONGEST_S:g} seconds") from None
    return ours, theirs


class _Code:
    """Code on a dataset, of which `fresh` makes copies."""

    def __init__(self, call: Call, fresh: Callable[[], Any]) -> None:
        self.call, self.fresh, self.run, self.again = call, fresh, _Followed(), _OnNumbers()
        self.found = list[tuple[ConcretePath, PastRun]]()

    def paths(self) -> list[ConcretePath]:
        """All its paths, confirmed."""
        run, found = self.run, self.found
        while len(found) < MOST_RUNS:
            run.begin()
            with _words(OURS):
                output = self.ended(run)
            found.append((run.path(output), run.record(None)))
            if not run.advance():
                break
        else:
            raise OutsideIntegrals(f"the code takes more than {MOST_RUNS} ways")
        run.close()
        if run.idealised:
            raise OutsideIntegrals("rng.binomial is not followed, as numpy rounds its law")
        return self.confirm(-(-AGAIN // len(found)))

    def confirm(self, times: int) -> list[ConcretePath]:
        """Its paths, each confirmed so often."""
        rng = np.random.default_rng(times)
        self.found = [(self.confirmed(path, past, times, rng), past) for path, past in self.found]
        return [path for path, _ in self.found]

    def compare(self, rng: np.random.Generator) -> None:
        """Raises `OutsideIntegrals` where a run with a true generator gives out what no path does."""
        known = [(path.kinds, shape(path.outputs)) for path, _ in self.found]
        for _ in range(AGAIN):
            output = self.ended(rng)
            given, kinds = (_given_out(output, self.run),), _kinds(output)
            if not any(kinds == each and required(given, pattern) is not None for each, pattern in known):
                raise OutsideIntegrals(DIFFERS)

    def ended(self, behind: Any) -> Any:
        """What a run gives back, with a generator or what stands behind one."""
        left_s()
        source = behind if isinstance(behind, Draws) else None
        try:
            output = outcome(self.call, self.fresh(), getattr(behind, "face", behind), source, lambda given: given)
            if source is not None:
                behind.end()
        except DpAuditError as error:
            raise error if isinstance(error, OutOfTime) else OutsideIntegrals(str(error)) from None
        if type(output) is Raised:
            raise OutsideIntegrals(f"it {output!r}")
        return output

    def confirmed(self, path: ConcretePath, past: PastRun, times: int, rng: np.random.Generator) -> ConcretePath:
        """The path with the types of what it gives out, and zeros of its sign, from runs on numbers that take it."""
        inside, again = _inside(path), self.again
        for time in range(times if inside else 0):
            middle, room = inside or ([], 0.0)
            numbers = middle + room * rng.uniform(-1.0, 1.0, len(middle))
            again.begin(past, numbers.tolist(), last=time % 2 == 1)
            output = self.ended(again)
            if path.draws != tuple(again.draws) or not all(_at(each, again.values) > 0 for each in path.constraints):
                raise OutsideIntegrals(DIFFERS)
            given = _alike((_given_out(output, self.run),), path.outputs, again.values)
            if self.run.error or path.kinds not in (None, _kinds(output)):
                raise OutsideIntegrals(DIFFERS)
            path = replace(path, outputs=given, kinds=_kinds(output))
        return path


def _at(noisy: NoisySum, drawn: Sequence[Fraction]) -> Fraction:
    return noisy.constant + sum((factor * drawn[draw] for draw, factor in noisy.terms), Fraction(0))


def _alike(given: Any, path: Any, drawn: Sequence[Fraction]) -> Any:
    """What a path gives out, numbers without noise as a run gave them; raises where that gave something else."""
    if isinstance(given, tuple) and isinstance(path, tuple) and len(given) == len(path):
        return tuple(_alike(*both, drawn) for both in zip(given, path, strict=True))
    if isinstance(given, NoisySum) and isinstance(path, NoisySum) and path.terms:
        size = abs(path.constant) + sum(abs(factor * drawn[draw]) for draw, factor in path.terms)
        if given.is_number and abs(given.constant - _at(path, drawn)) <= Fraction(CLOSE) * size:
            return path
    elif given == path:
        return path if path == ZERO and path.python is None else given
    raise OutsideIntegrals(DIFFERS)


def _inside(path: ConcretePath) -> tuple[Any, float] | None:
    """Draws that take a path, in units of their scales, and how far each may move; None where no draws take it.

    Raises `OutsideIntegrals` where rounding may decide.
    """
    from scipy.optimize import linprog

    above = [place for place, each in enumerate(path.draws) if each.law == "exponential"]
    needs, count = (*path.constraints, *map(NoisySum.draw, above)), len(path.draws)
    if len(needs) * count > MOST_FACTORS:
        raise OutsideIntegrals("too many draws are compared in one run")
    factors, constants = np.zeros((len(needs), count)), np.array([FLOAT(each.constant) for each in needs])
    for row, need in enumerate(needs):
        for draw, factor in need.terms:
            factors[row, draw] = factor * path.draws[draw].scale
    sizes = np.abs(factors).sum(1, keepdims=True)
    tried = np.random.default_rng(0).laplace(0.0, [[1.0]] * TRIED + [[8.0]] * TRIED, (2 * TRIED, count))
    tried[:, above] = np.abs(tried[:, above])
    rooms = ((constants + tried @ factors.T) / sizes.T).min(1, initial=1.0)
    place = rooms.argmax()
    if rooms[place] > NARROW:
        return tried[place], rooms[place] * (1.0 - NARROW)
    goal, free = np.append(np.zeros(count), -1.0), [(None, None)] * count
    solve: Any = linprog
    found = solve(
        goal, np.hstack([-factors, sizes]), constants, bounds=[*free, (None, 1.0)], options={"time_limit": left_s()}
    )
    if found.status == 0 and found.x[-1] > NARROW:
        return found.x[:-1], found.x[-1] * (1.0 - NARROW)
    if found.status != 0 or found.x[-1] > -NARROW and event_of([path]):
        raise OutsideIntegrals("a way so narrow that rounding may decide whether it is taken")
    return None


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
    for values in (*plain.values(), *met.values()):
        numbers: list[Fraction] = sorted(values)
        if any(two - one <= Fraction(CLOSE) * max(Fraction(1), abs(one), abs(two)) for one, two in pairwise(numbers)):
            raise OutsideIntegrals("numbers so close that only rounding may part them decide")


def _met(met: dict[tuple[Any, ...], set[Fraction]], path: tuple[int, int], noisy: NoisySum) -> None:
    factor = noisy.terms[0][1]
    terms = tuple((draw, each / factor) for draw, each in noisy.terms)
    met.setdefault((*path, terms), set()).add(noisy.constant / factor)
