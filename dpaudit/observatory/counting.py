"""Plain counts, run as a program in the environment of a library: a loop, an event in Python, and two numbers.

Nothing of the engine takes part but the mechanism itself: what an audit found is seen again without its statistics.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpaudit.base.strict import read_toml
from dpaudit.data import AdjacentPair
from dpaudit.mechanisms.importing import import_reference
from dpaudit.mechanisms.protocol import Opened
from dpaudit.spec.questions import read_spec
from dpaudit.spec.reading import read_audits

OWN_SEED = 0x706C61696E  # "plain": no run of an audit has it
BATCH = 10_000


def outputs(opened: Opened, data: Any, runs: int, rng: np.random.Generator) -> Iterator[Any]:
    """The outputs of so many runs, one after the other; an exception of a run is its output.

    >>> from dpaudit.mechanisms import wrap
    >>> list(outputs(wrap(lambda data: 1 / data).open(), 0, 1, np.random.default_rng(0)))
    [ZeroDivisionError('division by zero')]
    """
    while runs > 0:
        if opened.per_run:
            runs -= 1
            try:
                output = opened.call(data, rng)
            except Exception as error:
                output = error
            yield output
        else:
            part = min(runs, BATCH)
            runs -= part
            yield from one_by_one(opened.call(data, part, rng))


def one_by_one(batch: Any) -> Iterator[Any]:
    """The outputs of a batch one by one: of a tuple or dict of arrays, tuples or dicts.

    >>> list(one_by_one({"a": np.array([1, 2]), "b": np.array([3, 4])}))[1] == {"a": 2, "b": 4}
    True
    """
    if isinstance(batch, dict):
        return (dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True))
    return zip(*batch, strict=True) if isinstance(batch, tuple) else iter(batch)


def count(source: str, name: str, number: int) -> dict[str, Any]:
    """Hits and runs of the row's plain event on either dataset of its pair of this number; `event` says it in words."""
    table = next(table for table in read_audits(read_toml(source), source) if table.name == name)
    question = next(question for question in read_spec(source) if question.name == name)
    assert table.record is not None
    assert table.record.plain is not None
    opened = question.mechanism.open()  # the mechanism first: it may lead the import path
    hit = import_reference(table.record.plain, str(question.source.resolve().parent))
    every = [(each,) if isinstance(each, AdjacentPair) else each.resolve() for each in question.pairs]
    pair_of_number = [pair for pairs in every for pair in pairs][number]
    rng = np.random.default_rng([OWN_SEED, question.seed])
    runs = table.record.plain_runs
    sides = {"first": pair_of_number.first, "second": pair_of_number.second}
    hits = {side: sum(bool(hit(each)) for each in outputs(opened, data, runs, rng)) for side, data in sides.items()}
    words = " ".join((hit.__doc__ or "").split()).rstrip(".")
    return {"event": words, **{side: [number_of_hits, runs] for side, number_of_hits in hits.items()}}


if __name__ == "__main__":
    print("\n" + json.dumps(count(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
