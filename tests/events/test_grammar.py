"""Every word of the grammar against plain Python, run by run; and back from what a result stores."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.events import Event, event_from_dict, feature_from_dict
from dpaudit.events.grammar import WORDS, Expression
from dpaudit.outputs.canonical import READ_AS
from dpaudit.outputs.encode import encode_batch, encode_objects
from tests.cases import for_each
from tests.events.samples import INF, NAN

Row = tuple[float, ...]
PATHS = ((0,), (1,), (2,))
RNG = np.random.default_rng(3)
ROWS: list[Row] = [
    *((float(a), float(b), float(c)) for a, b, c in RNG.integers(-3_000, 3_000, (200, 3))),
    *((a, b, c) for a, b, c in RNG.normal(size=(200, 3)).tolist()),
    *((float(a), float(b), float(c)) for a, b, c in RNG.integers(0, 3, (100, 3))),
]
ENCODED = encode_objects(ROWS)


def of(word: str, *by: float) -> Expression:
    return Expression(word, PATHS, by)


def then(word: str, part: Expression, *by: float) -> Expression:
    return Expression(word, (part,), by)


def leading(x: float) -> float:
    return float(next((c for c in f"{abs(x):.17e}" if c in "123456789"), NAN))


def longest(row: Row) -> int:
    return max(
        1 + next((k for k in range(len(row) - j - 1) if row[j + k + 1] != row[j]), len(row) - j - 1) for j in range(3)
    )


CASES: list[tuple[Expression, Callable[[Row], float]]] = [
    (then("sum", of("less", 1.0, 2.0, 0.5)), lambda row: (row[0] - 1.0) + (row[1] - 2.0) + (row[2] - 0.5)),
    (then("sum", of("abs")), lambda row: sum(map(abs, row))),
    (then("sum", of("square")), lambda row: sum(x * x for x in row)),
    (then("sum", of("sign")), lambda row: float(sum((x > 0) - (x < 0) for x in row))),
    (then("sum", of("above", 0.5)), lambda row: float(sum(x > 0.5 for x in row))),
    (then("sum", of("equal", 1.0)), lambda row: float(sum(x == 1.0 for x in row))),
    (then("modulo", of("sum"), 2.0), lambda row: round(sum(row) / 2.0 % 1.0, 6) * 2.0),  # to a millionth
    (Expression("bit", ((0,),), (3.0,)), lambda row: float(math.floor(row[0]) >> 3 & 1)),
    (Expression("digit", ((0,),), (2.0,)), lambda row: float(int(abs(row[0])) // 100 % 10)),
    (Expression("bits", ((0,),)), lambda row: float(int(abs(row[0])).bit_count())),
    (Expression("digits", ((0,),)), lambda row: float(sum(map(int, str(int(abs(row[0]))))))),
    (Expression("leading", ((0,),)), lambda row: leading(row[0])),
    (Expression("significand", ((0,),)), lambda row: 2.0 * abs(math.frexp(row[0])[0])),
    (then("min", of("changes")), lambda row: min(row[1] - row[0], row[2] - row[1])),
    (then("max", of("steps")), lambda row: max(row[0], row[1] - row[0], row[2] - row[1])),
    (then("sum", Expression("decimals", ((0,),))), lambda row: 0.0 if row[0] == int(row[0]) else 9.0),
    (of("ordered", 1.0), lambda row: sorted(row)[1]),
    (of("ordered", -2.0), lambda row: sorted(row)[1]),
    (of("argmin"), lambda row: float(row.index(min(row)))),
    (then("sum", of("lag", 2.0)), lambda row: row[0] * row[2]),
    (of("max"), max),
    (of("min"), min),
    (of("argmax"), lambda row: float(row.index(max(row)))),
    (of("lead"), lambda row: sorted(row)[-1] - sorted(row)[-2]),
    (of("longest"), lambda row: float(longest(row))),
    (of("rank"), lambda row: float(sum(x < row[0] for x in row[1:]))),
    (of("times"), math.prod),
    (
        Expression("over", PATHS[:2]),
        lambda row: row[0] / row[1] if row[1] else math.copysign(INF, row[0]) if row[0] else NAN,
    ),
    (Expression("minus", PATHS[1:]), lambda row: row[1] - row[2]),
    (
        Expression("xor", tuple(Expression("bit", ((j,),), (1.0,)) for j in (0, 2))),
        lambda row: float((math.floor(row[0]) ^ math.floor(row[2])) >> 1 & 1),
    ),
]


@for_each("word", ["sum", "times"])
def test_entries_are_combined_in_one_order_whatever_runs_there_are(word: str) -> None:
    """To the last bit, before any rounding."""
    numbers, whole = RNG.normal(size=(30, 40)), slice(None)
    expression = Expression(word, tuple((j,) for j in range(40)))
    together = expression.matrix(encode_batch(numbers, 30), whole)[0]
    assert [expression.matrix(encode_batch(row[None], 1), whole)[0, 0] for row in numbers] == together.tolist()
    assert (expression.matrix(encode_batch(np.asfortranarray(numbers), 30), whole)[0] == together).all()


@for_each("expression", [each for each, _ in CASES if "decimals" not in str(each)])
def test_no_word_sees_how_a_number_was_computed(expression: Expression) -> None:
    """Numbers with one or two decimals, and the same a few last bits away; whole ones too, and powers of two.

    Of 400 rows none may differ: of a number that is written with few decimals, one in 30,000 lies where it could.
    """
    rng = np.random.default_rng(5)
    numbers = np.concatenate(
        [rng.integers(-9_999, 9_999, (200, 3)) / 10.0, rng.integers(-99_999, 99_999, (200, 3)) / 100.0]
    )
    numbers[:20] = 2.0 ** rng.integers(-3, 40, (20, 3))
    beside = numbers + rng.integers(-3, 4, numbers.shape) * np.spacing(numbers)
    one, other = (expression.column(encode_batch(each, len(each))) for each in (numbers, beside))
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.tokens, other.tokens)


@for_each(
    "written", [("bit", 1, []), ("modulo", 1, [0.0]), ("ordered", 2, [5.0]), ("lag", 2, [2.0]), ("less", 2, [1.0])]
)
def test_a_damaged_expression_is_refused_when_it_is_read(written: tuple[str, int, list[float]]) -> None:
    word, entries, by = written
    with pytest.raises(InvalidSpec, match=f"'{word}' has no by"):
        Expression.from_dict({"word": word, "parts": [[j] for j in range(entries)], "by": by})


@for_each(("expression", "plain"), CASES)
def test_a_word_is_what_plain_python_makes_of_each_run(expression: Expression, plain: Callable[[Row], float]) -> None:
    """Alone, among others and from the paths it wants the same; and stored, the same again."""
    column = expression.column(ENCODED)
    assert column.values.dtype == np.float32
    np.testing.assert_array_equal(expression.column(encode_objects(ROWS, expression.wanted)).values, column.values)
    alone = [expression.column(encode_objects([row])).values[0] for row in ROWS[::50]]
    np.testing.assert_array_equal(alone, column.values[::50])
    part = 1e-6 * expression.by[0] if expression.word == "modulo" else 1e-9  # residues are told to so much
    for row, value in zip(ROWS, column.values.tolist(), strict=True):
        assert value == pytest.approx(plain(row), rel=1e-6, abs=1.1 * part, nan_ok=True), row
    event = Event(expression, ((0.5, INF),))
    assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event


def test_every_word_is_held_against_plain_python() -> None:
    def words(expression: Expression) -> set[str]:
        inner = [words(part) for part in expression.parts if isinstance(part, Expression)]
        return {expression.word}.union(*inner)

    assert set().union(*(words(expression) for expression, _ in CASES)) == set(WORDS)


def test_what_is_no_number_has_none_and_keeps_its_token() -> None:
    outputs = encode_objects([(1.0, None, 2.0), (NAN, 3.0, 5.0), ("a", "b", "c"), ()])
    assert of("max").column(outputs).values.tolist()[:2] == [2.0, 5.0]
    assert np.isnan(of("max").column(outputs).values[2:]).all()
    assert of("sum").column(outputs).values.tolist() == [3.0, 8.0, 0.0, 0.0]
    one = Expression("abs", ((0,),)).column(outputs)
    assert one.tokens.tolist() == outputs.column((0,)).tokens.tolist()


@for_each(
    ("expression", "words"),
    [
        (Expression("bit", ((),), (3.0,)), "bit 3 of output"),
        (then("sum", of("lag", 2.0)), "sum(output[i] * output[i + 2])"),
        (then("argmax", of("abs")), "argmax(abs(output))"),
        (Expression("times", ((2,), (5,))), "output[2] * output[5]"),
        (
            Expression("xor", tuple(Expression("bit", ((),), (k,)) for k in (1.0, 4.0))),
            "bit 1 of output ^ bit 4 of output",
        ),
        (then("modulo", Expression("bits", ((),)), 2.0), "number of bits set in output modulo 2"),
        (of("lead"), "gap of the two largest of output"),
        (of("rank"), "rank of output[0] among the others"),
        (Expression("times", (Expression("less", ((0,),), (0.25,)), (1,))), "(output[0] - 0.25) * output[1]"),
        (then("sum", of("less", 1.0, 2.0, 3.0)), "sum((output - their middles))"),
        (Expression("abs", ((READ_AS + "repeats", "no"),)), "abs((repeats in output)['no'])"),
    ],
)
def test_expressions_read_as_python(expression: Expression, words: str) -> None:
    assert str(expression) == words


def test_an_unknown_word_is_told() -> None:
    written: dict[str, Any] = {**of("sum").to_dict(), "word": "cube"}
    with pytest.raises(InvalidSpec, match="unknown word 'cube'"):
        feature_from_dict(written)
