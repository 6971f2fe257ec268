"""Do the tests notice a mistake? Small faults in what makes a verdict, each tried on the tests that run its line.

    python scripts/mutants.py --base COMMIT --sample 300 --report reports/mutants.md

A mutant changes one comparison, number, direction of rounding, `and`, `not`, sum or returned value of the certifiers,
the claims, the events or the counting, as HEAD has them: what is not committed is neither changed nor tried. A test
that fails kills a fault, and so do tests that do not end, where the same tests pass without it. With `--base` the tests
of that commit are tried on the same faults. Every fault that survives is a failure but those that change no answer:
`mutants.toml` lists them with reasons. It takes hours.

The file is a plugin of pytest, too: it writes down which test ran which line, and how long that took; and it keeps a
process that has collected all tests, and runs some of them in a fork of it that has one fault in its functions. What
survives there is tried once more as a file on the disk, which also changes what an import computes.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import gc
import itertools
import json
import os
import queue
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.main import pytest_runtestloop

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = Path(__file__).with_suffix(".toml")
ROOMS = {
    "certify": ("dpaudit/certify/*.py",),
    "claims": ("dpaudit/claims/*.py",),
    "events": ("dpaudit/events/*.py",),
    "counting": tuple(
        f"dpaudit/{name}.py" for name in ("running/watch", "running/order", "running/pieces", "processes/counting")
    ),
}
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
SUMS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
ROUNDINGS = {
    "up": "down",
    "down": "up",
    "floor": "ceil",
    "ceil": "floor",
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
}
SECONDS = 45.0  # of tests for one mutant, as long as they took without it
MEMORY = 8 * 2**30  # bytes that the tests of a mutant may ask for
KILLS = ("killed", "timed out")
UNSOUND = "its tests fail without it"
LATE, UNCHANGED = -1, 100  # beside the exit codes of pytest: too late; no function in memory has the fault


# --- faults -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """One changed expression: its name is the same in two trees where a function has moved within its room."""

    name: str
    path: str
    line: int
    start: int  # in bytes
    end: int
    after: str

    @property
    def room(self) -> str:
        return self.name.partition(":")[0]

    def source(self, text: str) -> str:
        """The text of the file with the fault.

        >>> Mutant("", "", 1, 4, 9, "x <= 1").source("y = x < 1")
        'y = x <= 1'
        """
        whole = text.encode()
        return (whole[: self.start] + self.after.encode() + whole[self.end :]).decode()


def mutants(root: Path) -> dict[str, Mutant]:
    """Every fault of the four rooms, by name."""
    every: dict[str, Mutant] = {}
    counts: Counter[str] = Counter()
    for room, patterns in ROOMS.items():
        for path in sorted(path for pattern in patterns for path in root.glob(pattern)):
            for words, line, start, end, after in faults(path.read_text(encoding="utf-8")):
                counts[f"{room}: {words}"] += 1
                name = f"{room}: {words} #{counts[f'{room}: {words}']}"
                every[name] = Mutant(name, str(path.relative_to(root)), line, start, end, after)
    return every


def faults(text: str) -> Iterator[tuple[str, int, int, int, str]]:
    """Each fault in words, its line, first and last byte, and what it puts there.

    >>> [words for words, *_ in faults("def f(x):\\n    return up(x) if x < y else x + 7")][:4]
    ['f: up(x) if x < y else x + 7 -> None', 'f: x < y -> x <= y', 'f: up -> down', 'f: x + 7 -> x - 7']
    """
    starts = [0, *itertools.accumulate(len(line.encode()) for line in text.splitlines(keepends=True))]
    for place, node, others in _sites(ast.parse(text), ()):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        for after in map(ast.unparse, others):
            if after == ast.unparse(node):  # one more than 1e16
                continue
            yield f"{place or 'module'}: {ast.unparse(node)} -> {after}", node.lineno, start, end, after


def _sites(node: ast.AST, place: tuple[str, ...]) -> Iterator[tuple[str, ast.expr, list[ast.expr]]]:
    """What is computed, with what might stand there by mistake: not annotations, nor what is said of an error."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
        return
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        place = (*place, node.name)
        children = list(node.body)
        if isinstance(node, ast.FunctionDef):
            children += [*node.args.defaults, *(each for each in node.args.kw_defaults if each)]
    elif isinstance(node, ast.AnnAssign):
        children = [node.value] if node.value else []
    elif isinstance(node, ast.Assign) and not place:
        place = (ast.unparse(node.targets[0]),)
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield ".".join(place), node.value, [ast.Constant(None)]
    elif isinstance(node, ast.expr):
        yield ".".join(place), node, list(_others(node))
    for child in children:
        yield from _sites(child, place)


def _others(node: ast.expr) -> Iterator[ast.expr]:
    """What might stand there by mistake, each a copy with one change."""
    if isinstance(node, ast.Compare):
        for at, kind in enumerate(node.ops):
            other = copy.deepcopy(node)
            other.ops[at] = COMPARISONS[type(kind)]()
            yield other
    elif isinstance(node, ast.BinOp) and type(node.op) in SUMS:
        yield ast.BinOp(node.left, SUMS[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield from (ast.Constant(node.value + 1), ast.Constant(node.value - 1))
    elif isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name in ROUNDINGS:
            other = copy.deepcopy(node)
            setattr(other, "id" if isinstance(node, ast.Name) else "attr", ROUNDINGS[name])
            yield other


# --- which tests run which line -----------------------------------------------------------------------------------


class Notes:
    """The plugin: each test that passed, how long it took and which lines of the rooms it ran in this process."""

    def __init__(self, root: Path, target: Path) -> None:
        from coverage import Coverage

        self.coverage = Coverage(data_file=None, source=[str(root / "dpaudit")], config_file=False)
        self.root, self.target = root, target
        self.passed: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.start()
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.stop()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        spent = self.passed.get(report.nodeid, 0.0) + report.duration
        self.passed[report.nodeid] = spent if report.passed else float("nan")

    def pytest_unconfigure(self) -> None:
        data = self.coverage.get_data()
        ran: dict[str, dict[int, list[str]]] = {}
        for each in data.measured_files():
            ran[str(Path(each).relative_to(self.root))] = data.contexts_by_lineno(each)
        notes = {"passed": {name: spent for name, spent in self.passed.items() if spent == spent}, "ran": ran}
        self.target.with_suffix(f".{os.getpid()}.json").write_text(json.dumps(notes), encoding="utf-8")


class Forking:
    """The plugin: runs chosen tests with one fault after the other, each in a fork of this process."""

    def __init__(self, asked: int, answered: int) -> None:
        self.asked, self.answered = os.fdopen(asked), os.fdopen(answered, "w")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of the tests: those that are asked for, until nothing more is."""
        items = {item.nodeid: item for item in session.items}
        for line in self.asked:
            file, before, after, tests, limit, folder = json.loads(line)
            session.items = [items[test] for test in tests if test in items]
            child = os.fork()
            if not child:
                os._exit(_in_fork(session, swaps(before, after, file), Path(folder)))
            print(_ended(child, limit), file=self.answered, flush=True)
        return True


def _in_fork(session: pytest.Session, swapped: dict[CodeType, CodeType], folder: Path) -> int:
    """The exit code of the session's tests with these functions changed."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    session.config._tmp_path_factory._given_basetemp = folder  # type: ignore[attr-defined]
    gc.unfreeze()  # the tests freeze what is loaded, which is not listed then
    functions = [each for each in gc.get_objects() if isinstance(each, FunctionType) and each.__code__ in swapped]
    if (swapped and not functions) or not session.items:
        return UNCHANGED
    try:
        for function in functions:
            function.__code__ = swapped[function.__code__]
        pytest_runtestloop(session)
    except session.Failed:
        return pytest.ExitCode.TESTS_FAILED
    except ValueError:  # a function that has lost a variable of what is around it
        return UNCHANGED
    except BaseException:
        return pytest.ExitCode.TESTS_FAILED if session.testsfailed else pytest.ExitCode.INTERNAL_ERROR
    return pytest.ExitCode.TESTS_FAILED if session.testsfailed else pytest.ExitCode.OK


def swaps(before: str, after: str, file: str) -> dict[CodeType, CodeType]:
    """The code of each function that a fault changes, with its code after it; of what holds that function, too.

    >>> old, new = (f"def f(x):\\n    return x {sign} 1\\ndef g():\\n    pass" for sign in "+-")
    >>> sorted(each.co_name for each in swaps(old, new, ""))
    ['<module>', 'f']
    """
    codes: list[dict[tuple[str, int], CodeType]] = []
    for text in (before, after):
        counts: Counter[str] = Counter()
        codes.append({})
        todo = [compile(text, file, "exec", dont_inherit=True)]
        while todo:
            code = todo.pop(0)
            counts[code.co_qualname] += 1
            codes[-1][code.co_qualname, counts[code.co_qualname]] = code
            todo += [each for each in code.co_consts if isinstance(each, CodeType)]
    old, new = codes
    return {old[key]: new[key] for key in old.keys() & new.keys() if _body(old[key]) != _body(new[key])}


def _body(code: CodeType) -> tuple[Any, ...]:
    """What a code does, without the lines it stands in."""
    consts = tuple((type(each), _body(each) if isinstance(each, CodeType) else repr(each)) for each in code.co_consts)
    return code.co_code, consts, code.co_names, code.co_varnames, code.co_freevars


def _ended(child: int, limit: float) -> int:
    """The exit code of a process; `LATE` where it took longer. What it started ends with it."""
    end = time.monotonic() + limit
    try:
        while time.monotonic() < end:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        return LATE
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)


def pytest_configure(config: pytest.Config) -> None:
    """As a plugin of pytest, in each of its processes."""
    target, ends = os.environ.get("MUTANTS_NOTES"), os.environ.get("MUTANTS_PIPES")
    if target and (not config.getoption("numprocesses", None) or hasattr(config, "workerinput")):
        config.pluginmanager.register(Notes(config.rootpath, Path(target)))
    if ends:
        config.pluginmanager.register(Forking(*map(int, ends.split(","))))


@dataclass(frozen=True)
class Covered:
    """Seconds of each test that passes, and the tests that run a line."""

    seconds: dict[str, float]
    by_line: dict[tuple[str, int], set[str]]

    def tests_of(self, mutant: Mutant) -> list[str]:
        """The tests of the line, or of its file where only an import runs it, or of its room where only other processes
        do; `SECONDS` of them, its room's first."""
        every = self.by_line.get((mutant.path, mutant.line), set())
        every = every or {test for (path, _), tests in self.by_line.items() if path == mutant.path for test in tests}
        folder = str(Path(mutant.path).parent.name)
        near = (f"tests/{folder}/", f"dpaudit/{folder}/")
        every = every or {test for test in self.seconds if test.startswith(near)}
        chosen: list[str] = []
        left = SECONDS
        for test in sorted(every & set(self.seconds), key=lambda test: (not test.startswith(near), self.seconds[test])):
            left -= self.seconds[test]
            if left >= 0.0 or not chosen:
                chosen.append(test)
        return chosen


def covered(tree: Path, paths: list[str], jobs: int) -> Covered:
    """Runs the tests of a tree once, and reads what they ran."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"MUTANTS_NOTES": str(Path(folder, "notes"))}
        arguments = [*paths, "-n", str(jobs), "--dist", "worksteal", "-p", "mutants"]
        _waited(_pytest(tree, arguments, environment, None), None)
        seconds: dict[str, float] = {}
        by_line: dict[tuple[str, int], set[str]] = {}
        for file in Path(folder).glob("*.json"):
            notes: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            seconds |= notes["passed"]
            for path, lines in notes["ran"].items():
                for line, tests in lines.items():
                    by_line.setdefault((path, int(line)), set()).update(filter(None, tests))
    if not seconds:
        sys.exit("no test has passed: nothing can be shown")
    return Covered(seconds, by_line)


# --- trying -------------------------------------------------------------------------------------------------------


class Tree:
    """The files of a commit in a folder, what its tests run, and a process that has collected them."""

    def __init__(self, commit: str, folder: Path, paths: list[str]) -> None:
        self.folder, self.paths = tree_of(commit, folder), paths
        self.tests = Covered({}, {})
        self.passing: dict[tuple[bool, tuple[str, ...]], bool] = {}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, tests: Covered) -> None:
        """Collects the tests."""
        self.tests = tests
        asks, self.ask = os.pipe()
        self.answer, answers = os.pipe()
        pipes = {"MUTANTS_PIPES": f"{asks},{answers}"}
        arguments = [*self.paths, "-x", "-n", "0", "-p", "mutants"]
        self.process = _pytest(self.folder, arguments, pipes, None, (asks, answers))
        for each in (asks, answers):
            os.close(each)
        self.asks, self.answers = os.fdopen(self.ask, "w"), os.fdopen(self.answer)

    def close(self) -> None:
        """Ends its process."""
        if self.process is not None:
            _end(self.process)

    def killed(self, mutant: Mutant) -> str:
        """What became of a mutant; the tree is as before afterwards.

        One of `KILLS`, "survived", "no test" where none runs the file, or `UNSOUND` where tests that ended otherwise
        with the mutant do not pass without it.
        """
        chosen = tuple(self.tests.tests_of(mutant))
        if not chosen:
            return "no test"
        file = self.folder / mutant.path
        before = file.read_text(encoding="utf-8")
        code = self._forked(file, before, mutant.source(before), chosen)
        if forked := code in (pytest.ExitCode.TESTS_FAILED, LATE):
            outcome = _outcome(code)
        else:
            try:
                _replace(file, mutant.source(before))
                outcome = _outcome(self._run(chosen))
            finally:
                _replace(file, before)
        if outcome != "survived" and (forked, chosen) not in self.passing:
            code = self._forked(file, before, before, chosen) if forked else self._run(chosen)
            self.passing[forked, chosen] = code == pytest.ExitCode.OK
        return outcome if outcome == "survived" or self.passing[forked, chosen] else UNSOUND

    def _forked(self, file: Path, before: str, after: str, chosen: tuple[str, ...]) -> int:
        """The exit code of these tests where the functions in memory have the fault."""
        asked = (str(file), before, after, chosen, self._limit(chosen), str(self.folder / ".forked"))
        try:
            print(json.dumps(asked), file=self.asks, flush=True)
            return int(self.answers.readline())
        except (OSError, ValueError):  # it has ended
            return UNCHANGED

    def _run(self, chosen: tuple[str, ...]) -> int:
        """The exit code of these tests in the tree as it is now."""
        listed = self.folder / ".mutant-tests"
        listed.write_text("\n".join(chosen), encoding="utf-8")
        return _waited(_pytest(self.folder, ["-x", f"@{listed}"], {}, MEMORY), self._limit(chosen))

    def _limit(self, chosen: tuple[str, ...]) -> float:
        return 60.0 + 3.0 * sum(self.tests.seconds[test] for test in chosen)


def _outcome(code: int) -> str:
    """What an exit code says of a mutant: whatever does not end well kills it, an import that breaks too.

    >>> [_outcome(code) for code in (0, 1, LATE, 4)]
    ['survived', 'killed', 'timed out', 'killed']
    """
    return {pytest.ExitCode.OK: "survived", LATE: "timed out"}.get(code, "killed")


def _replace(file: Path, text: str) -> None:
    """What was compiled of the file goes: within a second, and of one size, Python would take it for the same."""
    file.write_text(text, encoding="utf-8")
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink()


def _pytest(
    tree: Path, arguments: list[str], environment: dict[str, str], memory: int | None, pipes: tuple[int, ...] = ()
) -> subprocess.Popen[bytes]:
    """A process of pytest in a tree."""
    given = os.environ | {"PYTHONPATH": os.pathsep.join([str(tree), str(Path(__file__).parent)])} | environment
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=tree,
        env=given,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=pipes,
        preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory))) if memory else None,
    )


def _waited(running: subprocess.Popen[bytes], limit: float | None) -> int:
    """The exit code of a process; `LATE` where it took too long."""
    try:
        return running.wait(limit)
    except subprocess.TimeoutExpired:
        return LATE
    finally:
        _end(running)


def _end(running: subprocess.Popen[bytes]) -> None:
    """Ends a process with all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def tree_of(commit: str, folder: Path) -> Path:
    """The files of a commit."""
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    return folder


@dataclass(frozen=True)
class Tried:
    """A mutant and what became of it, in each tree."""

    mutant: Mutant
    outcomes: dict[str, str]


def tried(commits: dict[str, str], paths: list[str], sample: int, seed: int, jobs: int) -> list[Tried]:
    """A seeded sample of the faults that all commits have, each tried on the tests of each."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as opened:
        trees = {
            name: [Tree(commit, Path(folder, f"{name}-{job}"), paths) for job in range(jobs)]
            for name, commit in commits.items()
        }
        faults_of = {name: mutants(copies[0].folder) for name, copies in trees.items()}
        shared = sorted(set.intersection(*map(set, faults_of.values())))
        drawn = random.Random(seed).sample(shared, min(sample, len(shared)))
        print(f"{len(drawn)} of {len(shared)} faults", file=sys.stderr)
        for copies in trees.values():
            tests = covered(copies[0].folder, paths, jobs)
            for copy in copies:
                copy.start(tests)
                opened.callback(copy.close)
        idle: queue.Queue[int] = queue.Queue()
        for job in range(jobs):
            idle.put(job)

        def one(name: str) -> Tried:
            job, began = idle.get(), time.monotonic()
            try:
                outcomes = {tree: copies[job].killed(faults_of[tree][name]) for tree, copies in trees.items()}
            finally:
                idle.put(job)
            print(f"{time.monotonic() - began:6.1f} s  {' '.join(outcomes.values())}  {name}", file=sys.stderr)
            return Tried(next(iter(faults_of.values()))[name], outcomes)

        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(one, drawn))


# --- the table ----------------------------------------------------------------------------------------------------


def table(results: list[Tried], equivalent: dict[str, str]) -> str:
    """How many faults the tests kill, by room, and each survivor; as Markdown.

    >>> mutant = Mutant("claims: f: a < b -> a <= b #1", "dpaudit/claims/pure.py", 7, 0, 0, "")
    >>> print(table([Tried(mutant, {"now": "survived"})], {mutant.name: "a is never b"}))
    | room | mutants | equivalent | killed now | timed out now |
    | --- | --- | --- | --- | --- |
    | claims | 1 | 1 | 0 | 0 |
    | all | 1 | 1 | 0 | 0 |
    <BLANKLINE>
    * `claims: f: a < b -> a <= b #1` (dpaudit/claims/pure.py:7): equivalent, for a is never b
    """
    trees = list(results[0].outcomes)
    head = ["room", "mutants", "equivalent", *(f"{kill} {tree}" for tree in trees for kill in KILLS)]
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for room in [*dict.fromkeys(each.mutant.room for each in results), "all"]:
        rows = [each for each in results if room in (each.mutant.room, "all")]
        kills = [sum(each.outcomes[tree] == kill for each in rows) for tree in trees for kill in KILLS]
        cells = [room, len(rows), sum(each.mutant.name in equivalent for each in rows), *kills]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines.append("")
    for each in results:
        if not set(each.outcomes.values()) <= set(KILLS):
            told = ", ".join(f"{outcome} {tree}" for tree, outcome in each.outcomes.items())
            reason = f"equivalent, for {equivalent[each.mutant.name]}" if each.mutant.name in equivalent else told
            lines.append(f"* `{each.mutant.name}` ({each.mutant.path}:{each.mutant.line}): {reason}")
    return "\n".join(lines)


def failures(results: list[Tried], equivalent: dict[str, str]) -> list[str]:
    """The faults that today's tests do not kill, each with its outcome, without those known to change no answer.

    >>> outcomes = ["killed", "timed out", "survived", "no test", UNSOUND]
    >>> results = [Tried(Mutant(name, "", 1, 0, 0, ""), {"now": each}) for name, each in zip("abcde", outcomes)]
    >>> failures(results, {"c": "a reason"})
    ['d: no test', 'e: its tests fail without it']
    """
    rest = [each for each in results if each.outcomes["now"] not in KILLS]
    # a listed fault is excused for surviving, not for tests that show nothing
    return [
        f"{each.mutant.name}: {each.outcomes['now']}"
        for each in rest
        if each.mutant.name not in equivalent or each.outcomes["now"] == UNSOUND
    ]


def main() -> None:
    """Ends with 1 where today's tests do not kill a fault that no reason excuses, or fail without one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--base", metavar="COMMIT", help="a commit whose tests are tried as well")
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report", type=Path, metavar="FILE", help="where the table goes, too")
    parser.add_argument(
        "--tests",
        nargs="*",
        default=[],
        metavar="PATH",
        help="tests to take, all by default; only those that pass count",
    )
    given = parser.parse_args()
    commits = {"base": given.base} if given.base else {}
    results = tried({**commits, "now": "HEAD"}, given.tests, given.sample, given.seed, given.jobs)
    equivalent = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))
    told = table(results, equivalent)
    print(told)
    if given.report:
        given.report.parent.mkdir(parents=True, exist_ok=True)
        given.report.write_text(told + "\n", encoding="utf-8")
    sys.exit("\n".join(["", "not killed:", *rest]) if (rest := failures(results, equivalent)) else 0)


if __name__ == "__main__":
    main()
