"""What the checker asks of z3, and its enumeration of classes, against naive oracles."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import pytest

from dpaudit.verify.alethe.search import Search
from dpaudit.verify.checker.costs import Sizes, classes
from dpaudit.verify.checker.formulas import Facts, ProofRejected, Sign, Unknown, compared, decided, put
from dpaudit.verify.checker.paths import all_paths, starts_of
from dpaudit.verify.checker.values import Public, is_integer, scope_of
from dpaudit.verify.language import read
from dpaudit.verify.language.algebra import Both, Either, Opposite, Ratio, Truth
from dpaudit.verify.proof import Alignment, Basis
from tests.cases import for_each
from tests.verify.checker.certificates import ADAPTIVE, NO_CUT_OFF, REDRAW, SPARSE, proof

X, Y = (Unknown("parameter", name) for name in "xy")


def test_whole_ratios_and_what_is_decided_in_every_state_are_known() -> None:
    n = Ratio.of(Unknown("parameter", "n", whole=True))
    assert is_integer(n * n + Ratio.number(2))
    assert not is_integer(n / Ratio.number(2))
    assert not is_integer(n + Ratio.of(X))
    open_, true = Sign(">", Ratio.of(X)), Truth(True)
    assert decided(Both((open_, Truth(False)))) is False
    assert decided(Either((open_, true))) is True
    assert decided(Either((open_, Truth(False)))) is None
    assert decided(Opposite(true)) is False
    assert decided(put(open_, {X: Ratio.number(-1)})) is False


# --- z3 --------------------------------------------------------------------------------------------------------


def test_a_goal_follows_from_facts_or_a_state_is_shown() -> None:
    x = Ratio.of(X)
    facts = Facts(Search()).assuming(compared(">=", x, Ratio.number(2)))
    facts.must(compared(">", x, Ratio.number(1)), "more than 1")
    with pytest.raises(ProofRejected, match=r"^more than 2: false at x = 2$"):
        facts.must(compared(">", x, Ratio.number(2)), "more than 2")


def test_a_state_that_is_named_must_meet_the_facts_and_break_the_goal() -> None:
    def named(**values: int) -> Facts:
        state = {f"parameter.{name}": Fraction(value) for name, value in values.items()}
        facts = Facts(lambda obligation: Basis(state=state))
        return facts.assuming(compared(">=", Ratio.of(X), Ratio.number(2)), compared(">=", Ratio.of(Y), Ratio.of(X)))

    goal = compared("<=", Ratio.of(Y), Ratio.number(5))
    assert named(x=2, y=6).holds(goal) is False
    assert named(x=2, y=5).holds(goal) is None
    assert named(x=1, y=6).holds(goal) is None
    assert named(x=7, y=6).holds(goal) is None
    assert named(x=2).holds(goal) is None
    assert named().holds(goal) is None


def test_a_divisor_must_be_positive_and_so_must_a_factor_that_is_cancelled() -> None:
    x, y = Ratio.of(X), Ratio.of(Y)
    with pytest.raises(ProofRejected, match="y is a positive divisor"):
        Facts(Search()).must(compared(">", x / y, Ratio.number(0)), "a quotient")
    Facts(Search()).assuming(Sign(">", x), Sign(">", y)).must(Sign(">", x / y), "a quotient")
    goal = compared(">=", x * y, x * Ratio.number(2))
    known = Facts(Search()).assuming(compared(">=", y, Ratio.number(2)))
    assert known.holds(goal) is False
    assert known.assuming(Sign(">", x)).follows(goal)


def test_whole_numbers_have_no_fractions_between_them() -> None:
    n = Unknown("parameter", "n", whole=True)
    between = Both((compared(">", Ratio.of(n), Ratio.number(1)), compared("<", Ratio.of(n), Ratio.number(2))))
    assert Facts(Search()).follows(Opposite(between))
    real = put(between, {n: Ratio.of(X)})
    assert Facts(Search()).holds(Opposite(real)) is False


def test_sizes_are_absolute_values() -> None:
    x, sizes = Ratio.of(X), Sizes()
    size = sizes.of(x - Ratio.number(1))
    facts = Facts(Search()).assuming(*sizes.facts())
    assert facts.follows(compared(">=", size, x - Ratio.number(1)))
    assert facts.follows(compared(">=", size, Ratio.number(1) - x))
    assert not facts.follows(compared(">", size, Ratio.number(0)))
    assert sizes.of(Ratio.number(-3)) == Ratio.number(3)


# --- classes of runs -------------------------------------------------------------------------------------------


def sparse_runs(answers: int, most: int) -> Iterator[str]:
    """Tops and bottoms of every run with a cut-off."""
    for length in range(1, answers + 1):
        for run in itertools.product("TF", repeat=length):
            tops = run.count("T")
            stopped = tops == most and run[-1] == "T"
            if stopped and run[:-1].count("T") < most or length == answers and tops < most:
                yield "".join(run)


def sparse_paths(run: str, most: int) -> dict[str, int]:
    tops, found = 0, Counter[str]()
    for each in run:
        tops += each == "T"
        found[f"loop:{each}{'T' if tops >= most else 'F'}"] += 1
    return dict(found)


def classes_of(source: str, answers: int, **fixed: int) -> set[tuple[tuple[str, int], ...]]:
    values = {name: Fraction(value) for name, value in fixed.items()}
    stated = proof(source, Alignment(()), fixed=values, answers=answers, claim="1", cost="1")
    program = read(stated.source)
    public = Public(program.integers, values)
    starts = starts_of(program, public)
    scales = [drawn.scale for start in starts for path in all_paths(start) for drawn in path.draws]
    scope = scope_of(program, stated, scales, public, Search())
    return {found for start in starts for found in classes(start, scope, answers)}


@for_each(("answers", "most"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (3, 5)])
def test_the_classes_of_runs_are_all_there_are(answers: int, most: int) -> None:
    brute = {tuple(sorted(sparse_paths(run, most).items())) for run in sparse_runs(answers, most)}
    assert classes_of(SPARSE, answers, N=most) == brute
    assert answers != 2 or brute <= classes_of(SPARSE, answers)  # where the cut-off is any number


def test_classes_without_a_cut_off_and_with_a_redraw() -> None:
    assert len(classes_of(NO_CUT_OFF, 6)) == 7
    found = classes_of(REDRAW, 4, N=2)
    assert (("loop:F", 2), ("loop:TF", 1), ("loop:TT", 1)) in found
    assert all(dict(each).get("loop:TF", 0) <= 1 for each in found)


def test_classes_with_a_weighted_counter() -> None:
    """Cheap outputs count 1, dear ones 2, and the run ends above 2 N - 2."""
    found = classes_of(ADAPTIVE, 3, N=2)
    brute = set()
    for run in itertools.product((("T", 1), ("FT", 2), ("FF", 0)), repeat=3):
        spent, taken = 0, Counter[str]()
        for name, weight in run:
            spent += weight
            taken[f"loop:{name}{'T' if spent > 2 else 'F'}"] += 1
            if spent > 2:
                break
        brute.add(tuple(sorted(taken.items())))
    assert found == brute


def test_public_conditions_are_followed_exactly() -> None:
    source = (
        "def f(q, rng, eps):\n    out = []\n    for i, x in enumerate(q):\n        if i % 2 == 0:\n"
        "            out.append(x + rng.laplace(scale=1 / eps))\n    return out"
    )
    assert classes_of(source, 5) == {(("loop:F", 2), ("loop:T", 3))}


def test_a_path_that_contradicts_itself_is_in_no_class() -> None:
    source = """
def nested(q, rng, eps):
    t = rng.laplace(scale=1 / eps)
    out = []
    for x in q:
        if x >= t:
            if x >= t - 1:
                out.append(1)
            else:
                out.append(2)
        else:
            out.append(3)
    return out
"""
    assert classes_of(source, 1) == {(("loop:F", 1),), (("loop:TT", 1),)}
