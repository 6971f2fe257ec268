"""A mechanism as it travels to workers: pickled before anything ran here, so that no state of this process goes too."""

from __future__ import annotations

import io
import pickle
import random
from collections import ChainMap
from typing import Any, ClassVar

from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms.protocol import Mechanism


class AsMade:
    """A pickled mechanism that unpickles to the mechanism."""

    def __init__(self, made: bytes) -> None:
        self.made = made

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return pickle.loads, (self.made,)

    @classmethod
    def of(cls, mechanism: Mechanism) -> Any:
        """The mechanism itself where it cannot be pickled: that is told when it has to be sent."""
        try:
            return cls(_bytes_of(mechanism))
        except Exception:
            return mechanism


def pickled(contents: Any) -> bytes:
    """The bytes of a mechanism and its pairs; raises `InvalidSpec` where they cannot be sent."""
    try:
        return _bytes_of(contents)
    except Exception as error:  # whatever an object's own way to be pickled raises
        raise InvalidSpec(
            f"the mechanism cannot be sent to workers ({error}); build it there with dpaudit.built_by(make), "
            "or use n_jobs=1"
        ) from None


def _bytes_of(contents: Any) -> bytes:
    """The bytes of cloudpickle; the randomness of the system has no state, so another source of it is the same."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        dispatch_table: ClassVar[Any] = ChainMap(
            {random.SystemRandom: lambda source: (random.SystemRandom, ())}, cloudpickle.Pickler.dispatch_table
        )

    buffer = io.BytesIO()
    Pickler(buffer).dump(contents)
    return buffer.getvalue()
