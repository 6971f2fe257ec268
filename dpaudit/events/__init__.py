"""Sets of outputs, and which runs are in them: what is evaluated of a frozen event. `events.search` finds one."""

from dpaudit.events.event import Event, HitCounter
from dpaudit.events.features import Feature
from dpaudit.events.partition import Partition
from dpaudit.events.stored import event_from_dict, partition_from_dict

__all__ = ["Event", "Feature", "HitCounter", "Partition", "event_from_dict", "partition_from_dict"]
