"""What the reader refuses: everything whose meaning is not certain, with its line and a cure."""

from __future__ import annotations

import functools
import textwrap
from typing import Any

import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.verify.language import OutsideLanguage, nodes, read
from tests.cases import for_each
from tests.verify.interpreter import run

LIMIT = [1.0]


def loop(body: str, *, before: str = "", after: str = "return out", signature: str = "q, rng, eps, N") -> str:
    """A mechanism around the body of its loop, which starts in line 3 (or later, after `before`)."""
    lines = [f"def f({signature}):", "    out = []"]
    lines += textwrap.indent(textwrap.dedent(before), "    ").splitlines()
    lines += ["    for i, x in enumerate(q):", *textwrap.indent(textwrap.dedent(body), "        ").splitlines()]
    return "\n".join([*lines, *textwrap.indent(textwrap.dedent(after), "    ").splitlines()])


def plain(*lines: str, signature: str = "q, rng, eps") -> str:
    """A mechanism without a loop; its first statement is in line 2."""
    return "\n".join([f"def f({signature}):", *(f"    {line}" for line in lines)])


REFUSED: dict[str, tuple[str, int, str]] = {
    # names and values
    "an unknown name": (plain("return q + noise"), 2, "the name noise"),
    "a value in one branch only": (loop("if x > 0:\n    y = 1\nout.append(y)"), 6, "y, which may have no value yet"),
    "a value in the loop only": (loop("y = x", after="return y"), 5, "y, which may have no value yet"),
    "a value only where the loop goes on": (
        loop("if x > 0:\n    break\ny = x\nout.append(x)", after="out.append(y)\nreturn out"),
        8,
        "y, which may have no value yet",
    ),
    "a comparison of what has no value, unused": (plain("high = q > 0 and z > 0", "z = 1", "return 0"), 2, "z, which"),
    "an unseen output without a value": (loop("if x > 0:\n    out.append(y)\ny = 1", after="return 0"), 5, "y, which"),
    "a sum of what has no value": (loop("if x > 0:\n    y += 1\ny = 1"), 5, "y, which may have no value yet"),
    "a guard without a value": (
        plain("i = 0", "while i < len(q) and go > 0:", "    go = 1", "    i += 1", "return 0"),
        3,
        "go, which",
    ),
    "a parameter changed": (plain("eps = eps / 2", "return q"), 2, "a new value for the parameter eps"),
    "the data changed": (plain("q += 1", "return q"), 2, "a new value for the parameter q"),
    "an answer changed": (loop("x = x + 1\nout.append(x)"), 3, "x in two meanings"),
    "an answer changed in place": (loop("q[i] = 0"), 4, "`q[i] = 0`"),
    "an answer after the loop": (loop("out.append(x)", after="return x"), 5, "x outside the loop"),
    "the data as a number": (loop("out.append(q)"), 4, "q as a number"),
    "another answer": (loop("out.append(q[i - 1])"), 4, "`q[i - 1]`"),
    "an answer by a variable": (loop("j = i\nout.append(q[j])"), 5, "`q[j]`"),
    "a name of Python": (plain("len = 2", "return q"), 2, "a variable named len"),
    "a name of the reader": (plain("draw_1 = 2", "return q + draw_1"), 2, "a variable named draw_1"),
    "a word of the texts": (loop("n = x\nout.append(n)"), 4, "a variable named n"),
    "a parameter with a word of the texts": (plain("return q", signature="q, rng, n"), 1, "a parameter named n"),
    "two values at once that meet": (loop("a, b = b, a", before="a, b = 0, 1"), 5, "`a, b = (b, a)`"),
    # arithmetic
    "a product of secrets": (plain("return q * rng.laplace(scale=1)"), 2, "the product"),
    "a quotient by a secret": (plain("return 1 / q"), 2, "the quotient"),
    "a power": (plain("return q ** 2"), 2, "`q ** 2`"),
    "a rounded secret": (plain("return q // 1"), 2, "`q // 1`"),
    "a remainder of a counter": (loop("k += 1\nif k % 2 == 0:\n    break", before="k = 0"), 6, "`k % 2`"),
    "a remainder of a real parameter": (loop("if i % b == 0:\n    break", signature="q, rng, b: float"), 4, "`i % b`"),
    "int of a real": (plain("return int(q)"), 2, "`int(q)`"),
    "an absolute value": (plain("return abs(q)"), 2, "the call `abs(q)`"),
    "True as a number": (plain("return q + True"), 2, "True as a number"),
    "a comparison as a number": (plain("return q + (q > 0)"), 2, "a comparison as a number"),
    "a comparison's name as a number": (loop("a = x > 0\nout.append(x + a)"), 5, "a as a number"),
    "a flag as a number": (loop("out.append(x + a)", before="a = False"), 5, "a as a number"),
    "a choice inside an expression": (plain("return q + (1 if q > 0 else 2)"), 2, "a conditional expression inside"),
    "the number of answers in a value": (loop("out.append(x + len(q))"), 4, "the number of answers in a value"),
    # draws
    "an unknown law": (plain("return q + rng.uniform(0, 1)"), 2, "the draw rng.uniform"),
    "a scale of a secret": (plain("return q + rng.laplace(scale=q)"), 2, "the scale of"),
    "a scale of the number of answers": (loop("out.append(rng.laplace(scale=len(q)))"), 4, "the scale of"),
    "a scale that changes": (loop("out.append(rng.laplace(scale=b))\nb += 1", before="b = 1"), 5, "the scale of"),
    "a scale of 0": (plain("return q + rng.laplace(scale=0)"), 2, "the scale of"),
    "several draws at once": (plain("return q + rng.laplace(0, 1, 3)"), 2, "the call"),
    "draws with a size": (plain("return q + rng.laplace(scale=1, size=2)"), 2, "the call"),
    "a draw that `and` may skip": (loop("if x > 0 and x + rng.laplace() > 1:\n    break"), 4, "a draw that and, or"),
    "a draw in a guard": (
        plain("i = 0", "while i < len(q) and rng.laplace() < 1:", "    i += 1", "return 0"),
        3,
        "a draw that and, or",
    ),
    "rng handed on": (plain("return other(q, rng)"), 2, "the call `other(q, rng)`"),
    # conditions
    "a number as a condition": (plain("return 1 if q else 2"), 2, "`q` as a condition"),
    "is None": (loop("if x is None:\n    break"), 4, "None as a number"),
    "a comparison whose numbers changed": (
        loop("a = x > t\nt = x\nif a:\n    out.append(1)", before="t = 0"),
        7,
        "a, whose comparison no longer holds",
    ),
    "a comparison of the answer before": (
        loop("if a:\n    out.append(1)\na = x > 0", before="a = eps > 1"),
        5,
        "a, whose comparison no longer holds",
    ),
    "a comparison with a number of outputs that grew": (
        loop("full = len(out) >= N\nout.append(x)\nif full:\n    break"),
        6,
        "full, whose comparison no longer holds",
    ),
    "a comparison of a countdown, before it": (
        loop("if a:\n    out.append(x)\nleft -= 1", before="left = N\na = left > 1"),
        6,
        "a, whose comparison no longer holds",
    ),
    "a name for a flag and a comparison": (loop("a = x > 0\nif a:\n    break", before="a = False"), 3, "False as a"),
    # outputs
    "another list": (plain("a, b = [], []", "return a"), 2, "`a, b = ([], [])`"),
    "a list that is doubled": (loop("out.append(x)\nout += out"), 2, "`out = []`"),
    "an output that is read": (loop("out.append(x + out[0])"), 4, ""),
    "a list under another name": (loop("out.append(x)", after="other = out\nreturn other"), 5, "out as a number"),
    "the list twice": (loop("out.append(x)", after="return out, out"), 5, "the list of outputs twice"),
    "True beside numbers": (loop("out.append(True if x > 0 else 1)"), 4, "True or False beside numbers"),
    "a key that is not the index": (loop("d[0] = x", before="d = {}").replace("out = []", "pass"), 5, "the key `0`"),
    "a place set twice in a dictionary that nobody sees": (
        loop("if len(d) >= N:\n    break\nd[i] = x\nd[i] = x", after="return 0").replace("out = []", "d = {}"),
        7,
        "a place that may be set twice",
    ),
    "the keys of a dictionary": (
        loop("d[i] = x", after="return tuple(d)").replace("out = []", "d = {}"),
        5,
        "the call `tuple(d)`",
    ),
    "the largest of some outputs": (loop("if x > 0:\n    out.append(x)", after="return max(out)"), 5, "the max of out"),
    "the largest before the loop ends": (loop("out.append(x)\nif max(out) > 1:\n    break"), 5, "`max(out)`"),
    "the largest after a break": (loop("if x > 0:\n    break\nout.append(x)", after="return max(out)"), 6, "the max"),
    "the largest and the list": (loop("out.append(x)", after="return out, max(out)"), 1, "out beside its max"),
    "the largest symbol": (loop("out.append('a')", after="return max(out)"), 4, "the max of symbols"),
    # statements
    "return in the loop beside a list": (loop("return x"), 2, "`out = []`"),
    "return before the loop": (
        plain("if eps > 1:", "    return 0", "for x in q:", "    pass", "return 1"),
        3,
        "a return before",
    ),
    "a tuple of one beside a number": (plain("if q > 0:", "    return (1,)", "return 1"), 3, "`return (1,)` beside"),
    "no return": (plain("pass"), 2, "an end without a result"),
    "continue before the index is raised": (
        plain("i = 0", "while i < len(q):", "    if i > 1:", "        continue", "    i += 1", "return 0"),
        5,
        "continue, which leaves i as it is,",
    ),
    "a statement after continue": (loop("if x > 0:\n    continue\n    out.append(x)"), 6, "a statement after continue"),
    "so many paths": (
        loop("\n".join(f"if x > {i}:\n    if x < {i}:\n        continue\n    t = {i}" for i in range(20))),
        77,
        "names for expressions that grow so long",
    ),
    "a statement after break": (loop("if x > 0:\n    break\n    out.append(x)"), 6, "a statement after break"),
    "two loops": (plain("for x in q:", "    pass", "for x in q:", "    pass", "return 0"), 4, "a second"),
    "a loop in a loop": (loop("for y in q:\n    out.append(y)"), 4, "a loop in this place"),
    "a loop from 1": (plain("for i in range(1, len(q)):", "    pass", "return 0"), 2, "a loop over"),
    "an enumeration from 1": (plain("for i, x in enumerate(q, 1):", "    pass", "return 0"), 2, "a loop over"),
    "a length that changes": (
        plain("k = len(q)", "k = 2", "for i in range(k):", "    pass", "return 0"),
        4,
        "a loop over",
    ),
    "else of a loop": (plain("for x in q:", "    pass", "else:", "    pass", "return 0"), 2, "else of a loop"),
    "while without an index": (plain("k = 0", "while k < 3:", "    k += 1", "return k"), 3, "a loop while"),
    "while that raises in a branch": (
        plain("i = 0", "while i < len(q):", "    if i > 1:", "        i += 1", "return 0"),
        4,
        "a loop that does not end with",
    ),
    "while that raises twice": (
        plain("i = 0", "while i < len(q):", "    i += 1", "    i += 1", "return 0"),
        3,
        "a loop that changes i elsewhere",
    ),
    "an answer in a guard": (
        plain("i = 0", "while q[i] > 0 and i < len(q):", "    i += 1", "return 0"),
        3,
        "an answer in the guard",
    ),
    "a number beyond the doubles": (plain("return q + 1e999999999"), 2, "inf as a number"),
    "while from 1": (plain("i = 1", "while i < len(q):", "    i += 1", "return 0"), 2, "`i = 1`"),
    "while without a start": (plain("while i < len(q):", "    i += 1", "return 0"), 2, "i set elsewhere"),
    "assert later": (plain("a = q", "assert eps > 0", "return a"), 3, "assert after the first lines"),
    "assert of the data": (plain("assert q > 0", "return q"), 2, "`assert q > 0`"),
    "raise": (plain("if q > 0:", "    pass", "else:", "    raise ValueError", "return q"), 5, "raise"),
    "raise by the data": (
        plain("if q < 0:", "    raise ValueError", "return q"),
        3,
        "an exception that answers or noise",
    ),
    "raise by what rounds": (
        loop("if x > 0:\n    if 3 * eps > N:\n        raise ValueError\nout.append(x)"),
        5,
        "an exception that rounding may decide",
    ),
    # searches for the largest
    "a start that is kept": (
        plain(
            "best = None",
            "for x in q:",
            "    if x > 0 and (best is None or x > best):",
            "        best = x",
            "return best",
        ),
        2,
        "None as a number",
    ),
    "a start on the wrong side": (
        plain("best = float('inf')", "for x in q:", "    if x > best:", "        best = x", "return best"),
        2,
        "inf as a number",
    ),
    "a start that is read before": (
        plain(
            "best = None",
            "for x in q:",
            "    a = best > 1",
            "    if best is None or x > best:",
            "        best = x",
            "return best",
        ),
        2,
        "None as a number",
    ),
    "a start that a way leaves": (
        plain(
            "w = None",
            "for i, x in enumerate(q):",
            "    if x > 9:",
            "        break",
            "    if w is None:",
            "        w = i",
            "return w",
        ),
        2,
        "None as a number",
    ),
    # helper functions
    "a call without an argument": (f"{plain('return g(q)')}\ndef g(x, y): return x", 2, "the call `g(q)`"),
    "an argument twice": (f"{plain('return g(q, x=1)')}\ndef g(x, y): return x", 2, "the call `g(q, x=1)`"),
    "a function that calls itself": (f"{plain('return g(q)')}\ndef g(x): return g(x)", 2, "the call `g(x)`"),
    "a way without a value": (
        f"{plain('return g(q)')}\ndef g(x):\n    if x > 0: return x",
        2,
        "nothing as a number in `g(q)`",
    ),
    "a name without a value": (
        f"{plain('return g(q)')}\ndef g(x):\n    if x > 0: y = x\n    return y",
        2,
        "the name y in `g(q)`",
    ),
    "a truth and a number": (
        f"{plain('return g(q)')}\ndef g(x):\n    if x > 0: return x > 1\n    return x",
        2,
        "a comparison as a number in `g(q)`",
    ),
    "a number as a truth": (
        f"{plain('return g(q)')}\ndef g(x):\n    if x: return x\n    return 1",
        2,
        "`x` as a condition",
    ),
    "a loop in a helper": (
        f"{plain('return g(q)')}\ndef g(x):\n    for y in x: pass\n    return 1",
        2,
        "a loop in this place",
    ),
    "an answer of the caller": (
        loop("out.append(g(x, i))") + "\ndef g(q, i): return q[i]",
        4,
        "`q[i]` in `g(x, i)`",
    ),
    "a call that may be skipped": (
        f"{plain('return q > 0 and g(q, rng) > 0')}\ndef g(x, r): return x + r.laplace()",
        2,
        "`g(q, rng)` where and, or, or a chain",
    ),
    "a len of its own in a helper": (f"{plain('return g(q)')}\ndef g(len): return len", 1, "a variable named len in g"),
    "import": (plain("import math", "return q"), 2, "import"),
    "a lambda": (plain("g = lambda: 1", "return q"), 2, "a lambda"),
    "a nested comprehension": (plain("return [x + y for x in q for y in q]"), 2, ""),
    "a print": (plain("print(q)", "return q"), 2, "`print(q)`"),
    # names and numbers that only look plain
    "a text that is named like the data": (f"{plain('return rng')}\nrng = 'a'", 2, "rng as a number"),
    "a parameter that hides a word": (plain("return float(q)", signature="q, rng, float"), 1, "a parameter named"),
    "a name that no text can say": (plain("return q", signature="q, rng, e·e"), 1, "a parameter named e·e"),
    "a call in an annotation": (plain("return q", signature="q, rng, eps: print()"), 1, "the annotation `print()`"),
    "a call in the annotation of the result": ("def f(q, rng) -> print():\n    return q", 1, "the annotation"),
    # signatures
    "no rng": (plain("return q", signature="q"), 1, "a signature without rng"),
    "an open list of parameters": (plain("return q", signature="q, rng, *more"), 1, "an open list of parameters"),
    "a default that is no number": (plain("return q", signature="q, rng, c=None"), 1, "the default of c"),
    "a decorator": ("@cache\ndef f(q, rng):\n    return q", 1, "a decorator"),
    "a len of its own": (
        "def f(q, rng):\n    k = 0\n    for i in range(len(q)):\n        k += 1\n    return k\ndef len(x): pass",
        1,
        "a `len`",
    ),
}


@for_each("what", REFUSED)
def test_what_is_not_certain_is_refused_with_its_line(what: str) -> None:
    source, line, words = REFUSED[what]
    with pytest.raises(OutsideLanguage) as caught:
        read(source, name="f")
    message = str(caught.value)
    assert words in message
    assert caught.value.line == line, message
    assert message.startswith(f"line {line} of f: ")
    assert "outside the language of proofs: " in message
    assert "\n" not in message


@for_each(
    ("source", "words"),
    [
        ("def f(q, rng:", "must be Python"),
        ("x = 1", "must hold one function"),
        ("def f(q, rng): return q\ndef f(q, rng): return 2", "`name` must pick one of f, f"),
        ("def f(q, rng): return q + K\nK = 1\nK = 2", "K must be set once"),
        ("def f(q, rng): return q + K\nK = 1\nfor K in [2]: pass", "K must be set once"),
        ("def f(q, rng): return q + K\nK = 1\nclass K: pass", "K must be set once"),
        ("def f(q, rng): return q + K\nK = 1\nif 1:\n    def K(): pass", "K must be set once"),
        ("def f(q, rng): return q + K\nK = 1\ntry: pass\nexcept E as K: pass", "K must be set once"),
        ("def f(q, rng): return q + K\nK = 1\nmatch 2:\n    case K: pass", "K must be set once"),
        ("def f(q, rng): return q + K\nK = 1\nmatch 2:\n    case [*K]: pass", "K must be set once"),
        ("def f(q, rng): return q + K\nK = 1\nmatch 2:\n    case {**K}: pass", "K must be set once"),
        ("def f(q, rng): return q + K\nK = 1\nimport K.inner", "K must be set once"),
        ("from numpy import *\ndef f(q, rng): return q", "import everything"),
        ("def f(q, rng): return q\nf = 2", "f must be set once"),
        ("def f(q, rng): return q\nclass f: pass", "f must be set once"),
        ("def f(q, rng): return q\nasync def f(q, rng): pass", "f must be set once"),
        ("def f(q, rng): return q\nif 1:\n    def f(q, rng): pass", "f must be set once"),
        ("def f(q, q): return q", "must be Python: duplicate argument"),
        ("def f(q, rng): return " + "-" * 200_000 + "q", "must not nest so deeply"),
        ("def f(q, rng): return " + "-" * 3000 + "q", ""),
        ("def f(q, rng): return " + "+".join(["q"] * 5000), ""),
    ],
)
def test_texts_that_hold_no_mechanism(source: str, words: str) -> None:
    with pytest.raises(InvalidSpec, match=words or None):
        read(source)


def test_a_name_picks_one_of_several_functions() -> None:
    text = "def f(q, rng): return q\n\ndef g(q, rng): return q + K\n\nK = 0.5"
    assert read(text, name="g").source == "def g(q, rng): return q + K\n\n\nK = 0.5\n"
    with pytest.raises(InvalidSpec, match="named 'h'"):
        read(text, name="h")
    text = "def f(q, rng): return q + K\nK = 1\ndef g():\n    global K, f\n    K = f = 2"
    with pytest.raises(InvalidSpec, match="f must be set once"):  # another function may change it
        read(text, name="f")
    with pytest.raises(InvalidSpec, match="K must be set once"):
        read(text.replace("K, f", "K"), name="f")
    assert read("def f(q, rng): return q\nK = 1\nK = 2").source == "def f(q, rng): return q\n"  # which it does not use


def test_a_word_that_is_set_anywhere_is_not_pythons() -> None:
    text = "def f(q, rng):\n    k = 0\n    for i in range(len(q)):\n        k += i\n    return k\n"
    for more in ("class len: pass", "if 1:\n    def len(x): pass", "import other as len", "async def len(x): pass"):
        with pytest.raises(OutsideLanguage, match="a `len` of its own"):
            read(text + more)


@for_each("ends", ["\n", "\r", "\r\n"])
def test_lines_are_those_that_python_counts(ends: str) -> None:
    """A return alone ends a line for Python too: what stands in a text must not be taken for the function."""
    hidden = '"""\n\n\ndef f(q, rng, eps):\n    return 0\n"""\n'
    text = f'"""{ends * 5}"""\ndef f(q, rng, eps):\n    return q\n{hidden}'
    assert read(text, name="f").source == "def f(q, rng, eps):\n    return q\n"


def test_names_and_texts_of_the_function_stay_as_they_are() -> None:
    found = read("def f(q, rng):\n    a = 1\n    return q\n\nq = None\na = 'b'\n")  # not those of its module
    assert found.result == (nodes.Answer(),)
    assert found.source == "def f(q, rng):\n    a = 1\n    return q\n"
    first, second = "a\n \nb", "a\n\nb"
    found = read(f"def f(q, rng):\n    return '''{first}''' if q > 0 else '''{second}'''\n")
    assert [run(found, answer, {}, lambda law, scale: 0) for answer in (1, 0)] == [(first,), (second,)]


def wrapped(q: Any, rng: Any, eps: float) -> Any:
    return q + rng.laplace(scale=1 / eps)


def enclosing() -> Any:
    level = 2.0

    def inner(q: Any, rng: Any) -> Any:
        return q + rng.laplace(scale=level)

    return inner


def of_a_list(q: Any, rng: Any) -> Any:
    return q + LIMIT


@functools.wraps(wrapped)
def outer(*arguments: Any) -> Any:
    return 0


@for_each(
    ("given", "message"),
    [
        (functools.partial(wrapped, eps=1.0), "only a plain function"),
        ("".join, "only a plain function"),
        (enclosing(), "level of an enclosing function"),
        (of_a_list, "the name LIMIT"),
        (outer, "an open list of parameters"),
    ],
)
def test_objects_that_are_no_plain_function(given: Any, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        read(given)
    with pytest.raises(InvalidSpec, match="is named wrapped, not 'other'"):
        read(wrapped, name="other")


def test_a_function_that_is_not_its_source_any_more() -> None:
    def changed(q: Any, rng: Any, level: float = 1.5, *, more: int = -2) -> Any:
        return q + rng.laplace(scale=level + more + 2000.5)

    assert read(changed).defaults == {"level": 1.5, "more": -2}
    changed.__defaults__ = (2.5,)
    with pytest.raises(InvalidSpec, match="the defaults of changed are not those of its source"):
        read(changed)
    constants = tuple(3000.5 if part == 2000.5 else part for part in changed.__code__.co_consts)
    changed.__code__ = changed.__code__.replace(co_consts=constants)
    with pytest.raises(InvalidSpec, match="is not what is running"):
        read(changed)
