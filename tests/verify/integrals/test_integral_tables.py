"""The sparse-vector family and noisy max: exact losses to the digits in which they are known."""

from fractions import Fraction
from itertools import product

import pytest

from tests.verify.integrals.oracle import loss_of, noisy_max, sparse

HALVES = [Fraction(i, 2) for i in range(-4, 5)]


def pattern_loss(n: int, b1: Fraction, b2: Fraction, cut_off: int | None, x: Fraction, y: Fraction) -> float:
    """The largest loss of k bottoms at x and m tops at y, moved up and down by 1, over the allowed k + m = n."""
    most = n if cut_off is None else min(n, cut_off)
    return max(
        abs(
            loss_of(
                sparse([x] * (n - m) + [y] * m, [0] * (n - m) + [1] * m, b1, b2),
                sparse([x + 1] * (n - m) + [y - 1] * m, [0] * (n - m) + [1] * m, b1, b2),
            ).middle
        )
        for m in range(most + 1)
    )


@pytest.mark.parametrize(
    ("b1", "b2", "cut_off", "losses"),
    [
        (2, 4, 1, {1: 0.1979, 2: 0.4567, 4: 0.8072, 8: 0.9900, 16: 1.0000, 32: 1.0000}),
        (4, Fraction(4, 3), 1, {1: 0.2220, 2: 1.2997, 4: 1.7374, 8: 1.7500, 16: 1.7500}),
        (2, 2, None, {1: 0.3177, 2: 0.9050, 4: 1.8556, 8: 3.8000}),
        (1, 2, 1, {1: 0.4320, 2: 0.9595, 4: 1.7023, 8: 1.9950}),
        (2, 8, 2, {2: 0.2336, 4: 0.4698, 8: 0.8344, 16: 0.9968}),
    ],
    ids=["right", "lee-clifton", "no-cut-off", "half-noise", "two"],
)
def test_losses_within_two(b1: Fraction, b2: Fraction, cut_off: int | None, losses: dict[int, float]) -> None:
    """At the pair that is nearly always the worst; the whole grid is searched for the short ones below."""
    for n, loss in losses.items():
        found = pattern_loss(n, Fraction(b1), Fraction(b2), cut_off, Fraction(1), Fraction(-1))
        assert round(found, 4) == pytest.approx(loss, abs=1e-9)


def test_the_whole_grid_has_no_worse_pair() -> None:
    pairs = [(x, y) for x, y in product(HALVES, repeat=2) if x + 1 <= 2 and y - 1 >= -2]
    assert round(max(pattern_loss(2, Fraction(2), Fraction(4), 1, x, y) for x, y in pairs), 4) == 0.4567


@pytest.mark.parametrize(
    ("scale", "monotone", "losses"),
    [
        (1, True, {2: 0.9765, 3: 1.0}),
        (1, False, {2: 1.9535, 3: 2.0}),
        (2, False, {2: 0.9555, 3: 1.0}),
        (2, True, {2: 0.4775, 3: 0.5}),
    ],
)
def test_losses_of_noisy_max(scale: int, monotone: bool, losses: dict[int, float]) -> None:
    for n, loss in losses.items():
        found = 0.0
        for gap in range(-40, 41, 4 if n > 2 else 1):
            before = [0] + [gap] * (n - 1)
            moved = [[1] + [gap] * (n - 1), [0] + [gap + 1] * (n - 1)] if monotone else [[1] + [gap - 1] * (n - 1)]
            found = max(
                found,
                *(
                    abs(loss_of(noisy_max(before, w, scale), noisy_max(after, w, scale)).middle)
                    for after in moved
                    for w in (0, 1)
                ),
            )
        assert round(found, 4) == pytest.approx(loss, abs=1e-9)
