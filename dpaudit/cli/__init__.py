"""The command line: thin, light to start, and never the process that runs somebody's mechanism."""

from dpaudit.cli.group import main

__all__ = ["main"]
