"""The audit whose report the pages explain: it is run when the site is built, so text and figures are real ones."""

from __future__ import annotations

import dataclasses
import html
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import private_training
from private_counts import noisy_count
from reference.text import code, fenced, prose, table

import dpaudit
from audits.digest import ROOT
from audits.literature.page import summary
from audits.literature.study import Study
from audits.literature.table import escape
from audits.research.table import COLUMNS as STUDY
from dpaudit.account import account
from dpaudit.certify import smallest_caught
from dpaudit.sweeps import COLUMNS

RUNS = 200_000
VARYING = ("started", "wall_s", "cpu_s", "platform", "commit")  # the pages do not change from build to build


@cache
def result() -> dpaudit.AuditResult:
    """The result of the tutorial's audit."""
    pair = dpaudit.AdjacentPair(["a"] * 10, ["a"] * 9, name="one person leaves")
    claim = dpaudit.PureDP(1.0, relation=dpaudit.Relation.ADD_OR_REMOVE_ONE)
    found = dpaudit.audit(noisy_count, pair=pair, claim=claim, runs=RUNS, n_jobs=1)
    known = {key: value for key, value in found.provenance.items() if key not in VARYING}
    return dataclasses.replace(found, provenance={**known, "file": "private_counts.py", "line": 10})


def report(name: str) -> str:
    """A part of the report as text: its headline, or the section of that title (dashes for spaces)."""
    told = account(result())
    if name == "headline":
        return fenced("text", told.headline)
    part = {part.anchor: part for part in told.sections}[name]
    return fenced("text", "\n".join(part.text), title=part.key)


def figure(name: str) -> str:
    """A figure of the report as inline SVG, its numbers below it as a table."""
    return pictured(drawings()[name])


def pictured(drawing: Any) -> str:
    """A drawing of a report as a page holds it."""
    told = table([prose(each) for each in drawing.columns], [[prose(str(c)) for c in row] for row in drawing.rows])
    svg = "\n".join(line for line in drawing.svg.splitlines() if line.strip())  # an empty line would end the block
    caption = html.escape(drawing.title, quote=False)
    picture = f'<figure class="dpaudit">\n{svg}\n<figcaption>{caption}</figcaption>\n</figure>'
    indented = "\n".join(f"    {line}" for line in told.splitlines())
    return f'{picture}\n\n??? note "The numbers of this figure"\n\n{indented}\n'


@cache
def trained() -> dpaudit.TrainingResult:
    """The result of one training with two thousand canaries."""
    found = dpaudit.audit_training(
        private_training.train,
        canaries=2_000,
        claim=dpaudit.GaussianDP(2.0),
        inserted="gradients of norm 10 times the clip norm, each along a coordinate of its own, in every step",
        not_tested=("the loader: every step takes all the data",),
    )
    return dataclasses.replace(found, provenance={})


def training(name: str) -> str:
    """What is shown of that result: its text, or a figure of its report."""
    if name == "text":
        return fenced("text", str(trained()))
    from dpaudit.report.figures import drawings as drawn

    return pictured({each.name: each for each in drawn(trained())}[name])


def stored(name: str) -> str:
    """What a report in `reports/` says first of its results, from its record. Raises `KeyError` for another one."""
    file = {"literature": ROOT / "reports" / "literature" / "literature.json"}[name]
    study = Study.from_json(file.read_text(encoding="utf-8"))
    return "\n\n".join(escape(each) for each in summary(study.records, study.failed, study.groups))


def numbers(name: str) -> str:
    """A table that is made when the site is built. Raises `LookupError` for an unknown one."""
    return {"power": _power, "sweep": lambda: _columns(COLUMNS), "study": lambda: _columns(STUDY)}[name]()


def _columns(meanings: Mapping[str, str]) -> str:
    """The columns of a table."""
    return table(("column", "meaning"), [(code(name), prose(meaning)) for name, meaning in meanings.items()])


def _power() -> str:
    """The smallest loss that is caught, by the probability of its event and the number of runs."""
    sizes, masses = (10**4, 10**5, 10**6, 10**7), (0.5, 0.1, 0.01, 0.001, 0.0001)
    claim = dpaudit.PureDP(1.0)

    def caught(mass: float, runs: int) -> str:
        least = smallest_caught(claim, 2 * runs, mass, confidence=0.95)
        return "nothing" if least is None else f"{math.ceil(least * 100) / 100:.2f}"

    rows = [(f"{mass:g}", *(caught(mass, runs) for runs in sizes)) for mass in masses]
    return table(("probability of the event", *(f"{runs:,}" for runs in sizes)), rows)


def colours() -> str:
    """A style sheet: the colours of the figures, in the light and the dark scheme of the pages."""
    from dpaudit.report.figures import DARK, LIGHT

    schemes = ((":root", LIGHT), ('[data-md-color-scheme="slate"]', DARK))
    rules = (
        f"{place} {{ {' '.join(f'--dp-{name}: {value};' for name, value in values.items())} }}"
        for place, values in schemes
    )
    return "\n".join(rules) + "\n"


@cache
def drawings() -> dict[str, Any]:
    """The figures of the report by name."""
    from dpaudit.report.figures import drawings as drawn

    return {each.name: each for each in drawn(result())}
