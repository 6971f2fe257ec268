"""The page: statements, mechanisms and attacks, rendered to one self-contained HTML file and one JSON record."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dpaudit
from audits.lectures.claims.collect import SCHEMA, Audited, Checked
from audits.lectures.claims.figures import picture
from audits.lectures.claims.items import NOTES, Item, file_of
from audits.lectures.claims.mathematics import joined, plain, quoted, written
from audits.lectures.claims.statement import CAUSES
from audits.lectures.claims.tightness import TIGHT
from dpaudit.report.html import environment

TEMPLATE = Path(__file__).with_name("page.html.jinja")
TITLE = "Differential privacy: the lecture notes, checked"
STYLE = Path(__file__).with_name("page.css")
VERDICTS = {
    "right and tight": "What the notes say is true, and nothing stronger would be: what is promised is reached.",
    "right": "What the notes say is true. Whether something stronger is true as well was not tested.",
    "right and loose": "What the notes say is true, and something stronger is true as well.",
    "not provable as argued": "The argument of the notes does not give it; the page says how far it is true.",
    "wrong": "What the notes say is not true as it stands; the page gives the true value and says where it is a slip.",
    "question or trap": "The notes ask it, give it as a bad example, or do not say it: the page gives the answer.",
}


def render(
    statements: Mapping[str, Sequence[Checked]],
    mechanisms: Mapping[str, Sequence[Audited]],
    attacks: Sequence[Mapping[str, Any]],
    unexpected: Mapping[str, str],
    *,
    items: Sequence[Item] = (),
    records: Mapping[str, str] | None = None,
    root: str = "",
    origin: str = "",
) -> str:
    """The page as HTML; names and texts are escaped.

    `unexpected` are words for audits not as expected, `records` links to the records of audits, both by name. `root` is
    a link to the folder of the repository, for links to code; `origin` says what the page was made with.
    """
    from jinja2 import ChoiceLoader, FileSystemLoader
    from markupsafe import Markup

    shared = environment()
    assert shared.loader is not None
    made = shared.overlay(loader=ChoiceLoader([shared.loader, FileSystemLoader(TEMPLATE.parent)]))
    made.filters = {**made.filters, "number": number, "certified": certified, "slug": slug, "verdict": verdict}
    every = [each for topic in statements.values() for each in topic]
    records = records or {}
    html = made.get_template(TEMPLATE.name).render(
        title=TITLE,
        statements=statements,
        topics=[(f"#{slug(topic)}", f"{topic} ({len(found)})") for topic, found in statements.items()],
        counts=Counter(each.truth.verdict for each in every),
        verdicts=VERDICTS,
        verdicts_by_slug=[(slug(verdict), verdict) for verdict in VERDICTS],
        lectures=NOTES,
        by_notes={notes: by_verdict(each for each in every if notes in each.lectures) for notes in NOTES},
        causes=causes(every),
        odd=odd(every, unexpected, records),
        figures={
            each.statement.name: picture(each.statement.figure, slug(each.statement.name))
            for each in every
            if each.statement.figure
        },
        mechanisms=mechanisms,
        totals=totals(mechanisms),
        attacks=attacks,
        unexpected=unexpected,
        records=records,
        items={notes: [(each, here(each, root)) for each in items if each.notes == notes] for notes in NOTES if items},
        written=written,
        tight=TIGHT,
        quoted=quoted,
        plain=plain,
        classes=classes,
        origin=origin,
        code=lambda file, line: f"{root}{file}#L{line}",
        own_style=Markup(STYLE.read_text(encoding="utf-8")),
    )
    return joined(html)


def classes(each: Checked) -> str:
    """What the filters go by: the verdict and the notes of a statement."""
    return " ".join(["of-notes", "of-verdict", slug(each.truth.verdict), *(f"notes-{one}" for one in each.lectures)])


def by_verdict(given: Iterable[Checked]) -> dict[str, list[Checked]]:
    """The statements by verdict, in the order of the page's own list."""
    held = list(given)
    found = {verdict: [each for each in held if each.truth.verdict == verdict] for verdict in VERDICTS}
    return {verdict: each for verdict, each in found.items() if each}


def causes(every: Sequence[Checked]) -> dict[str, tuple[str, list[Checked]]]:
    """What several verdicts have in common, with the statements that have it; none that nobody has."""
    found = {name: (text, [each for each in every if each.statement.cause == name]) for name, text in CAUSES.items()}
    return {name: (text, held) for name, (text, held) in found.items() if held}


def odd(
    every: Sequence[Checked], unexpected: Mapping[str, str], records: Mapping[str, str]
) -> list[tuple[str, str | None, str]]:
    """What is not as known or expected: its name, a link, and words."""
    found: list[tuple[str, str | None, str]] = []
    for each in every:
        if not each.as_known:
            missing = f"not run: {'; '.join(each.missing)}"
            words = missing if each.missing else f"known as “{each.statement.verdict}”, found “{each.truth.verdict}”"
            if not each.tight_as_said:
                words = f"told as “{each.truth.verdict}”, and what is promised is reached to {each.reached}"
            found.append((each.statement.name, f"#{slug(each.statement.name)}", words))
    return found + [(name, records.get(name), words) for name, words in unexpected.items()]


def here(item: Item, root: str) -> list[tuple[str, str]]:
    """Where an item is on the page, and in the code: links and their texts."""
    anchors = [(f"#{slug(name)}", name) for name in item.statements]
    anchors += [(f"#entry-{slug(name)}", name) for name in item.entries]
    anchors += [(f"#attack-{slug(name)}", name) for name in item.attacks]
    return anchors + [(f"{root}{file_of(name)}", name) for name in item.code]


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
                "quote": "\n".join(words for words, _ in each.statement.quotations),
                "quotations": [{"words": words, "place": place} for words, place in each.statement.quotations],
                "context": each.statement.context,
                "reading": each.statement.reading,
                "hangs_on": each.statement.hangs_on,
                "reached": each.reached,
                "cause": CAUSES.get(each.statement.cause, ""),
                "known": each.statement.verdict,
                "verdict": each.truth.verdict,
                "as_known": each.as_known,
                "truth": each.truth.text,
                "numbers": {key: stored(value) for key, value in each.truth.numbers.items()},
                "how": list(each.statement.how),
                "audits": [
                    {"name": one.name, "verdict": one.verdict.value, "lower": stored(one.certificate.lower)}
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


def certified(result: dpaudit.AuditResult) -> str:
    """The certified bound, rounded down: `epsilon ≥ 1.98`."""
    lower = result.certificate.lower
    return f"{result.claim.parameter} ≥ {'∞' if math.isinf(lower) else f'{floored(lower, 3):g}'}"


def verdict(result: dpaudit.AuditResult) -> str:
    """The verdict in words: `not refuted`."""
    return result.verdict.value.lower().replace("_", " ")


def floored(value: float, digits: int) -> float:
    """A number rounded down, the safe way for a bound."""
    return float(math.floor(value * 10**digits) / 10**digits)


def number(value: float | None) -> str:
    """An exact loss in at most five digits; a dash where none is known."""
    if value is None:
        return "\N{EN DASH}"
    return "∞" if math.isinf(value) else f"{value:.5g}"


def slug(text: str) -> str:
    """A heading as the name of an anchor."""
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower())


def stored(value: float) -> float | str:
    """A number as JSON has it: infinity is the string "inf"."""
    return str(value) if not math.isfinite(value) else value
