"""The only code that runs someone else's: streams, outputs, workers and the engine. It knows no events."""

from dpaudit.sampling.engine import Engine, Session
from dpaudit.sampling.progress import SILENT, Progress
from dpaudit.sampling.store import ShardStore, StoredShard
from dpaudit.sampling.streams import Shard, Stage, apart, rechecking, shards
from dpaudit.sampling.tasks import FreshTask
from dpaudit.sampling.watch import Watch
from dpaudit.sampling.worker import BatchFailed, Probe, Reducer

__all__ = [
    "SILENT",
    "BatchFailed",
    "Engine",
    "FreshTask",
    "Probe",
    "Progress",
    "Reducer",
    "Session",
    "Shard",
    "ShardStore",
    "Stage",
    "StoredShard",
    "Watch",
    "apart",
    "rechecking",
    "shards",
]
