"""Runs of a mechanism in one process: streams, the worker, the guard around each run, counting."""
