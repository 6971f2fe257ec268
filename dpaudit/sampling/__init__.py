"""The only code that runs someone else's: streams, outputs, workers and the engine. It knows no events."""

from dpaudit.sampling.engine import Engine, Session
from dpaudit.sampling.fresh import FreshTask
from dpaudit.sampling.outputs import Column, Outputs, Sample, Token, token
from dpaudit.sampling.progress import SILENT, Progress
from dpaudit.sampling.store import ShardStore, StoredShard
from dpaudit.sampling.streams import Shard, Stage, apart, rechecking, shards
from dpaudit.sampling.watch import Watch
from dpaudit.sampling.worker import BatchFailed, Pilot, Probe, Reducer

__all__ = [
    "SILENT",
    "BatchFailed",
    "Column",
    "Engine",
    "FreshTask",
    "Outputs",
    "Pilot",
    "Probe",
    "Progress",
    "Reducer",
    "Sample",
    "Session",
    "Shard",
    "ShardStore",
    "Stage",
    "StoredShard",
    "Token",
    "Watch",
    "apart",
    "rechecking",
    "shards",
    "token",
]
