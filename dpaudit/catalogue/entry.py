"""An entry of the catalogue: a mechanism from the literature with its claim, its exact loss and its broken twins.

An entry is a mechanism: it can be audited as it stands, and it travels to workers as its name. So entries are
made at the top level of a module, under the name they carry.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import importlib
import inspect
import linecache
import operator
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dpaudit.base import validate
from dpaudit.claims import Claim
from dpaudit.data import AdjacentPair
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms.protocol import Description, Opened

Program = Callable[..., Any]
Sampler = Callable[..., Any]
Loss = Callable[..., float]
Promise = Callable[..., Claim]
Edit = Mapping[str, str | None]  # of a program: what is put in the place of a text; None: its whole line goes


def left_out(*_: Any, **__: Any) -> Any:
    """Stands for what is left out: in the code of a twin, what is its parent's."""
    raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an entry; `check(name, value)` returns the value or raises `InvalidSpec`.

    Left out, the value must be a positive number, or where the default is a whole number one of at least 1.
    """

    name: str
    default: Any
    unit: str
    meaning: str
    check: Callable[[str, object], Any] = left_out

    def __post_init__(self) -> None:
        if self.check is left_out:
            check = partial(validate.whole, least=1) if isinstance(self.default, int) else validate.positive
            object.__setattr__(self, "check", check)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a mechanism comes from: the lecture notes that treat it, None where they do not, and the original paper."""

    lecture: str | None
    paper: str


class Code(NamedTuple):
    """What a mechanism does.

    `program(data, rng, **parameters)` is one run as the literature writes it, in plain Python;
    `sampler(data, runs, rng, **parameters)` gives many runs at once with the same distribution;
    `loss(first, second, **parameters)` is the exact loss of a pair in both orders, in the claim's own parameter
    (epsilon at its delta, mu, rho), None where it is not known.
    """

    program: Program = left_out
    sampler: Sampler = left_out
    loss: Callable[..., float | None] | None = None

    def given(self, **parts: Any) -> Code:
        """The same with parts of all three bound, as where a mistake changes them alike."""
        loss = None if self.loss is None else partial(self.loss, **parts)
        return Code(partial(self.program, **parts), partial(self.sampler, **parts), loss)


NOTHING = Code()


@dataclass(frozen=True, slots=True)
class Twin:
    """What a twin changes in its parent; all else is the parent's. `reason` says in one sentence why that breaks it.

    Its words, title, reason and formula, stand here or in the table that `Entry.with_twins` is given.
    A harmless mistake is a twin that is not `broken` (`Harmless`), and `reason` says why it is none. `promise` and
    `neighbours` are for a claim that is stated too widely. A twin may be its parent at other parameters or on other
    data: `at` makes some of the parent's parameters, from the data (a pair's first) and the twin's parameters, `on`
    makes the data. What its `code` leaves out is the parent's; but one with a program or a sampler of its own, and
    neither of those, does not inherit the loss: none is known. `edit` makes the program: the parent's, with other text
    in the place of some of its own (`edited`).
    """

    title: str = ""
    reason: str = ""
    formula: str | None = None
    code: Code = NOTHING
    edit: Edit | None = None
    at: Callable[..., Mapping[str, Any]] | None = None
    on: Callable[..., Any] | None = None
    parameters: tuple[Parameter, ...] = ()
    default_pair: tuple[Any, Any] | None = None
    broken: bool = True
    promise: Promise | None = None
    neighbours: str | None = None
    adjacency: tuple[str, ...] | None = None

    def worded(self, title: str, reason: str, formula: str | None = None) -> Twin:
        """The same with these words."""
        return replace(self, title=title, reason=reason, formula=formula)


Harmless = partial(Twin, broken=False)  # a mistake that breaks nothing


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A mechanism of the catalogue, ready to run, to be printed and to be compared with the truth.

    `code` is what it does, `promise(**parameters)` the claim, and `neighbours` says in words which datasets the claim
    is made for. `adjacency` says the same where datasets are vectors of query answers, in units of the sensitivity:
    "all-differ" (each moves by at most 1), "one-differs" (one of them does), or "up" and "down" (all of them rise, or
    all fall). `every_pair(**parameters)` gives all neighbours where these are few, as for the values of one person.
    `module` is the room of the catalogue that holds the entry; `bound` are the parameters given so far.

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
    code: Code
    parameters: tuple[Parameter, ...]
    promise: Promise
    default_pair: tuple[Any, Any]
    broken: bool = False
    reason: str | None = None
    adjacency: tuple[str, ...] = ()
    every_pair: Callable[..., Iterable[tuple[Any, Any]]] | None = None
    twins: Mapping[str, Entry] = field(default_factory=dict)
    bound: Mapping[str, Any] = field(default_factory=dict)

    @property
    def program(self) -> Program:
        """One run."""
        return self.code.program

    @property
    def sampler(self) -> Sampler:
        """Many runs at once."""
        return self.code.sampler

    @property
    def loss(self) -> Callable[..., float | None] | None:
        """The exact loss of a pair, where it is known."""
        return self.code.loss

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

    def with_twins(self, table: str = "", /, **twins: Twin) -> Entry:
        """The entry with its twins by name, which then are attributes of it.

        `table` has their words, line by line: `name: title`, the reason, and the formula where it is not the entry's.
        """
        words: dict[str, list[str]] = {}
        for line in table.splitlines():
            text = " ".join(line.split())
            name, _, title = text.partition(": ")
            if name in twins:
                words[name] = [title]
            else:
                words[next(reversed(words))].append(text)
        named = {name: twins[name].worded(*lines) for name, lines in words.items()}
        return replace(self, twins={name: self._twin(name, named.get(name, twin)) for name, twin in twins.items()})

    def claim(self, parameters: Mapping[str, Any] | None = None) -> Claim:
        """What the entry promises at these parameters."""
        return self.promise(**self.with_parameters(parameters or {}).values())

    def true_loss(self, first: Any, second: Any, parameters: Mapping[str, Any] | None = None) -> float | None:
        """The exact loss between two datasets, in the claim's own parameter; None where it is not known."""
        if self.loss is None:
            return None
        loss = self.loss(first, second, **self.with_parameters(parameters or {}).values())
        return None if loss is None else float(loss)

    def true_epsilon(self, first: Any, second: Any, parameters: Mapping[str, Any] | None = None) -> float | None:
        """The same at the claim's delta, where the claim is one on epsilon; None where it is not, or not known."""
        return self.true_loss(first, second, parameters) if self.claim().parameter == "epsilon" else None

    def run(self, data: Any, rng: Any) -> Any:
        """One run of the program."""
        return self.program(data, rng, **self.values())

    def open(self) -> Opened:
        """The sampler with its parameters bound."""
        return Opened(partial(self.sampler, **self.values()), per_run=False, takes_rng=True)

    def describe(self) -> Description:
        """Names and places: those of the program; the digest is that of the room and of what all rooms share.

        The place of an edited program is that of the one in the file, whose lines its own are made of.
        """
        program = written(self.program)
        source, line = inspect.getsourcelines(program)
        return Description(
            name=self.name,
            kind="batched",
            reference=self.reference,
            parameters=self.values(),
            takes_rng=True,
            file=inspect.getsourcefile(getattr(program, "edit_of", program)),
            line=line,
            digest=_digest(self.module),
            excerpt=tuple(source),
        )

    def _twin(self, name: str, twin: Twin) -> Entry:
        program, sampler, loss = twin.code
        if twin.edit is not None:
            program = edited(self.program, f"_{name}", twin.edit)
        if loss is None and self.loss is not None and (program is sampler is left_out or twin.at or twin.on):
            loss = self._changed(self.loss, twin, 2)
        if program is left_out:
            program = self._changed(self.program, twin, 1)
        if sampler is left_out:
            sampler = self._changed(self.sampler, twin, 1)
        return replace(
            self,
            name=f"{self.name}.{name}",
            title=twin.title,
            formula=twin.formula or self.formula,
            code=Code(program, sampler, loss),
            parameters=self.parameters + twin.parameters,
            default_pair=self.default_pair if twin.default_pair is None else twin.default_pair,
            broken=twin.broken,
            reason=twin.reason,
            promise=twin.promise or self.promise,
            neighbours=twin.neighbours or self.neighbours,
            adjacency=self.adjacency if twin.adjacency is None else twin.adjacency,
        )

    def _changed(self, call: Callable[..., Any], twin: Twin, datasets: int) -> Callable[..., Any]:
        """A function of this entry whose first arguments are datasets, as one of its twin."""
        at, on = twin.at, twin.on
        if at is None and on is None:
            return call
        own = [parameter.name for parameter in self.parameters]

        @made_of(call)
        def changed(*given: Any, **parameters: Any) -> Any:
            data = [one if on is None else on(one, **parameters) for one in given[:datasets]]
            values = parameters if at is None else {**parameters, **at(given[0], **parameters)}
            return call(*data, *given[datasets:], **{name: values[name] for name in own})

        if on is None and at is not None and not _reads_first(at):
            changed.__dict__["beneath"] = lambda given: (call, {n: {**given, **at(None, **given)}[n] for n in own})
        return changed

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


def written(call: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose lines a program, a sampler or a loss is, under what binds parameters or parts to it."""
    while isinstance(call, partial) or hasattr(call, "__wrapped__"):
        call = call.func if isinstance(call, partial) else call.__wrapped__
    return call


def edited(program: Program, name: str, edit: Edit) -> Program:
    """A program under another name, with other text wherever some of its own stands; None takes out the whole line.

    It is compiled from the new text, which `inspect` finds as it does any source, behind the imports of its module, by
    which calls are compiled; its first line has the number of the old one. `edit_of` is the function in the file. What
    is made of another function says by `again` how it is made of an edited one. Raises `ValueError` for a text that is
    not there.
    """
    again, program = getattr(program, "again", None), written(program)
    lines, line = inspect.getsourcelines(program)
    changes = {f"def {program.__name__}(": f"def {name}(", **edit}
    texts = [rf"(.*{re.escape(old)}.*\n)" if new is None else f"({re.escape(old)})" for old, new in changes.items()]
    source, pattern, put = "".join(lines), re.compile("|".join(texts)), [new or "" for new in changes.values()]
    if len({found.lastindex for found in pattern.finditer(source)}) < len(put):
        raise ValueError(f"{program.__name__} does not have all of {', '.join(map(repr, changes))}")
    known = {word: each for word, each in program.__globals__.items() if word.isidentifier()}  # pytest adds others
    imports = [f"import {each.__name__} as {word}\n" for word, each in known.items() if inspect.ismodule(each)]
    text = "".join(imports) + "\n" * (line - 1 - len(imports))
    text += pattern.sub(lambda found: put[int(found.lastindex or 0) - 1], source)
    file, made = f"<{name} of {program.__module__}, edited from {program.__name__}>", dict[str, Any]()
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec", dont_inherit=True), program.__globals__, made)
    made[name].edit_of = getattr(program, "edit_of", program)
    function: Program = made[name]
    return function if again is None else again(function)


def remade(program: Program, make: Callable[..., Mapping[str, Any]]) -> Program:
    """A program that is another one at parameters made from its own.

    By `beneath` it says so to who reads it: the other program, and these parameters at values of its own.
    """

    def run(data: Any, rng: Any, **given: Any) -> Any:
        return program(data, rng, **make(**given))

    run.__dict__["beneath"] = lambda given: (program, make(**given))
    return run


def _reads_first(function: Callable[..., Any]) -> bool:
    """Whether a function uses its first argument."""
    first, used = function.__code__.co_varnames[0], (step.argval for step in dis.get_instructions(function))
    return any(first in each if isinstance(each, tuple) else first == each for each in used)


_ANY_PARAMETERS = inspect.signature(lambda data, rng, **parameters: None)


def made_of(call: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Says of a function that it is made of another one, whose lines stand for it; its parameters are its own."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        functools.update_wrapper(function, written(call), updated=())
        function.__dict__["__signature__"] = _ANY_PARAMETERS
        return function

    return mark


@functools.cache
def _digest(module: str) -> str:
    """The digest of the sources of a room, a package with all that is in it or one module, and of what rooms share."""
    home = Path(str(sys.modules[module].__file__))
    files = sorted(home.parent.rglob("*.py")) if home.stem == "__init__" else [home]
    shared = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in (*files, *shared))).hexdigest()[:16]


def _restore(module: str, name: str, bound: dict[str, Any]) -> Entry:
    entry: Entry = operator.attrgetter(name)(importlib.import_module(module))
    return entry.with_parameters(bound) if bound else entry
