"""Exact replay: the user's own function, run once for every choice of its randomness, on every dataset of a domain."""

from __future__ import annotations

import builtins
import gc
import inspect
import os
import pickle
import random
import threading
import types
from builtins import type  # the real one: see faces
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import compress
from typing import Any

import numpy as np

from dpaudit import validate
from dpaudit.errors import InvalidSpec, OutOfTime, UnsoundAudit
from dpaudit.mechanisms.functions import PerRun, check_callable
from dpaudit.sampling.limit import SILENT, Progress
from dpaudit.verify.replay.canonical import Raised
from dpaudit.verify.replay.choices import Choices
from dpaudit.verify.replay.faces import FACES, types_as_they_seem
from dpaudit.verify.replay.losses import FiniteLosses, Neighbours, adjacent, pairs_in_words
from dpaudit.verify.replay.source import Kind
from dpaudit.verify.replay.walk import LEAST_AGAIN, Walked, confirm, confirm_with, walk

_SEEN = """
    builtins math cmath random itertools functools collections operator fractions decimal statistics bisect heapq typing
    enum dataclasses copy numbers string abc numpy dpaudit
"""
SEEN = frozenset(_SEEN.split())  # libraries that only compute, or whose generators replay compares
TELLING = frozenset(("open", "input", "exec", "eval", "__import__", "id", "hash", "globals", "locals", "vars", "dir"))
CONTAINERS = (dict, list, tuple, set)


def outside(function: Any) -> set[str]:
    """The names that a function reaches, through what it calls too, of which nobody says that they only compute.

    >>> import time
    >>> outside(lambda data, rng: data + time.time()), outside(lambda data, rng: len(data) + rng.random())
    ({'time'}, set())
    """
    found, known = set[str](), set[int]()
    waiting: list[tuple[str, Any]] = [("", function)]
    while waiting:
        name, value = waiting.pop()
        if id(value) in known:
            continue
        known.add(id(value))
        module, kind = isinstance(value, types.ModuleType), value if isinstance(value, type) else type(value)
        methods = [(word, each) for word, each in vars(kind).items() if inspect.isfunction(each)]
        home = value.__name__ if module else getattr(value if callable(value) else kind, "__module__", "")
        if not module and (own := getattr(value, "__self__", None)) is not None and not inspect.ismodule(own):
            waiting += [(name, own), (name, getattr(value, "__func__", own))]
        elif inspect.isfunction(value):
            waiting += _names_of(value)
        elif isinstance(value, CONTAINERS):
            waiting += [(name, each) for each in (value.values() if isinstance(value, dict) else value)]
        elif str(home).partition(".")[0] in SEEN:
            found |= {name} & TELLING
        elif module or not methods:
            found.add(name)
        else:
            waiting += [*methods, *getattr(value, "__dict__", {}).items()]
    return found


def _names_of(function: Any) -> list[tuple[str, Any]]:
    """What the names of a function stand for: of its module, of Python, of its closure, its defaults."""
    codes, names = [function.__code__], set[str]()
    while codes:
        code = codes.pop()
        names |= {*code.co_names, *code.co_freevars}
        codes += [part for part in code.co_consts if isinstance(part, types.CodeType)]
    scope = {**vars(builtins), **function.__globals__, **inspect.getclosurevars(function).nonlocals}
    given = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return [*((name, scope[name]) for name in names if name in scope), *(("a default", each) for each in given)]


IDEAL = ", rng.binomial taken as the ideal law"
MESSAGES = ", exceptions told apart by type, message and cause"
GENERATORS = {"numpy": "", "random": ", with a random.Random as rng", "replay": ", with replay's own generator as rng"}
TRUE: dict[Kind, Callable[[int], Any]] = {"numpy": np.random.default_rng, "random": random.Random}
MOST_AGAIN = 16_384  # runs with a true generator on all datasets together, where these are few
SEED = 0x9E3779B97F4A7C15  # one that no mechanism has drawn its own numbers with
_LOOKING = threading.local()  # `now` while a replay of this thread looks at all generators
STEPS = 1000  # of progress on each dataset: thousandths of the probability of its choices


def replay(
    function: Callable[..., Any],
    domain: Iterable[Any],
    neighbours: Neighbours,
    *,
    parameters: Mapping[str, Any] | None = None,
    most_paths: int = 1_000_000,
    generator: Kind = "numpy",
    progress: Progress | None = None,
) -> FiniteLosses:
    """The exact privacy loss of a mechanism of finite randomness, over all adjacent pairs of a finite domain.

    `function(data, rng)` is called once for every path of its choices: `rng` stands in for numpy's Generator, for
    random.Random where `generator` is "random", or where it is "replay" for replay's own, which has the draws of both
    and `bit()`, `bernoulli(p)` and `finite(weights)`. A draw of rng.random() may be compared with numbers. The
    generator's bits are taken to be fair; everything after them is the code itself, but for rng.binomial: that is the
    ideal law, from which numpy's own leaves out the rarest outcomes (the scope says so where it is drawn;
    `random() < p` and `bernoulli(p)` are exact).
    `neighbours` is a predicate of two datasets, a list of pairs of datasets, or "all". `most_paths` bounds the runs
    over all datasets; up to 4,096 runs of each dataset, and 64 at least, are made once more to see that they hold, and
    as many or more with a true generator, whose outputs must follow the law that was found.

    Outputs are any plain values, and exceptions by type, message and cause; see `canonical` for when two are one.

    Raises `InvalidSpec` for a draw that is continuous or endless, for too many paths, for a domain without pairs;
    `UnsoundAudit` where a run is not a function of data and rng, or an output cannot be told from others.

    >>> def respond(bit, rng):
    ...     return bit if rng.random() < 0.75 else 1 - bit
    >>> losses = replay(respond, [0, 1], "all")
    >>> losses.worst.p / losses.worst.q, losses.delta(0).upper
    (Fraction(3, 1), 0.5)
    """
    check_callable("verify.replay.replay", function)
    if not isinstance(domain, Iterable):
        raise InvalidSpec(f"domain must be a list of datasets, got {domain!r}")
    datasets = tuple(domain)
    pairs = adjacent(datasets, neighbours)
    most = validate.whole("most_paths", most_paths, least=1)
    mechanism = PerRun(function, dict(parameters or {}))
    choices = Choices(most, validate.one_of("generator", generator, tuple(GENERATORS)))  # type: ignore[arg-type]
    call = mechanism.open().call
    true = [TRUE[choices.kind](SEED + place) for place in range(len(datasets) if choices.kind in TRUE else 0)]
    with no_other_randomness(true):
        with types_as_they_seem():
            walked = _walked(call, datasets, choices, most, progress or SILENT)
            for place in reversed(range(len(datasets))):
                with _named(place):
                    confirm(call, datasets[place], walked[place].records, choices.kind)
        runs = max(LEAST_AGAIN, min(4 * LEAST_AGAIN, MOST_AGAIN // len(datasets)))
        for place, rng in enumerate(true):
            with _named(place):
                confirm_with(rng, call, datasets[place], walked[place].law, runs)
    outputs = {output for each in walked for output in each.law}
    failed = [output for output in outputs if isinstance(output, Raised)]
    if len(failed) == len(outputs):
        kinds = ", ".join(sorted({each.kind.__name__ for each in failed}))
        raise UnsoundAudit(f"{mechanism.name} raised {kinds} in every run, so it has no answer; call it once alone")
    at = ", ".join(f"{name}={value}" for name, value in mechanism.parameters.items())
    scope = f"{pairs_in_words(len(pairs), len(datasets))}, all outputs{f', at {at}' if at else ''}"
    scope += GENERATORS[choices.kind] + (IDEAL if choices.idealised else "") + (MESSAGES if failed else "")
    unseen = sorted(outside(function))
    scope += f", if nothing is drawn, kept or told by {', '.join(unseen)}" if unseen else ""
    return FiniteLosses.of(datasets, pairs, [each.law for each in walked], sum(each.paths for each in walked), scope)


def _walked(
    call: Callable[[Any, Any], Any], datasets: tuple[Any, ...], choices: Choices, most: int, progress: Progress
) -> list[Walked]:
    walked: list[Walked] = []
    left = most
    progress.begin("replay", STEPS * len(datasets))
    for place, data in enumerate(datasets):
        told = [0]

        def tell(covered: Fraction, told: list[int] = told) -> None:
            step = int(covered * STEPS)
            progress.advance(step - told[0])
            told[0] = step

        with _named(place):
            walked.append(walk(call, data, choices, left, tell))
        left -= walked[-1].paths
    choices.close()
    progress.end()
    return walked


@contextmanager
def _named(place: int) -> Iterator[None]:
    """Errors say which dataset they come from."""
    try:
        yield
    except OutOfTime:
        raise
    except (InvalidSpec, UnsoundAudit) as error:
        kind = UnsoundAudit if isinstance(error, UnsoundAudit) else InvalidSpec
        raise kind(f"dataset {place} of the domain: {error}") from None


# whether anything draws from randomness that is not the stand-in's: any generator of the process, the system's


@contextmanager
def no_other_randomness(ours: Sequence[Any] = ()) -> Iterator[None]:
    """Raises `UnsoundAudit` at the end where a generator moved or is new, or the system was asked for random bytes.

    All generators of numpy and of Python's `random` that are alive are looked at, whoever holds them. One without a
    seed begins with bytes of the system, as numpy's `default_rng()` and `secrets` do. Generators of `ours` may move.

    >>> with no_other_randomness():
    ...     np.random.default_rng(seed=1).random() < 1.0
    True
    """
    if getattr(_LOOKING, "now", False):  # a replay within one: what moves is seen at the end of the outer one
        yield
        return
    drawn = [getattr(each, "bit_generator", each) for each in ours]
    spared = {id(each) for each in (*drawn, *(getattr(each, "seed_seq", None) for each in drawn))}
    asked = list[str]()
    places: list[tuple[Any, str]] = [(os, "urandom"), (random, "_urandom")]
    kept = [(module, name, getattr(module, name)) for module, name in places if hasattr(module, name)]
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    alive = _generators(spared)
    before = _states(alive)
    gc.freeze()  # so that at the end what is new is all there is to look at
    for module, name, own in kept:
        setattr(module, name, _told(own, asked))
    try:
        _LOOKING.now = True
        yield
        new = _generators(spared) and gc.collect() >= 0 and _generators(spared)
    finally:
        _LOOKING.now = False
        for module, name, own in kept:
            setattr(module, name, own)
        if not frozen:
            gc.unfreeze()
    if asked or new or _states(alive) != before:
        raise UnsoundAudit(
            "the mechanism drew randomness from elsewhere than rng (a generator that it keeps, a global one, or one "
            "without a seed), which replay cannot choose; draw everything from rng"
        )


def _told(own: Callable[[int], bytes], asked: list[str]) -> Callable[[int], bytes]:
    def urandom(size: int) -> bytes:
        asked.append("urandom")
        return own(size)

    return urandom


def _generators(spared: set[int]) -> list[Any]:
    """All generators that are alive and not frozen, but for those that draw from the system and the `spared` ids."""
    kinds, waiting = set[type](), [random.Random, np.random.BitGenerator, np.random.SeedSequence]
    while waiting:
        kinds.add(kind := waiting.pop())
        waiting += kind.__subclasses__()
    kinds -= {random.SystemRandom, *FACES.values()}
    alive = gc.get_objects()
    return [each for each in compress(alive, map(kinds.__contains__, map(type, alive))) if id(each) not in spared]


def _states(generators: Iterable[Any]) -> bytes:
    return pickle.dumps([each.getstate() if isinstance(each, random.Random) else each.state for each in generators])
