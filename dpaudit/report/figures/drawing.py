"""A drawing as a page holds it: SVG that stands inside HTML, the same numbers as a table, and a file of either kind."""

import hashlib
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec
from pathlib import Path

from dpaudit.base.files import write_text
from dpaudit.base.installed import lacking
from dpaudit.base.quoting import clean
from dpaudit.errors import InvalidSpec
from dpaudit.report.figures.panel import LIGHT, NOTEBOOK, PAPER, STYLE, DrawnShape, Panel, Scale, Words

SUFFIXES = (".svg", ".png", ".pdf")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure for people who look, and its numbers for people who cannot or would rather not.

    `svg` is one `<svg>` element without script, style sheet, date or reference to anything outside; its colours are
    variables which `STYLE` gives a value in light and in dark. `description` says in a sentence or two what there is
    to see, `columns` and `rows` hold what is drawn.
    """

    name: str
    title: str
    description: str
    svg: str = field(repr=False)
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = field(repr=False)
    panel: Panel = field(repr=False, compare=False)

    @classmethod
    def of(
        cls,
        panel: Panel,
        name: str,
        title: str,
        description: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
    ) -> "Drawing":
        """The drawing of a finished panel, its words made harmless."""
        texts = clean(title), clean(description, 1_000)
        table = tuple(tuple(clean(cell) for cell in row) for row in rows)
        return cls(name, *texts, inline(panel, name, *texts), tuple(columns), table, panel)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the drawing as an SVG, PNG or PDF file, whole or not at all, and returns the path.

        An SVG file carries its colours with it, light and dark, and a ground to be seen on; in the style of a paper it
        is light and has no ground, as a PDF, whose fonts are embedded (Type 42). Raises `InvalidSpec` for another
        suffix, and `MissingRequirement` for a PNG or a PDF where matplotlib is not installed.
        """
        target = Path(path)
        suffix = target.suffix.lower()
        if suffix not in SUFFIXES:
            raise InvalidSpec(f"{target.name}: a figure ends in {', '.join(SUFFIXES)}, got {suffix or 'no suffix'!r}")
        if suffix == ".svg":
            head, _, body = self.svg.partition(">")
            paper = self.panel.ground.style == "paper"
            style = f"<style>{PAPER if paper else f'{STYLE} svg{{background:var(--dp-paper)}}'}</style>"
            return write_text(target, f'<?xml version="1.0" encoding="utf-8"?>\n{head}>{style}{body}\n')
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            write_print(self.panel, part, suffix[1:])
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)
        return target

    def _repr_html_(self) -> str:
        """The figure with its colours, for a notebook, light or dark as that is."""
        return f'<div class="dpaudit-shown"><style>{NOTEBOOK}</style><div>{escape(self.title)}</div>{self.svg}</div>'


def undrawn(line: str) -> Drawing:
    """An empty sheet in the place of a figure that could not be drawn, with the line that says so."""
    return Drawing.of(Panel((), Scale(0.0, 1.0), Scale(0.0, 1.0), high=0.0), "untold", "A figure", line, (), ())


# a panel as one `<svg>` element that can stand in any page: no script, style sheet, date or address elsewhere


FAMILY = "system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif"
FAMILIES = {"screen": FAMILY, "paper": "'STIX Two Text','Times New Roman',Times,serif"}
ENLARGED = 1.3  # on a wide page: text then stands out a little from that of the page
FRAME = "\0"  # the name of the frame until it has one; no cleaned text holds it
ANCHORS = {"left": "", "center": "text-anchor:middle;", "right": "text-anchor:end;"}
ELSEWHERE = re.compile(r"\s*(?:[a-zA-Z][a-zA-Z0-9+.-]*:|[/\\]{2})")  # an address outside the folder of the page


def inline(panel: Panel, name: str, title: str, description: str) -> str:
    """The element, with a title and a description for screen readers, in colours that a page gives a value.

    Identifiers are the name and a digest of all that is shown, so that none comes twice in a page.
    """
    links = any(isinstance(each, Words) and is_local(each.url) for each in panel.shapes)
    drawn = "".join(_words(each) if isinstance(each, Words) else _shape(each) for each in panel.shapes)
    digest = hashlib.sha256(f"{drawn}{title}{description}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    own = f"dp-{re.sub('[^a-z0-9-]', '-', name.lower())}-{digest}"
    unit, name_of = (ENLARGED, "") if panel.ground.width is None else (panel.ground.points, "pt")
    size = f'width="{_short(unit * panel.width)}{name_of}" height="{_short(unit * panel.height)}{name_of}"'
    wide, high = panel.right - panel.left + 2.0, panel.bottom - panel.top + 2.0  # half a line around the frame
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dp-figure" viewBox="0 0 {_short(panel.width)} '
        f'{_short(panel.height)}" {size} '
        # what is an image to a screen reader has no links inside
        f'role="{"group" if links else "img"}" aria-labelledby="{own}-title" '
        f'font-family="{FAMILIES[panel.ground.style]}" stroke-linejoin="round">'
        f'<title id="{own}-title">{escape(title)}</title><desc id="{own}-desc">{escape(description)}</desc>'
        f'<clipPath id="{own}-frame"><rect x="{_short(panel.left - 1.0)}" y="{_short(panel.top - 1.0)}" '
        f'width="{_short(wide)}" height="{_short(high)}"/></clipPath>'
        f"{drawn.replace(FRAME, f'{own}-frame')}</svg>"
    )


def is_local(url: str | None) -> bool:
    """Whether an address leads to a file in the folder of the page, and nowhere else."""
    return url is not None and not ELSEWHERE.match(url)


def _shape(shape: DrawnShape) -> str:
    style = f"fill:{_variable(shape.fill)}"
    if shape.edge is not None:
        style += f";stroke:{_variable(shape.edge)};stroke-width:{_short(shape.width)}"
    if shape.dash:
        style += f";stroke-dasharray:{','.join(map(_short, shape.dash))}"
    clip = f' clip-path="url(#{FRAME})"' if shape.clipped else ""
    ways = ("L".join(f"{_short(x)} {_short(y)}" for x, y in each.tolist()) for each in shape.paths)
    way = "".join(f"M{each}{'' if shape.fill is None else 'Z'}" for each in ways)
    return f'<path d="{way}"{clip} style="{style}"/>' if way else ""


def _words(words: Words) -> str:
    x, y = _short(words.x), _short(words.y)
    turned = f' transform="rotate(-90 {x} {y})"' if words.upright else ""
    bold = ";font-weight:bold" if words.bold else ""
    style = f"{ANCHORS[words.to]}font-size:{_short(words.size)}px{bold};fill:{_variable(words.colour)}"
    content = escape(words.text, quote=False)
    text = f'<text x="{x}" y="{y}"{turned} style="{style}">{content}</text>'
    return f'<a href="{escape(words.url or "")}">{text}</a>' if is_local(words.url) else text


def _variable(colour: str | None) -> str:
    return "none" if colour is None else f"var(--dp-{colour})"


def _short(number: float) -> str:
    """A number at a hundredth of a unit, which is too small to see.

    >>> _short(12.3456), _short(40.0), _short(-0.001)
    ('12.35', '40', '0')
    """
    return f"{round(number, 2) + 0.0:.2f}".rstrip("0").rstrip(".")


# --- a panel as PNG or PDF: the only place that needs matplotlib, whose fonts it is written in -----------------


DOTS = 200  # per inch


def draws_png() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def write_print(panel: Panel, path: str | os.PathLike[str] | Path, kind: str) -> None:
    """Writes the panel in its light colours; the same bytes each time, in any matplotlib style.

    Raises `MissingRequirement` where matplotlib is not installed.
    """
    if not draws_png():
        raise lacking(
            f"a figure as {kind.upper()} needs matplotlib, which is not installed here (SVG needs nothing)", "plots"
        )
    from matplotlib import rc_context, style
    from matplotlib.figure import Figure
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path as Way

    points, paper = panel.ground.points, panel.ground.style == "paper"
    family = "STIXGeneral" if paper else "DejaVu Sans"
    fonts = rc_context({"font.family": family, "pdf.fonttype": 42})
    with style.context("default"), fonts, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of glyphs that a font lacks
        size = panel.width * points / 72.0, panel.height * points / 72.0
        figure = Figure(figsize=size, facecolor=LIGHT["paper"] if kind == "png" else "none")
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0.0, panel.width), ylim=(panel.height, 0.0))
        axes.set_axis_off()
        corner, wide, high = (panel.left - 1.0, panel.top - 1.0), panel.right - panel.left, panel.bottom - panel.top
        frame = Rectangle(corner, wide + 2.0, high + 2.0, transform=axes.transData)
        for order, each in enumerate(panel.shapes):
            if isinstance(each, Words):
                axes.text(
                    each.x, each.y, each.text, color=LIGHT[each.colour], fontsize=each.size * points, parse_math=False,
                    horizontalalignment=each.to, verticalalignment="baseline", rotation=90.0 if each.upright else 0.0,
                    rotation_mode="anchor", fontweight="bold" if each.bold else "normal", zorder=order,
                )  # fmt: skip
                continue
            ways = [Way([*way, way[0]] if each.fill else way, closed=each.fill is not None) for way in each.paths]
            if not ways:
                continue
            patch = PathPatch(
                Way.make_compound_path(*ways), linewidth=each.width * points, zorder=order, capstyle="butt",
                facecolor="none" if each.fill is None else LIGHT[each.fill],
                edgecolor="none" if each.edge is None else LIGHT[each.edge],
                linestyle=(0.0, [part / each.width for part in each.dash]) if each.dash else "solid",
            )  # fmt: skip
            axes.add_patch(patch)
            patch.set_clip_path(frame if each.clipped else None)
        unsaid = {"png": ("Software",), "pdf": ("Creator", "Producer", "CreationDate")}[kind]
        figure.savefig(path, format=kind, dpi=DOTS, metadata=dict.fromkeys(unsaid))
