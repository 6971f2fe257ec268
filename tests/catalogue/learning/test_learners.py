"""Learners from statistical queries: what they ask, how well they learn, and that their oracle keeps its budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit.catalogue import find
from dpaudit.catalogue.learning.learners import LEARNERS, Asking, Query, learned
from dpaudit.catalogue.learning.sq_learner import Node, tree
from dpaudit.errors import InvalidSpec
from tests.cases import for_each

SIZES = {"threshold": 3, "scan": 2, "conjunction": 2, "decision list": 1, "halfspace": 4}


def depths(node: Node | int) -> Iterator[int]:
    if isinstance(node, int):
        yield 0
    else:
        yield from (1 + depth for side in (node.above, node.below) for depth in depths(side))


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
    assert max(depths(tree(name, bits, 0.1))) == LEARNERS[name].queries(bits)


def concepts(name: str, bits: int) -> list[int]:
    """Hypotheses of a class: all that its learner can return, but contradictions."""

    def leaves(node: Node | int) -> Iterator[int]:
        if isinstance(node, int):
            yield node
        else:
            yield from (leaf for side in (node.above, node.below) for leaf in leaves(side))

    return sorted(set(leaves(tree(name, bits, 0.1))))


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


@for_each(("name", "bits"), list(SIZES.items()))
def test_no_pair_costs_a_learner_more_than_its_answers_nor_these_more_than_the_claim(name: str, bits: int) -> None:
    rng = np.random.default_rng(1)
    for _ in range(12):
        first = np.column_stack([rng.integers(0, 2**bits, 9), rng.integers(0, 2, 9)]).tolist()
        second = [*first[:-1], [int(rng.integers(2**bits)), int(rng.integers(2))]]
        given = {"bits": bits, "learner": name, "tolerance": 0.3}
        told, answers = (find(entry).true_loss(first, second, given) for entry in ("sq_learner", "sq_transcript"))
        assert told <= answers + 1e-9  # type: ignore[operator]
        assert answers <= 1.0 + 1e-9  # type: ignore[operator]
        assert find("sq_transcript.half_noise").true_loss(first, second, given) == pytest.approx(2.0 * answers)  # type: ignore[operator]


@for_each(("name", "bits"), list(SIZES.items()))
def test_the_answers_are_those_that_the_program_gives(name: str, bits: int) -> None:
    """How many there are and how many are above tau, program against sampler; each fails by chance with 1e-9."""
    rng = np.random.default_rng(2)
    data = np.column_stack([rng.integers(0, 2**bits, 9), rng.integers(0, 2, 9)]).tolist()
    entry = find("sq_transcript").with_parameters({"bits": bits, "learner": name, "tolerance": 0.3})
    runs = [entry.run(data, rng) for _ in range(500)]
    sampled = entry.open().call(data, 20_000, rng)
    counts = [[10 * len(run) + sum(answer > 0.3 for answer in run) for run in runs]]
    counts.append((10 * sampled.count(axis=1) + (sampled.filled(-math.inf) > 0.3).sum(axis=1)).tolist())
    table = np.array([np.bincount(each, minlength=200) for each in counts])
    table = table[:, table.sum(axis=0) > 30]
    assert stats.chi2_contingency(table).pvalue > 1e-9
    told = [find("sq_learner").with_parameters(dict(entry.bound)).run(data, rng) for _ in range(50)]
    assert set(told) <= set(concepts(name, bits))
