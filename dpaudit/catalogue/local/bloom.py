"""Bloom filters: which bits a value sets, by 32-bit MurmurHash3 of its decimal digits."""

from __future__ import annotations

import struct

_WORD = 0xFFFFFFFF


def murmur3(text: bytes, seed: int) -> int:
    """The 32-bit MurmurHash3 of a text, as a signed number (Appleby, MurmurHash3_x86_32).

    >>> murmur3(b"", 0), murmur3(b"hello", 0)
    (0, 613153351)
    """
    mixed, whole = seed, len(text) // 4 * 4
    for (block,) in struct.iter_unpack("<I", text[:whole]):
        mixed = _rotated(mixed ^ _scrambled(block), 13) * 5 + 0xE6546B64 & _WORD
    mixed ^= _scrambled(int.from_bytes(text[whole:], "little"))
    mixed ^= len(text)
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _WORD
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _WORD
    mixed ^= mixed >> 16
    return mixed - (1 << 32) if mixed >> 31 else mixed


def filter_of(value: int, bits: int, hashes: int) -> list[int]:
    """The Bloom filter of a value: bit i is 1 where one of the hash functions gives i.

    >>> [place for place, bit in enumerate(filter_of(0, bits=20, hashes=4)) if bit]
    [0, 11, 18]
    """
    text = str(value).encode()
    places = {murmur3(text, seed) % bits for seed in range(hashes)}
    return [int(place in places) for place in range(bits)]


def _scrambled(block: int) -> int:
    return _rotated(block * 0xCC9E2D51 & _WORD, 15) * 0x1B873593 & _WORD


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & _WORD
