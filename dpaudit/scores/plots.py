"""The picture of an audit of scores: error rates of every threshold, the band that is certified, and the claim."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit.errors import InvalidSpec

if TYPE_CHECKING:
    from dpaudit.scores.result import ScoresResult

SUFFIXES = (".svg", ".png", ".pdf")
POINTS = 400  # of a claim's boundary


def plot_tradeoff(result: ScoresResult, path: str | os.PathLike[str]) -> Path:
    """Writes the trade-off plot, on straight and on logarithmic axes; the suffix of `path` chooses the format.

    Raises `InvalidSpec` for another suffix, and for a result of counts alone, which has no curve.
    """
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise InvalidSpec(f"{target.name}: a plot ends in {', '.join(SUFFIXES)}, got {target.suffix or 'no suffix'!r}")
    if not result.roc:
        raise InvalidSpec(f"{target.name}: counts alone have no trade-off curve to plot; give the scores")
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "dpaudit", "svg.fonttype": "none"}):  # the same result, the same file
        figure = Figure(figsize=(10.0, 4.8), layout="constrained")
        FigureCanvasAgg(figure)
        for place, scale in enumerate(("linear", "log")):
            _draw(figure.add_subplot(1, 2, place + 1), result, scale)
        figure.suptitle(str(result).splitlines()[0], fontsize=9)
        stamp = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(target.suffix.lower(), {})
        figure.savefig(target, metadata=stamp, dpi=150)
    return target


def _draw(axes: Any, result: ScoresResult, scale: str) -> None:
    import numpy as np

    least = 0.5 / max(result.sizes)
    grid = np.geomspace(least, 1.0, POINTS) if scale == "log" else np.linspace(0.0, 1.0, POINTS)
    axes.plot(grid, 1.0 - grid, color="0.6", linewidth=0.8, label="guessing")
    x, y = (np.array([point[side] for point in result.roc]) for side in (0, 1))
    axes.plot(np.maximum(x, least), np.maximum(y, least), color="C0", label="this attack, estimate")
    if result.band:
        u, v = (np.array([point[side] for point in result.band]) for side in (0, 1))
        axes.step(u, v, where="post", color="C1", label=f"upper limits, all together at {result.confidence:g}")
    if result.claim is not None:
        bound = np.array([1.0 - result.claim.max_probability(float(q)) for q in grid])
        axes.plot(grid, np.maximum(bound, least), color="C3", linestyle="--", label=f"claim {result.claim}")
    if scale == "log":
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(least, 1.0)
        axes.set_ylim(least, 1.0)
    axes.set_xlabel("false positive rate")
    axes.set_ylabel("false negative rate")
    axes.legend(fontsize=7, loc="upper right" if scale == "linear" else "lower left")
