"""When two outputs are one: a hashable form, equal for outputs that cannot be distinguished, and for no others.

All counts that a user can see: the type, the value with its sign and its digits, dtype and shape, the order of a dict
or a set, the message of an exception, and what an instance of a class carries besides. Only addresses, the layout of
memory, tracebacks and which parts are one object do not count. What may hold more than can be read is refused.
"""

import contextlib
import datetime
import enum
import struct
from builtins import type  # the real one: while mechanisms run there is another in its place
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from types import MemberDescriptorType
from typing import Any, TypeVar

import numpy as np

from dpaudit.errors import DpAuditError, Interrupted, UnsoundAudit
from dpaudit.verify.replay.faces import Uniform
from dpaudit.verify.replay.source import StandIn
from dpaudit.verify.replay.tails import Unbounded

PLAIN = frozenset({int, str, bytes, type(None)})  # values of these are their own forms
DEEPEST = 100  # levels of nesting
LONGEST = 1_000_000  # entries of an iterator
POINTER = struct.calcsize("P")  # bytes
T = TypeVar("T")
Form = Callable[[Any], Hashable]
Read = Callable[[Any, Form], Hashable]


@dataclass(frozen=True, slots=True)
class Shaped:
    """An output that is no plain number or text and no tuple: its type and its content."""

    kind: type
    content: Hashable

    def __repr__(self) -> str:
        return f"{_name(self.kind)}({self.content if isinstance(self.content, str) else repr(self.content)})"


@dataclass(frozen=True, slots=True)
class Raised:
    """Stands where an output would: the run raised this type of exception, with this message, and with this form."""

    kind: type
    message: str
    content: Hashable = ()

    def __repr__(self) -> str:
        return f"raised {_name(self.kind)}" + (f": {self.message}" if self.message else "")


def canonical(output: Any) -> Hashable:
    """The hashable form of an output. Raises `UnsoundAudit` where there is none.

    >>> canonical((1, [2.0, "a"])), canonical(True), canonical(-0.0)
    ((1, list((float(2.0), 'a'))), bool(True), float(-0.0))
    >>> canonical({"a": 1, "b": 2}) == canonical({"b": 2, "a": 1})
    False
    """
    kind = type(output)
    if kind in PLAIN or kind is tuple and PLAIN.issuperset(map(type, output)):
        return output  # type: ignore[no-any-return]
    return _guarded(lambda: _form(output, 0))


def raised(error: BaseException) -> Raised:
    """The output that an exception is: its type, its message, its arguments, its causes and what else it carries.

    >>> raised(ValueError("no answer"))
    raised ValueError: no answer
    """
    return Raised(type(error), *_guarded(lambda: (str(error), _form(error, 0))))


def _guarded(step: Callable[[], T]) -> T:
    """A step that calls code of the output itself, whose failure is not an output of the mechanism."""
    try:
        return step()
    except (DpAuditError, Interrupted, KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        raise UnsoundAudit(f"an output cannot be read: {type(error).__name__}; return plain values") from error


def _form(value: Any, depth: int) -> Hashable:
    kind = type(value)
    if kind in PLAIN:
        return value  # type: ignore[no-any-return]
    if depth > DEEPEST:
        raise UnsoundAudit(f"an output is nested more than {DEEPEST} levels deep; return a flat one")
    if kind is Uniform:
        raise value.refuse("as an output")
    if kind is Unbounded:
        return value.form()  # type: ignore[no-any-return]
    if issubclass(kind, enum.Enum):
        return Shaped(kind, value._name_ or _form(value._value_, depth + 1))

    def form(part: Any) -> Hashable:
        return _form(part, depth + 1)

    base = _base(kind)  # type: ignore[arg-type]
    if base is None:
        if not issubclass(kind, Iterator) or kind.__module__ not in ("builtins", "itertools"):
            raise UnsoundAudit(
                f"an output of type {_name(kind)} cannot be told apart by its content; return plain values: numbers, "
                "texts, tuples, lists, dicts, sets or arrays of them"
            )
        return Shaped(kind, _given(value, form))
    content = FORMS[base](value, form)
    carried = None if kind is base and kind is not BaseException else _carried(value)
    if carried:
        content = (content, form(carried))
    return content if kind is tuple else Shaped(kind, content)


@lru_cache(maxsize=1024)
def _base(kind: type) -> type | None:
    """The type that says how to read a value of this one; None where a part of it may be out of sight."""
    if issubclass(kind, BaseException):
        return BaseException
    place, base = next((place, each) for place, each in enumerate(kind.__mro__) if each in FORMS)
    own = getattr(type(kind), "__eq__", None) is not object.__eq__  # of its metaclass: it may call two classes one
    hidden = own or issubclass(kind, StandIn) or any(_hides(each, base) for each in kind.__mro__[:place])
    return None if hidden else base


@lru_cache(maxsize=1024)
def _slots(kind: type) -> dict[tuple[type, str], Any]:
    """The descriptors of the slots of a class written in Python, whatever it says of them."""
    members = [each for base in kind.__mro__ if "__slots__" in vars(base) for each in vars(base).values()]
    return {(each.__objclass__, each.__name__): each for each in members if type(each) is MemberDescriptorType}


def _carried(value: Any) -> Any:
    """The attributes and the slots of an instance, past what its class says of them."""
    slots = []
    for (_, name), slot in _slots(type(value)).items():  # type: ignore[arg-type]
        with contextlib.suppress(AttributeError):  # a slot without a value
            slots.append((name, slot.__get__(value)))
    return (object.__getstate__(value), *slots) if slots else object.__getstate__(value)


def _hides(kind: type, base: type) -> bool:
    """Whether an instance has room for more than what its base and its attributes show, as classes written in C do."""
    attributes = len(_slots(kind)) + bool(kind.__dictoffset__) + bool(kind.__weakrefoffset__)
    room = base.__basicsize__ + POINTER * attributes
    return kind.__basicsize__ > room or kind.__itemsize__ != base.__itemsize__ or hasattr(kind, "n_sequence_fields")


def _given(value: Iterator[Any], form: Form) -> Hashable:
    """What an iterator gives, which is all that can be seen of it."""
    entries = tuple(map(form, islice(value, LONGEST + 1)))
    if len(entries) > LONGEST:
        raise UnsoundAudit(f"an output is an iterator of more than {LONGEST:,} entries; return a list")
    return entries


def _float(value: Any, form: Form) -> Hashable:
    plain = float.__pos__(value)  # of a subclass too, whatever it says of itself
    return repr(plain) if plain == plain else "nan of bits " + struct.pack(">d", plain).hex()


def _scalar(value: Any, form: Form) -> Hashable:
    plain = np.generic.item(value)
    return repr(plain) if isinstance(plain, np.generic) else form(plain)  # numpy's long doubles are their own items


def _array(value: Any, form: Form) -> Hashable:
    plain = np.asarray(value)  # without what a subclass says of itself
    if isinstance(value, np.ma.MaskedArray) or plain.dtype.names or plain.dtype.kind in "mMVT" or plain.dtype.metadata:
        raise UnsoundAudit("an output is an array with a mask, fields, dates or long texts; return plain numbers")
    by_entry = plain.dtype.kind == "O" or plain.dtype.char in "gG"  # the bytes are addresses, or padded
    entries = tuple(map(form, plain.ravel().tolist())) if by_entry else plain.tobytes()
    return plain.dtype.str, plain.shape, entries


def _set(kind: type) -> Read:
    def read(value: Any, form: Form) -> Hashable:
        entries = list(kind.__iter__(value))  # type: ignore[attr-defined]
        if len(entries) > 1 and not all(map(_hash_is_fixed, entries)):
            raise UnsoundAudit(
                "an output is a set of several texts or objects, whose order tells how it was made, otherwise in each "
                "process; return sorted(...) of it"
            )
        return tuple(map(form, entries))

    return read


def _hash_is_fixed(value: Any) -> bool:
    """Whether the order of a set of such values is the same in every process."""
    return type(value) in NUMBERS or type(value) is tuple and all(map(_hash_is_fixed, value))


def _pairs(items: Callable[[Any], Any]) -> Read:
    return lambda value, form: tuple((form(key), form(entry)) for key, entry in items(value))


def _default_dict(value: Any, form: Form) -> Hashable:
    factory = _own(defaultdict, "default_factory")(value)
    if factory is not None and not isinstance(factory, type):
        raise UnsoundAudit("an output is a defaultdict with a function of its own; return dict(...) of it")
    return factory, _pairs(dict.items)(value, form)


def _entries(kind: type) -> Read:
    return lambda value, form: tuple(map(form, kind.__iter__(value)))  # type: ignore[attr-defined]


def _failure(value: Any, form: Form) -> Hashable:
    """With what it came from, which is printed before it: of tracebacks only the lines do not count."""
    shown = "args", "__cause__", "__suppress_context__", "__context__"
    args, cause, hidden, context = (_own(BaseException, name)(value) for name in shown)
    return str(value), form(args), form(cause), None if hidden else form(context)


def _own(kind: type, name: str) -> Callable[[Any], Any]:
    """An attribute as the type itself has it, whatever a subclass puts in its place."""
    return vars(kind)[name].__get__  # type: ignore[no-any-return]


def _text(kind: type) -> Read:
    return lambda value, form: kind.__repr__(value)  # type: ignore[call-arg]


SCALARS = set(np.sctypeDict.values()) - {np.void, np.object_, np.datetime64, np.timedelta64}
NUMBERS = frozenset({int, bool, float, complex, Fraction, Decimal} | (SCALARS - {np.str_, np.bytes_}))
WRITTEN = (bool, Fraction, Decimal, range, datetime.date, datetime.timedelta, datetime.timezone)
FORMS: dict[type, Read] = {
    object: lambda value, form: (),
    int: lambda value, form: int.__pos__(value),
    float: _float,
    complex: lambda value, form: (form(complex.__pos__(value).real), form(complex.__pos__(value).imag)),
    str: lambda value, form: str.__str__(value),
    bytes: lambda value, form: memoryview(value).tobytes(),
    bytearray: lambda value, form: memoryview(value).tobytes(),
    memoryview: lambda value, form: (value.format, value.shape, value.tobytes(), form(value.obj)),
    tuple: _entries(tuple),
    list: _entries(list),
    deque: lambda value, form: (_own(deque, "maxlen")(value), _entries(deque)(value, form)),
    dict: _pairs(dict.items),
    OrderedDict: _pairs(OrderedDict.items),
    defaultdict: _default_dict,
    set: _set(set),
    frozenset: _set(frozenset),
    np.ndarray: _array,
    datetime.datetime: lambda value, form: (
        datetime.datetime.__repr__(value),
        form(_own(datetime.datetime, "tzinfo")(value)),
    ),
    datetime.time: lambda value, form: (datetime.time.__repr__(value), form(_own(datetime.time, "tzinfo")(value))),
    BaseException: _failure,
    **dict.fromkeys(SCALARS, _scalar),
    **{kind: _text(kind) for kind in WRITTEN},
}
FORMS |= {np.str_: FORMS[str], np.bytes_: FORMS[bytes]}  # with the zeros at their ends


def _name(kind: type) -> str:
    kind = next(each for each in kind.__mro__ if isinstance(each.__module__, str))  # faces hide theirs
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
