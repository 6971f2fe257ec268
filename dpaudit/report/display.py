"""What a prompt, a notebook, a figure and a data frame show of a result: the sentences and numbers of its report."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial, singledispatch
from typing import Any

from dpaudit.account import bracketed
from dpaudit.account.diagnosis import diagnosis as diagnosis
from dpaudit.account.first import explanation as explanation
from dpaudit.account.sections import Section, full_text, sections
from dpaudit.account.statements import beyond as beyond
from dpaudit.account.statements import headline, limits
from dpaudit.account.suites import reviewed_lines, suite_headline, suite_line, suite_question
from dpaudit.account.tables import audits_table
from dpaudit.base import validate
from dpaudit.errors import InvalidSpec, MissingRequirement
from dpaudit.report.csv_ import COLUMNS, REALS, row
from dpaudit.results.bounds import Bracket, BracketVerdict
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteResult
from dpaudit.scores.result import Estimate, ScoresResult

FIRST = ("what was found", "what to do", "how sure it is", "witness", "evidence")  # sections before the picture
MOST_ROWS = 60  # of a table in a notebook
TONES = {BracketVerdict.REFUTED: "refuted", BracketVerdict.PROVED: "kept"}


@dataclass(frozen=True, slots=True)
class View:
    """What a notebook shows: sections, a table, the first of the figures, and sections to unfold."""

    first: Sequence[Section]
    figures: Sequence[Any]
    more: Sequence[Section] = ()
    table: Any = None
    tone: str = "none"


@dataclass(frozen=True, slots=True)
class Display:
    """The one line of a result, its verdict before two spaces; the rest is made when it is asked for."""

    line: str
    shown: Callable[[], View]
    rows: Callable[[], Sequence[Mapping[str, Any]]]
    text: Callable[[], str] = str  # the whole account
    columns: tuple[str, ...] = ()  # where there may be no row
    reals: tuple[str, ...] = ()  # columns of numbers, which may be missing


@singledispatch
def parts(result: Any) -> Display:
    """What there is to show of a result. Raises `TypeError` for a kind of result that is not registered."""
    raise TypeError(f"nothing is known of how to show a {type(result).__name__}")


def html(result: Any) -> str:
    """The result for a notebook."""
    from dpaudit.report.figures.panel import NOTEBOOK
    from dpaudit.report.html import render

    display = parts(result)
    stamp, _, rest = display.line.partition("  ")
    return render("shown.html", stamp=stamp, rest=rest, shown=display.shown(), most=MOST_ROWS, colours=NOTEBOOK)


def plot(result: Any, kind: str | None) -> Any:
    """The figure of this name, or the first. Raises `InvalidSpec` where there is none."""
    drawn = {each.name: each for each in parts(result).shown().figures}
    if not drawn:
        raise InvalidSpec(f"there is nothing to draw in {result!r}: it holds no numbers for a figure")
    return drawn[next(iter(drawn)) if kind is None else validate.one_of("kind", kind, tuple(drawn))]


def frame(result: Any) -> Any:
    """The rows as a DataFrame. Raises `MissingRequirement` where pandas is not installed."""
    display = parts(result)
    try:
        pandas: Any = importlib.import_module("pandas")
    except ImportError:
        raise MissingRequirement("to_frame needs pandas, which is not installed here: pip install pandas") from None
    table = pandas.DataFrame(list(display.rows()), columns=list(display.columns) or None)
    return table.astype({name: "float64" for name in display.reals if name in table})


@parts.register
def _audit(result: AuditResult) -> Display:
    def shown() -> View:
        from dpaudit.report.figures import drawings
        from dpaudit.report.html import tone

        first = [each for each in sections(result) if each.title in FIRST]
        more = [each for each in sections(result) if each.title not in FIRST]
        return View(first, drawings(result), (*more, Section("not shown", limits(result))), tone=tone(result))

    rows = partial(_rows, SuiteResult.of([result]))
    return Display(headline(result), shown, rows, partial(full_text, result), tuple(COLUMNS), REALS)


@parts.register
def _suite(suite: SuiteResult) -> Display:
    def shown() -> View:
        from dpaudit.report.figures import suite_drawing
        from dpaudit.report.html import stands_out

        odd = tuple(suite_line(each) for each in suite.entries if stands_out(each))
        first = [Section("look at first", odd), Section("accepted", reviewed_lines(suite.reviewed))]
        more = Section("asked", suite_question(suite)), Section("not shown", limits(*suite.results))
        drawn = [suite_drawing(suite)] if suite.results else []
        return View([each for each in first if each.lines], drawn, more, audits_table(suite))

    return Display(suite_headline(suite), shown, partial(_rows, suite), columns=tuple(COLUMNS), reals=REALS)


def _rows(suite: SuiteResult) -> list[dict[str, object]]:
    pairs = zip(suite.entries, suite.holm(), strict=True)
    return [dict(zip(COLUMNS, row(entry, adjusted, None), strict=True)) for entry, adjusted in pairs]


@parts.register
def _bracket(bracket: Bracket) -> Display:
    def shown() -> View:
        from dpaudit.report.figures.curves import interval

        first = [Section(title, (text,)) for title, text in bracketed.facts(bracket)]
        drawn = [interval(bracket)] if bracket.lower is not None or bracket.uppers else []
        return View(first, drawn, tone=TONES.get(bracket.verdict, "none"))

    def rows() -> list[dict[str, object]]:
        low, high = bracket.ends
        claim = {"claim": None if bracket.claim is None else str(bracket.claim), "delta": bracket.delta}
        ends = {"epsilon_lower": low, "epsilon_upper": high, "for_all_inputs": bracket.for_all_inputs}
        more = {"one_way": bracket.one_way, "contradictory": bracket.contradictory}
        return [{"name": bracket.name, "verdict": bracket.verdict.value, **claim, **ends, **more}]

    return Display(bracketed.headline(bracket), shown, rows, lambda: "\n".join(bracketed.account(bracket)))


@parts.register
def _scores(result: ScoresResult) -> Display:
    from dpaudit.report.account import account_of

    return account_parts(result.headline, partial(account_of, result), result.estimates)


def account_parts(line: str, account: Callable[[], Any], estimates: Sequence[Any]) -> Display:
    """What there is to show of a result that has an `Account`: a row for each of its estimates."""

    def shown() -> View:
        page = account()
        lines = [
            Section(line, tuple(f"{text} ({by})" for text, by in statements)) for line, _, statements, _ in page.lines
        ]
        more = (*page.parts, page.not_tested)
        return View([Section("in short", page.short), *lines], page.drawings, more, tone=page.tone)

    def rows() -> list[dict[str, object]]:
        keys = [each.name for each in fields(Estimate) if each.name != "detail"]
        return [{key: getattr(each, key) for key in ("line", *keys)} for each in estimates]

    return Display(line, shown, rows, reals=("value", "lower", "upper", "delta", "confidence", "p_value"))
