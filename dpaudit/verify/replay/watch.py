"""Whether anything draws from randomness that is not the stand-in's: Python's and numpy's global ones, the system's."""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dpaudit.errors import UnsoundAudit
from dpaudit.verify.replay.faces import BITS


@contextmanager
def no_other_randomness() -> Iterator[None]:
    """Raises `UnsoundAudit` at the end where a global generator has moved, or the system was asked for random bytes.

    The latter is what a generator without a seed begins with, numpy's `default_rng()` and `secrets` among them.

    >>> with no_other_randomness():
    ...     np.random.default_rng(seed=1).random() < 1.0
    True
    """
    before, asked = _global_states(), list[str]()
    places: list[tuple[Any, str]] = [(os, "urandom"), (random, "_urandom")]
    kept = [(module, name, getattr(module, name)) for module, name in places if hasattr(module, name)]
    for module, name, own in kept:
        setattr(module, name, _told(own, asked))
    try:
        yield
    finally:
        for module, name, own in kept:
            setattr(module, name, own)
    if asked or _global_states() != before:
        raise UnsoundAudit(
            "the mechanism drew randomness from elsewhere than rng (a global generator, or one without a seed), which "
            "replay cannot choose; draw everything from rng"
        )


def _told(own: Callable[[int], bytes], asked: list[str]) -> Callable[[int], bytes]:
    def urandom(size: int) -> bytes:
        asked.append("urandom")
        return own(size)

    return urandom


def _global_states() -> bytes:
    return pickle.dumps((random.getstate(), np.random.get_state(), BITS.state))
