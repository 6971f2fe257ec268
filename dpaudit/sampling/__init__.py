"""The only code that runs someone else's: streams, workers, pools, counting, the engine; no event and no certifier."""

from dpaudit.sampling.engine import Engine as Engine
from dpaudit.sampling.engine import Session as Session
from dpaudit.sampling.limit import SILENT as SILENT
from dpaudit.sampling.limit import Limit as Limit
from dpaudit.sampling.limit import Progress as Progress
from dpaudit.sampling.store import ShardStore as ShardStore
from dpaudit.sampling.store import StoredShard as StoredShard
from dpaudit.sampling.streams import Shard as Shard
from dpaudit.sampling.streams import Stage as Stage
from dpaudit.sampling.streams import apart as apart
from dpaudit.sampling.streams import rechecking as rechecking
from dpaudit.sampling.streams import shards as shards
from dpaudit.sampling.tasks import FreshTask as FreshTask
from dpaudit.sampling.watch import Watch as Watch
from dpaudit.sampling.worker import BatchFailed as BatchFailed
from dpaudit.sampling.worker import Probe as Probe
