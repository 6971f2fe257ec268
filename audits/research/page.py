"""The page of the study, in Markdown and HTML, written from its rows alone."""

from __future__ import annotations

import html
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from audits.research.questions import DELTA, JOINT, Plan
from audits.research.table import COLUMNS, Sheet, by_mechanism, mechanisms_summary, published_summary
from dpaudit import __version__
from dpaudit.report.figures import STYLE, Drawing
from dpaudit.report.markdown import escape, listed
from dpaudit.report.markdown import page as markdown_page
from dpaudit.report.markdown import table as markdown_table

Row = dict[str, Any]
TITLE = "Claimed, certified, exact and proved epsilon of the catalogue"
LOADED = (
    'import pandas; study = pandas.read_csv("study.csv")',
    'import pandas; study = pandas.read_parquet("study.parquet")',
)
LAYOUT = (
    "body{margin:0 auto;max-width:76rem;padding:1rem;font:16px/1.5 system-ui,sans-serif;background:var(--dp-paper);"
    "color:var(--dp-ink)}figure{margin:0;overflow-x:auto}svg{max-width:100%;min-width:27rem;height:auto}.wide{overflow-x:auto}table{border-collapse:collapse;"
    "font-size:.85rem}th,td{padding:.15rem .5rem;border-bottom:1px solid var(--dp-rule);text-align:left}"
    "td.number{text-align:right;white-space:nowrap}pre{overflow-x:auto}summary{cursor:pointer}"
    "li,td{overflow-wrap:anywhere}td{max-width:24rem}a{color:var(--dp-first)}"
)
NOT_SHOWN = (
    "Not refuted means that these runs on this pair show nothing against the claim; it does not mean that it holds.",
    "The best known event of a mechanism whose law is not listed is the best of those that its own audits found: "
    "a better one may exist, and by the luck of counts a bound may exceed its value.",
    "Mechanisms whose runs on one dataset all gave one output are certified on the first runs of fresh processes "
    "alone, which are few and costly: they are audited once, and have no best known event.",
    "Published bounds are those of other programs, machines and numbers of runs; a cell that is empty is not known.",
)


def account(rows: Sequence[Row], plan: Plan) -> list[str]:
    """What was asked, what came out, and what holds of all of it, in sentences."""
    done = [row for row in rows if row["certified"] is not None]
    together = by_mechanism(rows)
    kinds = {kind: [each for each in together if each["kind"] == kind] for kind in ("sound", "harmless", "broken")}
    found = {kind: sum(each["refuted"] > 0 for each in held) for kind, held in kinds.items()}
    always = sum(each["refuted"] == each["audits"] for each in kinds["broken"])
    divided = round(JOINT / (1.0 - done[0]["confidence"]))
    above = sum(row["exact"] is not None and row["certified"] > row["exact"] * (1.0 + 1e-9) for row in done)
    lines = [
        f"{len(kinds['sound'])} sound mechanisms, {len(kinds['harmless'])} with a mistake that breaks nothing and "
        f"{len(kinds['broken'])} broken ones, each at its own claim in {plan.seeds} repetitions of {plan.runs:,} runs.",
        f"Refuted: {found['broken']} of the broken ones ({always} in every repetition), {found['sound']} of the sound "
        f"ones, {found['harmless']} of the harmless ones.",
        f"Of {len(done):,} bounds each is wrong with probability at most {JOINT:g} / {divided:,}: all hold together "
        f"with confidence at least {1.0 - JOINT:g} (Bonferroni). Above the exact loss, where it is known: {above}.",
        "No two rows share a run: the seed of each is made of the number of its repetition and its question.",
    ]
    parts = [row["certified"] / row["oracle"] for row in done if row["part"] == "seeds" and row["oracle"]]
    if parts:
        law = [row["certified"] / row["oracle"] for row in done if row["oracle_from"] == "law" and row["oracle"]]
        lines.append(
            "Certified over the best known event's bound at the same runs, median of all repetitions: "
            f"{statistics.median(parts):.3f}{f'; {statistics.median(law):.3f} where the law is listed' if law else ''}."
        )
    paired = [each for each in together if each["exact_worst_pair"] is not None]
    worse = [each["mechanism"] for each in paired if each["exact_worst_pair"] > each["exact"] * (1.0 + 1e-9)]
    if paired:
        names = f": {', '.join(worse)}" if worse else ""
        lines.append(
            f"A stock pair of query answers loses more than the default pair for {len(worse)} of the {len(paired)} "
            f"mechanisms of such answers{names}; the part worst pair of the table audits it."
        )
    broke = [row for row in rows if row["error"]]
    return lines + [f"Without a bound: {row['mechanism']} at {row['claimed']}: {row['error']}" for row in broke[:10]]


def write(rows: Sequence[Row], drawn: Sequence[Drawing], plan: Plan, folder: Path) -> list[Path]:
    """Writes study.md and study.html; returns their paths."""
    told = account(rows, plan)
    left_out = [f"{row['mechanism']} at {row['claimed']:g}" for row in rows if row["part"] == "left out"]
    asked = [
        f"Claims on mu or rho are set at delta {DELTA:g}; all epsilons of a row are at one delta.",
        *([f"No value of their parameters makes these claims: {', '.join(left_out)}."] if left_out else []),
    ]
    sums = [mechanisms_summary(rows, plan.runs), published_summary(rows)]
    text = markdown_page(
        [f"# {TITLE}"],
        listed(told),
        [escape(each) for each in asked],
        ["## Load it"],
        ["```python", *LOADED, "```"],
        ["## Figures"],
        *([f"![{escape(each.title)}]({each.name}.svg)", "", escape(each.description)] for each in drawn),
        *(block for each in sums for block in ([f"## {escape(each.title)}"], markdown_table(each.head, each.rows))),
        ["## What this page does not show"],
        listed(NOT_SHOWN),
        ["## The columns of study.csv and study.parquet"],
        [f"- `{name}`: {escape(meaning)}" for name, meaning in COLUMNS.items()],
    )
    paths = [folder / "study.md", folder / "study.html"]
    for path, content in zip(paths, (text, _html(told, asked, drawn, sums)), strict=True):
        path.write_text(content, encoding="utf-8")
    return paths


def _html(told: Sequence[str], asked: Sequence[str], drawn: Sequence[Drawing], sums: Sequence[Sheet]) -> str:
    shown = [f"<figure>{each.svg}<figcaption>{html.escape(each.description)}</figcaption></figure>" for each in drawn]
    columns = Sheet(
        "The columns of study.csv and study.parquet", ("column", "meaning"), tuple(COLUMNS.items()), frozenset()
    )
    return "".join((
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(TITLE)}</title>',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<style>{STYLE}{LAYOUT}</style></head><body><h1>{html.escape(TITLE)}</h1>",
        _items(told), *(f"<p>{html.escape(each)}</p>" for each in asked),
        f"<h2>Load it</h2><pre>{html.escape(chr(10).join(LOADED))}</pre><h2>Figures</h2>", *shown,
        *(_table(each) for each in (*sums, columns)),
        f"<h2>What this page does not show</h2>{_items(NOT_SHOWN)}",
        f"<p>Written by dpaudit {__version__}.</p></body></html>\n",
    ))  # fmt: skip


def _items(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(each)}</li>' for each in lines)}</ul>"


def _table(held: Sheet) -> str:
    head = "".join(f'<th scope="col">{html.escape(each)}</th>' for each in held.head)
    rows = "".join(
        "<tr>" + "".join(
            f'<td{" class=number" if place in held.numbers else ""}>{html.escape(cell)}</td>'
            for place, cell in enumerate(row)
        ) + "</tr>"
        for row in held.rows
    )  # fmt: skip
    inside = f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    return f"<h2>{html.escape(held.title)}</h2><details><summary>{len(held.rows)} rows</summary>{inside}</details>"
