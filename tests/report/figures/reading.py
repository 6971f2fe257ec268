"""What stands in a drawing, read from its SVG alone: places as pairs (units from the left, from the top)."""

from __future__ import annotations

import re
from statistics import fmean
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
Place = tuple[float, float]


def tree(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def lines(svg: str, colour: str) -> list[list[Place]]:
    """The lines of a colour that are no area and no mark, each as its corners, in the order they were drawn."""
    return [way for style, ways in _paths(svg) if f"fill:none;stroke:var(--dp-{colour})" in style for way in ways]


def marks(svg: str, colour: str) -> list[Place]:
    """The middles of the marks of a colour, the one of the key first."""
    found = [way for style, ways in _paths(svg) if f"fill:var(--dp-{colour});stroke" in style for way in ways]
    return [(fmean(x for x, _ in way), fmean(y for _, y in way)) for way in found]


def _paths(svg: str) -> list[tuple[str, list[list[Place]]]]:
    found = []
    for path in tree(svg).iter(f"{SVG}path"):
        ways = re.findall(r"M([^MZ]+)", path.get("d", ""))
        corners = [[(float(x), float(y)) for x, y in (place.split() for place in way.split("L"))] for way in ways]
        found.append((path.get("style", ""), corners))
    return found
