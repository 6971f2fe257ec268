"""The only code that runs someone else's: streams, workers, pools, counting, the engine; no event and no certifier."""

from dpaudit.sampling.engine import Engine, Session
from dpaudit.sampling.limit import SILENT, Limit, Progress
from dpaudit.sampling.store import ShardStore, StoredShard
from dpaudit.sampling.streams import Shard, Stage, apart, rechecking, shards
from dpaudit.sampling.tasks import FreshTask
from dpaudit.sampling.watch import Reducer, Watch
from dpaudit.sampling.worker import BatchFailed, Probe

__all__ = [
    "SILENT",
    "BatchFailed",
    "Engine",
    "FreshTask",
    "Limit",
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
