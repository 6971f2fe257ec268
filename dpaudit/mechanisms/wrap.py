"""From whatever the user passes to a mechanism, or a clear refusal."""

from __future__ import annotations

from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms.command import Command
from dpaudit.mechanisms.functions import Batched, BuiltBy, Imported, PerRun
from dpaudit.mechanisms.protocol import Mechanism


def wrap(value: Any, parameters: dict[str, Any] | None = None) -> Mechanism:
    """The mechanism behind a function, a wrapper or a `module:attribute` name.

    Raises `InvalidSpec` for anything else.

    >>> wrap("statistics:mean").name
    'mean'
    """
    bound = dict(parameters or {})
    if isinstance(value, PerRun | Batched):
        return type(value)(value.function, {**value.parameters, **bound})
    if isinstance(value, BuiltBy):
        return BuiltBy(value.make, {**value.parameters, **bound})
    if isinstance(value, Imported):
        return Imported(value.reference, {**value.parameters, **bound}, value.folder)
    if isinstance(value, str):
        return Imported(value, bound)
    if isinstance(value, Command):
        if bound:
            raise InvalidSpec(f"a command takes no parameters, got {', '.join(bound)}; put them on its command line")
        return value
    if all(hasattr(value, part) for part in ("name", "open", "describe")):
        if bound:
            return value.with_parameters(bound)  # type: ignore[no-any-return]
        return value  # type: ignore[no-any-return]
    if callable(value):
        return PerRun(value, bound)
    raise InvalidSpec(
        f"a mechanism is a function f(data, rng) or f(data), dpaudit.batched(f), dpaudit.built_by(make), "
        f"dpaudit.command([...]) or 'module:function', got {type(value).__name__}"
    )
