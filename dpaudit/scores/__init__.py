"""Bounds on epsilon from the scores of a membership attack that was already made."""

from dpaudit.scores.audit import METHODS, audit_scores
from dpaudit.scores.bootstrap import Bootstrap
from dpaudit.scores.counts import AttackCounts
from dpaudit.scores.estimate import LABELS, Estimate
from dpaudit.scores.posterior import Posterior
from dpaudit.scores.region import epsilon_of
from dpaudit.scores.result import ScoresResult

__all__ = [
    "LABELS",
    "METHODS",
    "AttackCounts",
    "Bootstrap",
    "Estimate",
    "Posterior",
    "ScoresResult",
    "audit_scores",
    "epsilon_of",
]
