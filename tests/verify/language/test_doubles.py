"""Decisions as Python makes them: what doubles decide otherwise than real numbers is neither proved nor enclosed."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import chain, cycle, product
from typing import Any

import numpy as np
import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms import wrap
from dpaudit.verify.alignment import Unproved, prove
from dpaudit.verify.bracketing.targets import Target
from dpaudit.verify.bracketing.upper import readings
from dpaudit.verify.checker import ProofRejected, check, epsilon
from dpaudit.verify.enclosure import rationals
from dpaudit.verify.language import read, rounded
from dpaudit.verify.language.doubles import wrong_scale
from dpaudit.verify.proof import Proof
from dpaudit.verify.witnesses import OutsideIntegrals, pair_loss
from tests.cases import for_each


def loop(*lines: str, before: tuple[str, ...] = (), after: str = "out", signature: str = "q, rng, eps, N: int") -> str:
    """A program with a loop over x; its lines stand in it."""
    body = ["out = []", *before, "for x in q:", *(f"    {line}" for line in lines), f"return {after}"]
    return f"def f({signature}):\n" + "\n".join(f"    {line}" for line in body)


def if_(condition: str) -> tuple[str, str, str]:
    return f"if {condition}:", "    out.append(None)", "    break"


NOISE = "v = x + rng.laplace(scale=1 / eps)"
LARGE = "t = rng.laplace(scale=1e20)", "w = rng.laplace(scale=1)"
TINY, GIANT = f" * {2.0**-300}", f" * {2.0**300}"
BESIDE = "out.append(x + c + rng.laplace(scale=1 / eps))"
THREE = "c = c + 1.0", "d = d - 0.5", "e = c + d"
EXACT = {
    "whole numbers": loop("k += 3", *if_("2 * k + 1 >= N * N - k"), before=("k = 0",)),
    "halves": loop("s += 0.5", *if_("s - 0.25 >= 10"), before=("s = float(0)",)),
    "a parameter as it is": loop(*if_("eps <= 0.1")),
    "an answer as it is": loop(*if_("x > 0.3")),
    "a minus": loop(*if_("-eps > -0.1")),
    "noise": loop(NOISE, *if_("v + 0.1 > eps / 3")),
    "a huge start": loop(NOISE, "if v > best:", "    best = v", before=("best = -1e18",)),
    "sums over answers": loop(NOISE, "s = s + v", *if_("s > t"), before=("s = 0", "t = 3")),
    "a double of the data beside noise": loop(*if_("float(x) + rng.laplace(scale=1) > 3")),
    "noise from before": loop(*if_("x / 3 > t + 0.1"), before=("t = rng.laplace(scale=1 / eps)",)),
    "the number of outputs": loop("out.append(True)", *if_("len(out) >= N")),
    "a double that counts": loop("c = c + 1.0", BESIDE, before=("c = 1.0",)),
    "three that count": loop(*THREE, BESIDE, before=("c = 1.0", "d = 1.0", "e = 0.0")),
    "a double that is doubled, beside nothing": loop("c = c + c", NOISE, "out.append(v)", before=("c = 1.0",)),
}
LATER = "if x + c + rng.laplace(scale=1) > t + c:\n            out.append(None)"
DOUBLED = {
    "c = c + c": "c = c + c",
    "and 1": "c = c + c + 1",
    "less": "c = c - 1 + c",
    "in turns": "e = c + e\n        c = c + e",
    "by a name": "e = c\n        c = e + c",
    "Fibonacci": "t = c + e\n        c = e\n        e = t",
    "on some paths": "if x > 3:\n            c = c + c",
    "less its half": "c = c + c - c / 2",
    "both parts of a sum": "e = c + 1\n        c = (e - c) + c + (c + c)",
    "with a branch": "if x > 3:\n            e = c\n        c = c + e",
}
DIVISOR = loop(NOISE, "if x > 0:", "    z = 1 / (0.1 + 0.2 - 0.30000000000000004)", "out.append(v)")
LATER_NOISE = (*if_("b - a >= 0.1"), NOISE, "a = v", "b = v + 0.1")
BEFORE_NOISE = (*if_("t - a >= 0.1"), "a = t - 0.1")
ROUNDED = {
    "a sum of tenths": (loop("s += 0.1", *if_("s >= 1"), before=("s = 0",)), 6),
    "shares of a parameter": (loop("s += eps / 10", *if_("s >= eps"), before=("s = 0",)), 6),
    "one tenth after all": (loop("s += 0.5", *if_("s >= 1"), before=("s = 0.1",)), 6),
    "beyond 2**53": (loop("s = s + 1", *if_("s > 1e16"), before=("s = 1e16",)), 6),
    "whole doubles that grow": (loop("s = 3.0 * s", *if_("s == 3"), before=("s = 1.0",)), 6),
    "a third three times": (loop(*if_("eps / 3 * 3 == eps")), 4),
    "in one part of a condition": (loop(NOISE, *if_("v > 1 or 3 * eps > 0.3")), 5),
    "of the data": (loop(*if_("x + 1 > x")), 4),
    "in a name": (loop("far = 3 * eps > 0.3", *if_("far")), 5),
    "noise that cancels": (loop(NOISE, "w = v + 1", *if_("w - v >= 1")), 6),
    "noise that cancels later": (loop(*LATER_NOISE, before=("a = 0", "b = 0.5")), 6),
    "noise from before that cancels": (loop(*BEFORE_NOISE, before=("t = rng.laplace(scale=1)", "a = 0")), 6),
    "noise times nothing": (loop(NOISE, *if_("0 * v + 0.1 + 0.2 > 0.3")), 5),
    "data beside a huge number": (loop("out.append(x + 1e17 - 1e17 + rng.laplace(scale=1 / eps))"), 4),
    "data in a huge sum": (loop("s = s + x", "out.append(s + rng.laplace(scale=1 / eps))", before=("s = 1e17",)), 6),
    "data that cancels in an output": (loop("out.append((x + 1) - x)"), 4),
    "data that cancels beside noise": (loop(NOISE, "out.append(v - x)"), 5),
    "data that is compared with itself": (loop(NOISE, *if_("v > x")), 5),
    "data that is turned into a double": (loop(*if_("float(x) != x")), 4),
    "little noise beside much that cancels": (loop(LARGE[1], "out.append(x + ((t + w) - t))", before=LARGE[:1]), 6),
    "little noise beside much in a comparison": (loop(LARGE[1], *if_("x + t + w > t"), before=LARGE[:1]), 6),
    "noise that underflows": (loop(NOISE, f"out.append(v{4 * TINY}{4 * GIANT})"), 5),
    "noise that overflows": (loop(NOISE, f"out.append(v{4 * GIANT})"), 5),
    "a huge product": (loop(NOISE, "out.append(x + 1e6 * 1e6 * 1e6 - 1e6 * 1e6 * 1e6 + v)"), 5),
    "a divisor that is 0 in doubles alone": (DIVISOR, 6),
    "a huge quotient": (loop(NOISE, "out.append(x + 1 / 1e-18 - 1 / 1e-18 + v)"), 5),
}
OUTPUTS = (BESIDE, "out.append(rng.laplace(x + c, 1 / eps))", LATER)


def test_many_values_of_one_variable_are_no_longer_told_apart() -> None:
    draws = [(f"if x > {n}:", f"    d = d + rng.laplace(scale={n + 1})") for n in range(8)]
    assert rounded(read(loop(*chain(*draws), *if_("d > 1"), before=("d = 0",))), {}) is not None


@for_each("what", EXACT)
def test_decisions_that_doubles_and_real_numbers_share_are_taken(what: str) -> None:
    assert rounded(read(EXACT[what]), {}) is None


@for_each(("what", "output"), zip(DOUBLED, cycle(OUTPUTS)), nightly=product(DOUBLED, OUTPUTS))
def test_doubles_that_sums_make_ever_larger_round_an_answer_away(what: str, output: str) -> None:
    source = loop(DOUBLED[what], output, before=("c = 1.0", "e = 1.0", "t = rng.laplace(scale=1)"))
    assert rounded(read(source), {}) is not None


@for_each("what", ROUNDED)
def test_decisions_that_rounding_may_make_are_named_and_never_proved(what: str) -> None:
    source, line = ROUNDED[what]
    found = rounded(read(source), {})
    assert found is not None
    assert found.line == line
    assert isinstance(prove(read(source), "all-differ"), Unproved)
    assert isinstance(prove(read(source), "all-differ", fixed={"N": 3}), Unproved)


def test_the_checker_finds_rounded_decisions_itself() -> None:
    exact = loop("s += 1", "out.append(x + rng.laplace(scale=10))", *if_("s >= 10"), before=("s = 0",))
    proof = prove(read(exact), "all-differ", fixed={"N": 1})
    assert isinstance(proof, Proof)
    assert epsilon(proof, {"N": 1}) == 1
    tenths = exact.replace("s += 1", "s += 0.1").replace("s >= 10", "s >= 1")
    forged = replace(proof, source=read(tenths).source)
    with pytest.raises(ProofRejected, match="line 7 of f: a comparison that rounding may decide"):
        check(forged)


def test_a_literal_and_a_parameter_are_the_same_double() -> None:
    source = "def f(q, rng, eps):\n    return q + rng.laplace(scale=1 / eps) if {} else q + rng.laplace(scale=1)"
    low = read(source.format("eps <= 0.1"))
    assert pair_loss(low, 0, 1, {"eps": 0.1}).loss.upper == 0.1
    assert pair_loss(low, 0, 1, {"eps": 0.10000000000000002}).loss.lower == 1.0
    high = read(source.format("eps < 0.3"))
    assert pair_loss(high, 0, 1, {"eps": 0.3}).loss.lower == 1.0


@for_each(("kind", "name"), [(np.float32, "eps"), (np.float16, "eps"), (float, "N")])
def test_parameters_that_python_rounds_otherwise_are_refused(kind: type, name: str) -> None:
    given: dict[str, Any] = {"eps": 0.1, "N": 3}
    target = Target("f", wrap(print), EXACT["whole numbers"], "f", {**given, name: kind(given[name])})
    with pytest.raises(InvalidSpec, match="rounds"):
        list(readings(target, None))
    list(readings(replace(target, parameters=given), None))


def test_pairs_are_enclosed_where_doubles_and_real_numbers_agree_and_only_there() -> None:
    """Python's own run of the bookkeeping is the judge: random steps, limits and parameters, seeded."""
    numbers, parted = random.Random(4), 0
    for _ in range(100):
        step, limit = numbers.choice(["0.1", "0.25", "eps / 3", "0.7 * eps"]), numbers.choice(["1", "eps", "0.9"])
        eps = numbers.choice([0.1, 0.3, 1.0, 0.7])
        source = loop(f"s += {step}", "out.append(None)", f"if s >= {limit}:", "    break", before=("s = 0",))
        scope: dict[str, Any] = {}
        exec(source, scope)
        taken = len(scope["f"]([0] * 12, None, eps, 1))
        try:
            found = pair_loss(read(source), [0] * 12, [1] * 12, {"eps": eps, "N": 1})
        except OutsideIntegrals as error:
            parted += str(error).startswith("line 7: a comparison that rounding decides")
            continue
        assert found.exact
        assert len(found.forward.event) == taken
    assert parted >= 10


CANCELS = ["w - v < 1", "w - v <= 1", "v > v", "v >= v", "v == v", "v != v"]
UNSURE: dict[str, tuple[str, str]] = {
    "a divisor that is 0 in doubles alone": (DIVISOR, "line 6: a number that rounding may decide"),
    **{
        f"noise that cancels: {test}": (
            loop(NOISE, "w = v + 1", *if_(test)),
            "line 6: a comparison that rounding decides",
        )
        for test in CANCELS
    },
    **{
        f"noise that does not hide what rounding does: {output}": (
            "\n    ".join(["def f(q, rng, eps, N):", *LARGE, f"return {output}"]),
            r"rounding may decide|beyond doubles",
        )
        for output in (
            "q + 1e6 * 1e6 * 1e6 - 1e6 * 1e6 * 1e6 + w",  # Python's is w: nothing is lost
            f"q{4 * TINY}{4 * GIANT} + w",
            f"q + w{4 * TINY}{4 * GIANT}",
            f"(q + w){4 * GIANT}",
            "q + w + 1e18 - 1e18",
            "q + ((t + w) - t)",
            "1 if q + t + w > t else 0",
        )
    },
    **{
        f"an output that Python rounds: {output}": (
            f"def f(q, rng, eps, N):\n    t = rng.laplace(scale=1)\n    return {output}",
            "rounding",
        )
        for output in ("q / 3", "(t + 1) - t", "0.1 + 0.2")
    },
}


@for_each("what", UNSURE)
def test_what_rounding_may_decide_has_no_exact_loss(what: str) -> None:
    source, message = UNSURE[what]
    program = read(source)
    first, second = ([1], [0]) if program.loop else (1, 2)
    with pytest.raises(OutsideIntegrals, match=message):
        pair_loss(program, first, second, {"eps": 1, "N": 1})


@for_each(
    ("scale", "eps", "right"),
    [("1 / eps", 0.1, True), ("1 / (eps + 1e16 - 1e16)", 1.5, False), ("1 / eps", 1e-310, False), ("3 / eps", 1, True)],
)
def test_scales_that_doubles_make_another_number_are_refused(scale: str, eps: float, right: bool) -> None:
    """Python's scale of the second is 1/2, and the proof's 2/3."""
    program = read(f"def f(q, rng, eps):\n    return q + rng.laplace(scale={scale})")
    assert (wrong_scale(program, rationals({"eps": eps})) is None) is right
    assert isinstance(prove(program, "all-differ", fixed={"eps": Fraction(eps)}), Proof if right else Unproved)
    proof = prove(program, "all-differ")
    assert isinstance(proof, Proof)
    if right:
        assert epsilon(proof, {"eps": Fraction(eps)}) <= Fraction(eps)
        return
    with pytest.raises(InvalidSpec, match="line 2 of f: a scale or divisor that rounding"):
        epsilon(proof, {"eps": Fraction(eps)})
    with pytest.raises(OutsideIntegrals, match="rounding"):
        pair_loss(program, 0, 1, {"eps": eps})
