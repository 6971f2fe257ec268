"""A mechanism as it travels to workers: pickled before anything ran here, so that no state of this process goes too."""

from __future__ import annotations

import pickle
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms import Mechanism


class AsMade:
    """A pickled mechanism that unpickles to the mechanism."""

    def __init__(self, made: bytes) -> None:
        self.made = made

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return pickle.loads, (self.made,)

    @classmethod
    def of(cls, mechanism: Mechanism) -> Any:
        """The mechanism itself where it cannot be pickled: that is told when it has to be sent."""
        import cloudpickle

        try:
            return cls(cloudpickle.dumps(mechanism))
        except Exception:
            return mechanism


def pickled(contents: Any) -> bytes:
    """The bytes of a mechanism and its pairs; raises `InvalidSpec` where they cannot be sent."""
    import cloudpickle

    try:
        return cloudpickle.dumps(contents)  # type: ignore[no-any-return]
    except (pickle.PicklingError, TypeError, AttributeError, ValueError) as error:
        raise InvalidSpec(
            f"the mechanism cannot be sent to workers ({error}); build it there with dpaudit.built_by(make), "
            "or use n_jobs=1"
        ) from None
