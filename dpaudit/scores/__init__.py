"""Bounds on epsilon from the scores of a membership attack that was already made."""

from dpaudit.scores.audit import METHODS as METHODS
from dpaudit.scores.audit import audit_scores as audit_scores
from dpaudit.scores.counts import AttackCounts as AttackCounts
from dpaudit.scores.counts import epsilon_of as epsilon_of
from dpaudit.scores.designs import FewRuns as FewRuns
from dpaudit.scores.designs import ManyRun as ManyRun
from dpaudit.scores.designs import OneRun as OneRun
from dpaudit.scores.designs import Steps as Steps
from dpaudit.scores.result import LABELS as LABELS
from dpaudit.scores.result import Estimate as Estimate
from dpaudit.scores.result import ScoresResult as ScoresResult
