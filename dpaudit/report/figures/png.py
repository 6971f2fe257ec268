"""A panel as a PNG file: the only place that needs matplotlib, whose fonts it is written in."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from dpaudit.report.figures.colours import LIGHT
from dpaudit.report.figures.panel import Panel, Words

DOTS = 200  # per inch


def write_png(panel: Panel, path: str | os.PathLike[str] | Path) -> None:
    """Writes the panel in its light colours; the same bytes each time, whatever style the process has chosen."""
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path as Way

    with style.context("default"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of glyphs that a font lacks
        figure = Figure(figsize=(panel.width / 72.0, panel.height / 72.0), facecolor=LIGHT["paper"])
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0.0, panel.width), ylim=(panel.height, 0.0))
        axes.set_axis_off()
        corner, wide, high = (panel.left - 1.0, panel.top - 1.0), panel.right - panel.left, panel.bottom - panel.top
        frame = Rectangle(corner, wide + 2.0, high + 2.0, transform=axes.transData)
        for order, each in enumerate(panel.shapes):
            if isinstance(each, Words):
                axes.text(
                    each.x, each.y, each.text, color=LIGHT[each.colour], fontsize=each.size, parse_math=False,
                    horizontalalignment=each.to, verticalalignment="baseline", rotation=90.0 if each.upright else 0.0,
                    rotation_mode="anchor", fontweight="bold" if each.bold else "normal", zorder=order,
                )  # fmt: skip
                continue
            ways = [Way([*way, way[0]] if each.fill else way, closed=each.fill is not None) for way in each.paths]
            if not ways:
                continue
            patch = PathPatch(
                Way.make_compound_path(*ways), linewidth=each.width, zorder=order, capstyle="butt",
                facecolor="none" if each.fill is None else LIGHT[each.fill],
                edgecolor="none" if each.edge is None else LIGHT[each.edge],
                linestyle=(0.0, [part / each.width for part in each.dash]) if each.dash else "solid",
            )  # fmt: skip
            axes.add_patch(patch)
            patch.set_clip_path(frame if each.clipped else None)
        figure.savefig(path, format="png", dpi=DOTS, metadata={"Software": None})
