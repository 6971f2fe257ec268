"""The page: statements, mechanisms and attacks, rendered to one self-contained HTML file and one JSON record."""

from __future__ import annotations

import base64
import io
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dpaudit
from audits.lectures.claims.collect import SCHEMA, Audited, Checked
from audits.lectures.claims.statement import Figure

TEMPLATE = Path(__file__).with_name("page.html.jinja")
VERDICTS = {
    "right and tight": "What the notes say is true, and nothing stronger would be.",
    "right and loose": "What the notes say is true, and something stronger is true as well.",
    "not provable as argued": "The argument of the notes does not give it; the page says how far it is true.",
    "wrong": "What the notes say is not true as it stands; the page gives the true value and says where it is a slip.",
    "question or trap": "The notes ask it, or show it as a bad example: the page gives the answer.",
}
SIZE = (6.4, 3.4)  # inches


def render(
    statements: Mapping[str, Sequence[Checked]],
    mechanisms: Mapping[str, Sequence[Audited]],
    attacks: Sequence[Mapping[str, Any]],
    unexpected: Mapping[str, str],
) -> str:
    """The page as HTML; names and texts are escaped. `unexpected` are words for audits not as expected, by name."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATE.parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(number=number, certified=certified, slug=slug, verdict=verdict)
    every = [each for topic in statements.values() for each in topic]
    return environment.get_template(TEMPLATE.name).render(
        statements=statements,
        counts=Counter(each.truth.verdict for each in every),
        verdicts=VERDICTS,
        figures={each.statement.name: picture(each.statement.figure) for each in every if each.statement.figure},
        mechanisms=mechanisms,
        totals=totals(mechanisms),
        attacks=attacks,
        unexpected=unexpected,
    )


def record(
    statements: Mapping[str, Sequence[Checked]], attacks: Sequence[Mapping[str, Any]], unexpected: Mapping[str, str]
) -> str:
    """What the page says, as JSON: numbers unrounded, infinities as text."""
    topics = {
        topic: [
            {
                "name": each.statement.name,
                "place": each.statement.place,
                "says": each.statement.says,
                "quote": each.statement.quote,
                "verdict": each.truth.verdict,
                "as_known": each.as_known,
                "truth": each.truth.text,
                "numbers": {key: plain(value) for key, value in each.truth.numbers.items()},
                "how": list(each.statement.how),
                "audits": [
                    {"name": one.name, "verdict": one.verdict.value, "lower": plain(one.certificate.lower)}
                    for one in each.results
                ],
                "file": each.file,
                "line": each.line,
            }
            for each in found
        ]
        for topic, found in statements.items()
    }
    whole = {"schema": SCHEMA, "statements": topics, "attacks": list(attacks), "unexpected": dict(unexpected)}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def totals(mechanisms: Mapping[str, Sequence[Audited]]) -> dict[str, float]:
    """How many mechanisms there are of each kind, and how many of their audits ended as theory says."""
    every = [each for room in mechanisms.values() for each in room]
    audits = [(each.entry.expect, result) for each in every for result in each.results]
    return {
        "sound": sum(not each.entry.broken and each.entry.reason is None for each in every),
        "broken": sum(each.entry.broken for each in every),
        "harmless": sum(not each.entry.broken and each.entry.reason is not None for each in every),
        "audits": len(audits),
        "runs": sum(result.runs_used for _, result in audits),
        "confidence": min((floored(result.spec["confidence"], 6) for _, result in audits), default=0.0),
    }


def picture(figure: Figure) -> dict[str, str]:
    """A figure as an image in the page (SVG, the same bytes each time) and its caption."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context({"svg.hashsalt": "dpaudit", "svg.fonttype": "none", "font.size": 9}):
        canvas = Canvas(figsize=SIZE, layout="constrained")
        figure.draw(canvas.subplots())
        drawn = io.BytesIO()
        canvas.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    return {"image": base64.b64encode(drawn.getvalue()).decode("ascii"), "caption": figure.caption}


def certified(result: dpaudit.AuditResult) -> str:
    """The certified bound, rounded down: `epsilon ≥ 1.98`."""
    lower = result.certificate.lower
    return f"{result.claim.parameter} ≥ {'∞' if math.isinf(lower) else f'{floored(lower, 3):g}'}"


def verdict(result: dpaudit.AuditResult) -> str:
    """The verdict in words: `not refuted`."""
    return result.verdict.value.lower().replace("_", " ")


def floored(value: float, digits: int) -> float:
    """A number rounded down, the safe way for a bound."""
    return math.floor(value * 10**digits) / 10**digits


def number(value: float | None) -> str:
    """An exact loss in at most five digits; a dash where none is known."""
    if value is None:
        return "-"
    return "∞" if math.isinf(value) else f"{value:.5g}"


def slug(text: str) -> str:
    """A heading as the name of an anchor."""
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower())


def plain(value: float) -> float | str:
    """A number as JSON has it: infinity is the string "inf"."""
    return str(value) if not math.isfinite(value) else value
