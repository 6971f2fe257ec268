"""The source of a function with all that it uses: helpers, modules, constants, and what a method has of its object."""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable
from math import inf, pi
from typing import Any

import numpy as np
import pytest
from numpy import argmax as largest

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language.outline import signature_of
from dpaudit.verify.language.source import ReadSource, source_of
from tests.cases import for_each

EPS = 0.5
BOUNDS = (0, [-inf, 1.5], "low", True)


def noisy(x: float, gen: Any, scale: float = 1.0) -> Any:
    """Of one number."""
    return x + gen.laplace(scale=doubled(scale))


def doubled(scale: float) -> float:
    return 2 * scale


def selected(q: Any, *, generator: np.random.Generator | None = None) -> Any:
    return largest([noisy(x, generator, np.exp(0) / EPS) for x in q]) + BOUNDS[0] + math.floor(pi)


class Released:
    """A mechanism with constants, a generator, and methods of every kind."""

    c = 3

    def __init__(self, eps: float, rng: Any) -> None:
        self.eps, self.rng, self.bounds, self.cut = eps, rng, (0.0, 5), None
        self.other, self.data = doubled, [object()]
        self.second = np.random.default_rng(1)

    def scale(self) -> float:
        return 1 / self.eps

    def doubled(self, x: float) -> float:
        return 2 * x

    def _noise(
        self,
        factor: float = 1.0,
    ) -> Any:
        return self.rng.laplace(scale=self.scale() * factor)

    def release(self, q: Any) -> Any:
        # self.rng is its own
        return self.doubled(q) + self._noise() + self._noise(self.c) + self.bounds[1]

    def __call__(self, q: Any, rng: Any) -> Any:
        return self.doubled(q) + rng.laplace(scale=self.scale())

    def stored(self, q: Any) -> Any:
        self.eps = 2
        return q

    def given_away(self, q: Any) -> Any:
        return doubled(self)  # type: ignore[arg-type]

    def of_an_object(self, q: Any) -> Any:
        return self.data

    def of_two(self, q: Any) -> Any:
        return q + self.rng.laplace() + self.second.laplace()

    def unbound(self, q: Any) -> Any:
        return self.other(q)

    def not_called(self, q: Any) -> Any:
        return map(self._noise, q)

    def shadowed(self, q: Any) -> Any:
        return [self.eps for self in q]

    def taken(self, q: Any) -> Any:
        self_eps = 1
        return self_eps + self.eps


def same(one: ReadSource, other: ReadSource) -> bool:
    """Whether two sources say the same."""
    trees = [
        [ast.dump(tree) for tree in (each.definition, *each.functions.values(), *each.constants.values())]
        for each in (one, other)
    ]
    return trees[0] == trees[1] and (one.text, one.modules) == (other.text, other.modules)


OWN = Released(0.5, np.random.default_rng(0))
SOURCES: dict[str, tuple[Callable[..., Any], str, str]] = {  # its names, in order, and the generator
    "a function": (selected, "noisy doubled BOUNDS EPS pi largest math np", "generator"),
    "a method": (OWN.release, "self__noise self_doubled self_scale self_bounds self_c self_eps", "rng"),
    "an object": (OWN, "self_doubled self_scale self_eps", "rng"),
}


@for_each("what", SOURCES)
def test_a_source_stands_by_itself(what: str) -> None:
    function, names, rng = SOURCES[what]
    found = source_of(function)
    assert [*found.functions, *found.constants, *found.modules] == names.split()
    assert same(source_of(found.text), found)
    assert same(source_of(found.text, found.definition.name), found)
    assert signature_of(found.definition).rng == rng
    scope: dict[str, Any] = {}
    exec(f"import numpy as np\nfrom typing import Any\n{found.text}", scope)
    data: Any = [0.5, 2.0] if function is selected else 0.5
    if what == "a method":
        expected = Released(0.5, np.random.default_rng(7)).release(data)
    else:
        expected = function(data, **{rng: np.random.default_rng(7)})
    assert scope[found.definition.name](q=data, **{rng: np.random.default_rng(7)}) == expected


@for_each(
    ("name", "message"),
    [
        ("stored", "line 2 of stored: `self.eps`"),
        ("given_away", "self itself"),
        ("of_an_object", "`self.data`"),
        ("of_two", "rng in two meanings"),
        ("unbound", "`self.other`"),
        ("not_called", "self itself"),
        ("shadowed", "self itself"),
        ("taken", "self_eps in two meanings"),
    ],
)
def test_what_a_method_may_not_do_with_its_object(name: str, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        source_of(getattr(OWN, name))


@for_each(
    ("signature", "rng"),
    [
        ("q, eps, rng", "rng"),
        ("q, eps, gen: np.random.Generator = None", "gen"),
        ("q, noise, *, eps, random_state", "random_state"),
        ("q, gen, rng=None", "rng"),
        ("rng, q, eps", "rng"),
        ("q, r", "r"),
        ("q, eps, generator=None", "generator"),
        ("q, eps, r", "r"),
    ],
)
def test_the_generator_is_found_by_name_note_or_use(signature: str, rng: str) -> None:
    read = signature_of(source_of(f"def f({signature}):\n    return q + {rng}.laplace(scale=1)").definition)
    assert (read.data, read.rng) == ("q", rng)
    assert rng not in read.parameters


def test_names_that_mean_more_than_one_thing_are_not_read() -> None:
    text = "def f(q, rng):\n    return np.exp(g(q)) + K + h(q)\n"
    text += "import numpy as np\ndef g(x): return x + K\nK = 2\ndef h(x): return 0\n"
    found = source_of(text, "f")
    assert (list(found.functions), list(found.constants), dict(found.modules)) == (["g", "h"], ["K"], {"np": "numpy"})
    for more in ("np = 1", "for np in []: pass", "def i():\n    global np, K, h", "class h: pass", "h.a = K = 1"):
        with pytest.raises(InvalidSpec, match="must be set once"):
            source_of(f"{text}{more}\n", "f")
    with pytest.raises(InvalidSpec, match="K of the module beside a variable of this name"):
        source_of(text.replace("return 0", "K = 1; return K"), "f")
    with pytest.raises(InvalidSpec, match=r"a `sum` of its own"):
        source_of(text.replace("return 0", "return sum(x)") + "def sum(x): return 0\n", "f")


def test_a_helper_that_is_not_its_source_is_not_read() -> None:
    assert "doubled" in source_of(selected).functions
    made = doubled.__code__
    doubled.__code__ = (lambda scale: 3 * scale).__code__
    try:
        assert "doubled" not in source_of(selected).functions
    finally:
        doubled.__code__ = made
    wrapped = functools.partial(selected)
    with pytest.raises(InvalidSpec, match="only a plain function"):
        source_of(wrapped)


SHIFT = 1.0


def shifted(x: float, low: float = 2.0, more: float = SHIFT) -> float:
    return x + low + more


def shifting(q: Any, rng: Any) -> Any:
    return shifted(q, more=0.0) + rng.laplace()


def test_a_default_that_is_not_written_out_is_not_read() -> None:
    """What is running is compared with what is written: all defaults or none."""
    for function in (shifting, shifted):
        with pytest.raises(InvalidSpec, match="the default `SHIFT`"):
            source_of(function)


class Meta(type):
    @property
    def scale(cls) -> float:
        return 0.1


class Hidden(metaclass=Meta):
    scale = 1.0
    __dict__ = {}  # where nothing is looked up

    @classmethod
    def of_class(cls, q: Any, rng: Any) -> Any:
        return q + rng.laplace(scale=cls.scale)

    def of_object(self, q: Any, rng: Any) -> Any:
        return q + rng.laplace(scale=self.scale)


def test_attributes_are_those_that_python_finds() -> None:
    owner = Hidden()
    owner.scale = 0.1
    for method in (Hidden.of_class, owner.of_object):
        with pytest.raises(InvalidSpec, match=r"`(cls|self).scale`"):
            source_of(method)


def rounded_down(q: Any, rng: Any) -> Any:
    return np.floor(q) + largest([rng.laplace(scale=math.exp(0))])


def test_functions_of_libraries_are_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever put something else in their place, and whatever it is: a function, a method, a partial, an object."""
    assert source_of(rounded_down).modules.keys() == {"np", "math", "largest"}
    for home, name in ((np, "floor"), (math, "exp")):
        for other in (lambda x: x, OWN.doubled, functools.partial(doubled), OWN):
            with monkeypatch.context() as patched:
                patched.setattr(home, name, other)
                with pytest.raises(InvalidSpec, match=f"{name} is not the library's own"):
                    source_of(rounded_down)


LONG = 10**5000


def beyond(q: Any, rng: Any) -> Any:
    return q + rng.laplace() + LONG


def test_a_number_that_python_does_not_write_is_no_constant() -> None:
    assert "LONG" not in source_of(beyond).constants
