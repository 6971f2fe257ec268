"""Sound entries on many pairs of neighbours, drawn with fixed seeds: no exact loss is above the claim.

Losses are exact, so nothing can fail by chance: any counterexample would be a bug or a wrong claim.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpaudit.catalogue import find
from dpaudit.catalogue.adaptive.subsets import ANALYSTS
from dpaudit.catalogue.releases.tables import population
from tests.cases import for_each

Rng = np.random.Generator
Pairs = Callable[[Rng, dict[str, Any]], tuple[Any, Any]]


def answers(moves: list[float]) -> Pairs:
    """Five answers that each move by one of these."""

    def drawn(rng: Rng, _: dict[str, Any]) -> tuple[Any, Any]:
        first = rng.integers(-6, 7, 5) / 2
        return first.tolist(), (first + rng.choice(moves, 5)).tolist()

    return drawn


def held(rng: Rng, _: dict[str, Any]) -> tuple[Any, Any]:
    """Ten records of four queries; the tenth comes to hold, or ceases to."""
    counts, up = rng.integers(0, 10, 4), rng.integers(0, 2, 4)
    rest = [[float(place < count) for count in counts] for place in range(9)]
    return [*rest, (1.0 - up).tolist()], [*rest, up.astype(float).tolist()]


def features(rng: Rng, given: dict[str, Any]) -> tuple[Any, Any]:
    """Records of numbers or of bits, as an analyst asks for them; the first one becomes another."""
    width = 4 if given["analyst"] == "follows" else 8
    data = rng.random((6, 8)) if given["analyst"] == "bisects" else rng.integers(0, 2, (6, width))
    other = data.copy()
    other[0] = rng.permutation(1 - other[0])
    return data.tolist(), other.tolist()


def numbers(rng: Rng, _: dict[str, Any]) -> tuple[Any, Any]:
    data = rng.normal(0, 3, 12).round(2).tolist()
    return data, [*data[:5], float(rng.normal(0, 6)), *data[6:]]


def examples(rng: Rng, given: dict[str, Any]) -> tuple[Any, Any]:
    """Nine labelled numbers of so many bits; the last one becomes another."""
    domain = 2 ** given.get("bits", 2)
    first = np.column_stack([rng.integers(0, domain, 9), rng.integers(0, 2, 9)]).tolist()
    return first, [*first[:-1], [int(rng.integers(domain)), int(rng.integers(2))]]


def labelled(count: int, features: int) -> Pairs:
    """Records of unit norm at the most, with a sign; the last one becomes another."""

    def drawn(rng: Rng, _: dict[str, Any]) -> tuple[Any, Any]:
        x = rng.standard_normal((count + 1, features))
        x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
        *rest, one, other = np.column_stack([x, rng.choice([-1.0, 1.0], count + 1)]).tolist()
        return [*rest, one], [*rest, other]

    return drawn


def points(low: float, *, joins: bool = False) -> Pairs:
    """Points of the plane, the last of which becomes another one, or leaves; most often they lie at the corners."""

    def drawn(rng: Rng, _: dict[str, Any]) -> tuple[Any, Any]:
        others = rng.uniform(low, 1.0, (rng.integers(1, 9), 2)).tolist()
        one, other = rng.choice([low, 0.0, 1.0], (2, 2)).tolist()
        return [*others, one], others if joins else [*others, other]

    return drawn


def patients(rng: Rng, _: dict[str, Any]) -> tuple[Any, Any]:
    """Other people, or five like one another, beside somebody who becomes somebody else."""
    *others, one, other = population(7, 1, int(rng.integers(1_000)))
    alike = [[1.0, 1.0, 1.0]] * 5, [1.0, 1.0, 1.0], [1.0, 1.0, -1.0]
    rest, one, other = alike if rng.integers(2) else (others, one, other)
    return [one, *rest], [other, *rest]


def sales(rng: Rng, _: dict[str, Any]) -> tuple[Any, Any]:
    first = rng.choice([0, 4, 10, 12], 3).tolist()
    return first, [first[0], int(rng.choice([0, 4, 10, 12])), first[2]]


def over(**values: Any) -> list[dict[str, Any]]:
    """All parameters with these values."""
    return [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]


SEEN = 0.1  # of the claim: what one of the pairs loses at the least

# entries, parameters, how many pairs at each of these, and which ones
NEIGHBOURS: list[tuple[str, list[dict[str, Any]], int, Pairs]] = [
    ("sparse_lyu_1 sparse_lyu_7 numeric_sparse", over(c=[1, 2]), 10, answers([-1.0, 0.0, 1.0])),
    ("sparse_monotone", over(c=[1, 2]), 10, answers([0.0, 0.5, 1.0])),
    ("report_noisy_max report_noisy_max_exponential", [{}], 20, answers([0.0, 1.0])),
    ("report_noisy_max_general permute_and_flip", [{}], 20, answers([-1.0, 0.0, 1.0])),
    ("thresholdout thresholdout.threshold_kept", over(trained=[0.5], threshold=[0.1]), 8, held),
    ("thresholdout", over(analyst=list(ANALYSTS), trained=[0.4]), 1, features),
    ("adaptive_sparse adaptive_laplace", over(analyst=list(ANALYSTS), epsilon=[1.0]), 1, features),
    ("adaptive_laplace", over(analyst=["follows"]), 8, features),
    ("select_subsets select_and_average", [{}], 8, numbers),
    ("noisy_maxima", [{}], 40, sales),
    ("noisy_models", over(weight=[0.1, 50.0], epsilon=[2.0]), 15, patients),
    ("statistical_queries", [{}], 50, examples),
    ("sq_learner", over(bits=[1, 2, 4]), 30, examples),
    ("output_perturbation", over(weight=[0.02, 0.4, 3.0]), 15, labelled(8, 2)),
    ("gaussian_output_perturbation", over(weight=[0.02, 0.4, 3.0]), 15, labelled(8, 2)),
    ("ridge_output_perturbation", over(weight=[0.2, 1.0, 5.0]), 150, points(-1.0)),
    ("objective_perturbation", over(epsilon=[0.1, 1.0, 3.0], weight=[0.001, 1.0]), 2, labelled(5, 1)),
    ("objective_perturbation", over(epsilon=[0.3, 2.0], weight=[0.002]), 1, labelled(4, 2)),
    ("objective_perturbation", over(epsilon=[1.0], weight=[0.05]), 1, labelled(4, 3)),
    ("exponential_fit exponential_fit.sign_turned", [{}], 150, points(-1.0)),
    ("regression_from_sums", [{}], 50, points(-1.0, joins=True)),
    ("noisy_stats", [{}], 2, points(0.0)),
]


def cases() -> Iterator[tuple[str, dict[str, Any], int, Pairs]]:
    for names, parameters, count, pairs in NEIGHBOURS:
        yield from ((name, given, count, pairs) for name in names.split() for given in parameters)


@for_each(("name", "given", "count", "pairs"), cases())
def test_no_neighbours_lose_more_than_the_claim(name: str, given: dict[str, Any], count: int, pairs: Pairs) -> None:
    entry, rng = find(name).with_parameters(given), np.random.default_rng(5)
    losses = [entry.true_loss(*pairs(rng, given)) for _ in range(count)]
    promised = entry.claim().promised(entry.claim().delta)
    assert None not in losses
    assert SEEN * promised < max(losses) <= promised * (1.0 + 1e-9)  # type: ignore[type-var,operator]
