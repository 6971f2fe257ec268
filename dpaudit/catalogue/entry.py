"""An entry of the catalogue: a mechanism from the literature with its claim, its exact loss and its broken twins.

An entry is a mechanism: it can be audited as it stands, and it travels to workers as its name. So entries are
made at the top level of a module, under the name they carry.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import operator
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpaudit.claims import Claim
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms.protocol import Description, Opened
from dpaudit.pairs import AdjacentPair

Program = Callable[..., Any]
Sampler = Callable[..., Any]
Loss = Callable[..., float]
Promise = Callable[..., Claim]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an entry; `check(name, value)` returns the value or raises `InvalidSpec`."""

    name: str
    default: Any
    unit: str
    meaning: str
    check: Callable[[str, object], Any]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a mechanism comes from: the lecture notes that treat it, None where they do not, and the original paper."""

    lecture: str | None
    paper: str


@dataclass(frozen=True, slots=True)
class Twin:
    """What a twin changes in its parent; all else is the parent's. `reason` says in one sentence why that breaks it.

    A harmless mistake is a twin with `broken=False`, and `reason` says why it is none. `loss` is not inherited:
    without one, none is known. `promise` and `neighbours` are for a claim that is stated too widely.
    """

    name: str
    title: str
    reason: str
    formula: str
    program: Program
    sampler: Sampler
    loss: Loss | None = None
    parameters: tuple[Parameter, ...] = ()
    default_pair: tuple[Any, Any] | None = None
    broken: bool = True
    promise: Promise | None = None
    neighbours: str | None = None
    adjacency: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A mechanism of the catalogue, ready to run, to be printed and to be compared with the truth.

    `program(data, rng, **parameters)` is one run as the literature writes it, in plain Python;
    `sampler(data, runs, rng, **parameters)` gives many runs at once with the same distribution.
    `promise(**parameters)` is the claim, `loss(first, second, **parameters)` the exact loss of a pair in both orders,
    in the claim's own parameter (epsilon at its delta, mu, rho), and `neighbours` says in words which datasets the
    claim is made for. `adjacency` says the same where datasets are vectors of query answers, in units of the
    sensitivity: "all-differ" (each moves by at most 1), "one-differs" (one of them does), or "up" and "down" (all of
    them rise, or all fall). `module` is the room of the catalogue that holds the entry; `bound` are the parameters
    given so far.

    >>> from dpaudit.catalogue.additive import laplace
    >>> laplace.half_noise.true_epsilon(10, 9)
    2.0
    """

    module: str
    name: str
    title: str
    source: Source
    formula: str
    neighbours: str
    program: Program
    sampler: Sampler
    parameters: tuple[Parameter, ...]
    promise: Promise
    default_pair: tuple[Any, Any]
    loss: Loss | None = None
    broken: bool = False
    reason: str | None = None
    adjacency: tuple[str, ...] = ()
    twins: Mapping[str, Entry] = field(default_factory=dict)
    bound: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """The name to import the entry by, as specs write it."""
        return f"{self.module}:{self.name}"

    @property
    def expect(self) -> str:
        """The verdict that a large enough audit of the right pair should give, in the words of a spec."""
        return "refuted" if self.broken else "not-refuted"

    @property
    def pair(self) -> AdjacentPair:
        """The default pair: one on which the loss shows."""
        return AdjacentPair(*self.default_pair, name=f"{self.name}, default")

    def values(self) -> dict[str, Any]:
        """Every parameter with its value: the one given, or the default."""
        return {parameter.name: self.bound.get(parameter.name, parameter.default) for parameter in self.parameters}

    def with_parameters(self, parameters: Mapping[str, Any]) -> Entry:
        """The entry with some parameters given; raises `InvalidSpec` for an unknown one or a bad value."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in parameters:
            if name not in known:
                raise InvalidSpec(f"{self.name} has no parameter {name!r}; it has: {', '.join(known) or 'none'}")
        checked = {name: known[name].check(f"{self.name}: {name}", value) for name, value in parameters.items()}
        return replace(self, bound={**self.bound, **checked})

    def with_twins(self, *twins: Twin) -> Entry:
        """The entry with its twins, which then are attributes of it."""
        return replace(self, twins={twin.name: self._twin(twin) for twin in twins})

    def claim(self, parameters: Mapping[str, Any] | None = None) -> Claim:
        """What the entry promises at these parameters."""
        return self.promise(**self.with_parameters(parameters or {}).values())

    def true_loss(self, first: Any, second: Any, parameters: Mapping[str, Any] | None = None) -> float | None:
        """The exact loss between two datasets, in the claim's own parameter; None where it is not known."""
        if self.loss is None:
            return None
        return float(self.loss(first, second, **self.with_parameters(parameters or {}).values()))

    def true_epsilon(self, first: Any, second: Any, parameters: Mapping[str, Any] | None = None) -> float | None:
        """The same at the claim's delta, where the claim is one on epsilon; None where it is not, or not known."""
        return self.true_loss(first, second, parameters) if self.claim().parameter == "epsilon" else None

    def run(self, data: Any, rng: Any) -> Any:
        """One run of the program."""
        return self.program(data, rng, **self.values())

    def open(self) -> Opened:
        """The sampler with its parameters bound."""
        return Opened(functools.partial(self.sampler, **self.values()), per_run=False, takes_rng=True)

    def describe(self) -> Description:
        """Names and places: those of the program; the digest is that of the modules of program and sampler."""
        modules = sorted({self.program.__module__, _function(self.sampler).__module__})
        source = "".join(inspect.getsource(sys.modules[module]) for module in modules)
        return Description(
            name=self.name,
            kind="batched",
            reference=self.reference,
            parameters=self.values(),
            takes_rng=True,
            file=inspect.getsourcefile(self.program),
            line=inspect.getsourcelines(self.program)[1],
            digest=hashlib.sha256(source.encode()).hexdigest()[:16],
        )

    def _twin(self, twin: Twin) -> Entry:
        return replace(
            self,
            name=f"{self.name}.{twin.name}",
            title=twin.title,
            formula=twin.formula,
            program=twin.program,
            sampler=twin.sampler,
            parameters=self.parameters + twin.parameters,
            default_pair=self.default_pair if twin.default_pair is None else twin.default_pair,
            loss=twin.loss,
            broken=twin.broken,
            reason=twin.reason,
            promise=twin.promise or self.promise,
            neighbours=twin.neighbours or self.neighbours,
            adjacency=self.adjacency if twin.adjacency is None else twin.adjacency,
        )

    def __getattr__(self, name: str) -> Entry:
        # reached only where there is no such field: `laplace.half_noise` is a twin, with the parent's parameters
        twins = object.__getattribute__(self, "twins")
        if name not in twins:
            raise AttributeError(f"{self.name} has no twin {name!r}; its twins: {', '.join(twins) or 'none'}")
        twin: Entry = twins[name]
        return twin.with_parameters(self.bound) if self.bound else twin

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.module, self.name, dict(self.bound))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash(self.reference)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.bound.items())
        return f"<entry {self.reference}{f' with {given}' if given else ''}>"


def _function(call: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(call, functools.partial):
        call = call.func
    return call


def _restore(module: str, name: str, bound: dict[str, Any]) -> Entry:
    found: Entry = operator.attrgetter(name)(importlib.import_module(module))
    return found.with_parameters(bound) if bound else found
