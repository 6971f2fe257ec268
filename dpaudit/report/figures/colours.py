"""The colours of figures: a name for each role, a value in light and one in dark.

In SVG each is a variable of its name, so a page decides; a PNG has the light values. Lines and text reach a contrast of
at least 4.5 to the ground in both; nothing is told by colour alone.
"""

from __future__ import annotations

LIGHT = {
    "ink": "#1b2430",
    "muted": "#55606e",
    "rule": "#d9dee5",
    "paper": "#ffffff",
    "first": "#0a5ea8",
    "second": "#a8480a",
    "claim": "#6a3fa0",
    "allowed": "#ede7f6",
    "event": "#e3efe0",
    "certified": "#0b6e3c",
    "refuted": "#b0122a",
}
DARK = {
    "ink": "#e7ebf0",
    "muted": "#a9b4c2",
    "rule": "#3b4552",
    "paper": "#14191f",
    "first": "#74b6f5",
    "second": "#f3a468",
    "claim": "#c3a6f0",
    "allowed": "#2e2740",
    "event": "#23382a",
    "certified": "#63d391",
    "refuted": "#ff8695",
}


def _variables(values: dict[str, str]) -> str:
    return "".join(f"--dp-{name}:{value};" for name, value in values.items())


STYLE = f":root{{{_variables(LIGHT)}}} @media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}"
PRINTED = f"@media print{{:root{{{_variables(LIGHT)}}}}}"
