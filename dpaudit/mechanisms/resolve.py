"""Mechanisms that stand for another: built in the worker, or imported there by name; and `wrap`, for anything."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.mechanisms.command import Command
from dpaudit.mechanisms.functions import Batched, PerRun, batched, check_callable, describe, name_of
from dpaudit.mechanisms.importing import import_reference, in_a_line
from dpaudit.mechanisms.protocol import Description, Known, Mechanism, Opened, is_known


@dataclass(frozen=True, slots=True)
class BuiltBy:
    """A factory called once inside each worker, for objects that cannot be pickled; it returns a mechanism."""

    make: Callable[..., Any]
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What is made: the name of the factory without a leading "make_"."""
        return re.sub(r"\b_?make_(?=\w)", "", name_of(self.make))

    def made(self) -> Any:
        """What the factory makes. Raises `InvalidSpec` where it cannot."""
        try:
            return self.make(**self.parameters)
        except DpAuditError:
            raise
        except Exception as error:
            raise InvalidSpec(f"{name_of(self.make)} could not build the mechanism: {in_a_line(error)}") from None

    def open(self) -> Opened:
        return wrap(self.made()).open()

    def describe(self) -> Description:
        told = describe(self.make, "built in the worker", self.parameters, self.open().takes_rng)
        return replace(told, name=self.name)


@dataclass(frozen=True, slots=True)
class Imported:
    """A mechanism named as `module:attribute`, imported where it runs; `folder` heads the import path there.

    `kind`, as a `Description` has it, says what a plain function of that name is to be: batched, or a factory.
    """

    reference: str
    parameters: dict[str, Any] = field(default_factory=dict)
    folder: str | None = None
    kind: str = ""

    @property
    def name(self) -> str:
        return self.reference.partition(":")[2]

    def resolve(self) -> Mechanism:
        """The mechanism behind the name, with the parameters bound."""
        target = import_reference(self.reference, self.folder)
        kinds: dict[str, Callable[[Any], Mechanism]] = {"batched": Batched, "built in the worker": BuiltBy}
        made = kinds[self.kind](target) if self.kind in kinds and inspect.isroutine(target) else target
        return wrap(made, self.parameters)

    def open(self) -> Opened:
        return self.resolve().open()

    def describe(self) -> Description:
        found = self.resolve().describe()
        size = {key: value for key, value in found.parameters.items() if (found.kind, key) == ("batched", "size")}
        return replace(found, name=self.name, reference=self.reference, parameters={**size, **self.parameters})


def built_by(make: Callable[..., Any] | BuiltBy, **parameters: Any) -> BuiltBy:
    """Marks a factory that each worker calls once; it returns a function of one run or `batched(...)`.

    >>> built_by(lambda: (lambda data: data)).open().takes_rng
    False
    """
    if isinstance(make, BuiltBy):
        return BuiltBy(make.make, {**make.parameters, **parameters})
    check_callable("built_by", make)
    return BuiltBy(make, parameters)


def wrap(value: Any, parameters: Mapping[str, Any] | None = None) -> Mechanism:
    """The mechanism behind a function, a wrapper or a `module:attribute` name, its keywords `parameters` bound.

    Raises `InvalidSpec` for anything else.

    >>> wrap("statistics:mean").name
    'mean'
    """
    if not isinstance(parameters, Mapping | None) or not all(isinstance(name, str) for name in parameters or ()):
        raise InvalidSpec(f"parameters must read {{'keyword': value}}, got {parameters!r}")
    bound = dict(parameters or {})
    if isinstance(value, Batched):
        return batched(value, **bound)
    if isinstance(value, PerRun | BuiltBy | Imported):
        return replace(value, parameters={**value.parameters, **bound})
    if isinstance(value, str):
        return Imported(value, bound)
    if isinstance(value, Command):
        if bound:
            raise InvalidSpec(f"a command takes no parameters, got {', '.join(bound)}; put them on its command line")
        return value
    if all(hasattr(value, part) for part in ("name", "open", "describe")):
        if bound and not hasattr(value, "with_parameters"):
            raise InvalidSpec(f"{value.name} takes no parameters, got {', '.join(bound)}; give them where it is made")
        return value.with_parameters(bound) if bound else value  # type: ignore[no-any-return]
    if callable(value):
        return PerRun(value, bound)
    raise InvalidSpec(
        f"a mechanism is a function f(data, rng) or f(data), dpaudit.batched(f), dpaudit.built_by(make), "
        f"dpaudit.command([...]) or 'module:function', got {type(value).__name__}"
    )


def own(reference: str, parameters: Mapping[str, Any]) -> Known:
    """The mechanism of ours that a reference names, its parameters bound. Raises `InvalidSpec` where it is none."""
    found = import_reference(reference)
    if not is_known(found):
        raise InvalidSpec(f"mechanism {reference!r} is no entry; `dpaudit catalogue` lists them")
    return found.with_parameters(parameters)
