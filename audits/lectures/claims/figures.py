"""The figures of the page, in the colours of the other reports: a page in the dark gives them other values."""

from __future__ import annotations

import io
import re
from functools import cache

from markupsafe import Markup, escape

from audits.lectures.claims.mathematics import GREEK, NAMES
from audits.lectures.claims.statement import Figure
from dpaudit.report.figures.drawing import FAMILY
from dpaudit.report.figures.panel import LIGHT

SIZE = (6.4, 3.4)  # inches
DRAWN = ("ink", "muted", "rule", "paper", "first", "second", "claim", "certified", "refuted")
CYCLE = ("first", "refuted", "certified", "claim", "second", "muted")
SIGNS = {**GREEK, "sqrt": "√", "^2": "²"}
WORDS = re.compile(rf"\b(?:{NAMES}|sqrt)\b|\^2")
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def picture(figure: Figure, name: str) -> Markup:
    """A figure as an `<svg>` element, the same bytes each time; `name` is its own in the page.

    Every colour becomes the nearest one of the reports, by its name: a page in the dark gives it another value.
    """
    import matplotlib as mpl
    from cycler import cycler
    from matplotlib.figure import Figure as Canvas
    from matplotlib.text import Text

    with mpl.rc_context(
        {
            "svg.hashsalt": "dpaudit",
            "svg.fonttype": "none",
            "font.size": 9,
            "axes.prop_cycle": cycler(color=[LIGHT[role] for role in CYCLE]),
            "axes.edgecolor": LIGHT["muted"],
            "figure.facecolor": LIGHT["paper"],
            "axes.facecolor": LIGHT["paper"],
            "legend.facecolor": LIGHT["paper"],
            "legend.edgecolor": LIGHT["rule"],
            "grid.color": LIGHT["rule"],
            **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), LIGHT["ink"]),
        }
    ):
        canvas = Canvas(figsize=SIZE, layout="constrained")
        figure.draw(canvas.subplots())
        for each in canvas.findobj(Text):
            assert isinstance(each, Text)
            each.set_text(lettered(each.get_text()))
        drawn = io.BytesIO()
        canvas.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    return Markup(inlined(drawn.getvalue().decode("utf-8"), name, figure.caption))


def lettered(text: str) -> str:
    """The words of a picture with the signs they stand for, as far as plain letters go.

    >>> lettered("2 sqrt(k) at delta = 1e-05"), lettered("epsilon = tau^2")
    ('2 √(k) at δ = 10⁻⁵', 'ε = τ²')
    """
    text = WORDS.sub(lambda found: SIGNS[found.group()], text)
    return re.sub(r"\b1e-0?(\d+)\b", lambda found: f"10⁻{found[1].translate(RAISED)}", text)


def inlined(svg: str, name: str, caption: str) -> str:
    """A file of matplotlib as an element: names that come once in a page, colours by name, the reports' letters."""
    svg = svg[svg.index("<svg") :].rstrip()
    svg = re.sub(r"<metadata>.*?</metadata>\s*|<style.*?</style>\s*", "", svg, flags=re.DOTALL)  # a style is the page's
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r"#[0-9a-f]{6}\b", lambda found: f"var(--dp-{nearest(found.group())})", svg)
    svg = re.sub(r"font: ([^;\"]*?px) [^;\"]*", lambda found: f"font: {found[1]} {FAMILY}", svg)
    svg = re.sub(r"\n\s*", "\n", svg)
    svg = re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found.group()):.2f}", svg)  # finer than anyone can see
    label = escape(caption)
    return re.sub(
        r"<svg\b", f'<svg role="img" aria-label="{label}" class="dp-figure" stroke-linejoin="round"', svg, count=1
    )


@cache
def nearest(colour: str) -> str:
    """The role whose colour in the light is nearest to this one.

    >>> nearest("#000000"), nearest("#d62728"), nearest("#1f77b4")
    ('ink', 'refuted', 'first')
    """
    return min(DRAWN, key=lambda role: sum((a - b) ** 2 for a, b in zip(_rgb(colour), _rgb(LIGHT[role]), strict=True)))


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour.removeprefix("#")))
