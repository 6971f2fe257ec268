"""Sweeps: one audit at every point of a grid, each a row of a tidy table."""

from dpaudit.auditing.sweeping.grid import Grid, Point, points
from dpaudit.auditing.sweeping.rows import COLUMNS, PARAMETERS, REALS, columns, row_of
from dpaudit.auditing.sweeping.running import Row, run_points
from dpaudit.auditing.sweeping.table import csv_line, csv_text

__all__ = [
    "COLUMNS",
    "PARAMETERS",
    "REALS",
    "Grid",
    "Point",
    "Row",
    "columns",
    "csv_line",
    "csv_text",
    "points",
    "row_of",
    "run_points",
]
