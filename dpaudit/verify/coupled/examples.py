"""A pair of datasets that shows a case: three common records, and the one in which they differ. It proves nothing."""

import math
from fractions import Fraction
from numbers import Rational
from typing import Any

from dpaudit.verify.coupled.cases import NeighbourCase, Region
from dpaudit.verify.coupled.values import ALL, is_number

FAR = 10**6  # beyond what code clips to, mostly
COMMON = 3  # records
Path = tuple[Any, ...]


def example(case: NeighbourCase, users: bool, mapping: bool, common: int = COMMON) -> tuple[Any, Any] | None:
    """The datasets, of rows, or mappings from keys or users; None where records are of no form that is made up here.

    >>> example(NeighbourCase("a record added", None, (None, {}, {}), {()}), users=False, mapping=False)
    ([0, 0, 0], [0, 0, 0, 1000000])
    """
    if case.regions is None:
        return None
    *sides, both = case.regions
    ways = (None, None) if None in sides else (1, -1)
    parts = {path[:-1] for path in case.numbers if path[-1:] == (".part",)}
    numbers = {path for path in case.numbers if path[-1:] != (".part",)}
    paths = {path for region in case.regions if region is not None for path in region} | numbers | parts
    try:
        usual = [_record(paths, both, numbers, 0)] * common
        rows = [
            usual + ([] if region is None else [_record(paths, region, numbers, way)])
            for region, way in zip(sides, ways, strict=True)
        ]
    except LookupError:
        return None
    if mapping:
        first, second = (
            dict(zip("abcd", [[row] * COMMON for row in side] if users else side, strict=False)) for side in rows
        )
        return first, second
    return None if rows[0] == rows[1] else (rows[0], rows[1])


def _record(paths: set[Path], region: Region, numbers: set[Path], way: int | None) -> Any:
    """A number, a text, or a tuple or dictionary of them, in a region. Raises `LookupError` for anything else."""
    if paths <= {()}:
        return _part(region, (), not paths or () in numbers, way)
    heads = sorted((path[0] for path in paths if len(path) == 1 and str(path[0])[:1] not in (".", "-")), key=repr)
    kinds = set(map(type, heads))
    if len(heads) < len(paths) or kinds not in ({int}, {str}):
        raise LookupError
    places = heads if kinds == {str} else range(max(heads) + 1)
    parts = {place: _part(region, (place,), (place,) in numbers or (place,) not in paths, way) for place in places}
    return parts if kinds == {str} else tuple(parts.values())


def _part(region: Region, path: Path, number: bool, way: int | None) -> Any:
    """A value at a place; a number is large or small as `way` says, near the middle for 0, far out for None."""
    place = region.get(path)
    if place is not None and place.exactly:
        value = place.value
        if isinstance(value, int) or not isinstance(value, Rational):
            return value
        found = Fraction(value)
        return int(found) if found.denominator == 1 else float(found)
    low, high = ALL if place is None else place.span
    if low == high or not number and not any(map(is_number, () if place is None else place.value)):
        return "other" if place is not None else "a" if way == 0 else "b"  # what no other record has shows most
    way = (-1 if math.isinf(low) and math.isfinite(high) else 1) if way is None else way
    if math.isfinite(low) and math.isfinite(high):
        found = Fraction(low) + Fraction(8 + 7 * way, 16) * (Fraction(high) - Fraction(low))
    elif math.isfinite(low):
        found = Fraction(low) + (FAR if way > 0 else 1)
    else:
        found = Fraction(high) - (FAR if way < 0 else 1) if math.isfinite(high) else Fraction(way * FAR)
    return int(found) if found.denominator == 1 else float(found)
