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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.running.contents import is_library

How = Literal["plain", "low", "high", "mixed"]
ORDER, CHOICE = "an order", "choice"  # laws without a scale: of permutations, and of one of several
# Of each call: its law, and its parameters in their order, with their defaults; the rest say how many.
CALLS: dict[str, tuple[str, str]] = {
    **{name: (name, "loc=0 scale=1") for name in ("laplace", "normal", "gumbel", "logistic")},
    **dict.fromkeys(("standard_normal", "randn", "randn_like"), ("normal", "")),
    **dict.fromkeys(("gauss", "normalvariate"), ("normal", "loc=0 scale=1")),
    **dict.fromkeys(("normal_",), ("normal", "loc=0 scale=1")),
    **dict.fromkeys(("random", "random_sample", "rand", "rand_like"), ("uniform", "")),
    **dict.fromkeys(("uniform", "uniform_"), ("uniform", "low=0 high=1")),
    "exponential": ("exponential", "scale=1"),
    "standard_exponential": ("exponential", ""),
    **dict.fromkeys(("expovariate", "exponential_"), ("exponential", "rate=1")),
    "standard_cauchy": ("cauchy", ""),
    "cauchy_": ("cauchy", "loc=0 scale=1"),
    "standard_t": ("t", "df"),
    **dict.fromkeys(("gamma", "gammavariate"), ("gamma", "shape scale=1")),
    "standard_gamma": ("gamma", "shape"),
    "geometric": ("geometric", "p"),
    "geometric_": ("geometric", "p"),
    "binomial": ("binomial", "n p"),
    "poisson": ("poisson", "lam"),
    "bernoulli": ("binomial", "p"),
    **dict.fromkeys(("integers", "randint", "randrange"), ("integers", "low high=None")),
    **dict.fromkeys(("getrandbits", "randbits", "bytes", "randbytes", "urandom"), ("integers", "bits")),
    **dict.fromkeys(("choice", "choices", "sample"), (CHOICE, "a")),
    **dict.fromkeys(("permutation", "permuted", "shuffle", "randperm"), (ORDER, "")),
    **dict.fromkeys(("beta", "chisquare", "dirichlet", "f", "lognormal", "rayleigh", "triangular", "wald"), ("", "")),
    **dict.fromkeys(("hypergeometric", "logseries", "multinomial", "multivariate_hypergeometric"), ("", "")),
    **dict.fromkeys(("multivariate_normal", "negative_binomial", "noncentral_chisquare", "pareto"), ("", "")),
    **dict.fromkeys(("noncentral_f", "power", "vonmises", "weibull", "zipf", "random_integers", "tomaxint"), ("", "")),
    **dict.fromkeys(("betavariate", "lognormvariate", "paretovariate", "vonmisesvariate", "weibullvariate"), ("", "")),
}
ALIASES = {"mu": "loc", "mean": "loc", "sigma": "scale", "std": "scale", "lambd": "rate", "a": "low", "b": "high"}
NUMPYS = {name for name in CALLS if hasattr(np.random.Generator, name) or hasattr(np.random.RandomState, name)}
PYTHONS = {name for name in CALLS if hasattr(random.Random, name)}
TORCHS = ("randn", "rand", "randn_like", "rand_like", "normal", "bernoulli", "randint", "randperm")
TENSORS = ("normal_", "uniform_", "exponential_", "cauchy_", "geometric_")
JAXS = ("normal", "laplace", "uniform", "gumbel", "exponential", "logistic", "cauchy", "bernoulli", "randint")
JAXS += ("choice", "categorical", "permutation", "geometric", "gamma", "poisson", "bits")
OTHERS = {"opendp": "Rust", "pydp": "C++", "tensorflow_privacy": "TensorFlow", "tmlt.core": "Spark"}
FAR, NEAR = 37.0, 690.0  # scales of an extreme draw of a normal law and of the others: beyond 1e-299
MOST_DRAWS = 100_000  # calls of one run; what draws more is not recorded further


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """One call that drew: where, and by which law.

    `values` are numbers as the mechanism got them, float64[size] (of a choice: the place of what was chosen); `loc` and
    `scale` broadcast to them, `more` are further parameters of the law, which has none that we know where it is "".
    """

    place: str
    call: str
    number: int  # of this call at this place
    law: str
    loc: Any
    scale: Any
    more: tuple[Any, ...]
    values: Reals
    shape: tuple[int, ...]


@dataclass(slots=True)
class Tape:
    """The draws of one run, with a seed, and what it drew where nothing is recorded, in words."""

    seed: int
    how: How = "plain"
    draws: list[Draw] = field(default_factory=list)
    unseen: dict[str, None] = field(default_factory=dict)
    times: Counter[tuple[str, str]] = field(default_factory=Counter)
    thread: int = field(default_factory=threading.get_ident)
    inside: bool = False

    def stream(self, place: str, call: str, number: int) -> int:
        """The seed of one call."""
        named = f"{self.seed} {place} {call} {number}".encode()
        return int.from_bytes(hashlib.blake2b(named, digest_size=8).digest())

    def miss(self, words: str) -> None:
        """Notes a source that is not recorded."""
        self.unseen[words] = None


_TAPES: list[Tape] = []  # the run that is under way


def _place() -> tuple[str, str]:
    """Where the mechanism draws: a key that no other place has, and words: file and line of the user's code."""
    frame: Any = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("dpaudit.recording.sources"):
        frame = frame.f_back
    key, words = f"{frame.f_code.co_filename}:{frame.f_lineno}", ""
    while frame is not None:
        name, file = frame.f_globals.get("__name__", ""), frame.f_code.co_filename
        if name == "dpaudit.recording.replays":
            break
        if not words or not is_library(name, file):
            words = f"{os.path.basename(file)}, line {frame.f_lineno}"
            if not is_library(name, file):
                break
        frame = frame.f_back
    return key, words


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
        law, loc, scale, more = law_of(name, *given)
        numbers = _numbers(value, law, given)
        if tape.how != "plain" and numbers is not None:
            signs = {"low": -1.0, "high": 1.0}.get(tape.how) or GENUINE(np.random.SFC64(seed)).choice(
                (-1.0, 1.0), np.shape(numbers)
            )
            if (ends := extreme(law, loc, scale, more, numbers, signs)) is not None:
                value, numbers = like(ends, value), ends
        flat = np.zeros(0) if numbers is None else np.asarray(numbers, float).ravel()
        tape.draws.append(
            Draw(words, call, number, law, loc, scale, more, flat, np.shape(numbers) if flat.size else ())
        )
        if len(tape.draws) == MOST_DRAWS:
            tape.miss(f"draws after the first {MOST_DRAWS:,}")
        return value
    finally:
        tape.inside = False


def listening() -> bool:
    """Whether a call of this thread is to be recorded now."""
    if not _TAPES or _TAPES[-1].inside or len(_TAPES[-1].draws) >= MOST_DRAWS:
        return False
    if threading.get_ident() != _TAPES[-1].thread:
        _TAPES[-1].miss("threads, whose draws have no order")
        return False
    return True


def law_of(name: str, given: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[str, Any, Any, tuple[Any, ...]]:
    """Law, location, scale and further parameters of a call.

    >>> law_of("uniform", (2, 5), {})
    ('uniform', 2, 3, ())
    """
    law, parameters = CALLS.get(name, ("", ""))
    names, values = [each.partition("=")[0] for each in parameters.split()], {}
    for each in parameters.split():
        if default := each.partition("=")[2]:
            values[each.partition("=")[0]] = None if default == "None" else int(default)
    values |= dict(zip(names, given, strict=False))
    values |= {ALIASES.get(key, key): each for key, each in named.items() if ALIASES.get(key, key) in names}
    if law in (CHOICE, ORDER, "integers", ""):
        weights = named.get("p", named.get("weights"))
        if law == "integers" and "low" in values and values["high"] is None:
            values |= {"low": 0, "high": values["low"]}
        return law, 0, 1, tuple(values.values() if law == "integers" else ()) + _weights(weights)
    loc, scale = values.pop("loc", values.pop("low", 0)), values.pop("scale", 1)
    if "high" in values:
        scale = np.subtract(values.pop("high"), loc)[()]
    if "rate" in values:
        scale = 1 / values.pop("rate")
    return law, loc, scale, tuple(_plain(each) for each in values.values())


def _weights(weights: Any) -> tuple[Any, ...]:
    return () if weights is None else (tuple(np.asarray(weights, float).tolist()),)


def _plain(value: Any) -> Any:
    with suppress(Exception):
        return value if isinstance(value, int | float) else np.asarray(value, float)
    return 0.0


def _numbers(value: Any, law: str, given: tuple[Any, ...]) -> Any:
    """What was drawn as numbers; None where it is none (what was chosen counts by its place)."""
    if isinstance(value, bytes):
        return np.frombuffer(value, np.uint8)
    if law == CHOICE:
        arguments, named = given
        among = arguments[0] if arguments else named.get("a", named.get("population", ()))
        with suppress(Exception):
            among = range(among) if isinstance(among, int | np.integer) else list(among)
            if np.ndim(value) == 0:
                return among.index(value)
    with suppress(Exception):
        numbers = np.asarray(value.detach() if hasattr(value, "detach") else value)
        return numbers if numbers.dtype.kind in "biuf" else None
    return None


def extreme(law: str, loc: Any, scale: Any, more: tuple[Any, ...], numbers: Any, signs: Any) -> Any:
    """Numbers at an end of their law, -1 or 1 each by `signs`; None where there is none such."""
    low, high = np.less(signs, 0.0), np.shape(numbers)
    if law in ("laplace", "gumbel", "logistic", "normal", "cauchy", "t"):
        reach = FAR if law == "normal" else NEAR if law in ("laplace", "logistic") else 1e12
        ends = np.where(low, -6.5 if law == "gumbel" else -reach, NEAR if law == "gumbel" else reach)
    elif law == "uniform":
        ends = np.where(low, 2.0**-1000, 1.0 - 2.0**-53)
    elif law == "exponential":
        ends = np.where(low, 2.0**-1000, NEAR)
    elif law == "binomial" and more:
        return np.broadcast_to(np.where(low, 0, more[0] if len(more) > 1 else 1), high)
    elif law == "geometric":
        return np.broadcast_to(np.where(low, 1, np.ceil(NEAR / -np.log1p(-np.minimum(more[0], 1 - 2e-16)))), high)
    elif law == CHOICE and np.ndim(numbers) == 0 and more:
        possible = np.flatnonzero(np.asarray(more[-1]) > 0.0)
        return np.asarray(possible[0] if low else possible[-1])
    else:
        return None
    return np.broadcast_to(np.asarray(loc) + np.asarray(scale) * ends, high)


# --- numpy, random, secrets, os ----------------------------------------------------------------------------------


def _like(ends: Any, value: Any) -> Any:
    """Extreme numbers in the form of what a call of numpy or of Python returned."""
    if isinstance(value, bytes):
        return value
    if np.ndim(value) == 0:
        return type(value)(ends)
    return np.asarray(ends).astype(np.asarray(value).dtype).reshape(np.shape(value))


class _AsGenuine(type):
    """The type of our generators: a genuine one is an instance of them too, for their names stand where its stood."""

    genuine: Any

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.genuine)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.genuine)


GENUINE, LEGACY = np.random.Generator, np.random.RandomState


def _method(base: Any, name: str, again: Callable[[int], Any], title: str) -> Callable[..., Any]:
    original = getattr(base, name)

    @functools.wraps(original)
    def call(self: Any, *given: Any, **named: Any) -> Any:
        if not getattr(self, "records", True) or not listening():
            return original(self, *given, **named)
        like = _like
        if name == "choice" and given:
            like = functools.partial(_chosen, given[0])
        drawn = recorded(
            f"{title}.{name}", name, lambda seed: getattr(again(seed), name)(*given, **named), like, given, named
        )
        if "out" in named and named["out"] is not None:
            named["out"][...] = drawn
        return drawn

    return call


def _chosen(among: Any, place: Any, value: Any) -> Any:
    return value if np.ndim(place) else type(value)(place) if isinstance(among, int | np.integer) else among[int(place)]


def _generators() -> tuple[Any, Any]:
    """Classes of generators that record: numpy's own, and its legacy one."""

    def init(self: Any, bits: Any) -> None:
        GENUINE.__init__(self, bits)
        if _TAPES:
            _TAPES[-1].miss(f"a generator that the mechanism seeds itself ({_place()[1]})")

    def reduce(self: Any) -> Any:
        return (generator, (self.tape_seed,)) if self.records else GENUINE.__reduce__(self)

    def spawn(self: Any, n_children: int) -> list[Any]:
        if not self.records:
            return GENUINE.spawn(self, n_children)  # type: ignore[no-any-return]
        return [generator(self.tape_seed + number) for number in range(1, n_children + 1)]

    fresh, old = (lambda seed: GENUINE(np.random.SFC64(seed))), (lambda seed: LEGACY(np.random.MT19937(seed)))
    space = {name: _method(GENUINE, name, fresh, "Generator") for name in NUMPYS if hasattr(GENUINE, name)}
    space |= {"__init__": init, "__reduce__": reduce, "spawn": spawn, "records": False, "tape_seed": 0}
    space |= {"__deepcopy__": lambda self, memo: reduce(self)[0](*reduce(self)[1]), "__module__": GENUINE.__module__}
    modern = _AsGenuine("Generator", (GENUINE,), space)
    modern.genuine = GENUINE
    older = {name: _method(LEGACY, name, old, "np.random") for name in NUMPYS if hasattr(LEGACY, name)}

    def init_legacy(self: Any, seed: Any = None) -> None:
        LEGACY.__init__(self, seed)
        self.records = seed is None
        if seed is not None and _TAPES:
            _TAPES[-1].miss(f"a generator that the mechanism seeds itself ({_place()[1]})")

    def reseeded(self: Any, *given: Any, **named: Any) -> None:
        if _TAPES and (given or named):
            _TAPES[-1].miss(f"a generator that the mechanism seeds itself ({_place()[1]})")
            self.records = False
        LEGACY.seed(self, *given, **named)

    older |= {"__init__": init_legacy, "seed": reseeded, "set_state": _set_state, "__module__": LEGACY.__module__}
    legacy = _AsGenuine("RandomState", (LEGACY,), older)
    legacy.genuine = LEGACY
    return modern, legacy


def _set_state(self: Any, state: Any) -> None:
    if _TAPES:
        _TAPES[-1].miss(f"a generator whose state the mechanism sets ({_place()[1]})")
        self.records = False
    LEGACY.set_state(self, state)


MODERN, OLDER = _generators()


def generator(seed: int) -> Any:
    """A generator that records; what bypasses its calls draws from a stream of the seed."""
    made = MODERN.__new__(MODERN)
    GENUINE.__init__(made, np.random.SFC64(seed))
    made.records, made.tape_seed = True, seed
    return made


def _default_rng(seed: Any = None) -> Any:
    if isinstance(seed, GENUINE):
        return seed
    if seed is None:
        return generator(_TAPES[-1].seed if _TAPES else 0)
    if _TAPES:
        _TAPES[-1].miss(f"a generator that the mechanism seeds itself ({_place()[1]})")
    return GENUINE(np.random.PCG64(seed)) if not isinstance(seed, np.random.BitGenerator) else GENUINE(seed)


def _python(base: Any, name: str) -> Callable[..., Any]:
    """A method of `random.Random`, or of the system's, that records unless the mechanism seeded its generator."""
    title, original = "random" if base is random.Random else "secrets", base.__dict__.get(name) or getattr(base, name)

    @functools.wraps(original)
    def call(self: Any, *given: Any, **named: Any) -> Any:
        if getattr(self, "own", False) or not listening():
            return original(self, *given, **named)
        like = functools.partial(_chosen, given[0]) if name == "choice" else _like
        return recorded(
            f"{title}.{name}", name, lambda seed: getattr(_PLAIN(seed), name)(*given, **named), like, given, named
        )

    return call


class _PLAIN(random.Random):
    """The methods as they are before anything is recorded."""


for _name in PYTHONS:
    setattr(_PLAIN, _name, getattr(random.Random, _name))


def _seeded(self: Any, *given: Any, **named: Any) -> None:
    if type(self) is not _PLAIN and _TAPES and any(each is not None for each in (*given, *named.values())):
        _TAPES[-1].miss(f"a generator that the mechanism seeds itself ({_place()[1]})")
        self.own = True
    _SEED(self, *given, **named)


_SEED = random.Random.seed


def _urandom(size: int, *, original: Callable[[int], bytes] = os.urandom) -> bytes:
    if not listening():
        return original(size)
    return recorded("os.urandom", "urandom", lambda seed: _PLAIN(seed).randbytes(size), _like, (8 * size,), {})  # type: ignore[no-any-return]


def _started(what: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def start(*given: Any, **named: Any) -> Any:
        if _TAPES:
            _TAPES[-1].miss(what)
        return original(*given, **named)

    return start


# --- torch and jax -----------------------------------------------------------------------------------------------


def _torch(torch: Any) -> Iterator[tuple[Any, str, Any]]:
    def wrapped(home: Any, name: str) -> Any:
        original = getattr(home, name)

        @functools.wraps(original)
        def call(*given: Any, **named: Any) -> Any:
            if named.get("generator") is not None and _TAPES:
                _TAPES[-1].miss(f"a generator that the mechanism seeds itself ({_place()[1]})")
            if named.get("generator") is not None or not listening():
                return original(*given, **named)

            def draw(seed: int) -> Any:
                torch.manual_seed(seed & (2**63 - 1))
                return original(*given, **named)

            def like(ends: Any, value: Any) -> Any:
                return value.copy_(torch.as_tensor(np.array(ends)))

            arguments = given[1:] if home is torch.Tensor else given
            plain = tuple(each.numpy() if hasattr(each, "numpy") else each for each in arguments)
            return recorded(f"torch.{name}", name, draw, like, plain, named)

        return call

    yield from ((torch, name, wrapped(torch, name)) for name in TORCHS)
    yield from ((torch.Tensor, name, wrapped(torch.Tensor, name)) for name in TENSORS)
    yield (
        torch,
        "manual_seed",
        _started("a generator that the mechanism seeds itself (torch.manual_seed)", torch.manual_seed),
    )


def _jax(jax: Any) -> Iterator[tuple[Any, str, Any]]:
    def wrapped(name: str) -> Any:
        original = getattr(jax.random, name)

        @functools.wraps(original)
        def call(key: Any, *given: Any, **named: Any) -> Any:
            if not listening():
                return original(key, *given, **named)
            if isinstance(key, jax.core.Tracer):
                _TAPES[-1].miss("JAX inside jit, where calls are traced and not run")
                return original(key, *given, **named)
            standard = () if name in ("normal", "laplace", "gumbel", "exponential", "logistic", "cauchy") else given[1:]
            like = lambda ends, value: jax.numpy.asarray(np.array(ends), value.dtype)  # noqa: E731
            return recorded(f"jax.random.{name}", name, lambda seed: original(key, *given, **named), like, standard, {})

        return call

    yield from ((jax.random, name, wrapped(name)) for name in JAXS if hasattr(jax.random, name))


# --- all of them -------------------------------------------------------------------------------------------------


def _changes() -> Iterator[tuple[Any, str, Any]]:
    """What stands where while runs are recorded: (home, name, value)."""
    legacy = OLDER()
    yield from ((np.random, "Generator", MODERN), (np.random, "RandomState", OLDER))
    yield from ((np.random, "default_rng", _default_rng), (np.random.mtrand, "_rand", legacy))
    yield from (
        (np.random, name, getattr(legacy, name)) for name in (*NUMPYS, "seed", "set_state") if hasattr(legacy, name)
    )
    system = random.SystemRandom
    yield from ((random.Random, name, _python(random.Random, name)) for name in PYTHONS)
    yield from ((system, name, _python(system, name)) for name in ("random", "getrandbits", "randbytes"))
    yield from ((random.Random, "seed", _seeded), (random, "_urandom", _urandom), (os, "urandom", _urandom))
    yield threading.Thread, "start", _started("threads, whose draws have no order", threading.Thread.start)
    yield subprocess.Popen, "__init__", _started("a program that it starts", subprocess.Popen.__init__)
    if hasattr(os, "fork"):
        yield os, "fork", _started("a process that it forks", os.fork)
    for library, changes in (("torch", _torch), ("jax", _jax)):
        if library in sys.modules:
            yield from changes(sys.modules[library])


@contextmanager
def patched() -> Iterator[None]:
    """Every source that is known records, wherever its name has been imported to; as before at the end."""
    if np.random.Generator is MODERN:  # inside another
        yield
        return
    before: list[tuple[Any, str, Any]] = []
    names: dict[int, Any] = {}

    def put(home: Any, name: str, value: Any) -> None:
        known = vars(home).get(name, _NOTHING)
        before.append((home, name, known))
        if known is not _NOTHING and not isinstance(home, type):
            names[id(known)] = known, value
        setattr(home, name, value)

    try:
        for change in list(_changes()):
            put(*change)
        for home, holder in ((random, random._inst), (secrets, secrets._sysrand)):  # type: ignore[attr-defined]
            for name in [name for name in vars(home) if getattr(vars(home)[name], "__self__", None) is holder]:
                put(home, name, getattr(holder, vars(home)[name].__name__))
        skipped = {"numpy", "random", "secrets", "dpaudit", "os", "torch", "jax", "scipy"}
        for module, space in [(each, getattr(each, "__dict__", None)) for each in list(sys.modules.values())]:
            if type(space) is dict and str(space.get("__name__")).partition(".")[0] not in skipped:
                for name, value in list(space.items()):
                    if id(value) in names and names[id(value)][0] is value:
                        put(module, name, names[id(value)][1])
        yield
    finally:
        for home, name, value in reversed(before):
            delattr(home, name) if value is _NOTHING else setattr(home, name, value)


_NOTHING = object()


@contextmanager
def taped(seed: int, how: How = "plain") -> Iterator[Tape]:
    """Records what is drawn inside, on a new tape, in `patched`."""
    tape = Tape(seed, how)
    _TAPES.append(tape)
    try:
        yield tape
    finally:
        _TAPES.pop()
        for name, where in OTHERS.items():
            if name in sys.modules:
                tape.miss(f"{name}, which draws in {where}")
