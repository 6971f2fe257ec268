"""How tokens are printed: those of the outputs, and whole outputs as they are written."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from dpaudit.events.features import Coordinate, Feature, Shape, Whole, single
from dpaudit.events.scores import Binning
from dpaudit.outputs.canonical import ABSENT, NONE, NOT_A_NUMBER, TIMED_OUT, TYPE, Outputs, Path, derived
from dpaudit.search.binning import binning
from dpaudit.search.entries import MOST, coordinates_of

LONGEST_VALUE = 120
PLAIN = {each.code: each.label for each in (NONE, NOT_A_NUMBER, TIMED_OUT)}


def binning_of(feature: Feature, both: Outputs) -> Binning:
    """The cells of a feature, chosen on these outputs."""
    exact = both.column(feature.path).values if isinstance(feature, Coordinate) else None
    return binning(feature.column(both), labels_of(feature, both), exact)


def labels_of(feature: Feature, both: Outputs) -> dict[int, str]:
    """How the tokens of a feature are printed: those of the outputs, whole outputs and shapes as they are written."""
    if not isinstance(feature, Whole | Shape):
        return dict(both.labels)
    codes, rows = np.unique(feature.column(both).tokens, return_index=True)
    places = [path for path in coordinates_of(both) if not derived(path)][:MOST]
    kept = None if isinstance(feature, Whole) else frozenset(feature.values)
    return {
        int(code): written(both, int(row), places, kept)[:LONGEST_VALUE]
        for code, row in zip(codes[:512], rows[:512], strict=True)
    }


def written(
    outputs: Outputs, row: int, places: Sequence[Path], kept: frozenset[float] | None = None, digits: str = "g"
) -> str:
    """One output as Python would write it; of a shape only the numbers that are `kept` as they are."""
    tree: dict[int | str, Any] = {}
    for path in ((), *places):
        column = outputs.column(path)
        code = int(column.tokens[row])
        number = float(column.values[row])
        text = f"{number:{digits}}" if code == 0 else PLAIN.get(code) or outputs.labels.get(code, "nan")
        if code == 0 and kept is not None and float(single(column.values[row : row + 1])[0]) not in kept:
            text = "a number"
        if code != ABSENT.code and not path:
            return text
        if code != ABSENT.code:
            node = tree
            for step in path[:-1]:
                node = node.setdefault(step, {})
            node[path[-1]] = text
    heads = {path[:end] for path in places for end in range(len(path))}
    types = {head: outputs.labels.get(int(outputs.column((*head, TYPE)).tokens[row])) for head in heads}
    return _nested(tree, (), [head for head, kind in types.items() if kind == "type tuple"])


def _nested(node: Any, path: Path, tuples: Collection[Path]) -> str:
    if not isinstance(node, dict):
        return str(node)
    entries = {step: _nested(each, (*path, step), tuples) for step, each in node.items()}
    if all(isinstance(step, int) for step in node):
        inner = ", ".join(entries.values())
        return f"({inner})" if path in tuples else f"[{inner}]"
    return f"{{{', '.join(_entry(step, text) for step, text in entries.items())}}}"


def _entry(step: int | str, text: str) -> str:
    """A key with its value; of a set, the element alone."""
    name = step if isinstance(step, str) else ""
    if name.startswith("@has "):
        return name[5:]
    return f"{name[1:] if name[:1] == '@' != name[1:2] else repr(step)}: {text}"
