"""Log ratios of cells in order, smoothed: along a line, or over a surface of several lines beside each other.

The slope changes little from cell to cell (Whittaker 1923); how little is the choice that makes what was seen
likeliest, and on a surface a choice for each of its directions.
"""

from __future__ import annotations

import numpy as np

from dpaudit.arrays import Reals

BENDS = np.array([0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0])  # the change of slope, in log ratio a cell
STEPS, MOST = 8, 30.0  # of Newton's method, and log ratio that they may reach
FLAT = 1e-9  # eigenvalues of a difference that count as 0
FREE = 1e-8  # precision that a cell has without anything seen, so that there always is a solution


def trend(x: Reals, y: Reals) -> tuple[Reals, Reals]:
    """ln(x / y) along a line of cells with these hits of two sides, smoothed, and the covariance.

    float64[cells] each; float64[cells] and float64[cells, cells] come back.

    Given the hits of both, x is binomial; the posterior is taken as normal about its mode (Laplace's approximation),
    which a few steps of Newton's method find for each bend.
    """
    cells, hits = len(x), x + y
    penalty = _second(cells) / BENDS[:, None, None] ** 2
    start = np.log((x + 0.5) / (y + 0.5))
    centres = np.tile(start, (len(BENDS), 1))
    for _ in range(STEPS):
        share = 1.0 / (1.0 + np.exp(-centres))
        weight = hits * share * (1.0 - share) + FREE
        pull = weight * centres + x - hits * share
        precision = penalty + weight[:, :, None] * np.eye(cells)
        centres = np.clip(np.linalg.solve(precision, pull[..., None])[..., 0], -MOST, MOST)
    fit = (x * centres - hits * np.logaddexp(0.0, centres)).sum(axis=1)
    bent = np.einsum("bi,bij,bj->b", centres, penalty, centres)
    likelihood = fit - bent / 2.0 - np.linalg.slogdet(precision)[1] / 2.0 - (cells - 2) * np.log(BENDS)
    best = int(np.argmax(likelihood))
    return centres[best], np.linalg.inv(precision[best])


def surface(x: Reals, y: Reals) -> tuple[Reals, Reals]:
    """The same over a surface of hits (line, cell), with a bend along the lines and another across; the variances.

    All four arrays are float64[lines, cells]; cells without hits are filled in. At least three lines of three cells.
    """
    from scipy.linalg import cho_solve_banded, cholesky_banded

    lines, cells = x.shape
    across, along = (_second(count) for count in (lines, cells))
    bent = np.linalg.eigvalsh(along)[:, None], np.linalg.eigvalsh(across)[None, :]
    mine, hits = x.T.ravel(), (x + y).T.ravel()  # cell by cell, so that the band is narrow
    start = np.where(hits > 0.0, np.log((mine + 0.5) / (hits - mine + 0.5)), 0.0)
    best: tuple[float, Reals, Reals] | None = None
    for bend in BENDS:
        for other in BENDS:
            band = _band(along / bend**2, across / other**2)
            centre = start
            for _ in range(STEPS):
                share = 1.0 / (1.0 + np.exp(-centre))
                weight = hits * share * (1.0 - share) + FREE
                whole = band.copy()
                whole[0] += weight
                factor = cholesky_banded(whole, lower=True, check_finite=False)
                pull = weight * centre + mine - hits * share
                centre = np.clip(cho_solve_banded((factor, True), pull, check_finite=False), -MOST, MOST)
            known = bent[0] / bend**2 + bent[1] / other**2
            free = np.log(known[known > FLAT * known.max()]).sum()
            # at the mode the penalty's force balances that of the hits, so it need not be multiplied out
            force = mine - hits / (1.0 + np.exp(-centre))
            fit = float((mine * centre - hits * np.logaddexp(0.0, centre)).sum() - centre @ force / 2.0)
            likelihood = fit - float(np.log(factor[0]).sum()) + float(free) / 2.0
            if best is None or likelihood > best[0]:
                best = likelihood, centre, factor
    assert best is not None
    variance = cho_solve_banded((best[2], True), np.eye(lines * cells), check_finite=False).diagonal()
    return best[1].reshape(cells, lines).T, variance.reshape(cells, lines).T


def _second(count: int) -> Reals:
    """The square of the second difference of so many values."""
    second = np.diff(np.eye(count), n=2, axis=0)
    return np.asarray(second.T @ second)


def _band(along: Reals, across: Reals) -> Reals:
    """The lower band of the penalty of a surface, cell by cell: the next cell of a line is a whole column away."""
    cells, lines = len(along), len(across)
    band = np.zeros((2 * lines + 1, cells * lines))
    for step in range(3):
        if step < lines:
            band[step] += np.tile(np.concatenate([across.diagonal(step), np.zeros(step)]), cells)
        band[step * lines] += np.repeat(np.concatenate([along.diagonal(step), np.zeros(step)]), lines)
    return band
