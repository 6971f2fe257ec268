"""What the reader makes of a mechanism does what the mechanism does: same draws in, same output out."""

from __future__ import annotations

import contextlib
import inspect
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest

from benchmarks.programs import FAMILY, PROGRAMS
from dpaudit.catalogue import entries
from dpaudit.catalogue.additive import laplace, laplace_vector
from dpaudit.catalogue.entry import Entry, written
from dpaudit.catalogue.selection import report_noisy_max
from dpaudit.catalogue.sparse import above_threshold, gap_sparse, numeric_sparse, sparse, sparse_lyu_1, sparse_monotone
from dpaudit.errors import InvalidSpec
from dpaudit.verify.language import OutsideLanguage, nodes, read
from tests.cases import for_each
from tests.verify.interpreter import Noise, as_output, run

HELD = {case.name: case.function for case in (*PROGRAMS.values(), *FAMILY.values())}
PARAMETERS = {"eps": Fraction(1), "N": 2, "T": 1, "M": 2, "c": 2, "epsilon": Fraction(1), "threshold": Fraction(1, 2)}
PARAMETERS |= {"sensitivity": Fraction(1), "shift": Fraction(2)}
ENTRIES = (above_threshold, sparse, sparse_monotone, sparse_lyu_1, gap_sparse, numeric_sparse, report_noisy_max)
ENTRIES += (laplace, laplace_vector)
OUTSIDE = {"recycled_noise", "noise_on_the_leader", "grouped", "head_start"}
OUTSIDE |= {
    "value_beside_gap",
    "sensitivity_of_one",
    "uniform_noise",
    "deviation_as_scale",
    "relative_noise",
    "clipped_noise",
    "few_seeds",
    "rounded_first",
}
OUTSIDE |= {"rounded_noise", "rounded_output", "clamped_output"}


def answers_for(program: nodes.Program, numbers: random.Random, most: int = 6) -> Any:
    """Some halves, or one where the program has no loop."""
    answers = [Fraction(numbers.randint(-4, 4), 2) for _ in range(numbers.randint(1, most))]
    return answers if program.loop is not None else answers[0]


def same(function: Callable[..., Any], source: object = None, runs: int = 60) -> int:
    """Compares the function with its reading; the number of different outputs that were seen."""
    program = read(source or function)  # type: ignore[arg-type]
    assert read(program.source) == read(program.source, name=program.name) == program
    assert program.parameters == tuple(inspect.signature(function).parameters)[2:]
    given = {name: PARAMETERS[name] for name in program.parameters}
    seen = set()
    for seed in range(runs):
        answers, plain, read_back = answers_for(program, random.Random(seed + 1000)), Noise(seed), Noise(seed)
        expected = as_output(function(answers, plain, **given))
        found = run(program, answers, given, read_back)
        if isinstance(expected, tuple) and expected and isinstance(expected[0], list):
            expected = (tuple(expected[0]), *expected[1:])
        if program.loop is None and isinstance(found, tuple) and not isinstance(expected, tuple):
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


WITH_TWINS = [each for entry in ENTRIES for each in (entry, *entry.twins.values())]
CATALOGUE = [entry for entry in WITH_TWINS if entry.name.split(".")[-1] not in OUTSIDE]


@for_each("entry", CATALOGUE, ids=lambda entry: entry.name)
def test_programs_of_the_catalogue_do_what_their_reading_does(entry: Entry) -> None:
    assert same(entry.program, runs=25) > 2


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
        if not done and x + rng.laplace(scale=1 / eps) > 1:
            done = True
        out.append(done)
    return out
""".replace(
        "        if not done and x + rng.laplace(scale=1 / eps) > 1:",
        "        y = x + rng.laplace(scale=1 / eps)\n        if not done and y > 1:",
    ),
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
            out.append("late")
        elif above:
            out.append("soon")
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


def test_draws_are_taken_out_in_the_order_of_the_source() -> None:
    program = read("def f(q, rng, a, b):\n    return (rng.laplace(scale=a) - q) + rng.laplace(scale=b)")
    assert [(part.target, part.scale) for part in program.before if isinstance(part, nodes.Draw)] == [
        ("draw_1", nodes.ProgramParameter("a")),
        ("draw_2", nodes.ProgramParameter("b")),
    ]


def test_a_guard_is_the_first_branch_of_the_loop() -> None:
    program = read(PROGRAMS["c2_sparse_vector"].function)
    assert program.loop is not None
    guard = program.loop[0]
    assert isinstance(guard, nodes.Branch)
    assert isinstance(guard.then[0], nodes.Stop)
    assert guard.condition == nodes.Not(nodes.Compared("<", nodes.Variable("count"), nodes.ProgramParameter("N")))


def test_the_number_of_outputs_is_a_counter() -> None:
    text = "def f(q, rng, c: int):\n    out = []\n    for x in q:\n        out.append(x)\n"
    program = read(text + "        if len(out) >= c:\n            break\n    return out")
    assert program.before == (nodes.Assign("len(out)", nodes.Number(Fraction(0)), 1),)
    assert program.loop is not None
    assert isinstance(program.loop[1], nodes.Assign)
    assert program.loop[1].target == "len(out)"


def test_outputs_that_are_not_returned_are_no_outputs() -> None:
    text = (
        "def f(q, rng):\n    out = []\n    k = 0\n    for x in q:\n        out.append(x)\n        k += 1\n    return k"
    )
    program = read(text)
    assert run(program, [5, 6], {}, Noise(0)) == 2
    assert not any(isinstance(part, nodes.Emit) for part in program.loop or ())


def test_the_index_of_the_largest_is_the_loop_that_finds_it() -> None:
    listed = read(
        "def f(q, rng):\n    noisy = [x + rng.laplace(scale=2) for x in q]\n    return noisy.index(max(noisy))"
    )
    assert listed.loop is not None
    assert isinstance(listed.loop[2], nodes.Branch)
    first = nodes.Compared("==", nodes.Index(), nodes.Number(Fraction(0)))
    larger = nodes.Compared(">", nodes.Variable("y"), nodes.Variable("best"))
    assert listed.loop[2].condition == nodes.Any((first, larger))
    assert listed.result == (nodes.Variable("winner"),)
    assert run(listed, [1, 3, 3, 2], {}, lambda law, scale: Fraction(0)) == 1  # the first of equals


def test_names_of_the_reader_give_way_to_those_of_the_source() -> None:
    text = "def f(q, rng, best):\n    y = 0\n    noisy = []\n    for x in q:\n        y += 1\n        noisy.append(x)\n"
    program = read(text + "    return max(noisy), y")
    assert run(program, [1, 2], {"best": 0}, Noise(0)) == (2, 2)


@pytest.mark.parametrize("values", [[1, 2], (1, 2)])
def test_parameters_that_are_whole_numbers_are_found(values: Sequence[int]) -> None:
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
    program = read(text)
    assert program.integers == {"a", "b", "c"}
    with_defaults = read("def f(q, rng, a=0.25, *, b=-2):\n    return q + a + b")
    assert with_defaults.defaults == {"a": Fraction(1, 4), "b": Fraction(-2)}
    assert run(with_defaults, 1, {}, Noise(0)) == Fraction(-3, 4)


def test_numbers_are_what_python_holds() -> None:
    program = read("def f(q, rng, a=0.1):\n    return q + 0.1 + 1e-3 + 1_000 + TENTH - a + 1e-999\nTENTH = 0.1")
    assert run(program, 0, {}, Noise(0)) == Fraction(0.1) + Fraction(0.001) + 1_000
    assert (
        read("def f(q, rng):\n    return q + 0." + "0" * 400 + "1").result
        == read("def f(q, rng):\n    return q + 0").result
    )


def test_every_program_of_the_catalogue_is_read_or_outside_the_language() -> None:
    """What is running is what the source says, inner functions with annotations included."""
    programs = [each.program for entry in entries() for each in (entry, *entry.twins.values())]
    for program in programs:
        if written(program) is not program:  # made of another one: its own source says nothing of what it does
            with pytest.raises(InvalidSpec, match=r"an enclosing function|an open list|only a plain function"):
                read(program)
            continue
        with contextlib.suppress(OutsideLanguage):
            assert read(program).name == program.__name__
