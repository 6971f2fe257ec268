"""Mechanisms made of Python functions: one run at a time, many at once, built in the worker, or imported there.

`wrap` makes a mechanism of anything that an audit takes.
"""

import functools
import hashlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from dpaudit.base import validate
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.mechanisms.command import Command
from dpaudit.mechanisms.importing import import_reference, in_a_line
from dpaudit.mechanisms.protocol import Description, Known, Mechanism, Opened, is_known

GENERATORS = ("gen", "generator")
NUMPYS = ("numpy.random._generator", "Generator")  # known without importing it
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class _OfFunction:
    function: Callable[..., Any]
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return name_of(self.function)


@dataclass(frozen=True, slots=True)
class PerRun(_OfFunction):
    """A function of one run: `f(data, rng)`, or `f(data)` that owns its randomness."""

    def open(self) -> Opened:
        call, takes_rng = _bind(self.function, self.parameters, leading=1, form="f(data, rng) or f(data)")
        return Opened(call, per_run=True, takes_rng=takes_rng)

    def describe(self) -> Description:
        return describe(self.function, "per-run", self.parameters, self.open().takes_rng)


@dataclass(frozen=True, slots=True)
class Batched(_OfFunction):
    """A function of many runs, `f(data, runs, rng)`, whose result has the run as first axis; see `batched`."""

    size: int = 0

    def open(self) -> Opened:
        form = "f(data, runs, rng) or f(data, runs)"
        call, takes_rng = _bind(self.function, self.parameters, leading=2, form=form)
        return Opened(call, per_run=False, takes_rng=takes_rng, size=self.size)

    def describe(self) -> Description:
        parameters = {**self.parameters, **({"size": self.size} if self.size else {})}
        return describe(self.function, "batched", parameters, self.open().takes_rng)


def batched(function: Callable[..., Any] | Batched, /, *, size: int | None = None, **parameters: Any) -> Batched:
    """Marks `f(data, runs, rng)` as a function of many runs; other keywords are bound to it.

    It returns an array with the run as first axis, a tuple or dict of such arrays (the coordinates of one
    output), a masked array where an entry is absent, or a list of `runs` objects.

    How many runs a call is asked for follows the coins that draw their sides. With `size` it is always that many, as
    suits what is compiled for a shape (JAX), and the first of them count, as many as the coins ask for: that number
    is drawn before the call, and the same way for both datasets, so what is thrown away tells nothing of a side.
    A call that raises is then no verdict. Raises `InvalidSpec` unless `size` is a whole number from 1 on.

    >>> noisy = batched(lambda data, runs, rng: data + rng.laplace(size=runs), size=4096)
    >>> noisy.open().per_run, noisy.open().size
    (False, 4096)
    """
    fixed = 0 if size is None else validate.whole("size", size, least=1)
    if isinstance(function, Batched):
        return Batched(function.function, {**function.parameters, **parameters}, fixed or function.size)
    check_callable("batched", function)
    return Batched(function, parameters, fixed)


def check_callable(wrapper: str, value: object) -> None:
    if not callable(value):
        raise InvalidSpec(f"dpaudit.{wrapper} takes a function, got {type(value).__name__}")


def name_of(function: Callable[..., Any]) -> str:
    if isinstance(function, functools.partial):
        return name_of(function.func)
    return getattr(function, "__qualname__", type(function).__name__).replace("<locals>.", "")


def _bind(
    function: Callable[..., Any], parameters: dict[str, Any], *, leading: int, form: str
) -> tuple[Callable[..., Any], bool]:
    """The function as `call(data[, runs], rng)`, and whether it takes the generator (see `_generator_of`)."""
    if isinstance(function, type) and any("__call__" in vars(each) for each in function.__mro__):
        name = name_of(function)
        raise InvalidSpec(f"{name} is a class, whose objects are called: give one of them, or dpaudit.built_by({name})")
    bound = functools.partial(function, **parameters) if parameters else function
    try:
        arguments = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature owns its randomness
        return (lambda *given: bound(*given[:-1])), False
    positional = [a.name for a in arguments if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD)]
    named = {a.name for a in arguments if a.kind in (a.POSITIONAL_OR_KEYWORD, a.KEYWORD_ONLY)}
    kinds = {a.kind for a in arguments}
    rng = _generator_of(function, [a for a in arguments if a.kind not in VARIADIC and a.name not in parameters])
    if len(positional) < leading and inspect.Parameter.VAR_POSITIONAL not in kinds or rng in positional[:leading]:
        raise InvalidSpec(
            f"{name_of(function)} must be callable as {form}, got {name_of(function)}{inspect.signature(function)}"
        )
    if inspect.Parameter.VAR_KEYWORD not in kinds and (unknown := [name for name in parameters if name not in named]):
        known = ", ".join(sorted(named - {rng} - set(positional[:leading]))) or "none"
        raise InvalidSpec(f"{name_of(function)} has no parameter {unknown[0]!r}; it has: {known}")
    filled = {rng, *parameters, *positional[:leading]}
    for each in arguments:
        if each.default is each.empty and each.kind not in VARIADIC and each.name not in filled:
            cure = "give it in parameters, or call it rng, gen or generator where it is to get the generator"
            raise InvalidSpec(f"{name_of(function)} needs a value for {each.name!r}; {cure}")
    if not rng:
        return (lambda *given: bound(*given[:-1])), False
    if positional[leading : leading + 1] == [rng]:
        return bound, True
    return (lambda *given: bound(*given[:-1], **{rng: given[-1]})), True


def _generator_of(function: Callable[..., Any], arguments: list[inspect.Parameter]) -> str:
    """The parameter that is to get the generator, or none: called rng, annotated as one, or called as in `GENERATORS`.

    One of the last counts only without an annotation, and with no default but None.
    """
    if any(each.name == "rng" for each in arguments):
        return "rng"
    for each in arguments:
        if _is_generator(each.annotation, function):
            return each.name
    for each in arguments[1:]:
        if (
            each.name in GENERATORS
            and each.annotation is each.empty
            and (each.default is None or each.default is each.empty)
        ):
            return each.name
    return ""


def _is_generator(annotation: Any, function: Callable[..., Any]) -> bool:
    """Whether an annotation says `np.random.Generator`, alone or with None; a string is evaluated first."""
    if isinstance(annotation, str):
        if "Generator" not in annotation:
            return False
        inner: Any = inspect.unwrap(function.func if isinstance(function, functools.partial) else function)
        try:
            annotation = eval(annotation, getattr(inner, "__globals__", {}))  # as `typing.get_type_hints` does
        except Exception:  # what is imported for type checkers alone
            return bool(re.fullmatch(r"(np|numpy)\.random\.Generator( \| None)?", annotation))
    return any(
        (getattr(each, "__module__", ""), getattr(each, "__qualname__", "")) == NUMPYS
        for each in (annotation, *get_args(annotation))
    )


def describe(function: Callable[..., Any], kind: str, parameters: dict[str, Any], takes_rng: bool) -> Description:
    inner = inspect.unwrap(function.func if isinstance(function, functools.partial) else function)
    if not (inspect.isfunction(inner) or inspect.ismethod(inner) or inspect.isclass(inner)):
        inner = type(inner)
    try:
        source, line = inspect.getsourcelines(inner)
        file = inspect.getsourcefile(inner)
    except (OSError, TypeError):
        source, line, file = [], None, None
    digest = hashlib.sha256("".join(source).encode()).hexdigest()[:16] if source else None
    module = getattr(inner, "__module__", None)
    reference = f"{module}:{name_of(function)}" if module not in (None, "__main__", "builtins") else None
    if reference is not None and ("<" in reference or "." in name_of(function)):
        reference = None  # a function made inside another cannot be imported again
    details = dict(parameters), takes_rng, file, line, digest, tuple(source)
    return Description(name_of(function), kind, reference, *details)


@dataclass(frozen=True, slots=True)
class BuiltBy:
    """A factory called once inside each worker, for objects that cannot be pickled; it returns a mechanism."""

    make: Callable[..., Any]
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What is made: the name of the factory without a leading "make_"."""
        return re.sub(r"\b_?make_(?=\w)", "", name_of(self.make))

    def build(self) -> Any:
        """What the factory makes. Raises `InvalidSpec` where it cannot."""
        try:
            return self.make(**self.parameters)
        except DpAuditError:
            raise
        except Exception as error:
            raise InvalidSpec(f"{name_of(self.make)} could not build the mechanism: {in_a_line(error)}") from None

    def open(self) -> Opened:
        return wrap(self.build()).open()

    def describe(self) -> Description:
        description = describe(self.make, "built in the worker", self.parameters, self.open().takes_rng)
        return replace(description, name=self.name)


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
        mechanism = kinds[self.kind](target) if self.kind in kinds and inspect.isroutine(target) else target
        return wrap(mechanism, self.parameters)

    def open(self) -> Opened:
        return self.resolve().open()

    def describe(self) -> Description:
        inner = self.resolve().describe()
        size = {key: value for key, value in inner.parameters.items() if (inner.kind, key) == ("batched", "size")}
        return replace(inner, name=self.name, reference=self.reference, parameters={**size, **self.parameters})


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
        raise InvalidSpec(f"parameters must be a dictionary such as {{'scale': 2.0}}, got {parameters!r}")
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
    entry = import_reference(reference)
    if not is_known(entry):
        raise InvalidSpec(f"mechanism {reference!r} is no entry; `dpaudit catalogue` lists them")
    return entry.with_parameters(parameters)
