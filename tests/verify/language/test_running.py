"""What is read must be what runs: modules that change a function, or what it means, as they are imported."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.verify.bracketing.targets import check_as_read, source_of
from dpaudit.verify.language import source
from tests.cases import for_each

TEXT = '''
import math as m
from numpy import exp
TOP = 2.0
HALF = (0.5, -1e999)

def f(q, rng, eps=1.0, *, a=1.0, b=2.0):
    """Says nothing."""
    assert eps > 0
    return float(q) + rng.laplace(scale=scaled(a) * b * TOP / eps) + m.log(1) * exp(0)

def scaled(x, y=2.0):
    return x * half(y)

def half(x):
    return x * HALF[0]
'''
OTHER = "(q, rng, eps=1.0, *, a=1.0, b=2.0): return q"
CHANGED: dict[str, str] = {
    "code": f"def g{OTHER}\nsetattr(f, '__code__', g.__code__)",
    "constants of the code": "f.__code__ = f.__code__.replace(co_consts=(*f.__code__.co_consts[:-1], -0.0))",
    "a zero of the code": "f.__code__ = f.__code__.replace(co_consts=('', -0.0, *f.__code__.co_consts[2:]))",
    "a test runner's name": "f.__code__ = f.__code__.replace(co_consts=(1,), co_names=(*f.__code__.co_names, '@py'))",
    "flags": "f.__code__ = f.__code__.replace(co_flags=f.__code__.co_flags | 0x20)",
    "number of arguments": "f.__code__ = f.__code__.replace(co_argcount=4, co_kwonlyargcount=1)",
    "exceptions": "f.__code__ = f.__code__.replace(co_exceptiontable=b'x')",
    "name": "globals()['f'] = lambda q, rng, **more: q",
    "numpy's default": "import numpy; g = f; g.__defaults__ = (numpy.float64(100),)",
    "default": "setattr(f, '__defaults__', (100.0,))",
    "default of another type": "setattr(f, '__defaults__', (True,))",
    "defaults by name": "setattr(f, '__kwdefaults__', {'b': 1.0, 'a': 2.0})",
    "constant": "globals()['TOP'] = 100.0",
    "constant of another type": "import numpy; globals().update(TOP=numpy.float64(100.0))",
    "no constant": "del globals()['TOP']",
    "float": "globals()['float'] = lambda x: 0.0",
    "a float of the same name": "globals()['float'] = type('float', (), {'__module__': 'builtins'})",
    "own builtins": "made(dict(globals(), __builtins__={**vars(__import__('builtins')), 'float': abs}))",
    "no plain dict": "made(type('D', (dict,), {})(globals()))",
    "wrapped": "f.__wrapped__ = print",
    "signature": "f.__signature__ = __import__('inspect').signature(print)",
    "an object": "globals()['f'] = type('C', (), {'__call__': lambda s, q, rng: q, '__class__': type(f)})()",
    "a helper": "globals()['half'] = lambda x: 0.0",
    "a helper's code": "half.__code__ = (lambda x: x).__code__",
    "a helper's default": "scaled.__defaults__ = (3.0,)",
    "a helper of other names": "globals()['half'] = type(f)(half.__code__, dict(globals()), 'half')",
    "a part of a constant": "globals()['HALF'] = (0.5, 1e999)",
    "a module": "import cmath; globals()['m'] = cmath",
    "a word of a module": "import numpy; globals()['exp'] = numpy.expm1",
    "cached": "globals()['f'] = __import__('functools').lru_cache(f)",
}
MADE = """
def made(known):
    new = type(f)(f.__code__, known, 'f', f.__defaults__)
    new.__kwdefaults__ = f.__kwdefaults__
    globals()['f'] = new

"""


def ran(text: str) -> Any:
    module = types.ModuleType("made_here")
    exec(compile(text, "made_here.py", "exec", dont_inherit=True), vars(module))
    return module.f


@for_each("name", CHANGED)
def test_a_function_that_was_changed_is_not_what_was_read(name: str) -> None:
    read = source.source_of(TEXT, "f")
    source.check_runs(ran(TEXT + MADE), read)
    with pytest.raises(InvalidSpec):
        source.check_runs(ran(TEXT + MADE + CHANGED[name]), read)


def test_a_function_with_asserts_that_the_test_runner_rewrote_is_compared_too() -> None:
    def positive(q: float, rng: Any, eps: float = 1.0) -> float:
        assert eps > 0
        return q + rng.laplace(scale=1 / eps)  # type: ignore[no-any-return]

    assert any(name.startswith("@py") for name in positive.__code__.co_varnames)
    assert source.source_of(positive).definition.name == "positive"
    positive.__code__ = positive.__code__.replace(co_consts=(None, -1, *positive.__code__.co_consts[2:]))
    with pytest.raises(InvalidSpec, match="is not what is running"):
        source.source_of(positive)


AS_IMPORTED: dict[str, tuple[str, str]] = {  # each takes a process
    "builtins": ("import builtins\nbuiltins.float = lambda x: 0.0", "replaces builtins.float"),
    "numpy": ("import numpy as np\nnp.random.Generator = object", "replaces numpy.random.Generator"),
    "its file": ("open(__file__, 'a').write('#')", "changes its own file"),
    "the module": (
        "import sys, types\nclass M(types.ModuleType): pass\nm = sys.modules[__name__] = M('m')\nm.f = f",
        "is no plain module",
    ),
    "a default": ("import numpy\ng = f\ng.__defaults__ = (numpy.float64(100),)", "the defaults of f"),
    "the end": ("import os\nos._exit(0)", "its process ended"),
    "nothing that matters": ("import numpy as np\nimport random\nprint('hello')\nrandom.seed(1)", ""),
    "its output": ("print('[null]')\nimport sys\nsys.exit(0)", "importing failed with SystemExit"),
}


BY_DAY = ("builtins", "its file", "the end", "nothing that matters")


@for_each("name", BY_DAY, nightly=[name for name in AS_IMPORTED if name not in BY_DAY])
def test_a_module_is_compared_in_a_process_of_its_own(tmp_path: Path, name: str) -> None:
    text, message = AS_IMPORTED[name]
    (tmp_path / "m.py").write_text(TEXT + text + "\n")
    if not message:
        check_as_read("m:f", str(tmp_path), source_of("m:f", str(tmp_path))[0])
        return
    with pytest.raises(InvalidSpec, match=message):
        check_as_read("m:f", str(tmp_path), source_of("m:f", str(tmp_path))[0])
