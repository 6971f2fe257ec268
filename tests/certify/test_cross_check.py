"""The older rule beside the certificate: valid by itself, and made of nothing that the certificate is made of."""

from __future__ import annotations

import ast
import inspect
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpaudit.certify import CoinFlip, binomial, certify, coin_flip, cross_check
from dpaudit.certify.cross_check import two_interval_epsilon
from dpaudit.claims import PureDP
from tests.cases import for_each
from tests.certify.exact import chances_of_sides, least_epsilon


@pytest.mark.long
@for_each("delta", [0.0, 0.05])
@for_each("confidence", [0.8, 0.95])
def test_it_covers_the_truth(delta: float, confidence: float) -> None:
    """Given how many runs took each side the hits are two binomials: exact coverage, over all of them."""
    n, m = 15, 20
    bound = np.array(
        [[two_interval_epsilon(CoinFlip(x, y, n, m), delta, confidence) for y in range(m + 1)] for x in range(n + 1)]
    )
    for p in (0.05, 0.3, 0.6, 0.9, 1.0):
        for q in (0.01, 0.2, 0.5, 0.9):
            wrong = bound > least_epsilon(p, q, delta)
            assert chances_of_sides(n, m, p, q)[wrong].sum() <= 1.0 - confidence + 1e-11, (p, q)


@for_each(("x", "y", "delta"), [(900, 100, 0.0), (900, 100, 0.01), (50, 1, 0.0), (1000, 0, 0.0)])
def test_it_is_the_formula_of_the_books(x: int, y: int, delta: float) -> None:
    """ln((beta quantile - delta) / beta quantile), each at half of alpha."""
    low, high = stats.beta.ppf(0.025, x, 1001 - x), stats.beta.ppf(0.975, y + 1, 1000 - y)
    value = two_interval_epsilon(CoinFlip(x, y, 1000, 1000), delta, 0.95)
    assert value == pytest.approx(math.log((low - delta) / high), rel=1e-9)


@for_each("x, y, n, m", [(0, 0, 0, 0), (5, 0, 5, 0), (0, 5, 9, 9), (0, 0, 9, 9), (9, 9, 9, 9)])
def test_the_ends(x: int, y: int, n: int, m: int) -> None:
    assert two_interval_epsilon(CoinFlip(x, y, n, m), 0.0, 0.95) == 0.0
    assert two_interval_epsilon(CoinFlip(9, 0, 9, 9), 1.0, 0.95) == 0.0


def test_the_certificate_is_the_closer_one_and_shares_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closer where hits are not most of the runs: it looks at the ratio alone, and spends alpha once. The check
    imports only the evidence and what alpha is; with the certifier's own functions broken it still answers."""
    for ratio in (1.2, math.e, 10.0):
        for y in (20, 500, 20_000):
            counts = CoinFlip(round(ratio * y), y, 30 * y, 30 * y)
            assert certify(counts, PureDP(1.0), 0.95).lower >= two_interval_epsilon(counts, 0.0, 0.95)
    source = Path(inspect.getfile(cross_check)).read_text()
    modules = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    own = {"dpaudit.base.validate", "dpaudit.certify.evidence", "dpaudit.errors"}
    assert modules - {"__future__", "statsmodels.stats.proportion"} == own

    def broken(*_: object) -> float:
        raise AssertionError

    expected = two_interval_epsilon(CoinFlip(900, 100, 1000, 1000), 0.0, 0.95)
    for module in (binomial, coin_flip):
        for name in ("upper_limit", "ratio_tail", "upper_tail", "quantile"):
            monkeypatch.setattr(module, name, broken)
    assert two_interval_epsilon(CoinFlip(900, 100, 1000, 1000), 0.0, 0.95) == expected
    with pytest.raises(AssertionError):
        certify(CoinFlip(900, 100, 1000, 1000), PureDP(1.0), 0.95)
