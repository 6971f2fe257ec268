"""What runs: plain functions, batched functions, factories and external programs, behind one protocol."""

from dpaudit.mechanisms.command import Command, command
from dpaudit.mechanisms.functions import Batched, PerRun, batched
from dpaudit.mechanisms.protocol import Description, Mechanism, Opened
from dpaudit.mechanisms.resolve import BuiltBy, Imported, built_by, wrap

__all__ = [
    "Batched",
    "BuiltBy",
    "Command",
    "Description",
    "Imported",
    "Mechanism",
    "Opened",
    "PerRun",
    "batched",
    "built_by",
    "command",
    "wrap",
]
