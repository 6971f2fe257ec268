"""What a mechanism sees of a stand-in: a generator, and the numbers that its `random()` gives.

The generator is an instance of a true subclass of numpy's Generator, with the same attributes and no other. Draws go to
the stand-in behind it; whatever would distinguish the two, or copy it, is refused.

A number of `random()` is k * 2^-53 for a whole k that is uniform in [low, high). A comparison cuts that range in two,
and the run continues in one part; another run takes the other. Any other use of the number is refused.
"""

import builtins
import copy
import math
import types
from builtins import type  # the real one: while mechanisms run there is another in its place
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from dpaudit.errors import DpAuditError
from dpaudit.verify.replay.source import CONTINUOUS, GRID, Cut, StandIn, exact, refusal

ONLY_COMPARED = (
    "a draw of rng.random() can be replayed where it is compared with numbers only, and here it was used otherwise "
    "({}); draw a finite value instead: integers, choice, or random() < p"
)


def _as_a_number_s(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    """A comparison whose answer is of the type that a number's would be."""

    def method(self: "DrawnNumber", other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return _each(lambda entry: compare(self, entry), other)
        answer = compare(self, other)
        return np.bool_(answer) if self.numpys or isinstance(other, np.generic) else answer

    return method


def _ordered(inclusive: bool, turned: bool) -> Callable[[Any, Any], Any]:
    """Whether a draw is below a number, or with `inclusive` at most it; with `turned` whether it is not."""

    @_as_a_number_s
    def compare(self: "DrawnNumber", other: Any) -> bool:
        if other is self or _is_nan(other):
            return other is self and inclusive != turned
        if isinstance(other, DrawnNumber):
            raise self.refuse("compared with another draw")
        number = exact(int(other) if isinstance(other, np.integer | np.bool_) else other)
        if number is None and not isinstance(other, float):
            raise self.refuse(f"compared with {type(other).__name__}")
        return (other > 0.0 if number is None else self.is_below(number, inclusive)) != turned

    def method(self: "DrawnNumber", other: Any) -> Any:
        if type(other) is float and 0.0 < other < 1.0 and type(self) is Uniform and not self.numpys:
            scaled = other * GRID  # quick; times a power of two a double is exact
            return self.below(math.floor(scaled) + 1 if inclusive else math.ceil(scaled)) != turned
        return compare(self, other)

    return method


class DrawnNumber:
    """A number that was drawn and is compared with numbers, each of which cuts its law in two; and not used otherwise.

    `numpys` says that it stands for a number of numpy's, an entry of an array.
    """

    __slots__ = ()
    source: StandIn
    numpys = False

    def is_below(self, number: Fraction, inclusive: bool) -> bool:
        """Whether it is below a number, or with `inclusive` at most it."""
        raise NotImplementedError

    __lt__, __le__ = _ordered(inclusive=False, turned=False), _ordered(inclusive=True, turned=False)
    __gt__, __ge__ = _ordered(inclusive=True, turned=True), _ordered(inclusive=False, turned=True)

    @_as_a_number_s
    def __eq__(self, other: Any) -> bool:
        return bool(self <= other and not self < other)

    @_as_a_number_s
    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __bool__(self) -> bool:
        return bool(self != 0)

    def refuse(self, what: str) -> Exception:
        """The error for a use that cannot be replayed."""
        return self.source.refuse(ONLY_COMPARED.format(what))

    def __copy__(self) -> "DrawnNumber":
        return self

    def __deepcopy__(self, memo: object) -> "DrawnNumber":
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Comparisons with numpy's numbers and arrays; every other function of numpy is refused."""
        turned = _COMPARISONS.get(ufunc.__name__)
        if turned is None or method != "__call__" or options or len(inputs) != 2:
            raise self.refuse(f"numpy.{ufunc.__name__}")
        if inputs[0] is self:
            return _each(lambda other: getattr(self, turned[0])(other), inputs[1])
        return _each(lambda other: getattr(self, turned[1])(other), inputs[0])

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise self.refuse(f".{name}")


class Uniform(DrawnNumber):
    """A draw of rng.random(): k * 2^-53 for a k from `low` to below `high`."""

    __slots__ = ("high", "low", "numpys", "source")
    __class__: Any = property(lambda self: float)  # as what it stands for

    def __init__(self, source: StandIn) -> None:
        self.source = source
        self.low, self.high, self.numpys = 0, GRID, False

    def below(self, cut: int) -> bool:
        """Whether k < cut."""
        if cut <= self.low:
            return False
        if cut >= self.high:
            return True
        if self.source.pick(_weights(cut - self.low, self.high - cut)) == 0:
            self.high = cut
            return True
        self.low = cut
        return False

    def is_below(self, number: Fraction, inclusive: bool) -> bool:
        scaled = number * GRID
        return self.below(math.floor(scaled) + 1 if inclusive else math.ceil(scaled))


_COMPARISONS = {
    "less": ("__lt__", "__gt__"),
    "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"),
    "equal": ("__eq__", "__eq__"),
    "not_equal": ("__ne__", "__ne__"),
}


def _each(compare: Callable[[Any], bool], other: Any) -> Any:
    other = np.asarray(other)
    return np.array([compare(entry) for entry in other.ravel()], bool).reshape(other.shape)[()]


@lru_cache(maxsize=4096)
def _weights(below: int, above: int) -> Cut:
    divisor = math.gcd(below, above)
    return Cut(below // divisor, above // divisor)


def _is_nan(other: Any) -> bool:
    return isinstance(other, float) and other != other


def _refused(name: str) -> Callable[..., NoReturn]:
    def method(self: DrawnNumber, *arguments: Any, **options: Any) -> NoReturn:
        raise self.refuse(name)

    return method


_ARITHMETIC = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or"
_OTHER = "neg pos abs invert round trunc floor ceil float int complex index hash str repr format reduce_ex"
_NAMES = f"{_ARITHMETIC} r{_ARITHMETIC.replace(' ', ' r')} {_OTHER}"
for _name in _NAMES.split():
    setattr(DrawnNumber, f"__{_name}__", _refused(_name))


def number_in(low: int, high: int, *, last: bool) -> float:
    """The first or the last number of a range, as the generator itself would have given it.

    >>> number_in(0, GRID, last=False), number_in(0, GRID // 2, last=True) < 0.5
    (0.0, True)
    """
    return math.ldexp(high - 1 if last else low, -53)


BITS = np.random.SFC64(0)  # behind every face; it moves where a draw goes past the stand-in
GENERATOR = np.random.Generator
TOLD = "__repr__ __str__ __format__ __sizeof__ __getstate__ __setstate__ __reduce__ __reduce_ex__ __copy__ __deepcopy__"


def face(source: StandIn) -> Any:
    """What a mechanism is given as its rng."""
    view: Any = FACE(BITS)
    BEHIND.__set__(view, source)
    return view


def numpys(name: str, arguments: Iterable[Any], options: Mapping[str, Any]) -> Any:
    """What numpy's own generator draws with these arguments, if it takes them; its state stays."""
    before = BITS.state
    try:
        return getattr(GENERATOR(BITS), name)(*arguments, **options)
    finally:
        BITS.state = before


def _class() -> tuple[type, Any]:
    """The class of the faces, and the descriptor of the stand-in behind one, which is no attribute of it."""

    def draw(name: str) -> Any:
        def method(seen: Any, *arguments: Any, **options: Any) -> Any:
            try:
                plain = not options and {*map(type, arguments)} <= {int, float}
                if plain and (name != "choice" or len(arguments) < 2):
                    return getattr(get(seen), name)(*arguments)  # quick
                same = [copy.copy(each) for each in arguments], {key: copy.copy(each) for key, each in options.items()}
                drawn = getattr(get(seen), name)(*arguments, **options)
                if name not in CONTINUOUS:
                    numpys(name, *same)
                return drawn
            except DpAuditError:
                raise
            except Exception as error:  # where either raises the other may not, or raise something else
                text = f"the stand-in for rng cannot do what the mechanism asks of it: {name}: {error}"
                raise get(seen).refuse(text) from None

        own = getattr(GENERATOR, name)
        method.__name__, method.__qualname__, method.__doc__ = name, own.__qualname__, own.__doc__
        return method

    def refusal_of(name: str) -> Any:
        def method(seen: Any, *arguments: Any, **options: Any) -> Any:
            raise behind.__get__(seen).refuse(refusal(name))

        return method if name.startswith("__") else property(method)

    def lacking(seen: Any, name: str) -> Any:
        raise AttributeError(f"'{GENERATOR.__module__}.{GENERATOR.__name__}' object has no attribute {name!r}")

    members: dict[str, Any] = {"__doc__": GENERATOR.__doc__, "__slots__": ("_source",)}
    for name in dir(GENERATOR):
        if not name.startswith("__") or name in TOLD.split():
            members[name] = draw(name) if name[0] != "_" and callable(getattr(GENERATOR, name)) else refusal_of(name)
    members |= {name: refusal_of(name) for name in TOLD.split()}
    members["__module__"] = property()  # an instance of a type written in C says of none
    members |= {"__class__": property(lambda seen: GENERATOR), "__dir__": lambda seen: dir(GENERATOR)}
    view: Any = type(GENERATOR.__name__, (GENERATOR,), {**members, "__getattr__": lacking})
    behind = view.__dict__["_source"]
    get = behind.__get__
    del view._source, view.__slots__
    return view, behind


FACE, BEHIND = _class()
SEEMS: dict[type, type] = {Uniform: float, FACE: GENERATOR}


class _Asked(type):
    """Answers `type(x)` in place of Python's own."""

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        if cls is not Type:
            return TYPE.__call__(cls, *arguments, **options)
        answer = TYPE(*arguments, **options)
        if len(arguments) == 1 and answer in (TYPE, _Asked):
            return Type
        return SEEMS.get(answer, answer)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, TYPE) if cls is Type else TYPE.__instancecheck__(cls, value)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, TYPE) if cls is Type else TYPE.__subclasscheck__(cls, kind)

    def __eq__(cls, other: object) -> bool:
        return other is cls or cls is Type and other is TYPE

    def __hash__(cls) -> int:
        return hash(TYPE) if cls is Type else TYPE.__hash__(cls)


TYPE = type


class Type(type, metaclass=_Asked):
    """Python's `type`, except that of a face it gives the type that the face stands for."""

    __module__, __qualname__ = TYPE.__module__, TYPE.__qualname__
    __class_getitem__: Any = classmethod(types.GenericAlias)


Type.__name__ = TYPE.__name__


@contextmanager
def types_as_they_seem() -> Iterator[None]:
    """While mechanisms run, `type(rng)` is the generator's own: no class can say that of its instances."""
    before, builtins.type = builtins.type, Type  # type: ignore[misc]
    try:
        yield
    finally:
        builtins.type = before  # type: ignore[misc]
