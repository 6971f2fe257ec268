"""The number that `rng.random()` gives: known only by the comparisons it has met, each of exact probability.

It is k * 2^-53 for a whole k that is uniform in [low, high). A comparison cuts that range in two, and the run goes on
in one part; another replay takes the other. Anything else that a program could do with the number is refused.
"""

import math
from builtins import type  # the real one: while mechanisms run there is another in its place
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from dpaudit.verify.replay.source import Cut, StandIn
from dpaudit.verify.replay.weights import GRID, exact

ONLY_COMPARED = (
    "a draw of rng.random() can be replayed where it is compared with numbers only, and here it was used otherwise "
    "({}); draw a finite value instead: integers, choice, or random() < p"
)


def _as_a_double_s(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    """A comparison whose answer is of the type that a double's would be."""

    def method(self: "Uniform", other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return _each(lambda entry: compare(self, entry), other)
        found = compare(self, other)
        return np.bool_(found) if self.numpys or isinstance(other, np.generic) else found

    return method


class Uniform:
    """A draw of rng.random() that has been told apart from some numbers, and from nothing else.

    `numpys` says that it stands for a number of numpy's, an entry of an array.
    """

    __slots__ = ("high", "low", "numpys", "source")

    def __init__(self, source: StandIn) -> None:
        self.source = source
        self.low, self.high, self.numpys = 0, GRID, False

    def _below(self, cut: int) -> bool:
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

    def _cut(self, other: Any, *, inclusive: bool) -> int:
        """The number of k in [0, 2^53) with k * 2^-53 below the other number, or at most it."""
        if type(other) is float and 0.0 < other < 1.0:  # quick; a double times a power of two is exact
            return math.floor(other * GRID) + 1 if inclusive else math.ceil(other * GRID)
        if type(other) is Uniform:
            raise self.refuse("compared with another draw")
        if isinstance(other, np.integer | np.bool_):
            other = int(other)
        value = exact(other)
        if value is None:
            if isinstance(other, float):  # infinite; NaN never comes here
                return GRID if other > 0.0 else 0
            raise self.refuse(f"compared with {type(other).__name__}")
        scaled = value * GRID
        return math.floor(scaled) + 1 if inclusive else math.ceil(scaled)

    @_as_a_double_s
    def __lt__(self, other: Any) -> bool:
        return other is not self and not _is_nan(other) and self._below(self._cut(other, inclusive=False))

    @_as_a_double_s
    def __le__(self, other: Any) -> bool:
        return other is self or not _is_nan(other) and self._below(self._cut(other, inclusive=True))

    @_as_a_double_s
    def __gt__(self, other: Any) -> bool:
        return other is not self and not _is_nan(other) and not self._below(self._cut(other, inclusive=True))

    @_as_a_double_s
    def __ge__(self, other: Any) -> bool:
        return other is self or not _is_nan(other) and not self._below(self._cut(other, inclusive=False))

    @_as_a_double_s
    def __eq__(self, other: Any) -> bool:
        return bool(self <= other and not self < other)

    @_as_a_double_s
    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __bool__(self) -> bool:
        return bool(self > 0)

    def refuse(self, what: str) -> Exception:
        """The error for a use that cannot be replayed."""
        return self.source.refuse(ONLY_COMPARED.format(what))

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return float  # as what it stands for

    def __copy__(self) -> "Uniform":
        return self

    def __deepcopy__(self, memo: object) -> "Uniform":
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
    def method(self: Uniform, *arguments: Any, **options: Any) -> NoReturn:
        raise self.refuse(name)

    return method


_ARITHMETIC = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or"
_OTHER = "neg pos abs invert round trunc floor ceil float int complex index hash str repr format reduce_ex"
_NAMES = f"{_ARITHMETIC} r{_ARITHMETIC.replace(' ', ' r')} {_OTHER}"
for _name in _NAMES.split():
    setattr(Uniform, f"__{_name}__", _refused(_name))


def number_in(low: int, high: int, *, last: bool) -> float:
    """The first or the last number of a range, as the generator itself would have given it.

    >>> number_in(0, GRID, last=False), number_in(0, GRID // 2, last=True) < 0.5
    (0.0, True)
    """
    return float(Fraction(high - 1 if last else low, GRID))
