"""Figures of results, suites, histories and studies: SVG that stands inside a page, and files of either kind."""

from collections.abc import Callable

from dpaudit.base.quoting import standing
from dpaudit.report.figures.curves import growth, power, profile, tradeoff
from dpaudit.report.figures.distributions import distributions
from dpaudit.report.figures.drawing import Drawing, undrawn
from dpaudit.report.figures.overview import history_drawing, suite_drawing
from dpaudit.report.figures.panel import DARK, LIGHT, STYLE
from dpaudit.results.result import AuditResult

__all__ = ["DARK", "LIGHT", "STYLE", "Drawing", "drawings", "history_drawing", "suite_drawing"]

KINDS: tuple[Callable[[AuditResult], Drawing | None], ...] = (distributions, tradeoff, profile, growth, power)


def drawings(result: AuditResult) -> tuple[Drawing, ...]:
    """The figures of a result, those it has numbers for: distributions, trade-off, profile, growth, power."""
    return tuple(drawing for kind in KINDS if (drawing := standing(undrawn)(kind)(result)) is not None)
