"""Scores from files: CSV, NPY, NPZ and JSON. Every refusal names the file, the place and the cure."""

import csv
import io
import math
import os
import warnings
import zipfile
import zlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.base.files import read_bytes
from dpaudit.base.quoting import clean
from dpaudit.base.strict import read
from dpaudit.errors import InvalidSpec, at
from dpaudit.scores.counts import NAMES, AttackCounts

SCORE, MEMBER = ("score", "scores"), ("member", "members", "is_member", "label")
IN, OUT = ("in", "in_scores", "in_score"), ("out", "out_scores", "out_score")
TRUE, FALSE = ("1", "1.0", "true", "yes", "in"), ("0", "0.0", "false", "no", "out")
SUFFIXES = (".csv", ".json", ".npy", ".npz")
LARGEST_TEXT, LARGEST_ARRAYS = 2**26, 2**27  # bytes; what is packed counts as it is unpacked
LONGEST_LINE = 2**16  # characters
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # as numpy writes them


@dataclass(frozen=True, slots=True)
class Loaded:
    """The content of a file: the scores of both sides, or counts."""

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
    with at(str(path)):
        match source.suffix.lower():
            case ".csv":
                return _csv(source, score, member, inside, outside)
            case ".json":
                return _json(source, inside, outside)
            case suffix:
                return _numpy(source, suffix == ".npz", inside, outside)


def _csv(source: Path, *named: str | None) -> Loaded:
    try:
        rows = csv.reader(_lines(read_bytes(source, LARGEST_TEXT).decode("utf-8-sig")))
        header = [name.strip() for name in next(rows, ())]
        if not header:
            raise InvalidSpec("is empty; the first line must name the columns")
        return _columns(header, enumerate(rows, start=2), *named)
    except UnicodeDecodeError as error:
        raise InvalidSpec(f"cannot be read: it is not text in UTF-8 (byte {error.start})") from None
    except csv.Error as error:
        raise InvalidSpec(f"is not CSV: {error}; give one score a line") from None


def _lines(text: str) -> Iterator[str]:
    for line in io.StringIO(text, newline=""):
        if len(line) > LONGEST_LINE:
            raise csv.Error(f"a line has {len(line):,} characters")
        yield line


def _columns(header: list[str], rows: Iterator[tuple[int, list[str]]], *named: str | None) -> Loaded:
    s, m, i, o = (_column(header, *each) for each in zip(named, (SCORE, MEMBER, IN, OUT), strict=True))
    wide = i is not None and o is not None and (s is None or m is None or any(named[2:]))
    first, second = (i, o) if wide else (s, m)
    if first is None or second is None:
        raise InvalidSpec(
            f"the header must name score and member, or in and out, got {clean(', '.join(header), 200)}; "
            "or name the columns with --score and --member, or --in and --out"
        )
    sides = array("d"), array("d")  # eight bytes a score
    for line, row in rows:
        cells = [row[column].strip() if column < len(row) else "" for column in (first, second)]
        places = [f"line {line}, column {header[column]}" for column in (first, second)]
        if wide:
            for side, place, cell in zip(sides, places, cells, strict=True):
                if cell:  # the two sides need not be equally long
                    side.append(_number(place, cell))
        elif any(map(str.strip, row)):
            number = _number(places[0], cells[0])
            if (word := cells[1].lower()) not in TRUE + FALSE:
                raise InvalidSpec(f"{places[1]} must be 1 or 0, got {clean(repr(cells[1]))}")
            sides[word in FALSE].append(number)
    return Loaded(*sides)


def _column(header: list[str], named: str | None, known: Iterable[str]) -> int | None:
    """Where a column is: by the name the user gave, or else by one of the known ones."""
    if named is not None:
        if named not in header:
            raise InvalidSpec(f"there is no column {clean(named)!r}; it has {clean(', '.join(header), 200)}")
        return header.index(named)
    places = [place for place, name in enumerate(header) if name.lower() in known]
    if len(places) > 1:
        raise InvalidSpec(f"{' and '.join(header[each] for each in places[:2])} could both be meant; name one")
    return places[0] if places else None


def _number(place: str, value: Any) -> float:
    try:
        number = float(value if isinstance(value, int | float) or f"{value}".isascii() and "_" not in value else "")
    except (TypeError, ValueError, OverflowError):
        raise InvalidSpec(f"{place} must be a number, got {clean(repr(value))}") from None
    if isinstance(value, bool) or not math.isfinite(number):
        raise InvalidSpec(f"{place} must be a finite number, got {value!r}; give the attack's lowest score, not a gap")
    return number


def _json(source: Path, inside: str | None, outside: str | None) -> Loaded:
    stored = read(source, cure="restore it", not_json="give scores or counts as JSON", largest=LARGEST_TEXT)
    if not isinstance(stored, dict):
        raise InvalidSpec(f'must be an object such as {{"in": [...], "out": [...]}}, got {type(stored).__name__}')
    if {str(key).lower() for key in stored} & set(NAMES):
        return Loaded(counts=AttackCounts.from_dict(stored))
    sides: list[Any] = []
    for key in _keys(stored, inside, outside):
        if not isinstance(stored.get(key), list):
            raise InvalidSpec(f"must have a list under {key!r}, or the counts tp, fp, tn, fn")
        sides.append(array("d", (_number(f"{key}[{place}]", value) for place, value in enumerate(stored[key]))))
    return Loaded(*sides)


def _keys(known: Iterable[str], inside: str | None, outside: str | None) -> tuple[str, ...]:
    """The names of the two sides: those that the user gave, or else those of the usual ones that are there."""
    usual = ((inside, IN), (outside, OUT))
    return tuple(named or next((each for each in names if each in known), names[0]) for named, names in usual)


def _numpy(source: Path, packed: bool, inside: str | None, outside: str | None) -> Loaded:
    content = read_bytes(source, LARGEST_ARRAYS)
    if not packed:
        table = _array("", content)
        if table.ndim != 2 or table.shape[1] != 2:
            raise InvalidSpec(f"must be a table of two columns, score and member, got shape {table.shape}")
        wrong = np.flatnonzero(~np.isin(table[:, 1], (0, 1)))
        if wrong.size:
            raise InvalidSpec(f"row {wrong[0]}, column 1 must be 1 or 0, got {table[wrong[0], 1]}")
        yes = table[:, 1] == 1
        return Loaded(table[yes, 0], table[~yes, 0])
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {each.filename.removesuffix(".npy"): each for each in archive.infolist()}
            if len(members) < len(archive.infolist()):
                raise InvalidSpec("an array stands in it twice; keep one")
            sides = []
            for key in _keys(members, inside, outside):
                if key not in members:
                    raise InvalidSpec(f"must hold an array {key!r}, got {clean(', '.join(members), 200) or 'none'}")
                if members[key].file_size > LARGEST_ARRAYS or members[key].compress_type not in PACKED:
                    raise InvalidSpec(
                        f"array {key!r} is larger than {LARGEST_ARRAYS >> 20} MB, or packed in another way"
                    )
                sides.append(_array(f"array {key!r} ", archive.read(members[key])))
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        if isinstance(error, InvalidSpec):
            raise
        raise InvalidSpec(f"cannot be read as numpy arrays: {clean(error)}") from None
    return Loaded(*sides)


def _array(name: str, content: bytes) -> Any:
    """The array of numbers in an .npy file: nothing is made that its bytes do not fill, and nothing is unpickled."""
    file = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        with warnings.catch_warnings(action="error"):  # a header of Python 2
            shape, fortran, dtype = header(file)
    except Exception as error:  # numpy hands the header to Python's own parser, which may raise anything
        raise InvalidSpec(f"{name}cannot be read as numpy arrays: {clean(error)}") from None
    length = len(content) - file.tell()
    wrong = dtype.kind not in "biuf" or any(type(size) is not int or size < 0 for size in shape)
    if wrong or math.prod(shape) * dtype.itemsize != length:
        raise InvalidSpec(f"{name}must be real numbers that fill its shape, got {dtype} {shape} in {length:,} bytes")
    return np.frombuffer(content, dtype, offset=file.tell()).reshape(shape, order="F" if fortran else "C")
