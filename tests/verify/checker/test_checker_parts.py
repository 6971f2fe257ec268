"""What the checker asks of z3, against naive oracles."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpaudit.verify.alethe.search import Search
from dpaudit.verify.checker.costs import Sizes
from dpaudit.verify.checker.formulas import Facts, ProofRejected, Sign, Unknown, compared, decided, put
from dpaudit.verify.checker.values import is_integer
from dpaudit.verify.language.algebra import Both, Either, Opposite, Ratio, Truth
from dpaudit.verify.proof import Basis

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
