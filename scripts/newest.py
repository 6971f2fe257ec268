"""Which installed versions are not those of requirements/test.txt: `make test NEWEST=1` says so before it begins."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

LOCK = Path(__file__).resolve().parent.parent / "requirements" / "test.txt"


def different(lock: str, installed: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each package of the lock that is installed at another version.

    >>> different("numpy==2.4.6 --hash=...", [("NumPy", "2.5.0"), ("pip", "24.0")])
    ['numpy 2.5.0 (the lock has 2.4.6)']
    """
    locked: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([a-z0-9][a-z0-9._-]*)==(\S+)", lock, re.MULTILINE):
        locked.setdefault(_same(name), []).append(version)
    now = sorted({(_same(name), version) for name, version in installed})
    return [
        f"{name} {version} (the lock has {' or '.join(locked[name])})"
        for name, version in now
        if name in locked and version not in locked[name]
    ]


def _same(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    installed = ((each.name, each.version) for each in metadata.distributions())
    print("other versions than those of the lock:", *different(LOCK.read_text(encoding="utf-8"), installed), sep="\n  ")
