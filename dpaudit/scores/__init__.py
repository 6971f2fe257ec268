"""Bounds on epsilon from the scores of a membership attack that was already made."""

from dpaudit.scores.audit import METHODS, audit_scores
from dpaudit.scores.bootstrap import Bootstrap
from dpaudit.scores.counts import AttackCounts, largest_advantage
from dpaudit.scores.posterior import Posterior
from dpaudit.scores.region import epsilon_curve_of, epsilon_of, tradeoff_of_curve
from dpaudit.scores.result import LABELS, Estimate, ScoresResult

__all__ = [
    "LABELS",
    "METHODS",
    "AttackCounts",
    "Bootstrap",
    "Estimate",
    "Posterior",
    "ScoresResult",
    "audit_scores",
    "epsilon_curve_of",
    "epsilon_of",
    "largest_advantage",
    "tradeoff_of_curve",
]
