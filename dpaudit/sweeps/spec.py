"""From the [sweep] tables of a spec file to grids; imports nobody's code."""

import importlib
import itertools
import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit.base.strict import read_toml
from dpaudit.claims import Claim, Relation, claim_of_keys, form_of
from dpaudit.errors import InvalidSpec, at
from dpaudit.mechanisms.importing import is_own
from dpaudit.options import SELECTOR, SWEEP_KEYS, precedence
from dpaudit.spec.questions import Layers, pairs_of
from dpaudit.sweeps.grid import LARGEST_GRID, Grid
from dpaudit.verify.bracketing.targets import epsilon_of

if TYPE_CHECKING:
    from dpaudit.spec.tables import SweepTable


def read_sweep_file(path: str | os.PathLike[str], layers: Layers | None = None) -> tuple[Grid, ...]:
    """The grids of a spec file. Raises `InvalidSpec` that names file, sweep and key."""
    from dpaudit.spec.reading import read_sweeps

    source = Path(path)
    grids: dict[str, Grid] = {}
    for table in read_sweeps(read_toml(source), str(source)):
        place = f"{source}: sweep {table.name!r}"
        if table.name in grids:
            raise InvalidSpec(f"{place}: a name may stand only once in a file; rename one of the two")
        with at(place):
            grids[table.name] = _grid(source, table, layers or Layers())
    return tuple(grids.values())


def _grid(source: Path, table: "SweepTable", layers: Layers) -> Grid:
    relation = Relation.of(table.relation)
    folder = str(source.resolve().parent)
    stated = {name: getattr(table, key) for name, key in SWEEP_KEYS.items()}
    given = {name: value for name, value in stated.items() if value is not None}
    settled = precedence(layers.command, given, layers.project)
    options = {name: axis(value) for name, value in settled.items() if name in SWEEP_KEYS}
    if (selectors := options["selector"]) != (SELECTOR,):
        raise InvalidSpec(f"selectors must hold {SELECTOR!r} once, got {list(selectors)}; leave the key out")
    return Grid(
        mechanisms=_mechanisms(axis(table.mechanisms)),
        parameters=combinations(table.parameters),
        claims=tuple(None if each is None else _claim(each, relation) for each in axis(table.claims)),
        pairs=(None,) if table.pairs is None else pairs_of(axis(table.pairs), folder, relation, given.get("user")),
        options=options,
        folder=folder,
        relation=relation,
        name=table.name,
        prove=table.prove,
    )


def _mechanisms(names: tuple[Any, ...]) -> tuple[Any, ...]:
    """The names, those of a room of the catalogue as its entries."""
    return tuple(
        each for name in names for each in (_entries(name) if ":" not in name and is_own(f"{name}:") else (name,))
    )


def _entries(name: str) -> tuple[Any, ...]:
    try:
        part = importlib.import_module(name)
        entries: tuple[Any, ...] = part.entries() if hasattr(part, "entries") else part.ENTRIES
    except (ImportError, AttributeError):
        raise InvalidSpec(f"mechanisms: {name!r} is no part of the catalogue; `dpaudit catalogue` lists it") from None
    return entries


def _claim(keys: dict[str, Any], relation: Relation | None) -> Claim | Callable[..., Claim]:
    """The claim, or what makes it of the parameters where one of its values is a formula in them."""
    form_of(keys, numbers=True, place="claims")

    def claim_at(**parameters: Any) -> Claim:
        def of(value: Any) -> Any:
            return value if not isinstance(value, str) else parameters.get(value) or epsilon_of(value, parameters)

        return claim_of_keys({key: of(value) for key, value in keys.items()}, relation)

    if any(isinstance(value, str) for value in keys.values()):
        return claim_at
    with at("claims"):
        return claim_at()


# --- what a caller gives for an axis of a grid: one value, or several -----------------------------------------


def axis(value: Any) -> tuple[Any, ...]:
    """Several values as they are, a single one as an axis of one.

    >>> axis(1e6), axis([1, 2]), axis("fixed"), axis(None)
    ((1000000.0,), (1, 2), ('fixed',), (None,))
    """
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        return (value,)
    points = tuple(itertools.islice(value, LARGEST_GRID + 1))  # it may have no end
    if len(points) > LARGEST_GRID:
        raise InvalidSpec(f"a sweep has at most {LARGEST_GRID:,} points, got a list that is longer; give shorter lists")
    return points


def combinations(parameters: Any) -> tuple[dict[str, Any], ...]:
    """The combinations of parameters: every one of a mapping's lists, or those of a list as they stand.

    >>> combinations({"epsilon": [0.5, 1.0], "c": 2})
    ({'epsilon': 0.5, 'c': 2}, {'epsilon': 1.0, 'c': 2})
    """
    if parameters is None:
        return ({},)
    if isinstance(parameters, Mapping):
        for name in parameters:
            if not isinstance(name, str):
                raise InvalidSpec(f"parameters must be named by text, got {name!r}")
        axes = {name: axis(values) for name, values in parameters.items()}
        for name, values in axes.items():
            if not values:
                raise InvalidSpec(f"parameters.{name} must hold at least one value, got none")
        size = math.prod(map(len, axes.values()))
        if size > LARGEST_GRID:
            raise InvalidSpec(f"a sweep has at most {LARGEST_GRID:,} points, got {size:,}; give shorter lists")
        return tuple(dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))
    if isinstance(parameters, Iterable) and not isinstance(parameters, str | bytes):
        several = axis(parameters)
        if all(isinstance(each, Mapping) for each in several):
            return tuple(dict(each) for each in several)
    raise InvalidSpec(f"parameters must be a mapping of names to values, or a list of such, got {parameters!r}")
