"""Sweeps: audits over a grid, as a tidy table with figures, streamed into the ledger as they come."""

from dpaudit.sweeps.door import Sweep, SweepInterrupted, run_sweep, sweep
from dpaudit.sweeps.page import KINDS
from dpaudit.sweeps.rows import COLUMNS

__all__ = ["COLUMNS", "KINDS", "Sweep", "SweepInterrupted", "run_sweep", "sweep"]
