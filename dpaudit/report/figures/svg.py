"""A panel as one `<svg>` element that can stand in any page: no script, style sheet, date or address elsewhere."""

from __future__ import annotations

import hashlib
import re
from html import escape

from dpaudit.report.figures.panel import DrawnShape, Panel, Places, Words

FAMILY = "system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif"
ENLARGED = 1.3  # on a wide page: text then stands out a little from that of the page
FRAME = "\0"  # the name of the frame until it has one; no cleaned text holds it
ANCHORS = {"left": "", "center": ' text-anchor="middle"', "right": ' text-anchor="end"'}
ELSEWHERE = re.compile(r"\s*(?:[a-zA-Z][a-zA-Z0-9+.-]*:|[/\\]{2})")  # an address that is not beside the page


def inline(panel: Panel, name: str, title: str, description: str) -> str:
    """The element, with a title and a description for screen readers, in colours that a page gives a value.

    Identifiers are the name and a digest of all that is shown, so that none comes twice in a page.
    """
    links = any(isinstance(each, Words) and beside(each.url) for each in panel.shapes)
    drawn = "".join(_words(each) if isinstance(each, Words) else _shape(each) for each in panel.shapes)
    digest = hashlib.sha256(f"{drawn}{title}{description}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    own = f"dp-{re.sub('[^a-z0-9-]', '-', name.lower())}-{digest}"
    wide, high = panel.right - panel.left + 2.0, panel.bottom - panel.top + 2.0  # half a line around the frame
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dp-figure" viewBox="0 0 {_short(panel.width)} '
        f'{_short(panel.height)}" width="{ENLARGED * panel.width:.0f}" height="{ENLARGED * panel.height:.0f}" '
        # what is an image to a screen reader has no links inside
        f'role="{"group" if links else "img"}" aria-labelledby="{own}-title" '
        f'font-family="{FAMILY}" stroke-linejoin="round">'
        f'<title id="{own}-title">{escape(title)}</title><desc id="{own}-desc">{escape(description)}</desc>'
        f'<clipPath id="{own}-frame"><rect x="{_short(panel.left - 1.0)}" y="{_short(panel.top - 1.0)}" '
        f'width="{_short(wide)}" height="{_short(high)}"/></clipPath>'
        f"{drawn.replace(FRAME, f'{own}-frame')}</svg>"
    )


def beside(url: str | None) -> bool:
    """Whether an address leads to a file beside the page, and nowhere else."""
    return url is not None and not ELSEWHERE.match(url)


def _shape(shape: DrawnShape) -> str:
    style = f"fill:{_variable(shape.fill)}"
    if shape.edge is not None:
        style += f";stroke:{_variable(shape.edge)};stroke-width:{_short(shape.width)}"
    if shape.dash:
        style += f";stroke-dasharray:{','.join(map(_short, shape.dash))}"
    clip = f' clip-path="url(#{FRAME})"' if shape.clipped else ""
    way = "".join(_path(each) + "Z" * (shape.fill is not None) for each in shape.paths)
    return f'<path d="{way}"{clip} style="{style}"/>' if way else ""


def _path(places: Places) -> str:
    return "M" + "L".join(f"{_short(x)} {_short(y)}" for x, y in places.tolist())


def _words(words: Words) -> str:
    x, y = _short(words.x), _short(words.y)
    turned = f' transform="rotate(-90 {x} {y})"' if words.upright else ""
    bold = ";font-weight:bold" if words.bold else ""
    style = f"font-size:{_short(words.size)}px{bold};fill:{_variable(words.colour)}"
    told = escape(words.text, quote=False)
    text = f'<text x="{x}" y="{y}"{turned}{ANCHORS[words.to]} style="{style}">{told}</text>'
    return f'<a href="{escape(words.url or "")}">{text}</a>' if beside(words.url) else text


def _variable(colour: str | None) -> str:
    return "none" if colour is None else f"var(--dp-{colour})"


def _short(number: float) -> str:
    """A number at a hundredth of a unit, which nobody can see.

    >>> _short(12.3456), _short(40.0), _short(-0.001)
    ('12.35', '40', '0')
    """
    return f"{round(number, 2) + 0.0:.2f}".rstrip("0").rstrip(".")
