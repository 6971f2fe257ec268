"""Scores from files: CSV, NPY, NPZ and JSON. Every refusal names the file, the place and the cure."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.scores.counts import NAMES, AttackCounts

SCORE, MEMBER = ("score", "scores"), ("member", "members", "is_member", "label")
IN, OUT = ("in", "in_scores", "in_score"), ("out", "out_scores", "out_score")
TRUE, FALSE = ("1", "1.0", "true", "yes", "in"), ("0", "0.0", "false", "no", "out")
SUFFIXES = (".csv", ".json", ".npy", ".npz")


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a file held: the scores of both sides, or counts."""

    in_scores: Any = None
    out_scores: Any = None
    counts: AttackCounts | None = None


def read_scores(
    path: str | os.PathLike[str],
    *,
    score: str | None = None,
    member: str | None = None,
    inside: str | None = None,
    outside: str | None = None,
) -> Loaded:
    """The scores or counts in a file; the suffix says what it is.

    .csv: columns `score` and `member` (1 or 0), or two columns `in` and `out`, found by the header; the last four
    arguments name other columns. .json: {"in": [...], "out": [...]} or {"tp":, "fp":, "tn":, "fn":}. .npz: the arrays
    `in` and `out`. .npy: a table of two columns, score and member.
    """
    source = Path(path)
    if source.suffix.lower() not in SUFFIXES:
        raise InvalidSpec(f"{path}: scores come as {', '.join(SUFFIXES)}, got {source.suffix or 'no suffix'!r}")
    kind = source.suffix.lower()
    try:
        if kind == ".csv":
            return _csv(source, score, member, inside, outside)
        if kind == ".json":
            return _json(source, inside, outside)
        return _numpy(source, inside, outside)
    except FileNotFoundError:
        raise InvalidSpec(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSpec(f"{path}: cannot be read: {error}") from None


def _csv(source: Path, score: str | None, member: str | None, inside: str | None, outside: str | None) -> Loaded:
    with source.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.reader(stream))
    if not rows:
        raise InvalidSpec(f"{source}: is empty; the first line must name the columns")
    header = [name.strip() for name in rows[0]]
    s, m = _column(source, header, score, SCORE), _column(source, header, member, MEMBER)
    i, o = _column(source, header, inside, IN), _column(source, header, outside, OUT)
    body = [(line, row) for line, row in enumerate(rows[1:], start=2) if any(cell.strip() for cell in row)]
    if i is not None and o is not None and (s is None or m is None or inside or outside):
        return Loaded(_numbers(source, header[i], i, body, gaps=True), _numbers(source, header[o], o, body, gaps=True))
    if s is None or m is None:
        raise InvalidSpec(
            f"{source}: the header must name score and member, or in and out, got {', '.join(header)}; "
            "or name the columns with --score and --member, or --in and --out"
        )
    values = _numbers(source, header[s], s, body, gaps=False)
    belongs = [
        _truth(f"{source}: line {line}, column {header[m]}", row[m] if m < len(row) else "") for line, row in body
    ]
    return Loaded(
        [value for value, yes in zip(values, belongs, strict=True) if yes],
        [value for value, yes in zip(values, belongs, strict=True) if not yes],
    )


def _column(source: Path, header: list[str], named: str | None, known: Iterable[str]) -> int | None:
    """Where a column is: by the name the user gave, or else by one of the known ones."""
    if named is not None:
        if named not in header:
            raise InvalidSpec(f"{source}: there is no column {named!r}; the header has {', '.join(header)}")
        return header.index(named)
    found = [place for place, name in enumerate(header) if name.lower() in known]
    if len(found) > 1:
        raise InvalidSpec(f"{source}: {' and '.join(header[each] for each in found)} could both be meant; name one")
    return found[0] if found else None


def _numbers(source: Path, name: str, column: int, body: list[tuple[int, list[str]]], *, gaps: bool) -> list[float]:
    found = []
    for line, row in body:
        cell = row[column].strip() if column < len(row) else ""
        if not cell and gaps:  # the two sides need not be equally long
            continue
        found.append(_number(f"{source}: line {line}, column {name}", cell))
    return found


def _number(place: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidSpec(f"{place} must be a number, got {value!r}") from None
    if isinstance(value, bool) or not math.isfinite(number):
        raise InvalidSpec(f"{place} must be a finite number, got {value!r}; give the attack's lowest score, not a gap")
    return number


def _truth(place: str, cell: str) -> bool:
    word = cell.strip().lower()
    if word not in TRUE + FALSE:
        raise InvalidSpec(f"{place} must be 1 or 0, got {cell!r}")
    return word in TRUE


def _json(source: Path, inside: str | None, outside: str | None) -> Loaded:
    try:
        stored = json.loads(source.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidSpec(f"{source}: is not JSON: {error}") from None
    if not isinstance(stored, dict):
        raise InvalidSpec(
            f'{source}: must be an object such as {{"in": [...], "out": [...]}}, got {type(stored).__name__}'
        )
    if {str(key).lower() for key in stored} & set(NAMES):
        try:
            return Loaded(counts=AttackCounts.from_dict(stored))
        except InvalidSpec as error:
            raise InvalidSpec(f"{source}: {error}") from None
    sides = []
    for named, known in ((inside, IN), (outside, OUT)):
        key = named if named is not None else next((each for each in known if each in stored), known[0])
        if not isinstance(stored.get(key), list):
            raise InvalidSpec(f"{source}: must have a list under {key!r}, or the counts tp, fp, tn, fn")
        sides.append([_number(f"{source}: {key}[{place}]", value) for place, value in enumerate(stored[key])])
    return Loaded(sides[0], sides[1])


def _numpy(source: Path, inside: str | None, outside: str | None) -> Loaded:
    import numpy as np

    try:
        stored = np.load(source, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InvalidSpec(f"{source}: cannot be read as numpy arrays: {error}") from None
    if isinstance(stored, np.ndarray):
        if stored.ndim != 2 or stored.shape[1] != 2 or stored.dtype.kind not in "biuf":
            raise InvalidSpec(f"{source}: must be a table of two columns, score and member, got shape {stored.shape}")
        wrong = np.flatnonzero(~np.isin(stored[:, 1], (0, 1)))
        if wrong.size:
            raise InvalidSpec(f"{source}: row {wrong[0]}, column 1 must be 1 or 0, got {stored[wrong[0], 1]}")
        yes = stored[:, 1] == 1
        return Loaded(stored[yes, 0], stored[~yes, 0])
    with stored:
        sides = []
        for named, known in ((inside, IN), (outside, OUT)):
            key = named if named is not None else next((each for each in known if each in stored.files), known[0])
            if key not in stored.files:
                raise InvalidSpec(f"{source}: must hold an array {key!r}, got {', '.join(stored.files) or 'none'}")
            sides.append(stored[key])
    return Loaded(sides[0], sides[1])
