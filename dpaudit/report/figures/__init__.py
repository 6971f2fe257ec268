"""Figures of results, suites, histories and studies: SVG that stands inside a page, and files of either kind."""

from collections.abc import Callable
from functools import singledispatch
from typing import Any

from dpaudit.base.quoting import standing
from dpaudit.report.figures.curves import growth, interval, power, profile, tradeoff
from dpaudit.report.figures.distributions import distributions
from dpaudit.report.figures.drawing import Drawing, undrawn
from dpaudit.report.figures.membership import of_scores
from dpaudit.report.figures.overview import history_drawing, suite_drawing
from dpaudit.report.figures.panel import DARK, LIGHT, STYLE
from dpaudit.results.bounds import Bracket
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteResult
from dpaudit.scores.result import ScoresResult

__all__ = ["DARK", "LIGHT", "STYLE", "Drawing", "drawings", "history_drawing", "suite_drawing"]

KINDS: tuple[Callable[[AuditResult], Drawing | None], ...] = (distributions, tradeoff, profile, growth, power)
COUNTED = (tradeoff, profile, power)  # that need certifying runs, which there are none of after bets that refuted


@singledispatch
def drawings(finding: Any) -> tuple[Drawing, ...]:
    """The figures of a finding, those it has numbers for; none of a kind that is not registered."""
    return ()


@drawings.register
def _of_audit(result: AuditResult) -> tuple[Drawing, ...]:
    counted = bool(result.evidence.runs_p and result.evidence.runs_q)
    drawn = (standing(undrawn)(kind)(result) for kind in KINDS if counted or kind not in COUNTED)
    return tuple(each for each in drawn if each is not None)


@drawings.register
def _of_suite(suite: SuiteResult) -> tuple[Drawing, ...]:
    return (suite_drawing(suite),) if suite.results else ()


@drawings.register
def _of_bracket(bracket: Bracket) -> tuple[Drawing, ...]:
    return (interval(bracket),) if bracket.lower is not None or bracket.uppers else ()


drawings.register(ScoresResult, of_scores)
