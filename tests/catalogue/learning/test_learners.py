"""Learners from statistical queries: what they ask, how well they learn, and that their oracle keeps its budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit.catalogue import find
from dpaudit.catalogue.learning.learners import LEARNERS, Asking, Query, SQLearner, following, learned
from dpaudit.catalogue.learning.queries import learner_law
from dpaudit.errors import InvalidSpec
from tests.cases import for_each

SIZES = {"threshold": 3, "scan": 2, "conjunction": 2, "decision list": 1, "halfspace": 4}


AUDITED = {"THRESHOLD": (3, 0.15), "CONJUNCTION": (2, 0.3), "DECISION_LIST": (1, 0.15), "HALFSPACE": (2, 0.4)}


def _constant(bits: int, tau: float) -> Asking:
    return int((yield lambda x, y: y == 1) > tau)


CONSTANT = SQLearner(_constant, lambda bits: 1, lambda bits: 2.0, lambda hypothesis, x, bits: x * 0 + hypothesis > 0)


def leaves(name: str, bits: int, *answers: float) -> Iterator[tuple[int, int]]:
    """Every hypothesis that a learner can return, and after how many queries."""
    found = following(LEARNERS[name].start(bits, 0.1), answers)
    if isinstance(found, int):
        yield found, len(answers)
    else:
        yield from (leaf for answer in (0.0, 1.0) for leaf in leaves(name, bits, *answers, answer))


def endless() -> Asking:
    while True:
        yield lambda x, y: x == y


def test_one_query_more_than_the_budget_is_refused_and_not_answered() -> None:
    asked: list[object] = []
    with pytest.raises(InvalidSpec, match="the learner asks query 4; the budget is divided among 3"):
        learned(endless(), lambda query: asked.append(query) or 0.5, 3)  # type: ignore[func-returns-value]
    assert len(asked) == 3


@for_each(("name", "bits"), [*SIZES.items(), ("decision list", 2), ("conjunction", 3)])
def test_a_learner_asks_as_many_queries_as_it_says_and_no_more(name: str, bits: int) -> None:
    assert max(asked for _, asked in leaves(name, bits)) == LEARNERS[name].queries(bits)


def concepts(name: str, bits: int) -> list[int]:
    """Hypotheses of a class: all that its learner can return."""
    return sorted({hypothesis for hypothesis, _ in leaves(name, bits)})


def near(weights: Any, x: Any, y: Any, tau: float, rng: np.random.Generator) -> Callable[[Query], float]:
    return lambda query: float(weights @ query(x, y) + rng.uniform(-tau, tau))


@for_each("name", list(LEARNERS))
@for_each("bits", [1, 2])
def test_answers_within_tau_leave_the_promised_error(name: str, bits: int) -> None:
    """Any answers within tau, for any target and distribution: no chance involved, it holds of every one."""
    learner, tau, rng, x = LEARNERS[name], 0.05, np.random.default_rng(bits), np.arange(2**bits)
    for target in concepts(name, bits)[:40]:
        y = np.broadcast_to(learner.predict(target, x, bits), x.shape).astype(int)
        for _ in range(5):
            weights = rng.dirichlet(np.full(2**bits, 0.3))
            found, answers = learned(learner.start(bits, tau), near(weights, x, y, tau, rng), 100)
            error = weights @ (learner.predict(found, x, bits) != y)
            assert error <= learner.errors(bits) * tau + 1e-12
            assert len(answers) <= learner.queries(bits)


@for_each("name", ["THRESHOLD", "CONJUNCTION", "DECISION_LIST", "HALFSPACE"])
def test_no_pair_costs_a_learner_more_than_its_answers_nor_these_more_than_the_claim(name: str) -> None:
    """The answers are those of the adaptive room, where the learner is an analyst: another computation."""
    rng, bits, tau = np.random.default_rng(1), *AUDITED[name]
    learner = name.lower().replace("_", " ")
    asked = {"epsilon": 1.0, "analyst": f"dpaudit.catalogue.learning.learners:{name}"}
    for _ in range(5):
        first = np.column_stack([rng.integers(0, 2**bits, 9), rng.integers(0, 2, 9)]).tolist()
        second = [*first[:-1], [int(rng.integers(2**bits)), int(rng.integers(2))]]
        told = find("sq_learner").true_loss(first, second, {"bits": bits, "learner": learner, "tolerance": tau})
        answers = find("adaptive_laplace").true_loss(first, second, asked)
        assert told <= answers + 1e-9  # type: ignore[operator]
        assert answers <= 1.0 + 1e-9  # type: ignore[operator]


def in_order(answers: list[float]) -> Callable[[Query], float]:
    left = iter(answers)
    return lambda query: next(left)


@for_each("name", ["THRESHOLD", "CONJUNCTION", "DECISION_LIST", "HALFSPACE"])
def test_the_hypothesis_is_what_the_answers_lead_to(name: str) -> None:
    """The law of the hypothesis against answers drawn as an analyst's; each fails by chance with 1e-9."""
    rng, bits, tau = np.random.default_rng(2), *AUDITED[name]
    learner = LEARNERS[name.lower().replace("_", " ")]
    data = np.column_stack([rng.integers(0, 2**bits, 9), rng.integers(0, 2, 9)]).tolist()
    entry = find("adaptive_laplace").with_parameters(
        {"epsilon": 1.0, "analyst": f"dpaudit.catalogue.learning.learners:{name}"}
    )
    rows = entry.open().call(data, 2_000, rng).tolist()
    seen = [learned(learner.start(bits, tau), in_order(row), len(row))[0] for row in rows]
    hypotheses, law = learner_law(data, 1.0, bits, tau, name.lower().replace("_", " "))
    counts = [seen.count(int(hypothesis)) for hypothesis in hypotheses]
    assert sum(counts) == len(rows)
    assert all(stats.binomtest(k, len(rows), p).pvalue > 1e-11 for k, p in zip(counts, law, strict=True))


def test_a_learner_of_ones_own_is_named_by_its_module() -> None:
    """A class of constants, learned by one query: the entry has its exact law and its runs as for any other."""
    entry = find("sq_learner").with_parameters({"learner": f"{__name__}:CONSTANT", "bits": 1})
    data = [[0, 1], [1, 1], [0, 0]]
    hypotheses, law = learner_law(data, 1.0, 1, 0.15, f"{__name__}:CONSTANT")
    assert hypotheses.tolist() == [0, 1]
    assert entry.open().call(data, 2_000, np.random.default_rng(3)).mean() == pytest.approx(law[1], abs=0.07)
