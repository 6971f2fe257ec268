"""What a prompt, a print, a notebook, a figure and a data frame show of a result: its account, up to a level."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import singledispatch
from typing import Any

from dpaudit.account import Level
from dpaudit.account import account as account
from dpaudit.account.audit import explanation as explanation
from dpaudit.account.diagnosis import diagnosis as diagnosis
from dpaudit.account.repeat import MORE
from dpaudit.account.statements import beyond as beyond
from dpaudit.base import validate
from dpaudit.errors import InvalidSpec, MissingRequirement
from dpaudit.report.csv_ import COLUMNS, REALS, row
from dpaudit.results.bounds import Bracket
from dpaudit.results.recorded import NoiseRecord
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteResult
from dpaudit.scores.result import Decided, Estimate

MOST_ROWS = 60  # of a table in a notebook


def line(result: Any) -> str:
    """The one line of a result."""
    return account(result, Level.HEADLINE).headline


def text(result: Any) -> str:
    """What is printed of a result: its first page."""
    return "\n".join(account(result, Level.PAGE_ONE).lines(MORE))


def html(result: Any) -> str:
    """The result for a notebook: the first page, a figure, tables, and the rest to unfold."""
    from dpaudit.report.figures import drawings
    from dpaudit.report.figures.panel import NOTEBOOK
    from dpaudit.report.html import render

    told = account(result, Level.DETAIL)
    levels = {"first": told.at(Level.PAGE_ONE), "more": told.at(Level.DETAIL)}
    return render("shown.html", told=told, figures=drawings(result)[:1], most=MOST_ROWS, colours=NOTEBOOK, **levels)


def plot(result: Any, kind: str | None, size: str | float | None, style: str) -> Any:
    """The figure of this name, or the first. Raises `InvalidSpec` where there is none."""
    from dpaudit.report.figures import drawings
    from dpaudit.report.figures.panel import laid_out

    with laid_out(size, style):
        drawn = {each.name.replace("-", "_"): each for each in drawings(result)}
    if not drawn:
        raise InvalidSpec(f"there is nothing to draw in {result!r}: it holds no numbers for a figure")
    return drawn[next(iter(drawn)) if kind is None else validate.one_of("kind", kind.replace("-", "_"), tuple(drawn))]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a data frame, its columns where there may be no row, and those that hold numbers, or nothing."""

    rows: Sequence[Mapping[str, Any]]
    columns: tuple[str, ...] = ()
    reals: tuple[str, ...] = ()


def frame(result: Any) -> Any:
    """The rows as a DataFrame. Raises `MissingRequirement` where pandas is not installed."""
    shown = frame_rows(result)
    try:
        pandas: Any = importlib.import_module("pandas")
    except ImportError:
        raise MissingRequirement("to_frame needs pandas, which is not installed here: pip install pandas") from None
    table = pandas.DataFrame(list(shown.rows), columns=list(shown.columns) or None)
    return table.astype({name: "float64" for name in shown.reals if name in table})


@singledispatch
def frame_rows(result: Any) -> Rows:
    """The rows of a result. Raises `TypeError` for a kind of result that is not registered."""
    raise TypeError(f"nothing is known of the rows of a {type(result).__name__}")


@frame_rows.register
def _of_audit(result: AuditResult) -> Rows:
    return _of_suite(SuiteResult.of([result]))


@frame_rows.register
def _of_suite(suite: SuiteResult) -> Rows:
    pairs = zip(suite.entries, suite.holm(), strict=True)
    values = [dict(zip(COLUMNS, row(entry, adjusted, None), strict=True)) for entry, adjusted in pairs]
    return Rows(values, tuple(COLUMNS), REALS)


@frame_rows.register
def _of_bracket(bracket: Bracket) -> Rows:
    low, high = bracket.ends
    claim = {"claim": None if bracket.claim is None else str(bracket.claim), "delta": bracket.delta}
    ends = {"epsilon_lower": low, "epsilon_upper": high, "for_all_inputs": bracket.for_all_inputs}
    more = {"one_way": bracket.one_way, "contradictory": bracket.contradictory}
    return Rows([{"name": bracket.name, "verdict": bracket.verdict.value, **claim, **ends, **more}])


@frame_rows.register
def _of_record(record: NoiseRecord) -> Rows:
    return Rows([{**each.to_dict(), "parts": ", ".join(each.parts)} for each in record.leads], reals=("shift", "loss"))


@frame_rows.register
def _of_estimates(result: Decided) -> Rows:
    keys = [each.name for each in fields(Estimate) if each.name != "detail"]
    values = [{key: getattr(each, key) for key in ("line", *keys)} for each in result.stated]
    return Rows(values, reals=("value", "lower", "upper", "delta", "confidence", "p_value"))
