"""What matplotlib writes, as one `<svg>` element that can stand in any page: few attributes, and no identifier twice.

Only elements and attributes that figures need are let through; everything else of matplotlib's document is left out:
its declarations, its style sheet, which would reach the whole page, its metadata, and its groups.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from html import escape
from xml.etree import ElementTree

from dpaudit.report.figures.colours import variable

FAMILY = "system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif"
ENLARGED = 1.3  # on a wide page
DRAWN = {"path", "text", "use", "rect", "clipPath", "a"}
LEFT_OUT = ("font-family", "stroke-linecap", "stroke-miterlimit", "stroke-linejoin")  # the drawing has its own
UNTURNED = re.compile(r"rotate\(-?0[ ,]")
KEPT = ("d", "x", "y", "width", "height", "transform", "text-anchor")
SPACES = {"svg": "{http://www.w3.org/2000/svg}", "href": "{http://www.w3.org/1999/xlink}href"}
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
SPACE = re.compile(r"\s*([A-Za-z])\s*")  # around the letters of a path
ELSEWHERE = re.compile(r"\s*(?:[a-zA-Z][a-zA-Z0-9+.-]*:|[/\\]{2})")  # an address that is not beside the page
URL = re.compile(r"url\(#([^)]*)\)")


def inline(document: str, name: str, title: str, description: str) -> str:
    """The `<svg>` element of a drawing that matplotlib wrote, with a title and a description for screen readers."""
    root = ElementTree.fromstring(document)
    names = _Names(name, document + title + description)
    body = "".join(_written(each, names) for each in root)
    links = "<a " in body
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dp-figure" {_size(root)} '
        # what is an image to a screen reader has no links inside
        f'role="{"group" if links else "img"}" aria-labelledby="{names.own("title")}" '
        f'font-family="{FAMILY}" stroke-linejoin="round">'
    )
    words = f'<title id="{names.own("title")}">{escape(title)}</title>'
    words += f'<desc id="{names.own("desc")}">{escape(description)}</desc>'
    return f"{head}{words}{body}</svg>"


def _size(root: ElementTree.Element) -> str:
    """How large a page shows it where it has the room: text then stands out a little from that of the page."""
    box = root.get("viewBox", "0 0 1 1")
    width, height = (float(each) for each in box.split()[2:])
    return f'viewBox="{escape(box)}" width="{ENLARGED * width:.0f}" height="{ENLARGED * height:.0f}"'


class _Names:
    """Identifiers of one drawing: its name and a digest of all that it shows, so that none comes twice in a page."""

    def __init__(self, name: str, content: str) -> None:
        digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        self.prefix = f"dp-{re.sub('[^a-z0-9-]', '-', name.lower())}-{digest}"
        self.numbers: dict[str, int] = {}

    def own(self, part: str) -> str:
        return f"{self.prefix}-{part}"

    def of(self, theirs: str) -> str:
        return self.own(str(self.numbers.setdefault(theirs, len(self.numbers))))


def _written(element: ElementTree.Element, names: _Names) -> str:
    tag = element.tag.removeprefix(SPACES["svg"])
    if tag in ("g", "defs"):
        inside = "".join(_written(each, names) for each in element)
        clip = _clip(element.get("clip-path"), names)
        if tag == "defs" and inside:
            return f"<defs>{inside}</defs>"
        return f"<g{clip}>{inside}</g>" if clip and inside else inside
    if tag not in DRAWN:
        return ""
    style = dict(_style(element.get("style", "")))
    if tag == "path" and style.get("fill") == "none" and "stroke" not in style:
        return ""
    attributes = "".join(f' {key}="{escape(value)}"' for key, value in _attributes(element, tag, style, names))
    inside = escape(element.text or "", quote=False) if tag == "text" else ""
    inside += "".join(_written(each, names) for each in element)
    if tag == "a" and "href=" not in attributes:  # it would lead elsewhere
        return inside
    attributes += _clip(element.get("clip-path"), names)
    return f"<{tag}{attributes}>{inside}</{tag}>" if inside else f"<{tag}{attributes}/>"


def _attributes(
    element: ElementTree.Element, tag: str, style: dict[str, str], names: _Names
) -> Iterator[tuple[str, str]]:
    identifier = element.get("id")
    if identifier is not None and tag in ("path", "clipPath"):  # a mark or a frame that others refer to
        yield "id", names.of(identifier)
    target = element.get(SPACES["href"], element.get("href"))
    if target is not None and tag == "use":
        yield "href", f"#{names.of(target[1:])}"
    elif target is not None and not ELSEWHERE.match(target):
        yield "href", target
    for key in KEPT:
        value = element.get(key)
        if value is not None and not UNTURNED.match(value):
            yield key, SPACE.sub(r"\1", _short(value)).strip() if key == "d" else _short(value)
    if style:
        yield "style", ";".join(f"{key}:{value}" for key, value in style.items())


def _style(text: str) -> Iterator[tuple[str, str]]:
    for part in filter(None, (each.strip() for each in text.split(";"))):
        key, _, value = (each.strip() for each in part.partition(":"))
        if key == "font":  # its family is that of the whole drawing
            size = re.search(r"([\d.]+)px", value)
            yield "font-size", f"{size[1] if size else 12}px"
            if "bold" in value or "700" in value:
                yield "font-weight", "bold"
        elif key in LEFT_OUT:
            continue
        else:
            yield key, COLOUR.sub(lambda found: variable(found[0]) or found[0], _short(value))


def _clip(value: str | None, names: _Names) -> str:
    return "" if value is None else f' clip-path="{URL.sub(lambda found: f"url(#{names.of(found[1])})", value)}"'


def _short(numbers: str) -> str:
    """Numbers at a hundredth of a unit, which nobody can see."""
    return NUMBER.sub(lambda found: f"{round(float(found[0]), 2) + 0.0:.2f}".rstrip("0").rstrip("."), numbers)
