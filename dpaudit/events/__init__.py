"""Sets of outputs: features, events and partitions, and the selector that chooses one on search data."""

from dpaudit.events.binning import Tables
from dpaudit.events.candidates import unpaired
from dpaudit.events.event import Event, HitCounter
from dpaudit.events.explore import (
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
from dpaudit.events.features import Feature
from dpaudit.events.goal import Goal
from dpaudit.events.grouping import PartitionProposal, as_partition, best_partition
from dpaudit.events.partition import Partition
from dpaudit.events.selection import Proposal
from dpaudit.events.stored import event_from_dict, partition_from_dict

__all__ = [
    "KEPT",
    "Event",
    "Feature",
    "Goal",
    "HitCounter",
    "Partition",
    "PartitionProposal",
    "Plan",
    "Proposal",
    "Tables",
    "as_partition",
    "best",
    "best_partition",
    "event_from_dict",
    "everything",
    "learned_again",
    "moved",
    "narrowed",
    "partition_from_dict",
    "pilot_counts",
    "plan",
    "relearned",
    "unlearned",
    "unpaired",
]
