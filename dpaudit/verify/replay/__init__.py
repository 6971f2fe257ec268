"""Exact replay of finite randomness: the code itself, run once for every choice that it can make, on every dataset."""

from __future__ import annotations

import builtins
import dis
import functools
import gc
import inspect
import os
import pickle
import random
import threading
import types
from builtins import type  # the real one: see faces
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from dpaudit.base import validate
from dpaudit.errors import InvalidSpec, OutOfTime, UnsoundAudit
from dpaudit.mechanisms.functions import PerRun, check_callable
from dpaudit.running.guard import ended_at
from dpaudit.verify.deadline import left_s, time_over
from dpaudit.verify.replay.canonical import Raised, Shaped, canonical
from dpaudit.verify.replay.choices import Choices
from dpaudit.verify.replay.faces import types_as_they_seem
from dpaudit.verify.replay.loops import Samplers
from dpaudit.verify.replay.losses import FiniteLosses, Neighbours, Places, Worst, adjacent, beside, pairs_in_words
from dpaudit.verify.replay.walk import LEAST_AGAIN, Unfollowed, Walked, confirm, confirm_with, walk_paths

__all__ = ["Choices", "FiniteLosses", "Raised", "Shaped", "Worst", "canonical", "replay"]

_SEEN = """
    builtins math cmath random itertools functools collections operator fractions decimal statistics bisect heapq typing
    enum dataclasses copy numbers string abc numpy dpaudit
"""
SEEN = frozenset(_SEEN.split())  # libraries that only compute, or whose generators replay compares
OF_NUMPY = ("fromfile", "datetime64", "memmap", "load", "loadtxt", "genfromtxt", "fromregex")
TELLING = frozenset(("open", "input", "exec", "eval", "__import__", "id", "hash", "globals", "locals", "vars", "dir"))
HOLDING = frozenset(("builtins", "functools", "collections", "itertools"))  # whose objects are what they are made of
LEAVES = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType)
CODE = (types.FunctionType, staticmethod, classmethod, property, functools.partialmethod, functools.cached_property)


def outside(function: Any) -> set[str]:
    """The names that a function reaches, through what it calls too, that are not known to compute only.

    They include imports in its code, inherited methods, and what containers and partial functions hold. They do not
    show that runs use up a list or an iterator, or that its content was drawn before.

    >>> import time
    >>> outside(lambda data, rng: data + time.time()), outside(lambda data, rng: len(data) + rng.random())
    ({'time'}, set())
    """
    names, known = set[str](), dict[int, Any]()
    waiting: list[tuple[str, Any]] = [("the function itself", function)]
    while waiting:
        name, value = waiting.pop()
        if id(value) in known:
            continue
        known[id(value)] = value
        module, kind = isinstance(value, types.ModuleType), value if isinstance(value, type) else type(value)
        bases = [each for each in kind.__mro__ if not _seen(each)]
        members = [(word, each) for base in bases for word, each in vars(base).items()]
        if not module and (own := getattr(value, "__self__", None)) is not None and not inspect.ismodule(own):
            waiting += [(name, own), (name, getattr(value, "__func__", own))]
        elif _seen(value) and not (value is function and inspect.isfunction(value)):
            names |= {name} & TELLING.union(OF_NUMPY)
            if type(value).__module__ in HOLDING and not isinstance(value, LEAVES):
                waiting += [(name, each) for each in gc.get_referents(value)]
            elif isinstance(value, np.ndarray) and value.dtype.hasobject:
                waiting += [(name, each) for each in value.ravel().tolist()]
        elif inspect.isfunction(value):
            waiting += _names_of(value)
        elif module or not any(isinstance(each, CODE) for _, each in members):
            names.add(name)
        else:
            waiting += [*members, *((name, each) for each in gc.get_referents(value) if value is not kind)]
    return names


def _seen(value: Any) -> bool:
    """Whether what a value does is that of a library that is seen; a function may say of itself what it likes."""
    if inspect.isfunction(value):
        home = value.__globals__.get("__name__")
    elif isinstance(value, types.ModuleType):
        home = value.__name__
    else:
        plain = callable(value) and (isinstance(value, LEAVES) or type(value).__module__ not in HOLDING)
        home = getattr(value if plain else type(value), "__module__", "")
    return str(home).partition(".")[0] in SEEN


def _names_of(function: Any) -> list[tuple[str, Any]]:
    """What the names of a function stand for: of its module, of Python, of its closure, its defaults, its imports."""
    codes, names, imported = [function.__code__], set[str](), set[str]()
    while codes:
        code = codes.pop()
        names |= {*code.co_names, *code.co_freevars}
        imported |= {step.argval for step in dis.get_instructions(code) if step.opname == "IMPORT_NAME"}
        codes += [part for part in code.co_consts if isinstance(part, types.CodeType)]
    scope = {**{name: getattr(np, name) for name in OF_NUMPY}, **vars(builtins), **function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # the cell is empty
            scope[name] = cell.cell_contents
    given = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    values = [*((name, scope[name]) for name in names if name in scope), *(("a default", each) for each in given)]
    return [*values, *((name, types.ModuleType(name)) for name in imported)]


IDEAL = ", rng.binomial taken as the ideal law"
SUMMED = ", loops summed round by round as their source reads"
MESSAGES = ", exceptions told apart by type, message and cause"
MOST_AGAIN = 16_384  # runs with a true generator on all datasets together, where these are few
SEED = 0x9E3779B97F4A7C15  # one that no mechanism has drawn its own numbers with
_ONE_AT_A_TIME = threading.Lock()  # what is watched is the process
_LOOKING = threading.local()  # `now` while a replay of this thread watches all generators


def replay(
    function: Callable[..., Any],
    domain: Iterable[Any],
    neighbours: Neighbours,
    *,
    parameters: Mapping[str, Any] | None = None,
    most_paths: int = 1_000_000,
) -> FiniteLosses:
    """The exact privacy loss of a mechanism of finite randomness, over all adjacent pairs of a finite domain.

    `function(data, rng)` is called once for every path of its choices: `rng` stands in for numpy's Generator. A draw
    of rng.random() may be compared with numbers. The generator's bits are taken to be fair; everything after them is
    the code itself, except rng.binomial: that is the ideal law, from which numpy's own leaves out the rarest outcomes
    (the scope says so where it is drawn; `random() < p` is exact).
    `neighbours` is a predicate of two datasets, a list of pairs of datasets, or "all". `most_paths` bounds the runs
    over all datasets; runs with draws of random(), and thousands of others, are made once more to see that they hold,
    64 at least, and as many or more with a true generator, whose outputs must follow the computed law.

    Outputs are any plain values, and exceptions by type, message and cause; see `canonical` for when two are one.

    Raises `InvalidSpec` for a draw that is continuous or endless, for too many paths, for a domain without pairs;
    `UnsoundAudit` where a run is not a function of data and rng, or an output cannot be distinguished from others.

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
    try:
        return _losses(mechanism, datasets, pairs, most, Samplers(function))
    except InvalidSpec:
        samplers = Samplers(function, tails=False)
        if not samplers.loops:
            raise
        return _losses(mechanism, datasets, pairs, most, samplers)


def _losses(
    mechanism: PerRun, datasets: Sequence[Any], pairs: Sequence[Places], most: int, samplers: Samplers
) -> FiniteLosses:
    choices, call = Choices(most, samplers.unfit), replace(mechanism, function=samplers.function).open().call
    true, walked = list[Any](), list[Walked]()
    with no_other_randomness(true):
        true += [np.random.default_rng(SEED + place) for place in range(len(datasets))]
        with types_as_they_seem():
            for place, data in enumerate(datasets):
                with _named(place):
                    walked.append(walk_paths(call, data, choices, most - sum(each.paths for each in walked)))
            choices.close()
            for place in reversed(range(len(datasets))):
                with _named(place):
                    confirm(call, datasets[place], walked[place].records)
        runs = max(LEAST_AGAIN, min(4 * LEAST_AGAIN, MOST_AGAIN // len(datasets)))
        call = mechanism.open().call
        for place, rng in enumerate(true):
            with _named(place):
                confirm_with(rng, call, datasets[place], walked[place].law, runs, beside)
    outputs = {output for each in walked for output in each.law}
    failed = [output for output in outputs if isinstance(output, Raised)]
    if len(failed) == len(outputs):
        kinds = ", ".join(sorted({each.kind.__name__ for each in failed}))
        raise UnsoundAudit(f"{mechanism.name} raised {kinds} in every run, so it has no answer; call it once alone")
    at = ", ".join(f"{name}={value}" for name, value in mechanism.parameters.items())
    scope = f"{pairs_in_words(len(pairs), len(datasets))}, all outputs{f', at {at}' if at else ''}"
    scope += (IDEAL if choices.idealised else "") + (MESSAGES if failed else "")
    unseen = sorted(outside(mechanism.function))
    scope += f", if nothing is drawn, kept or told by {', '.join(unseen)}" if unseen else ""
    scope += SUMMED if samplers.summed else ""
    lost = max((p for each in walked for output, p in each.law.items() if isinstance(output, Unfollowed)), default=0)
    scope += f", but for {float(lost):.1g} of probability that was not followed and is part of delta" if lost else ""
    return FiniteLosses.of(datasets, pairs, [each.law for each in walked], sum(each.paths for each in walked), scope)


@contextmanager
def _named(place: int) -> Iterator[None]:
    """Errors say which dataset they come from."""
    try:
        with ended_at(time_over()):
            yield
    except OutOfTime:
        left_s()  # says what to do
        raise
    except (InvalidSpec, UnsoundAudit) as error:
        kind = UnsoundAudit if isinstance(error, UnsoundAudit) else InvalidSpec
        raise kind(f"dataset {place} of the domain: {error}") from None


# whether anything draws from randomness that is not the stand-in's: any generator of the process, the system's


@contextmanager
def no_other_randomness(ours: Sequence[Any] = ()) -> Iterator[None]:
    """Raises `UnsoundAudit` at the end where a generator moved or is new, or the system was asked for random bytes.

    All live generators of numpy and of Python's `random` are watched, whatever holds them, and all of Python's that
    get no seed in the block, even if they do not exist at its end. numpy's `default_rng()` and `secrets` ask
    the system. Generators that are in `ours` at the end may be new. Of two threads one waits for the other.

    >>> with no_other_randomness():
    ...     np.random.default_rng(seed=1).random() < 1.0
    True
    """
    if getattr(_LOOKING, "now", False):  # a replay within one: what moves is seen at the end of the outer one
        yield
        return
    while not _ONE_AT_A_TIME.acquire(timeout=left_s(1.0)):
        pass
    thaw = False
    try:
        _LOOKING.now = True
        alive = _generators()
        if any(each is first for each in alive for first in _FROZEN[:1]):  # the process froze no more since
            alive = [each for each in (*alive, *_FROZEN) if each is not _FROZEN[0]]
        elif gc.get_freeze_count():
            _FROZEN.clear()
            gc.collect()  # so that no garbage is frozen with the rest
            gc.unfreeze()
            alive = _generators()
            gc.freeze()
            _FROZEN[:] = [_Loose(), *alive]
        else:
            gc.freeze()  # so that at the end what is new is all there is to look at
            thaw = True
        before = [*map(_state, alive)]
        with _watched() as asked:
            yield
            drawn = [getattr(each, "bit_generator", each) for each in ours]
            known = (*alive, *_FROZEN, *drawn, *(getattr(each, "seed_seq", None) for each in drawn))
            spared = {*map(id, known)}
            new = _generators(spared) and gc.collect() >= 0 and _generators(spared)
        moved = [*map(_state, alive)] != before
    finally:
        if thaw:
            gc.unfreeze()
        _LOOKING.now = False
        _ONE_AT_A_TIME.release()
    if asked or new or moved:
        text = "; {} was made in a run and is kept, maybe by a cache or a first import"
        detail = text.format(type(new[0]).__name__) if new else ""
        raise UnsoundAudit(
            "the mechanism drew randomness from elsewhere than rng (a generator that it keeps, a global one, or one "
            f"without a seed{detail}), which replay cannot choose; draw everything from rng"
        )


@contextmanager
def _watched() -> Iterator[list[str]]:
    """What asks the system for bytes in the block: for itself, or as the seed of a generator of Python's."""
    asked, own_bytes, own_seed = list[str](), os.urandom, random.Random.seed

    def urandom(size: int) -> bytes:
        asked.append("urandom")
        return own_bytes(size)

    @functools.wraps(own_seed)
    def seed(self: Any, a: Any = None, *more: Any, **named: Any) -> None:
        if a is None:
            asked.append("seed")
        own_seed(self, a, *more, **named)

    places = ((os, "urandom", urandom), (random, "_urandom", urandom), (random.Random, "seed", seed))
    originals = [(place, name, getattr(place, name)) for place, name, _ in places]
    try:
        for place, name, ours in places:
            setattr(place, name, ours)
        yield asked
    finally:
        for place, name, own in originals:
            setattr(place, name, own)


class _Loose:
    """Stands at the head of the generators that were found frozen: it is not, unless the process froze again."""


_FROZEN = list[Any]()  # such a one and those generators, where the process, not a replay, froze what it had


def _generators(spared: Collection[int] = ()) -> list[Any]:
    """All generators that are alive and not frozen, except those that draw from the system and the `spared` ids."""
    kinds = set[type]()
    waiting: list[Any] = [_Loose, random.Random, np.random.BitGenerator, np.random.SeedSequence]
    while waiting:
        kinds.add(kind := waiting.pop())
        waiting += [each for each in kind.__subclasses__() if each is not random.SystemRandom]
    alive = gc.get_objects()
    return [each for each in compress(alive, map(kinds.__contains__, map(type, alive))) if id(each) not in spared]


def _state(generator: Any) -> bytes:
    """The state as bytes; where the class of one of Python's has none to show, that of the class it is made from."""
    if not isinstance(generator, random.Random):
        return pickle.dumps(generator.state)
    with suppress(Exception):
        return pickle.dumps(generator.getstate())
    return pickle.dumps(random.Random.getstate(generator))
