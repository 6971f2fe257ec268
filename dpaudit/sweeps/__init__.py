"""Sweeps: audits over a grid, as a tidy table with figures, streamed into the ledger as they come."""

from dpaudit.sweeps.door import KINDS, Sweep, SweepInterrupted, run_sweep, sweep

__all__ = ["KINDS", "Sweep", "SweepInterrupted", "run_sweep", "sweep"]
