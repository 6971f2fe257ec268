"""Estimators of the scikit-learn kind, and diffprivlib: made again for every run, `random_state` from our stream."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from dpaudit.adapters.adapted import Adapted
from dpaudit.claims import Claim, claim_of
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms.functions import check_callable
from dpaudit.mechanisms.protocol import Description

if TYPE_CHECKING:
    import numpy as np

SHOWN = (bool, int, float, complex, str, bytes, type(None))
NOT_SHOWN = "not shown"
DEEPEST = 8  # levels of what an estimator holds


def estimator(
    make: Callable[..., Any], attributes: Sequence[str] | None = None, label: int | None = None, **parameters: Any
) -> "Estimator":
    """What `make(**parameters).fit(...)` learns: all attributes whose names end in `_`, or some, as a dictionary.

    A dataset is rows, of which `label` is the place of the label (-1: the last entry; None: there is none), or a table
    {"X": rows, "y": labels}. Arrays are shown as lists of numbers, and estimators inside as dictionaries; what cannot
    be shown is named under "not shown". Where `make` takes `random_state`, it is a `numpy.random.RandomState` on the
    stream of the audit's `rng`, and runs repeat bit for bit where the estimator draws from nothing else.

    >>> class Mean:
    ...     def fit(self, X, y=None):
    ...         self.mean_ = sum(map(sum, X)) / len(X)
    ...         return self
    >>> estimator(Mean).open().call([[1.0], [2.0]], None)
    {'mean_': 1.5}
    """
    check_callable("adapters.estimator", make)
    return Estimator(make, parameters, None if attributes is None else tuple(attributes), label)


def diffprivlib(
    thing: Callable[..., Any], attributes: Sequence[str] | None = None, label: int | None = None, **parameters: Any
) -> "Diffprivlib":
    """A mechanism, a tool or a model of diffprivlib, with its own epsilon and delta as the claim.

    A mechanism (a class with `randomise`) is made anew for every run, a tool (a function of an array) is called, and a
    model is an `estimator`. Each takes `random_state` from the audit's `rng`, so that results repeat bit for bit;
    without it most mechanisms draw from `secrets`, and that source is not what was audited. Models and tools spend from
    an accountant of their own in each run.

        dpaudit.audit(dpaudit.adapters.diffprivlib(Laplace, epsilon=1.0, sensitivity=1.0), pair=(0.0, 1.0))
    """
    if hasattr(thing, "randomise") and not isinstance(thing, type):
        raise InvalidSpec("give the class of the mechanism and its keywords, diffprivlib(Laplace, epsilon=1.0, ...)")
    check_callable("adapters.diffprivlib", thing)
    return Diffprivlib(thing, parameters, None if attributes is None else tuple(attributes), label)


@dataclass(frozen=True, slots=True)
class Estimator(Adapted):
    """An estimator that is made and fitted in every run; made by `estimator`."""

    adapter: ClassVar[str] = "estimator"

    attributes: tuple[str, ...] | None = None
    label: int | None = None

    def adapt(self) -> Callable[..., Any]:
        keywords = {"random_state"} & set(inspect.signature(self.make).parameters)
        if not keywords:
            return lambda data: self._fitted(self.make(**self.parameters), data)
        return lambda data, rng: self._fitted(self.make(**self.parameters, random_state=state_of(rng)), data)

    def _fitted(self, model: Any, data: Any) -> dict[str, Any]:
        model.fit(*_split(data, self.label))
        return fitted(model, self.attributes)


@dataclass(frozen=True, slots=True)
class Diffprivlib(Estimator):
    """A class or function of diffprivlib; made by `diffprivlib`."""

    adapter: ClassVar[str] = "diffprivlib"

    @property
    def claim(self) -> Claim | None:
        """Its keyword `epsilon`, or that keyword's default, with `delta`.

        None where bounds are left to be taken from the data: diffprivlib warns that it does not keep its epsilon then.
        """
        own = inspect.signature(self.make).parameters.items()
        stated = {name: self.parameters.get(name, each.default) for name, each in own}
        if any(stated.get(name, ()) is None for name in ("bounds", "bounds_X", "bounds_y", "data_norm", "range")):
            return None
        epsilon, delta = stated.get("epsilon"), stated.get("delta", 0.0)
        return claim_of(float(epsilon), float(delta)) if isinstance(epsilon, Real) and isinstance(delta, Real) else None

    def adapt(self) -> Callable[..., Any]:
        make, own, fresh = self.make, inspect.signature(self.make).parameters, {}
        if "accountant" in own and "accountant" not in self.parameters:
            from diffprivlib import BudgetAccountant

            fresh["accountant"] = BudgetAccountant  # its own would remember every run

        def given(rng: "np.random.Generator") -> dict[str, Any]:
            return {**self.parameters, **{name: new() for name, new in fresh.items()}, "random_state": state_of(rng)}

        if hasattr(make, "randomise"):
            return lambda data, rng: make(**given(rng)).randomise(data)
        if hasattr(make, "fit"):
            return lambda data, rng: self._fitted(make(**given(rng)), data)
        return lambda data, rng: make(data, **given(rng))

    def describe(self) -> Description:
        """As of any function; the name says where the randomness comes from."""
        return replace(Estimator.describe(self), name=f"{self.name} with random_state from rng")


def state_of(rng: "np.random.Generator") -> "np.random.RandomState":
    """The stream of a generator in the form that scikit-learn takes: both draw from one stream.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> state_of(rng).random_sample() == np.random.default_rng(1).random()
    True
    """
    import numpy as np

    return np.random.RandomState(rng.bit_generator)


def fitted(model: Any, attributes: Sequence[str] | None = None) -> dict[str, Any]:
    """What an estimator has learned, as plain values by name: the attributes named, or all whose names end in `_`.

    >>> class Model: ...
    >>> model = Model()
    >>> model.means_, model.inner_, model._cache_ = [1.0, 2.0], {"a": [3], "f": print}, None
    >>> fitted(model)
    {'inner_.a': [3], 'means_': [1.0, 2.0], 'not shown': ['inner_.f: builtin_function_or_method']}
    """
    hidden: list[str] = []
    values: dict[str, Any] = {}
    for name in _learned(model) if attributes is None else attributes:
        _show(attrgetter(name)(model), name, values, hidden, 0)
    return {**values, NOT_SHOWN: hidden} if hidden else values


def _learned(model: Any) -> list[str]:
    return sorted(name for name in vars(model) if name.endswith("_") and not name.startswith("_"))


def _show(value: Any, place: str, values: dict[str, Any], hidden: list[str], depth: int) -> None:
    """Puts a value into `values`, what it holds under names of its own; what cannot be shown joins `hidden`."""
    import numpy as np

    if hasattr(value, "toarray"):  # a sparse matrix
        value = value.toarray()
    if isinstance(value, np.ndarray | np.generic):
        if value.ndim > 2:
            values[f"{place}.shape"], value = list(value.shape), value.ravel()
        value = [list(row) for row in value.tolist()] if value.dtype.names and value.ndim else value.tolist()
    if type(value) in SHOWN or isinstance(value, list | tuple) and _is_plain(value):
        values[place] = value
        return
    parts: Any = None
    if isinstance(value, Mapping):
        parts = {f".{key}": each for key, each in value.items()}
    elif isinstance(value, list | tuple):
        parts = {f"[{at}]": each for at, each in enumerate(value)}
    elif hasattr(value, "fit"):
        parts = {f".{name}": attrgetter(name)(value) for name in _learned(value)}
    elif not callable(value) and isinstance(state := value.__getstate__(), Mapping):
        parts = {f".{key}": each for key, each in state.items()}
    if parts is None or depth == DEEPEST:
        hidden.append(f"{place}: {type(value).__name__}")
        return
    for name, each in parts.items():
        _show(each, place + name, values, hidden, depth + 1)


def _is_plain(values: Sequence[Any]) -> bool:
    return all(
        type(each) in SHOWN or isinstance(each, list | tuple) and all(type(one) in SHOWN for one in each)
        for each in values
    )


def _split(data: Any, label: int | None) -> tuple[Any, ...]:
    """The arguments of `fit`: rows, or rows and labels."""
    import numpy as np

    if isinstance(data, Mapping):
        return tuple(np.asarray(data[name]) for name in ("X", "y") if name in data)
    if isinstance(data, tuple) and len(data) == 2:
        raise InvalidSpec('give the dataset as {"X": X, "y": y}, a table of rows: a tuple would be two records')
    rows = np.asarray(data)
    return (rows,) if label is None else (np.delete(rows, label, axis=1), rows[:, label])
