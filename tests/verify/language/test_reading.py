"""What the reader makes of a mechanism does what the mechanism does: same draws in, same output out."""

from __future__ import annotations

import ast
import contextlib
import copy
import inspect
import random
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from benchmarks.programs import FAMILY, PROGRAMS
from dpaudit.catalogue import entries
from dpaudit.catalogue.entry import written
from dpaudit.catalogue.sparse import above_threshold
from dpaudit.errors import InvalidSpec
from dpaudit.verify.language import OutsideLanguage, nodes, read
from tests.cases import for_each
from tests.verify.interpreter import Noise, as_output, run

HELD = {case.name: case.function for case in (*PROGRAMS.values(), *FAMILY.values())}
PARAMETERS = {"eps": Fraction(1), "N": 2, "T": 1, "M": 2, "c": 2, "epsilon": Fraction(1), "threshold": Fraction(1, 2)}
PARAMETERS |= {
    "sensitivity": Fraction(1),
    "shift": Fraction(2),
    "mu": Fraction(1),
    "delta": Fraction(1, 8),
    "reach": Fraction(2),
}


def answers_for(program: nodes.Program, numbers: random.Random, most: int = 6) -> Any:
    """Some halves, or one where the program has no loop."""
    answers = [Fraction(numbers.randint(-4, 4), 2) for _ in range(numbers.randint(1, most))]
    return answers if program.loop is not None else answers[0]


def same(function: Callable[..., Any], source: object = None, runs: int = 60) -> int:
    """Compares the function with its reading; the number of different outputs that were seen."""
    program = read(source or function)  # type: ignore[arg-type]
    assert read(program.source) == read(program.source, name=program.name) == program
    assert program.parameters == tuple(each for each in inspect.signature(function).parameters if each != "rng")[1:]
    given = {name: PARAMETERS[name] for name in program.parameters}
    seen = set()
    for seed in range(runs):
        answers, plain, read_back = answers_for(program, random.Random(seed + 1000)), Noise(seed), Noise(seed)
        expected = as_output(function(answers, rng=plain, **given))
        found = run(program, answers, given, read_back)
        if found == (expected,):
            (found,) = found  # a choice is read as a list with one output
        if isinstance(found, tuple) and found and expected == (found,):
            (expected,) = expected  # {winner: value} is read as (winner, value)
        assert found == expected, (seed, answers)
        assert plain.asked == read_back.asked
        seen.add(repr(found))
    return len(seen)


@for_each("name", HELD)
def test_programs_do_what_their_reading_does(name: str) -> None:
    assert same(HELD[name]) > 2


def test_programs_of_the_catalogue_do_what_their_reading_does_or_are_outside_the_language() -> None:
    """What is running is what the source says, inner functions with annotations included."""
    compared = 0
    for program in (each.program for entry in entries() for each in (entry, *entry.twins.values())):
        if written(program) is not program:  # made of another one: its own source says nothing of what it does
            with pytest.raises(InvalidSpec, match=r"an enclosing function|an open list|only a plain function"):
                read(program)
            continue
        with contextlib.suppress(OutsideLanguage):
            assert read(program).name == program.__name__
            assert same(program, runs=12) > 2
            compared += 1
    assert compared >= 55


def test_constants_of_the_module_stand_behind_the_function() -> None:
    program = read(above_threshold.program)
    assert program.source.splitlines()[-2:] == ["BOTTOM = 0", "TOP = 1"]
    assert read(program.source) == program


SHAPES: dict[str, str] = {
    "while, counted by hand": """
def f(q, rng, eps, N):
    i, found = 0, 0
    out = []
    while i < len(q) and found < N:
        y = q[i] + rng.laplace(0, 1 / eps)
        if y > 0 and not y > 2 or y == -1:
            found = found + 1
            out.append(i)
        i = i + 1
    return out
""",
    "a flag": """
def f(q, rng, eps):
    done = False
    out = []
    for x in q:
        y = x + rng.laplace(scale=1 / eps)
        if not done and y > 1:
            done = True
        out.append(done)
    return out
""",
    "names for scales, and comparisons with names": """
def f(q, rng, eps, T):
    half = eps / 2
    scale = 1 / half
    t = T + rng.laplace(scale=scale)
    out = []
    for i, x in enumerate(q):
        above = x + rng.laplace(scale=2 * scale) >= t
        late = i >= 2
        if above and late:
            out.append("it's late")
        elif above:
            out.append("None")
        else:
            out.append(None)
    return out, t
""",
    "a filter": """
def f(q, rng, eps):
    return [i for i, x in enumerate(q) if x + rng.laplace(scale=1 / eps) > 0]
""",
    "the smallest": """
def f(q, rng, eps):
    noisy = []
    for x in q:
        noisy.append(x + rng.gumbel(scale=2 / eps))
    return noisy.index(min(noisy)), min(noisy) + rng.normal(scale=1 / eps)
""",
    "an answer of yes or no": """
def f(q, rng, eps, T):
    return q + rng.laplace(scale=1 / eps) > T
""",
    "a choice at the end": """
def f(q, rng, eps, T):
    noisy = q + rng.laplace(scale=1 / eps)
    return "high" if noisy > T else noisy - T
""",
    "a chain of comparisons": """
def f(q, rng, eps):
    n = len(q)
    low = high = 0
    for i in range(n):
        y = q[i] + rng.exponential(1 / eps)
        if 0 <= y < 2:
            low += 1
        if i == n - 1 and y >= 2:
            high -= 3
    return low, high
""",
    "a value chosen by a condition": """
def f(q, rng, eps):
    last = 0
    out = {}
    for place, x in enumerate(q):
        last = x + rng.laplace(scale=1 / eps) if place % 2 == 0 else last / 2 - (-1)
        if last > 0:
            out[place] = last
        if len(out) == 2:
            break
    return out
""",
    "a return in the loop": """
def f(q, rng, eps, T):
    t = T + rng.laplace(scale=2 / eps)
    for i, x in enumerate(q):
        y = x + rng.laplace(scale=4 / eps)
        if y > t + 2:
            return i, y - t
        elif y > t:
            return i
    if t > 1:
        return "high"
""",
    "a list that is returned early, and continue": """
def f(q, rng, eps, N):
    if eps <= 0 or N < 1:
        raise ValueError(f"eps is {eps}")
    left = N
    out = []
    for x in q:
        if left == 0:
            return out
        if not above(x, 0, rng, 2 / eps):
            out += [None, left]
            continue
        out.append("first" if left > 1 else "last")
        left -= 1
    return out

def above(x, t, generator, scale=1):
    y = x + generator.laplace(0, scale)
    return t <= y
""",
    "a search that starts with nothing": """
def f(q, rng, eps, *, T):
    best, winner = -math.inf, None
    clipped = 0
    for i in range(len(q)):
        y = noisy(q[i], rng, b=checked(1 / eps))
        checked(eps)
        clipped += int(y >= T)
        if y > best:
            best, winner = y, i
    return winner, clipped

def noisy(x, rng, b, most=1.5):
    scale = b / 2
    x = 2 * x
    if x > most:
        return most + rng.laplace(scale=scale)
    return x - rng.exponential(scale)

def checked(scale):
    if scale <= 0:
        raise ValueError("a scale is above 0")
    return scale

import math
""",
    "yes or no": """
def f(q, eps, *, rng=None):
    if q + rng.laplace(scale=1 / eps) > 1:
        if q > 0:
            return "yes"
    else:
        return "no"
""",
    "a dictionary": """
def f(q, rng, eps):
    return {i: x + rng.laplace(scale=1 / eps) for i, x in enumerate(q) if i != 1}
""",
    "outputs before and after the loop": """
def f(q, rng, eps):
    out = []
    out.append(rng.laplace(5, 1 / eps))
    total = 0
    for x in q:
        pass
        total -= x
    out.append(total + rng.laplace(loc=total, scale=1 / eps))
    return tuple(out)
""",
}


@for_each("shape", SHAPES)
def test_other_ways_to_write_do_what_their_reading_does(shape: str) -> None:
    scope: dict[str, Any] = {}
    exec(SHAPES[shape], scope)
    assert same(scope["f"], SHAPES[shape], runs=150) > 1


def test_names_and_outputs_that_nobody_sees() -> None:
    """Names of the reader give way to those of the source, and a list that is not returned is no output."""
    text = "def f(q, rng, best):\n    y = 0\n    noisy = []\n    for x in q:\n        y += 1\n        noisy.append(x)\n"
    assert run(read(f"{text}    return max(noisy), y"), [1, 2], {"best": 0}, Noise(0)) == (2, 2)
    unseen = read(f"{text}    return y")
    assert run(unseen, [5, 6], {"best": 0}, Noise(0)) == 2
    assert not any(isinstance(part, nodes.Emit) for part in unseen.loop or ())


def test_parameters_that_are_whole_numbers_are_found() -> None:
    text = """
def f(q, rng, a: int, b, c, d, e: float):
    k = 0
    for i, x in enumerate(q):
        if (i + 1) % b == 0 and i < c - 1 and k >= e:
            k += 1
        if x > d:
            k += 2
    return k
"""
    assert read(text).integers == {"a", "b", "c"}
    with_defaults = read("def f(q, rng, a=0.25, *, b=-2):\n    return q + a + b")
    assert with_defaults.defaults == {"a": Fraction(1, 4), "b": Fraction(-2)}
    assert run(with_defaults, 1, {}, Noise(0)) == Fraction(-3, 4)


def test_numbers_are_what_python_holds() -> None:
    program = read("def f(q, rng, a=0.1):\n    return q + 0.1 + 1e-3 + 1_000 + TENTH - a + 1e-999\nTENTH = 0.1")
    assert run(program, 0, {}, Noise(0)) == Fraction(0.1) + Fraction(0.001) + 1_000
    tiny, none = (read(f"def f(q, rng):\n    return q + {number}") for number in (f"0.{'0' * 400}1", "0"))
    assert tiny.result == none.result


# --- sources with small random changes are refused, or do what their reading does --------------------------------


SOURCES = [*SHAPES.values(), *(inspect.getsource(function) for function in HELD.values())]
MUTANTS = 100  # for each seed


def blocks(tree: ast.AST) -> list[list[ast.stmt]]:
    """All lists of statements that are not empty."""
    found = [getattr(node, name, None) for node in ast.walk(tree) for name in ("body", "orelse")]
    return [block for block in found if isinstance(block, list) and block]


def changed(source: str, numbers: random.Random) -> str:
    """The source with one to three changes: statements moved, names, numbers, orders and expressions exchanged."""
    tree = ast.parse(source.strip())
    for _ in range(numbers.randint(1, 3)):
        block, other = (numbers.choice(blocks(tree.body[0])) for _ in range(2))
        nodes = list(ast.walk(tree))
        match numbers.randrange(6):
            case 0:
                block.pop(numbers.randrange(len(block)))
            case 1:
                other.insert(numbers.randrange(len(other) + 1), copy.deepcopy(numbers.choice(block)))
            case 2:
                names = [node for node in nodes if isinstance(node, ast.Name)]
                if names:
                    numbers.choice(names).id = numbers.choice(names).id
            case 3:
                values: list[Any] = [0, 1, 2, 0.5, None, True, False]
                constants = [node for node in nodes if isinstance(node, ast.Constant) and node.value.__class__ is int]
                for node in constants[:1] and [numbers.choice(constants)]:
                    node.value = numbers.choice(values)
            case 4:
                for compared in [node for node in nodes if isinstance(node, ast.Compare)][:1]:
                    compared.ops[0] = numbers.choice([ast.Lt(), ast.GtE(), ast.Eq(), ast.NotEq()])
            case 5:
                places = [(node, name) for node in nodes for name in ("value", "left", "right", "test")]
                places = [place for place in places if isinstance(getattr(*place, None), ast.expr)]
                if places:
                    setattr(*numbers.choice(places), copy.deepcopy(getattr(*numbers.choice(places))))
        for node in ast.walk(tree):
            if isinstance(node, ast.If | ast.For | ast.While | ast.FunctionDef) and not node.body:
                node.body.append(ast.Pass())
    return ast.unparse(ast.fix_missing_locations(tree))


def outcome(call: Any) -> Any:
    """What a call returns, or that it fails."""
    try:
        return as_output(call())
    except InvalidSpec as error:
        return "refused", str(error)
    except Exception:
        return "failed"


@for_each("seed", [0, 1], nightly=[2, 3])
def test_mutants_are_refused_or_read_as_python_runs_them(seed: int) -> None:
    numbers = random.Random(seed)
    held = 0
    for _ in range(MUTANTS):
        source = changed(numbers.choice(SOURCES), numbers)
        try:
            program = read(source)
        except InvalidSpec:
            continue
        held += 1
        scope: dict[str, Any] = {}
        with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
            exec(source, scope)
        given = {name: PARAMETERS[name] for name in program.parameters}
        for run_number in range(5):
            answers = answers_for(program, numbers, 5)
            plain, read_back = Noise(run_number), Noise(run_number)
            expected = outcome(lambda: scope[program.name](answers, rng=plain, **given))  # noqa: B023
            found = outcome(lambda: run(program, answers, given, read_back))  # noqa: B023
            if isinstance(found, tuple) and found[:1] == ("refused",):
                assert "must be above 0" in found[1] or "must keep what" in found[1]
                continue
            if isinstance(expected, tuple) and expected and isinstance(expected[0], list | dict):
                expected = (as_output(expected[0]), *expected[1:])
            assert found in (expected, (expected,)) or (found,) == expected, source
    assert held >= MUTANTS // 5
