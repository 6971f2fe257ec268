"""What may be a mechanism: every shape of function, names, factories; a clear refusal of anything else."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from dpaudit import InvalidSpec, MissingRequirement, batched, built_by, command
from dpaudit.mechanisms import Imported, wrap
from dpaudit.mechanisms.importing import import_reference
from tests.cases import for_each
from tests.mechanisms import shapes

HERE = "tests.mechanisms.shapes"
RNG = np.random.default_rng(0)


def _label(case: Any) -> str:
    """A name that is the same in every process."""
    return case if isinstance(case, str) and case else getattr(case, "__qualname__", type(case).__name__)


@for_each(
    ("function", "takes_rng", "expected"),
    [
        (shapes.plain, False, 1.0),
        (shapes.with_anything, False, 1.0),
        (shapes.Mechanism(2.0).release, True, 3.0),
        (shapes.Mechanism(2.0), True, 3.0),
        (shapes.Mechanism.fixed, False, 1.0),
        (functools.partial(shapes.with_parameters, epsilon=2.0), True, 4.0),
        (lambda data: data, False, 1.0),
        (lambda data, /, rng: data, True, 1.0),
        (abs, False, 1.0),
        (np.sqrt, False, 1.0),
        (f"{HERE}:plain", False, 1.0),
        (f"{HERE}:ready.release", True, 4.0),
        (f"{HERE}:ready", True, 4.0),
        (built_by(lambda: lambda data, rng: data), True, 1.0),
        (built_by(shapes.Mechanism, scale=5.0), True, 6.0),
    ],
    ids=_label,
)
def test_functions_of_one_run(function: Any, takes_rng: bool, expected: float) -> None:
    opened = wrap(function).open()
    assert opened.per_run
    assert opened.takes_rng is takes_rng
    assert opened.call(1.0, RNG) == expected


@for_each("function", [shapes.with_rng, shapes.with_keyword_rng])
def test_the_rng_is_handed_over(function: Any) -> None:
    call = wrap(function).open().call
    assert call(0.0, np.random.default_rng(3)) == np.random.default_rng(3).random()


def test_batched_functions() -> None:
    expected = (2.0 * np.random.default_rng(3).laplace(size=5)).tolist()
    for mechanism in (batched(shapes.many, scale=2.0), shapes.BATCHED, f"{HERE}:BATCHED", batched(shapes.BATCHED)):
        opened = wrap(mechanism).open()
        assert not opened.per_run
        assert opened.call(0.0, 5, np.random.default_rng(3)).tolist() == expected
    assert wrap(batched(lambda data, runs: [data] * runs)).open().call(7, 3, RNG) == [7, 7, 7]
    assert wrap(built_by(lambda: shapes.BATCHED)).open().per_run is False


def test_parameters_are_bound_and_described() -> None:
    mechanism = wrap(shapes.with_parameters, {"epsilon": 2.0})
    assert mechanism.open().call(1.0, RNG) == 4.0
    described = wrap(f"{HERE}:with_parameters", {"epsilon": 2.0}).describe()
    assert (described.name, described.kind, described.takes_rng) == ("with_parameters", "per-run", True)
    assert described.parameters == {"epsilon": 2.0}
    assert described.reference == f"{HERE}:with_parameters"
    assert described.file.endswith("shapes.py")
    assert described.line is not None
    assert described.digest == wrap(shapes.with_parameters, {"epsilon": 3.0}).describe().digest


@for_each("value", [3, None, 1.5, [1], {"a": 1}, object(), b"x:y", b""], ids=_label)
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(InvalidSpec, match=f"a mechanism is a function .* got {type(value).__name__}"):
        wrap(value)


@for_each(
    ("value", "parameters", "words"),
    [
        (shapes.without_data, {}, r"must be callable as f\(data, rng\)"),
        (shapes.rng_first, {}, r"must be callable as f\(data, rng\)"),
        (shapes.needs_more, {}, "needs a value for 'epsilon'; give it in parameters"),
        (shapes.with_rng, {"epsilon": 1}, "no parameter 'epsilon'; it has: none"),
        (shapes.with_parameters, {"epsilon": 1, "scal": 1}, "no parameter 'scal'; it has: epsilon, scale"),
        (batched(shapes.plain), {}, r"must be callable as f\(data, runs, rng\)"),
        ("no_colon", {}, "module:function, such as my_module:noisy_count, got 'no_colon'"),
        ("", {}, "module:function, such as my_module:noisy_count, got ''"),
        ("no_such_module_here:f", {}, "there is no module 'no_such_module_here'"),
        (f"{HERE}:nothing", {}, "has no 'nothing'"),
        (f"{HERE}:Mechanism.nothing", {}, "has no 'nothing'"),
        (f"{HERE}:NUMBER", {}, "a mechanism is a function .* got int"),
        (command(["true"]), {"a": 1}, "a command takes no parameters, got a"),
    ],
    ids=_label,
)
def test_wrong_functions_and_names_are_refused_in_one_line(value: Any, parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidSpec, match=words) as caught:
        wrap(value, parameters).open()
    assert "\n" not in str(caught.value)


def test_a_generator_goes_to_what_is_called_or_annotated_as_one() -> None:
    """By name only where nothing else is known of the parameter: no annotation, no default."""
    for function in shapes.WITH_GENERATOR:
        opened = wrap(function).open()
        assert opened.takes_rng, function
        assert opened.call(1, "the generator") == (1, "the generator"), function
    assert batched(shapes.many_gen).open().call(1, 2, "the generator") == (1, "the generator")
    assert not wrap(shapes.named_gen, {"gen": 3}).open().takes_rng
    assert wrap(shapes.named_gen, {"gen": 3}).open().call(1, "the generator") == (1, 3)
    for function in shapes.WITHOUT_GENERATOR:
        opened = wrap(function).open()
        assert not opened.takes_rng, function
        assert opened.call(1, "the generator") != (1, "the generator"), function
    with pytest.raises(InvalidSpec, match=r"generator_first must be callable as f\(data, rng\)"):
        wrap(shapes.generator_first).open()


@for_each("wrapper", [batched, built_by])
def test_wrappers_take_functions(wrapper: Any) -> None:
    with pytest.raises(InvalidSpec, match=f"dpaudit.{wrapper.__name__} takes a function, got int"):
        wrapper(3)


@for_each(
    ("name", "source", "error", "words"),
    [
        (
            "missing",
            "import no_such_module_at_all\n",
            MissingRequirement,
            "the module 'no_such_module_at_all'.*install it",
        ),
        ("raises", "raise ValueError('two\\nlines')\n", InvalidSpec, "importing failed with ValueError"),
        ("exits", "import sys\nsys.exit(0)\n", InvalidSpec, "importing failed with SystemExit"),
        ("syntax", "def f(:\n", InvalidSpec, "importing failed with SyntaxError"),
    ],
)
def test_modules_that_do_not_import(tmp_path: Path, name: str, source: str, error: Any, words: str) -> None:
    module = f"broken_{name}_module"
    (tmp_path / f"{module}.py").write_text(source)
    with pytest.raises(error, match=words) as caught:
        Imported(f"{module}:f", folder=str(tmp_path)).open()
    assert "\n" not in str(caught.value)


def test_a_factory_that_fails_or_makes_no_mechanism_is_refused_in_words() -> None:
    def make() -> Any:
        raise RuntimeError("no model file")

    for factory, words in ((make, "no model file"), (lambda: 3, "a mechanism is a function")):
        with pytest.raises(InvalidSpec, match=words):
            built_by(factory).open()


def test_names_are_those_people_wrote() -> None:
    def inner(data: Any) -> Any:
        return data

    assert wrap(shapes.Mechanism().release).name == "Mechanism.release"
    assert wrap(functools.partial(shapes.plain)).name == "plain"
    assert wrap(f"{HERE}:ready.release").name == "ready.release"
    assert wrap(inner).name.endswith("inner")
    assert wrap(inner).describe().reference is None


def test_a_class_is_not_taken_for_the_object_that_is_called() -> None:
    class Noisy:
        def __init__(self, scale: Any = 1.0) -> None:
            self.scale = scale

        def __call__(self, data: Any, rng: np.random.Generator) -> Any:
            return data + rng.laplace(scale=self.scale)

    class Released(NamedTuple):
        total: float

    with pytest.raises(InvalidSpec, match=r"Noisy is a class, .* dpaudit.built_by\(.*Noisy\)"):
        wrap(Noisy).open()
    assert all(wrap(each).open().takes_rng for each in (Noisy(), built_by(Noisy)))
    assert not wrap(Released).open().takes_rng


def test_a_module_that_is_newer_than_what_is_known_of_its_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders are told apart by their times, which are coarse: a file may come within one tick."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(InvalidSpec, match="no module"):
        import_reference("written_a_moment_ago:f", str(tmp_path))
    before = tmp_path.stat().st_mtime_ns
    (tmp_path / "written_a_moment_ago.py").write_text("def f(data, rng):\n    return data\n", encoding="utf-8")
    os.utime(tmp_path, ns=(before, before))
    assert import_reference("written_a_moment_ago:f", str(tmp_path))(1.0, None) == 1.0
    del sys.modules["written_a_moment_ago"]
