"""Where mechanisms draw: generators and modules whose calls are recorded, and answered by a replay.

Every call gets its numbers from a stream of its own, named by the seed of the replay, the place in the code, and how
often that place has drawn: two datasets under one seed meet the same draws, however often either draws elsewhere. What
is drawn where nothing is recorded is noted in words.
"""

import functools
import hashlib
import os
import random
import secrets
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.recording.laws import CHOICE, LOCATED, ORDER, extreme
from dpaudit.running.contents import is_library

How = Literal["plain", "low", "high", "mixed"]
# Calls by the law that they draw from, with their parameters in order and the defaults of these; the rest say how many.
TABLE = """
laplace logistic gumbel normal gauss=normal normalvariate=normal normal_=normal cauchy_=cauchy: loc=0 scale=1
standard_normal=normal randn=normal randn_like=normal standard_cauchy=cauchy standard_exponential=exponential:
random=uniform random_sample=uniform rand=uniform rand_like=uniform:
uniform uniform_=uniform: low=0 high=1
exponential: scale=1
expovariate=exponential exponential_=exponential: rate=1
standard_t=t: df
gamma gammavariate=gamma: shape scale=1
standard_gamma=gamma: shape
geometric geometric_=geometric: p
discrete_laplace: p loc
binomial: n p
bernoulli=binomial: p
poisson: lam
integers randint=integers randint_=integers randrange=integers: low high
getrandbits=integers randbits=integers: bits
bytes=integers randbytes=integers urandom=integers: bytes
choice choices=choice: a
sample=order permutation=order permuted=order shuffle=order randperm=order:
"""
DEFAULTS = {"0": 0, "1": 1}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    name.partition("=")[0]: (
        name.rpartition("=")[2],
        {each.partition("=")[0]: DEFAULTS.get(each.partition("=")[2]) for each in parameters.split()},
    )
    for names, parameters in (line.split(":") for line in TABLE.strip().split("\n"))
    for name in names.split()
}
ALIASES = {"mu": "loc", "mean": "loc", "sigma": "scale", "std": "scale", "lambd": "rate", "a": "low", "b": "high"}
ALIASES |= {"alpha": "shape", "beta": "scale"}
UNDRAWN = {"bit_generator", "spawn", "seed", "get_state", "set_state", "getstate", "setstate", "VERSION"}
MOST_CHOICES = 1_000  # of which each has a probability of its own
MOST_VALUES = 100_000  # of a draw, that are kept
MOST_EXTREME = 24  # draws of a place that are extreme: loops that reject draws end
MOST_DRAWS = 100_000  # calls of one run; what draws more is not recorded further


@dataclass(frozen=True, slots=True, eq=False)
class NoiseDraw:
    """One call that drew: where, and by which law.

    `values` are numbers as the mechanism got them, float64[size] (of a choice: the place of what was chosen); `loc` and
    `scale` broadcast to them, `more` are further parameters of the law, which has none that we know where it is "".
    """

    key: str  # of the place in the code, which `place` tells people
    place: str
    call: str
    number: int  # of this call at this place
    law: str
    loc: Any
    scale: Any
    more: tuple[Any, ...]
    values: Reals
    shape: tuple[int, ...]
    ended: bool = True  # it was at an end of its law, where it was to be

    @property
    def coin(self) -> bool:
        """Whether it has two values, which are its ends, or one."""
        more = self.more
        if self.law == "integers":
            return len(more) == 2 and bool(np.all(np.asarray(more[1], float) - np.asarray(more[0], float) <= 2.0))
        if self.law == CHOICE:
            return bool(more) and int(np.count_nonzero(more[-1])) <= 2
        if self.law == "binomial":
            return len(more) < 2 or bool(np.all(np.equal(more[0], 1)))
        return self.law in LOCATED and bool(np.all(np.equal(self.scale, 0.0)))


@dataclass(slots=True)
class Tape:
    """The draws of one run, with a seed, and what it drew where nothing is recorded, in words."""

    seed: int
    how: How = "plain"
    draws: list[NoiseDraw] = field(default_factory=list)
    unseen: dict[str, None] = field(default_factory=dict)
    times: Counter[tuple[str, str]] = field(default_factory=Counter)
    thread: int = field(default_factory=threading.get_ident)
    inside: bool = False

    def stream(self, place: str, call: str, number: int) -> int:
        """The seed of one call."""
        named = f"{self.seed} {place} {call} {number}".encode()
        return int.from_bytes(hashlib.blake2b(named, digest_size=8).digest())

    @property
    def full(self) -> bool:
        """Whether no more is recorded."""
        return len(self.draws) >= MOST_DRAWS

    def miss(self, words: str) -> None:
        """Notes a source that is not recorded."""
        self.unseen[words] = None


HERE = "dpaudit.recording"
_TAPES: list[Tape] = []  # the run that is under way


def _place() -> tuple[str, str]:
    """Where the mechanism draws: a key that no other place has, and words: file and line of the user's code."""
    frame: Any = sys._getframe(1)
    while _name_of(frame).startswith(HERE):
        frame = frame.f_back
    key, words = f"{frame.f_code.co_filename}:{frame.f_lineno}", ""
    while frame is not None and not _name_of(frame).startswith(HERE):
        library = is_library(_name_of(frame), frame.f_code.co_filename)
        if not (words and library):
            words = f"{os.path.basename(frame.f_code.co_filename)}, line {frame.f_lineno}"
        if not library:
            break
        frame = frame.f_back
    return key, words


def _name_of(frame: Any) -> str:
    return str(frame.f_globals.get("__name__"))


def recorded(call: str, name: str, draw: Callable[[int], Any], like: Callable[[Any, Any], Any], *given: Any) -> Any:
    """What a recorded call returns: `draw` of the seed of its own stream; on an extreme replay, at an end of its law.

    `given` are the arguments and keywords of the call, `like` puts extreme numbers into the form of what was drawn.
    """
    tape = _TAPES[-1]
    tape.inside = True
    try:
        key, words = _place()
        number = tape.times[key, call]
        tape.times[key, call] += 1
        seed = tape.stream(key, call, number)
        value = draw(seed)
        law, loc, scale, more = ("", 0.0, 1.0, ())
        with suppress(ArithmeticError, LookupError, TypeError, ValueError):  # of arguments that no law has
            law, loc, scale, more = law_of(name, *given)
        numbers, ended = _numbers(value, law, given), tape.how == "plain"
        if not ended and numbers is not None and number < MOST_EXTREME:
            coins = GENUINE(np.random.SFC64(seed)).choice((-1.0, 1.0), np.shape(numbers))
            signs = np.full(np.shape(numbers), {"low": -1.0, "high": 1.0}[tape.how]) if tape.how != "mixed" else coins
            with suppress(ArithmeticError, LookupError, TypeError, ValueError):
                if (ends := extreme(law, loc, scale, more, signs, getattr(numbers, "dtype", float))) is not None:
                    value, ended = like(ends, value), True
                    numbers = ends if law == CHOICE else _numbers(value, law, given)
        if np.size(numbers) > MOST_VALUES:  # of so many none is understood
            numbers = None
        flat = np.zeros(0) if numbers is None else np.array(numbers, float).ravel()  # which may be changed in place
        shape = np.shape(numbers) if flat.size else ()
        tape.draws.append(NoiseDraw(key, words, call, number, law, loc, scale, more, flat, shape, ended))
        if tape.full:
            tape.miss(f"draws after the first {MOST_DRAWS:,}")
        return value
    finally:
        tape.inside = False


def listening() -> bool:
    """Whether a call of this thread is to be recorded now."""
    if not _TAPES or _TAPES[-1].inside or _TAPES[-1].full:
        return False
    if threading.get_ident() != _TAPES[-1].thread:
        _TAPES[-1].miss("threads, whose draws have no order")
        return False
    return True


def law_of(name: str, given: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[str, Any, Any, tuple[Any, ...]]:
    """Law, location, scale and further parameters of a call.

    >>> law_of("laplace", (2, 5), {})
    ('laplace', 2, 5, ())
    """
    law, usual = CALLS.get(name, ("", {}))
    values = {**usual, **dict(zip(usual, given, strict=False))}
    values |= {ALIASES.get(key, key): each for key, each in named.items() if ALIASES.get(key, key) in usual}
    if law in (CHOICE, ORDER, ""):
        return law, 0, 1, _weights(given, named) if law == CHOICE else ()
    if law == "integers" and "low" not in values:
        return law, 0, 1, (values.get("bits", 8),)  # or bytes, of eight
    if law == "integers":
        low, high = (0, values["low"]) if values["high"] is None else (values["low"], values["high"])
        if "step" in named or (name == "randrange" and len(given) > 2):
            return "", 0, 1, ()
        closed = named.get("endpoint") or name == "randint_" or (name == "integers" and given[4:5] == (True,))
        return law, 0, 1, (low, np.add(high, 1)[()] if closed else high)
    loc, scale = values.pop("loc", values.pop("low", 0)), values.pop("scale", 1)
    if "high" in values:
        scale = np.subtract(values.pop("high"), loc)[()]
    if "rate" in values:
        scale = 1 / values.pop("rate")
    return law, loc, scale, tuple(_plain(each) for each in values.values())


def _weights(given: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """How probable each of those is that may be chosen, where one is as likely again as before."""
    of, values = _among(given, named), {**dict(zip(("a", "size", "replace", "p"), given, strict=False)), **named}
    weights = values.get("weights", values.get("p"))
    if values.get("cum_weights") is not None or values.get("replace") is False or len(of) > MOST_CHOICES:
        return ()
    p = np.ones(len(of)) if weights is None else np.asarray(weights, float)
    return (tuple((p / p.sum()).tolist()),)


def _among(given: tuple[Any, ...], named: Mapping[str, Any]) -> Sequence[Any]:
    """What a call chooses from."""
    of = given[0] if given else named.get("a", named.get("population", named.get("seq", ())))
    return range(of) if isinstance(of, int | np.integer) else of if isinstance(of, Sequence) else list(of)


def _plain(value: Any) -> Any:
    with suppress(Exception):
        return value if isinstance(value, int | float) else np.asarray(value, float)
    return 0.0


def _numbers(value: Any, law: str, given: tuple[Any, ...]) -> Any:
    """What was drawn as numbers; None where it is none (what was chosen counts by its place)."""
    if isinstance(value, bytes):
        return np.frombuffer(value, np.uint8)
    if law == CHOICE:
        with suppress(Exception):
            of = list(_among(*given))
            return of.index(value) if np.ndim(value) == 0 else np.array([of.index(each) for each in value])
        return None
    with suppress(Exception):
        numbers = np.asarray(value.detach() if hasattr(value, "detach") else value)
        return numbers if numbers.dtype.kind in "biuf" else None
    return None


# --- numpy, random, secrets, os ----------------------------------------------------------------------------------


def like_drawn(ends: Any, value: Any) -> Any:
    """Extreme numbers in the form of what a call of numpy or of Python returned."""
    if isinstance(value, bytes):
        return bytes(np.asarray(ends, np.uint8))
    if isinstance(value, list):
        return np.asarray(ends).tolist()
    if np.ndim(value) == 0:
        return type(value)(ends)
    return np.asarray(ends).astype(np.asarray(value).dtype).reshape(np.shape(value))


class _AsGenuine(type):
    """The type of our generators: a genuine one is an instance of them too, for their names stand where its stood."""

    genuine: Any

    def __call__(cls, *given: Any, **named: Any) -> Any:
        inside = [(tape, tape.inside) for tape in _TAPES]
        for tape in _TAPES:  # what a new generator takes from the system is no draw of the mechanism
            tape.inside = True
        try:
            return super().__call__(*given, **named)
        finally:
            for tape, before in inside:
                tape.inside = before

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.genuine)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.genuine)


GENUINE, LEGACY = np.random.Generator, np.random.RandomState


def _drawing(base: Any) -> list[str]:
    """The methods of a class of generators that draw."""
    return [name for name in dir(base) if name[0] != "_" and name not in UNDRAWN]


def _method(base: Any, name: str, again: Callable[[int], Any], title: str) -> Callable[..., Any]:
    """A method that records, unless the mechanism has seeded its generator."""
    original = getattr(base, name)

    @functools.wraps(original)
    def call(self: Any, *given: Any, **named: Any) -> Any:
        if not listening():
            return original(self, *given, **named)
        if not getattr(self, "records", True):
            missed(own_seed())
            return original(self, *given, **named)
        like = functools.partial(_chosen, _among(given, named)) if name in ("choice", "choices") else like_drawn

        def draw(seed: int) -> Any:
            return getattr(again(seed), name)(*given, **named)

        told = given, named
        if name == "choices":  # whose second argument are weights
            told = (), {**dict(zip(("population", "weights"), given, strict=False)), **named}
        known = "randint_" if name == "randint" and base is not LEGACY else name  # which Python's reaches
        result = recorded(f"{title}.{name}", known, draw, like, *told)
        if named.get("out") is None:
            return result
        named["out"][...] = result
        return named["out"]

    return call


def _chosen(among: Sequence[Any], places: Any, value: Any) -> Any:
    """Those at some places, in the form of what was chosen."""
    if np.ndim(places) == 0:
        one = among[int(places)]
        return value.dtype.type(one) if isinstance(value, np.generic) else one
    chosen = [among[int(place)] for place in np.ravel(places)]
    return chosen if isinstance(value, list) else np.array(chosen, value.dtype).reshape(np.shape(value))


def own_seed(place: str = "") -> str:
    """The words for a generator that is not ours."""
    return f"a generator that the mechanism makes or seeds itself ({place or _place()[1]})"


def _own(of: Any) -> None:
    """Notes that the mechanism seeds a generator in this run; what that draws from now on is not recorded."""
    if _TAPES:
        missed(own_seed())
        of.records = False


def _generators() -> tuple[Any, Any]:
    """Classes of generators that record: numpy's own, and its legacy one."""

    def init(self: Any, bits: Any) -> None:
        GENUINE.__init__(self, bits)
        _own(self)

    def reduce(self: Any) -> Any:
        missed("a copy of its generator, which draws the same again")
        return (generator, (self.tape_seed,)) if self.records else GENUINE.__reduce__(self)

    def copied(self: Any, memo: Any) -> Any:
        make, given = reduce(self)[:2]
        return make(*given)

    def spawn(self: Any, n_children: int) -> list[Any]:
        if not self.records:
            return GENUINE.spawn(self, n_children)
        return [generator(self.tape_seed + number) for number in range(1, n_children + 1)]

    def init_legacy(self: Any, seed: Any = None) -> None:
        LEGACY.__init__(self, _TAPES[-1].seed if seed is None and _TAPES else seed)
        self.records = seed is None
        if seed is not None:
            _own(self)

    def set_to(how: str) -> Callable[..., None]:
        def call(self: Any, *given: Any, **named: Any) -> None:
            getattr(LEGACY, how)(self, *given, **named)
            _own(self)

        return call

    fresh, old = (lambda seed: GENUINE(np.random.SFC64(seed))), (lambda seed: LEGACY(np.random.MT19937(seed)))
    modern: dict[str, Any] = {name: _method(GENUINE, name, fresh, "Generator") for name in _drawing(GENUINE)}
    modern |= {"__init__": init, "__reduce__": reduce, "__deepcopy__": copied, "spawn": spawn}
    older: dict[str, Any] = {name: _method(LEGACY, name, old, "np.random") for name in _drawing(LEGACY)}
    older |= {"__init__": init_legacy, **{how: set_to(how) for how in ("seed", "set_state")}}
    own = {"records": False, "tape_seed": 0}
    one, other = (
        _AsGenuine(genuine.__name__, (genuine,), {**space, **own, "genuine": genuine, "__module__": genuine.__module__})
        for genuine, space in ((GENUINE, modern), (LEGACY, older))
    )
    return one, other


MODERN, OLDER = _generators()


def generator(seed: int) -> Any:
    """A generator that records; what bypasses its calls draws from a stream of the seed."""
    made = MODERN.__new__(MODERN)
    GENUINE.__init__(made, np.random.SFC64(seed))
    made.records, made.tape_seed = True, seed
    return made


def _default_rng(seed: Any = None, *, genuine: Any = np.random.default_rng) -> Any:
    if seed is None:
        return generator(_TAPES[-1].seed if _TAPES else 0)
    if not isinstance(seed, GENUINE):
        missed(own_seed())
    return genuine(seed)


class _PLAIN(random.Random):
    """The methods as they are before anything is recorded."""


for _name in _drawing(random.Random):
    setattr(_PLAIN, _name, getattr(random.Random, _name))


def _seeded(self: Any, *given: Any, genuine: Any = random.Random.seed, **named: Any) -> None:
    if type(self) is not _PLAIN and any(each is not None for each in (*given, *named.values())):
        _own(self)
    genuine(self, *given, **named)


def _set(self: Any, state: Any, *, genuine: Any = random.Random.setstate) -> None:
    genuine(self, state)
    _own(self)


def _urandom(size: int, *, original: Callable[[int], bytes] = os.urandom) -> bytes:
    if not listening():
        return original(size)
    return recorded("os.urandom", "urandom", lambda seed: _PLAIN(seed).randbytes(size), like_drawn, (size,), {})  # type: ignore[no-any-return]


def noting(what: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which notes that it was called."""

    @functools.wraps(original)
    def call(*given: Any, **named: Any) -> Any:
        missed(what)
        return original(*given, **named)

    return call


@contextmanager
def taped(seed: int, how: How = "plain") -> Iterator[Tape]:
    """Records what is drawn inside, on a new tape, where sources are patched."""
    _TAPES.append(Tape(seed, how))
    try:
        yield _TAPES[-1]
    finally:
        _TAPES.pop()


def missed(words: str) -> None:
    """Notes a source that is not recorded, where a run is under way."""
    if _TAPES:
        _TAPES[-1].miss(words)


def standard() -> Iterator[tuple[Any, str, Any]]:
    """What stands where while runs are recorded, of numpy and of Python itself: (home, name, value)."""
    legacy, system = OLDER(), random.SystemRandom
    yield from ((np.random, "Generator", MODERN), (np.random, "RandomState", OLDER))
    yield from ((np.random, "default_rng", _default_rng), (np.random.mtrand, "_rand", legacy))
    yield from ((np.random, name, getattr(legacy, name)) for name in (*_drawing(LEGACY), "seed", "set_state"))
    yield from ((random.Random, name, _method(random.Random, name, _PLAIN, "random")) for name in _drawing(_PLAIN))
    yield from (
        (system, name, _method(system, name, _PLAIN, "secrets")) for name in ("random", "getrandbits", "randbytes")
    )
    yield from ((np.random.mtrand, "RandomState", OLDER), (random.Random, "setstate", _set))
    yield from ((random.Random, "seed", _seeded), (random, "_urandom", _urandom), (os, "urandom", _urandom))
    yield threading.Thread, "start", noting("threads, whose draws have no order", threading.Thread.start)
    yield subprocess.Popen, "__init__", noting("a program that it starts", subprocess.Popen.__init__)
    if hasattr(os, "fork"):
        yield os, "fork", noting("a process that it forks", os.fork)


def bound() -> Iterator[tuple[Any, str, Any]]:
    """Functions of `random` and `secrets`, which are methods of one generator: as these are now."""
    for home, holder in ((random, random._inst), (secrets, secrets._sysrand)):  # type: ignore[attr-defined]
        for name, value in list(vars(home).items()):
            if getattr(value, "__self__", None) is holder:
                yield home, name, getattr(holder, value.__name__)
