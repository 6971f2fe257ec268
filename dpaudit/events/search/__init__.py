"""What finds an event on search runs: features, cells, learned scores, selection. A mistake here costs power alone."""

from dpaudit.events.search.binning import Tables
from dpaudit.events.search.crossfit import Coded, Folds, cross_fitted, learned_again, lines_judged, moved, relearned
from dpaudit.events.search.entries import unpaired
from dpaudit.events.search.explore import (
    KEPT,
    SCREENED,
    Plan,
    best,
    everything,
    narrowed,
    pilot_counts,
    plan,
    planned,
    with_scores,
)
from dpaudit.events.search.goal import Goal
from dpaudit.events.search.grouping import PartitionProposal, as_partition, best_partition
from dpaudit.events.search.selection import Proposal
from dpaudit.events.search.worth import worth

__all__ = [
    "KEPT",
    "SCREENED",
    "Coded",
    "Folds",
    "Goal",
    "PartitionProposal",
    "Plan",
    "Proposal",
    "Tables",
    "as_partition",
    "best",
    "best_partition",
    "cross_fitted",
    "everything",
    "learned_again",
    "lines_judged",
    "moved",
    "narrowed",
    "pilot_counts",
    "plan",
    "planned",
    "relearned",
    "unpaired",
    "with_scores",
    "worth",
]
