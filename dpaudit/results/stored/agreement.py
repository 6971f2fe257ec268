"""What is stored beside the numbers it follows from must follow from them."""

from __future__ import annotations

import math
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.results.wording.quoting import clean

TOLERANCE = 1e-6  # relative; releases of scipy differ by less, and no reader sees so far
CURE = "restore the file, or audit again"


def agree(place: str, stored: Any, again: Any, source: str = "the counts give") -> None:
    """Raises `InvalidSpec` naming both where what is stored is not what `source` gives.

    >>> agree("runs", 1.0, 1.0 + 1e-9)
    >>> agree("verdict", "REFUTED", "NOT_REFUTED")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dpaudit.errors.InvalidSpec: verdict is 'REFUTED', but the counts give 'NOT_REFUTED'; restore ...
    """
    if isinstance(stored, float) and isinstance(again, float):
        if math.isclose(stored, again, rel_tol=TOLERANCE, abs_tol=1e-300):
            return
    elif stored == again:
        return
    raise InvalidSpec(f"{place} is {clean(repr(stored))}, but {source} {clean(repr(again))}; {CURE}")
