"""Names that try to be more than names, and results that carry one in every place a user can write to."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from typing import Any

from dpaudit.events import event_from_dict
from dpaudit.results.display import Verdict
from dpaudit.results.observations import Ending, Explored
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteEntry, SuiteResult
from tests.golden import example

NAMES = (
    "a|b", "| cell | cell |", "`code`", "``` fence", "~~~ fence", "**bold** and _soft_ and ~~struck~~",
    "<script>alert(1)</script>", "<b onclick=x>", "<!-- comment", "--> comment", "</td></tr></table>",
    "&lt;b&gt; &amp; &#60;", "[link](https://example.org)", "![image](x.png)", "[ref]: https://example.org",
    "<https://example.org>", "https://example.org/bare", "# heading", "name ##", "> quote", "- item", "+ item",
    "* item", "1. item", "12) item", "---", "===", "    indented", "trailing spaces  ", "back\\slash \\| \\` end\\",
    "two\nlines", "carriage\rreturn", "line\u2028separator\u2029", "next\x85line\x0b\x0c", "tab\there",
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\u202ereversed", "isolate\u2066\u2069\u2067\u2068",
    "zero\u200bwidth\u200d\ufeff", "tag\U000e0041\U000e007f", "nul\x00bel\x07del\x7f", "surrogate\ud800",
    "private\ue000", "$x^2$ and $$y$$", "{{ 7 * 7 }} {% raw %} ${HOME} $(id) `id`", "", " ", "x" * 100_000,
    "|" * 5_000, "naïve Žluťoučký 計數", "@octocat and @some-org/team, (@x)", "#123 GH-45 gh-6 owner/repo#7",
    "www.example.org/x WWW.example.org", "somebody@example.org mailto:somebody@example.org",
    ":white_check_mark: :+1: a:b:c", "[^1] [^1]: note",
)  # fmt: skip

PARTS = (
    ("<script>alert(1)</script>", "</script>", "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>", "</title>"),
    ("<style>*{display:none}</style>", "<iframe src=//example.org>", "<a href='javascript:alert(1)'>",
     "<base href=//x>"),
    ("</p></li></td></table></svg></details>", "<!--", "-->", "<![CDATA[", "]]>", "<?xml version='1.0'?>",
     "<!DOCTYPE x"),
    ('"', "'", "`", "\u201c", '" onmouseover="alert(1)', "' autofocus onfocus='alert(1)", "\\'", '\\"'),
    ("&", "&amp;", "&lt;script&gt;", "&#x3c;b&#x3e;", "&nbsp;", "&unknown;", "%3Cscript%3E", "\\u003cb\\u003e"),
    ("\x00", "\x01", "\x08", "\x0b", "\x1b[2J", "\x1b]8;;http://example.org\x07x\x1b]8;;\x07", "\x7f", "\x85",
     "\x9b31m"),
    ("\r", "\n", "\r\n", "\t", "\u2028", "\u2029", "\n\n# heading\n\n", "\n- item", "\n| a | b |\n| --- | --- |"),
    ("\u202e", "\u202d", "\u2066", "\u2069", "\u200e", "\u200f", "\u061c", "\u200b", "\ufeff", "\u00ad"),
    ("\ud800", "\udfff", "\udc80", "\ud83d", "\ufffe", "\uffff", "\ufffd", "\ue000", "\U0010ffff", "\U000e0041"),
    ("=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("http://example.org","x")', "=cmd|' /C calc'!A0", "\uff1d1",
     ";=1+1"),
    ("[x](javascript:alert(1))", "![x](http://example.org/x.png)", "[x]: http://example.org", "<http://example.org>"),
    ("**b**", "__b__", "~~s~~", "`c`", "```", "~~~", "$x$", "\\", "\\\\", "|", "||", "#", "> q", "1. i", "- [ ] box",
     "***"),
    ("{{ 7*7 }}", "{% raw %}", "${x}", "{0}", "%s%n", "$(id)", "`id`", "::error::x", "##[error]x",
     "::set-output name=x::y"),
    ("../../x", "C:\\x", "file:///etc/passwd", "//example.org/x", "con", "a/b", "javascript:alert(1)",
     "data:text/html,x"),
    ("z" * 3_000, "<b>" * 700, "&amp;" * 700, "\u202e" * 700, "\u0301" * 700,
     "\U0001f468\u200d\U0001f469\u200d\U0001f467"),
)  # fmt: skip


def _generated(count: int, seed: int) -> tuple[str, ...]:
    """Names of two to four parts of different kinds, joined in different ways: the same for the same seed."""
    rng = random.Random(seed)
    made: dict[str, None] = {}
    while len(made) < count:
        kinds = rng.sample(PARTS, rng.randint(2, 4))
        made[rng.choice(("", " ", "\n", ", ", "|", "/")).join(rng.choice(kind) for kind in kinds)] = None
    return tuple(made)


SINGLE = tuple(part for kind in PARTS for part in kind)
ALL = tuple(dict.fromkeys((*NAMES, *SINGLE, *_generated(132, seed=6))))
BY_NIGHT = tuple(name for number, name in enumerate(ALL) if name not in (*NAMES, *SINGLE) and number % 6)
BY_DAY = tuple(name for name in ALL if name not in BY_NIGHT)


@cache
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
    return example.changed(
        made,
        spec=spec,
        witness=replace(made.witness, event=event_from_dict(stored), selector=name),
        explored=(Explored(name, name, name), Explored("feature", name, f"left out: {name}")),
        endings=(Ending("a value", (5, 5), (0, 5)), Ending(f"raised {name}", (5, 5), (5, 0))),
        provenance={
            **made.provenance,
            **dict.fromkeys(places, name or "plain"),
            "exceptions": {f"raised {name}": f"{name!r} ({name}, line 3)"},
        },
    )


@cache
def suite(name: str) -> SuiteResult:
    """A suite whose audits have the name, one of them without a verdict and with the name as its reason."""
    return SuiteResult(
        entries=(
            SuiteEntry(name, Verdict.REFUTED, result(name)),
            SuiteEntry(name, Verdict.NOT_REFUTED, None, name, 3),
        ),
        confidence=0.998,
    )
