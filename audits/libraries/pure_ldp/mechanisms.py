"""Clients of pure-ldp, built and called as its example.py does. Values are 1 to d; the library owns its randomness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from pure_ldp.core import generate_hash
from pure_ldp.frequency_oracles.apple_cms import CMSClient
from pure_ldp.frequency_oracles.direct_encoding import DEClient
from pure_ldp.frequency_oracles.hadamard_mechanism import HadamardMechClient
from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient
from pure_ldp.frequency_oracles.histogram_encoding import HEClient
from pure_ldp.frequency_oracles.local_hashing import FastLHClient
from pure_ldp.frequency_oracles.rappor import RAPPORClient
from pure_ldp.frequency_oracles.unary_encoding import UEClient

import dpaudit

Local = Callable[[int], Any]


def _make_unary(epsilon: float, d: int, optimal: bool) -> Local:
    return UEClient(epsilon, d, use_oue=optimal).privatise


def _make_direct(epsilon: float, d: int) -> Local:
    return DEClient(epsilon, d).privatise


def _make_histogram(epsilon: float, d: int) -> Local:
    return HEClient(epsilon, d).privatise


def _make_fast_hashing(epsilon: float, d: int) -> Local:
    return FastLHClient(epsilon, d, k=8, use_olh=True).privatise


def _make_hadamard_response(epsilon: float, d: int) -> Local:
    return HadamardResponseClient(epsilon, d, list(range(d))).privatise  # the order of values that a server would send


def _make_apple(epsilon: float, hadamard: bool) -> Local:
    hashes = [generate_hash(8, seed) for seed in range(4)]  # as CMSServer makes them, with seeds of our own
    return CMSClient(epsilon, hashes, 8, is_hadamard=hadamard).privatise


def _make_hadamard_mechanism(epsilon: float, d: int) -> Local:
    return HadamardMechClient(epsilon, d, t=2).privatise


def _make_hadamard_mechanism_sent(epsilon: float, d: int) -> Local:
    client = HadamardMechClient(epsilon, d, t=2)
    return lambda value: list(client.privatise(value))  # as it would be sent: a list, whichever branch was taken


def _make_rappor(f: float) -> Local:
    """One cohort and one hash function into 8 bits, as RAPPORServer makes it; value 1 sets bit 2, value 2 bit 5."""
    return RAPPORClient(f, 8, [[generate_hash(8, 9)]], num_of_cohorts=1).privatise


unary = dpaudit.built_by(_make_unary)
direct = dpaudit.built_by(_make_direct)
histogram = dpaudit.built_by(_make_histogram)
fast_hashing = dpaudit.built_by(_make_fast_hashing)
hadamard_response = dpaudit.built_by(_make_hadamard_response)
apple = dpaudit.built_by(_make_apple)
hadamard_mechanism = dpaudit.built_by(_make_hadamard_mechanism)
hadamard_mechanism_sent = dpaudit.built_by(_make_hadamard_mechanism_sent)
rappor = dpaudit.built_by(_make_rappor)


def first_bit_alone(output: np.ndarray) -> bool:
    """The first bit is set and the second is not."""
    return bool(output[0] == 1 and output[1] == 0)


def bit_of_first(output: tuple[list[int], int]) -> bool:
    """Bit 2 of the Bloom filter, the bit that value 1 sets, is 0."""
    return bool(output[0][2] == 0)


def true_signs(output: Any) -> bool:
    """The output is a list (not a zip object) that holds (0, 1) or (2, 1), and no (1, -1) or (3, -1)."""
    return isinstance(output, list) and any(index in (1, 3) and sign == 1 for index, sign in output)
