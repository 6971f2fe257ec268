"""The page of the study, in Markdown and HTML, written from its rows alone."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from audits.digest import made
from audits.research.questions import DELTA, JOINT, Plan
from audits.research.table import COLUMNS, by_mechanism, mechanisms_summary, published_summary
from dpaudit.account import Account, Level, Section, Table
from dpaudit.report import write_account
from dpaudit.report.figures import Drawing

Row = dict[str, Any]
TITLE = "Claimed, certified, exact and proved epsilon of the catalogue"
LOADED = (
    'import pandas; study = pandas.read_csv("study.csv")',
    'import pandas; study = pandas.read_parquet("study.parquet")',
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
    """Writes the figures, study.md and study.html; returns their paths."""
    left_out = [f"{row['mechanism']} at {row['claimed']:g}" for row in rows if row["part"] == "left out"]
    asked = [
        f"Claims on mu or rho are set at delta {DELTA:g}; all epsilons of a row are at one delta.",
        *([f"No value of their parameters makes these claims: {', '.join(left_out)}."] if left_out else []),
    ]
    sums = mechanisms_summary(rows, plan.runs), published_summary(rows)
    columns = Table("The columns of study.csv and study.parquet", ("column", "meaning"), tuple(COLUMNS.items()))
    sections = (
        Section("study", Level.HEADLINE, (TITLE,)),
        Section("what came out", Level.PAGE_ONE, tuple(account(rows, plan))),
        Section("what was asked", Level.PAGE_ONE, tuple(asked)),
        Section("load it", Level.PAGE_ONE, code=LOADED),
        *(Section(each.title, Level.DETAIL, table=each) for each in sums),
        Section("what this page does not show", Level.DETAIL, NOT_SHOWN),
        Section("columns", Level.REVIEWER, table=columns),
        Section("made with", Level.REVIEWER, (made("research"),)),
    )
    told = Account("A study of the catalogue", "none", sections)
    return write_account(told, drawn, folder, "study", "study.csv", suffixes=(".svg", ".png"))
