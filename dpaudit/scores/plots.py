"""The picture of an audit of scores: error rates of every threshold, the band that is certified, and the claim."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpaudit.claims import Claim
from dpaudit.errors import InvalidSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUFFIXES = (".svg", ".png", ".pdf")
POINTS = 400  # of a claim's boundary

Rates = Sequence[tuple[float, float]]  # false positives and false negatives of each threshold


def plot_tradeoff(
    path: str | os.PathLike[str], title: str, roc: Rates, band: tuple[str, Rates], claim: Claim | None, largest: int
) -> Path:
    """Writes the trade-off plot, on straight and on logarithmic axes; the suffix of `path` chooses the format.

    `band` is what it is called and its upper limits, `largest` the number of scores of the larger side, on which
    depends where logarithmic axes begin. Raises `InvalidSpec` for another suffix, and where counts alone are known.
    """
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise InvalidSpec(f"{target.name}: a plot ends in {', '.join(SUFFIXES)}, got {target.suffix or 'no suffix'!r}")
    if not roc:
        raise InvalidSpec(f"{target.name}: counts alone have no trade-off curve to plot; give the scores")
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "dpaudit", "svg.fonttype": "none"}):  # the same result, the same file
        figure = Figure(figsize=(10.0, 4.8), layout="constrained")
        FigureCanvasAgg(figure)
        for axes, scale in zip(figure.subplots(1, 2), ("linear", "log"), strict=True):
            _draw(axes, scale, roc, band, claim, 0.5 / largest)
        figure.suptitle(title, fontsize=9)
        stamp = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(target.suffix.lower(), {})
        figure.savefig(target, metadata=stamp, dpi=150)
    return target


def _draw(axes: Axes, scale: str, roc: Rates, band: tuple[str, Rates], claim: Claim | None, least: float) -> None:
    import numpy as np

    grid = np.geomspace(least, 1.0, POINTS) if scale == "log" else np.linspace(0.0, 1.0, POINTS)
    axes.plot(grid, 1.0 - grid, color="0.6", linewidth=0.8, label="guessing")
    axes.plot(*np.maximum(roc, least).T, color="C0", label="this attack, estimate")
    if band[1]:
        axes.step(*np.transpose(band[1]), where="post", color="C1", label=band[0])
    if claim is not None:
        bound = [max(least, 1.0 - claim.max_probability(q)) for q in grid.tolist()]
        axes.plot(grid, bound, color="C3", linestyle="--", label=f"claim {claim}")
    if scale == "log":
        axes.set(xscale="log", yscale="log", xlim=(least, 1.0), ylim=(least, 1.0))
    axes.set(xlabel="false positive rate", ylabel="false negative rate")
    axes.legend(fontsize=7, loc="upper right" if scale == "linear" else "lower left")
