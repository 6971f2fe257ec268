"""Names that try to be more than names, and results that carry one in every place a user can write to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpaudit.auditing.result import AuditResult, Explored, SuiteEntry, SuiteResult
from dpaudit.auditing.verdict import Verdict
from dpaudit.events import event_from_dict
from tests.golden import example

NAMES = (
    "a|b",
    "| cell | cell |",
    "`code`",
    "``` fence",
    "~~~ fence",
    "**bold** and _soft_ and ~~struck~~",
    "<script>alert(1)</script>",
    "<b onclick=x>",
    "<!-- comment",
    "--> comment",
    "</td></tr></table>",
    "&lt;b&gt; &amp; &#60;",
    "[link](https://example.org)",
    "![image](x.png)",
    "[ref]: https://example.org",
    "<https://example.org>",
    "https://example.org/bare",
    "# heading",
    "name ##",
    "> quote",
    "- item",
    "+ item",
    "* item",
    "1. item",
    "12) item",
    "---",
    "===",
    "    indented",
    "trailing spaces  ",
    "back\\slash \\| \\` end\\",
    "two\nlines",
    "carriage\rreturn",
    "line\u2028separator\u2029",
    "next\x85line\x0b\x0c",
    "tab\there",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\u202ereversed",
    "isolate\u2066\u2069\u2067\u2068",
    "zero\u200bwidth\u200d\ufeff",
    "tag\U000e0041\U000e007f",
    "nul\x00bel\x07del\x7f",
    "surrogate\ud800",
    "private\ue000",
    "$x^2$ and $$y$$",
    "{{ 7 * 7 }} {% raw %} ${HOME} $(id) `id`",
    "",
    " ",
    "x" * 100_000,
    "|" * 5_000,
    "naïve Žluťoučký 計數",
)


def result(name: str) -> AuditResult:
    """The golden result with a user's text in every place."""
    made = example.kept()
    data = {"digest": name, "value": [name]}
    spec: dict[str, Any] = {
        **made.spec,
        "name": name,
        "mechanism": {
            "name": name,
            "kind": "batched",
            "reference": f"{name}:{name}",
            "parameters": {name: name},
            "takes_rng": True,
            "digest": name,
        },
        "pairs": [{"name": name, "distance": 1, "first": data, "second": {"digest": name, "value": None}}],
    }
    stored = {
        "feature": {"kind": "coordinate", "path": [name]},
        "intervals": [],
        "tokens": [{"label": name, "code": 1}],
    }
    places = ("version", "platform", "started", "backend", "file", "command", "source")
    return replace(
        made,
        spec=spec,
        witness=replace(made.witness, event=event_from_dict(stored), selector=name),
        explored=(Explored(name, name, name), Explored("feature", name, f"left out: {name}")),
        provenance={**made.provenance, **dict.fromkeys(places, name or "plain")},
    )


def suite(name: str) -> SuiteResult:
    """A suite whose audits have the name, one of them without a verdict and with the name as its reason."""
    return SuiteResult(
        entries=(
            SuiteEntry(name, Verdict.REFUTED, result(name)),
            SuiteEntry(name, Verdict.NOT_REFUTED, None, name, 3),
        ),
        confidence=0.99,
    )
