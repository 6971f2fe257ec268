"""What runs: plain functions, batched functions, factories and external programs, behind one protocol."""

from dpaudit.mechanisms.command import Command, command
from dpaudit.mechanisms.functions import Batched, BuiltBy, Imported, PerRun, batched, built_by
from dpaudit.mechanisms.protocol import Description, Mechanism, Opened
from dpaudit.mechanisms.wrap import wrap

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
