"""Where the sources of a mechanism are changed: numpy, Python, torch, JAX, and the noise of libraries in Python.

A noise call of a library is answered by one draw of the law that it states, so that its noise is one draw to replays;
what a library draws in other languages is noted.
"""

import functools
import math
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from dpaudit.recording import sources
from dpaudit.recording.sources import GENUINE, MODERN, like_drawn, listening, missed, noting, own_seed, recorded

Change = tuple[Any, str, Any]  # home, name and value
TORCHS = ("randn", "rand", "randn_like", "rand_like", "normal", "bernoulli", "randint", "randperm")
TENSORS = ("normal_", "uniform_", "exponential_", "cauchy_", "geometric_")
STANDARD = ("normal", "laplace", "gumbel", "exponential", "logistic", "cauchy")  # of JAX: of no scale
OF_FEW = ("bernoulli", "randint", "bits", "choice", "categorical", "permutation", "poisson")
JAXS = (*STANDARD, *OF_FEW, "uniform", "gamma")
OWN = {"numpy", "random", "secrets", "dpaudit", "os", "torch", "jax", "scipy"}  # whose names stay as they are
_NOTHING = object()


def _epsilon(of: Any) -> float:
    return float(of.epsilon - math.log(1.0 - of.delta))


# module, name, law, and the parameters of the draw from the arguments of the call
NOISE: tuple[tuple[str, str, str, Callable[..., tuple[Any, ...]]], ...] = (
    ("diffprivlib.mechanisms.laplace", "Laplace.randomise", "laplace", lambda m, v: (v, m.sensitivity / _epsilon(m))),
    ("diffprivlib.mechanisms.gaussian", "Gaussian.randomise", "normal", lambda m, v: (v, m._scale)),
    (
        *("diffprivlib.mechanisms.geometric", "Geometric.randomise", "discrete_laplace"),
        lambda m, v: (-math.expm1(-m.epsilon / m.sensitivity) if m.sensitivity else 1.0, v),
    ),
    ("snsql.sql._mechanisms.laplace", "Laplace.release", "laplace", lambda m, v: (v, m.scale)),
    ("snsql.sql._mechanisms.gaussian", "Gaussian.release", "normal", lambda m, v: (v, m.scale)),
    ("snsynth.utils", "laplace_noise", "laplace", lambda scale, size=None: (np.zeros(size or ()), scale)),
    ("snsynth.utils", "gaussian_noise", "normal", lambda sigma, size=None: (np.zeros(size or ()), sigma)),
    ("pipeline_dp.dp_computations", "LaplaceMechanism.add_noise", "laplace", lambda m, v: (v, m.noise_parameter)),
    ("pipeline_dp.dp_computations", "GaussianMechanism.add_noise", "normal", lambda m, v: (v, m.noise_parameter)),
)
CPP = "PyDP, which draws in C++"
ELSEWHERE = (  # calls that draw where nothing is recorded
    ("opendp.mod", "Measurement.__call__", "OpenDP, which draws in Rust"),
    ("pydp.algorithms._algorithm", "MetaAlgorithm.result", CPP),
    ("pydp.algorithms._algorithm", "MetaAlgorithm.quick_result", CPP),
    ("pipeline_dp.dp_computations", "ThresholdingMechanism.noised_value_if_should_keep", CPP),
    ("pipeline_dp.partition_selection", "create_partition_selection_strategy", CPP),
)


def _noise(original: Any, title: str, law: str, parameters: Callable[..., tuple[Any, ...]]) -> Any:
    @functools.wraps(original)
    def call(*given: Any, **named: Any) -> Any:
        if not listening():
            return original(*given, **named)
        if hasattr(given[0], "_check_all"):
            given[0]._check_all(*given[1:], **named)
        told = parameters(*given, **named)

        def draw(seed: int) -> Any:
            rng = GENUINE(np.random.SFC64(seed))
            if law == "discrete_laplace":
                return int(told[1] + rng.geometric(told[0]) - rng.geometric(told[0]))
            value = getattr(rng, law)(*told)
            return value.tolist() if isinstance(value, np.ndarray) else float(value)

        return recorded(title, law, draw, like_drawn, told, {})

    return call


def _torch(torch: Any) -> Iterator[Change]:
    seeded = torch.manual_seed

    def wrapped(home: Any, name: str) -> Any:
        original = getattr(home, name)

        @functools.wraps(original)
        def call(*given: Any, **named: Any) -> Any:
            if named.get("generator") is not None:
                missed(own_seed())
            if named.get("generator") is not None or not listening():
                return original(*given, **named)

            def draw(seed: int) -> Any:
                seeded(seed >> 1)
                return original(*given, **named)

            plain = [each.numpy() if hasattr(each, "numpy") else each for each in given[home is torch.Tensor :]]
            like = partial(_into_tensor, torch)
            return recorded(f"torch.{name}", name, draw, like, tuple(plain), named)

        return call

    yield from ((torch, name, wrapped(torch, name)) for name in TORCHS)
    yield from ((torch.Tensor, name, wrapped(torch.Tensor, name)) for name in TENSORS)
    yield torch, "manual_seed", noting(own_seed("torch.manual_seed"), seeded)


def _into_tensor(torch: Any, ends: Any, value: Any) -> Any:
    return value.copy_(torch.as_tensor(np.array(ends)))


def _jax(jax: Any) -> Iterator[Change]:
    def wrapped(name: str) -> Any:
        original = getattr(jax.random, name)

        @functools.wraps(original)
        def call(key: Any, *given: Any, **named: Any) -> Any:
            if not listening():
                return original(key, *given, **named)
            if isinstance(key, jax.core.Tracer):
                missed("JAX inside jit, where calls are traced and not run")
                return original(key, *given, **named)

            def like(ends: Any, value: Any) -> Any:
                return jax.numpy.asarray(np.array(ends), value.dtype)

            told = () if name in STANDARD else given
            return recorded(f"jax.random.{name}", name, lambda _: original(key, *given, **named), like, told, {})

        return call

    yield from ((jax.random, name, wrapped(name)) for name in JAXS if hasattr(jax.random, name))


def _libraries() -> Iterator[Change]:
    """Changes of the libraries that are loaded."""
    for library, changes in (("torch", _torch), ("jax", _jax)):
        if hasattr(sys.modules.get(library), "random"):  # loaded to its end
            yield from changes(sys.modules[library])
    for module, name, law, parameters in (*NOISE, *((*each, None) for each in ELSEWHERE)):
        *holder, last = name.split(".")
        home: Any = sys.modules.get(module)
        home = getattr(home, holder[0], None) if holder else home
        if (original := getattr(home, last, None)) is not None:
            yield home, last, noting(law, original) if parameters is None else _noise(original, name, law, parameters)


@contextmanager
def patched() -> Iterator[None]:
    """Every source that is known records, wherever its name was imported to; inside another, those loaded since."""
    before: list[Change] = []
    names: dict[int, tuple[Any, Any]] = {}

    def put(home: Any, name: str, value: Any) -> None:
        known = vars(home).get(name, _NOTHING)
        before.append((home, name, known))
        if known is not _NOTHING and not isinstance(home, type):
            names[id(known)] = known, value
        setattr(home, name, value)

    try:
        if np.random.Generator is not MODERN:
            for changes in (sources.standard, sources.bound):
                for change in list(changes()):
                    put(*change)
        for change in list(_libraries()):
            put(*change)
        for module in list(sys.modules.values()):
            space = getattr(module, "__dict__", None)
            if type(space) is dict and str(space.get("__name__")).partition(".")[0] not in OWN:
                for name, value in list(space.items()):
                    if names.get(id(value), (_NOTHING,))[0] is value:
                        put(module, name, names[id(value)][1])
        yield
    finally:
        vars(random._inst).pop("records", None)  # what a mechanism has set it to
        for home, name, value in reversed(before):
            delattr(home, name) if value is _NOTHING else setattr(home, name, value)
