"""Sources with small random changes are refused, or do what their reading does: never anything else."""

from __future__ import annotations

import ast
import copy
import inspect
import random
import warnings
from typing import Any

import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language import read
from tests.verify.interpreter import Noise, as_output, run
from tests.verify.language.test_reading import HELD, PARAMETERS, SHAPES, answers_for

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


@pytest.mark.parametrize("seed", range(4))
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
            expected = outcome(lambda: scope[program.name](answers, plain, **given))  # noqa: B023
            found = outcome(lambda: run(program, answers, given, read_back))  # noqa: B023
            if isinstance(found, tuple) and found[:1] == ("refused",):
                assert "must be above 0" in found[1] or "must keep what" in found[1]
                continue
            if isinstance(expected, tuple) and expected and isinstance(expected[0], list | dict):
                expected = (as_output(expected[0]), *expected[1:])
            assert found in (expected, (expected,)) or (found,) == expected, source
    assert held >= MUTANTS // 5  # most changes break a mechanism, but not all
