"""What a mechanism is made of: every kind of change shows, by its name, and nothing shows where nothing has changed.

Each case is a folder that forks look at: twice before a change, once after it. No case depends on chance.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas  # noqa: F401  so that no fork loads it
import pytest
import scipy.stats  # noqa: F401

from dpaudit.mechanisms import wrap
from dpaudit.running.contents import located
from dpaudit.running.program import changed, made_of, made_with, unknown
from dpaudit.verify.bracketing.targets import source_of
from tests.cases import for_each, some

MAIN = """
import far, os, pathlib
SCALE = 1.0
TABLE = {"low": [1.0, {2, 3}], "names": {"a", "b", "c"}}
class Noise:
    width = 1.0
    def __init__(self, times): self.times, self.me = times, self
    @property
    def twice(self): return 2 * self.width
NOISE = Noise(1.0)
def inner(x, by=1.0): return by * x
def closed(of):
    def within(x): return of * x
    return within
WITHIN = closed(1.0)
def noisy(data, rng):
    return data + inner(SCALE) + far.scale()
noisy.part = 1
"""
FAR = """
import json, pathlib
SCALE, NOTED = 1.0, [1.0]
class Holder: pass
HELD = Holder()
HELD.scale = 1.0
READ = json.loads(pathlib.Path(__file__).with_name("far.json").read_text())
def scale(): return SCALE
"""
FILES = {
    "main.py": MAIN,
    "far.py": FAR,
    "far.json": '{"scale": 1.0}',
    "late.py": "import deep\nTIMES = 1.0\n",
    "deep.py": "DEPTH = 1.0\n",
    "bag/__init__.py": "",
    "bag/inside.py": "from . import beside\n",
    "bag/beside.py": "WIDTH = 1.0\n",
    "unread.py": "VALUE = 1.0\n",
    "data.txt": "1.0",
    "program.py": "import late\nprint(late.TIMES)\n",
    "program.sh": "echo 1.0\n",
    "start.sh": "#!/bin/sh\nexec python3 program.py\n",
    "harm.py": "import pathlib\npathlib.Path(__file__).with_name('harmed').touch()\n",
    "params.txt": "1.0",
    "installed/site-packages/kit.py": "SCALE = 1.0\ndef draw(): return SCALE\n",
    "installed/site-packages/kit-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: kit\nVersion: 1.0\n",
}


@dataclass(frozen=True)
class Kind:
    """A kind of change: what is run before and after, or what a file becomes, and the part that must be named."""

    what: str
    part: str
    body: str = ""  # of `noisy`, in place of its last line
    edit: tuple[str, str, str] | None = None  # a file, and what in it becomes what
    then: str = ""  # what the script does after its functions, the second time
    mechanism: str = "noisy"
    variable: str = ""
    code: str = ""


def edited(what: str, part: str, old: str = "1.0", new: str = "2.0", body: str = "", **more: Any) -> Kind:
    """A change of the script, or of a file that is named."""
    return Kind(what, part, body, (more.pop("file", "main.py"), old, new), **more)


def of_file(what: str, part: str, file: str, body: str = "", mechanism: str = "noisy", code: str = "") -> Kind:
    """A number that changes in a file."""
    return Kind(what, part, body, (file, "1.0", "2.0"), mechanism=mechanism, code=code)


def of_command(what: str, part: str, file: str, arguments: list[str]) -> Kind:
    """A number that changes in a file of a command, which runs in the folder."""
    return of_file(what, part, file, mechanism=f"dpaudit.command({arguments}, folder=FOLDER)")


def by_script(what: str, part: str, then: str, body: str = "", code: str = "", **more: Any) -> Kind:
    """A change that the script makes as it runs."""
    return Kind(what, part, body, then=then, code=code, **more)


LATE, INSIDE = "__import__('late').TIMES", "__import__('bag.inside')"
BY_NAME = "__import__('importlib').import_module('late').TIMES"
MADE = "import dataclasses\nMADE = dataclasses.make_dataclass('Made', [('scale', float, Noise.width)])"
TRIED = "\n    try: return by * x\n    except ValueError: return 1"
METADATA = "installed/site-packages/kit-1.0.dist-info/METADATA"
STATISTICS, OF_TEXT = "import statistics", "dpaudit.command(['sh', '-c', TEXT])"
RUN = "dpaudit.command(['python3', '-m', 'program'], folder=FOLDER)"
KINDS = [
    edited("code", "function __main__.noisy", "return data + inner", "return 0 + data + inner"),
    edited("a helper", "function __main__.inner", "return by * x", "return by + x"),
    edited("a default", "values of __main__.inner", "by=1.0", "by=2.0"),
    edited("a closure", "values of __main__.closed.<locals>.within", "closed(1.0)", "closed(2.0)", "WITHIN(1)"),
    edited("an attribute of the function", "values of __main__.noisy", "part = 1", "part = 2"),
    edited("a number of the script", "__main__.SCALE", "SCALE = 1.0", "SCALE = 2.0"),
    edited("an entry of a set", "__main__.TABLE", '"c"}', '"d"}', 'TABLE["names"]'),
    edited("an attribute of an object", "__main__.NOISE", "Noise(1.0)", "Noise(2.0)", "NOISE.times"),
    edited("an attribute of a class", "class __main__.Noise", "width = 1.0", "width = 2.0", "Noise.width"),
    edited("a class made at run time", "class types.Made", "width = 1.0", "width = 2.0", "MADE().scale", code=MADE),
    edited("a property", "function __main__.Noise.twice", "return 2 *", "return 3 *", "NOISE.twice"),
    edited("a function of a module", "function far.scale", "return SCALE", "return 2 * SCALE", file="far.py"),
    edited("a number of a module", "far.SCALE", "SCALE, NOTED = 1.0", "SCALE, NOTED = 2.0", file="far.py"),
    edited("a reference", "function main.noisy", "return data", "return 1 + data", mechanism="'main:noisy'"),
    edited("a value of a reference", "main.SCALE", "SCALE = 1.0", "SCALE = 2.0", mechanism="'main:noisy'"),
    edited("the version of a library", "library kit", "1.0", "1.1", "kit.draw()", file=METADATA, code="import kit"),
    of_file("what a module read at import", "far.READ", "far.json", "far.READ"),
    of_file("a module imported in the function", "module late", "late.py", LATE),
    of_file("and what that imports", "module deep", "deep.py", LATE),
    of_file("a module named in a value", "module late", "late.py", "__import__(NAME).TIMES", code="NAME = 'late'"),
    of_file("a module of a package", "module bag.beside", "bag/beside.py", INSIDE),
    of_file("a file named in the code", "file FOLDER/data.txt", "data.txt", "open(FOLDER + '/data.txt').read()"),
    of_file("a mechanism that is installed", "module kit", "installed/site-packages/kit.py", mechanism="'kit:draw'"),
    of_command("the program of a command", "program FOLDER/program.sh", "program.sh", ["sh", "program.sh"]),
    of_command("a module that a command runs", "module late", "late.py", ["python3", "-m", "program"]),
    of_command("a file behind an option", "program FOLDER/params.txt", "params.txt", ["sh", "--with=params.txt"]),
    of_command("what a script of the shell starts", "module late", "late.py", ["./start.sh"]),
    by_script("an attribute set by the script", "far.SCALE", "far.SCALE = 2.0"),
    by_script("a list that it changes", "far.NOTED", "far.NOTED.append(2.0)", "far.NOTED"),
    by_script("a class that it changes", "class far.Holder", "far.Holder.scale = 2.0", "far.Holder()"),
    by_script("a function put in place of another", "far.scale", "far.scale = inner"),
    by_script("globals()[...]", "__main__.HIDDEN", "HIDDEN = 2.0", "globals()['HID' + 'DEN']", "HIDDEN = 1.0"),
    by_script("sys.modules[...]", "far.NOTED", "far.NOTED.append(2.0)", "__import__('sys').modules['far'].NOTED"),
    by_script("a parameter", "the mechanism", "BY = 2.0", code="BY = 1.0", mechanism="dpaudit.batched(noisy, by=BY)"),
    by_script("the command line", "the command line", "sys.argv.append('2.0')", "sys.argv[-1]", "import sys"),
    Kind("the environment", "environment variable DP_SCALE", "os.environ['DP_SCALE']", variable="DP_SCALE"),
]
MORE_KINDS = [  # for the night
    edited("a constant", "function __main__.inner", "return by * x", "return by * x * 1.5"),
    edited("a number in a dict", "__main__.TABLE", '"low": [1.0', '"low": [2.0', 'TABLE["low"]'),
    edited("a lambda", "function __main__.<lambda>", "WITHIN = closed(1.0)", "WITHIN = lambda x: x", "WITHIN(1.0)"),
    edited("a default of a keyword", "values of __main__.inner", "by=1.0", "*, by=2.0"),
    edited("what an exception does", "function __main__.inner", "return by * x", TRIED),
    edited("the class of an object", "__main__.NOISE", "NOISE = Noise(1.0)", "NOISE = complex(1.0)", "NOISE"),
    edited("a comment in a module", "module far", "import json", "# other\nimport json", file="far.py"),
    edited("a package", "module bag", "", "X = 1\n", INSIDE, file="bag/__init__.py"),
    edited("a helper of a reference", "module far", "n SCALE", "n 2 * SCALE", file="far.py", mechanism="'main:noisy'"),
    of_file("a module by importlib", "module late", "late.py", BY_NAME),
    of_file("a path", "file FOLDER/data.txt", "data.txt", "P.read_text()", code="P = pathlib.Path(FOLDER, 'data.txt')"),
    of_command("a module in the text of a command", "module late", "late.py", ["python3", "-c", "import late"]),
    edited("what it runs", "module program", "late", "late as other", file="program.py", mechanism=RUN),
    of_command("a module of its script", "module late", "late.py", ["python3", "program.py"]),
    by_script("an object that it changes", "far.HELD", "far.HELD.scale = 2.0", "far.HELD.scale"),
    by_script("an array", "__main__.ARRAY", "ARRAY[1] = 1.0", "ARRAY", "import numpy\nARRAY = numpy.zeros(3)"),
    by_script("a library", "statistics.mean", "statistics.mean = inner", "statistics.mean(data)", STATISTICS),
    by_script("getattr(module, ...)", "far.HIDDEN", "far.HIDDEN = 2.0", "getattr(far, data)", "far.HIDDEN = 1.0"),
    by_script("its arguments", "the mechanism", "TEXT = 'false'", code="TEXT = 'true'", mechanism=OF_TEXT),
]
OPAQUE = [
    ("RNG", "import numpy\nRNG = numpy.random.default_rng(7)", "a random generator with a state of its own"),
    ("FILE", "FILE = open(__import__('os').devnull)", "a _io.TextIOWrapper"),
    ("MORE", "MORE = (x for x in [1])", "a builtins.generator"),
    ("UFUNC", "import numpy\nUFUNC = numpy.frompyfunc(lambda x: x, 1, 1)", "numpy's <lambda> (vectorized)"),
    ("DEEP", "DEEP = []\nfor _ in range(9999): DEEP = [DEEP]", "it is nested too deeply"),
]


def look(folder: Path, kind: Kind, *, after: bool = False) -> dict[str, str]:
    """The parts as a fork finds them in which the script is the main module and nothing of it was loaded before."""
    told = folder / "told.json"
    if (child := os.fork()) == 0:
        try:
            sys.dont_write_bytecode = True
            sys.path[:0] = [str(folder), str(folder / "installed" / "site-packages")]
            os.environ["TERM_SESSION_ID"] = str(told.exists())
            if after and kind.variable:
                os.environ[kind.variable] = "2.0"
            script = sys.modules["__main__"] = types.ModuleType("__main__")
            text = "" if kind.mechanism[:1] in "\"'" else (folder / "main.py").read_text()
            text = text.replace("inner(SCALE) + far.scale()", kind.body or "inner(SCALE) + far.scale()")
            lines = f"import dpaudit\n{text}\n{kind.code}\n{kind.then if after else ''}\nFOUND = {kind.mechanism}"
            exec(lines.replace("FOLDER", repr(str(folder))), vars(script))
            told.write_text(json.dumps(made_of(wrap(vars(script)["FOUND"]))))
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    found: dict[str, str] = json.loads(told.read_text())
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DP_SCALE", "1.0")
    made_with()  # which remembers versions, so that no fork looks them up
    return tmp_path


def written(folder: Path) -> Path:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.long
@for_each("kind", KINDS, ids=lambda kind: kind.what, nightly=MORE_KINDS)
def test_a_change_shows_and_is_named(folder: Path, kind: Kind) -> None:
    written(folder)
    before = look(folder, kind)
    (folder / "unread.py").write_text("VALUE = 2.0\n")  # nothing of the mechanism
    assert changed(before, look(folder, kind)) == []
    assert unknown(before) == []
    if kind.edit is not None:
        name, old, new = kind.edit
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))
    part = kind.part.replace("FOLDER", str(folder))
    assert any(each.startswith(f"{part} ") for each in changed(before, look(folder, kind, after=True)))


@pytest.mark.long
@for_each("name, code, what", OPAQUE, ids=lambda case: case[0])
def test_what_cannot_be_compared_is_named(folder: Path, name: str, code: str, what: str) -> None:
    found = look(written(folder), Kind("", "", body=name, code=code))
    assert unknown(found) == [f"__main__.{name} cannot be shown to be what it was ({what})"]


LAZY = """
class Lazy:
    def _told(self, *given): raise SystemExit("a user's code was run")
    __reduce__ = __reduce_ex__ = __getstate__ = __getattr__ = __hash__ = __repr__ = __iter__ = __len__ = _told
    __getattribute__ = __class__ = property(_told)
    @property
    def __dict__(self): self._told()
LAZY = Lazy()
def noisy(data, rng): return LAZY
"""
HARM = "def noisy(data, rng): return model.modules(), {'harm': 1.0}['harm']\nmodel = 1.0\n"
FIRST = "import importlib\ndef noisy(data, rng): return importlib.import_module(NAME), far.later()\nNAME = 'late'\n"
SWAPPED = "import sys\nclass Settings: width = 1.0\nSettings.Settings = Settings\nsys.modules[__name__] = Settings()\n"
HELD = "import swapped\ndef noisy(data, rng): return HELD\nHELD = swapped.Settings()\n"
EVAL = "OTHER = 1.0\ndef noisy(data, rng): return model.eval(), {}\nmodel = 1.0\n"
LOOKS: list[tuple[str, dict[str, str], str, str]] = [  # code, files beside it, a part that is there, one that is not
    (LAZY, {}, "__main__.LAZY", "told"),  # no code of a user is run
    (HARM, {}, "module harm", "harmed"),  # nor a script whose name is a text: an attribute of a model may be called so
    # a text is met in the function, and the import of its module in a helper that the module far brings later
    (f"import far\n{FIRST}", {"far.py": "def later():\n    import late\n    return late.TIMES\n"}, "late.TIMES", ""),
    (HELD, {"swapped.py": SWAPPED}, "class swapped.Settings", ""),  # a module that puts an object in its place
    (EVAL.format(0), {}, "function __main__.noisy", "__main__.OTHER"),  # a method named eval reads no globals
    (EVAL.format("eval('1')"), {}, "__main__.OTHER", ""),
]


@for_each("code, files, there, absent", LOOKS)
def test_what_is_looked_at_is_what_it_is_made_of(
    folder: Path, code: str, files: dict[str, str], there: str, absent: str
) -> None:
    written(folder)
    for name, text in files.items():
        (folder / name).write_text(text)
    found = look(folder, Kind("", "", code=code))
    assert there in found
    assert absent not in found
    assert not (folder / "harmed").exists()


def test_a_pipe_among_the_arguments_of_a_command_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    found = look(written(folder), Kind("", "", mechanism="dpaudit.command(['cat', 'pipe'], folder=FOLDER)"))
    assert "the mechanism" in found


@pytest.mark.long
def test_values_of_libraries_are_compared_by_what_they_hold(folder: Path) -> None:
    held = """
        collections.OrderedDict(a={value}); fractions.Fraction({value}); datetime.timedelta({value}); range({value});
        functools.partial(inner, {value}); pandas.DataFrame(dict(a=[{value}])); numpy.float32({value}); str({value});
        scipy.stats.norm({value}); re.compile('{value}'); numpy.array([{value}, None]); numpy.ma.array([{value}]);
        enum.Enum('E', dict(A={value})); collections.namedtuple('P', 'x')({value}); logging.getLogger('a{value}');
        types.SimpleNamespace(a={value}); functools.lru_cache(lambda: {value}); iter([{value}]); {value}j
    """
    imports = (
        "import collections, datetime, enum, fractions, functools, logging, numpy, pandas, re, scipy.stats, types\n"
    )
    code = imports + "def noisy(data, rng): return HELD\n"
    for expression in some(held.split(";"), 10):
        one, again, two = (
            look(written(folder), Kind("", "", code=f"{code}HELD = {expression.strip().format(value=value)}"))
            for value in (1, 1, 2)
        )
        assert unknown(one) == changed(one, again) == [], expression
        assert changed(one, two), expression


@pytest.mark.long
def test_the_order_of_sets_says_nothing(folder: Path) -> None:
    """Which is another in every process: 2 orders of 3 texts agree for these two seeds of the hash."""
    code = (
        "import json, sys; sys.path.insert(0, '.'); import main; from dpaudit.mechanisms import wrap; "
        "from dpaudit.running.program import made_of; main.noisy.part = main.TABLE, {'d', main.SCALE, 'e'}; "
        "told = made_of(wrap(main.noisy)); print(json.dumps({key: told[key] for key in told if key[:3] != 'env'}))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=written(folder),
            env=environment | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in "12"
    ]
    one, two = map(json.loads, found)
    assert {
        each for each in changed(one, two) if "PYTHONHASHSEED" not in each and "the environment" not in each
    } == set()


def test_folders_without_an_init_are_packages_at_any_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pytest has them by `--import-mode=importlib`; a worker never imports the outer ones."""
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    (tmp_path / "outer" / "inner" / "noise.py").write_text("def noisy(data, rng):\n    return data\n")
    monkeypatch.chdir(tmp_path)
    assert [name for name, _ in located("outer.inner.noise", [str(tmp_path)])] == ["outer.inner.noise"]
    assert "def noisy" in source_of("outer.inner.noise:noisy", str(tmp_path))[0]
