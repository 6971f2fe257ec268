"""Sets of outputs: features, events, and the selector that chooses one on search data."""

from dpaudit.events.event import Event, HitCounter
from dpaudit.events.explore import Plan, best, everything, pilot_counts, plan
from dpaudit.events.features import Feature
from dpaudit.events.selection import Goal, Proposal
from dpaudit.events.stored import event_from_dict

__all__ = [
    "Event",
    "Feature",
    "Goal",
    "HitCounter",
    "Plan",
    "Proposal",
    "best",
    "event_from_dict",
    "everything",
    "pilot_counts",
    "plan",
]
