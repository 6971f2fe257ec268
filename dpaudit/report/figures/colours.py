"""The colours of figures: a name for each role, a value in light and one in dark.

In SVG each is a variable of its name, so a page decides; a PNG has the light values. Lines and text reach a contrast of
at least 4.5 to the ground in both; nothing is told by colour alone.
"""

from __future__ import annotations

BOTH = {
    "ink": ("#1b2430", "#e7ebf0"),
    "muted": ("#55606e", "#a9b4c2"),
    "rule": ("#d9dee5", "#3b4552"),
    "paper": ("#ffffff", "#14191f"),
    "first": ("#0a5ea8", "#74b6f5"),
    "second": ("#a8480a", "#f3a468"),
    "claim": ("#6a3fa0", "#c3a6f0"),
    "allowed": ("#ede7f6", "#2e2740"),
    "event": ("#e3efe0", "#23382a"),
    "certified": ("#0b6e3c", "#63d391"),
    "refuted": ("#b0122a", "#ff8695"),
}
LIGHT = {name: light for name, (light, _) in BOTH.items()}
DARK = {name: dark for name, (_, dark) in BOTH.items()}


def _variables(values: dict[str, str]) -> str:
    return "".join(f"--dp-{name}:{value};" for name, value in values.items())


STYLE = f":root{{{_variables(LIGHT)}}} @media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}"
PRINTED = f"@media print{{:root{{{_variables(LIGHT)}}}}}"
