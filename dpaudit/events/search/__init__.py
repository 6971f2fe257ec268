"""What finds an event on search runs: features, cells, learned scores, selection. A mistake here costs power alone."""

from dpaudit.events.search.binning import Tables
from dpaudit.events.search.entries import unpaired
from dpaudit.events.search.explore import (
    KEPT,
    Plan,
    best,
    everything,
    learned_again,
    moved,
    narrowed,
    pilot_counts,
    plan,
    relearned,
    unlearned,
)
from dpaudit.events.search.goal import Goal
from dpaudit.events.search.grouping import PartitionProposal, as_partition, best_partition
from dpaudit.events.search.selection import Proposal

__all__ = [
    "KEPT",
    "Goal",
    "PartitionProposal",
    "Plan",
    "Proposal",
    "Tables",
    "as_partition",
    "best",
    "best_partition",
    "everything",
    "learned_again",
    "moved",
    "narrowed",
    "pilot_counts",
    "plan",
    "relearned",
    "unlearned",
    "unpaired",
]
