"""Rows of a study as numbers, and in lines: one for each procedure, its audits at each place taken together."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpaudit.results.verdict import Verdict

Row = Mapping[str, Any]
Series = dict[float, list[float]]  # the values at each place, in the order of the places

PARAMETERS = "parameters."
TELLING = ("mechanism", "claim", "pair", "certifier", "selector", "stopping")  # what a procedure may differ in
MOST = 12  # lines that can be told apart
OTHERS = "all others"


def number_of(row: Row, name: str) -> float | None:
    """A finite number of a row; None where there is none, "inf" among them."""
    value = row.get(name)
    if value is None or value == "" or isinstance(value, bool):
        return None
    return float(value) if math.isfinite(float(value)) else None


def is_refuted(row: Row) -> bool:
    """Whether the verdict of a row, an enum or its name, is REFUTED."""
    return row.get("verdict") in (Verdict.REFUTED, Verdict.REFUTED.value)


def truth(row: Row) -> float | None:
    """The exact loss of the pair, or that of the mechanism, where one is known."""
    exact = number_of(row, "exact_epsilon")
    return number_of(row, "true_epsilon") if exact is None else exact


def excess(row: Row) -> float | None:
    """By how much the truth exceeds what is claimed."""
    true, claimed = truth(row), number_of(row, "claimed_epsilon")
    return None if true is None or claimed is None else float(f"{true - claimed:.3g}")


def is_violated(row: Row) -> bool:
    """Whether the claim is known to be wrong: by the truth, or, where none is known, as the catalogue lists it."""
    beyond = excess(row)
    return bool(row.get("broken")) if beyond is None else beyond > 0.0


def grouped(
    rows: Sequence[Row], x: Callable[[Row], float | None], y: Callable[[Row], float | None]
) -> dict[str, Series]:
    """Lines by name, for the rows that differ in what tells a procedure.

    Only what differs among the rows is in a name. Beyond `MOST` lines the smallest ones are left together as one.
    """
    differing = [key for key in TELLING if len({str(row.get(key)) for row in rows}) > 1]
    differing = differing or sorted({key for row in rows for key in row if key.startswith(PARAMETERS)})
    names = [_name(row, differing) for row in rows]
    sizes = Counter(names)
    kept = {name for name, _ in sizes.most_common(len(sizes) if len(sizes) <= MOST else MOST - 1)}
    lines: dict[str, Series] = {}
    for name, row in zip(names, rows, strict=True):
        at, value = x(row), y(row)
        if at is not None and value is not None:
            lines.setdefault(name if name in kept else OTHERS, {}).setdefault(float(at), []).append(value)
    return {name: dict(sorted(series.items())) for name, series in lines.items()}


def named(row: Row) -> str:
    """The mechanism with its parameters."""
    given = {key.removeprefix(PARAMETERS): row[key] for key in row if key.startswith(PARAMETERS)}
    values = [f"{key}={value}" for key, value in given.items() if value is not None]
    name = str(row.get("mechanism") or "mechanism")
    return f"{name}({', '.join(values)})" if values else name


def _name(row: Row, differing: Sequence[str]) -> str:
    parts = [
        f"{key.removeprefix(PARAMETERS)} {row.get(key)}" if key.startswith(PARAMETERS) else str(row.get(key))
        for key in differing
    ]
    return ", ".join(parts) or str(row.get("mechanism") or "audits")
